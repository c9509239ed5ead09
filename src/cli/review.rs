//! `dicta review`: opens the reading screen on a sample, prints the report, and writes evals of modes.
//!
//! Responsible for paths and messages. `crate::review` samples, counts and writes.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::CommandCx;
use super::error::CommandError;
use super::format::Format;
use super::open::{explain_no_screen, run_review};
use super::review_args::{ReviewArgs, ReviewCommand, SampleArgs};
use super::review_place::{find_place, open, to_command_error};
use super::review_suggest;
use super::workspace::load_workspace_without_judges;
use crate::diag::find_nearest;
use crate::handlers::EvalTypeRegistry;
use crate::model::{make_visible, pluralize};
use crate::review::{
    DraftHits, EvalDraft, EvalDraftKind, ReviewPlace, ReviewReport, ReviewSession, SampleRequest,
    count_hits, describe_judge_draft, draft_evals, rank_drafts, render_html, render_json,
    render_markdown, write_eval,
};
use crate::tui::OpenRequest;
use crate::workspace::Workspace;

/// Runs `dicta review`.
pub(super) fn review(args: &ReviewArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    match &args.command {
        Some(ReviewCommand::Report { paths, format }) => print_report(paths, *format, cx),
        Some(ReviewCommand::Suggest(args)) => review_suggest::suggest(args, cx),
        Some(ReviewCommand::Eval {
            mode,
            eval_type: Some(eval_type),
            rubric,
            workspace,
            ..
        }) => make_eval(mode, eval_type, rubric.as_deref(), workspace.as_deref(), cx),
        Some(ReviewCommand::Eval {
            mode,
            eval_type: None,
            format,
            workspace,
            ..
        }) => list_drafts(mode, *format, workspace.as_deref(), cx),
        None => read(args, cx),
    }
}

fn read(args: &ReviewArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let place = find_place(&args.paths, cx)?;
    let mut session = open(place, cx)?;
    draw(&mut session, &args.sample, cx)?;
    session.pick(&args.pick).map_err(|unknown| {
        let ids = session.catalog.entries.iter();
        let near = find_nearest(&unknown, ids.map(|entry| entry.reference.id.as_str()));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        CommandError::usage(format!("no transcript has the id `{unknown}`{near}"))
    })?;
    let wants_screen = !args.list && args.format == Format::Human;
    if wants_screen && explain_no_screen(cx).is_none() {
        let request = match &session.place.workspace {
            Some(workspace) => OpenRequest::Workspace(Arc::clone(workspace)),
            None => OpenRequest::File(session.place.transcripts[0].clone()),
        };
        return run_review(request, session.place, &args.look, cx);
    }
    cx.streams.print_list(
        args.format,
        || queue_to_json(&session),
        || format_queue(&session),
    );
    if wants_screen && let Some(why) = explain_no_screen(cx) {
        cx.streams.print_note(&format!(
            "note: {why}, so these are the transcripts to read"
        ));
    }
    Ok(0)
}

/// Formats the transcripts to read, one line for each: the transcript, the reason it is in the sample, its probability,
/// and the outcomes that the user noted.
fn format_queue(session: &ReviewSession) -> String {
    let items = || session.queue.iter();
    let names = items().map(|item| item.transcript.chars().count());
    let plans = items().map(|item| item.sample.plan.chars().count());
    let (names, plans) = (names.max().unwrap_or(0), plans.max().unwrap_or(0));
    let mut out = String::new();
    for item in items() {
        let notes = session.book.notes_of(&item.transcript);
        let outcomes: Vec<&str> = notes.map(|note| note.outcome.title()).collect();
        let p = item
            .sample
            .p
            .map_or_else(String::new, |p| format!("{p:.3}"));
        let line = format!(
            "{:<names$}  {:<plans$}  {p:<5}  {}",
            item.transcript,
            item.sample.plan,
            outcomes.join(", ")
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn queue_to_json(session: &ReviewSession) -> Vec<Value> {
    let rows = session.queue.iter().map(|item| {
        let notes = session.book.notes_of(&item.transcript);
        let outcomes: Vec<&str> = notes.map(|note| note.outcome.as_str()).collect();
        json!({
            "type": "review_item",
            "transcript": item.transcript,
            "plan": item.sample.plan,
            "p": item.sample.p,
            "outcomes": outcomes,
        })
    });
    rows.collect()
}

/// Draws a first sample, or more.
fn draw(
    session: &mut ReviewSession,
    args: &SampleArgs,
    cx: &CommandCx,
) -> Result<(), CommandError> {
    let mix = args.mix.unwrap_or_default();
    let total = match (args.more, args.sample) {
        (Some(more), _) => Some(more.get()),
        (None, sample) if session.draws.is_empty() => {
            Some(sample.map_or_else(|| mix.total(), NonZeroUsize::get))
        }
        (None, sample) => {
            if sample.is_some() || args.mix.is_some() {
                cx.streams.print_note(&format!(
                    "note: the sample has {} already; --more N extends it",
                    pluralize(session.queue.len() as u64, "transcript")
                ));
            }
            None
        }
    };
    let Some(total) = total else {
        return Ok(());
    };
    let request = SampleRequest {
        mix: mix.scaled_to(total),
        seed: args
            .seed
            .unwrap_or_else(|| fastrand::u64(..=u64::from(u32::MAX))),
        at: cx.clock.wall_time(),
    };
    let new = session.extend(&request).map_err(to_command_error)?;
    if new == 0 {
        let all = pluralize(session.catalog.entries.len() as u64, "transcript");
        cx.streams
            .print_note(&format!("note: the sample has all {all} already"));
        return Ok(());
    }
    let folder = session.place.files.folder.display().to_string();
    cx.streams.print_note(&format!(
        "note: drew {} of {} ({}, seed {}); notes go to {}",
        new,
        pluralize(session.catalog.entries.len() as u64, "transcript"),
        session.draws.last().map_or("", |draw| draw.plan.as_str()),
        request.seed,
        Path::new(&folder).join("notes.jsonl").display()
    ));
    Ok(())
}

fn print_report(paths: &[PathBuf], format: Format, cx: &CommandCx) -> Result<u8, CommandError> {
    let session = open(find_place(paths, cx)?, cx)?;
    let report = ReviewReport::collect(&session).map_err(to_command_error)?;
    match format {
        Format::Html => {
            let mut page = Vec::new();
            render_html(&mut page, &report)
                .map_err(|error| CommandError::usage(error.to_string()))?;
            cx.streams.print_data(&String::from_utf8_lossy(&page));
        }
        Format::Json => cx
            .streams
            .print_data(&format!("{:#}\n", render_json(&report))),
        _ => cx.streams.print(&render_markdown(&report)),
    }
    Ok(0)
}

/// The drafts of evals for a mode.
struct ModeDrafts {
    workspace: Arc<Workspace>,
    session: ReviewSession,
    drafts: Vec<EvalDraft>,
}

impl ModeDrafts {
    fn open(mode: &str, folder: Option<&Path>, cx: &CommandCx) -> Result<Self, CommandError> {
        let workspace = load_workspace_without_judges(folder, cx)?.workspace;
        let session = open(ReviewPlace::of_workspace(&workspace), cx)?;
        let book = &session.book;
        let found = book.modes.find_by_word(mode).ok_or_else(|| {
            let ids: Vec<&str> = book
                .modes
                .modes
                .iter()
                .map(|mode| mode.id.as_str())
                .collect();
            CommandError::usage(if ids.is_empty() {
                format!("there is no mode `{mode}`, because there is none yet; `dicta review` writes them")
            } else {
                format!("modes.yaml has no mode `{mode}`; it has {}", ids.join(", "))
            })
        })?;
        let drafts = draft_evals(book, found);
        Ok(Self {
            workspace,
            session,
            drafts,
        })
    }

    /// Returns the hits of a draft; `None` if a judge decides it.
    fn hits(&self, draft: &EvalDraft) -> Result<Option<DraftHits>, CommandError> {
        let registry = EvalTypeRegistry::builtin();
        count_hits(&self.session.place, &self.session.book, draft, &registry)
            .map_err(CommandError::usage)
    }
}

/// Lists the evals that could check for a mode, the best first.
fn list_drafts(
    mode: &str,
    format: Format,
    folder: Option<&Path>,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let found = ModeDrafts::open(mode, folder, cx)?;
    let all = found.drafts.iter();
    let hits = all
        .map(|draft| found.hits(draft))
        .collect::<Result<Vec<_>, _>>()?;
    let ranked = rank_drafts(&found.drafts, &hits, Some(&found.workspace));
    let rows = || {
        let rows = ranked
            .iter()
            .map(|at| draft_to_json(&found.drafts[*at], hits[*at]));
        rows.collect()
    };
    let human = || {
        let mut out = String::new();
        for at in &ranked {
            let draft = &found.drafts[*at];
            let hits = match hits[*at] {
                Some(hits) => hits.describe(),
                None => describe_judge_draft(Some(&found.workspace)),
            };
            let _infallible = writeln!(
                out,
                "{}\n  fails if {}\n  {}",
                draft.eval_type,
                make_visible(&draft.title, false),
                make_visible(&hits, false)
            );
        }
        out
    };
    cx.streams.print_list(format, rows, human);
    if format == Format::Human {
        cx.streams
            .print_note("note: --type TYPE writes one of them into a rubric");
    }
    Ok(0)
}

/// Returns a draft for programs. `hits` is null if a judge decides it.
fn draft_to_json(draft: &EvalDraft, hits: Option<DraftHits>) -> Value {
    json!({
        "type": "eval_draft",
        "eval": draft.id,
        "eval_type": draft.eval_type,
        "fails_if": draft.title,
        "hits": hits.map(|hits| json!({
            "transcripts": hits.transcripts,
            "fails": hits.fails,
            "undecided": hits.undecided,
            "with_mode": hits.of_yes.0,
            "fails_with_mode": hits.of_yes.1,
            "without_mode": hits.of_no.0,
            "fails_without_mode": hits.of_no.1,
        })),
    })
}

/// Writes the draft of this type into a rubric.
fn make_eval(
    mode: &str,
    eval_type: &str,
    rubric: Option<&str>,
    folder: Option<&Path>,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let found = ModeDrafts::open(mode, folder, cx)?;
    let mut drafts = found.drafts.iter();
    let draft = drafts.find(|draft| draft.eval_type == eval_type);
    let draft = draft.ok_or_else(|| {
        let drafts = found.drafts.iter();
        let types: Vec<&str> = drafts.map(|draft| draft.eval_type).collect();
        CommandError::usage(format!(
            "no draft has the type `{eval_type}`; the drafts are {}",
            types.join(", ")
        ))
    })?;
    if draft.kind == EvalDraftKind::Check
        && let Some(hits) = found.hits(draft)?
    {
        cx.streams.print_note(&format!("note: {}", hits.describe()));
    }
    let written = write_eval(&found.session, &found.workspace, draft, rubric)
        .map_err(|error| CommandError::from_error(&error))?;
    cx.streams.print_wrapped(&format!(
        "{}; `dicta run` shows its agreement\n",
        written.describe()
    ));
    Ok(0)
}

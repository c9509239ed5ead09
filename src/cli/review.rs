//! `dicta review`: opens the reading screen on a sample, prints the report, and writes evals of modes.
//!
//! Responsible for paths and messages. `crate::review` samples, counts and writes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::format::Format;
use super::open::{explain_no_screen, run_review};
use super::review_args::{ReviewArgs, ReviewCommand, SampleArgs};
use super::review_place::{find_place, open, to_command_error};
use super::review_suggest;
use super::workspace::load_workspace;
use crate::diag::find_nearest;
use crate::handlers::EvalTypeRegistry;
use crate::model::{make_visible, pluralize};
use crate::review::{
    DraftHits, EvalDraftKind, ReviewMix, ReviewPlace, ReviewReport, ReviewSession, SampleRequest,
    count_hits, describe_judge_draft, draft_evals, rank_drafts, render_html, render_json,
    render_markdown, write_eval,
};
use crate::tui::OpenRequest;

/// Runs `dicta review`.
pub(super) fn review(args: &ReviewArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    match &args.command {
        Some(ReviewCommand::Report { paths, format }) => print_report(paths, *format, cx),
        Some(ReviewCommand::Suggest(args)) => review_suggest::suggest(args, cx),
        Some(ReviewCommand::Eval {
            mode,
            eval_type,
            rubric,
            workspace,
        }) => make_eval(
            mode,
            eval_type.as_deref(),
            rubric.as_deref(),
            workspace.as_deref(),
            cx,
        ),
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
    if !args.list && explain_no_screen(cx).is_none() {
        let request = match &session.place.workspace {
            Some(workspace) => OpenRequest::Workspace(Arc::clone(workspace)),
            None => OpenRequest::File(session.place.transcripts[0].clone()),
        };
        return run_review(request, session.place, &args.look, cx);
    }
    let mut out = String::new();
    for item in session.queue.iter() {
        let notes = session.book.notes_of(&item.transcript);
        let outcomes: Vec<&str> = notes.map(|note| note.outcome.title()).collect();
        let p = item
            .sample
            .p
            .map_or_else(String::new, |p| format!("{p:.3}"));
        let _infallible = writeln!(
            out,
            "{}\t{}\t{p}\t{}",
            item.transcript,
            item.sample.plan,
            outcomes.join(", ")
        );
    }
    cx.streams.print(&out);
    if !args.list
        && let Some(why) = explain_no_screen(cx)
    {
        cx.streams.print_note(&format!(
            "note: {why}, so these are the transcripts to read"
        ));
    }
    Ok(0)
}

/// Draws a first sample, or more.
fn draw(
    session: &mut ReviewSession,
    args: &SampleArgs,
    cx: &CommandCx,
) -> Result<(), CommandError> {
    let mix = args.mix.unwrap_or_default();
    let total = match (args.more, args.sample) {
        (Some(more), _) => Some(more),
        (None, sample) if session.draws.is_empty() => Some(sample.unwrap_or_else(|| {
            args.mix
                .map_or(ReviewMix::default().total(), ReviewMix::total)
        })),
        (None, sample) => {
            if sample.is_some() || args.mix.is_some() {
                cx.streams.print_note(&format!(
                    "note: {} were drawn already; --more N extends the sample",
                    pluralize(session.queue.len() as u64, "transcript")
                ));
            }
            None
        }
    };
    let Some(total) = total else {
        return Ok(());
    };
    if total == 0 {
        return Err(CommandError::usage(
            "--sample and --more draw transcripts: write a number above 0",
        ));
    }
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

fn make_eval(
    mode: &str,
    eval_type: Option<&str>,
    rubric: Option<&str>,
    folder: Option<&Path>,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let workspace = load_workspace(folder, cx)?.workspace;
    let session = open(ReviewPlace::of_workspace(&workspace), cx)?;
    let book = &session.book;
    let found = book.modes.find_by_word(mode).ok_or_else(|| {
        let ids: Vec<&str> = book
            .modes
            .modes
            .iter()
            .map(|mode| mode.id.as_str())
            .collect();
        CommandError::usage(format!(
            "modes.yaml has no mode `{mode}`; it has {}",
            ids.join(", ")
        ))
    })?;
    let registry = EvalTypeRegistry::builtin();
    let drafts = draft_evals(book, found);
    let hits = |draft| -> Result<Option<DraftHits>, CommandError> {
        count_hits(&session.place, book, draft, &registry).map_err(CommandError::usage)
    };
    let Some(eval_type) = eval_type else {
        let found = drafts.iter().map(hits).collect::<Result<Vec<_>, _>>()?;
        let mut out = String::new();
        for at in rank_drafts(&drafts, &found, Some(&workspace)) {
            let draft = &drafts[at];
            let hits = match found[at] {
                Some(hits) => hits.describe(),
                None => describe_judge_draft(Some(&workspace)),
            };
            let _infallible = writeln!(
                out,
                "{}\n  fails if {}\n  {}",
                draft.eval_type,
                make_visible(&draft.title, false),
                make_visible(&hits, false)
            );
        }
        cx.streams.print(&out);
        cx.streams
            .print_note("note: --type TYPE writes one of them into a rubric");
        return Ok(0);
    };
    let draft = drafts.iter().find(|draft| draft.eval_type == eval_type);
    let draft = draft.ok_or_else(|| {
        let types: Vec<&str> = drafts.iter().map(|draft| draft.eval_type).collect();
        CommandError::usage(format!(
            "no draft has the type `{eval_type}`; the drafts are {}",
            types.join(", ")
        ))
    })?;
    if draft.kind == EvalDraftKind::Check
        && let Some(hits) = hits(draft)?
    {
        cx.streams.print_note(&format!("note: {}", hits.describe()));
    }
    let written = write_eval(&session, &workspace, draft, rubric).map_err(CommandError::usage)?;
    cx.streams.print(&format!(
        "{}; `dicta run` shows its agreement\n",
        written.describe()
    ));
    Ok(0)
}

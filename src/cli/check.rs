//! `dicta check`: everything that would fail at load, what lints say, whether examples hold, and how a file of transcripts
//! was understood.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Cx;
use super::trouble::{Trouble, USAGE};
use super::workspace::open;
use crate::diag::{Diagnostic, has_errors};
use crate::handlers::Registry;
use crate::model::{Transcript, counted};
use crate::record::{Board, RunStore};
use crate::rubric::Rubric;
use crate::run;
use crate::transcript::{TranscriptFile, parse};
use crate::workspace::lint::{self, EvalTally, Observer, Tried};
use crate::workspace::{self, Workspace};

/// Checks a workspace, a rubric or a file of transcripts.
pub(super) fn check(path: Option<&Path>, strict: bool, cx: &Cx) -> Result<u8, Trouble> {
    match path {
        Some(path)
            if path.is_file()
                && is_rubric(path)
                && path.file_name() != Some("dicta.yaml".as_ref()) =>
        {
            one_rubric(path, strict, cx)
        }
        Some(path) if path.is_file() && path.file_name() != Some("dicta.yaml".as_ref()) => {
            transcripts(path, strict, cx)
        }
        _ => whole(path, strict, cx),
    }
}

/// Warnings refuse nothing, unless they are told to.
fn code(warnings: usize, strict: bool) -> u8 {
    if strict && warnings > 0 { USAGE } else { 0 }
}

/// YAML, or a PromptKit pack: JSON whose one object holds evals or prompts, and no messages.
fn is_rubric(path: &Path) -> bool {
    let is = |ext: &str| path.extension().is_some_and(|e| e == ext);
    if is("yaml") || is("yml") {
        return true;
    }
    let top = || -> Option<Top> { serde_json::from_slice(&std::fs::read(path).ok()?).ok() };
    is("json")
        && top().is_some_and(|top| {
            (top.evals.is_some() || top.prompts.is_some()) && top.messages.is_none()
        })
}

/// What tells a pack from a transcript.
#[derive(Deserialize)]
struct Top {
    evals: Option<IgnoredAny>,
    prompts: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
}

fn whole(path: Option<&Path>, strict: bool, cx: &Cx) -> Result<u8, Trouble> {
    let opened = open(path, cx)?;
    opened.announce(cx);
    let workspace = &opened.workspace;
    let evals: usize = workspace.rubrics.iter().map(|r| r.evals.len()).sum();
    let mut records = 0_u64;
    let mut bad = Vec::new();
    let mut ids = HashSet::new();
    let mut observer = Observer::new(&workspace.rubrics);
    for file in &workspace.transcripts {
        let mut taken = Vec::new();
        let (good, faults) = read(file, &mut |transcript| {
            observer.see(transcript);
            if !ids.insert(transcript.id.to_string()) {
                taken.push(taken_id(file, &transcript.id));
            }
        })
        .map_err(|error| Trouble::usage(error.to_string()))?;
        records += good;
        bad.extend(faults);
        bad.append(&mut taken);
    }
    tell(&bad, cx);
    let tried = lint::examples(&workspace.rubrics, &Registry::builtin());
    let mut lints = observer.finish();
    lints.extend(lint::same_verdict(&workspace.rubrics, &on_board(workspace)));
    cx.streams.diagnose(&tried.problems);
    cx.streams.diagnose(&lints);
    let mut out = format!(
        "{}: {} with {}, {} in {}, {}, {}\n",
        workspace.root.display(),
        counted(workspace.rubrics.len(), "rubric"),
        counted(evals, "eval"),
        counted(records, "transcript"),
        counted(workspace.transcripts.len(), "file"),
        counted(workspace.judges.len(), "judge"),
        counted(workspace.labels.len(), "label"),
    );
    for judge in workspace.judges.values() {
        if let Err(why) = workspace::resolve_key(judge, &cx.env) {
            let _infallible = writeln!(out, "{why}");
        }
    }
    out.push_str(&examples(&tried));
    let warnings = workspace.warnings.len() + bad.len() + lints.len() + tried.problems.len();
    out.push_str(&last(warnings));
    cx.streams.print(&out);
    Ok(code(warnings, strict))
}

/// What became of the examples; nothing where there are none.
fn examples(tried: &Tried) -> String {
    let Tried {
        held,
        missed,
        judged,
        ..
    } = *tried;
    let mut parts = Vec::new();
    if held + missed > 0 {
        let hold = if held == 1 { "holds" } else { "hold" };
        parts.push(format!("{} {hold}", counted(held, "example")));
    }
    if missed > 0 {
        parts.push(format!("{missed} missed"));
    }
    if judged > 0 {
        let examples = if held + missed > 0 {
            judged.to_string()
        } else {
            counted(judged, "example")
        };
        parts.push(format!("{examples} not run here: a judge decides"));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("{}\n", parts.join(", "))
}

fn last(warnings: usize) -> String {
    match warnings {
        0 => "no problems\n".to_owned(),
        n => format!("no errors, {}\n", counted(n as u64, "warning")),
    }
}

/// Verdicts on the board by eval, as the evals decide today. Runs that cannot be read are another command's trouble.
fn on_board(workspace: &Workspace) -> Vec<EvalTally> {
    let store = RunStore {
        dir: workspace.runs.clone(),
        also: workspace.also_runs.clone(),
    };
    let (mut board, _unreadable) =
        Board::of(&store.runs(), |header| header.workspace == workspace.root);
    board.decide_anew(&run::deciding(workspace));
    let evals = workspace.rubrics.iter().flat_map(|rubric| {
        let evals = rubric.evals.iter();
        evals.map(|eval| ((&*rubric.id, &*eval.id), &eval.digest))
    });
    let verdicts = board.verdicts(&evals.collect());
    let tally = |((rubric, eval), (pass, fail)): ((String, String), (u64, u64))| EvalTally {
        rubric,
        eval,
        pass,
        fail,
    };
    verdicts.into_iter().map(tally).collect()
}

fn taken_id(file: &Path, id: &str) -> Diagnostic {
    let message =
        format!("the id `{id}` is taken by an earlier transcript; this one gets a suffix");
    Diagnostic::warning("duplicate-id", file, message).help("give every transcript its own `id`")
}

/// Warnings about records, the first of them: a file of the wrong kind has one for each.
fn tell(warnings: &[Diagnostic], cx: &Cx) {
    const SHOWN: usize = 20;
    cx.streams.diagnose(&warnings[..warnings.len().min(SHOWN)]);
    if warnings.len() > SHOWN {
        let more = warnings.len() - SHOWN;
        cx.streams.tell(&format!("… and {more} more like these"));
    }
}

fn one_rubric(path: &Path, strict: bool, cx: &Cx) -> Result<u8, Trouble> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Trouble::usage(format!("{}: {error}", path.display())))?;
    let registry = Registry::builtin();
    let beside = workspace::Beside::alone(path);
    let (rubric, mut problems) =
        crate::rubric::load_with(Arc::from(text), path, &registry, &beside);
    let Some(rubric) = rubric.filter(|_| !has_errors(&problems)) else {
        return Err(Trouble::files(problems));
    };
    let rubrics: [Arc<Rubric>; 1] = [Arc::new(rubric)];
    // Its judges and transcripts are a workspace's.
    let judges = indexmap::IndexMap::new();
    problems.extend(lint::of_rubrics(&rubrics, &judges, None, &registry));
    let tried = lint::examples(&rubrics, &registry);
    cx.streams.diagnose(&tried.problems);
    cx.streams.diagnose(&problems);
    cx.streams.print(&format!(
        "{}: rubric `{}` with {}\n{}",
        path.display(),
        rubrics[0].id,
        counted(rubrics[0].evals.len() as u64, "eval"),
        examples(&tried)
    ));
    Ok(code(problems.len() + tried.problems.len(), strict))
}

fn transcripts(path: &Path, strict: bool, cx: &Cx) -> Result<u8, Trouble> {
    let (mut messages, mut calls) = (0_u64, 0_u64);
    let (good, bad) = read(path, &mut |transcript| {
        messages += transcript.messages.len() as u64;
        let parts = transcript.messages.iter().flat_map(|m| &m.parts);
        calls += parts
            .filter(|p| matches!(p, crate::model::Part::ToolCall(_)))
            .count() as u64;
    })
    .map_err(|error| Trouble::usage(error.to_string()))?;
    tell(&bad, cx);
    let all = good + bad.len() as u64;
    let path = path.display();
    cx.streams.print(&format!(
        "{path}: {good} of {} understood, {}, {}\n",
        counted(all, "record"),
        counted(messages, "message"),
        counted(calls, "tool call")
    ));
    Ok(if good == 0 {
        USAGE
    } else {
        code(bad.len(), strict)
    })
}

/// Reads a file through: how many records are transcripts, and what is wrong with the others.
fn read(
    path: &Path,
    each: &mut dyn FnMut(&Transcript<'_>),
) -> Result<(u64, Vec<Diagnostic>), crate::transcript::TranscriptError> {
    let mut file = TranscriptFile::open(path)?;
    let (mut good, mut bad) = (0, Vec::new());
    while let Some(block) = file.next_block()? {
        for span in &block.spans {
            match parse(
                block.record(*span),
                span.number,
                &file.default_id(span.number),
            ) {
                Ok(transcript) => {
                    good += 1;
                    each(&transcript);
                }
                Err(fault) => {
                    let message = format!("record {}: {}", fault.number, fault.why);
                    bad.push(Diagnostic::warning("bad-record", path, message));
                }
            }
        }
    }
    Ok((good, bad))
}

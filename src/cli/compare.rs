//! `dicta compare`: prints the difference between two runs. Does not compute it; `compare` does.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::{Format, join_lines};
use super::show::load_labels;
use super::workspace::open_run_store_and_workspace;
use crate::compare::{self, DecisionChange, ExplainedDecision, RunComparison};
use crate::event::{EventKind, RunState};
use crate::model::{CellName, Labels, RunId, make_visible, pluralize};
use crate::record::RecordedRun;
use crate::report::{format_as_code, wrap_line};

/// Prints the comparison of two runs. Returns the exit code.
pub(super) fn compare(
    before: &str,
    after: &str,
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let (store, workspace) = open_run_store_and_workspace(place.workspace.as_deref(), cx)?;
    // Resolve both names before reading, so that a wrong second name is reported at once.
    let (old, new) = (store.resolve(before)?, store.resolve(after)?);
    let labels = load_labels(workspace.as_deref(), &[&old, &new], cx)?;
    let (old_state, new_state) = (load_state(&old, cx)?, load_state(&new, cx)?);
    let found = compare::compare_runs((&old_state, &*old.blobs()), (&new_state, &*new.blobs()));
    let ids = (&old.id, &new.id);
    cx.streams.print(&match format {
        Format::Human => format_text(&found, ids, &labels, cx.streams.out.width),
        Format::Markdown => format_markdown(&found, ids),
        Format::Jsonl => join_lines(to_lines(&found, ids, &labels)),
        _ => format!("{:#}\n", to_document(&found, ids, &labels)),
    });
    Ok(0)
}

/// Formats the comparison for people. `width` is the terminal's width in columns, 0 without a terminal.
fn format_text(
    found: &RunComparison,
    ids: (&RunId, &RunId),
    labels: &Labels,
    width: usize,
) -> String {
    let mut out = format!("{} → {}\n", ids.0, ids.1);
    write_moves(&mut out, "flips", &found.flips, labels, width);
    write_moves(&mut out, "other changes", &found.changes, labels, width);
    for (title, names) in [("new", &found.added), ("removed", &found.removed)] {
        if !names.is_empty() {
            let _infallible = writeln!(out, "\n{title}: {}", names.len());
            for name in names {
                let _infallible = writeln!(out, "  {name}");
            }
        }
    }
    for file in &found.files {
        if file.diff.is_empty() {
            let _infallible = writeln!(
                out,
                "\n{} differs; dicta couldn't read its text",
                file.path.display()
            );
        } else {
            let _infallible = write!(out, "\n{}", file.diff);
        }
    }
    let _infallible = writeln!(out, "\n{}", count_differences(found));
    out
}

/// Returns the JSON object of a changed decision.
fn change_to_json(kind: &str, change: &DecisionChange, labels: &Labels) -> Value {
    let name = &change.name;
    let side = |side: &ExplainedDecision| {
        json!({
            "outcome": side.decision.outcome,
            "passed": side.decision.outcome.passed(),
            "score": side.decision.score,
            "explanation": side.explanation,
        })
    };
    // A label belongs to a whole transcript, so it says nothing about one message.
    let label = labels
        .find(&name.transcript, &name.rubric, &name.eval)
        .filter(|_| name.message.is_none())
        .and_then(|label| label.passed);
    json!({
        "type": kind,
        "decision": name.to_string(),
        "transcript": name.transcript,
        "rubric": name.rubric,
        "eval": name.eval,
        "message": name.message,
        "before": side(&change.before),
        "after": side(&change.after),
        "label": label,
    })
}

/// Returns one JSON object for each difference, then the counts.
fn to_lines(found: &RunComparison, ids: (&RunId, &RunId), labels: &Labels) -> Vec<Value> {
    let changes = |kind: &'static str, changes: &[DecisionChange]| {
        let lines = changes.iter().map(|one| change_to_json(kind, one, labels));
        lines.collect::<Vec<_>>()
    };
    let names = |kind: &'static str, names: &[CellName]| {
        let lines = names
            .iter()
            .map(|name| json!({"type": kind, "decision": name.to_string()}));
        lines.collect::<Vec<_>>()
    };
    let files = found.files.iter().map(
        |file| json!({"type": "file", "path": file.path.display().to_string(), "diff": file.diff}),
    );
    let summary = json!({
        "type": "summary",
        "before": ids.0.0,
        "after": ids.1.0,
        "flips": found.flips.len(),
        "changes": found.changes.len(),
        "added": found.added.len(),
        "removed": found.removed.len(),
        "unchanged": found.unchanged,
    });
    let mut lines = changes("flip", &found.flips);
    lines.extend(changes("change", &found.changes));
    lines.extend(names("added", &found.added));
    lines.extend(names("removed", &found.removed));
    lines.extend(files);
    lines.push(summary);
    lines
}

/// Returns the comparison as one document: the same objects as the lines, in a list for each kind.
fn to_document(found: &RunComparison, ids: (&RunId, &RunId), labels: &Labels) -> Value {
    let mut document = json!({
        "flips": [], "changes": [], "added": [], "removed": [], "files": [], "summary": null,
    });
    for line in to_lines(found, ids, labels) {
        let kind = line["type"].as_str().unwrap_or_default();
        let key = match kind {
            "flip" => "flips",
            "change" => "changes",
            "file" => "files",
            other => other,
        };
        match document[key].as_array_mut() {
            Some(list) => list.push(line),
            None => document["summary"] = line,
        }
    }
    document
}

/// Formats the comparison for a pull request.
fn format_markdown(found: &RunComparison, ids: (&RunId, &RunId)) -> String {
    let mut out = format!("## dicta compare {} {}\n", ids.0, ids.1);
    for (title, changes) in [("flip", &found.flips), ("other change", &found.changes)] {
        if changes.is_empty() {
            continue;
        }
        let _infallible = writeln!(
            out,
            "\n{}:\n\n| before | after | decision | why |\n|---|---|---|---|",
            pluralize(changes.len() as u64, title)
        );
        for change in changes {
            let (before, after) = (
                change.before.decision.outcome,
                change.after.decision.outcome,
            );
            let _infallible = writeln!(
                out,
                "| {} {before} | {} {after} | {} | {} |",
                before.symbol(),
                after.symbol(),
                format_as_code(&change.name.to_string()),
                format_as_code(&change.after.explanation)
            );
        }
    }
    for (title, names) in [("New", &found.added), ("Removed", &found.removed)] {
        if !names.is_empty() {
            let names: Vec<String> = names
                .iter()
                .map(|name| format_as_code(&name.to_string()))
                .collect();
            let _infallible = writeln!(out, "\n{title}: {}.", names.join(", "));
        }
    }
    let _infallible = writeln!(out, "\n{}", count_differences(found));
    out
}

/// Formats the counts: `3 flips, 0 other changes, 0 new, 0 removed, 82 unchanged`.
fn count_differences(found: &RunComparison) -> String {
    format!(
        "{}, {}, {} new, {} removed, {} unchanged",
        pluralize(found.flips.len() as u64, "flip"),
        pluralize(found.changes.len() as u64, "other change"),
        found.added.len(),
        found.removed.len(),
        found.unchanged
    )
}

fn load_state(run: &RecordedRun, cx: &CommandCx) -> Result<RunState, CommandError> {
    let log = run.read_log()?;
    for note in log.warnings.iter().cloned().chain(log.integrity.explain()) {
        cx.streams
            .print_stderr(&format!("note: run {}: {note}", run.id.letters()));
    }
    if !log
        .events
        .iter()
        .any(|e| matches!(e.kind, EventKind::RunFinished(_)))
    {
        cx.streams.print_stderr(&format!(
            "note: run {} is incomplete; its missing cells count as new or removed",
            run.id.letters()
        ));
    }
    Ok(RunState::fold(&log.events))
}

/// Returns the relation of a flip to the label, or an empty text if the label does not apply.
fn describe_label_change(change: &DecisionChange, labels: &Labels) -> &'static str {
    let name = &change.name;
    let label = labels.find(&name.transcript, &name.rubric, &name.eval);
    let (old, new) = (&change.before.decision, &change.after.decision);
    match (label.and_then(|label| label.passed), new.outcome.passed()) {
        // A label belongs to a whole transcript, so it says nothing about one message.
        _ if name.message.is_some() || !old.outcome.is_verdict() => "",
        (Some(label), Some(passed)) if label == passed => "  towards the label",
        (Some(_), Some(_)) => "  away from the label",
        _ => "",
    }
}

/// Writes the changed decisions. `width` is the terminal's width in columns, 0 without a terminal.
fn write_moves(
    out: &mut String,
    title: &str,
    moves: &[DecisionChange],
    labels: &Labels,
    width: usize,
) {
    if moves.is_empty() {
        return;
    }
    let _infallible = writeln!(out, "\n{title}: {}", moves.len());
    for change in moves {
        let (old, new) = (&change.before, &change.after);
        let _infallible = writeln!(
            out,
            "  {} → {}  {}{}",
            old.decision.outcome.symbol(),
            new.decision.outcome.symbol(),
            change.name,
            describe_label_change(change, labels)
        );
        for (word, side) in [("was", old), ("now", new)] {
            let score = side
                .decision
                .score
                .map(|s| format!(" {s:.2}"))
                .unwrap_or_default();
            let mut why = side.explanation.lines();
            // Explanations come from judges, so make control characters visible and wrap the lines.
            let head = format!("{word} {}{score}: ", side.decision.outcome);
            let first = make_visible(why.next().unwrap_or(""), false);
            let first = wrap_line(&first, 6 + head.chars().count(), 10, width);
            let _infallible = writeln!(out, "      {head}{first}");
            for line in why {
                let line = make_visible(line, false);
                let _infallible = writeln!(out, "          {}", wrap_line(&line, 10, 10, width));
            }
        }
    }
}

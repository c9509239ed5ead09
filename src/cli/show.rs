//! `dicta runs`, `dicta show` and `dicta compare`: print recorded runs. Do not read events themselves; `record` does.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;

use super::CommandCx;
use super::args::{ResultFormat, WorkspaceArgs};
use super::error::CommandError;
use super::workspace::{note_label_problems, open_run_store, open_run_store_and_workspace};
use crate::compare::{self, DecisionChange};
use crate::event::{EventKind, EventTag, RunState};
use crate::model::{CellIx, CellPattern, Labels, Millis, Outcome, make_visible, pluralize};
use crate::record::{LogEnding, LogIntegrity, RecordError, RecordedRun};
use crate::report::{ReportFormat, ReportRow, RowBuilder, format_judge_trace, wrap_line};
use crate::workspace::Workspace;

impl From<ResultFormat> for ReportFormat {
    fn from(format: ResultFormat) -> Self {
        match format {
            ResultFormat::Human => Self::Human,
            ResultFormat::Jsonl => Self::Jsonl,
            ResultFormat::Junit => Self::Junit,
            ResultFormat::Markdown => Self::Markdown,
        }
    }
}

/// Prints the runs of a workspace, newest first.
pub(super) fn list_runs(place: &WorkspaceArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let store = open_run_store(place.workspace.as_deref(), cx)?;
    let mut out = String::new();
    for run in store.runs() {
        let line = format_run_line(&run).unwrap_or_else(|error| format!("unreadable: {error}"));
        let _infallible = writeln!(out, "{}  {line}", run.id.letters());
    }
    if out.is_empty() {
        let _infallible = writeln!(
            out,
            "no recorded runs in {}; `dicta run` records one",
            store.dir.display()
        );
    } else {
        out.insert_str(0, RUNS_HEADER);
    }
    cx.streams.print(&out);
    Ok(0)
}

/// The names of the columns of `dicta runs`.
const RUNS_HEADER: &str =
    "run   started           state        pass   fail   error        cells  time\n";

/// The kinds of events that result lines need. The reader skips the others without parsing, which makes large runs
/// fast.
pub(super) const RESULT_EVENTS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellsSettled,
    EventTag::CellFinished,
    EventTag::RunFinished,
];

/// The kinds of events that result lines and the statistics of judges and tools need.
pub(super) const SHOWN_EVENTS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellsSettled,
    EventTag::CellFinished,
    EventTag::Turn,
    EventTag::Tool,
    EventTag::BudgetReached,
    EventTag::RunFinished,
];

/// Formats the line of a run in `dicta runs`.
fn format_run_line(run: &RecordedRun) -> Result<String, RecordError> {
    let header = run.read_header()?;
    // The line needs only the summary, so drop the rows.
    let mut none = |_: &ReportRow<'_>| Ok::<(), Infallible>(());
    let mut rows = RowBuilder::default();
    let mut events = run.events_with_tags(RESULT_EVENTS)?;
    for event in &mut events {
        let Ok(()) = rows.apply(&event?, &mut none);
    }
    let Ok(summary) = rows.finish(&mut none);
    // The ending is known only after the last event was read.
    let state = match (events.ending(), summary.interrupted) {
        (LogEnding::Running, _) => "running",
        (LogEnding::Interrupted, _) => "interrupted",
        (LogEnding::Finished, true) => "cancelled",
        (LogEnding::Finished, false) => "finished",
    };
    // 16 characters of RFC 3339 are the date with hours and minutes.
    let started = header
        .started
        .0
        .get(..16)
        .unwrap_or(&header.started.0)
        .replace('T', " ");
    let mut out = format!(
        "{started}  {state:<11}  ✓ {:<4} ✗ {:<4} ! {:<4} {:>11}  {}",
        summary.count(Outcome::Pass),
        summary.count(Outcome::Fail),
        summary.errors(),
        pluralize(summary.cells, "cell"),
        Millis(summary.duration_ms),
    );
    if let Some(mark) = events.integrity().mark() {
        let _infallible = write!(out, "  {mark}");
    }
    if run.is_pinned() {
        out.push_str("  pinned");
    }
    if summary.pending > 0 {
        let _infallible = write!(out, "  {} pending", summary.pending);
    }
    if let Some(parent) = &header.parent {
        let cause = serde_json::to_value(parent.cause).ok();
        let cause = cause
            .as_ref()
            .and_then(serde_json::Value::as_str)
            .unwrap_or("child");
        let _infallible = write!(out, "  {cause} of {}", parent.run.letters());
    }
    if !header.label.is_empty() {
        let _infallible = write!(out, "\n      {}", header.label);
    }
    Ok(out)
}

/// Prints the result lines of a run, or the judge trace of one cell.
pub(super) fn show(
    run: &str,
    cell: Option<&str>,
    format: ResultFormat,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let (store, workspace) = open_run_store_and_workspace(place.workspace.as_deref(), cx)?;
    let run = store.resolve(run)?;
    let labels = load_labels(workspace.as_deref(), &[&run], cx)?;
    let labelled = !labels.is_empty();
    let selected = match cell {
        None => None,
        Some(pattern) => {
            let mut events = run.events()?;
            let mut state = RunState::default();
            for event in &mut events {
                state.apply(&event?);
            }
            let (integrity, warnings) = (events.integrity(), events.warnings());
            let picked = select_cells(&state, pattern)?;
            // A single cell prints its judge trace. Other formats have no layout for a trace.
            if let ([(at, name)], ResultFormat::Human) = (&picked[..], format) {
                let blobs = run.blobs();
                note_integrity(&integrity, &warnings, cx);
                cx.streams
                    .print(&format_judge_trace(name, &state.cells[at.index()], &*blobs));
                return Ok(0);
            }
            Some(
                picked
                    .into_iter()
                    .map(|(_, name)| name)
                    .collect::<HashSet<_>>(),
            )
        }
    };
    let mut writer = ReportFormat::from(format).writer(Box::new(io::stdout()), cx.streams.out);
    // With selected cells, rows about the whole run would be misleading, so leave them out.
    let mut rows = RowBuilder::with_labels(labels);
    let mut emit = |row: &ReportRow<'_>| match (&selected, row) {
        (Some(names), ReportRow::Result(result)) if !names.contains(&result.name.to_string()) => {
            Ok(())
        }
        (
            Some(_),
            ReportRow::Decision(_)
            | ReportRow::Rubric(_)
            | ReportRow::Stats(_)
            | ReportRow::Summary(_),
        ) => Ok(()),
        _ => writer.write_row(row),
    };
    // Step: print the rows until the log or the reader ends.
    let mut events = run.events_with_tags(SHOWN_EVENTS)?;
    let mut printed = Ok(());
    for event in &mut events {
        printed = rows.apply(&event?, &mut emit);
        if printed.is_err() {
            break;
        }
    }
    let printed = printed
        .and_then(|()| rows.finish(&mut emit).map(|_| ()))
        .and_then(|()| writer.finish());
    // Step: the notes. Agreement uses today's labels and not those of the day of the run.
    if labelled && printed.is_ok() {
        cx.streams
            .print_stderr("note: the labels are the current labels of the workspace");
    }
    note_integrity(&events.integrity(), &events.warnings(), cx);
    // Step: report an incomplete log.
    let letters = run.id.letters();
    match (&printed, events.ending()) {
        (Err(_), _) | (_, LogEnding::Finished) => {}
        (_, LogEnding::Interrupted) => {
            cx.streams.print_stderr(&format!(
                "run {letters} was interrupted; the output contains only its recorded part"
            ));
        }
        (_, LogEnding::Running) => cx
            .streams
            .print_stderr(&format!("run {letters} is still being recorded")),
    }
    match printed {
        Ok(()) => Ok(0),
        // If the reader closed the pipe, the command succeeded. A full disk is an error.
        Err(error) => CommandError::output_failed("standard output", &error).map_or(Ok(0), Err),
    }
}

/// Prints the lines of the log that were left out or changed, and the mark of the run.
fn note_integrity(integrity: &LogIntegrity, warnings: &[String], cx: &CommandCx) {
    for note in warnings.iter().cloned().chain(integrity.explain()) {
        cx.streams.print_stderr(&format!("note: {note}"));
    }
}

/// Returns the current labels of the workspace if the run belongs to it, else no labels.
fn load_labels(
    workspace: Option<&Workspace>,
    runs: &[&RecordedRun],
    cx: &CommandCx,
) -> Result<Labels, CommandError> {
    let Some(workspace) = workspace.filter(|workspace| !workspace.labels.is_empty()) else {
        return Ok(Labels::default());
    };
    // A label names a transcript of this workspace. In another workspace, the id may be another transcript.
    for run in runs {
        let header = run.read_header()?;
        // The demo's recordings were made in another folder than the one it is unpacked to.
        if header.workspace != workspace.root && !(header.demo && workspace.is_demo) {
            return Ok(Labels::default());
        }
    }
    note_label_problems(workspace, cx);
    Ok(Labels::new(workspace.labels.iter().cloned()))
}

/// Returns the cells that match a pattern, with their names.
fn select_cells(state: &RunState, pattern: &str) -> Result<Vec<(CellIx, String)>, CommandError> {
    let names: Vec<(CellIx, String)> = (0..u32::try_from(state.cells.len()).unwrap_or(u32::MAX))
        .map(CellIx)
        .filter_map(|cell| Some((cell, state.cell_name(cell)?.to_string())))
        .collect();
    let texts: Vec<String> = names.iter().map(|(_, name)| name.clone()).collect();
    let picked: HashSet<&String> = CellPattern::new(pattern)
        .select(&texts)
        .into_iter()
        .collect();
    if picked.is_empty() {
        let near = crate::diag::find_nearest(pattern, texts.iter().map(String::as_str));
        // Without a similar name, show any name as an example of the form.
        let near = near.or(texts.first().map(String::as_str));
        let near = near
            .map(|n| format!("; did you mean `{n}`?"))
            .unwrap_or_default();
        return Err(CommandError::usage(format!(
            "no cell of the run matches `{pattern}`{near}"
        )));
    }
    Ok(names
        .iter()
        .filter(|(_, name)| picked.contains(name))
        .cloned()
        .collect())
}

/// Prints the comparison of two runs. Returns the exit code.
pub(super) fn compare(
    before: &str,
    after: &str,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let (store, workspace) = open_run_store_and_workspace(place.workspace.as_deref(), cx)?;
    // Resolve both names before reading, so that a wrong second name is reported at once.
    let (old, new) = (store.resolve(before)?, store.resolve(after)?);
    let labels = load_labels(workspace.as_deref(), &[&old, &new], cx)?;
    let (old_state, new_state) = (load_state(&old, cx)?, load_state(&new, cx)?);
    let found = compare::compare_runs((&old_state, &*old.blobs()), (&new_state, &*new.blobs()));
    let mut out = format!("{} → {}\n", old.id, new.id);
    let width = cx.streams.out.width;
    write_moves(&mut out, "flips", &found.flips, &labels, width);
    write_moves(&mut out, "other changes", &found.changes, &labels, width);
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
    let _infallible = writeln!(
        out,
        "\n{}, {}, {} new, {} removed, {} unchanged",
        pluralize(found.flips.len() as u64, "flip"),
        pluralize(found.changes.len() as u64, "other change"),
        found.added.len(),
        found.removed.len(),
        found.unchanged
    );
    cx.streams.print(&out);
    Ok(0)
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

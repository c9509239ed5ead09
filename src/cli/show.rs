//! `dicta runs` and `dicta show`: print recorded runs. Do not read events themselves; `record` does.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::{Format, format_list};
use super::github_place::collect_eval_places;
use super::workspace::{note_label_problems, open_run_store, open_run_store_and_workspace};
use crate::event::{EventTag, RunHeader, RunState};
use crate::model::{CellIx, CellPattern, Labels, Millis, Outcome, pluralize};
use crate::record::{LogEnding, LogIntegrity, RecordError, RecordedRun};
use crate::report::{
    DecisionOrder, EvalPlaces, ReportDetail, ReportFormat, ReportRow, RowBuilder, RunSummary,
    TextStyle, format_judge_trace,
};
use crate::workspace::Workspace;

/// The listed facts of a run.
struct ListedRun {
    header: RunHeader,
    summary: RunSummary,
    state: &'static str,
    /// A mark of a log that is damaged, changed or recorded elsewhere.
    mark: Option<&'static str>,
    is_pinned: bool,
}

/// Prints the runs of a workspace, newest first.
pub(super) fn list_runs(
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let store = open_run_store(place.workspace.as_deref(), cx)?;
    let read = || store.runs().into_iter().map(|run| (read_run(&run), run));
    let rows = || read().map(|(listed, run)| to_json(&run, &listed)).collect();
    let human = || {
        let mut out = String::new();
        for (listed, run) in read() {
            let line = match &listed {
                Ok(listed) => format_run_line(listed),
                Err(error) => format!("unreadable: {error}"),
            };
            let _infallible = writeln!(out, "{:<6}  {line}", run.id.letters());
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
        out
    };
    cx.streams.print(&format_list(format, rows, human));
    Ok(0)
}

fn read_run(run: &RecordedRun) -> Result<ListedRun, RecordError> {
    let header = run.read_header()?;
    // The list needs only the summary, so drop the rows.
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
    Ok(ListedRun {
        header,
        summary,
        state,
        mark: events.integrity().mark(),
        is_pinned: run.is_pinned(),
    })
}

/// Returns the JSON object of a run. It has the same keys for an unreadable run.
fn to_json(run: &RecordedRun, listed: &Result<ListedRun, RecordError>) -> Value {
    let found = listed.as_ref().ok();
    let summary = found.map(|found| &found.summary);
    let header = found.map(|found| &found.header);
    json!({
        "type": "run",
        "run": run.id.0,
        "letters": run.id.letters(),
        "started": header.map(|header| &header.started.0),
        "state": found.map_or("unreadable", |found| found.state),
        "pass": summary.map(|summary| summary.count(Outcome::Pass)),
        "fail": summary.map(|summary| summary.count(Outcome::Fail)),
        "errors": summary.map(RunSummary::errors),
        "cells": summary.map(|summary| summary.cells),
        "pending": summary.map(|summary| summary.pending),
        "duration_ms": summary.map(|summary| summary.duration_ms),
        "parent": header.and_then(|header| Some(&header.parent.as_ref()?.run.0)),
        "cause": header.and_then(|header| Some(header.parent.as_ref()?.cause)),
        "label": header.map(|header| &header.label),
        "mark": found.and_then(|found| found.mark),
        "pinned": run.is_pinned(),
        "error": listed.as_ref().err().map(ToString::to_string),
    })
}

/// Formats the line of a run.
fn format_run_line(run: &ListedRun) -> String {
    let ListedRun {
        header,
        summary,
        state,
        mark,
        is_pinned,
    } = run;
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
    if let Some(mark) = mark {
        let _infallible = write!(out, "  {mark}");
    }
    if *is_pinned {
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
    out
}

/// The names of the columns of `dicta runs`.
const RUNS_HEADER: &str =
    "run     started           state        pass   fail   error        cells  time\n";

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

/// Prints the result lines of a run, or the judge trace of one cell.
pub(super) fn show(
    run: &str,
    cell: Option<&str>,
    format: Format,
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
            if let ([(at, name)], Format::Human) = (&picked[..], format) {
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
    let style = TextStyle {
        // A user who selects cells wants to read everything about them.
        detail: if selected.is_some() {
            ReportDetail::Verbose
        } else {
            cx.streams.out.detail
        },
        ..cx.streams.out
    };
    let places = workspace
        .as_ref()
        .map_or_else(EvalPlaces::new, |workspace| {
            collect_eval_places(workspace, &cx.env)
        });
    let stdout = Box::new(cx.streams.stdout_writer());
    let mut writer = ReportFormat::from(format).writer(stdout, style, &places);
    // With selected cells, rows about the whole run would be misleading, so leave them out.
    let order = ReportFormat::from(format)
        .needs_decisions()
        .then_some(DecisionOrder::Plan);
    let mut rows = RowBuilder::with_labels(labels).with_decisions(order);
    let mut emit = |row: &ReportRow<'_>| match (&selected, row) {
        (Some(names), ReportRow::Result(result)) if !names.contains(&result.name.to_string()) => {
            Ok(())
        }
        (Some(names), ReportRow::Decided(decided))
            if !decided
                .cells
                .iter()
                .any(|cell| names.contains(&cell.name.to_string())) =>
        {
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
            .print_note("note: the labels are the current labels of the workspace");
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
pub(super) fn load_labels(
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

//! `dicta runs`: lists recorded runs. Does not read events itself; `record` does.

use std::convert::Infallible;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::Format;
use super::show::RESULT_EVENTS;
use super::workspace::open_run_store;
use crate::event::{RunHeader, RunPurpose};
use crate::model::{Millis, Outcome, pluralize};
use crate::record::{RecordError, RecordedRun};
use crate::report::{ReportRow, RowBuilder, RunSummary};

/// The listed facts of a run.
struct ListedRun {
    header: RunHeader,
    summary: RunSummary,
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
    let runs = store.runs();
    let read = || runs.iter().map(|run| (read_run(run), run));
    let rows = || read().map(|(listed, run)| to_json(run, &listed)).collect();
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
    cx.streams.print_list(format, rows, human);
    if format == Format::Human && !runs.is_empty() {
        cx.streams
            .print_note("`dicta history` lists the edits, with their flips and agreement");
    }
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
    // The ending is known only after the last event was read.
    rows.apply_ending(events.ending());
    let Ok(summary) = rows.finish(&mut none);
    Ok(ListedRun {
        header,
        summary,
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
        "state": found.map_or("unreadable", |found| found.summary.status.name()),
        "pass": summary.map(|summary| summary.count(Outcome::Pass)),
        "fail": summary.map(|summary| summary.count(Outcome::Fail)),
        "errors": summary.map(RunSummary::errors),
        "edited": summary.map(RunSummary::edited),
        "cells": summary.map(|summary| summary.cells),
        "pending": summary.map(|summary| summary.pending),
        "duration_ms": summary.map(|summary| summary.duration_ms),
        "parent": header.and_then(|header| Some(&header.parent.as_ref()?.run.0)),
        "cause": header.and_then(|header| Some(header.parent.as_ref()?.cause)),
        "branch": header.and_then(RunHeader::branch_point),
        "purpose": header.map(|header| header.purpose),
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
        "{started}  {:<11}  ✓ {:<4} ✗ {:<4} ! {:<4} {:>11}  {}",
        summary.status.name(),
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
    if summary.edited() > 0 {
        let _infallible = write!(out, "  {} edited by hand", summary.edited());
    }
    if let (Some(parent), Some(point)) = (&header.parent, header.branch_point()) {
        let (letters, point) = (parent.run.letters(), point.describe());
        let _infallible = write!(out, "  branch of {letters} from {point}");
    } else if let Some(parent) = &header.parent {
        let cause = serde_json::to_value(parent.cause).ok();
        let cause = cause
            .as_ref()
            .and_then(serde_json::Value::as_str)
            .unwrap_or("child");
        let _infallible = write!(out, "  {cause} of {}", parent.run.letters());
    }
    if header.purpose == RunPurpose::SecondOpinion {
        out.push_str("  second opinion");
    }
    if !header.label.is_empty() {
        let _infallible = write!(out, "\n      {}", header.label);
    }
    out
}

/// The names of the columns of `dicta runs`.
const RUNS_HEADER: &str =
    "run     started           state        pass   fail   error        cells  time\n";

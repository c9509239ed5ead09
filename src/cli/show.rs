//! `dicta show`: prints the results of a state, a run or a file of result lines, or the judge trace of one cell. Does not
//! read events itself; `record` and `report` do.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::Format;
use super::github_place::collect_eval_places;
use super::judged_cells::{MAX_REUSES, find_judged_cell};
use super::quote_places::find_places_in_run;
use super::states::{StateCatalog, StateSource, finished_state_events, labels_for, read_file};
use crate::diag::suggest_cell;
use crate::event::{EventTag, RunEvent, RunHeader, RunState};
use crate::model::{
    CellIx, CellName, CellPattern, CellResult, Labels, RunId, WallTime, make_visible, pluralize,
};
use crate::record::{
    FamilyMember, FinalState, FollowUp, LogEnding, LogIntegrity, LogOrigin, RecordError,
    RecordedRun,
};
use crate::report::{
    DecisionOrder, EvalPlaces, ReportDetail, ReportFormat, ReportRow, RerunFailure, ResultRow,
    RowBuilder, TextStyle, describe_branch, describe_outcome, format_judge_trace,
};

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

/// The events of what a name means.
pub(super) struct ShownEvents {
    pub(super) source: StateSource,
    /// The run whose log has the events; `None` if `list` has them.
    run: Option<RecordedRun>,
    list: Vec<RunEvent>,
}

/// The facts about a log after its last event.
struct EventsEnd {
    ending: LogEnding,
    integrity: LogIntegrity,
    warnings: Vec<String>,
}

impl ShownEvents {
    /// Finds the events of a state, a run or a file.
    pub(super) fn open(catalog: &StateCatalog, name: &str) -> Result<Self, CommandError> {
        let source = catalog.resolve(name)?;
        let (run, list) = match &source {
            StateSource::Run(run) => (Some(run.clone()), Vec::new()),
            StateSource::File(path) => (None, read_file(path)?.events),
            StateSource::Entry(number) => {
                let entry = catalog.entry(*number)?;
                // The log of a run also has the statistics of judges and tools.
                match catalog.only_run(entry)? {
                    Some(run) => (Some(run), Vec::new()),
                    None => (None, finished_state_events(catalog.history()?, entry)),
                }
            }
        };
        Ok(Self { source, run, list })
    }

    /// Returns the header.
    pub(super) fn header(&self) -> Result<RunHeader, RecordError> {
        match &self.run {
            Some(run) => run.read_header(),
            None => Ok(RunState::fold(self.list.iter().take(1)).header.map_or_else(
                || RunHeader::new(RunId(String::new()), WallTime(String::new()), "".into()),
                |header| *header,
            )),
        }
    }

    /// Returns the words for messages: `run kvqa`, `state 8`, `results.jsonl`.
    pub(super) fn describe(&self) -> String {
        match (&self.source, &self.run) {
            (StateSource::File(path), _) => path.display().to_string(),
            (StateSource::Entry(number), None) => format!("state {number}"),
            (_, Some(run)) | (StateSource::Run(run), None) => format!("run {}", run.id.letters()),
        }
    }

    /// Visits the events with these tags, or all, until `visit` breaks.
    pub(super) fn for_each(
        &self,
        tags: Option<&'static [EventTag]>,
        mut visit: impl FnMut(&RunEvent) -> ControlFlow<()>,
    ) -> Result<(), RecordError> {
        self.read(tags, &mut visit).map(|_| ())
    }

    /// Returns the state after all events. The judge traces of a large log are absent.
    fn read_final_state(&self) -> Result<FinalState, RecordError> {
        if let Some(run) = &self.run {
            return run.read_final_state();
        }
        let mut state = FinalState::default();
        for event in &self.list {
            state.state.apply(event);
        }
        state.integrity.origin = LogOrigin::Own;
        Ok(state)
    }

    fn read(
        &self,
        tags: Option<&'static [EventTag]>,
        visit: &mut dyn FnMut(&RunEvent) -> ControlFlow<()>,
    ) -> Result<EventsEnd, RecordError> {
        let Some(run) = &self.run else {
            for event in &self.list {
                if visit(event).is_break() {
                    break;
                }
            }
            return Ok(EventsEnd {
                ending: LogEnding::Finished,
                integrity: LogIntegrity {
                    origin: LogOrigin::Own,
                    ..LogIntegrity::default()
                },
                warnings: Vec::new(),
            });
        };
        let mut events = match tags {
            Some(tags) => run.events_with_tags(tags)?,
            None => run.events()?,
        };
        for event in &mut events {
            if visit(&event?).is_break() {
                break;
            }
        }
        Ok(EventsEnd {
            ending: events.ending(),
            integrity: events.integrity(),
            warnings: events.warnings(),
        })
    }
}

/// Prints the result lines of a state, a run or a file, or the judge trace of one cell.
pub(super) fn show(
    name: &str,
    cell: Option<&str>,
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let catalog = StateCatalog::open(place.workspace.as_deref(), &[name], cx)?;
    catalog.note_missing_labels(cx);
    let shown = ShownEvents::open(&catalog, name)?;
    let workspace = catalog.workspace.as_deref();
    let header = shown.header()?;
    let labels = workspace.map_or_else(Labels::default, |workspace| {
        // A file of a repository belongs to the workspace around it.
        let is_file = matches!(shown.source, StateSource::File(_));
        labels_for(workspace, (!is_file).then_some(&header), cx)
    });
    let labelled = !labels.is_empty();
    let selected = match cell {
        None => None,
        Some(pattern) => {
            let end = shown.read_final_state()?;
            let picked = select_cells(&end.state, pattern)?;
            // A single cell prints its judge trace. Other formats have no layout for a trace.
            if let ([(at, name)], Format::Human) = (&picked[..], format)
                && let Some((run, cell)) = find_trace(&catalog, &shown, &end.state, *at)?
            {
                let decided = end.state.cells[at.index()].result.clone();
                // The trace of a state is in the run that decided the cell.
                let state = if shown.run.is_some() {
                    note_integrity(&end.integrity, &end.warnings, cx);
                    end.into_cell_state(cell)?
                } else {
                    note_integrity(&check_log(&run)?, &[], cx);
                    run.read_cell_state(cell)?
                };
                print_trace(&catalog, name, (run, state, cell), decided.as_deref(), cx);
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
    let places = workspace.map_or_else(EvalPlaces::new, |workspace| {
        collect_eval_places(workspace, &cx.env)
    });
    let stdout = Box::new(cx.streams.stdout_writer());
    let mut writer = ReportFormat::from(format).writer(stdout, style, &places);
    // With selected cells, rows about the whole run would be misleading, so leave them out.
    let order = ReportFormat::from(format)
        .needs_decisions()
        .then_some(DecisionOrder::Plan);
    let state = match (&shown.source, &shown.run) {
        (StateSource::Entry(number), None) => Some(*number),
        _ => None,
    };
    let mut rows = RowBuilder::with_labels(labels)
        .with_decisions(order)
        .with_state(state);
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
    // A state names the re-runs that failed; the rows of a run are its own.
    let failures = match state {
        Some(number) => find_failed_reruns(&catalog, number)?,
        None => HashMap::new(),
    };
    let mut emit = |row: &ReportRow<'_>| match row {
        ReportRow::Result(result) if !failures.is_empty() => {
            let name = result.name.to_owned().decision_name();
            emit(&ReportRow::Result(ResultRow {
                failed_rerun: failures.get(&name),
                ..result.clone()
            }))
        }
        _ => emit(row),
    };
    // Step: print the rows until the log or the reader ends.
    let mut printed = Ok(());
    let end = shown.read(Some(SHOWN_EVENTS), &mut |event| {
        printed = rows.apply(event, &mut emit);
        if printed.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    rows.apply_ending(end.ending);
    let printed = printed
        .and_then(|()| rows.finish(&mut emit).map(|_| ()))
        .and_then(|()| writer.finish());
    // Step: the notes. Agreement uses today's labels and not those of the day of the run.
    if labelled && printed.is_ok() {
        cx.streams
            .print_note("note: the labels are the current labels of the workspace");
    }
    if let (StateSource::Entry(number), None) = (&shown.source, &shown.run)
        && printed.is_ok()
    {
        note_runs(&catalog, *number, cx)?;
        note_failed_reruns(&failures, cx);
    }
    note_integrity(&end.integrity, &end.warnings, cx);
    // Step: report an incomplete log.
    let what = shown.describe();
    match (&printed, end.ending) {
        (Err(_), _) | (_, LogEnding::Finished) => {}
        (_, LogEnding::Interrupted) => {
            cx.streams.print_stderr(&format!(
                "{what} was interrupted; the output contains only its recorded part"
            ));
        }
        (_, LogEnding::Running) => cx
            .streams
            .print_stderr(&format!("{what} is still being recorded")),
    }
    match printed {
        Ok(()) => Ok(0),
        // If the reader closed the pipe, the command succeeded. A full disk is an error.
        Err(error) => CommandError::output_failed("standard output", &error).map_or(Ok(0), Err),
    }
}

/// Prints from how many runs the results of a state are, and the marks of these runs.
fn note_runs(catalog: &StateCatalog, number: usize, cx: &CommandCx) -> Result<(), CommandError> {
    let (history, entry) = (catalog.history()?, catalog.entry(number)?);
    let cells = entry.state.decisions().flat_map(|one| one.cells.iter());
    let runs: HashSet<u32> = cells.map(|cell| cell.run).collect();
    let mut runs: Vec<(&str, &RecordedRun)> = runs
        .iter()
        .filter_map(|run| history.runs().get(*run as usize))
        .map(|run| (run.id.letters(), run))
        .collect();
    runs.sort_unstable_by_key(|(letters, _)| *letters);
    let letters: Vec<&str> = runs.iter().map(|(letters, _)| *letters).collect();
    cx.streams.print_note(&format!(
        "note: state {number} has results of {}: {}",
        pluralize(letters.len() as u64, "run"),
        letters.join(", ")
    ));
    let mut marked: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (letters, run) in runs {
        if let Some(why) = check_log(run)?.explain() {
            marked.entry(why).or_default().push(letters);
        }
    }
    for (why, letters) in marked {
        cx.streams
            .print_stderr(&format!("note: {}: {why}", letters.join(", ")));
    }
    Ok(())
}

/// Checks the results in the log of a run.
fn check_log(run: &RecordedRun) -> Result<LogIntegrity, RecordError> {
    let mut events = run.events_with_tags(RESULT_EVENTS)?;
    for event in &mut events {
        event?;
    }
    Ok(events.integrity())
}

/// Returns the decisions of a state whose last attempt ended without a verdict.
fn find_failed_reruns(
    catalog: &StateCatalog,
    number: usize,
) -> Result<HashMap<CellName, RerunFailure>, CommandError> {
    let (history, entry) = (catalog.history()?, catalog.entry(number)?);
    let failed = || {
        let decisions = entry.state.decisions();
        decisions.filter_map(|one| Some((one, one.failed_rerun?)))
    };
    let results = history.read_results(failed().map(|(_, cell)| cell));
    let failures = failed().filter_map(|(decision, cell)| {
        let result = results.get(&cell)?;
        let failure = RerunFailure {
            run: history.run_of(cell).id.clone(),
            outcome: result.outcome,
            error: result.error.clone(),
        };
        Some((entry.state.name(decision), failure))
    });
    Ok(failures.collect())
}

/// Prints the errors of attempts that left a verdict as it was, each once.
fn note_failed_reruns(failures: &HashMap<CellName, RerunFailure>, cx: &CommandCx) {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for failure in failures.values() {
        let error = failure.error.as_deref().unwrap_or("no error is recorded");
        let text = format!(
            "{} in run {}: {}",
            failure.outcome.as_str(),
            failure.run.letters(),
            make_visible(error, false)
        );
        *counts.entry(text).or_default() += 1;
    }
    for (text, count) in counts {
        cx.streams.print_note(&format!(
            "note: the last attempt ended without a verdict for {}, whose earlier verdict stays if there is one: {text}",
            pluralize(count, "decision")
        ));
    }
}

/// Returns the run that decided a cell, and the cell's number in it; `None` if no run has its judge trace.
fn find_trace(
    catalog: &StateCatalog,
    shown: &ShownEvents,
    state: &RunState,
    at: CellIx,
) -> Result<Option<(RecordedRun, CellIx)>, CommandError> {
    if let Some(run) = &shown.run {
        return Ok(Some((run.clone(), at)));
    }
    let StateSource::Entry(number) = &shown.source else {
        return Ok(None);
    };
    let (Some(name), Some(planned)) = (state.cell_name(at), state.cells[at.index()].planned) else {
        return Ok(None);
    };
    let (history, entry) = (catalog.history()?, catalog.entry(*number)?);
    let name = name.decision_name();
    let eval = planned.key.eval as usize;
    let decisions = entry.state.evals.get(eval).map(|eval| &eval.decisions);
    let mut decisions = decisions.into_iter().flatten();
    let decision = decisions.find(|decision| entry.state.name(decision) == name);
    let cell = decision.and_then(|decision| {
        let mut cells = decision.cells.iter().zip(&decision.slots);
        let is_same = |slot: &crate::record::CellSlot| {
            (slot.judge, slot.repeat) == (planned.key.judge, planned.key.repeat)
        };
        // A pending decision has only the attempt that failed.
        let found = cells.find(|(_, slot)| is_same(slot));
        found.map(|(cell, _)| *cell).or(decision.failed_rerun)
    });
    Ok(cell.map(|cell| (history.run_of(cell).clone(), cell.cell)))
}

/// Prints the judge trace of a cell. A reused verdict has its trace in the run that judged it. `decided` is the result in
/// the shown state, whose bounds may be others.
fn print_trace(
    catalog: &StateCatalog,
    name: &str,
    (mut run, mut state, mut cell): (RecordedRun, RunState, CellIx),
    decided: Option<&CellResult>,
    cx: &CommandCx,
) {
    for _ in 0..MAX_REUSES {
        let store = catalog.store().ok();
        let Some(judged) = store.and_then(|store| find_judged_cell(store, &state, cell)) else {
            break;
        };
        let reused = run.id.letters().to_owned();
        (run, state, cell) = judged;
        cx.streams.print_stderr(&format!(
            "note: run {reused} reused this verdict; the judge trace is that of run {}",
            run.id.letters()
        ));
    }
    let blobs = run.blobs();
    let Some(found) = state.cells.get(cell.index()) else {
        return;
    };
    let places = find_places_in_run(&state, cell, &*blobs);
    cx.streams
        .print_lines(&format_judge_trace(name, found, &*blobs, &places));
    cx.streams
        .print_lines(&format_follow_ups(&run.read_follow_ups(cell)));
    // A run outside a workspace has no family, and that of a deleted run is incomplete.
    let family = catalog.store().map(|store| store.family(&run, cell));
    let tree = format_family(&family.unwrap_or_default(), &run.id);
    let origin = state.header.as_deref().and_then(describe_branch);
    match origin.filter(|_| tree.is_empty()) {
        Some(origin) => cx
            .streams
            .print_lines(&format!("\n{origin}, so it decides nothing\n")),
        None => cx.streams.print_lines(&tree),
    }
    if let (Some(now), Some(then)) = (decided, found.result.as_deref())
        && now.outcome != then.outcome
    {
        cx.streams.print_lines(&format!(
            "now: {}. Run {} judged {}, and the bounds of the eval changed since\n",
            describe_outcome(now.outcome),
            run.id.letters(),
            describe_outcome(then.outcome)
        ));
    }
}

/// Formats the questions after the verdict; empty if there are none.
fn format_follow_ups(asked: &[FollowUp]) -> String {
    let mut out = String::new();
    for one in asked {
        let _infallible = writeln!(
            out,
            "\nquestion after the verdict, which changes no result: {}\n{} answered: {}",
            one.question,
            one.judge,
            one.answer.trim()
        );
    }
    out
}

/// Returns a result in words: `fail 0.20`.
pub(super) fn describe_result(result: Option<&CellResult>) -> String {
    let Some(result) = result else {
        return "no result".to_owned();
    };
    let score = result
        .score
        .map_or_else(String::new, |score| format!(" {score:.2}"));
    format!("{}{score}", describe_outcome(result.outcome))
}

/// Formats the recorded trace and its branches as a tree; empty if there are no branches.
fn format_family(family: &[FamilyMember], shown: &RunId) -> String {
    if family.is_empty() {
        return String::new();
    }
    let mut out = "\nbranches\n".to_owned();
    for member in family {
        let result = member.result.as_deref();
        let is_edited = result.is_some_and(|result| result.by_human);
        let edited = if is_edited { ", edited by hand" } else { "" };
        let outcome = format!("{}{edited}", describe_result(result));
        let mark = if member.run == *shown { '▌' } else { ' ' };
        let indent = "  ".repeat(member.depth);
        let point = member
            .point
            .as_ref()
            .map(|point| format!("from {}  ", point.describe()));
        let _infallible = writeln!(
            out,
            "{mark} {indent}{}  {}{outcome}",
            member.run.letters(),
            point.unwrap_or_default()
        );
    }
    out
}

/// Prints the lines of the log that were left out or changed, and the mark of the run.
fn note_integrity(integrity: &LogIntegrity, warnings: &[String], cx: &CommandCx) {
    for note in warnings.iter().cloned().chain(integrity.explain()) {
        cx.streams.print_stderr(&format!("note: {note}"));
    }
}

/// Returns the cells that match a pattern, with their names.
pub(super) fn select_cells(
    state: &RunState,
    pattern: &str,
) -> Result<Vec<(CellIx, String)>, CommandError> {
    let (cells, names): (Vec<CellIx>, Vec<String>) = (0..u32::try_from(state.cells.len())
        .unwrap_or(u32::MAX))
        .map(CellIx)
        .filter_map(|cell| Some((cell, state.cell_name_ref(cell)?.to_string())))
        .unzip();
    let picked = CellPattern::new(pattern).select(&names);
    let picked: HashSet<&String> = picked.into_iter().collect();
    if picked.is_empty() {
        return Err(CommandError::usage(format!(
            "no cell matches `{pattern}`{}",
            suggest_cell(pattern, &names)
        )));
    }
    let all = cells.into_iter().zip(&names);
    let found = all.filter(|(_, name)| picked.contains(name));
    Ok(found.map(|(cell, name)| (cell, name.clone())).collect())
}

//! The cell that the trace panes show: where its trace is, and what of it is loaded.
//!
//! Responsible for [`locate_trace`] and [`resolve_shown_cell`]. Does not read traces: `update/focus.rs` orders that.

use std::path::Path;

use super::App;
use super::cells::RunCellIx;
use super::cells::{CellsRow, RowId, RowSlot, RowSlotState, SlotId};
use super::judge_trace::{CellRef, NamedCell, RecordedCellRef, RecordedCellState};
use super::phase_text::describe_interruption;
use super::session_view::SessionView;
use crate::event::{CellPhase, CellState, EvalSpec, JudgeSpec, RunHeader, TurnState};
use crate::model::{CellIx, CellResult, Digest, Millis, RunId, TranscriptMode};

/// The place of a cell's trace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TraceLocation {
    /// No trace: the cell was never run.
    NeverRun,
    /// A run in memory.
    Memory {
        /// The number of the cell in that run.
        number: CellIx,
        /// The cell of another run, if the result came from its cache entry.
        cached: Option<RecordedCellRef>,
    },
    /// In a recording.
    Recording(RecordedCellRef),
}

/// Returns the place of a cell's trace.
pub(crate) fn locate_trace(session: &SessionView, row: RowId, slot: u16) -> TraceLocation {
    let Some(cell) = find_slot(session, row, slot) else {
        return TraceLocation::NeverRun;
    };
    if let Some(found) = find_state_cell(session, row, slot) {
        return TraceLocation::Recording(found);
    }
    // A cell has another number in the run that first judged it, so it is found by name.
    let cells = &session.cells;
    let eval = cells.row(row).map(|row| row.eval as usize);
    let eval = eval.and_then(|eval| cells.evals.get(eval));
    let judge = cell
        .judge
        .and_then(|judge| cells.judges.get(judge as usize));
    let named = |run: &RunId| {
        Some(RecordedCellRef {
            run: run.clone(),
            cell: CellRef::Named(Box::new(NamedCell {
                name: session.cells.cell_name(SlotId { row, slot })?,
                eval: eval.map(|eval| eval.digest.clone()),
                eval_hash: Some(cell.inputs.eval_hash()),
                judge: judge.map(|judge| judge.digest.clone()),
            })),
        })
    };
    // The run is unknown, so only a cached result has a trace.
    let Some((run, number)) = find_slot_run(session, cell) else {
        return cell
            .cached_from
            .as_ref()
            .and_then(named)
            .map_or(TraceLocation::NeverRun, TraceLocation::Recording);
    };
    let held = session
        .runs
        .find(run)
        .and_then(|run| run.state.cells.get(number.index()));
    match held {
        Some(state) => {
            let cached = state.result.as_ref().and_then(|r| r.cached.as_ref());
            // A cached result has no turns in this run; the first run has them.
            let cached = cached
                .filter(|_| state.judge_trace.is_empty())
                .and_then(named)
                .or_else(|| find_trace_on_disk(session, run, number));
            TraceLocation::Memory { number, cached }
        }
        None => match cell.cached_from.as_ref().and_then(named) {
            Some(wanted) => TraceLocation::Recording(wanted),
            None => TraceLocation::Recording(RecordedCellRef {
                run: run.clone(),
                cell: CellRef::Ix(number),
            }),
        },
    }
}

/// Returns the recorded cell of a replay that keeps the traces of finished cells on disk.
fn find_trace_on_disk(
    session: &SessionView,
    run: &RunId,
    number: CellIx,
) -> Option<RecordedCellRef> {
    let tracked = session.runs.find(run).filter(|run| run.traces_on_disk)?;
    let state = tracked.state.cells.get(number.index())?;
    let is_judged = state.started.is_some() && state.phase == CellPhase::Done;
    (is_judged && state.judge_trace.is_empty()).then(|| RecordedCellRef {
        run: run.clone(),
        cell: CellRef::Ix(number),
    })
}

/// Returns the recording of a cell of a revision's state. The cells of a state come from several runs, where they may have
/// other names.
fn find_state_cell(session: &SessionView, row: RowId, slot: u16) -> Option<RecordedCellRef> {
    let cells = session.state_cells.as_ref()?;
    let cells = cells.get(&session.cells.decision_name(row)?)?;
    let cell = cells.get(usize::from(slot))?;
    Some(RecordedCellRef {
        run: cell.run.clone(),
        cell: CellRef::Ix(cell.cell),
    })
}

/// Returns true if a slot shows the trace of this cell. The cell of an older recording is unknown.
pub(crate) fn shows_recorded_cell(
    session: &SessionView,
    (row, at): (RowId, u16),
    run: &RunId,
    cell: Option<CellIx>,
) -> bool {
    let Some(slot) = find_slot(session, row, at) else {
        return false;
    };
    // The cell has another number in the run that reused its verdict.
    if slot.cached_from.as_ref() == Some(run) {
        return true;
    }
    let is_at = |own: &RunId, number: CellIx| own == run && cell.is_none_or(|cell| cell == number);
    match find_state_cell(session, row, at) {
        Some(recorded) => match recorded.cell {
            CellRef::Ix(number) => is_at(&recorded.run, number),
            CellRef::Named(_) => recorded.run == *run,
        },
        None => find_slot_run(session, slot).is_some_and(|(own, number)| is_at(own, number)),
    }
}

fn find_slot(session: &SessionView, row: RowId, slot: u16) -> Option<&RowSlot> {
    session.cells.row(row)?.slot(slot)
}

fn find_slot_run<'d>(session: &'d SessionView, slot: &RowSlot) -> Option<(&'d RunId, CellIx)> {
    let RunCellIx { run, cell } = slot.run_cell?;
    Some((session.cells.runs.get(run as usize)?, cell))
}

/// The content of the trace panes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownCell<'a> {
    pub(crate) row: &'a CellsRow,
    pub(crate) slot: &'a RowSlot,
    /// The header of the run with the trace.
    pub(crate) header: Option<&'a RunHeader>,
    /// The trace; `None` if it is not loaded.
    pub(crate) trace: Option<&'a CellState>,
    pub(crate) result: Option<&'a CellResult>,
    /// The eval as the deciding run had it, if that is known. The run with the trace may be another one.
    pub(crate) deciding_eval: Option<&'a EvalSpec>,
    pub(crate) run: Option<&'a RunId>,
    pub(crate) number: CellIx,
    /// The folder of the run with the trace.
    pub(crate) dir: Option<&'a Path>,
    /// The current time within the run.
    pub(crate) now: Millis,
    pub(crate) availability: TraceAvailability<'a>,
}

/// The loading state of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceAvailability<'a> {
    /// Loaded, or there is none.
    Available,
    /// The recording is being read.
    Loading,
    /// The recording is unreadable, for this reason.
    Failed(&'a str),
    /// The cell was never run.
    NeverRun,
}

impl<'a> ShownCell<'a> {
    /// Returns true if a judge works on the cell or will.
    pub(crate) fn is_live(&self) -> bool {
        self.slot.state == RowSlotState::Live
            && self.trace.is_some_and(|cell| cell.phase != CellPhase::Done)
    }

    /// Returns true if the trace has ended, so that pending parts never arrive.
    pub(crate) fn has_ended(&self) -> bool {
        let is_done = |cell: &CellState| cell.phase == CellPhase::Done;
        self.slot.is_interrupted() || self.trace.is_some_and(is_done)
    }

    /// Returns the end of a trace that its run left without a result, in words.
    pub(crate) fn describe_interruption(&self) -> Option<String> {
        match self.slot.state {
            RowSlotState::Interrupted { paused_at } => Some(describe_interruption(paused_at)),
            _ => None,
        }
    }

    /// Returns true if the judge has no tools, not even for reading the transcript.
    pub(crate) fn is_toolless(&self) -> bool {
        self.judge_spec().is_some_and(|judge| {
            judge.config.tools.is_empty() && judge.config.transcript != TranscriptMode::Tools
        }) && self.turns().iter().all(|turn| turn.calls.is_empty())
    }

    /// Returns true if the shown slot is a second opinion.
    pub(crate) fn is_second_opinion(&self) -> bool {
        let at = |slot: &RowSlot| std::ptr::eq(slot, self.slot);
        self.row.second_opinions.iter().any(at)
    }

    /// Returns the turns so far.
    pub(crate) fn turns(&self) -> &'a [TurnState] {
        self.trace.map_or(&[], |cell| &cell.judge_trace)
    }

    /// Returns the eval as the run's header has it.
    pub(crate) fn eval_spec(&self) -> Option<&'a EvalSpec> {
        let key = self.trace?.planned?.key;
        self.header?.evals.get(key.eval as usize)
    }

    /// Returns the judge as the run's header has it.
    pub(crate) fn judge_spec(&self) -> Option<&'a JudgeSpec> {
        let key = self.trace?.planned?.key;
        self.header?.judges.get(key.judge? as usize)
    }
}

/// Returns the content for the focused cell; `None` if no cell is focused.
pub(crate) fn resolve_shown_cell(app: &App) -> Option<ShownCell<'_>> {
    let panes = &app.session().trace_panes;
    resolve_slot_cell(app, panes.slot, &panes.recorded)
}

/// Returns the content for a slot of the focused row. `loaded` is the recording that was read for it.
pub(crate) fn resolve_slot_cell<'a>(
    app: &'a App,
    slot_number: u16,
    loaded: &'a RecordedCellState,
) -> Option<ShownCell<'a>> {
    let session = app.session();
    let id = session.trace_panes.row?;
    let row = session.cells.row(id)?;
    let slot = row.slot(slot_number)?;
    let mut shown_cell = ShownCell {
        row,
        slot,
        header: None,
        trace: None,
        result: None,
        deciding_eval: None,
        run: None,
        number: CellIx(0),
        dir: None,
        now: app.now,
        availability: TraceAvailability::Available,
    };
    // The state in memory comes first: a live cell has no complete recording.
    let elsewhere = match locate_trace(session, id, slot_number) {
        TraceLocation::NeverRun => {
            shown_cell.availability = TraceAvailability::NeverRun;
            return Some(shown_cell);
        }
        TraceLocation::Memory { number, cached } => {
            let (run_id, _) = find_slot_run(session, slot)?;
            let run = session.runs.find(run_id)?;
            let cell = run.state.cells.get(number.index())?;
            shown_cell.header = run.state.header.as_deref();
            shown_cell.trace = Some(cell);
            shown_cell.result = cell.result.as_deref();
            shown_cell.run = Some(run_id);
            shown_cell.number = number;
            shown_cell.dir = run.dir.as_deref();
            shown_cell.deciding_eval = shown_cell.eval_spec();
            // During a replay the time is that of the recording.
            shown_cell.now = match &app.replay {
                Some(replay) => replay.player.recording_time(app.now),
                None => run.run_time(app.now),
            };
            cached
        }
        TraceLocation::Recording(wanted) => Some(wanted),
    };
    if let Some(wanted) = elsewhere {
        apply_recorded_cell(&mut shown_cell, loaded, &wanted);
    }
    // The verdict was not cached, so the run with the trace also decided it.
    if shown_cell.deciding_eval.is_none() && slot.cached_from.is_none() {
        shown_cell.deciding_eval = shown_cell.eval_spec();
    }
    Some(shown_cell)
}

/// Fills in the trace from a recording, if it is loaded.
fn apply_recorded_cell<'a>(
    shown_cell: &mut ShownCell<'a>,
    loaded: &'a RecordedCellState,
    wanted: &RecordedCellRef,
) {
    match loaded {
        RecordedCellState::Loaded {
            cell: requested,
            recorded,
        } if *requested == wanted.cell && recorded.run == wanted.run => {
            shown_cell.header = Some(&recorded.header);
            // The result in memory is the newer one: it may come from another run.
            shown_cell.result = shown_cell.result.or(recorded.state.result.as_deref());
            shown_cell.trace = Some(&recorded.state);
            shown_cell.run = Some(&recorded.run);
            shown_cell.number = recorded.cell;
            shown_cell.dir = Some(&recorded.dir);
        }
        RecordedCellState::Failed { wanted: known, why } if known == wanted => {
            shown_cell.availability = TraceAvailability::Failed(why);
        }
        RecordedCellState::Loading(..) => shown_cell.availability = TraceAvailability::Loading,
        // The trace in memory is complete, so no recording was ordered.
        _ if shown_cell.trace.is_some() => {}
        _ => shown_cell.availability = TraceAvailability::Loading,
    }
}

/// Returns true if the focused cell's verdict must be hidden. That includes its judge trace, which contains the
/// verdict before the cell ends.
pub(crate) fn hides_verdict(app: &App) -> bool {
    let session = app.session();
    let row = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row));
    row.is_some_and(|row| {
        let mut slots = row.all_slots();
        // A row without a run has no verdict to hide.
        row.hidden && slots.any(|(_, slot)| slot.state != RowSlotState::NeverRun)
    })
}

/// Returns true if the eval is the version that was judged.
pub(crate) fn is_same_eval(shown_cell: &ShownCell<'_>, now: &Digest) -> bool {
    shown_cell
        .eval_spec()
        .is_none_or(|spec| spec.digest == *now)
}

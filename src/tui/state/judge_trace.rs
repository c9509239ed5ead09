//! The four panes of a trace: which cell, which step of it, how far each is scrolled.
//!
//! Owns where the trace of the focused cell is to be found ([`whereabouts`]) and what of it is shown ([`shown`]). Refuses to
//! read it: that is an effect, asked for in `update/focus.rs`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::App;
use super::cells::{CellsRow, RowId, RowSlot, RowSlotState};
use super::readable_request::{ReadableRequest, RequestKey};
use super::session_view::SessionView;
use crate::event::{AttemptState, CallState, CellPhase, CellState, RunHeader, TurnState};
use crate::model::{
    CellIx, CellName, CellResult, Digest, Millis, RunId, SUBMIT_VERDICT, TranscriptMode,
    TranscriptRef,
};
use crate::tui::widget::flow::ScrollState;

/// A cell read from a recording.
#[derive(Debug)]
pub(crate) struct RecordedCell {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
    pub(crate) header: RunHeader,
    pub(crate) state: CellState,
    pub(crate) transcript: TranscriptRef,
    /// What the run noted about the cell.
    pub(crate) notes: Vec<String>,
    pub(crate) dir: PathBuf,
}

/// Which cell of a run. In the run that a result was taken from the cell has another number: its name finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CellRef {
    Ix(CellIx),
    Name(CellName),
}

/// What the panes show.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracePanes {
    /// The focused row.
    pub(crate) row: Option<RowId>,
    /// Which of its cells (judges, repeats).
    pub(crate) slot: u16,
    /// The recording, for a cell that no run in memory holds.
    pub(crate) recorded: RecordedCellState,
    /// Which step of the strip.
    pub(crate) step: StepSelection,
    /// Which citation was gone to last.
    pub(crate) selected_citation: Option<usize>,
    /// A citation whose page is still being read; it is gone to when it is here.
    pub(crate) awaited_citation: Option<usize>,
    /// The quote that was gone to in a fetched text: turn, call, bytes.
    pub(crate) selected_quote: Option<(usize, usize, Range<usize>)>,
    /// The request of the shown turn, made readable.
    pub(crate) request: RequestState,
    /// The raw form, instead of the readable one.
    pub(crate) shows_raw: bool,
    /// What was shown at the last look: when it is another, panes begin at their tops.
    pub(crate) last_shown: LastShown,
    pub(crate) prompt: ScrollState,
    pub(crate) call: ScrollState,
    pub(crate) fetched: ScrollState,
    pub(crate) verdict: ScrollState,
}

/// What was shown at the last look.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LastShown {
    pub(crate) slot: Option<(RowId, u16)>,
    /// The state's run: `None` while nothing is known.
    pub(crate) run: Option<RunId>,
    pub(crate) turn: Option<usize>,
    pub(crate) call: Option<(usize, usize)>,
    pub(crate) ended: bool,
}

/// A recording that is read when it is looked at.
#[derive(Debug, Clone, Default)]
pub(crate) enum RecordedCellState {
    /// Not needed.
    #[default]
    Unloaded,
    /// Being read.
    Loading(RunId, CellRef),
    /// Here; it was asked for so.
    Loaded(CellRef, Arc<RecordedCell>),
    /// Cannot be read. Not asked again.
    Failed(RunId, CellRef, String),
}

impl RecordedCellState {
    /// Whether this is about that cell, in whatever state.
    pub(crate) fn is_of(&self, run: &RunId, which: &CellRef) -> bool {
        match self {
            Self::Unloaded => false,
            Self::Loading(r, w) | Self::Failed(r, w, _) => (r, w) == (run, which),
            Self::Loaded(w, recorded) => &recorded.run == run && w == which,
        }
    }
}

/// A request that is made readable when it is looked at.
#[derive(Debug, Clone, Default)]
pub(crate) enum RequestState {
    #[default]
    Unloaded,
    Loading(RequestKey),
    Loaded(Arc<ReadableRequest>),
    Failed(RequestKey, String),
}

impl RequestState {
    /// Which request this is about.
    pub(crate) fn key(&self) -> Option<&RequestKey> {
        match self {
            Self::Unloaded => None,
            Self::Loading(key) | Self::Failed(key, _) => Some(key),
            Self::Loaded(request) => Some(&request.key),
        }
    }
}

/// Which step of a trace is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StepSelection {
    /// The newest, going with the judge.
    #[default]
    Newest,
    /// This one of the strip.
    Position(usize),
}

/// A step of the strip: a turn, or one tool call of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceStep {
    /// A model call.
    Turn(usize),
    /// A tool call: which turn, which of its calls.
    Call(usize, usize),
}

/// A trace's steps in order.
pub(crate) fn list_steps(trace: &[TurnState]) -> impl Iterator<Item = TraceStep> {
    trace.iter().enumerate().flat_map(|(turn, state)| {
        let calls = 0..state.calls.len();
        std::iter::once(TraceStep::Turn(turn))
            .chain(calls.map(move |call| TraceStep::Call(turn, call)))
    })
}

/// Where the trace of a cell is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TraceLocation {
    /// Nowhere: it was never run.
    NeverRun,
    /// In a run in memory; and in another run, where the result was taken from there.
    Memory(CellIx, Option<(RunId, CellRef)>),
    /// In a recording.
    Recording(RunId, CellRef),
}

/// Where the trace of a row's cell is.
pub(crate) fn locate_trace(session: &SessionView, row: RowId, slot: u16) -> TraceLocation {
    let Some(cell) = find_slot(session, row, slot) else {
        return TraceLocation::NeverRun;
    };
    let named = |run: &RunId| {
        Some((
            run.clone(),
            CellRef::Name(session.cells.cell_name((row, slot))?),
        ))
    };
    let Some((run, number)) = find_slot_run(session, cell) else {
        return cell
            .cached_from
            .as_ref()
            .and_then(named)
            .map_or(TraceLocation::NeverRun, |(run, which)| {
                TraceLocation::Recording(run, which)
            });
    };
    let held = session
        .runs
        .find(run)
        .and_then(|run| run.state.cells.get(number.index()));
    match held {
        Some(state) => {
            let cached = state.result.as_ref().and_then(|r| r.cached.as_ref());
            let elsewhere = cached
                .filter(|_| state.judge_trace.is_empty())
                .and_then(named);
            TraceLocation::Memory(number, elsewhere)
        }
        None => match cell.cached_from.as_ref().and_then(named) {
            Some((run, which)) => TraceLocation::Recording(run, which),
            None => TraceLocation::Recording(run.clone(), CellRef::Ix(number)),
        },
    }
}

fn find_slot(session: &SessionView, row: RowId, slot: u16) -> Option<&RowSlot> {
    session.cells.row(row)?.slot(slot)
}

fn find_slot_run<'d>(session: &'d SessionView, slot: &RowSlot) -> Option<(&'d RunId, CellIx)> {
    let (run, cell) = slot.run_cell?;
    Some((session.cells.runs.get(run as usize)?, cell))
}

/// What the panes show of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownCell<'a> {
    pub(crate) row: &'a CellsRow,
    pub(crate) slot: &'a RowSlot,
    /// What the run with the trace began with.
    pub(crate) header: Option<&'a RunHeader>,
    /// The trace; `None` while it is not here.
    pub(crate) trace: Option<&'a CellState>,
    pub(crate) result: Option<&'a CellResult>,
    /// The eval as the run had it that decided, where that one is at hand: not always the one with the trace.
    pub(crate) deciding_eval: Option<&'a crate::event::EvalSpec>,
    pub(crate) run: Option<&'a RunId>,
    pub(crate) number: CellIx,
    /// The folder of the trace's run.
    pub(crate) dir: Option<&'a Path>,
    /// The moment within the run.
    pub(crate) now: Millis,
    pub(crate) availability: TraceAvailability<'a>,
}

/// What the trace waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceAvailability<'a> {
    /// Nothing: it is here, as far as there is one.
    Available,
    /// A recording is being read.
    Loading,
    /// It cannot be read.
    Failed(&'a str),
    /// It was never run.
    NeverRun,
}

impl<'a> ShownCell<'a> {
    /// Whether a judge works on it, or will.
    pub(crate) fn is_live(&self) -> bool {
        self.slot.state == RowSlotState::Live
            && self.trace.is_some_and(|cell| cell.phase != CellPhase::Done)
    }

    /// Whether its trace has ended: what was on its way then never comes.
    pub(crate) fn has_ended(&self) -> bool {
        self.trace.is_some_and(|cell| cell.phase == CellPhase::Done)
    }

    /// Whether its judge has nothing to call: no tools of its own, none to read the transcript with.
    pub(crate) fn is_toolless(&self) -> bool {
        self.judge_spec().is_some_and(|judge| {
            judge.config.tools.is_empty() && judge.config.transcript != TranscriptMode::Tools
        }) && self.turns().iter().all(|turn| turn.calls.is_empty())
    }

    /// Whether its judge was asked besides the eval's own.
    pub(crate) fn is_second_opinion(&self) -> bool {
        let at = |slot: &RowSlot| std::ptr::eq(slot, self.slot);
        self.row.second_opinions.iter().any(at)
    }

    /// The turns so far.
    pub(crate) fn turns(&self) -> &'a [TurnState] {
        self.trace.map_or(&[], |cell| &cell.judge_trace)
    }

    /// What the run says of the cell's eval.
    pub(crate) fn eval_spec(&self) -> Option<&'a crate::event::EvalSpec> {
        let (_, key) = self.trace?.planned?;
        self.header?.evals.get(key.eval as usize)
    }

    /// The judge, as the run had it.
    pub(crate) fn judge_spec(&self) -> Option<&'a crate::event::JudgeSpec> {
        let (_, key) = self.trace?.planned?;
        self.header?.judges.get(key.judge? as usize)
    }
}

/// What is shown of the focused cell; `None` if no cell is focused.
pub(crate) fn resolve_shown_cell(app: &App) -> Option<ShownCell<'_>> {
    let session = app.session();
    let id = session.trace_panes.row?;
    let row = session.cells.row(id)?;
    let slot = row.slot(session.trace_panes.slot)?;
    let mut shown = ShownCell {
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
    let elsewhere = match locate_trace(session, id, session.trace_panes.slot) {
        TraceLocation::NeverRun => {
            shown.availability = TraceAvailability::NeverRun;
            return Some(shown);
        }
        TraceLocation::Memory(number, elsewhere) => {
            let (run_id, _) = find_slot_run(session, slot)?;
            let run = session.runs.find(run_id)?;
            let cell = run.state.cells.get(number.index())?;
            shown.header = run.state.header.as_deref();
            shown.trace = Some(cell);
            shown.result = cell.result.as_deref();
            shown.run = Some(run_id);
            shown.number = number;
            shown.dir = run.dir.as_deref();
            shown.deciding_eval = shown.eval_spec();
            shown.now = match &app.replay {
                Some(replay) => replay.player.recording_time(app.now),
                None => run.run_time(app.now),
            };
            elsewhere
        }
        TraceLocation::Recording(run, which) => Some((run, which)),
    };
    if let Some((run, which)) = elsewhere {
        apply_recorded_cell(&mut shown, &session.trace_panes.recorded, &run, &which);
    }
    if shown.deciding_eval.is_none() && slot.cached_from.is_none() {
        shown.deciding_eval = shown.eval_spec();
    }
    Some(shown)
}

/// Lays a recording's trace over what is known.
fn apply_recorded_cell<'a>(
    shown: &mut ShownCell<'a>,
    loaded: &'a RecordedCellState,
    run: &RunId,
    which: &CellRef,
) {
    match loaded {
        RecordedCellState::Loaded(asked, recorded) if asked == which && &recorded.run == run => {
            shown.header = Some(&recorded.header);
            shown.result = shown.result.or(recorded.state.result.as_deref());
            shown.trace = Some(&recorded.state);
            shown.run = Some(&recorded.run);
            shown.number = recorded.cell;
            shown.dir = Some(&recorded.dir);
        }
        RecordedCellState::Failed(r, w, why) if (r, w) == (run, which) => {
            shown.availability = TraceAvailability::Failed(why)
        }
        RecordedCellState::Loading(..) => shown.availability = TraceAvailability::Loading,
        // Not asked for: there is nowhere to read it from.
        _ if shown.trace.is_some() => {}
        _ => shown.availability = TraceAvailability::Loading,
    }
}

/// The shown step; `None` while there is none.
pub(crate) fn find_shown_step(trace: &TracePanes, turns: &[TurnState]) -> Option<TraceStep> {
    match trace.step {
        StepSelection::Position(at) => list_steps(turns).nth(at),
        StepSelection::Newest => None,
    }
    .or_else(|| list_steps(turns).last())
}

/// The shown turn.
pub(crate) fn find_shown_turn(trace: &TracePanes, turns: &[TurnState]) -> Option<usize> {
    match find_shown_step(trace, turns)? {
        TraceStep::Turn(turn) | TraceStep::Call(turn, _) => Some(turn),
    }
}

/// The shown call. Going with the judge it is the newest one that did something: after the verdict, the page it rests on.
pub(crate) fn find_shown_call(trace: &TracePanes, turns: &[TurnState]) -> Option<(usize, usize)> {
    if trace.step == StepSelection::Newest {
        let calls = || {
            turns.iter().enumerate().rev().flat_map(|(turn, state)| {
                let calls = state.calls.iter().enumerate().rev();
                calls.map(move |(at, call)| (turn, at, call))
            })
        };
        return calls()
            .find(|(_, _, call)| call.name != SUBMIT_VERDICT)
            .or_else(|| calls().next())
            .map(|(turn, at, _)| (turn, at));
    }
    match find_shown_step(trace, turns)? {
        TraceStep::Call(turn, call) => Some((turn, call)),
        TraceStep::Turn(turn) => turns
            .get(turn)
            .filter(|turn| !turn.calls.is_empty())
            .map(|_| (turn, 0)),
    }
}

/// The attempt whose call's arguments are coming, if it is the shown one.
pub(crate) fn find_streaming_call<'a>(
    trace: &TracePanes,
    turns: &'a [TurnState],
) -> Option<(usize, &'a AttemptState)> {
    let last = turns.len().checked_sub(1)?;
    let turn = turns.last()?;
    let attempt = turn.attempts.values().last()?;
    let comes = turn.finished.is_none() && turn.calls.is_empty() && !attempt.args.is_empty();
    (comes && find_shown_turn(trace, turns) == Some(last)).then_some((last, attempt))
}

/// The call a judge means with `fetch N`: the N-th answer that is no error, in the order the model got them.
pub(crate) fn find_fetch(turns: &[TurnState], number: usize) -> Option<(usize, usize)> {
    let mut count = 0;
    for (turn, state) in turns.iter().enumerate() {
        for (at, call) in state.calls.iter().enumerate() {
            if is_cited_as_fetch(call) {
                count += 1;
                if count == number {
                    return Some((turn, at));
                }
            }
        }
    }
    None
}

fn is_cited_as_fetch(call: &CallState) -> bool {
    call.name != SUBMIT_VERDICT
        && call
            .finished
            .as_ref()
            .is_some_and(|(answer, _, _)| !answer.is_error)
}

/// The number by which a judge cites a call's answer.
pub(crate) fn number_fetch(turns: &[TurnState], turn: usize, call: usize) -> Option<usize> {
    let asked = turns.get(turn)?.calls.get(call)?;
    is_cited_as_fetch(asked).then(|| {
        let before = turns[..turn].iter().flat_map(|t| &t.calls);
        1 + before
            .chain(&turns[turn].calls[..call])
            .filter(|c| is_cited_as_fetch(c))
            .count()
    })
}

/// Whether the eval is still the one that was judged.
pub(crate) fn is_same_eval(shown: &ShownCell<'_>, now: &Digest) -> bool {
    shown.eval_spec().is_none_or(|spec| spec.digest == *now)
}

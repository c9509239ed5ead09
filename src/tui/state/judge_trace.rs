//! The scroll state of the panes that show a judge trace, and the position in the trace: steps, turns, calls.
//!
//! Does not find the trace of a cell (see [`super::shown_cell`]) and does not read it: `update/focus.rs` orders that.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::cells::RowId;
use super::readable_request::{ReadableRequest, RequestKey};
use crate::event::{AttemptState, CallState, CellState, RunHeader, TurnState};
use crate::model::{CellIx, CellName, RunId, SUBMIT_VERDICT, TranscriptRef};
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
            .is_some_and(|finished| !finished.response.is_error)
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

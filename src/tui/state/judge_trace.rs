//! The scroll state of the panes that show a judge trace, and the position in the trace: steps, turns, calls.
//!
//! Does not find the trace of a cell (see [`super::shown_cell`]) and does not read it: `update/focus.rs` orders that.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::cells::{RowId, SlotId};
use super::readable_request::{ReadableRequest, RequestKey};
use crate::event::{AttemptState, CellState, RunHeader, TurnState};
pub(crate) use crate::event::{CallPosition, find_fetch, number_fetch};
use crate::model::{CellIx, CellName, Digest, RunId, SUBMIT_VERDICT, TranscriptRef};
use crate::tui::widget::flow::ScrollState;

/// A cell that was read from a recording.
#[derive(Debug, PartialEq)]
pub(crate) struct RecordedCell {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
    pub(crate) header: RunHeader,
    pub(crate) state: CellState,
    pub(crate) transcript: TranscriptRef,
    /// The notes of the run about the cell.
    pub(crate) notes: Vec<String>,
    pub(crate) dir: PathBuf,
}

/// Identifies a cell of a run. In another run the cell has another number, so a cached result is found by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CellRef {
    Ix(CellIx),
    Named(Box<NamedCell>),
}

/// A cell by its name now, and by its question if it had another name then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedCell {
    pub(crate) name: CellName,
    pub(crate) eval: Option<Digest>,
    /// The hash of the eval's digest at that time; the eval may have been renamed and edited since.
    pub(crate) eval_hash: Option<u64>,
    pub(crate) judge: Option<Digest>,
}

/// A cell in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedCellRef {
    pub(crate) run: RunId,
    pub(crate) cell: CellRef,
}

/// The state of the trace panes.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracePanes {
    /// The focused row.
    pub(crate) row: Option<RowId>,
    /// The slot of the row: a judge and repeat.
    pub(crate) slot: u16,
    /// The slot that the row showed when it got the focus.
    pub(crate) first_slot: u16,
    /// The recorded trace, for a cell whose run is not in memory.
    pub(crate) recorded: RecordedCellState,
    /// The selected step of the turn strip.
    pub(crate) step: StepSelection,
    /// The citation that was selected last.
    pub(crate) selected_citation: Option<usize>,
    /// A citation whose page is still being read. It is selected when the page arrives.
    pub(crate) awaited_citation: Option<usize>,
    /// The selected quote in a fetched text.
    pub(crate) selected_quote: Option<ResponseQuote>,
    /// The readable request of the shown turn.
    pub(crate) request: RequestState,
    /// True if the panes show raw texts.
    pub(crate) shows_raw: bool,
    /// The content at the last update. When it changes, the panes scroll to the top.
    pub(crate) last_shown: LastShown,
    pub(crate) prompt: ScrollState,
    pub(crate) call: ScrollState,
    pub(crate) fetched: ScrollState,
    pub(crate) verdict: ScrollState,
}

/// A quote in the response of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResponseQuote {
    /// The call.
    pub(crate) position: CallPosition,
    /// The bytes in the response's text.
    pub(crate) range: Range<usize>,
}

/// The content of the trace panes at the last update.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LastShown {
    pub(crate) cell: Option<SlotId>,
    /// The run of the trace; `None` if no trace is loaded.
    pub(crate) run: Option<RunId>,
    pub(crate) turn: Option<usize>,
    pub(crate) call: Option<LastShownCall>,
    pub(crate) ended: bool,
}

/// The call that the trace panes showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastShownCall {
    /// A call of this turn whose arguments were still being streamed. It had no number yet.
    Streaming { turn: usize },
    /// A call that the turn listed.
    Listed(CallPosition),
}

/// The loading state of a recorded cell.
#[derive(Debug, Clone, Default)]
pub(crate) enum RecordedCellState {
    /// Not needed.
    #[default]
    Unloaded,
    /// Being read.
    Loading(RecordedCellRef),
    /// Loaded.
    Loaded {
        /// The reference that was ordered.
        cell: CellRef,
        /// The cell.
        recorded: Arc<RecordedCell>,
    },
    /// Unreadable. It is not ordered again.
    Failed {
        /// The reference that was ordered.
        wanted: RecordedCellRef,
        /// The reason, as a sentence.
        why: String,
    },
}

impl RecordedCellState {
    /// Returns true if this is about the given cell, in any loading state.
    pub(crate) fn is_of(&self, wanted: &RecordedCellRef) -> bool {
        match self {
            Self::Unloaded => false,
            Self::Loading(known) | Self::Failed { wanted: known, .. } => known == wanted,
            Self::Loaded { cell, recorded } => recorded.run == wanted.run && *cell == wanted.cell,
        }
    }
}

/// The loading state of a readable request.
#[derive(Debug, Clone, Default)]
pub(crate) enum RequestState {
    #[default]
    Unloaded,
    Loading(RequestKey),
    Loaded(Arc<ReadableRequest>),
    Failed {
        key: RequestKey,
        why: String,
    },
}

impl RequestState {
    /// Returns the key of the request.
    pub(crate) fn key(&self) -> Option<&RequestKey> {
        match self {
            Self::Unloaded => None,
            Self::Loading(key) | Self::Failed { key, .. } => Some(key),
            Self::Loaded(request) => Some(&request.key),
        }
    }
}

/// The selected step of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StepSelection {
    /// The newest step, so that the view follows the judge.
    #[default]
    Newest,
    /// The step at this index of the strip.
    Position(usize),
}

/// A step of the strip: a turn, or a tool call of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StripStep {
    /// A turn, by index.
    Turn(usize),
    /// A tool call.
    Call(CallPosition),
}

/// Lists the steps of a trace in order.
pub(crate) fn list_steps(trace: &[TurnState]) -> impl Iterator<Item = StripStep> {
    trace.iter().enumerate().flat_map(|(turn, state)| {
        let calls = 0..state.calls.len();
        std::iter::once(StripStep::Turn(turn))
            .chain(calls.map(move |call| StripStep::Call(CallPosition { turn, call })))
    })
}

/// Returns the shown step; `None` if the trace has no steps.
pub(crate) fn find_shown_step(trace: &TracePanes, turns: &[TurnState]) -> Option<StripStep> {
    match trace.step {
        StepSelection::Position(at) => list_steps(turns).nth(at),
        StepSelection::Newest => None,
    }
    // The newest step is also shown if the selected one does not exist.
    .or_else(|| list_steps(turns).last())
}

/// Returns the shown turn.
pub(crate) fn find_shown_turn(trace: &TracePanes, turns: &[TurnState]) -> Option<usize> {
    match find_shown_step(trace, turns)? {
        StripStep::Turn(turn) | StripStep::Call(CallPosition { turn, .. }) => Some(turn),
    }
}

/// Returns the shown call. In follow mode it is the newest call except the verdict, so that the page behind the
/// verdict stays visible.
pub(crate) fn find_shown_call(trace: &TracePanes, turns: &[TurnState]) -> Option<CallPosition> {
    if trace.step == StepSelection::Newest {
        let calls = || {
            turns.iter().enumerate().rev().flat_map(|(turn, state)| {
                let calls = state.calls.iter().enumerate().rev();
                calls.map(move |(at, call)| (turn, at, call))
            })
        };
        // A judge ends with the verdict call, so it is shown only if there is no other call.
        return calls()
            .find(|(_, _, call)| call.name != SUBMIT_VERDICT)
            .or_else(|| calls().next())
            .map(|(turn, call, _)| CallPosition { turn, call });
    }
    match find_shown_step(trace, turns)? {
        StripStep::Call(position) => Some(position),
        // A turn shows its first call. A turn without calls shows the last call before it.
        StripStep::Turn(turn) => turns
            .get(turn)
            .filter(|turn| !turn.calls.is_empty())
            .map(|_| CallPosition { turn, call: 0 })
            .or_else(|| find_tool_call_before(turns, turn)),
    }
}

/// Returns the call whose response is shown. A call that submits the verdict has none, so the last tool call before it
/// is shown.
pub(crate) fn find_shown_response(trace: &TracePanes, turns: &[TurnState]) -> Option<CallPosition> {
    let shown = find_shown_call(trace, turns)?;
    let submits = turns
        .get(shown.turn)
        .and_then(|turn| turn.calls.get(shown.call))
        .is_some_and(|call| call.name == SUBMIT_VERDICT);
    if submits {
        find_tool_call_before(turns, shown.turn).or(Some(shown))
    } else {
        Some(shown)
    }
}

/// Returns the last tool call, not the verdict, of the turns before one.
fn find_tool_call_before(turns: &[TurnState], before: usize) -> Option<CallPosition> {
    let earlier = turns.iter().enumerate().take(before).rev();
    let mut calls = earlier.flat_map(|(turn, state)| {
        let calls = state.calls.iter().enumerate().rev();
        calls.map(move |(at, call)| (turn, at, call))
    });
    let found = calls.find(|(_, _, call)| call.name != SUBMIT_VERDICT);
    found.map(|(turn, call, _)| CallPosition { turn, call })
}

/// Returns the attempt whose call arguments are being streamed, if its turn is shown.
pub(crate) fn find_streaming_call<'a>(
    trace: &TracePanes,
    turns: &'a [TurnState],
) -> Option<(usize, &'a AttemptState)> {
    let last = turns.len().checked_sub(1)?;
    let turn = turns.last()?;
    let attempt = turn.attempts.values().last()?;
    // Once the reply is complete, its calls are listed and the stream is not needed.
    let is_streaming = turn.finished.is_none() && turn.calls.is_empty() && !attempt.args.is_empty();
    (is_streaming && find_shown_turn(trace, turns) == Some(last)).then_some((last, attempt))
}

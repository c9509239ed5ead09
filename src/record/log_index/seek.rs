//! The state at a position of an indexed log.
//!
//! A finished cell has no judge trace in this state; [`LogIndex::load_trace`] reads it. Everything else equals the fold
//! of all events before the position.

use super::{EventClass, LogIndex};
use crate::event::{CellPhase, LastEvent, RunEvent, RunState, RunStats};
use crate::model::CellIx;
use crate::record::{LogIntegrity, RecordError, RecordedRun};

/// The events that a fold needs for the state at a position.
#[derive(Debug)]
pub struct StateAt {
    /// The position: the number of events before it.
    pub position: usize,
    /// The number of events of [`LogIndex::outline`] to apply first.
    pub outline_len: usize,
    /// The trace events of the cells that judges work on, to apply after the outline.
    pub live_events: Vec<RunEvent>,
    /// The statistics, which replace those of the fold.
    pub stats: RunStats,
    /// The last event before the position.
    pub last: Option<LastEvent>,
}

impl StateAt {
    /// Completes a state that has the outline and the live events.
    pub fn complete(&self, state: &mut RunState) {
        state.stats = self.stats.clone();
        state.last = self.last;
    }
}

impl RecordedRun {
    /// Returns the state at the end of the log. The judge traces of a large log are absent, and the index loads them
    /// ([`LogIndex::load_trace`]).
    pub fn read_final_state(&self) -> Result<FinalState, RecordError> {
        if let Some(index) = self.open_index() {
            return Ok(FinalState {
                state: index.read_lean_state(index.len())?,
                integrity: index.integrity(),
                warnings: Vec::new(),
                index: Some(index),
            });
        }
        let mut events = self.events()?;
        let mut state = RunState::default();
        for event in &mut events {
            state.apply(&event?);
        }
        Ok(FinalState {
            state,
            integrity: events.integrity(),
            warnings: events.warnings(),
            index: None,
        })
    }

    /// Returns the state at the end of the log with the judge trace of one cell. Those of other cells may be absent.
    pub fn read_cell_state(&self, cell: CellIx) -> Result<RunState, RecordError> {
        self.read_final_state()?.into_cell_state(cell)
    }
}

/// The state at the end of a log.
#[derive(Debug, Default)]
pub struct FinalState {
    /// The state.
    pub state: RunState,
    /// The result of the log's checksums.
    pub integrity: LogIntegrity,
    /// A sentence for each line that could not be read or was changed.
    pub warnings: Vec<String>,
    /// The index of a large log, which has the traces that the state lacks.
    index: Option<LogIndex>,
}

impl FinalState {
    /// Adds the judge trace of a cell to the state, if it is absent.
    pub fn load_trace(&mut self, cell: CellIx) -> Result<(), RecordError> {
        match &self.index {
            Some(index) => index.load_trace(&mut self.state, cell),
            None => Ok(()),
        }
    }

    /// Returns the state with the judge trace of one cell.
    pub fn into_cell_state(mut self, cell: CellIx) -> Result<RunState, RecordError> {
        self.load_trace(cell)?;
        Ok(self.state)
    }
}

impl LogIndex {
    /// Reads what a fold needs for the state before the event at `position`.
    pub fn read_state_at(&self, position: usize) -> Result<StateAt, RecordError> {
        let position = position.min(self.len());
        let mut live_events = Vec::new();
        for span in &self.spans {
            if span.start >= position {
                break;
            }
            if span.end < position {
                continue;
            }
            let trace = self.read_where(span.start..position, |at| {
                self.cells[at] == span.cell.0 && self.has(at, EventClass::TRACE)
            })?;
            live_events.extend(trace);
        }
        Ok(StateAt {
            position,
            outline_len: self.count_outline(position),
            live_events,
            stats: self.read_stats(position)?,
            last: position.checked_sub(1).map(|last| LastEvent {
                // The numbers of an indexed log have no gaps.
                seq: last as u64,
                at: crate::model::Millis(self.times[last]),
            }),
        })
    }

    /// Returns the state before the event at `position`, without the judge traces of finished cells.
    pub fn read_lean_state(&self, position: usize) -> Result<RunState, RecordError> {
        let at = self.read_state_at(position)?;
        let mut state = RunState::default();
        for event in self.outline[..at.outline_len].iter().chain(&at.live_events) {
            state.apply_without_stats(event);
        }
        at.complete(&mut state);
        Ok(state)
    }

    /// Adds the judge trace of a finished cell to a state of [`LogIndex::read_lean_state`].
    pub fn load_trace(&self, state: &mut RunState, cell: CellIx) -> Result<(), RecordError> {
        let is_lean = state
            .cells
            .get(cell.index())
            .is_some_and(|known| known.phase == CellPhase::Done && known.judge_trace.is_empty());
        let span = self.spans.iter().find(|span| span.cell == cell);
        let Some(span) = span.filter(|_| is_lean) else {
            return Ok(());
        };
        let trace = self.read_where(span.start..span.end.min(self.len()), |at| {
            self.cells[at] == cell.0 && self.has(at, EventClass::TRACE)
        })?;
        let last = state.last;
        for event in &trace {
            // Statistics ignore the events of finished cells.
            state.apply(event);
        }
        state.last = last;
        state.cells[cell.index()].phase = CellPhase::Done;
        Ok(())
    }

    /// Computes the statistics from the last snapshot before the position and the events after it.
    fn read_stats(&self, position: usize) -> Result<RunStats, RecordError> {
        let mut stats = RunStats::default();
        let known = self
            .snapshots
            .partition_point(|placed| placed.position <= position);
        let snapshot = known.checked_sub(1).map(|last| &self.snapshots[last]);
        let from = snapshot.map_or(0, |placed| placed.position);
        for event in &self.outline[..self.count_outline(from)] {
            stats.apply(event);
        }
        if let Some(placed) = snapshot {
            stats.restore(&placed.stats, &self.durations);
        }
        let rest = self.read_where(from..position, |at| !self.has(at, EventClass::NO_STATS))?;
        for event in &rest {
            stats.apply(event);
        }
        Ok(stats)
    }
}

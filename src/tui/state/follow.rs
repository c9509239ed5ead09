//! The follow mode: the cursor follows the working judge until the user moves it.

use super::cells::CellsEntry;
use super::runs::RunTicket;
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, Millis};

/// A cell that a judge works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LiveCell {
    pub(super) ticket: RunTicket,
    pub(super) cell: CellIx,
}

/// The state of the follow mode. Of several working judges, it selects the cell whose eval is listed first.
#[derive(Debug, Default, Clone)]
pub(crate) struct FollowState {
    pub(crate) enabled: bool,
    /// The cells that judges work on, oldest first.
    pub(super) live_cells: Vec<LiveCell>,
    /// The cell that was selected last, and the time of its end.
    pub(super) current_cell: Option<LiveCell>,
    pub(super) current_ended_at: Option<Millis>,
    /// The selected entry at the last check. Another selection means that the user moved the cursor.
    pub(super) last_selected: Option<CellsEntry>,
    /// The newest run seen so far.
    pub(super) newest_run: Option<RunTicket>,
}

/// An upper bound for a broken log that starts cells and never ends them. No run has so many judges at once.
const MAX_LIVE_CELLS: usize = 1024;

impl FollowState {
    /// Updates the list of cells that judges work on.
    pub(crate) fn track_live_cells(&mut self, ticket: RunTicket, events: &[RunEvent]) {
        for event in events {
            match &event.kind {
                EventKind::CellStarted { cell, .. } => {
                    if self.live_cells.len() == MAX_LIVE_CELLS {
                        // The oldest cell is the most likely one without an end.
                        self.live_cells.remove(0);
                    }
                    self.live_cells.push(LiveCell {
                        ticket,
                        cell: *cell,
                    });
                }
                EventKind::CellFinished { cell, .. } => {
                    let ended = LiveCell {
                        ticket,
                        cell: *cell,
                    };
                    self.live_cells.retain(|live| *live != ended);
                }
                // A cancelled run leaves cells without an end, so they are all removed.
                EventKind::RunFinished(_) => self.live_cells.retain(|live| live.ticket != ticket),
                _ => {}
            }
        }
    }
}

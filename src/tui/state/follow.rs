//! Going with the judge: which cell is looked at while judges work and the user has not moved.

use super::cells::CellsEntry;
use super::runs::RunTicket;
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, Millis};

/// Going with the judge: a live judge cell is focused, of the eval that is listed first, until the user moves for
/// themselves.
#[derive(Debug, Default, Clone)]
pub(crate) struct FollowState {
    pub(crate) enabled: bool,
    /// Judge cells that are at work, oldest first.
    pub(super) live_cells: Vec<(RunTicket, CellIx)>,
    /// The cell gone to last, and since when it is over.
    pub(super) current_cell: Option<(RunTicket, CellIx)>,
    pub(super) current_ended_at: Option<Millis>,
    /// What was selected when it was last looked at: something else now means that the user moved.
    pub(super) last_selected: Option<CellsEntry>,
    /// The newest run that was noticed.
    pub(super) newest_run: Option<RunTicket>,
}

/// More judges at once than any run has: a log that starts cells and never ends them must not grow this list.
const MAX_LIVE_CELLS: usize = 1024;

impl FollowState {
    /// Keeps in mind who is at work; goes nowhere.
    pub(crate) fn track_live_cells(&mut self, ticket: RunTicket, events: &[RunEvent]) {
        for event in events {
            match &event.kind {
                EventKind::CellStarted { cell, .. } => {
                    if self.live_cells.len() == MAX_LIVE_CELLS {
                        self.live_cells.remove(0);
                    }
                    self.live_cells.push((ticket, *cell));
                }
                EventKind::CellFinished { cell, .. } => {
                    self.live_cells.retain(|live| *live != (ticket, *cell));
                }
                EventKind::RunFinished(_) => self.live_cells.retain(|(of, _)| *of != ticket),
                _ => {}
            }
        }
    }
}

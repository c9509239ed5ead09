//! A session: the cells, their runs, and the focused trace and transcript. The live workspace has one, and each
//! replay has its own.

use std::collections::HashMap;

use super::cells::{CellsEntry, CellsState, RunIndexMap, SlotId};
use super::document::TranscriptPane;
use super::follow::{FollowState, LiveCell};
use super::judge_trace::{StepSelection, TracePanes};
use super::runs::{RunTicket, TrackedRuns};
use super::trace_screen::TraceScreen;
use crate::event::RunEvent;
use crate::model::CellName;
use crate::model::Millis;
use crate::tui::history_view::{Shared, StateCell};

/// The time that an ended cell stays selected, so that the user can read its verdict.
const ENDED_CELL_DISPLAY_TIME: Millis = Millis(1500);

/// A session: see the module.
#[derive(Debug, Default)]
pub(crate) struct SessionView {
    pub(crate) cells: CellsState,
    pub(crate) runs: TrackedRuns,
    pub(crate) trace_panes: TracePanes,
    pub(crate) trace_screen: TraceScreen,
    pub(crate) transcript_pane: TranscriptPane,
    /// The indexes of the outline's header, mapped to those of the cells.
    pub(crate) outline_indices: RunIndexMap,
    /// The recordings of the cells of each decision, for the state of a revision.
    pub(crate) state_cells: Option<Shared<HashMap<CellName, Vec<StateCell>>>>,
    /// The state of the follow mode.
    pub(crate) follow: FollowState,
}

impl SessionView {
    /// Follows the judges of a run. Follow mode starts with a run that the user started, not with a run of a save: a
    /// user who edits looks at flips.
    pub(crate) fn follow_events(&mut self, now: Millis, ticket: RunTicket, events: &[RunEvent]) {
        // Tickets increase, so a larger one is a newer run.
        if self.follow.newest_run < Some(ticket) {
            self.follow.newest_run = Some(ticket);
            let user_started = self
                .runs
                .by_ticket
                .get(&ticket)
                .is_some_and(|run| run.save_number.is_none());
            // A user who chose a cell wants to see that one.
            if user_started && !self.cells.is_cursor_chosen() {
                self.start_following();
            }
        }
        // Tracked also while follow mode is off: it may be switched on later.
        self.follow.track_live_cells(ticket, events);
        if self.check_following() {
            self.focus_live_cell(now);
        }
    }

    /// Starts the follow mode.
    pub(crate) fn start_following(&mut self) {
        self.cells.release_cursor();
        self.follow.enabled = true;
        self.follow.current_ended_at = None;
        self.follow.last_selected = self.cells.list.selected;
    }

    /// Selects a decision and ends the follow mode.
    pub(crate) fn focus_decision(&mut self, entry: CellsEntry, slot: u16) {
        self.follow.enabled = false;
        if let CellsEntry::Row(row) = entry {
            // Opens the row's group and clears a filter that hides it.
            self.cells.select_row(row);
        }
        self.focus_entry(entry, slot);
    }

    /// Returns true if the follow mode is on. Ends it if the user moved the cursor.
    fn check_following(&mut self) -> bool {
        // Before the first jump, the cursor moves by itself to the first problem, which is not a move of the user.
        let chosen = self.cells.is_cursor_chosen() || self.follow.current_cell.is_some();
        let moved = self.follow.last_selected.is_some()
            && self.follow.last_selected != self.cells.list.selected;
        let moved = moved && chosen;
        self.follow.enabled &= !moved;
        self.follow.enabled
    }

    fn focus_live_cell(&mut self, now: Millis) {
        let mut stays = false;
        // The current cell stays until its judge ends and a moment longer.
        if let Some(at) = self.follow.current_cell {
            if self.follow.live_cells.contains(&at) {
                self.follow.current_ended_at = None;
                stays = true;
            } else {
                let ended_at = *self.follow.current_ended_at.get_or_insert(now);
                stays = now.since(ended_at) < ENDED_CELL_DISPLAY_TIME;
            }
        }
        let eval_of = |at: LiveCell| {
            let SlotId { row, slot } = self.find_cell_slot(at)?;
            let eval = self.cells.row(row).map_or(u32::MAX, |row| row.eval);
            Some((eval, row, slot))
        };
        // Jumps while the current cell is still shown go only upwards in the list. That ends at the first eval, so
        // the view can't jump forever.
        let below = self
            .follow
            .current_cell
            .filter(|_| stays)
            .map(|at| eval_of(at).map_or(0, |at| at.0));
        // The newest cells come first.
        let candidates = self.follow.live_cells.iter().rev().filter_map(|at| {
            let (eval, row, slot) = eval_of(*at)?;
            below
                .is_none_or(|below| eval < below)
                .then_some((eval, *at, row, slot))
        });
        if let Some((_, at, row, slot)) = candidates.min_by_key(|(eval, ..)| *eval) {
            self.follow.current_cell = Some(at);
            self.follow.current_ended_at = None;
            self.focus_entry(CellsEntry::Row(row), slot);
        }
    }

    fn find_cell_slot(&self, live: LiveCell) -> Option<SlotId> {
        *self
            .runs
            .by_ticket
            .get(&live.ticket)?
            .cell_slots
            .get(live.cell.index())?
    }

    fn focus_entry(&mut self, entry: CellsEntry, slot: u16) {
        self.cells.select_watched(entry);
        self.follow.last_selected = Some(entry);
        // A selected row shows its first cell by default, so only other cells are set here.
        if let (CellsEntry::Row(row), 1..) = (entry, slot) {
            self.trace_panes.row = Some(row);
            self.trace_panes.slot = slot;
            self.trace_panes.step = StepSelection::Newest;
            self.trace_screen = self.trace_screen.for_another_cell();
            self.trace_panes.selected_citation = None;
            self.transcript_pane.selected_quote = None;
        }
    }

    /// Takes over the view of another session of the same recording: selection, order, filter, scroll positions.
    pub(crate) fn copy_view_from(&mut self, old: &mut Self) {
        self.cells.restore_view_from(&old.cells);
        self.trace_panes = std::mem::take(&mut old.trace_panes);
        self.trace_screen = std::mem::take(&mut old.trace_screen);
        self.transcript_pane = std::mem::take(&mut old.transcript_pane);
        // The old session's live cells belong to another position of the recording.
        let live = std::mem::take(&mut self.follow.live_cells);
        self.follow = FollowState {
            live_cells: live,
            ..old.follow.clone()
        };
    }
}

#[cfg(test)]
mod tests;

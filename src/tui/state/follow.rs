//! Going with the judge: which cell is looked at while judges work and the user has not moved.

use super::cells::{CellsEntry, SlotId};
use super::judge_trace::StepSelection;
use super::runs::RunTicket;
use super::session_view::SessionView;
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, Millis};

/// Going with the judge: a live judge cell is focused, of the eval that is listed first, until the user moves for
/// themselves.
#[derive(Debug, Default, Clone)]
pub(crate) struct FollowState {
    pub(crate) enabled: bool,
    /// Judge cells that are at work, oldest first.
    live_cells: Vec<(RunTicket, CellIx)>,
    /// The cell gone to last, and since when it is over.
    current_cell: Option<(RunTicket, CellIx)>,
    current_ended_at: Option<Millis>,
    /// What was selected when it was last looked at: something else now means that the user moved.
    last_selected: Option<CellsEntry>,
    /// The newest run that was noticed.
    newest_run: Option<RunTicket>,
}

/// How long a cell that ended stays in view before the next one takes its place: its verdict is what one waited for.
const ENDED_CELL_DISPLAY_TIME: Millis = Millis(1500);
/// More judges at once than any run has: a log that starts cells and never ends them must not grow this list.
const MAX_LIVE_CELLS: usize = 1024;

impl SessionView {
    /// Goes with the judges of a run that told these events. A run the user started is gone with from its beginning; one
    /// that a save caused is not: whoever edits looks at flips.
    pub(crate) fn follow_events(&mut self, now: Millis, ticket: RunTicket, events: &[RunEvent]) {
        if self.follow.newest_run < Some(ticket) {
            self.follow.newest_run = Some(ticket);
            let own = self
                .runs
                .by_ticket
                .get(&ticket)
                .is_some_and(|run| run.save_number.is_none());
            // Who chose a cell wants to see that one.
            if own && !self.cells.is_cursor_chosen() {
                self.start_following();
            }
        }
        self.follow.track_live_cells(ticket, events);
        if self.check_following() {
            self.focus_live_cell(now);
        }
    }

    /// From now on live judge cells are focused.
    pub(crate) fn start_following(&mut self) {
        self.cells.release_cursor();
        self.follow.enabled = true;
        self.follow.current_ended_at = None;
        self.follow.last_selected = self.cells.list.selected;
    }

    /// Focuses a decision; that is a movement of its own, and ends going along.
    pub(crate) fn focus_decision(&mut self, entry: CellsEntry, slot: u16) {
        self.follow.enabled = false;
        if let CellsEntry::Row(row) = entry {
            // Opens its group; a filter that hides it is taken away.
            self.cells.select_row(row);
        }
        self.focus_entry(entry, slot);
    }

    /// Whether it goes with the judge: it did, and the user has not moved since.
    fn check_following(&mut self) -> bool {
        // Before anybody was gone to, the cursor moves by itself: to what fails first.
        let chosen = self.cells.is_cursor_chosen() || self.follow.current_cell.is_some();
        let moved = self.follow.last_selected.is_some()
            && self.follow.last_selected != self.cells.list.selected;
        let moved = moved && chosen;
        self.follow.enabled &= !moved;
        self.follow.enabled
    }

    fn focus_live_cell(&mut self, now: Millis) {
        let mut stays = false;
        if let Some(at) = self.follow.current_cell {
            if self.follow.live_cells.contains(&at) {
                self.follow.current_ended_at = None;
                stays = true;
            } else {
                let over = *self.follow.current_ended_at.get_or_insert(now);
                stays = now.since(over) < ENDED_CELL_DISPLAY_TIME;
            }
        }
        let eval_of = |at: (RunTicket, CellIx)| {
            let (row, slot) = self.find_cell_slot(at)?;
            let eval = self.cells.row(row).map_or(u32::MAX, |row| row.eval);
            Some((eval, row, slot))
        };
        // Upwards in the list one may always be led: that ends, and at what was listed first.
        let below = self
            .follow
            .current_cell
            .filter(|_| stays)
            .map(|at| eval_of(at).map_or(0, |at| at.0));
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

    fn find_cell_slot(&self, (ticket, cell): (RunTicket, CellIx)) -> Option<SlotId> {
        *self
            .runs
            .by_ticket
            .get(&ticket)?
            .cell_slots
            .get(cell.index())?
    }

    fn focus_entry(&mut self, entry: CellsEntry, slot: u16) {
        self.cells.select_watched(entry);
        self.follow.last_selected = Some(entry);
        // The first of a row's cells is what a selected row shows by itself.
        if let (CellsEntry::Row(row), 1..) = (entry, slot) {
            self.trace_panes.row = Some(row);
            self.trace_panes.slot = slot;
            self.trace_panes.step = StepSelection::Newest;
            self.trace_panes.selected_citation = None;
            self.transcript_pane.selected_quote = None;
        }
    }

    /// Takes over what the user chose on another desk of the same recording: selection, order, filter, places in texts.
    pub(crate) fn copy_view_from(&mut self, old: &mut Self) {
        self.cells.restore_view_from(&old.cells);
        self.trace_panes = std::mem::take(&mut old.trace_panes);
        self.transcript_pane = std::mem::take(&mut old.transcript_pane);
        let live = std::mem::take(&mut self.follow.live_cells);
        self.follow = FollowState {
            live_cells: live,
            ..old.follow.clone()
        };
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CellResult, Outcome};
    use crate::tui::state::cells::RowId;
    use crate::tui::state::runs::TrackedRun;

    fn row(n: u32) -> CellsEntry {
        CellsEntry::Row(RowId(n))
    }

    /// A desk with one run whose cell `n` stands in row `n`.
    fn session() -> (SessionView, RunTicket) {
        let mut session = SessionView::default();
        let places = (0..4).map(|n| Some((RowId(n), 0))).collect();
        let run = TrackedRun {
            cell_slots: places,
            ..TrackedRun::default()
        };
        session.runs.by_ticket.insert(RunTicket(1), run);
        (session, RunTicket(1))
    }

    fn event(kind: EventKind) -> RunEvent {
        RunEvent {
            seq: 0,
            at: Millis(0),
            kind,
        }
    }

    fn started(n: u32) -> RunEvent {
        event(EventKind::CellStarted {
            cell: CellIx(n),
            key: None,
        })
    }

    fn ended(n: u32) -> RunEvent {
        event(EventKind::CellFinished {
            cell: CellIx(n),
            result: Box::new(CellResult::new(Outcome::Pass, "")),
        })
    }

    #[test]
    fn the_newest_live_cell_is_shown_and_its_verdict_for_a_moment() {
        let (mut session, run) = session();
        session.follow_events(Millis(0), run, &[started(0), started(1)]);
        assert_eq!(session.cells.list.selected, Some(row(1)));
        session.follow_events(Millis(10), run, &[started(2)]);
        assert_eq!(session.cells.list.selected, Some(row(1)), "it still works");
        session.follow_events(Millis(20), run, &[ended(1)]);
        session.follow_events(Millis(1000), run, &[]);
        assert_eq!(
            session.cells.list.selected,
            Some(row(1)),
            "one reads its end"
        );
        session.follow_events(Millis(1520), run, &[]);
        assert_eq!(session.cells.list.selected, Some(row(2)));
    }

    #[test]
    fn an_own_movement_ends_it_until_it_is_asked_for_again() {
        let (mut session, run) = session();
        session.follow_events(Millis(0), run, &[started(0)]);
        session.cells.list.selected = Some(row(3));
        session.follow_events(Millis(5), run, &[ended(0), started(1)]);
        session.follow_events(Millis(9000), run, &[]);
        assert_eq!(session.cells.list.selected, Some(row(3)));
        session.start_following();
        session.follow_events(Millis(9001), run, &[]);
        session.follow_events(Millis(20_000), run, &[]);
        assert_eq!(session.cells.list.selected, Some(row(1)));
    }

    #[test]
    fn who_chose_a_cell_stays_there_when_everything_is_run() {
        let (mut session, run) = session();
        crate::tui::state::cells::tests::outline(&mut session.cells, &["a", "b"], &["x"], "v1");
        session.cells.move_cursor_by(1, 10);
        let chosen = session.cells.list.selected;
        session.follow_events(Millis(0), run, &[started(0)]);
        session.follow_events(Millis(9000), run, &[ended(0), started(1)]);
        assert_eq!(session.cells.list.selected, chosen);
        assert!(!session.follow.enabled);
    }

    #[test]
    fn a_run_that_a_save_caused_takes_nobody_along() {
        let (mut session, run) = session();
        session.runs.by_ticket[&run].save_number = Some(1);
        session.cells.list.selected = Some(row(3));
        session.follow_events(Millis(0), run, &[started(0)]);
        assert_eq!(session.cells.list.selected, Some(row(3)));
    }
}

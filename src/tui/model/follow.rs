//! Going with the judge: which cell is looked at while judges work and the user has not moved.

use super::cells::{Entry, SlotAt};
use super::desk::Desk;
use super::runs::Ticket;
use super::trace::StepAt;
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, Millis};

/// Going with the judge: a live judge cell is focused, of the eval that is listed first, until the user moves for
/// themselves.
#[derive(Debug, Default, Clone)]
pub(crate) struct Follow {
    pub(crate) armed: bool,
    /// Judge cells that are at work, oldest first.
    live: Vec<(Ticket, CellIx)>,
    /// The cell gone to last, and since when it is over.
    at: Option<(Ticket, CellIx)>,
    over: Option<Millis>,
    /// What was selected when it was last looked at: something else now means that the user moved.
    put: Option<Entry>,
    /// The newest run that was noticed.
    known: Option<Ticket>,
}

/// How long a cell that ended stays in view before the next one takes its place: its verdict is what one waited for.
const LINGER: Millis = Millis(1500);
/// More judges at once than any run has: a log that starts cells and never ends them must not grow this list.
const MOST_LIVE: usize = 1024;

impl Desk {
    /// Goes with the judges of a run that told these events. A run the user started is gone with from its beginning; one
    /// that a save caused is not: whoever edits looks at flips.
    pub(crate) fn follow(&mut self, now: Millis, ticket: Ticket, events: &[RunEvent]) {
        if self.follow.known < Some(ticket) {
            self.follow.known = Some(ticket);
            let own = self
                .runs
                .map
                .get(&ticket)
                .is_some_and(|run| run.save.is_none());
            // Who chose a cell wants to see that one.
            if own && !self.cells.is_touched() {
                self.go_along();
            }
        }
        self.follow.note(ticket, events);
        if self.going_along() {
            self.go_to_one(now);
        }
    }

    /// From now on live judge cells are focused.
    pub(crate) fn go_along(&mut self) {
        self.cells.release();
        self.follow.armed = true;
        self.follow.over = None;
        self.follow.put = self.cells.list.selected;
    }

    /// Focuses a decision; that is a movement of its own, and ends going along.
    pub(crate) fn look_at(&mut self, entry: Entry, slot: u16) {
        self.follow.armed = false;
        if let Entry::Row(row) = entry {
            // Opens its group; a filter that hides it is taken away.
            self.cells.select(row);
        }
        self.focus(entry, slot);
    }

    /// Whether it goes with the judge: it did, and the user has not moved since.
    fn going_along(&mut self) -> bool {
        // Before anybody was gone to, the cursor moves by itself: to what fails first.
        let chosen = self.cells.is_touched() || self.follow.at.is_some();
        let moved = self.follow.put.is_some() && self.follow.put != self.cells.list.selected;
        let moved = moved && chosen;
        self.follow.armed &= !moved;
        self.follow.armed
    }

    fn go_to_one(&mut self, now: Millis) {
        let mut stays = false;
        if let Some(at) = self.follow.at {
            if self.follow.live.contains(&at) {
                self.follow.over = None;
                stays = true;
            } else {
                let over = *self.follow.over.get_or_insert(now);
                stays = now.since(over) < LINGER;
            }
        }
        let eval_of = |at: (Ticket, CellIx)| {
            let (row, slot) = self.place_of(at)?;
            let eval = self.cells.row(row).map_or(u32::MAX, |row| row.eval);
            Some((eval, row, slot))
        };
        // Upwards in the list one may always be led: that ends, and at what was listed first.
        let below = self
            .follow
            .at
            .filter(|_| stays)
            .map(|at| eval_of(at).map_or(0, |at| at.0));
        let candidates = self.follow.live.iter().rev().filter_map(|at| {
            let (eval, row, slot) = eval_of(*at)?;
            below
                .is_none_or(|below| eval < below)
                .then_some((eval, *at, row, slot))
        });
        if let Some((_, at, row, slot)) = candidates.min_by_key(|(eval, ..)| *eval) {
            self.follow.at = Some(at);
            self.follow.over = None;
            self.focus(Entry::Row(row), slot);
        }
    }

    fn place_of(&self, (ticket, cell): (Ticket, CellIx)) -> Option<SlotAt> {
        *self.runs.map.get(&ticket)?.places.get(cell.index())?
    }

    fn focus(&mut self, entry: Entry, slot: u16) {
        self.cells.watch(entry);
        self.follow.put = Some(entry);
        // The first of a row's cells is what a selected row shows by itself.
        if let (Entry::Row(row), 1..) = (entry, slot) {
            self.trace.row = Some(row);
            self.trace.slot = slot;
            self.trace.step = StepAt::Newest;
            self.trace.citation = None;
            self.document.quoted = None;
        }
    }

    /// Takes over what the user chose on another desk of the same recording: selection, order, filter, places in texts.
    pub(crate) fn take_over(&mut self, old: &mut Self) {
        self.cells.as_before(&old.cells);
        self.trace = std::mem::take(&mut old.trace);
        self.document = std::mem::take(&mut old.document);
        let live = std::mem::take(&mut self.follow.live);
        self.follow = Follow {
            live,
            ..old.follow.clone()
        };
    }
}

impl Follow {
    /// Keeps in mind who is at work; goes nowhere.
    pub(crate) fn note(&mut self, ticket: Ticket, events: &[RunEvent]) {
        for event in events {
            match &event.kind {
                EventKind::CellStarted { cell, .. } => {
                    if self.live.len() == MOST_LIVE {
                        self.live.remove(0);
                    }
                    self.live.push((ticket, *cell));
                }
                EventKind::CellFinished { cell, .. } => {
                    self.live.retain(|live| *live != (ticket, *cell));
                }
                EventKind::RunFinished(_) => self.live.retain(|(of, _)| *of != ticket),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CellResult, Outcome};
    use crate::tui::model::cells::RowId;
    use crate::tui::model::runs::Run;

    fn row(n: u32) -> Entry {
        Entry::Row(RowId(n))
    }

    /// A desk with one run whose cell `n` stands in row `n`.
    fn desk() -> (Desk, Ticket) {
        let mut desk = Desk::default();
        let places = (0..4).map(|n| Some((RowId(n), 0))).collect();
        let run = Run {
            places,
            ..Run::default()
        };
        desk.runs.map.insert(Ticket(1), run);
        (desk, Ticket(1))
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
        let (mut desk, run) = desk();
        desk.follow(Millis(0), run, &[started(0), started(1)]);
        assert_eq!(desk.cells.list.selected, Some(row(1)));
        desk.follow(Millis(10), run, &[started(2)]);
        assert_eq!(desk.cells.list.selected, Some(row(1)), "it still works");
        desk.follow(Millis(20), run, &[ended(1)]);
        desk.follow(Millis(1000), run, &[]);
        assert_eq!(desk.cells.list.selected, Some(row(1)), "one reads its end");
        desk.follow(Millis(1520), run, &[]);
        assert_eq!(desk.cells.list.selected, Some(row(2)));
    }

    #[test]
    fn an_own_movement_ends_it_until_it_is_asked_for_again() {
        let (mut desk, run) = desk();
        desk.follow(Millis(0), run, &[started(0)]);
        desk.cells.list.selected = Some(row(3));
        desk.follow(Millis(5), run, &[ended(0), started(1)]);
        desk.follow(Millis(9000), run, &[]);
        assert_eq!(desk.cells.list.selected, Some(row(3)));
        desk.go_along();
        desk.follow(Millis(9001), run, &[]);
        desk.follow(Millis(20_000), run, &[]);
        assert_eq!(desk.cells.list.selected, Some(row(1)));
    }

    #[test]
    fn who_chose_a_cell_stays_there_when_everything_is_run() {
        let (mut desk, run) = desk();
        crate::tui::model::cells::tests::outline(&mut desk.cells, &["a", "b"], &["x"], "v1");
        desk.cells.move_by(1, 10);
        let chosen = desk.cells.list.selected;
        desk.follow(Millis(0), run, &[started(0)]);
        desk.follow(Millis(9000), run, &[ended(0), started(1)]);
        assert_eq!(desk.cells.list.selected, chosen);
        assert!(!desk.follow.armed);
    }

    #[test]
    fn a_run_that_a_save_caused_takes_nobody_along() {
        let (mut desk, run) = desk();
        desk.runs.map[&run].save = Some(1);
        desk.cells.list.selected = Some(row(3));
        desk.follow(Millis(0), run, &[started(0)]);
        assert_eq!(desk.cells.list.selected, Some(row(3)));
    }
}

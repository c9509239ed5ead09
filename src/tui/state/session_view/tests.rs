use std::sync::Arc;

use super::*;
use crate::event::EventKind;
use crate::model::{CellIx, CellResult, Outcome};
use crate::tui::state::cells::{RowId, SlotId};
use crate::tui::state::runs::TrackedRun;

fn row(n: u32) -> CellsEntry {
    CellsEntry::Row(RowId(n))
}

/// Returns a session with one run whose cell `n` belongs to row `n`.
fn session() -> (SessionView, RunTicket) {
    let mut session = SessionView::default();
    let places = (0..4)
        .map(|n| {
            Some(SlotId {
                row: RowId(n),
                slot: 0,
            })
        })
        .collect();
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
        result: Arc::new(CellResult::new(Outcome::Pass, "")),
    })
}

#[test]
fn follow_mode_shows_newest_live_cell_then_verdict() {
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
fn user_movement_ends_follow_mode_until_restarted() {
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
fn chosen_cell_stays_selected_during_full_run() {
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
fn save_run_does_not_start_follow_mode() {
    let (mut session, run) = session();
    session.runs.by_ticket[&run].save_number = Some(1);
    session.cells.list.selected = Some(row(3));
    session.follow_events(Millis(0), run, &[started(0)]);
    assert_eq!(session.cells.list.selected, Some(row(3)));
}

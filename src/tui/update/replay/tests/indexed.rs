//! The replay of an indexed log.

use super::*;
use crate::record::LogIndex;
use crate::tui::state::replay::ReplayRequest;

/// Records the events in a folder, and returns the index of the log.
fn index_of(dir: &std::path::Path, events: &[RunEvent]) -> LogIndex {
    let lines: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_string(event).expect("serialises") + "\n")
        .collect();
    std::fs::write(dir.join("events.jsonl"), lines.concat()).expect("written");
    let run = crate::record::RecordedRun {
        id: RunId("x-k3f9".to_owned()),
        dir: dir.to_owned(),
        key: None,
    };
    run.open_index_above(0).expect("a regular log")
}

/// Lets the replay reach the position of its player, and answers its reads.
fn settle(app: &mut App) {
    let mut effects = handle_time_passed(app);
    while replay(app).is_seeking() {
        assert!(effects.len() <= 1, "one read at a time: {effects:?}");
        effects = match effects.pop() {
            Some(Effect::ReadReplayPart {
                ticket,
                index,
                request,
            }) => {
                assert_eq!(
                    replay(app).next_wake(Millis(0)),
                    None,
                    "it waits for the read"
                );
                let part = match request {
                    ReplayRequest::State(position) => {
                        let state = index.read_state_at(position).expect("a state");
                        ReplayPart::State(state.into())
                    }
                    ReplayRequest::Events(positions) => {
                        ReplayPart::Events(crate::tui::state::replay::EventWindow {
                            first: positions.start,
                            events: index.read_events(positions).expect("events").into(),
                        })
                    }
                };
                handle_part_read(app, ticket, Ok(part))
            }
            None => handle_time_passed(app),
            other => panic!("only reads: {other:?}"),
        };
    }
}

#[test]
fn replay_of_an_indexed_log_equals_that_of_the_events() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut kinds = recorded_facts();
    if let EventKind::RunStarted(header) = &mut kinds[0] {
        // A log of this format has no checksums.
        header.format = crate::event::LogFormat { major: 1, minor: 3 };
    }
    let events = numbered(kinds);
    let index = Arc::new(index_of(dir.path(), &events));
    let open = |log: RecordedLog| {
        let mut app = model(OpenedItem::Recording);
        let run = RunId("x-k3f9".to_owned());
        app.replay_start = ReplayStart::from_speed(None);
        let effects = handle_replay_read(&mut app, run, "/r".into(), Ok(log), Vec::new(), OWN);
        (app, effects)
    };
    let (mut all, _) = open(events.into());
    let (mut indexed, effects) = open(RecordedLog::Indexed(Arc::clone(&index)));
    let reads = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::ReadReplayPart { .. }));
    assert_eq!(reads.count(), 1, "the state at the end is read");
    // The first read was ordered on opening.
    replay_mut(&mut indexed).is_reading = false;
    let moves = [0, 13, 9, 3, 6, 12, 5, 7, 8, 1, 10];
    for position in moves {
        for app in [&mut all, &mut indexed] {
            let _told = replay_mut(app).player.seek(position);
            settle(app);
        }
        let run = |app: &App| {
            let run = replay(app).session.runs.by_ticket.values().next();
            let run = run.expect("the replay's run");
            let counts = (run.finished_cells, run.decided_count, run.judged);
            (
                run.state.clone(),
                counts,
                run.live_traces(),
                run.cell_slots.clone(),
            )
        };
        let (expected, mut found) = (run(&all), run(&indexed));
        for cell in 0..6 {
            index
                .load_trace(&mut found.0, CellIx(cell))
                .expect("a trace");
        }
        assert_eq!(found, expected, "at {position}");
    }
}

#[test]
fn unreadable_part_of_an_indexed_log_keeps_the_position() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut kinds = recorded_facts();
    if let EventKind::RunStarted(header) = &mut kinds[0] {
        header.format = crate::event::LogFormat { major: 1, minor: 3 };
    }
    let index = Arc::new(index_of(dir.path(), &numbered(kinds)));
    let mut app = model(OpenedItem::Recording);
    let run = RunId("x-k3f9".to_owned());
    let log = Ok(RecordedLog::Indexed(index));
    app.replay_start = ReplayStart::from_speed(None);
    handle_replay_read(&mut app, run, "/r".into(), log, Vec::new(), OWN);
    // The first read was ordered on opening.
    replay_mut(&mut app).is_reading = false;
    settle(&mut app);
    let _told = replay_mut(&mut app).player.seek(9);
    let ticket = replay(&app).ticket;
    handle_part_read(&mut app, ticket, Err("the disk is gone".into()));
    let replay = replay(&app);
    assert!(!replay.is_seeking());
    let notice = app.notices.newest.as_ref().expect("a notice");
    assert_eq!(
        notice.text,
        "this part of the recording cannot be read: the disk is gone"
    );
}

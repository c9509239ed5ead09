//! The laws of events that need a recorder and a player.

use proptest::prelude::*;

use super::samples::record;
use crate::clock::{Clock as _, FakeClock};
use crate::event::laws::{kind, numbered, run};
use crate::event::{EventKind, RunEvent, RunState};
use crate::model::Millis;
use crate::record::{
    LogIntegrity, LogOrigin, MAX_EVENT_WAIT, PlaybackSpeed, Player, SeekResult, StepUnit,
    play_events,
};

const ID: &str = "20260101T000000Z-kvqa";

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(work)
}

/// Plays events on a clock that moves whenever the player waits. Returns the played events and the duration.
fn played(events: &[RunEvent], speed: f64) -> (Vec<RunEvent>, Millis) {
    let clock = FakeClock::new();
    let mut out = Vec::new();
    block_on(async {
        let mut playing =
            std::pin::pin!(play_events(events, speed, &clock, |event| out.push(event.clone())));
        loop {
            let once = std::future::poll_fn(|cx| std::task::Poll::Ready(playing.as_mut().poll(cx)));
            if once.await.is_ready() {
                break;
            }
            let wake = clock.next_wake().expect("a player that waits sleeps");
            clock.advance(wake - clock.now());
        }
    });
    (out, clock.now())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_read_folds_as_what_was_shown_live(kinds in proptest::collection::vec(kind(), 0..30), judged in run()) {
        let runs = tempfile::tempdir().expect("a folder");
        // A run has one header and one end, so these are excluded. Any other fact may occur anywhere.
        let kinds: Vec<EventKind> = kinds.into_iter().chain(judged).collect();
        let (run, live) = block_on(record(runs.path(), ID, kinds.clone()));
        let log = run.read_log().expect("a log");
        prop_assert_eq!(&log.warnings, &Vec::<String>::new());
        prop_assert_eq!(log.integrity, LogIntegrity { origin: LogOrigin::Own, damaged: 0, altered: 0 });
        prop_assert_eq!(&log.events, &live);
        prop_assert_eq!(live.len(), kinds.len() + 1);
        prop_assert!(live.iter().skip(1).map(|e| &e.kind).eq(&kinds));
        prop_assert_eq!(run.read_state().expect("folds"), RunState::fold(&live));
    }

    #[test]
    fn a_replay_at_any_speed_ends_in_the_same_state(kinds in run(), speed in prop_oneof![Just(0.0), Just(f64::INFINITY), Just(-1.0), 0.01..100.0_f64]) {
        let events = numbered(kinds);
        let (out, took) = played(&events, speed);
        prop_assert_eq!(&out, &events);
        prop_assert_eq!(RunState::fold(&out), RunState::fold(&events));
        let recorded = (events.len() as f64 - 1.0) * 7.0;
        if speed > 0.0 && speed.is_finite() {
            prop_assert!((took.0 as f64 - recorded / speed).abs() <= 1.0, "{took} for {recorded} ms at {speed}");
        } else {
            prop_assert_eq!(took, Millis(0));
        }
    }

    #[test]
    fn gap_of_years_delays_a_replay_by_seconds_and_later_events_keep_their_distances(kinds in run()) {
        /// Ten years.
        const GAP: Millis = Millis(315_360_000_000);
        let mut events = numbered(kinds);
        prop_assume!(events.len() > 1);
        let middle = events.len() / 2;
        for event in &mut events[middle..] {
            event.at = event.at + GAP;
        }
        let (out, took) = played(&events, 1.0);
        prop_assert_eq!(&out, &events);
        let others = Millis((events.len() as u64 - 2) * 7);
        prop_assert_eq!(took, MAX_EVENT_WAIT + others);
    }

    #[test]
    fn a_player_driven_anyhow_ends_in_the_same_state(kinds in run(), hands in proptest::collection::vec((0..7_u8, 0..400_u64), 0..30)) {
        let events = numbered(kinds);
        let clock = FakeClock::new();
        let mut player = Player::new(events.clone());
        let mut state = RunState::default();
        for (hand, n) in hands {
            let now = clock.now();
            let apply = |state: &mut RunState, due: std::ops::Range<usize>| events[due].iter().for_each(|e| state.apply(e));
            match hand {
                0 => player.play(now, PlaybackSpeed::new(n as f64 / 50.0)),
                1 => player.pause(now),
                2 => apply(&mut state, player.step(StepUnit::Event)),
                3 => apply(&mut state, player.step(StepUnit::Turn)),
                4 => apply(&mut state, player.step(StepUnit::Cell)),
                5 => match player.seek(usize::try_from(n).expect("small")) {
                    SeekResult::Forward(more) => apply(&mut state, more),
                    SeekResult::Restart(all) => {
                        state = RunState::default();
                        apply(&mut state, all);
                    }
                },
                _ => {
                    clock.advance(Millis(n));
                    apply(&mut state, player.take_due(clock.now()));
                }
            }
            prop_assert_eq!(&state, &RunState::fold(&events[..player.position()]));
        }
        player.play(clock.now(), PlaybackSpeed::INSTANT);
        events[player.take_due(clock.now())].iter().for_each(|e| state.apply(e));
        prop_assert!(player.is_finished());
        prop_assert_eq!(state, RunState::fold(&events));
    }
}

#[test]
fn player_keeps_the_recorded_times() {
    let note = |n: u64| EventKind::Note {
        cell: None,
        text: n.to_string(),
    };
    let mut player = Player::new(numbered((0..5).map(note))); // at 0, 7, 14, 21, 28
    assert_eq!(player.time_to_next(Millis(100)), None, "paused");
    player.play(Millis(100), PlaybackSpeed::new(0.5));
    assert_eq!(player.take_due(Millis(100)).len(), 1);
    assert_eq!(player.time_to_next(Millis(100)), Some(Millis(14)));
    assert_eq!(player.take_due(Millis(113)).len(), 0);
    assert_eq!(player.take_due(Millis(114)).len(), 1);
    player.play(Millis(116), PlaybackSpeed::RECORDED); // at 8 of the recording
    assert_eq!(player.time_to_next(Millis(116)), Some(Millis(6)));
    player.pause(Millis(120));
    assert_eq!(player.recording_time(Millis(1000)), Millis(12));
    assert_eq!(player.take_due(Millis(1000)).len(), 0);
    player.play(Millis(1000), PlaybackSpeed::RECORDED);
    assert_eq!(player.take_due(Millis(1002)).len(), 1);
    assert_eq!(player.position(), 3);
    assert_eq!(player.position_at(Millis(20)), 3);
}

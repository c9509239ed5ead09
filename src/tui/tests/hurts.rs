//! Difficult interleavings: a cancel during a retry, a save during a run, a seek during a stream, two child runs at
//! once.

use super::keys::{TONE, asking};
use super::server::{Server, ServerReply};
use super::{demo_in, last_notice, outcome, point, rubric};
use crate::model::{Millis, Outcome};
use crate::tui::state::App;
use crate::tui::state::runs::{RunStage, TrackedRun};
use crate::tui::testing::TestWorkbench;

fn slow_down() -> ServerReply {
    ServerReply::Refuse(
        429,
        "retry-after: 60",
        "{\"error\":{\"message\":\"slow down\"}}".to_owned(),
    )
}

/// Returns true if a judge waits for a retry.
fn backing_off(model: &App) -> bool {
    model.runs().live().any(|(_, run)| {
        let attempts = run.state.cells.iter().flat_map(|cell| &cell.judge_trace);
        attempts
            .flat_map(|turn| turn.attempts.values())
            .any(|attempt| {
                attempt
                    .failed
                    .as_ref()
                    .is_some_and(|failure| failure.retry_in.is_some())
            })
    })
}

/// Returns true if a judge has streamed some text.
fn streams(model: &App) -> bool {
    model
        .live_session
        .runs
        .live()
        .any(|(_, run)| attempt_texts(run).next().is_some())
}

fn attempt_texts(run: &TrackedRun) -> impl Iterator<Item = &str> {
    let turns = run.state.cells.iter().flat_map(|cell| &cell.judge_trace);
    let attempts = turns.flat_map(|turn| turn.attempts.values());
    attempts
        .map(|attempt| &*attempt.text)
        .filter(|text| !text.is_empty())
}

#[test]
fn retry_shows_countdown_and_cancel_ends_it() {
    let server = Server::new(|_| slow_down());
    let mut app = asking(&server, "", 120, 40);
    let asked_at = app.clock_now();
    point(&mut app, "t/r/tone");
    app.keys("R").settle_until(backing_off);
    let screen = app.screen();
    assert!(screen.contains("backing off 6"), "{screen}");
    assert!(screen.contains("429"), "{screen}");
    assert!(screen.contains("after attempt 1: 429"), "{screen}");
    app.pass(Millis(20_000));
    assert!(app.screen().contains("backing off 4"), "{}", app.screen());
    // Only the countdown changes, once per second.
    for _ in 0..5 {
        let now = app.clock_now();
        let next = app.event_loop.app.next_wake().expect("it counts down");
        assert_eq!(next.0 % 1000, 0);
        assert!(next.since(now) <= Millis(1000));
        app.pass(next.since(now));
    }
    app.keys("ctrl-c").settle();
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Cancelled));
    assert_eq!(server.asked(), 1, "nobody is asked again");
    assert!(
        app.clock_now().since(asked_at) < Millis(50_000),
        "the wait was not sat out"
    );
    assert!(!app.screen().contains("backing off"), "{}", app.screen());
    // No timer is left.
    app.pass(Millis(120_000)).settle();
    assert_eq!(server.asked(), 1);
    assert_eq!(app.event_loop.app.next_wake(), None);
}

#[test]
fn next_run_judges_cancelled_cells() {
    let server = Server::new(|n| match n {
        0 => slow_down(),
        _ => ServerReply::verdict(true, "kind enough"),
    });
    let mut app = asking(&server, "", 120, 40);
    app.keys("R").settle_until(backing_off);
    // A second press has no effect, because the run is live.
    app.keys("R");
    assert!(
        last_notice(&app).contains("being judged already"),
        "{}",
        last_notice(&app)
    );
    // A cancel and a new run without a pause.
    app.keys("ctrl-c R").settle();
    if outcome(&app, "t/r/tone") == Some(Outcome::Cancelled) {
        app.keys("R").settle();
    }
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Pass));
    assert_eq!(server.asked(), 2);
}

#[test]
fn retry_without_cancel_returns_verdict() {
    let server = Server::new(|n| match n {
        0 => slow_down(),
        _ => ServerReply::verdict(false, "not kind"),
    });
    let mut app = asking(&server, "", 120, 40);
    app.keys("R").settle();
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Fail));
    assert_eq!(server.asked(), 2);
    assert!(app.clock_now() >= Millis(60_000));
}

#[test]
fn every_attempt_stays_readable_live_and_recorded() {
    let server = Server::new(|n| match n {
        0 => ServerReply::Refuse(
            503,
            "retry-after: 3",
            "{\"error\":{\"message\":\"loading\"}}".to_owned(),
        ),
        1 => slow_down(),
        _ => ServerReply::verdict(true, "kind enough"),
    });
    let mut app = asking(&server, "", 200, 60);
    app.keys("R").settle();
    point(&mut app, "t/r/tone");
    app.settle();
    let check_attempts = |app: &TestWorkbench, what: &str| {
        let screen = app.screen();
        for text in [
            "↻ 503",
            "↻ 429",
            "attempt 1 failed: 503 from",
            "loading; next",
            "attempt in 3",
            "attempt 2 failed: 429 from",
            "slow down; next",
            "attempt in 1",
            // A row may end before this text.
            "attempts, 2 failed",
        ] {
            assert!(screen.contains(text), "{what} {text}: {screen}");
        }
    };
    check_attempts(&app, "live");
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Pass));
    app.keys("v").settle_until(|model| model.replay.is_some());
    app.keys("@").type_in("100%").keys("enter").settle();
    check_attempts(&app, "replayed");
}

#[test]
fn second_attempt_shows_its_number() {
    let server = Server::new(|n| match n {
        0 => ServerReply::Refuse(500, "x: y", "{}".to_owned()),
        _ => ServerReply::Hang("hm".to_owned()),
    });
    let mut app = asking(&server, "", 120, 40);
    point(&mut app, "t/r/tone");
    app.keys("R").settle_until(streams);
    let screen = app.screen();
    assert!(screen.contains("streaming, attempt 2"), "{screen}");
    assert!(screen.contains("↻ 500"), "{screen}");
    app.keys("ctrl-c").settle();
}

#[test]
fn quit_during_retry_does_not_wait() {
    let server = Server::new(|_| slow_down());
    let mut app = asking(&server, "", 80, 24);
    app.keys("R").settle_until(backing_off);
    app.keys("q y");
    assert_eq!(app.end(), Some(0));
    let clock = app.clock.clone();
    let line = app.close();
    assert!(crate::clock::Clock::now(&clock) < Millis(30_000), "{line}");
    assert!(line.starts_with("dicta: run "), "{line}");
}

#[test]
fn hanging_stream_is_cancelled_and_its_text_stays() {
    let server =
        Server::new(|_| ServerReply::Hang("{\"reasoning\": \"I wonder whether".to_owned()));
    let mut app = asking(&server, "", 120, 40);
    app.keys("R").settle_until(streams);
    point(&mut app, "t/r/tone");
    assert!(
        app.screen().contains("I wonder whether"),
        "{}",
        app.screen()
    );
    app.keys("ctrl-c").settle();
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Cancelled));
    assert!(
        app.screen().contains("I wonder whether"),
        "{}",
        app.screen()
    );
}

#[test]
fn saved_checks_are_decided_during_run() {
    let server = Server::new(|_| ServerReply::Hang("hm".to_owned()));
    let mut app = asking(&server, "", 120, 40);
    app.keys("R").settle_until(streams);
    app.save("r.yaml", &with_check("hello"));
    app.settle_until(|model| decided(model, "t/r/says"));
    assert_eq!(outcome(&app, "t/r/says"), Some(Outcome::Fail));
    app.save("r.yaml", &with_check("away"));
    app.settle_until(|model| {
        model
            .saves
            .report
            .as_ref()
            .is_some_and(|r| !r.flips.is_empty())
    });
    assert_eq!(outcome(&app, "t/r/says"), Some(Outcome::Pass));
    let running = |app: &TestWorkbench| {
        app.event_loop
            .app
            .live_session
            .runs
            .live()
            .filter(|(_, run)| run.covers_everything)
            .count()
    };
    assert_eq!(running(&app), 1, "the judge is still asked");
    assert_eq!(server.asked(), 1);
    // An invalid save during a run: the diagnostics appear, the run continues, and the diagnostics disappear again.
    app.save("r.yaml", "evals: [");
    assert!(!app.event_loop.app.saves.problems.is_empty());
    assert_eq!(running(&app), 1);
    assert_eq!(
        outcome(&app, "t/r/says"),
        Some(Outcome::Pass),
        "the last good state stays"
    );
    app.save("r.yaml", &with_check("away"));
    assert!(app.event_loop.app.saves.problems.is_empty());
    app.keys("ctrl-c").settle();
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Cancelled));
    assert_eq!(outcome(&app, "t/r/says"), Some(Outcome::Pass));
}

/// Returns the judged eval and a check.
fn with_check(word: &str) -> String {
    format!("{TONE}  - {{ id: says, type: contains, params: {{ patterns: [{word}] }} }}\n")
}

fn decided(model: &App, name: &str) -> bool {
    let cells = &model.live_session.cells;
    let row = cells.find_row(&name.parse().expect("a name"));
    let mark = row
        .and_then(|row| cells.row(row))
        .map(crate::tui::state::cells::CellsRow::status);
    matches!(mark, Some(crate::tui::state::cells::RowStatus::Decided(_)))
}

#[test]
fn saved_eval_is_judged_again_and_old_verdict_is_dropped() {
    let server = Server::new(|n| match n {
        0 => ServerReply::Hang("hm".to_owned()),
        _ => ServerReply::verdict(false, "said to the new question"),
    });
    let mut app = asking(&server, "", 120, 40);
    app.keys("R").settle_until(streams);
    app.save("r.yaml", &TONE.replace("kind", "kinder"));
    // The judge waits for the debounce time and is then called, while the older run still hangs.
    app.settle_until(|model| decided(model, "t/r/tone"));
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Fail));
    app.keys("ctrl-c").settle();
    assert_eq!(
        outcome(&app, "t/r/tone"),
        Some(Outcome::Fail),
        "cancelled is no verdict"
    );
    assert!(
        app.screen().contains("said to the new question"),
        "{}",
        app.screen()
    );
    assert_eq!(server.asked(), 2);
}

#[test]
fn two_parallel_save_runs_report_their_flips() {
    let mut app = TestWorkbench::watched(120, 40);
    app.settle();
    app.keys("R").settle();
    let (_, edited) = rubric(&app);
    // The judges work, and a save changes a check.
    let tools = app.root.join("rubrics/tool-work.yaml");
    let text = std::fs::read_to_string(tools).expect("it is there");
    app.save(
        "rubrics/tool-work.yaml",
        &text.replace("at most 5 sentences", "at most 1 sentence"),
    );
    app.settle_until(|model| {
        model
            .live_session
            .runs
            .live()
            .any(|(_, run)| run.judge_started > 0)
    });
    app.save("rubrics/beamline.yaml", &edited);
    app.settle_until(|model| model.live_session.runs.live().count() > 1 || flips(model) >= 3);
    app.settle();
    let ended = |run: &TrackedRun| run.stage == RunStage::Ended(None);
    assert!(
        app.event_loop
            .app
            .live_session
            .runs
            .by_ticket
            .values()
            .all(ended)
    );
    for id in ["beam-release", "beam-upgrade", "beam-quote"] {
        let name = format!("{id}/beamline/names-a-version");
        assert_eq!(outcome(&app, &name), Some(Outcome::Pass), "{name}");
    }
    // The first save was still being judged, so the edit includes its flip.
    assert_eq!(
        flips(&app.event_loop.app),
        4,
        "{:?}",
        app.event_loop.app.saves.report
    );
    let live = app
        .event_loop
        .app
        .live_session
        .cells
        .rows
        .iter()
        .filter(|row| row.is_live());
    assert_eq!(live.count(), 0);
}

fn flips(model: &App) -> usize {
    model
        .saves
        .report
        .as_ref()
        .map_or(0, |report| report.flips.len())
}

#[test]
fn recording_can_be_sought_while_judges_stream() {
    let server = Server::new(|n| match n {
        0 => ServerReply::verdict(true, "kind"),
        _ => ServerReply::Hang("I wonder".to_owned()),
    });
    let mut app = asking(&server, "", 120, 40);
    app.save("r.yaml", &with_check("away")).settle();
    app.keys("R").settle();
    point(&mut app, "t/r/tone");
    app.keys("r").settle_until(streams);
    // A live run can't be replayed, but a recording can at the same time.
    app.keys("v");
    assert!(
        last_notice(&app).contains("is running"),
        "{}",
        last_notice(&app)
    );
    point(&mut app, "t/r/says");
    app.keys("v").settle_until(|model| model.replay.is_some());
    for keys in [
        "ctrl-right",
        "ctrl-left",
        "ctrl-left",
        "> > > <",
        "t",
        "C",
        "F",
        "= = - space",
    ] {
        app.keys(keys);
        app.pass(Millis(50));
        let replay = app.event_loop.app.replay.as_ref().expect("it stays open");
        assert!(replay.player.position() <= replay.player.len());
    }
    app.keys("q");
    assert!(app.event_loop.app.replay.is_none());
    app.keys("ctrl-c");
    app.settle_until(|model| model.live_session.runs.live().next().is_none());
    assert_eq!(app.end(), None);
}

/// Opens a recording of the repository without a workspace.
fn recording(name: &str) -> TestWorkbench {
    let dir = tempfile::tempdir().expect("a folder");
    demo_in(dir.path());
    let demo = std::fs::read_dir(dir.path())
        .expect("it is there")
        .flatten()
        .next();
    let runs = demo.expect("it was unpacked").path().join("runs");
    let run = std::fs::read_dir(runs).expect("it is there").flatten();
    let run = run
        .map(|run| run.path())
        .find(|run| run.ends_with(name))
        .expect("it is shipped");
    let id = crate::model::RunId(name.to_owned());
    let read = crate::tui::effect::Effect::ReadReplay {
        run: id,
        workspace: None,
        dir: Some(run),
    };
    let size = ratatui::layout::Size::new(120, 40);
    let env = crate::workspace::Env::default();
    let place = crate::tui::state::OpenedItem::Recording;
    let mut app = TestWorkbench::on(place, size, None, (env, dir, "/nowhere".into()), vec![read]);
    app.settle_until(|model| model.replay.is_some());
    app
}

#[test]
fn seeking_does_not_change_end_of_recording() {
    let ends = |app: &TestWorkbench| {
        let cells = &app.event_loop.app.session().cells;
        let rows = cells.rows.iter().map(|row| format!("{:?}", row.status()));
        let trace = app
            .event_loop
            .app
            .session()
            .runs
            .by_ticket
            .values()
            .map(|run| run.finished_cells)
            .sum::<u64>();
        (rows.collect::<Vec<_>>(), trace)
    };
    let name = "20261022T090000Z-page";
    let mut left = recording(name);
    left.keys("@").type_in("100%").keys("enter").settle();
    let wanted = ends(&left);
    let mut app = recording(name);
    let mut random = fastrand::Rng::with_seed(11);
    let keys = [
        "ctrl-left",
        "ctrl-right",
        ">",
        "<",
        "t",
        "C",
        "F",
        "space",
        "=",
        "-",
        "j",
        "]",
        ",",
        ".",
    ];
    for _ in 0..150 {
        app.keys(keys[random.usize(..keys.len())]);
        app.pass(Millis(random.u64(0..400)));
    }
    app.keys("@").type_in("0%").keys("enter").pass(Millis(20));
    app.keys("@").type_in("100%").keys("enter").settle();
    assert_eq!(ends(&app), wanted);
}

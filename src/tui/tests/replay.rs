//! Replays in the whole workbench: the repository's recordings, played, stepped and sought, and runs replayed from
//! the cells.

use std::path::{Path, PathBuf};

use ratatui::layout::Size;

use super::keys::{TONE, asking};
use super::server::{Server, ServerReply};
use super::{go_to, judged, point};
use crate::model::{Millis, RunId};
use crate::tui::effect::Effect;
use crate::tui::state::cells::{CellsRow, RowCounts, RowId};
use crate::tui::state::replay::ReplayStart;
use crate::tui::state::shown_cell::resolve_shown_cell;
use crate::tui::state::{App, OpenedItem};
use crate::tui::testing::TestWorkbench;
use crate::workspace::Env;

/// Returns the recordings of the repository.
fn samples() -> Vec<(RunId, PathBuf)> {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-runs/runs");
    let folders = std::fs::read_dir(runs).expect("they ship");
    let mut all: Vec<_> = folders
        .map(|folder| {
            let folder = folder.expect("it can be listed");
            (
                RunId(folder.file_name().to_string_lossy().into()),
                folder.path(),
            )
        })
        .collect();
    all.sort();
    assert_eq!(all.len(), 4);
    all
}

/// Opens a recording without a workspace, as `dicta replay --speed N` and `dicta open RUN` do.
fn opened((run, dir): &(RunId, PathBuf), speed: Option<f64>) -> TestWorkbench {
    let data = tempfile::tempdir().expect("a folder");
    let root = data.path().to_owned();
    let size = Size::new(120, 40);
    let place = OpenedItem::Recording;
    let mut driven = TestWorkbench::on(place, size, None, (Env::default(), data, root), Vec::new());
    driven.event_loop.app.replay_start = ReplayStart::from_speed(speed);
    driven.effect(Effect::ReadReplay {
        run: run.clone(),
        workspace: None,
        dir: Some(dir.clone()),
    });
    driven.settle_until(|app| app.replay.is_some());
    driven
}

/// Returns the rows, their counts, and the state of the run.
fn stand(app: &App) -> (Vec<CellsRow>, RowCounts, String) {
    let replay = app.replay.as_ref().expect("it is replayed");
    let session = &replay.session;
    let run = session.runs.by_ticket.values().next().expect("one run");
    let summary = format!(
        "{:?} {} {:?}",
        run.stage, run.decided_count, run.state.totals
    );
    (session.cells.rows.clone(), session.cells.total, summary)
}

fn at_end(driven: &TestWorkbench) -> bool {
    let replay = driven.event_loop.app.replay.as_ref();
    replay.is_some_and(|replay| replay.player.is_finished() && !replay.is_seeking())
}

#[test]
fn replay_from_a_code_check_keeps_the_cell_that_the_user_chose() {
    let name = "beam-upgrade/beamline/names-a-version";
    let mut app = judged(120, 40);
    go_to(&mut app, name);
    app.keys("v")
        .settle_until(|model| model.replay.is_some())
        .settle();
    assert!(at_end(&app));
    let cells = &app.event_loop.app.session().cells;
    let row = cells.selected_row().expect("a cell is selected");
    let selected = cells.decision_name(row).expect("it has a name");
    assert_eq!(selected.to_string(), name);
}

#[test]
fn narrow_footer_of_a_replay_names_the_key_that_leaves_it() {
    let mut app = judged(80, 24);
    app.keys("v")
        .settle_until(|model| model.replay.is_some())
        .settle();
    app.event_loop.app.notices.dismiss();
    app.draw();
    assert!(app.last_row().contains(" q back "), "{}", app.screen());
    // Without a workspace, there is nothing to go back to.
    let mut alone = opened(&samples()[0], None);
    alone.resize(80, 24).settle();
    alone.event_loop.app.notices.dismiss();
    alone.draw();
    assert!(alone.last_row().contains(" q quit "), "{}", alone.screen());
}

#[test]
fn recording_ends_with_same_rows_at_every_speed() {
    for sample in &samples() {
        let at_once = stand(&opened(sample, None).settle().event_loop.app);
        assert!(!at_once.0.is_empty());

        for speed in [1.0, 64.0, 0.0] {
            let mut played = opened(sample, Some(speed));
            played.settle();
            assert!(at_end(&played));
            assert_eq!(
                stand(&played.event_loop.app),
                at_once,
                "{} ×{speed}",
                sample.0.0
            );
        }
        for (key, times) in [
            ("t", 20),
            ("C", 10),
            (">", 80),
            ("ctrl-right", 12),
            ("F", 6),
        ] {
            let mut stepped = opened(sample, Some(1.0));
            stepped.keys("space");
            for _ in 0..times {
                stepped.keys(key);
            }
            // The end must be reachable from any position.
            stepped.keys("@").type_in("100%").keys("enter").settle();
            assert!(at_end(&stepped), "{key}");
            assert_eq!(
                stand(&stepped.event_loop.app),
                at_once,
                "{} {key}",
                sample.0.0
            );
        }
        let mut sought = opened(sample, None);
        sought.settle();
        for moment in ["40%", "0", "75%", "3", "100%", "1%"] {
            sought.keys("@").type_in(moment).keys("enter").settle();
        }
        for _ in 0..6 {
            sought.keys("< < ctrl-right <");
        }
        sought.keys("@").type_in("100%").keys("enter").settle();
        assert!(at_end(&sought));
        assert_eq!(
            stand(&sought.event_loop.app),
            at_once,
            "{} sought",
            sample.0.0
        );
    }
}

#[test]
fn seeking_back_keeps_selection() {
    let mut driven = opened(&samples()[0], None);
    driven.settle();
    driven
        .keys("/")
        .type_in("eval:newest")
        .keys("enter j j")
        .settle();
    let chosen = |driven: &TestWorkbench| {
        let cells = &driven.event_loop.app.session().cells;
        (cells.list.selected, cells.filter.clone(), cells.shown.len())
    };
    let before = chosen(&driven);
    assert_eq!(before.1, "eval:newest");
    driven.keys("< < <").settle();
    assert_eq!(chosen(&driven), before);
    driven.keys("@").type_in("10%").keys("enter").settle();
    let after = chosen(&driven);
    assert_eq!((after.0, &after.1), (before.0, &before.1));
    assert!(driven.screen().contains("/eval:newest"));
}

#[test]
fn replay_shows_labels_and_keeps_live_cells() {
    let mut driven = TestWorkbench::demo(120, 40);
    driven.settle().keys("R").settle();
    let labelled = |rows: &[CellsRow]| rows.iter().filter(|row| row.label.is_some()).count();
    let live = driven.event_loop.app.live_session.cells.rows.clone();
    assert!(labelled(&live) > 0);
    let notices_before = driven.event_loop.app.notices.log.len();

    driven.keys("v").settle_until(|app| app.replay.is_some());
    assert!(driven.screen().contains(" REPLAY "));
    driven.keys("@").type_in("100%").keys("enter").settle();
    let (replayed, ..) = stand(&driven.event_loop.app);
    assert_eq!(labelled(&replayed), labelled(&live));
    assert!(
        driven.event_loop.app.saves.report.is_none(),
        "no flip is told"
    );

    driven.keys("q").settle();
    assert!(driven.event_loop.app.replay.is_none());
    assert_eq!(driven.event_loop.app.live_session.cells.rows, live);
    let new: Vec<_> = driven.event_loop.app.notices.log[notices_before..]
        .iter()
        .map(|notice| notice.text.as_str())
        .collect();
    assert!(new.iter().all(|text| !text.contains("flip")), "{new:?}");
}

#[test]
fn live_run_continues_behind_replay() {
    let mut driven = TestWorkbench::watched(120, 40);
    driven.settle().keys("R").settle();
    let name = |app: &App, row: RowId| {
        app.live_session
            .cells
            .decision_name(row)
            .map(|name| name.to_string())
    };
    let row = driven
        .event_loop
        .app
        .live_session
        .cells
        .selected_row()
        .expect("a row");
    assert!(name(&driven.event_loop.app, row).is_some());
    let runs = driven.event_loop.app.live_session.runs.by_ticket.len();
    driven.keys("R v").settle_until(|app| app.replay.is_some());
    driven.settle();
    let live = &driven.event_loop.app.live_session;
    assert_eq!(live.runs.by_ticket.len(), runs + 1);
    assert!(live.runs.live().next().is_none(), "it ended meanwhile");
    assert!(
        driven.event_loop.app.replay.is_some(),
        "and disturbed nothing"
    );
    assert_eq!(driven.end(), None);
    let before = driven.event_loop.app.now;
    driven.pass(Millis(10));
    assert!(driven.event_loop.app.now > before);
}

#[test]
fn recording_does_not_show_changes_of_saves() {
    let mut app = TestWorkbench::demo(80, 24);
    app.settle();
    app.keys("R").settle();
    let path = app.root.join("rubrics/beamline.yaml");
    let text = std::fs::read_to_string(path).expect("a rubric");
    let edited = text.replace(r"\d\.\d\b", r"\d+\.\d+\b");
    app.save("rubrics/beamline.yaml", &edited).settle();
    assert!(app.screen().contains("7 changes"));
    super::go_to(&mut app, "beam-release/beamline/names-a-version");
    app.keys("v").settle_until(|app| app.replay.is_some());
    let screen = app.screen();
    assert!(!screen.contains("towards"), "{screen}");
    // The run of that save called no judge, so its replay ends at once and shows the reason.
    let notices = &app.event_loop.app.notices.log;
    assert!(
        notices
            .iter()
            .any(|notice| notice.text.contains("no judge was asked in this run"))
    );
    app.keys("q").settle();
    assert!(app.screen().contains("towards"));
}

#[test]
fn reused_verdict_shows_and_replays_the_trace_of_the_run_that_judged_it() {
    let server = Server::new(|_| ServerReply::verdict(true, "As kind as a lamb."));
    let mut app = asking(&server, "", 120, 40);
    point(&mut app, "t/r/tone");
    app.keys("R").settle();
    app.keys("R").settle();
    assert_eq!(server.asked(), 1, "the second run reused the verdict");
    let ids = |app: &TestWorkbench| -> Vec<RunId> {
        let runs = app.event_loop.app.live_session.runs.by_ticket.values();
        runs.filter_map(|run| run.id.clone()).collect()
    };
    let runs = ids(&app);
    assert_eq!(runs.len(), 2);
    app.keys("1 enter").settle();
    let shown = resolve_shown_cell(&app.event_loop.app).expect("a cell");
    assert_eq!(shown.run, Some(&runs[0]));
    assert!(
        app.screen().contains("As kind as a lamb."),
        "{}",
        app.screen()
    );
    app.keys("v").settle_until(|app| app.replay.is_some());
    let replay = app.event_loop.app.replay.as_ref().expect("a replay");
    assert_eq!(replay.run, runs[0]);
    app.settle();
    let shown = resolve_shown_cell(&app.event_loop.app).expect("a cell");
    assert!(shown.trace.is_some_and(|cell| cell.judge_trace.len() == 1));
}

#[test]
fn opened_run_shows_the_rubric_that_it_stored() {
    let server = Server::new(|_| ServerReply::verdict(true, "kind"));
    let mut app = asking(&server, "", 120, 40);
    point(&mut app, "t/r/tone");
    app.keys("R").settle();
    let run = app
        .event_loop
        .app
        .live_session
        .runs
        .by_ticket
        .values()
        .next();
    let run = run.expect("a run");
    let found = (
        run.id.clone().expect("an id"),
        run.dir.clone().expect("a folder"),
    );
    // The file of today has other criteria.
    std::fs::write(app.root.join("r.yaml"), TONE.replace("kind", "cruel")).expect("written");
    let mut opened = opened(&found, Some(0.0));
    opened.settle();
    // The row of the eval shows its definition.
    opened.keys("1 g").settle();
    opened.keys("5 +").settle();
    let screen = opened.screen();
    assert!(screen.contains("criteria: kind"), "{screen}");
    assert!(!screen.contains("cruel"), "{screen}");
}

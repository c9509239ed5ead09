//! Saves in the whole workbench: files are written, watched, judged again and reported.

use std::fs;

use crate::model::{Millis, Outcome};
use crate::tui::state::App;
use crate::tui::state::edit_report::summarize;
use crate::tui::state::saves::PARTIAL_WRITE_WINDOW;
use crate::tui::testing::TestWorkbench;

const BEAMLINE: &str = "rubrics/beamline.yaml";
const WRONG: &str = r"'Beamline \d\.\d\b'";
const RIGHT: &str = r"'Beamline \d+\.\d+'";
const FLIPS: &str = "saved beamline.yaml: 3 flips, all 3 towards your labels";

/// Opens the demo, judges it, and returns its rubric with the planted mistake.
fn judged() -> (TestWorkbench, String) {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle().keys("R").settle();
    let text = fs::read_to_string(app.root.join(BEAMLINE)).expect("the demo's rubric");
    assert!(text.contains(WRONG));
    (app, text)
}

fn report_summary(app: &TestWorkbench) -> String {
    let report = app.event_loop.app.saves.report.as_ref();
    report.map(summarize).unwrap_or_default()
}

/// Returns the transcripts whose verdict on an eval flipped.
fn flipped(app: &App, eval: &str) -> Vec<String> {
    let cells = &app.live_session.cells;
    let of = cells.rows.iter().filter(|row| row.flipped.is_some());
    let of = of.filter(|row| cells.evals[row.eval as usize].id == eval);
    of.map(|row| cells.transcripts[row.transcript as usize].id.clone())
        .collect()
}

/// Returns the verdicts of all visible rows.
fn verdicts(app: &App) -> Vec<(String, Outcome)> {
    let cells = &app.live_session.cells;
    let rows = cells.shown.iter().filter_map(|entry| match entry {
        crate::tui::state::cells::CellsEntry::Row(row) => Some(*row),
        crate::tui::state::cells::CellsEntry::Group(_) => None,
    });
    let of = rows.filter_map(|id| {
        let decision = cells.row(id)?.decision.as_ref()?;
        Some((cells.decision_name(id)?.to_string(), decision.outcome))
    });
    let mut of: Vec<_> = of.collect();
    of.sort_by(|a, b| a.0.cmp(&b.0));
    of
}

#[test]
fn fixing_demo_mistake_flips_three_verdicts_towards_labels() {
    let (mut app, text) = judged();
    app.save(BEAMLINE, &text.replace(WRONG, RIGHT)).settle();
    assert_eq!(report_summary(&app), FLIPS);
    let mut of = flipped(&app.event_loop.app, "names-a-version");
    of.sort();
    assert_eq!(of, ["beam-quote", "beam-release", "beam-upgrade"]);
    let screen = app.screen();
    assert!(
        screen.contains("3 flips, all 3 towards your labels"),
        "{screen}"
    );
    assert!(
        screen.contains("✗ → ✓ beam-quote · names-a-version"),
        "{screen}"
    );
    // From a flip to its cell, and back.
    app.keys("7 j j enter");
    let cells = &app.event_loop.app.live_session.cells;
    let name = cells
        .selected_row()
        .and_then(|row| cells.decision_name(row));
    assert_eq!(
        name.map(|name| name.to_string()).as_deref(),
        Some("beam-quote/beamline/names-a-version")
    );
    for (width, height) in [(200, 60), (80, 24), (40, 12)] {
        app.resize(width, height).keys("7");
        let screen = app.screen();
        assert!(
            screen.contains("3 flips, all 3 towards your labels"),
            "{width}×{height}:\n{screen}"
        );
    }
}

#[test]
fn comment_save_flips_nothing_and_starts_no_run() {
    let (mut app, text) = judged();
    let runs = app.event_loop.app.live_session.runs.by_ticket.len();
    app.save(BEAMLINE, &format!("# why\n{text}")).settle();
    assert_eq!(
        report_summary(&app),
        "saved beamline.yaml: nothing to judge again: only comments or layout changed"
    );
    assert_eq!(app.event_loop.app.live_session.runs.by_ticket.len(), runs);
    // The editor reformats the file right after a save; the report combines the two.
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    app.save(BEAMLINE, &text.replace(WRONG, RIGHT)).settle();
    app.save(BEAMLINE, &format!("{}\n\n", text.replace(WRONG, RIGHT)))
        .settle();
    assert_eq!(report_summary(&app), FLIPS);
}

#[test]
fn broken_save_shows_problem_until_fixed() {
    let (mut app, text) = judged();
    let before = verdicts(&app.event_loop.app);
    app.save(BEAMLINE, &text.replace("type: regex", "type: regx"))
        .settle();
    let screen = app.screen();
    assert!(
        screen.contains("unknown type `regx`") && screen.contains("rubrics/beamline.yaml:9:11"),
        "{screen}"
    );
    assert_eq!(verdicts(&app.event_loop.app), before);
    app.save(BEAMLINE, &text).settle();
    assert!(!app.screen().contains("9:11"));
    assert_eq!(verdicts(&app.event_loop.app), before);
}

#[test]
fn file_written_in_pieces_loses_no_verdict_and_no_flip() {
    let (mut app, text) = judged();
    let right = text.replace(WRONG, RIGHT);
    app.save(BEAMLINE, &right).settle();
    let before = verdicts(&app.event_loop.app);
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    app.save(BEAMLINE, &text).settle();
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    let piece = right.split("  - id: newest").next().expect("a beginning");
    app.save(BEAMLINE, piece).settle();
    assert!(verdicts(&app.event_loop.app).len() < before.len());
    let judged = judged_cells(&app);
    app.save(BEAMLINE, &right).settle();
    assert_eq!(verdicts(&app.event_loop.app), before);
    assert_eq!(report_summary(&app), FLIPS);
    assert_eq!(judged_cells(&app), judged, "nothing is judged");
}

#[test]
fn deleted_and_new_rubric_are_reported() {
    let (mut app, _) = judged();
    let before = verdicts(&app.event_loop.app);
    let path = app.root.join("rubrics/support.yaml");
    let text = fs::read_to_string(&path).expect("it is there");
    fs::remove_file(&path).expect("it goes");
    app.settle_for(|app| app.saves.number > 0).settle();
    assert_eq!(
        report_summary(&app),
        "deleted support.yaml: 7 evals are gone, nothing to judge again"
    );
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    app.save("rubrics/support.yaml", &text).settle();
    assert_eq!(verdicts(&app.event_loop.app), before);
    assert_eq!(
        report_summary(&app),
        "new file support.yaml: no verdict moved (6 checked by code, 30 decided again)"
    );
    let new = "evals:\n  - id: dated\n    type: contains\n    params: { patterns: [\"2026\"] }\n";
    app.save("rubrics/fresh.yaml", new).settle();
    assert_eq!(
        report_summary(&app),
        "new file fresh.yaml: 18 cells decided for the first time: ✓ 5 ✗ 13"
    );
}

#[test]
fn save_during_full_run_wins_over_older_run() {
    let mut app = TestWorkbench::watched(120, 40);
    let text = fs::read_to_string(app.root.join(BEAMLINE)).expect("the demo's rubric");
    app.settle().keys("R");
    app.settle_until(|app| {
        app.live_session
            .runs
            .by_ticket
            .values()
            .any(|run| run.live_traces() > 0)
    });
    // The checks of the older run are reported, and its judges are still working.
    app.save(BEAMLINE, &text.replace(WRONG, RIGHT)).settle();
    let app = &app.event_loop.app;
    assert!(app.live_session.runs.live().next().is_none());
    let cells = &app.live_session.cells;
    let passed = verdicts(app)
        .into_iter()
        .filter(|(name, _)| name.ends_with("/names-a-version"));
    assert!(
        passed
            .map(|(_, outcome)| outcome)
            .all(|o| o == Outcome::Pass)
    );
    assert!(
        cells
            .rows
            .iter()
            .all(|row| row.stale.is_none() && !row.is_live())
    );
    assert_eq!(
        cells
            .rows
            .iter()
            .filter(|row| row.decision.is_none())
            .count(),
        0
    );
}

#[test]
fn repeated_saves_end_with_last_version() {
    let mut app = TestWorkbench::watched(120, 40);
    let text = fs::read_to_string(app.root.join(BEAMLINE)).expect("the demo's rubric");
    app.settle().keys("R").settle();
    let criteria = "The answer names the newest Beamline release on https://releases.beamline.example/downloads.";
    assert!(text.contains(criteria));
    let with = |more: &str| text.replace(criteria, &format!("{criteria} It mentions \"{more}\"."));
    app.save(BEAMLINE, &with("zebra"));
    // Another save while the judges work.
    app.settle_until(|app| {
        app.live_session
            .runs
            .by_ticket
            .values()
            .any(|run| run.live_traces() > 0)
    });
    app.save(BEAMLINE, &with("Beamline"));
    app.settle_until(|app| app.saves.pending_judging.is_none());
    app.save(BEAMLINE, &with("mirror")).settle();
    let cells = &app.event_loop.app.live_session.cells;
    assert!(
        cells
            .rows
            .iter()
            .all(|row| row.stale.is_none() && !row.is_live())
    );
    assert!(cells.rows.iter().all(|row| row.decision.is_some()));
    assert!(app.event_loop.app.live_session.runs.live().next().is_none());
}

#[test]
fn save_during_replay_changes_only_live_cells() {
    let (mut app, text) = judged();
    app.keys("v").settle_until(|app| app.replay.is_some());
    let before = app
        .event_loop
        .app
        .replay
        .as_ref()
        .map(|replay| verdicts_of(&replay.session));
    let tab = app.event_loop.app.ui.tab_pane;
    fs::write(app.root.join(BEAMLINE), text.replace(WRONG, RIGHT)).expect("it is saved");
    app.settle_for(|app| app.saves.number > 0)
        .settle_until(|app| app.live_session.runs.live().next().is_none());
    let app = &app.event_loop.app;
    assert_eq!(flipped(app, "names-a-version").len(), 3);
    assert_eq!(app.ui.tab_pane, tab);
    assert_eq!(
        app.replay
            .as_ref()
            .map(|replay| verdicts_of(&replay.session)),
        before
    );
    let expected = "a file was saved: the live cells take it, the replay stays (q goes back)";
    assert!(app.notices.contains(expected));
}

/// Returns the number of rows per verdict.
fn verdicts_of(session: &crate::tui::state::session_view::SessionView) -> usize {
    session.cells.rows.len()
}

#[test]
fn auto_off_marks_stale_and_auto_on_judges_the_next_save() {
    let (mut app, text) = judged();
    let judged = judged_cells(&app);
    app.keys("A");
    app.save(BEAMLINE, &text.replace(WRONG, RIGHT)).settle();
    assert_eq!(judged_cells(&app), judged);
    let stale = |app: &TestWorkbench| {
        let cells = &app.event_loop.app.live_session.cells;
        cells.rows.iter().filter(|row| row.stale.is_some()).count()
    };
    assert_eq!(stale(&app), 5);
    assert!(report_summary(&app).contains("auto is off"));
    app.keys("A");
    app.save(BEAMLINE, &text.replace(WRONG, r"'Beamline \d\d*\.\d+'"))
        .settle();
    assert_eq!(stale(&app), 0);
    assert_eq!(report_summary(&app), FLIPS);
}

/// Returns the number of cells that all runs of the session finished.
fn judged_cells(app: &TestWorkbench) -> u64 {
    let runs = &app.event_loop.app.live_session.runs.by_ticket;
    runs.values().map(|run| run.finished_cells).sum()
}

#[test]
fn edited_criteria_show_how_many_labels_wait_for_a_confirmation() {
    let (mut app, text) = judged();
    // A label that is set here knows its question; those of the demo do not.
    super::go_to(&mut app, "beam-quote/beamline/newest");
    app.keys("1 p").settle();
    let edited = text.replace(
        "The answer names the newest Beamline release on",
        "The answer names the very newest Beamline release on",
    );
    assert_ne!(edited, text);
    app.save(BEAMLINE, &edited).settle();
    app.keys("7 +").settle();
    let offer = "1 label of the old question: a confirms the focused one, Q lists them";
    assert!(app.screen().contains(offer), "{}", app.screen());
}

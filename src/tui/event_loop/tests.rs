//! The event loop in the whole workbench, driven by keys.

use crate::model::Millis;
use crate::tui::effect::Effect;
use crate::tui::msg::{MouseAction, MouseInput, Msg};
use crate::tui::state::App;
use crate::tui::state::cells::CellsRow;
use crate::tui::testing::TestWorkbench;

#[test]
fn many_resizes_break_nothing() {
    let mut app = TestWorkbench::demo(80, 24);
    app.settle();
    let mut random = fastrand::Rng::with_seed(7);
    app.resize(1, 1);
    for round in 0..1000 {
        app.resize(random.u16(1..=220), random.u16(1..=70));
        if round % 50 == 0 {
            app.keys("tab + j");
        }
    }
    app.resize(80, 24).settle();
    let before = app.screen();
    app.send_msg(Msg::Key("ctrl-l".parse().expect("a key")));
    assert_eq!(app.screen().lines().count(), before.lines().count());
}

#[test]
fn terminal_that_returns_to_its_size_is_drawn_again() {
    let mut app = TestWorkbench::demo(80, 24);
    app.settle();
    let before = app.event_loop.screen.forgot;
    // The terminal was smaller between two frames, so the program sees only the last size.
    app.terminal_input(Msg::Resized {
        width: 80,
        height: 24,
    });
    assert_eq!(app.event_loop.screen.forgot, before + 1);
    app.settle();
    assert!(app.screen().contains("names-a-version"), "{}", app.screen());
}

#[test]
fn idle_workbench_sets_no_timer() {
    let mut app = TestWorkbench::demo(80, 24);
    app.settle();
    app.pass(Millis::from_secs(60));
    assert_eq!(app.event_loop.app.next_wake(), None);
}

#[test]
fn text_too_large_for_clipboard_is_written_to_file() {
    let mut app = TestWorkbench::demo(80, 24);
    app.settle();
    app.effect(Effect::Copy {
        what: "the page".to_owned(),
        text: "x".repeat((64 << 10) + 1),
    });
    app.settle();
    assert!(app.event_loop.screen.copied.is_empty());
    let last_notice = &app
        .event_loop
        .app
        .notices
        .log
        .last()
        .expect("a notice")
        .text;
    let path = last_notice.split(" it is in ").nth(1).expect("where it is");
    assert_eq!(
        std::fs::read(path).expect("it is there").len(),
        (64 << 10) + 1
    );
    app.effect(Effect::Copy {
        what: "the name".to_owned(),
        text: "a/b/c".to_owned(),
    });
    assert_eq!(app.event_loop.screen.copied, ["a/b/c"]);
}

#[test]
fn immediate_quit_reports_no_runs() {
    let mut app = TestWorkbench::demo(80, 24);
    app.settle();
    assert_eq!(app.close(), "dicta: nothing was run");
}

#[test]
fn opening_shows_the_cells_and_running_all_decides_them() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle();
    assert!(app.screen().contains("names-a-version"), "{}", app.screen());
    app.keys("R").settle();
    let model = &app.event_loop.app;
    assert_eq!(model.runs().live().count(), 0);
    assert!(app.screen().contains('✗'), "{}", app.screen());
    assert!(app.close().contains("is recorded in"));
}

#[test]
fn quit_during_run_asks_and_cancels_it() {
    let mut app = TestWorkbench::watched(120, 40);
    app.settle();
    // Without the cache, so that a judge works.
    app.keys("end r");
    app.keys("R")
        .settle_until(|model| model.runs().live().any(|(_, run)| run.id.is_some()));
    app.keys("q");
    assert_eq!(app.end(), None, "it asks first");
    app.keys("y");
    assert_eq!(app.end(), Some(0));
    assert!(app.close().contains("recorded in"));
}

#[test]
fn a_cancelled_run_ends_and_the_workbench_stays() {
    let mut app = TestWorkbench::watched(120, 40);
    app.settle();
    app.keys("R")
        .settle_until(|model| model.runs().live().any(|(_, run)| run.id.is_some()));
    app.keys("ctrl-c").settle();
    assert_eq!(app.event_loop.app.runs().live().count(), 0);
    assert_eq!(app.end(), None);
}

#[test]
fn fixed_rubric_flips_towards_labels() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle().keys("R").settle();
    let path = "rubrics/beamline.yaml";
    let rubric = std::fs::read_to_string(app.root.join(path)).expect("a rubric");
    app.save(path, &rubric.replace(r"\d\.\d\b", r"\d+\.\d+"))
        .settle();
    let report = app.event_loop.app.saves.report.as_ref().expect("a report");
    assert_eq!(report.flips.len(), 3);
    assert!(
        app.screen().contains("towards your labels"),
        "{}",
        app.screen()
    );
}

#[test]
fn broken_rubric_problem_disappears_when_fixed() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle();
    let path = "rubrics/beamline.yaml";
    let rubric = std::fs::read_to_string(app.root.join(path)).expect("a rubric");
    app.save(path, &rubric.replace("evals:", "evils:")).settle();
    assert!(!app.event_loop.app.saves.problems.is_empty());
    assert!(app.screen().contains("beamline.yaml:"), "{}", app.screen());
    app.save(path, &rubric).settle();
    assert_eq!(app.event_loop.app.saves.problems, Vec::new());
}

#[test]
fn edit_key_opens_editor_at_eval() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle().keys("j e");
    assert!(
        matches!(
            &app.terminal_effects[..],
            [Effect::OpenEditor { line: 2.., .. }]
        ),
        "{:?}",
        app.terminal_effects
    );
}

#[test]
fn filter_shows_only_matching_rows() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle()
        .keys("/")
        .type_in("eval:official-link")
        .keys("enter");
    let screen = app.settle().screen();
    assert!(screen.contains("official-link"), "{screen}");
    assert!(!screen.contains("opened-a-page"), "{screen}");
}

#[test]
fn full_run_follows_judge_then_selects_first_failure() {
    let mut app = TestWorkbench::watched(120, 40);
    app.settle().keys("R");
    let watching = |model: &App| {
        let cells = &model.live_session.cells;
        let row = cells.selected_row().and_then(|row| cells.row(row));
        row.is_some_and(|row| row.is_live() && row.slots[0].judge.is_some())
    };
    app.settle_until(watching);
    assert!(app.screen().contains(" × "), "{}", app.screen());
    app.settle();
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells.selected_row().and_then(|row| cells.row(row));
    assert!(row.is_some_and(CellsRow::is_problem), "{}", app.screen());
}

#[test]
fn a_clicked_row_stays_under_the_pointer() {
    let mut app = TestWorkbench::demo(80, 24);
    app.settle().keys("R").settle();
    app.keys("G g G k k k");
    let rows = |app: &TestWorkbench| app.screen().lines().map(str::to_owned).collect::<Vec<_>>();
    let before = rows(&app);
    let is_cell = |row: &String| row.chars().nth(4).is_some_and(|mark| "✓✗–".contains(mark));
    let at = 6 + before[6..].iter().position(is_cell).expect("a cell");
    app.send_msg(Msg::Mouse(MouseInput {
        action: MouseAction::Pressed,
        column: 10,
        row: u16::try_from(at).expect("a row of the screen"),
    }));
    let text = |row: &str| row.chars().skip(3).take(20).collect::<String>();
    assert_eq!(text(&rows(&app)[at]), text(&before[at]));
    assert!(rows(&app)[at].contains('▌'), "{}", app.screen());
}

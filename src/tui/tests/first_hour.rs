//! The first hour of a new user: the first cell, the panes that have something to show, errors in full, rows that keep
//! their verdict, the size of a run, remembered choices.

use std::sync::Arc;

use super::keys::asking;
use super::server::{Server, ServerReply};
use super::{go_to, judged, last_notice, rubric, workbench};
use crate::handlers::EvalTypeRegistry;
use crate::model::{Millis, Outcome};
use crate::tui::effect::Effect;
use crate::tui::msg::{MouseAction, MouseInput, Msg};
use crate::tui::screen_choices::ScreenChoices;
use crate::tui::state::cells::{CellsEntry, RowSort};
use crate::tui::state::pane::{Pane, PaneSplits};
use crate::tui::state::{App, OpenedItem};
use crate::tui::testing::TestWorkbench;
use crate::workspace;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// Returns the name of the selected cell.
fn selected(app: &TestWorkbench) -> String {
    let cells = &app.event_loop.app.session().cells;
    let row = cells.selected_row().expect("a cell is selected");
    cells.decision_name(row).expect("it has a name").to_string()
}

/// Returns the rows inside the cells pane.
fn cells_pane(app: &TestWorkbench) -> Vec<String> {
    let area = app.event_loop.app.layout().pane_area(Pane::Cells);
    let area = area.expect("it is shown");
    let buffer = app.buffer();
    let row = |y: u16| -> String {
        let inside = area.x + 1..area.right() - 1;
        inside.map(|x| buffer[(x, y)].symbol()).collect()
    };
    (area.y + 1..area.bottom() - 1).map(row).collect()
}

fn panes(app: &TestWorkbench) -> Vec<Pane> {
    let layout = app.event_loop.app.layout();
    layout.panes.iter().map(|shown| shown.pane).collect()
}

fn select_eval(app: &mut TestWorkbench, eval: &str) {
    let cells = &mut app.event_loop.app.live_session.cells;
    let at = cells.evals.iter().position(|info| info.id == eval);
    let at = u32::try_from(at.expect("there is such an eval")).expect("few");
    cells.select_entry(CellsEntry::Group(at), 20);
    app.send_msg(Msg::TimePassed).settle();
}

/// Opens a second workbench on the same files and the same data directory.
fn open_again(app: &TestWorkbench, remembers: bool) -> TestWorkbench {
    let env = app.env();
    let workspace =
        workspace::load(&app.root, &env, &EvalTypeRegistry::builtin()).expect("it loads");
    let data = tempfile::tempdir().expect("a folder");
    let size = app.event_loop.app.ui.size;
    let opened = OpenedItem::Workspace(Arc::new(workspace));
    let parts = (env.clone(), data, app.root.clone());
    let mut again = TestWorkbench::on(opened, size, None, parts, Vec::new());
    if remembers {
        let choices = ScreenChoices::read(&env);
        again.event_loop.app.restore_choices(choices);
    }
    again.settle();
    again
}

#[test]
fn demo_opens_on_a_judged_cell_and_every_pane_has_content() {
    for (width, height) in SIZES {
        let mut app = TestWorkbench::demo(width, height);
        app.settle();
        // Nothing is judged yet: the question and the transcript are all there is to show.
        assert_eq!(selected(&app), "beam-release/beamline/newest");
        let shown = panes(&app);
        assert!(!shown.contains(&Pane::Prompt), "{shown:?}");
        assert!(
            app.screen().contains("criteria: The answer names"),
            "{}",
            app.screen()
        );
        app.keys("R").settle();
        assert_eq!(selected(&app), "beam-outdated/beamline/newest");
        let filled = app.event_loop.app.layout().filled;
        assert!(
            Pane::ALL.iter().all(|pane| filled.contains(*pane)),
            "{filled:?}"
        );
        if height >= 40 {
            assert_eq!(
                panes(&app).len(),
                6,
                "every pane is drawn at {width}×{height}"
            );
        }
        // The recorded state opens on the same cell.
        let again = open_again(&app, false);
        assert_eq!(selected(&again), "beam-outdated/beamline/newest");
        assert_eq!(panes(&again), panes(&app));
    }
}

#[test]
fn code_check_has_finding_judged_text_and_transcript_only() {
    for (width, height) in SIZES {
        let mut app = judged(width, height);
        go_to(&mut app, "beam-release/beamline/names-a-version");
        for absent in ["function call", "fetched content", "3 call", "4 page"] {
            let screen = app.screen();
            assert!(
                !screen.contains(absent),
                "{absent} at {width}×{height}:\n{screen}"
            );
        }
        let screen = app.screen();
        assert!(screen.contains("5 finding"), "{screen}");
        app.keys("2").settle();
        let screen = app.screen();
        assert!(screen.contains("2 judged text"), "{screen}");
        assert!(screen.contains("Beamline 2.11.0"), "{screen}");
        // A key of an empty pane gives the reason and moves nothing.
        app.keys("1 4");
        assert_eq!(app.event_loop.app.ui.focus, Pane::Cells);
        assert!(
            last_notice(&app).contains("calls no judge"),
            "{}",
            last_notice(&app)
        );
    }
}

#[test]
fn focus_leaves_a_pane_that_the_next_cell_does_not_fill() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("4").settle();
    assert_eq!(app.event_loop.app.ui.focus, Pane::FetchedContent);
    go_to(&mut app, "beam-release/beamline/names-a-version");
    assert_eq!(app.event_loop.app.ui.focus, Pane::Verdict);
}

#[test]
fn eval_row_shows_scores_labels_and_text_and_r_judges_it() {
    for (width, height) in SIZES {
        let mut app = judged(width, height);
        select_eval(&mut app, "newest");
        assert_eq!(panes(&app), [Pane::Cells, Pane::Verdict]);
        let screen = app.screen();
        for part in [
            "5 eval",
            "newest · rubric beamline · judge quick",
            "5 cells: ✓ 3 pass  ✗ 2 fail",
            "scores",
            "0.0 █",
            "against your labels",
        ] {
            assert!(
                screen.contains(part),
                "{part} at {width}×{height}:\n{screen}"
            );
        }
        app.keys("5 G").settle();
        assert!(
            app.screen().contains("criteria: The answer names"),
            "{}",
            app.screen()
        );
        app.keys("1 r")
            .settle_until(|model| model.runs().live().next().is_some());
        assert!(
            last_notice(&app).starts_with("judging 5 cells: "),
            "{}",
            last_notice(&app)
        );
        app.settle();
        assert!(
            last_notice(&app).contains("5 cells"),
            "{}",
            last_notice(&app)
        );
    }
}

#[test]
fn load_error_is_shown_in_full_at_every_size() {
    for (width, height) in [(40, 12), (80, 24), (120, 40), (200, 60)] {
        let mut app = judged(width, height);
        let (text, fixed) = rubric(&app);
        let long = "a-param-that-no-eval-type-has-and-that-is-quite-long";
        let broken = text.replace(
            "params: { pattern:",
            &format!("params: {{ {long}: 1, pattern:"),
        );
        assert_ne!(broken, text);
        app.save("rubrics/beamline.yaml", &broken).settle();
        assert!(
            app.screen().contains("does not load") || app.screen().contains("7 shows it"),
            "{}",
            app.screen()
        );
        app.keys("7").settle();
        let source = crate::tui::content::pane_source(&app.event_loop.app, Pane::Changes);
        let lines: Vec<String> = (0..source.len())
            .map(|at| source.block(at).text.to_string())
            .collect();
        drop(source);
        assert!(lines[0].contains(long), "{lines:?}");
        assert!(
            lines
                .iter()
                .any(|line| line.contains("rubrics/beamline.yaml:")),
            "{lines:?}"
        );
        assert!(
            lines
                .iter()
                .any(|line| line.contains("━━") || line.contains("^^")),
            "{lines:?}"
        );
        // All of it can be read, by scrolling if the pane is low.
        let mut seen = app.screen();
        for _ in 0..40 {
            app.keys("j");
            seen.push_str(&app.screen());
        }
        let shown: String = seen
            .chars()
            .filter(|c| !c.is_whitespace() && *c != '│' && *c != '┃')
            .collect();
        assert!(shown.contains(&long[..12]), "{width}×{height}");
        assert!(shown.contains("lastvalidversion"), "{width}×{height}");
        app.keys("e");
        let editors = std::mem::take(&mut app.terminal_effects);
        assert!(
            matches!(&editors[..], [Effect::OpenEditor { line: 10, .. }]),
            "{editors:?}"
        );
        app.keys("1 L");
        assert!(app.screen().contains("error: "), "{}", app.screen());
        app.keys("esc")
            .save("rubrics/beamline.yaml", &fixed)
            .settle();
        assert!(!app.event_loop.app.shows_load_errors());
    }
}

#[test]
fn restored_file_leaves_no_empty_changes_pane() {
    let mut app = judged(80, 24);
    let (text, _) = rubric(&app);
    app.save(
        "rubrics/beamline.yaml",
        &text.replace("type: regex", "type: regexx"),
    );
    app.settle();
    assert_eq!(panes(&app), [Pane::Cells, Pane::Changes]);
    app.save("rubrics/beamline.yaml", &text).settle();
    assert_eq!(panes(&app), [Pane::Cells, Pane::Verdict]);
    assert!(
        last_notice(&app).contains("loads again"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn tour_of_a_judged_demo_begins_with_its_failures() {
    let app = judged(80, 24);
    let mut again = app.reopen();
    // The notice about the demo's folder leaves the row to the tour.
    again.pass(Millis(60_000));
    let screen = again.screen();
    assert!(
        screen.contains("2/6") && !screen.contains("opening judges everything"),
        "{screen}"
    );
}

#[test]
fn footer_names_what_the_run_key_judges_under_a_filter() {
    let mut app = judged(80, 24);
    app.pass(Millis(60_000));
    assert!(app.screen().contains("R run all"), "{}", app.screen());
    app.keys("/").type_in("eval:newest").keys("enter").settle();
    app.pass(Millis(60_000));
    let screen = app.screen();
    assert!(
        screen.contains("R run shown") && !screen.contains("R run all"),
        "{screen}"
    );
    app.keys("esc").settle();
    app.pass(Millis(60_000));
    assert!(app.screen().contains("R run all"), "{}", app.screen());
}

#[test]
fn broken_save_after_a_good_one_leaves_no_line_about_the_good_one() {
    let mut app = judged(120, 40);
    let (text, fixed) = rubric(&app);
    app.save("rubrics/beamline.yaml", &fixed).settle();
    app.pass(Millis(60_000));
    assert!(app.last_row().contains("3 flips"), "{}", app.last_row());
    let broken = text.replace("type: regex", "type: regexx");
    app.save("rubrics/beamline.yaml", &broken).settle();
    app.save("rubrics/beamline.yaml", &fixed).settle();
    assert!(
        last_notice(&app).contains("loads again"),
        "{}",
        last_notice(&app)
    );
    app.save("rubrics/beamline.yaml", &broken).settle();
    let row = app.last_row();
    assert!(
        !row.contains("loads again") && !row.contains("flips"),
        "{row}"
    );
}

#[test]
fn log_has_errors_warnings_saves_and_flips() {
    let mut app = judged(120, 40);
    let (text, fixed) = rubric(&app);
    let broken = text.replace("type: regex", "type: regexx");
    app.save("rubrics/beamline.yaml", &broken).settle();
    let with_lint = fixed.replace("tool_names: [open_page]", "tool_names: [open_pages]");
    assert_ne!(with_lint, fixed);
    app.save("rubrics/beamline.yaml", &with_lint).settle();
    let log: Vec<&str> = app
        .event_loop
        .app
        .notices
        .log
        .iter()
        .map(|n| n.text.as_str())
        .collect();
    let contains = |parts: &[&str]| {
        let all = |line: &&&str| parts.iter().all(|part| line.contains(part));
        assert!(log.iter().any(|line| all(&line)), "{parts:?} in {log:#?}");
    };
    contains(&["unknown type `regexx`", "rubrics/beamline.yaml:9:11"]);
    contains(&[
        "saved rubrics/beamline.yaml; changed: ",
        "beamline/names-a-version",
    ]);
    contains(&["flip ✗ → ✓ beam-release/beamline/names-a-version, towards your label"]);
    contains(&["saved beamline.yaml: ", "flips"]);
    // A warning of `dicta check`.
    contains(&["open_pages", "beamline.yaml:"]);
    app.keys("L");
    assert!(app.screen().contains("open_pages"), "{}", app.screen());
}

#[test]
fn log_has_room_for_every_line_of_an_error() {
    let mut app = judged(120, 40);
    let (text, _) = rubric(&app);
    let broken = text.replace("type: regex", "type: regexx");
    app.save("rubrics/beamline.yaml", &broken).settle();
    app.keys("L");
    let screen = app.screen();
    for notice in &app.event_loop.app.notices.log {
        let begin: String = notice.text.chars().take(20).collect();
        assert!(screen.contains(&begin), "{begin}: {screen}");
    }
}

#[test]
fn log_names_no_flip_that_a_blind_screen_hides() {
    let mut app = judged(120, 40);
    let (text, _) = rubric(&app);
    // Every cell of the eval fails now, also those without a label, whose verdicts are hidden.
    let failing = text.replace(r"Beamline \d\.\d\b", "no such words");
    assert_ne!(failing, text);
    app.keys("B").settle();
    app.save("rubrics/beamline.yaml", &failing).settle();
    let flips = |app: &TestWorkbench| {
        let blocks = crate::tui::state::overlay::build_log(&app.event_loop.app);
        let lines = blocks
            .iter()
            .filter(|block| block.text.starts_with("flip "));
        lines
            .map(|block| block.text.to_string())
            .collect::<Vec<_>>()
    };
    let hidden = flips(&app);
    app.keys("B").settle();
    assert!(flips(&app).len() > hidden.len(), "{hidden:?}");
}

const LONG_NAME: &str = "sup-03-address-change";

/// Opens a workspace with one transcript of a long name, whose judge passes it and is then rate-limited.
fn rate_limited(width: u16, height: u16) -> TestWorkbench {
    let server = Server::new(|n| match n {
        0 => ServerReply::verdict(true, "it is kind"),
        _ => ServerReply::Refuse(429, "retry-after: 60", "{}".to_owned()),
    });
    let dicta = format!(
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\njudge: wire\njudges:\n  wire: {}\n",
        server.judge("")
    );
    let transcript = format!(
        "{{\"id\":\"{LONG_NAME}\",\"messages\":[{{\"role\":\"assistant\",\"content\":\"hello\"}}]}}\n"
    );
    let mut app = workbench(
        width,
        height,
        &[
            ("dicta.yaml", &dicta),
            ("t.jsonl", &transcript),
            ("r.yaml", super::keys::TONE),
        ],
    );
    app.settle();
    app.keys("R").settle();
    let name = format!("{LONG_NAME}/r/tone");
    assert_eq!(super::outcome(&app, &name), Some(Outcome::Pass));
    go_to(&mut app, &name);
    app.keys("r").settle_until(|model| {
        let mut live = model.runs().live();
        live.any(|(_, run)| !run.rate_limits(Millis(0)).is_empty())
    });
    app
}

#[test]
fn waiting_row_keeps_its_name_and_old_verdict() {
    for (width, height) in SIZES {
        let mut app = rate_limited(width, height);
        let screen = app.screen();
        let rows = cells_pane(&app);
        let row = rows.iter().find(|row| row.contains(LONG_NAME));
        let row = row.unwrap_or_else(|| panic!("the name is cut:\n{screen}"));
        assert!(row.contains('✓'), "{row}");
        let header = screen.lines().next().expect("a row");
        assert_eq!(
            header.matches("wire: rate limit, 1 waits").count(),
            1,
            "{header}"
        );
        app.keys("ctrl-c").settle();
        let header = app.screen().lines().next().expect("a row").to_owned();
        assert!(!header.contains("rate limit"), "{header}");
    }
}

#[test]
fn run_all_judges_what_the_filter_shows() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle()
        .keys("/")
        .type_in("eval:faithful")
        .keys("enter")
        .settle();
    app.keys("R")
        .settle_until(|model| model.runs().live().next().is_some());
    assert_eq!(
        last_notice(&app),
        "judging 5 cells: all for judges, free, time unknown"
    );
    app.settle();
    let total = app.event_loop.app.live_session.cells.total;
    assert_eq!((total.rows, total.rows - total.never_run), (85, 5));
    app.keys("esc R").settle();
    assert_eq!(app.event_loop.app.live_session.cells.total.never_run, 0);
    // A filter without a match judges nothing.
    app.keys("/")
        .type_in("eval:none-such")
        .keys("enter R")
        .settle();
    assert!(
        last_notice(&app).contains("matches no cell"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn paid_run_states_its_size_and_cost_once_in_the_question_and_once_after_it() {
    let server = Server::new(|_| ServerReply::verdict(true, "it is kind"));
    // So expensive that one call costs more than `confirm_usd`.
    let prices = ", prices: { input: 1000, output: 2000 }";
    let mut app = asking(&server, prices, 120, 40);
    app.keys("R").settle();
    let screen = app.screen();
    assert!(
        screen.contains("1 cell: 1 model call") && screen.contains("in all about $"),
        "{screen}"
    );
    assert_eq!(screen.matches("about $").count(), 1, "{screen}");
    app.keys("y")
        .settle_until(|model| model.runs().live().next().is_some());
    assert!(
        last_notice(&app).starts_with("judging 1 cell: 1 call of wire"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn choices_on_the_screen_are_remembered_unless_fresh() {
    let mut app = judged(120, 40);
    app.event_loop.app.restore_choices(ScreenChoices::default());
    app.keys("o o").settle();
    app.keys("T j j enter").settle();
    let theme = app.event_loop.app.ui.theme.name.clone();
    let at = |column| MouseInput {
        action: MouseAction::Pressed,
        column,
        row: 10,
    };
    app.send_msg(Msg::Mouse(at(40)));
    for action in [MouseAction::Dragged, MouseAction::Released] {
        app.send_msg(Msg::Mouse(MouseInput { action, ..at(50) }));
    }
    assert_ne!(
        app.event_loop.app.ui.splits,
        PaneSplits::default(),
        "the border moved"
    );
    app.keys("0").settle();
    let expected = ScreenChoices {
        theme: Some(theme),
        orders: [(app.root.display().to_string(), RowSort::Unlabelled)].into(),
        splits: Some(app.event_loop.app.ui.splits),
        tour_ended: Some(true),
        advance: None,
    };
    assert_eq!(ScreenChoices::read(&app.env()), expected);
    let again = open_again(&app, true);
    let model: &App = &again.event_loop.app;
    assert_eq!(model.live_session.cells.sort, RowSort::Unlabelled);
    assert_eq!(model.ui.splits, app.event_loop.app.ui.splits);
    assert!(!model.shows_tour());
    let mut fresh = open_again(&app, false);
    assert_eq!(fresh.event_loop.app.ui.splits, PaneSplits::default());
    assert!(fresh.event_loop.app.shows_tour());
    fresh.keys("o").settle();
    assert_eq!(
        ScreenChoices::read(&app.env()),
        expected,
        "it writes nothing"
    );
}

#[test]
fn finished_tour_does_not_start_again() {
    let mut app = judged(120, 40);
    app.event_loop.app.restore_choices(ScreenChoices::default());
    app.keys("] 5").settle();
    let (_, fixed) = rubric(&app);
    app.save("rubrics/beamline.yaml", &fixed).settle();
    app.keys("7").settle();
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("v").settle().keys("q").settle();
    let choices = ScreenChoices::read(&app.env());
    assert_eq!(choices.tour_ended, Some(true), "{}", app.screen());
    assert!(!open_again(&app, true).event_loop.app.shows_tour());
}

#[test]
fn citation_key_goes_to_the_judged_text_without_a_place() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/names-a-version");
    app.keys("c").settle();
    assert!(
        last_notice(&app).contains("rests on no single place"),
        "{}",
        last_notice(&app)
    );
    // The judged answer is message 6 of 7; the pane began at message 0.
    let transcript = |screen: &str| -> String {
        let rows = screen
            .lines()
            .skip_while(|line| !line.contains("6 transcript"));
        rows.map(|row| row.chars().take(40).collect::<String>() + "\n")
            .collect()
    };
    let text = transcript(&app.screen());
    assert!(text.contains("[6] assistant"), "{text}");
}

#[test]
fn error_of_a_filter_is_never_cut() {
    for (width, height) in [(40, 12), (80, 24), (120, 40)] {
        let mut app = TestWorkbench::demo(width, height);
        app.settle()
            .keys("/")
            .type_in("label:disagree-with-me")
            .settle();
        let screen = app.screen();
        let rows = cells_pane(&app).join(" ");
        let words: Vec<&str> = rows.split_whitespace().collect();
        let shown = words.join(" ");
        let all = "`label:` takes none, any, pass, fail, unsure, agrees, disagrees";
        let near = "did you mean `label:disagrees`?";
        let told = shown.contains(all) || shown.contains(near);
        assert!(told, "{width}×{height}:\n{screen}");
    }
}

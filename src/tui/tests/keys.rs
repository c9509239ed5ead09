//! Keys in the whole workbench: each story presses keys and checks the screen or the app.

use super::server::{Server, ServerReply};
use super::{demo, go_to, judged, last_notice, runs_in, workbench};
use crate::model::Outcome;
use crate::tui::effect::Effect;
use crate::tui::msg::Msg;
use crate::tui::state::cells::RowId;
use crate::tui::state::cells::RunCellIx;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::pane::Pane;
use crate::tui::state::piece_range::PieceRange;
use crate::tui::state::{App, FooterInput};
use crate::tui::task_failure::TaskFailure;
use crate::tui::testing::TestWorkbench;

/// An eval for a judge that costs money.
pub(super) const TONE: &str =
    "evals:\n  - { id: tone, type: llm_judge, params: { criteria: kind } }\n";

/// Opens a workspace with one judged eval and one transcript; the server is its judge.
pub(super) fn asking(server: &Server, more: &str, width: u16, height: u16) -> TestWorkbench {
    let dicta = format!(
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\njudge: wire\njudges:\n  wire: {}\n",
        server.judge(more)
    );
    let mut app = workbench(
        width,
        height,
        &[
            ("dicta.yaml", &dicta),
            (
                "t.jsonl",
                "{\"id\":\"t\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"},{\"role\":\"assistant\",\"content\":\"go away\"}]}\n",
            ),
            ("r.yaml", TONE),
        ],
    );
    app.settle();
    app
}

#[test]
fn phases_are_shown_until_judges_are_done() {
    let mut app = TestWorkbench::watched(120, 40);
    app.settle();
    app.keys("R").settle_until(|model| begun(model).is_some());
    let words = ["streaming", "waiting", "fetch_url…"];
    // Selects one of the live cells, and follows it in the turn strip.
    go_to_live(&mut app);
    let screen = app.screen();
    assert!(words.iter().any(|word| screen.contains(word)), "{screen}");
    assert!(screen.contains("turn 1"), "{screen}");
    app.settle();
    let screen = app.screen();
    assert!(!words.iter().any(|word| screen.contains(word)), "{screen}");
    assert!(
        last_notice(&app).starts_with("run "),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn text_of_a_judge_at_work_has_no_examples_above_it() {
    let mut app = TestWorkbench::watched(120, 60);
    app.settle();
    let file = "rubrics/beamline.yaml";
    let text = std::fs::read_to_string(app.root.join(file)).expect("the demo's rubric");
    let criteria = "newest Beamline release on https://releases.beamline.example/downloads.\n";
    let examples = format!(
        "{criteria}    examples:\n      - {{ text: Use Beamline 2.11.0., expect: pass }}\n"
    );
    let with_examples = text.replace(criteria, &examples);
    assert_ne!(with_examples, text);
    app.save(file, &with_examples).settle();
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("5 + r")
        .settle_until(|model| begun(model).is_some());
    let screen = app.screen();
    assert!(!screen.contains("example 1"), "{screen}");
    app.settle();
    let screen = app.screen();
    assert!(screen.contains("example 1"), "{screen}");
}

#[test]
fn one_key_shows_finding_of_check() {
    let mut app = workbench(
        120,
        40,
        &[
            ("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n"),
            (
                "t.jsonl",
                "{\"id\":\"t\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"},{\"role\":\"assistant\",\"content\":\"Your REFUND is on its way\"}]}\n",
            ),
            (
                "r.yaml",
                "evals:\n  - { id: word, type: contains, params: { patterns: [refund] } }\n",
            ),
        ],
    );
    app.settle();
    app.keys("R").settle();
    go_to(&mut app, "t/r/word");
    let screen = app.screen();
    assert!(screen.contains("c shows it in the transcript"), "{screen}");
    app.keys("c").settle();
    let document = &app.event_loop.app.live_session.transcript_pane;
    let PieceRange { piece, range } = document.selected_quote.clone().expect("gone to");
    let doc = document.loaded_document().expect("read");
    assert_eq!(&doc.text_of(&doc.pieces[piece])[range], "REFUND");
}

/// Returns a row whose judge works and has streamed some text.
fn begun(model: &App) -> Option<RowId> {
    let cells = &model.live_session.cells;
    let mut ids = (0..).map(RowId).take(cells.rows.len());
    ids.find(|row| {
        let Some(row) = cells.row(*row).filter(|row| row.is_live()) else {
            return false;
        };
        let at = row.slots.first().and_then(|slot| slot.run_cell);
        let run = model.live_session.runs.by_ticket.values().last();
        at.zip(run).is_some_and(|(RunCellIx { cell, .. }, run)| {
            let cell = run.state.cells.get(cell.index());
            cell.is_some_and(|cell| !cell.judge_trace.is_empty())
        })
    })
}

fn go_to_live(app: &mut TestWorkbench) {
    let row = begun(&app.event_loop.app).expect("a judge is at work");
    assert!(app.event_loop.app.live_session.cells.select_row(row));
    app.send_msg(Msg::TimePassed);
}

#[test]
fn raw_key_that_changes_no_visible_pane_shows_a_notice() {
    let mut app = judged(80, 24);
    go_to(&mut app, "beam-upgrade/beamline/names-a-version");
    app.keys("6 x");
    assert_eq!(
        last_notice(&app),
        "only a judge trace has raw data: select a judged cell"
    );
    let shows_raw = |app: &TestWorkbench| app.event_loop.app.session().trace_panes.shows_raw;
    assert!(!shows_raw(&app));
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("6 x");
    assert!(shows_raw(&app));
    let notice = "2, 3 and 4 show raw data now: the exact bytes of the judge trace";
    assert_eq!(last_notice(&app), notice);
    // The prompt shows the change itself.
    app.keys("2 x");
    assert!(!shows_raw(&app));
    assert_eq!(last_notice(&app), notice);
}

#[test]
fn bracket_keys_select_problems_in_both_directions() {
    let mut app = judged(80, 24);
    let mut seen = Vec::new();
    let selected = |app: &TestWorkbench| app.event_loop.app.live_session.cells.selected_row();
    let count = {
        let total = &app.event_loop.app.live_session.cells.total;
        total.fail + total.error
    };
    assert!(count > 2);
    for _ in 0..count {
        app.keys("]");
        let row = selected(&app).expect("a row");
        let cells = &app.event_loop.app.live_session.cells;
        assert!(cells.row(row).expect("it is known").is_problem());
        seen.push(row);
    }
    let mut different = seen.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), seen.len(), "none came twice");
    for row in seen.iter().rev().skip(1) {
        app.keys("[");
        assert_eq!(selected(&app), Some(*row));
    }
}

#[test]
fn filter_applies_with_every_key_and_esc_restores_rows() {
    let mut app = judged(80, 24);
    let listed = |app: &TestWorkbench| app.event_loop.app.live_session.cells.total;
    let all = listed(&app);
    app.keys("/").type_in("outcome:fail").keys("enter");
    assert_eq!(app.event_loop.app.live_session.cells.filter, "outcome:fail");
    assert!(app.screen().contains("outcome:fail"));
    // An invalid filter shows its problem and can't be accepted.
    app.keys("/").type_in(" outcome:bad").keys("enter");
    let problem = match &app.event_loop.app.ui.footer_input {
        Some(FooterInput::Filter { problem, .. }) => problem.clone(),
        _ => None,
    };
    let problem = problem.expect("it is still typed, with a problem");
    assert!(problem.contains("bad"), "{problem}");
    app.keys("esc");
    assert_eq!(app.event_loop.app.live_session.cells.filter, "outcome:fail");
    app.keys("esc");
    assert_eq!(app.event_loop.app.live_session.cells.filter, "");
    assert_eq!(listed(&app), all);
}

#[test]
fn search_wraps_around_with_notice() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("6 /").type_in("Beamline").keys("enter").settle();
    let at = |app: &TestWorkbench| {
        let find = app
            .event_loop
            .app
            .live_session
            .transcript_pane
            .scroll
            .search
            .clone();
        find.expect("it is searched")
            .current_match
            .expect("it was found")
    };
    let first = at(&app);
    let mut seen = vec![first];
    while last_notice(&app) != "the search continues from the beginning" {
        app.keys("n").settle();
        seen.push(at(&app));
        assert!(seen.len() < 100, "it wraps");
    }
    assert_eq!(seen.pop(), Some(first));
    assert!(seen.len() > 2);
    app.keys("N").settle();
    assert_eq!(last_notice(&app), "the search continues from the end");
    assert_eq!(Some(&at(&app)), seen.last());
    app.keys("esc");
    assert_eq!(
        app.event_loop
            .app
            .live_session
            .transcript_pane
            .scroll
            .search,
        None
    );
    assert_eq!(app.event_loop.app.ui.focus, Pane::Transcript);
}

#[test]
fn numbers_go_to_panes_and_zoom_fills_the_screen() {
    let mut app = judged(80, 24);
    let panes = [
        ("1", Pane::Cells),
        ("2", Pane::Prompt),
        ("3", Pane::FunctionCall),
        ("4", Pane::FetchedContent),
        ("5", Pane::Verdict),
        ("6", Pane::Transcript),
    ];
    for (key, pane) in panes {
        app.keys(key);
        assert_eq!(app.event_loop.app.ui.focus, pane);
        let layout = app.event_loop.app.layout();
        assert!(
            layout.panes.iter().any(|shown| shown.pane == pane),
            "{pane:?}"
        );
        app.keys("+");
        let zoomed = app.event_loop.app.layout().panes;
        assert_eq!(zoomed.len(), 1, "{pane:?}");
        app.keys(if pane == Pane::Verdict { "esc" } else { "+" });
        assert!(!app.event_loop.app.ui.zoomed);
    }
}

#[test]
fn available_judges_are_listed_and_called_only_when_chosen() {
    let mut app = judged(80, 24);
    let cells = &app.event_loop.app.live_session.cells;
    let ids = (0..cells.rows.len()).filter_map(|at| u32::try_from(at).ok());
    let unread = ids.map(crate::tui::state::cells::RowId).find(|row| {
        let mark = cells
            .row(*row)
            .map(crate::tui::state::cells::CellsRow::status);
        mark == Some(crate::tui::state::cells::RowStatus::Decided(
            Outcome::NotApplicable,
        ))
    });
    assert!(
        app.event_loop
            .app
            .live_session
            .cells
            .select_row(unread.expect("the demo has one"))
    );
    let before = app.event_loop.runtime.made().len();
    app.keys("J").settle();
    let found = match app.event_loop.app.overlays.last() {
        Some(Overlay::Judges { judges: found, .. }) => found.clone(),
        _ => None,
    };
    // The judges in the list depend on the machine.
    assert!(found.is_some(), "they were looked for");
    app.keys("esc").settle();
    assert!(app.event_loop.app.overlays.is_empty());
    assert_eq!(app.event_loop.runtime.made().len(), before);
}

#[test]
fn failed_search_for_judges_is_an_error_and_not_an_empty_list() {
    let mut app = judged(80, 24);
    go_to(&mut app, "refund-01/support/tone");
    let row = app.event_loop.app.live_session.cells.selected_row();
    app.keys("J").settle();
    if let Some(Overlay::Judges { judges, .. }) = app.event_loop.app.overlays.last_mut() {
        *judges = None;
    }
    app.send_msg(Msg::JudgesFound {
        row: row.expect("a selected cell"),
        judges: Err(TaskFailure::from("the work panicked")),
    });
    assert!(app.event_loop.app.overlays.is_empty());
    assert_eq!(
        last_notice(&app),
        "dicta could not search for judges: the work panicked"
    );
}

#[test]
fn paid_run_asks_first_and_no_starts_nothing() {
    let server = Server::new(|_| ServerReply::verdict(true, "it is kind"));
    let mut app = asking(&server, ", prices: { input: 1000, output: 3000 }", 80, 24);
    app.keys("R").settle();
    let screen = app.screen();
    assert!(screen.contains("1 cell: "), "{screen}");
    assert!(screen.contains('$'), "{screen}");
    for no in ["n", "esc", "q", "ctrl-c"] {
        app.keys(no).settle();
        assert!(app.event_loop.app.overlays.is_empty(), "{no}");
        assert_eq!((server.asked(), app.end()), (0, None), "{no}");
        app.keys("R").settle();
    }
    // Enter must not accept a question about money.
    app.keys("enter").settle();
    assert_eq!(server.asked(), 0);
    if app.event_loop.app.overlays.is_empty() {
        app.keys("R").settle();
    }
    app.keys("y").settle();
    assert_eq!(server.asked(), 1);
    assert_eq!(super::outcome(&app, "t/r/tone"), Some(Outcome::Pass));
    go_to(&mut app, "t/r/tone");
    assert!(app.screen().contains("it is kind"), "{}", app.screen());
}

#[test]
fn quit_during_run_asks_and_no_continues() {
    let mut app = TestWorkbench::watched(80, 24);
    app.settle();
    let live =
        |model: &crate::tui::state::App| model.runs().live().any(|(_, run)| run.judge_started > 0);
    app.keys("R").settle_until(live);
    app.keys("q");
    assert!(matches!(
        app.event_loop.app.overlays.last(),
        Some(Overlay::QuitWhileRunning)
    ));
    app.keys("n");
    assert_eq!(app.end(), None);
    assert!(live(&app.event_loop.app), "it goes on");
    app.keys("q y");
    assert_eq!(app.end(), Some(0));
    let farewell = app.close();
    assert!(farewell.contains("dicta"), "{farewell}");
}

#[test]
fn ctrl_c_cancels_run_then_quits() {
    let mut app = TestWorkbench::watched(80, 24);
    app.settle();
    app.keys("R")
        .settle_until(|model| model.runs().live().any(|(_, run)| run.judge_started > 0));
    app.keys("ctrl-c");
    assert_eq!(app.end(), None);
    assert!(
        last_notice(&app).starts_with("cancelling 1 run"),
        "{}",
        last_notice(&app)
    );
    app.settle();
    assert!(app.event_loop.app.runs().live().next().is_none());
    assert!(
        last_notice(&app).contains(" cancelled: "),
        "{}",
        last_notice(&app)
    );
    app.keys("ctrl-c");
    assert_eq!(app.end(), Some(0));
}

#[test]
fn help_on_a_wide_screen_shows_descriptions_in_full_and_reasons_in_their_column() {
    let mut app = demo(200, 60);
    let screen = app.keys("?").screen();
    let help = "Lists every key that works here. Type to search; enter runs the selected command.";
    let column = |text: &str| {
        let line = screen.lines().find(|line| line.contains(text));
        let line = line.unwrap_or_else(|| panic!("{text}: {screen}"));
        let before = line.split(text).next().unwrap_or_default();
        before.chars().count()
    };
    assert_eq!(column("not now: "), column(help));
}

#[test]
fn help_of_a_replay_begins_with_its_own_keys() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("v").settle();
    app.keys("?").settle();
    let screen = app.screen();
    // The footer names the key, too, below the help.
    let place = |text: &str| screen.find(text).expect("a row of help");
    assert!(place("play or pause") < place("redraw"), "{screen}");
}

#[test]
fn replay_starts_from_cells_and_returns_to_them() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/newest");
    let before = app.screen();
    let runs = runs_in(&app.root.join(".dicta/runs"));
    for back in ["q", "esc"] {
        app.keys("v").settle();
        let replay = app.event_loop.app.replay.as_ref().expect("it plays");
        assert_eq!(replay.player.position(), replay.player.len(), "to its end");
        assert!(
            app.screen().to_lowercase().contains("replay"),
            "{}",
            app.screen()
        );
        // A replay judges nothing.
        app.keys("R r").settle();
        assert!(
            last_notice(&app).contains("in a replay"),
            "{}",
            last_notice(&app)
        );
        app.keys(back).settle();
        assert!(app.event_loop.app.replay.is_none(), "{back}");
    }
    assert_eq!(runs_in(&app.root.join(".dicta/runs")), runs);
    assert_eq!(app.end(), None);
    let list = |screen: &str| {
        screen
            .lines()
            .skip(1)
            .take(10)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&app.screen()), list(&before));
}

#[test]
fn one_key_shows_citation() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("c").settle();
    let session = &app.event_loop.app.live_session;
    let quoted = session.transcript_pane.selected_quote.is_some()
        || session.trace_panes.selected_quote.is_some();
    assert!(
        quoted || last_notice(&app).contains("cite"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn copy_commands_copy_expected_texts() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("y n y c 5 y v 6 y m").settle();
    let root = app.root.display().to_string();
    let copied = &app.event_loop.screen.copied;
    assert_eq!(copied[0], "beam-release/beamline/newest");
    assert_eq!(
        copied[1],
        format!("dicta run {root} --where 'transcript:beam-release rubric:beamline eval:newest'")
    );
    assert!(copied[2].contains("newest"), "{}", copied[2]);
    assert!(
        copied[3].contains("You are a research assistant"),
        "{}",
        copied[3]
    );
    assert_eq!(copied.len(), 4);
}

#[test]
fn editor_opens_at_eval_and_its_failure_is_reported() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-release/beamline/official-link");
    app.keys("e");
    let path = app.root.join("rubrics/beamline.yaml");
    let text = std::fs::read_to_string(&path).expect("it is there");
    let at = text
        .lines()
        .position(|line| line.contains("id: official-link"));
    let wanted = u32::try_from(at.expect("it is there")).expect("a short file") + 1;
    let asked = app.terminal_effects.pop();
    assert!(
        matches!(&asked, Some(Effect::OpenEditor { path: p, line, .. }) if *p == path && *line == wanted),
        "{asked:?}"
    );
    app.send_msg(Msg::EditorClosed(Err(
        "`vi` ended with exit status: 3".into()
    )));
    assert!(
        last_notice(&app).contains("exit status: 3"),
        "{}",
        last_notice(&app)
    );
    // The file is checked when the editor ends, without waiting for the watcher.
    let (_, edited) = super::rubric(&app);
    std::fs::write(&path, edited).expect("it is written");
    app.send_msg(Msg::EditorClosed(Ok(())));
    app.settle_until(|model| {
        model
            .saves
            .report
            .as_ref()
            .is_some_and(|r| r.flips.len() == 3)
    });
    app.settle();
}

#[test]
fn theme_is_previewed_and_esc_restores_it() {
    let mut app = demo(80, 24);
    let before = app.event_loop.app.ui.theme.name.clone();
    let ground = app.buffer()[(0, 0)].style();
    app.keys("T j");
    assert_ne!(app.event_loop.app.ui.theme.name, before);
    app.keys("esc");
    assert_eq!(app.event_loop.app.ui.theme.name, before);
    assert_eq!(app.buffer()[(0, 0)].style(), ground);
    app.keys("T j enter");
    assert_ne!(app.event_loop.app.ui.theme.name, before);
    assert!(
        last_notice(&app).contains("--theme"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn a_pasted_text_runs_nothing() {
    let mut app = demo(80, 24);
    let paste = |app: &mut TestWorkbench, text: &str| {
        app.send_msg(Msg::Pasted(text.to_owned())).settle();
    };
    for text in ["q", "R\nq\ny\n", "\u{1b}", "\u{3}", "e\nW\nJ\n"] {
        paste(&mut app, text);
        assert_eq!(app.end(), None);
        assert!(app.event_loop.runtime.made().is_empty() && app.terminal_effects.is_empty());
        assert!(app.event_loop.app.overlays.is_empty());
    }
    assert!(last_notice(&app).contains("pasted text runs nothing"));
    app.keys("/");
    paste(&mut app, "brief\nq\r\u{1b}[A");
    assert!(matches!(
        app.event_loop.app.ui.footer_input,
        Some(FooterInput::Filter { .. })
    ));
    app.keys("esc");
    // Under a question the key has no effect.
    let server = Server::new(|_| ServerReply::verdict(true, "ok"));
    let mut app = asking(&server, ", prices: { input: 1000, output: 3000 }", 80, 24);
    app.keys("R").settle();
    paste(&mut app, "y\n");
    assert_eq!(server.asked(), 0);
    assert_eq!(app.event_loop.app.overlays.len(), 1);
}

#[test]
fn tour_steps_complete_automatically() {
    let mut app = demo(120, 40);
    let done = |app: &TestWorkbench| app.event_loop.app.tour.as_ref().map(|tour| tour.done);
    app.keys("R").settle();
    assert_eq!(done(&app), Some([true, false, false, false, false, false]));
    app.keys("] enter").settle();
    assert_eq!(done(&app).map(|done| done[1]), Some(true));
    let (_, edited) = super::rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    app.pass(crate::model::Millis(5000)).settle();
    assert_eq!(done(&app), Some([true, true, true, true, false, false]));
    app.keys("v").settle();
    assert_eq!(done(&app).map(|done| done[4]), Some(true));
}

#[test]
fn quit_during_the_run_of_a_variant_asks_and_ctrl_c_cancels_it() {
    let mut app = TestWorkbench::watched(80, 24);
    app.settle();
    app.event_loop.app.judged_variants = 1;
    app.keys("q");
    assert!(matches!(
        app.event_loop.app.overlays.last(),
        Some(Overlay::QuitWhileRunning)
    ));
    app.keys("n");
    assert_eq!(app.event_loop.app.exit_code, None);
    app.keys("ctrl-c");
    assert_eq!(app.event_loop.app.judged_variants, 0);
    assert!(app.screen().contains("cancelling the run of the variant"));
}

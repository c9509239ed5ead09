//! The blind screen: it hides verdicts until the user has labelled them.

use super::look::rows;
use super::looks::same;
use super::{go_to, judged, last_notice, rubric};
use crate::model::Millis;
use crate::tui::state::cells::{RowId, RowSort, RowStatus};
use crate::tui::state::pane::Pane;
use crate::tui::testing::TestWorkbench;

/// Opens the demo without labels.
fn unlabelled(width: u16, height: u16) -> TestWorkbench {
    let mut app = judged(width, height);
    app.save("labels.jsonl", "").settle();
    app.event_loop.app.saves.report = None;
    app
}

/// Removes the evals on single messages, because such decisions can't be labelled.
fn without_messages(app: &mut TestWorkbench) {
    let path = "rubrics/tool-work.yaml";
    let text = std::fs::read_to_string(app.root.join(path)).expect("it is there");
    let less = text.replace("    trigger: every_turn\n", "");
    assert_ne!(text, less);
    app.save(path, &less).settle();
}

/// Returns the first text on the screen that reveals a verdict: an outcome glyph, or words of a judge or check.
fn gives_away(app: &TestWorkbench, rows: &[RowId]) -> Option<String> {
    let screen = app.screen();
    let flat: String = screen
        .split(['\n', '│'])
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ");
    let cells = &app.event_loop.app.live_session.cells;
    let mut found = ["✓", "✗", "⇄", "agrees"]
        .iter()
        .find(|mark| screen.contains(**mark))
        .map(|mark| (*mark).to_owned());
    for row in rows {
        let why = cells
            .row(*row)
            .and_then(|row| row.decision_explanation())
            .map_or("", |why| why);
        let words: String = why.chars().take(20).collect();
        if words.len() > 12 && flat.contains(&words) {
            found = Some(words);
        }
    }
    found.map(|what| format!("`{what}` in\n{screen}"))
}

#[test]
fn blind_screen_shows_no_verdict() {
    let mut app = unlabelled(120, 40);
    without_messages(&mut app);
    let (text, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    assert!(app.screen().contains("3 flips"));
    app.keys("B 0").settle();
    app.pass(Millis(60_000));
    let cells = &app.event_loop.app.live_session.cells;
    let rows: Vec<RowId> = (0..).map(RowId).take(cells.rows.len()).collect();
    let open = cells
        .rows
        .iter()
        .filter(|row| row.message.is_none() && row.decision.is_some());
    assert!(open.clone().count() > 50);
    assert!(
        open.clone()
            .all(|row| row.status() == RowStatus::Hidden && row.visible_decision().is_none())
    );
    assert!(app.screen().contains(" BLIND "));
    for name in [
        "beam-quote/beamline/names-a-version",
        "beam-injected/beamline/newest",
        "refund-03/support/grounded",
    ] {
        for (width, height) in [(120, 40), (80, 24), (200, 60)] {
            app.resize(width, height);
            for pane in [
                "1", "2", "3", "4", "5", "6", "7", "5 X", "X", "+", "+", "S", "esc", "c", "] 1",
            ] {
                go_to(&mut app, name);
                app.keys(pane).settle();
                app.pass(Millis(60_000));
                if pane == "] 1" {
                    assert_eq!(
                        last_notice(&app),
                        "nothing failed, flipped or is in error among what is listed"
                    );
                }
                assert_eq!(gives_away(&app, &rows), None, "{name}, {pane}");
            }
        }
    }
    // A filter, a copied text and a replay must not reveal it either.
    app.keys("1 /")
        .type_in("outcome:fail,pass")
        .keys("enter")
        .settle();
    assert_eq!(app.event_loop.app.live_session.cells.matching, 0);
    app.keys("esc /")
        .type_in("is:problem")
        .keys("enter")
        .settle();
    assert_eq!(app.event_loop.app.live_session.cells.matching, 0);
    app.keys("esc");
    go_to(&mut app, "refund-03/support/grounded");
    app.keys("5 y v v").settle();
    assert!(
        app.event_loop.screen.copied[0].starts_with("hidden until you label it"),
        "{:?}",
        app.event_loop.screen.copied
    );
    assert_eq!(
        last_notice(&app),
        "a replay would show the hidden verdicts: press B first to show them"
    );
    // A run and a save must not reveal it either.
    app.keys("R").settle();
    assert!(!last_notice(&app).contains('✓'), "{}", last_notice(&app));
    app.save("rubrics/beamline.yaml", &text)
        .settle()
        .pass(Millis(60_000));
    assert_eq!(gives_away(&app, &rows), None);
    // The changes are next to the cells, and not next to the transcript that the user reads.
    app.keys("1").settle();
    assert!(
        app.screen()
            .contains("what moved is hidden until you label it"),
        "{}",
        app.screen()
    );
}

#[test]
fn label_reveals_only_its_own_decision() {
    let mut app = unlabelled(120, 40);
    app.keys("B");
    go_to(&mut app, "refund-03/support/grounded");
    for (width, height) in [(80, 24), (200, 60), (120, 40)] {
        app.resize(width, height);
        same(&format!("blind_{width}x{height}"), &rows(&app));
    }
    assert!(
        app.screen()
            .contains("hidden until you label it: p pass, f"),
        "{}",
        app.screen()
    );
    let at = app.event_loop.app.live_session.cells.cursor_position();
    app.keys("f").settle();
    assert_eq!(
        last_notice(&app),
        "labelled refund-03 × grounded: fail, the verdict agrees (U takes it back)"
    );
    assert!(app.screen().contains("label ✗ agrees"), "{}", app.screen());
    assert_eq!(
        app.event_loop.app.live_session.cells.cursor_position(),
        at,
        "it stays where it is"
    );
    app.keys("s");
    let cells = &app.event_loop.app.live_session.cells;
    let now = cells
        .selected_row()
        .and_then(|row| cells.row(row))
        .expect("a row");
    assert!(now.hidden && now.label.is_none());
    app.keys("U").settle();
    assert!(
        app.screen().contains("hidden until you label it"),
        "{}",
        app.screen()
    );
    app.keys("B");
    assert!(!app.screen().contains(" BLIND "));
}

#[test]
fn low_blind_screen_shows_the_whole_criteria_above_the_fold() {
    let mut app = unlabelled(80, 24);
    let path = "rubrics/support.yaml";
    let text = std::fs::read_to_string(app.root.join(path)).expect("it is there");
    let criterion = "Every number, date and amount in the answer occurs in a tool result.";
    // Six rows: with the hint, the pane needs more than its usual share of the screen.
    let long = format!(
        "{criterion} {}",
        "A price without a currency is an amount too. ".repeat(8)
    );
    app.save(path, &text.replace(criterion, long.trim()))
        .settle();
    app.keys("B");
    go_to(&mut app, "refund-03/support/grounded");
    app.keys("6").settle();
    let eval = app.event_loop.app.selected_eval().expect("an eval");
    let texts = app.event_loop.app.question_texts(eval);
    let criteria: Vec<String> = texts[0].1.split_whitespace().map(str::to_owned).collect();
    assert_eq!(texts[0].0, "criteria");
    let screen = app.screen();
    let pane: Vec<&str> = screen
        .lines()
        .take_while(|line| !line.starts_with('┏'))
        .collect();
    let shown = pane.join(" ").replace(['│', '█'], " ");
    let shown: Vec<&str> = shown.split_whitespace().collect();
    assert!(shown.join(" ").contains(&criteria.join(" ")), "{screen}");
}

#[test]
fn second_blind_key_restores_the_order_and_the_focus() {
    let mut app = unlabelled(80, 24);
    go_to(&mut app, "refund-03/support/grounded");
    let screen = |app: &TestWorkbench| {
        let model = &app.event_loop.app;
        (
            model.live_session.cells.sort,
            model.ui.focus,
            model.ui.tab_pane,
        )
    };
    for (keys, focus, tab_pane) in [
        ("2 1", Pane::Cells, Pane::Prompt),
        ("5", Pane::Verdict, Pane::Verdict),
    ] {
        app.keys(keys).settle();
        let before = (RowSort::ProblemsFirst, focus, tab_pane);
        assert_eq!(screen(&app), before);
        app.keys("B").settle();
        assert_eq!(
            screen(&app),
            (RowSort::FileOrder, Pane::Transcript, Pane::Transcript)
        );
        app.keys("B").settle();
        assert_eq!(screen(&app), before);
    }
    // What the user chooses in the meantime stays.
    app.keys("B 1 o o 5 B").settle();
    assert_eq!(
        screen(&app),
        (RowSort::Disagreements, Pane::Verdict, Pane::Verdict)
    );
}

#[test]
fn second_blind_key_restores_the_pane_next_to_the_cells() {
    let mut app = unlabelled(80, 24);
    go_to(&mut app, "refund-03/support/grounded");
    app.keys("2 1 B 1 B").settle();
    let ui = &app.event_loop.app.ui;
    assert_eq!((ui.focus, ui.tab_pane), (Pane::Cells, Pane::Prompt));
}

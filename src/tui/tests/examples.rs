//! Examples in the whole workbench: checked before a save judges anything else, shown at the top, gone when fixed.

use std::fs;

use crate::model::Millis;
use crate::tui::effect::Effect;
use crate::tui::state::edit_report::summarize;
use crate::tui::state::saves::PARTIAL_WRITE_WINDOW;
use crate::tui::testing::TestWorkbench;

const BEAMLINE: &str = "rubrics/beamline.yaml";
const WRONG: &str = r"'Beamline \d\.\d\b'";
const RIGHT: &str = r"'Beamline \d+\.\d+'";
const FIRST: &str = "    examples:\n";
const MORE: &str =
    "    examples:\n      - { text: \"Beamline 2.10 it is.\", expect: pass, why: two digits }\n";
const MISSES: &str = "✗ 1 example misses: names-a-version";

fn judged(width: u16, height: u16) -> (TestWorkbench, String) {
    let mut app = TestWorkbench::demo(width, height);
    app.settle().keys("R").settle();
    let text = fs::read_to_string(app.root.join(BEAMLINE)).expect("the demo's rubric");
    assert!(text.contains(WRONG) && text.contains(FIRST));
    (app, text)
}

fn log(app: &TestWorkbench) -> Vec<String> {
    let log = &app.event_loop.app.notices.log;
    log.iter().map(|notice| notice.text.clone()).collect()
}

#[test]
fn missed_example_is_shown_until_fixed() {
    for (width, height) in [(120, 40), (80, 24)] {
        let (mut app, text) = judged(width, height);
        assert!(!app.screen().contains("example misses"));
        let broken = text.replace(FIRST, MORE);
        app.save(BEAMLINE, &broken)
            .settle_until(|model| model.examples.misses().next().is_some());
        let screen = app.screen();
        assert!(screen.contains(MISSES), "{screen}");
        app.settle();
        let screen = app.screen();
        assert!(screen.contains(MISSES), "{screen}");
        let log_texts = log(&app);
        let expected =
            "1 example misses: names-a-version; saved beamline.yaml: only examples changed";
        assert!(
            log_texts.iter().any(|text| text.starts_with(expected)),
            "{log_texts:?}"
        );
        // In the changes pane the miss comes first, and `e` opens its line.
        app.keys("7");
        let screen = app.screen();
        assert!(
            screen.contains("✗ names-a-version example 1: expected pass,"),
            "{screen}"
        );
        app.keys("e");
        let at = broken.lines().position(|line| line.contains("2.10 it is"));
        let line = at.and_then(|at| u32::try_from(at + 1).ok());
        let Some(Effect::OpenEditor { line: opened, .. }) = app.terminal_effects.last() else {
            panic!("{:?}", app.terminal_effects);
        };
        assert_eq!(Some(*opened), line);
        app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
        app.save(BEAMLINE, &broken.replace(WRONG, RIGHT)).settle();
        let screen = app.screen();
        assert!(!screen.contains("example misses"), "{screen}");
        assert!(screen.contains("✓ 8 examples hold"), "{screen}");
        let report = app.event_loop.app.saves.report.as_ref();
        let expected = report.map(summarize).unwrap_or_default();
        assert_eq!(
            expected,
            "8 examples hold; saved beamline.yaml: 3 flips, all 3 towards your labels"
        );
    }
}

#[test]
fn eval_lists_examples_next_to_verdict() {
    let (mut app, text) = judged(120, 60);
    app.save(BEAMLINE, &text.replace(FIRST, MORE)).settle();
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells.rows.iter().position(|row| {
        let eval = &cells.evals[row.eval as usize];
        eval.id == "names-a-version" && row.decision.is_some()
    });
    let row = row.and_then(|at| u32::try_from(at).ok()).expect("a row");
    let entry = crate::tui::state::cells::CellsEntry::Row(crate::tui::state::cells::RowId(row));
    app.event_loop.app.live_session.cells.list.selected = Some(entry);
    app.keys("5").settle();
    let screen = app.screen();
    assert!(screen.contains("examples"), "{screen}");
    assert!(
        screen.contains("✗ example 1: expected pass, got fail"),
        "{screen}"
    );
    assert!(
        screen.contains("✓ example 2: pass, as expected"),
        "{screen}"
    );
    // In the changes pane, `e` opens the missed example.
    assert!(screen.contains("names-a-version, e edits"), "{screen}");
}

const FREE: &str = "id: free
applies_to: { tags: [beamline] }
evals:
  - id: sorry
    type: llm_judge
    params: { criteria: 'The answer mentions \"sorry\".' }
    examples:
      - { text: I am sorry., expect: pass }
      - { text: WHAT, expect: pass }
";

#[test]
fn free_judge_judges_examples_before_cells() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle();
    app.save("rubrics/free.yaml", &FREE.replace("WHAT", "No."));
    app.settle_until(|model| model.examples.judged.values().any(|all| !all.is_empty()));
    let model = &app.event_loop.app;
    let live = model.live_session.runs.by_ticket.values();
    assert_eq!(
        live.map(|run| run.finished_cells).sum::<u64>(),
        0,
        "no cell was judged"
    );
    assert!(
        app.screen().contains("✗ 1 example misses: sorry"),
        "{}",
        app.screen()
    );
    app.settle();
    let cells = &app.event_loop.app.live_session.cells;
    let decided = cells
        .rows
        .iter()
        .filter(|row| cells.evals[row.eval as usize].id == "sorry" && row.decision.is_some());
    assert!(decided.count() > 0, "the cells were judged afterwards");
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    app.save("rubrics/free.yaml", &FREE.replace("WHAT", "So sorry!"))
        .settle();
    assert!(!app.screen().contains("example misses"), "{}", app.screen());
    assert!(
        log(&app)
            .iter()
            .any(|text| text.starts_with("9 examples hold; ")),
        "{:?}",
        log(&app)
    );
}

#[test]
fn judge_of_unknown_price_is_called_for_examples_only_after_an_answer() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle();
    let config = app.root.join("dicta.yaml");
    let text = fs::read_to_string(&config).expect("the demo's file");
    let costs = "\n  costly: { provider: openai, model: m, base_url: 'https://judge.example/v1', api_key_env: NO_SUCH_KEY }\n";
    let with = text.replacen("\njudges:\n", &format!("\njudges:{costs}"), 1);
    assert_ne!(with, text, "{text}");
    app.save("dicta.yaml", &with).settle();
    assert!(
        app.event_loop.app.saves.problems.is_empty(),
        "{:?}",
        app.event_loop.app.saves.problems
    );
    let rubric = FREE
        .replace("WHAT", "No.")
        .replace("id: free\n", "id: free\njudge: costly\n");
    app.save("rubrics/free.yaml", &rubric).settle();
    let question = "2 examples by costly, 2 model calls, cost unknown";
    assert!(app.screen().contains(question), "{}", app.screen());
    app.keys("n").settle().keys("7");
    let expected = "2 examples wait: costly may cost, `dicta check --examples` asks first";
    assert!(app.screen().contains(expected), "{}", app.screen());
    assert!(app.event_loop.app.examples.judged.is_empty());
}

#[test]
fn without_examples_no_message_mentions_them() {
    let mut app = TestWorkbench::demo(120, 40);
    let text = fs::read_to_string(app.root.join(BEAMLINE)).expect("the demo's rubric");
    let plain_lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("examples:") && !line.contains("expect:"))
        .collect();
    app.settle()
        .save(BEAMLINE, &plain_lines.join("\n"))
        .settle();
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    let number = app.event_loop.app.examples.number;
    let log_texts = log(&app).len();
    app.save(BEAMLINE, &plain_lines.join("\n").replace(WRONG, RIGHT))
        .settle()
        .keys("7");
    assert!(app.event_loop.app.examples.number > number);
    // The judged text contains a link to a host of the top-level domain `example`.
    let screen = app.screen().replace("beamline.example", "");
    assert!(!screen.contains("example"), "{screen}");
    let later = log(&app).split_off(log_texts);
    assert!(later.iter().all(|text| !text.contains("example")));
}

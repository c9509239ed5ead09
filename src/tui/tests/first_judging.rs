//! The judging of a workspace without a recorded run, when it opens.

use std::cell::Cell;
use std::path::Path;

use tempfile::TempDir;

use super::{demo_in, files, runs_in};
use crate::model::Outcome;
use crate::tui::command::{UiCommand, find_spec};
use crate::tui::state::cells::RowStatus;
use crate::tui::state::pane::Pane;
use crate::tui::testing::TestWorkbench;
use crate::workspace;

const TRANSCRIPT: &str = "{\"id\":\"one\",\"messages\":[{\"role\":\"user\",\"content\":\"which?\"},{\"role\":\"assistant\",\"content\":\"Use 2.69.\"}]}\n";
const CHECK: &str =
    "id: r\nevals:\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n";
const JUDGED: &str = "id: r\nevals:\n  - id: polite\n    type: llm_judge\n    params: { criteria: The answer does not ask for a password. }\n";

fn open(data: TempDir, root: &Path) -> TestWorkbench {
    TestWorkbench::judging_on_open(120, 40, data, root)
}

fn open_demo() -> TestWorkbench {
    let data = tempfile::tempdir().expect("a folder");
    let root = demo_in(data.path());
    open(data, &root)
}

/// Opens a workspace with one transcript, this rubric and these settings, and waits until nothing is left to do.
fn open_with(config: &str, rubric: &str) -> TestWorkbench {
    let config = format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n{config}");
    let dir = files(&[
        ("dicta.yaml", &config),
        ("t.jsonl", TRANSCRIPT),
        ("r.yaml", rubric),
    ]);
    let root = dir.path().join("w");
    let mut app = open(dir, &root);
    app.settle_after_first_frame();
    app
}

/// Returns the name of the selected cell, and true if its judge left a trace.
fn selected(app: &TestWorkbench) -> (String, bool) {
    let cells = &app.event_loop.app.live_session.cells;
    let id = cells.selected_row().expect("a cell is selected");
    let row = cells.row(id).expect("it exists");
    let is_judged = cells.evals[row.eval as usize].judged;
    let has_verdict = matches!(row.status(), RowStatus::Decided(outcome) if outcome.is_verdict());
    let name = cells.decision_name(id).expect("it has a name").to_string();
    (name, is_judged && has_verdict)
}

fn outcomes(app: &TestWorkbench) -> Vec<Option<Outcome>> {
    let rows = app.event_loop.app.live_session.cells.rows.iter();
    rows.map(|row| match row.status() {
        RowStatus::Decided(outcome) => Some(outcome),
        _ => None,
    })
    .collect()
}

#[test]
fn demo_without_a_run_is_judged_on_opening_and_the_cursor_is_on_a_judge_trace() {
    let mut app = open_demo();
    app.settle_after_first_frame();
    let outcomes = outcomes(&app);
    assert_eq!(outcomes.len(), 85);
    assert!(outcomes.iter().all(Option::is_some), "{outcomes:?}");
    assert_eq!(
        selected(&app),
        ("beam-outdated/beamline/newest".to_owned(), true)
    );
    let filled = app.event_loop.app.layout().filled;
    assert!(
        Pane::ALL.iter().all(|pane| filled.contains(*pane)),
        "{filled:?}"
    );
    // The first step of the tour is done, so the tour continues with the failures.
    assert!(app.screen().contains("2/6"), "{}", app.screen());
}

#[test]
fn starter_workspace_is_judged_on_opening_and_the_cursor_is_on_a_judge_trace() {
    let data = tempfile::tempdir().expect("a folder");
    let root = data.path().join("my-agent");
    workspace::init(&root).expect("it is written");
    let mut app = open(data, &root);
    app.settle_after_first_frame();
    assert!(outcomes(&app).iter().all(Option::is_some));
    let (name, has_trace) = selected(&app);
    assert!(has_trace, "{name}");
}

#[test]
fn first_frame_comes_before_the_run_on_opening() {
    let mut app = open_demo();
    let waited = Cell::new(false);
    // Stops when everything is read, and draws the first frame then.
    app.settle_until(|app| {
        let is_read = app
            .first_judging
            .is_some_and(|first| first.nothing_recorded);
        let is_waiting = is_read && app.live_session.cells.outline_complete;
        waited.set(waited.get() || is_waiting && app.live_session.runs.by_ticket.is_empty());
        is_waiting
    });
    assert!(waited.get(), "the run began before the first frame");
    assert_eq!(app.event_loop.app.live_session.runs.by_ticket.len(), 1);
}

#[test]
fn recorded_run_keeps_a_workspace_from_being_judged_on_opening() {
    let mut app = open_with("", CHECK);
    let store = app.root.join("runs");
    assert_eq!(runs_in(&store), 1);
    let again = tempfile::tempdir().expect("a folder");
    let root = app.root.clone();
    app.keys("q");
    let mut second = open(again, &root);
    second.settle_after_first_frame().draw().settle();
    assert_eq!(runs_in(&store), 1);
    assert_eq!(outcomes(&second), [Some(Outcome::Pass)]);
}

#[test]
fn cells_that_a_past_run_left_are_named_with_their_key_on_reopening_and_at_the_end() {
    let app = open_with(
        "judge: m\njudges:\n  m: { provider: openai, base_url: 'http://127.0.0.1:9', model: m }\n",
        "id: r\nevals:\n  - { id: polite, type: llm_judge, params: { criteria: It is polite. } }\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n",
    );
    let again = tempfile::tempdir().expect("a folder");
    let mut second = open(again, &app.root);
    second.settle_after_first_frame().draw().settle();
    assert_eq!(outcomes(&second), [None, Some(Outcome::Pass)]);
    let notices = &second.event_loop.app.notices;
    assert!(
        notices.contains("1 cell has no verdict yet: press R"),
        "{}",
        second.screen()
    );
    let farewell = app.close();
    assert!(
        farewell.ends_with("1 cell has no verdict yet: press R in dicta"),
        "{farewell}"
    );
}

#[test]
fn judge_that_may_reach_a_model_the_network_or_a_program_keeps_dicta_from_judging_on_opening() {
    let model =
        "judge: m\njudges:\n  m: { provider: openai, base_url: 'http://127.0.0.1:9', model: m";
    for (config, rubric) in [
        // A model on this machine is free, but slow.
        (format!("{model} }}\n"), JUDGED),
        (
            format!("{model}, prices: {{ input: 1, output: 1 }} }}\n"),
            JUDGED,
        ),
        (
            "judge: r\njudges:\n  r: { provider: rules, tools: [fetch_url] }\n".to_owned(),
            JUDGED,
        ),
        (
            "allow_scripts: true\n".to_owned(),
            "id: r\nevals:\n  - { id: own, type: script, params: { command: [echo] } }\n",
        ),
    ] {
        let app = open_with(&config, rubric);
        assert!(!outcomes(&app).is_empty(), "{config}");
        assert!(outcomes(&app).iter().all(Option::is_none), "{config}");
        assert_eq!(runs_in(&app.root.join("runs")), 0, "{config}");
    }
}

#[test]
fn cells_that_need_no_model_are_judged_on_opening_and_the_screen_says_what_waits() {
    let app = open_with(
        "judge: m\njudges:\n  m: { provider: openai, base_url: 'http://127.0.0.1:9', model: m }\n",
        "id: r\nevals:\n  - { id: polite, type: llm_judge, params: { criteria: It is polite. } }\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n",
    );
    assert_eq!(outcomes(&app), [None, Some(Outcome::Pass)]);
    assert_eq!(runs_in(&app.root.join("runs")), 1);
    // The cursor is on a judged cell, although the first row waits.
    assert_eq!(selected(&app).0, "one/r/names");
    let log = app.event_loop.app.notices.log.iter();
    let waiting = "R judges the other 1 cell with a model, a program or the network";
    let lines = log.filter(|notice| notice.text.contains(waiting));
    let lines: Vec<&str> = lines.map(|notice| notice.text.as_str()).collect();
    // A short run replaces its first line at once, so its last one has the sentence, too.
    assert!(
        matches!(&lines[..], [first, last] if first.starts_with("no run is recorded") && last.starts_with("run ")),
        "{lines:?}"
    );
}

#[test]
fn judge_without_its_key_keeps_only_its_own_evals_from_being_judged_and_the_pane_names_the_key() {
    let mut app = open_with(
        "judge: m\njudges:\n  m: { provider: anthropic, model: some-model }\n",
        "id: r\nevals:\n  - { id: polite, type: llm_judge, params: { criteria: It is polite. } }\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n",
    );
    assert_eq!(outcomes(&app), [None, Some(Outcome::Pass)]);
    assert_eq!(selected(&app).0, "one/r/names");
    // The eval, then its cell: both name the key and the next step.
    app.keys("g");
    for key in ["", "enter j"] {
        app.keys(key);
        let screen = app.screen();
        for part in ["ANTHROPIC_API_KEY", "set the key, start dicta again"] {
            assert!(screen.contains(part), "{screen}");
        }
    }
    // A question about money would be useless.
    app.keys("r").settle();
    assert!(app.event_loop.app.overlays.is_empty(), "{}", app.screen());
    let notice = app.event_loop.app.notices.newest.as_ref();
    let text = notice.map_or("", |notice| notice.text.as_str());
    assert_eq!(
        text,
        "nothing was run: judge `m` needs a key: set ANTHROPIC_API_KEY, or api_key_file"
    );
}

#[test]
fn cursor_prefers_a_judge_trace_to_a_recorded_verdict_of_another_tool() {
    let recorded = TRANSCRIPT.replace(
        "\"messages\"",
        "\"verdicts\":[{\"judge\":\"promptfoo\",\"eval\":\"theirs\",\"passed\":false}],\"messages\"",
    );
    let rubric = format!(
        "{JUDGED}  - {{ id: theirs, type: llm_judge_session, judge: promptfoo, params: {{ criteria: recorded }} }}\n"
    );
    let dir = files(&[
        (
            "dicta.yaml",
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: rules\n",
        ),
        ("t.jsonl", &recorded),
        ("r.yaml", &rubric),
    ]);
    let root = dir.path().join("w");
    let mut app = open(dir, &root);
    app.settle_after_first_frame();
    assert_eq!(outcomes(&app), [Some(Outcome::Pass), Some(Outcome::Fail)]);
    assert_eq!(selected(&app), ("one/r/polite".to_owned(), true));
}

#[test]
fn disabled_eval_with_a_model_does_not_keep_dicta_from_judging_on_opening() {
    let app = open_with(
        "judge: m\njudges:\n  m: { provider: openai, base_url: 'http://127.0.0.1:9', model: m }\n",
        "id: r\nevals:\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n  - id: polite\n    enabled: false\n    type: llm_judge\n    params: { criteria: It is polite. }\n",
    );
    assert!(outcomes(&app).contains(&Some(Outcome::Pass)));
}

#[test]
fn own_run_of_the_user_replaces_the_run_on_opening() {
    let mut app = open_demo();
    app.keys("R").settle_after_first_frame();
    assert_eq!(app.event_loop.app.live_session.runs.by_ticket.len(), 1);
    assert!(outcomes(&app).iter().all(Option::is_some));
}

#[test]
fn q_ends_dicta_without_a_question_during_the_run_on_opening() {
    let mut app = open_demo();
    app.draw()
        .settle_until(|app| app.live_session.runs.live().next().is_some());
    assert!(app.event_loop.app.live_session.runs.live().next().is_some());
    app.keys("q");
    assert_eq!(app.end(), Some(0));
    let quit = find_spec(UiCommand::Quit).expect("a command");
    assert!(
        quit.help.contains("a run that you started"),
        "{}",
        quit.help
    );
}

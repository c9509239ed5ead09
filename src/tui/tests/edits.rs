//! Edits in the whole workbench: the diff and the flips stay together over saves, runs and a restart.

use std::sync::Arc;

use crate::handlers::EvalTypeRegistry;
use crate::model::Millis;
use crate::tui::msg::Msg;
use crate::tui::state::App;
use crate::tui::state::edit_report::summarize;
use crate::tui::state::saves::PARTIAL_WRITE_WINDOW;
use crate::tui::testing::TestWorkbench;
use crate::tui::tests::{demo, demo_in, go_to, judged, rubric, workbench};
use crate::workspace::Workspace;

const BEAMLINE: &str = "rubrics/beamline.yaml";
const SCORED: &str = "rubrics/scored.yaml";

/// Returns a rubric with a judged eval that has scores.
fn scored(id: &str, min_score: f64) -> String {
    format!(
        "evals:\n  - id: {id}\n    type: llm_judge\n    params: {{ criteria: 'The answer mentions \"hello\". It mentions \"zebra\".', min_score: {min_score} }}\n"
    )
}

/// Opens a workspace with two transcripts, one of which meets half of the criteria, and judges it.
fn half_met(min_score: f64) -> TestWorkbench {
    let transcript = |id: &str, text: &str| {
        format!(
            "{{\"id\":\"{id}\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}},{{\"role\":\"assistant\",\"content\":\"{text}\"}}]}}\n"
        )
    };
    let transcripts = transcript("half", "hello") + &transcript("all", "hello zebra");
    let rubric = scored("greets", min_score);
    let labels =
        "{\"transcript\":\"half\",\"rubric\":\"scored\",\"eval\":\"greets\",\"passed\":true}\n";
    let mut app = workbench(
        120,
        40,
        &[
            (
                "dicta.yaml",
                "transcripts: [t.jsonl]\nrubrics: [rubrics/scored.yaml]\njudge: rules\n",
            ),
            ("t.jsonl", &transcripts),
            (SCORED, &rubric),
            ("labels.jsonl", labels),
        ],
    );
    app.settle().keys("R").settle();
    app
}

/// Returns true if no label has an old name. The watcher reads a moved label on a thread of its own, which `settle` does
/// not wait for.
fn has_no_offer(app: &App) -> bool {
    app.movable_labels().is_empty()
}

fn summary(app: &TestWorkbench) -> String {
    let report = app.event_loop.app.saves.report.as_ref();
    report.map(summarize).unwrap_or_default()
}

#[test]
fn diff_and_flips_stay_together_over_runs_and_comments() {
    let mut app = judged(120, 40);
    let (_, edited) = rubric(&app);
    app.save(BEAMLINE, &edited).settle();
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    app.keys("R").settle();
    app.save(BEAMLINE, &format!("# why\n{edited}")).settle();
    app.keys("r").settle();
    assert_eq!(
        summary(&app),
        "saved beamline.yaml: 3 flips, all 3 towards your labels"
    );
    let report = app.event_loop.app.saves.report.as_ref().expect("an edit");
    assert!(report.files[0].diff.contains("+# why"), "{report:?}");
    assert_eq!(app.event_loop.app.live_session.cells.total.flipped, 3);
}

#[test]
fn other_min_score_counts_as_decided_again_and_not_as_judged() {
    let mut app = half_met(0.75);
    app.save(SCORED, &scored("greets", 0.8)).settle();
    assert_eq!(
        summary(&app),
        "saved scored.yaml: no verdict moved (2 decided again)"
    );
}

#[test]
fn log_names_the_cell_of_a_flip_without_percent_encoding() {
    let transcript = "{\"id\":\"data/chat\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"hello\"}]}\n";
    let rubric = |word: &str| {
        format!(
            "id: r\nevals:\n  - {{ id: greets, type: contains, params: {{ patterns: [{word}] }} }}\n"
        )
    };
    let mut app = workbench(
        120,
        40,
        &[
            ("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n"),
            ("t.jsonl", transcript),
            ("r.yaml", &rubric("hello")),
        ],
    );
    app.settle().keys("R").settle();
    app.save("r.yaml", &rubric("bye")).settle();
    let notices = &app.event_loop.app.notices;
    assert!(
        notices.contains_beginning("flip ✓ → ✗ data/chat/r/greets: "),
        "{}",
        app.screen()
    );
}

#[test]
fn closed_changes_open_with_the_next_edit() {
    let mut app = judged(120, 40);
    let (text, edited) = rubric(&app);
    app.save(BEAMLINE, &edited).settle();
    assert!(app.screen().contains("7 changes"), "{}", app.screen());
    app.keys("w");
    assert!(!app.screen().contains("7 changes"), "{}", app.screen());
    app.keys("R").settle();
    assert!(!app.screen().contains("7 changes"), "{}", app.screen());
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    app.save(BEAMLINE, &text).settle();
    assert!(app.screen().contains("7 changes"), "{}", app.screen());
}

#[test]
fn flips_of_long_names_stay_distinguishable_at_80_columns() {
    let id = "customer-conversation-about-a-late-delivery-of-2026-11-23";
    let eval = "every-number-of-the-answer-is-in-a-tool-result";
    let transcript = |at: usize| {
        format!(
            "{{\"id\":\"{id}-{at}\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}},{{\"role\":\"assistant\",\"content\":\"hello\"}}]}}\n"
        )
    };
    let transcripts: String = (0..2).map(transcript).collect();
    let rubric = |pattern: &str| {
        format!(
            "evals:\n  - {{ id: {eval}-1, type: contains, params: {{ patterns: [{pattern}] }} }}\n  - {{ id: {eval}-2, type: contains, params: {{ patterns: [{pattern}] }} }}\n"
        )
    };
    let labels = format!("{{\"transcript\":\"{id}-0\",\"eval\":\"{eval}-1\",\"passed\":true}}\n");
    let mut app = workbench(
        80,
        24,
        &[
            (
                "dicta.yaml",
                "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nlabels: labels.jsonl\n",
            ),
            ("t.jsonl", &transcripts),
            ("r.yaml", &rubric("hello")),
            ("labels.jsonl", &labels),
        ],
    );
    app.settle().keys("R").settle();
    app.save("r.yaml", &rubric("bye")).settle();
    let find_rows = |screen: &str| -> Vec<String> {
        let rows = screen.lines().filter(|row| row.contains("✓ → ✗"));
        let names = rows.map(|row| row.replace(['▌', '│', '┃'], "").trim().to_owned());
        names.collect()
    };
    // The rows of the evals in the cells are cut in the middle, too.
    let screen = app.keys("1").screen();
    for end in ["-1  ✗ 2", "-2  ✗ 2"] {
        let found = screen.lines().filter(|row| row.contains(end)).count();
        assert_eq!(found, 1, "{end}: {screen}");
    }
    for keys in ["7 +", "+ 1 H"] {
        app.keys(keys).settle();
        let screen = app.screen();
        let mut rows = find_rows(&screen);
        assert_eq!(rows.len(), 4, "{screen}");
        rows.sort();
        rows.dedup();
        assert_eq!(rows.len(), 4, "{screen}");
        for end in ["-0 · ", "-1 · ", "result-1", "result-2"] {
            let found = rows.iter().filter(|row| row.contains(end)).count();
            assert_eq!(found, 2, "{end}: {screen}");
        }
    }
}

#[test]
fn removed_cells_are_counted_and_named() {
    let mut app = judged(120, 40);
    let (text, _) = rubric(&app);
    let narrowed = text.replace(
        "type: regex",
        "type: regex\n    applies_to: { ids: [beam-quote] }",
    );
    assert_ne!(text, narrowed);
    app.save(BEAMLINE, &narrowed).settle();
    let report = app.event_loop.app.saves.report.as_ref().expect("an edit");
    assert_eq!(report.removed.len(), 4);
    let screen = app.keys("7").screen();
    assert!(
        screen.contains("4 cells are no longer planned: names-a-version 4"),
        "{screen}"
    );
    assert!(
        screen.contains("beam-release · names-a-version"),
        "{screen}"
    );
}

#[test]
fn renamed_eval_keeps_verdicts_and_its_labels_move() {
    let mut app = half_met(0.75);
    app.save(SCORED, &scored("says-hello", 0.75)).settle();
    assert!(
        summary(&app).ends_with("greets → says-hello: 2 verdicts go along"),
        "{}",
        summary(&app)
    );
    let cells = &app.event_loop.app.live_session.cells;
    assert_eq!((cells.total.rows, cells.total.stale), (2, 0));
    let screen = app.screen();
    assert!(
        screen.contains("1 label still has the old name: M moves them"),
        "{screen}"
    );
    // A trace of an earlier run is read under the eval's old name.
    go_to(&mut app, "half/scored/says-hello");
    let screen = app.screen();
    assert!(!screen.contains("cannot be read"), "{screen}");
    app.keys("M").settle_for(has_no_offer).settle();
    let labels = std::fs::read_to_string(app.root.join("labels.jsonl")).expect("it is there");
    assert!(labels.contains("\"eval\":\"says-hello\""), "{labels}");
    assert!(!app.screen().contains("M moves them"), "{}", app.screen());
}

#[test]
fn moved_labels_take_their_old_names_back_and_keep_later_changes() {
    let mut app = half_met(0.75);
    let read = |app: &TestWorkbench| {
        std::fs::read_to_string(app.root.join("labels.jsonl")).expect("it is there")
    };
    let before = read(&app);
    app.save(SCORED, &scored("says-hello", 0.75)).settle();
    app.keys("M").settle_for(has_no_offer).settle();
    assert!(read(&app).contains("says-hello"));
    assert!(!app.screen().contains("M moves them"), "{}", app.screen());
    let is_logged = |app: &TestWorkbench, text: &str| app.event_loop.app.notices.contains(text);
    assert!(is_logged(
        &app,
        "1 label has the new name (U takes it back)"
    ));
    // The reload of the labels does not hide the answer to the key.
    let shown = |app: &TestWorkbench| {
        let newest = app.event_loop.app.notices.newest.as_ref();
        newest.map(|one| one.text.clone()).unwrap_or_default()
    };
    assert!(
        shown(&app).contains("1 label has the new name"),
        "{}",
        shown(&app)
    );
    // A label that was set after the move is the newest change, so it is taken back first.
    go_to(&mut app, "all/scored/says-hello");
    app.keys("p").settle().keys("U").settle();
    assert_eq!(read(&app).lines().count(), 1, "{}", read(&app));
    assert!(read(&app).contains("says-hello"));
    app.keys("U").settle_for(|app| !has_no_offer(app)).settle();
    assert_eq!(read(&app), before);
    assert!(is_logged(&app, "1 label has the old name again"));
    assert!(
        shown(&app).contains("1 label has the old name again"),
        "{}",
        shown(&app)
    );
    assert!(app.screen().contains("M moves them"), "{}", app.screen());
}

#[test]
fn eval_that_is_renamed_and_edited_keeps_the_offer_to_move_its_labels() {
    let mut app = half_met(0.75);
    let edited = scored("says-hello", 0.75).replace("zebra", "zebras");
    app.save(SCORED, &edited).settle();
    let screen = app.keys("7").screen();
    for expected in [
        "says-hello is new: perhaps greets, renamed and edited",
        "1 label still has the old name: M moves them",
    ] {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
    // It is another question, so its verdicts are new and nothing flips.
    let report = app.event_loop.app.saves.report.as_ref().expect("an edit");
    assert_eq!((report.flips.len(), report.first_verdicts.len()), (0, 2));
    app.keys("M").settle_for(has_no_offer).settle();
    let labels = std::fs::read_to_string(app.root.join("labels.jsonl")).expect("it is there");
    assert!(labels.contains("\"eval\":\"says-hello\""), "{labels}");
    assert!(!app.screen().contains("M moves them"), "{}", app.screen());
}

#[test]
fn rename_and_threshold_in_one_save_explain_the_flip_by_arithmetic() {
    let mut app = half_met(0.75);
    app.save(SCORED, &scored("says-hello", 0.5)).settle();
    let report = app.event_loop.app.saves.report.as_ref().expect("an edit");
    assert_eq!(report.flips.len(), 1, "{report:?}");
    let screen = app.keys("7").screen();
    assert!(screen.contains("0.50 ≥ 0.50, was < 0.75"), "{screen}");
}

#[test]
fn progress_of_a_renamed_eval_names_its_edits_under_the_earlier_name() {
    let mut app = half_met(0.75);
    app.save(SCORED, &scored("greets", 0.5)).settle();
    app.pass(PARTIAL_WRITE_WINDOW + Millis(1));
    app.save(SCORED, &scored("says-hello", 0.5)).settle();
    let screen = app.keys("H").settle().keys(".").settle().screen();
    for expected in [
        "eval says-hello",
        "renamed greets to says-hello",
        "greets: min_score 0.75 → 0.50",
    ] {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
    assert!(!screen.contains("other evals"), "{screen}");
}

#[test]
fn scores_of_an_eval_count_the_labels_to_confirm() {
    let mut app = half_met(0.75);
    app.save("labels.jsonl", "").settle();
    go_to(&mut app, "all/scored/greets");
    app.keys("p").settle();
    let screen = app.keys("H").settle().keys(".").settle().screen();
    assert!(screen.contains("min_score 0.75   1/1 agree"), "{screen}");
    // The label answers the criteria before this edit.
    let edited = scored("greets", 0.75).replace("zebra", "zebras");
    app.save(SCORED, &edited).settle();
    let screen = app.screen();
    assert!(
        screen.contains("min_score 0.75   1 label to confirm"),
        "{screen}"
    );
    assert!(!screen.contains("no labels"), "{screen}");
}

/// Opens the workspace in another session, with the same data directory. Nothing is loaded yet.
fn open_again(app: &TestWorkbench) -> TestWorkbench {
    let env = app.env();
    let place = crate::tui::state::OpenedItem::Workspace(load(app));
    let again = tempfile::tempdir().expect("a folder");
    let size = ratatui::layout::Size::new(120, 40);
    TestWorkbench::on(
        place,
        size,
        None,
        (env, again, app.root.clone()),
        Vec::new(),
    )
}

/// Loads the workspace as its files are now.
fn load(app: &TestWorkbench) -> Arc<Workspace> {
    let registry = EvalTypeRegistry::builtin();
    let workspace = crate::workspace::load(&app.root, &app.env(), &registry);
    Arc::new(workspace.expect("it loads"))
}

#[test]
fn save_before_the_verdicts_are_read_reports_flips_and_no_first_judging() {
    let app = judged(120, 40);
    let (_, edited) = rubric(&app);
    let mut next = open_again(&app);
    // No message of the readers is handled before the key and the save.
    next.keys("R");
    std::fs::write(app.root.join(BEAMLINE), &edited).expect("it is written");
    next.send_msg(Msg::Reloaded {
        workspace: load(&app),
        changed: vec![BEAMLINE.into()],
    });
    let waits = "a file was saved: dicta reads the earlier verdicts first";
    assert!(next.event_loop.app.notices.contains(waits));
    assert_eq!(next.event_loop.app.saves.number, 0);
    next.settle();
    assert_eq!(
        summary(&next),
        "saved beamline.yaml: 3 flips, all 3 towards your labels"
    );
    let report = next.event_loop.app.saves.report.as_ref().expect("an edit");
    assert!(report.first_verdicts.is_empty(), "{report:?}");
    let cells = &next.event_loop.app.live_session.cells;
    assert!(cells.rows.iter().all(|row| row.decision.is_some()));
}

#[test]
fn cell_is_not_called_not_run_before_the_earlier_verdicts_are_read() {
    let mut app = demo(120, 40);
    go_to(&mut app, "beam-release/beamline/newest");
    assert!(app.screen().contains("not run yet"), "{}", app.screen());
    app.event_loop.app.past_verdict_wait.begin();
    let screen = app.draw().screen();
    assert!(screen.contains("reading earlier verdicts …"), "{screen}");
    assert!(!screen.contains("not run"), "{screen}");
}

#[test]
fn label_before_the_earlier_verdicts_are_read_is_not_reported_as_a_save() {
    let app = judged(120, 40);
    let mut next = open_again(&app);
    next.send_msg(Msg::Reloaded {
        workspace: load(&app),
        changed: vec!["labels.jsonl".into()],
    });
    let waits = "a file was saved: dicta reads the earlier verdicts first";
    assert!(!next.event_loop.app.notices.contains(waits));
}

#[test]
fn run_cancelled_while_it_waits_judges_nothing() {
    let app = judged(120, 40);
    let mut next = open_again(&app);
    next.keys("R ctrl-c").settle();
    let runs = &next.event_loop.app.live_session.runs.by_ticket;
    assert_eq!(next.end(), None, "the key cancels the run that waits");
    assert!(runs.values().all(|run| !run.is_live()), "{runs:?}");
    let cells = &next.event_loop.app.live_session.cells;
    assert!(cells.rows.iter().all(|row| row.decision.is_some()));
}

#[test]
fn reused_verdict_names_its_run_once_and_no_tokens() {
    let mut app = judged(120, 40);
    app.keys("R").settle();
    go_to(&mut app, "beam-outdated/beamline/newest");
    app.keys("5").settle();
    let screen = app.screen();
    // The facts end at the border of the pane.
    let (_, facts) = screen.split_once("from run ").expect("a reused verdict");
    let facts = facts.split(['│', '┃', '\n']).next().unwrap_or_default();
    assert!(facts.contains("no judge call"), "{facts}");
    assert!(
        !facts.contains("run ") && !facts.contains("tokens"),
        "{facts}"
    );
}

#[test]
fn newest_edit_is_shown_after_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = demo_in(dir.path());
    let mut app = TestWorkbench::open(120, 40, None, dir, &root);
    app.settle().keys("R").settle();
    let (_, edited) = rubric(&app);
    app.save(BEAMLINE, &edited).settle();
    let flips = app.event_loop.app.live_session.cells.total.flipped;
    let next = app.reopen();
    assert_eq!(
        summary(&next),
        "the last edit, beamline.yaml: 3 flips, all 3 towards your labels"
    );
    assert_eq!(next.event_loop.app.live_session.cells.total.flipped, flips);
    let report = next.event_loop.app.saves.report.as_ref().expect("an edit");
    assert!(report.files[0].diff.contains("+++"), "{report:?}");
}

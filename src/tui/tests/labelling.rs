//! Labelling in the whole workbench: queues, notes, advance, blind screen, figures, causes of disagreements.

mod figures;

use serde_json::{Value, json};

use super::{go_to, last_notice, workbench};
use crate::model::Millis;
use crate::tui::command::{UiCommand, find_spec};
use crate::tui::screen_choices::ScreenChoices;
use crate::tui::state::cells::CellsEntry;
use crate::tui::state::pane::Pane;
use crate::tui::testing::TestWorkbench;

const COUNT: usize = 12;
const RUBRIC: &str =
    "id: r\nevals:\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n";

/// Returns a judged workspace of 12 transcripts: the first six pass. `labels` is the labels file.
pub(super) fn labelled(width: u16, height: u16, labels: &str) -> TestWorkbench {
    judged(width, height, labels, "R")
}

/// As [`labelled`], with other keys that judge.
fn judged(width: u16, height: u16, labels: &str, keys: &str) -> TestWorkbench {
    let lines = (0..COUNT).map(|at| {
        let answer = if at < COUNT / 2 { "Use 2.69." } else { "No." };
        let line = json!({"id": format!("t{at:02}"), "tags": if at % 3 == 0 { vec!["vip"] } else { vec![] },
            "messages": [
                {"role": "user", "content": "Which?"},
                {"role": "assistant", "content": answer},
            ]});
        line.to_string() + "\n"
    });
    let transcripts: String = lines.collect();
    let workspace = "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\nlabels: labels.jsonl\n";
    let mut app = workbench(
        width,
        height,
        &[
            ("dicta.yaml", workspace),
            ("r.yaml", RUBRIC),
            ("t.jsonl", &transcripts),
            ("labels.jsonl", labels),
        ],
    );
    app.settle().keys(keys).settle();
    app
}

pub(super) fn file(app: &TestWorkbench, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(app.root.join(name)).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("JSON")).collect()
}

/// Continues until the watcher has read dicta's own write.
pub(super) fn read_back(app: &mut TestWorkbench) {
    app.settle_for(|model| model.label_edits.pending.is_empty());
}

/// Returns the id of the selected transcript.
pub(super) fn selected(app: &TestWorkbench) -> String {
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells.selected_row().expect("a row");
    cells.decision_name(row).expect("a name").transcript
}

pub(super) fn first_line(app: &TestWorkbench) -> String {
    app.screen().lines().next().unwrap_or_default().to_owned()
}

/// Begins the queue with this title.
pub(super) fn begin(app: &mut TestWorkbench, title: &str) {
    app.keys("Q").settle();
    let options = app
        .event_loop
        .app
        .overlays
        .last()
        .map(|overlay| match overlay {
            crate::tui::state::overlay::Overlay::LabelQueues { options, .. } => options.clone(),
            other => panic!("another overlay: {other:?}"),
        });
    let options = options.expect("the list of queues");
    let titles: Vec<&str> = options.iter().map(|option| option.title.as_str()).collect();
    let at = titles.iter().position(|one| *one == title);
    let at = at.unwrap_or_else(|| panic!("no {title} in {titles:?}"));
    app.keys(&"j ".repeat(at)).keys("enter").settle();
}

/// Selects the row of the eval.
pub(super) fn select_eval(app: &mut TestWorkbench) {
    app.keys("1 g").settle();
    assert!(
        app.screen().contains("against your labels"),
        "{}",
        app.screen()
    );
}

pub(super) fn line(transcript: &str, by: &str, passed: bool) -> String {
    let label = json!({"transcript": transcript, "rubric": "r", "eval": "names", "passed": passed, "by": by});
    label.to_string() + "\n"
}

#[test]
fn note_is_saved_on_its_label_before_and_after_the_answer() {
    let mut app = labelled(80, 24, "");
    go_to(&mut app, "t00/r/names");
    app.keys("i").type_in("clear case, p f u");
    assert!(
        app.screen().contains("note: clear case"),
        "{}",
        app.screen()
    );
    app.keys("enter").settle();
    assert!(
        file(&app, "labels.jsonl").is_empty(),
        "a note is not a label"
    );
    app.keys("p");
    read_back(&mut app);
    let written = file(&app, "labels.jsonl");
    assert_eq!(written[0]["note"], "clear case, p f u");
    // A note on a label keeps the answer and its time.
    app.keys("i ctrl-u").type_in("second").keys("enter");
    read_back(&mut app);
    let noted = file(&app, "labels.jsonl");
    assert_eq!((&noted[0]["note"], noted.len()), (&json!("second"), 1));
    assert_eq!(
        (&noted[0]["at"], &noted[0]["passed"]),
        (&written[0]["at"], &json!(true))
    );
    assert!(app.screen().contains("second"), "{}", app.screen());
    app.keys("U");
    read_back(&mut app);
    assert_eq!(file(&app, "labels.jsonl"), written);
    // Escape discards the line, and an empty line removes the note.
    app.keys("i").type_in("x").keys("esc").settle();
    assert_eq!(file(&app, "labels.jsonl"), written);
    app.keys("i ctrl-u enter");
    read_back(&mut app);
    assert_eq!(file(&app, "labels.jsonl")[0].get("note"), None);
}

#[test]
fn drawn_queue_shows_purpose_and_progress_and_its_labels_store_their_probability() {
    let mut app = labelled(120, 40, "");
    select_eval(&mut app);
    app.keys("Q h");
    assert!(
        app.screen().contains(" at most 10 decisions;")
            && app.screen().contains("from all 12 decisions"),
        "{}",
        app.screen()
    );
    app.keys("esc");
    app.keys("Q").settle();
    app.keys("h enter").settle();
    assert!(
        first_line(&app).contains(" to measure: random 0 of 10 "),
        "{}",
        first_line(&app)
    );
    // The verdicts are visible, and who sees one tends to agree with it.
    let notice = last_notice(&app);
    assert!(
        notice.contains(": B hides the verdicts, p f u label"),
        "{notice}"
    );
    let draws = file(&app, "labels.draws.jsonl");
    assert_eq!(draws.len(), 1);
    let first = draws[0]["drawn"][0].as_str().expect("an id").to_owned();
    let second = draws[0]["drawn"][1].as_str().expect("an id").to_owned();
    assert_eq!(selected(&app), first);
    app.keys("p");
    // The label goes on to the next decision, and counts when the file has it.
    assert_eq!(selected(&app), second);
    read_back(&mut app);
    assert!(
        first_line(&app).contains(" to measure: random 1 of 10 "),
        "{}",
        first_line(&app)
    );
    let label = &file(&app, "labels.jsonl")[0];
    let p = label["sample"]["p"].as_f64().expect("a probability");
    assert!((p - 10.0 / 12.0).abs() < 1e-9, "{label}");
    assert_eq!(label["sample"]["plan"], "random");
    // The undo goes back to the decision.
    app.keys("U");
    read_back(&mut app);
    assert_eq!(selected(&app), first);
    assert!(
        first_line(&app).contains("random 0 of 10"),
        "{}",
        first_line(&app)
    );
    // An unfinished draw can be continued.
    app.keys("f f");
    read_back(&mut app);
    begin(&mut app, "by hand");
    assert!(
        first_line(&app).contains(" to measure: a drawn decision ")
            || first_line(&app).contains(" to find errors: by hand ")
    );
    begin(&mut app, "continue random");
    assert!(
        first_line(&app).contains(" to measure: random 2 of 10 "),
        "{}",
        first_line(&app)
    );
    assert_eq!(
        file(&app, "labels.draws.jsonl").len(),
        1,
        "continuing draws nothing"
    );
}

#[test]
fn queue_opens_on_the_transcript_also_with_visible_verdicts() {
    let mut app = labelled(80, 24, "");
    select_eval(&mut app);
    // A run or a save leaves the changes next to the cells.
    app.keys("7 1").settle();
    begin(&mut app, "random");
    let model = &app.event_loop.app;
    assert!(!model.live_session.cells.blind);
    assert_eq!(model.ui.focus, Pane::Transcript);
    let screen = app.screen();
    assert!(
        screen.contains("6 transcript") && screen.contains("Which?"),
        "{screen}"
    );
    // A label goes on to the transcript of the next decision.
    app.keys("p");
    read_back(&mut app);
    assert_eq!(app.event_loop.app.ui.focus, Pane::Transcript);
    assert!(app.screen().contains("Which?"), "{}", app.screen());
}

#[test]
fn stratified_queues_draw_by_verdict_and_by_tag() {
    let mut app = labelled(120, 40, "");
    select_eval(&mut app);
    begin(&mut app, "stratified by verdict");
    assert!(
        first_line(&app).contains(" to measure: stratified by verdict 0 of 12 "),
        "{}",
        first_line(&app)
    );
    begin(&mut app, "stratified by tag:vip");
    let draws = file(&app, "labels.draws.jsonl");
    assert_eq!(
        (&draws[0]["by"], &draws[1]["by"]),
        (&json!("verdict"), &json!("tag:vip"))
    );
    assert_eq!(
        draws[1]["strata"][0]["members"].as_array().map(Vec::len),
        Some(4)
    );
}

#[test]
fn label_stays_on_its_decision_if_the_user_switches_the_advance_off_and_dicta_remembers_it() {
    let mut app = labelled(120, 40, "");
    select_eval(&mut app);
    begin(&mut app, "random");
    app.keys("K").settle();
    let first = selected(&app);
    app.keys("p");
    assert_eq!(selected(&app), first);
    app.keys("s");
    assert_ne!(selected(&app), first);
    let second = selected(&app);
    app.keys("K");
    assert_eq!(
        last_notice(&app),
        "a label goes to the next decision of the queue"
    );
    app.keys("f");
    assert_ne!(selected(&app), second);
    let mut remembered = ScreenChoices::default();
    assert_eq!(remembered.advance, None);
    remembered.merge(ScreenChoices {
        advance: Some(false),
        ..ScreenChoices::default()
    });
    assert_eq!(remembered.advance, Some(false));
    assert_eq!(app.event_loop.app.ui.choices.advance, Some(true));
}

#[test]
fn queue_of_disagreements_debugs_and_a_disagreement_is_closed_with_its_cause() {
    let mut app = labelled(
        120,
        40,
        &(line("t00", "ann", false) + &line("t07", "ann", false)),
    );
    select_eval(&mut app);
    begin(&mut app, "disagreements");
    assert!(
        first_line(&app).contains(" to find errors: disagreements 0 of 1 "),
        "{}",
        first_line(&app)
    );
    assert_eq!(selected(&app), "t00");
    app.keys("D");
    assert!(
        app.screen().contains("the rubric misleads the judge"),
        "{}",
        app.screen()
    );
    app.keys("u").type_in("rule 2").keys("enter");
    read_back(&mut app);
    let label = &file(&app, "labels.jsonl")[0];
    assert_eq!(
        (&label["cause"], &label["clause"]),
        (&json!("unclear"), &json!("rule 2"))
    );
    assert_eq!(
        (&label["by"], &label["passed"]),
        (&json!("ann"), &json!(false))
    );
    assert!(
        first_line(&app).contains(" to find errors: disagreements 1 of 1 "),
        "{}",
        first_line(&app)
    );
    assert!(
        app.screen()
            .contains("disagreement closed: unclear, clause: rule 2"),
        "{}",
        app.screen()
    );
    select_eval(&mut app);
    app.keys("5 +").settle();
    assert!(
        app.screen()
            .contains("1 disagreement closed: 1 unclear; 0 open"),
        "{}",
        app.screen()
    );
    app.keys("+");
    // A label that agrees has nothing to close.
    go_to(&mut app, "t07/r/names");
    let close = find_spec(UiCommand::LabelClose).expect("a command");
    assert!(close.check_usable(&app.event_loop.app).is_err());
    // Undo removes the cause.
    app.keys("U");
    read_back(&mut app);
    assert_eq!(file(&app, "labels.jsonl")[0].get("cause"), None);
}

#[test]
fn own_answer_next_to_those_of_a_majority_is_named_noted_and_corrected() {
    let others = line("t00", "ann", true) + &line("t00", "bo", true);
    let mut app = labelled(120, 40, &others);
    go_to(&mut app, "t00/r/names");
    // The verdict is a pass, as the label of the majority is.
    app.keys("f");
    let notice = last_notice(&app);
    assert!(notice.contains("fail, the verdict disagrees"), "{notice}");
    app.keys("i").type_in("rude").keys("enter");
    read_back(&mut app);
    let labels = file(&app, "labels.jsonl");
    let notes: Vec<Option<&Value>> = labels.iter().map(|label| label.get("note")).collect();
    assert_eq!(notes, [None, None, Some(&json!("rude"))]);
    app.keys("p");
    read_back(&mut app);
    let labels = file(&app, "labels.jsonl");
    assert_eq!(labels[2]["passed"], true, "{labels:?}");
}

#[test]
fn disagreement_of_people_offers_its_key_until_it_is_closed() {
    let mut app = labelled(
        120,
        40,
        &(line("t00", "ann", false) + &line("t00", "bo", true)),
    );
    go_to(&mut app, "t00/r/names");
    assert!(
        app.screen().contains("people differ, D closes it"),
        "{}",
        app.screen()
    );
    app.keys("D").keys("u").type_in("rule 2").keys("enter");
    read_back(&mut app);
    let screen = app.screen();
    assert!(screen.contains("undecided: people differ"), "{screen}");
    assert!(!screen.contains("D closes it"), "{screen}");
}

#[test]
fn labels_to_confirm_have_their_own_queue_and_the_next_unlabelled_is_none_of_them() {
    let mut app = labelled(120, 40, "");
    for name in ["t00/r/names", "t01/r/names"] {
        go_to(&mut app, name);
        app.keys("1 p");
    }
    read_back(&mut app);
    // An inverted check asks another question.
    let inverted = RUBRIC.replace("type: contains", "not: true, type: contains");
    app.save("r.yaml", &inverted);
    // The notice about a label may come before the reload.
    app.settle_for(|model| {
        let rows = model.live_session.cells.rows.iter();
        rows.filter(|row| row.to_confirm.is_some()).count() == 2
    });
    app.settle();
    go_to(&mut app, "t11/r/names");
    app.keys("1 p s").settle();
    let now = selected(&app);
    assert!(now != "t00" && now != "t01", "{now}");
    // Labels to confirm count nowhere, so their queue is the first one.
    app.keys("Q").settle().keys("enter").settle();
    assert!(
        first_line(&app).contains(" as before: to confirm 0 of 2 "),
        "{}",
        first_line(&app)
    );
    let first = selected(&app);
    app.keys("a");
    read_back(&mut app);
    assert_ne!(selected(&app), first);
    assert!(
        first_line(&app).contains(" as before: to confirm 1 of 2 "),
        "{}",
        first_line(&app)
    );
    app.keys("f");
    read_back(&mut app);
    assert!(
        first_line(&app).contains(" as before: to confirm 2 of 2 "),
        "{}",
        first_line(&app)
    );
    assert!(
        last_notice(&app).contains("the queue is done"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn label_to_confirm_has_another_mark_than_a_label_of_unsure() {
    let mut app = labelled(80, 24, "");
    go_to(&mut app, "t00/r/names");
    app.keys("1 u");
    read_back(&mut app);
    let screen = app.screen();
    assert!(
        screen.contains("(?)") && !screen.contains("(~)"),
        "{screen}"
    );
    go_to(&mut app, "t01/r/names");
    app.keys("1 p");
    read_back(&mut app);
    let inverted = RUBRIC.replace("type: contains", "not: true, type: contains");
    app.save("r.yaml", &inverted);
    app.settle_for(|model| {
        let mut rows = model.live_session.cells.rows.iter();
        rows.any(|row| row.to_confirm.is_some())
    });
    app.settle();
    assert!(app.screen().contains("(~)"), "{}", app.screen());
    app.keys("?").settle();
    assert!(
        app.screen().contains("(~) label to confirm"),
        "{}",
        app.screen()
    );
}

#[test]
fn labelled_decision_that_the_filter_hides_leads_to_the_next_one() {
    let mut app = labelled(120, 40, "");
    go_to(&mut app, "t03/r/names");
    app.keys("1 /").type_in("label:none").keys("enter").settle();
    for (key, next) in [("p", "t04"), ("f", "t05"), ("u", "t02")] {
        app.keys(key);
        read_back(&mut app);
        assert_eq!(selected(&app), next, "after {key}: {}", app.screen());
    }
    app.keys("U");
    read_back(&mut app);
    assert_eq!(selected(&app), "t05");
    assert_eq!(app.event_loop.app.live_session.cells.filter, "label:none");
}

#[test]
fn blind_label_that_the_filter_hides_does_not_reveal_the_verdict() {
    let mut app = labelled(120, 40, "");
    go_to(&mut app, "t03/r/names");
    app.keys("1 /").type_in("label:none").keys("enter").settle();
    app.keys("B").settle();
    app.keys("p");
    read_back(&mut app);
    assert_ne!(selected(&app), "t03", "{}", app.screen());
    let notice = last_notice(&app);
    assert!(
        notice.contains("labelled") && !notice.contains("agrees"),
        "{notice}"
    );
}

#[test]
fn blind_labelling_shows_transcript_and_criteria_and_no_verdict() {
    // Blind from the start: the list never shows a verdict.
    let mut app = judged(80, 24, "", "B R");
    app.keys("1 g").settle();
    begin(&mut app, "stratified by verdict");
    app.pass(Millis(60_000));
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        app.resize(width, height).settle();
        let screen = app.screen();
        assert!(
            screen.contains("criteria") && screen.contains("transcript"),
            "{screen}"
        );
        assert!(
            screen.contains("Which?") && screen.contains("patterns"),
            "{screen}"
        );
        for mark in ["✓", "✗", "⇄", "agrees", "1 cells ─", "contains ‘"] {
            assert!(!screen.contains(mark), "{mark} in\n{screen}");
        }
        assert!(
            screen.contains(" BLIND  ")
                && screen.contains(" to measure: stratified by verdict 0 of 12 "),
            "{screen}"
        );
    }
    app.resize(80, 24);
    // The draw is random, so the transcript is another one each time.
    let rows = super::look::rows(&app)
        .replace(&selected(&app), "tNN")
        .replace("Use 2.69.", "No.      ");
    super::looks::same("labelling_80x24", &rows);
    app.keys("f").keys("i").type_in("why").keys("enter p");
    read_back(&mut app);
    app.pass(Millis(60_000));
    let screen = app.screen();
    for mark in ["✓", "✗", "agrees", "flip"] {
        assert!(!screen.contains(mark), "{mark} in\n{screen}");
    }
    assert!(
        !last_notice(&app).contains("agrees"),
        "{}",
        last_notice(&app)
    );
    let labels = file(&app, "labels.jsonl");
    assert_eq!(labels.len(), 2);
    for label in &labels {
        assert_eq!(
            (&label["blind"], &label["seen"]),
            (&json!(true), &json!("none")),
            "{label}"
        );
    }
    assert_eq!(labels[1]["note"], "why");
    // The list of cells is one key away.
    app.keys("1").settle();
    assert!(app.screen().contains("1 cells"), "{}", app.screen());
}

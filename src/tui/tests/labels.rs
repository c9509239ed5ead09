//! Labels in the whole workbench: the keys, the files, the agreement with verdicts.

use super::labelling::read_back;
use super::{files, go_to, judged, last_notice, outcome, rubric};
use crate::model::{Label, Millis, Outcome};
use crate::tui::state::cells::{CellsEntry, CellsRow, LabelValue, RowId, RowSort};
use crate::tui::state::edit_report::summarize;
use crate::tui::testing::TestWorkbench;

const CELL: &str = "beam-upgrade/beamline/newest";
const NEXT: &str = "beam-quote/beamline/newest";

fn file(app: &TestWorkbench) -> String {
    std::fs::read_to_string(app.root.join("labels.jsonl")).expect("it is there")
}

fn last(app: &TestWorkbench) -> Label {
    let text = file(app);
    serde_json::from_str(text.lines().last().expect("a line")).expect("a label")
}

fn row(app: &TestWorkbench, name: &str) -> RowId {
    let cells = &app.event_loop.app.live_session.cells;
    cells
        .find_row(&name.parse().expect("a name"))
        .expect("a row")
}

fn label(app: &TestWorkbench, name: &str) -> Option<LabelValue> {
    app.event_loop
        .app
        .live_session
        .cells
        .row(row(app, name))?
        .label
}

#[test]
fn empty_file_that_the_first_label_is_written_to_is_not_a_save() {
    let dir = files(&[
        (
            "dicta.yaml",
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: rules\n",
        ),
        (
            "t.jsonl",
            "{\"id\":\"one\",\"messages\":[{\"role\":\"assistant\",\"content\":\"Use 2.69.\"}]}\n",
        ),
        (
            "r.yaml",
            "id: r\nevals:\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n",
        ),
    ]);
    let root = dir.path().join("w");
    let mut app = TestWorkbench::judging_on_open(80, 24, dir, &root);
    app.settle_after_first_frame();
    let before = last_notice(&app).to_owned();
    // The watcher may read the file between its creation and the first label.
    std::fs::write(app.root.join("labels.jsonl"), "").expect("it is written");
    app.settle_for(|model| {
        let files = model.workspace().map(|open| open.files.as_slice());
        files.is_some_and(|files| files.iter().any(|file| file.path.ends_with("labels.jsonl")))
    });
    assert_eq!(last_notice(&app), before);
}

#[test]
fn label_key_writes_file_and_changes_nothing_else() {
    let mut app = judged(120, 40);
    let before = file(&app);
    go_to(&mut app, CELL);
    assert_eq!(label(&app, CELL), None);
    let says = match outcome(&app, CELL) {
        Some(Outcome::Pass) => "agrees",
        _ => "disagrees",
    };
    app.keys("p");
    assert_eq!(label(&app, CELL), Some(LabelValue::Pass));
    assert_eq!(
        last_notice(&app),
        format!("labelled beam-upgrade × newest: pass, the verdict {says} (U takes it back)")
    );
    assert!(
        app.screen().contains(&format!("label ✓ {says}")),
        "{}",
        app.screen()
    );
    read_back(&mut app);
    let text = file(&app);
    assert!(text.starts_with(&before), "all others are as they were");
    let label = last(&app);
    assert_eq!(
        (label.transcript.as_str(), label.eval.as_str()),
        ("beam-upgrade", "newest")
    );
    assert_eq!(
        (label.rubric.as_deref(), label.passed),
        (Some("beamline"), Some(true))
    );
    assert!(label.at.is_some());
    // Reading dicta's own write is not a save.
    let model = &app.event_loop.app;
    assert_eq!(
        (model.saves.number, model.saves.report.is_none()),
        (0, true)
    );
    assert!(
        last_notice(&app).starts_with("labelled"),
        "{}",
        last_notice(&app)
    );
    // The same label again changes nothing; another label changes its line.
    app.keys("p");
    assert!(
        last_notice(&app).contains("is labelled pass already"),
        "{}",
        last_notice(&app)
    );
    app.keys("u");
    read_back(&mut app);
    assert_eq!(last(&app).passed, None);
    assert_eq!(file(&app).lines().count(), text.lines().count());
    assert!(app.screen().contains("label ? unsure"), "{}", app.screen());
    app.keys("x");
    read_back(&mut app);
    assert_eq!(file(&app), before);
    assert_eq!(
        super::super::command::find_spec(super::super::command::UiCommand::LabelRemove)
            .map(|spec| spec.check_usable(&app.event_loop.app)),
        Some(Err("no label to remove: p, f and u set a label"))
    );
}

#[test]
fn fast_label_keys_lose_nothing_and_can_be_undone() {
    let mut app = judged(120, 40);
    let before = file(&app);
    go_to(&mut app, CELL);
    app.keys("p");
    super::point(&mut app, NEXT);
    app.keys("f u f");
    assert_eq!(label(&app, NEXT), Some(LabelValue::Fail));
    read_back(&mut app);
    assert_eq!(last(&app).passed, Some(false));
    assert_eq!(file(&app).lines().count(), before.lines().count() + 2);
    app.keys("U");
    assert_eq!(label(&app, NEXT), Some(LabelValue::Unsure));
    app.keys("U U");
    assert_eq!(
        (label(&app, NEXT), label(&app, CELL)),
        (None, Some(LabelValue::Pass))
    );
    assert_eq!(
        last_notice(&app),
        "beam-quote × newest is not labelled any more (1 more can be taken back)"
    );
    app.keys("U");
    read_back(&mut app);
    assert_eq!(file(&app), before);
    app.keys("U");
    assert_eq!(
        last_notice(&app),
        "no label change to undo: p, f, u, x and M change labels"
    );
    // A removed one comes back as it was, at its place.
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("x");
    assert!(
        last_notice(&app).contains("pass (by ada)"),
        "{}",
        last_notice(&app)
    );
    read_back(&mut app);
    assert_eq!(file(&app).lines().count() + 1, before.lines().count());
    app.keys("U");
    read_back(&mut app);
    assert_eq!(file(&app), before);
}

#[test]
fn labels_of_another_program_stay() {
    let mut app = judged(120, 40);
    go_to(&mut app, CELL);
    let theirs = "{\"transcript\":\"refund-01\",\"eval\":\"brief\",\"passed\":false}\n";
    std::fs::write(
        app.root.join("labels.jsonl"),
        format!("{}{theirs}", file(&app)),
    )
    .expect("it is written");
    app.keys("f");
    read_back(&mut app);
    app.settle_for(|model| {
        model
            .live_session
            .cells
            .rows
            .iter()
            .filter(|row| row.label.is_some())
            .count()
            == 20
    });
    assert!(file(&app).contains(theirs));
    assert_eq!(last(&app).passed, Some(false));
    assert_eq!(
        label(&app, "refund-01/support/brief"),
        Some(LabelValue::Fail)
    );
    assert_eq!(label(&app, CELL), Some(LabelValue::Fail));
}

#[test]
fn failed_label_write_restores_old_label() {
    let mut app = judged(120, 40);
    go_to(&mut app, CELL);
    std::fs::remove_file(app.root.join("labels.jsonl")).expect("it was there");
    std::fs::create_dir(app.root.join("labels.jsonl")).expect("a folder");
    app.keys("p");
    assert_eq!(label(&app, CELL), Some(LabelValue::Pass));
    app.settle_for(|model| !model.label_edits.has_unwritten());
    assert_eq!(label(&app, CELL), None);
    let log = &app.event_loop.app.notices.log;
    let why = log
        .iter()
        .map(|notice| notice.text.as_str())
        .find(|text| text.starts_with("the label of"));
    let why = why.expect("it is told");
    assert!(
        why.contains("beam-upgrade × newest is as before: ") && why.contains("is a folder"),
        "{why}"
    );
    app.keys("U");
    assert_eq!(
        last_notice(&app),
        "no label change to undo: p, f, u, x and M change labels"
    );
}

#[test]
fn quit_waits_for_label_write() {
    let mut app = judged(80, 24);
    go_to(&mut app, CELL);
    app.keys("p q");
    app.settle_until(|model| model.exit_code.is_some());
    assert_eq!(app.end(), Some(0));
    assert_eq!(last(&app).transcript, "beam-upgrade");
}

#[test]
fn unlabellable_decision_shows_reason() {
    let mut app = judged(120, 40);
    app.keys("g p");
    assert_eq!(last_notice(&app), "select a cell first (j, k)");
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("2 x");
    assert!(
        app.event_loop.app.live_session.trace_panes.shows_raw,
        "in the prompt it is the raw form"
    );
    app.keys("v").settle().keys("f");
    assert_eq!(
        last_notice(&app),
        "unavailable in a replay: press q to go back"
    );
}

#[test]
fn sort_orders_cycle_and_keep_selection() {
    let mut app = judged(120, 40);
    go_to(&mut app, "refund-02/support/tone");
    let selected = app.event_loop.app.live_session.cells.selected_row();
    let group = |app: &TestWorkbench| -> Vec<Option<LabelValue>> {
        let cells = &app.event_loop.app.live_session.cells;
        let eval = cells
            .row(row(app, "refund-02/support/tone"))
            .map(|row| row.eval);
        let rows = cells.shown.iter().filter_map(|entry| match entry {
            CellsEntry::Row(row) => cells.row(*row),
            CellsEntry::Group(_) => None,
        });
        rows.filter(|row| Some(row.eval) == eval)
            .map(|row| row.label)
            .collect()
    };
    for (sort, words) in [
        (RowSort::Disagreements, "disagreements first"),
        (RowSort::Unlabelled, "unlabelled first"),
        (RowSort::FileOrder, "in file order"),
    ] {
        app.keys("1 o").pass(Millis(60_000));
        let cells = &app.event_loop.app.live_session.cells;
        assert_eq!((cells.sort, cells.selected_row()), (sort, selected));
        assert!(app.screen().contains(words), "{}", app.screen());
        let labels = group(&app);
        if sort == RowSort::Unlabelled {
            assert!(
                labels.first().is_some_and(Option::is_none)
                    && labels.last().is_some_and(Option::is_some)
            );
        }
    }
    app.keys("o");
    assert_eq!(
        app.event_loop.app.live_session.cells.sort,
        RowSort::ProblemsFirst
    );
    // The planted mistake: three decisions are labelled pass and failed.
    app.keys("o");
    go_to(&mut app, "beam-quote/beamline/names-a-version");
    let cells = &app.event_loop.app.live_session.cells;
    let eval = cells
        .row(row(&app, "beam-quote/beamline/names-a-version"))
        .map_or(0, |row| row.eval);
    let at = cells
        .shown
        .iter()
        .position(|entry| *entry == CellsEntry::Group(eval))
        .expect("it is shown");
    let first: Vec<Option<bool>> = cells.shown[at + 1..at + 5]
        .iter()
        .map(|entry| match entry {
            CellsEntry::Row(row) => cells.row(*row).and_then(CellsRow::agrees_with_label),
            CellsEntry::Group(_) => None,
        })
        .collect();
    assert_eq!(first, [Some(false), Some(false), Some(false), None]);
    // A filter that matches the same rows.
    app.keys("/")
        .type_in("label:disagrees")
        .keys("enter")
        .settle();
    assert!((3..10).contains(&app.event_loop.app.live_session.cells.matching));
    app.keys("/ ctrl-u").type_in("label:never").settle();
    let problem = app.event_loop.app.live_session.cells.filter_problem.clone();
    assert!(problem.is_some_and(|why| why.starts_with("`label:")));
}

#[test]
fn agreement_counts_are_shown_with_eval_and_in_statistics() {
    let mut app = judged(120, 40);
    go_to(&mut app, "beam-quote/beamline/names-a-version");
    app.keys("1");
    let eval = app
        .event_loop
        .app
        .live_session
        .cells
        .row(row(&app, "beam-quote/beamline/names-a-version"))
        .map_or(0, |row| row.eval);
    let height = 30;
    app.event_loop
        .app
        .live_session
        .cells
        .select_entry(CellsEntry::Group(eval), height);
    app.send_msg(crate::tui::msg::Msg::TimePassed).settle();
    let line = "n = 3: 0 true passes, 0 false passes, 0 true fails, 3 false fails";
    assert_eq!(
        app.event_loop
            .app
            .live_session
            .cells
            .tally_agreement(eval)
            .format_counts(),
        line
    );
    assert!(
        app.screen().contains("against your labels"),
        "{}",
        app.screen()
    );
    app.keys("S G");
    assert!(app.screen().contains("labels of "), "{}", app.screen());
}

#[test]
fn each_label_updates_direction_of_flips() {
    let mut app = judged(120, 40);
    let (_, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    let expected = |app: &TestWorkbench| {
        summarize(app.event_loop.app.saves.report.as_ref().expect("a report"))
    };
    assert!(
        expected(&app).ends_with("3 flips, all 3 towards your labels"),
        "{}",
        expected(&app)
    );
    go_to(&mut app, "beam-quote/beamline/names-a-version");
    app.keys("1 x");
    assert!(
        expected(&app).ends_with("2 towards your labels, 1 without a label"),
        "{}",
        expected(&app)
    );
    app.keys("f");
    assert!(
        expected(&app).ends_with("2 towards your labels, 1 away"),
        "{}",
        expected(&app)
    );
    app.keys("U U");
    assert!(
        expected(&app).ends_with("all 3 towards your labels"),
        "{}",
        expected(&app)
    );
    app.settle_for(|model| model.label_edits.pending.is_empty());
    assert!(
        expected(&app).ends_with("all 3 towards your labels"),
        "{}",
        expected(&app)
    );
}

#[test]
fn renamed_labelled_eval_loads_with_label_problem() {
    let mut app = judged(120, 40);
    let path = "rubrics/beamline.yaml";
    let text = std::fs::read_to_string(app.root.join(path)).expect("a rubric");
    let renamed = text.replace("names-a-version", "names-some-version");
    assert_ne!(text, renamed);
    let notices = |app: &TestWorkbench| -> Vec<String> {
        let log = &app.event_loop.app.notices.log;
        log.iter().map(|notice| notice.text.clone()).collect()
    };
    app.save(path, &renamed).settle();
    assert!(app.event_loop.app.saves.problems.is_empty());
    let cells = &app.event_loop.app.live_session.cells;
    assert!(
        cells
            .evals
            .iter()
            .any(|eval| eval.id == "names-some-version")
    );
    let expected = notices(&app);
    assert!(
        expected.iter().any(|text| text.starts_with("labels.jsonl:")
            && text.contains("3 labels are for the eval `names-a-version` of the rubric `beamline`, which is not here; did you mean `names-some-version`?")
            && text.contains("such labels count for nothing until you fix them")),
        "{expected:#?}"
    );
    app.save(path, &text).settle();
    let expected = notices(&app);
    assert!(
        expected.iter().any(|text| text == "all labels match again"),
        "{expected:#?}"
    );
    assert!(
        app.event_loop
            .app
            .workspace()
            .is_some_and(|w| w.label_problems.is_empty())
    );
}

/// Replaces a text of the demo's support rubric.
fn edit_support(app: &mut TestWorkbench, from: &str, to: &str) {
    let path = "rubrics/support.yaml";
    let text = std::fs::read_to_string(app.root.join(path)).expect("a rubric");
    let edited = text.replace(from, to);
    assert_ne!(text, edited);
    app.save(path, &edited).settle();
}

#[test]
fn inverted_criterion_leaves_labels_to_confirm_and_one_key_confirms() {
    const TONE: &str = "refund-02/support/tone";
    const OTHER: &str = "refund-03/support/tone";
    let mut app = judged(120, 40);
    app.save("labels.jsonl", "").settle();
    for name in [TONE, OTHER] {
        go_to(&mut app, name);
        app.keys("1 p");
    }
    read_back(&mut app);
    let written = last(&app);
    assert!(written.question_digest.is_some() && written.transcript_digest.is_some());
    assert_eq!(written.blind, Some(false));
    let state = |app: &TestWorkbench| {
        let cells = &app.event_loop.app.live_session.cells;
        let of = |name: &str| {
            let row = cells.row(row(app, name)).expect("a row");
            (row.label, row.to_confirm.is_some())
        };
        (of(TONE), of(OTHER))
    };
    let counted = (Some(LabelValue::Pass), false);
    assert_eq!(state(&app), (counted, counted));
    // A bound is not part of the question.
    edit_support(&mut app, "min_score: 0.7", "min_score: 0.6");
    assert_eq!(state(&app), (counted, counted));
    edit_support(
        &mut app,
        "never talks down to them",
        "always talks down to them",
    );
    assert_eq!(state(&app), ((None, true), (None, true)));
    let eval = app
        .event_loop
        .app
        .live_session
        .cells
        .row(row(&app, TONE))
        .map_or(0, |row| row.eval);
    let tally = app.event_loop.app.live_session.cells.tally_agreement(eval);
    assert_eq!((tally.labelled, tally.agreement.to_confirm), (0, 2));
    go_to(&mut app, TONE);
    app.keys("1");
    assert!(app.screen().contains("to confirm"), "{}", app.screen());
    app.keys("a");
    read_back(&mut app);
    assert_eq!(state(&app), (counted, (None, true)));
    // Another answer is kept next to the earlier one.
    go_to(&mut app, OTHER);
    app.keys("1 f");
    read_back(&mut app);
    assert_eq!(state(&app), (counted, (Some(LabelValue::Fail), false)));
    assert_eq!(last(&app).earlier.len(), 1);
    app.keys("U");
    read_back(&mut app);
    assert_eq!(state(&app), (counted, (None, true)));
}

#[test]
fn blind_label_records_that_no_verdict_was_seen() {
    use crate::model::SeenVerdicts;
    let mut app = judged(120, 40);
    app.save("labels.jsonl", "").settle();
    go_to(&mut app, CELL);
    app.keys("1 p");
    read_back(&mut app);
    assert_eq!(
        (last(&app).blind, last(&app).seen),
        (Some(false), Some(SeenVerdicts::ThisJudge))
    );
    app.keys("1 B");
    go_to(&mut app, "refund-03/support/grounded");
    app.keys("p");
    read_back(&mut app);
    assert_eq!(
        (last(&app).blind, last(&app).seen),
        (Some(true), Some(SeenVerdicts::None))
    );
}

#[test]
fn labels_of_several_people_appear_side_by_side() {
    let mut app = judged(120, 40);
    let line = |by: &str, passed: bool| {
        format!(
            "{{\"transcript\":\"beam-upgrade\",\"rubric\":\"beamline\",\"eval\":\"newest\",\"passed\":{passed},\"by\":\"{by}\"}}\n"
        )
    };
    app.save("labels.jsonl", &(line("ann", true) + &line("bo", false)))
        .settle();
    go_to(&mut app, CELL);
    app.keys("5 +").settle();
    assert!(
        app.screen().contains("labels: ann ✓, bo ✗"),
        "{}",
        app.screen()
    );
}

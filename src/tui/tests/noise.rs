//! Noise runs in the workbench: `*` on an eval, and the marks of flips that prove nothing.

use std::fs;

use super::last_notice;
use crate::model::Outcome;
use crate::record::NoiseRecords;
use crate::tui::msg::Msg;
use crate::tui::state::cells::{CellsEntry, RowId};
use crate::tui::testing::TestWorkbench;

const BEAMLINE: &str = "rubrics/beamline.yaml";

/// Opens the demo, judges it, and selects the group of an eval.
fn judged(eval: &str) -> TestWorkbench {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle().keys("R").settle();
    let cells = &mut app.event_loop.app.live_session.cells;
    let at = cells.evals.iter().position(|info| info.id == eval);
    let at = u32::try_from(at.expect("the demo has the eval")).expect("few");
    cells.list.selected = Some(CellsEntry::Group(at));
    app.draw();
    app
}

#[test]
fn repeating_an_eval_measures_its_noise_and_decides_nothing() {
    let mut app = judged("newest");
    let total = |app: &TestWorkbench| format!("{:?}", app.event_loop.app.live_session.cells.total);
    let before = total(&app);
    let cells = &app.event_loop.app.live_session.cells;
    let all = cells.group_rows().expect("a group").len();
    app.keys("*").settle();
    let asks = app.screen();
    assert!(asks.contains("how noisy is the judge?"), "{asks}");
    app.keys("enter").settle();
    assert!(
        last_notice(&app).starts_with("noise: 0 of "),
        "{}",
        last_notice(&app)
    );
    assert_eq!(total(&app), before, "repeats decide nothing");
    let cells = &app.event_loop.app.live_session.cells;
    let rows = cells.rows.iter();
    let repeated = rows.filter(|row| cells.repeats_of(row).is_some_and(|one| one.repeats == 5));
    assert_eq!(repeated.count(), all);
    app.keys("I").settle();
    let figures = app.screen();
    assert!(figures.contains("pairs of repeats differ"), "{figures}");
}

#[test]
fn eval_without_a_judge_is_not_repeated() {
    let mut app = judged("names-a-version");
    app.keys("*").settle();
    assert_eq!(
        last_notice(&app),
        "this eval has no judge: select a judged eval"
    );
}

#[test]
fn flip_whose_cell_differs_without_an_edit_is_marked_in_the_changes() {
    let mut app = TestWorkbench::watched(120, 40);
    let text = fs::read_to_string(app.root.join(BEAMLINE)).expect("the demo's rubric");
    app.settle().keys("R").settle();
    let criteria = "The answer names the newest Beamline release on https://releases.beamline.example/downloads.";
    let edited = text.replace(criteria, &format!("{criteria} It mentions \"zebra\"."));
    app.save(BEAMLINE, &edited).settle();
    let noise_of = |app: &TestWorkbench, row: RowId, outcomes: &[Outcome]| {
        let cells = &app.event_loop.app.live_session.cells;
        let question = cells.row(row).and_then(|row| cells.repeated_question(row));
        let name = cells.decision_name(row).expect("a row");
        let question = question.expect("one judge decides it");
        NoiseRecords::of_one_question(question, name, outcomes)
    };
    let report = app.event_loop.app.saves.report.as_ref();
    let row = report.expect("an edit").flips.first().expect("a flip").row;
    let read = |app: &TestWorkbench, number: u64, outcomes: &[Outcome]| Msg::NoiseRead {
        number,
        root: app.root.clone(),
        measured: None,
        noise: Ok(noise_of(app, row, outcomes).into()),
    };
    let first = app.event_loop.app.noise_reads.next_number();
    let steady = read(&app, first, &[Outcome::Pass, Outcome::Pass]);
    app.send_msg(steady).draw();
    assert!(!app.screen().contains("noise:"), "{}", app.screen());
    let second = app.event_loop.app.noise_reads.next_number();
    let noisy = read(&app, second, &[Outcome::Pass, Outcome::Fail, Outcome::Pass]);
    app.send_msg(noisy).draw();
    let screen = app.screen();
    assert!(screen.contains("noise: 2 of 3 pass"), "{screen}");
    // A read that was ordered earlier can end later.
    let late = read(&app, first, &[Outcome::Pass, Outcome::Pass]);
    app.send_msg(late).draw();
    let screen = app.screen();
    assert!(screen.contains("noise: 2 of 3 pass"), "{screen}");
    // The queue of noise has the decision, as that of `dicta label` has.
    let cells = &app.event_loop.app.live_session.cells;
    let eval = cells.row(row).expect("a row").eval;
    let found = cells.queue_rows(eval, None).expect("an eval");
    let at = found.rows.iter().position(|one| *one == row);
    let at = at.expect("the decision can be labelled");
    assert!(found.eval.items[at].is_noisy);
    let noisy = found.eval.items.iter().filter(|item| item.is_noisy);
    assert_eq!(noisy.count(), 1);
}

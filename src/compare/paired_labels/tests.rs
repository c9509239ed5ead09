//! Tests of the labels of a pair: the same label for both verdicts, drawn ones in figures, others apart.

use super::*;
use crate::model::{DrawStratum, Label, WallTime};
use crate::record::history_testing::{Step, history_after};

fn draw(drawn: &[&str]) -> RecordedDraw {
    let members = ["t0", "t1"];
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    RecordedDraw {
        rubric: "r".to_owned(),
        eval: "asked".to_owned(),
        plan: "random".to_owned(),
        by: None,
        seed: 1,
        at: WallTime("2026-01-01T00:00:00Z".to_owned()),
        population: RecordedDraw::digest_population(members),
        strata: vec![DrawStratum {
            name: "all".to_owned(),
            members: ids(&members),
        }],
        drawn: ids(drawn),
        arrived: Vec::new(),
    }
}

/// Returns the eval `asked` before and after an edit that turns the fail of t1 (score 0.3) into a pass.
fn pair(labels: &[Label], draws: &[RecordedDraw]) -> EvalLabels {
    let steps = [
        Step::SetBound(0, Some(5)),
        Step::Run,
        Step::SetBound(0, Some(2)),
        Step::RunPart(0),
    ];
    let history = history_after(&steps);
    let [before, after] = history.entries() else {
        panic!("two entries");
    };
    let labels = Labels::new(labels.iter().cloned());
    let all = collect_paired_labels(Some(&before.state), &after.state, &labels, draws);
    let asked = all.into_iter().find(|one| one.eval == "asked");
    asked.expect("the model has it")
}

fn label(transcript: &str, passed: bool) -> Label {
    Label::new(transcript, "asked", Some(passed))
}

#[test]
fn moved_draw_measures_an_edit_before_the_rename() {
    let history = history_after(&[
        Step::SetBound(0, Some(5)),
        Step::Run,
        Step::SetBound(0, Some(2)),
        Step::RunPart(0),
        Step::Rename(0),
        Step::RunPart(0),
    ]);
    let [before, after, renamed] = history.entries() else {
        panic!("three entries");
    };
    let later = renamed.state.header.evals[0].id.clone();
    let moved = |label: Label| Label {
        eval: later.clone(),
        ..label
    };
    let labels = Labels::new([moved(label("t0", false)), moved(label("t1", true))]);
    let draws = [RecordedDraw {
        eval: later.clone(),
        ..draw(&["t0", "t1"])
    }];
    let all = collect_paired_labels(Some(&before.state), &after.state, &labels, &draws);
    let counts = all[0].labels.figures(Confidence::P95).measured;
    assert_eq!((counts.both_right, counts.lost, counts.gained), (1, 0, 1));
}

#[test]
fn drawn_labels_are_gained_and_lost() {
    let labels = [label("t0", false), label("t1", true)];
    let found = pair(&labels, &[draw(&["t0", "t1"])]).labels;
    let figures = found.figures(Confidence::P95);
    let counts = figures.measured;
    assert_eq!((counts.both_right, counts.lost, counts.gained), (1, 0, 1));
    assert_eq!(figures.debug.labels(), 0);
    assert!(figures.p_value.is_some_and(|p| (p - 1.0).abs() < 1e-9));
    let difference = figures.difference.expect("two labels");
    assert!((difference.difference - 0.5).abs() < 1e-12);
    assert_eq!(found.counts(Some(true)).gained, 1);
    assert_eq!(found.counts(Some(false)).labels(), 1);
    let sides = [PairSide::Older, PairSide::Newer]
        .map(|side| found.side_figures(side, Confidence::P95).expect("labels"));
    assert_eq!(sides.map(|side| side.agreement.point), [Ok(0.5), Ok(1.0)]);
}

#[test]
fn label_of_no_draw_is_only_counted() {
    let found = pair(&[label("t1", true)], &[]).labels;
    let figures = found.figures(Confidence::P95);
    assert_eq!((figures.measured.labels(), figures.debug.gained), (0, 1));
    assert_eq!(figures.difference, Err(Undefined::NoLabels));
    assert_eq!(
        (figures.p_value, found.agreement(Confidence::P95)),
        (None, None)
    );
}

#[test]
fn joined_labels_of_two_evals_are_two_strata() {
    let one = pair(
        &[label("t0", false), label("t1", true)],
        &[draw(&["t0", "t1"])],
    );
    let mut other = one.clone();
    for item in &mut other.labels.items {
        item.eval = 9;
    }
    let joined = PairedLabels::join([&one.labels, &other.labels]);
    let figures = joined.figures(Confidence::P95);
    assert_eq!((figures.measured.labels(), figures.measured.gained), (4, 2));
    let difference = figures.difference.expect("labels");
    assert!((difference.difference - 0.5).abs() < 1e-12);
    let both = compute_paired_figures(&[one, other], Confidence::P95);
    assert_eq!(both[0].p_holm, Some(1.0));
}

#[test]
fn nothing_is_collected_without_labels_and_draws() {
    let history = history_after(&[Step::Run]);
    let state = &history.newest().expect("an entry").state;
    assert_eq!(
        collect_paired_labels(None, state, &Labels::default(), &[]),
        []
    );
}

//! Tests of the choice of labels: drawn ones measure, others debug.

use super::*;
use std::collections::HashMap;

use crate::model::{DrawStratum, Label, LabelSeal, LabelSplit, SplitPart, SplitRule, WallTime};
use crate::record::history_testing::{Step, history_after};

fn label(transcript: &str, passed: Option<bool>) -> Label {
    Label {
        score: passed.map(f64::from),
        ..Label::new(transcript, "asked", passed)
    }
}

fn draw(members: &[&str], drawn: &[&str]) -> RecordedDraw {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    RecordedDraw {
        rubric: "r".to_owned(),
        eval: "asked".to_owned(),
        plan: "random".to_owned(),
        by: None,
        seed: 1,
        at: WallTime("2026-01-01T00:00:00Z".to_owned()),
        population: RecordedDraw::digest_population(members.iter().copied()),
        strata: vec![DrawStratum {
            name: "all".to_owned(),
            members: ids(members),
        }],
        drawn: ids(drawn),
        arrived: Vec::new(),
    }
}

/// Returns the figures of the eval `asked` on the transcripts t0 and t1, which its judge fails.
fn figures(labels: &[Label], draws: &[RecordedDraw]) -> EvalFigures {
    let history = history_after(&[Step::Run]);
    let state = &history.newest().expect("an entry").state;
    let labels = Labels::new(labels.iter().cloned());
    let all = compute_label_figures(state, &labels, draws, Confidence::P95, |_| true);
    let asked = all.into_iter().find(|eval| eval.eval == "asked");
    asked.expect("the model has it")
}

#[test]
fn label_without_a_draw_only_helps_to_debug() {
    let found = figures(&[label("t0", Some(false)), label("t1", Some(true))], &[]);
    assert_eq!(found.measured, None);
    assert_eq!((found.debug.true_fail, found.debug.false_fail), (1.0, 1.0));
    assert_eq!((found.decisions, found.population.covered()), (2, 0));
    let scores = found.scores.expect("two scores");
    assert_eq!((scores.pairs, scores.is_measured), (2, false));
}

#[test]
fn drawn_label_measures_and_leaves_the_debug_table() {
    let labels = [label("t0", Some(false)), label("t1", Some(true))];
    let found = figures(&labels, &[draw(&["t0", "t1"], &["t0"])]);
    let measured = found.measured.expect("one label");
    assert!((measured.counts.true_fail - 1.0).abs() < 1e-9);
    assert_eq!(found.population.covered(), 2);
    assert_eq!((found.debug.labels(), found.debug.false_fail), (1.0, 1.0));
    let scores = found.scores.expect("a drawn score");
    assert_eq!((scores.pairs, scores.is_measured), (1, true));
    assert!(found.is_one_random_draw);
}

#[test]
fn drawn_decision_without_a_decided_label_is_missing() {
    for labels in [vec![], vec![label("t0", None)]] {
        let found = figures(&labels, &[draw(&["t0", "t1"], &["t0"])]);
        assert_eq!(found.measured, None, "a figure needs a label");
        let missing: u64 = found.population.cells.iter().map(|cell| cell.missing).sum();
        assert_eq!(missing, 1);
        assert_eq!(found.unsure, labels.len() as u64);
        assert_eq!(found.drawn_unsure, found.unsure);
    }
}

#[test]
fn moved_draw_measures_the_earlier_states_of_a_renamed_eval() {
    let history = history_after(&[Step::Run, Step::Rename(0), Step::Run]);
    let [before, after] = history.entries() else {
        panic!("two entries");
    };
    let later = after.state.header.evals[0].id.clone();
    // The labels and the draw have the new name, as after `dicta labels rename`.
    let moved = Label {
        eval: later.clone(),
        ..label("t0", Some(false))
    };
    let draws = [RecordedDraw {
        eval: later,
        ..draw(&["t0", "t1"], &["t0"])
    }];
    let labels = Labels::new([moved]);
    for entry in [before, after] {
        let all = compute_label_figures(&entry.state, &labels, &draws, Confidence::P95, |_| true);
        assert_eq!(all[0].population.labels(), 1, "{}", all[0].eval);
        assert_eq!(all[0].unrecorded, 0);
    }
}

#[test]
fn transcript_that_arrived_after_the_draw_is_outside_of_the_figures() {
    let labels = [label("t0", Some(false)), label("t1", Some(true))];
    let found = figures(&labels, &[draw(&["t0"], &["t0"])]);
    assert_eq!(
        (found.population.covered(), found.population.unreachable),
        (1, 1)
    );
    assert!((found.debug.false_fail - 1.0).abs() < 1e-9);
}

#[test]
fn sealed_label_is_in_no_figure_and_its_decision_stays_in_the_population() {
    let both = [label("t0", Some(false)), label("t1", Some(true))];
    let rule = SplitRule {
        train: 0.0,
        test: 0.5,
        seed: 1,
    };
    let parts = [("t0", SplitPart::Test), ("t1", SplitPart::Dev)];
    let parts = parts.map(|(id, part)| (id.to_owned(), part));
    let split = LabelSplit::new(rule, HashMap::from(parts));
    let seal = LabelSeal::new(split, &both[..1]);
    let history = history_after(&[Step::Run]);
    let state = &history.newest().expect("an entry").state;
    let draws = [draw(&["t0", "t1"], &["t0", "t1"])];
    let count = |seal: LabelSeal| {
        let labels = Labels::new(both.clone()).with_seal(seal.into());
        let all = compute_label_figures(state, &labels, &draws, Confidence::P95, |_| true);
        let asked = all.into_iter().find(|eval| eval.eval == "asked");
        let asked = asked.expect("the model has it");
        let missing: u64 = asked.population.cells.iter().map(|cell| cell.missing).sum();
        assert_eq!((asked.population.covered(), missing), (2, 0));
        let passes: u64 = asked.population.cells.iter().map(|c| c.label_passes).sum();
        (asked.population.labels(), passes, asked.sealed)
    };
    // Before the unsealing only t1 has a label, and after it only t0.
    assert_eq!(count(seal.for_unsealing()), (1, 0, 0));
    assert_eq!(count(seal), (1, 1, 1));
}

#[test]
fn draw_for_another_eval_counts_for_nothing() {
    let other = RecordedDraw {
        eval: "other".to_owned(),
        ..draw(&["t0", "t1"], &["t0"])
    };
    let found = figures(&[label("t0", Some(false))], &[other]);
    assert_eq!(found.measured, None);
    assert!((found.debug.true_fail - 1.0).abs() < 1e-9);
}

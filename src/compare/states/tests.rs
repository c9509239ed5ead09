//! Tests of the comparison of states: the parts of a comparison, renames, arithmetic, and agreement with labels.

use proptest::prelude::*;

use super::{FlipCause, compare_states, count_agreement};
use crate::model::{Label, Labels};
use crate::record::history_testing::{Step, history_after, step};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_decision_is_in_one_part_of_a_comparison(steps in prop::collection::vec(step(), 1..24)) {
        let history = history_after(&steps);
        for pair in history.entries().windows(2) {
            let (before, after) = (&pair[0].state, &pair[1].state);
            let found = compare_states(before, after);
            let parts = found.flips.len() + found.changes.len() + found.unchanged + found.pending
                + found.first_verdicts.len() + found.added.len();
            prop_assert_eq!(parts, after.len());
            prop_assert!(found.removed.len() <= before.len());
            // The judge's replies depend on question and text alone, so no flip is due to chance.
            prop_assert!(found.flips.iter().all(|flip| flip.cause != FlipCause::Chance));
            let same = compare_states(after, after);
            prop_assert!(same.flips.is_empty() && same.changes.is_empty() && same.added.is_empty());
            prop_assert!(same.removed.is_empty() && same.first_verdicts.is_empty());
        }
    }
}

#[test]
fn renamed_eval_is_unchanged() {
    let history = history_after(&[Step::Run, Step::Rename(0), Step::RunPart(0)]);
    let [first, renamed] = history.entries() else {
        panic!("two entries");
    };
    let found = compare_states(&first.state, &renamed.state);
    assert_eq!(
        (found.unchanged, found.added.len(), found.removed.len()),
        (4, 0, 0)
    );
}

#[test]
fn changed_bound_is_arithmetic() {
    // The score of question 0 on content 1 is 0.3.
    let steps = [
        Step::SetBound(0, Some(2)),
        Step::Run,
        Step::SetBound(0, Some(5)),
        Step::RunPart(0),
    ];
    let history = history_after(&steps);
    let [before, after] = history.entries() else {
        panic!("two entries");
    };
    let found = compare_states(&before.state, &after.state);
    assert_eq!(found.flips.len(), 1);
    let flip = &found.flips[0];
    assert_eq!(flip.name.to_string(), "t1/r/asked");
    let arithmetic = flip.cause.format_arithmetic();
    assert_eq!(arithmetic.as_deref(), Some("0.30 < 0.50, was ≥ 0.20"));
    // The check was not repeated under the other bound of its neighbour, and is unchanged.
    assert_eq!(found.unchanged + found.flips.len(), 4);
}

#[test]
fn agreement_counts_labels_of_transcripts() {
    let history = history_after(&[Step::Run]);
    let state = &history.newest().expect("an entry").state;
    let label = |transcript: &str, eval: &str, passed| Label {
        transcript: transcript.to_owned(),
        rubric: None,
        eval: eval.to_owned(),
        passed: Some(passed),
        score: None,
        by: None,
        at: None,
        note: None,
        ..Label::default()
    };
    // The judge fails both transcripts: the scores are 0.0 and 0.3.
    let labels = Labels::new([label("t0", "asked", false), label("t1", "asked", true)]);
    let agreement = count_agreement(state, &labels);
    assert_eq!((agreement.all.true_fail, agreement.all.false_fail), (1, 1));
    assert_eq!(agreement.evals[0].total(), 2);
    assert_eq!(agreement.evals[1].total(), 0);
}

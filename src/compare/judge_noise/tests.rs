//! Tests of the use of repeats: the same question only, and flips against the range of noise.

use super::*;
use crate::record::history_testing::{Step, history_after};

#[test]
fn flips_within_the_range_of_noise_are_explained_by_it() {
    let quiet = RepeatedCell {
        passes: 5,
        repeats: 5,
    };
    let noisy = RepeatedCell {
        passes: 2,
        repeats: 5,
    };
    let cells = [vec![quiet; 93], vec![noisy; 7]].concat();
    let few = expect_flips(&cells, 60, 2, NoiseBasis::Newer).expect("measured");
    assert!(
        few.p_value > 0.05 && few.least <= 2 && 2 <= few.most,
        "{few:?}"
    );
    let many = expect_flips(&cells, 60, 20, NoiseBasis::Newer).expect("measured");
    assert!(many.p_value < 0.05 && many.most < 20, "{many:?}");
    assert_eq!(expect_flips(&[], 60, 2, NoiseBasis::Newer), None);
}

#[test]
fn decisions_that_rest_on_the_same_verdict_are_not_judged_again() {
    // The other bound flips a decision by arithmetic.
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
    let noise = NoiseRecords::default();
    let found = compare_with_noise(&before.state, &after.state, &Labels::default(), &noise);
    assert_eq!(found, []);
}

#[test]
fn flips_of_an_edited_question_have_unknown_noise_without_repeats() {
    let steps = [Step::Run, Step::EditQuestion(0, 1), Step::Run];
    let history = history_after(&steps);
    let [before, after] = history.entries() else {
        panic!("two entries");
    };
    let noise = NoiseRecords::default();
    let found = compare_with_noise(&before.state, &after.state, &Labels::default(), &noise);
    assert_eq!(found.len(), 1, "the scores 0.0 and 0.3 become 0.7 and 0.0");
    assert_eq!((found[0].flips, found[0].judged_again), (1, 2));
    assert_eq!(found[0].expected, None);
    let rates = measure_noise(&after.state, &noise, Confidence::P95);
    assert!(rates.iter().all(EvalNoise::is_unknown) && !rates.is_empty());
}

#[test]
fn vote_counts_only_the_repeats_that_it_always_makes() {
    let terms = VoteParams {
        repeat: 3,
        ..VoteParams::single_judge()
    };
    let cells = |verdicts: &[bool]| {
        let numbered = (1..).zip(verdicts);
        let cells: Vec<_> = numbered
            .map(|(repeat, passed)| (Some(0), Some(repeat), Some(*passed)))
            .collect();
        count_certain_repeats(terms, cells)
    };
    let pair = |passes| Some(RepeatedCell { passes, repeats: 2 });
    assert_eq!(cells(&[true, true]), pair(2));
    assert_eq!(cells(&[true, false, true]), pair(1));
    let orders = VoteParams {
        needs_all_repeats: true,
        repeat: 2,
        ..terms
    };
    let both = [
        (Some(0), Some(1), Some(true)),
        (Some(0), Some(2), Some(false)),
    ];
    assert_eq!(count_certain_repeats(orders, both), None);
}

#[test]
fn cells_without_a_flip_give_no_flip_at_least() {
    let history = history_after(&[Step::Run]);
    let state = &history.entries()[0].state;
    let noise = measure_noise(state, &NoiseRecords::default(), Confidence::P95);
    let quiet = EvalNoise {
        cells: vec![
            RepeatedCell {
                passes: 3,
                repeats: 3,
            };
            20
        ],
        ..noise[0].clone()
    };
    let (least, most) = quiet.flips_of_measured().expect("measured");
    assert!(least == 0 && most > 0, "{least} {most}");
}

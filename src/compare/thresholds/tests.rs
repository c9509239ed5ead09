use proptest::prelude::*;

use super::*;
use crate::model::{Label, Verdict};

fn name(transcript: &str, repeat: Option<u32>) -> CellNameRef<'_> {
    CellNameRef {
        transcript,
        rubric: "r",
        eval: "e",
        message: None,
        judge: Some("j"),
        repeat,
    }
}

fn judged(score: f64) -> CellResult {
    CellResult {
        score: Some(score),
        verdict: Some(Box::new(Verdict {
            passed: Some(score >= 0.5),
            score: Some(score),
            ..Verdict::default()
        })),
        ..CellResult::new(Outcome::from_passed(score >= 0.5), "")
    }
}

fn label(transcript: &str, passed: bool) -> Label {
    Label {
        transcript: transcript.to_owned(),
        rubric: None,
        eval: "e".to_owned(),
        passed: Some(passed),
        score: None,
        by: None,
        at: None,
        note: None,
        ..Label::default()
    }
}

fn by(min: Option<f64>, max: Option<f64>) -> impl Fn(&str, &str) -> EvalDecisionSettings {
    move |_, _| EvalDecisionSettings {
        bounds: ScoreBounds { min, max },
        negate: false,
    }
}

fn sweep(
    scores: &ScoreCollector,
    labels: &[Label],
    min: Option<f64>,
    max: Option<f64>,
) -> ThresholdSweep {
    let mut all = scores.compute_sweeps(&Labels::new(labels.iter().cloned()), &by(min, max));
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The columns: threshold, pass, fail, true pass, false pass, true fail, false fail.
type Line = (f64, u64, u64, [u64; 4]);

fn lines(sweep: &ThresholdSweep) -> Vec<Line> {
    let line = |point: &ThresholdPoint| {
        let c = point.counts;
        let labelled = [c.true_pass, c.false_pass, c.true_fail, c.false_fail];
        (point.threshold, c.pass, c.fail, labelled)
    };
    sweep.points.iter().map(line).collect()
}

#[test]
fn every_score_is_a_threshold_and_current_one_is_marked() {
    let mut scores = ScoreCollector::default();
    for (transcript, score) in [("a", 0.2), ("b", 0.6), ("c", 0.6), ("d", 0.9)] {
        scores.add_result(name(transcript, None), "llm_judge", &judged(score));
    }
    scores.add_result(name("x", None), "llm_judge", &CellResult::cancelled());
    let labels = [
        label("a", false),
        label("b", true),
        label("c", false),
        label("d", true),
    ];
    let sweep = sweep(&scores, &labels, Some(0.7), None);
    assert_eq!(
        lines(&sweep),
        [
            (0.2, 4, 0, [2, 2, 0, 0]),
            (0.6, 3, 1, [2, 1, 1, 0]),
            (0.7, 1, 3, [1, 0, 2, 1]),
            (0.9, 1, 3, [1, 0, 2, 1]),
        ]
    );
    let current: Vec<f64> = sweep
        .points
        .iter()
        .filter(|p| p.current)
        .map(|p| p.threshold)
        .collect();
    assert_eq!((current, sweep.scored, sweep.unscored), (vec![0.7], 4, 1));
    let best = sweep.best_points().expect("labels");
    assert_eq!((best.agreeing, best.points.len()), (3, 3));
    assert_eq!(sweep.recorded.pass, 3, "as the judge itself said");
}

#[test]
fn max_score_varies_if_it_is_the_only_bound() {
    let mut scores = ScoreCollector::default();
    for (transcript, score) in [("a", 0.1), ("b", 0.5)] {
        scores.add_result(name(transcript, None), "llm_judge", &judged(score));
    }
    let sweep = sweep(&scores, &[], None, Some(0.3));
    assert_eq!(sweep.bound, BoundKind::Max);
    assert_eq!(
        lines(&sweep),
        [
            (0.1, 1, 1, [0; 4]),
            (0.3, 1, 1, [0; 4]),
            (0.5, 2, 0, [0; 4])
        ]
    );
    assert_eq!(sweep.best_points(), None, "nothing is best without labels");
}

#[test]
fn with_both_bounds_only_min_score_varies() {
    let mut scores = ScoreCollector::default();
    for (transcript, score) in [("a", 0.4), ("b", 0.95)] {
        scores.add_result(name(transcript, None), "llm_judge", &judged(score));
    }
    let sweep = sweep(&scores, &[], Some(0.4), Some(0.9));
    assert_eq!(lines(&sweep), [(0.4, 1, 1, [0; 4]), (0.95, 0, 2, [0; 4])]);
}

#[test]
fn repeats_vote_at_each_threshold() {
    let mut scores = ScoreCollector::default();
    for (repeat, score) in [(1, 0.2), (2, 0.6), (3, 0.8)] {
        scores.add_result(name("a", Some(repeat)), "llm_judge", &judged(score));
    }
    let sweep = sweep(&scores, &[], None, None);
    assert_eq!(
        lines(&sweep),
        [
            (0.2, 1, 0, [0; 4]),
            (0.6, 1, 0, [0; 4]),
            (0.8, 0, 1, [0; 4])
        ]
    );
}

#[test]
fn evals_without_applicable_scores_have_no_sweep() {
    let mut scores = ScoreCollector::default();
    let mut na = judged(0.9);
    na.outcome = Outcome::NotApplicable;
    if let Some(verdict) = &mut na.verdict {
        verdict.applicable = Some(false);
    }
    scores.add_result(name("a", None), "llm_judge", &na);
    let check = CellResult::new(Outcome::Pass, "");
    scores.add_result(
        CellNameRef {
            eval: "plain",
            ..name("a", None)
        },
        "contains",
        &check,
    );
    assert!(
        scores
            .compute_sweeps(&Labels::default(), &by(None, None))
            .is_empty()
    );
}

proptest! {
    /// The sweep counts what a new decision of each case gives.
    #[test]
    fn each_point_equals_decisions_of_a_run(
        all in prop::collection::vec(prop::collection::vec(0_u8..=4, 1..4), 1..8),
        max in prop::bool::ANY,
    ) {
        let mut scores = ScoreCollector::default();
        for (nth, cells) in all.iter().enumerate() {
            for (repeat, score) in (1..).zip(cells) {
                let transcript = nth.to_string();
                scores.add_result(name(&transcript, Some(repeat)), "k", &judged(f64::from(*score) / 4.0));
            }
        }
        let (low, high) = if max { (None, Some(0.5)) } else { (Some(0.5), None) };
        let sweep = sweep(&scores, &[], low, high);
        for point in &sweep.points {
            let bounds = if max { ScoreBounds { min: None, max: Some(point.threshold) } } else { ScoreBounds { min: Some(point.threshold), max: None } };
            let passes = all.iter().filter(|cells| {
                let hold = |score: &u8| Outcome::from_passed(bounds.contains(f64::from(*score) / 4.0));
                let cells: Vec<CellResult> = cells.iter().map(|score| CellResult::new(hold(score), "")).collect();
                crate::model::decide_cells(&cells).map(|d| d.outcome) == Some(Outcome::Pass)
            });
            prop_assert_eq!(point.counts.pass, passes.count() as u64, "{}", point.threshold);
        }
    }
}

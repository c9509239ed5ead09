//! The effect of another threshold on the decisions of one eval in a state, fast enough for every key press.
//!
//! Responsible for evals with one cell per decision, whose score alone decides. Votes of several cells need the results
//! of the cells: [`super::ScoreCollector`] counts them. Does not call judges and does not read logs.

use thiserror::Error;

use super::flips::{FlipCounts, FlipDirection};
use super::thresholds::BoundKind;
use crate::model::{LabelAgreement, Labels, ScoreBounds};
use crate::record::State;

/// A decision with the score that decides it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredDecision {
    /// The position in the decisions of the eval.
    pub decision: usize,
    /// The score.
    pub score: f64,
    /// The recorded verdict.
    pub passed: bool,
    /// The label; `None` without one, and for unsure.
    pub label: Option<bool>,
}

/// The decisions at one threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreviewCounts {
    /// The number of passes.
    pub pass: u64,
    /// The number of fails.
    pub fail: u64,
    /// The verdicts against the labels.
    pub agreement: LabelAgreement,
    /// The verdicts that differ from the recorded ones.
    pub flips: FlipCounts,
}

/// The reason why dicta can't preview a threshold of an eval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PreviewObstacle {
    /// No decision has a score.
    #[error("this eval has no scores")]
    NoScores,
    /// Decisions have several cells.
    #[error("several verdicts decide this eval: `dicta show @ --thresholds` counts its votes")]
    SeveralCells,
    /// Code decides the eval by its params, and a bound would replace that decision.
    #[error("code decides this eval by its params: e edits them")]
    CheckParams,
    /// The recorded verdicts do not follow from the scores and the bounds.
    #[error("more than the score decides this eval")]
    OtherRule,
}

/// The scores of one eval in a state, with the bound that varies.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdPreview {
    /// The bound that varies. `max_score` varies only if it is the only bound.
    pub bound: BoundKind,
    /// The current threshold; `None` if the judge's own pass or fail decides.
    pub current: Option<f64>,
    /// The decisions with a verdict and a score, by score.
    pub decisions: Vec<ScoredDecision>,
    /// The number of decisions without a verdict or a score.
    pub excluded: usize,
    /// `max_score`, while `min_score` varies.
    fixed_max: Option<f64>,
    /// `true` if the eval passes when its check fails.
    negated: bool,
}

impl ThresholdPreview {
    /// Collects the scores of an eval. `eval` is its position in the state's header.
    pub fn collect(state: &State, eval: usize, labels: &Labels) -> Result<Self, PreviewObstacle> {
        let (Some(spec), Some(all)) = (state.header.evals.get(eval), state.evals.get(eval)) else {
            return Err(PreviewObstacle::NoScores);
        };
        let mut decisions = Vec::new();
        let mut several_cells = spec.panel.is_some() || spec.repeat > 1;
        for (at, decision) in all.decisions.iter().enumerate() {
            let (Some(passed), Some(score)) = (decision.judged_verdict(), decision.score()) else {
                continue;
            };
            several_cells |= decision.cells.len() > 1;
            let label = state
                .label_query(decision)
                .and_then(|query| labels.find(&query));
            decisions.push(ScoredDecision {
                decision: at,
                score,
                passed,
                label: label.and_then(|label| label.passed),
            });
        }
        if decisions.is_empty() {
            return Err(PreviewObstacle::NoScores);
        }
        if several_cells {
            return Err(PreviewObstacle::SeveralCells);
        }
        decisions.sort_by(|a, b| a.score.total_cmp(&b.score));
        let bounds = ScoreBounds::from_decision_settings(&spec.decision_settings);
        if bounds.is_empty() && !spec.judged && spec.judge.is_none() {
            return Err(PreviewObstacle::CheckParams);
        }
        let (bound, current, fixed_max) = match bounds {
            ScoreBounds {
                min: None,
                max: Some(max),
            } => (BoundKind::Max, Some(max), None),
            ScoreBounds { min, max } => (BoundKind::Min, min, max),
        };
        let mut preview = Self {
            bound,
            current,
            excluded: all.decisions.len() - decisions.len(),
            decisions,
            fixed_max,
            negated: false,
        };
        preview.negated = preview.find_negation(bounds)?;
        Ok(preview)
    }

    /// Reports whether the recorded verdicts are the reverse of the bounds. The header does not record `not:`.
    fn find_negation(&self, bounds: ScoreBounds) -> Result<bool, PreviewObstacle> {
        if bounds.is_empty() {
            return Ok(false);
        }
        let follows = |one: &ScoredDecision| one.passed == bounds.contains(one.score);
        let following = self.decisions.iter().filter(|one| follows(one)).count();
        match following {
            0 => Ok(true),
            all if all == self.decisions.len() => Ok(false),
            _ => Err(PreviewObstacle::OtherRule),
        }
    }

    /// Returns the verdict of a decision at a threshold; without one, the recorded verdict.
    pub fn passes_at(&self, one: &ScoredDecision, threshold: Option<f64>) -> bool {
        let Some(threshold) = threshold else {
            return one.passed;
        };
        let bounds = match self.bound {
            BoundKind::Min => ScoreBounds {
                min: Some(threshold),
                max: self.fixed_max,
            },
            BoundKind::Max => ScoreBounds {
                min: None,
                max: Some(threshold),
            },
        };
        bounds.contains(one.score) != self.negated
    }

    /// Counts the decisions at a threshold; without one, as recorded.
    pub fn count_at(&self, threshold: Option<f64>) -> PreviewCounts {
        let mut counts = PreviewCounts::default();
        for one in &self.decisions {
            let passed = self.passes_at(one, threshold);
            *if passed {
                &mut counts.pass
            } else {
                &mut counts.fail
            } += 1;
            if let Some(label) = one.label {
                counts.agreement.add(passed, label);
            }
            if passed != one.passed {
                let agrees = one.label.map(|label| label == passed);
                counts.flips.add(FlipDirection::from_agreement(agrees));
            }
        }
        counts
    }

    /// Returns the decisions whose verdict at a threshold differs from the recorded one, by score.
    pub fn flips_at(&self, threshold: Option<f64>) -> impl Iterator<Item = &ScoredDecision> {
        self.decisions
            .iter()
            .filter(move |one| self.passes_at(one, threshold) != one.passed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use indexmap::IndexMap;
    use serde_json::json;

    use super::*;
    use crate::event::{EvalSpec, RubricSpec, RunHeader};
    use crate::model::{Digest, Label, Outcome, RunId, WallTime};
    use crate::record::{DecisionStanding, EvalDecisions, StateDecision, StateTranscript};

    fn state(bound: Option<(&str, f64)>, repeat: u32, decided: &[(bool, Option<f64>)]) -> State {
        let mut header = RunHeader::new(RunId("r".into()), WallTime(String::new()), "/w".into());
        header.rubrics.push(RubricSpec {
            id: "r".into(),
            path: "r.yaml".into(),
            threshold: None,
        });
        let mut eval = EvalSpec::new(0, "e", "llm_judge", Digest::unread());
        eval.repeat = repeat;
        eval.decision_settings = bound
            .map(|(name, at)| (name.to_owned(), json!(at)))
            .into_iter()
            .collect::<IndexMap<_, _>>();
        header.evals.push(eval);
        let number = |at: usize| u32::try_from(at).expect("few");
        let transcripts = (0..decided.len()).map(|at| StateTranscript {
            id: format!("t{at}").into(),
            digest: Digest::unread(),
        });
        let decisions = decided
            .iter()
            .enumerate()
            .map(|(at, (passed, score))| StateDecision {
                transcript: number(at),
                eval: 0,
                message: None,
                standing: DecisionStanding::Decided {
                    outcome: Outcome::from_passed(*passed),
                    score: *score,
                },
                cells: Box::default(),
                slots: Box::default(),
                failed_rerun: None,
                edited: false,
            });
        State {
            identities: Vec::new(),
            header: Arc::new(header),
            transcripts: Arc::new(transcripts.collect()),
            evals: vec![Arc::new(EvalDecisions {
                decisions: decisions.collect(),
            })],
        }
    }

    fn labels(all: &[(&str, bool)]) -> Labels {
        Labels::new(all.iter().map(|(transcript, passed)| Label {
            transcript: (*transcript).to_owned(),
            rubric: None,
            eval: "e".into(),
            passed: Some(*passed),
            score: None,
            by: None,
            at: None,
            note: None,
            ..Label::default()
        }))
    }

    #[test]
    fn lower_threshold_flips_the_scores_between() {
        let state = state(
            Some(("min_score", 0.7)),
            1,
            &[
                (true, Some(0.9)),
                (false, Some(0.5)),
                (false, Some(0.2)),
                (false, None),
            ],
        );
        let labels = labels(&[("t0", true), ("t1", true), ("t2", false)]);
        let preview = ThresholdPreview::collect(&state, 0, &labels).expect("it has scores");
        assert_eq!((preview.current, preview.excluded), (Some(0.7), 1));
        let recorded = preview.count_at(None);
        assert_eq!(preview.count_at(Some(0.7)), recorded);
        assert_eq!(recorded.agreement.disagreements(), 1);
        let lower = preview.count_at(Some(0.5));
        assert_eq!((lower.pass, lower.fail), (2, 1));
        assert_eq!(lower.agreement.disagreements(), 0);
        assert_eq!((lower.flips.towards, lower.flips.total()), (1, 1));
        let lowest = preview.count_at(Some(0.1));
        assert_eq!((lowest.flips.towards, lowest.flips.away), (1, 1));
        let flips: Vec<usize> = preview
            .flips_at(Some(0.1))
            .map(|one| one.decision)
            .collect();
        assert_eq!(flips, [2, 1]);
    }

    #[test]
    fn an_upper_bound_and_a_negated_check_move_the_other_way() {
        let upper = state(
            Some(("max_score", 0.3)),
            1,
            &[(true, Some(0.1)), (false, Some(0.4))],
        );
        let preview = ThresholdPreview::collect(&upper, 0, &Labels::default()).expect("scores");
        assert_eq!(preview.bound, BoundKind::Max);
        assert_eq!(preview.count_at(Some(0.4)).pass, 2);
        assert_eq!(preview.count_at(Some(0.0)).pass, 0);
        let negated = state(
            Some(("min_score", 0.3)),
            1,
            &[(true, Some(0.1)), (false, Some(0.4))],
        );
        let preview = ThresholdPreview::collect(&negated, 0, &Labels::default()).expect("scores");
        assert_eq!(preview.count_at(Some(0.3)), preview.count_at(None));
        assert_eq!(preview.count_at(Some(0.5)).pass, 2);
    }

    #[test]
    fn evals_that_a_score_does_not_decide_are_refused() {
        let collect = |state: &State| ThresholdPreview::collect(state, 0, &Labels::default());
        let none = state(None, 1, &[(true, None)]);
        assert_eq!(collect(&none), Err(PreviewObstacle::NoScores));
        let repeats = state(Some(("min_score", 0.5)), 3, &[(true, Some(0.9))]);
        assert_eq!(collect(&repeats), Err(PreviewObstacle::SeveralCells));
        let other = state(
            Some(("min_score", 0.5)),
            1,
            &[(true, Some(0.9)), (false, Some(0.8))],
        );
        assert_eq!(collect(&other), Err(PreviewObstacle::OtherRule));
        let mut unbounded = state(None, 1, &[(true, Some(0.2)), (false, Some(0.9))]);
        assert_eq!(collect(&unbounded), Err(PreviewObstacle::CheckParams));
        Arc::make_mut(&mut unbounded.header).evals[0].judged = true;
        let preview = collect(&unbounded).expect("a first bound can be tried");
        assert_eq!(preview.count_at(None).flips.total(), 0);
        assert_eq!(preview.count_at(Some(0.5)).flips.total(), 2);
    }
}

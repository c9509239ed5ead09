//! The effect of other thresholds: the decisions at every `min_score` (or `max_score`) that the recorded scores
//! distinguish, and their agreement with labels.
//!
//! Responsible for arithmetic over recorded results. Does not call judges. The vote rule decides a decision of
//! several cells at each threshold, as in a run.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::event::RunHeader;
use crate::model::{
    Ballot, CellNameRef, CellResult, CellVote, Digest, Doubt, LabelQuery, Labels, Outcome,
    PanelRule, ScoreBounds, VerdictSummary, VoteParams, compares_pairs, verdict_probability,
};
use crate::record::{EvalDecisionSettings, PanelRules};

/// The bound that varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundKind {
    /// `min_score`: a score at or above it passes.
    Min,
    /// `max_score`: a score at or below it passes.
    Max,
}

impl BoundKind {
    /// Returns the key in rubric files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Min => "min_score",
            Self::Max => "max_score",
        }
    }
}

/// The decisions at one threshold, by outcome and by agreement with labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThresholdCounts {
    /// The number of decisions that pass.
    pub pass: u64,
    /// The number of decisions that fail.
    pub fail: u64,
    /// The number of decisions without a verdict: the vote is `not_applicable`, or too few cells have scores.
    pub no_verdict: u64,
    /// The number of true passes.
    pub true_pass: u64,
    /// The number of false passes.
    pub false_pass: u64,
    /// The number of true fails.
    pub true_fail: u64,
    /// The number of false fails.
    pub false_fail: u64,
}

impl ThresholdCounts {
    /// Returns the number of verdicts with a label.
    pub fn labelled(self) -> u64 {
        self.labelled_pass() + self.labelled_fail()
    }

    /// Returns the number of verdicts whose label is a pass.
    pub fn labelled_pass(self) -> u64 {
        self.true_pass + self.false_fail
    }

    /// Returns the number of verdicts whose label is a fail.
    pub fn labelled_fail(self) -> u64 {
        self.true_fail + self.false_pass
    }

    /// Returns the number of verdicts that agree with their label.
    pub fn agreeing(self) -> u64 {
        self.true_pass + self.true_fail
    }

    fn counters_mut(&mut self, outcome: Outcome, label: Option<bool>) -> [Option<&mut u64>; 2] {
        let labelled = match (outcome.passed(), label) {
            (Some(true), Some(true)) => Some(&mut self.true_pass),
            (Some(true), Some(false)) => Some(&mut self.false_pass),
            (Some(false), Some(false)) => Some(&mut self.true_fail),
            (Some(false), Some(true)) => Some(&mut self.false_fail),
            _ => None,
        };
        let all = match outcome.passed() {
            Some(true) => &mut self.pass,
            Some(false) => &mut self.fail,
            None => &mut self.no_verdict,
        };
        [Some(all), labelled]
    }

    fn count(&mut self, outcome: Outcome, label: Option<bool>) {
        for count in self.counters_mut(outcome, label).into_iter().flatten() {
            *count += 1;
        }
    }

    fn uncount(&mut self, outcome: Outcome, label: Option<bool>) {
        for count in self.counters_mut(outcome, label).into_iter().flatten() {
            *count -= 1;
        }
    }
}

/// The thresholds with the highest agreement with labels.
#[derive(Debug, Clone, PartialEq)]
pub struct BestThresholds<'s> {
    /// The number of verdicts that agree with their label.
    pub agreeing: u64,
    /// The thresholds, ascending.
    pub points: Vec<&'s ThresholdPoint>,
}

/// One threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThresholdPoint {
    /// The threshold: a recorded score, or the current threshold.
    pub threshold: f64,
    /// `true` for the current threshold.
    pub current: bool,
    /// The decisions at this threshold.
    pub counts: ThresholdCounts,
}

/// The thresholds of one eval.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdSweep {
    /// The rubric's id.
    pub rubric: String,
    /// The eval's id.
    pub eval: String,
    /// The eval type.
    pub eval_type: String,
    /// The bound that varies.
    pub bound: BoundKind,
    /// The current threshold. `None` if no bound is set, so that the judge's or check's own pass or fail decides.
    pub current: Option<f64>,
    /// The number of decisions with a score.
    pub scored: u64,
    /// The number of decisions without a score, which are excluded.
    pub unscored: u64,
    /// The decisions as the run recorded them.
    pub recorded: ThresholdCounts,
    /// The decisions by threshold, ascending.
    pub points: Vec<ThresholdPoint>,
}

impl ThresholdSweep {
    /// Returns the thresholds with the highest agreement; `None` without labels.
    pub fn best_points(&self) -> Option<BestThresholds<'_>> {
        let most = self
            .points
            .iter()
            .map(|point| point.counts.agreeing())
            .max()?;
        let points = self.points.iter();
        let best: Vec<&ThresholdPoint> = points.filter(|p| p.counts.agreeing() == most).collect();
        // Without labels, every threshold has an agreement of 0.
        let labelled = best.iter().any(|point| point.counts.labelled() > 0);
        labelled.then_some(BestThresholds {
            agreeing: most,
            points: best,
        })
    }
}

/// Collects results by eval.
#[derive(Debug, Default)]
pub struct ScoreCollector {
    evals: IndexMap<EvalKey, EvalScores>,
    /// The questions of the evals, as far as the run recorded them.
    questions: HashMap<EvalKey, Digest>,
    /// The digests of the transcripts.
    transcripts: HashMap<String, Digest>,
}

/// The ids of an eval.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct EvalKey {
    rubric: String,
    eval: String,
}

/// The place of a decision of one eval.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DecisionKey {
    transcript: String,
    message: Option<u32>,
}

#[derive(Debug, Default)]
struct EvalScores {
    eval_type: String,
    /// The panel rules of the evals, by judge names.
    panel_rules: Option<PanelRules>,
    decisions: IndexMap<DecisionKey, Vec<ScoredCell>>,
}

#[derive(Debug, Clone)]
struct ScoredCell {
    judge: Option<String>,
    repeat: Option<u32>,
    probability: Option<f64>,
    doubt: Option<Doubt>,
    outcome: Outcome,
    score: Option<f64>,
    stated: Option<VerdictSummary>,
}

impl ScoredCell {
    /// The score, if it determines the outcome.
    fn score(&self) -> Option<f64> {
        match self.stated {
            // A verdict that does not apply has no score, even if the judge wrote one.
            Some(stated) if stated.applicable == Some(false) => None,
            Some(stated) => stated.score,
            None => self.score.filter(|_| self.outcome.is_verdict()),
        }
    }
}

impl ScoreCollector {
    /// Records which evals have a panel, and the question of each eval.
    pub fn add_evals(&mut self, header: &RunHeader) {
        for spec in &header.evals {
            if let (Some(question), Some(rubric)) =
                (&spec.question, header.rubrics.get(spec.rubric as usize))
            {
                let key = EvalKey {
                    rubric: rubric.id.clone(),
                    eval: spec.id.clone(),
                };
                self.questions.insert(key, question.clone());
            }
            let (Some(panel), Some(rubric)) =
                (&spec.panel, header.rubrics.get(spec.rubric as usize))
            else {
                continue;
            };
            let name = |judge: &u32| {
                let spec = header.judges.get(*judge as usize)?;
                Some(spec.config.name.clone())
            };
            let scores = self.evals.entry(EvalKey {
                rubric: rubric.id.clone(),
                eval: spec.id.clone(),
            });
            scores.or_default().panel_rules = Some(PanelRules {
                rule: panel.rule,
                judges: panel.judges.iter().filter_map(name).collect(),
                bounds: ScoreBounds::from_decision_settings(&spec.decision_settings),
                repeat: spec.repeat,
                needs_all_repeats: compares_pairs(&spec.eval_type),
            });
        }
    }

    /// Records the digest of a transcript.
    pub fn add_transcript(&mut self, id: &str, digest: &Digest) {
        if !self.transcripts.contains_key(id) {
            self.transcripts.insert(id.to_owned(), digest.clone());
        }
    }

    /// Adds the result of a cell.
    pub fn add_result(&mut self, name: CellNameRef<'_>, kind: &str, result: &CellResult) {
        // A person changed the judge trace, so the score is not the judge's own.
        if result.by_human {
            return;
        }
        let eval = EvalKey {
            rubric: name.rubric.to_owned(),
            eval: name.eval.to_owned(),
        };
        let scores = self.evals.entry(eval).or_default();
        kind.clone_into(&mut scores.eval_type);
        let decision = DecisionKey {
            transcript: name.transcript.to_owned(),
            message: name.message,
        };
        scores
            .decisions
            .entry(decision)
            .or_default()
            .push(ScoredCell {
                judge: name.judge.map(str::to_owned),
                repeat: name.repeat,
                probability: verdict_probability(result),
                doubt: Doubt::from_result(result),
                outcome: result.outcome,
                score: result.score,
                stated: result.verdict.as_deref().map(VerdictSummary::from),
            });
    }

    /// Returns the thresholds of every eval with scores, in the order of their first result. `deciding` contains the
    /// current decision settings.
    pub fn compute_sweeps(
        &self,
        labels: &Labels,
        deciding: &dyn Fn(&str, &str) -> EvalDecisionSettings,
    ) -> Vec<ThresholdSweep> {
        let evals = self.evals.iter();
        let all = evals.filter_map(|(key, scores)| {
            let EvalKey { rubric, eval } = key;
            let label = |transcript: &str, message: Option<u32>| {
                // A label applies to the whole transcript.
                if message.is_some() {
                    return None;
                }
                let found = labels.find(&LabelQuery {
                    transcript,
                    transcript_digest: self.transcripts.get(transcript),
                    rubric,
                    eval,
                    question: self.questions.get(key),
                    later_name: None,
                    is_shot: false,
                });
                found.and_then(|label| label.passed)
            };
            scores.compute_sweep((rubric, eval), deciding(rubric, eval), &label)
        });
        all.collect()
    }
}

impl EvalScores {
    /// Reports whether the decisions change at values other than scores: the point where the threshold leaves the
    /// margin of a score.
    fn is_cascade(&self) -> bool {
        let panel = self.panel_rules.as_ref();
        panel.is_some_and(|panel| matches!(panel.rule, PanelRule::Cascade { .. }))
    }

    /// Computes the decisions at one threshold directly.
    fn count_at_threshold(
        &self,
        key: f64,
        moved: VariedBound,
        bounds: ScoreBounds,
        label: &dyn Fn(&str, Option<u32>) -> Option<bool>,
    ) -> ThresholdCounts {
        let mut counts = ThresholdCounts::default();
        for (place, cells) in &self.decisions {
            // `compute_sweep` counts decisions without scores as `unscored`.
            if cells.iter().any(|cell| cell.score().is_some()) {
                let outcomes = cells.iter().map(|cell| (cell, moved.outcome_at(cell, key)));
                let outcome = self.decide_outcome(moved.bounds_at(bounds, key), outcomes);
                counts.count(outcome, label(&place.transcript, place.message));
            }
        }
        counts
    }

    /// Returns the combined decision of the cells under bounds.
    fn decide_outcome<'c>(
        &self,
        bounds: ScoreBounds,
        cells: impl Iterator<Item = (&'c ScoredCell, Outcome)>,
    ) -> Outcome {
        let to_ballot = |cell: &ScoredCell, outcome| Ballot {
            outcome,
            score: cell.score,
            probability: cell.probability,
            doubt: cell.doubt,
        };
        let decision = if let Some(rules) = &self.panel_rules {
            let panel = PanelRules {
                bounds,
                ..rules.clone()
            };
            panel.decide(cells.map(|(c, o)| (c.judge.as_deref(), c.repeat, to_ballot(c, o))))
        } else {
            // Without a panel, the cells are repeats of one judge.
            let casts: Vec<CellVote> = cells
                .map(|(c, o)| CellVote::without_judge(to_ballot(c, o)))
                .collect();
            VoteParams::single_judge().decide(&casts)
        };
        // The decision would need another judge, so it has no verdict.
        decision.map_or(Outcome::Skipped, |decision| decision.outcome)
    }

    fn compute_sweep(
        &self,
        (rubric, eval): (&str, &str),
        EvalDecisionSettings { bounds, negate }: EvalDecisionSettings,
        label: &dyn Fn(&str, Option<u32>) -> Option<bool>,
    ) -> Option<ThresholdSweep> {
        // `max_score` varies only if it is the only bound.
        let (bound, current) = match bounds {
            ScoreBounds {
                min: None,
                max: Some(max),
            } => (BoundKind::Max, Some(max)),
            ScoreBounds { min, .. } => (BoundKind::Min, min),
        };
        let moved = VariedBound {
            bound,
            fixed_max: match bound {
                BoundKind::Min => bounds.max,
                BoundKind::Max => None,
            },
            negate,
        };
        let mut sweep = ThresholdSweep {
            rubric: rubric.to_owned(),
            eval: eval.to_owned(),
            eval_type: self.eval_type.clone(),
            bound,
            current,
            scored: 0,
            unscored: 0,
            recorded: ThresholdCounts::default(),
            points: Vec::new(),
        };
        let mut start = ThresholdCounts::default();
        let mut steps: Vec<OutcomeChange> = Vec::new();
        let mut keys: Vec<f64> = current
            .map(|at| moved.to_sort_key(at))
            .into_iter()
            .collect();
        // First pass: find the scores at which each decision changes its outcome.
        for (place, cells) in &self.decisions {
            let scores = || cells.iter().filter_map(ScoredCell::score);
            if scores().next().is_none() {
                sweep.unscored += 1;
                continue;
            }
            sweep.scored += 1;
            let label = label(&place.transcript, place.message);
            let recorded =
                self.decide_outcome(bounds, cells.iter().map(|cell| (cell, cell.outcome)));
            sweep.recorded.count(recorded, label);
            let mut score_keys: Vec<f64> = scores().map(|score| moved.to_sort_key(score)).collect();
            score_keys.sort_by(f64::total_cmp);
            score_keys.dedup();
            let outcome = |key: f64| {
                let cells = cells.iter().map(|cell| (cell, moved.outcome_at(cell, key)));
                self.decide_outcome(moved.bounds_at(bounds, key), cells)
            };
            // The margin of a cascade changes its outcome between scores, so the second pass counts it
            // directly.
            if self.is_cascade() {
                keys.extend(score_keys);
                continue;
            }
            // Start below every score. Each later step is a change of the outcome.
            let mut before = outcome(f64::NEG_INFINITY);
            start.count(before, label);
            for (nth, key) in score_keys.iter().enumerate() {
                // All thresholds above this score, up to and including the next score, give the same
                // decisions.
                let next = score_keys.get(nth + 1).copied().unwrap_or(f64::INFINITY);
                let after = outcome(next);
                if after != before {
                    steps.push(OutcomeChange {
                        key: *key,
                        before,
                        after,
                        label,
                    });
                    before = after;
                }
            }
            keys.extend(score_keys);
        }
        // Without scores, no threshold changes a decision.
        if sweep.scored == 0 {
            return None;
        }
        // Second pass: apply the changes in ascending order, instead of a new vote at every threshold.
        keys.sort_by(f64::total_cmp);
        keys.dedup();
        steps.sort_by(|a, b| a.key.total_cmp(&b.key));
        let mut steps = steps.into_iter().peekable();
        let mut counts = start;
        for key in keys {
            if self.is_cascade() {
                counts = self.count_at_threshold(key, moved, bounds, label);
            }
            // A score at the threshold still passes, so a change applies only above its score.
            while let Some(step) = steps.next_if(|step| step.key < key) {
                counts.uncount(step.before, step.label);
                counts.count(step.after, step.label);
            }
            let threshold = moved.to_sort_key(key);
            sweep.points.push(ThresholdPoint {
                threshold,
                current: current == Some(threshold),
                counts,
            });
        }
        // Keys of `max_score` are negated, so their order is descending.
        if bound == BoundKind::Max {
            sweep.points.reverse();
        }
        Some(sweep)
    }
}

/// A score at which one decision changes its outcome.
struct OutcomeChange {
    /// The score as a sort key. The change applies to thresholds above it.
    key: f64,
    before: Outcome,
    after: Outcome,
    label: Option<bool>,
}

/// The bound that varies, while the other bound is constant.
#[derive(Debug, Clone, Copy)]
struct VariedBound {
    bound: BoundKind,
    /// `max_score`, while `min_score` varies.
    fixed_max: Option<f64>,
    negate: bool,
}

impl VariedBound {
    /// Negates scores and thresholds for `max_score`, so that a value at or above the threshold passes. It is its own
    /// inverse.
    fn to_sort_key(self, score: f64) -> f64 {
        match self.bound {
            BoundKind::Min => score,
            BoundKind::Max => -score,
        }
    }

    /// Returns the bounds with this bound replaced.
    fn bounds_at(self, bounds: ScoreBounds, key: f64) -> ScoreBounds {
        // An infinite key means that no bound is set.
        let at = Some(self.to_sort_key(key)).filter(|at| at.is_finite());
        match self.bound {
            BoundKind::Min => ScoreBounds { min: at, ..bounds },
            BoundKind::Max => ScoreBounds { max: at, ..bounds },
        }
    }

    fn outcome_at(self, cell: &ScoredCell, threshold: f64) -> Outcome {
        match cell.score() {
            Some(score) => {
                let within = self.to_sort_key(score) >= threshold;
                let within = within && self.fixed_max.is_none_or(|max| score <= max);
                Outcome::from_passed(within != self.negate)
            }
            None if cell.stated.is_some_and(|s| s.applicable == Some(false)) => {
                Outcome::NotApplicable
            }
            // A verdict without a score does not count if a score decides.
            None if cell.outcome.is_verdict() => Outcome::Unparsed,
            None => cell.outcome,
        }
    }
}

#[cfg(test)]
mod tests;

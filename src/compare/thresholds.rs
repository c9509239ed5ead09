//! What another `min_score` (or `max_score`) would have decided: every threshold that the recorded scores tell apart, with
//! what the labels say of it. Arithmetic over what was recorded; nobody is asked.
//!
//! A decision of several cells is decided by their vote at each threshold, as a run would.

use indexmap::IndexMap;

use crate::event::RunHeader;
use crate::model::{
    Ballot, CellNameRef, CellResult, CellVote, Doubt, Labels, Outcome, PanelRule, ScoreBounds,
    VerdictSummary, VoteParams, verdict_probability,
};
use crate::record::{EvalDecisionSettings, PanelRules};

/// Which bound is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `min_score`: from here on it passes.
    Min,
    /// `max_score`: up to here it passes.
    Max,
}

impl Bound {
    /// The name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Min => "min_score",
            Self::Max => "max_score",
        }
    }
}

/// How decisions end at one threshold, and how many of them as a label says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Decisions that pass.
    pub pass: u64,
    /// Decisions that fail.
    pub fail: u64,
    /// Decisions without a verdict: a vote for "not applicable", or too few scores.
    pub other: u64,
    /// Pass, and labelled so.
    pub true_pass: u64,
    /// Pass, and labelled otherwise.
    pub false_pass: u64,
    /// Fail, and labelled so.
    pub true_fail: u64,
    /// Fail, and labelled otherwise.
    pub false_fail: u64,
}

impl Counts {
    /// Verdicts with a label.
    pub fn labelled(self) -> u64 {
        self.labelled_pass() + self.labelled_fail()
    }

    /// Verdicts where the label is a pass.
    pub fn labelled_pass(self) -> u64 {
        self.true_pass + self.false_fail
    }

    /// Verdicts where the label is a fail.
    pub fn labelled_fail(self) -> u64 {
        self.true_fail + self.false_pass
    }

    /// Verdicts that are as the label says.
    pub fn right(self) -> u64 {
        self.true_pass + self.true_fail
    }

    fn slot(&mut self, outcome: Outcome, label: Option<bool>) -> [Option<&mut u64>; 2] {
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
            None => &mut self.other,
        };
        [Some(all), labelled]
    }

    fn add(&mut self, outcome: Outcome, label: Option<bool>) {
        for count in self.slot(outcome, label).into_iter().flatten() {
            *count += 1;
        }
    }

    fn take(&mut self, outcome: Outcome, label: Option<bool>) {
        for count in self.slot(outcome, label).into_iter().flatten() {
            *count -= 1;
        }
    }
}

/// One threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The threshold: a score that was given, or the one that decides now.
    pub at: f64,
    /// Whether it decides now.
    pub current: bool,
    /// What it would decide.
    pub counts: Counts,
}

/// All thresholds of one eval.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The rubric's id.
    pub rubric: String,
    /// The eval's id.
    pub eval: String,
    /// The eval type.
    pub kind: String,
    /// Which bound is moved.
    pub bound: Bound,
    /// Where it stands now; `None`: no bound is set, and what the judge or the check itself says decides.
    pub current: Option<f64>,
    /// Decisions with a score.
    pub scored: u64,
    /// Decisions without one, which are left out.
    pub unscored: u64,
    /// As decided in the run.
    pub recorded: Counts,
    /// By threshold, ascending.
    pub points: Vec<Point>,
}

impl Sweep {
    /// The thresholds that most labels agree with, and with how many; `None` without labels.
    pub fn best(&self) -> Option<(u64, Vec<&Point>)> {
        let most = self.points.iter().map(|point| point.counts.right()).max()?;
        let points = self.points.iter();
        let best: Vec<&Point> = points.filter(|p| p.counts.right() == most).collect();
        let labelled = best.iter().any(|point| point.counts.labelled() > 0);
        labelled.then_some((most, best))
    }
}

/// Gathers results by eval.
#[derive(Debug, Default)]
pub struct Scores {
    evals: IndexMap<(String, String), OfEval>,
}

#[derive(Debug, Default)]
struct OfEval {
    kind: String,
    /// How several judges decide it, by their names.
    court: Option<PanelRules>,
    decisions: IndexMap<(String, Option<u32>), Vec<Cell>>,
}

#[derive(Debug, Clone)]
struct Cell {
    judge: Option<String>,
    repeat: Option<u32>,
    probability: Option<f64>,
    doubt: Option<Doubt>,
    outcome: Outcome,
    score: Option<f64>,
    stated: Option<VerdictSummary>,
}

impl Cell {
    /// The score, where the outcome follows from one.
    fn score(&self) -> Option<f64> {
        match self.stated {
            Some(stated) if stated.applicable == Some(false) => None,
            Some(stated) => stated.score,
            None => self.score.filter(|_| self.outcome.is_verdict()),
        }
    }
}

impl Scores {
    /// Learns which evals several judges decide.
    pub fn meet(&mut self, header: &RunHeader) {
        for spec in &header.evals {
            let (Some(panel), Some(rubric)) =
                (&spec.panel, header.rubrics.get(spec.rubric as usize))
            else {
                continue;
            };
            let name = |judge: &u32| {
                let of = header.judges.get(*judge as usize)?;
                Some(of.config.name.clone())
            };
            let of = self.evals.entry((rubric.id.clone(), spec.id.clone()));
            of.or_default().court = Some(PanelRules {
                rule: panel.rule,
                judges: panel.judges.iter().filter_map(name).collect(),
                bounds: ScoreBounds::from_decision_settings(&spec.decision_settings),
                repeat: spec.repeat,
            });
        }
    }

    /// Takes a cell's result.
    pub fn add(&mut self, name: CellNameRef<'_>, kind: &str, result: &CellResult) {
        if result.by_human {
            return;
        }
        let eval = (name.rubric.to_owned(), name.eval.to_owned());
        let of = self.evals.entry(eval).or_default();
        kind.clone_into(&mut of.kind);
        let decision = (name.transcript.to_owned(), name.message);
        of.decisions.entry(decision).or_default().push(Cell {
            judge: name.judge.map(str::to_owned),
            repeat: name.repeat,
            probability: verdict_probability(result),
            doubt: Doubt::from_result(result),
            outcome: result.outcome,
            score: result.score,
            stated: result.verdict.as_deref().map(VerdictSummary::from),
        });
    }

    /// The thresholds of every eval that has scores, in the order they came. `deciding` says what decides an eval now.
    pub fn sweeps(
        &self,
        labels: &Labels,
        deciding: &dyn Fn(&str, &str) -> EvalDecisionSettings,
    ) -> Vec<Sweep> {
        let evals = self.evals.iter();
        let all = evals.filter_map(|((rubric, eval), of)| {
            let label = |transcript: &str, message: Option<u32>| {
                // A label is about the whole transcript.
                let of = labels.find(transcript, rubric, eval);
                of.filter(|_| message.is_none())
                    .and_then(|label| label.passed)
            };
            of.sweep((rubric, eval), deciding(rubric, eval), &label)
        });
        all.collect()
    }
}

impl OfEval {
    /// Whether what is decided turns elsewhere than at scores: where the threshold leaves the margin of one.
    fn is_cascade(&self) -> bool {
        let court = self.court.as_ref();
        court.is_some_and(|court| matches!(court.rule, PanelRule::Cascade { .. }))
    }

    /// What each decision comes to at one threshold, worked out for itself.
    fn counts_at(
        &self,
        key: f64,
        moved: Moved,
        bounds: ScoreBounds,
        label: &dyn Fn(&str, Option<u32>) -> Option<bool>,
    ) -> Counts {
        let mut counts = Counts::default();
        for ((transcript, message), cells) in &self.decisions {
            if cells.iter().any(|cell| cell.score().is_some()) {
                let alone = cells.iter().map(|cell| (cell, moved.outcome(cell, key)));
                let outcome = self.vote(moved.at(bounds, key), alone);
                counts.add(outcome, label(transcript, *message));
            }
        }
        counts
    }

    /// What the cells decide together under bounds, each with what it decides alone.
    fn vote<'c>(
        &self,
        bounds: ScoreBounds,
        cells: impl Iterator<Item = (&'c Cell, Outcome)>,
    ) -> Outcome {
        let said = |cell: &Cell, outcome| Ballot {
            outcome,
            score: cell.score,
            probability: cell.probability,
            doubt: cell.doubt,
        };
        let decision = if let Some(court) = &self.court {
            let court = PanelRules {
                bounds,
                ..court.clone()
            };
            court.decide(cells.map(|(c, o)| (c.judge.as_deref(), c.repeat, said(c, o))))
        } else {
            let casts: Vec<CellVote> = cells
                .map(|(c, o)| CellVote::without_judge(said(c, o)))
                .collect();
            VoteParams::single_judge().decide(&casts)
        };
        // Another judge would have to be asked: no verdict.
        decision.map_or(Outcome::Skipped, |decision| decision.outcome)
    }

    fn sweep(
        &self,
        (rubric, eval): (&str, &str),
        EvalDecisionSettings { bounds, negate }: EvalDecisionSettings,
        label: &dyn Fn(&str, Option<u32>) -> Option<bool>,
    ) -> Option<Sweep> {
        let (bound, current) = match bounds {
            ScoreBounds {
                min: None,
                max: Some(max),
            } => (Bound::Max, Some(max)),
            ScoreBounds { min, .. } => (Bound::Min, min),
        };
        let moved = Moved {
            bound,
            other: match bound {
                Bound::Min => bounds.max,
                Bound::Max => None,
            },
            negate,
        };
        let mut sweep = Sweep {
            rubric: rubric.to_owned(),
            eval: eval.to_owned(),
            kind: self.kind.clone(),
            bound,
            current,
            scored: 0,
            unscored: 0,
            recorded: Counts::default(),
            points: Vec::new(),
        };
        let mut start = Counts::default();
        let mut steps: Vec<(f64, Outcome, Outcome, Option<bool>)> = Vec::new();
        let mut at: Vec<f64> = current.map(|at| moved.key(at)).into_iter().collect();
        for ((transcript, message), cells) in &self.decisions {
            let scores = || cells.iter().filter_map(Cell::score);
            if scores().next().is_none() {
                sweep.unscored += 1;
                continue;
            }
            sweep.scored += 1;
            let label = label(transcript, *message);
            let then = self.vote(bounds, cells.iter().map(|cell| (cell, cell.outcome)));
            sweep.recorded.add(then, label);
            let mut own: Vec<f64> = scores().map(|score| moved.key(score)).collect();
            own.sort_by(f64::total_cmp);
            own.dedup();
            let outcome = |key: f64| {
                let cells = cells.iter().map(|cell| (cell, moved.outcome(cell, key)));
                self.vote(moved.at(bounds, key), cells)
            };
            if self.is_cascade() {
                at.extend(own);
                continue;
            }
            let mut before = outcome(f64::NEG_INFINITY);
            start.add(before, label);
            for (nth, key) in own.iter().enumerate() {
                // From just above this score up to the next one.
                let next = own.get(nth + 1).copied().unwrap_or(f64::INFINITY);
                let after = outcome(next);
                if after != before {
                    steps.push((*key, before, after, label));
                    before = after;
                }
            }
            at.extend(own);
        }
        if sweep.scored == 0 {
            return None;
        }
        at.sort_by(f64::total_cmp);
        at.dedup();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut steps = steps.into_iter().peekable();
        let mut counts = start;
        for key in at {
            if self.is_cascade() {
                counts = self.counts_at(key, moved, bounds, label);
            }
            while let Some((_, before, after, label)) = steps.next_if(|step| step.0 < key) {
                counts.take(before, label);
                counts.add(after, label);
            }
            let at = moved.key(key);
            sweep.points.push(Point {
                at,
                current: current == Some(at),
                counts,
            });
        }
        if bound == Bound::Max {
            sweep.points.reverse();
        }
        Some(sweep)
    }
}

/// A bound that is moved, while the other stays.
#[derive(Debug, Clone, Copy)]
struct Moved {
    bound: Bound,
    /// `max_score`, while `min_score` is moved.
    other: Option<f64>,
    negate: bool,
}

impl Moved {
    /// Scores and thresholds so that what is not below the threshold is within it; its own reverse.
    fn key(self, score: f64) -> f64 {
        match self.bound {
            Bound::Min => score,
            Bound::Max => -score,
        }
    }

    /// The bounds with this one moved.
    fn at(self, bounds: ScoreBounds, key: f64) -> ScoreBounds {
        let at = Some(self.key(key)).filter(|at| at.is_finite());
        match self.bound {
            Bound::Min => ScoreBounds { min: at, ..bounds },
            Bound::Max => ScoreBounds { max: at, ..bounds },
        }
    }

    fn outcome(self, cell: &Cell, threshold: f64) -> Outcome {
        match cell.score() {
            Some(score) => {
                let within = self.key(score) >= threshold;
                let within = within && self.other.is_none_or(|max| score <= max);
                Outcome::from_passed(within != self.negate)
            }
            None if cell.stated.is_some_and(|s| s.applicable == Some(false)) => {
                Outcome::NotApplicable
            }
            // A verdict without a score is none where a score decides.
            None if cell.outcome.is_verdict() => Outcome::Unparsed,
            None => cell.outcome,
        }
    }
}

#[cfg(test)]
mod tests;

//! The rescore: recorded results under the current decision settings.
//!
//! Responsible for arithmetic over recorded scores; it calls no judge. A run records the statements of its judges and
//! the bounds at that time. If the bounds changed, the newest verdicts are rescored. A result that can't be rescored
//! counts as a result of another eval. An example is a check whose own verdict was overruled by a bound that no
//! longer exists.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{NewestVerdicts, RecordedResult};
use crate::model::{
    Ballot, CellName, CellVote, Decision, Digest, Outcome, PanelRule, RunId, ScoreBounds,
    VoteParams,
};

/// The current decision settings of an eval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EvalDecisionSettings {
    /// `min_score` and `max_score`.
    pub bounds: ScoreBounds,
    /// The value of `not:`.
    pub negate: bool,
}

/// The current vote settings of an eval with several judges.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelRules {
    /// The vote rule.
    pub rule: PanelRule,
    /// The judges' names, in the order of calls.
    pub judges: Vec<String>,
    /// The bounds of the score.
    pub bounds: ScoreBounds,
    /// The maximum number of cells per judge.
    pub repeat: u32,
    /// See [`VoteParams::needs_all_repeats`].
    pub needs_all_repeats: bool,
}

impl PanelRules {
    /// Returns the decision of cells, each with its judge's name and repeat; `None` if another cell is needed.
    pub fn decide<'c>(
        &self,
        cells: impl IntoIterator<Item = (Option<&'c str>, Option<u32>, Ballot)>,
    ) -> Option<Decision> {
        let numbers: Vec<u32> = (0..).take(self.judges.len()).collect();
        let number = |name: &str| {
            let at = self.judges.iter().position(|judge| judge == name)?;
            u32::try_from(at).ok()
        };
        let casts: Vec<CellVote> = cells
            .into_iter()
            .map(|(judge, repeat, ballot)| CellVote {
                judge: judge.and_then(number),
                repeat,
                ballot: Some(ballot),
            })
            .collect();
        let terms = VoteParams {
            rule: Some(self.rule),
            judges: &numbers,
            bounds: self.bounds,
            repeat: self.repeat,
            needs_all_repeats: self.needs_all_repeats,
        };
        terms.decide(&casts)
    }
}

/// The decision settings by rubric and eval.
pub type DecisionSettings = HashMap<String, HashMap<String, EvalDecisionSettings>>;

impl NewestVerdicts {
    /// Rescores every cell whose bounds changed.
    pub fn rescore(&mut self, today: &DecisionSettings) {
        let find_settings = |name: &str, cell: &RecordedResult| {
            let name: CellName = name.parse().ok()?;
            let now = today.get(&name.rubric)?.get(&name.eval).copied()?;
            // Most saves change no bounds.
            (cell.bounds != now.bounds).then_some(now)
        };
        self.change_scored(find_settings, RecordedResult::rescore);
    }
}

/// A cell of a decision, with the run that recorded it.
struct RunBallot<'b> {
    run: &'b RunId,
    judge: Option<String>,
    repeat: Option<u32>,
    ballot: Ballot,
}

/// The numbers of decisions of one eval that passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassFailCount {
    /// The number of passes.
    pub pass: u64,
    /// The number of fails.
    pub fail: u64,
}

/// The ids of an eval and its rubric.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvalKey {
    /// The rubric.
    pub rubric: String,
    /// The eval.
    pub eval: String,
}

/// The counts of each eval.
pub type VerdictCounts = BTreeMap<EvalKey, PassFailCount>;

impl NewestVerdicts {
    /// Counts the decisions with a verdict, of the evals that are unchanged. `evals` lists these by rubric and eval;
    /// the panel rules list those with several judges. A decision that was judged several times counts as its newest
    /// judge or its panel decided it.
    pub fn count_verdicts(
        &self,
        evals: &HashMap<(&str, &str), &Digest>,
        panels: &HashMap<(&str, &str), PanelRules>,
    ) -> VerdictCounts {
        let mut cells: HashMap<CellName, Vec<RunBallot<'_>>> = HashMap::new();
        for (name, cell) in self.iter() {
            let Ok(name) = name.parse::<CellName>() else {
                continue;
            };
            let now = evals.get(&(name.rubric.as_str(), name.eval.as_str()));
            // A changed eval asks another question, so its old cells do not count.
            if now.is_some_and(|digest| **digest == *cell.eval) {
                let (judge, repeat) = (name.judge.clone(), name.repeat);
                let group = cells.entry(name.decision_name()).or_default();
                group.push(RunBallot {
                    run: &cell.run,
                    judge,
                    repeat,
                    ballot: cell.ballot(),
                });
            }
        }
        let mut verdicts = VerdictCounts::new();
        for (name, mut group) in cells {
            let panel = panels.get(&(name.rubric.as_str(), name.eval.as_str()));
            let outcome = if let Some(panel) = panel {
                // Judges that left the panel do not vote any more.
                group.retain(|cell| {
                    let judge = cell.judge.as_ref();
                    judge.is_some_and(|judge| panel.judges.contains(judge))
                });
                let cells = group.iter();
                panel.decide(cells.map(|cell| (cell.judge.as_deref(), cell.repeat, cell.ballot)))
            } else {
                // Run ids begin with the time, so the greatest id is the newest run.
                let newest = group.iter().map(|cell| cell.run).max().cloned();
                group.retain(|cell| Some(cell.run) == newest.as_ref());
                let cells = group.iter();
                VoteParams::single_judge().decide(
                    &cells
                        .map(|cell| CellVote::without_judge(cell.ballot))
                        .collect::<Vec<_>>(),
                )
            };
            let outcome = outcome.map(|decision| decision.outcome);
            let count = verdicts
                .entry(EvalKey {
                    rubric: name.rubric,
                    eval: name.eval,
                })
                .or_default();
            count.pass += u64::from(outcome == Some(Outcome::Pass));
            count.fail += u64::from(outcome == Some(Outcome::Fail));
        }
        verdicts
    }
}

impl RecordedResult {
    fn rescore(&mut self, now: EvalDecisionSettings) {
        let then = std::mem::replace(&mut self.bounds, now.bounds);
        let decided = match self.stated {
            Some(stated) => now.bounds.decide(stated),
            None => match self.score {
                // The explanation of a negated check states its verdict.
                Some(score) if !now.bounds.is_empty() && !now.negate => {
                    Ok(Outcome::from_passed(now.bounds.contains(score)))
                }
                _ => {
                    self.bounds = then;
                    self.mark_outdated();
                    return;
                }
            },
        };
        match decided {
            Ok(outcome) => {
                self.outcome = outcome;
                self.error = None;
                if let Some(stated) = self.stated {
                    // A verdict that does not apply has no score.
                    self.score = stated.score.filter(|_| outcome.is_verdict());
                }
            }
            Err(why) => {
                self.outcome = Outcome::Unparsed;
                self.error = Some(why.to_owned());
                self.score = None;
            }
        }
    }

    /// Marks the result as one of another eval.
    fn mark_outdated(&mut self) {
        let other = format!("{} with other bounds", self.eval.0);
        self.eval = Arc::new(Digest::hash_bytes(other.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CellIx, VerdictSummary};

    fn cell(
        run: &str,
        score: f64,
        min: Option<f64>,
        stated: Option<VerdictSummary>,
    ) -> RecordedResult {
        let bounds = ScoreBounds { min, max: None };
        RecordedResult {
            run: RunId(run.to_owned()),
            cell: CellIx(0),
            cached_from: None,
            outcome: Outcome::from_passed(bounds.is_empty() || bounds.contains(score)),
            score: Some(score),
            explanation: "said".to_owned(),
            error: None,
            eval: Arc::new(Digest("e".to_owned())),
            judge: None,
            transcript: Arc::new(Digest("t".to_owned())),
            key: None,
            bounds,
            stated,
            probability: None,
            doubt: None,
            causes: crate::model::CauseSet::EMPTY,
            is_own: true,
            used_tools: false,
            duration: crate::model::Millis(0),
        }
    }

    fn judged(score: f64, min: Option<f64>) -> RecordedResult {
        let stated = VerdictSummary {
            passed: Some(true),
            score: Some(score),
            applicable: None,
        };
        cell("1", score, min, Some(stated))
    }

    /// Returns the outcome, the score, and whether the result still counts for the current eval.
    fn after(cell: RecordedResult, min: Option<f64>, negate: bool) -> (Outcome, Option<f64>, bool) {
        let mut board = NewestVerdicts::default();
        board.insert("t/r/e~j".to_owned(), cell);
        let deciding = EvalDecisionSettings {
            bounds: ScoreBounds { min, max: None },
            negate,
        };
        let settings = HashMap::from([("e".to_owned(), deciding)]);
        board.rescore(&HashMap::from([("r".to_owned(), settings)]));
        let cell = board.get("t/r/e~j").expect("it is there");
        (cell.outcome, cell.score, cell.eval.0 == "e")
    }

    #[test]
    fn recorded_score_is_rescored_with_current_bounds() {
        use Outcome::{Fail, Pass, Unparsed};
        for (cell, min, negate, want) in [
            (
                judged(0.6, Some(0.5)),
                Some(0.7),
                false,
                (Fail, Some(0.6), true),
            ),
            (
                judged(0.6, Some(0.7)),
                Some(0.6),
                false,
                (Pass, Some(0.6), true),
            ),
            (judged(0.6, Some(0.7)), None, false, (Pass, Some(0.6), true)),
            (judged(0.6, None), Some(0.7), false, (Fail, Some(0.6), true)),
            (
                cell("1", 0.6, Some(0.5), None),
                Some(0.7),
                false,
                (Fail, Some(0.6), true),
            ),
            (
                cell("1", 0.6, None, None),
                Some(0.7),
                false,
                (Fail, Some(0.6), true),
            ),
            // What a check found by itself was not recorded; and the explanation of a negated check is in its own words.
            (
                cell("1", 0.6, Some(0.7), None),
                None,
                false,
                (Fail, Some(0.6), false),
            ),
            (
                cell("1", 0.6, Some(0.5), None),
                Some(0.7),
                true,
                (Pass, Some(0.6), false),
            ),
        ] {
            assert_eq!(after(cell.clone(), min, negate), want, "{cell:?} {min:?}");
        }
        let mut unscored = judged(0.6, None);
        unscored.score = None;
        unscored.stated = Some(VerdictSummary {
            passed: Some(true),
            ..VerdictSummary::default()
        });
        assert_eq!(after(unscored, Some(0.5), false), (Unparsed, None, true));
    }

    #[test]
    fn verdicts_are_counted_per_decision_of_unchanged_evals() {
        let mut board = NewestVerdicts::default();
        for (name, run, score) in [
            ("a/r/e~j#1", "2", 0.9),
            ("a/r/e~j#2", "2", 0.1),
            ("b/r/e~j", "1", 0.1),
            ("b/r/e~k", "2", 0.9),
            ("c/r/gone", "1", 0.9),
        ] {
            board.insert(name.to_owned(), cell(run, score, Some(0.5), None));
        }
        let digest = Digest("e".to_owned());
        let verdicts =
            board.count_verdicts(&HashMap::from([(("r", "e"), &digest)]), &HashMap::new());
        let key = EvalKey {
            rubric: "r".to_owned(),
            eval: "e".to_owned(),
        };
        assert_eq!(
            verdicts,
            BTreeMap::from([(key, PassFailCount { pass: 1, fail: 1 })])
        );
    }
}

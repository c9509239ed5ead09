//! How a cell ended, what was decided, and the vote that makes one decision of several cells.

use serde::{Deserialize, Serialize};

use super::calibrated::format_probability;
use super::{Ballot, CalibratedScore, Cost, Millis, PanelDecision, RunId, TokenUsage};

/// How a cell ended. Only `Pass` and `Fail` are verdicts; nothing becomes one of them by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A verdict: passed.
    Pass,
    /// A verdict: failed.
    Fail,
    /// The criterion does not apply.
    NotApplicable,
    /// Disabled, unsampled, or a precondition unmet.
    Skipped,
    /// A handler could not decide: the data it needs is missing or of the wrong kind.
    CheckError,
    /// The provider failed after its retries.
    JudgeError,
    /// No valid verdict in the reply.
    Unparsed,
    /// Turns ran out before a verdict.
    TurnLimit,
    /// The stream was cut, or the token limit hit.
    Truncated,
    /// The cell's deadline passed.
    Timeout,
    /// A budget was reached.
    Budget,
    /// Cancelled by the user or a newer rubric.
    Cancelled,
}

impl Outcome {
    /// All outcomes, in the order of design.md 5.
    pub const ALL: [Self; 12] = [
        Self::Pass,
        Self::Fail,
        Self::NotApplicable,
        Self::Skipped,
        Self::CheckError,
        Self::JudgeError,
        Self::Unparsed,
        Self::TurnLimit,
        Self::Truncated,
        Self::Timeout,
        Self::Budget,
        Self::Cancelled,
    ];

    /// `Some(true)` for pass, `Some(false)` for fail, else `None`.
    pub const fn passed(self) -> Option<bool> {
        match self {
            Self::Pass => Some(true),
            Self::Fail => Some(false),
            _ => None,
        }
    }

    /// Whether a person or a handler decided it: pass or fail.
    pub const fn is_verdict(self) -> bool {
        matches!(self, Self::Pass | Self::Fail)
    }

    /// Whether something went wrong: everything but verdicts, not applicable and skipped.
    pub const fn is_error(self) -> bool {
        !matches!(
            self,
            Self::Pass | Self::Fail | Self::NotApplicable | Self::Skipped
        )
    }

    /// The outcome of a verdict.
    pub const fn from_passed(passed: bool) -> Self {
        if passed { Self::Pass } else { Self::Fail }
    }

    /// The name as files spell it: `judge_error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotApplicable => "not_applicable",
            Self::Skipped => "skipped",
            Self::CheckError => "check_error",
            Self::JudgeError => "judge_error",
            Self::Unparsed => "unparsed",
            Self::TurnLimit => "turn_limit",
            Self::Truncated => "truncated",
            Self::Timeout => "timeout",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
        }
    }

    /// One character that tells outcomes apart without colour.
    pub const fn symbol(self) -> char {
        match self {
            Self::Pass => '✓',
            Self::Fail => '✗',
            Self::NotApplicable => '–',
            Self::Skipped => '·',
            _ => '!',
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A place the judge quotes, and whether the quote stands there verbatim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// `message 4`, `fetch 1` or `rubric`, as the judge wrote it.
    pub source: String,
    /// The quote.
    pub quote: String,
    /// Whether it was found there.
    pub found: bool,
}

/// One part of a verdict that has several: a criterion, a goal, a call, a kind of slip that was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerdictPart {
    /// What was judged.
    pub text: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Whether it is met; where it is counted, whether there is none.
    pub met: bool,
    /// How many, where it is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// How likely it is met, where the judge answers with probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

impl VerdictPart {
    /// `✗ 2. Names the order: it names none`, the `number` from 1.
    pub fn format_line(&self, number: usize) -> String {
        let mark = Outcome::from_passed(self.met).symbol();
        let count = self.format_suffix();
        let why = if self.reasoning.is_empty() { "" } else { ": " };
        format!(
            "{mark} {number}. {}{count}{why}{}",
            self.text, self.reasoning
        )
    }

    /// ` × 2` or ` (p = 0.12)`, where there is a count or a probability.
    pub fn format_suffix(&self) -> String {
        let count = self.count.map_or(String::new(), |n| format!(" × {n}"));
        match self.probability {
            Some(p) => format!("{count} (p = {})", format_probability(p)),
            None => count,
        }
    }
}

/// What a judge stated, before `min_score` and its like decide.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What the judge itself said; absent where only a score was asked for.
    pub passed: Option<bool>,
    /// 0–1, scaled from `raw_score` where the eval has a `scale`.
    pub score: Option<f64>,
    /// The score as the judge gave it, where a `scale` applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_score: Option<f64>,
    /// `false`: the judge says the criterion does not apply (only with `allow_na`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applicable: Option<bool>,
    /// Why.
    pub reasoning: String,
    /// What it quotes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Its parts, where it was asked for in parts: then `passed` and `score` follow from them and were not stated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<VerdictPart>,
    /// What the preparation of the verdict's own arguments changed, if anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repaired: Vec<super::ArgumentChange>,
    /// What the judged texts hold that a reader does not see, as sentences. Found by us, not stated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Why the reason seems to contradict the verdict, if it does. Flagged, never overridden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// In the place of a reason, from a judge that answers with probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<CalibratedScore>,
}

/// What became of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// How it ended.
    pub outcome: Outcome,
    /// 0–1; only where the eval type scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why, for people. For a judge its reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// What went wrong, for error outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The judge's own statement, for judge cells that reached one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<Verdict>>,
    /// Tokens and calls, failed attempts included; `None` for deterministic cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// USD; `None` when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What is known of the cost where `cost_usd` is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Cost>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: Millis,
    /// The run this result was taken from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<RunId>,
    /// A person changed something on the way: never enters cache, board or statistics.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_human: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_zero(ms: &Millis) -> bool {
    ms.0 == 0
}

impl CellResult {
    /// A result with an outcome and a reason.
    pub fn new(outcome: Outcome, explanation: impl Into<String>) -> Self {
        Self {
            outcome,
            score: None,
            explanation: explanation.into(),
            error: None,
            verdict: None,
            usage: None,
            cost_usd: None,
            bill: None,
            duration_ms: Millis(0),
            cached: None,
            by_human: false,
        }
    }

    /// An error outcome: `error` says what went wrong.
    pub fn from_error(outcome: Outcome, error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(outcome, "")
        }
    }

    /// What is known of its cost. A result that does not say counts each of its calls as unknown.
    pub fn bill(&self) -> Cost {
        let calls = self.usage.map_or(0, |usage| u64::from(usage.calls));
        match (self.cost_usd, self.bill) {
            (Some(usd), _) => Cost { usd, unknown: 0 },
            (None, Some(bill)) => bill,
            (None, None) => Cost {
                usd: 0.0,
                unknown: calls,
            },
        }
    }

    /// Stopped by the user while it was judged.
    pub fn cancelled() -> Self {
        Self::from_error(Outcome::Cancelled, "stopped before a verdict")
    }
}

/// How many cells of a decision voted for what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteCounts {
    /// Cells that passed.
    pub pass: u32,
    /// Cells that failed.
    pub fail: u32,
    /// Cells that do not apply.
    pub na: u32,
    /// Cells without a verdict; they abstain.
    pub error: u32,
}

/// The outcome of one transcript × rubric × eval × message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// One cell's outcome, or that of the vote.
    pub outcome: Outcome,
    /// The score, or the median of the voting cells' scores.
    pub score: Option<f64>,
    /// The votes: of cells, or of a jury's members; under a cascade of the cells of the judge whose decision stands.
    pub votes: VoteCounts,
    /// How several judges came to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "ruling")]
    pub panel: Option<Box<PanelDecision>>,
}

/// Decides by the majority rule of design.md 5, whoever judged; [`super::Terms`] says more. `None` without cells.
///
/// Error and skipped cells abstain; if fewer than half of the cells remain, the decision is the commonest of the
/// abstaining outcomes, ties in the order of [`Outcome::ALL`].
pub fn decide_cells<'a>(cells: impl IntoIterator<Item = &'a CellResult>) -> Option<Decision> {
    let cells: Vec<Ballot> = cells.into_iter().map(Ballot::from).collect();
    decide_by_vote(&cells)
}

/// The vote of [`decide`].
pub(super) fn decide_by_vote(cells: &[Ballot]) -> Option<Decision> {
    let votes = count_votes(cells);
    if let [only] = cells {
        return Some(Decision {
            outcome: only.outcome,
            score: only.score,
            votes,
            panel: None,
        });
    }
    let voting = votes.pass + votes.fail + votes.na;
    let outcome = if voting == 0 || (voting as usize) * 2 < cells.len() {
        most_common_outcome(
            cells
                .iter()
                .map(|c| c.outcome)
                .filter(|o| o.is_error() || *o == Outcome::Skipped),
        )?
    } else if votes.fail >= votes.pass && votes.fail >= votes.na {
        Outcome::Fail
    } else if votes.na >= votes.pass {
        Outcome::NotApplicable
    } else {
        Outcome::Pass
    };
    let score = if outcome.is_error() || outcome == Outcome::Skipped {
        None
    } else {
        median_score(
            cells
                .iter()
                .filter(|c| c.outcome.is_verdict())
                .filter_map(|c| c.score)
                .collect(),
        )
    };
    Some(Decision {
        outcome,
        score,
        votes,
        panel: None,
    })
}

pub(super) fn count_votes(cells: &[Ballot]) -> VoteCounts {
    let mut votes = VoteCounts::default();
    for cell in cells {
        match cell.outcome {
            Outcome::Pass => votes.pass += 1,
            Outcome::Fail => votes.fail += 1,
            Outcome::NotApplicable => votes.na += 1,
            _ => votes.error += 1,
        }
    }
    votes
}

fn most_common_outcome(outcomes: impl Iterator<Item = Outcome>) -> Option<Outcome> {
    let mut counts = [0_u32; Outcome::ALL.len()];
    for outcome in outcomes {
        counts[outcome as usize] += 1;
    }
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    Outcome::ALL
        .into_iter()
        .find(|o| counts[*o as usize] == most)
}

pub(super) fn median_score(mut scores: Vec<f64>) -> Option<f64> {
    scores.sort_by(f64::total_cmp);
    let mid = scores.len() / 2;
    match scores.len() {
        0 => None,
        n if n % 2 == 1 => Some(scores[mid]),
        _ => Some(f64::midpoint(scores[mid - 1], scores[mid])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(outcomes: &[Outcome]) -> Vec<CellResult> {
        outcomes.iter().map(|o| CellResult::new(*o, "")).collect()
    }

    fn outcome(outcomes: &[Outcome]) -> Option<Outcome> {
        decide_cells(&cells(outcomes)).map(|d| d.outcome)
    }

    #[test]
    fn one_cell_decides_alone() {
        for o in Outcome::ALL {
            assert_eq!(outcome(&[o]), Some(o));
        }
        assert_eq!(outcome(&[]), None);
    }

    #[test]
    fn ties_go_to_fail_then_to_not_applicable() {
        use Outcome::{Fail, NotApplicable, Pass};
        assert_eq!(outcome(&[Pass, Fail]), Some(Fail));
        assert_eq!(outcome(&[Pass, NotApplicable]), Some(NotApplicable));
        assert_eq!(outcome(&[Fail, NotApplicable]), Some(Fail));
        assert_eq!(outcome(&[Pass, Pass, Fail]), Some(Pass));
    }

    #[test]
    fn errors_abstain_until_fewer_than_half_remain() {
        use Outcome::{Fail, JudgeError, Pass, Timeout, Unparsed};
        assert_eq!(outcome(&[Pass, JudgeError]), Some(Pass));
        assert_eq!(
            outcome(&[Pass, JudgeError, Timeout]),
            Some(JudgeError),
            "ties in the order of the list"
        );
        assert_eq!(outcome(&[Fail, Timeout, Unparsed, Timeout]), Some(Timeout));
    }

    #[test]
    fn the_score_is_the_median_of_the_verdicts() {
        let mut all = cells(&[
            Outcome::Pass,
            Outcome::Pass,
            Outcome::Fail,
            Outcome::JudgeError,
        ]);
        for (cell, score) in all.iter_mut().zip([0.9, 0.7, 0.1]) {
            cell.score = Some(score);
        }
        assert_eq!(decide_cells(&all).and_then(|d| d.score), Some(0.7));
    }

    #[test]
    fn names_match_serde() {
        for o in Outcome::ALL {
            assert_eq!(
                serde_json::to_value(o).expect("an outcome serialises"),
                o.as_str()
            );
        }
    }

    proptest! {
        #[test]
        fn a_decision_does_not_depend_on_the_order_of_its_cells(mut picks in prop::collection::vec(0usize..12, 1..9)) {
            let one: Vec<Outcome> = picks.iter().map(|i| Outcome::ALL[*i]).collect();
            picks.reverse();
            let other: Vec<Outcome> = picks.iter().map(|i| Outcome::ALL[*i]).collect();
            prop_assert_eq!(outcome(&one), outcome(&other));
        }

        #[test]
        fn nobody_passes_without_a_passing_cell(picks in prop::collection::vec(1usize..12, 1..9)) {
            let all: Vec<Outcome> = picks.iter().map(|i| Outcome::ALL[*i]).collect();
            prop_assert_ne!(outcome(&all), Some(Outcome::Pass));
        }
    }
}

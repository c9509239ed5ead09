//! Outcomes, verdicts, results of cells, and the majority vote that combines several cells into one decision.
//!
//! Responsible for what these words mean: only a pass or a fail is a verdict, and an error never becomes one. Does not
//! apply bounds (`score_bounds`), does not decide for panels (`panel`), and does not read what a judge wrote (`judge`).

use serde::{Deserialize, Serialize};

use super::calibrated::format_probability;
use super::{Ballot, CalibratedScore, CauseSet, Cost, Millis, PanelDecision, RunId, TokenUsage};

/// The end of a cell or a decision. Only `Pass` and `Fail` are verdicts; no other outcome turns into one of them by
/// default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The verdict is a pass.
    Pass,
    /// The verdict is a fail.
    Fail,
    /// The criteria do not apply to the transcript.
    NotApplicable,
    /// The eval is disabled, the cell is not in the sample, or a precondition does not hold.
    Skipped,
    /// The handler could not decide because data is missing or has the wrong type.
    CheckError,
    /// The provider failed after all retries.
    JudgeError,
    /// The reply contains no valid verdict.
    Unparsed,
    /// The judge used all its turns without a verdict.
    TurnLimit,
    /// The stream ended early, or the reply reached the token limit.
    Truncated,
    /// The cell exceeded its time limit.
    Timeout,
    /// The run reached its budget.
    Budget,
    /// The user or a newer rubric cancelled the cell.
    Cancelled,
}

impl Outcome {
    /// All outcomes. The order breaks ties of votes and sorts reports.
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

    /// Returns `Some(true)` for pass, `Some(false)` for fail, else `None`.
    pub const fn passed(self) -> Option<bool> {
        match self {
            Self::Pass => Some(true),
            Self::Fail => Some(false),
            _ => None,
        }
    }

    /// Returns true for pass and fail.
    pub const fn is_verdict(self) -> bool {
        matches!(self, Self::Pass | Self::Fail)
    }

    /// Returns true for pass, fail and not applicable, which a judge can state.
    pub const fn is_judgment(self) -> bool {
        matches!(self, Self::Pass | Self::Fail | Self::NotApplicable)
    }

    /// Returns true for every outcome except verdicts, not applicable and skipped.
    pub const fn is_error(self) -> bool {
        !matches!(
            self,
            Self::Pass | Self::Fail | Self::NotApplicable | Self::Skipped
        )
    }

    /// Returns `Pass` for true and `Fail` for false.
    pub const fn from_passed(passed: bool) -> Self {
        if passed { Self::Pass } else { Self::Fail }
    }

    /// Returns the name that files use, such as `judge_error`.
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

    /// Returns the meaning, for documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pass => "the verdict is a pass",
            Self::Fail => "the verdict is a fail",
            Self::NotApplicable => {
                "the criteria do not apply to the transcript, there is nothing to check, or the `rules` judge cannot read them"
            }
            Self::Skipped => {
                "the eval is disabled, the cell is not in the sample, or a precondition (`when`) does not hold"
            }
            Self::CheckError => {
                "a check could not decide, because data is missing or of the wrong kind"
            }
            Self::JudgeError => "the provider failed after all retries, or the judge refused",
            Self::Unparsed => "the judge's reply contains no valid verdict",
            Self::TurnLimit => "the judge used all its turns without a verdict",
            Self::Truncated => "the stream ended early, or the reply reached the token limit",
            Self::Timeout => "the cell exceeded its time limit",
            Self::Budget => "the run or the cell reached a limit of cost, tokens, calls or time",
            Self::Cancelled => {
                "the user cancelled the cell, or a newer rubric replaced its question"
            }
        }
    }

    /// Returns one character that distinguishes the outcome without color.
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

/// A quote of the judge and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// The source as the judge wrote it: `message 4`, `fetch 1` or `rubric`.
    pub source: String,
    /// The quoted text.
    pub quote: String,
    /// True if the quote occurs verbatim in the source.
    pub found: bool,
}

/// One part of a verdict with several parts: a criterion, a goal, a call, or a counted kind of error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerdictPart {
    /// The text that the judge decided on.
    pub text: String,
    /// The judge's reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// True if the part is met; for a counted part, if the count is 0.
    pub met: bool,
    /// The count, for a counted part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The probability that the part is met, if the judge states probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

impl VerdictPart {
    /// Formats the part as a line, such as `✗ 2. Names the order: it names none`. `number` counts from 1.
    pub fn format_line(&self, number: usize) -> String {
        let mark = Outcome::from_passed(self.met).symbol();
        let count = self.format_suffix();
        let why = if self.reasoning.is_empty() { "" } else { ": " };
        format!(
            "{mark} {number}. {}{count}{why}{}",
            self.text, self.reasoning
        )
    }

    /// Formats the count or probability as a suffix: ` × 2` or ` (p = 0.12)`.
    pub fn format_suffix(&self) -> String {
        let count = self.count.map_or(String::new(), |n| format!(" × {n}"));
        match self.probability {
            Some(p) => format!("{count} (p = {})", format_probability(p)),
            None => count,
        }
    }
}

/// The statement of a judge, before bounds such as `min_score` decide.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The judge's own pass or fail; `None` if dicta asked only for a score.
    pub passed: Option<bool>,
    /// The score from 0 to 1, converted from `raw_score` if the eval has a `scale`.
    pub score: Option<f64>,
    /// The score as the judge gave it, if a `scale` applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_score: Option<f64>,
    /// `false` if the judge answers that the criteria do not apply (only with `allow_na`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applicable: Option<bool>,
    /// The judge's reasoning.
    pub reasoning: String,
    /// The judge's quotes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// The parts, if the eval has parts; `passed` and `score` then follow from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<VerdictPart>,
    /// The changes of argument repair to the arguments of the verdict call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repaired: Vec<super::ArgumentChange>,
    /// Sentences about characters in the judged texts that a reader does not see. dicta finds them; the judge does
    /// not state them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// The contradiction between the reasoning and the verdict, if dicta found one. It does not change the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// The probabilities of a judge that gives no reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<CalibratedScore>,
}

impl Verdict {
    /// Returns true if dicta flags the verdict: it contradicts itself, or cites a quote that isn't in its source.
    pub fn is_flagged(&self) -> bool {
        self.contradiction.is_some() || self.citations.iter().any(|citation| !citation.found)
    }
}

/// The result of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The outcome of the cell.
    pub outcome: Outcome,
    /// The score from 0 to 1, if the eval type has scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The reason for people; for a judge, its reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// The error text, for error outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The judge's statement, if the cell reached one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<Verdict>>,
    /// The tokens and calls, including failed attempts; `None` if no judge was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The cost in USD; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The known part of the cost, if `cost_usd` is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Cost>,
    /// The duration in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: Millis,
    /// The run that dicta took this result from, if it is cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<RunId>,
    /// The cost in USD of the calls that gave a cached result; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_cost_usd: Option<f64>,
    /// The duration of the calls that gave a cached result; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_duration_ms: Option<Millis>,
    /// The tokens of the calls that gave a cached result. Another judge with the same request may have other prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_usage: Option<TokenUsage>,
    /// The causes that the judge's calls are: refused, repaired or failed ones.
    #[serde(default, skip_serializing_if = "CauseSet::is_empty")]
    pub tool_causes: CauseSet,
    /// True if a person changed the judge trace. Such a result never enters the cache, the state or statistics.
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

/// The explanation of a skipped cell whose eval has `enabled: false`.
pub const DISABLED_EVAL: &str = "disabled in the rubric";
/// The beginning of the explanation of a skipped cell that the sample of its eval leaves out.
pub const NOT_SAMPLED: &str = "not sampled";

impl CellResult {
    /// Creates a result with an outcome and a reason.
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
            first_cost_usd: None,
            first_duration_ms: None,
            first_usage: None,
            tool_causes: CauseSet::default(),
            by_human: false,
        }
    }

    /// Returns the cost in USD and the duration of asking the judge, also for a cached result; `None` if it is unknown.
    pub fn asking(&self) -> (Option<f64>, Option<Millis>) {
        if self.cached.is_some() {
            (self.first_cost_usd, self.first_duration_ms)
        } else {
            (self.cost_usd, Some(self.duration_ms))
        }
    }

    /// Sets what asking would cost at the prices of the judge that takes a cached result. `price` returns the cost of
    /// tokens; `None` if it is unknown. Without recorded tokens, the recorded cost stays.
    pub fn reprice(&mut self, price: impl FnOnce(&TokenUsage) -> Option<f64>) {
        if let Some(usage) = &self.first_usage {
            self.first_cost_usd = price(usage);
        }
    }

    /// Creates a result with an error outcome and the error's text.
    pub fn from_error(outcome: Outcome, error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(outcome, "")
        }
    }

    /// Returns the cost. A result without a recorded cost counts each of its calls as unknown.
    pub fn bill(&self) -> Cost {
        let calls = self.usage.map_or(0, |usage| u64::from(usage.calls));
        match (self.cost_usd, self.bill) {
            // `bill` is recorded only if a part of the cost is unknown.
            (Some(usd), _) => Cost { usd, unknown: 0 },
            (None, Some(bill)) => bill,
            (None, None) => Cost {
                usd: 0.0,
                unknown: calls,
            },
        }
    }

    /// Returns true if the judge decided without a call: the result is cached, or it came with the transcript. A call that
    /// failed is a call, although it has no reply to count.
    pub fn needed_no_call(&self) -> bool {
        let has_answer = self.cached.is_some() || self.outcome.is_verdict();
        has_answer && self.usage.is_some_and(|usage| usage.calls == 0)
    }

    /// Returns true if the judge called tools: its verdict cites a fetch, or it needed more than one call.
    pub fn used_tools(&self) -> bool {
        let calls = self.usage.is_some_and(|usage| usage.calls > 1);
        // A cached result has no calls of its own, but its citations.
        let cites_fetch = self.verdict.as_deref().is_some_and(|verdict| {
            let mut citations = verdict.citations.iter();
            citations.any(|citation| citation.source.starts_with("fetch "))
        });
        calls || cites_fetch
    }

    /// Creates the result of a cell that the user stopped.
    pub fn cancelled() -> Self {
        Self::from_error(Outcome::Cancelled, "stopped before a verdict")
    }
}

/// The number of cells per kind of vote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteCounts {
    /// The number of cells that passed.
    pub pass: u32,
    /// The number of cells that failed.
    pub fail: u32,
    /// The number of cells that do not apply.
    pub na: u32,
    /// The number of cells without a verdict. They abstain.
    pub error: u32,
}

/// The combined outcome of one transcript, rubric, eval and message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The outcome of its only cell, or of the vote.
    pub outcome: Outcome,
    /// The score, or the median of the scores of the voting cells.
    pub score: Option<f64>,
    /// The votes of cells, or of the members of a jury; in a cascade, of the cells of the deciding judge.
    pub votes: VoteCounts,
    /// The members behind the decision of a panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "ruling")]
    pub panel: Option<Box<PanelDecision>>,
}

/// Decides by the majority rule. Returns `None` without cells. [`super::VoteParams`] decides panels.
///
/// Error and skipped cells abstain. If fewer than half of the cells remain, the decision is the commonest abstaining
/// outcome. The order of [`Outcome::ALL`] breaks ties.
pub fn decide_cells<'a>(cells: impl IntoIterator<Item = &'a CellResult>) -> Option<Decision> {
    let cells: Vec<Ballot> = cells.into_iter().map(Ballot::from).collect();
    decide_by_vote(&cells)
}

/// Returns the decision of a cell that decides alone: it keeps its own outcome, also an error, without a vote.
pub fn decide_cell(cell: &CellResult) -> Decision {
    decide_alone(Ballot::from(cell))
}

fn decide_alone(only: Ballot) -> Decision {
    Decision {
        outcome: only.outcome,
        score: only.score,
        votes: count_votes(&[only]),
        panel: None,
    }
}

/// Decides ballots as [`decide_cells`] decides cells.
pub(super) fn decide_by_vote(cells: &[Ballot]) -> Option<Decision> {
    if let [only] = cells {
        return Some(decide_alone(*only));
    }
    let votes = count_votes(cells);
    // Errors and skipped cells abstain.
    let voting = votes.pass + votes.fail + votes.na;
    let outcome = if voting == 0 || (voting as usize) * 2 < cells.len() {
        most_common_outcome(
            cells
                .iter()
                .map(|c| c.outcome)
                .filter(|o| o.is_error() || *o == Outcome::Skipped),
        )?
    } else if votes.fail >= votes.pass && votes.fail >= votes.na {
        // A tie is never a pass: fail takes precedence, then not applicable.
        Outcome::Fail
    } else if votes.na >= votes.pass {
        Outcome::NotApplicable
    } else {
        Outcome::Pass
    };
    // "Not applicable" has no score, even if some votes have one.
    let score = if outcome.is_verdict() {
        median_score(
            cells
                .iter()
                .filter(|c| c.outcome.is_verdict())
                .filter_map(|c| c.score)
                .collect(),
        )
    } else {
        None
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
        // The order of the variants is that of `Outcome::ALL`.
        counts[outcome as usize] += 1;
    }
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    Outcome::ALL
        .into_iter()
        .find(|o| counts[*o as usize] == most)
}

pub(super) fn median_score(mut scores: Vec<f64>) -> Option<f64> {
    // `total_cmp` also orders NaN, so a damaged log cannot cause a panic.
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
    fn failed_call_is_a_call_although_it_has_no_reply() {
        let with_usage = |outcome, cached: Option<&str>| CellResult {
            usage: Some(TokenUsage::default()),
            cached: cached.map(|run| RunId(run.to_owned())),
            ..CellResult::new(outcome, "")
        };
        assert!(!with_usage(Outcome::JudgeError, None).needed_no_call());
        assert!(with_usage(Outcome::Pass, None).needed_no_call());
        assert!(with_usage(Outcome::NotApplicable, Some("r")).needed_no_call());
        // Code has no usage, because no judge decides.
        assert!(!CellResult::new(Outcome::Pass, "").needed_no_call());
    }

    #[test]
    fn one_cell_decides_alone() {
        for o in Outcome::ALL {
            assert_eq!(outcome(&[o]), Some(o));
            let cell = CellResult::new(o, "");
            assert_eq!(Some(decide_cell(&cell)), decide_cells([&cell]));
        }
        assert_eq!(outcome(&[]), None);
    }

    #[test]
    fn cached_result_has_the_cost_and_the_time_of_its_first_asking() {
        let asked = CellResult {
            cost_usd: Some(0.25),
            duration_ms: Millis(40),
            first_cost_usd: Some(0.5),
            first_duration_ms: Some(Millis(90)),
            ..CellResult::new(Outcome::Pass, "")
        };
        assert_eq!(asked.asking(), (Some(0.25), Some(Millis(40))));
        let cached = CellResult {
            cached: Some(RunId("r".to_owned())),
            ..asked
        };
        assert_eq!(cached.asking(), (Some(0.5), Some(Millis(90))));
    }

    #[test]
    fn new_price_needs_recorded_tokens() {
        let mut result = CellResult {
            first_cost_usd: Some(0.5),
            ..CellResult::new(Outcome::Pass, "")
        };
        result.reprice(|_| Some(2.0));
        assert_eq!(result.first_cost_usd, Some(0.5));
        result.first_usage = Some(TokenUsage {
            input: Some(3),
            ..TokenUsage::default()
        });
        result.reprice(|usage| usage.input.map(|tokens| tokens as f64));
        assert_eq!(result.first_cost_usd, Some(3.0));
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
    fn decision_that_is_not_applicable_has_no_score() {
        let mut all = cells(&[Outcome::Pass, Outcome::NotApplicable]);
        all[0].score = Some(0.9);
        let decision = decide_cells(&all).expect("a decision");
        assert_eq!(decision.outcome, Outcome::NotApplicable);
        assert_eq!(decision.score, None);
    }

    #[test]
    fn median_of_an_even_number_of_scores_is_between_the_middle_ones() {
        assert_eq!(median_score(vec![0.75, 0.25]), Some(0.5));
        assert_eq!(median_score(vec![1.0, 0.0, 0.25, 0.75]), Some(0.5));
        assert_eq!(median_score(Vec::new()), None);
    }

    #[test]
    fn decision_by_errors_has_no_score_and_counts_them() {
        let mut all = cells(&[Outcome::Pass, Outcome::JudgeError, Outcome::JudgeError]);
        all[0].score = Some(0.9);
        let decision = decide_cells(&all).expect("a decision");
        assert_eq!(
            (decision.outcome, decision.score),
            (Outcome::JudgeError, None)
        );
        let counts = VoteCounts {
            pass: 1,
            error: 2,
            ..VoteCounts::default()
        };
        assert_eq!(decision.votes, counts);
    }

    #[test]
    fn only_pass_and_fail_are_verdicts() {
        use Outcome::{Fail, NotApplicable, Pass, Skipped};
        for o in Outcome::ALL {
            let (passed, symbol) = match o {
                Pass => (Some(true), '✓'),
                Fail => (Some(false), '✗'),
                NotApplicable => (None, '–'),
                Skipped => (None, '·'),
                _ => (None, '!'),
            };
            assert_eq!((o.passed(), o.symbol()), (passed, symbol), "{o}");
            assert_eq!(o.is_verdict(), passed.is_some(), "{o}");
            assert_eq!(o.to_string(), o.as_str());
            let others = Outcome::ALL.into_iter().filter(|other| *other != o);
            assert!(o.meaning().contains(' '), "{o}: a sentence");
            assert!(
                others
                    .into_iter()
                    .all(|other| other.meaning() != o.meaning())
            );
        }
    }

    #[test]
    fn part_shows_its_mark_count_probability_and_reason() {
        let part = VerdictPart {
            text: "Names the order".to_owned(),
            ..VerdictPart::default()
        };
        assert_eq!(part.format_line(2), "✗ 2. Names the order");
        let counted = VerdictPart {
            reasoning: "it names two".to_owned(),
            count: Some(2),
            ..part.clone()
        };
        assert_eq!(
            counted.format_line(1),
            "✗ 1. Names the order × 2: it names two"
        );
        let probable = VerdictPart {
            met: true,
            probability: Some(0.12),
            ..part
        };
        assert_eq!(probable.format_suffix(), " (p = 0.12)");
    }

    fn citing(source: &str, found: bool) -> Verdict {
        let citation = Citation {
            source: source.to_owned(),
            quote: "day".to_owned(),
            found,
        };
        Verdict {
            citations: vec![citation],
            ..Verdict::default()
        }
    }

    #[test]
    fn contradiction_or_lost_quote_flags_a_verdict() {
        assert!(!Verdict::default().is_flagged());
        assert!(!citing("message 1", true).is_flagged());
        assert!(citing("message 1", false).is_flagged());
        let contradictory = Verdict {
            contradiction: Some("says no".to_owned()),
            ..Verdict::default()
        };
        assert!(contradictory.is_flagged());
    }

    #[test]
    fn result_uses_tools_if_it_has_a_second_call_or_cites_a_fetch() {
        let with = |calls: Option<u32>, verdict: Option<Verdict>| CellResult {
            usage: calls.map(|calls| TokenUsage {
                calls,
                ..TokenUsage::default()
            }),
            verdict: verdict.map(Box::new),
            ..CellResult::new(Outcome::Pass, "")
        };
        assert!(!with(None, None).used_tools());
        assert!(!with(Some(1), Some(citing("message 1", true))).used_tools());
        assert!(with(Some(2), None).used_tools());
        assert!(with(None, Some(citing("fetch 1", true))).used_tools());
    }

    #[test]
    fn cost_of_a_result_is_exact_partly_known_or_unknown() {
        let mut result = CellResult::from_error(Outcome::Timeout, "too late");
        assert_eq!(result.error.as_deref(), Some("too late"));
        assert_eq!(result.bill(), Cost::default());
        result.usage = Some(TokenUsage {
            calls: 2,
            ..TokenUsage::default()
        });
        let unknown = Cost {
            usd: 0.0,
            unknown: 2,
        };
        assert_eq!(result.bill(), unknown);
        let partly = Cost {
            usd: 0.25,
            unknown: 1,
        };
        result.bill = Some(partly);
        assert_eq!(result.bill(), partly);
        result.cost_usd = Some(0.5);
        let exact = Cost {
            usd: 0.5,
            unknown: 0,
        };
        assert_eq!(result.bill(), exact);
    }

    #[test]
    fn duration_of_zero_is_not_written() {
        let has_duration = |ms| {
            let result = CellResult {
                duration_ms: Millis(ms),
                ..CellResult::new(Outcome::Pass, "")
            };
            let json = serde_json::to_value(result).expect("a result");
            json.get("duration_ms").is_some()
        };
        assert!(!has_duration(0) && has_duration(1));
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

//! The totals of a run, and its exit code.
//!
//! Responsible for what the totals mean. Does not count: [`super::RowBuilder`] does.

use crate::event::{BudgetStop, ReadingTotals, ReplayedEvidencePlan};
use crate::model::{
    Cost, Decision, Digest, ExitReason, OtherModel, Outcome, StoppedJudge, TokenUsage, pluralize,
};
use crate::record::RunStatus;
use crate::report::label_agreement::EvalVerdicts;
use crate::report::result_digests::EvalSettings;
use crate::report::wording::count_outcome;

/// The totals of a run. Outcomes count decisions; `cells` and `pending` count cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// The run's id.
    pub run: String,
    /// The number of the shown state. Its results are of several runs, and `run` is the newest of them. `None` for a run.
    pub state: Option<usize>,
    /// The trace that the run continues, if it is a branch: `branch of run kvqa from 2.prompt`.
    pub branch: Option<String>,
    /// The digest of the run's revision; `None` without a header.
    pub revision: Option<Digest>,
    /// The settings that decide each eval, in the order of the header.
    pub settings: Vec<EvalSettings>,
    /// `true` if the run used the demo.
    pub demo: bool,
    /// The number of planned cells.
    pub cells: u64,
    /// The number of cells without a result.
    pub pending: u64,
    /// The status of the run. Events alone do not tell an interrupted run from a running one.
    pub status: RunStatus,
    /// The number of decisions by outcome.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// The number of decisions among them whose judge traces a person edited, by outcome. They enter no statistics.
    pub edited_outcomes: [u64; Outcome::ALL.len()],
    /// The number of rubrics that a required eval leaves undecided, one per transcript.
    pub undecided_rubrics: u64,
    /// The number of cells whose verdict is flagged: a contradiction, or a quote that isn't in its source.
    pub flagged: u64,
    /// The tokens and calls of the judges.
    pub usage: TokenUsage,
    /// The cost in USD; `None` if a part of it is unknown or no judge was asked.
    pub cost_usd: Option<f64>,
    /// The known part of the cost, and the number of calls of unknown cost.
    pub bill: Cost,
    /// The day of the built-in prices, if they priced a part of the cost.
    pub prices_as_of: Option<String>,
    /// The limits that the run reached, in order.
    pub budgets: Vec<BudgetStop>,
    /// The judges that the run stopped calling, in order.
    pub stopped_judges: Vec<StoppedJudge>,
    /// The judges whose replies name another model than the one that dicta asked for.
    pub other_models: Vec<OtherModel>,
    /// Milliseconds from the first to the last event.
    pub duration_ms: u64,
    /// The number of transcripts with rows.
    pub transcripts: u64,
    /// The verdicts by eval, in the order of the header.
    pub evals: Vec<EvalVerdicts>,
    /// The agreement of evals that several parts replace, one for each criterion. They have no outcomes of their own.
    pub wholes: Vec<EvalVerdicts>,
    /// The recorded tool responses that replaced live calls, if any.
    pub evidence: Option<ReplayedEvidencePlan>,
    /// The number of calls with a recorded tool response.
    pub evidence_answers: u64,
    /// The number of calls without a recorded tool response.
    pub evidence_misses: u64,
    /// The number of decisions by a vote.
    pub voted: u64,
    /// The number of unanimous ones among them.
    pub unanimous: u64,
    /// The sum of their winners' shares, each from 0 to 1.
    pub share_sum: f64,
    /// The number of decisions by a cascade.
    pub cascades: u64,
    /// The number of those in which the first judge was unsure.
    pub escalated: u64,
    /// The counts of the transcript files.
    pub reading: ReadingTotals,
}

impl RunSummary {
    /// Returns the name of what the totals are about: `state 3` or `run 20261121T101500Z-kvqa`.
    pub fn subject(&self) -> String {
        match self.state {
            Some(number) => format!("state {number}"),
            None => format!("run {}", self.run),
        }
    }

    /// Returns the number of decisions with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Describes the number of decisions by outcome, such as `57 pass, 0 fail, 2 timeouts`.
    pub fn describe_outcomes(&self) -> String {
        let counts: Vec<String> = Outcome::ALL
            .into_iter()
            .map(|outcome| (outcome, self.count(outcome)))
            .filter(|(outcome, n)| *n > 0 || outcome.is_verdict())
            .map(|(outcome, n)| count_outcome(outcome, n))
            .collect();
        counts.join(", ")
    }

    /// Returns the number of decisions that ended in an error.
    pub fn errors(&self) -> u64 {
        Outcome::ALL
            .iter()
            .filter(|o| o.is_error())
            .map(|o| self.count(*o))
            .sum()
    }

    /// Returns the number of decisions whose judge traces a person edited.
    pub fn edited(&self) -> u64 {
        self.edited_outcomes.iter().sum()
    }

    /// Returns the number of decisions with this outcome that enter statistics.
    pub fn count_unedited(&self, outcome: Outcome) -> u64 {
        self.count(outcome) - self.edited_outcomes[outcome as usize]
    }

    /// Returns the mean share of the winning votes; `None` if no decision was by vote.
    pub fn mean_share(&self) -> Option<f64> {
        (self.voted > 0).then(|| self.share_sum / self.voted as f64)
    }

    pub(super) fn count_votes(&mut self, decision: &Decision) {
        let deciding = decision
            .panel
            .as_ref()
            .and_then(|panel| panel.deciding_member);
        if let Some(deciding) = deciding {
            self.cascades += 1;
            // A later member decides only if the first one was unsure.
            self.escalated += u64::from(deciding > 0);
        }
        if let Some(share) = decision.winning_share().filter(|share| share.total > 1) {
            self.voted += 1;
            self.unanimous += u64::from(share.won == share.total);
            self.share_sum += share.fraction();
        }
    }

    /// Describes the evals without a verdict: `1 eval decided nothing: support/tone`. `None` if every eval that has
    /// decisions decided one. An eval that the rubric disables, or samples nowhere, had nothing to decide.
    pub fn describe_undecided_evals(&self) -> Option<String> {
        const MAX_LISTED_EVALS: usize = 5;
        let names: Vec<String> = self
            .evals
            .iter()
            .filter(|eval| eval.decided == 0 && eval.undecided > 0)
            .map(|eval| format!("{}/{}", eval.rubric, eval.eval))
            .collect();
        if names.is_empty() {
            return None;
        }
        let count = pluralize(names.len() as u64, "eval");
        let listed = names[..names.len().min(MAX_LISTED_EVALS)].join(", ");
        let more = match names.len().saturating_sub(MAX_LISTED_EVALS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("{count} decided nothing: {listed}{more}"))
    }

    /// Returns the exit code of `--strict`: 1 also if a verdict is flagged, and 2 if a file is broken.
    pub fn strict_exit_code(&self) -> u8 {
        if self.flagged > 0 || self.count(Outcome::Fail) > 0 {
            ExitReason::Failed.code()
        } else if self.reading.broken_files > 0 {
            ExitReason::Usage.code()
        } else {
            self.exit_code()
        }
    }

    /// Returns the exit code over decisions. A pending decision is not a pass.
    pub fn exit_code(&self) -> u8 {
        // A fail is final, so it precedes errors and pending cells.
        let reason = if self.count(Outcome::Fail) > 0 {
            ExitReason::Failed
        } else if self.errors() > 0 || self.pending > 0 || self.reading.broken_files > 0 {
            ExitReason::NoVerdict
        } else if self.undecided_rubrics > 0 || self.count(Outcome::Pass) == 0 {
            ExitReason::Undecided
        } else {
            ExitReason::Passed
        };
        reason.code()
    }
}

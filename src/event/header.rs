//! What stands once in a run: what it began with, and what it ended with.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{
    Ballot, Blob, CellIx, CellResult, CellVote, Cost, Decision, Digest, JudgeConfig, Millis,
    Outcome, Panel, Prices, RunId, ScoreBounds, TokenUsage, TurnIx, VoteParams, WallTime,
};

/// The format of an event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogFormat {
    /// Raised when older readers would misread.
    pub major: u16,
    /// Raised when something was added.
    pub minor: u16,
}

/// Everything a run began with. A run reads nothing of the workspace afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The log's format.
    pub format: LogFormat,
    /// The version of dicta that recorded it.
    pub dicta: String,
    /// The run.
    pub run: RunId,
    /// When it began.
    pub started: WallTime,
    /// The workspace's folder.
    pub workspace: PathBuf,
    /// Whether it ran the built-in demo.
    pub demo: bool,
    /// A sentence to show with the run: `recorded against a scripted server`. Empty for most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The run it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// Every file that was loaded, by content.
    pub snapshots: Vec<SnapshotFile>,
    /// The judges that may be asked, indexed by [`CellKey::judge`].
    pub judges: Vec<JudgeSpec>,
    /// The rubrics, sorted by path.
    pub rubrics: Vec<RubricSpec>,
    /// The evals in plan order, indexed by [`CellKey::eval`].
    pub evals: Vec<EvalSpec>,
    /// The plan's specification: transcripts' globs, filter, limit, sample, seed.
    pub plan: IndexMap<String, Value>,
    /// Whose evidence answers tool calls; `None`: live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<RunId>,
}

/// Frozen evidence as a run was told to use it; stands in [`RunHeader::plan`] under `frozen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedEvidencePlan {
    /// Whose recorded answers stand for live calls; the first that holds one gives it.
    pub runs: Vec<RunId>,
    /// How many calls these have answers for.
    pub answers: u64,
    /// What a call gets that none of them answers: `live`, `error`, `end`.
    pub miss: String,
}

impl ReplayedEvidencePlan {
    const PLAN_KEY: &str = "frozen";

    /// As it stands in the plan.
    pub fn to_plan_entry(&self) -> Option<(String, Value)> {
        let value = serde_json::to_value(self).ok()?;
        Some((Self::PLAN_KEY.to_owned(), value))
    }

    /// `run kvqa`, `run kvqa and 2 more`.
    pub fn describe_runs(&self) -> String {
        let first = self.runs.first().map_or("?", RunId::letters);
        match self.runs.len() {
            0 | 1 => format!("run {first}"),
            n => format!("run {first} and {} more", n - 1),
        }
    }

    /// What becomes of a call without an answer, in words.
    pub fn describe_miss_policy(&self) -> &'static str {
        match self.miss.as_str() {
            "live" => "a call without one is made live",
            "end" => "a call without one ends its cell",
            _ => "a call without one is refused",
        }
    }
}

impl RunHeader {
    /// How the label of a self-test's run begins; the judge's name follows.
    pub const ROBUSTNESS_LABEL_PREFIX: &str = "selftest of judge ";

    /// Whether it is a run of `dicta selftest`: over made-up cases, in no workspace's history.
    pub fn is_robustness_run(&self) -> bool {
        self.label.starts_with(Self::ROBUSTNESS_LABEL_PREFIX)
    }

    /// How evidence is frozen, if it is. Of runs before this was recorded only whose evidence it is.
    pub fn replayed_evidence_plan(&self) -> Option<ReplayedEvidencePlan> {
        let run = self.frozen.clone()?;
        let said = self.plan.get(ReplayedEvidencePlan::PLAN_KEY).cloned();
        let said = said.and_then(|said| serde_json::from_value(said).ok());
        Some(said.unwrap_or_else(|| ReplayedEvidencePlan {
            runs: vec![run],
            answers: 0,
            miss: "error".to_owned(),
        }))
    }

    /// Whether a call of this tool is one that evidence answers: a tool of a judge's configuration, and no part of the
    /// frame (`submit_verdict`, what reads the transcript).
    pub fn has_evidence_for(&self, tool: &str) -> bool {
        let mut tools = self.judges.iter().flat_map(|judge| &judge.tools);
        self.frozen.is_some() && tools.any(|(name, _)| name == tool)
    }
}

/// Where a run came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRun {
    /// The run before.
    pub run: RunId,
    /// Its cell, for a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellIx>,
    /// Its turn, for a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnIx>,
    /// Why there is a child.
    pub cause: ParentCause,
}

/// Why a run has a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentCause {
    /// A file was saved.
    Save,
    /// What an interrupted or failed run left.
    Resume,
    /// A trace taken up in the middle.
    Fork,
    /// Asked again without the cache.
    Refresh,
}

/// A loaded file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    /// Relative to the workspace where it lies inside it.
    pub path: PathBuf,
    /// Its content.
    pub blob: Blob,
}

/// A judge of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeSpec {
    /// As resolved; header values and `extra_body` are redacted by the emitter.
    pub config: JudgeConfig,
    /// Digest of what could change a verdict.
    pub digest: Digest,
    /// What the model does not take, known before the first call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedSetting>,
    /// The prices of dicta's own table that its cost is reckoned by, where its author gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "listed")]
    pub table_prices: Option<TablePrices>,
    /// Its tools by name, each with the digest of its declaration and of what it does: with the canonical arguments, what
    /// names evidence. Empty for a judge that was not needed and whose tools nothing built in declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<(String, Digest)>,
}

/// Prices of the built-in table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TablePrices {
    /// USD per million tokens.
    pub prices: Prices,
    /// The day they were read from the vendor's page.
    pub as_of: String,
}

/// A setting that was not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedSetting {
    /// `temperature`, `seed` …
    pub what: String,
    /// A sentence.
    pub why: String,
}

/// A rubric of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RubricSpec {
    /// Its id.
    pub id: String,
    /// Its file, relative to the workspace where it lies inside it.
    pub path: PathBuf,
    /// The score a transcript needs; `None`: not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

/// An eval of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalSpec {
    /// Index into [`RunHeader::rubrics`].
    pub rubric: u32,
    /// The bare id.
    pub id: String,
    /// The eval type.
    #[serde(rename = "kind")]
    pub eval_type: String,
    /// Digest of the resolved params and of all else that could change a result; what only decides is no part.
    pub digest: Digest,
    /// What only decides: `min_score` and its like, as written.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[serde(rename = "decides")]
    pub decision_settings: IndexMap<String, Value>,
    /// For the rubric's score.
    pub weight: f64,
    /// Whether it must pass for the rubric to pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Whether `weight` or `required` was written, so that rubric lines are reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighted: bool,
    /// How many repeats.
    pub repeat: u32,
    /// Who judges it, where several do; by index into [`RunHeader::judges`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<Panel>,
    /// Whether a judge decides it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// Names it is chosen by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl EvalSpec {
    /// What decides its cells.
    pub fn vote_params(&self) -> VoteParams<'_> {
        VoteParams {
            rule: self.panel.as_ref().map(|panel| panel.rule),
            judges: self.panel.as_ref().map_or(&[], |panel| &panel.judges),
            bounds: ScoreBounds::from_decision_settings(&self.decision_settings),
            repeat: self.repeat,
        }
    }

    /// What its cells of one decision decide; `None` while one has no result.
    pub fn decide<'c>(
        &self,
        cells: impl IntoIterator<Item = (&'c CellKey, Option<&'c CellResult>)>,
    ) -> Option<Decision> {
        let cells: Vec<CellVote> = cells
            .into_iter()
            .map(|(key, result)| CellVote {
                judge: key.judge,
                repeat: key.repeat,
                ballot: result.map(Ballot::from),
            })
            .collect();
        self.vote_params().decide(&cells)
    }
}

/// What a cell is, within its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CellKey {
    /// Index into [`RunHeader::evals`].
    pub eval: u32,
    /// 0-based position of the judged message, for `every_turn` and `sample_turns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u32>,
    /// Index into [`RunHeader::judges`], for judge evals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<u32>,
    /// From 1, only with repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
}

/// What a run ended with. Counts are over decisions, except `cells` and `pending`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTotals {
    /// Cells planned.
    pub cells: u64,
    /// Cells without a result.
    pub pending: u64,
    /// Decisions by outcome; absent ones are 0.
    pub outcomes: IndexMap<Outcome, u64>,
    /// What judging took.
    pub usage: TokenUsage,
    /// USD; `None` when some of it is unknown.
    pub cost_usd: Option<f64>,
    /// What is known of the cost where not all of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Cost>,
    /// How long.
    pub duration_ms: Millis,
    /// Whether it was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

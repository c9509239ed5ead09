//! The first and last facts of a run: its header and its totals.
//!
//! Responsible for the JSON of `run_started` and `run_finished`. Does not read workspaces or count results.

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
    /// Raised if older readers would misread the log.
    pub major: u16,
    /// Raised if something was added.
    pub minor: u16,
}

/// The inputs and settings of a run. The run reads nothing of the workspace afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The log's format.
    pub format: LogFormat,
    /// The version of dicta that recorded it.
    pub dicta: String,
    /// The run's id.
    pub run: RunId,
    /// The time at which the run began.
    pub started: WallTime,
    /// The workspace's folder.
    pub workspace: PathBuf,
    /// `true` if the workspace is the built-in demo.
    pub demo: bool,
    /// A sentence to show with the run: `recorded against a scripted server`. Empty for most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The run that caused this one, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// Every loaded file, by content.
    pub snapshots: Vec<SnapshotFile>,
    /// The judges that the run may call, indexed by [`CellKey::judge`].
    pub judges: Vec<JudgeSpec>,
    /// The rubrics, sorted by path.
    pub rubrics: Vec<RubricSpec>,
    /// The evals in plan order, indexed by [`CellKey::eval`].
    pub evals: Vec<EvalSpec>,
    /// The specification of the plan: transcripts, filter, limit, sample, seed.
    pub plan: IndexMap<String, Value>,
    /// The run whose recorded tool responses replace live calls; `None` if calls are live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<RunId>,
}

/// The recorded tool responses that a run uses, as [`RunHeader::plan`] stores them under `frozen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedEvidencePlan {
    /// The runs whose recorded responses replace live calls, in order of precedence.
    pub runs: Vec<RunId>,
    /// The number of calls for which these runs have a response.
    pub answers: u64,
    /// The treatment of a call without a recorded response: `live`, `error` or `end`.
    pub miss: String,
}

impl ReplayedEvidencePlan {
    const PLAN_KEY: &str = "frozen";

    /// Returns the key and the value for [`RunHeader::plan`].
    pub fn to_plan_entry(&self) -> Option<(String, Value)> {
        let value = serde_json::to_value(self).ok()?;
        Some((Self::PLAN_KEY.to_owned(), value))
    }

    /// Returns the runs in words: `run kvqa`, `run kvqa and 2 more`.
    pub fn describe_runs(&self) -> String {
        let first = self.runs.first().map_or("?", RunId::letters);
        match self.runs.len() {
            0 | 1 => format!("run {first}"),
            n => format!("run {first} and {} more", n - 1),
        }
    }

    /// Describes the treatment of a call without a recorded response.
    pub fn describe_miss_policy(&self) -> &'static str {
        match self.miss.as_str() {
            "live" => "a call without one is made live",
            "end" => "a call without one ends its cell",
            _ => "a call without one is refused",
        }
    }
}

impl RunHeader {
    /// The beginning of the label of a robustness run, before the judge's name.
    pub const ROBUSTNESS_LABEL_PREFIX: &str = "selftest of judge ";

    /// Reports whether this is a run of `dicta robustness`. Its cases are made up, so no workspace's history includes
    /// it.
    pub fn is_robustness_run(&self) -> bool {
        self.label.starts_with(Self::ROBUSTNESS_LABEL_PREFIX)
    }

    /// The recorded tool responses that the run used, if any. An older log names only the run that supplied them.
    pub fn replayed_evidence_plan(&self) -> Option<ReplayedEvidencePlan> {
        let run = self.frozen.clone()?;
        let recorded = self.plan.get(ReplayedEvidencePlan::PLAN_KEY).cloned();
        let recorded = recorded.and_then(|recorded| serde_json::from_value(recorded).ok());
        Some(recorded.unwrap_or_else(|| ReplayedEvidencePlan {
            runs: vec![run],
            answers: 0,
            // In those versions, a call without a recorded response was always an error.
            miss: "error".to_owned(),
        }))
    }

    /// Reports whether recorded responses can replace calls of this tool. The judge's configuration must list it:
    /// tools of the frame, such as `submit_verdict`, have no recorded responses.
    pub fn has_evidence_for(&self, tool: &str) -> bool {
        let mut tools = self.judges.iter().flat_map(|judge| &judge.tools);
        self.frozen.is_some() && tools.any(|(name, _)| name == tool)
    }
}

/// The run that caused a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRun {
    /// The earlier run.
    pub run: RunId,
    /// Its cell, for a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellIx>,
    /// Its turn, for a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnIx>,
    /// The cause.
    pub cause: ParentCause,
}

/// The reason why a run has a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentCause {
    /// A file was saved.
    Save,
    /// To judge the cells that an interrupted or failed run left.
    Resume,
    /// To continue a judge trace from its middle.
    Fork,
    /// To judge again without the cache.
    Refresh,
}

/// A loaded file, as the run read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    /// The path, relative to the workspace for a file inside it.
    pub path: PathBuf,
    /// The content.
    pub blob: Blob,
}

/// A judge of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeSpec {
    /// The resolved configuration. The emitter redacts header values and `extra_body`.
    pub config: JudgeConfig,
    /// The digest of everything that could change a verdict.
    pub digest: Digest,
    /// The settings that the model does not accept, known before the first call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedSetting>,
    /// The prices of dicta's own table from which dicta computes the cost, if the author wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "listed")]
    pub table_prices: Option<TablePrices>,
    /// The judge's tools by name, each with the digest of its declaration and behavior. With the canonical arguments,
    /// the digest identifies a recorded tool response. Empty for a judge that the run did not need and whose tools
    /// are not built in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<(String, Digest)>,
}

/// Prices of the built-in table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TablePrices {
    /// USD per million tokens.
    pub prices: Prices,
    /// The day on which the vendor's page had these prices.
    pub as_of: String,
}

/// A setting that dicta did not send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedSetting {
    /// The name: `temperature`, `seed` …
    pub what: String,
    /// The reason, as a sentence.
    pub why: String,
}

/// A rubric of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RubricSpec {
    /// The rubric's id.
    pub id: String,
    /// The rubric's file, relative to the workspace for a file inside it.
    pub path: PathBuf,
    /// The lowest passing rubric score; `None` if the rubric sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

/// An eval of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalSpec {
    /// Index into [`RunHeader::rubrics`].
    pub rubric: u32,
    /// The eval's id, without the rubric.
    pub id: String,
    /// The eval type.
    #[serde(rename = "kind")]
    pub eval_type: String,
    /// The digest of the resolved params and of everything else that could change a result. Decision settings are
    /// excluded.
    pub digest: Digest,
    /// The decision settings, such as `min_score`, as written.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[serde(rename = "decides")]
    pub decision_settings: IndexMap<String, Value>,
    /// The weight in the rubric score.
    pub weight: f64,
    /// `true` if the eval must pass for the rubric to pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// `true` if the rubric sets `weight` or `required`, so that reports have rubric lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighted: bool,
    /// The number of repeats.
    pub repeat: u32,
    /// The panel of several judges, by index into [`RunHeader::judges`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<Panel>,
    /// `true` if a judge decides the eval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// The groups by which a filter can select the eval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl EvalSpec {
    /// The settings that combine its cells into a decision.
    pub fn vote_params(&self) -> VoteParams<'_> {
        VoteParams {
            rule: self.panel.as_ref().map(|panel| panel.rule),
            judges: self.panel.as_ref().map_or(&[], |panel| &panel.judges),
            bounds: ScoreBounds::from_decision_settings(&self.decision_settings),
            repeat: self.repeat,
        }
    }

    /// The decision of its cells; `None` while a cell has no result.
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

/// The key of a cell within its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CellKey {
    /// Index into [`RunHeader::evals`].
    pub eval: u32,
    /// The 0-based position of the judged message, for `every_turn` and `sample_turns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u32>,
    /// Index into [`RunHeader::judges`]; `None` without a judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<u32>,
    /// The repeat, from 1; `None` without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
}

/// The totals of a run. Counts are over decisions, except `cells` and `pending`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTotals {
    /// The number of planned cells.
    pub cells: u64,
    /// The number of cells without a result.
    pub pending: u64,
    /// Decisions by outcome; a missing outcome has 0.
    pub outcomes: IndexMap<Outcome, u64>,
    /// The tokens and calls that judging used.
    pub usage: TokenUsage,
    /// USD; `None` if a part is unknown.
    pub cost_usd: Option<f64>,
    /// The known part of the cost, if a part is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Cost>,
    /// The duration of the run.
    pub duration_ms: Millis,
    /// `true` if the run was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

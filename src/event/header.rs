//! The first and last facts of a run: its header and its totals.
//!
//! Responsible for the JSON of `run_started` and `run_finished`. Does not read workspaces or count results.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FORMAT;
use crate::model::{
    Ballot, Blob, CellIx, CellResult, CellVote, Cost, Decision, Digest, EvalWhole, JudgeConfig,
    Millis, Outcome, Panel, Prices, RunId, ScoreBounds, TokenUsage, TurnIx, VoteParams, WallTime,
    compares_pairs, decide_cell,
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
    /// The reason for the run. It decides whether the history contains the run.
    #[serde(default, skip_serializing_if = "RunPurpose::is_judging")]
    pub purpose: RunPurpose,
    /// The digest of the revision; see [`RunHeader::revision_digest`]. `None` in logs before format 1.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Digest>,
    /// `true` if the run's options leave out decisions that the revision plans. `false` in logs before format 1.5; see
    /// [`RunHeader::plans_whole_revision`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// The reason for a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPurpose {
    /// To judge the workspace, or a part of it. Only these runs are part of the history.
    #[default]
    Judging,
    /// To ask another judge about a cell. Its verdict decides nothing.
    SecondOpinion,
    /// To judge the examples of evals.
    Examples,
    /// To repeat the same questions and measure how often the verdicts differ.
    Noise,
    /// To attack a judge; see `dicta robustness`.
    Robustness,
    /// To compare variants of an eval on the dev labels; see `dicta variants`.
    Variants,
    /// To continue a recorded judge trace with a change.
    Branch,
}

impl RunPurpose {
    /// Returns `true` for a run of the history.
    pub fn is_judging(&self) -> bool {
        *self == Self::Judging
    }

    /// Returns `true` for a run whose verdicts are about the cells of a workspace, so that they are the newest results of
    /// these cells. Repeats that measure noise and made-up cases are not.
    pub fn gives_verdicts(self) -> bool {
        matches!(self, Self::Judging | Self::SecondOpinion)
    }

    /// Returns `true` for a run whose results a screen shows next to the cells of a workspace: those that give verdicts,
    /// and branches.
    pub fn is_about_cells(self) -> bool {
        self.gives_verdicts() || self == Self::Branch
    }
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
    /// Those of `runs` whose responses this installation recorded, all of them unchanged. Earlier versions did not state
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<RunId>,
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
    /// Returns the digest of the revision: everything that determines verdicts.
    ///
    /// It covers the rubrics and evals with their ids, questions and decision settings, and the rule by which each eval
    /// selects transcripts. It also covers the judges as they are called, and their tools. Transcripts, comments, layout,
    /// and the names and keys of judges are not part of it.
    ///
    /// The run's own `revision` takes precedence, if the header has one.
    pub fn revision_digest(&self) -> Digest {
        if let Some(revision) = &self.revision {
            return revision.clone();
        }
        self.compute_revision()
    }

    /// Computes the digest of the revision from the header's rubrics, evals and judges.
    pub fn compute_revision(&self) -> Digest {
        let judge = |ix: &u32| self.judges.get(*ix as usize).map(JudgeSpec::call_digest);
        let rubrics = self
            .rubrics
            .iter()
            .map(|rubric| json!([rubric.id, rubric.threshold]));
        let evals = self.evals.iter().map(|eval| {
            json!([
                eval.rubric,
                eval.id,
                eval.digest,
                eval.decision_settings,
                eval.weight,
                eval.required,
                eval.repeat,
                eval.scope,
                eval.judge.as_ref().map(judge),
                eval.panel.as_ref().map(|panel| json!([
                    panel.rule,
                    panel.judges.iter().map(judge).collect::<Vec<_>>(),
                ])),
            ])
        });
        let parts = json!([rubrics.collect::<Vec<_>>(), evals.collect::<Vec<_>>()]);
        Digest::hash_bytes(parts.to_string().as_bytes())
    }

    /// Returns `true` if the run's options select every decision of the revision.
    pub fn plans_whole_revision(&self) -> bool {
        if self.revision.is_some() {
            return !self.partial;
        }
        // Logs before format 1.5 state the options only.
        let limits = ["where", "limit", "sample"];
        !limits.iter().any(|key| self.plan.contains_key(*key))
    }

    const ID_SCHEME_KEY: &str = "transcript_ids";

    /// Returns the entry of [`RunHeader::plan`] that marks a run whose default transcript ids are paths.
    pub fn id_scheme_entry() -> (String, Value) {
        (Self::ID_SCHEME_KEY.to_owned(), Value::from("path"))
    }

    /// Returns the entries of [`RunHeader::plan`] that all runs of a revision share: the scheme of transcript ids.
    pub fn shared_plan(&self) -> IndexMap<String, Value> {
        let shared = self
            .plan
            .get(Self::ID_SCHEME_KEY)
            .map(|value| (Self::ID_SCHEME_KEY.to_owned(), value.clone()));
        shared.into_iter().collect()
    }

    /// Returns true if the default transcript ids of the run are file stems, as before this entry existed.
    pub fn has_earlier_ids(&self) -> bool {
        !self.plan.contains_key(Self::ID_SCHEME_KEY)
    }

    /// The beginning of the label of a robustness run, before the judge's name.
    pub const ROBUSTNESS_LABEL_PREFIX: &str = "robustness of judge ";

    /// Reports whether this is a run of `dicta robustness`. Its cases are made up, so no workspace's history includes
    /// it.
    pub fn is_robustness_run(&self) -> bool {
        /// The prefix of dicta 0.1 before the command was renamed.
        const OLD_PREFIX: &str = "selftest of judge ";
        let label = &self.label;
        self.purpose == RunPurpose::Robustness
            || label.starts_with(Self::ROBUSTNESS_LABEL_PREFIX)
            || label.starts_with(OLD_PREFIX)
    }

    /// Returns a header without evals, judges and files. Callers set the fields that they need.
    pub fn new(run: RunId, started: WallTime, workspace: PathBuf) -> Self {
        Self {
            format: FORMAT,
            dicta: env!("CARGO_PKG_VERSION").to_owned(),
            run,
            started,
            workspace,
            demo: false,
            label: String::new(),
            parent: None,
            snapshots: Vec::new(),
            judges: Vec::new(),
            rubrics: Vec::new(),
            evals: Vec::new(),
            plan: IndexMap::new(),
            frozen: None,
            purpose: RunPurpose::Judging,
            revision: None,
            partial: false,
        }
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
            verified: Vec::new(),
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
    /// The digest of the tools that the judge's tools files define, without comments and layout. `None` if the judge
    /// uses none of them, and in logs before format 1.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_files: Option<Digest>,
}

impl JudgeSpec {
    /// Returns the digest of everything that determines the judge's replies: its settings and its tools.
    pub fn call_digest(&self) -> Digest {
        match &self.tool_files {
            None => self.digest.clone(),
            Some(files) => Digest::hash_bytes(format!("{} {}", self.digest.0, files.0).as_bytes()),
        }
    }

    /// Returns a judge without tools, table prices and dropped settings.
    pub fn new(config: JudgeConfig, digest: Digest) -> Self {
        Self {
            config,
            digest,
            dropped: Vec::new(),
            table_prices: None,
            tools: Vec::new(),
            tool_files: None,
        }
    }
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
    /// The only judge, as an index into [`RunHeader::judges`]. `None` for a panel, for an eval without a judge, and in
    /// logs before format 1.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<u32>,
    /// The digest of the settings that select transcripts: `applies_to` and `enabled`. `None` if the eval is planned
    /// for every transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Digest>,
    /// The digest of the question that labels answer. `None` in logs of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Digest>,
    /// The labelled examples of its prompts. Their transcripts measure nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shots: Vec<RecordedShot>,
    /// The ids of other transcripts of train that a shot repeats, or that are of its group, sorted. They measure nothing
    /// either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shot_copies: Vec<String>,
    /// The eval as the file writes it, if this eval is one of several that replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<EvalWhole>,
}

/// A labelled example that the prompts of an eval show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedShot {
    /// The id of the transcript.
    pub transcript: String,
    /// The person's verdict.
    pub passed: bool,
    /// The digest of the shown text and the reason.
    pub digest: Digest,
}

impl EvalSpec {
    /// Returns an eval without a judge, with the default of every setting. `rubric` is an index into
    /// [`RunHeader::rubrics`].
    pub fn new(
        rubric: u32,
        id: impl Into<String>,
        eval_type: impl Into<String>,
        digest: Digest,
    ) -> Self {
        Self {
            rubric,
            id: id.into(),
            eval_type: eval_type.into(),
            digest,
            decision_settings: IndexMap::new(),
            weight: 1.0,
            required: false,
            weighted: false,
            repeat: 1,
            panel: None,
            judged: false,
            groups: Vec::new(),
            judge: None,
            scope: None,
            question: None,
            shots: Vec::new(),
            shot_copies: Vec::new(),
            part_of: None,
        }
    }

    /// Returns true if a transcript is an example in the prompts of the eval, or a copy of one. It measures nothing.
    pub fn is_shot(&self, transcript: &str) -> bool {
        let copies = &self.shot_copies;
        let is_copy = copies
            .binary_search_by(|id| id.as_str().cmp(transcript))
            .is_ok();
        is_copy || self.shots.iter().any(|shot| shot.transcript == transcript)
    }

    /// The settings that combine its cells into a decision.
    pub fn vote_params(&self) -> VoteParams<'_> {
        VoteParams {
            rule: self.panel.as_ref().map(|panel| panel.rule),
            judges: self.panel.as_ref().map_or(&[], |panel| &panel.judges),
            bounds: ScoreBounds::from_decision_settings(&self.decision_settings),
            repeat: self.repeat,
            needs_all_repeats: compares_pairs(&self.eval_type),
        }
    }

    /// The decision of its cells; `None` while a cell has no result.
    pub fn decide<'c>(
        &self,
        cells: impl IntoIterator<Item = (&'c CellKey, Option<&'c CellResult>)>,
    ) -> Option<Decision> {
        let mut cells = cells.into_iter().fuse();
        let (first, second) = (cells.next(), cells.next());
        // Most evals have one cell on a transcript, which needs no vote.
        if let (Some((_, result)), None, None) = (first, second, &self.panel) {
            return result.map(decide_cell);
        }
        let cells: Vec<CellVote> = first
            .into_iter()
            .chain(second)
            .chain(cells)
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
    /// The estimated cost in USD of the calls without a bill, if there are any. Limits count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_usd: Option<f64>,
    /// The duration of the run.
    pub duration_ms: Millis,
    /// `true` if the run was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The counts of the transcript files.
    #[serde(default, skip_serializing_if = "ReadingTotals::is_empty")]
    pub reading: ReadingTotals,
}

/// The counts of the transcript files that a run read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingTotals {
    /// The number of records, as their formats count them.
    #[serde(default)]
    pub records: u64,
    /// The number of records that dicta did not understand, bad records included.
    #[serde(default)]
    pub not_understood: u64,
    /// The number of records that are not transcripts.
    #[serde(default)]
    pub bad_records: u64,
    /// The number of files that dicta could not read, or in which no record is a transcript.
    #[serde(default)]
    pub broken_files: u64,
}

impl ReadingTotals {
    /// Returns true if there is nothing to record, as in a run of an earlier dicta.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

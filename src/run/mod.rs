//! A run: plan, schedule, cache, budget, cancellation.
//!
//! Responsible for the cells of a run, their numbers, their judges and their order. Emits facts through the recorder and
//! returns their stream. Does not print: `report` reads the stream.
//!
//! ```text
//! workspace ─► prepare (inputs: evals compiled; judges built; past: cache, carried cells) ── all that a run reads; then
//!
//! feed ─► workers (threads: parse, plan, check, cache) ─► execute (merge, in order) ─► facts
//!                                                             └─► schedule (judge cells) ─► facts
//! ```
//!
//! The folders import in one direction: `plan`, `inputs`, `judges`, `past`, then `prepare`, `execute`, `start`.
//!
//! **Order.** The run plans cells while it reads, in plan order: one `cells_planned` per transcript, then one
//! `cells_settled` with its deterministic, skipped and cached cells. Judge cells start in plan order and end in any order.
//!
//! **Repeats** are planned when they are certain to be needed: 2 of 3 at first. If these disagree, a *further*
//! `cells_planned` of the same transcript plans the third, *before* the `cell_finished` that makes it necessary. So:
//! - A decision is complete once all of its planned cells have results. Readers need no rule about repeats.
//! - Numbers are dense and rise, but the cells of a transcript may be in several ranges. To print in plan order, sort
//!   them by `(eval, message, judge, repeat)`.
//! - A decision with a planned cell without a result (cancelled, budget, killed) is open and counts under no outcome.
//!
//! **Memory.** The number of chunks in flight is limited. The merge stays within 1,024 transcripts of the oldest one with
//! unfinished judge cells. Only the hashes of ids (16 bytes each, to find duplicates) grow with the input.
//!
//! **Cost.** A cached or carried result names its run (`cached`), has a usage of 0 calls, and costs 0 in this run.

mod ask_judge;
mod connection_check;
mod error;
mod examples;
mod execute;
mod follow_up;
mod inputs;
mod judges;
mod outline;
mod paid_calls;
mod past;
mod plan;
mod prepare;
mod preview;
mod prompts;
mod proposals;
mod record_key;
pub mod robustness;
mod shots;
mod start;
mod variants;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use inputs::ids::{TranscriptIds, collect_transcript_ids};

pub use ask_judge::{AskJudgeError, AskProgress, JudgeInquiry, preview_question};
pub use connection_check::{
    ConnectionCheck, ConnectionError, ConnectionReport, check_connections, is_built_in,
    preview_connections,
};
pub use error::{RunError, RunUsageError, TranscriptSourceError, UnconfirmedSends};
pub use examples::{ExampleCheck, ExampleCheckFilter};
pub use execute::withdrawn::WithdrawnEvals;
pub use follow_up::{FollowUpPrompt, render_follow_up};
pub use inputs::catalog::{TranscriptWalk, visit_transcripts, visit_transcripts_until};
pub use inputs::sample::SampleSpec;
pub(crate) use inputs::snapshot::judge_digest;
pub use judges::collect_secrets;
pub use outline::{OutlineBatch, TranscriptTags, outline_names, outline_run, selects_any_cell};
pub use paid_calls::{CostEstimate, PaidCalls, estimate_paid_calls};
pub use past::branch::{BranchOrder, parse_branch_change};
pub use past::rescore::{collect_decision_settings, collect_panel_rules};
pub use past::resume::find_finished_run;
pub use past::verdict_tally::{tally_newest_verdicts, tally_verdicts};
pub use plan::filter::{DecisionFilter, FilterCandidate, FilterError, KnownFilterIds};
pub(crate) use plan::filter::{FilterWord, split_words};
pub use plan::label_filter::{CandidateLabel, LabelFilter};
pub use prepare::{CompiledRun, check_sends};
pub use preview::{CostRange, JudgePreview, RunPreview, TokenEstimate, preview_run};
pub use prompts::{RenderedPrompt, RenderedShot, render_prompts};
pub use proposals::{
    MAX_PROPOSAL_PROMPT_BYTES, MAX_PROPOSALS, Proposal, ProposalCase, ProposalError,
    ProposalPrompt, collect_case_messages, parse_proposals, render_proposal_prompt,
};
pub use record_key::find_record_key;
pub use shots::check_shots;
pub use start::{start_compiled_run, start_run};
pub use variants::{
    KnownVariant, PartLabel, PreparedVariant, VariantReader, count_earlier_variants,
    list_part_labels, prepare_variant, variant_key,
};

use crate::event::{ParentRun, RunPurpose, RunTotals};
use crate::judge::{EvidenceMissPolicy, Gate, OpenGate};
use crate::model::{Millis, RunId};
use crate::record::EventStream;
use crate::tools::ToolDeps;

/// The options of a run.
#[derive(Clone)]
pub struct RunOptions {
    /// The selected decisions; `None` for all.
    pub filter: Option<DecisionFilter>,
    /// A judge that replaces the judges of all judged evals.
    pub judge: Option<String>,
    /// The number of judge cells at once; `None` for the workspace's limit.
    pub concurrency: Option<usize>,
    /// The maximum number of transcripts with cells, in the listed order.
    pub limit: Option<u64>,
    /// The random sample of transcripts.
    pub sample: Option<SampleSpec>,
    /// The number of repeats of every judged eval, instead of its own.
    pub repeat: Option<u32>,
    /// The run whose recorded tool responses replace live calls; `None` for the workspace's `frozen:`, if set.
    pub evidence_run: Option<String>,
    /// The maximum cost of the run in USD, instead of the workspace's limit.
    pub max_cost_usd: Option<f64>,
    /// The treatment of calls without a recorded tool response.
    pub evidence_miss: EvidenceMissPolicy,
    /// The use of recorded verdicts.
    pub cache: CachePolicy,
    /// The run to resume. dicta uses its snapshot and plan; of these options only concurrency, recorded responses and
    /// cache apply.
    pub resume: Option<String>,
    /// The recorded judge trace to continue. dicta uses the files of its run, and judges only its cell.
    pub branch: Option<Arc<BranchOrder>>,
    /// The parent run and the cause. `resume` and [`CachePolicy::Refresh`] set them if this is `None`.
    pub parent: Option<ParentRun>,
    /// A sentence to record with the run.
    pub label: String,
    /// The reason for the run.
    pub purpose: RunPurpose,
    /// `true` if the workspace has only the transcripts that the user named, so that the run does not know the others.
    pub has_chosen_transcripts: bool,
    /// The folder of the workspace whose trust allows what the run sends; `None` for the run's own workspace.
    pub trusted_root: Option<PathBuf>,
    /// The run's id; `None` for a new one.
    pub id: Option<RunId>,
    /// The evals that the run stops judging while it runs. The owner of the options withdraws them.
    pub withdrawn: Arc<WithdrawnEvals>,
    /// The gate at which judge traces can pause.
    pub gate: Arc<dyn Gate>,
    /// The dependencies of tools.
    pub tools: ToolDeps,
    /// The delay of the `rules` judge between two pieces of its text, for a screen; `None` for no delay.
    pub rules_delay: Option<Millis>,
    /// True if a transcript file that cannot be read stops the run. Otherwise the run reports it and continues.
    pub is_strict: bool,
    /// True if only the names of decisions are needed. Evals then need no judge.
    pub only_names: bool,
}

impl RunOptions {
    /// Returns `true` if the options leave out decisions of the workspace.
    pub(crate) fn is_partial(&self) -> bool {
        self.knows_no_whole_plan()
            || self.filter.is_some()
            || self.cache == CachePolicy::SkipUncached
    }

    /// Returns `true` if the run does not read all transcripts of the workspace, so that it cannot list what it leaves
    /// out.
    pub(crate) fn knows_no_whole_plan(&self) -> bool {
        self.limit.is_some() || self.sample.is_some() || self.has_chosen_transcripts
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            filter: None,
            judge: None,
            concurrency: None,
            limit: None,
            sample: None,
            repeat: None,
            evidence_run: None,
            max_cost_usd: None,
            evidence_miss: EvidenceMissPolicy::default(),
            cache: CachePolicy::Use,
            resume: None,
            branch: None,
            parent: None,
            label: String::new(),
            purpose: RunPurpose::Judging,
            has_chosen_transcripts: false,
            trusted_root: None,
            id: None,
            withdrawn: Arc::default(),
            gate: Arc::new(OpenGate),
            tools: ToolDeps::default(),
            rules_delay: None,
            is_strict: false,
            only_names: false,
        }
    }
}

/// The use of recorded verdicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// Uses them.
    #[default]
    Use,
    /// Doesn't use them, and no later run uses this run's verdicts.
    Off,
    /// Doesn't use them, and records that the run judged again.
    Refresh,
    /// Uses them and calls no judge. Doesn't plan the judged decisions without recorded verdicts.
    SkipUncached,
    /// Uses them and calls no judge. Plans the cells without recorded verdicts and leaves them pending.
    LeaveUncachedPending,
}

impl CachePolicy {
    /// Reports whether the run may call judges.
    pub fn can_call_judges(self) -> bool {
        !matches!(self, Self::SkipUncached | Self::LeaveUncachedPending)
    }
}

/// A run in progress.
#[derive(Debug)]
pub struct RunHandle {
    /// The run's id.
    pub run: RunId,
    /// The run's folder.
    pub dir: PathBuf,
    /// The recorded events. Drain or drop the stream: while it is full, the run waits.
    pub events: EventStream,
    /// Ends the run: cancels running cells and leaves the others pending.
    pub cancel: CancellationToken,
    /// The totals, once everything is recorded and synced.
    pub join: JoinHandle<Result<RunTotals, RunError>>,
}

impl RunHandle {
    /// Cancels the run. It ends soon after; `join` returns its totals.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

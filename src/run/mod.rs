//! A run: plan, schedule, cache, budget, cancel.
//!
//! Owns which cells there are, in which order they are numbered, who decides each and when. Emits facts through the
//! recorder and returns their stream. Refuses to print: `report` eats the stream.
//!
//! ```text
//! workspace ─► snapshot (evals compiled, judges built, header) ── all that a run reads; then
//!
//! source ─► work (threads: parse, plan, check, recall) ─► execute (merge, in order) ─► facts
//!                                                             └─► schedule (judge cells) ─► facts
//! ```
//!
//! **Order.** Cells are planned while reading, in plan order, one `cells_planned` a transcript, then one `cells_settled`
//! with its deterministic, skipped and recalled cells. Judge cells start in plan order and end as they end.
//!
//! **Repeats** are planned when they are certain to be needed (see `repeats`): 2 of 3 at first. Should these disagree, a
//! *further* `cells_planned` of the same transcript plans the third, with a new number, *before* the `cell_finished`
//! that makes it necessary. So for a reader of the log:
//! - a decision is complete once all of its planned cells have results; no rule about repeats is needed;
//! - numbers are dense and rise, but a transcript's cells may come in several ranges: to print in plan order, sort a
//!   transcript's cells by `(eval, message, judge, repeat)`;
//! - a decision with a planned cell that has no result (cancelled, budget, killed) is open and counts under no outcome.
//!
//! **Bounds.** Chunks in flight are bounded; the merge stays within 1,024 transcripts of the oldest one with unfinished
//! judge cells. Memory grows with none of them, but for 16 bytes an id (to find ids used twice).
//!
//! **Cost.** A recalled or carried result says which run it is from (`cached`), has a usage of 0 calls and costs 0 here.

mod connection_check;
mod examples;
mod execute;
mod inputs;
mod judges;
mod outline;
mod past;
mod plan;
mod prepare;
mod preview;
mod prompts;
pub mod robustness;
mod start;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use inputs::ids::{TranscriptIds, collect_transcript_ids};

pub use connection_check::{ConnectionCheck, ConnectionReport, check_connections, is_built_in};
pub use examples::{ExampleCheck, ExampleCheckFilter};
pub use inputs::sample::SampleSpec;
pub(crate) use inputs::snapshot::judge_digest;
pub use outline::outline_run;
pub use past::rescore::{collect_decision_settings, collect_panel_rules};
pub use plan::filter::{DecisionFilter, FilterCandidate, FilterError};
pub(crate) use plan::filter::{FilterWord, split_words};
pub use preview::{JudgePreview, RunPreview, preview_run};
pub use prompts::{RenderedPrompt, render_prompts};
pub use start::start_run;

use crate::event::{ParentRun, RunTotals};
use crate::judge::{EvidenceMissPolicy, Gate, OpenGate};
use crate::model::{Millis, RunId};
use crate::record::{EventStream, RecordError};
use crate::tools::ToolDeps;

/// What a run is told to do.
#[derive(Clone)]
pub struct RunOptions {
    /// Which decisions; `None`: all.
    pub filter: Option<DecisionFilter>,
    /// Another judge for all judged evals.
    pub judge: Option<String>,
    /// Judge cells at once; `None`: the workspace's.
    pub concurrency: Option<usize>,
    /// At most so many transcripts, of those with cells, in the order listed.
    pub limit: Option<u64>,
    /// Only so many transcripts, chosen by a seed.
    pub sample: Option<SampleSpec>,
    /// Repeats of every judged eval, instead of what it says.
    pub repeat: Option<u32>,
    /// The run whose evidence answers tool calls; `None`: the workspace's `frozen:`, if any.
    pub evidence_run: Option<String>,
    /// USD this run may cost, instead of the workspace's limit.
    pub max_cost_usd: Option<f64>,
    /// What a call gets that frozen evidence has no answer for.
    pub evidence_miss: EvidenceMissPolicy,
    /// Whether verdicts of past runs are taken.
    pub cache: CachePolicy,
    /// A run to take up again. Its snapshot and plan are used; of the options here only those that say how, not what:
    /// concurrency, frozen, cache.
    pub resume: Option<String>,
    /// The run it comes from, and why; `resume` and [`CachePolicy::Refresh`] say so by themselves.
    pub parent: Option<ParentRun>,
    /// A sentence to record with the run.
    pub label: String,
    /// The run's id, instead of a fresh one.
    pub id: Option<RunId>,
    /// Where traces may be held up.
    pub gate: Arc<dyn Gate>,
    /// What tools are built with.
    pub tools: ToolDeps,
    /// How long the `rules` judge waits between two pieces of its text, for a screen; `None`: not at all.
    pub rules_delay: Option<Millis>,
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
            parent: None,
            label: String::new(),
            id: None,
            gate: Arc::new(OpenGate),
            tools: ToolDeps::default(),
            rules_delay: None,
        }
    }
}

/// Whether verdicts of past runs are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// They are.
    #[default]
    Use,
    /// They are not, and no later run takes this one's.
    Off,
    /// They are not, and the run says that it asked again.
    Refresh,
    /// They are, and nobody is asked: judged decisions that past runs do not settle are not planned.
    SkipUncached,
    /// They are, and nobody is asked: what past runs do not settle is planned and stays pending.
    LeaveUncachedPending,
}

impl CachePolicy {
    /// Whether judges are asked at all.
    pub fn can_call_judges(self) -> bool {
        !matches!(self, Self::SkipUncached | Self::LeaveUncachedPending)
    }
}

/// Why there is no run, or why it did not end well.
#[derive(Debug, Error)]
pub enum RunError {
    /// Nothing was started: what was asked for cannot be done. One problem a line.
    #[error("{0}")]
    Usage(String),
    /// The run could not be recorded, or another could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The transcripts could not be read to the end. What was read is decided and recorded; the log has no end, so that
    /// the run counts as interrupted and can be resumed.
    #[error("{0}")]
    Source(String),
}

/// A run that is under way.
#[derive(Debug)]
pub struct RunHandle {
    /// Its id.
    pub run: RunId,
    /// Its folder.
    pub dir: PathBuf,
    /// What was recorded. Drain it or drop it: while it is full, the run waits.
    pub events: EventStream,
    /// Ends it: what runs is cancelled, what has not started stays pending.
    pub cancel: CancellationToken,
    /// How it ended, once all is recorded and synced.
    pub join: JoinHandle<Result<RunTotals, RunError>>,
}

impl RunHandle {
    /// Cancels the run. It ends by itself soon after; `join` says when.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

//! The order to start a run, or to preview its cost. Holds data only: `runtime::runs` starts the run.

use std::sync::Arc;

use super::state::runs::RunTicket;
use crate::event::ParentRun;
use crate::model::JudgeConfig;
use crate::run::CachePolicy;
use crate::workspace::Workspace;

/// A run to be started.
#[derive(Debug, Clone)]
pub(crate) struct RunOrder {
    /// Names the run before it has an id.
    pub(crate) ticket: RunTicket,
    /// What it is over.
    pub(crate) workspace: Arc<Workspace>,
    /// Only these decisions (cell names without judge and repeat); `None`: all.
    pub(crate) only: Option<Arc<Vec<String>>>,
    /// Only what this filter selects (`rubric:x eval:y,z`); `only` goes before it.
    pub(crate) filter: Option<String>,
    /// All but this decision, where neither of them is given.
    pub(crate) except: Option<String>,
    /// Another judge for the judged evals; it need not be in the workspace.
    pub(crate) judge: Option<JudgeConfig>,
    /// Whether past verdicts are taken.
    pub(crate) cache: CachePolicy,
    /// Whose evidence answers tool calls; `None`: the workspace's.
    pub(crate) replayed_evidence: Option<String>,
    /// Where it comes from.
    pub(crate) parent: Option<ParentRun>,
}

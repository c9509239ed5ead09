//! The order to start a run, or to preview its cost. Holds data only: `runtime::runs` starts the run.

use std::sync::Arc;

use super::state::runs::RunTicket;
use crate::event::ParentRun;
use crate::model::JudgeConfig;
use crate::run::{BranchOrder, CachePolicy};
use crate::workspace::Workspace;

/// An order to start a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunOrder {
    /// Identifies the run before it has an id.
    pub(crate) ticket: RunTicket,
    /// The workspace to judge.
    pub(crate) workspace: Arc<Workspace>,
    /// The decisions to judge (cell names without judge and repeat); `None`: all.
    pub(crate) only: Option<Arc<Vec<String>>>,
    /// A filter such as `rubric:x eval:y,z`. Ignored if `only` is set.
    pub(crate) filter: Option<String>,
    /// A decision to leave out. Ignored if `only` or `filter` is set.
    pub(crate) except: Option<String>,
    /// A judge that replaces those of the judged evals. It need not be in the workspace.
    pub(crate) judge: Option<JudgeConfig>,
    /// The number of repeats of the judge, to show how stable its verdict is; `None` for the eval's own.
    pub(crate) repeat: Option<u32>,
    /// True if the run repeats judge calls to measure their noise. It decides nothing.
    pub(crate) measures_noise: bool,
    /// The use of the verdict cache.
    pub(crate) cache: CachePolicy,
    /// The run whose recorded tool responses answer tool calls; `None`: as the workspace sets it.
    pub(crate) replayed_evidence: Option<String>,
    /// True to reject tool calls without a recorded response, so that a second opinion fetches nothing.
    pub(crate) recorded_only: bool,
    /// The run or save that caused this run; `None` for a save before any run.
    pub(crate) parent: Option<ParentRun>,
    /// The recorded judge trace to continue; the run then judges nothing else.
    pub(crate) branch: Option<Arc<BranchOrder>>,
    /// True if a save caused the run, and no key.
    pub(crate) is_of_save: bool,
}

impl RunOrder {
    /// Adds a judge to the order's copy of the workspace, unless the workspace has it. The list of judges also has judges that
    /// dicta found elsewhere.
    pub(crate) fn add_judge(&mut self, judge: &JudgeConfig) {
        self.workspace = self.workspace_with(judge);
    }

    /// Returns the order's workspace with a judge.
    pub(crate) fn workspace_with(&self, judge: &JudgeConfig) -> Arc<Workspace> {
        if self.workspace.judges.get(&judge.name) == Some(judge) {
            return Arc::clone(&self.workspace);
        }
        let mut with = Workspace::clone(&self.workspace);
        with.judges.insert(judge.name.clone(), judge.clone());
        Arc::new(with)
    }
}

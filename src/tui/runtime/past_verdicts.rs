//! The newest verdicts of the ended runs, which the tasks after each save share.
//!
//! Responsible for one reader in all tasks. Does not read logs; [`NewestVerdictsReader`] does.

use std::sync::{Arc, Mutex, PoisonError};

use super::run_store_for;
use crate::record::{NewestVerdicts, NewestVerdictsReader};
use crate::workspace::{Env, Workspace};

/// A handle of the shared reader.
#[derive(Clone, Default)]
pub(super) struct PastVerdicts(Arc<Mutex<NewestVerdictsReader>>);

impl PastVerdicts {
    /// Returns the newest verdicts of a workspace, and a sentence for each run that could not be read. Runs of another
    /// workspace in the same folder do not count.
    pub(super) fn read(&self, workspace: &Workspace, env: &Env) -> (NewestVerdicts, Vec<String>) {
        let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader.read(&run_store_for(workspace, env), &workspace.root)
    }
}

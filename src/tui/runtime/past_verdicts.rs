//! The results of the ended runs, which the tasks after each save share.
//!
//! Responsible for one list of runs and one reader of each kind in all tasks. Does not read logs: [`NewestVerdictsReader`]
//! and [`NoiseReader`] do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::run_store_for;
use crate::clock::Clock;
use crate::record::{NewestVerdicts, NewestVerdictsReader, NoiseReader, NoiseRecords, RunLister};
use crate::workspace::{Env, Workspace};

/// A handle of the shared readers.
#[derive(Clone, Default)]
pub(super) struct PastVerdicts(Arc<Mutex<PastRunReaders>>);

#[derive(Default)]
struct PastRunReaders {
    lister: RunLister,
    verdicts: NewestVerdictsReader,
    noise: NoiseReader,
}

impl PastVerdicts {
    /// Returns the newest verdicts of a workspace, and a sentence for each run that could not be read. Runs of another
    /// workspace in the same folder do not count.
    pub(super) fn read(
        &self,
        workspace: &Workspace,
        env: &Env,
        clock: &dyn Clock,
    ) -> (NewestVerdicts, Vec<String>) {
        let mut readers = self.lock();
        let PastRunReaders {
            lister, verdicts, ..
        } = &mut *readers;
        let store = run_store_for(workspace, env);
        verdicts.read(lister, &store, &workspace.root, clock)
    }

    /// Returns the repeats of the noise runs of a workspace.
    pub(super) fn read_noise(&self, workspace: &Workspace, env: &Env) -> NoiseRecords {
        let mut readers = self.lock();
        let PastRunReaders { lister, noise, .. } = &mut *readers;
        noise.read(lister, &run_store_for(workspace, env), &workspace.root)
    }

    fn lock(&self) -> MutexGuard<'_, PastRunReaders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The state that the threads and tasks of one run share.
//!
//! Responsible for the numbers of cells. Does not plan or judge them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{MutexGuard, Semaphore};
use tokio_util::sync::CancellationToken;

use super::merge_window::MergeWindow;
use super::tally::RunTally;
use super::withdrawn::WithdrawnEvals;
use crate::clock::Clock;
use crate::event::Emitter;
use crate::judge::Budget;
use crate::model::CellIx;
use crate::run::judges::permit::Permits;
use crate::run::judges::pool::JudgePool;

/// The shared state of the reader, the workers, the merge thread and the scheduler.
pub(in crate::run) struct RunCx {
    /// Workers hold it too, and may outlive the run.
    pub(in crate::run) judge_pool: Arc<JudgePool>,
    pub(in crate::run) emitter: Emitter,
    pub(in crate::run) clock: Arc<dyn Clock>,
    /// Fires when the run is cancelled, or can no longer be recorded.
    pub(in crate::run) cancel: CancellationToken,
    pub(in crate::run) budget: Arc<Budget>,
    pub(in crate::run) permits: Arc<Permits>,
    /// The places of programs, which all runs of the process share.
    pub(in crate::run) program_places: &'static Semaphore,
    /// The evals whose remaining cells stay pending.
    pub(in crate::run) withdrawn: Arc<WithdrawnEvals>,
    pub(in crate::run) tally: RunTally,
    pub(in crate::run) window: MergeWindow,
    pub(in crate::run) cell_counter: CellCounter,
    /// The largest number of transcripts with cells.
    pub(in crate::run) transcript_limit: Option<u64>,
    /// The reason why blobs could not be stored.
    pub(in crate::run) blob_failure: Mutex<Option<io::Error>>,
}

impl RunCx {
    /// Cancels the run if a blob could not be stored: otherwise events would name a blob that does not exist.
    pub(in crate::run) fn check_blobs(&self) {
        // Keep the first failure: later ones are often results of it, such as a full disk.
        if let Some(error) = self.emitter.take_failure() {
            let mut failure = self
                .blob_failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
            self.cancel.cancel();
        }
    }
}

/// Numbers cells. The caller holds the lock until it has sent the event that plans the cells, so that numbers rise in
/// the log.
#[derive(Debug, Default)]
pub(in crate::run) struct CellCounter(tokio::sync::Mutex<u32>);

impl CellCounter {
    /// Locks the counter from a task.
    pub(in crate::run) async fn lock(&self) -> CellCounterGuard<'_> {
        CellCounterGuard(self.0.lock().await)
    }

    /// Locks the counter from a thread that is not a task.
    pub(in crate::run) fn blocking_lock(&self) -> CellCounterGuard<'_> {
        CellCounterGuard(self.0.blocking_lock())
    }
}

/// The exclusive right to number cells.
pub(in crate::run) struct CellCounterGuard<'n>(MutexGuard<'n, u32>);

impl CellCounterGuard<'_> {
    /// Reserves numbers for `cells` cells and returns the first; the others follow.
    pub(in crate::run) fn reserve(&mut self, cells: usize) -> CellIx {
        let first = CellIx(*self.0);
        // The numbers are `u32` in the log format.
        *self.0 += u32::try_from(cells).expect("a run has fewer than 2^32 cells");
        first
    }
}

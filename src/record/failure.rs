//! The failure of a recording.
//!
//! Responsible for keeping the first error and for cancelling the run at once. Does not handle the error.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::RecordError;
use super::disk::copy_io_error;

/// The first failure. A recording that failed never recovers.
#[derive(Debug, Default)]
pub(super) struct RecordingFailure {
    first: Mutex<Option<RecordError>>,
    /// Cancelled at the first failure.
    pub(super) failed: CancellationToken,
}

impl RecordingFailure {
    /// Keeps the failure if it is the first, and cancels the run.
    pub(super) fn report(&self, path: &Path, why: &io::Error) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        // Later failures usually follow from the first one.
        first.get_or_insert_with(|| RecordError::Io {
            path: path.to_owned(),
            why: copy_io_error(why),
        });
        // The lock is released first, because cancelling wakes tasks that may take the failure.
        drop(first);
        self.failed.cancel();
    }

    /// Reports whether there was a failure.
    pub(super) fn has_occurred(&self) -> bool {
        self.failed.is_cancelled()
    }

    /// Returns the first failure.
    pub(super) fn take(&self) -> Option<RecordError> {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

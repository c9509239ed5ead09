//! The one failure of a recording: the first that happens, kept until somebody asks, told to the run at once.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::RecordError;
use super::disk::copy_io_error;

/// Sticky: a recording that failed never works again.
#[derive(Debug, Default)]
pub(super) struct RecordingFailure {
    first: Mutex<Option<RecordError>>,
    /// Fires with the first failure.
    pub(super) failed: CancellationToken,
}

impl RecordingFailure {
    /// Keeps the failure, if it is the first, and tells.
    pub(super) fn report(&self, path: &Path, why: &io::Error) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| RecordError::Io {
            path: path.to_owned(),
            why: copy_io_error(why),
        });
        drop(first);
        self.failed.cancel();
    }

    /// Whether there was one.
    pub(super) fn has_occurred(&self) -> bool {
        self.failed.is_cancelled()
    }

    /// The first failure.
    pub(super) fn take(&self) -> Option<RecordError> {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

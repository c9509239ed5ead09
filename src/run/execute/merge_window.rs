//! A window that limits how far checks run ahead of judges.
//!
//! Responsible for the bound. Does not schedule. A transcript with unfinished judge cells stops the merge when the
//! merge is too far ahead of it. So the memory for transcripts and for results that wait to be printed does not grow
//! with the run.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The largest distance, in transcripts, from the oldest transcript with unfinished judge cells.
pub(in crate::run) const MAX_TRANSCRIPTS_AHEAD: u64 = 1024;

/// The largest number of bytes of transcripts that wait for judges; one transcript always passes.
const MAX_HELD_BYTES: usize = 64 << 20;

/// The window. The merge thread opens transcripts, the scheduler finishes them.
#[derive(Debug, Default)]
pub(in crate::run) struct MergeWindow {
    inner: Mutex<MergeWindowState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct MergeWindowState {
    /// The transcripts with unfinished judge cells, with their sizes in bytes.
    open: BTreeMap<u64, usize>,
    bytes: usize,
    closed: bool,
}

impl MergeWindowState {
    fn can_admit(&self, no: u64) -> bool {
        self.closed
            || self.open.first_key_value().is_none_or(|(oldest, _)| {
                // Without an open transcript the merge passes, so one large transcript cannot block the run.
                no < oldest + MAX_TRANSCRIPTS_AHEAD && self.bytes < MAX_HELD_BYTES
            })
    }
}

impl MergeWindow {
    /// Waits until transcript `no` is near enough to the oldest open one. The caller raises `no` by one each time.
    pub(in crate::run) fn wait(&self, no: u64) {
        let mut inner = self.lock();
        while !inner.can_admit(no) {
            inner = self
                .moved
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds transcript `no`, whose judge cells must run; it holds `bytes` bytes.
    pub(in crate::run) fn open(&self, no: u64, bytes: usize) {
        let mut inner = self.lock();
        inner.open.insert(no, bytes);
        inner.bytes += bytes;
    }

    /// Removes transcript `no`, whose judge cells are finished.
    pub(in crate::run) fn finish(&self, no: u64) {
        let mut inner = self.lock();
        // A cancelled run may finish a transcript that was never opened.
        if let Some(bytes) = inner.open.remove(&no) {
            inner.bytes -= bytes;
        }
        drop(inner);
        self.moved.notify_all();
    }

    /// Lets every waiting thread pass, because no judge cell will start again.
    pub(in crate::run) fn close(&self) {
        self.lock().closed = true;
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, MergeWindowState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(window: &MergeWindow, no: u64) -> bool {
        window.lock().can_admit(no)
    }

    #[test]
    fn slow_transcript_stops_the_merge_at_a_distance() {
        let window = MergeWindow::default();
        assert!(admits(&window, 1 << 40), "nothing is open");
        window.open(5, 10);
        window.open(9, 10);
        assert!(admits(&window, 5 + MAX_TRANSCRIPTS_AHEAD - 1));
        assert!(!admits(&window, 5 + MAX_TRANSCRIPTS_AHEAD));
        window.finish(5);
        assert!(admits(&window, 5 + MAX_TRANSCRIPTS_AHEAD));
        assert!(!admits(&window, 9 + MAX_TRANSCRIPTS_AHEAD));
        window.close();
        assert!(admits(&window, 9 + MAX_TRANSCRIPTS_AHEAD));
    }

    #[test]
    fn large_transcripts_close_the_window_sooner() {
        let window = MergeWindow::default();
        window.open(0, MAX_HELD_BYTES);
        assert!(!admits(&window, 1));
        window.finish(0);
        assert!(admits(&window, 1));
    }
}

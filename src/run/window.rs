//! Bounds how far the cheap work runs ahead of the slow: transcripts whose judge cells are unfinished hold the window open
//! behind them, so that neither they nor the results a reporter must hold back grow with the size of the job.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Transcripts at most this far ahead of the oldest one with unfinished judge cells.
pub(super) const AHEAD: u64 = 1024;

/// Bytes of transcripts held for judges at once; one is always let through.
const HELD: usize = 64 << 20;

/// The window. Entered by the merging thread, left by the scheduler.
#[derive(Debug, Default)]
pub(super) struct Window {
    inner: Mutex<Inner>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    /// Transcripts with unfinished judge cells, with their sizes in bytes.
    open: BTreeMap<u64, usize>,
    bytes: usize,
    closed: bool,
}

impl Inner {
    fn admits(&self, no: u64) -> bool {
        self.closed
            || self
                .open
                .first_key_value()
                .is_none_or(|(oldest, _)| no < oldest + AHEAD && self.bytes < HELD)
    }
}

impl Window {
    /// Waits until transcript `no` is near enough to the oldest open one. Numbers rise by one.
    pub(super) fn wait(&self, no: u64) {
        let mut inner = self.lock();
        while !inner.admits(no) {
            inner = self
                .moved
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Transcript `no` has judge cells to be run; `bytes` are held for it.
    pub(super) fn open(&self, no: u64, bytes: usize) {
        let mut inner = self.lock();
        inner.open.insert(no, bytes);
        inner.bytes += bytes;
    }

    /// The judge cells of transcript `no` are finished.
    pub(super) fn done(&self, no: u64) {
        let mut inner = self.lock();
        if let Some(bytes) = inner.open.remove(&no) {
            inner.bytes -= bytes;
        }
        drop(inner);
        self.moved.notify_all();
    }

    /// Nothing waits any more: no judge cell will be started again.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(window: &Window, no: u64) -> bool {
        window.lock().admits(no)
    }

    #[test]
    fn a_slow_transcript_holds_back_those_far_behind_it() {
        let window = Window::default();
        assert!(admits(&window, 1 << 40), "nothing is open");
        window.open(5, 10);
        window.open(9, 10);
        assert!(admits(&window, 5 + AHEAD - 1));
        assert!(!admits(&window, 5 + AHEAD));
        window.done(5);
        assert!(admits(&window, 5 + AHEAD));
        assert!(!admits(&window, 9 + AHEAD));
        window.close();
        assert!(admits(&window, 9 + AHEAD));
    }

    #[test]
    fn large_transcripts_close_the_window_sooner() {
        let window = Window::default();
        window.open(0, HELD);
        assert!(!admits(&window, 1));
        window.done(0);
        assert!(admits(&window, 1));
    }
}

//! The word to stop, for whoever is in the middle of something long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, never unset; asked between messages. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Nobody wants the result any more.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`Stop::set`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

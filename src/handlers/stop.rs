//! The word to stop, for whoever is in the middle of something long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, never unset; asked between messages. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Nobody wants the result any more.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`Stop::set`] was called.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

//! A cancellation flag for checks that take long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set once and never reset. Checks read it between messages. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Cancels: the result is no longer needed.
    pub fn cancel(&self) {
        // `Release` and `Acquire` are a pair: a check that sees the flag sees everything written before it.
        self.0.store(true, Ordering::Release);
    }

    /// Returns `true` after [`CancelFlag::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

//! The deadline of a cell, on the run's clock. Its time doesn't run while the judge trace waits at the gate.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::model::Millis;

/// The time that a cell may still take.
pub(super) struct CellDeadline {
    limit: Millis,
    clock: Arc<dyn Clock>,
    state: Mutex<DeadlineState>,
    changed: Notify,
}

struct DeadlineState {
    time_left: Millis,
    /// The time at which `time_left` was set; meaningless while paused.
    since: Millis,
    /// The number of guards that hold the time.
    paused: u32,
}

impl CellDeadline {
    pub(super) fn new(clock: Arc<dyn Clock>, limit: Millis) -> Self {
        let since = clock.now();
        Self {
            limit,
            clock,
            state: Mutex::new(DeadlineState {
                time_left: limit,
                since,
                paused: 0,
            }),
            changed: Notify::new(),
        }
    }

    /// Returns when the time is used up; never while it is paused.
    pub(super) async fn wait_until_expired(&self) {
        loop {
            // Register before reading the state: a pause in between would wake no one otherwise.
            let changed = self.changed.notified();
            // The block ends the lock before the wait.
            let left = {
                let state = self.lock();
                (state.paused == 0)
                    .then(|| state.time_left.since(self.clock.now().since(state.since)))
            };
            match left {
                Some(Millis(0)) => return,
                Some(left) => tokio::select! {
                    // Loop again in both cases: a pause may have begun while this slept.
                    () = self.clock.sleep(left) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// Returns the time that is left.
    pub(super) fn time_left(&self) -> Millis {
        let state = self.lock();
        match state.paused {
            0 => state.time_left.since(self.clock.now().since(state.since)),
            _ => state.time_left,
        }
    }

    /// Returns the time that is used, without pauses.
    pub(super) fn time_used(&self) -> Millis {
        self.limit.since(self.time_left())
    }

    /// Stops the time until the guard is dropped. Several guards can hold it at once, because tool calls run at once.
    pub(super) fn pause(&self) -> DeadlinePause<'_> {
        let mut state = self.lock();
        if state.paused == 0 {
            // Only the first guard fixes the rest of the time; further guards add no pause of their own.
            state.time_left = state.time_left.since(self.clock.now().since(state.since));
        }
        state.paused += 1;
        drop(state);
        // The waiter sleeps until the old deadline and must calculate the new one.
        self.changed.notify_waiters();
        DeadlinePause(self)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DeadlineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that stops the time of a [`CellDeadline`].
pub(super) struct DeadlinePause<'d>(&'d CellDeadline);

impl Drop for DeadlinePause<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.paused -= 1;
        if state.paused == 0 {
            // The time runs again from now, when the last guard is gone.
            state.since = self.0.clock.now();
        }
        drop(state);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::FakeClock;

    #[tokio::test]
    async fn deadline_excludes_time_at_the_gate() {
        let clock = FakeClock::new();
        let deadline = CellDeadline::new(Arc::new(clock.clone()), Millis(100));
        let mut expired = Box::pin(deadline.wait_until_expired());
        clock.advance(Millis(60));
        assert!((&mut expired).now_or_never().is_none());
        let one = deadline.pause();
        let two = deadline.pause();
        clock.advance(Millis(1000));
        assert!((&mut expired).now_or_never().is_none());
        drop(one);
        clock.advance(Millis(1000));
        assert!((&mut expired).now_or_never().is_none());
        drop(two);
        clock.advance(Millis(39));
        assert!((&mut expired).now_or_never().is_none());
        clock.advance(Millis(1));
        assert!((&mut expired).now_or_never().is_some());
    }
}

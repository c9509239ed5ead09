//! A deadline on the run's own clock that stands still while a trace waits at the gate.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::model::Millis;

/// The time a cell may still take.
pub(super) struct CellDeadline {
    limit: Millis,
    clock: Arc<dyn Clock>,
    state: Mutex<DeadlineState>,
    changed: Notify,
}

struct DeadlineState {
    time_left: Millis,
    /// When the time began to run; meaningless while paused.
    since: Millis,
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

    /// Returns once the time is used up; never while it stands still.
    pub(super) async fn wait_until_expired(&self) {
        loop {
            let changed = self.changed.notified();
            let left = {
                let state = self.lock();
                (state.paused == 0)
                    .then(|| state.time_left.since(self.clock.now().since(state.since)))
            };
            match left {
                Some(Millis(0)) => return,
                Some(left) => tokio::select! {
                    () = self.clock.sleep(left) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// What is left of it.
    pub(super) fn time_left(&self) -> Millis {
        let state = self.lock();
        match state.paused {
            0 => state.time_left.since(self.clock.now().since(state.since)),
            _ => state.time_left,
        }
    }

    /// How much of it is used.
    pub(super) fn time_used(&self) -> Millis {
        self.limit.since(self.time_left())
    }

    /// Stops the time until the guard is dropped. Several may hold it.
    pub(super) fn pause(&self) -> DeadlinePause<'_> {
        let mut state = self.lock();
        if state.paused == 0 {
            state.time_left = state.time_left.since(self.clock.now().since(state.since));
        }
        state.paused += 1;
        drop(state);
        self.changed.notify_waiters();
        DeadlinePause(self)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DeadlineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While this lives, the time stands still.
pub(super) struct DeadlinePause<'d>(&'d CellDeadline);

impl Drop for DeadlinePause<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.paused -= 1;
        if state.paused == 0 {
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
    async fn time_at_the_gate_does_not_count() {
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

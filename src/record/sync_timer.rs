//! The timer of the writer's syncs.
//!
//! Responsible for the time of the next fdatasync. Does not sync.

use crate::clock::{BoxFuture, Clock};
use crate::model::Millis;

/// The time between two fdatasyncs.
const SYNC_INTERVAL: Millis = Millis::from_secs(1);

/// The time of the next sync: one second after the last one, if there is unsynced data.
pub(super) struct SyncTimer<'c> {
    clock: &'c dyn Clock,
    deadline: Option<(Millis, BoxFuture<'c, ()>)>,
    /// The wait is over; its future must not be polled again.
    fired: bool,
}

impl<'c> SyncTimer<'c> {
    /// There is no unsynced data.
    pub(super) fn new(clock: &'c dyn Clock) -> Self {
        Self {
            clock,
            deadline: None,
            fired: false,
        }
    }

    /// Sets the time of the next sync, if there is unsynced data and no time yet. `last` is the time of the last
    /// sync.
    pub(super) fn arm(&mut self, last: Option<Millis>, unsynced: bool) {
        if self.deadline.is_none() && unsynced {
            let now = self.clock.now();
            // The first data of a run is synced at once, because it contains the header.
            let due = last.map_or(now, |last| last + SYNC_INTERVAL);
            self.deadline = Some((due, self.clock.sleep(due - now)));
        }
    }

    /// Clears the timer after a sync.
    pub(super) fn disarm(&mut self) {
        self.deadline = None;
        self.fired = false;
    }

    /// Reports whether a sync is due.
    pub(super) fn is_due(&self) -> bool {
        self.fired
            || self
                .deadline
                .as_ref()
                .is_some_and(|(due, _)| *due <= self.clock.now())
    }

    /// Waits until a sync is due; forever if there is no unsynced data.
    pub(super) async fn wait(&mut self) {
        match &mut self.deadline {
            Some((due, sleep)) => {
                if !self.fired && *due > self.clock.now() {
                    sleep.as_mut().await;
                }
                // A finished future must not be polled again, so the timer remembers its end.
                self.fired = true;
            }
            None => std::future::pending().await,
        }
    }
}

//! When the writer syncs next.

use crate::clock::{BoxFuture, Clock};
use crate::model::Millis;

/// Between two fdatasyncs.
const SYNC_EVERY: Millis = Millis::from_secs(1);

/// When the next sync comes: one second after the last, if there is anything to sync.
pub(super) struct SyncDue<'c> {
    clock: &'c dyn Clock,
    at: Option<(Millis, BoxFuture<'c, ()>)>,
    /// The wait is over; its future must not be polled again.
    fired: bool,
}

impl<'c> SyncDue<'c> {
    /// Nothing to sync yet.
    pub(super) fn new(clock: &'c dyn Clock) -> Self {
        Self {
            clock,
            at: None,
            fired: false,
        }
    }

    /// Sets the moment, if there is something to sync and no moment yet; `last`: when the last sync was.
    pub(super) fn arm(&mut self, last: Option<Millis>, unsynced: bool) {
        if self.at.is_none() && unsynced {
            let now = self.clock.now();
            let due = last.map_or(now, |last| last + SYNC_EVERY);
            self.at = Some((due, self.clock.sleep(due - now)));
        }
    }

    /// All is synced.
    pub(super) fn disarm(&mut self) {
        self.at = None;
        self.fired = false;
    }

    /// Whether the moment has come.
    pub(super) fn is_past(&self) -> bool {
        self.fired
            || self
                .at
                .as_ref()
                .is_some_and(|(due, _)| *due <= self.clock.now())
    }

    /// Waits for the moment; for ever when there is none.
    pub(super) async fn wait(&mut self) {
        match &mut self.at {
            Some((due, sleep)) => {
                if !self.fired && *due > self.clock.now() {
                    sleep.as_mut().await;
                }
                self.fired = true;
            }
            None => std::future::pending().await,
        }
    }
}

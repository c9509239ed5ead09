//! `requests_per_minute`: at most so many requests, evenly spaced, for one judge and for all together.
//!
//! Every attempt takes a slot. A cell takes its first slot *before* its time begins to run, so that a low rate makes a
//! run longer and not its cells time out; later turns and repeated attempts wait on the cell's own time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::{Clock, Fut};
use crate::event::CallCx;
use crate::model::{CellIx, Millis};
use crate::provider::{Body, Caps, Finished, Provider, ProviderError, TurnRequest};

/// Slots in time.
#[derive(Debug)]
struct Rate {
    spacing: Millis,
    next: Mutex<Option<Millis>>,
}

impl Rate {
    fn new(per_minute: u32) -> Arc<Self> {
        Arc::new(Self {
            spacing: Millis(60_000_u64.div_ceil(u64::from(per_minute.max(1)))),
            next: Mutex::default(),
        })
    }

    /// Takes the next slot; how long until it begins.
    fn take(&self, clock: &dyn Clock) -> Millis {
        let now = clock.now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = next.map_or(now, |at| at.max(now));
        *next = Some(at + self.spacing);
        at - now
    }
}

/// The pace of one judge.
#[derive(Debug, Default)]
pub(super) struct Pace {
    rates: Vec<Arc<Rate>>,
    /// Cells whose first request has its slot.
    ready: Mutex<HashSet<CellIx>>,
}

/// The pace of all judges of a run together.
#[derive(Debug, Clone, Default)]
pub(super) struct Overall(Option<Arc<Rate>>);

impl Overall {
    pub(super) fn new(per_minute: Option<u32>) -> Self {
        Self(per_minute.map(Rate::new))
    }

    /// The pace of a judge within it; `None` where nothing is limited.
    pub(super) fn of(&self, per_minute: Option<u32>) -> Option<Arc<Pace>> {
        let rates: Vec<Arc<Rate>> = self
            .0
            .iter()
            .cloned()
            .chain(per_minute.map(Rate::new))
            .collect();
        (!rates.is_empty()).then(|| {
            Arc::new(Pace {
                rates,
                ready: Mutex::default(),
            })
        })
    }
}

impl Pace {
    /// Waits for the slot of a cell's first request. Its time has not begun.
    pub(super) async fn begin(&self, cx: &CallCx) {
        if self.wait(cx).await.is_ok() {
            self.ready().insert(cx.cell);
        }
    }

    /// The cell is over, whether it sent anything or not.
    pub(super) fn end(&self, cell: CellIx) {
        self.ready().remove(&cell);
    }

    async fn wait(&self, cx: &CallCx) -> Result<(), ProviderError> {
        let waits = self.rates.iter().map(|rate| rate.take(&*cx.clock));
        let Some(wait) = waits.max().filter(|wait| *wait > Millis(0)) else {
            return Ok(());
        };
        tokio::select! {
            () = cx.clock.sleep(wait) => Ok(()),
            () = cx.cancel.cancelled() => Err(ProviderError::Cancelled),
        }
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, HashSet<CellIx>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A provider that keeps the pace.
pub(super) struct Paced {
    pub(super) inner: Arc<dyn Provider>,
    pub(super) pace: Arc<Pace>,
}

impl Provider for Paced {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn body(&self, turn: &TurnRequest<'_>) -> Result<Body, ProviderError> {
        self.inner.body(turn)
    }

    fn send<'a>(
        &'a self,
        body: &'a Body,
        attempt: u8,
        cx: &'a CallCx,
    ) -> Fut<'a, Result<Finished, ProviderError>> {
        Box::pin(async move {
            let has_slot = self.pace.ready().remove(&cx.cell);
            if !has_slot {
                self.pace.wait(cx).await?;
            }
            self.inner.send(body, attempt, cx).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;

    #[test]
    fn slots_are_evenly_spaced_and_idle_time_is_not_saved_up() {
        let clock = FakeClock::new();
        let rate = Rate::new(60);
        assert_eq!(rate.take(&clock), Millis(0));
        assert_eq!(rate.take(&clock), Millis(1000));
        assert_eq!(rate.take(&clock), Millis(2000));
        clock.advance(Millis(10_000));
        assert_eq!(rate.take(&clock), Millis(0));
        assert_eq!(rate.take(&clock), Millis(1000));
    }

    #[test]
    fn judges_share_the_overall_rate_and_have_their_own() {
        let clock = FakeClock::new();
        let overall = Overall::new(Some(60));
        let (one, two) = (overall.of(None), overall.of(Some(6)));
        let (one, two) = (one.expect("limited"), two.expect("limited"));
        let next = |pace: &Pace| pace.rates.iter().map(|rate| rate.take(&clock)).max();
        assert_eq!(next(&one), Some(Millis(0)));
        assert_eq!(next(&two), Some(Millis(1000)));
        assert_eq!(next(&two), Some(Millis(10_000)));
        assert!(Overall::new(None).of(None).is_none());
    }
}

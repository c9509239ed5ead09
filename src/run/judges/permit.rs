//! Permits to run cells, and the gate through which a paused judge trace returns its permit.
//!
//! Responsible for the number of running cells. Does not order cells. A trace that waits at the gate holds no permit,
//! because otherwise a run whose traces are all paused could not continue. A gate that answers at once costs nothing.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::clock::BoxFuture;
use crate::judge::{Gate, GateAction, GateStop};
use crate::model::CellIx;

/// The permits of a run, by the cell that holds one.
pub(in crate::run) struct Permits {
    free: Arc<Semaphore>,
    held: Mutex<HashMap<CellIx, OwnedSemaphorePermit>>,
    changed: Notify,
}

impl Permits {
    /// Returns permits for `concurrency` cells at once, at least one.
    pub(in crate::run) fn new(concurrency: usize) -> Arc<Self> {
        Arc::new(Self {
            // With 0 permits the run would wait forever.
            free: Arc::new(Semaphore::new(concurrency.max(1))),
            held: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Takes a permit for a cell if one is free.
    pub(in crate::run) fn try_take(&self, cell: CellIx) -> bool {
        // Only the scheduler calls this, and it must not wait here.
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            return false;
        };
        self.lock().insert(cell, permit);
        true
    }

    /// Returns `true` if a permit is free now.
    pub(in crate::run) fn has_free(&self) -> bool {
        self.free.available_permits() > 0
    }

    /// Releases the permit of a cell that ended or pauses.
    pub(in crate::run) fn release(&self, cell: CellIx) {
        // Take the permit out first, so that it is dropped without the lock.
        let permit = self.lock().remove(&cell);
        drop(permit);
        self.changed.notify_waiters();
    }

    /// Waits for a permit for a cell that released its own.
    async fn reacquire(&self, cell: CellIx) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Subscribe before looking at the map, so that a change in between is not missed.
            changed.as_mut().enable();
            // Two calls of one turn may wait at the same time; one permit serves both.
            if self.lock().contains_key(&cell) {
                return;
            }
            tokio::select! {
                permit = Arc::clone(&self.free).acquire_owned() => {
                    let Ok(permit) = permit else { return };
                    // If the other call was faster, this permit is dropped and becomes free again.
                    self.lock().entry(cell).or_insert(permit);
                    self.changed.notify_waiters();
                    return;
                }
                () = changed => {}
            }
        }
    }

    /// Waits until a permit may have become free.
    pub(in crate::run) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CellIx, OwnedSemaphorePermit>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A gate that releases a trace's permit while the trace waits.
pub(in crate::run) struct PermitGate {
    inner: Arc<dyn Gate>,
    permits: Arc<Permits>,
}

impl PermitGate {
    pub(in crate::run) fn new(inner: Arc<dyn Gate>, permits: Arc<Permits>) -> Self {
        Self { inner, permits }
    }
}

impl Gate for PermitGate {
    fn pass<'a>(&'a self, cell: CellIx, stop: GateStop<'a>) -> BoxFuture<'a, GateAction> {
        Box::pin(async move {
            let mut answer = self.inner.pass(cell, stop);
            // Poll once first: an open gate answers at once, and the trace keeps its permit.
            let at_once = poll_fn(|cx| match answer.as_mut().poll(cx) {
                Poll::Ready(proceed) => Poll::Ready(Some(proceed)),
                Poll::Pending => Poll::Ready(None),
            })
            .await;
            if let Some(proceed) = at_once {
                return proceed;
            }
            self.permits.release(cell);
            let proceed = answer.await;
            self.permits.reacquire(cell).await;
            proceed
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::model::CellResult;
    use crate::model::Outcome;

    /// A gate that holds every trace until it is opened.
    struct Closed(Semaphore);

    impl Gate for Closed {
        fn pass<'a>(&'a self, _: CellIx, _: GateStop<'a>) -> BoxFuture<'a, GateAction> {
            Box::pin(async {
                let _passed = self.0.acquire().await;
                GateAction::Continue
            })
        }
    }

    #[tokio::test]
    async fn paused_trace_releases_and_reacquires_its_permit() {
        let permits = Permits::new(1);
        let closed = Arc::new(Closed(Semaphore::new(0)));
        let gate = PermitGate::new(closed.clone(), Arc::clone(&permits));
        let end = CellResult::new(Outcome::Pass, "");
        assert!(permits.try_take(CellIx(0)));
        let mut first = gate.pass(CellIx(0), GateStop::Ended(&end));
        assert!((&mut first).now_or_never().is_none());
        assert!(permits.try_take(CellIx(1)), "another cell runs meanwhile");
        closed.0.add_permits(1);
        assert!(
            (&mut first).now_or_never().is_none(),
            "let go, but no permit is free"
        );
        permits.release(CellIx(1));
        assert_eq!(first.await, GateAction::Continue);
        assert!(!permits.has_free());
    }

    #[tokio::test]
    async fn two_calls_of_one_cell_share_its_permit() {
        let permits = Permits::new(1);
        let closed = Arc::new(Closed(Semaphore::new(0)));
        let gate = PermitGate::new(closed.clone(), Arc::clone(&permits));
        let end = CellResult::new(Outcome::Pass, "");
        assert!(permits.try_take(CellIx(0)));
        let mut one = gate.pass(CellIx(0), GateStop::Ended(&end));
        let mut two = gate.pass(CellIx(0), GateStop::Ended(&end));
        assert!((&mut one).now_or_never().is_none());
        assert!((&mut two).now_or_never().is_none());
        closed.0.add_permits(2);
        assert_eq!(one.await, GateAction::Continue);
        assert_eq!(two.await, GateAction::Continue);
        permits.release(CellIx(0));
        assert!(permits.has_free());
    }
}

//! Counts what a trace costs while it runs, so that a trace that is cut off has its figures too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::budget::{Budget, cost_of};
use super::deadline::Deadline;
use crate::clock::Fut;
use crate::event::CallCx;
use crate::model::{CellIx, Millis, Prices, Usage};
use crate::provider::{Body, Caps, Finished, Pass, Provider, ProviderError, Told, TurnRequest};

/// Tokens, calls and money of one trace.
pub(super) struct Meter<'a> {
    prices: Option<Prices>,
    budget: &'a Budget,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    usage: Usage,
    usd: Option<f64>,
    held: Millis,
}

impl<'a> Meter<'a> {
    pub(super) fn new(prices: Option<Prices>, budget: &'a Budget) -> Self {
        Self {
            prices,
            budget,
            state: Mutex::new(State {
                usage: Usage::default(),
                usd: prices.map(|_| 0.0),
                held: Millis(0),
            }),
        }
    }

    /// Tokens and calls so far, failed attempts included; and US dollars, where prices and tokens are known.
    pub(super) fn read(&self) -> (Usage, Option<f64>) {
        let state = *self.lock();
        (state.usage, state.usd)
    }

    fn attempt(&self) {
        self.lock().usage.calls += 1;
    }

    fn bill(&self, usage: &Usage) {
        let cost = self.prices.and_then(|prices| cost_of(usage, &prices));
        if let Some(cost) = cost {
            self.budget.spend(cost);
        }
        let mut state = self.lock();
        let billed = Usage { calls: 0, ..*usage };
        state.usage = state.usage.plus(billed);
        state.usd = state.usd.zip(cost).map(|(so_far, cost)| so_far + cost);
    }

    /// The first request waited this long before it was sent.
    fn held(&self, wait: Millis) {
        self.lock().held = wait;
    }

    /// How long the first request waited.
    pub(super) fn waited(&self) -> Millis {
        self.lock().held
    }

    fn lost(&self) {
        self.lock().usd = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A provider whose attempts are counted, the failed ones too, and that knows how long the cell may still take.
pub(super) struct Metered<'a> {
    pub(super) inner: &'a dyn Provider,
    pub(super) meter: &'a Meter<'a>,
    pub(super) deadline: &'a Deadline,
    /// Whether a cell's first request has yet to be admitted.
    pub(super) first: AtomicBool,
}

impl Provider for Metered<'_> {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn body(&self, turn: &TurnRequest<'_>) -> Result<Body, ProviderError> {
        self.inner.body(turn)
    }

    fn without(&self, body: &Body, error: &ProviderError) -> Option<Body> {
        self.inner.without(body, error)
    }

    fn max_attempts(&self) -> u8 {
        self.inner.max_attempts()
    }

    fn time_left(&self) -> Option<Millis> {
        Some(self.deadline.left())
    }

    /// The cell's time stands still while its first request waits for a place.
    fn admit<'a>(&'a self, body: &'a Body, cx: &'a CallCx) -> Fut<'a, Result<Pass, ProviderError>> {
        Box::pin(async move {
            if !self.first.swap(false, Ordering::Relaxed) {
                return self.inner.admit(body, cx).await;
            }
            let began = cx.clock.now();
            let _still = self.deadline.pause();
            let pass = self.inner.admit(body, cx).await;
            self.meter.held(cx.clock.now().since(began));
            pass
        })
    }

    fn told(&self, cell: CellIx) -> Option<Told> {
        self.inner.told(cell)
    }

    fn forget(&self, cell: CellIx) {
        self.inner.forget(cell);
    }

    fn send<'a>(
        &'a self,
        body: &'a Body,
        attempt: u8,
        cx: &'a CallCx,
    ) -> Fut<'a, Result<Finished, ProviderError>> {
        Box::pin(async move {
            self.meter.attempt();
            let done = self.inner.send(body, attempt, cx).await;
            let told = self.inner.told(cx.cell).unwrap_or_default();
            match &done {
                Ok(finished) => self.meter.bill(&finished.usage),
                Err(ProviderError::Cut {
                    billed: Some(usage),
                    ..
                }) => self.meter.bill(usage),
                // Something was written and will be billed; how much is not known.
                Err(ProviderError::Cut { billed: None, .. } | ProviderError::InStream { .. }) => {
                    self.meter.lost();
                }
                Err(_) if told.exchange.cost_unknown => self.meter.lost(),
                Err(_) => {}
            }
            done
        })
    }
}

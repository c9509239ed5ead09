//! Counts what a trace costs while it runs, so that a trace that is cut off has its figures too; and holds each of its
//! attempts to the budget.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;

use super::budget::{Budget, Call, CellTook, Reached, Reservation, Took};
use super::deadline::Deadline;
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CellIx, Cost, JudgeConfig, Millis, ModelPricing, TokenUsage};
use crate::provider::{
    CompletedReply, ExchangeInfo, ModelCapabilities, Provider, ProviderError, RequestBody,
    RequestPermit, TurnRequest,
};

/// Bytes a token at least: fewer than the four characters that English has on average, so that an estimate is rather too
/// high than too low.
const BYTES_A_TOKEN: u64 = 3;
/// What a reply may have where the judge does not say.
const REPLY: u64 = 4096;

/// Tokens, calls and money of one trace.
pub(super) struct Meter<'a> {
    pricing: Option<ModelPricing>,
    free: bool,
    /// Whether its calls count at all: those of built-in judges are no model calls.
    limited: bool,
    reply: u64,
    budget: &'a Arc<Budget>,
    deadline: &'a Deadline,
    state: Mutex<State>,
}

struct State {
    usage: TokenUsage,
    bill: Cost,
    took: Took,
    /// The right to the next attempt, if it is reserved already.
    slot: Option<Reservation>,
    refused: Option<Reached>,
    concluding: bool,
    held: Millis,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        config: &JudgeConfig,
        model: Option<&str>,
        budget: &'a Arc<Budget>,
        deadline: &'a Deadline,
    ) -> Self {
        Self {
            pricing: config.pricing_for_model(model.unwrap_or(&config.model)),
            free: config.is_free(),
            limited: is_limited(config),
            reply: config.max_output_tokens.map_or(REPLY, u64::from),
            budget,
            deadline,
            state: Mutex::new(State {
                usage: TokenUsage::default(),
                bill: Cost::ZERO,
                took: Took::default(),
                slot: None,
                refused: None,
                concluding: false,
                held: Millis(0),
            }),
        }
    }

    /// Tokens and calls so far, failed attempts included; and what is known of their cost.
    pub(super) fn read(&self) -> (TokenUsage, Cost) {
        let state = self.lock();
        let bill = if self.free { Cost::ZERO } else { state.bill };
        (state.usage, bill)
    }

    /// Waits until the budget lets a request out, and reserves what it may take. Time in which others' bills are waited
    /// for is not the cell's.
    pub(super) async fn admit(&self, body: &RequestBody) -> Result<(), Reached> {
        if !self.limited || self.lock().slot.is_some() {
            return Ok(());
        }
        let mut asked = Box::pin(self.budget.admit(self.estimate(body), self.cell()));
        let answer = if let Some(answer) = (&mut asked).now_or_never() {
            answer
        } else {
            let _still = self.deadline.pause();
            asked.await
        };
        self.lock().slot = Some(answer?);
        Ok(())
    }

    /// Whether the judge should conclude, and whether that is new for this cell. `begun`: it has asked before.
    pub(super) fn near(&self, begun: bool) -> Option<(Reached, bool)> {
        if !self.limited {
            return None;
        }
        let reached = self.budget.near(self.cell(), self.free, begun)?;
        let new = !std::mem::replace(&mut self.lock().concluding, true);
        Some((reached, new))
    }

    /// Whether it was asked to conclude.
    pub(super) fn concluding(&self) -> bool {
        self.lock().concluding
    }

    /// Why an attempt was not let out, if one was not.
    pub(super) fn refused(&self) -> Option<Reached> {
        self.lock().refused.take()
    }

    fn cell(&self) -> CellTook {
        CellTook {
            took: self.lock().took,
            elapsed: self.deadline.used(),
        }
    }

    fn estimate(&self, body: &RequestBody) -> Call {
        let bytes: u64 = body.pieces.iter().map(|piece| piece.len() as u64).sum();
        let input = bytes.div_ceil(BYTES_A_TOKEN);
        let usd = self.pricing.map(|p| p.token_cost(input, self.reply));
        Call {
            estimate: Took {
                usd: if self.free { 0.0 } else { usd.unwrap_or(0.0) },
                tokens: input.saturating_add(self.reply),
                calls: 1,
            },
            free: self.free,
        }
    }

    /// The bill of an attempt.
    fn bill(&self, usage: &TokenUsage, reservation: Option<Reservation>) {
        let tokens = usage
            .input
            .zip(usage.output)
            .map(|(i, o)| i.saturating_add(o));
        let usd = if self.free {
            Some(0.0)
        } else {
            self.pricing.and_then(|pricing| pricing.usage_cost(usage))
        };
        let mut took = Took {
            usd: usd.unwrap_or(0.0),
            tokens: tokens.unwrap_or(0),
            calls: 1,
        };
        match (reservation, tokens, usd) {
            (Some(reservation), Some(_), Some(_)) => reservation.settle(took),
            // What is not known of it counts as estimated.
            (Some(reservation), ..) => took = reservation.lost(),
            (None, ..) => {}
        }
        let mut state = self.lock();
        let billed = TokenUsage { calls: 0, ..*usage };
        state.usage = state.usage.plus(billed);
        state.took = add(state.took, took);
        state.bill = state.bill.plus(Cost {
            usd: usd.unwrap_or(0.0),
            unknown: u64::from(usd.is_none()),
        });
    }

    /// The first request waited this long before it was sent.
    fn held(&self, wait: Millis) {
        self.lock().held = wait;
    }

    /// How long the first request waited.
    pub(super) fn waited(&self) -> Millis {
        self.lock().held
    }

    /// An attempt that cost nothing: it was refused, or reached nobody.
    fn unbilled(&self, reservation: Option<Reservation>) {
        let took = Took {
            calls: 1,
            ..Took::default()
        };
        if let Some(reservation) = reservation {
            reservation.settle(took);
        }
        let mut state = self.lock();
        state.took = add(state.took, took);
    }

    /// Something was sent and may be billed; how much is not known.
    fn lost(&self, reservation: Option<Reservation>) {
        let took = reservation.map_or(
            Took {
                calls: 1,
                ..Took::default()
            },
            Reservation::lost,
        );
        let mut state = self.lock();
        state.took = add(state.took, took);
        state.bill.unknown += 1;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a judge's calls count against a budget: a built-in judge makes none.
pub(super) fn is_limited(config: &JudgeConfig) -> bool {
    config.provider.is_model()
}

fn add(a: Took, b: Took) -> Took {
    Took {
        usd: a.usd + b.usd,
        tokens: a.tokens.saturating_add(b.tokens),
        calls: a.calls.saturating_add(b.calls),
    }
}

/// A provider whose attempts are counted, the failed ones too, and held to the budget, and that
/// knows how long the cell may still take.
pub(super) struct Metered<'a> {
    pub(super) inner: &'a dyn Provider,
    pub(super) meter: &'a Meter<'a>,
    pub(super) deadline: &'a Deadline,
    /// Whether a cell's first request has yet to be admitted.
    pub(super) first: AtomicBool,
}

/// An attempt under way: dropped before its end (cancelled, out of time) its bill is unknown.
struct Sending<'m, 'a> {
    meter: &'m Meter<'a>,
    reservation: Option<Reservation>,
    open: bool,
}

impl Sending<'_, '_> {
    fn done(mut self) -> Option<Reservation> {
        self.open = false;
        self.reservation.take()
    }
}

impl Drop for Sending<'_, '_> {
    fn drop(&mut self) {
        if self.open {
            self.meter.lost(self.reservation.take());
        }
    }
}

impl Provider for Metered<'_> {
    fn capabilities(&self) -> &ModelCapabilities {
        self.inner.capabilities()
    }

    fn build_body(&self, turn: &TurnRequest<'_>) -> Result<RequestBody, ProviderError> {
        self.inner.build_body(turn)
    }

    fn without_refused_setting(
        &self,
        body: &RequestBody,
        error: &ProviderError,
    ) -> Option<RequestBody> {
        self.inner.without_refused_setting(body, error)
    }

    fn max_attempts(&self) -> u8 {
        self.inner.max_attempts()
    }

    fn time_left(&self) -> Option<Millis> {
        Some(self.deadline.left())
    }

    /// The cell's time stands still while its first request waits for a place.
    fn wait_for_permit<'a>(
        &'a self,
        body: &'a RequestBody,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<RequestPermit, ProviderError>> {
        Box::pin(async move {
            if !self.first.swap(false, Ordering::Relaxed) {
                return self.inner.wait_for_permit(body, cx).await;
            }
            let began = cx.clock.now();
            let _still = self.deadline.pause();
            let pass = self.inner.wait_for_permit(body, cx).await;
            self.meter.held(cx.clock.now().since(began));
            pass
        })
    }

    fn last_exchange(&self, cell: CellIx) -> Option<ExchangeInfo> {
        self.inner.last_exchange(cell)
    }

    fn forget_exchange(&self, cell: CellIx) {
        self.inner.forget_exchange(cell);
    }

    fn send<'a>(
        &'a self,
        body: &'a RequestBody,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>> {
        Box::pin(async move {
            // A further attempt is a further call.
            if let Err(reached) = self.meter.admit(body).await {
                let why = format!("{}; nothing more is sent", reached.why);
                self.meter.lock().refused = Some(reached);
                return Err(ProviderError::Request(why));
            }
            let mut reservation = {
                let mut state = self.meter.lock();
                state.usage.calls += 1;
                state.slot.take()
            };
            if let Some(reservation) = &mut reservation {
                reservation.send();
            }
            let sending = Sending {
                meter: self.meter,
                reservation,
                open: true,
            };
            let done = self.inner.send(body, attempt, cx).await;
            let told = self.inner.last_exchange(cx.cell).unwrap_or_default();
            let reservation = sending.done();
            match &done {
                Ok(finished) => self.meter.bill(&finished.usage, reservation),
                Err(ProviderError::Cut {
                    billed: Some(usage),
                    ..
                }) => self.meter.bill(usage, reservation),
                Err(
                    ProviderError::Cut { billed: None, .. }
                    | ProviderError::InStream { .. }
                    | ProviderError::Malformed(_)
                    | ProviderError::Cancelled,
                ) => self.meter.lost(reservation),
                Err(_) if told.exchange.cost_unknown => self.meter.lost(reservation),
                Err(_) => self.meter.unbilled(reservation),
            }
            done
        })
    }
}

//! The meter of one judge trace: it counts tokens, calls and cost while the trace runs, and holds each attempt to the
//! budget.
//!
//! It counts during the trace, so that a trace that is cut off has its figures too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;

use super::budget::{Budget, BudgetSpend, CallEstimate, CellSpend, LimitReached, Reservation};
use super::deadline::CellDeadline;
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CellIx, Cost, JudgeConfig, Millis, ModelPricing, TokenUsage};
use crate::provider::{
    CompletedReply, ExchangeInfo, ModelCapabilities, Provider, ProviderError, RequestBody,
    RequestPermit, TurnRequest,
};

/// The bytes per token for estimates: fewer than the four of average English, so that an estimate is rather too high.
const BYTES_PER_TOKEN: u64 = 3;
/// The estimated reply tokens of a judge without `max_output_tokens`.
const DEFAULT_REPLY_TOKENS: u64 = 4096;

/// The tokens, calls and cost of one trace.
pub(super) struct UsageMeter<'a> {
    pricing: Option<ModelPricing>,
    free: bool,
    /// `false` for built-in judges, whose calls don't count against a budget.
    limited: bool,
    reply_tokens: u64,
    budget: &'a Arc<Budget>,
    deadline: &'a CellDeadline,
    state: Mutex<MeterState>,
}

/// A limit that is near, so that the judge must conclude.
pub(super) struct NearLimit {
    pub(super) reached: LimitReached,
    /// `true` the first time that this cell learns of it.
    pub(super) is_new: bool,
}

struct MeterState {
    usage: TokenUsage,
    bill: Cost,
    spend: BudgetSpend,
    /// The reservation for the next attempt, if there is one already.
    reservation: Option<Reservation>,
    limit_reached: Option<LimitReached>,
    concluding: bool,
    waited: Millis,
}

impl<'a> UsageMeter<'a> {
    pub(super) fn new(
        config: &JudgeConfig,
        model: Option<&str>,
        budget: &'a Arc<Budget>,
        deadline: &'a CellDeadline,
    ) -> Self {
        Self {
            pricing: config.pricing_for_model(model.unwrap_or(&config.model)),
            free: config.is_free(),
            limited: is_limited(config),
            reply_tokens: config
                .max_output_tokens
                .map_or(DEFAULT_REPLY_TOKENS, u64::from),
            budget,
            deadline,
            state: Mutex::new(MeterState {
                usage: TokenUsage::default(),
                bill: Cost::ZERO,
                spend: BudgetSpend::default(),
                reservation: None,
                limit_reached: None,
                concluding: false,
                waited: Millis(0),
            }),
        }
    }

    /// Returns the tokens and calls so far, failed attempts included, and their cost as far as it is known.
    pub(super) fn totals(&self) -> (TokenUsage, Cost) {
        let state = self.lock();
        // A free judge often has no price, which must not count as an unknown bill.
        let bill = if self.free { Cost::ZERO } else { state.bill };
        (state.usage, bill)
    }

    /// Waits until the budget admits a request, and reserves its estimate. The cell's time doesn't run meanwhile.
    pub(super) async fn admit(&self, body: &RequestBody) -> Result<(), LimitReached> {
        // The first attempt of a turn was admitted before the turn began.
        if !self.limited || self.lock().reservation.is_some() {
            return Ok(());
        }
        let mut admission = Box::pin(self.budget.admit(self.estimate(body), self.cell_spend()));
        // Poll once: only a real wait pauses the deadline.
        let answer = if let Some(answer) = (&mut admission).now_or_never() {
            answer
        } else {
            let _pause = self.deadline.pause();
            admission.await
        };
        self.lock().reservation = Some(answer?);
        Ok(())
    }

    /// Returns the limit because of which the judge should conclude.
    ///
    /// `begun`: the cell made a call before.
    pub(super) fn check_near(&self, begun: bool) -> Option<NearLimit> {
        if !self.limited {
            return None;
        }
        let reached = self
            .budget
            .check_near(self.cell_spend(), self.free, begun)?;
        let is_new = !std::mem::replace(&mut self.lock().concluding, true);
        Some(NearLimit { reached, is_new })
    }

    /// Returns whether the judge was asked to conclude.
    pub(super) fn is_concluding(&self) -> bool {
        self.lock().concluding
    }

    /// Takes the limit because of which an attempt was not admitted.
    pub(super) fn limit_reached(&self) -> Option<LimitReached> {
        self.lock().limit_reached.take()
    }

    fn cell_spend(&self) -> CellSpend {
        CellSpend {
            spend: self.lock().spend,
            elapsed: self.deadline.time_used(),
        }
    }

    fn estimate(&self, body: &RequestBody) -> CallEstimate {
        let bytes: u64 = body.pieces.iter().map(|piece| piece.len() as u64).sum();
        let input = bytes.div_ceil(BYTES_PER_TOKEN);
        let usd = self
            .pricing
            .map(|p| p.estimate_token_cost(input, self.reply_tokens));
        CallEstimate {
            spend: BudgetSpend {
                // Without a price the cost is unknown, so only tokens and calls are limited.
                usd: if self.free { 0.0 } else { usd.unwrap_or(0.0) },
                tokens: input.saturating_add(self.reply_tokens),
                calls: 1,
            },
            free: self.free,
        }
    }

    /// Records an attempt whose usage the provider reported.
    fn record_bill(&self, usage: &TokenUsage, reservation: Option<Reservation>) {
        let tokens = usage
            .input
            .zip(usage.output)
            .map(|(i, o)| i.saturating_add(o));
        let usd = if self.free {
            Some(0.0)
        } else {
            self.pricing.and_then(|pricing| pricing.usage_cost(usage))
        };
        let mut took = BudgetSpend {
            usd: usd.unwrap_or(0.0),
            tokens: tokens.unwrap_or(0),
            calls: 1,
        };
        match (reservation, tokens, usd) {
            (Some(reservation), Some(_), Some(_)) => reservation.settle(took),
            // Without tokens or a price, only the estimate is left.
            (Some(reservation), ..) => took = reservation.settle_as_estimate(),
            (None, ..) => {}
        }
        let mut state = self.lock();
        // `send` has counted the call already.
        let billed = TokenUsage { calls: 0, ..*usage };
        state.usage = state.usage.plus(billed);
        state.spend = add_spend(state.spend, took);
        state.bill = state.bill.plus(Cost {
            usd: usd.unwrap_or(0.0),
            unknown: u64::from(usd.is_none()),
        });
    }

    /// Records how long the first request waited for a place at the server.
    fn record_wait(&self, wait: Millis) {
        self.lock().waited = wait;
    }

    /// Returns how long the first request waited for a place at the server.
    pub(super) fn waited(&self) -> Millis {
        self.lock().waited
    }

    /// Records an attempt that cost nothing: the server refused it, or it reached no server.
    fn record_unbilled(&self, reservation: Option<Reservation>) {
        let took = BudgetSpend {
            calls: 1,
            ..BudgetSpend::default()
        };
        if let Some(reservation) = reservation {
            reservation.settle(took);
        }
        let mut state = self.lock();
        state.spend = add_spend(state.spend, took);
    }

    /// Records an attempt that was sent and may be billed at an unknown amount.
    fn record_unknown_bill(&self, reservation: Option<Reservation>) {
        let took = reservation.map_or(
            BudgetSpend {
                calls: 1,
                ..BudgetSpend::default()
            },
            Reservation::settle_as_estimate,
        );
        let mut state = self.lock();
        state.spend = add_spend(state.spend, took);
        state.bill.unknown += 1;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, MeterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a judge's calls count against a budget; a built-in judge makes none.
pub(super) fn is_limited(config: &JudgeConfig) -> bool {
    config.provider.is_model()
}

fn add_spend(a: BudgetSpend, b: BudgetSpend) -> BudgetSpend {
    BudgetSpend {
        usd: a.usd + b.usd,
        tokens: a.tokens.saturating_add(b.tokens),
        calls: a.calls.saturating_add(b.calls),
    }
}

/// A provider that counts its attempts, holds each to the budget, and knows the cell's deadline.
pub(super) struct MeteredProvider<'a> {
    pub(super) inner: &'a dyn Provider,
    pub(super) meter: &'a UsageMeter<'a>,
    pub(super) deadline: &'a CellDeadline,
    /// `true` until the cell's first request got its permit.
    pub(super) awaits_first_request: AtomicBool,
}

/// An attempt under way. If it is dropped before its end (cancelled, timed out), its bill is unknown.
struct MeteredAttempt<'m, 'a> {
    meter: &'m UsageMeter<'a>,
    reservation: Option<Reservation>,
    open: bool,
}

impl MeteredAttempt<'_, '_> {
    fn complete(mut self) -> Option<Reservation> {
        self.open = false;
        self.reservation.take()
    }
}

impl Drop for MeteredAttempt<'_, '_> {
    fn drop(&mut self) {
        // A future that is dropped in the middle has sent its request, so a bill may follow.
        if self.open {
            self.meter.record_unknown_bill(self.reservation.take());
        }
    }
}

impl Provider for MeteredProvider<'_> {
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
        Some(self.deadline.time_left())
    }

    /// Waits for a place at the server; pauses the cell's time for its first request.
    fn wait_for_permit<'a>(
        &'a self,
        body: &'a RequestBody,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<RequestPermit, ProviderError>> {
        Box::pin(async move {
            // Only the cell's first request queues without using its time.
            if !self.awaits_first_request.swap(false, Ordering::Relaxed) {
                return self.inner.wait_for_permit(body, cx).await;
            }
            let began = cx.clock.now();
            // Before the first request the cell only queues behind others; later waits belong to its own
            // work.
            let _pause = self.deadline.pause();
            let permit = self.inner.wait_for_permit(body, cx).await;
            self.meter.record_wait(cx.clock.now().since(began));
            permit
        })
    }

    fn wait_until_stopped(&self) -> BoxFuture<'_, ()> {
        self.inner.wait_until_stopped()
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
            // Each retry is a call of its own. The first attempt was admitted before its turn began.
            if let Err(reached) = self.meter.admit(body).await {
                let why = format!("{}; nothing more is sent", reached.why);
                self.meter.lock().limit_reached = Some(reached);
                return Err(ProviderError::Request(why));
            }
            // Count the call before sending it, so that an attempt that is cancelled halfway counts too.
            let mut reservation = {
                let mut state = self.meter.lock();
                state.usage.calls += 1;
                state.reservation.take()
            };
            if let Some(reservation) = &mut reservation {
                reservation.mark_sent();
            }
            let sending = MeteredAttempt {
                meter: self.meter,
                reservation,
                open: true,
            };
            let done = self.inner.send(body, attempt, cx).await;
            // Read before the next attempt replaces it.
            let exchange_info = self.inner.last_exchange(cx.cell).unwrap_or_default();
            let reservation = sending.complete();
            // The bill: reported, unknown, or none, by how far the request got.
            match &done {
                Ok(finished) => self.meter.record_bill(&finished.usage, reservation),
                Err(ProviderError::Cut {
                    billed: Some(usage),
                    ..
                }) => self.meter.record_bill(usage, reservation),
                Err(
                    ProviderError::Cut { billed: None, .. }
                    | ProviderError::InStream { .. }
                    | ProviderError::Malformed(_)
                    | ProviderError::WrongProtocol(_)
                    | ProviderError::Cancelled,
                ) => self.meter.record_unknown_bill(reservation),
                Err(_) if exchange_info.exchange.cost_unknown => {
                    self.meter.record_unknown_bill(reservation);
                }
                Err(_) => self.meter.record_unbilled(reservation),
            }
            done
        })
    }
}

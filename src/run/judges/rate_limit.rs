//! Rate limiters: one queue per provider key, one per judge with its own rate, and one for all judges.
//!
//! Responsible for when a request starts. Does not retry.
//!
//! Judges that share provider, address and key share the learned limits of that key ([`limit_state`]) during the run.
//! `requests_per_minute` of a judge and of all judges (`limits`), and `tokens_per_minute`, also apply. Requests wait
//! in order of arrival and report the wait (`TurnFact::Held`).
//!
//! A request takes a slot only when every limit allows it. It returns the slot when it ends or is cancelled. So a
//! cancelled or paused trace holds no slot.
//!
//! A judge whose circuit breaker is open ([`super::circuit_breaker`]) gets no permit for the first request of a cell.
//!
//! The time limit of a cell does not run while its first request waits; the judge's meter ensures this. So a low rate
//! makes the run longer and causes no timeouts. Later turns and attempts wait within the cell's time limit.

mod limit_state;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use self::limit_state::{RateLimitState, RateLimitWait};
use super::circuit_breaker::CircuitBreaker;
use crate::clock::BoxFuture;
use crate::event::{CallCx, ThrottleReason, TurnFact};
use crate::model::{CellIx, Digest, JudgeConfig, Millis};
use crate::provider::{
    CompletedReply, ExchangeInfo, ModelCapabilities, Provider, ProviderError, RequestBody,
    RequestPermit, TurnRequest,
};

/// Shorter waits are not reported.
const MIN_REPORTED_WAIT: Millis = Millis(100);
/// The approximate number of bytes per token.
const BYTES_PER_TOKEN: u64 = 4;
/// The estimated tokens of a reply before the first reply.
const INITIAL_REPLY_TOKENS: u64 = 300;

/// The limits of a queue and the requests that wait for them.
#[derive(Debug, Default)]
struct RequestQueue {
    bounds: Mutex<RateLimitState>,
    line: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
    /// Notifies waiters that a slot may be free.
    changed: Notify,
}

impl RequestQueue {
    fn new(bounds: RateLimitState) -> Arc<Self> {
        Arc::new(Self {
            bounds: Mutex::new(bounds),
            ..Self::default()
        })
    }

    fn bounds(&self) -> MutexGuard<'_, RateLimitState> {
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all earlier requests have left the queue.
    async fn line(
        &self,
        need: u64,
        reporter: &mut WaitReporter<'_>,
    ) -> Result<tokio::sync::MutexGuard<'_, ()>, ProviderError> {
        // No request waits, so there is no wait to report.
        if let Ok(turn) = self.line.try_lock() {
            return Ok(turn);
        }
        let ahead = self.waiting.fetch_add(1, Ordering::Relaxed);
        // The guard also counts down if the cell is cancelled while it waits.
        let _leaving = WaiterGuard(&self.waiting);
        let now = reporter.cx.clock.now();
        let (held, gap) = {
            let bounds = self.bounds();
            (bounds.find_wait(need, now), bounds.request_interval(now))
        };
        // No limit holds the request back, but earlier requests do.
        let held = held.unwrap_or(RateLimitWait {
            reason: ThrottleReason::Concurrency,
            wait: None,
        });
        // Each request ahead takes one interval.
        let gaps = gap.map(|gap| Millis(gap.0.saturating_mul(ahead as u64 + 1)));
        let wait = held.wait.map(|wait| wait + gaps.unwrap_or_default());
        reporter.report(RateLimitWait { wait, ..held }).await;
        tokio::select! {
            biased;
            () = reporter.cx.cancel.cancelled() => Err(ProviderError::Cancelled),
            turn = self.line.lock() => Ok(turn),
        }
    }
}

/// A waiting request; dropping it leaves the queue.
struct WaiterGuard<'a>(&'a AtomicUsize);

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The last reported wait, so that the same wait is reported once.
struct WaitReporter<'a> {
    cx: &'a CallCx,
    last_reported: Option<ReportedWait>,
}

#[derive(Debug, Clone, Copy)]
struct ReportedWait {
    reason: ThrottleReason,
    /// The end of the wait, if it is known.
    until: Option<Millis>,
}

impl WaitReporter<'_> {
    async fn report(&mut self, held: RateLimitWait) {
        if held.wait.is_some_and(|wait| wait < MIN_REPORTED_WAIT) {
            return;
        }
        let until = held.wait.map(|wait| self.cx.clock.now() + wait);
        // Waits that end within a second of each other count as the same wait.
        let near = |last: ReportedWait| {
            last.reason == held.reason
                && match (last.until, until) {
                    (Some(before), Some(until)) => until.since(before) < Millis(1000),
                    (before, until) => before == until,
                }
        };
        if self.last_reported.is_some_and(near) {
            return;
        }
        self.last_reported = Some(ReportedWait {
            reason: held.reason,
            until,
        });
        let fact = TurnFact::Held {
            by: held.reason,
            about: held.wait,
        };
        self.cx.turn(fact).await;
    }
}

/// The rate limiters of a run.
#[derive(Debug, Default)]
pub(in crate::run) struct RateLimiters {
    overall: Option<Arc<RequestQueue>>,
    by_provider_key: Mutex<HashMap<Digest, Arc<RequestQueue>>>,
}

impl RateLimiters {
    /// Limits all judges together to a number of requests per minute.
    pub(in crate::run) fn new(per_minute: Option<u32>) -> Self {
        Self {
            overall: per_minute.map(|n| RequestQueue::new(RateLimitState::per_minute(n))),
            by_provider_key: Mutex::default(),
        }
    }

    /// Returns the rate limiter of a judge with this key.
    pub(in crate::run) fn limiter_for(
        &self,
        config: &JudgeConfig,
        key: Option<&str>,
    ) -> Arc<RateLimiter> {
        // The map stores only the digest of this text, because the text contains the key.
        let who = format!("{:?} {:?} {key:?}", config.provider, config.base_url);
        let mut keys = self
            .by_provider_key
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let queue = Arc::clone(keys.entry(Digest::hash_bytes(who.as_bytes())).or_default());
        if let Some(tokens) = config.tokens_per_minute {
            queue.bounds().limit_tokens(tokens);
        }
        let judge_rate = config.requests_per_minute;
        Arc::new(RateLimiter {
            judge_queue: judge_rate.map(|n| RequestQueue::new(RateLimitState::per_minute(n))),
            key_queue: queue,
            overall_queue: self.overall.clone(),
            mean_reply_tokens: AtomicU64::new(INITIAL_REPLY_TOKENS),
        })
    }
}

/// The rate limiter of one judge.
#[derive(Debug)]
pub(in crate::run) struct RateLimiter {
    judge_queue: Option<Arc<RequestQueue>>,
    key_queue: Arc<RequestQueue>,
    overall_queue: Option<Arc<RequestQueue>>,
    /// The moving average of a reply's tokens.
    mean_reply_tokens: AtomicU64,
}

/// A slot among the running requests.
struct RequestSlot {
    queues: Vec<Arc<RequestQueue>>,
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        for queue in &self.queues {
            queue.bounds().end_request();
            // Wake all waiters: each of them checks its own limits again.
            queue.changed.notify_waiters();
        }
    }
}

impl RateLimiter {
    fn queues(&self) -> impl Iterator<Item = &Arc<RequestQueue>> {
        [
            Some(&self.key_queue),
            self.judge_queue.as_ref(),
            self.overall_queue.as_ref(),
        ]
        .into_iter()
        .flatten()
    }

    /// Waits until a request of about `need` tokens may start.
    async fn acquire(&self, need: u64, cx: &CallCx) -> Result<RequestSlot, ProviderError> {
        let mut reporter = WaitReporter {
            cx,
            last_reported: None,
        };
        // Wait in the judge's own queue first, so that a slow judge does not block other judges at their shared key.
        let own_queue = match &self.judge_queue {
            Some(own_queue) => {
                let turn = own_queue.line(need, &mut reporter).await?;
                self.wait_until_free(&[own_queue], need, &mut reporter)
                    .await?;
                Some(turn)
            }
            None => None,
        };
        // Step: wait in the shared queue of the key, then for all limits together.
        let key = self.key_queue.line(need, &mut reporter).await?;
        let queues: Vec<&Arc<RequestQueue>> = self.queues().collect();
        self.wait_until_free(&queues, need, &mut reporter).await?;
        let now = cx.clock.now();
        // Step: take a slot of every queue. The queue locks prevent another request from starting in between.
        for queue in &queues {
            queue.bounds().start_request(need, now);
        }
        // The next request may check its limits from here on.
        drop((key, own_queue));
        Ok(RequestSlot {
            queues: queues.into_iter().cloned().collect(),
        })
    }

    /// Waits until none of these queues holds the request back.
    async fn wait_until_free(
        &self,
        queues: &[&Arc<RequestQueue>],
        need: u64,
        reporter: &mut WaitReporter<'_>,
    ) -> Result<(), ProviderError> {
        let cx = reporter.cx;
        loop {
            // Subscribe before checking, so that a slot that becomes free in between is not missed.
            let mut changed = pin!(self.key_queue.changed.notified());
            changed.as_mut().enable();
            let now = cx.clock.now();
            let held = queues
                .iter()
                .filter_map(|queue| queue.bounds().find_wait(need, now));
            // Every limit must allow the request, so the longest wait decides.
            let Some(held) = held.max_by_key(|held| held.wait) else {
                return Ok(());
            };
            reporter.report(held).await;
            let later = async {
                match held.wait {
                    Some(wait) => cx.clock.sleep(wait).await,
                    // Without a known time, only a free slot can end the wait.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
                () = later => {}
                () = changed => {}
            }
        }
    }

    /// Estimates the tokens of a request and its reply.
    fn estimate_tokens(&self, body: &RequestBody) -> u64 {
        let bytes: usize = body.pieces.iter().map(|piece| piece.len()).sum();
        bytes as u64 / BYTES_PER_TOKEN + self.mean_reply_tokens.load(Ordering::Relaxed)
    }

    /// Learns from the result of an attempt.
    fn record_attempt(
        &self,
        began: Millis,
        need: u64,
        done: &Result<CompletedReply, ProviderError>,
        exchange: &ExchangeInfo,
        now: Millis,
    ) {
        // Only the key's queue learns, because servers limit keys and not judges.
        let mut bounds = self.key_queue.bounds();
        bounds.record_quota(&exchange.rate_limits, now);
        match done {
            Ok(finished) => {
                bounds.record_success();
                if let (Some(input), Some(output)) = (finished.usage.input, finished.usage.output) {
                    bounds.record_usage(need, input + output);
                    let before = self.mean_reply_tokens.load(Ordering::Relaxed);
                    // Each reply has the weight 1/8, so one long reply changes the estimate little.
                    let after = (before * 7 + output) / 8;
                    self.mean_reply_tokens.store(after, Ordering::Relaxed);
                }
            }
            Err(ProviderError::Status {
                // 429 is "too many requests", 503 "unavailable", and 529 is Anthropic's "overloaded".
                status: 429 | 503 | 529,
                retry_after,
                // Fewer requests do not fix a terminal refusal, such as a used-up daily quota.
                terminal: false,
                ..
            }) => bounds.record_refusal(began, *retry_after, now),
            Err(_) => {}
        }
    }
}

/// A provider that obeys a rate limiter.
pub(in crate::run) struct RateLimitedProvider {
    pub(in crate::run) inner: Arc<dyn Provider>,
    pub(in crate::run) limiter: Arc<RateLimiter>,
    pub(in crate::run) breaker: Arc<CircuitBreaker>,
}

impl Provider for RateLimitedProvider {
    fn capabilities(&self) -> &ModelCapabilities {
        self.inner.capabilities()
    }

    fn build_body(&self, turn: &TurnRequest<'_>) -> Result<RequestBody, ProviderError> {
        self.inner.build_body(turn)
    }

    fn send<'a>(
        &'a self,
        body: &'a RequestBody,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>> {
        Box::pin(async move {
            let began = cx.clock.now();
            // Estimate before sending, because the reply changes the estimate of later requests.
            let need = self.limiter.estimate_tokens(body);
            let done = self.inner.send(body, attempt, cx).await;
            let exchange = self.inner.last_exchange(cx.cell).unwrap_or_default();
            self.limiter
                .record_attempt(began, need, &done, &exchange, cx.clock.now());
            done
        })
    }

    fn max_attempts(&self) -> u8 {
        self.inner.max_attempts()
    }

    fn time_left(&self) -> Option<Millis> {
        self.inner.time_left()
    }

    fn wait_for_permit<'a>(
        &'a self,
        body: &'a RequestBody,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<RequestPermit, ProviderError>> {
        Box::pin(async move {
            let need = self.limiter.estimate_tokens(body);
            let acquired = self.limiter.acquire(need, cx);
            // A later turn follows a reply in the same cell, so the server works for this cell.
            if cx.turn.0 > 0 {
                return acquired.await.map(RequestPermit::with_slot);
            }
            tokio::select! {
                // A stopped judge gets no permit, even if one is free.
                biased;
                () = self.breaker.wait_until_open() => {
                    Err(ProviderError::Request(self.breaker.explain()))
                }
                slot = acquired => slot.map(RequestPermit::with_slot),
            }
        })
    }

    fn wait_until_stopped(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.breaker.wait_until_open())
    }

    fn last_exchange(&self, cell: CellIx) -> Option<ExchangeInfo> {
        self.inner.last_exchange(cell)
    }

    fn forget_exchange(&self, cell: CellIx) {
        self.inner.forget_exchange(cell);
    }

    fn without_refused_setting(
        &self,
        body: &RequestBody,
        error: &ProviderError,
    ) -> Option<RequestBody> {
        self.inner.without_refused_setting(body, error)
    }
}

#[cfg(test)]
mod tests;

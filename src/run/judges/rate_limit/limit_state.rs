//! The state of one rate limit and the waits that follow from it.
//!
//! Responsible for the computation; the caller passes the time. Does not wait.
//!
//! Some bounds are configured (requests and tokens per minute); the others are learned. A refusal (429, 503, 529)
//! halves the number of concurrent requests. Refusals of requests that were out together count once, and each success
//! raises the number a little. The server's own delay applies to all requests. After it, requests start one by one
//! for a while, so that the waiting ones do not all start at once. The remaining quota that a server reports is
//! counted down until its next report.

use crate::event::ThrottleReason;
use crate::model::Millis;
use crate::provider::{RateLimitStatus, RemainingLimit};

/// The longest delay that applies to all requests. A request with a longer delay gives up, and so would the others.
const MAX_SERVER_DELAY: Millis = Millis(120_000);
/// The time after a refusal during which requests start one by one.
const RAMP_TIME: Millis = Millis(10_000);
/// The number of concurrent requests above which there is no bound.
const MAX_CONCURRENCY_BOUND: f64 = 512.0;

/// The reason why no request may start now, and the time to wait, if it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateLimitWait {
    pub(super) reason: ThrottleReason,
    pub(super) wait: Option<Millis>,
}

/// The bounds of one key, one judge, or all judges together.
#[derive(Debug, Default)]
pub(super) struct RateLimitState {
    /// The time between two requests, from `requests_per_minute`.
    min_interval: Option<Millis>,
    next_start: Millis,
    /// The tokens left of `tokens_per_minute`.
    token_bucket: Option<TokenBucket>,
    /// The remaining quota that the server reports.
    server_requests: Option<TokenBucket>,
    server_tokens: Option<TokenBucket>,
    /// No request starts before this time.
    hold_until: Millis,
    ramp_until: Millis,
    ramp_next_start: Millis,
    /// The largest number of concurrent requests; `None` for any number.
    max_in_flight: Option<f64>,
    last_cut_at: Option<Millis>,
    in_flight: usize,
}

/// An amount that requests use up and that time refills.
#[derive(Debug, Clone, Copy)]
struct TokenBucket {
    amount: f64,
    capacity: f64,
    /// The refill per millisecond; 0 if the bucket refills all at once at `full_at`.
    refill_per_ms: f64,
    updated_at: Millis,
    full_at: Millis,
}

impl TokenBucket {
    /// Returns a full bucket of `most` per minute.
    fn per_minute(most: u64) -> Self {
        let capacity = most.max(1) as f64;
        Self {
            amount: capacity,
            capacity,
            refill_per_ms: capacity / 60_000.0,
            updated_at: Millis(0),
            full_at: Millis(0),
        }
    }

    /// Returns the bucket that a server reports; `None` if the server does not report when it refills.
    fn from_server(reported: &RemainingLimit, now: Millis) -> Option<Self> {
        // Without a reset time, the bucket could stay empty forever.
        let reset = reported.reset?;
        let amount = reported.remaining as f64;
        let most = reported
            .limit
            .map_or(f64::INFINITY, |limit| limit as f64)
            .max(amount);
        // With a known limit, assume that the quota refills evenly until the reset.
        let refill = if most.is_finite() {
            (most - amount) / (reset.0.max(1) as f64)
        } else {
            0.0
        };
        Some(Self {
            amount,
            capacity: most,
            refill_per_ms: refill,
            updated_at: now,
            full_at: now + reset,
        })
    }

    fn amount(&self, now: Millis) -> f64 {
        // The server refills this bucket all at once.
        if self.refill_per_ms == 0.0 && now >= self.full_at {
            return self.capacity;
        }
        let passed = now.since(self.updated_at).0 as f64;
        (self.amount + passed * self.refill_per_ms).min(self.capacity)
    }

    /// Returns the time until `need` can be taken. A need above the capacity takes a full bucket.
    fn time_until(&self, need: f64, now: Millis) -> Millis {
        let missing = need.min(self.capacity) - self.amount(now);
        if missing <= 0.0 {
            Millis(0)
        } else if self.refill_per_ms > 0.0 {
            // One millisecond more, so that rounding down does not cause a second short wait.
            Millis::from_secs_f64(missing / self.refill_per_ms / 1000.0) + Millis(1)
        } else {
            self.full_at.since(now)
        }
    }

    fn take(&mut self, need: f64, now: Millis) {
        // The amount may become negative: the next requests then wait longer.
        self.amount = self.amount(now) - need;
        self.updated_at = now;
    }
}

impl RateLimitState {
    /// Returns a limit of evenly spaced requests per minute.
    pub(super) fn per_minute(requests: u32) -> Self {
        Self {
            // Round up, so that a minute never holds more requests than allowed.
            min_interval: Some(Millis(60_000_u64.div_ceil(u64::from(requests.max(1))))),
            ..Self::default()
        }
    }

    /// Limits the tokens per minute; the smallest of several limits applies.
    pub(super) fn limit_tokens(&mut self, per_minute: u64) {
        let known = self
            .token_bucket
            .map_or(f64::INFINITY, |bucket| bucket.capacity);
        if (per_minute as f64) < known {
            self.token_bucket = Some(TokenBucket::per_minute(per_minute));
        }
    }

    /// Returns the reason why a request of about `need` tokens may not start now; `None` if it may start.
    pub(super) fn find_wait(&self, need: u64, now: Millis) -> Option<RateLimitWait> {
        let until = |by, at: Millis| {
            let wait = at.since(now);
            (wait > Millis(0)).then_some(RateLimitWait {
                reason: by,
                wait: Some(wait),
            })
        };
        // A server's quota that takes hours to refill does not block: the server's own refusal decides.
        let bucket = |bucket: &Option<TokenBucket>, by, need: f64| {
            let wait = bucket.as_ref()?.time_until(need, now);
            (wait <= MAX_SERVER_DELAY).then(|| until(by, now + wait))?
        };
        let configured = self.token_bucket.as_ref();
        let configured = configured.map(|tokens| tokens.time_until(need as f64, now));
        // Step: the limits with a known time. The longest wait decides.
        let timed = [
            until(ThrottleReason::Server, self.hold_until),
            until(ThrottleReason::Concurrency, self.ramp_next_start)
                .filter(|_| now < self.ramp_until),
            until(ThrottleReason::Rate, self.next_start),
            configured.and_then(|wait| until(ThrottleReason::Tokens, now + wait)),
            bucket(&self.server_requests, ThrottleReason::Server, 1.0),
            bucket(&self.server_tokens, ThrottleReason::Tokens, need as f64),
        ];
        let longest = timed.into_iter().flatten().max_by_key(|held| held.wait);
        // Step: the number of concurrent requests, whose wait has no known end.
        longest.or_else(|| {
            let full = self
                .max_in_flight
                // The bound is fractional, because each success raises it by less than one.
                .is_some_and(|bound| self.in_flight as f64 >= bound.floor());
            full.then_some(RateLimitWait {
                reason: ThrottleReason::Concurrency,
                wait: None,
            })
        })
    }

    /// Records the start of a request.
    pub(super) fn start_request(&mut self, need: u64, now: Millis) {
        self.in_flight += 1;
        if let Some(spacing) = self.min_interval {
            self.next_start = now + spacing;
        }
        if now < self.ramp_until {
            self.ramp_next_start = now + self.ramp_interval();
        }
        for (bucket, need) in [
            (&mut self.token_bucket, need as f64),
            (&mut self.server_tokens, need as f64),
            (&mut self.server_requests, 1.0),
        ] {
            if let Some(bucket) = bucket {
                bucket.take(need, now);
            }
        }
    }

    /// Records the end of a request.
    pub(super) fn end_request(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Records that the server refused a request, which started at `began`, because there are too many.
    pub(super) fn record_refusal(&mut self, began: Millis, asked: Option<Millis>, now: Millis) {
        // A longer delay ends the attempt in the provider, so it must not hold the other requests.
        if let Some(asked) = asked.filter(|asked| *asked <= MAX_SERVER_DELAY) {
            self.hold_until = self.hold_until.max(now + asked);
        }
        // Requests that were out at the last cut belong to the same refusal.
        if self.last_cut_at.is_none_or(|cut| began > cut) {
            let out = self
                .max_in_flight
                // The first refusal has no bound yet, so half of the running requests become the bound.
                .unwrap_or(f64::INFINITY)
                .min(self.in_flight as f64);
            self.max_in_flight = Some((out / 2.0).max(1.0));
            self.last_cut_at = Some(now);
        }
        self.ramp_until = now.max(self.hold_until) + RAMP_TIME;
    }

    /// Records a successful request.
    pub(super) fn record_success(&mut self) {
        if let Some(bound) = &mut self.max_in_flight {
            // As many successes as the bound raise it by about one.
            *bound += 1.0 / *bound;
            if *bound >= MAX_CONCURRENCY_BOUND {
                self.max_in_flight = None;
            }
        }
    }

    /// Records the remaining quota from a reply's headers.
    pub(super) fn record_quota(&mut self, quota: &RateLimitStatus, now: Millis) {
        for (known, reported) in [
            (&mut self.server_requests, quota.requests),
            (&mut self.server_tokens, quota.tokens),
        ] {
            if let Some(bucket) = reported.and_then(|left| TokenBucket::from_server(&left, now)) {
                *known = Some(bucket);
            }
        }
    }

    /// Corrects the estimated tokens of a request by the real number.
    pub(super) fn record_usage(&mut self, estimated: u64, real: u64) {
        if let Some(tokens) = &mut self.token_bucket {
            // Only the configured bucket is corrected: the server's buckets are set by its next report.
            tokens.amount = (tokens.amount + estimated as f64 - real as f64).min(tokens.capacity);
        }
    }

    /// Returns the time between two waiting requests, if it is known.
    pub(super) fn request_interval(&self, now: Millis) -> Option<Millis> {
        // `None` is less than any interval, so `max` returns the known one.
        let ramp = (now < self.ramp_until).then(|| self.ramp_interval());
        self.min_interval.max(ramp)
    }

    fn ramp_interval(&self) -> Millis {
        let bound = self.max_in_flight.unwrap_or(MAX_CONCURRENCY_BOUND);
        // The allowed requests start within about a second, each 5 to 200 ms after the last.
        Millis::from_secs_f64((1.0 / bound).clamp(0.005, 0.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1000);

    fn wait(bounds: &RateLimitState, need: u64, now: Millis) -> Option<(ThrottleReason, u64)> {
        let held = bounds.find_wait(need, now)?;
        Some((held.reason, held.wait.map_or(0, |wait| wait.0)))
    }

    #[test]
    fn requests_are_evenly_spaced_without_saving_idle_time() {
        let mut rate = RateLimitState::per_minute(60);
        for at in [1000, 2000, 50_000] {
            assert_eq!(wait(&rate, 0, Millis(at)), None);
            rate.start_request(0, Millis(at));
            let soon = wait(&rate, 0, Millis(at + 400));
            assert_eq!(soon, Some((ThrottleReason::Rate, 600)));
        }
    }

    #[test]
    fn token_bucket_refills() {
        let mut bounds = RateLimitState::default();
        bounds.limit_tokens(6000);
        bounds.limit_tokens(60_000);
        bounds.start_request(5000, NOW);
        assert_eq!(wait(&bounds, 900, NOW), None);
        // The bucket refills 100 tokens per second; 1000 are left.
        assert_eq!(
            wait(&bounds, 2000, NOW),
            Some((ThrottleReason::Tokens, 10_001))
        );
        bounds.record_usage(5000, 3000);
        assert_eq!(wait(&bounds, 2000, NOW), None, "it took less than expected");
        let all = wait(&bounds, 1_000_000, Millis(1_000_000));
        assert_eq!(all, None, "more than there ever is goes once it is full");
    }

    #[test]
    fn refusals_halve_the_bound_once_and_successes_raise_it() {
        let mut bounds = RateLimitState::default();
        for _ in 0..100 {
            assert_eq!(wait(&bounds, 0, NOW), None);
            bounds.start_request(0, NOW);
        }
        for _ in 0..100 {
            bounds.record_refusal(NOW, None, Millis(1100));
            bounds.end_request();
        }
        assert_eq!(bounds.max_in_flight, Some(50.0));
        let later = Millis(60_000);
        for _ in 0..50 {
            assert_eq!(wait(&bounds, 0, later), None);
            bounds.start_request(0, later);
        }
        assert_eq!(
            wait(&bounds, 0, later),
            Some((ThrottleReason::Concurrency, 0))
        );
        for _ in 0..50 {
            bounds.record_success();
        }
        assert!(
            bounds
                .max_in_flight
                .is_some_and(|c| (50.9..51.1).contains(&c))
        );
        bounds.record_refusal(later, None, Millis(60_100));
        assert_eq!(
            bounds.max_in_flight,
            Some(25.0),
            "half of those that were out"
        );
    }

    #[test]
    fn server_delay_applies_to_all_unless_it_is_too_long() {
        let mut bounds = RateLimitState::default();
        bounds.start_request(0, NOW);
        bounds.record_refusal(NOW, Some(Millis(30_000)), Millis(1100));
        bounds.end_request();
        let held = Some((ThrottleReason::Server, 30_000));
        assert_eq!(wait(&bounds, 0, Millis(1100)), held);
        let mut bounds = RateLimitState::default();
        bounds.record_refusal(NOW, Some(Millis(3_600_000)), Millis(1100));
        assert_eq!(wait(&bounds, 0, Millis(1100)), None);
    }

    #[test]
    fn reported_quota_is_counted_down() {
        let mut bounds = RateLimitState::default();
        let left = |remaining, limit, reset| {
            Some(RemainingLimit {
                remaining,
                limit,
                reset: Some(Millis(reset)),
            })
        };
        bounds.record_quota(
            &RateLimitStatus {
                requests: left(2, None, 5000),
                tokens: left(1000, Some(61_000), 60_000),
            },
            NOW,
        );
        // A token a millisecond comes back.
        assert_eq!(
            wait(&bounds, 3000, NOW),
            Some((ThrottleReason::Tokens, 2001))
        );
        bounds.start_request(100, NOW);
        bounds.start_request(100, NOW);
        assert_eq!(wait(&bounds, 1, NOW), Some((ThrottleReason::Server, 5000)));
        assert_eq!(wait(&bounds, 1, Millis(6000)), None);
        bounds.record_quota(
            &RateLimitStatus {
                requests: left(0, None, 86_400_000),
                tokens: None,
            },
            NOW,
        );
        assert_eq!(wait(&bounds, 1, NOW), None, "the server says it itself");
    }
}

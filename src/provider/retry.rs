//! The retry policy: one pure function that decides whether and when a failed attempt is repeated.
//!
//! `server_limits` reads the delays that servers ask for.
//!
//! | the failure | retry? | the wait |
//! |---|---|---|
//! | no connection, a reset, no byte in time | yes | back-off from 0.5 s |
//! | a reused connection that the server closed before any byte of its answer | yes, on a new connection, once; not counted | none |
//! | an untrusted server certificate, a reply that is not HTTP | no | |
//! | 408, 409, 5xx | yes | the server's delay, else back-off from 0.5 s |
//! | 429, 503, 529 | yes | the server's delay, else back-off from 2 s |
//! | 400 or 422 that names a setting | yes, without it; once for each setting | none |
//! | any other status | no | |
//! | any status with `x-should-retry: true` or `false` | by its value | as above |
//! | a quota that waiting does not refill soon (`insufficient_quota`, Gemini's per-day quotas) | no | |
//! | a reply that was cut, or contains broken JSON | yes, from the beginning | back-off from 0.5 s |
//! | a reply of another protocol: a web page, other JSON, compressed, not UTF-8 | no | |
//! | a reply larger than a limit, or not at its end after 15 min | no | |
//! | an error inside the reply | by its code, as the statuses above; yes without a code | back-off from 0.5 s |
//! | a request that can't be built, or was cancelled | no | |
//!
//! There are four attempts in all (`max_attempts`); those that only omit a setting don't count. `net` sends a request
//! again that met a closed reused connection, so it isn't an attempt of its own here. A server's delay is
//! `retry-after-ms`, `Retry-After`, Gemini's `RetryInfo`, or the reset of an exhausted limit. `Retry-After` is in
//! seconds or an HTTP date, relative to the reply's own `Date`.
//!
//! dicta waits for the server's delay plus up to 10%, so that judges that were refused together don't return
//! together. It doesn't wait longer than 120 s; the error then names the time. Back-off doubles each time and is
//! fully jittered, from 0 to the full value. The waits of one call are at most 120 s together, and no wait goes
//! beyond the cell's deadline.

use super::ProviderError;
use crate::model::Millis;

/// The number of attempts.
pub const MAX_ATTEMPTS: u8 = 4;
/// The longest wait for one attempt, and for all attempts of a call together.
pub const MAX_WAIT: Millis = Millis(120_000);
/// The first words of a [`ProviderError::Cut`] about a limit on size: another attempt would reach the limit again.
pub(super) const CAPPED: &str = "it is larger than ";
/// The first words of a [`ProviderError::Cut`] about a reply that didn't end in time.
pub(super) const OVERDUE: &str = "it did not end within ";

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt<'e> {
    /// The error.
    pub error: &'e ProviderError,
    /// Its number, from 1.
    pub attempt: u8,
    /// The most attempts of the call.
    pub max_attempts: u8,
    /// The time that this call has waited so far.
    pub waited: Millis,
    /// The time until the cell's deadline, if there is one.
    pub time_left: Option<Millis>,
    /// The server's or the failure's own advice (`x-should-retry`).
    pub server_advice: Option<bool>,
    /// A number from 0 to 1 that spreads the waits.
    pub jitter: f64,
}

/// The action after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAction {
    /// Try again.
    Retry {
        /// The wait before it.
        wait: Millis,
        /// `true` if the server asked for this wait.
        server_asked: bool,
    },
    /// Stop: another attempt wouldn't help.
    Stop,
    /// Stop: the server asks for a longer wait than dicta allows.
    WaitTooLong(Millis),
    /// Stop: the next attempt would begin this much later, after the cell's deadline.
    NoTime(Millis),
}

/// Applies the table in this module's documentation.
pub fn choose_retry_action(failed: &FailedAttempt<'_>) -> RetryAction {
    let FailedAttempt {
        attempt, waited, ..
    } = *failed;
    let RetryPlan {
        server_delay: asked,
        first_backoff_ms: base,
    } = match plan_delay(failed) {
        Ok(plan) => plan,
        Err(next) => return next,
    };
    // A delay of 0 doesn't spread the requests: all judges would return at once.
    let asked = asked.filter(|delay| delay.0 > 0);
    if let Some(delay) = asked
        && waited + delay > MAX_WAIT
    {
        return RetryAction::WaitTooLong(delay);
    }
    // After the check of the delay, because "limited until …" explains more than a count of attempts.
    if attempt >= failed.max_attempts {
        return RetryAction::Stop;
    }
    // Up to a tenth more than the server asked, so that waiting cells don't return together.
    let wait = if let Some(delay) = asked {
        delay + scale_by_jitter(delay.0 / 10, failed.jitter)
    } else {
        // The cap only prevents an overflow of the shift; `MAX_WAIT` limits the wait.
        let doublings = u32::from(attempt.saturating_sub(1)).min(10);
        scale_by_jitter(base << doublings, failed.jitter)
    };
    // A call never waits longer than `MAX_WAIT` in all.
    let wait = wait.min(MAX_WAIT.since(waited));
    match failed.time_left {
        Some(left) if wait >= left => RetryAction::NoTime(wait),
        _ => RetryAction::Retry {
            wait,
            server_asked: asked.is_some(),
        },
    }
}

/// The delays of a failure that allows another attempt.
struct RetryPlan {
    /// The delay that the server asks for.
    server_delay: Option<Millis>,
    /// The longest first wait without such a delay. Each further wait is up to twice as long.
    first_backoff_ms: u64,
}

/// Returns the delays of a failure, or the reason to stop.
fn plan_delay(failed: &FailedAttempt<'_>) -> Result<RetryPlan, RetryAction> {
    let plan = |server_delay, first_backoff_ms| {
        Ok(RetryPlan {
            server_delay,
            first_backoff_ms,
        })
    };
    match failed.error {
        // Before the status, because an exhausted quota is also a 429.
        ProviderError::Status { terminal: true, .. } => Err(RetryAction::Stop),
        ProviderError::Status {
            status,
            retry_after,
            ..
        } => match status {
            _ if failed.server_advice == Some(false) => Err(RetryAction::Stop),
            // Overload: the first wait is longer than after other failures. 529 is Anthropic's own status.
            429 | 503 | 529 => plan(*retry_after, 2000),
            408 | 409 | 500..=599 => plan(*retry_after, 500),
            _ if failed.server_advice == Some(true) => plan(*retry_after, 500),
            _ => Err(RetryAction::Stop),
        },
        ProviderError::Connect { .. } if failed.server_advice == Some(false) => {
            Err(RetryAction::Stop)
        }
        ProviderError::Connect { .. }
        | ProviderError::Malformed(_)
        | ProviderError::InStream {
            retryable: true, ..
        } => plan(None, 500),
        ProviderError::Cut { why, .. }
            if !(why.starts_with(CAPPED) || why.starts_with(OVERDUE)) =>
        {
            plan(None, 500)
        }
        ProviderError::Cut { .. }
        | ProviderError::InStream { .. }
        | ProviderError::WrongProtocol(_)
        | ProviderError::Request(_)
        | ProviderError::Cancelled => Err(RetryAction::Stop),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of at most 120 s"
)]
fn scale_by_jitter(most: u64, chance: f64) -> Millis {
    Millis((most as f64 * chance.clamp(0.0, 1.0)) as u64)
}

/// Returns whether a status, or a code that a stream gives instead, allows another attempt.
pub(super) fn is_retryable_status(status: u64) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, retry_after: Option<u64>) -> ProviderError {
        ProviderError::Status {
            status,
            url: "https://api.example/v1".to_owned(),
            message: String::new(),
            retry_after: retry_after.map(Millis),
            terminal: false,
        }
    }

    fn cut(why: &str) -> ProviderError {
        ProviderError::Cut {
            why: why.to_owned(),
            billed: None,
        }
    }

    fn failed(error: &ProviderError) -> FailedAttempt<'_> {
        FailedAttempt {
            error,
            attempt: 1,
            max_attempts: MAX_ATTEMPTS,
            waited: Millis(0),
            time_left: None,
            server_advice: None,
            jitter: 1.0,
        }
    }

    fn connect() -> ProviderError {
        ProviderError::Connect {
            url: String::new(),
            why: String::new(),
        }
    }

    #[test]
    fn each_failure_has_its_retry_rule() {
        let retry = |ms| RetryAction::Retry {
            wait: Millis(ms),
            server_asked: false,
        };
        let asked = |ms| RetryAction::Retry {
            wait: Millis(ms),
            server_asked: true,
        };
        let in_stream = |retryable| ProviderError::InStream {
            message: String::new(),
            retryable,
        };
        let quota = ProviderError::Status {
            status: 429,
            url: String::new(),
            message: String::new(),
            retry_after: Some(Millis(1)),
            terminal: true,
        };
        // (error, attempt, waited before, decision at chance 1)
        let cases = [
            (status(429, None), 1, 0, retry(2000)),
            (status(429, None), 3, 0, retry(8000)),
            (status(429, None), 4, 0, RetryAction::Stop),
            (status(429, Some(1000)), 1, 0, asked(1100)),
            (status(429, Some(0)), 1, 0, retry(2000)),
            (status(429, Some(120_000)), 1, 0, asked(120_000)),
            (
                status(429, Some(120_001)),
                1,
                0,
                RetryAction::WaitTooLong(Millis(120_001)),
            ),
            (
                status(429, Some(60_000)),
                2,
                61_000,
                RetryAction::WaitTooLong(Millis(60_000)),
            ),
            (quota, 1, 0, RetryAction::Stop),
            (status(500, None), 1, 0, retry(500)),
            (status(500, None), 3, 0, retry(2000)),
            (status(502, None), 1, 0, retry(500)),
            (status(503, Some(10)), 1, 0, asked(11)),
            (status(504, None), 1, 0, retry(500)),
            (status(529, None), 1, 0, retry(2000)),
            (status(408, None), 1, 0, retry(500)),
            (status(409, None), 1, 0, retry(500)),
            (status(400, None), 1, 0, RetryAction::Stop),
            (status(401, None), 1, 0, RetryAction::Stop),
            (status(403, None), 1, 0, RetryAction::Stop),
            (status(404, None), 1, 0, RetryAction::Stop),
            (status(422, Some(1)), 1, 0, RetryAction::Stop),
            (status(307, None), 1, 0, RetryAction::Stop),
            (connect(), 1, 0, retry(500)),
            (connect(), 1, 119_900, retry(100)),
            (cut("no end"), 2, 0, retry(1000)),
            (cut(&format!("{CAPPED}x")), 1, 0, RetryAction::Stop),
            (cut(&format!("{OVERDUE}x")), 1, 0, RetryAction::Stop),
            (in_stream(true), 1, 0, retry(500)),
            (in_stream(false), 1, 0, RetryAction::Stop),
            (ProviderError::Malformed(String::new()), 1, 0, retry(500)),
            (
                ProviderError::WrongProtocol(String::new()),
                1,
                0,
                RetryAction::Stop,
            ),
            (
                ProviderError::Request(String::new()),
                1,
                0,
                RetryAction::Stop,
            ),
            (ProviderError::Cancelled, 1, 0, RetryAction::Stop),
        ];
        for (error, attempt, waited, expected) in cases {
            let failed = FailedAttempt {
                attempt,
                waited: Millis(waited),
                ..failed(&error)
            };
            assert_eq!(
                choose_retry_action(&failed),
                expected,
                "{error:?}, attempt {attempt}"
            );
        }
        let chance = |error: &ProviderError, chance| {
            choose_retry_action(&FailedAttempt {
                jitter: chance,
                ..failed(error)
            })
        };
        assert_eq!(chance(&status(429, None), 0.0), retry(0));
        assert_eq!(chance(&status(429, Some(100)), 0.0), asked(100));
    }

    #[test]
    fn retry_follows_the_servers_delay_and_the_configured_attempts() {
        let teapot = status(418, None);
        let advised = |error, advice| {
            choose_retry_action(&FailedAttempt {
                server_advice: Some(advice),
                ..failed(error)
            })
        };
        assert!(matches!(advised(&teapot, true), RetryAction::Retry { .. }));
        let (busy, no_trust) = (status(503, Some(1)), connect());
        assert_eq!(advised(&busy, false), RetryAction::Stop);
        assert_eq!(advised(&no_trust, false), RetryAction::Stop);
        let busy = status(503, None);
        let most = |most, attempt| {
            choose_retry_action(&FailedAttempt {
                attempt,
                max_attempts: most,
                ..failed(&busy)
            })
        };
        assert_eq!(most(1, 1), RetryAction::Stop);
        assert!(matches!(most(9, 8), RetryAction::Retry { .. }));
    }

    #[test]
    fn retry_after_the_deadline_is_not_planned() {
        let slow = status(429, Some(10_000));
        let left = |left| {
            choose_retry_action(&FailedAttempt {
                time_left: Some(Millis(left)),
                ..failed(&slow)
            })
        };
        assert_eq!(left(11_000), RetryAction::NoTime(Millis(11_000)));
        assert!(matches!(left(11_001), RetryAction::Retry { .. }));
    }

    #[test]
    fn hundred_refused_requests_return_at_different_times() {
        for asked in [None, Some(10_000)] {
            let error = status(429, asked);
            let mut waits: Vec<u64> = (0..100)
                .map(|cell| {
                    let chance = super::super::attempts::derive_jitter(cell, 0, 1);
                    let failed = FailedAttempt {
                        jitter: chance,
                        ..failed(&error)
                    };
                    match choose_retry_action(&failed) {
                        RetryAction::Retry { wait, .. } => wait.0,
                        other => panic!("{other:?}"),
                    }
                })
                .collect();
            waits.sort_unstable();
            let crowd = waits
                .iter()
                .map(|at| {
                    waits
                        .iter()
                        .filter(|w| **w >= *at && **w < at + 100)
                        .count()
                })
                .max();
            assert!(
                crowd <= Some(20),
                "{crowd:?} of 100 within 100 ms of each other"
            );
        }
    }

    /// The table above is what people read in `docs/reference/judges.md`.
    #[test]
    fn documentation_contains_the_retry_table() {
        let rows = |text: &'static str, mark: &'static str| -> Vec<&'static str> {
            text.lines()
                .filter_map(|line| line.strip_prefix(mark))
                .filter(|line| line.starts_with('|'))
                .collect()
        };
        let docs = include_str!("../../docs/reference/judges.md");
        let (_, section) = docs
            .split_once("\n## Retries and rate limits\n")
            .expect("the section is there");
        let section = section.split("\n## ").next().unwrap_or_default();
        let documented: Vec<&str> = rows(section, "").into_iter().take(16).collect();
        assert_eq!(documented, rows(include_str!("retry.rs"), "//! "));
    }
}

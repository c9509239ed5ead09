//! Whether and when a failed attempt is tried again: one pure function. (How servers say "later" is read in `delay`.)
//!
//! | what happened | again? | the wait |
//! |---|---|---|
//! | no connection, a reset, no byte in time | yes | back-off from 0.5 s |
//! | no trust in the server's certificate, an answer that is not HTTP | no | |
//! | 408, 409, 5xx | yes | the server's delay, else back-off from 0.5 s |
//! | 429, 503, 529 | yes | the server's delay, else back-off from 2 s |
//! | 500 twice in the same words from a server on this machine | no | |
//! | 400 or 422 that names a setting | yes, without it; once for each setting | none |
//! | any other status | no | |
//! | any status with `x-should-retry: true` or `false` | as it says | as above |
//! | a quota that waiting does not refill soon (`insufficient_quota`, Gemini's per-day quotas) | no | |
//! | the reply was cut, or is not the protocol | yes; what came is void | back-off from 0.5 s |
//! | a reply larger than a cap, or not at its end after 15 min | no | |
//! | an error inside the reply | by its code, as the statuses above; yes if it has none | back-off from 0.5 s |
//! | the request cannot be built, or was cancelled | no | |
//!
//! Four attempts in all (`max_attempts`); those that only leave out a setting do not count. A server's delay is
//! `retry-after-ms`, `Retry-After` (seconds or an HTTP date, measured against the reply's own `Date`), Gemini's
//! `RetryInfo`, or the reset of a limit of which nothing is left; it is kept, plus up to 10 % so that judges who were
//! refused together do not come back together. One above 120 s is not waited for: the error says until when. Back-off
//! doubles each time and is fully jittered: anything from 0 to that much. The waits of one call add up to 120 s at
//! most, and one that would not end before the cell's own deadline is not begun.

use super::ProviderError;
use crate::model::{Millis, is_loopback_url};

/// Attempts in all.
pub const MAX_ATTEMPTS: u8 = 4;
/// Longest wait for one attempt, and for all of a call together.
pub const MAX_WAIT: Millis = Millis(120_000);
/// How the text of a [`ProviderError::Cut`] begins when a cap was hit: more attempts would hit it again.
pub(super) const CAPPED: &str = "it is larger than ";
/// The same for a reply that never came to its end.
pub(super) const OVERDUE: &str = "it did not end within ";

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt<'e> {
    /// How it failed.
    pub error: &'e ProviderError,
    /// Which one it was, from 1.
    pub attempt: u8,
    /// How many there are.
    pub max_attempts: u8,
    /// What this call has waited before.
    pub waited: Millis,
    /// What the cell's deadline leaves, where there is one.
    pub time_left: Option<Millis>,
    /// What the server says of trying again (`x-should-retry`), or what the failure itself does.
    pub server_advice: Option<bool>,
    /// The attempt before failed in the same words.
    pub is_same_error: bool,
    /// A number from 0 to 1 that spreads the waits.
    pub jitter: f64,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAction {
    /// Try again after this long.
    Retry {
        /// How long.
        wait: Millis,
        /// Whether the server asked for it.
        server_asked: bool,
    },
    /// It would not help.
    Stop,
    /// A server on this machine says the same 500 again: it is about the request.
    SameError,
    /// The server asks for more patience than we have.
    WaitTooLong(Millis),
    /// The next attempt would begin this much later, after the cell's deadline.
    NoTime(Millis),
}

/// The table of this module's first lines.
pub fn choose_retry_action(failed: &FailedAttempt<'_>) -> RetryAction {
    let FailedAttempt {
        attempt, waited, ..
    } = *failed;
    let (asked, base) = match plan_delay(failed) {
        Ok(plan) => plan,
        Err(next) => return next,
    };
    // A delay of 0 is no delay: everybody would come back at once.
    let asked = asked.filter(|delay| delay.0 > 0);
    if let Some(delay) = asked
        && waited + delay > MAX_WAIT
    {
        return RetryAction::WaitTooLong(delay);
    }
    if attempt >= failed.max_attempts {
        return RetryAction::Stop;
    }
    let wait = if let Some(delay) = asked {
        delay + scale_by_jitter(delay.0 / 10, failed.jitter)
    } else {
        let doublings = u32::from(attempt.saturating_sub(1)).min(10);
        scale_by_jitter(base << doublings, failed.jitter)
    };
    let wait = wait.min(MAX_WAIT.since(waited));
    match failed.time_left {
        Some(left) if wait >= left => RetryAction::NoTime(wait),
        _ => RetryAction::Retry {
            wait,
            server_asked: asked.is_some(),
        },
    }
}

/// The server's delay and the first back-off, or why there is no further attempt.
fn plan_delay(failed: &FailedAttempt<'_>) -> Result<(Option<Millis>, u64), RetryAction> {
    match failed.error {
        ProviderError::Status { terminal: true, .. } => Err(RetryAction::Stop),
        ProviderError::Status {
            status,
            url,
            retry_after,
            ..
        } => match status {
            _ if failed.server_advice == Some(false) => Err(RetryAction::Stop),
            429 | 503 | 529 => Ok((*retry_after, 2000)),
            // Servers that run models here answer 500 to mistakes of their clients.
            500 if failed.is_same_error && is_loopback_url(url) => Err(RetryAction::SameError),
            408 | 409 | 500..=599 => Ok((*retry_after, 500)),
            _ if failed.server_advice == Some(true) => Ok((*retry_after, 500)),
            _ => Err(RetryAction::Stop),
        },
        ProviderError::Connect { .. } if failed.server_advice == Some(false) => {
            Err(RetryAction::Stop)
        }
        ProviderError::Connect { .. }
        | ProviderError::Malformed(_)
        | ProviderError::InStream {
            retryable: true, ..
        } => Ok((None, 500)),
        ProviderError::Cut { why, .. }
            if !(why.starts_with(CAPPED) || why.starts_with(OVERDUE)) =>
        {
            Ok((None, 500))
        }
        ProviderError::Cut { .. }
        | ProviderError::InStream { .. }
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

/// Whether a status, or a code that a stream gives in its place, is worth another attempt.
pub(super) fn is_retryable_status(status: u64) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(url: &str, status: u16, retry_after: Option<u64>) -> ProviderError {
        ProviderError::Status {
            status,
            url: url.to_owned(),
            message: String::new(),
            retry_after: retry_after.map(Millis),
            terminal: false,
        }
    }

    fn status(status: u16, retry_after: Option<u64>) -> ProviderError {
        from("https://api.example/v1", status, retry_after)
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
            is_same_error: false,
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
    fn the_table() {
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
    fn the_server_has_the_last_word_and_the_users_figure_counts() {
        let teapot = status(418, None);
        let told = |error, told| {
            choose_retry_action(&FailedAttempt {
                server_advice: Some(told),
                ..failed(error)
            })
        };
        assert!(matches!(told(&teapot, true), RetryAction::Retry { .. }));
        let (busy, no_trust) = (status(503, Some(1)), connect());
        assert_eq!(told(&busy, false), RetryAction::Stop);
        assert_eq!(told(&no_trust, false), RetryAction::Stop);
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
    fn a_500_said_twice_on_this_machine_is_about_the_request() {
        let twice = |error: &ProviderError| {
            choose_retry_action(&FailedAttempt {
                attempt: 2,
                is_same_error: true,
                ..failed(error)
            })
        };
        for url in [
            "http://127.0.0.1:8080/v1",
            "http://localhost/v1",
            "http://[::1]/v1",
        ] {
            assert_eq!(
                twice(&from(url, 500, None)),
                RetryAction::SameError,
                "{url}"
            );
            let again = twice(&from(url, 503, None));
            assert!(
                matches!(again, RetryAction::Retry { .. }),
                "a model that loads"
            );
        }
        let elsewhere = twice(&status(500, None));
        assert!(matches!(elsewhere, RetryAction::Retry { .. }));
    }

    #[test]
    fn a_wait_that_cannot_end_in_time_is_not_begun() {
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
    fn a_hundred_refused_together_do_not_come_back_together() {
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

    /// The table above is what people read in `docs/judges.md`.
    #[test]
    fn the_docs_hold_this_table() {
        let rows = |text: &'static str, mark: &'static str| -> Vec<&'static str> {
            text.lines()
                .filter_map(|line| line.strip_prefix(mark))
                .filter(|line| line.starts_with('|'))
                .collect()
        };
        let docs = include_str!("../../docs/judges.md");
        let (_, section) = docs
            .split_once("\n## Retries and rate limits\n")
            .expect("the section is there");
        let section = section.split("\n## ").next().unwrap_or_default();
        let told: Vec<&str> = rows(section, "").into_iter().take(15).collect();
        assert_eq!(told, rows(include_str!("retry.rs"), "//! "));
    }
}

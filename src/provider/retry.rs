//! Whether and when a failed attempt is tried again: one pure function, and how servers say "later".
//!
//! | what happened | again? | wait |
//! |---|---|---|
//! | no connection, TLS failure, reset, no byte in time | yes | back-off from 0.5 s |
//! | 408, 409, 5xx | yes | the server's delay, else back-off from 0.5 s |
//! | 429, 503, 529 | yes | the server's delay, else back-off from 2 s |
//! | any status with `x-should-retry: false` | no | |
//! | 429 for a quota that time alone does not refill soon (`insufficient_quota`, Gemini's per-day quotas) | no | |
//! | any other status | no | |
//! | the stream was cut, or is not the protocol | yes | back-off from 0.5 s; what came is void |
//! | a reply larger than a cap | no | |
//! | an error inside the stream | by its code, as the statuses above; yes if it has none | back-off from 0.5 s |
//! | the request cannot be built, or was cancelled | no | |
//!
//! Four attempts in all. A server's delay is `retry-after-ms`, `Retry-After` (seconds or an HTTP date, measured against
//! the reply's own `Date` so that a wrong clock here does no harm) or Gemini's `RetryInfo`; it is kept, plus up to 10 %
//! so that judges who were refused together do not come back together. One above 120 s is not waited for, and the
//! error says so. Back-off doubles each time and is fully jittered: anything from 0 to that much. The waits of one call
//! add up to 120 s at most; the cell's own deadline cancels earlier.

use serde_json::Value;

use super::ProviderError;
use crate::model::Millis;

/// Attempts in all.
pub const MAX_ATTEMPTS: u8 = 4;
/// Longest wait for one attempt, and for all of a call together.
pub const MAX_WAIT: Millis = Millis(120_000);
/// How the text of a [`ProviderError::Cut`] begins when a cap was hit: more attempts would hit it again.
pub(super) const CAPPED: &str = "it is larger than ";

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try again after this long.
    Retry(Millis),
    /// It would not help.
    Stop,
    /// The server asks for more patience than we have.
    TooLong(Millis),
}

/// The table of this module's first lines. `attempt` is the one that failed, from 1; `waited` what this call has
/// waited before; `chance` a number from 0 to 1 that spreads the waits.
pub fn after(error: &ProviderError, attempt: u8, waited: Millis, chance: f64) -> Next {
    let (asked, base) = match error {
        ProviderError::Status { terminal: true, .. } => return Next::Stop,
        ProviderError::Status {
            status,
            retry_after,
            ..
        } => match status {
            429 | 503 | 529 => (*retry_after, 2000),
            408 | 409 | 500..=599 => (*retry_after, 500),
            _ => return Next::Stop,
        },
        ProviderError::Connect { .. }
        | ProviderError::Malformed(_)
        | ProviderError::InStream {
            retryable: true, ..
        } => (None, 500),
        ProviderError::Cut { why, .. } if !why.starts_with(CAPPED) => (None, 500),
        ProviderError::Cut { .. }
        | ProviderError::InStream { .. }
        | ProviderError::Request(_)
        | ProviderError::Cancelled => return Next::Stop,
    };
    // A delay of 0 is no delay: everybody would come back at once.
    let asked = asked.filter(|delay| delay.0 > 0);
    if let Some(delay) = asked
        && waited + delay > MAX_WAIT
    {
        return Next::TooLong(delay);
    }
    if attempt >= MAX_ATTEMPTS {
        return Next::Stop;
    }
    let wait = match asked {
        Some(delay) => delay + scaled(delay.0 / 10, chance),
        None => scaled(base << u32::from(attempt.saturating_sub(1)), chance),
    };
    Next::Retry(wait.min(MAX_WAIT.since(waited)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of at most 120 s"
)]
fn scaled(most: u64, chance: f64) -> Millis {
    Millis((most as f64 * chance.clamp(0.0, 1.0)) as u64)
}

/// Whether a status, or a code that a stream gives in its place, is worth another attempt.
pub(super) fn worth_retrying(status: u64) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// The delay that a reply's headers ask for. `header` looks one up by its lower-case name; `now` is our wall clock in
/// seconds since 1970, for servers that send no `Date`. What cannot be read asks for nothing.
pub(super) fn asked_by_headers<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    now: Option<i64>,
) -> Option<Millis> {
    let number = |text: &str| {
        let n: f64 = text.trim().parse().ok()?;
        (n.is_finite() && n >= 0.0).then_some(n)
    };
    if let Some(ms) = header("retry-after-ms").and_then(number) {
        return Some(Millis::from_secs_f64(ms / 1000.0));
    }
    let text = header("retry-after")?;
    if let Some(secs) = number(text) {
        return Some(Millis::from_secs_f64(secs));
    }
    let until = http_date(text)?;
    let from = header("date").and_then(http_date).or(now)?;
    Some(Millis::from_secs(u64::try_from(until - from).unwrap_or(0)))
}

/// Seconds since 1970 of an HTTP date (RFC 9110 5.6.7, the preferred form).
fn http_date(text: &str) -> Option<i64> {
    let zoned = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
    Some(zoned.timestamp().as_second())
}

/// The delay in Gemini's error details: `RetryInfo { retryDelay: "34.4s" }`.
pub(super) fn asked_by_details(error: &Value) -> Option<Millis> {
    details(error, "google.rpc.RetryInfo")
        .find_map(|info| info.get("retryDelay")?.as_str()?.strip_suffix('s'))
        .and_then(|secs| secs.parse::<f64>().ok())
        .filter(|secs| secs.is_finite() && *secs >= 0.0)
        .map(Millis::from_secs_f64)
}

/// Whether an error's JSON names a quota that waiting a little does not refill.
pub(super) fn quota_is_used_up(error: &Value) -> bool {
    let says = |key: &str| error.get(key).and_then(Value::as_str);
    if [says("code"), says("type")].contains(&Some("insufficient_quota")) {
        return true;
    }
    details(error, "google.rpc.QuotaFailure")
        .filter_map(|failure| failure.get("violations")?.as_array())
        .flatten()
        .filter_map(|violation| violation.get("quotaId")?.as_str())
        .any(|id| id.contains("PerDay"))
}

fn details<'v>(error: &'v Value, kind: &'static str) -> impl Iterator<Item = &'v Value> {
    let all = error.get("details").and_then(Value::as_array);
    all.into_iter().flatten().filter(move |detail| {
        let tag = detail.get("@type").and_then(Value::as_str);
        tag.is_some_and(|tag| tag.ends_with(kind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(status: u16, retry_after: Option<u64>) -> ProviderError {
        ProviderError::Status {
            status,
            url: String::new(),
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

    #[test]
    fn the_table() {
        let retry = |ms| Next::Retry(Millis(ms));
        let connect = ProviderError::Connect {
            url: String::new(),
            why: String::new(),
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
            (status(429, None), 4, 0, Next::Stop),
            (status(429, Some(1000)), 1, 0, retry(1100)),
            (status(429, Some(0)), 1, 0, retry(2000)),
            (status(429, Some(120_000)), 1, 0, retry(120_000)),
            (
                status(429, Some(120_001)),
                1,
                0,
                Next::TooLong(Millis(120_001)),
            ),
            (
                status(429, Some(60_000)),
                2,
                61_000,
                Next::TooLong(Millis(60_000)),
            ),
            (quota, 1, 0, Next::Stop),
            (status(500, None), 1, 0, retry(500)),
            (status(500, None), 3, 0, retry(2000)),
            (status(503, Some(10)), 1, 0, retry(11)),
            (status(529, None), 1, 0, retry(2000)),
            (status(408, None), 1, 0, retry(500)),
            (status(409, None), 1, 0, retry(500)),
            (status(400, None), 1, 0, Next::Stop),
            (status(401, None), 1, 0, Next::Stop),
            (status(307, None), 1, 0, Next::Stop),
            (connect.clone(), 1, 0, retry(500)),
            (connect, 1, 119_900, retry(100)),
            (cut("no end"), 2, 0, retry(1000)),
            (cut(&format!("{CAPPED}x")), 1, 0, Next::Stop),
            (in_stream(true), 1, 0, retry(500)),
            (in_stream(false), 1, 0, Next::Stop),
            (ProviderError::Malformed(String::new()), 1, 0, retry(500)),
            (ProviderError::Request(String::new()), 1, 0, Next::Stop),
            (ProviderError::Cancelled, 1, 0, Next::Stop),
        ];
        for (error, attempt, waited, expected) in cases {
            assert_eq!(
                after(&error, attempt, Millis(waited), 1.0),
                expected,
                "{error:?}, attempt {attempt}"
            );
        }
        assert_eq!(after(&status(429, None), 1, Millis(0), 0.0), retry(0));
        assert_eq!(
            after(&status(429, Some(100)), 1, Millis(0), 0.0),
            retry(100)
        );
    }

    #[test]
    fn a_delay_is_read_in_every_form_and_rubbish_in_none() {
        let sent = "Wed, 21 Oct 2015 07:28:00 GMT";
        let now = Some(1_445_412_480 + 3600);
        // (retry-after-ms, retry-after, date, milliseconds)
        let cases = [
            (None, Some("1"), None, Some(1000)),
            (None, Some(" 1.5 "), None, Some(1500)),
            (Some("250"), Some("9"), None, Some(250)),
            (Some("0.5"), None, None, Some(1)),
            (Some("soon"), Some("9"), None, Some(9000)),
            (None, Some("0"), None, Some(0)),
            (None, Some("-1"), None, None),
            (None, Some("NaN"), None, None),
            (None, Some("inf"), None, None),
            (None, Some(""), None, None),
            (None, Some("later"), None, None),
            (None, None, Some(sent), None),
            (
                None,
                Some("Wed, 21 Oct 2015 07:28:30 GMT"),
                Some(sent),
                Some(30_000),
            ),
            (
                None,
                Some("Wed, 21 Oct 2015 07:27:30 GMT"),
                Some(sent),
                Some(0),
            ),
            (
                None,
                Some("Wed, 21 Oct 2015 08:28:05 GMT"),
                None,
                Some(5000),
            ),
            (None, Some("Wed, 99 Oct 2015 08:28:05 GMT"), None, None),
        ];
        for (ms, after, date, expected) in cases {
            let header = |name: &str| match name {
                "retry-after-ms" => ms,
                "retry-after" => after,
                "date" => date,
                _ => None,
            };
            assert_eq!(
                asked_by_headers(header, now),
                expected.map(Millis),
                "{ms:?} {after:?} {date:?}"
            );
        }
        let huge = asked_by_headers(|n| (n == "retry-after").then_some("1e300"), None);
        assert!(huge > Some(MAX_WAIT), "huge is not rubbish: it is too long");
    }

    #[test]
    fn gemini_says_its_delay_and_its_daily_quota_in_the_body() {
        let error = json!({"code": 429, "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"},
        ]});
        assert_eq!(asked_by_details(&error), Some(Millis(34_400)));
        assert!(!quota_is_used_up(&error));
        let daily = json!({"details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]});
        assert!(quota_is_used_up(&daily));
        assert!(quota_is_used_up(&json!({"code": "insufficient_quota"})));
        assert!(!quota_is_used_up(&json!({"code": "rate_limit_exceeded"})));
    }

    #[test]
    fn a_hundred_refused_together_do_not_come_back_together() {
        for asked in [None, Some(10_000)] {
            let mut waits: Vec<u64> = (0..100)
                .map(|cell| {
                    let chance = super::super::attempts::chance(cell, 0, 1);
                    match after(&status(429, asked), 1, Millis(0), chance) {
                        Next::Retry(wait) => wait.0,
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
}

//! The delays and rate limits that servers report in headers and error bodies.
//!
//! Times are relative to the reply's own `Date`, so that a wrong local clock does no harm. Unreadable values are
//! ignored.

use serde_json::Value;

use crate::model::Millis;

/// The rate limits that a server reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// The limit on requests.
    pub requests: Option<RemainingLimit>,
    /// The limit on tokens.
    pub tokens: Option<RemainingLimit>,
}

/// The rest of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingLimit {
    /// The amount that is left.
    pub remaining: u64,
    /// The full amount, if the server reported it.
    pub limit: Option<u64>,
    /// The time until the limit is full again.
    pub reset: Option<Millis>,
}

impl RateLimitStatus {
    /// The time until a request is possible again, if a limit is exhausted.
    pub fn time_until_refill(&self) -> Option<Millis> {
        let both = [self.requests, self.tokens];
        let spent = both
            .into_iter()
            .flatten()
            .filter(|left| left.remaining == 0);
        spent.filter_map(|left| left.reset).max()
    }
}

/// Reads the delay that headers ask for.
///
/// `header` returns a header by its lower-case name. `now` is the local time in seconds since 1970, for servers
/// without `Date`.
pub(super) fn delay_from_headers<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    now: Option<i64>,
) -> Option<Millis> {
    // This header is more precise than the standard one.
    if let Some(ms) = header("retry-after-ms").and_then(parse_number) {
        return Some(Millis::from_secs_f64(ms / 1000.0));
    }
    let text = header("retry-after")?;
    if let Some(secs) = parse_number(text) {
        return Some(Millis::from_secs_f64(secs));
    }
    let until = parse_http_date(text)?;
    // The server's own clock, because the local one may be wrong.
    let from = header("date").and_then(parse_http_date).or(now)?;
    Some(Millis::from_secs(u64::try_from(until - from).unwrap_or(0)))
}

/// Parses a number of at least 0.
fn parse_number(text: &str) -> Option<f64> {
    let n: f64 = text.trim().parse().ok()?;
    (n.is_finite() && n >= 0.0).then_some(n)
}

/// Parses an HTTP date in the three forms of RFC 9110 5.6.7 to seconds since 1970.
fn parse_http_date(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(zoned) = jiff::fmt::rfc2822::parse(text) {
        return Some(zoned.timestamp().as_second());
    }
    // RFC 850, then C's asctime; both mean UTC.
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
        .iter()
        .find_map(|format| {
            let time = jiff::fmt::strtime::parse(format, text).ok()?;
            let time = time.to_datetime().ok()?;
            let utc = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
            Some(utc.timestamp().as_second())
        })
}

/// Reads `x-ratelimit-*` (OpenAI and compatible servers) and `anthropic-ratelimit-*`.
pub(super) fn rate_limits_from_headers<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    now: Option<i64>,
) -> RateLimitStatus {
    let from = header("date").and_then(parse_http_date).or(now);
    let parse_count = |name: String| header(&name)?.trim().parse().ok();
    let left = |name: &dyn Fn(&str) -> String| {
        Some(RemainingLimit {
            remaining: parse_count(name("remaining"))?,
            limit: parse_count(name("limit")),
            reset: header(&name("reset")).and_then(|text| parse_reset(text, from)),
        })
    };
    let find_limit = |what: &str| {
        ["x-ratelimit", "anthropic-ratelimit"]
            .iter()
            .find_map(|kind| {
                left(&|part| format!("{kind}-{part}-{what}"))
                    // OpenAI writes `remaining-requests`, Anthropic `requests-remaining`.
                    .or_else(|| left(&|part| format!("{kind}-{what}-{part}")))
            })
    };
    RateLimitStatus {
        requests: find_limit("requests").or_else(|| left(&|part| format!("x-ratelimit-{part}"))),
        // Anthropic also reports input and output apart; a judge sends far more than it receives.
        tokens: find_limit("tokens").or_else(|| find_limit("input-tokens")),
    }
}

/// Parses the time until a limit is full again.
///
/// Accepts `6m0s`, `250ms`, seconds, seconds or milliseconds since 1970, and RFC 3339.
fn parse_reset(text: &str, now: Option<i64>) -> Option<Millis> {
    let text = text.trim();
    let since = |then_ms: f64| {
        let now = now? as f64 * 1000.0;
        Some(Millis::from_secs_f64((then_ms - now).max(0.0) / 1000.0))
    };
    if let Some(n) = parse_number(text) {
        return match n {
            // Below 1e8 it can only be a duration; 1e8 s since 1970 is 1973, 1e11 ms too.
            n if n < 1e8 => Some(Millis::from_secs_f64(n)),
            n if n < 1e11 => since(n * 1000.0),
            n => since(n),
        };
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return since(time.as_millisecond() as f64);
    }
    parse_go_duration(text)
}

/// Parses a duration as Go writes it: `1h2m3.5s`, `17ms`.
fn parse_go_duration(text: &str) -> Option<Millis> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let n = parse_number(&rest[..digits])?;
        rest = &rest[digits..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        seconds += n * match &rest[..unit] {
            "d" => 86_400.0,
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        rest = &rest[unit..];
    }
    (!text.is_empty()).then(|| Millis::from_secs_f64(seconds))
}

/// Reads the delay in Gemini's error details: `RetryInfo { retryDelay: "34.4s" }`.
pub(super) fn delay_from_details(error: &Value) -> Option<Millis> {
    find_details(error, "google.rpc.RetryInfo")
        .find_map(|info| info.get("retryDelay")?.as_str()?.strip_suffix('s'))
        .and_then(parse_number)
        .map(Millis::from_secs_f64)
}

/// Returns whether an error names a quota that a short wait does not refill.
pub(super) fn is_quota_exhausted(error: &Value) -> bool {
    let says = |key: &str| error.get(key).and_then(Value::as_str);
    if [says("code"), says("type")].contains(&Some("insufficient_quota")) {
        return true;
    }
    find_details(error, "google.rpc.QuotaFailure")
        .filter_map(|failure| failure.get("violations")?.as_array())
        .flatten()
        .filter_map(|violation| violation.get("quotaId")?.as_str())
        // Google names the period only in the quota's id.
        .any(|id| id.contains("PerDay"))
}

fn find_details<'v>(error: &'v Value, kind: &'static str) -> impl Iterator<Item = &'v Value> {
    let all = error.get("details").and_then(Value::as_array);
    all.into_iter().flatten().filter(move |detail| {
        let tag = detail.get("@type").and_then(Value::as_str);
        tag.is_some_and(|tag| tag.ends_with(kind))
    })
}

#[cfg(test)]
mod tests {
    use super::super::retry::MAX_WAIT;
    use super::*;
    use serde_json::json;

    const SENT: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
    const SENT_S: i64 = 1_445_412_480;

    fn after(text: &str, date: Option<&str>) -> Option<u64> {
        let header = |name: &str| match name {
            "retry-after" => Some(text),
            "date" => date,
            _ => None,
        };
        // Our own clock is an hour ahead.
        delay_from_headers(header, Some(SENT_S + 3600)).map(|delay| delay.0)
    }

    /// Forty values as servers, proxies and fools send them.
    #[test]
    fn delay_is_parsed_in_every_format_and_invalid_text_is_ignored() {
        let cases: &[(&str, Option<u64>)] = &[
            ("1", Some(1000)),
            ("01", Some(1000)),
            (" 1.5 ", Some(1500)),
            ("0.25", Some(250)),
            (".5", Some(500)),
            ("0", Some(0)),
            ("-0", Some(0)),
            ("+2", Some(2000)),
            ("1e1", Some(10_000)),
            ("120", Some(120_000)),
            ("120.001", Some(120_001)),
            ("86400", Some(86_400_000)),
            ("-1", None),
            ("-0.5", None),
            ("NaN", None),
            ("inf", None),
            ("-inf", None),
            ("1e400", None),
            ("", None),
            (" ", None),
            ("later", None),
            ("1s", None),
            ("1 second", None),
            ("1,5", None),
            ("0x10", None),
            ("１", None),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(30_000)),
            ("21 Oct 2015 07:28:30 GMT", Some(30_000)),
            ("Wed, 21 Oct 2015 09:28:30 +0200", Some(30_000)),
            ("Wednesday, 21-Oct-15 07:28:30 GMT", Some(30_000)),
            ("Wed Oct 21 07:28:30 2015", Some(30_000)),
            ("Mon Nov  2 07:28:00 2015", Some(12 * 86_400_000)),
            ("Wed, 21 Oct 2015 07:27:30 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(0)),
            ("Wed, 99 Oct 2015 08:28:05 GMT", None),
            ("Wednesday, 21-Oct-15 07:28:30 PST", None),
            ("Wed Oct 21 25:28:30 2015", None),
            ("2015-10-21", None),
            ("Wed, 21 Oct", None),
            ("Thu, 22 Oct 2015 07:28:00 GMT", Some(86_400_000)),
        ];
        for (text, expected) in cases {
            assert_eq!(after(text, Some(SENT)), *expected, "{text:?}");
        }
        assert_eq!(
            after("Wed, 21 Oct 2015 08:28:05 GMT", None),
            Some(5000),
            "without a date our own clock must do"
        );
        let both = delay_from_headers(
            |name| match name {
                "retry-after-ms" => Some("250"),
                "retry-after" => Some("9"),
                _ => None,
            },
            None,
        );
        assert_eq!(both, Some(Millis(250)));
        let rubbish = |name: &str| match name {
            "retry-after-ms" => Some("soon"),
            "retry-after" => Some("9"),
            _ => None,
        };
        assert_eq!(delay_from_headers(rubbish, None), Some(Millis(9000)));
        let huge = delay_from_headers(|n| (n == "retry-after").then_some("1e300"), None);
        assert!(huge > Some(MAX_WAIT), "huge is not rubbish: it is too long");
    }

    #[test]
    fn remaining_quota_is_parsed_from_each_vendors_headers() {
        let now = Some(SENT_S);
        let cases: &[(&str, Option<u64>)] = &[
            ("6m0s", Some(360_000)),
            ("17ms", Some(17)),
            ("1h2m3.5s", Some(3_723_500)),
            ("59.5", Some(59_500)),
            ("1445412490", Some(10_000)),
            ("1445412490000", Some(10_000)),
            ("2015-10-21T07:28:10Z", Some(10_000)),
            ("2015-10-21T07:27:00Z", Some(0)),
            ("", None),
            ("5 parsecs", None),
            ("s", None),
            ("-1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_reset(text, now).map(|at| at.0), *expected, "{text:?}");
        }
        let openai = rate_limits_from_headers(
            |name| match name {
                "x-ratelimit-remaining-requests" => Some("0"),
                "x-ratelimit-reset-requests" => Some("12s"),
                "x-ratelimit-remaining-tokens" => Some("900"),
                "x-ratelimit-reset-tokens" => Some("1m"),
                _ => None,
            },
            now,
        );
        assert_eq!(openai.time_until_refill(), Some(Millis(12_000)));
        assert_eq!(openai.tokens.map(|left| left.remaining), Some(900));
        let anthropic = rate_limits_from_headers(
            |name| match name {
                "date" => Some(SENT),
                "anthropic-ratelimit-input-tokens-remaining" => Some("0"),
                "anthropic-ratelimit-input-tokens-reset" => Some("2015-10-21T07:28:07Z"),
                _ => None,
            },
            None,
        );
        assert_eq!(anthropic.time_until_refill(), Some(Millis(7000)));
        assert_eq!(
            rate_limits_from_headers(|_| None, now),
            RateLimitStatus::default()
        );
    }

    #[test]
    fn gemini_delay_and_daily_quota_are_read_from_the_body() {
        let error = json!({"code": 429, "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"},
        ]});
        assert_eq!(delay_from_details(&error), Some(Millis(34_400)));
        assert!(!is_quota_exhausted(&error));
        let daily = json!({"details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]});
        assert!(is_quota_exhausted(&daily));
        assert!(is_quota_exhausted(&json!({"code": "insufficient_quota"})));
        assert!(!is_quota_exhausted(&json!({"code": "rate_limit_exceeded"})));
    }
}

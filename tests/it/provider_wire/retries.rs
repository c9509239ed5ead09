//! Retries: their causes, their times, and their records in the log.

use dicta::event::{DeltaPart, EventKind, HttpExchange, TurnFact};
use dicta::model::ProviderKind;
use dicta::provider::ProviderError;
use serde_json::json;

use super::harness::{ALL, KEY, ProviderHarness, deltas, failures, kind};
use crate::support::wire::{Reply, WireServer};

#[tokio::test]
async fn status_429_is_retried_after_its_stated_delay() {
    let mut harness = ProviderHarness::openai(vec![
        Reply::status(429).header("retry-after", "2"),
        Reply::text("ok"),
    ]);
    let (result, facts, waits) = harness.call().await;
    let (attempt, finished) = result.expect("the second attempt");
    assert_eq!((attempt, finished.reply.text.as_str()), (2, "ok"));
    assert!((2000..=2200).contains(&waits[0]), "{waits:?}");
    assert_eq!(failures(&facts)[0].1, Some(429));
    assert_eq!(facts[0], TurnFact::AttemptStarted { attempt: 1 });
    assert_eq!(facts[2], TurnFact::AttemptStarted { attempt: 2 });
}

#[tokio::test]
async fn gemini_states_the_retry_delay_in_the_body() {
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}]);
    let body = json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}});
    let mut harness = ProviderHarness::gemini(vec![
        Reply::status(429).body(body.to_string()),
        Reply::text("ok"),
    ]);
    let (result, _, waits) = harness.call().await;
    assert_eq!(result.expect("the second attempt").0, 2);
    assert!((3500..=3850).contains(&waits[0]), "{waits:?}");
}

#[tokio::test]
async fn model_call_has_at_most_four_attempts() {
    let mut harness = ProviderHarness::openai((0..9).map(|_| Reply::status(502)).collect());
    let (result, facts, waits) = harness.call().await;
    let error = result.expect_err("never better");
    assert_eq!(error.status(), Some(502));
    assert_eq!(failures(&facts).len(), 4);
    assert_eq!(waits.len(), 3, "nothing is waited for after the last");
    assert_eq!(harness.server.requests().len(), 4);
    assert!(
        error.to_string().contains("502 from http://127.0.0.1"),
        "{error}"
    );
}

#[tokio::test]
async fn permanent_error_is_not_retried() {
    let quota =
        r#"{"error":{"message":"you exceeded your current quota","code":"insufficient_quota"}}"#;
    let daily = json!({"error": {"code": 429, "message": "daily", "details": [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDay"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}]}});
    for (what, reply) in [
        ("a bad request", Reply::status(400)),
        ("a bad key", Reply::status(401)),
        ("no such model", Reply::status(404)),
        ("an empty account", Reply::status(429).body(quota)),
        ("a daily quota", Reply::status(429).body(daily.to_string())),
        (
            "a server that says so",
            Reply::status(503).header("x-should-retry", "false"),
        ),
        (
            "an error by the client's fault",
            Reply::text("x").then_error(json!({"code": 400, "message": "bad"})),
        ),
    ] {
        let mut harness = ProviderHarness::openai(vec![reply]);
        let (result, _, waits) = harness.call().await;
        assert!(result.is_err(), "{what}");
        assert_eq!(waits, Vec::<u64>::new(), "{what}");
        assert_eq!(harness.server.requests().len(), 1, "{what}");
    }
    let mut harness =
        ProviderHarness::openai(vec![Reply::status(429).header("retry-after", "300")]);
    let (result, _, waits) = harness.call().await;
    let error = result.expect_err("too long");
    assert!(
        error
            .to_string()
            .contains("limited until 1970-01-01 00:05:00 UTC: the server asks to wait 5 min 00 s"),
        "{error}"
    );
    assert_eq!(waits, Vec::<u64>::new());
}

#[tokio::test]
async fn max_attempts_of_the_judge_applies() {
    for most in [1, 2, 6] {
        let server = WireServer::openai((0..9).map(|_| Reply::status(502)).collect());
        let mut harness = ProviderHarness::with(server, ProviderKind::Openai, |config| {
            config.max_attempts = Some(most);
        });
        let (result, _, waits) = harness.call().await;
        assert!(result.is_err());
        assert_eq!(harness.server.requests().len(), usize::from(most));
        assert_eq!(waits.len() + 1, usize::from(most));
    }
}

#[tokio::test]
async fn local_server_with_equal_500s_gets_every_attempt() {
    // A gateway on this machine, such as LiteLLM, repeats the errors of a distant server.
    let failed =
        || Reply::status(500).body(r#"{"error":{"code":500,"message":"upstream failed"}}"#);
    let mut harness =
        ProviderHarness::openai(vec![failed(), failed(), failed(), Reply::text("ok")]);
    let (result, _, waits) = harness.call().await;
    assert_eq!(result.expect("the last attempt").0, 4);
    assert_eq!(waits.len(), 3);
}

#[tokio::test]
async fn local_server_that_refuses_a_setting_with_500_is_asked_without_it() {
    let refused =
        r#"{"error":{"code":500,"message":"Unsupported param: seed","type":"server_error"}}"#;
    let server = WireServer::openai(vec![Reply::status(500).body(refused), Reply::text("ok")]);
    let mut harness = ProviderHarness::with(server, ProviderKind::Openai, |config| {
        config.seed = Some(7);
        config.max_attempts = Some(1);
    });
    let (result, _, waits) = harness.call().await;
    assert_eq!(
        result.expect("without it").0,
        2,
        "that attempt does not count"
    );
    assert_eq!(waits, [0]);
}

#[tokio::test]
async fn absurd_delay_is_stated_without_its_number() {
    for absurd in ["99999999999999999999", "1e300"] {
        let refused = Reply::status(429).header("retry-after", absurd);
        let mut harness = ProviderHarness::openai(vec![refused]);
        let (result, _, waits) = harness.call().await;
        let error = result.expect_err("limited").to_string();
        assert!(
            error.contains("the server asks to wait more than a year, longer than a call waits"),
            "{error}"
        );
        assert_eq!(waits, Vec::<u64>::new());
    }
}

/// Sends, and returns the notes as well.
async fn send_noting(
    harness: &mut ProviderHarness,
) -> (Result<String, ProviderError>, Vec<String>) {
    let sent = harness.send().await.map(|finished| finished.reply.text);
    let mut notes = Vec::new();
    while let Ok(envelope) = harness.facts.try_recv() {
        if let EventKind::Note { text, .. } = envelope.kind {
            notes.push(text);
        }
    }
    (sent, notes)
}

#[tokio::test]
async fn request_on_a_closed_reused_connection_is_sent_again_at_once() {
    for dialect in ALL {
        for stream in [true, false] {
            let replies = vec![Reply::text("one").then_close_with(""), Reply::text("two")];
            let server = WireServer::scripted(dialect, replies);
            let mut harness =
                ProviderHarness::with(server, kind(dialect), |config| config.stream = stream);
            let (first, notes) = send_noting(&mut harness).await;
            assert_eq!(first.expect("a reply"), "one");
            assert_eq!(notes, Vec::<String>::new());
            let (second, notes) = send_noting(&mut harness).await;
            assert_eq!(second.expect("a reply"), "two", "{dialect:?}, {stream}");
            assert_eq!(
                notes,
                [
                    "the server had closed the reused connection; the request was sent again on a new one"
                ]
            );
            let requests = harness.server.requests();
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[0].body, requests[1].body);
        }
    }
}

#[tokio::test]
async fn request_is_not_sent_again_after_a_byte_or_on_a_new_connection() {
    // The server began its answer: the request may be billed.
    for bytes in [
        "H",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
    ] {
        let replies = vec![
            Reply::text("one").then_close_with(bytes),
            Reply::text("two"),
        ];
        let mut harness = ProviderHarness::openai(replies);
        assert_eq!(send_noting(&mut harness).await.0.expect("a reply"), "one");
        let (second, notes) = send_noting(&mut harness).await;
        second.expect_err("it broke");
        assert_eq!(
            (harness.server.requests().len(), notes.len()),
            (1, 0),
            "{bytes:?}"
        );
    }
    // A new connection that ends without a byte is a failed attempt.
    let mut harness = ProviderHarness::openai(vec![Reply::nothing(), Reply::text("ok")]);
    let (result, facts, waits) = harness.call().await;
    assert_eq!(result.expect("the second attempt").0, 2);
    assert_eq!((failures(&facts).len(), waits.len()), (1, 1));
    // The second connection is closed as well: one attempt, two requests.
    let replies = vec![Reply::text("one").then_close_with(""), Reply::nothing()];
    let mut harness = ProviderHarness::openai(replies);
    assert!(send_noting(&mut harness).await.0.is_ok());
    let (second, _) = send_noting(&mut harness).await;
    assert!(matches!(second, Err(ProviderError::Connect { .. })));
    assert_eq!(harness.server.requests().len(), 2);
}

#[tokio::test]
async fn error_that_asks_for_a_retry_is_retried() {
    let again = Reply::status(418).header("x-should-retry", "true");
    let mut harness = ProviderHarness::openai(vec![again, Reply::text("ok")]);
    let (result, _, waits) = harness.call().await;
    assert_eq!(result.expect("the second attempt").0, 2);
    assert!(waits[0] <= 500, "{waits:?}");
}

#[tokio::test]
async fn exhausted_limit_header_delays_the_retry() {
    let refused = Reply::status(429)
        .header("x-ratelimit-remaining-requests", "0")
        .header("x-ratelimit-reset-requests", "7.5s");
    let mut harness = ProviderHarness::openai(vec![refused, Reply::text("ok")]);
    let (result, _, waits) = harness.call().await;
    assert!(result.is_ok());
    assert!((7500..=8250).contains(&waits[0]), "{waits:?}");
}

/// The recorded exchange of an attempt equals the golden one.
#[tokio::test]
async fn each_attempt_records_its_http_exchange() {
    let mut harness = ProviderHarness::openai(vec![
        Reply::status(429)
            .body(r#"{"error":"slow"}"#)
            .header("x-request-id", "req_1")
            .header("retry-after", "1"),
        Reply::text("the first half")
            .cut_at(300)
            .header("x-request-id", "req_2"),
        Reply::text("ok").header("request-id", KEY),
    ]);
    let (result, facts, _) = harness.call().await;
    assert_eq!(result.expect("the third").0, 3);
    let exchanges: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            TurnFact::AttemptFailed {
                status,
                wait_why,
                exchange,
                ..
            } => Some((*status, wait_why.as_deref(), exchange.clone())),
            _ => None,
        })
        .collect();
    let exchange = |id: &str, bytes, cost_unknown| {
        Some(HttpExchange {
            request_id: Some(id.to_owned()),
            bytes,
            cost_unknown,
        })
    };
    assert_eq!(
        exchanges,
        [
            (
                Some(429),
                Some("the server's own delay"),
                exchange("req_1", 16, false)
            ),
            (None, Some("back-off"), exchange("req_2", 300, true)),
        ]
    );
    let last = harness
        .provider
        .last_exchange(harness.cx.cell)
        .expect("of the third");
    assert_eq!(
        last.exchange.request_id.as_deref(),
        Some("[redacted]"),
        "a key that comes back in a header stays hidden"
    );
    assert!(last.exchange.bytes > 0 && !last.exchange.cost_unknown);
}

#[tokio::test]
async fn cut_attempt_is_void_and_the_next_attempt_counts() {
    let mut harness = ProviderHarness::openai(vec![
        Reply::text("the first that was never finished").cut_at(600),
        Reply::text("the second"),
    ]);
    let (result, facts, _) = harness.call().await;
    let (attempt, finished) = result.expect("the second attempt");
    assert_eq!((attempt, finished.reply.text.as_str()), (2, "the second"));
    let first = deltas(&facts, 1, DeltaPart::Text);
    assert!(!first.is_empty() && "the first that was never finished".starts_with(&first));
    assert_eq!(deltas(&facts, 2, DeltaPart::Text), "the second");
    let failed = facts
        .iter()
        .position(|f| matches!(f, TurnFact::AttemptFailed { .. }));
    let late = facts
        .iter()
        .rposition(|f| matches!(f, TurnFact::Delta { attempt: 1, .. }));
    assert!(late < failed, "what is void was told before");
}

#[tokio::test]
async fn unsupported_setting_is_left_out_and_remembered() {
    let refused = json!({"error": {"message": "Unsupported value: 'temperature' does not support 0 with this model.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}});
    let renamed = json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}});
    let mut harness = ProviderHarness::openai(vec![
        Reply::status(400).body(refused.to_string()),
        Reply::status(400).body(renamed.to_string()),
        Reply::text("ok"),
        Reply::text("ok"),
    ]);
    let (result, facts, waits) = harness.call().await;
    assert_eq!(result.expect("the third attempt").0, 3);
    assert_eq!(waits, [0, 0]);
    let why = failures(&facts);
    assert!(
        why[0].2.ends_with("asking again without `temperature`"),
        "{why:?}"
    );
    assert!(
        why[1].2.ends_with("asking again without `max_tokens`"),
        "{why:?}"
    );
    let requests = harness.server.requests();
    assert_eq!(requests[0].json()["temperature"], json!(0.0));
    assert_eq!(requests[2].json().get("temperature"), None);
    assert_eq!(requests[2].json()["max_completion_tokens"], json!(4096));
    let next = harness.body();
    let dropped: Vec<&str> = next.dropped.iter().map(|d| d.what.as_str()).collect();
    assert_eq!(dropped, ["temperature", "max_tokens"]);
    assert!(harness.send().await.is_ok());
    let last = harness.server.requests().pop().expect("four").json();
    assert_eq!(last.get("temperature"), None);
    assert_eq!(last["max_completion_tokens"], json!(4096));
}

#[tokio::test]
async fn missing_server_is_a_connection_error_with_the_address() {
    let server = WireServer::openai(Vec::new());
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = free.local_addr().expect("bound");
    drop(free);
    let mut harness = ProviderHarness::with(server, ProviderKind::Openai, |config| {
        config.base_url = Some(format!("http://user:secret-word@{address}/v1?key=hidden"));
    });
    let (result, facts, waits) = harness.call().await;
    let error = result.expect_err("nobody listens");
    let text = error.to_string();
    assert!(matches!(error, ProviderError::Connect { .. }), "{text}");
    assert!(text.contains(&address.to_string()), "{text}");
    assert!(
        !text.contains("secret-word") && !text.contains("hidden"),
        "{text}"
    );
    assert_eq!((failures(&facts).len(), waits.len()), (4, 3));
}

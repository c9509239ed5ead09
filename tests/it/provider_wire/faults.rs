//! Each fault of a reply is its own error, and none is a reply.

use dicta::clock::Clock as _;
use dicta::event::{DeltaPart, TurnFact};
use dicta::model::{Millis, ProviderKind, StopReason, TokenUsage};
use dicta::provider::{self, ProviderError};
use serde_json::{Value, json};

use super::harness::{ALL, ProviderHarness, deltas, failures, kind, turn_fact};
use crate::support::wire::{Dialect, Pause, Reply, WireServer};

/// The expected result of a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Cut,
    Malformed,
    WrongProtocol,
    InStream,
    Status(u16),
}

fn fault_of(error: &ProviderError) -> Fault {
    match error {
        ProviderError::Cut { .. } => Fault::Cut,
        ProviderError::Malformed(_) => Fault::Malformed,
        ProviderError::WrongProtocol(_) => Fault::WrongProtocol,
        ProviderError::InStream { .. } => Fault::InStream,
        ProviderError::Status { status, .. } => Fault::Status(*status),
        other => panic!("not a fault of a reply: {other:?}"),
    }
}

#[tokio::test]
async fn each_broken_reply_has_its_own_error() {
    let verdict = || Reply::text(r#"{"passed": true, "score": 1.0, "reasoning": "all good"}"#);
    let boom = || json!({"code": 503, "message": "boom"});
    let both = [
        ("broken connection", verdict().cut_at(200), Fault::Cut),
        (
            "broken before the first byte",
            verdict().cut_at(0),
            Fault::Cut,
        ),
        ("ended inside an event", verdict().end_at(200), Fault::Cut),
        ("empty", verdict().end_at(0), Fault::Cut),
        (
            "no finish reason",
            verdict().finish("").no_done(),
            Fault::Cut,
        ),
        (
            "half an object",
            verdict().then_malformed(),
            Fault::Malformed,
        ),
        (
            "error in the stream",
            verdict().then_error(boom()),
            Fault::InStream,
        ),
        (
            "200 with an error",
            Reply::raw(r#"{"error":{"message":"boom"}}"#),
            Fault::InStream,
        ),
        (
            "200 with a page",
            Reply::raw("<html>hello</html>\n"),
            Fault::WrongProtocol,
        ),
        (
            "200 with events of another protocol",
            Reply::raw("data: {\"method\": \"POST\"}\n\ndata: [DONE]\n\n"),
            Fault::WrongProtocol,
        ),
        (
            "compressed",
            verdict().header("content-encoding", "gzip"),
            Fault::WrongProtocol,
        ),
        ("400", Reply::status(400), Fault::Status(400)),
        ("401", Reply::status(401), Fault::Status(401)),
        (
            "404 as a page",
            Reply::status(404).body("<html>"),
            Fault::Status(404),
        ),
        ("429", Reply::status(429), Fault::Status(429)),
        ("500", Reply::status(500), Fault::Status(500)),
        (
            "503 cut short",
            Reply::status(503).cut_at(5),
            Fault::Status(503),
        ),
        (
            "a redirect",
            Reply::status(307).header("location", "http://other.example/"),
            Fault::Status(307),
        ),
    ];
    for dialect in ALL {
        for (what, reply, expected) in &both {
            let harness = ProviderHarness::of(dialect, vec![reply.clone()]);
            let error = harness.send().await.expect_err(what);
            assert_eq!(fault_of(&error), *expected, "{dialect:?}: {what}: {error}");
            assert_eq!(
                harness.server.requests().len(),
                1,
                "one send is one attempt"
            );
        }
    }
    // Whole replies break in the same ways.
    for (what, reply, expected) in [
        ("cut", verdict().cut_at(60), Fault::Cut),
        ("ended early", verdict().end_at(60), Fault::Cut),
        ("a page", Reply::raw("<html>"), Fault::WrongProtocol),
        (
            "JSON of another kind",
            Reply::raw(r#"{"method": "POST"}"#),
            Fault::WrongProtocol,
        ),
        (
            "an error",
            Reply::raw(r#"{"error":"boom"}"#),
            Fault::InStream,
        ),
    ] {
        for (kind, server) in [
            (
                ProviderKind::Openai,
                WireServer::openai(vec![reply.clone()]),
            ),
            (
                ProviderKind::Gemini,
                WireServer::gemini(vec![reply.clone()]),
            ),
        ] {
            let harness = ProviderHarness::with(server, kind, |config| config.stream = false);
            let error = harness.send().await.expect_err(what);
            assert_eq!(fault_of(&error), expected, "{kind:?}: {what}: {error}");
        }
    }
}

#[tokio::test]
async fn reply_of_another_protocol_is_not_retried() {
    let page = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body>Sign in to go on</body></html>\n";
    for dialect in ALL {
        for (reply, words) in [
            (
                Reply::raw(page),
                "it holds no events: a web page: Sign in Sign in to go on",
            ),
            (
                Reply::raw("data: {\"method\": \"POST\"}\n\n"),
                r#"{"method": "POST"}"#,
            ),
            (
                Reply::text("x").header("content-encoding", "br"),
                "compressed (br)",
            ),
        ] {
            let mut harness = ProviderHarness::of(dialect, vec![reply, Reply::text("ok")]);
            let (result, _, waits) = harness.call().await;
            let error = result.expect_err("another protocol").to_string();
            assert!(error.contains(words), "{dialect:?}: {error}");
            assert_eq!(waits, Vec::<u64>::new(), "{dialect:?}: {error}");
        }
    }
}

#[tokio::test]
async fn complete_reply_without_a_finish_reason_is_read() {
    let reply = || {
        Reply::text("fine")
            .and_call("f", json!({"n": 1}))
            .finish("")
    };
    for (dialect, stream) in [
        (Dialect::Openai, true),
        (Dialect::Openai, false),
        (Dialect::Anthropic, true),
        (Dialect::Anthropic, false),
        (Dialect::Gemini, false),
    ] {
        let server = WireServer::scripted(dialect, vec![reply()]);
        let harness = ProviderHarness::with(server, kind(dialect), |config| config.stream = stream);
        let read = harness.send().await.expect("a complete reply").reply;
        assert_eq!(read.stop, StopReason::Unknown, "{dialect:?}, {stream}");
        assert_eq!((read.text.as_str(), read.calls.len()), ("fine", 1));
    }
    // Without an end mark, a stream without a reason was cut.
    for dialect in ALL {
        let harness = ProviderHarness::of(dialect, vec![reply().no_done()]);
        let error = harness.send().await.expect_err("no end");
        assert_eq!(fault_of(&error), Fault::Cut, "{dialect:?}: {error}");
    }
}

#[tokio::test]
async fn surrogate_pairs_cut_between_chunks_are_joined() {
    let arguments = json!({"query": "a🚀🚀b"});
    for dialect in ALL {
        for units in 1..=5 {
            let reply = Reply::text("é🚀🚀 done 😀")
                .thinking("hm🚀")
                .and_call("f", arguments.clone())
                .cut_pairs(units);
            let mut harness = ProviderHarness::of(dialect, vec![reply]);
            let (result, facts, _) = harness.call().await;
            let (attempt, finished) = result.expect("a reply");
            assert_eq!(attempt, 1, "{dialect:?} by {units}");
            let read = &finished.reply;
            assert_eq!(
                (read.text.as_str(), read.thought.as_str()),
                ("é🚀🚀 done 😀", "hm🚀"),
                "{dialect:?} by {units}"
            );
            let sent: Value = serde_json::from_str(&read.calls[0].raw).expect("JSON");
            assert_eq!(sent, arguments, "{dialect:?} by {units}");
            assert_eq!(deltas(&facts, 1, DeltaPart::Text), read.text);
            let native: Vec<&str> = finished.native.iter().map(|item| item.get()).collect();
            assert!(!native.concat().contains('\u{fffd}'), "{native:?}");
        }
    }
}

#[tokio::test]
async fn lone_half_of_a_surrogate_pair_is_replaced() {
    // The wire kit writes this character as the escape of a half.
    let reply = || Reply::text("a\u{E03D}b").cut_pairs(100);
    for dialect in ALL {
        for stream in [true, false] {
            let server = WireServer::scripted(dialect, vec![reply()]);
            let harness =
                ProviderHarness::with(server, kind(dialect), |config| config.stream = stream);
            let read = harness.send().await.expect("a reply").reply;
            assert_eq!(read.text, "a\u{fffd}b", "{dialect:?}, {stream}");
        }
    }
    let body = r#"{"error":{"message":"bad \ud83d text"}}"#;
    let harness = ProviderHarness::openai(vec![Reply::status(400).body(body)]);
    let error = harness.send().await.expect_err("refused").to_string();
    assert!(error.ends_with(": bad \u{fffd} text"), "{error}");
}

#[tokio::test]
async fn missing_end_marker_is_accepted_after_a_stop_reason() {
    let harness = ProviderHarness::openai(vec![Reply::text("fine").no_done()]);
    assert_eq!(harness.send().await.expect("a reply").reply.text, "fine");
}

#[tokio::test]
async fn cut_reply_reports_its_cost() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n";
    let harness = ProviderHarness::openai(vec![Reply::text("x").then_raw(usage)]);
    let error = harness.send().await.expect_err("no finish reason");
    let billed = TokenUsage {
        input: Some(7),
        output: Some(1),
        calls: 1,
        ..TokenUsage::default()
    };
    assert_eq!(error.billed_usage(), Some(billed));
}

#[tokio::test]
async fn cancelled_call_closes_its_connection() {
    for dialect in ALL {
        let pause = Pause::new();
        let reply = Reply::text("some text")
            .piece_len(2)
            .pause_before(2, &pause);
        let mut harness = ProviderHarness::of(dialect, vec![reply]);
        let cancel = harness.cx.cancel.clone();
        let stop = async {
            pause.reached().await;
            cancel.cancel();
        };
        let ((result, facts, _), ()) = tokio::join!(harness.call(), stop);
        assert!(matches!(result, Err(ProviderError::Cancelled)));
        assert_eq!(failures(&facts), [(1, None, "cancelled")]);
        pause.go();
        harness.server.all_closed().await;
        assert_eq!(harness.server.requests().len(), 1);
    }
    // While it waits for the next attempt, too.
    let harness = ProviderHarness::openai(vec![Reply::status(429)]);
    let (cancel, body) = (harness.cx.cancel.clone(), harness.body());
    let mut facts = harness.facts;
    let stop = async {
        while let Some(envelope) = facts.recv().await {
            if matches!(turn_fact(envelope), TurnFact::AttemptFailed { .. }) {
                return cancel.cancel();
            }
        }
    };
    let (result, ()) = tokio::join!(
        provider::call_with_retries(&*harness.provider, &body, &harness.cx),
        stop
    );
    assert!(matches!(result, Err(ProviderError::Cancelled)));
}

#[tokio::test]
async fn endless_reply_ends_at_the_limit_without_a_retry() {
    let mut harness =
        ProviderHarness::openai(vec![Reply::text("x").endless().finish("").no_done()]);
    // The test reads no deltas of 64 MiB; a closed channel discards them.
    harness.facts.close();
    let body = harness.body();
    let result = provider::call_with_retries(&*harness.provider, &body, &harness.cx).await;
    let error = result.expect_err("no end");
    assert_eq!(fault_of(&error), Fault::Cut);
    assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
    assert_eq!(harness.server.requests().len(), 1);
}

#[tokio::test]
async fn silent_server_times_out_on_the_judges_clock() {
    let pause = Pause::new();
    let reply = Reply::text("some text")
        .piece_len(2)
        .pause_before(3, &pause);
    let harness = ProviderHarness::openai(vec![reply]);
    let waiting = async {
        pause.reached().await;
        while harness.clock.now() < Millis(600_000) {
            tokio::task::yield_now().await;
            harness.clock.advance(Millis(1000));
        }
    };
    let result = tokio::select! {
        result = harness.send() => result,
        () = waiting => panic!("ten minutes of silence"),
    };
    let error = result.expect_err("silence");
    assert_eq!(fault_of(&error), Fault::Cut, "{error}");
}

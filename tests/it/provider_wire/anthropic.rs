//! Anthropic Messages over the wire: what is sent, what comes back, and that no fault becomes a reply.

use dicta::model::{HistoryItem, ProviderKind, StopReason, TokenUsage, ToolResponse};
use dicta::provider::{CompletedReply, ProviderError, ToolChoice};
use serde_json::json;

use super::harness::{KEY, ProviderHarness, asked, decl, failures, keys};
use crate::support::wire::{Reply, WireServer};

fn harness(replies: Vec<Reply>) -> ProviderHarness {
    ProviderHarness::anthropic(replies)
}

#[tokio::test]
async fn anthropic_request_has_key_and_version_and_no_tool_key() {
    let harness = ProviderHarness::with(
        WireServer::anthropic(vec![Reply::text("ok"), Reply::text("ok")]),
        ProviderKind::Anthropic,
        |config| {
            config.seed = Some(7);
            config.max_output_tokens = None;
            "claude-opus-5".clone_into(&mut config.model);
        },
    );
    for choice in [
        ToolChoice::NoTools,
        ToolChoice::Schema(json!({"type": "object"})),
    ] {
        let body = harness.body_of(&asked(), &[], choice);
        let dropped: Vec<&str> = body.dropped.iter().map(|d| d.what.as_str()).collect();
        assert_eq!(dropped, ["temperature", "seed"]);
        let sent = harness.provider.send(&body, 1, &harness.cx).await;
        assert_eq!(sent.expect("a reply").reply.text, "ok");
    }
    for request in harness.server.requests() {
        assert_eq!(request.path, "/v1/messages");
        assert_eq!(request.header("x-api-key"), Some(KEY));
        assert_eq!(request.header("authorization"), None);
        assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
        assert!(!request.body.contains(KEY));
        let body = request.json();
        assert_eq!(body["max_tokens"], 16_384);
        for key in keys(&body) {
            let key = key.to_lowercase();
            let odd = ["tool", "seed", "temperature", "thinking"];
            assert!(!odd.iter().any(|word| key.contains(word)), "{key}");
        }
    }
}

#[tokio::test]
async fn configured_headers_take_precedence() {
    let server = WireServer::anthropic(vec![Reply::text("ok")]);
    let harness = ProviderHarness::with(server, ProviderKind::Anthropic, |config| {
        let mut set = |name: &str, value: &str| {
            config.headers.insert(name.to_owned(), value.to_owned());
        };
        set("Anthropic-Version", "2026-10-21");
        set("anthropic-beta", "a,b");
    });
    assert!(harness.send().await.is_ok());
    let request = &harness.server.requests()[0];
    assert_eq!(request.header("anthropic-version"), Some("2026-10-21"));
    assert_eq!(request.header("anthropic-beta"), Some("a,b"));
    assert_eq!(
        request.json().get("temperature"),
        None,
        "that version refuses it"
    );
}

fn thoughtful() -> Reply {
    Reply::call("fetch_url", json!({"url": "https://a.example/é"}))
        .and_call("fetch_url", json!({"url": "b"}))
        .saying("Let me look 😀.")
        .thinking("hm é")
        .signed("SIG/+=")
}

#[tokio::test]
async fn reply_does_not_depend_on_how_its_bytes_are_split() {
    let splits = [1, 2, 3, 7, 64, 100_000];
    let replies = splits.map(|n| thoughtful().split_every(n));
    let harness = harness(replies.into_iter().collect());
    let mut all: Vec<(Vec<String>, TokenUsage)> = Vec::new();
    for split in splits {
        let finished = harness.send().await.expect("a reply");
        let read = &finished.reply;
        assert_eq!(read.text, "Let me look 😀.", "by {split}");
        assert_eq!(read.thought, "hm é");
        assert_eq!(read.calls[0].raw, r#"{"url":"https://a.example/é"}"#);
        assert_eq!(read.stop, StopReason::ToolCalls);
        let native = finished.native.iter().map(|block| block.get().to_owned());
        // Ids count the server's requests.
        let native = native.map(|block| block.replace(&format!("toolu_{}", all.len()), "toolu"));
        all.push((native.collect(), finished.usage));
    }
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    let expected = TokenUsage {
        input: Some(100),
        output: Some(20),
        cached: Some(10),
        thinking: None,
        calls: 1,
    };
    assert_eq!(all[0].1, expected);
}

#[tokio::test]
async fn thinking_blocks_are_sent_back_byte_for_byte() {
    let turn = |n: u32| {
        Reply::call("fetch_url", json!({"n": n}))
            .and_call("fetch_url", json!({}))
            .thinking(format!("thought {n} é"))
            .signed(&format!("SIG{n}/+="))
    };
    let script = vec![turn(1), turn(2), turn(3), Reply::text("done")];
    let harness = harness(script);
    let tools = [decl("fetch_url"), decl("submit_verdict")];
    let mut history = asked();
    let mut natives: Vec<String> = Vec::new();
    for _ in 0..3 {
        let body = harness.body_of(&history, &tools, ToolChoice::Auto);
        let sent = harness.provider.send(&body, 1, &harness.cx).await;
        let CompletedReply { native, reply, .. } = sent.expect("calls");
        let blocks: Vec<&str> = native.iter().map(|block| block.get()).collect();
        natives.push(blocks.join(","));
        let answers = vec![ToolResponse::ok("the page"), ToolResponse::error("gone")];
        history.push(HistoryItem::Model { native, reply });
        history.push(HistoryItem::ToolResponses(answers));
    }
    let only = ToolChoice::ForcedTool("submit_verdict".to_owned());
    let body = harness.body_of(&history, &tools, only);
    let last = harness.provider.send(&body, 1, &harness.cx).await;
    assert_eq!(last.expect("no 500").reply.text, "done");
    let request = harness.server.requests().pop().expect("four");
    for native in &natives {
        let whole = format!(r#"{{"role":"assistant","content":[{native}]}}"#);
        assert!(request.body.contains(&whole), "{whole}");
    }
    let sent = request.json();
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(7));
    assert_eq!(
        sent["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "toolu_0_0", "content": "the page"},
            {"type": "tool_result", "tool_use_id": "toolu_0_1", "content": "Error: gone", "is_error": true}
        ])
    );
    assert_eq!(
        sent["tool_choice"],
        json!({"type": "tool", "name": "submit_verdict"})
    );
}

#[tokio::test]
async fn earlier_inputs_that_are_not_objects_never_reach_the_server() {
    let harness = harness(vec![
        Reply::raw_call("fetch_url", r#"{"url": "https://a.example"#),
        Reply::raw_call("fetch_url", "nonsense"),
        Reply::raw_call("fetch_url", ""),
        Reply::verdict(json!({"passed": true})),
    ]);
    let tools = [decl("fetch_url"), decl("submit_verdict")];
    let mut history = asked();
    for canonical in [r#"{"url":"https://a.example"}"#, "nonsense", ""] {
        let body = harness.body_of(&history, &tools, ToolChoice::Auto);
        let sent = harness.provider.send(&body, 1, &harness.cx).await;
        let CompletedReply { native, reply, .. } = sent.expect("a call");
        let mut view = reply;
        canonical.clone_into(&mut view.calls[0].raw);
        history.push(HistoryItem::Model {
            native,
            reply: view,
        });
        history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok(
            "the page",
        )]));
    }
    let body = harness.body_of(&history, &tools, ToolChoice::Auto);
    let last = harness.provider.send(&body, 1, &harness.cx).await;
    assert_eq!(
        last.expect("no 500").reply.calls[0].raw,
        r#"{"passed":true}"#
    );
    let sent = harness.server.requests().pop().expect("four").json();
    let inputs = [1, 3, 5].map(|at| sent["messages"][at]["content"][0]["input"].clone());
    assert_eq!(
        inputs,
        [json!({"url": "https://a.example"}), json!({}), json!({})]
    );
}

#[tokio::test]
async fn unstreamed_reply_equals_the_streamed_one() {
    let server = WireServer::anthropic(vec![thoughtful()]);
    let whole = ProviderHarness::with(server, ProviderKind::Anthropic, |config| {
        config.stream = false;
    });
    let streamed = harness(vec![thoughtful()]).send().await.expect("a reply");
    let read = whole.send().await.expect("a reply");
    assert_eq!(read.reply, streamed.reply);
    assert_eq!(read.usage, streamed.usage);
    assert!(!whole.server.requests()[0].wants_stream());
}

/// A body cut at every byte: an error, or the very same reply. Both ways an end can come: as if complete, and broken.
#[tokio::test]
async fn anthropic_stream_cut_at_any_byte_is_an_error_or_the_same_reply() {
    let short = || {
        Reply::call("f", json!({"n": 1}))
            .thinking("hm")
            .signed("S=")
            .piece_len(40)
    };
    let whole = harness(vec![short()]);
    let reply = whole.send().await.expect("a reply").reply;
    let script = |from: usize| (from..from + 100).map(move |at| short().end_at(at));
    let mut good = 0;
    for from in (0..2000).step_by(100) {
        let harness = harness(script(from).collect());
        for at in from..from + 100 {
            match harness.send().await {
                Ok(finished) => {
                    let mut read = finished.reply;
                    // Ids count the server's requests.
                    read.calls[0].id.clone_from(&reply.calls[0].id);
                    assert_eq!(read, reply, "at {at}");
                    good += 1;
                }
                Err(ProviderError::Cut { .. }) => {}
                Err(other) => panic!("at {at}: {other}"),
            }
        }
    }
    assert!(good > 0, "beyond its end it is whole");
}

#[tokio::test]
async fn errors_of_both_layouts_are_retried_by_status() {
    let anthropic = |kind: &str| {
        json!({"type": "error", "error": {"type": kind, "message": "boom"}, "request_id": "r"})
            .to_string()
    };
    let openai =
        r#"{"error":{"code":500,"message":"'messages' is required","type":"server_error"}}"#;
    // (reply, how many attempts, what is said)
    let cases = [
        (
            Reply::status(529).body(anthropic("overloaded_error")),
            4,
            "overloaded_error: boom",
        ),
        (
            Reply::status(429).body(anthropic("rate_limit_error")),
            4,
            "rate_limit_error: boom",
        ),
        (
            Reply::status(500).body(openai),
            4,
            "server_error: 'messages' is required",
        ),
        (
            Reply::status(504).body(anthropic("timeout_error")),
            4,
            "timeout_error",
        ),
        (
            Reply::status(402).body(anthropic("billing_error")),
            1,
            "billing_error: boom",
        ),
        (
            Reply::status(413).body(anthropic("request_too_large")),
            1,
            "request_too_large",
        ),
        (
            Reply::status(400).body(anthropic("invalid_request_error")),
            1,
            "invalid_request_error",
        ),
        (
            Reply::status(401).body(anthropic("authentication_error")),
            1,
            "authentication_error",
        ),
        (
            Reply::status(529).header("x-should-retry", "false"),
            1,
            "529",
        ),
        (
            Reply::text("x").then_error(json!({"type": "overloaded_error", "message": "boom"})),
            4,
            "overloaded_error",
        ),
        (
            Reply::text("x")
                .then_error(json!({"type": "invalid_request_error", "message": "boom"})),
            1,
            "boom",
        ),
        (Reply::text("x").finish("pause_turn"), 1, "pause_turn"),
        (
            Reply::text("x").finish("model_context_window_exceeded"),
            1,
            "context window",
        ),
    ];
    for (reply, attempts, expected_text) in cases {
        let mut harness = harness(vec![reply; 5]);
        let (result, facts, _) = harness.call().await;
        let error = result.expect_err(expected_text).to_string();
        assert!(error.contains(expected_text), "{error}");
        assert_eq!(failures(&facts).len(), attempts, "{error}");
    }
    let mut harness = harness(vec![
        Reply::status(429).header("retry-after-ms", "1500"),
        Reply::status(529).header("retry-after", "2"),
        Reply::text("ok"),
    ]);
    let (result, _, waits) = harness.call().await;
    assert_eq!(result.expect("the third attempt").0, 3);
    assert!((1500..=1650).contains(&waits[0]) && (2000..=2200).contains(&waits[1]));
}

#[tokio::test]
async fn refused_anthropic_setting_is_left_out_and_recorded() {
    let refusal = |message: &str| {
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
        Reply::status(400).body(error.to_string())
    };
    // (message, what is dropped, a key that the next body lacks)
    for (message, what, key) in [
        (
            "temperature: Extra inputs are not permitted",
            "temperature",
            "/temperature",
        ),
        (
            "output_config: Extra inputs are not permitted",
            "structured output and effort",
            "/output_config",
        ),
        (
            "adaptive thinking is not supported on this model",
            "reasoning",
            "/thinking",
        ),
    ] {
        let server = WireServer::anthropic(vec![refusal(message), Reply::text("ok")]);
        let mut harness = ProviderHarness::with(server, ProviderKind::Anthropic, |config| {
            config.reasoning = Some("low".to_owned());
            config.extra_body = Some(json!({"temperature": 0.5}));
            "claude-sonnet-4-6".clone_into(&mut config.model);
        });
        let (result, facts, waits) = harness.call().await;
        assert_eq!(result.expect("the second attempt").0, 2, "{message}");
        assert_eq!(waits, [0]);
        assert!(
            failures(&facts)[0]
                .2
                .contains(&format!("asking again without `{what}`"))
        );
        let requests = harness.server.requests();
        assert!(requests[0].json().pointer(key).is_some(), "{message}");
        assert_eq!(requests[1].json().pointer(key), None, "{message}");
        let dropped_name = harness.body().dropped.pop().map(|dropped| dropped.what);
        assert_eq!(dropped_name.as_deref(), Some(what), "it is remembered");
    }
}

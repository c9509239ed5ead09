//! The provider against a server that misbehaves: no fault becomes a reply, no wait is slept through, no key gets out.

mod anthropic;
mod caps;
mod faults;
mod harness;
mod leftovers;
mod matrix;
mod responses;
mod retries;
mod vertex;

use std::sync::Arc;

use dicta::event::{DeltaPart, TurnFact};
use dicta::model::{HistoryItem, Millis, ProviderKind, ReplyCall, StopReason, ToolResponse};
use dicta::provider::{self, CompletedReply, ToolChoice};
use serde_json::json;

use self::harness::{ALL, KEY, ProviderHarness, asked, decl, deltas, keys, turn_fact};
use crate::support::wire::{Dialect, Pause, Reply, WireServer};

/// Every kind of judge that is a model, with the model that it asks and the dialect in which it is answered.
const KINDS: [(ProviderKind, &str, Dialect); 6] = [
    (ProviderKind::Openai, "scripted", Dialect::Openai),
    (
        ProviderKind::OpenaiResponses,
        "scripted",
        Dialect::Responses,
    ),
    (ProviderKind::Anthropic, "scripted", Dialect::Anthropic),
    (ProviderKind::Gemini, "scripted", Dialect::Gemini),
    (ProviderKind::Vertex, "scripted", Dialect::Gemini),
    (ProviderKind::Vertex, "claude-opus-5", Dialect::Anthropic),
];

fn assert_no_tool_key(of: &str, harness: &ProviderHarness) {
    let requests = harness.server.requests();
    assert!(!requests.is_empty(), "{of}");
    for request in requests {
        let keys = keys(&request.json());
        assert!(!keys.is_empty(), "{of}");
        let of_tools = keys.iter().filter(|key| {
            let key = key.to_lowercase();
            key.contains("tool") || key.contains("function")
        });
        assert_eq!(of_tools.collect::<Vec<_>>(), Vec::<&String>::new(), "{of}");
    }
}

#[tokio::test]
async fn judge_without_tools_sends_no_tool_key() {
    for (kind, model, dialect) in KINDS {
        for stream in [true, false] {
            let server = WireServer::scripted(dialect, vec![Reply::text("ok"), Reply::text("ok")]);
            let harness = ProviderHarness::with(server, kind, |config| {
                model.clone_into(&mut config.model);
                config.stream = stream;
            });
            for choice in [
                ToolChoice::NoTools,
                ToolChoice::Schema(json!({"type": "object"})),
            ] {
                let body = harness.body_of(&asked(), &[], choice);
                let sent = harness.provider.send(&body, 1, &harness.cx).await;
                assert_eq!(sent.expect("a reply").reply.text, "ok", "{kind:?} {model}");
            }
            assert_no_tool_key(&format!("{kind:?} {model}"), &harness);
        }
    }
    for kind in [ProviderKind::OpenaiDecisions, ProviderKind::GeminiDecisions] {
        let harness = ProviderHarness::new(WireServer::openai(vec![Reply::status(400)]), kind);
        let question =
            json!([{"id": "met", "instructions": "Is it?", "among": {"yes_no": ["yes", "no"]}}]);
        let body = harness.body_of(&asked(), &[], ToolChoice::Schema(question));
        harness
            .provider
            .send(&body, 1, &harness.cx)
            .await
            .expect_err("a refusal");
        assert_no_tool_key(kind.as_str(), &harness);
    }
}

#[tokio::test]
async fn key_is_sent_only_in_its_header() {
    for (dialect, header, value) in [
        (Dialect::Openai, "authorization", format!("Bearer {KEY}")),
        (Dialect::Gemini, "x-goog-api-key", KEY.to_owned()),
    ] {
        let refusal = json!({"error": {"message": format!("bad key {KEY}"), "code": 401}});
        let harness =
            ProviderHarness::of(dialect, vec![Reply::status(401).body(refusal.to_string())]);
        let error = harness.send().await.expect_err("refused");
        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
        assert!(error.to_string().contains("bad key [redacted]"), "{error}");
        let request = &harness.server.requests()[0];
        assert_eq!(request.header(header), Some(value.as_str()));
        assert!(!request.body.contains(KEY) && !request.path.contains(KEY));
    }
}

#[tokio::test]
async fn reply_does_not_depend_on_how_its_bytes_are_split() {
    let reply = || {
        Reply::call("fetch_url", json!({"url": "https://a.example/é"}))
            .and_call("fetch_url", json!({"url": "b"}))
            .saying("Let me look 😀.")
            .thinking("hm")
    };
    for dialect in ALL {
        let splits = [1, 2, 3, 7, 64, 100_000];
        let replies = splits.iter().map(|n| reply().split_every(*n)).collect();
        let harness = ProviderHarness::of(dialect, replies);
        for split in splits {
            let finished = harness.send().await.expect("a reply");
            let read = &finished.reply;
            assert_eq!(read.text, "Let me look 😀.", "{dialect:?} by {split}");
            assert_eq!(read.thought, "hm");
            assert_eq!(read.calls.len(), 2);
            assert_eq!(read.calls[0].raw, r#"{"url":"https://a.example/é"}"#);
            assert_eq!(read.stop, StopReason::ToolCalls);
            assert_eq!(finished.usage.input, Some(100));
        }
    }
}

#[tokio::test]
async fn unstreamed_reply_is_read() {
    for (kind, server) in [
        (
            ProviderKind::Openai,
            WireServer::openai(vec![Reply::text("whole")]),
        ),
        (
            ProviderKind::Gemini,
            WireServer::gemini(vec![Reply::text("whole")]),
        ),
    ] {
        let mut harness = ProviderHarness::with(server, kind, |config| config.stream = false);
        let (result, facts, _) = harness.call().await;
        let (attempt, finished) = result.expect("a reply");
        assert_eq!((attempt, finished.reply.text.as_str()), (1, "whole"));
        assert_eq!(deltas(&facts, 1, DeltaPart::Text), "whole");
        assert!(!harness.server.requests()[0].wants_stream());
    }
}

/// As aimock says of every reply whose fixture gives no figures.
#[tokio::test]
async fn server_without_token_counts_has_unknown_cost() {
    for dialect in ALL {
        let harness = ProviderHarness::of(dialect, vec![Reply::text("ok").usage(0, 0)]);
        let usage = harness.send().await.expect("a reply").usage;
        assert_eq!((usage.input, usage.calls), (None, 1), "{dialect:?}");
    }
}

#[tokio::test]
async fn deltas_arrive_while_the_model_reasons() {
    let pause = Pause::new();
    // Pieces: the role, then the text in one.
    let reply = Reply::text("first").piece_len(5).pause_before(2, &pause);
    let mut harness = ProviderHarness::openai(vec![reply]);
    let body = harness.body();
    let (provider, cx) = (Arc::clone(&harness.provider), harness.cx.clone());
    let running =
        tokio::spawn(async move { provider::call_with_retries(&*provider, &body, &cx).await });
    assert_eq!(
        harness.facts.recv().await.map(turn_fact),
        Some(TurnFact::AttemptStarted { attempt: 1 })
    );
    pause.reached().await;
    // Gathered for 33 ms; the server says nothing more until it is let go.
    let begun = std::time::Instant::now();
    let first_text = loop {
        tokio::task::yield_now().await;
        assert!(begun.elapsed().as_secs() < 20, "the text was held back");
        if harness
            .clock
            .next_wake()
            .is_some_and(|at| at < Millis(5000))
        {
            harness.clock.advance(Millis(33));
        }
        if let Ok(envelope) = harness.facts.try_recv() {
            break turn_fact(envelope);
        }
    };
    assert_eq!(
        first_text,
        TurnFact::Delta {
            attempt: 1,
            part: DeltaPart::Text,
            text: "first".to_owned()
        }
    );
    pause.go();
    assert!(running.await.expect("no panic").is_ok());
}

/// The server answers 500 to any past argument that is not JSON; a judge of any kind never lets it come to that.
#[tokio::test]
async fn no_provider_sends_earlier_arguments_that_are_not_json() {
    for (kind, model, dialect) in KINDS {
        // Gemini's arguments are JSON by its protocol.
        let raw_calls = match dialect {
            Dialect::Gemini => ["{}"; 6],
            _ => [
                r#"{"url": "https://a.example"#,
                "nonsense",
                "",
                "[1]",
                "\"text\"",
                r#"{"a": NaN}"#,
            ],
        };
        let mut replies: Vec<Reply> = raw_calls.map(|it| Reply::raw_call("f", it)).to_vec();
        replies.push(Reply::text("done"));
        let harness =
            ProviderHarness::with(WireServer::scripted(dialect, replies), kind, |config| {
                model.clone_into(&mut config.model);
            });
        let tools = [decl("f"), decl("submit_verdict")];
        let mut history = asked();
        for raw in raw_calls {
            let body = harness.body_of(&history, &tools, ToolChoice::Auto);
            let finished = harness.provider.send(&body, 1, &harness.cx).await;
            let CompletedReply { native, reply, .. } =
                finished.unwrap_or_else(|e| panic!("{kind:?} {model}, {raw}: {e}"));
            history.push(HistoryItem::Model { native, reply });
            history.push(HistoryItem::ToolResponses(vec![ToolResponse::error(
                "not JSON",
            )]));
        }
        let body = harness.body_of(&history, &tools, ToolChoice::Auto);
        let last = harness.provider.send(&body, 1, &harness.cx).await;
        assert_eq!(last.expect("no 500").reply.text, "done", "{kind:?} {model}");
    }
}

#[tokio::test]
async fn earlier_arguments_that_are_not_json_never_reach_the_server() {
    let harness = ProviderHarness::openai(vec![
        Reply::raw_call("fetch_url", r#"{"url": "https://a.example"#),
        Reply::raw_call("fetch_url", "nonsense"),
        Reply::raw_call("fetch_url", ""),
        Reply::verdict(json!({"passed": true})),
    ]);
    let tools = [decl("fetch_url"), decl("submit_verdict")];
    let mut history = asked();
    for canonical in [r#"{"url":"https://a.example"}"#, "nonsense", ""] {
        let body = harness.body_of(&history, &tools, ToolChoice::Auto);
        let finished = harness.provider.send(&body, 1, &harness.cx).await;
        let CompletedReply { native, reply, .. } = finished.expect("a call");
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
    let only = ToolChoice::ForcedTool("submit_verdict".to_owned());
    let body = harness.body_of(&history, &tools, only);
    let last = harness
        .provider
        .send(&body, 1, &harness.cx)
        .await
        .expect("no 500");
    assert_eq!(last.reply.calls[0].raw, r#"{"passed":true}"#);
    let sent = harness.server.requests().pop().expect("four").json();
    let arguments: Vec<&str> = (2..8)
        .step_by(2)
        .map(|at| {
            let arguments = &sent["messages"][at]["tool_calls"][0]["function"]["arguments"];
            arguments.as_str().expect("a string")
        })
        .collect();
    assert_eq!(arguments, [r#"{"url":"https://a.example"}"#, "{}", "{}"]);
}

#[tokio::test]
async fn tool_declarations_are_rendered_once_per_judge() {
    for dialect in ALL {
        let harness = ProviderHarness::of(dialect, vec![Reply::call("f", json!({}))]);
        let tools = [decl("f"), decl("submit_verdict")];
        let declared = |history: &[HistoryItem], choice| {
            let body = harness.body_of(history, &tools, choice);
            let has_declaration = |piece: &&Arc<str>| piece.contains("\"submit_verdict\"");
            let found: Vec<Arc<str>> = body
                .pieces
                .iter()
                .filter(has_declaration)
                .cloned()
                .collect();
            Arc::clone(&found[0])
        };
        let mut history = asked();
        let first = declared(&history, ToolChoice::Auto);
        let body = harness.body_of(&history, &tools, ToolChoice::Auto);
        let sent = harness.provider.send(&body, 1, &harness.cx).await;
        let CompletedReply { native, reply, .. } = sent.expect("a call");
        history.push(HistoryItem::Model { native, reply });
        history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok(
            "the page",
        )]));
        let second = declared(&history, ToolChoice::Auto);
        let last = declared(
            &history,
            ToolChoice::ForcedTool("submit_verdict".to_owned()),
        );
        assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&first, &last));
    }
}

#[tokio::test]
async fn every_dialect_sends_the_settings_of_the_judge() {
    for (server, kind) in [
        (
            WireServer::openai(vec![Reply::text("ok")]),
            ProviderKind::Openai,
        ),
        (
            WireServer::gemini(vec![Reply::text("ok")]),
            ProviderKind::Gemini,
        ),
    ] {
        let harness = ProviderHarness::with(server, kind, |config| {
            config.headers.insert("X-Team".into(), "blue".into());
            config.extra_body = Some(json!({"labels": {"team": "blue"}}));
            config.max_output_tokens = Some(777);
            config.reasoning = Some("low".into());
            config.seed = Some(4242);
        });
        assert_eq!(harness.body().dropped, [], "{kind:?}");
        assert!(harness.send().await.is_ok());
        let request = &harness.server.requests()[0];
        assert_eq!(request.header("x-team"), Some("blue"), "{kind:?}");
        assert_eq!(request.json()["labels"], json!({"team": "blue"}));
        for set in ["777", "4242", "low"] {
            assert!(
                request.body.to_lowercase().contains(set),
                "{kind:?}: {}",
                request.body
            );
        }
    }
}

#[tokio::test]
async fn reply_signatures_survive_tool_turns() {
    let harness = ProviderHarness::gemini(vec![
        Reply::call("f", json!({"n": 1}))
            .and_call("f", json!({"n": 2}))
            .signed("SIG/1+="),
        Reply::call("f", json!({})).signed("SIG2"),
        Reply::text("done"),
    ]);
    let mut history = asked();
    let tools = [decl("f")];
    for _ in 0..2 {
        let body = harness.body_of(&history, &tools, ToolChoice::Auto);
        let sent = harness.provider.send(&body, 1, &harness.cx).await;
        let CompletedReply { native, reply, .. } = sent.expect("calls");
        let answers = reply
            .calls
            .iter()
            .map(|call: &ReplyCall| ToolResponse::ok(&call.raw))
            .collect();
        history.push(HistoryItem::Model { native, reply });
        history.push(HistoryItem::ToolResponses(answers));
    }
    let body = harness.body_of(&history, &tools, ToolChoice::Auto);
    assert!(harness.provider.send(&body, 1, &harness.cx).await.is_ok());
    let sent = harness.server.requests().pop().expect("three").json();
    assert_eq!(
        sent["contents"][1],
        json!({"role": "model", "parts": [
            {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": "SIG/1+="},
            {"functionCall": {"name": "f", "args": {"n": 2}}}]})
    );
    assert_eq!(
        sent["contents"][2]["parts"],
        json!([
            {"functionResponse": {"name": "f", "response": {"output": "{\"n\":1}"}}},
            {"functionResponse": {"name": "f", "response": {"output": "{\"n\":2}"}}}])
    );
    assert_eq!(sent["contents"][3]["parts"][0]["thoughtSignature"], "SIG2");
}

#[tokio::test]
async fn configured_headers_are_sent_and_their_values_redacted() {
    let server = WireServer::openai(vec![Reply::status(403).body("no: gateway-secret-1")]);
    let harness = ProviderHarness::with(server, ProviderKind::Openai, |config| {
        config
            .headers
            .insert("Authorization".into(), "Basic gateway-secret-1".into());
        config
            .headers
            .insert("X-Gateway".into(), "gateway-secret-1".into());
    });
    let error = harness.send().await.expect_err("refused");
    assert!(
        !format!("{error:?}").contains("gateway-secret-1"),
        "{error:?}"
    );
    let request = &harness.server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some("Basic gateway-secret-1")
    );
    assert_eq!(request.header("x-gateway"), Some("gateway-secret-1"));
}

//! OpenAI Responses over real loopback HTTP.

use dicta::model::{HistoryItem, ProviderKind, StopReason, ToolResponse};
use dicta::provider::{CompletedReply, ProviderError, ToolChoice};
use serde_json::{Value, json};

use super::harness::{KEY, ProviderHarness, asked, decl, failures, keys};
use crate::support::wire::{Reply, WireServer};

fn harness(replies: Vec<Reply>) -> ProviderHarness {
    ProviderHarness::new(WireServer::openai(replies), ProviderKind::OpenaiResponses)
}

const END: &str = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"output_tokens":4}}}"#;

fn stream(events: &[String]) -> String {
    let events = events.iter().map(String::as_str).chain([END]);
    events.fold(String::new(), |all, data| {
        all + "event: x\ndata: " + data + "\n\n"
    })
}

fn done(at: usize, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{item}}}"#)
}

fn text_reply(text: &str) -> String {
    stream(&[done(
        0,
        &json!({"type": "message", "content": [{"type": "output_text", "text": text}]}).to_string(),
    )])
}

/// A reasoning item and its call, in a spelling that dicta itself never writes.
fn items(turn: usize) -> [String; 2] {
    [
        format!(
            r#"{{ "type":"reasoning","id":"rs_{turn}", "encrypted_content":"gAAA{turn}/+==","n":1.50 }}"#
        ),
        format!(
            r#"{{"type":"function_call", "id":"fc_{turn}","call_id":"call_{turn}","name":"f","arguments":"{{ \"n\": {turn} }}"}}"#
        ),
    ]
}

#[tokio::test]
async fn responses_request_has_no_tool_key_without_tools() {
    let server = WireServer::openai(vec![
        Reply::raw(text_reply("ok")),
        Reply::raw(text_reply("ok")),
    ]);
    let harness = ProviderHarness::with(server, ProviderKind::OpenaiResponses, |config| {
        config.seed = Some(4);
        config.reasoning = Some("low".to_owned());
    });
    for choice in [
        ToolChoice::NoTools,
        ToolChoice::Schema(json!({"type": "object"})),
    ] {
        let body = harness.body_of(&asked(), &[], choice);
        let dropped: Vec<&str> = body.dropped.iter().map(|d| d.what.as_str()).collect();
        assert_eq!(dropped, ["seed"]);
        let sent = harness.provider.send(&body, 1, &harness.cx).await;
        assert_eq!(sent.expect("a reply").reply.text, "ok");
    }
    for request in harness.server.requests() {
        assert_eq!(request.path, "/v1/responses");
        let bearer = format!("Bearer {KEY}");
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
        let sent = request.json();
        let of_tools = keys(&sent).into_iter().filter(|key| {
            let key = key.to_lowercase();
            key.contains("tool") || key.contains("function") || key == "seed"
        });
        assert_eq!(of_tools.collect::<Vec<_>>(), Vec::<String>::new());
        assert_eq!(sent["store"], false);
        assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(
            sent["reasoning"],
            json!({"effort": "low", "summary": "auto"})
        );
        assert_eq!(sent["instructions"], "You judge.");
    }
}

#[tokio::test]
async fn encrypted_reasoning_is_sent_back_byte_for_byte() {
    let turn = |at: usize| {
        let [reasoning, call] = items(at);
        Reply::raw(stream(&[done(0, &reasoning), done(1, &call)]))
    };
    let harness = harness(vec![
        turn(1),
        turn(2),
        turn(3),
        Reply::raw(text_reply("done")),
    ]);
    let (mut history, tools) = (asked(), [decl("f")]);
    for _ in 0..3 {
        let body = harness.body_of(&history, &tools, ToolChoice::Auto);
        let sent = harness.provider.send(&body, 1, &harness.cx).await;
        let CompletedReply { native, reply, .. } = sent.expect("a call");
        assert_eq!(reply.stop, StopReason::ToolCalls);
        history.push(HistoryItem::Model { native, reply });
        history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok("page")]));
    }
    let body = harness.body_of(&history, &tools, ToolChoice::Auto);
    let last = harness.provider.send(&body, 1, &harness.cx).await;
    assert_eq!(last.expect("a text").reply.text, "done");
    let requests = harness.server.requests();
    let expected: Vec<String> = (1..=3)
        .map(|at| {
            let output = json!({"type": "function_call_output", "call_id": format!("call_{at}"), "output": "page"});
            format!("{},{output}", items(at).join(","))
        })
        .collect();
    let input = format!(",{}]", expected.join(","));
    assert!(requests[3].body.contains(&input), "{}", requests[3].body);
}

#[tokio::test]
async fn responses_stream_cut_at_any_byte_is_an_error_or_the_same_reply() {
    let [reasoning, call] = items(1);
    let fixtures = [
        text_reply("a verdict é"),
        stream(&[done(0, &reasoning), done(1, &call)]),
    ];
    for fixture in fixtures {
        let whole = harness(vec![Reply::raw(fixture.clone())]).send().await;
        let whole = whole.expect("a reply").reply;
        let cuts = (0..fixture.len()).map(|at| Reply::raw(fixture.clone()).end_at(at));
        let harness = harness(cuts.collect());
        for at in 0..fixture.len() {
            match harness.send().await {
                Ok(finished) => assert_eq!(finished.reply, whole, "{at}"),
                Err(error) => assert!(matches!(error, ProviderError::Cut { .. }), "{at}: {error}"),
            }
        }
        for split in [1, 2, 3, 7, 64] {
            let split = Reply::raw(fixture.clone()).split_every(split);
            let harness = self::harness(vec![split]);
            assert_eq!(harness.send().await.expect("a reply").reply, whole);
        }
    }
}

#[tokio::test]
async fn broken_responses_stream_is_never_a_reply() {
    let event = |data: Value| Reply::raw(format!("data: {data}\n\n"));
    let good = || text_reply(r#"{"passed": true, "score": 1.0}"#);
    for (what, reply) in [
        ("broken", Reply::raw(good()).cut_at(100)),
        (
            "without its end",
            Reply::raw(good().replace("response.completed", "response.in_progress")),
        ),
        (
            "failed",
            event(
                json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}}),
            ),
        ),
        (
            "flat error",
            event(json!({"type": "error", "code": "x", "message": "y"})),
        ),
        (
            "nested error",
            event(json!({"type": "error", "error": {"message": "y"}})),
        ),
        (
            "error outside SSE",
            Reply::raw(r#"{"error":{"message":"boom"}}"#),
        ),
        ("a page", Reply::raw("<html>\n")),
        ("half an object", Reply::raw("data: {\"type\":\n\n")),
        ("empty", Reply::raw("")),
        ("[DONE] alone", Reply::raw("data: [DONE]\n\n")),
        ("400", Reply::status(400)),
        ("500", Reply::status(500)),
    ] {
        let harness = harness(vec![reply]);
        assert!(harness.send().await.is_err(), "{what}");
    }
}

#[tokio::test]
async fn refused_setting_is_left_out_and_remembered() {
    let refused = json!({"error": {"message": "Encrypted content is not supported with this model.",
        "type": "invalid_request_error", "param": "include", "code": null}});
    let mut harness = harness(vec![
        Reply::status(400).body(refused.to_string()),
        Reply::raw(text_reply("ok")),
    ]);
    let (result, facts, waits) = harness.call().await;
    assert_eq!(result.expect("the second attempt").0, 2);
    assert_eq!(waits, [0]);
    assert!(
        failures(&facts)[0]
            .2
            .ends_with("asking again without `encrypted reasoning`")
    );
    let requests = harness.server.requests();
    assert!(requests[0].mentions("include") && !requests[1].mentions("include"));
    assert!(!harness.body().text().contains("include"));
}

#[tokio::test]
async fn unstreamed_reply_is_read() {
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "whole"}]});
    let body = json!({"status": "completed", "error": null, "output": [item]});
    let server = WireServer::openai(vec![Reply::raw(body.to_string())]);
    let harness = ProviderHarness::with(server, ProviderKind::OpenaiResponses, |config| {
        config.stream = false;
    });
    assert_eq!(harness.send().await.expect("a reply").reply.text, "whole");
    assert_eq!(harness.server.requests()[0].json()["stream"], false);
}

use proptest::prelude::*;

use super::super::*;
use crate::model::{ModelReply, ReplyCall, StopReason, TokenUsage};
use crate::provider::client::NewDeltas;
use crate::provider::testing::{assert_deltas_make, cut_everywhere, read};
use crate::provider::{CompletedReply, ProviderError};

fn reader() -> Box<dyn ReplyReader> {
    Box::new(stream::AnthropicReplyReader::new(TurnIx(1)))
}

fn finished(stream: &str) -> CompletedReply {
    let (finished, new) = read(reader(), &[stream.as_bytes()]).expect("a reply");
    assert_deltas_make(&finished.reply, &new);
    finished
}

fn failed(stream: &str) -> ProviderError {
    read(reader(), &[stream.as_bytes()]).expect_err("no reply")
}

fn event(value: &Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

fn start() -> String {
    event(
        &json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 3, "output_tokens": 1}}}),
    )
}

fn block(index: u64, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: u64, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn text(index: u64, text: &str) -> String {
    delta(index, &json!({"type": "text_delta", "text": text}))
}

fn args(index: u64, json: &str) -> String {
    delta(
        index,
        &json!({"type": "input_json_delta", "partial_json": json}),
    )
}

fn end(reason: &str) -> String {
    event(
        &json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}),
    ) + &event(&json!({"type": "message_stop"}))
}

fn says(what: &str) -> String {
    block(0, &json!({"type": "text", "text": ""})) + &text(0, what)
}

fn native(finished: &CompletedReply) -> Vec<&str> {
    finished.native.iter().map(|block| block.get()).collect()
}

fn call(id: &str, name: &str, raw: &str) -> ReplyCall {
    ReplyCall {
        id: id.to_owned(),
        name: name.to_owned(),
        raw: raw.to_owned(),
    }
}

/// As the service streams: thinking with its signature, a redacted block, text, two calls, one without arguments.
fn stream() -> String {
    [
        event(&json!({"type": "message_start", "message": {"id": "m", "content": [], "stop_reason": null,
            "usage": {"input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 1}}})),
        block(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        event(&json!({"type": "ping"})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "hm é"})),
        delta(0, &json!({"type": "thinking_delta", "thinking": " 😀"})),
        delta(0, &json!({"type": "signature_delta", "signature": "S+/="})),
        event(&json!({"type": "content_block_stop", "index": 0})),
        block(1, &json!({"type": "redacted_thinking", "data": "AA=="})),
        event(&json!({"type": "content_block_stop", "index": 1})),
        block(2, &json!({"type": "text", "text": ""})),
        text(2, "Let me "),
        text(2, "look."),
        block(3, &json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}})),
        args(3, ""),
        args(3, "{\"url\": \"a\\u00"),
        args(3, "e9\", \"n\": 1.50}"),
        event(&json!({"type": "content_block_stop", "index": 3})),
        block(4, &json!({"type": "tool_use", "id": "t2", "name": "g", "input": {}})),
        args(4, ""),
        event(&json!({"type": "content_block_stop", "index": 4})),
        event(&json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 40, "output_tokens_details": {"thinking_tokens": 7}}})),
        event(&json!({"type": "message_stop"})),
    ]
    .concat()
}

#[test]
fn stream_becomes_a_reply_with_unchanged_blocks() {
    let finished = finished(&stream());
    assert_eq!(
        finished.reply,
        ModelReply {
            text: "Let me look.".to_owned(),
            thought: "hm é 😀".to_owned(),
            calls: vec![
                call("t1", "f", "{\"url\": \"a\\u00e9\", \"n\": 1.50}"),
                call("t2", "g", "{}")
            ],
            stop: StopReason::ToolCalls,
        }
    );
    assert_eq!(
        finished.usage,
        TokenUsage {
            input: Some(113),
            output: Some(40),
            cached: Some(100),
            thinking: Some(7),
            calls: 1
        }
    );
    assert_eq!(
        native(&finished),
        [
            r#"{"type":"thinking","thinking":"hm é 😀","signature":"S+/="}"#,
            r#"{"type":"redacted_thinking","data":"AA=="}"#,
            r#"{"type":"text","text":"Let me look."}"#,
            r#"{"type":"tool_use","id":"t1","name":"f","input":{"url": "a\u00e9", "n": 1.50}}"#,
            r#"{"type":"tool_use","id":"t2","name":"g","input":{}}"#,
        ]
    );
}

#[test]
fn truncated_stream_is_an_error_or_the_complete_reply() {
    let good = cut_everywhere(reader, &stream());
    assert!(good <= 2, "only the last line's end may be missing, {good}");
}

proptest! {
    #[test]
    fn reply_is_the_same_for_every_split_of_the_stream(cuts in prop::collection::vec(0usize..4000, 0..12)) {
        let stream = stream();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at % stream.len()).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&stream.as_bytes()[from..cut]);
            from = cut;
        }
        chunks.push(&stream.as_bytes()[from..]);
        let (whole_reply, _) = read(reader(), &[stream.as_bytes()]).expect("a reply");
        let (split, new) = read(reader(), &chunks).expect("the same reply");
        assert_deltas_make(&split.reply, &new);
        prop_assert_eq!(split.reply, whole_reply.reply);
    }
}

#[test]
fn each_finish_reason_maps_to_its_stop_reason() {
    let stop = |reason: &str| {
        finished(&[start(), says("x"), end(reason)].concat())
            .reply
            .stop
    };
    assert_eq!(stop("end_turn"), StopReason::Stop);
    assert_eq!(stop("stop_sequence"), StopReason::Stop);
    assert_eq!(stop("max_tokens"), StopReason::Length);
    assert_eq!(stop("refusal"), StopReason::Refused("refusal".into()));
    let filtered = StopReason::Refused("content_filter".into());
    assert_eq!(stop("content_filter"), filtered);
    assert_eq!(stop("tool_use"), StopReason::Other("tool_use".into()));
    assert_eq!(stop("new_one"), StopReason::Other("new_one".into()));
    // A later reason doesn't complete a reply that was cut or refused.
    let twice = |first: &str| {
        let earlier = event(&json!({"type": "message_delta", "delta": {"stop_reason": first}}));
        finished(&[start(), says("x"), earlier, end("end_turn")].concat())
            .reply
            .stop
    };
    assert_eq!(twice("max_tokens"), StopReason::Length);
    assert_eq!(twice("content_filter"), filtered);
    assert_eq!(twice("new_one"), StopReason::Stop);
    let why = json!({"stop_reason": "refusal", "stop_details": {"category": "cyber", "explanation": "no"}});
    let refused = [
        start(),
        says("{\"passed\": true}"),
        event(&json!({"type": "message_delta", "delta": why})),
        event(&json!({"type": "message_stop"})),
    ];
    assert_eq!(
        finished(&refused.concat()).reply.stop,
        StopReason::Refused("refusal (cyber): no".into())
    );
    // Ends of their own: neither is a reply, and neither is asked again.
    let ended = |reason: &str| failed(&[start(), says("{\"passed\":true}"), end(reason)].concat());
    let full = ended("model_context_window_exceeded");
    assert!(full.to_string().contains("context window"), "{full}");
    let next =
        crate::provider::retry::choose_retry_action(&crate::provider::retry::FailedAttempt {
            error: &full,
            attempt: 1,
            max_attempts: 4,
            waited: crate::model::Millis(0),
            time_left: None,
            server_advice: None,
            jitter: 1.0,
        });
    assert_eq!(next, crate::provider::retry::RetryAction::Stop);
    let paused = ended("pause_turn");
    assert!(matches!(
        paused,
        ProviderError::InStream {
            retryable: false,
            ..
        }
    ));
}

#[test]
fn deviations_of_compatible_servers_give_the_same_reply() {
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f"});
    // llama.cpp: the second block begins before the first stopped, and no start has an input.
    let overlapping = [
        start(),
        block(0, &used("a")),
        args(0, "{\"n\":"),
        block(1, &used("b")),
        args(0, "1}"),
        args(1, "{}"),
        event(&json!({"type": "content_block_stop", "index": 0})),
        end("tool_use"),
    ];
    let read = finished(&overlapping.concat());
    assert_eq!(
        read.reply.calls,
        [call("a", "f", "{\"n\":1}"), call("b", "f", "{}")]
    );
    assert_eq!(
        native(&read)[0],
        r#"{"type":"tool_use","id":"a","name":"f","input":{"n":1}}"#
    );
    // Indexes from 1, ids absent and repeated, arguments with the start, the start sent twice.
    let odd = [
        start(),
        start(),
        block(
            1,
            &json!({"type": "tool_use", "name": "f", "input": {"n": 1}}),
        ),
        block(
            1,
            &json!({"type": "tool_use", "name": "f", "input": {"n": 1}}),
        ),
        block(2, &used("x")),
        block(3, &used("x")),
        end("end_turn"),
    ];
    let read = finished(&odd.concat());
    assert_eq!(
        read.reply.calls,
        [
            call("call_1_0", "f", "{\"n\":1}"),
            call("x", "f", "{}"),
            call("call_1_2", "f", "{}")
        ]
    );
    assert_eq!(
        native(&read),
        [
            r#"{"type":"tool_use","name":"f","input":{"n":1},"id":"call_1_0"}"#,
            r#"{"type":"tool_use","id":"x","name":"f","input":{}}"#,
            r#"{"type":"tool_use","id":"call_1_2","name":"f","input":{}}"#,
        ]
    );
    // Content that came with the start counts where no block begins in its place.
    let prefilled = json!({"type": "message_start", "message": {"content": [
        {"type": "text", "text": "twice"}, {"type": "tool_use", "id": "p", "name": "f", "input": {"n": 2}}],
        "stop_reason": "tool_use"}});
    let stream = [
        event(&prefilled),
        says("once"),
        event(&json!({"type": "message_stop"})),
    ];
    let read = finished(&stream.concat());
    assert_eq!(read.reply.text, "once");
    assert_eq!(read.reply.calls, [call("p", "f", "{\"n\":2}")]);
    // Unknown blocks are skipped; a text of only white space is not sent back.
    let unknown = [
        start(),
        event(&json!({"type": "session_note", "index": "x", "message": null}))
            .replace("\"x\"", "0"),
        block(0, &json!({"type": "oracle", "id": 7, "text": [1]})),
        delta(0, &json!({"type": "oracle_delta", "x": 1})),
        block(1, &json!({"type": "text", "text": "\n"})),
        text(2, "no start"),
        end("end_turn"),
        "data: [DONE]\n\n".to_owned(),
    ];
    let read = finished(&unknown.concat());
    assert_eq!(read.reply.text, "\nno start");
    assert_eq!(
        native(&read),
        [
            r#"{"type":"oracle","id":7,"text":[1]}"#,
            r#"{"type":"text","text":"no start"}"#
        ]
    );
}

#[test]
fn reply_keeps_invalid_json_arguments_unchanged() {
    let stream = [
        start(),
        block(
            0,
            &json!({"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        ),
        args(0, "{\"n\": 1"),
        end("max_tokens"),
    ];
    let read = finished(&stream.concat());
    assert_eq!(read.reply.calls, [call("a", "f", "{\"n\": 1")]);
    assert_eq!(read.reply.stop, StopReason::Length);
    assert_eq!(
        native(&read),
        [r#"{"type":"tool_use","id":"a","name":"f","input":"{\"n\": 1"}"#]
    );
}

#[test]
fn faulty_reply_is_an_error() {
    let with = |tail: &str| failed(&[&start(), &says("{\"passed\":true}"), tail].concat());
    let is_cut = |error: ProviderError| matches!(error, ProviderError::Cut { .. });
    let is_malformed = |error: ProviderError| matches!(error, ProviderError::Malformed(_));
    let stop = event(&json!({"type": "message_stop"}));
    assert!(is_cut(failed("")));
    assert!(is_cut(with("")));
    let unexplained = finished(&[start(), says("x"), stop.clone()].concat());
    assert_eq!(unexplained.reply.stop, StopReason::Unknown);
    assert!(is_cut(failed(&[start(), stop.clone()].concat())), "nothing");
    assert!(is_cut(with(&end("end_turn").replace(&stop, ""))));
    assert!(is_cut(with("data: {\"type\":\"message_del")));
    assert!(is_malformed(with("data: {\"type\":\"message_del\n\n")));
    assert!(is_malformed(with("data: 7\n\n")));
    assert!(matches!(
        failed("<html>\n"),
        ProviderError::WrongProtocol(_)
    ));
    let foreign = failed("data: {\"method\": \"POST\"}\n\n");
    assert!(
        matches!(foreign, ProviderError::WrongProtocol(_)),
        "{foreign}"
    );
    assert!(is_malformed(with(&block(
        1,
        &json!({"type": "tool_use", "id": "a"})
    ))));
    assert!(is_malformed(with(&args(0, "{}"))));
    assert!(is_malformed(with(
        "data: {\"type\":\"content_block_delta\",\"delta\":{}}\n\n"
    )));
    let error = |kind: &str| {
        event(
            &json!({"type": "error", "error": {"type": kind, "message": "boom"}, "request_id": "r"}),
        )
    };
    for (tail, again) in [
        (error("overloaded_error"), true),
        (error("rate_limit_error"), true),
        (error("api_error"), true),
        (error("timeout_error"), true),
        (error("invalid_request_error"), false),
        (error("permission_error"), false),
        (error("billing_error"), false),
        (error("not_found_error"), false),
        // Before the end mark, and outside SSE.
        (
            "data: {\"error\":{\"code\":500,\"message\":\"boom\"}}\n\n".to_owned(),
            true,
        ),
        (
            "{\n \"error\": {\"code\": 400, \"message\": \"boom\"}\n}\n".to_owned(),
            false,
        ),
        (
            "event: error\ndata: {\"type\":\"error\",\"message\":\"boom\"}\n\n".to_owned(),
            true,
        ),
        ("event: error\ndata: boom\n\n".to_owned(), true),
    ] {
        let error = with(&tail);
        let ProviderError::InStream { message, retryable } = &error else {
            panic!("{tail}: {error:?}");
        };
        assert!(message.contains("boom"), "{message}");
        assert_eq!(*retryable, again, "{tail}");
    }
}

#[test]
fn reply_without_stream_is_parsed() {
    let read_whole = |body: &str| {
        let (mut reader, mut new) = (reader(), NewDeltas::new());
        reader.read_document(body, &mut new)?;
        let finished = reader.finish()?;
        assert_deltas_make(&finished.reply, &new);
        Ok::<_, ProviderError>(finished)
    };
    let whole_reply = r#"{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"}, {"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"f","input":{ "n": 1 }}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let read = read_whole(whole_reply).expect("a reply");
    assert_eq!(read.reply.text, "hi");
    assert_eq!(read.reply.calls, [call("t", "f", "{ \"n\": 1 }")]);
    assert_eq!(
        native(&read)[2],
        r#"{"type":"tool_use","id":"t","name":"f","input":{ "n": 1 }}"#
    );
    // The same, although a stream was asked for.
    assert_eq!(finished(&format!("{whole_reply}\n")).reply, read.reply);
    for bad in [
        &whole_reply[..60],
        "",
        "<html>",
        "{}",
        r#"{"type":"error","error":{"type":"api_error","message":"x"}}"#,
        r#"{"type":"message","content":[]}"#,
        "[1]",
    ] {
        assert!(read_whole(bad).is_err(), "{bad}");
    }
}

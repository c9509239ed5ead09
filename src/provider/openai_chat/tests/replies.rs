use proptest::prelude::*;
use serde_json::value::to_raw_value;

use super::super::*;
use crate::model::{ModelReply, ReplyCall, StopReason, TokenUsage};
use crate::provider::client::NewDeltas;
use crate::provider::testing::{assert_deltas_make, cut_everywhere, read};
use crate::provider::{CompletedReply, ProviderError};

fn reader() -> Box<dyn ReplyReader> {
    Box::new(stream::ChatReplyReader::new(TurnIx(2), false))
}

fn finished(stream: &str) -> CompletedReply {
    let (finished, new) = read(reader(), &[stream.as_bytes()]).expect("a reply");
    assert_deltas_make(&finished.reply, &new);
    finished
}

fn failed(stream: &str) -> ProviderError {
    read(reader(), &[stream.as_bytes()]).expect_err("no reply")
}

fn delta(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
}

fn end(reason: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

const STREAM: &str = concat!(
    ": ping\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm é\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Let me 😀 look.\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"fetch_url\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"{\\\"url\\\":\\\"\\\\u00\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":2,\"id\":\"b\",\"function\":{\"name\":\"fetch_url\",\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"e9\\\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":3},\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn stream_becomes_a_reply_and_the_message_to_send_back() {
    let finished = finished(STREAM);
    let call = |id: &str, raw: &str| ReplyCall {
        id: id.to_owned(),
        name: "fetch_url".to_owned(),
        raw: raw.to_owned(),
    };
    assert_eq!(
        finished.reply,
        ModelReply {
            text: "Let me 😀 look.".to_owned(),
            thought: "hm é".to_owned(),
            calls: vec![call("a", r#"{"url":"\u00e9"}"#), call("b", "{}")],
            stop: StopReason::ToolCalls,
        }
    );
    assert_eq!(
        finished.usage,
        TokenUsage {
            input: Some(9),
            output: Some(4),
            cached: Some(3),
            thinking: Some(2),
            calls: 1
        }
    );
    assert_eq!(
        finished.native[0].get(),
        r#"{"role":"assistant","content":"Let me 😀 look.","reasoning_content":"hm é","tool_calls":[{"id":"a","type":"function","function":{"name":"fetch_url","arguments":"{\"url\":\"\\u00e9\"}"}},{"id":"b","type":"function","function":{"name":"fetch_url","arguments":"{}"}}]}"#
    );
}

#[test]
fn truncated_stream_is_an_error_or_the_complete_reply() {
    let lenient = cut_everywhere(reader, STREAM);
    let finish = STREAM
        .find("\"finish_reason\":\"tool_calls\"")
        .expect("there");
    assert!(lenient < STREAM.len() - finish);
    let strict = cut_everywhere(
        || Box::new(stream::ChatReplyReader::new(TurnIx(0), true)),
        STREAM,
    );
    assert_eq!(
        strict, 2,
        "complete only with [DONE], its line ended or not"
    );
}

proptest! {
    #[test]
    fn reply_is_the_same_for_every_split_of_the_stream(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&STREAM.as_bytes()[from..cut]);
            from = cut;
        }
        chunks.push(&STREAM.as_bytes()[from..]);
        let (whole_reply, _) = read(reader(), &[STREAM.as_bytes()]).expect("a reply");
        let (split, new) = read(reader(), &chunks).expect("the same reply");
        assert_deltas_make(&split.reply, &new);
        prop_assert_eq!(split.reply, whole_reply.reply);
        prop_assert_eq!(split.native[0].get(), whole_reply.native[0].get());
    }
}

/// Name, deltas, and the calls (id, name, arguments) that they form.
type Case<'a> = (&'a str, Vec<String>, &'a [(&'a str, &'a str, &'a str)]);

#[test]
fn reader_joins_call_pieces_for_every_way_of_marking() {
    let call = |json: &str| delta(&format!("{{\"tool_calls\":[{json}]}}"));
    let cases: &[Case<'_>] = &[
        (
            "no index, whole calls",
            vec![
                call(r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#),
                call(r#"{"id":"b","function":{"name":"g","arguments":"{}"}}"#),
            ],
            &[("a", "f", "{}"), ("b", "g", "{}")],
        ),
        (
            "no index, no id, fragments",
            vec![
                call(r#"{"function":{"name":"f","arguments":"{\"a\""}}"#),
                call(r#"{"function":{"arguments":":1}"}}"#),
                call(r#"{"function":{"name":"f","arguments":"{}"}}"#),
            ],
            &[("call_2_0", "f", r#"{"a":1}"#), ("call_2_1", "f", "{}")],
        ),
        (
            "id and name in every fragment",
            vec![
                call(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}}"#),
                call(r#"{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}"#),
            ],
            &[("a", "f", r#"{"a":1}"#)],
        ),
        (
            "index 0 for all",
            vec![
                call(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#),
                call(r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#),
            ],
            &[("a", "f", "{}"), ("b", "f", "{}")],
        ),
        (
            "arguments as an object",
            vec![call(
                r#"{"id":"a","function":{"name":"f","arguments":{"a":1.50}}}"#,
            )],
            &[("a", "f", r#"{"a":1.5}"#)],
        ),
        (
            "no arguments at all",
            vec![call(
                r#"{"index":3,"id":"a","function":{"name":"f","arguments":null}}"#,
            )],
            &[("a", "f", "")],
        ),
        (
            "the same id twice, other indexes",
            vec![
                call(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#),
                call(r#"{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}"#),
            ],
            &[("a", "f", "{}"), ("a", "g", "{}")],
        ),
    ];
    for (what, deltas, expected) in cases {
        let finished = finished(&format!("{}{}", deltas.concat(), end("stop")));
        let calls: Vec<(&str, &str, &str)> = finished
            .reply
            .calls
            .iter()
            .map(|c| (c.id.as_str(), c.name.as_str(), c.raw.as_str()))
            .collect();
        assert_eq!(calls, *expected, "{what}");
        assert_eq!(finished.reply.stop, StopReason::ToolCalls, "{what}");
    }
}

#[test]
fn signature_of_a_gateway_is_sent_back_with_its_call() {
    let finished = finished(&format!(
        "{}{}",
        delta(
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"S"}}}]}"#
        ),
        end("tool_calls")
    ));
    assert!(
        finished.native[0]
            .get()
            .contains(r#""extra_content":{"google":{"thought_signature":"S"}}"#)
    );
}

#[test]
fn reasoning_details_are_joined_by_index() {
    let piece = |text: &str| {
        delta(&format!(
            r#"{{"reasoning":"{text}","reasoning_details":[{{"type":"reasoning.text","text":"{text}","index":0,"signature":null}}]}}"#
        ))
    };
    let signed =
        delta(r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"S"}]}"#);
    let stream = [
        piece("a"),
        piece("b"),
        signed,
        delta(r#"{"content":"c"}"#),
        end("stop"),
    ];
    assert_eq!(
        finished(&stream.concat()).native[0].get(),
        r#"{"role":"assistant","content":"c","reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"ab","index":0,"signature":"S"}]}"#
    );
}

#[test]
fn each_finish_reason_maps_to_its_stop_reason() {
    let text = delta(r#"{"content":"x"}"#);
    let stop = |reason: &str| finished(&format!("{text}{}", end(reason))).reply.stop;
    assert_eq!(stop("stop"), StopReason::Stop);
    assert_eq!(stop("eos"), StopReason::Stop);
    assert_eq!(stop("length"), StopReason::Length);
    assert_eq!(
        stop("content_filter"),
        StopReason::Refused("content_filter".into())
    );
    assert_eq!(stop("tool_calls"), StopReason::Other("tool_calls".into()));
    assert_eq!(stop("moon"), StopReason::Other("moon".into()));
    // The words of other vendors, as gateways pass them on.
    for word in ["max_tokens", "MAX_TOKENS", "model_length"] {
        assert_eq!(stop(word), StopReason::Length, "{word}");
    }
    for word in ["SAFETY", "RECITATION", "sensitive", "refusal"] {
        assert_eq!(stop(word), StopReason::Refused(word.into()), "{word}");
    }
    assert_eq!(stop("STOP"), StopReason::Stop);
    let refusal = delta(r#"{"content":null,"refusal":"I cannot."}"#);
    let refused = finished(&format!("{refusal}{}", end("stop")));
    assert_eq!(refused.reply.stop, StopReason::Refused("I cannot.".into()));
}

#[test]
fn refusal_in_a_part_of_the_content_is_a_refusal() {
    let parts = r#"{"content":[{"type":"text","text":"{\"passed\":true}"},{"type":"refusal","refusal":"I cannot."}]}"#;
    let streamed = finished(&format!("{}{}", delta(parts), end("stop")));
    let body = format!(r#"{{"choices":[{{"index":0,"message":{parts},"finish_reason":"stop"}}]}}"#);
    let whole = read_whole(&body).expect("a reply");
    for read in [streamed, whole] {
        assert_eq!(read.reply.stop, StopReason::Refused("I cannot.".into()));
    }
}

#[test]
fn later_stop_does_not_complete_a_reply_that_was_cut_or_refused() {
    let reason = |word: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{word}\"}}]}}\n\n")
    };
    let text = delta(r#"{"content":"{\"passed\":true}"}"#);
    let stop = |first: &str, second: &str| {
        let stream = format!("{text}{}{}", reason(first), end(second));
        finished(&stream).reply.stop
    };
    assert_eq!(stop("length", "stop"), StopReason::Length);
    let filtered = StopReason::Refused("content_filter".into());
    assert_eq!(stop("content_filter", "stop"), filtered);
    assert_eq!(stop("stop", "content_filter"), filtered);
    assert_eq!(stop("moon", "stop"), StopReason::Stop);
    let error = failed(&format!("{text}{}{}", reason("error"), end("stop")));
    assert!(matches!(error, ProviderError::InStream { .. }), "{error:?}");
}

#[test]
fn faulty_reply_is_an_error() {
    let text = delta(r#"{"content":"{\"passed\":true}"}"#);
    let with = |tail: &str| failed(&format!("{text}{tail}"));
    let is_cut = |error: ProviderError| matches!(error, ProviderError::Cut { .. });
    let is_malformed = |error: ProviderError| matches!(error, ProviderError::Malformed(_));
    assert!(is_cut(failed("")));
    assert!(is_cut(with("")));
    assert!(is_cut(with("data: {\"choices\":[{\"del")));
    assert!(is_malformed(with("data: {\"choices\":[{\"del\n\n")));
    assert!(is_malformed(with("data: 7\n\n")));
    for (tail, retryable) in [
        (
            "data: {\"error\":{\"message\":\"boom\",\"code\":503}}\n\n",
            true,
        ),
        ("data: {\"error\":\"boom\"}\n\n", true),
        (
            "data: {\"error\":{\"message\":\"boom\",\"code\":400},\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
            false,
        ),
        (
            "data: {\"choices\":[{\"delta\":{},\"error\":{\"message\":\"boom\",\"code\":400}}]}\n\n",
            false,
        ),
        ("event: error\ndata: {\"message\":\"boom\"}\n\n", true),
        ("event: error\ndata: boom\n\n", true),
        ("{\"error\":{\"message\":\"boom\"}}\n", true),
        (
            "data: {\"object\":\"error\",\"message\":\"boom\",\"code\":400}\n\n",
            false,
        ),
    ] {
        let error = with(&format!("{tail}{}", end("stop")));
        let ProviderError::InStream {
            message,
            retryable: r,
        } = &error
        else {
            panic!("{tail}: {error:?}");
        };
        assert!(message.contains("boom"), "{message}");
        assert_eq!(*r, retryable, "{tail}");
    }
}

#[test]
fn reply_without_stream_is_parsed_and_sent_back_unchanged() {
    let message = r#"{ "role": "assistant", "content": "hi", "annotations": [] }"#;
    let whole_reply = format!(
        r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":2}}}}"#
    );
    let finished = read_whole(&whole_reply).expect("a reply");
    assert_eq!(finished.reply.text, "hi");
    assert_eq!(finished.native[0].get(), message);
    assert_eq!(finished.usage.output, Some(2));
    for bad in [
        &whole_reply[..whole_reply.len() - 3],
        r#"{"error":{"message":"no"}}"#,
        "<html>",
        "",
        r#"{"choices":[]}"#,
    ] {
        assert!(read_whole(bad).is_err(), "{bad}");
    }
    let ignored_stream = crate::provider::testing::read(reader(), &[whole_reply.as_bytes(), b"\n"]);
    let (finished, _) = ignored_stream.expect("a server may ignore that a stream was asked for");
    assert_eq!(finished.native[0].get(), message);
}

fn read_whole(body: &str) -> Result<CompletedReply, ProviderError> {
    let (mut reader, mut new) = (reader(), NewDeltas::new());
    reader.read_document(body, &mut new)?;
    let finished = reader.finish()?;
    assert_deltas_make(&finished.reply, &new);
    Ok(finished)
}

/// As Perplexity sends a whole reply, and a chunk.
#[test]
fn reader_prefers_message_in_a_document_and_delta_in_a_stream() {
    let whole_reply = r#"{"id":"97c4","model":"sonar","created":1760000000,"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"search_context_size":"low"},"citations":["https://a.example"],"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Paris."},"delta":{"role":"assistant","content":""}}]}"#;
    let read = read_whole(whole_reply).expect("a reply");
    assert_eq!(read.reply.text, "Paris.");
    assert_eq!(
        read.native[0].get(),
        r#"{"role":"assistant","content":"Paris."}"#
    );
    let chunk = |delta: &str, so_far: &str, finish: &str| {
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": so_far},
            "delta": {"role": "assistant", "content": delta}, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let stream = [
        chunk("Par", "Par", ""),
        chunk("is.", "Paris.", ""),
        chunk("", "Paris.", "stop"),
    ];
    assert_eq!(finished(&stream.concat()).reply.text, "Paris.");
}

/// As Snowflake Cortex sends a whole reply, and a stream.
#[test]
fn complete_reply_without_a_finish_reason_is_parsed() {
    let whole_reply = |reason: &str| {
        format!(
            r#"{{"id":"c6ad","model":"claude-sonnet-4-5","choices":[{{{reason}"message":{{"role":"assistant","content":"hi"}}}}],"usage":{{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}}}"#
        )
    };
    for reason in ["", "\"finish_reason\":\"\",", "\"finish_reason\":null,"] {
        let read = read_whole(&whole_reply(reason)).expect("a reply");
        assert_eq!(
            (read.reply.text.as_str(), read.reply.stop),
            ("hi", StopReason::Unknown)
        );
    }
    let text = "data: {\"id\":\"c6ad\",\"choices\":[{\"delta\":{\"content\":\"hi\",\"type\":\"text\"}}],\"usage\":{}}\n\n";
    let usage = "data: {\"id\":\"c6ad\",\"choices\":[{\"delta\":{}}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n";
    let read = finished(&format!("{text}{usage}data: [DONE]\n\n"));
    assert_eq!(
        (read.reply.text.as_str(), read.reply.stop),
        ("hi", StopReason::Unknown)
    );
    assert_eq!(read.usage.output, Some(4));
    let cut = failed(&format!("{text}{usage}"));
    assert!(matches!(cut, ProviderError::Cut { .. }), "{cut}");
    for empty in [r#"{"choices":[]}"#, r#"{"choices":null}"#] {
        assert!(read_whole(empty).is_err(), "{empty}");
    }
}

#[test]
fn reply_of_another_protocol_has_its_own_error() {
    let foreign = |error: ProviderError| match error {
        ProviderError::WrongProtocol(why) => why,
        other => panic!("{other:?}"),
    };
    let whole = |body: &str| foreign(read_whole(body).expect_err("no reply"));
    let echo = r#"{"method": "POST", "path": "/"}"#;
    let expected = format!("it is not a chat completion: `{echo}`");
    assert_eq!(whole(echo), expected);
    let streamed = format!("data: {echo}\n\ndata: [DONE]\n\n");
    assert_eq!(foreign(failed(&streamed)), expected);
    assert_eq!(whole("[1]"), "it is not a chat completion: `[1]`");
    assert_eq!(
        whole("<h1>Hello</h1>"),
        "it is not a chat completion: a web page: Hello"
    );
    assert_eq!(
        foreign(failed("<html>\nNot here\n</html>\n")),
        "it holds no events: a web page: Not here"
    );
    let broken = read_whole(r#"{"choices": [}"#).expect_err("no reply");
    assert!(
        matches!(broken, ProviderError::Malformed(_)),
        "a fault in transmission: {broken}"
    );
}

/// As Mistral's magistral sends it.
#[test]
fn thinking_parts_of_the_content_become_the_thought() {
    let thinking = r#"{"type":"thinking","thinking":[{"type":"text","text":"hm é"}]}"#;
    let message =
        format!(r#"{{"role":"assistant","content":[{thinking},{{"type":"text","text":"hi"}}]}}"#);
    let body =
        format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#);
    let read = read_whole(&body).expect("a reply");
    assert_eq!(
        (read.reply.text.as_str(), read.reply.thought.as_str()),
        ("hi", "hm é")
    );
    assert_eq!(read.native[0].get(), message);
    let stream = [
        delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm "}]}]}"#),
        delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"é"}]}]}"#),
        delta(r#"{"content":"hi"}"#),
        end("stop"),
    ];
    let read = finished(&stream.concat());
    assert_eq!(
        (read.reply.text.as_str(), read.reply.thought.as_str()),
        ("hi", "hm é")
    );
    assert_eq!(
        read.native[0].get(),
        message,
        "Mistral refuses other members"
    );
}

#[test]
fn legacy_function_call_is_a_call_like_any_other() {
    let read_calls = |reply: &CompletedReply| -> Vec<(String, String)> {
        let calls = reply.reply.calls.iter();
        calls
            .map(|call| (call.name.clone(), call.raw.clone()))
            .collect()
    };
    let pair = |name: &str, raw: &str| (name.to_owned(), raw.to_owned());
    // In pieces, next to a text.
    let streamed = finished(&format!(
        "{}{}{}{}",
        delta(r#"{"content":"ok","function_call":null}"#),
        delta(r#"{"function_call":{"name":"find","arguments":"{\"a\""}}"#),
        delta(r#"{"function_call":{"arguments":":1}"}}"#),
        end("function_call")
    ));
    assert_eq!(read_calls(&streamed), [pair("find", r#"{"a":1}"#)]);
    assert_eq!(streamed.reply.stop, StopReason::ToolCalls);
    // Next to another call, whose pieces have no index.
    let both = finished(&format!(
        "{}{}{}{}",
        delta(r#"{"tool_calls":[{"id":"a","function":{"name":"get","arguments":"{"}}]}"#),
        delta(r#"{"function_call":{"name":"find","arguments":{"a":1}}}"#),
        delta(r#"{"tool_calls":[{"function":{"arguments":"}"}}]}"#),
        end("tool_calls")
    ));
    assert_eq!(
        read_calls(&both),
        [pair("get", "{}"), pair("find", r#"{"a":1}"#)]
    );
    // In a whole reply, which is sent back with a call that has an id.
    let whole = read_whole(
        r#"{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"find","arguments":"{}"}},
            "finish_reason":"function_call"}]}"#,
    )
    .expect("a reply");
    assert_eq!(read_calls(&whole), [pair("find", "{}")]);
    assert!(whole.native[0].get().contains(r#""tool_calls""#));
    let empty = finished(&format!(
        "{}{}",
        delta(r#"{"content":"ok","function_call":{"name":"","arguments":""}}"#),
        end("stop")
    ));
    assert!(empty.reply.calls.is_empty());
}

#[test]
fn created_call_id_is_in_the_message_too() {
    let whole_reply = json!({"choices": [{"message": {"role": "assistant", "content": null,
        "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]});
    let mut reader = reader();
    reader
        .read_document(&whole_reply.to_string(), &mut NewDeltas::new())
        .expect("read");
    let finished = reader.finish().expect("a reply");
    assert_eq!(finished.reply.calls[0].id, "call_2_0");
    assert_eq!(
        finished.native[0].get(),
        to_raw_value(
            &json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_2_0",
            "type": "function", "function": {"name": "f", "arguments": "{}"}}]})
        )
        .expect("JSON")
        .get()
    );
}

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};

use super::super::client::New;
use super::super::testing::{assert_deltas_make, body, cut_everywhere, decl, opening, read};
use super::super::{Finished, ProviderError};
use super::*;
use crate::model::{Answer, Item, ProviderKind, Reply, ReplyCall, StopReason, Usage};

fn config() -> JudgeConfig {
    let mut config = JudgeConfig::new("j", ProviderKind::Openai);
    config.model = "m".to_owned();
    config.base_url = Some("http://127.0.0.1:1/v1".to_owned());
    config
}

fn chat(config: &JudgeConfig) -> Chat {
    Chat::new(config).expect("a good configuration")
}

fn raw(text: &str) -> Arc<RawValue> {
    Arc::from(RawValue::from_string(text.to_owned()).expect("JSON"))
}

#[test]
fn a_judge_without_tools_sends_no_tool_key() {
    let chat = chat(&config());
    let text = body(&chat, &opening(), &[], Choice::NoTools);
    assert_eq!(
        text,
        r#"{"model":"m","messages":[{"role":"system","content":"You judge."},{"role":"user","content":"Judge \"this\"."}],"temperature":0.0,"max_tokens":4096,"stream":true,"stream_options":{"include_usage":true}}"#
    );
    let schema = json!({"type": "object"});
    let text = body(
        &chat,
        &opening(),
        &[decl("fetch_url")],
        Choice::Schema(schema),
    );
    assert!(!text.contains("tool"), "{text}");
    assert!(text.contains(
        r#""response_format":{"type":"json_schema","json_schema":{"name":"verdict","strict":true,"schema":{"type":"object"}}}"#
    ));
}

#[test]
fn tools_are_declared_and_one_can_be_forced() {
    let chat = chat(&config());
    let tools = [decl("fetch_url"), decl("submit_verdict")];
    let free: Value =
        serde_json::from_str(&body(&chat, &opening(), &tools, Choice::Auto)).expect("JSON");
    assert_eq!(
        free["tools"][0],
        json!({"type": "function", "function": {"name": "fetch_url", "description": "does fetch_url",
            "parameters": tools[0].schema}})
    );
    assert_eq!(free.get("tool_choice"), None);
    let only = Choice::Only("submit_verdict".to_owned());
    let forced: Value = serde_json::from_str(&body(&chat, &opening(), &tools, only)).expect("JSON");
    assert_eq!(
        forced["tool_choice"],
        json!({"type": "function", "function": {"name": "submit_verdict"}})
    );
    let turn = TurnRequest {
        history: &opening(),
        tools: &tools,
        choice: Choice::Only("other".to_owned()),
    };
    assert!(matches!(
        chat.pieces(&turn, &Omit::default()),
        Err(ProviderError::Request(_))
    ));
}

#[test]
fn settings_stand_where_the_server_reads_them() {
    let mut config = config();
    config.seed = Some(7);
    config.reasoning = Some("low".to_owned());
    config.stream = false;
    config.temperature = None;
    config.extra_body = Some(json!({"seed": 8, "provider": {"require_parameters": true}}));
    let tail = |config: &JudgeConfig, omit: &Omit| {
        let turn = TurnRequest {
            history: &[],
            tools: &[],
            choice: Choice::NoTools,
        };
        chat(config).pieces(&turn, omit).expect("a body").concat()
    };
    assert_eq!(
        tail(&config, &Omit::default()),
        r#"{"model":"m","messages":[],"seed":8,"reasoning_effort":"low","max_tokens":4096,"stream":false,"provider":{"require_parameters":true}}"#
    );
    let mut omit = Omit {
        refused: vec!["seed", "reasoning"],
        renamed: vec!["max_tokens"],
        known: Vec::new(),
    };
    assert_eq!(
        tail(&config, &omit),
        r#"{"model":"m","messages":[],"max_completion_tokens":4096,"stream":false,"provider":{"require_parameters":true}}"#
    );
    omit.refused.push("max_completion_tokens");
    assert!(!tail(&config, &omit).contains("tokens"));
    config.base_url = None;
    let text = tail(&config, &Omit::default());
    assert!(text.contains(r#""max_completion_tokens":4096"#), "{text}");
}

#[test]
fn the_address_is_the_base_and_the_path() {
    let url = |base: Option<&str>| {
        let mut config = config();
        config.base_url = base.map(str::to_owned);
        Chat::new(&config).map(|chat| chat.url)
    };
    let good = [
        (None, "https://api.openai.com/v1/chat/completions"),
        (
            Some("http://localhost:8080/v1/"),
            "http://localhost:8080/v1/chat/completions",
        ),
        (Some("http://h"), "http://h/chat/completions"),
        (
            Some("https://a.example/o/gpt?api-version=1"),
            "https://a.example/o/gpt/chat/completions?api-version=1",
        ),
        (
            Some("http://h/v1/chat/completions"),
            "http://h/v1/chat/completions",
        ),
    ];
    for (base, expected) in good {
        assert_eq!(url(base).expect("good"), expected);
    }
    for bad in ["localhost:8080", "ftp://h", "", "/v1"] {
        assert!(
            matches!(url(Some(bad)), Err(ProviderError::Request(_))),
            "{bad}"
        );
    }
}

fn turn_with(native: &str, raws: &[&str]) -> Vec<Item> {
    let calls = raws.iter().enumerate().map(|(at, raw)| ReplyCall {
        id: format!("c{at}"),
        name: "f".to_owned(),
        raw: (*raw).to_owned(),
    });
    let view = Reply {
        calls: calls.collect(),
        ..Reply::default()
    };
    let answers = raws.iter().map(|_| Answer::ok("page")).collect();
    vec![
        Item::Model {
            native: vec![raw(native)],
            view,
        },
        Item::Answers(answers),
    ]
}

#[test]
fn what_the_model_said_goes_back_byte_for_byte() {
    let native = r#"{ "role":"assistant", "content":null,"n":1.50, "tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{ \"a\": 1 }"},"x":"s"}] }"#;
    let all = chat(&config())
        .pieces(
            &TurnRequest {
                history: &turn_with(native, &[r#"{"a":1}"#]),
                tools: &[],
                choice: Choice::NoTools,
            },
            &Omit::default(),
        )
        .expect("a body");
    assert_eq!(&*all[1], native);
    assert_eq!(
        &*all[2],
        r#",{"role":"tool","tool_call_id":"c0","content":"page"}"#
    );
}

#[test]
fn arguments_that_are_no_json_go_back_in_canonical_form() {
    // (as the model wrote them, what the judge made of them, what is sent)
    let cases = [
        (r#""{\"a\": 1""#, r#"{"a":1}"#, r#""{\"a\":1}""#),
        (r#""{\"a\": 1""#, r#"{"a": 1"#, r#""{}""#),
        (r#""""#, "", r#""{}""#),
        (r#""\"{}\"""#, r#"{"b":2}"#, r#""{\"b\":2}""#),
        (r#"{"a": 1}"#, "", r#""{\"a\": 1}""#),
        ("null", "", r#""{}""#),
    ];
    for (written, canonical, sent) in cases {
        let native = |arguments: &str| {
            format!(
                r#"{{"role":"assistant","tool_calls":[{{"id":"c0","function":{{"arguments":"{{}}"}}}},{{"function":{{"arguments":{arguments},"name":"f"}},"id":"c1"}}]}}"#
            )
        };
        let history = turn_with(&native(written), &["{}", canonical]);
        let text = body(&chat(&config()), &history, &[], Choice::NoTools);
        assert!(text.contains(&native(sent)), "{written}: {text}");
    }
}

#[test]
fn answers_that_fit_no_calls_are_refused() {
    let history = [Item::Answers(vec![Answer::ok("x")])];
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        choice: Choice::NoTools,
    };
    let refused = chat(&config()).pieces(&turn, &Omit::default());
    assert!(matches!(refused, Err(ProviderError::Request(_))));
}

fn reader() -> Box<dyn Reader> {
    Box::new(stream::ChatReader::new(TurnIx(2), false))
}

fn finished(stream: &str) -> Finished {
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
fn a_stream_becomes_a_reply_and_the_message_that_goes_back() {
    let finished = finished(STREAM);
    let call = |id: &str, raw: &str| ReplyCall {
        id: id.to_owned(),
        name: "fetch_url".to_owned(),
        raw: raw.to_owned(),
    };
    assert_eq!(
        finished.reply,
        Reply {
            text: "Let me 😀 look.".to_owned(),
            thought: "hm é".to_owned(),
            calls: vec![call("a", r#"{"url":"\u00e9"}"#), call("b", "{}")],
            stop: StopReason::ToolCalls,
        }
    );
    assert_eq!(
        finished.usage,
        Usage {
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
fn a_stream_cut_anywhere_is_cut_or_complete() {
    let lenient = cut_everywhere(reader, STREAM);
    let finish = STREAM
        .find("\"finish_reason\":\"tool_calls\"")
        .expect("there");
    assert!(lenient < STREAM.len() - finish);
    let strict = cut_everywhere(
        || Box::new(stream::ChatReader::new(TurnIx(0), true)),
        STREAM,
    );
    assert_eq!(
        strict, 2,
        "complete only with [DONE], its line ended or not"
    );
}

proptest! {
    #[test]
    fn any_split_gives_the_same_reply(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&STREAM.as_bytes()[from..cut]);
            from = cut;
        }
        chunks.push(&STREAM.as_bytes()[from..]);
        let (whole, _) = read(reader(), &[STREAM.as_bytes()]).expect("a reply");
        let (split, new) = read(reader(), &chunks).expect("the same reply");
        assert_deltas_make(&split.reply, &new);
        prop_assert_eq!(split.reply, whole.reply);
        prop_assert_eq!(split.native[0].get(), whole.native[0].get());
    }
}

#[test]
fn calls_are_put_together_however_the_server_marks_them() {
    let call = |json: &str| delta(&format!("{{\"tool_calls\":[{json}]}}"));
    let cases: &[(&str, Vec<String>, &[(&str, &str, &str)])] = &[
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
fn a_gateways_signature_goes_back_with_its_call() {
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
fn stop_reasons_are_told_apart() {
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
    let refusal = delta(r#"{"content":null,"refusal":"I cannot."}"#);
    let refused = finished(&format!("{refusal}{}", end("stop")));
    assert_eq!(refused.reply.stop, StopReason::Refused("I cannot.".into()));
}

#[test]
fn a_fault_is_a_fault_and_never_a_reply() {
    let text = delta(r#"{"content":"{\"passed\":true}"}"#);
    let with = |tail: &str| failed(&format!("{text}{tail}"));
    let is_cut = |error: ProviderError| matches!(error, ProviderError::Cut { .. });
    let is_malformed = |error: ProviderError| matches!(error, ProviderError::Malformed(_));
    assert!(is_cut(failed("")));
    assert!(is_cut(with("")));
    assert!(is_cut(with("data: [DONE]\n\n")), "an end without a reason");
    assert!(is_cut(with("data: {\"choices\":[{\"del")));
    assert!(is_malformed(with("data: {\"choices\":[{\"del\n\n")));
    assert!(is_malformed(with("data: 7\n\n")));
    assert!(is_malformed(failed("<html>\nNot here\n</html>\n")));
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
fn a_whole_reply_is_read_and_goes_back_as_received() {
    let message = r#"{ "role": "assistant", "content": "hi", "annotations": [] }"#;
    let whole = format!(
        r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":2}}}}"#
    );
    let read_whole = |body: &str| {
        let mut reader = reader();
        let mut new = New::new();
        reader.whole(body, &mut new)?;
        reader.end()
    };
    let finished = read_whole(&whole).expect("a reply");
    assert_eq!(finished.reply.text, "hi");
    assert_eq!(finished.native[0].get(), message);
    assert_eq!(finished.usage.output, Some(2));
    for bad in [
        &whole[..whole.len() - 3],
        r#"{"error":{"message":"no"}}"#,
        "<html>",
        "",
        r#"{"choices":[]}"#,
        &whole.replace(r#""stop""#, "null"),
    ] {
        assert!(read_whole(bad).is_err(), "{bad}");
    }
    let ignored_stream = super::super::testing::read(reader(), &[whole.as_bytes(), b"\n"]);
    let (finished, _) = ignored_stream.expect("a server may ignore that a stream was asked for");
    assert_eq!(finished.native[0].get(), message);
}

#[test]
fn a_made_up_id_stands_in_the_message_too() {
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": null,
        "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]});
    let mut reader = reader();
    reader
        .whole(&whole.to_string(), &mut New::new())
        .expect("read");
    let finished = reader.end().expect("a reply");
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

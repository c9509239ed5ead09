//! Calls in pieces, replies in pieces, every way to end, and history of others.

use super::super::*;
use crate::model::{HistoryItem, ModelReply, ProviderKind, ReplyCall, StopReason, ToolResponse};
use crate::provider::client::NewDeltas;
use crate::provider::testing::{assert_deltas_make, body, cut_everywhere, decl, opening, read};
use crate::provider::{CompletedReply, ProviderError};

fn reader() -> Box<dyn ReplyReader> {
    Box::new(stream::GeminiReplyReader::new(TurnIx(1)))
}

fn frame(parts: &str, more: &str) -> String {
    format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}}{more}}}]}}\r\n\r\n")
}

const STOP: &str = r#","finishReason":"STOP""#;

fn finished(stream: &str) -> CompletedReply {
    read(reader(), &[stream.as_bytes()]).expect("a reply").0
}

fn failed(stream: &str) -> ProviderError {
    read(reader(), &[stream.as_bytes()]).expect_err("no reply")
}

fn natives(finished: &CompletedReply) -> Vec<&str> {
    finished.native.iter().map(|part| part.get()).collect()
}

/// As Vertex AI streams arguments: opened, filled by path, closed.
fn pieces(close: &str, more: &str) -> String {
    let piece = |args: &str| {
        format!(r#"{{"functionCall":{{"partialArgs":[{args}],"willContinue":true}}}}"#)
    };
    [
        frame(r#"{"text":"Let me look."}"#, ""),
        frame(r#"{"functionCall":{"name":"f","willContinue":true}, "thoughtSignature":"S+/="}"#, ""),
        frame(&piece(r#"{"jsonPath":"$.url","stringValue":"https://é","willContinue":true}"#), ""),
        frame(&piece(r#"{"jsonPath":"$.url","stringValue":".example/","willContinue":true}"#), ""),
        frame(&piece(r#"{"jsonPath":"$.url","stringValue":""},{"jsonPath":"$.o.n[0]","numberValue":1.50}"#), ""),
        frame(&piece(r#"{"jsonPath":"$.o.n[1]","boolValue":true},{"jsonPath":"$.o['a b']","nullValue":"NULL_VALUE"}"#), ""),
        close.to_owned(),
        frame(r#"{"functionCall":{"name":"g","id":"x","args":{"k":1}}}"#, more),
    ]
    .concat()
}

#[test]
fn streamed_call_is_sent_back_as_one_part() {
    let closed = frame(r#"{"functionCall":{}}"#, "");
    for close in [closed.as_str(), ""] {
        let stream = pieces(close, STOP);
        let (finished, new) = read(reader(), &[stream.as_bytes()]).expect("a reply");
        assert_deltas_make(&finished.reply, &new);
        let args = r#"{"url":"https://é.example/","o":{"n":[1.5,true],"a b":null}}"#;
        let calls: Vec<(&str, &str)> = finished
            .reply
            .calls
            .iter()
            .map(|c| (c.name.as_str(), c.raw.as_str()))
            .collect();
        assert_eq!(calls, [("f", args), ("g", r#"{"k":1}"#)]);
        assert_eq!(finished.reply.stop, StopReason::ToolCalls);
        assert_eq!(
            natives(&finished),
            [
                r#"{"text":"Let me look."}"#,
                &format!(
                    r#"{{"functionCall":{{"name":"f","args":{args}}},"thoughtSignature":"S+/="}}"#
                ),
                r#"{"functionCall":{"name":"g","id":"x","args":{"k":1}}}"#,
            ]
        );
        assert!(cut_everywhere(reader, &stream) <= 4);
    }
}

#[test]
fn end_of_the_reply_closes_a_call_without_a_closing_part() {
    let stream = [
        frame(r#"{"functionCall":{"name":"f","willContinue":true}}"#, ""),
        frame(r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.q","stringValue":"x"}],"willContinue":true},"thoughtSignature":"late"}"#, STOP),
    ]
    .concat();
    let finished = finished(&stream);
    assert_eq!(finished.reply.calls[0].raw, r#"{"q":"x"}"#);
    assert_eq!(
        natives(&finished),
        [r#"{"functionCall":{"name":"f","args":{"q":"x"}},"thoughtSignature":"late"}"#]
    );
    assert!(cut_everywhere(reader, &stream) <= 4);
    let limit = stream.replace("STOP", "MAX_TOKENS");
    assert_eq!(
        self::finished(&limit).reply.stop,
        StopReason::Length,
        "and is no call then"
    );
    let unfinished = stream.replace(STOP, "");
    assert!(matches!(failed(&unfinished), ProviderError::Cut { .. }));
}

#[test]
fn misfitting_pieces_of_arguments_are_rejected_without_allocating() {
    for args in [
        r#"{"jsonPath":"$.a[9999999]","numberValue":1}"#,
        r#"{"jsonPath":"$.a","numberValue":1},{"jsonPath":"$.a.b","numberValue":1}"#,
        r#"{"jsonPath":"$..a","numberValue":1}"#,
        r#"{"jsonPath":"$.a[x]","numberValue":1}"#,
        r#"{"jsonPath":"$","stringValue":"all"}"#,
        &format!(r#"{{"jsonPath":"${}","numberValue":1}}"#, ".a".repeat(65)),
    ] {
        let part = format!(r#"{{"functionCall":{{"name":"f","partialArgs":[{args}]}}}}"#);
        let error = failed(&frame(&part, STOP));
        assert!(
            matches!(error, ProviderError::Malformed(_)),
            "{args}: {error}"
        );
    }
    let lone = failed(&frame(r#"{"functionCall":{"partialArgs":[]}}"#, STOP));
    assert!(matches!(lone, ProviderError::Malformed(_)), "{lone}");
}

#[test]
fn each_end_of_a_reply_has_its_outcome() {
    let end = |reason: &str| {
        let more = format!(r#","finishReason":"{reason}","finishMessage":"its words""#);
        read(
            reader(),
            &[frame(r#"{"text":"{\"passed\":true}"}"#, &more).as_bytes()],
        )
        .map(|(finished, _)| finished.reply.stop)
    };
    for reason in [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "ESCALATION",
        "LANGUAGE",
        "IMAGE_SAFETY",
    ] {
        let explanation = format!("{reason}: its words");
        assert_eq!(
            end(reason).expect("a refusal"),
            StopReason::Refused(explanation)
        );
    }
    for (reason, again) in [
        ("MALFORMED_FUNCTION_CALL", true),
        ("MALFORMED_RESPONSE", true),
        ("OTHER", true),
        ("UNEXPECTED_TOOL_CALL", false),
        ("TOO_MANY_TOOL_CALLS", false),
        ("MISSING_THOUGHT_SIGNATURE", false),
    ] {
        let Err(ProviderError::InStream { message, retryable }) = end(reason) else {
            panic!("{reason} is a fault, whatever was said before");
        };
        assert_eq!(
            message,
            format!("the model stopped with {reason}: its words")
        );
        assert_eq!(retryable, again, "{reason}");
    }
    assert_eq!(end("STOP").expect("good"), StopReason::Stop);
    assert_eq!(end("MAX_TOKENS").expect("known"), StopReason::Length);
    let new = "SOMETHING_NEW";
    assert_eq!(
        end(new).expect("passed on"),
        StopReason::Other(format!("{new}: its words"))
    );
    // The last reason counts, unless one before it is a limit, a refusal or a fault.
    let twice = |first: &str, second: &str| {
        let reason = |word: &str| format!(r#","finishReason":"{word}""#);
        let stream = [
            frame(r#"{"text":"{\"passed\":true}"}"#, &reason(first)),
            frame(r#"{"text":""}"#, &reason(second)),
        ];
        read(reader(), &[stream.concat().as_bytes()]).map(|(finished, _)| finished.reply.stop)
    };
    assert_eq!(twice("STOP", "STOP").expect("good"), StopReason::Stop);
    let cut = StopReason::Length;
    assert_eq!(twice("STOP", "MAX_TOKENS").expect("known"), cut);
    assert_eq!(twice("MAX_TOKENS", "STOP").expect("known"), cut);
    let refused = StopReason::Refused("SAFETY".to_owned());
    assert_eq!(twice("SAFETY", "STOP").expect("a refusal"), refused);
    assert!(twice("MALFORMED_RESPONSE", "STOP").is_err());
    assert_eq!(
        twice("CONTINUATION", "STOP").expect("good"),
        StopReason::Stop
    );
    for open in ["CONTINUATION", "FINISH_REASON_UNSPECIFIED", ""] {
        assert!(
            matches!(end(open), Err(ProviderError::Cut { .. })),
            "{open}"
        );
    }
}

#[test]
fn blocked_prompt_is_refused_even_with_other_content() {
    for reason in [
        "SAFETY",
        "OTHER",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
        "JAILBREAK",
    ] {
        let blocked = format!(
            "data: {{\"promptFeedback\":{{\"blockReason\":\"{reason}\",\"blockReasonMessage\":\"no\"}}}}\n\n"
        );
        for stream in [
            blocked.clone(),
            format!("{blocked}{}", frame(r#"{"text":"yes"}"#, STOP)),
        ] {
            assert_eq!(
                finished(&stream).reply.stop,
                StopReason::Refused(format!("the prompt was blocked: {reason}: no"))
            );
        }
    }
    let none = "data: {\"promptFeedback\":{\"blockReason\":\"BLOCK_REASON_UNSPECIFIED\"}}\n\n";
    assert!(matches!(failed(none), ProviderError::Cut { .. }));
}

#[test]
fn message_explains_that_thinking_used_up_the_limit() {
    let stream = format!(
        "{}data: {{\"usageMetadata\":{{\"thoughtsTokenCount\":4096}}}}\n\n",
        frame("", r#","finishReason":"MAX_TOKENS""#)
    );
    let message = finished(&stream).explain_token_limit();
    assert!(
        message.contains("thinking took all of it (4096 tokens)"),
        "{message}"
    );
    let message = finished(&frame(r#"{"text":"x"}"#, r#","finishReason":"MAX_TOKENS""#))
        .explain_token_limit();
    assert_eq!(
        message,
        "the reply hit its token limit before it was complete"
    );
}

#[test]
fn continuation_extends_the_reply_at_most_three_times() {
    let mut reader = reader();
    let going_on = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"CONTINUATION","continuationToken":"t"}]}"#;
    for _ in 0..3 {
        reader
            .read_document(going_on, &mut NewDeltas::new())
            .expect("read");
        assert_eq!(
            reader.take_continuation_member().as_deref(),
            Some(r#""continuationToken":"t""#)
        );
    }
    reader
        .read_document(going_on, &mut NewDeltas::new())
        .expect("read");
    assert_eq!(
        reader.take_continuation_member(),
        None,
        "three times are enough"
    );
    assert!(matches!(reader.finish(), Err(ProviderError::Cut { .. })));
}

#[test]
fn absent_empty_or_repeated_call_ids_become_unique() {
    let call = |id: &str| format!(r#"{{"functionCall":{{{id}"name":"f","args":{{}}}}}}"#);
    let parts = [
        call(r#""id":"a","#),
        call(r#""id":"a","#),
        call(r#""id":"","#),
        call(""),
    ];
    let finished = finished(&frame(&parts.join(","), STOP));
    let ids: Vec<&str> = finished.reply.calls.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["a", "call_1_1", "call_1_2", "call_1_3"]);
    let mut history = opening();
    history.push(HistoryItem::Model {
        native: finished.native,
        reply: finished.reply,
    });
    history.push(HistoryItem::ToolResponses(
        (0..4).map(|_| ToolResponse::ok("r")).collect(),
    ));
    let text = sent(&history);
    let response = |id: &str| {
        format!(r#"{{"functionResponse":{{{id}"name":"f","response":{{"output":"r"}}}}}}"#)
    };
    let expected = [
        response(r#""id":"a","#),
        response(r#""id":"a","#),
        response(""),
        response(""),
    ];
    assert!(text.contains(&expected.join(",")), "{text}");
    assert!(!text.contains("call_1"), "no invented id is sent: {text}");
}

fn sent(history: &[HistoryItem]) -> String {
    let mut config = JudgeConfig::new("j", ProviderKind::Gemini);
    config.model = "gemini-3-pro".to_owned();
    let dialect = GeminiDialect::new(&config).expect("a good configuration");
    body(&dialect, history, &[decl("f")], ToolChoice::Auto)
}

#[test]
fn turn_of_another_dialect_is_rendered_again_and_marked() {
    let raw = |text: &str| {
        Arc::from(serde_json::value::RawValue::from_string(text.to_owned()).expect("JSON"))
    };
    let call = |name: &str, raw: &str| ReplyCall {
        id: "call_9".to_owned(),
        name: name.to_owned(),
        raw: raw.to_owned(),
    };
    let view = ModelReply {
        text: "Looking.".to_owned(),
        calls: vec![call("f", r#"{"n":1}"#), call("g", "broken")],
        ..ModelReply::default()
    };
    for native in [
        vec![raw(
            r#"{"role":"assistant","content":"Looking.","tool_calls":[]}"#,
        )],
        vec![
            raw(r#"{"type":"text","text":"Looking."}"#),
            raw(r#"{"type":"tool_use","name":"f"}"#),
        ],
        Vec::new(),
    ] {
        let mut history = opening();
        history.push(HistoryItem::Model {
            native,
            reply: view.clone(),
        });
        history.push(HistoryItem::ToolResponses(vec![
            ToolResponse::ok("1"),
            ToolResponse::ok("2"),
        ]));
        let text = sent(&history);
        let model = r#"{"role":"model","parts":[{"text":"Looking."},{"functionCall":{"name":"f","args":{"n":1}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"g","args":{}}}]}"#;
        assert!(text.contains(model), "{text}");
        assert!(
            !text.contains("assistant") && !text.contains("call_9") && !text.contains("tool_use")
        );
    }
}

#[test]
fn repaired_call_keeps_its_signature_and_gets_canonical_arguments() {
    let raw = |text: &str| {
        Arc::from(serde_json::value::RawValue::from_string(text.to_owned()).expect("JSON"))
    };
    let view = |canonical: &str| ModelReply {
        calls: vec![ReplyCall {
            id: "call_1".to_owned(),
            name: "f".to_owned(),
            raw: canonical.to_owned(),
        }],
        ..ModelReply::default()
    };
    // A part of its own is signed, whatever it contains.
    let part = r#"{"functionCall":{"name":"f","args":"{a: 1"},"thoughtSignature":"s=="}"#;
    // (where it comes from, what the judge made of its arguments, what is sent)
    let foreign = r#"{"role":"assistant","tool_calls":[]}"#;
    let anew = |args: &str| {
        format!(
            r#"{{"functionCall":{{"name":"f","args":{args}}},"thoughtSignature":"skip_thought_signature_validator"}}"#
        )
    };
    for (native, canonical, expected) in [
        (part, r#"{"a":1}"#, part.to_owned()),
        (foreign, r#"{"a":1}"#, anew(r#"{"a":1}"#)),
        (
            foreign,
            r#"{"n":12345678901234567890123}"#,
            anew(r#"{"n":12345678901234567890123}"#),
        ),
        (foreign, "{a: 1", anew("{}")),
        (foreign, "[1]", anew("{}")),
    ] {
        let mut history = opening();
        history.push(HistoryItem::Model {
            native: vec![raw(native)],
            reply: view(canonical),
        });
        history.push(HistoryItem::ToolResponses(vec![ToolResponse::ok("r")]));
        let text = sent(&history);
        let model = format!(r#"{{"role":"model","parts":[{expected}]}}"#);
        assert!(text.contains(&model), "{canonical}: {text}");
    }
}

#[test]
fn error_of_every_shape_is_recognized_at_every_cut() {
    let text = frame(r#"{"text":"{\"passed\":true}"}"#, "");
    for error in [
        "{\r\n  \"error\": {\r\n    \"code\": 503,\r\n    \"message\": \"over\"\r\n  }\r\n}\r\n",
        "[{\r\n  \"error\": {\r\n    \"code\": 503,\r\n    \"message\": \"over\"\r\n  }\r\n}]\r\n",
        "data: {\"error\":{\"code\":503,\"message\":\"over\"}}\r\n\r\n",
        "data: [{\"error\":{\"code\":503,\"message\":\"over\"}}]\r\n\r\n",
    ] {
        let stream = format!("{text}{error}");
        for cut in 0..=stream.len() {
            let read = read(reader(), &[&stream.as_bytes()[..cut]]);
            assert!(read.is_err(), "cut at {cut} of {error}");
        }
    }
}

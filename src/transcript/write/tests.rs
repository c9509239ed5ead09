//! The law of the native form, over every shape that a record can have.

use proptest::prelude::*;

use serde_json::Value;

use super::super::parse_native;
use super::*;
use crate::model::{RawJson, SourceText, SourceVerdict};

fn read(bytes: &[u8]) -> Transcript<'static> {
    let parsed = parse_native(bytes, 1, "t");
    let text = || String::from_utf8_lossy(bytes).into_owned();
    parsed
        .unwrap_or_else(|bad| panic!("{}: {}", bad.why, text()))
        .into_owned()
}

/// Written and read again.
fn again(transcript: &Transcript<'_>) -> Transcript<'static> {
    let line = to_native(transcript);
    assert!(!line.contains(&b'\n'), "lines stay lines");
    read(&line)
}

/// A value as a file may hold it, on one line: numbers beyond every type of the crate among them.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1e400".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("1.10".to_owned()),
        Just("-0".to_owned()),
        any_string(),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|all| format!("[{}]", all.join(", "))),
            prop::collection::vec((any_key(), inner), 0..3).prop_map(|all| object(&all)),
        ]
    })
}

fn any_string() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z \\\\\"\\n\u{e9}\u{1F600}\\x00]{0,6}",
        Just("null".to_owned())
    ]
    .prop_map(|text| Value::from(text).to_string())
}

fn any_key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "text",
        "is_error",
        "duration_ms",
        "k",
        "raw",
        "kind",
        "id",
        "name",
        "tool_call_id",
        "content",
        "latency_ms",
    ])
    .prop_map(str::to_owned)
}

fn object(entries: &[(String, String)]) -> String {
    let mut seen = std::collections::HashSet::new();
    let entries: Vec<String> = entries
        .iter()
        .filter(|(key, _)| seen.insert(key.clone()))
        .map(|(key, value)| format!("\"{key}\": {value}"))
        .collect();
    format!("{{{}}}", entries.join(","))
}

fn any_object() -> impl Strategy<Value = String> {
    prop::collection::vec((any_key(), any_json()), 0..4).prop_map(|all| object(&all))
}

fn any_part() -> impl Strategy<Value = String> {
    prop_oneof![
        any_string(),
        any_object(),
        any_string().prop_map(|t| format!(r#"{{"type":"text","text":{t}}}"#)),
        any_string().prop_map(|t| format!(r#"{{"type":"refusal","refusal":{t}}}"#)),
        any_string().prop_map(|t| format!(r#"{{"type":"thinking","thinking":{t}}}"#)),
        (any_string(), any_json()).prop_map(|(name, args)| format!(
            r#"{{"type":"tool_call","id":"c","name":{name},"arguments":{args}}}"#
        )),
        (any_string(), any_json(), any_json()).prop_map(|(id, content, says)| format!(
            r#"{{"type":"tool_result","tool_call_id":{id},"content":{content},"is_error":{says},"duration_ms":{says}}}"#
        )),
        any_json().prop_map(|raw| format!(r#"{{"type":"image_url","image_url":{raw}}}"#)),
        any_json().prop_map(|data| format!(
            r#"{{"type":"document","document":{{"data":{data}}}}}"#
        )),
        any_json().prop_map(|raw| format!(r#"{{"type":"verbatim","raw":{raw}}}"#)),
        any_json().prop_map(|raw| format!(r#"{{"type":"media","kind":"x","raw":{raw}}}"#)),
    ]
}

fn any_content() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        any_string(),
        any_object(),
        prop::collection::vec(any_part(), 0..4).prop_map(|all| format!("[{}]", all.join(","))),
    ]
}

fn any_call() -> impl Strategy<Value = String> {
    (any_json(), any_json()).prop_map(|(id, args)| {
        format!(r#"{{"id":{id},"type":"function","function":{{"name":"f","arguments":{args}}}}}"#)
    })
}

prop_compose! {
    fn any_message()(
        role in prop::sample::select(vec!["system", "developer", "user", "Assistant", "tool", "function", "critic", ""]),
        content in any_content(),
        calls in prop::collection::vec(any_call(), 0..3),
        reasoning in prop::option::of(any_json()),
        refusal in prop::option::of(any_string()),
        id in prop::option::of(any_json()),
        metadata in prop::option::of(prop_oneof![
            any_json(),
            any_object(),
            Just(r#"{"big": 1e400, "is_error": true, "duration_ms": 12.50}"#.to_owned()),
        ]),
    ) -> String {
        let mut entries = vec![format!("\"role\":\"{role}\""), format!("\"content\":{content}")];
        if !calls.is_empty() {
            entries.push(format!("\"tool_calls\":[{}]", calls.join(",")));
        }
        for (key, value) in [("reasoning_content", reasoning), ("refusal", refusal), ("tool_call_id", id), ("metadata", metadata)] {
            entries.extend(value.map(|value| format!("\"{key}\":{value}")));
        }
        format!("{{{}}}", entries.join(","))
    }
}

prop_compose! {
    fn any_record()(
        messages in prop::collection::vec(any_message(), 0..4),
        id in any_json(),
        metadata in any_json(),
        tags in any_json(),
        verdict in prop::option::of((any_string(), any_json(), prop::option::of(any::<bool>()), prop::option::of(0.0..1.0f64))),
    ) -> String {
        let verdicts: Vec<String> = verdict.into_iter().map(|(eval, value, passed, score)| {
            let passed = Value::from(passed);
            let score = Value::from(score);
            format!(r#"{{"judge":"j","eval":{eval},"value":{value},"passed":{passed},"score":{score}}}"#)
        }).collect();
        format!(
            r#"{{"id":{id},"messages":[{}],"metadata":{metadata},"tags":{tags},"verdicts":[{}]}}"#,
            messages.join(","), verdicts.join(","),
        )
    }
}

fn any_text() -> impl Strategy<Value = SourceText<'static>> {
    prop_oneof![Just(String::new()), "[a-z\\n\"]{0,4}"].prop_map(SourceText::from)
}

/// Any part that a reader could make, lawful or not.
fn any_model_part() -> impl Strategy<Value = TranscriptPart<'static>> {
    let json =
        || any_json().prop_map(|json| super::super::native::owned_json(&json).expect("JSON"));
    prop_oneof![
        any_text().prop_map(TranscriptPart::Text),
        any_text().prop_map(TranscriptPart::Reasoning),
        (any_text(), any_text(), any_text()).prop_map(|(id, name, arguments)| {
            TranscriptPart::ToolCall(ToolCall {
                id,
                name,
                arguments,
            })
        }),
        (
            any_text(),
            any_text(),
            any::<Option<bool>>(),
            any::<Option<f64>>()
        )
            .prop_map(|(call_id, content, is_error, duration_ms)| {
                TranscriptPart::ToolResult(ToolResult {
                    call_id,
                    content,
                    is_error,
                    duration_ms,
                })
            }),
        (any_text(), json()).prop_map(|(kind, raw)| TranscriptPart::Media { kind, raw }),
        json().prop_map(TranscriptPart::Other),
    ]
}

fn any_transcript() -> impl Strategy<Value = Transcript<'static>> {
    let role = prop_oneof![
        Just(MessageRole::System),
        Just(MessageRole::User),
        Just(MessageRole::Assistant),
        Just(MessageRole::Tool),
        any_text().prop_map(MessageRole::Other),
    ];
    let metadata = || {
        prop::option::of(any_json())
            .prop_map(|m| m.and_then(|m| super::super::native::owned_json(&m)))
    };
    let message = (
        role,
        prop::collection::vec(any_model_part(), 0..5),
        metadata(),
    )
        .prop_map(|(role, parts, metadata)| TranscriptMessage {
            role,
            parts,
            metadata,
        });
    let messages = prop::collection::vec(message, 0..4);
    (
        any_text(),
        messages,
        metadata(),
        prop::collection::vec(any_text(), 0..2),
    )
        .prop_map(|(id, messages, metadata, tags)| Transcript {
            id,
            messages,
            metadata,
            tags,
            verdicts: Vec::new(),
        })
}

proptest! {
    #[test]
    fn transcript_survives_write_and_read(record in any_record()) {
        // What is bad stays bad; what is good survives.
        if let Ok(transcript) = parse_native(record.as_bytes(), 1, "t") {
            prop_assert_eq!(again(&transcript), transcript);
        }
    }

    #[test]
    fn written_transcript_is_read_back_unchanged(transcript in any_transcript()) {
        let once = again(&transcript);
        prop_assert_eq!(again(&once), once);
    }
}

#[test]
fn result_in_a_part_gives_its_message_no_metadata() {
    for fields in [
        r#""is_error":true,"duration_ms":true"#,
        r#""is_error":true"#,
        r#""duration_ms":2.5"#,
        r#""is_error":"yes","duration_ms":"soon""#,
    ] {
        for metadata in [
            "null",
            "{}",
            r#"{"is_error":null,"k":1}"#,
            r#"{"is_error":"yes","duration_ms":[1]}"#,
            r#"{"is_error":true,"duration_ms":2.5}"#,
            r#"{"is_error":true,"is_error":false}"#,
        ] {
            let record = format!(
                r#"{{"id":null,"messages":[{{"role":"tool","content":[{{"type":"tool_result","tool_call_id":"","content":null,{fields}}}],"metadata":{metadata}}}],"metadata":null,"tags":null,"verdicts":[]}}"#
            );
            let transcript = read(record.as_bytes());
            assert_eq!(again(&transcript), transcript, "{record}");
        }
    }
}

#[test]
fn result_of_another_format_never_loses_its_error() {
    for metadata in [
        None,
        Some(r#"{"is_error":null}"#),
        Some(r#"{"is_error":"yes"}"#),
        Some(r#"{"is_error":false,"is_error":true}"#),
    ] {
        let result = ToolResult {
            call_id: "c".into(),
            content: "x".into(),
            is_error: Some(true),
            duration_ms: None,
        };
        let message = TranscriptMessage {
            role: MessageRole::Tool,
            parts: vec![TranscriptPart::ToolResult(result.clone())],
            metadata: metadata.and_then(super::super::native::owned_json),
        };
        let transcript = Transcript {
            messages: vec![message],
            ..Transcript::default()
        };
        let mut line = Vec::new();
        write_native(&transcript, &mut line);
        assert_eq!(
            read(&line).messages[0].parts,
            [TranscriptPart::ToolResult(result)],
            "{metadata:?}"
        );
    }
}

#[test]
fn numbers_in_metadata_survive_as_written() {
    let numbers = r#"{"big": 123456789012345678901234567890, "far": 1e400, "exact": 1.10}"#;
    let record = format!(
        r#"{{"id":"a","messages":[{{"role":"tool","tool_call_id":"c","content":"x","metadata":{numbers}}}],"metadata":{numbers}}}"#
    );
    let mut transcript = read(record.as_bytes());
    assert_eq!(again(&transcript), transcript);
    let TranscriptPart::ToolResult(result) = &mut transcript.messages[0].parts[0] else {
        panic!("a result");
    };
    result.is_error = Some(true);
    result.duration_ms = Some(2.5);
    let mut line = Vec::new();
    write_native(&transcript, &mut line);
    let metadata = read(&line).messages[0].metadata.clone().expect("metadata");
    let expected = r#"{"big":123456789012345678901234567890,"far":1e400,"exact":1.10,"is_error":true,"duration_ms":2.5}"#;
    assert_eq!(metadata.get(), expected);
}

#[test]
fn json_over_several_lines_stays_on_one() {
    let raw = "{\n \"type\": \"chart\",\n \"data\": [1,\n 2], \"s\": \"a\\n b\"}";
    let record = format!(r#"{{"id":"a","messages":[{{"role":"user","content":[{raw}]}}]}}"#);
    let transcript = read(record.as_bytes());
    let TranscriptPart::Other(kept) = &again(&transcript).messages[0].parts[0] else {
        panic!("kept");
    };
    assert_eq!(kept.get(), r#"{"type":"chart","data":[1,2],"s":"a\n b"}"#);
}

#[test]
fn verdicts_survive_a_write_and_a_read() {
    let verdict = SourceVerdict {
        judge: "inspect".to_owned(),
        eval: "match".to_owned(),
        passed: Some(true),
        score: Some(0.1),
        value: Some(RawJson::parse("\"C\"").expect("JSON")),
        reasoning: Some("why".to_owned()),
        error: None,
    };
    let transcript = Transcript {
        id: "a".into(),
        verdicts: vec![verdict],
        ..Transcript::default()
    };
    assert_eq!(again(&transcript), transcript);
}

#[test]
fn media_that_contains_a_document_of_cohere_stays_media() {
    let record = r#"{"messages":[{"role":"tool","content":[{"type":"media","kind":"document","raw":{"type":"document","document":{"data":"x"}}}]}]}"#;
    let transcript = read(record.as_bytes());
    assert_eq!(again(&transcript), transcript);
}

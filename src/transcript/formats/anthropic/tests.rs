//! Records of the Messages API as people log them, alone and among others.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::super::{BadRecord, TranscriptFile};
use crate::model::{Transcript, TranscriptPart};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/anthropic/mixed.jsonl")
}

type Read = Vec<Result<Transcript<'static>, BadRecord>>;

fn all(path: &Path) -> (&'static str, Read) {
    let mut open = TranscriptFile::open(path).expect("a file of transcripts");
    let mut read = Vec::new();
    while let Some(block) = open.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            if record.fault.is_none() {
                assert_eq!(open.read_native(record.span).expect("again"), bytes);
            }
            let id = open.default_id(record.span.number);
            read.push(record.parse(bytes, &id).map(Transcript::into_owned));
        }
    }
    (open.format(), read)
}

fn of(text: &str) -> (&'static str, Read) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.jsonl");
    std::fs::write(&path, text).expect("written");
    all(&path)
}

/// Role and parts of every message, in short.
fn describe_messages(transcript: &Transcript<'_>) -> Vec<String> {
    let part = |part: &TranscriptPart<'_>| match part {
        TranscriptPart::Text(text) => text.to_string(),
        TranscriptPart::Reasoning(text) => format!("<{text}>"),
        TranscriptPart::ToolCall(call) => format!("{}={}({})", call.id, call.name, call.arguments),
        TranscriptPart::ToolResult(result) => {
            format!(
                "{}:{:?} {:?}",
                result.call_id, result.is_error, &*result.content
            )
        }
        TranscriptPart::Media { kind, .. } => format!("[{kind}]"),
        TranscriptPart::Other(raw) => format!("other {}", raw.get()),
    };
    let messages = transcript.messages.iter();
    messages
        .map(|message| {
            let parts: Vec<String> = message.parts.iter().map(part).collect();
            format!("{}: {}", message.role.as_str(), parts.join("; "))
        })
        .collect()
}

fn meta(transcript: &Transcript<'_>) -> Value {
    transcript
        .metadata
        .as_ref()
        .map(crate::model::JsonText::parse_value)
        .unwrap_or_default()
}

#[test]
fn blocks_become_parts_and_results_become_messages_in_order() {
    let (format, read) = all(&fixture());
    assert_eq!(format, "Anthropic messages (content blocks)");
    let read: Vec<_> = read.into_iter().map(|one| one.expect("good")).collect();
    let request = [
        "system: Be brief.",
        "user: Oslo and Bergen?",
        r#"assistant: <Ask both.>; other {"type":"redacted_thinking","data":"cmVk"}; I look.; toolu_1=get_weather({"city":"Oslo","days":12345678901234567890123}); toolu_2=get_weather({})"#,
        r#"tool: toolu_1:None "4 degrees\nrain"; [image]"#,
        r#"tool: toolu_2:Some(true) "no such city""#,
        "user: And the ferry?; [document]",
    ];
    let reply = r#"assistant: srvtoolu_1=web_search({"query":"ferry"}); srvtoolu_1:None "Ferries\nhttps://example.com/f"; srvtoolu_2=code_execution({}); srvtoolu_2:Some(true) "{\"type\":\"code_execution_tool_result_error\",\"error_code\":\"unavailable\"}"; At nine.; Daily."#;
    assert_eq!(describe_messages(&read[0])[..6], request);
    assert_eq!(describe_messages(&read[0])[6], reply);
    assert_eq!(describe_messages(&read[1]), request);
    assert_eq!(
        describe_messages(&read[2]),
        ["system: x", "assistant: c=f({})"],
        "in its own shape"
    );
    assert_eq!(
        describe_messages(&read[3]),
        ["system: Be brief.", "user: hi", "assistant: ho"]
    );
    assert_eq!(describe_messages(&read[4]), [reply]);
    assert_eq!(describe_messages(&read[5]), [reply]);
    assert!(read[6].messages.is_empty() && read[7].messages.is_empty());
    assert_eq!(describe_messages(&read[8]), ["user: hi"]);
    assert_eq!(describe_messages(&read[9])[..2], ["system: s", "user: hi"]);
    assert_eq!(describe_messages(&read[9])[2], reply);
    let ids: Vec<String> = read.iter().map(|one| one.id.to_string()).collect();
    assert_eq!(
        ids,
        [
            "pair", "mixed:2", "chat", "mixed:4", "msg_01", "b-1", "b-2", "b-3", "b-4", "msg_01"
        ]
    );
}

#[test]
fn metadata_of_a_message_is_kept() {
    let (_, read) = all(&fixture());
    let read: Vec<_> = read.into_iter().map(|one| one.expect("good")).collect();
    assert_eq!(
        meta(&read[0]),
        json!({"source": "anthropic", "model": "claude-sonnet-4-5-20250929", "tools": ["get_weather"], "user_id": "u-7",
            "usage": {"input": 1110, "output": 50, "cached": 1000, "thinking": 20}}),
        "the request contains a reply without usage, so the call's usage is that of the transcript"
    );
    let reply = read[0].messages[6]
        .metadata
        .as_ref()
        .expect("metadata")
        .parse_value();
    assert_eq!(
        reply,
        json!({
            "timestamp": "2026-11-20T10:00:00Z", "latency_ms": 850,
            "model": "claude-sonnet-4-5-20250929", "stop_reason": "end_turn",
            "usage": {"input": 1110, "output": 50, "cached": 1000, "thinking": 20},
            "citations": [{"type": "web_search_result_location", "url": "https://example.com/f", "cited_text": "09:00"}],
        })
    );
    assert_eq!(meta(&read[6])["error"], "overloaded_error: Overloaded");
    assert_eq!(meta(&read[7])["error"], "the batch says: expired");
}

#[test]
fn anthropic_record_after_many_native_ones_is_converted() {
    let chat = r#"{"messages":[{"role":"user","content":"hi"}],"kept":1}"#;
    let ours = r#"{"id":"late","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}]}"#;
    let told_so = r#"{"system":"s","messages":[{"role":"user","content":"hi"}]}"#;
    let (format, read) = of(&format!(
        "{}{ours}\n{told_so}\n{chat}",
        format!("{chat}\n").repeat(100)
    ));
    assert_eq!(format, "native");
    let read: Vec<_> = read.into_iter().map(|one| one.expect("good")).collect();
    assert_eq!(describe_messages(&read[100]), ["assistant: t=n({})"]);
    assert_eq!(&*read[100].id, "late");
    assert_eq!(describe_messages(&read[101]), ["system: s", "user: hi"]);
    assert_eq!((&*read[102].id, read.len()), ("t:103", 103));
}

#[test]
fn a_record_over_many_lines_becomes_one() {
    let record: Value = serde_json::from_str(
        r#"{"role":"assistant","type":"message","stop_reason":null,"content":[{"type":"image","source":{"a":"b\nc"}}]}"#,
    )
    .expect("JSON");
    let text = serde_json::to_string_pretty(&record).expect("JSON");
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.json");
    std::fs::write(&path, text).expect("written");
    let mut open = TranscriptFile::open(&path).expect("a file of transcripts");
    let block = open.next_block().expect("a block").expect("one");
    let (_, line) = block.records().next().expect("one");
    assert!(!line.contains(&b'\n'));
    assert_eq!(
        describe_messages(all(&path).1[0].as_ref().expect("good")),
        ["assistant: [image]"]
    );
}

#[test]
fn look_alike_json_stays_a_part() {
    for text in [
        r#"{"system":"beam","messages":[{"role":"system","content":"x"},{"role":"user","content":"y"}]}"#,
        r#"{"system":{"name":"beam"},"messages":[{"role":"user","content":"y"}]}"#,
        r#"{"system":"beam","messages":[{"role":"assistant","content":null,"tool_calls":[]}]}"#,
        r#"{"messages":[{"role":"user","content":"\"tool_use\" and tool_result"}]}"#,
        r#"{"messages":[{"role":"assistant","content":[{"type":"tool_result","tool_call_id":"c","content":"x"}]}]}"#,
    ] {
        let (format, read) = of(text);
        assert_eq!(format, "native", "{text}");
        assert!(read[0].is_ok(), "{read:?}");
    }
}

#[test]
fn hostile_records_are_faults_and_other_records_are_read() {
    let good = r#"{"system":"s","messages":[{"role":"user","content":"hi"}]}"#;
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let odd = format!(
        r#"{{"system":5,"messages":[{{"role":"user","content":[{deep},7,null,{{}},{{"type":"tool_use"}},{{"type":"tool_result","tool_use_id":7,"content":{deep},"is_error":"x"}}]}}]}}"#
    );
    let bad = [
        r#"{"system":"s","messages":[{"content":"x"}]}"#,
        r#"{"custom_id":"x","result":5}"#,
        r#"{"custom_id":"x","params":{"messages":{}}}"#,
        r#"{"system":"s","messages":[],"x":NaN}"#,
        r#"{"system":"s","messages":[{"role":"user""#,
    ];
    let (_, read) = of(&format!(
        "\u{feff}{good}\r\n{odd}\r\n{}\r\n{good}",
        bad.join("\r\n")
    ));
    assert_eq!(read.len(), 3 + bad.len());
    assert_eq!(
        describe_messages(read[0].as_ref().expect("good")),
        ["system: s", "user: hi"]
    );
    assert!(read[1].is_err() || read[1].is_ok());
    for (at, text) in bad.iter().enumerate() {
        let bad = read[2 + at].as_ref().expect_err(text);
        assert!(!bad.why.is_empty());
    }
    assert!(read.last().expect("one").is_ok());
}

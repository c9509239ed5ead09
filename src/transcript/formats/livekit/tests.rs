//! Histories as livekit writes them.

use serde_json::json;

use crate::transcript::formats::read_back::{fixture, message_lines, read};
use crate::transcript::{UnreadContent, parse_native};

#[test]
fn chat_context_with_every_item_kind_is_read() {
    let (all, tally) = read(&fixture("livekit/chat_ctx_all.json"));
    let transcript = all[0].as_ref().expect("a transcript");
    assert_eq!(
        message_lines(transcript),
        [
            "system You are a voice agent.",
            "user Look at this | <image_content>",
            "assistant Let me check the weather for",
            "user Go on",
            "assistant get_weather({\"city\": \"Oslo\"})",
            "tool 12 degrees",
            "assistant get_weather({})",
            "tool city is missing",
            "agent_handoff greeter -> billing",
            "system New instructions.",
            "assistant It is 12 degrees in Oslo.",
        ]
    );
    let messages = &transcript["messages"];
    assert_eq!(messages[2]["metadata"]["interrupted"], true);
    assert_eq!(messages[2]["metadata"]["end_to_end_latency_ms"], 900.0);
    assert_eq!(messages[7]["metadata"]["is_error"], true);
    assert!(messages[5]["metadata"]["duration_ms"].as_f64() > Some(0.0));
    assert_eq!(messages[9]["metadata"]["tools_added"], json!(["lookup"]));
    assert_eq!(tally.unknown_count(), 0);
}

#[test]
fn session_report_becomes_a_transcript() {
    let (all, tally) = read(&fixture("livekit/report.json"));
    let transcript = all[0].as_ref().expect("a transcript");
    assert_eq!(
        (&transcript["id"], &transcript["tags"]),
        (&json!("AJ_1"), &json!(["voice"]))
    );
    assert_eq!(
        message_lines(transcript),
        [
            "user Newest Beam?",
            "assistant fetch_url({\"url\": \"https://beam.apache.org/\"}) | broken({not json)",
            "tool Beam 2.70",
            "tool could not parse",
            "assistant 2.70 | two seventy",
            "surprise <surprise>",
        ]
    );
    assert_eq!(transcript["messages"][2]["metadata"]["duration_ms"], 250.0);
    assert_eq!(transcript["messages"][4]["metadata"]["model"], "made-1");
    let meta = &transcript["metadata"];
    assert_eq!(
        meta["usage"],
        json!({"input": 30, "output": 6, "cached": 10})
    );
    assert_eq!(
        (&meta["room"], &meta["error"]),
        (&json!("desk"), &json!("overloaded"))
    );
    assert_eq!(
        tally.unknown_count(),
        0,
        "an unknown item is kept as a message"
    );
    let native = all[0].as_ref().expect("a transcript").to_string();
    let unread = UnreadContent::find(&parse_native(native.as_bytes(), 1, "").expect("native"));
    assert_eq!(unread.kinds["a part of the type `surprise`"], 1);
}

#[test]
fn one_history_per_line_and_invalid_lines_are_faults() {
    let line = r#"{"items":[{"type":"message","role":"user","content":["hi"]}]}"#;
    let (all, _) = read(format!("{line}\r\n{{\"items\":7}}\n{line}\n{{\"items\":[7,").as_bytes());
    assert_eq!(
        all.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, false, true, false]
    );
}

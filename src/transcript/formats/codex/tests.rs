//! Rollouts and event streams, each as its fixture has it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::read_back;
use super::super::testing::{
    ReadTranscript, assert_matches_expected, assert_survives_damage, describe_file, fixture, read,
};

const FILES: [&str; 5] = [
    "codex/rollout.jsonl",
    "codex/together.jsonl",
    "codex/bare.jsonl",
    "codex/exec.jsonl",
    "codex/session.json",
];

#[test]
fn every_version_is_read_as_it_is_expected() {
    for name in FILES {
        assert_matches_expected(name);
    }
}

#[test]
fn rolled_back_turns_leave_the_transcript_and_events_add_nothing() {
    let described = describe_file("codex/rollout.jsonl");
    assert!(!described.contains("And wrong?") && !described.contains("Wrong."));
    assert_eq!(described.matches("Please use tools").count(), 1);
}

#[test]
fn session_without_items_has_the_messages_of_its_events() {
    let event = |payload: &str| {
        let begin = r#"{"timestamp":"2026-07-26T00:00:01Z","type":"event_msg","payload""#;
        format!("{begin}:{payload}}}\n")
    };
    let said =
        |kind: &str, text: &str| event(&format!(r#"{{"type":"{kind}","message":"{text}"}}"#));
    let head = r#"{"timestamp":"2026-07-26T00:00:00Z","type":"session_meta","payload":{"id":"s-9","timestamp":"2026-07-26T00:00:00Z"}}"#;
    let lines = [
        format!("{head}\n"),
        said("user_message", "Hi"),
        said("agent_message", "Hello"),
        said("user_message", "Wrong"),
        said("agent_message", "No"),
        event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        said("user_message", "Bye"),
        said("agent_message", "Goodbye"),
    ];
    let wanted = [
        "user Hi",
        "assistant Hello",
        "user Bye",
        "assistant Goodbye",
    ];
    let (all, tally) = read_back::read(lines.concat().as_bytes());
    assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    assert_eq!(all.len(), 1);
    let session = all[0].as_ref().expect("a session");
    assert_eq!(read_back::message_lines(session), wanted);
    // With an item, the events only repeat the conversation.
    let item = r#"{"timestamp":"2026-07-26T00:00:02Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}"#;
    let (all, _) = read_back::read(format!("{}{item}\n", lines[..2].concat()).as_bytes());
    let session = all[0].as_ref().expect("a session");
    assert_eq!(read_back::message_lines(session), ["user Hi"]);
}

#[test]
fn error_that_codex_recovered_from_is_a_warning() {
    let head = r#"{"type":"thread.started","thread_id":"th-1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"An option is deprecated"}}
{"type":"error","message":"Reconnecting... 1/5"}
"#;
    let said = r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done"}}
"#;
    let metadata = |end: &str| {
        let (all, _) = read_back::read(format!("{head}{said}{end}").as_bytes());
        let metadata = &all[0].as_ref().expect("a thread")["metadata"];
        (metadata["warnings"].clone(), metadata["error"].clone())
    };
    let option = "An option is deprecated";
    let (warnings, error) = metadata(r#"{"type":"turn.completed","usage":{}}"#);
    assert_eq!(warnings, json!([option, "Reconnecting... 1/5"]));
    assert_eq!(error, Value::Null);
    let (warnings, error) = metadata(r#"{"type":"turn.failed","error":{"message":"401"}}"#);
    assert_eq!(warnings, json!([option, "Reconnecting... 1/5"]));
    assert_eq!(error, "401");
    // The stream ends without the end of the turn.
    let (warnings, error) = metadata("");
    assert_eq!(warnings, json!([option]));
    assert_eq!(error, "Reconnecting... 1/5");
}

#[test]
fn fork_with_repeated_headers_is_one_session() {
    let (_, all, unknown) = read(&fixture("codex/together.jsonl"));
    let ids: Vec<String> = all
        .iter()
        .map(|got| got.as_ref().expect("a session").id.to_string())
        .collect();
    assert_eq!(ids, ["s-1", "s-2", "s-3"]);
    let metadata = all[1].as_ref().ok().and_then(|t| t.metadata.as_ref());
    let metadata = metadata.expect("metadata").get();
    assert!(
        metadata.contains(r#""parent":{"transcript":"s-1"}"#),
        "{metadata}"
    );
    assert!(
        unknown
            .iter()
            .any(|(kind, n)| kind == "a line that is not JSON" && *n == 1)
    );
}

#[test]
fn session_as_a_json_array_is_read_and_found_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("rollout.json");
    let (_, lines, _) = read(&fixture("codex/rollout.jsonl"));
    let texts = |all: &[ReadTranscript]| -> Vec<Vec<String>> {
        let sessions = all.iter().map(|got| got.as_ref().expect("a session"));
        let texts = sessions.map(|session| {
            session
                .messages
                .iter()
                .map(|m| m.text().into_owned())
                .collect()
        });
        texts.collect()
    };
    let source = std::fs::read_to_string(fixture("codex/rollout.jsonl")).expect("a fixture");
    let values = source
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let values: Vec<serde_json::Value> = values.collect();
    for json in [
        serde_json::to_string(&values).expect("JSON"),
        serde_json::to_string_pretty(&values).expect("JSON"),
    ] {
        std::fs::write(&path, &json).expect("written");
        let (_, all, _) = read(&path);
        assert_eq!(texts(&all), texts(&lines), "{}", &json[..20]);
    }
}

#[test]
fn exit_codes_and_times_are_read_from_the_header_of_a_result() {
    let read = |content: &str| {
        let status = super::parse_output_status(content);
        (status.failed, status.duration_ms)
    };
    let chunk = "Chunk ID: 05ae5b\nWall time: 0.5 seconds\n";
    for (content, expected) in [
        (
            format!("{chunk}Process exited with code 0\nOriginal token count: 13\nOutput:\nx"),
            (Some(false), Some(500.0)),
        ),
        (
            format!("{chunk}Process exited with code 128\nOutput:\nfatal"),
            (Some(true), Some(500.0)),
        ),
        (
            "Exit code: 1\nWall time: 2 seconds\nOutput:\nno".to_owned(),
            (Some(true), Some(2000.0)),
        ),
        // The command still runs.
        (
            format!("{chunk}Process running with session ID 7\nOutput:\n"),
            (None, Some(500.0)),
        ),
        // The output of a command is not a header.
        (
            format!("{chunk}Output:\nProcess exited with code 1"),
            (None, Some(500.0)),
        ),
        ("ok\nExit code: 1".to_owned(), (None, None)),
    ] {
        assert_eq!(read(&content), expected, "{content}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn parser_does_not_panic_on_any_bytes(ix in 0..FILES.len(), cut in any::<usize>(), at in any::<usize>(), byte in any::<u8>()) {
        assert_survives_damage(FILES[ix], cut, at, byte);
    }
}

#[test]
fn events_about_sub_agents_add_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("rollout.jsonl");
    let lines = [
        r#"{"timestamp":"2026-04-23T20:23:50.000Z","type":"session_meta","payload":{"id":"s-1","timestamp":"2026-04-23T20:23:50.000Z","cli_version":"0.123.0"}}"#,
        r#"{"timestamp":"2026-04-23T20:24:11.000Z","type":"response_item","payload":{"type":"function_call","name":"close_agent","arguments":"{}","call_id":"c1"}}"#,
        r#"{"timestamp":"2026-04-23T20:24:11.500Z","type":"event_msg","payload":{"type":"collab_close_end","call_id":"c1","status":{"completed":"Done"}}}"#,
        r#"{"timestamp":"2026-04-23T20:24:11.600Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{}"}}"#,
    ];
    std::fs::write(&path, lines.join("\n")).expect("written");
    let (_, all, unknown) = read(&path);
    assert_eq!(all[0].as_ref().expect("a session").messages.len(), 2);
    assert!(unknown.is_empty(), "{unknown:?}");
}

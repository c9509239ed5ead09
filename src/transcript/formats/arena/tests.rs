//! Results and recordings as PromptKit writes them.

use serde_json::json;

use crate::transcript::formats::read_back::{fixture, message_lines, read};

#[test]
fn a_runs_result_with_its_verdicts() {
    let (all, _) = read(&fixture("arena/run.json"));
    let transcript = all[0].as_ref().expect("a transcript");
    assert_eq!(transcript["id"], "2026-01-01T00-00Z_made_default_faults_1");
    assert_eq!(
        message_lines(transcript),
        [
            "system Be exact.",
            "user The pump is hot.",
            "assistant sensor({\"id\":\"P-2\",\"n\":9007199254740993})",
            "tool 90 C",
            "assistant book({})",
            "tool no engineer is free",
            "assistant It is at 90 C; no engineer is free. | <image>",
        ]
    );
    let messages = &transcript["messages"];
    assert_eq!(messages[3]["metadata"]["is_error"], false);
    assert_eq!(messages[3]["metadata"]["duration_ms"], 12.0);
    assert_eq!(messages[5]["metadata"]["is_error"], true);
    assert_eq!(
        messages[2]["metadata"]["usage"],
        json!({"input": 50, "output": 10, "cached": 5})
    );
    assert_eq!(messages[6]["metadata"]["latency_ms"], 700.0);
    let meta = &transcript["metadata"];
    assert_eq!(
        (&meta["cost_usd"], &meta["latency_ms"]),
        (&json!(0.0006), &json!(5000.0))
    );
    assert_eq!(transcript["tags"], json!(["pump"]));
    assert_eq!(
        transcript["verdicts"],
        json!([
            {"judge": "arena", "eval": "content_matches@6", "passed": true, "reasoning": "names it"},
            {"judge": "arena", "eval": "content_matches@6 #2", "passed": false, "reasoning": "no apology"},
            {"judge": "arena", "eval": "banned_words@6", "passed": true},
            {"judge": "arena", "eval": "conversation assertion 1", "passed": true, "reasoning": "all required tools were called"},
            {"judge": "arena", "eval": "grounded", "score": 0.8, "value": 0.8, "reasoning": "It quotes the sensor."},
            {"judge": "arena", "eval": "tone", "error": "judge: 503"},
        ])
    );
}

#[test]
fn recordings_in_lines_become_transcripts() {
    let (all, tally) = read(&fixture("arena/session.jsonl"));
    assert_eq!(all.len(), 2);
    let transcript = all[0].as_ref().expect("a transcript");
    assert_eq!(transcript["id"], "s-1");
    assert_eq!(
        message_lines(transcript),
        [
            "system Be exact.",
            "user Hot?",
            "assistant sensor({\"id\":\"P-2\"})",
            "tool 90 C",
            "assistant 90 C.",
        ]
    );
    assert_eq!(transcript["messages"][3]["metadata"]["duration_ms"], 12.0);
    assert_eq!(transcript["messages"][4]["metadata"]["latency_ms"], 640.0);
    assert_eq!(transcript["messages"][4]["metadata"]["cost_usd"], 0.0002);
    assert_eq!(all[1].as_ref().expect("a transcript")["id"], "s-2");
    assert_eq!(tally.unknown["an event audio.output"], 1);
}

#[test]
fn a_recording_as_one_object_and_the_older_output_of_turns() {
    let (all, _) = read(&fixture("arena/geography.recording.json"));
    let transcript = all[0].as_ref().expect("a transcript");
    assert_eq!(
        (&transcript["id"], &transcript["tags"]),
        (&json!("g-1"), &json!(["geo"]))
    );
    assert_eq!(
        message_lines(transcript),
        [
            "user Capital of France?",
            "assistant look({\"q\":1})",
            "tool Paris"
        ]
    );
    assert_eq!(transcript["messages"][2]["tool_call_id"], "k");

    let (all, _) = read(&fixture("arena/turns.arena-output.json"));
    let transcript = all[0].as_ref().expect("a transcript");
    assert_eq!(
        message_lines(transcript),
        ["user Hi", "assistant f({})", "tool ok"]
    );
    assert_eq!(transcript["messages"][1]["metadata"]["cost_usd"], 0.5);
    assert_eq!(
        transcript["verdicts"],
        json!([{"judge": "arena", "eval": "contains@1", "passed": false, "reasoning": "no"}])
    );
}

#[test]
fn torn_and_odd_files_have_named_errors() {
    for bytes in [
        r#"{"RunID":"x","Messages":7}"#,
        r#"{"RunID":"x","Messages":[{"role":"user","#,
        r#"{"metadata":{},"events":7}"#,
        r#"{"scenario_id":"s","turns":[7]}"#,
    ] {
        let (all, _) = read(bytes.as_bytes());
        assert!(matches!(&all[..], [Err(_)]), "{bytes}");
    }
    let lines = "{\"type\":\"metadata\",\"metadata\":{}}\n{\"type\":\"event\",\"event\":7}\n{\"type\":\"event\",\"ev";
    let (all, tally) = read(lines.as_bytes());
    assert_eq!((all.len(), tally.records, tally.unknown_count()), (1, 3, 2));
}

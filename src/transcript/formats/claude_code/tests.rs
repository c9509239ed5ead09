//! Sessions as Claude Code writes them, complete and broken.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::super::{BadRecord, ReadTally, TranscriptFile};
use crate::model::{JsonText, MessageRole, Transcript, TranscriptPart};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/claude-code")
        .join(name)
}

fn written(bytes: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("runs.jsonl");
    std::fs::write(&path, bytes).expect("written");
    (dir, path)
}

type Read = Vec<Result<Transcript<'static>, BadRecord>>;

/// All that a file hands out, each read twice: in its block and by its place.
fn all(path: &Path) -> (Read, ReadTally) {
    let mut open = TranscriptFile::open(path).expect("a file of transcripts");
    assert_eq!(open.format(), "a Claude Code session");
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
    let tally = open.tally().expect("a tally").clone();
    (read, tally)
}

fn good(path: &Path) -> Vec<Transcript<'static>> {
    let (read, _) = all(path);
    read.into_iter().map(|one| one.expect("good")).collect()
}

fn meta(json: Option<&JsonText<'_>>) -> Value {
    json.map(JsonText::parse_value).unwrap_or_default()
}

/// The conversation as people would tell it.
fn describe(transcript: &Transcript<'_>) -> String {
    let mut all = String::new();
    for message in &transcript.messages {
        let role = message.role.as_str();
        for part in &message.parts {
            let line = match part {
                TranscriptPart::Text(text) => format!("{role}: {text}"),
                TranscriptPart::Reasoning(text) => format!("{role} thinks: {text}"),
                TranscriptPart::ToolCall(call) => {
                    format!("{role} calls {} {}({})", call.id, call.name, call.arguments)
                }
                TranscriptPart::ToolResult(result) => format!(
                    "{role} {} {:?} {:?}: {}",
                    result.call_id,
                    result.is_error,
                    result.duration_ms,
                    result.content.replace('\n', "|")
                ),
                TranscriptPart::Media { kind, .. } => format!("{role} shows {kind}"),
                TranscriptPart::Other(raw) => format!("{role} other {}", raw.get()),
            };
            writeln!(all, "{line}").expect("written");
        }
    }
    all
}

fn ids(all: &[Transcript<'_>]) -> Vec<String> {
    all.iter().map(|one| one.id.to_string()).collect()
}

const SESSION: &str = "5e551011-0000-4000-8000-000000000001";

#[test]
fn conversation_is_the_path_to_the_newest_message() {
    let all = good(&fixture("session.jsonl"));
    assert_eq!(ids(&all), [SESSION, &format!("{SESSION}.branch-2")]);
    assert_eq!(
        describe(&all[0]),
        r#"user: Which tests fail?
assistant thinks: Look at the folder first.
assistant: I will look.
assistant calls toolu_1 Bash({"command":"ls"})
tool toolu_1 Some(false) Some(300.0): notes.txt
assistant calls toolu_2 Read({"file_path":"notes.txt"})
assistant calls toolu_3 Bash({"command":"cat none"})
tool toolu_2 Some(false) Some(150.0): 1	first
tool toolu_3 Some(true) Some(300.0): cat: none
assistant: One test fails.
user: Let an agent count the bytes
assistant calls toolu_4 Agent({"description":"Count bytes","prompt":"Count the bytes of notes.txt","subagent_type":"general-purpose"})
tool toolu_4 Some(false) Some(1234.0): It has 6.|agentId: a1b2
system: Conversation compacted
user: This session is being continued: one test fails.
user: and be quick
assistant: Six bytes.
"#
    );
    let branch = describe(&all[1]);
    assert!(
        branch.ends_with("user: Fix it badly\nassistant: Done badly.\n"),
        "{branch}"
    );
    assert!(
        branch.contains("tool toolu_2") && !branch.contains("toolu_4"),
        "{branch}"
    );
    assert_eq!(&*all[1].tags[0], "branch");
    assert_eq!(
        meta(all[1].metadata.as_ref())["parent"],
        json!({"transcript": SESSION})
    );
}

#[test]
fn line_metadata_is_kept_once_per_message() {
    let all = good(&fixture("session.jsonl"));
    let session = &all[0];
    let of = |at: usize| meta(session.messages[at].metadata.as_ref());
    assert_eq!(
        of(1),
        json!({
            "timestamp": "2026-11-20T10:00:00.900Z", "latency_ms": 1200.0,
            "usage": {"input": 1150, "output": 25, "cached": 1000},
            "model": "claude-opus-4-8", "stop_reason": "tool_use",
        }),
        "the last line of a message tells its usage"
    );
    assert_eq!(session.messages[1].role, MessageRole::Assistant);
    assert_eq!(
        of(4),
        json!({
            "timestamp": "2026-11-20T10:00:02.150Z", "tool_use_result": {"type": "text"},
            "tool_use_result_left_out": ["file"], "is_error": false, "duration_ms": 150.0,
        })
    );
    assert_eq!(of(5)["tool_use_result"], "Error: cat: none");
    assert_eq!(of(9)["sub_agent"], format!("{SESSION}.agent-a1b2"));
    assert_eq!(
        of(10)["compaction"],
        json!({"trigger": "auto", "preTokens": 155_000})
    );
    assert_eq!(of(11)["compact_summary"], true);
    assert_eq!(of(12)["queued"], true);
    assert_eq!(
        meta(session.metadata.as_ref()),
        json!({
            "source": "claude-code", "timestamp": "2026-11-20T10:00:00.000Z", "cwd": "/home/ann/shop",
            "git_branch": "main", "version": "2.1.197", "session_id": SESSION,
            "model": "claude-opus-4-8", "title": "Counting bytes",
            "usage": {"input": 5870, "output": 89, "cached": 5000},
        })
    );
    let (_, tally) = super::tests::all(&fixture("session.jsonl"));
    let unknown: Vec<(&str, u64)> = tally.unknown.iter().map(|(k, n)| (&**k, *n)).collect();
    assert_eq!(
        unknown,
        [
            ("attachment skill_listing", 1),
            ("hologram", 1),
            ("system turn_duration", 1)
        ]
    );
    assert_eq!(tally.records, 25);
}

#[test]
fn a_sub_agent_knows_the_call_that_started_it() {
    let own_file = good(&fixture("subagents/agent-a1b2.jsonl"));
    assert_eq!(ids(&own_file), [format!("{SESSION}.agent-a1b2")]);
    assert_eq!(&*own_file[0].tags[0], "sub-agent");
    let metadata = meta(own_file[0].metadata.as_ref());
    assert_eq!(
        metadata["parent"],
        json!({"transcript": SESSION, "tool_call_id": "toolu_4"})
    );
    assert_eq!(
        metadata["agent"],
        json!({"id": "a1b2", "type": "general-purpose", "description": "Count bytes"})
    );

    // The same lines put into the session's file: its call's answer says who was started.
    let mut both = std::fs::read(fixture("session.jsonl")).expect("read");
    both.extend(std::fs::read(fixture("subagents/agent-a1b2.jsonl")).expect("read"));
    let all = good(&written(&both).1);
    assert_eq!(
        ids(&all),
        [
            SESSION,
            &format!("{SESSION}.branch-2"),
            &format!("{SESSION}.agent-a1b2")
        ]
    );
    assert_eq!(all[2].messages, own_file[0].messages);
    assert_eq!(meta(all[2].metadata.as_ref())["parent"], metadata["parent"]);
}

#[test]
fn old_version_has_sub_agents_and_costs_in_the_session_file() {
    let all = good(&fixture("old.jsonl"));
    let session = "01d00000-0000-4000-8000-000000000002";
    assert_eq!(ids(&all), [session, &format!("{session}.agent-1")]);
    let of = |at: usize| meta(all[at].metadata.as_ref());
    assert_eq!(of(0)["cost_usd"], 0.75);
    assert_eq!(of(0)["title"], "Bytes of notes");
    assert_eq!(
        meta(all[0].messages[1].metadata.as_ref())["latency_ms"],
        900.0
    );
    assert!(describe(&all[0]).contains("tool toolu_a Some(false) Some(480.0): 6"));
    assert_eq!(
        of(1)["parent"],
        json!({"transcript": session, "tool_call_id": "toolu_a"})
    );
    assert_eq!(of(1)["agent"]["type"], "counter");
    assert_eq!(describe(&all[1]), "user: Count the bytes\nassistant: 6\n");
}

#[test]
fn broken_lines_are_counted_and_bridged() {
    let text = std::fs::read_to_string(fixture("session.jsonl")).expect("read");
    let complete = describe(&good(&fixture("session.jsonl"))[0]);
    let mut lines: Vec<Vec<u8>> = text.lines().map(|l| l.as_bytes().to_vec()).collect();
    let at = |uuid: &str| {
        let uuid = format!("\"uuid\":\"{uuid}\"");
        text.lines()
            .position(|line| line.contains(&uuid))
            .expect("a line")
    };
    lines[at("m1b")] = b"{\"type\":\"assistant\", oops".to_vec();
    lines[at("m3")] = b"\xff\xfe{}".to_vec();
    lines.push(lines[at("m6")][..200].to_vec());
    let (_dir, path) = written([b"\xef\xbb\xbf".to_vec(), lines.join(&b"\r\n"[..])].concat());
    let (read, tally) = all(&path);
    let read: Vec<_> = read.into_iter().map(|one| one.expect("good")).collect();
    let expected = complete
        .replace("assistant: I will look.\n", "")
        .replace("assistant: One test fails.\n", "");
    assert_eq!(describe(&read[0]), expected);
    assert_eq!(read.len(), 2, "the branch is there");
    for why in [
        "a line that is not a JSON object",
        "a line that is not UTF-8",
        "a last line that is torn",
    ] {
        assert_eq!(tally.unknown.get(why), Some(&1), "{why} in {tally:?}");
    }
}

#[test]
fn sessions_in_one_file_are_split_unless_resumed() {
    let first = std::fs::read_to_string(fixture("session.jsonl")).expect("read");
    let second = std::fs::read_to_string(fixture("old.jsonl")).expect("read");
    let all = good(&written(format!("{first}{second}{first}")).1);
    let (a, b) = (SESSION.to_owned(), "01d00000-0000-4000-8000-000000000002");
    let branch = format!("{a}.branch-2");
    assert_eq!(
        ids(&all),
        [&a, &branch, b, &format!("{b}.agent-1"), &a, &branch]
    );

    let resumed = json!({"type": "user", "uuid": "n1", "parentUuid": "m6", "sessionId": "new", "message": {"role": "user", "content": "more"}});
    let all = good(&written(format!("{first}{resumed}\n")).1);
    assert_eq!(
        ids(&all),
        ["new", "new.branch-2"][..1]
            .iter()
            .map(|id| (*id).to_owned())
            .chain([branch])
            .collect::<Vec<_>>()
    );
    assert!(describe(&all[0]).ends_with("assistant: Six bytes.\nuser: more\n"));
}

#[test]
fn api_error_at_the_end_is_the_error_of_the_run() {
    let lines = [
        json!({"type": "user", "uuid": "1", "parentUuid": null, "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "hi"}}),
        json!({"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z", "isApiErrorMessage": true, "error": "rate_limit",
            "message": {"id": "x", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 529"}], "usage": {"input_tokens": 0, "output_tokens": 0}}}),
    ];
    let text = lines.map(|line| line.to_string()).join("\n");
    let all = good(&written(text).1);
    let metadata = meta(all[0].metadata.as_ref());
    assert_eq!(metadata["error"], "API Error: 529");
    assert_eq!(metadata.get("model"), None);
    let reply = meta(all[0].messages[1].metadata.as_ref());
    assert_eq!(reply["api_error"], "rate_limit");
    assert_eq!(
        reply.get("latency_ms"),
        None,
        "a copied time tells no duration"
    );
}

#[test]
fn hostile_lines_are_only_counted() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let user = |uuid: &str, parent: &str, rest: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s"{rest}}}"#
        )
    };
    let say = |text: &str| format!(r#","message":{{"role":"user","content":"{text}"}}"#);
    let lines = [
        user("a", "a", &say("follows itself")),
        user("b", "c", &say("follows the next")),
        user("c", "b", &say("follows the one before")),
        user("c", "b", &say("has its uuid")),
        user("d", "c", r#","message":{"role":"user","content":7}"#),
        user(
            "e",
            "c",
            &format!(
                r#","isMeta":"yes","timestamp":1e999,"version":{},"message":{{"role":"user","content":[{deep},7,{{"type":"tool_use"}},{{"type":5}}]}}"#,
                "9".repeat(400)
            ),
        ),
        r#"{"type":"user","sessionId":"s","uuid":"f","x":NaN}"#.to_owned(),
        "null".to_owned(),
        r#"{"sessionId":"s"}"#.to_owned(),
        r#"{"type":{"a":1},"sessionId":["s"]}"#.to_owned(),
    ];
    let (read, tally) = all(&written(lines.join("\n")).1);
    let one = read[0].as_ref().expect("good");
    assert_eq!(read.len(), 1);
    assert_eq!(one.messages.len(), 4, "{one:?}");
    assert_eq!(one.messages[3].parts.len(), 4, "{one:?}");
    assert_eq!(tally.unknown_count(), 6, "{tally:?}");

    let nothing = format!(
        "{}\n{{torn",
        r#"{"type":"mode","mode":"normal","sessionId":"s"}"#
    );
    let (read, _) = all(&written(nothing).1);
    let why = &read[0].as_ref().expect_err("a fault").why;
    assert_eq!(why, "the session holds no message that can be read");
    let (read, tally) = all(&written(r#"{"type":"summary","summary":"x","leafUuid":"y"}"#).1);
    assert_eq!((read.len(), tally.records), (0, 1));
}

#[test]
fn lines_without_any_parent_are_one_conversation() {
    let line = |uuid: &str, role: &str, text: &str| {
        json!({"type": role, "uuid": uuid, "parentUuid": null, "sessionId": "s",
               "message": {"role": role, "content": text}})
    };
    let lines: String = [
        line("1", "user", "a"),
        line("2", "assistant", "b"),
        line("3", "user", "c"),
        line("4", "assistant", "d"),
    ]
    .iter()
    .map(|line| line.to_string() + "\n")
    .collect();
    let (_dir, path) = written(lines);
    let read = good(&path);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].messages.len(), 4);
}

#[test]
fn interrupted_reply_counts_its_usage_once() {
    let reply = |uuid: &str, parent: &str, block: Value, output: u64| {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s",
               "message": {"id": "msg_1", "role": "assistant", "content": [block],
                           "usage": {"input_tokens": 100, "output_tokens": output}}})
    };
    let prompt = |uuid: &str, parent: Value, text: &str| {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s",
               "message": {"role": "user", "content": text}})
    };
    let lines: String = [
        prompt("u1", Value::Null, "fix it"),
        reply("a1", "u1", json!({"type": "text", "text": "I see!"}), 1),
        prompt("u2", json!("a1"), "the issue is in the streaming"),
        reply(
            "a2",
            "u2",
            json!({"type": "tool_use", "id": "t", "name": "Edit", "input": {}}),
            274,
        ),
    ]
    .iter()
    .map(|line| line.to_string() + "\n")
    .collect();
    let (_dir, path) = written(lines);
    let read = good(&path);
    let usage = &meta(read[0].metadata.as_ref())["usage"];
    assert_eq!(
        (&usage["input"], &usage["output"]),
        (&json!(100), &json!(274))
    );
    let shown: Vec<Value> = read[0]
        .messages
        .iter()
        .map(|message| meta(message.metadata.as_ref())["usage"]["output"].clone())
        .collect();
    assert_eq!(shown, [Value::Null, Value::Null, Value::Null, json!(274)]);
}

/// Returns a session of iFlow: two states of a reply with two calls, their results, and a third call in two states.
fn iflow_session() -> String {
    let line = |uuid: &str, parent: Value, second: u8, role: &str, message: Value| {
        json!({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "session-5de701fc", "isSidechain": false,
               "timestamp": format!("2026-01-21T05:56:{second:02}.000Z"), "message": message})
    };
    let reply = |uuid: &str, second: u8, blocks: Value| {
        let message = json!({"id": format!("response-{uuid}"), "type": "message", "role": "assistant", "model": "glm",
            "content": blocks, "stop_reason": null, "usage": {"input_tokens": 0, "output_tokens": 0}});
        line(uuid, json!("u1"), second, "assistant", message)
    };
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {"n": id}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let result = |uuid: &str, parent: &str, id: &str, status: &str, response: Value| {
        let content = json!({"callId": id, "responseParts": {"functionResponse": {"id": id, "name": "read", "response": response}},
            "resultDisplay": "Read 8 lines"});
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        let mut line = line(
            uuid,
            json!(parent),
            20,
            "user",
            json!({"role": "user", "content": [block]}),
        );
        line["toolUseResult"] = json!({"toolName": "read", "status": status});
        line
    };
    let lines = [
        line(
            "u1",
            Value::Null,
            10,
            "user",
            json!({"role": "user", "content": "Set it"}),
        ),
        reply("a1", 15, json!([text("I look first."), call("c1")])),
        reply("a2", 15, json!([call("c1"), call("c2")])),
        reply("a3", 16, json!([call("c2")])),
        result("r1", "a3", "c1", "success", json!({"output": "one"})),
        result("r2", "a3", "c2", "error", json!({"error": "no such file"})),
        reply(
            "a4",
            25,
            json!([call("c2"), text("Now I write."), call("c3")]),
        ),
        reply("a5", 25, json!([call("c3")])),
        result(
            "r3",
            "a4",
            "c3",
            "success",
            json!({"output": "File modified"}),
        ),
        reply("a6", 30, json!([text("Done.")])),
    ];
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

#[test]
fn states_of_a_reply_of_iflow_are_one_reply_and_no_branches() {
    let (_dir, path) = written(iflow_session());
    let (read, tally) = all(&path);
    assert_eq!((read.len(), tally.unknown_count()), (1, 0), "{tally:?}");
    let one = read[0].as_ref().expect("good");
    assert_eq!(
        describe(one),
        "user: Set it\n\
         assistant: I look first.\n\
         assistant calls c1 read({\"n\":\"c1\"})\n\
         assistant calls c2 read({\"n\":\"c2\"})\n\
         tool c1 Some(false) Some(5000.0): one\n\
         tool c2 Some(true) Some(5000.0): no such file\n\
         assistant: Now I write.\n\
         assistant calls c3 read({\"n\":\"c3\"})\n\
         tool c3 Some(false) None: File modified\n\
         assistant: Done.\n"
    );
    assert_eq!(one.messages.len(), 7, "{one:?}");
    assert!(one.tags.is_empty());
    let meta = meta(one.metadata.as_ref());
    assert_eq!(
        (&meta["source"], &meta["model"]),
        (&json!("iflow"), &json!("glm"))
    );
    assert_eq!(meta.get("usage"), None, "0 tokens are unknown ones");
}

/// The stream of a run with a sub-agent, as `claude -p --output-format stream-json` writes it.
const STREAM: [&str; 9] = [
    r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"s1","tools":["Task"],"model":"claude-opus-5-5","uuid":"u0"}"#,
    r#"{"type":"assistant","message":{"id":"m1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"I ask."}],"usage":{"input_tokens":2,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s1","uuid":"u1"}"#,
    r#"{"type":"assistant","message":{"id":"m1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"Look.","subagent_type":"Explore"}}],"usage":{"input_tokens":2,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s1","uuid":"u2"}"#,
    r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Look."}]},"parent_tool_use_id":"t1","session_id":"s1","uuid":"u3"}"#,
    r#"{"type":"assistant","message":{"id":"m2","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"Nothing."}]},"parent_tool_use_id":"t1","session_id":"s1","uuid":"u4"}"#,
    r#"{"type":"system","subtype":"compact_boundary","session_id":"s1","uuid":"u5"}"#,
    r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"Nothing."}]},"parent_tool_use_id":null,"session_id":"s1","uuid":"u6"}"#,
    r#"{"type":"assistant","message":{"id":"m3","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"There is nothing."}],"usage":{"input_tokens":3,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s1","uuid":"u7"}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":4569,"num_turns":2,"result":"There is nothing.","session_id":"s1","total_cost_usd":0.25,"usage":{"input_tokens":5,"output_tokens":57},"uuid":"u8"}"#,
];

#[test]
fn a_stream_is_one_session_with_its_sub_agent() {
    let lines = format!("{}\n", STREAM.join("\n"));
    let list = format!("[{}]", STREAM.join(",\n"));
    for text in [lines, list] {
        let (_folder, path) = written(&text);
        let (read, tally) = all(&path);
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        let sessions: Vec<Transcript<'_>> =
            read.into_iter().map(|one| one.expect("good")).collect();
        assert_eq!(ids(&sessions), ["s1", "s1.agent-t1"]);
        let roles: Vec<&str> = sessions[0]
            .messages
            .iter()
            .map(|m| m.role.as_str())
            .collect();
        assert_eq!(roles, ["assistant", "system", "tool", "assistant"]);
        let metadata = meta(sessions[0].metadata.as_ref());
        assert_eq!(metadata["cost_usd"], json!(0.25));
        assert_eq!(metadata["latency_ms"], json!(4569));
        assert_eq!(metadata["usage"]["output"], json!(57));
        assert_eq!(metadata["error"], Value::Null);
        let metadata = meta(sessions[1].metadata.as_ref());
        let parent = json!({"transcript": "s1", "tool_call_id": "t1"});
        assert_eq!(metadata["parent"], parent);
        assert_eq!(metadata["agent"], json!({"id": "t1", "type": "Explore"}));
        assert_eq!(sessions[1].messages.len(), 2);
    }
}

#[test]
fn a_new_session_of_a_stream_begins_a_transcript_and_an_error_is_the_end_of_its_run() {
    let second = STREAM[1].replace("\"s1\"", "\"s2\"");
    let end = r#"{"type":"result","subtype":"error_max_turns","is_error":false,"session_id":"s2"}"#;
    let (_folder, path) = written(format!("{}\n{second}\n{end}\n", STREAM[1]));
    let sessions = good(&path);
    assert_eq!(ids(&sessions), ["s1", "s2"]);
    let metadata = meta(sessions[1].metadata.as_ref());
    assert_eq!(metadata["error"], json!("error_max_turns"));
}

#[test]
fn messages_without_the_id_of_the_session_are_read() {
    let lines = [
        r#"{"type":"user","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Hi"}}"#,
        r#"{"type":"assistant","timestamp":"2026-01-01T00:00:01Z","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hello"}]}}"#,
    ];
    let (_folder, path) = written(lines.join("\n"));
    let sessions = good(&path);
    assert_eq!(sessions.len(), 1);
    assert_eq!(describe(&sessions[0]), "user: Hi\nassistant: Hello\n");
}

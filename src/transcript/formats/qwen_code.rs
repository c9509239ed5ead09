//! Qwen Code's sessions (`~/.qwen/projects/PROJECT/chats/ID.jsonl`): one JSON object per line.
//!
//! | in the file | becomes |
//! |---|---|
//! | `user`, `assistant`, `tool_result` lines, with contents of Gemini | messages |
//! | the lines from the first message to the newest, or to a rewind at the end | the transcript `<sessionId>` |
//! | messages and compressions of other branches (a prompt that was rewound) | counted |
//! | `isSidechain` lines of an `agentId` | `<sessionId>.agent-<id>`, tag `sub-agent`, `parent` the session |
//! | a compression of the history | a system message, with `compaction` |
//! | telemetry, titles, commands of the screen, snapshots … | nothing |
//! | other system lines, unknown types | counted by kind |
//!
//! The line format is that of `ChatRecord` in `QwenLM/qwen-code`. Responsible for one session, or one sub-agent, per
//! transcript. Does not read telemetry, which repeats the tokens of replies.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::exit_code::has_failed_command;
use super::foreign_message::{MessageInProgress, result_text};
use super::line_path::{LineLinks, find_path};
use super::record_readers::{Grouping, open_groups, parse_lines};
use super::transcript_builder::{TranscriptBuilder, owned_text};
use crate::model::{MessageRole, SourceText};

/// The subtypes of system lines that contain state of the program and no message of the conversation.
const STATE_SUBTYPES: [&str; 21] = [
    "at_command",
    "attribution_snapshot",
    "branch_checkpoint",
    "custom_title",
    "file_history_snapshot",
    "goal_runtime",
    "goal_state",
    "goal_turn_end",
    "parent_session",
    "rewind",
    "session_approval_mode",
    "session_artifact_event",
    "session_artifact_snapshot",
    "session_execution_engine",
    "session_model",
    "session_notes",
    "session_source",
    "session_sources_snapshot",
    "slash_command",
    "ui_telemetry",
    "user_text_elements",
];

/// The keys by which the lines form branches.
const LINKS: LineLinks = LineLinks {
    id: "uuid",
    parent: "parentUuid",
};

/// Returns true if one of the first lines is a message of a session. Claude Code's messages have no `parts`.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    let mut messages = preview
        .records
        .iter()
        .filter(|seen| seen.sniff.has("sessionId") && seen.sniff.has("message"))
        .take(2);
    messages.any(|seen| {
        let line = seen.sniff.outline(seen.bytes);
        line["type"].is_string() && line["message"]["parts"].is_array()
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_groups(
        preview,
        Grouping {
            key: conversation_of,
            parse: parse_conversation,
            without_group: "a line without a `sessionId`",
        },
    )
}

/// Returns the sub-agent that wrote a line.
fn sub_agent<'a>(line: &RawFields<'a>) -> Option<SourceText<'a>> {
    let is_sidechain = line.flag("isSidechain") == Some(true);
    line.id_text("agentId").filter(|_| is_sidechain)
}

/// Returns the session of a line, and its sub-agent.
fn conversation_of(line: &[u8]) -> Option<String> {
    let line = RawFields::from_bytes(line)?;
    let session = line.id_text("sessionId")?;
    Some(match sub_agent(&line) {
        Some(agent) => format!("{}\n{}", &*session, &*agent),
        None => session.0.into_owned(),
    })
}

fn parse_conversation(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let rows = parse_lines(lines, out);
    let Some((_, first)) = rows.first() else {
        return;
    };
    let session = first.id_text("sessionId").unwrap_or_default();
    let agent = sub_agent(first);
    let id = match &agent {
        Some(agent) => format!("{}.agent-{}", &*session, &**agent),
        None => session.to_string(),
    };
    let mut built = TranscriptBuilder::new("qwen-code", Some(id.into()));
    built.meta.set_raw("timestamp", first.get("timestamp"));
    built.meta.set_raw("cwd", first.get("cwd"));
    built.meta.set_raw("git_branch", first.get("gitBranch"));
    built.meta.set_raw("version", first.get("version"));
    if agent.is_some() {
        built.meta.set("parent", json!({ "transcript": &*session }));
        built.tags.push(SourceText::from("sub-agent"));
    }
    let on_path = find_path(&rows, &LINKS, is_possible_end);
    for ((_, line), is_on_path) in rows.iter().zip(on_path) {
        // Titles and other lines about the session belong to all branches.
        let abandoned = if is_on_path {
            None
        } else if line.has("message") {
            Some("a message of another branch")
        } else {
            has_subtype(line, &["chat_compression"]).then_some("a compression of another branch")
        };
        match abandoned {
            Some(kind) => built.unknown.push(kind.to_owned()),
            None => add_line(line, &mut built),
        }
    }
    built.finish(out);
}

/// Returns true if the subtype of a line is one of these.
fn has_subtype(line: &RawFields<'_>, subtypes: &[&str]) -> bool {
    let subtype = line.text("subtype");
    subtype.is_some_and(|subtype| subtypes.contains(&&*subtype))
}

/// Returns true if a line can be the end of the conversation.
///
/// A rewind to before the first message has no parent. It leaves no message, so the messages before it stay the
/// transcript.
fn is_possible_end(line: &RawFields<'_>) -> bool {
    line.has("message")
        || (line.has("parentUuid") && has_subtype(line, &["chat_compression", "rewind"]))
}

fn add_line(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let kind = line.text("type").unwrap_or_default();
    let before = built.messages.len();
    match (&*kind, line.object("message")) {
        ("user" | "tool_result", Some(message)) => add_user_parts(&message, line, built),
        ("assistant", Some(message)) => add_reply(&message, line, built),
        ("system", _) => add_notice(line, built),
        ("user" | "tool_result" | "assistant", None) => built
            .unknown
            .push(format!("a line of the type `{kind}` without a message")),
        _ => built.unknown.push(format!("a line of the type `{kind}`")),
    }
    for message in &mut built.messages[before..] {
        message.meta.set_raw("timestamp", line.get("timestamp"));
    }
}

/// Adds a prompt, or results of tools. Older versions write both as lines of the user.
fn add_user_parts(message: &RawFields<'_>, line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let Some(parts) = message.list("parts") else {
        built.unknown.push("a message without `parts`".to_owned());
        return;
    };
    let mut others = Vec::new();
    for raw in parts {
        let part = RawFields::from_raw(raw).unwrap_or_default();
        match part.object("functionResponse") {
            Some(response) => {
                add_prompt(&mut others, built);
                add_result(&response, line, built);
            }
            None => others.push(raw),
        }
    }
    add_prompt(&mut others, built);
}

/// Adds a message of the user from the parts so far.
fn add_prompt(parts: &mut Vec<&RawValue>, built: &mut TranscriptBuilder) {
    if parts.is_empty() {
        return;
    }
    let mut message = MessageInProgress::new(MessageRole::User, built);
    for raw in parts.drain(..) {
        message.add_part(raw);
    }
    message.finish();
}

fn add_result(response: &RawFields<'_>, line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let id = response.id_text("id").unwrap_or_default();
    let value = response.object("response").unwrap_or_default();
    let content = match value.get_first(&["output", "error"]) {
        Some(text) => result_text(text),
        None => response.get("response").map(owned_text).unwrap_or_default(),
    };
    // `toolCallResult` describes one call.
    let details = line.object("toolCallResult").unwrap_or_default();
    let is_of_call = details.id_text("callId").is_none_or(|call| call == id);
    let status = details.text("status").filter(|_| is_of_call);
    let name = response.text("name").unwrap_or_default();
    let is_error = match status.as_deref() {
        // A command that ran is a success to the program, whatever its exit code.
        _ if has_failed_command(&name, &content) => Some(true),
        Some("success") => Some(false),
        Some("error" | "cancelled") => Some(true),
        _ if value.has("error") => Some(true),
        _ => value.has("output").then_some(false),
    };
    let attached = {
        let mut message = MessageInProgress::new(MessageRole::Tool, built);
        for raw in response.list("parts").unwrap_or_default() {
            message.add_part(raw);
        }
        message.parts
    };
    built.push_result(&id, content, is_error);
    if let Some(message) = built.messages.last_mut() {
        message.parts.extend(attached);
    }
}

fn add_reply(message: &RawFields<'_>, line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let mut reply = MessageInProgress::new(MessageRole::Assistant, built);
    if let Some(parts) = message.get("parts") {
        reply.add_content(parts);
    }
    reply.finish();
    // The model of the last reply stays.
    built.meta.set_raw("model", line.get("model"));
    let Some(meta) = built.last_meta(&MessageRole::Assistant) else {
        return;
    };
    meta.set_raw("timestamp", line.get("timestamp"));
    meta.set_raw("model", line.get("model"));
    if let Some(counts) = line.object("usageMetadata") {
        meta.set("usage", parse_usage(&counts).to_json());
    }
}

/// Parses token counts. APIs in OpenAI's format count thinking as output, Gemini's API does not: the total shows which.
fn parse_usage(counts: &RawFields<'_>) -> SourceUsage {
    let input = counts.integer("promptTokenCount");
    let output = counts.integer("candidatesTokenCount");
    let total = counts.integer("totalTokenCount");
    let thinking = counts.integer("thoughtsTokenCount");
    let sum = input
        .zip(output)
        .map(|(input, output)| input.saturating_add(output));
    let has_thinking = total.is_some() && sum == total;
    let missing = thinking.filter(|_| !has_thinking).unwrap_or_default();
    SourceUsage {
        input,
        output: output.map(|output| output.saturating_add(missing)),
        total,
        cached: counts.integer("cachedContentTokenCount"),
        thinking,
    }
}

/// Adds what a system line changes.
fn add_notice(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let subtype = line.text("subtype").unwrap_or_default();
    let payload = line.object("systemPayload").unwrap_or_default();
    match &*subtype {
        "chat_compression" => {
            built.push_text(MessageRole::System, "Conversation compressed");
            if let Some(meta) = built.last_meta(&MessageRole::System) {
                match payload.get("info") {
                    Some(info) => meta.set_readable("compaction", Some(info)),
                    None => meta.set("compaction", Value::Bool(true)),
                };
            }
        }
        "custom_title" => {
            built.meta.set_raw("title", payload.get("customTitle"));
        }
        known if STATE_SUBTYPES.contains(&known) => {}
        _ => built.unknown.push(format!("system {subtype}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn lines_without_parents_keep_the_order_of_the_file() {
        let line = |kind: &str, role: &str, part: &str| {
            format!(
                r#"{{"sessionId":"s","parentUuid":null,"type":"{kind}","message":{{"role":"{role}","parts":[{part}]}}}}"#
            )
        };
        let file = [
            line("user", "user", r#"{"text":"Read it."}"#),
            line(
                "assistant",
                "model",
                r#"{"functionCall":{"id":"c1","name":"read_file","args":{}}}"#,
            ),
            line(
                "user",
                "user",
                r#"{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"one"}}}"#,
            ),
            line("assistant", "model", r#"{"text":"It is one."}"#),
        ];
        let (all, tally) = read(format!("{}\n", file.join("\n")).as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Read it.",
                "assistant read_file({})",
                "tool one",
                "assistant It is one.",
            ]
        );
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }

    const COMPRESSION: &str = r#""type":"system","subtype":"chat_compression","systemPayload":{}"#;
    const REWIND: &str = r#""type":"system","subtype":"rewind","systemPayload":{}"#;

    /// Returns a line with its parent, and the other fields as JSON.
    fn linked_line(uuid: &str, parent: Option<&str>, fields: &str) -> String {
        let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("\"{parent}\""));
        format!(r#"{{"uuid":"{uuid}","parentUuid":{parent},"sessionId":"s",{fields}}}"#)
    }

    fn prompt(text: &str) -> String {
        format!(r#""type":"user","message":{{"parts":[{{"text":"{text}"}}]}}"#)
    }

    #[test]
    fn compression_of_an_abandoned_branch_is_counted_only() {
        let file = [
            linked_line("1", None, &prompt("Ask.")),
            linked_line("2", Some("1"), &prompt("Again.")),
            linked_line("3", Some("2"), COMPRESSION),
            linked_line("4", Some("1"), REWIND),
            linked_line("5", Some("4"), COMPRESSION),
            linked_line("6", Some("5"), &prompt("Other.")),
            linked_line("7", Some("6"), COMPRESSION),
        ];
        let (all, tally) = read(format!("{}\n", file.join("\n")).as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Ask.",
                "system Conversation compressed",
                "user Other.",
                "system Conversation compressed",
            ]
        );
        assert_eq!(tally.unknown["a message of another branch"], 1);
        assert_eq!(tally.unknown["a compression of another branch"], 1);
        assert_eq!(tally.unknown_count(), 2, "{tally:?}");
    }

    #[test]
    fn rewind_at_the_end_of_the_file_takes_messages_back() {
        let title =
            r#""type":"system","subtype":"custom_title","systemPayload":{"customTitle":"T"}"#;
        let read_with_end = |parent: Option<&str>| {
            let file = [
                linked_line("1", None, &prompt("Ask.")),
                linked_line("2", Some("1"), &prompt("Again.")),
                linked_line("3", parent, REWIND),
                linked_line("4", Some("3"), title),
            ];
            let (all, tally) = read(format!("{}\n", file.join("\n")).as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(one["metadata"]["title"], "T");
            (message_lines(one).join(", "), tally.unknown_count())
        };
        assert_eq!(read_with_end(Some("1")), ("user Ask.".to_owned(), 1));
        // A rewind of all messages would leave no transcript, so they stay.
        let both = "user Ask., user Again.".to_owned();
        assert_eq!(read_with_end(None), (both, 0));
    }

    #[test]
    fn sub_agent_has_a_transcript_of_its_own() {
        let file = r#"{"uuid":"1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Ask."}]}}
{"uuid":"2","parentUuid":null,"sessionId":"s","agentId":"explore-7","isSidechain":true,"type":"user","message":{"role":"user","parts":[{"text":"Find it."}]}}
{"uuid":"3","parentUuid":"2","sessionId":"s","agentId":"explore-7","isSidechain":true,"type":"assistant","message":{"role":"model","parts":[{"text":"Found."}]}}
{"uuid":"4","parentUuid":"1","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"Done."}]}}
"#;
        let (all, _) = read(file.as_bytes());
        let transcripts: Vec<_> = all.iter().map(|one| one.as_ref().expect("read")).collect();
        assert_eq!(transcripts[0]["id"], "s");
        assert_eq!(
            message_lines(transcripts[0]),
            ["user Ask.", "assistant Done."]
        );
        assert_eq!(transcripts[1]["id"], "s.agent-explore-7");
        assert_eq!(transcripts[1]["metadata"]["parent"]["transcript"], "s");
    }

    #[test]
    fn exit_code_of_a_command_states_an_error() {
        let error_of = |code: u8| {
            let result = format!(
                r#""type":"tool_result","toolCallResult":{{"callId":"c1","status":"success"}},"message":{{"parts":[{{"functionResponse":{{"id":"c1","name":"run_shell_command","response":{{"output":"Command: ls\nExit Code: {code}\nSignal: (none)"}}}}}}]}}"#
            );
            let line = linked_line("1", None, &result);
            let (all, _) = read(format!("{line}\n").as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            one["messages"][0]["metadata"]["is_error"].clone()
        };
        assert_eq!(error_of(0), false);
        assert_eq!(error_of(1), true);
    }
}

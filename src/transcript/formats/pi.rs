//! Sessions of the coding agent pi, and of programs that are built on it, such as OpenClaw: one JSON object per line.
//!
//! | in the file | becomes |
//! |---|---|
//! | `message` lines, and `message_end` lines of `pi --mode json` | messages |
//! | the lines from the first one to the newest | the transcript of the session |
//! | messages of other branches | counted |
//! | a command that the user ran | a message of the user |
//! | summaries, and messages of extensions | system messages |
//! | models, names, labels, state of extensions … | metadata, or nothing |
//! | other lines, other roles | counted by kind |
//!
//! The line format is that of `SessionEntry` in `badlogic/pi-mono`, versions 1 to 3. Responsible for one transcript per
//! session. Does not read the index of OpenClaw's sessions.

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::json_string;
use super::super::reader::{
    PerSessionReader, RecordCx, SessionParser, TranscriptReader, TranscriptSink,
};
use super::foreign_message::MessageInProgress;
use super::line_path::{LineLinks, find_path};
use super::record_readers::parse_lines;
use super::transcript_builder::TranscriptBuilder;
use crate::model::MessageRole;

/// The lines that report the state of the program, or what another line repeats in full.
const IGNORED_LINES: [&str; 16] = [
    "agent_end",
    "agent_start",
    "auto_compaction_start",
    "auto_retry_end",
    "auto_retry_start",
    "compaction_start",
    "label",
    "message_start",
    "message_update",
    "queue_update",
    "thinking_level_change",
    "tool_execution_end",
    "tool_execution_start",
    "tool_execution_update",
    "turn_end",
    "turn_start",
];

/// The keys by which the lines form branches.
const LINKS: LineLinks = LineLinks {
    id: "id",
    parent: "parentId",
};

/// Returns true if the first lines contain a message, and the header of a session or the parent of that message. In a
/// stream without a header, the event `agent_start` comes first.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    let (mut has_header, mut has_message, mut has_parent) = (false, false, false);
    let (mut has_start, mut has_event) = (false, false);
    for seen in &preview.records {
        // Only lines with such a type need an outline.
        if !seen
            .sniff
            .type_starts_with(&["session", "message", "agent_start"])
        {
            continue;
        }
        let line = seen.sniff.outline(seen.bytes);
        match line["type"].as_str() {
            Some("session") if line["id"].is_string() => {
                let keys = ["cwd", "version", "timestamp"];
                has_header |= keys.iter().any(|key| seen.sniff.has(key));
            }
            Some("agent_start") => has_start = true,
            Some("message" | "message_end") if line["message"]["role"].is_string() => {
                has_message = true;
                has_event |= line["type"] == "message_end";
                has_parent |= seen.sniff.has("parentId");
            }
            _ => {}
        }
    }
    has_message && (has_header || has_parent) || has_event && has_start
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        PiParser::default(),
    ))
}

/// A parser of sessions that begin with a header.
#[derive(Debug, Default)]
struct PiParser {
    /// True after the first header of the file.
    has_header: bool,
}

impl SessionParser for PiParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        // Some programs write the title before the header, so the first header begins no further session.
        is_header(line) && std::mem::replace(&mut self.has_header, true)
    }

    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        let rows = parse_lines(lines, out);
        let stem = cx.source.stem().to_owned();
        let mut session = PiSession {
            // A header replaces the name of the file.
            built: TranscriptBuilder::new("pi", Some(stem.into())),
            failure: None,
        };
        let on_path = find_path(&rows, &LINKS, is_entry);
        for ((_, line), is_on_path) in rows.iter().zip(on_path) {
            session.add_line(line, is_on_path);
        }
        session.built.meta.set_raw("error", session.failure);
        session.built.finish(out);
    }
}

fn is_header(line: &[u8]) -> bool {
    let fields = RawFields::from_bytes(line);
    fields.is_some_and(|fields| fields.text("type").as_deref() == Some("session"))
}

/// Returns true if a line is an entry of the tree. The newest entry is where the user left the session.
fn is_entry(line: &RawFields<'_>) -> bool {
    line.has_key("parentId") || line.has("message")
}

/// A session under construction.
#[derive(Debug)]
struct PiSession<'r> {
    built: TranscriptBuilder,
    /// The reason why the newest reply failed.
    failure: Option<&'r RawValue>,
}

impl<'r> PiSession<'r> {
    fn add_line(&mut self, line: &RawFields<'r>, is_on_path: bool) {
        let kind = line.text("type").unwrap_or_default();
        let built = &mut self.built;
        match &*kind {
            "session" => {
                if let Some(id) = line.id_text("id") {
                    built.id = id.0.into_owned();
                }
                built.meta.set_raw("timestamp", line.get("timestamp"));
                built.meta.set_raw("cwd", line.get("cwd"));
                built.meta.set_raw("model", line.get("modelId"));
                let origin = line.get_first(&["parentSession", "branchedFrom"]);
                built.meta.set_raw("parent_session", origin);
            }
            "model_change" => {
                let model = line.get_first(&["modelId", "model"]);
                built.meta.set_raw("model", model);
            }
            "session_info" => {
                built.meta.set_raw("title", line.get("name"));
            }
            "title" => {
                let title = line.get("title").filter(|title| title.get() != "\"\"");
                built.meta.set_raw("title", title);
            }
            "message" | "message_end" | "custom_message" | "compaction" | "branch_summary"
                if !is_on_path =>
            {
                built.unknown.push("a message of another branch".to_owned());
            }
            "message" | "message_end" => self.add_message(line),
            "custom_message" | "compaction" | "branch_summary" => {
                let before = built.messages.len();
                add_notice(&kind, line, built);
                set_time(line, before, built);
            }
            "custom" => self.add_state(line),
            kind if IGNORED_LINES.contains(&kind) => {}
            kind => built.unknown.push(format!("a line of the type `{kind}`")),
        }
    }

    fn add_message(&mut self, line: &RawFields<'r>) {
        let built = &mut self.built;
        let Some(message) = line.object("message") else {
            built
                .unknown
                .push("a line of a message without `message`".to_owned());
            return;
        };
        let before = built.messages.len();
        let role = message.text("role").unwrap_or_default();
        match &*role {
            "user" => add_content(MessageRole::User, &message, built),
            "system" => add_content(MessageRole::System, &message, built),
            "assistant" => {
                add_content(MessageRole::Assistant, &message, built);
                let failed = message.text("stopReason").as_deref() == Some("error");
                self.failure = message.get("errorMessage").filter(|_| failed);
            }
            "toolResult" => add_result(&message, built),
            "bashExecution" => add_command(&message, built),
            "custom" | "hookMessage" | "branchSummary" | "compactionSummary" => {
                add_notice(&role, &message, built);
            }
            role => {
                built
                    .unknown
                    .push(format!("a message of the role `{role}`"));
                return;
            }
        }
        set_time(line, before, built);
        if &*role == "assistant" {
            add_reply_facts(&message, built);
        }
    }

    /// Adds what the state of an extension reports about the session.
    fn add_state(&mut self, line: &RawFields<'r>) {
        let data = line.object("data").unwrap_or_default();
        match line.text("customType").as_deref() {
            // OpenClaw reports a request that failed without a reply.
            Some("openclaw:prompt-error") => self.failure = data.get("error"),
            Some("model-snapshot") => {
                self.built.meta.set_raw("model", data.get("modelId"));
            }
            _ => {}
        }
    }
}

/// Sets the time of the messages from `first` on.
fn set_time(line: &RawFields<'_>, first: usize, built: &mut TranscriptBuilder) {
    let message = line.object("message").unwrap_or_default();
    let time = line.get("timestamp").or_else(|| message.get("timestamp"));
    for message in &mut built.messages[first..] {
        message.meta.set_raw("timestamp", time);
    }
}

/// Adds a message with the parts of its content.
fn add_content(role: MessageRole<'static>, message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let mut added = MessageInProgress::new(role, built);
    if let Some(content) = message.get("content") {
        match list_items(content) {
            Some(parts) => {
                for raw in parts {
                    add_part(raw, &mut added);
                }
            }
            None => added.add_content(content),
        }
    }
    added.finish();
}

fn add_part(raw: &RawValue, message: &mut MessageInProgress<'_>) {
    let kind = RawFields::from_raw(raw).and_then(|part| part.text("type"));
    match kind.as_deref() {
        Some("toolCall" | "toolUse") => message.add_call(raw),
        _ => message.add_part(raw),
    }
}

/// Adds a tool result. Pictures stay parts next to its text.
fn add_result(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let id = message.id_text("toolCallId").unwrap_or_default();
    let mut texts = Vec::new();
    let mut attached = MessageInProgress::new(MessageRole::Tool, built);
    let content = message.get("content");
    for raw in content.and_then(list_items).unwrap_or_default() {
        match RawFields::from_raw(raw).and_then(|part| part.text("text")) {
            Some(text) => texts.push(text.0.into_owned()),
            None => attached.add_part(raw),
        }
    }
    let attached = std::mem::take(&mut attached.parts);
    let whole = content.and_then(json_string);
    texts.extend(whole.map(|text| text.0.into_owned()));
    let is_error = has_failed(message).or_else(|| message.flag("isError"));
    built.push_result(&id, texts.join("\n"), is_error);
    if let Some(last) = built.messages.last_mut() {
        last.parts.extend(attached);
    }
}

/// Returns true if the details of a result state that the tool failed. OpenClaw's tools return their errors, so `isError`
/// is false.
fn has_failed(message: &RawFields<'_>) -> Option<bool> {
    let details = message.object("details")?;
    let has_code = details.integer("exitCode").is_some_and(|code| code != 0);
    let status = details.text("status");
    (has_code || matches!(status.as_deref(), Some("error" | "failed"))).then_some(true)
}

/// Adds a command that the user ran, as the program shows it to the model.
fn add_command(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let command = message.text("command").unwrap_or_default();
    let output = message.text("output").unwrap_or_default();
    let text = format!("Ran `{}`\n```\n{}\n```", &*command, &*output);
    built.push_text(MessageRole::User, &text);
    if let Some(meta) = built.last_meta(&MessageRole::User) {
        meta.set_raw("exit_code", message.get("exitCode"));
        // The model did not see such a command.
        meta.set_raw("excluded", message.get("excludeFromContext"));
    }
}

/// Adds a summary, or a message of an extension.
fn add_notice(kind: &str, fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    match fields.text("summary") {
        Some(summary) => built.push_text(MessageRole::System, &summary),
        None => add_content(MessageRole::System, fields, built),
    }
    if let Some(meta) = built.last_meta(&MessageRole::System) {
        if matches!(kind, "compaction" | "compactionSummary") {
            meta.set("compaction", true);
        }
        meta.set_raw("custom_type", fields.get("customType"));
    }
}

/// Adds what a reply states about itself to its message.
fn add_reply_facts(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    // OpenClaw adds messages of its own, such as the error of a reply that it did not get.
    let is_own = message.text("provider").as_deref() == Some("openclaw");
    if !built.meta.has("model") && !is_own {
        built.meta.set_raw("model", message.get("model"));
    }
    let Some(meta) = built.last_meta(&MessageRole::Assistant) else {
        return;
    };
    meta.set_raw("model", message.get("model"));
    meta.set_raw("stop_reason", message.get("stopReason"));
    if let Some(usage) = message.object("usage") {
        meta.set("usage", parse_usage(&usage).to_json());
        let cost = usage.object("cost").unwrap_or_default();
        meta.set_raw("cost_usd", cost.get("total"));
    }
    meta.set_raw("error", message.get("errorMessage"));
}

/// Parses token counts. The tokens of the cache are not in `input`.
fn parse_usage(usage: &RawFields<'_>) -> SourceUsage {
    let cached = usage.integer("cacheRead");
    let written = usage.integer("cacheWrite");
    let input = SourceUsage::input_with_cache(usage.integer("input"), cached, written);
    SourceUsage {
        input,
        output: usage.integer("output"),
        total: usage.integer("totalTokens"),
        cached,
        thinking: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s-1","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/work"}"#;

    /// Returns a line with a message.
    fn message(id: &str, parent: &str, message: &str) -> String {
        format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#)
    }

    fn user(text: &str) -> String {
        format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#)
    }

    fn read_lines(lines: &[&str]) -> (Vec<Value>, Vec<(String, u64)>) {
        let (all, tally) = read(format!("{}\n", lines.join("\n")).as_bytes());
        let all = all.into_iter().map(|one| one.expect("a transcript"));
        (all.collect(), tally.unknown.into_iter().collect())
    }

    #[test]
    fn messages_of_an_abandoned_branch_are_counted() {
        let lines: [&str; 4] = [
            &message("1", "null", &user("Ask.")),
            &message("2", r#""1""#, &user("Forget it.")),
            &message("3", r#""1""#, &user("Ask again.")),
            r#"{"type":"label","id":"4","parentId":"3","targetId":"3","label":"here"}"#,
        ];
        let (all, unknown) = read_lines(&lines);
        assert_eq!(message_lines(&all[0]), ["user Ask.", "user Ask again."]);
        assert_eq!(unknown, [("a message of another branch".to_owned(), 1)]);
    }

    #[test]
    fn stream_without_a_header_is_a_session() {
        let event =
            |kind: &str, message: &str| format!(r#"{{"type":"{kind}","message":{message}}}"#);
        let reply = r#"{"role":"assistant","content":[{"type":"text","text":"Done."}]}"#;
        let end = format!(r#"{{"type":"agent_end","messages":[{reply}]}}"#);
        let lines: [&str; 6] = [
            r#"{"type":"agent_start"}"#,
            r#"{"type":"turn_start"}"#,
            &event("message_start", &user("Do it.")),
            &event("message_end", &user("Do it.")),
            &event("message_end", reply),
            &end,
        ];
        let (all, unknown) = read_lines(&lines);
        assert_eq!(all.len(), 1);
        assert_eq!(message_lines(&all[0]), ["user Do it.", "assistant Done."]);
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn session_of_the_first_version_has_no_branches() {
        let line = |message: &str| format!(r#"{{"type":"message","message":{message}}}"#);
        let reply = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{"path":"a"}}],"usage":{"input":3,"output":2,"cacheRead":10,"cacheWrite":5,"totalTokens":20,"cost":{"total":0.5}},"stopReason":"toolUse"}"#;
        let result = r#"{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"one"},{"type":"image","data":"eA==","mimeType":"image/png"}],"isError":true}"#;
        let command = r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false}"#;
        let lines: [&str; 7] = [
            r#"{"type":"title","title":"Files"}"#,
            r#"{"type":"session","id":"s-1","timestamp":"t","cwd":"/work","modelId":"opus"}"#,
            &line(&user("Read it.")),
            &line(reply),
            &line(result),
            r#"{"type":"compaction","summary":"They read.","firstKeptEntryIndex":0}"#,
            &line(command),
        ];
        let (all, unknown) = read_lines(&lines);
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(all.len(), 1, "the title belongs to the session");
        let session = &all[0];
        assert_eq!(session["id"], "s-1");
        assert_eq!(session["metadata"]["title"], "Files");
        assert_eq!(session["metadata"]["model"], "opus");
        assert_eq!(
            message_lines(session),
            [
                "user Read it.",
                r#"assistant read({"path":"a"})"#,
                "tool one | <image>",
                "system They read.",
                "user Ran `ls`\n```\na\n```",
            ]
        );
        let reply = &session["messages"][1]["metadata"];
        let usage = json!({"input": 18, "output": 2, "total": 20, "cached": 10});
        assert_eq!(reply["usage"], usage);
        assert_eq!(reply["cost_usd"], 0.5);
        assert_eq!(session["messages"][2]["metadata"]["is_error"], true);
        assert_eq!(session["messages"][3]["metadata"]["compaction"], true);
        assert_eq!(session["messages"][4]["metadata"]["exit_code"], 0);
    }

    #[test]
    fn failed_reply_is_the_error_of_a_session_that_ends_with_it() {
        let failed =
            r#"{"role":"assistant","content":[],"stopReason":"error","errorMessage":"overloaded"}"#;
        let answered =
            r#"{"role":"assistant","content":[{"type":"text","text":"Hi."}],"stopReason":"stop"}"#;
        let asked = message("1", "null", &user("Hello."));
        let first = message("2", r#""1""#, failed);
        let second = message("3", r#""2""#, answered);
        let (all, _) = read_lines(&[HEADER, &asked, &first]);
        assert_eq!(all[0]["metadata"]["error"], "overloaded");
        let (all, _) = read_lines(&[HEADER, &asked, &first, &second]);
        assert!(all[0]["metadata"]["error"].is_null());
        assert_eq!(all[0]["messages"][1]["metadata"]["error"], "overloaded");
        let lost = r#"{"type":"custom","customType":"openclaw:prompt-error","id":"4","parentId":"3","data":{"error":"terminated"}}"#;
        let (all, _) = read_lines(&[HEADER, &asked, &first, &second, lost]);
        assert_eq!(all[0]["metadata"]["error"], "terminated");
    }

    #[test]
    fn printed_events_are_a_session_whose_messages_count_once() {
        let partial = r#"{"role":"assistant","content":[{"type":"text","text":"H"}]}"#;
        let whole = r#"{"role":"assistant","content":[{"type":"text","text":"Hi."}]}"#;
        let event =
            |kind: &str, message: &str| format!(r#"{{"type":"{kind}","message":{message}}}"#);
        let lines: [&str; 9] = [
            HEADER,
            r#"{"type":"agent_start"}"#,
            &event("message_start", &user("Hello.")),
            &event("message_end", &user("Hello.")),
            &event("message_start", partial),
            &event("message_update", partial),
            &event("message_end", whole),
            &event("turn_end", whole),
            r#"{"type":"agent_end","messages":[]}"#,
        ];
        let (all, unknown) = read_lines(&lines);
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(message_lines(&all[0]), ["user Hello.", "assistant Hi."]);
    }

    #[test]
    fn each_header_after_the_first_begins_a_session() {
        let second = HEADER.replace("s-1", "s-2");
        let asked = message("1", "null", &user("Hello."));
        let (all, _) = read_lines(&[HEADER, &asked, &second, &asked]);
        let ids: Vec<&Value> = all.iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["s-1", "s-2"]);
    }

    #[test]
    fn unknown_lines_and_roles_are_counted() {
        let lines: [&str; 4] = [
            HEADER,
            &message("1", "null", &user("Hello.")),
            &message("2", r#""1""#, r#"{"role":"oracle","content":"?"}"#),
            r#"{"type":"novel","id":"3","parentId":"2"}"#,
        ];
        let (_, unknown) = read_lines(&lines);
        let kinds: Vec<&str> = unknown.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "a line of the type `novel`",
                "a message of the role `oracle`",
            ]
        );
    }

    #[test]
    fn result_whose_details_state_an_error_is_an_error() {
        let error_of = |fields: &str| {
            let result =
                format!(r#"{{"role":"toolResult","toolCallId":"c","content":[],{fields}}}"#);
            let (all, _) = read_lines(&[HEADER, &message("1", "null", &result)]);
            all[0]["messages"][0]["metadata"]["is_error"].clone()
        };
        let failed = r#""details":{"status":"error","error":"no such file"},"isError":false"#;
        assert_eq!(error_of(failed), true);
        assert_eq!(
            error_of(r#""details":{"exitCode":2},"isError":false"#),
            true
        );
        assert_eq!(
            error_of(r#""details":{"exitCode":0,"status":"completed"},"isError":false"#),
            false
        );
        assert_eq!(error_of(r#""details":{}"#), Value::Null);
    }

    #[test]
    fn messages_of_openclaw_itself_do_not_name_the_model() {
        let own = r#"{"role":"assistant","content":[{"type":"text","text":"Agent failed."}],"provider":"openclaw","model":"gateway-injected"}"#;
        let reply = r#"{"role":"assistant","content":[{"type":"text","text":"Hi."}],"provider":"ollama","model":"qwen"}"#;
        let snapshot = r#"{"type":"custom","customType":"model-snapshot","data":{"modelId":"gpt"},"id":"3","parentId":"2"}"#;
        let first = message("1", "null", own);
        let second = message("2", r#""1""#, reply);
        let (all, _) = read_lines(&[HEADER, &first, &second]);
        assert_eq!(all[0]["metadata"]["model"], "qwen");
        let (all, _) = read_lines(&[HEADER, &first, &second, snapshot]);
        assert_eq!(all[0]["metadata"]["model"], "gpt");
    }
}

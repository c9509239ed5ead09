//! Sessions of Factory's coding agent Droid (`~/.factory/sessions/PROJECT/ID.jsonl`), and what
//! `droid exec --output-format stream-json` prints: one JSON object per line.
//!
//! | in the file | becomes |
//! |---|---|
//! | `session_start` | metadata; a session that another one called has `parent` and the tag `sub-agent` |
//! | `message` lines, with blocks of Anthropic | messages, in the order of the file |
//! | a notice of Droid for the user alone | a system message |
//! | context that Droid adds for the model | a message of the user, with `is_meta` |
//! | a compaction | a system message, with `compaction` |
//! | how the newest turn ended | `stop_reason` |
//! | to-do lists | nothing, because they are also calls |
//! | `system`, `completion` and `error` lines of a stream | metadata |
//! | `message`, `reasoning`, `tool_call` and `tool_result` lines of a stream | messages |
//! | the text of a `completion` | a message, if the turn has no text of the assistant |
//! | hooks, structured results, other lines and roles | counted by kind |
//!
//! Responsible for one transcript per session. Does not read `ID.settings.json`, which has the model and the tokens.

use serde_json::json;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{
    PerSessionReader, RecordCx, SessionParser, TranscriptReader, TranscriptSink,
};
use super::foreign_message::MessageInProgress;
use super::record_readers::parse_lines;
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, owned_text, reasoning_part, text_part,
};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// Returns true for a session and for a stream.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    is_stored(preview) || is_stream(preview)
}

/// Returns true if the first lines contain the header of a session and a message. pi's header has another type.
fn is_stored(preview: &FilePreview<'_>) -> bool {
    let (mut has_header, mut has_message) = (false, false);
    for seen in &preview.records {
        // Only lines with such a type need an outline.
        if !seen.sniff.type_starts_with(&["session_start", "message"]) {
            continue;
        }
        let line = seen.sniff.outline(seen.bytes);
        match line["type"].as_str() {
            Some("session_start") => has_header |= line["id"].is_string(),
            Some("message") => has_message |= line["message"]["role"].is_string(),
            _ => {}
        }
    }
    has_header && has_message
}

/// Returns true if the first lines contain a message with its text, and another line of a stream. Claude Code's messages
/// are objects.
fn is_stream(preview: &FilePreview<'_>) -> bool {
    let (mut has_message, mut has_other) = (false, false);
    for seen in &preview.records {
        let kinds = ["system", "message", "tool_call", "completion"];
        let has_session = seen.sniff.has("session_id") || seen.sniff.has("sessionId");
        if !has_session || !seen.sniff.type_starts_with(&kinds) {
            continue;
        }
        let line = seen.sniff.outline(seen.bytes);
        match line["type"].as_str() {
            Some("message") => has_message |= line["role"].is_string() && line["text"].is_string(),
            Some("system") => has_other = true,
            Some("tool_call") => has_other |= line["toolName"].is_string(),
            Some("completion") => has_other |= line["finalText"].is_string(),
            _ => {}
        }
    }
    has_message && has_other
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        DroidParser::default(),
    ))
}

/// A parser of sessions that begin with a header.
#[derive(Debug, Default)]
struct DroidParser {
    /// True after the first header of the file.
    has_header: bool,
}

impl SessionParser for DroidParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        is_header(line) && std::mem::replace(&mut self.has_header, true)
    }

    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        let rows = parse_lines(lines, out);
        let stem = cx.source.stem().to_owned();
        // A header replaces the name of the file.
        let mut built = TranscriptBuilder::new("droid", Some(stem.into()));
        let id = rows.iter().find_map(|(_, line)| session_of(line));
        if let Some(id) = id {
            built.id = id.0.into_owned();
        }
        for (_, line) in &rows {
            add_line(line, &mut built);
        }
        built.finish(out);
    }
}

fn is_header(line: &[u8]) -> bool {
    let fields = RawFields::from_bytes(line);
    fields.is_some_and(|line| match line.text("type").as_deref() {
        Some("session_start") => true,
        Some("system") => begins_stream(&line),
        _ => false,
    })
}

/// Returns true for the first line of a stream.
fn begins_stream(line: &RawFields<'_>) -> bool {
    let subtype = line.text("subtype");
    session_of(line).is_some() && subtype.is_none_or(|subtype| &*subtype == "init")
}

/// Returns the session that a line of a stream names.
fn session_of<'a>(line: &RawFields<'a>) -> Option<SourceText<'a>> {
    let snake = line.id_text("session_id");
    snake.or_else(|| line.id_text("sessionId"))
}

fn add_line(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let kind = line.text("type").unwrap_or_default();
    match &*kind {
        "session_start" => add_header(line, built),
        "message" if line.has("text") => add_text(line, built),
        "message" => add_message(line, built),
        "system" if begins_stream(line) => {
            built.meta.set_raw("timestamp", line.get("timestamp"));
            built.meta.set_raw("cwd", line.get("cwd"));
            built.meta.set_raw("model", line.get("model"));
        }
        "reasoning" => {
            // A stream repeats a reasoning that it already reported.
            let text = line.text("text").unwrap_or_default();
            if !repeats_last(&text, built) {
                add_to_reply(reasoning_part(&text), line, built);
            }
        }
        "tool_call" => {
            let name = line.text("toolName").unwrap_or_default();
            let arguments = call_arguments(line.get("parameters"));
            built.push_call(&call_id(line), &name, arguments);
        }
        "tool_result" => {
            let value = line.get("value").or_else(|| line.get("error"));
            let value = value.map(owned_text).unwrap_or_default();
            built.push_result(&call_id(line), value, line.flag("isError"));
        }
        "completion" => add_completion(line, built),
        "error" => {
            built.meta.set_raw("error", line.get("message"));
        }
        "compaction_state" => match line.text("summaryText") {
            Some(summary) => {
                built.push_text(MessageRole::System, &summary);
                if let Some(meta) = built.last_meta(&MessageRole::System) {
                    meta.set("compaction", true);
                    meta.set_raw("timestamp", line.get("timestamp"));
                }
            }
            None => built
                .unknown
                .push("a compaction without a summary".to_owned()),
        },
        "agent_turn_outcome" => {
            built.meta.set_raw("stop_reason", line.get("reason"));
            if line.has("result") {
                built.unknown.push("a structured result".to_owned());
            }
        }
        "todo_state" | "session_end" => {}
        kind => built.unknown.push(format!("a line of the type `{kind}`")),
    }
}

fn add_header(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    if let Some(id) = line.id_text("id") {
        built.id = id.0.into_owned();
    }
    let title = line.get_first(&["sessionTitle", "title"]);
    built.meta.set_raw("title", title);
    built.meta.set_raw("timestamp", line.get("timestamp"));
    built.meta.set_raw("cwd", line.get("cwd"));
    built.meta.set_raw("version", line.get("version"));
    built.meta.set_raw("parent_session", line.get("parent"));
    if let Some(caller) = line.id_text("callingSessionId") {
        built.meta.set("parent", json!({ "transcript": &*caller }));
        built.tags.push(SourceText::from("sub-agent"));
    }
}

fn add_message(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let Some(message) = line.object("message") else {
        built
            .unknown
            .push("a line of a message without `message`".to_owned());
        return;
    };
    // The record of a hook has the role of the user, and no content.
    if message.has("hookEventName") {
        built.unknown.push("a hook".to_owned());
        return;
    }
    let visibility = message.text("visibility");
    let role = match message.text("role").as_deref() {
        Some("user") if visibility.as_deref() == Some("user_only") => MessageRole::System,
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("system") => MessageRole::System,
        role => {
            let role = role.unwrap_or_default();
            built
                .unknown
                .push(format!("a message of the role `{role}`"));
            return;
        }
    };
    let before = built.messages.len();
    let mut added = MessageInProgress::new(role, built);
    if let Some(content) = message.get("content") {
        added.add_content(content);
    }
    added.finish();
    if !built.meta.has("model") {
        built.meta.set_raw("model", message.get("modelId"));
    }
    for added in &mut built.messages[before..] {
        added.meta.set_raw("timestamp", line.get("timestamp"));
        if added.role == MessageRole::Assistant {
            added.meta.set_raw("model", message.get("modelId"));
        }
        if visibility.as_deref() == Some("llm_only") {
            added.meta.set("is_meta", true);
        }
    }
}

/// Adds a message of a stream.
fn add_text(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let text = line.text("text").unwrap_or_default();
    match line.text("role").as_deref() {
        Some("user") => {
            built.push_text(MessageRole::User, &text);
            if let Some(meta) = built.last_meta(&MessageRole::User) {
                meta.set_raw("timestamp", line.get("timestamp"));
            }
        }
        Some("assistant") => add_to_reply(text_part(&text), line, built),
        role => {
            let role = role.unwrap_or_default();
            built
                .unknown
                .push(format!("a message of the role `{role}`"));
        }
    }
}

/// Adds a part of a reply. A text follows its reasoning; after a text or a call, a further message begins.
fn add_to_reply(
    part: TranscriptPart<'static>,
    line: &RawFields<'_>,
    built: &mut TranscriptBuilder,
) {
    let is_thought = |part: &TranscriptPart<'_>| matches!(part, TranscriptPart::Reasoning(_));
    match built.messages.last_mut() {
        Some(last) if last.role == MessageRole::Assistant && last.parts.iter().all(is_thought) => {
            last.parts.push(part);
        }
        _ => built.push(MessageRole::Assistant, vec![part]),
    }
    if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
        meta.set_raw("timestamp", line.get("timestamp"));
    }
}

/// Returns true if the last part is this reasoning.
fn repeats_last(text: &str, built: &TranscriptBuilder) -> bool {
    let last = built
        .messages
        .last()
        .and_then(|message| message.parts.last());
    matches!(last, Some(TranscriptPart::Reasoning(thought)) if **thought == *text)
}

/// Returns the id of the call that a line reports or answers.
fn call_id(line: &RawFields<'_>) -> String {
    let id = line.id_text("toolCallId");
    let id = id.or_else(|| line.id_text("id"));
    id.map(|id| id.0.into_owned()).unwrap_or_default()
}

/// Adds how a turn of a stream ended.
fn add_completion(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let text = line.text("finalText").unwrap_or_default();
    if line.flag("isError") == Some(true) {
        built.meta.set_raw("error", line.get("finalText"));
    } else if !text.is_empty() && !has_answer(built) {
        built.push_text(MessageRole::Assistant, &text);
    }
    built.meta.set_raw("latency_ms", line.get("durationMs"));
    if let Some(usage) = line.object("usage") {
        built.meta.set("usage", parse_usage(&usage).to_json());
    }
}

/// Returns true if the newest turn has a text of the assistant.
fn has_answer(built: &TranscriptBuilder) -> bool {
    let turn = built
        .messages
        .iter()
        .rev()
        .take_while(|message| message.role != MessageRole::User);
    let is_text = |part: &TranscriptPart<'_>| matches!(part, TranscriptPart::Text(_));
    turn.filter(|message| message.role == MessageRole::Assistant)
        .any(|message| message.parts.iter().any(is_text))
}

/// Parses token counts. The tokens of the cache are not in `input_tokens`.
fn parse_usage(usage: &RawFields<'_>) -> SourceUsage {
    let cached = usage.integer("cache_read_input_tokens");
    let written = usage.integer("cache_creation_input_tokens");
    let input = SourceUsage::input_with_cache(usage.integer("input_tokens"), cached, written);
    SourceUsage {
        input,
        output: usage.integer("output_tokens"),
        total: None,
        cached,
        thinking: usage.integer("thinking_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    const HEADER: &str =
        r#"{"type":"session_start","id":"s-1","title":"Files","version":2,"cwd":"/work"}"#;
    const ASKED: &str =
        r#"{"type":"message","id":"m","message":{"role":"user","content":"Hello."}}"#;

    fn read_lines(lines: &[&str]) -> (Vec<Value>, Vec<(String, u64)>) {
        let (all, tally) = read(format!("{}\n", lines.join("\n")).as_bytes());
        let all = all.into_iter().map(|one| one.expect("a transcript"));
        (all.collect(), tally.unknown.into_iter().collect())
    }

    #[test]
    fn session_that_another_one_called_is_a_sub_agent() {
        let header = HEADER.replace(
            r#""version""#,
            r#""callingSessionId":"s-0","callingToolUseId":"c","version""#,
        );
        let (all, unknown) = read_lines(&[&header, ASKED]);
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(all[0]["metadata"]["parent"]["transcript"], "s-0");
        assert_eq!(all[0]["tags"][0], "sub-agent");
    }

    #[test]
    fn each_header_after_the_first_begins_a_session() {
        let second = HEADER.replace("s-1", "s-2");
        let (all, _) = read_lines(&[HEADER, ASKED, &second, ASKED]);
        let ids: Vec<&Value> = all.iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["s-1", "s-2"]);
    }

    #[test]
    fn notice_for_the_user_alone_is_not_a_message_of_the_user() {
        let notice = r#"{"type":"message","message":{"role":"user","content":"Updated.","visibility":"user_only"}}"#;
        let context = r#"{"type":"message","message":{"role":"user","content":"It is ten.","visibility":"llm_only"}}"#;
        let (all, _) = read_lines(&[HEADER, context, notice, ASKED]);
        assert_eq!(
            message_lines(&all[0]),
            ["user It is ten.", "system Updated.", "user Hello."]
        );
        let messages = &all[0]["messages"];
        assert_eq!(messages[0]["metadata"]["is_meta"], true);
        assert!(messages[2]["metadata"]["is_meta"].is_null());
    }

    #[test]
    fn hooks_results_and_unknown_lines_are_counted() {
        let hook = r#"{"type":"message","message":{"role":"user","content":[],"hookEventName":"Stop","hookResults":[]}}"#;
        let oracle = r#"{"type":"message","message":{"role":"oracle","content":"?"}}"#;
        let outcome =
            r#"{"type":"agent_turn_outcome","reason":"completed","result":{"done":true}}"#;
        let compaction = r#"{"type":"compaction_state","removedCount":2}"#;
        let novel = r#"{"type":"novel"}"#;
        let (all, unknown) = read_lines(&[HEADER, ASKED, hook, oracle, outcome, compaction, novel]);
        assert_eq!(message_lines(&all[0]), ["user Hello."]);
        assert_eq!(all[0]["metadata"]["stop_reason"], "completed");
        let kinds: Vec<&str> = unknown.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "a compaction without a summary",
                "a hook",
                "a line of the type `novel`",
                "a message of the role `oracle`",
                "a structured result",
            ]
        );
    }

    const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/work","session_id":"s-1","tools":["Read"],"model":"opus"}"#;
    const PROMPT: &str =
        r#"{"type":"message","role":"user","id":"u","text":"Read it.","session_id":"s-1"}"#;
    const CALL: &str = r#"{"type":"tool_call","id":"c","messageId":"a","toolId":"Read","toolName":"Read","parameters":{"path":"a"},"session_id":"s-1"}"#;
    const RESULT: &str = r#"{"type":"tool_result","id":"c","messageId":"r","toolId":"Read","isError":true,"value":"no such file","session_id":"s-1"}"#;

    #[test]
    fn stream_is_a_session_whose_answer_counts_once() {
        let thought = r#"{"type":"reasoning","id":"r","text":"Look.","session_id":"s-1"}"#;
        let reply = r#"{"type":"message","role":"assistant","id":"a","text":"It is gone.","session_id":"s-1"}"#;
        let end = r#"{"type":"completion","finalText":"It is gone.","numTurns":2,"durationMs":30,"session_id":"s-1","usage":{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":5,"cache_creation_input_tokens":1}}"#;
        let (all, unknown) = read_lines(&[
            INIT, PROMPT, thought, thought, CALL, RESULT, thought, reply, end,
        ]);
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(
            message_lines(&all[0]),
            [
                "user Read it.",
                r#"assistant <reasoning> | Read({"path":"a"})"#,
                "tool no such file",
                "assistant <reasoning> | It is gone.",
            ]
        );
        let metadata = &all[0]["metadata"];
        assert_eq!(all[0]["id"], "s-1");
        assert_eq!(metadata["model"], "opus");
        assert_eq!(metadata["latency_ms"], 30);
        let usage = json!({"input": 16, "output": 2, "cached": 5});
        assert_eq!(metadata["usage"], usage);
        assert_eq!(all[0]["messages"][2]["metadata"]["is_error"], true);
    }

    #[test]
    fn completion_is_the_answer_of_a_turn_without_one() {
        let end = r#"{"type":"completion","finalText":"Done.","session_id":"s-1"}"#;
        let (all, _) = read_lines(&[PROMPT, CALL, RESULT, end]);
        let lines = message_lines(&all[0]);
        assert_eq!(lines.last().map(String::as_str), Some("assistant Done."));
    }

    #[test]
    fn failed_completion_is_an_error_and_not_an_answer() {
        let end =
            r#"{"type":"completion","finalText":"Turn failed","isError":true,"session_id":"s-1"}"#;
        let (all, _) = read_lines(&[INIT, PROMPT, end]);
        assert_eq!(message_lines(&all[0]), ["user Read it."]);
        assert_eq!(all[0]["metadata"]["error"], "Turn failed");
    }
}

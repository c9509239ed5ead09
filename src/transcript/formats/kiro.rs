//! Conversations of Kiro CLI and of Amazon Q Developer CLI, from which Kiro CLI comes.
//!
//! Responsible for two layouts:
//!
//! - what `/save` writes, which is also a row of the program's database: `{conversation_id, history}`
//! - the lines of Kiro's sessions (`~/.kiro/sessions/cli/ID.jsonl`): `{kind, data}`
//!
//! An older `history` has pairs of a prompt and a reply in place of objects. If it is empty, the program kept the turns
//! only as texts (`transcript`): dicta reads them and counts the calls, of which the file has only the names. A shell
//! command states its exit code in its result; a code other than 0 is an error. The layouts are those of
//! `ConversationState` in `aws/amazon-q-developer-cli`, and of real files. Does not read sessions of the Kiro IDE, whose
//! replies are in other files.

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::{NOT_JSON, line_text, open_records, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, media_part, owned_text, owned_unknown_part,
    reasoning_part, text_part,
};
use crate::model::MessageRole;

/// Returns true if the first record is a conversation.
pub(super) fn is_conversation(preview: &FilePreview<'_>) -> bool {
    if !preview.first_matches(|s| s.has("conversation_id") && s.has("history")) {
        return false;
    }
    let record = preview.first_outline();
    let Some(history) = record["history"].as_array() else {
        return false;
    };
    match history.first() {
        Some(turn) => {
            let prompt = if turn.is_array() {
                &turn[0]
            } else {
                &turn["user"]
            };
            prompt["content"].is_object()
        }
        None => record["transcript"].is_array() && record["valid_history_range"].is_array(),
    }
}

/// Returns true if the first lines are those of a session.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    const KINDS: [&str; 3] = ["Prompt", "AssistantMessage", "ToolResults"];
    let mut entries = preview.records.iter();
    entries
        .find(|seen| seen.sniff.has("kind") && seen.sniff.has("data"))
        .is_some_and(|seen| {
            let line = seen.sniff.outline(seen.bytes);
            let kind = line["kind"].as_str();
            kind.is_some_and(|kind| KINDS.contains(&kind)) && line["data"]["content"].is_array()
        })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if is_conversation(preview) {
        open_records(preview, parse_conversation)
    } else {
        open_sessions(preview, |_| false, parse_session)
    }
}

/// Adds the transcript of a conversation as `/save` writes it.
pub(super) fn parse_conversation(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = TranscriptBuilder::new("kiro", fields.id_text("conversation_id"));
    let model = fields.object("model_info").unwrap_or_default();
    let model = model.get("model_id").or_else(|| fields.get("model"));
    built.meta.set_raw("model", model);
    // The first item is the text, the second one is about the request.
    let summary = fields.list("latest_summary").unwrap_or_default();
    if let Some(text) = summary.first().and_then(|raw| json_string(raw)) {
        built.push_text(MessageRole::System, &text);
        if let Some(meta) = built.last_meta(&MessageRole::System) {
            meta.set("compaction", true);
        }
    }
    let history = fields.list("history").unwrap_or_default();
    let next = fields.object("next_message");
    out.count_elements(history.len() + usize::from(next.is_some()));
    for raw in &history {
        add_turn(raw, &mut built);
    }
    if let Some(next) = next {
        add_prompt(&next, &mut built);
    }
    if history.is_empty() {
        add_spoken_turns(&fields, &mut built);
    }
    built.finish(out);
    Ok(())
}

/// Adds a turn: a prompt or the results of tools, and the reply.
fn add_turn(raw: &RawValue, built: &mut TranscriptBuilder) {
    let pair = list_items(raw).unwrap_or_default();
    let turn = RawFields::from_raw(raw).unwrap_or_default();
    let prompt = pair.first().copied().or_else(|| turn.get("user"));
    let reply = pair.get(1).copied().or_else(|| turn.get("assistant"));
    let prompt = prompt.and_then(RawFields::from_raw);
    let reply = reply.and_then(RawFields::from_raw);
    if prompt.is_none() && reply.is_none() {
        built.unknown.push("a turn of an unknown shape".to_owned());
    }
    if let Some(prompt) = prompt {
        add_prompt(&prompt, built);
    }
    if let Some(reply) = reply {
        let facts = turn.object("request_metadata").unwrap_or_default();
        add_reply(&reply, &facts, built);
    }
}

fn add_prompt(prompt: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let before = built.messages.len();
    let content = prompt.object("content").unwrap_or_default();
    for (kind, raw) in content.iter() {
        let value = RawFields::from_raw(raw).unwrap_or_default();
        if !["Prompt", "ToolUseResults", "CancelledToolUses"].contains(&kind) {
            built
                .unknown
                .push(format!("a message of the kind `{kind}`"));
            continue;
        }
        for raw in value.list("tool_use_results").unwrap_or_default() {
            match RawFields::from_raw(raw) {
                Some(result) => add_result(&result, "tool_use_id", built),
                None => built
                    .unknown
                    .push("a result of an unknown shape".to_owned()),
            }
        }
        if let Some(text) = value.text("prompt") {
            built.push_text(MessageRole::User, &text);
        }
    }
    let images = prompt.list("images").unwrap_or_default();
    if !images.is_empty() {
        let images: Vec<_> = images
            .into_iter()
            .map(|raw| media_part("image", raw))
            .collect();
        match built.messages[before..].last_mut() {
            Some(last) => last.parts.extend(images),
            None => built.push(MessageRole::User, images),
        }
    }
    let additions = prompt.get("additional_context");
    let additions = additions.filter(|additions| additions.get() != "\"\"");
    for message in &mut built.messages[before..] {
        message.meta.set_raw("timestamp", prompt.get("timestamp"));
        // What hooks and files add to the prompt.
        message.meta.set_raw("additional_context", additions);
    }
    let system = prompt.object("env_context").unwrap_or_default();
    let system = system.object("env_state").unwrap_or_default();
    if !built.meta.has("cwd") {
        let folder = system.get("current_working_directory");
        built.meta.set_raw("cwd", folder);
    }
}

fn add_reply(reply: &RawFields<'_>, facts: &RawFields<'_>, built: &mut TranscriptBuilder) {
    for (kind, raw) in reply.iter() {
        let value = RawFields::from_raw(raw).unwrap_or_default();
        if !["Response", "ToolUse"].contains(&kind) {
            built.unknown.push(format!("a reply of the kind `{kind}`"));
            continue;
        }
        let mut parts = Vec::new();
        if let Some(text) = value.filled_text("content") {
            parts.push(text_part(&text));
        }
        for raw in value.list("tool_uses").unwrap_or_default() {
            let call = RawFields::from_raw(raw).unwrap_or_default();
            let id = call.id_text("id").unwrap_or_default();
            // A call of a tool that is gone has the name `dummy`, and its own name next to it.
            let name = call.text("orig_name").or_else(|| call.text("name"));
            let arguments = call_arguments(call.get_first(&["orig_args", "args"]));
            parts.push(call_part(&id, &name.unwrap_or_default(), arguments));
        }
        built.push(MessageRole::Assistant, parts);
        if let Some(last) = built.messages.last_mut() {
            let time = facts.get("stream_end_timestamp_ms");
            last.meta.set_raw("timestamp", time);
            last.meta.set_raw("model", facts.get("model_id"));
        }
    }
}

/// Adds a tool result. `id` is the key of the call's id.
fn add_result(result: &RawFields<'_>, id: &str, built: &mut TranscriptBuilder) {
    let content = result.get("content");
    let whole = content.and_then(json_string);
    let mut texts: Vec<String> = whole.map(|text| text.0.into_owned()).into_iter().collect();
    let mut others = Vec::new();
    let mut has_failed = None;
    for raw in content.and_then(list_items).unwrap_or_default() {
        let block = RawFields::from_raw(raw).unwrap_or_default();
        if block.text("kind").as_deref() == Some("image") {
            others.push(media_part("image", raw));
        } else if let Some(value) = block.get_first(&["Text", "Json", "data"]) {
            has_failed = has_failed.or_else(|| has_failed_command(value));
            texts.push(owned_text(value));
        } else {
            others.push(owned_unknown_part(raw));
        }
    }
    let status = result.text("status").unwrap_or_default();
    let is_error = match status.to_ascii_lowercase().as_str() {
        "error" => Some(true),
        "success" => Some(has_failed.unwrap_or_default()),
        _ => has_failed,
    };
    let id = result.id_text(id).unwrap_or_default();
    built.push_result(&id, texts.join("\n"), is_error);
    if let Some(last) = built.messages.last_mut() {
        last.parts.extend(others);
    }
}

/// Returns whether a shell command failed, from its exit code: `1` or `exit status: 1`.
fn has_failed_command(result: &RawValue) -> Option<bool> {
    let fields = RawFields::from_raw(result)?;
    let status = fields.text_or_json("exit_status")?;
    let code: i64 = status.rsplit(' ').next()?.parse().ok()?;
    Some(code != 0)
}

/// Adds the turns that the program kept only as texts: `> PROMPT`, and replies with the names of their tools.
fn add_spoken_turns(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    for raw in fields.list("transcript").unwrap_or_default() {
        let Some(text) = json_string(raw) else {
            built.unknown.push("a turn of an unknown shape".to_owned());
            continue;
        };
        if let Some(prompt) = text.strip_prefix("> ") {
            built.push_text(MessageRole::User, prompt);
            continue;
        }
        let (reply, tools) = split_tools(&text);
        if tools.is_some() {
            built
                .unknown
                .push("a reply with calls of which the file has only the names".to_owned());
        }
        if tools.is_none() || !reply.trim().is_empty() {
            built.push_text(MessageRole::Assistant, reply);
        }
    }
}

/// Splits the text of a reply from the names of its tools, if it called any.
fn split_tools(text: &str) -> (&str, Option<&str>) {
    let split = text.rsplit_once("\n[Tool uses: ");
    let named = split.and_then(|(reply, tools)| Some((reply, tools.strip_suffix(']')?)));
    match named {
        Some((reply, "none")) => (reply, None),
        Some((reply, tools)) => (reply, Some(tools)),
        None => (text, None),
    }
}

fn parse_session(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    // The name of the file is the id of the session.
    let mut built = TranscriptBuilder::new("kiro", Some(cx.source.stem().to_owned().into()));
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        match RawFields::parse(text) {
            Ok(entry) => add_entry(&entry, &mut built),
            Err(_) => built.unknown.push(NOT_JSON.to_owned()),
        }
    }
    built.finish(out);
}

/// Adds a line of a session.
fn add_entry(entry: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let kind = entry.text("kind").unwrap_or_default();
    let role = match &*kind {
        "Prompt" => MessageRole::User,
        "AssistantMessage" => MessageRole::Assistant,
        "ToolResults" => MessageRole::Tool,
        kind => {
            built.unknown.push(format!("a line of the kind `{kind}`"));
            return;
        }
    };
    let data = entry.object("data").unwrap_or_default();
    let before = built.messages.len();
    let mut parts = Vec::new();
    for raw in data.list("content").unwrap_or_default() {
        let part = RawFields::from_raw(raw).unwrap_or_default();
        let value = part.object("data").unwrap_or_default();
        match part.text("kind").as_deref() {
            Some("text") => match part.text("data") {
                Some(text) if text.is_empty() => {}
                Some(text) => parts.push(text_part(&text)),
                None => built.unknown.push("a text of an unknown shape".to_owned()),
            },
            Some("thinking") => {
                let text = value.filled_text("text");
                parts.extend(text.map(|text| reasoning_part(&text)));
            }
            Some("toolUse") => {
                let id = value.id_text("toolUseId").unwrap_or_default();
                let name = value.text("name").unwrap_or_default();
                let arguments = call_arguments(value.get("input"));
                parts.push(call_part(&id, &name, arguments));
            }
            Some("toolResult") => add_result(&value, "toolUseId", built),
            Some("image") => parts.push(media_part("image", raw)),
            kind => {
                let kind = kind.unwrap_or("none");
                built.unknown.push(format!("a part of the kind `{kind}`"));
            }
        }
    }
    // Results are messages of their own.
    if role != MessageRole::Tool || !parts.is_empty() {
        built.push(role, parts);
    }
    let meta = data.object("meta").unwrap_or_default();
    for message in &mut built.messages[before..] {
        message.meta.set_raw("timestamp", meta.get("timestamp"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    /// Returns the transcript of a file, and the counts of what dicta did not read.
    fn read_one(text: &str) -> (Value, Vec<(String, u64)>) {
        let (all, tally) = read(text.as_bytes());
        assert_eq!(all.len(), 1);
        let one = all.into_iter().next().expect("one");
        (
            one.expect("a transcript"),
            tally.unknown.into_iter().collect(),
        )
    }

    #[test]
    fn older_history_of_pairs_is_read_as_the_newer_one() {
        let prompt = json!({"additional_context": "", "content": {"Prompt": {"prompt": "List."}},
            "env_context": {"env_state": {"current_working_directory": "/work"}}, "images": null});
        let call = json!({"ToolUse": {"message_id": "m1", "content": "I look.", "tool_uses":
            [{"id": "t1", "name": "dummy", "orig_name": "ls", "args": {}, "orig_args": {"path": "."}}]}});
        let results = json!({"additional_context": "Be brief.", "content": {"ToolUseResults": {"tool_use_results":
            [{"tool_use_id": "t1", "content": [{"Text": "a.txt"}], "status": "Success"}]}}});
        let answer = json!({"Response": {"message_id": "m2", "content": "One file."}});
        let pairs = json!({"conversation_id": "c", "history": [[prompt, call], [results, answer]]});
        let objects = json!({"conversation_id": "c", "history": [
            {"user": prompt, "assistant": call, "request_metadata": null},
            {"user": results, "assistant": answer, "request_metadata": null},
        ]});
        let (first, unknown) = read_one(&format!("{pairs}\n"));
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(first, read_one(&format!("{objects}\n")).0);
        assert_eq!(
            message_lines(&first),
            [
                "user List.",
                r#"assistant I look. | ls({"path":"."})"#,
                "tool a.txt",
                "assistant One file.",
            ]
        );
        assert_eq!(first["metadata"]["cwd"], "/work");
        let context = &first["messages"][2]["metadata"]["additional_context"];
        assert_eq!(context, "Be brief.");
    }

    #[test]
    fn exit_code_and_status_state_whether_a_tool_failed() {
        let error_of = |block: Value, status: &str| {
            let result = json!({"tool_use_id": "t", "content": [block], "status": status});
            let turn =
                json!({"user": {"content": {"ToolUseResults": {"tool_use_results": [result]}}}});
            let file = json!({"conversation_id": "c", "history": [turn]});
            let (one, _) = read_one(&format!("{file}\n"));
            one["messages"][0]["metadata"]["is_error"].clone()
        };
        let shell = |status: &str| json!({"Json": {"exit_status": status, "stdout": ""}});
        assert_eq!(error_of(shell("0"), "Success"), false);
        assert_eq!(error_of(shell("1"), "Success"), true);
        assert_eq!(error_of(shell("exit status: 0"), "Success"), false);
        assert_eq!(error_of(shell("exit status: 2"), "Success"), true);
        assert_eq!(error_of(json!({"Text": "no"}), "Error"), true);
        assert_eq!(error_of(json!({"Text": "yes"}), "Success"), false);
        assert_eq!(error_of(json!({"Text": "?"}), "Later"), Value::Null);
    }

    #[test]
    fn cancelled_calls_and_a_pending_prompt_are_messages() {
        let file = json!({"conversation_id": "c", "next_message": {"content": {"Prompt": {"prompt": "Next."}}},
            "history": [{"user": {"content": {"CancelledToolUses": {"prompt": "Stop.", "tool_use_results":
                [{"tool_use_id": "t", "content": [{"Text": "cancelled"}], "status": "Error"}]}}},
                "assistant": {"Response": {"content": "Stopped."}}}]});
        let (one, unknown) = read_one(&format!("{file}\n"));
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(
            message_lines(&one),
            [
                "tool cancelled",
                "user Stop.",
                "assistant Stopped.",
                "user Next.",
            ]
        );
    }

    #[test]
    fn turns_that_are_only_texts_are_read_and_their_calls_counted() {
        let file = json!({"conversation_id": "c", "history": [], "valid_history_range": [0, 0], "transcript": [
            "> Fix it.", "I look.\n[Tool uses: fs_read]", "\n[Tool uses: fs_write]", "Done.\n[Tool uses: none]"]});
        let (one, unknown) = read_one(&format!("{file}\n"));
        assert_eq!(
            message_lines(&one),
            ["user Fix it.", "assistant I look.", "assistant Done."]
        );
        let kind = "a reply with calls of which the file has only the names".to_owned();
        assert_eq!(unknown, [(kind, 2)]);
    }

    #[test]
    fn summary_comes_before_the_turns_after_it() {
        let file = json!({"conversation_id": "c", "latest_summary": ["They fixed it.", {}],
            "history": [{"user": {"content": {"Prompt": {"prompt": "And now?"}}}, "assistant": {"Response": {"content": "Done."}}}]});
        let (one, _) = read_one(&format!("{file}\n"));
        assert_eq!(
            message_lines(&one),
            ["system They fixed it.", "user And now?", "assistant Done."]
        );
        assert_eq!(one["messages"][0]["metadata"]["compaction"], true);
    }

    #[test]
    fn unknown_kinds_of_a_conversation_are_counted() {
        let file = json!({"conversation_id": "c", "history": [
            {"user": {"content": {"Prompt": {"prompt": "Hi."}}}, "assistant": {"Refusal": {}}},
            {"user": {"content": {"Voice": {}}}, "assistant": {"Response": {"content": "Hi."}}},
            7,
        ]});
        let (_, unknown) = read_one(&format!("{file}\n"));
        let kinds: Vec<&str> = unknown.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "a message of the kind `Voice`",
                "a reply of the kind `Refusal`",
                "a turn of an unknown shape",
            ]
        );
    }
}

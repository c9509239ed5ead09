//! Gemini CLI's recorded chats (`~/.gemini/tmp/PROJECT/chats/session-*.json` and `.jsonl`).
//!
//! Responsible for one session per file, or per line that begins one. A message of the model has its thoughts, text and
//! calls; the calls have their results with them. Messages of the program (`info`, `error`, `warning`) are counted, not
//! read. Does not read `logs.json`, which has only the prompts, and checkpoints, which are Gemini contents.

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::{MessageInProgress, result_text};
use super::record_readers::{line_text, open_records, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, owned_text, reasoning_part,
};
use crate::model::MessageRole;

/// Returns true if the first record is a session.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("sessionId") && s.has("projectHash"))
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if preview.first_matches(|s| s.has("messages")) {
        open_records(preview, parse_session)
    } else {
        open_sessions(preview, starts_session, parse_lines)
    }
}

fn parse_session(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = begin_session(&fields);
    let messages = fields.list("messages").unwrap_or_default();
    out.count_records(messages.len() as u64);
    for raw in messages {
        match RawFields::from_raw(raw) {
            Some(message) => add_message(&message, &mut built),
            None => built.count_unknown_message(),
        }
    }
    built.finish(out);
    Ok(())
}

fn starts_session(line: &[u8]) -> bool {
    let text = std::str::from_utf8(line).ok();
    let fields = text.and_then(|text| RawFields::parse(text).ok());
    fields.is_some_and(|fields| fields.has("sessionId") && fields.has("projectHash"))
}

fn parse_lines(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut built = TranscriptBuilder::new("gemini-cli", None);
    for (at, line) in lines.iter().enumerate() {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        match RawFields::parse(text) {
            Ok(fields) if at == 0 && fields.has("sessionId") => built = begin_session(&fields),
            // An update of the session's own fields.
            Ok(fields) if fields.has("$set") => {}
            Ok(message) => add_message(&message, &mut built),
            Err(_) => built.unknown.push("a line that is not JSON".to_owned()),
        }
    }
    built.finish(out);
}

fn begin_session(fields: &RawFields<'_>) -> TranscriptBuilder {
    let mut built = TranscriptBuilder::new("gemini-cli", fields.id_text("sessionId"));
    built.meta.set_raw("timestamp", fields.get("startTime"));
    built.meta.set_raw("summary", fields.get("summary"));
    built.meta.set_raw("project", fields.get("projectHash"));
    built
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let kind = message.text("type").unwrap_or_default();
    let role = match &*kind {
        "user" => MessageRole::User,
        "gemini" => MessageRole::Assistant,
        _ => {
            built
                .unknown
                .push(format!("a message of the type `{kind}`"));
            return;
        }
    };
    let before = built.messages.len();
    let mut parts = Vec::new();
    for raw in message.list("thoughts").unwrap_or_default() {
        let Some(thought) = RawFields::from_raw(raw) else {
            continue;
        };
        let texts = ["subject", "description"];
        let texts: Vec<_> = texts.iter().filter_map(|key| thought.text(key)).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        parts.push(reasoning_part(&texts.join("\n")));
    }
    let mut progress = MessageInProgress::new(role.clone(), built);
    progress.parts = parts;
    if let Some(content) = message.get("content") {
        progress.add_content(content);
    }
    let calls = message.list("toolCalls").unwrap_or_default();
    for raw in &calls {
        let Some(call) = RawFields::from_raw(raw) else {
            continue;
        };
        let id = call.id_text("id").unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        progress
            .parts
            .push(call_part(&id, &name, call_arguments(call.get("args"))));
    }
    progress.finish();
    for raw in calls {
        match RawFields::from_raw(raw) {
            Some(call) => add_result(&call, built),
            None => built
                .unknown
                .push("a call that is not an object".to_owned()),
        }
    }
    let Some(message_built) = built.messages.get_mut(before) else {
        return;
    };
    message_built
        .meta
        .set_raw("timestamp", message.get("timestamp"));
    if role == MessageRole::Assistant {
        message_built.meta.set_raw("model", message.get("model"));
        if let Some(tokens) = message.object("tokens") {
            let usage = SourceUsage {
                input: tokens.integer("input"),
                // `output` is the visible text alone.
                output: tokens.integer("output").map(|visible| {
                    visible.saturating_add(tokens.integer("thoughts").unwrap_or_default())
                }),
                total: tokens.integer("total"),
                cached: tokens.integer("cached"),
                thinking: tokens.integer("thoughts"),
            };
            message_built.meta.set("usage", usage.to_json());
        }
    }
}

fn add_result(call: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let status = call.text("status");
    let is_error = match status.as_deref() {
        Some("success") => Some(false),
        Some("error") => Some(true),
        _ => None,
    };
    let Some(raw) = call.get_first(&["result", "resultDisplay"]) else {
        return;
    };
    let responses = list_items(raw).unwrap_or_default();
    let texts = responses.iter().filter_map(|raw| {
        let response = RawFields::from_raw(raw)?.object("functionResponse")?;
        let response = response.get("response")?;
        let fields = RawFields::from_raw(response);
        let text = fields.and_then(|fields| fields.get_first(&["output", "error"]));
        Some(owned_text(text.unwrap_or(response)))
    });
    let texts: Vec<String> = texts.collect();
    let content = if texts.is_empty() {
        result_text(raw)
    } else {
        texts.join("\n")
    };
    let id = call.id_text("id").unwrap_or_default();
    built.push_result(&id, content, is_error);
    if let Some(last) = built.messages.last_mut() {
        last.meta.set_raw("timestamp", call.get("timestamp"));
    }
}

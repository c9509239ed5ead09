//! AutoGen's messages: a task result (`{messages, stop_reason}`), a list of them, and one per line.
//!
//! Responsible for the messages and events of AutoGen 0.4 and later (`type: TextMessage`, `ToolCallRequestEvent` …) and
//! for the contexts of its saved states (`UserMessage`, `AssistantMessage` …). Lists of AutoGen 0.2 are plain chat
//! messages, which other formats read.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::walk::RecordLayout;
use super::foreign_message::result_text;
use super::record_readers::{NOT_JSON, line_text, open_lists, open_records, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, reasoning_part, text_part,
};
use crate::model::MessageRole;

/// Returns true if a value is a message or event of AutoGen.
fn is_message(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let is_kind = kind.ends_with("Message") || kind.ends_with("Event");
    let is_own = value["source"].is_string()
        || kind.starts_with("FunctionExecution")
        || kind == "SystemMessage";
    is_kind && is_own && !value["content"].is_null() && value["role"].is_null()
}

/// Returns true if the first record holds messages of AutoGen.
pub(super) fn is_messages(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let first = |value: &Value| {
        value
            .as_array()
            .and_then(|all| all.first())
            .is_some_and(is_message)
    };
    is_message(record)
        || first(record)
        || first(&record["messages"])
        || first(&record["llm_context"]["messages"])
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    let record = preview.first_outline();
    if record["messages"].is_array() || record["llm_context"].is_object() {
        return open_records(preview, parse_record);
    }
    match preview.layout {
        RecordLayout::Lines if record.is_object() => open_sessions(preview, |_| false, parse_lines),
        _ => open_lists(preview, parse_record),
    }
}

fn parse_record(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let raw: &RawValue =
        serde_json::from_str(record).map_err(|why| format!("not a record of messages: {why}"))?;
    let fields = RawFields::from_raw(raw).unwrap_or_default();
    let context = fields.object("llm_context").unwrap_or_default();
    let messages = list_items(raw)
        .or_else(|| fields.list("messages"))
        .or_else(|| context.list("messages"));
    let messages = messages.ok_or_else(|| "it has no list of messages".to_owned())?;
    let replies = usize::from(fields.object("response").is_some());
    out.count_elements(messages.len() + replies);
    let mut built = TranscriptBuilder::new("autogen", fields.id_text("id"));
    for raw in messages {
        add_message(raw, &mut built);
    }
    add_reply(&fields, &mut built);
    built.meta.set_raw("stop_reason", fields.get("stop_reason"));
    built.finish(out);
    Ok(())
}

/// Adds the reply next to the messages of a recorded model call: `{messages, response: {content, thought, usage}}`.
fn add_reply(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let Some(raw) = fields.get("response").filter(|raw| raw.get() != "null") else {
        return;
    };
    let reply = RawFields::from_raw(raw).unwrap_or_default();
    let Some(content) = reply.get("content") else {
        built
            .unknown
            .push("a `response` without `content`".to_owned());
        return;
    };
    let thought = reply.filled_text("thought");
    let mut parts: Vec<_> = thought
        .map(|text| reasoning_part(&text))
        .into_iter()
        .collect();
    if list_items(content).is_some() {
        add_calls(Some(content), parts, built);
    } else {
        parts.push(text_part(&result_text(content)));
        built.push(MessageRole::Assistant, parts);
    }
    if let (Some(usage), Some(message)) = (reply.object("usage"), built.messages.last_mut()) {
        let usage = SourceUsage {
            input: usage.integer("prompt_tokens"),
            output: usage.integer("completion_tokens"),
            ..SourceUsage::default()
        };
        message.meta.set("usage", usage.to_json());
    }
}

fn parse_lines(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut built = TranscriptBuilder::new("autogen", None);
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        match serde_json::from_str(text) {
            Ok(raw) => add_message(raw, &mut built),
            Err(_) => built.unknown.push(NOT_JSON.to_owned()),
        }
    }
    built.finish(out);
}

fn add_message(raw: &RawValue, built: &mut TranscriptBuilder) {
    let Some(fields) = RawFields::from_raw(raw) else {
        built
            .unknown
            .push("a message that is not an object".to_owned());
        return;
    };
    let kind = fields.text("type").unwrap_or_default();
    let source = fields.text("source").unwrap_or_default();
    let content = fields.get("content");
    let text = content.map(result_text).unwrap_or_default();
    let is_user = matches!(&*source, "user" | "user_proxy" | "human");
    let before = built.messages.len();
    match &*kind {
        "SystemMessage" => built.push_text(MessageRole::System, &text),
        "UserMessage" => built.push_text(MessageRole::User, &text),
        "ThoughtEvent" => built.push(MessageRole::Assistant, vec![reasoning_part(&text)]),
        "ToolCallRequestEvent" => add_calls(content, Vec::new(), built),
        "AssistantMessage" => {
            let thought = fields.filled_text("thought");
            let parts: Vec<_> = thought
                .map(|text| reasoning_part(&text))
                .into_iter()
                .collect();
            if content.and_then(list_items).is_some() {
                add_calls(content, parts, built);
            } else {
                let mut parts = parts;
                parts.push(text_part(&text));
                built.push(MessageRole::Assistant, parts);
            }
        }
        "ToolCallExecutionEvent" | "FunctionExecutionResultMessage" => {
            for raw in content.and_then(list_items).unwrap_or_default() {
                let result = RawFields::from_raw(raw).unwrap_or_default();
                let id = result.id_text("call_id").unwrap_or_default();
                let text = result.get("content").map(result_text).unwrap_or_default();
                built.push_result(&id, text, result.flag("is_error"));
            }
        }
        // It repeats the results of the calls before it.
        "ToolCallSummaryMessage" => built.push(MessageRole::Assistant, vec![text_part(&text)]),
        "TextMessage" | "MultiModalMessage" | "StopMessage" | "HandoffMessage"
        | "StructuredMessage" => {
            let role = if is_user {
                MessageRole::User
            } else {
                MessageRole::Assistant
            };
            built.push(role, vec![text_part(&text)]);
        }
        _ => {
            built.unknown.push(format!("an event of the type `{kind}`"));
            return;
        }
    }
    let usage = fields.object("models_usage");
    for message in &mut built.messages[before..] {
        message.meta.set_raw("timestamp", fields.get("created_at"));
        if message.role == MessageRole::Assistant {
            message.meta.set("agent", &*source);
            if let Some(usage) = &usage {
                let usage = SourceUsage {
                    input: usage.integer("prompt_tokens"),
                    output: usage.integer("completion_tokens"),
                    ..SourceUsage::default()
                };
                message.meta.set("usage", usage.to_json());
            }
        }
    }
}

fn add_calls(
    content: Option<&RawValue>,
    mut parts: Vec<crate::model::TranscriptPart<'static>>,
    built: &mut TranscriptBuilder,
) {
    for raw in content.and_then(list_items).unwrap_or_default() {
        let call = RawFields::from_raw(raw).unwrap_or_default();
        let id = call.id_text("id").unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        parts.push(call_part(&id, &name, call_arguments(call.get("arguments"))));
    }
    built.push(MessageRole::Assistant, parts);
}

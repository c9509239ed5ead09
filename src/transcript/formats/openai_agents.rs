//! States of runs of the OpenAI Agents SDK (`RunState.to_json()`).
//!
//! Responsible for the input and the generated items of one run. The items are those of the Responses API. A run that
//! waits for an approval has calls without results. Does not read sessions in databases.

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::exchange::parse_usage;
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::TranscriptBuilder;
use crate::model::MessageRole;

/// Returns true if the first record is the state of a run.
pub(super) fn is_run_state(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        s.has("$schemaVersion")
            && (s.has("original_input") || s.has("generated_items") || s.has("originalInput"))
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_state)
}

fn parse_state(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let id = fields
        .id_text("conversation_id")
        .or_else(|| fields.id_text("previous_response_id"));
    let mut built = TranscriptBuilder::new("openai-agents", id);
    let input = fields.get_first(&["original_input", "originalInput"]);
    if let Some(input) = input {
        add_messages(input, &MessageRole::User, &mut built);
    }
    let items = fields
        .list("session_items")
        .filter(|items| !items.is_empty());
    let items = items
        .or_else(|| fields.list("generated_items"))
        .or_else(|| fields.list("generatedItems"));
    let items = items.unwrap_or_default();
    // The input is a record of its own, next to the list.
    out.count_elements(items.len() + usize::from(input.is_some()));
    for raw in &items {
        let item = RawFields::from_raw(raw).unwrap_or_default();
        let kind = item.text("type").unwrap_or_default();
        match item.get_first(&["raw_item", "rawItem"]) {
            Some(raw) if !matches!(&*kind, "tool_approval_item") => {
                add_item(raw, &mut built);
            }
            // The call is an item of its own.
            Some(_) => {}
            None => built.unknown.push("an item without `raw_item`".to_owned()),
        }
    }
    // A run that was stopped before its first turn ended has the replies alone.
    if items.is_empty() {
        for raw in fields.list("model_responses").unwrap_or_default() {
            let response = RawFields::from_raw(raw).unwrap_or_default();
            if let Some(output) = response.get("output") {
                add_messages(output, &MessageRole::Assistant, &mut built);
            }
        }
    }
    let context = fields.object("context").unwrap_or_default();
    if let Some(usage) = context.object("usage") {
        let usage = parse_usage(&usage);
        // A new run has zeros.
        if usage.total != Some(0) {
            built.meta.set("usage", usage.to_json());
        }
    }
    let agent = fields.object("current_agent").unwrap_or_default();
    built.meta.set_raw("agent", agent.get("name"));
    built.meta.set_raw("version", fields.get("$schemaVersion"));
    built
        .meta
        .set_raw("current_turn", fields.get("current_turn"));
    built.finish(out);
    Ok(())
}

fn add_item(raw: &serde_json::value::RawValue, built: &mut TranscriptBuilder) {
    add_messages(raw, &MessageRole::Assistant, built);
    // Items of one reply are messages of their own; a call joins the text before it.
    let at = built.messages.len();
    let Some([before, last]) = built.messages.get_mut(at.wrapping_sub(2)..at) else {
        return;
    };
    let both = before.role == MessageRole::Assistant && last.role == MessageRole::Assistant;
    let is_call = last
        .parts
        .iter()
        .all(|part| matches!(part, crate::model::TranscriptPart::ToolCall(_)));
    if both && is_call && !last.parts.is_empty() {
        let parts = std::mem::take(&mut last.parts);
        before.parts.extend(parts);
        built.messages.pop();
    }
}

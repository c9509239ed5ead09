//! `PromptKit`'s messages, with `tool_result`, `latency_ms` and `cost_info`, and the verdicts in `meta.assertions` and
//! `validations`.
//!
//! Responsible for the fields of a message. Does not read results or recordings.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::content::ObjectOnly;
use super::super::super::fields::RawFields;
use super::super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::super::native::json_string;
use super::super::lenient_message::{LenientMessageReader, text_or_json, tool_result_part};
use super::{parse_or_none, verdict};
use crate::model::{MessageRole, SourceText, SourceVerdict, TranscriptMessage, TranscriptPart};

#[derive(Deserialize, Default)]
struct ArenaMessage<'a> {
    #[serde(borrow, default, alias = "ToolResult")]
    tool_result: Option<ObjectOnly<ArenaToolResult<'a>>>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    latency_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost_info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    meta: Option<ObjectOnly<ArenaMessageMeta<'a>>>,
    #[serde(borrow, default)]
    validations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaMessageMeta<'a> {
    #[serde(borrow, default)]
    assertions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaToolResult<'a> {
    #[serde(borrow, default, alias = "ID")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Content")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Parts")]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Error")]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "LatencyMs")]
    latency_ms: Option<&'a RawValue>,
}

/// Reads a message; `at` is its time if it has none.
pub(super) fn read_message(
    raw: &RawValue,
    at: Option<&RawValue>,
    messages: &mut Vec<TranscriptMessage<'static>>,
    verdicts: &mut Vec<SourceVerdict>,
) {
    push_message(raw, &MessageRole::User, at, None, messages, verdicts);
}

/// Reads a reply; `cost` is its cost if it has none.
pub(super) fn read_reply(
    raw: &RawValue,
    at: Option<&RawValue>,
    cost: Option<&RawValue>,
    messages: &mut Vec<TranscriptMessage<'static>>,
    verdicts: &mut Vec<SourceVerdict>,
) {
    push_message(raw, &MessageRole::Assistant, at, cost, messages, verdicts);
}

fn push_message(
    raw: &RawValue,
    role: &MessageRole<'static>,
    at: Option<&RawValue>,
    cost: Option<&RawValue>,
    messages: &mut Vec<TranscriptMessage<'static>>,
    verdicts: &mut Vec<SourceVerdict>,
) {
    let mut reader = LenientMessageReader::default();
    reader.read_message(raw, role);
    // The shared reader handles common fields; this struct reads those that only Arena writes.
    let ObjectOnly(fields) = serde_json::from_str::<ObjectOnly<ArenaMessage<'_>>>(raw.get())
        .unwrap_or(ObjectOnly(ArenaMessage::default()));
    let Some(mut message) = reader.messages.pop() else {
        return;
    };
    // One object may give several messages. The fields below apply to the last one.
    messages.append(&mut reader.messages);
    if let Some(ObjectOnly(tool_result)) = &fields.tool_result {
        apply_tool_result(&mut message, tool_result);
    }
    // A model reasons before it answers.
    if let Some(thoughts) = fields
        .reasoning
        .map(reasoning_text)
        .filter(|text| !text.is_empty())
    {
        message
            .parts
            .insert(0, TranscriptPart::Reasoning(SourceText::from(thoughts)));
    }
    let mut meta = MetadataBuilder::default();
    meta.set(
        "timestamp",
        parse_or_none::<Value>(fields.timestamp.or(at)).unwrap_or_default(),
    );
    meta.set("latency_ms", parse_or_none::<f64>(fields.latency_ms));
    write_cost(fields.cost_info.or(cost), &mut meta);
    let stop = text_or_json(fields.finish_reason);
    if !stop.is_empty() {
        meta.set("stop_reason", stop);
    }
    message.metadata = meta.finish();
    // The index that `messages.push` below gives to this message.
    let message_index = Some(messages.len());
    let assertions = fields
        .meta
        .as_ref()
        .and_then(|ObjectOnly(meta)| meta.assertions);
    verdicts.extend(verdict::parse_verdicts(
        assertions,
        "assertion",
        message_index,
    ));
    verdicts.extend(verdict::parse_verdicts(
        fields.validations,
        "validation",
        message_index,
    ));
    messages.push(message);
}

/// Replaces the content of a message by its tool result, which the message's text repeats.
fn apply_tool_result(message: &mut TranscriptMessage<'static>, tool_result: &ArenaToolResult<'_>) {
    let error = text_or_json(tool_result.error);
    let mut content = text_or_json(tool_result.content);
    let mut rest = Vec::new();
    // A result may have `parts` instead of a text.
    if content.is_empty() {
        let parts = tool_result.parts.map_or("[]", RawValue::get);
        let mut reader = LenientMessageReader::default();
        reader.read_json(&format!("{{\"parts\":{parts}}}"), &MessageRole::User);
        for message_part in reader.messages {
            content.push_str(&message_part.text());
            let media = message_part
                .parts
                .into_iter()
                .filter(|part| !matches!(part, TranscriptPart::Text(_)));
            rest.extend(media);
        }
    }
    // Without both, the text of the message repeats the result; a failed call has only `error`.
    if content.is_empty() {
        content = match message.parts.first() {
            Some(TranscriptPart::ToolResult(result)) if !result.content.is_empty() => {
                result.content.to_string()
            }
            _ => error.clone(),
        };
    }
    // Arena omits `error` for a success.
    let mut part = tool_result_part(
        &text_or_json(tool_result.id),
        content,
        Some(!error.is_empty()),
    );
    if let TranscriptPart::ToolResult(result) = &mut part {
        result.duration_ms = parse_or_none(tool_result.latency_ms);
    }
    message.role = MessageRole::Tool;
    message.parts = std::iter::once(part).chain(rest).collect();
}

/// Returns the text of reasoning in any of its shapes.
fn reasoning_text(raw: &RawValue) -> String {
    let keys = ["text", "content", "summary"];
    let inside = || {
        let map = RawFields::from_raw(raw)?;
        keys.iter().find_map(|key| map.text_or_json(key))
    };
    let text = json_string(raw).or_else(inside).unwrap_or_default();
    text.0.into_owned()
}

/// Parses the token counts of `cost_info` and `Cost`.
pub(super) fn parse_usage(cost: &Value) -> SourceUsage {
    let count = |key: &str| cost.get(key).and_then(Value::as_u64);
    SourceUsage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cached: count("cached_tokens"),
        ..SourceUsage::default()
    }
}

/// Sets tokens and cost under the standard keys.
pub(super) fn write_cost(cost: Option<&RawValue>, meta: &mut MetadataBuilder) {
    if let Some(cost) = parse_or_none::<Value>(cost) {
        meta.set("usage", parse_usage(&cost).to_json());
        let total = cost
            .get("total_cost_usd")
            .or_else(|| cost.get("total_cost"));
        meta.set("cost_usd", total.and_then(Value::as_f64));
    }
}

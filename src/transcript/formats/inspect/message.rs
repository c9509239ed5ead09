//! The conversion of Inspect's chat messages.
//!
//! Responsible for roles, parts and tool results. Does not read events: that is `events.rs`.
//!
//! | in the log | becomes |
//! |---|---|
//! | parts `text`; `reasoning` | text; reasoning (the summary of redacted reasoning) |
//! | parts `image`, `audio`, `video`, `document` | media with its attachment |
//! | a part `tool_use` (a tool of the provider) | the call and its result |
//! | `tool_calls`, arguments that did not parse | calls; `tool_call_errors` in the message's metadata |
//! | a tool message's `error` | `is_error`; its text is the result if the content is empty, as for the model; `error` in the metadata |
//! | a tool message without `error` | `is_error: false` if Inspect itself ran the tool, which an event shows; else absent. A message that came with the sample, or from an agent in a sandbox, has no such field |

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::InspectAttachments;
use super::events::InspectEvents;
use super::wire::{InspectMessage, InspectPart, is_present, parse_value};
use crate::model::{
    JsonText, MessageRole, SourceText, ToolCall, ToolResult, TranscriptMessage, TranscriptPart,
};
use crate::transcript::content::{ObjectOnly, RawContent};
use crate::transcript::fields::RawFields;
use crate::transcript::metadata::{MetadataBuilder, borrow_json};
use crate::transcript::native::{json_string, text_or_json};

/// The context of the conversion.
#[derive(Clone, Copy)]
pub(super) struct InspectMessageCx<'c, 'a> {
    pub(super) attachments: &'c InspectAttachments<'a>,
    pub(super) events: &'c InspectEvents,
}

impl<'c> InspectMessage<'c> {
    /// Converts the message, which borrows the texts of attachments. The error is a sentence fragment.
    pub(super) fn into_message(
        self,
        cx: InspectMessageCx<'c, '_>,
    ) -> Result<TranscriptMessage<'c>, String> {
        let mut meta = MetadataBuilder::default();
        let role = match self.role.as_deref() {
            None => return Err("it has no `role`".to_owned()),
            Some("system" | "developer") => MessageRole::System,
            Some("user") => MessageRole::User,
            Some("assistant") => MessageRole::Assistant,
            Some("tool") => MessageRole::Tool,
            Some(other) => MessageRole::Other(SourceText::from(other.to_owned())),
        };
        if role == MessageRole::Assistant {
            // The model event knows time, tokens and cost; the message itself only its model.
            cx.events
                .write_message_metadata(&self, cx.attachments, &mut meta);
            // The message's own model replaces that of the event.
            if let Some(model) = self.model.and_then(json_string) {
                meta.set("model", &*model);
            }
        }
        let mut parts = Vec::new();
        match self.content {
            None => {}
            Some(RawContent::Text(text)) if text.is_empty() => {}
            Some(RawContent::Text(text)) => {
                parts.push(TranscriptPart::Text(cx.attachments.resolve(text)));
            }
            Some(RawContent::Object(_)) => return Err("its `content` is an object".to_owned()),
            Some(RawContent::Parts(raw)) => {
                for part in raw {
                    add_part(part, cx.attachments, &mut parts)?;
                }
            }
        }
        // The parts so far become the content of the result.
        if role == MessageRole::Tool {
            let fields = ToolMessageFields {
                call_id: self.tool_call_id,
                function: self.function,
                error: self.error.or(self.tool_error),
            };
            parts = tool_result_parts(&fields, parts, cx, &mut meta);
        }
        let mut unparsed = Map::new();
        for ObjectOnly(call) in self.tool_calls.into_iter().flatten() {
            let id = call.id.map(text_or_json).unwrap_or_default();
            if let Some(why) = call.parse_error.filter(|why| is_present(Some(why))) {
                unparsed.insert(id.to_string(), parse_value(why));
            }
            parts.push(TranscriptPart::ToolCall(ToolCall {
                id,
                name: call.function.map(text_or_json).unwrap_or_default(),
                arguments: call.arguments.map(text_or_json).unwrap_or_default(),
            }));
        }
        if !unparsed.is_empty() {
            meta.set("tool_call_errors", Value::Object(unparsed));
        }
        // Keys that dicta sets take precedence. The message's values of these keys are below `original`.
        // As written: a tree of many small values needs fifty times the memory of their text.
        if let Some(source_metadata) = self.metadata.and_then(RawFields::from_raw) {
            meta.merge_readable_fields(&source_metadata);
        }
        Ok(TranscriptMessage {
            role,
            parts,
            metadata: meta.finish(),
        })
    }
}

/// The fields of a tool message except its content.
struct ToolMessageFields<'a> {
    call_id: Option<&'a RawValue>,
    function: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

/// Returns a tool message as one result, followed by the parts that are not text.
fn tool_result_parts<'a>(
    fields: &ToolMessageFields<'a>,
    parts: Vec<TranscriptPart<'a>>,
    cx: InspectMessageCx<'_, '_>,
    meta: &mut MetadataBuilder,
) -> Vec<TranscriptPart<'a>> {
    let call_id = fields.call_id.map(text_or_json).unwrap_or_default();
    let run = cx.events.find_tool_run(&call_id);
    let error = fields.error.filter(|error| is_present(Some(error)));
    let (mut texts, mut other_parts) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            TranscriptPart::Text(text) => texts.push(text),
            other => other_parts.push(other),
        }
    }
    // One text keeps its borrow; several texts are joined as a copy.
    let mut content = match <[SourceText<'a>; 1]>::try_from(texts) {
        Ok([only]) => only,
        Err(texts) => SourceText::from(
            texts
                .iter()
                .map(|text| &**text)
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    };
    if let Some(error) = error {
        let error = parse_value(error);
        let message = error["message"].as_str().or(error.as_str());
        // The model got the message of the error instead of an empty content.
        if let (true, Some(message)) = (content.is_empty(), message) {
            content = SourceText::from(message.to_owned());
        }
        meta.set("error", error);
    }
    if let Some(name) = fields.function.and_then(json_string) {
        meta.set("function", &*name);
    }
    meta.set("timestamp", run.and_then(|run| run.timestamp.clone()));
    let is_error = match (error, run) {
        // An error in the message is certain, whatever the event reports.
        (Some(_), _) => Some(true),
        (None, Some(run)) => Some(run.failed),
        (None, None) => None,
    };
    let result = ToolResult {
        call_id,
        content,
        is_error,
        duration_ms: run.and_then(|run| run.duration_ms),
    };
    std::iter::once(TranscriptPart::ToolResult(result))
        .chain(other_parts)
        .collect()
}

fn add_part<'a>(
    raw: &'a RawValue,
    attachments: &'a InspectAttachments<'_>,
    parts: &mut Vec<TranscriptPart<'a>>,
) -> Result<(), String> {
    if let Some(text) = json_string(raw) {
        parts.push(TranscriptPart::Text(attachments.resolve(text)));
        return Ok(());
    }
    let Ok(ObjectOnly(fields)) = serde_json::from_str::<ObjectOnly<InspectPart<'a>>>(raw.get())
    else {
        return Err(
            "a part of its `content` is neither text nor an object with a text as `type`"
                .to_owned(),
        );
    };
    let text = |raw: Option<&'a RawValue>| {
        raw.and_then(json_string)
            .map(|text| attachments.resolve(text))
    };
    let kind = fields.kind.clone().unwrap_or_default();
    match &*kind {
        "text" => match text(fields.text) {
            Some(text) => parts.push(TranscriptPart::Text(text)),
            None => return Err("a part of type \"text\" has no text".to_owned()),
        },
        "reasoning" => {
            let redacted = fields
                .redacted
                .is_some_and(|redacted| redacted.get() == "true");
            // Redacted reasoning is encrypted; some models add a readable summary.
            let thought = if redacted {
                fields.summary
            } else {
                fields.reasoning
            };
            match text(thought).filter(|text| !text.is_empty()) {
                Some(text) => parts.push(TranscriptPart::Reasoning(text)),
                // Encrypted reasoning is unreadable, but its existence must remain visible.
                None if redacted => {
                    let placeholder = serde_json::json!({ "type": "redacted_reasoning" });
                    parts.push(TranscriptPart::Other(JsonText::from_value(&placeholder)));
                }
                None => {}
            }
        }
        "image" | "audio" | "video" | "document" => {
            let raw = attachments
                .resolve_media(raw)
                .unwrap_or_else(|| borrow_json(raw));
            parts.push(TranscriptPart::Media { kind, raw });
        }
        "tool_use" => {
            let id = fields.id.map(text_or_json).unwrap_or_default();
            let error = fields.error.filter(|error| is_present(Some(error)));
            let result_text = text(fields.result).filter(|text| !text.is_empty());
            parts.push(TranscriptPart::ToolCall(ToolCall {
                id: id.clone(),
                name: fields.name.map(text_or_json).unwrap_or_default(),
                arguments: text(fields.arguments).unwrap_or_default(),
            }));
            parts.push(TranscriptPart::ToolResult(ToolResult {
                call_id: id,
                content: result_text.or_else(|| text(error)).unwrap_or_default(),
                // The provider ran this tool, so an absent error means success.
                is_error: Some(error.is_some()),
                duration_ms: None,
            }));
        }
        _ => parts.push(TranscriptPart::Other(borrow_json(raw))),
    }
    Ok(())
}

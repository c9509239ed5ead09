//! Tool spans, which add data to the calls and results in the messages.
//!
//! Responsible for the attributes of each convention. Does not find the call: that is `tool_match.rs`.

use super::metrics::{duration_ms, failure_message, format_timestamp};
use super::wire::OtlpEntry;
use crate::model::{MessageRole, SourceText, ToolResult, TranscriptMessage, TranscriptPart};
use crate::transcript::metadata::MetadataBuilder;

/// Returns the id of the call that a tool span belongs to.
pub(super) fn call_id(entry: &OtlpEntry<'_>) -> Option<String> {
    let keys = [
        "gen_ai.tool.call.id",
        "ai.toolCall.id",
        "tool_call.id",
        "tool.id",
    ];
    let id = entry.attributes.first_text(&keys);
    id.map(std::borrow::Cow::into_owned)
}

/// The data of a tool span.
#[derive(Debug)]
pub(super) struct ToolSpan {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: Option<String>,
    result: Option<String>,
    /// True if the span ended with an error. Any other end is a success.
    is_error: bool,
    duration_ms: Option<f64>,
    ended: Option<String>,
}

impl ToolSpan {
    pub(super) fn from_span(entry: &OtlpEntry<'_>) -> Self {
        let attrs = &entry.attributes;
        // The attributes of all conventions, the semantic conventions first.
        let first_text = |keys: &[&str]| attrs.first_text(keys).map(std::borrow::Cow::into_owned);
        let name = first_text(&[
            "gen_ai.tool.name",
            "ai.toolCall.name",
            "tool.name",
            "traceloop.entity.name",
        ]);
        let is_error = entry.status.is_error();
        let result = first_text(&[
            "gen_ai.tool.call.result",
            "ai.toolCall.result",
            "output.value",
            "traceloop.entity.output",
        ]);
        Self {
            id: call_id(entry),
            name: name.unwrap_or_else(|| {
                let name = &*entry.name;
                name.strip_prefix("execute_tool ")
                    .unwrap_or(name)
                    .to_owned()
            }),
            arguments: first_text(&[
                "gen_ai.tool.call.arguments",
                "ai.toolCall.args",
                "input.value",
                "tool.parameters",
                "traceloop.entity.input",
            ]),
            // A failed tool may have no result, only the message of its exception.
            result: result.or_else(|| is_error.then(|| failure_message(entry))),
            is_error,
            duration_ms: duration_ms(entry),
            ended: format_timestamp(entry.end_time_unix_nano),
        }
    }

    /// Adds the data of the span to an existing result.
    pub(super) fn update_result(&self, message: &mut TranscriptMessage<'static>) {
        if let Some(TranscriptPart::ToolResult(result)) = message.parts.first_mut() {
            // The messages are closer to what the model got, so their values take precedence.
            result.is_error = result.is_error.or(Some(self.is_error));
            result.duration_ms = result.duration_ms.or(self.duration_ms);
        }
        if message.metadata.is_none() {
            message.metadata = end_time_metadata(self);
        }
    }

    /// Returns a result that the messages lack: the model never read it, or that call was not recorded. A span without
    /// a result adds nothing to the conversation.
    pub(super) fn to_result(&self, call_id: &str) -> Option<TranscriptMessage<'static>> {
        let part = TranscriptPart::ToolResult(ToolResult {
            call_id: SourceText::from(call_id.to_owned()),
            content: SourceText::from(self.result.clone()?),
            is_error: Some(self.is_error),
            duration_ms: self.duration_ms,
        });
        Some(TranscriptMessage {
            role: MessageRole::Tool,
            parts: vec![part],
            metadata: end_time_metadata(self),
        })
    }
}

fn end_time_metadata(span: &ToolSpan) -> Option<crate::model::JsonText<'static>> {
    let mut meta = MetadataBuilder::default();
    meta.set("timestamp", span.ended.clone());
    meta.finish()
}

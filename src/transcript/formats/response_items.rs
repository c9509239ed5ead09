//! A conversation built from items of OpenAI's Responses API, which Codex records as well.
//!
//! Responsible for the grouping of items into messages. Consecutive reasoning, text and calls of the model form one
//! assistant message, up to its next text. A tool result is a message of role `tool`. Tools of the service
//! (`web_search_call`, `mcp_call` …) are ordinary calls; their result follows if the item contains it. Encrypted
//! reasoning without readable text is dropped. An item of an unknown kind is kept as written. Does not read requests or
//! log records.

use serde_json::value::RawValue;

use super::super::fields::{RawFields, compact_json, list_items};
use super::super::metadata::MetadataBuilder;
use super::super::native::{json_string, parse_message, try_parse_part, unknown_part};
use crate::model::{
    MessageRole, SourceText, ToolCall, ToolResult, TranscriptMessage, TranscriptPart,
};

/// A message under construction.
#[derive(Debug, Clone)]
pub(super) struct MessageBuilder<'a> {
    /// The role of the message.
    pub(super) role: MessageRole<'a>,
    /// The parts of the message.
    pub(super) parts: Vec<TranscriptPart<'a>>,
    /// The metadata so far.
    pub(super) meta: MetadataBuilder,
}

/// A conversation under construction.
#[derive(Debug, Clone, Default)]
pub(super) struct ConversationBuilder<'a> {
    /// The messages in order.
    pub(super) messages: Vec<MessageBuilder<'a>>,
    /// True if the last message is the assistant's and takes further parts.
    open: bool,
    /// True if the open message already has a text.
    has_text: bool,
}

impl<'a> ConversationBuilder<'a> {
    /// Adds an item. An item of an unknown kind is kept as written. The error is a sentence fragment.
    pub(super) fn add_item(&mut self, raw: &'a RawValue) -> Result<(), String> {
        let item = RawFields::from_raw(raw).ok_or_else(|| "it is not an object".to_owned())?;
        let kind = item.text("type").unwrap_or_default();
        match &*kind {
            "" | "message" => return self.add_message(raw, &item),
            "reasoning" => self.add_assistant_parts(reasoning_parts(&item)),
            // These items contain no text and no complete call, so they stay as written.
            "mcp_list_tools"
            | "mcp_approval_request"
            | "item_reference"
            | "image_generation_call" => self.add_assistant_parts(vec![unknown_part(raw)]),
            "mcp_approval_response" => {
                self.push_message(MessageRole::User, vec![unknown_part(raw)]);
            }
            // State that the service keeps for itself.
            "compaction" | "compaction_summary" | "context_compaction" | "ghost_snapshot" => {}
            // The suffix decides, because the service adds kinds with the same structure.
            _ if kind.ends_with("_output") => self.add_output(&item),
            _ if kind.ends_with("_call") => self.add_call(&kind, &item),
            _ => self.add_assistant_parts(vec![unknown_part(raw)]),
        }
        Ok(())
    }

    /// Adds a complete message.
    pub(super) fn push_message(&mut self, role: MessageRole<'a>, parts: Vec<TranscriptPart<'a>>) {
        self.open = false;
        self.messages.push(MessageBuilder {
            role,
            parts,
            meta: MetadataBuilder::default(),
        });
    }

    /// Ends the open message: the model's next item begins a new one.
    pub(super) fn close_message(&mut self) {
        self.open = false;
    }

    /// Returns the open message of the assistant.
    pub(super) fn open(&mut self) -> Option<&mut MessageBuilder<'a>> {
        if self.open {
            self.messages.last_mut()
        } else {
            None
        }
    }

    /// Something the model brought forth.
    pub(super) fn add_assistant_parts(&mut self, parts: Vec<TranscriptPart<'a>>) {
        if parts.is_empty() {
            return;
        }
        let has_new_text = parts
            .iter()
            .any(|part| matches!(part, TranscriptPart::Text(_)));
        // An assistant message ends before the model's next text.
        if self.open && !(has_new_text && self.has_text) {
            if let Some(message) = self.messages.last_mut() {
                message.parts.extend(parts);
            }
            self.has_text |= has_new_text;
        } else {
            self.push_message(MessageRole::Assistant, parts);
            self.open = true;
            self.has_text = has_new_text;
        }
    }

    /// Adds a tool result and its parts that are not text.
    pub(super) fn push_tool_result(
        &mut self,
        result: ToolResult<'a>,
        other_parts: Vec<TranscriptPart<'a>>,
    ) {
        let mut parts = vec![TranscriptPart::ToolResult(result)];
        parts.extend(other_parts);
        self.push_message(MessageRole::Tool, parts);
    }

    /// Returns the messages.
    pub(super) fn finish(self) -> Vec<TranscriptMessage<'a>> {
        let messages = self.messages.into_iter().map(|message| TranscriptMessage {
            role: message.role,
            parts: message.parts,
            metadata: message.meta.finish(),
        });
        messages.collect()
    }

    fn add_message(&mut self, raw: &'a RawValue, item: &RawFields<'a>) -> Result<(), String> {
        let TranscriptMessage {
            role,
            parts,
            metadata,
        } = parse_message(raw)?;
        let is_item = item.has("type");
        // A chat message is complete; only items join.
        if role == MessageRole::Assistant && is_item {
            // An item without parts, such as an empty text, would create an empty message.
            if parts.is_empty() {
                return Ok(());
            }
            self.add_assistant_parts(parts);
        } else {
            self.push_message(role, parts);
        }
        let last = self.messages.last_mut();
        if let (Some(message), Some(metadata)) = (last, metadata)
            && let Ok(item_metadata) = RawFields::parse(metadata.get())
        {
            message.meta.merge_source_fields(&item_metadata);
        }
        Ok(())
    }

    fn add_call(&mut self, kind: &str, item: &RawFields<'a>) {
        let kind = kind.strip_suffix("_call").unwrap_or(kind);
        // Calls of service tools have no name; the kind of the item names the tool.
        let name = match item.filled_text("name") {
            Some(name) => name,
            None => SourceText::from(kind.to_owned()),
        };
        let id = item
            .id_text("call_id")
            .or_else(|| item.id_text("id"))
            .unwrap_or_default();
        let arguments =
            match item.get_first(&["arguments", "input", "action", "actions", "operation"]) {
                Some(raw) => arguments_text(raw),
                None => SourceText::from(service_tool_arguments(item)),
            };
        self.add_assistant_parts(vec![TranscriptPart::ToolCall(ToolCall {
            id: id.clone(),
            name,
            arguments,
        })]);
        // The item of a tool that the service ran contains the result.
        let output = item.get_first(&["output", "outputs", "results", "result", "error"]);
        if let Some(output) = output {
            let (content, other_parts) = split_tool_output(output);
            self.push_tool_result(
                ToolResult {
                    call_id: id,
                    content,
                    is_error: tool_failed(item),
                    duration_ms: None,
                },
                other_parts,
            );
        }
    }

    fn add_output(&mut self, item: &RawFields<'a>) {
        // Both ids occur: `call_id` names the call, `id` only the item.
        let call_id = item
            .id_text("call_id")
            .or_else(|| item.id_text("id"))
            .unwrap_or_default();
        let raw = item.get_first(&["output", "result", "tools"]);
        let object = raw.and_then(RawFields::from_raw);
        // Codex wraps the text in an object with `success`.
        let wrapper =
            object.filter(|object| object.has("content") && object.flag("success").is_some());
        let is_error = match &wrapper {
            Some(wrapper) => wrapper.flag("success").map(|success| !success),
            None => tool_failed(item),
        };
        let raw = wrapper.and_then(|wrapper| wrapper.get("content")).or(raw);
        let (content, other_parts) = raw.map(split_tool_output).unwrap_or_default();
        self.push_tool_result(
            ToolResult {
                call_id,
                content,
                is_error,
                duration_ms: None,
            },
            other_parts,
        );
    }
}

/// Returns true or false if the item states whether its tool failed. `incomplete` states neither.
fn tool_failed(item: &RawFields<'_>) -> Option<bool> {
    if item.has("error") {
        return Some(true);
    }
    match item.text("status").as_deref() {
        Some("failed") => Some(true),
        // On a result, `completed` means only that the item is complete.
        Some("completed") if !item.text("type")?.ends_with("_output") => Some(false),
        _ => None,
    }
}

/// Returns arguments as text: a string, or compact JSON.
pub(super) fn arguments_text(raw: &RawValue) -> SourceText<'_> {
    match json_string(raw) {
        Some(text) => text,
        None => SourceText(compact_json(raw.get())),
    }
}

/// Returns the arguments of a service tool, which are fields of the item.
fn service_tool_arguments(item: &RawFields<'_>) -> String {
    let known = ["queries", "query", "code", "container_id", "server_label"];
    let mut meta = MetadataBuilder::default();
    for key in known {
        meta.set_raw(key, item.get(key));
    }
    object_text(meta)
}

/// Returns an object as arguments text.
pub(super) fn object_text(meta: MetadataBuilder) -> String {
    let all = meta.finish();
    all.map_or_else(
        || "{}".to_owned(),
        |all| compact_json(all.get()).into_owned(),
    )
}

/// Splits a tool output into its text and the parts that are not text.
pub(super) fn split_tool_output(raw: &RawValue) -> (SourceText<'_>, Vec<TranscriptPart<'_>>) {
    let Some(elements) = list_items(raw) else {
        return (arguments_text(raw), Vec::new());
    };
    let (mut texts, mut other_parts) = (Vec::new(), Vec::new());
    for element in &elements {
        // The code interpreter returns its output as `logs`.
        let logs = RawFields::from_raw(element).and_then(|fields| fields.text("logs"));
        match logs
            .map(TranscriptPart::Text)
            .or_else(|| try_parse_part(element))
        {
            Some(TranscriptPart::Text(text)) => texts.push(text),
            Some(part @ TranscriptPart::Media { .. }) => other_parts.push(part),
            // Search results and similar lists are not content, so the whole output stays JSON.
            _ => return (SourceText(compact_json(raw.get())), Vec::new()),
        }
    }
    let mut texts = texts.into_iter();
    let text = match (texts.next(), texts.len()) {
        (None, _) => SourceText::default(),
        // One text keeps its borrow; several texts are joined as a copy.
        (Some(only), 0) => only,
        (Some(first), _) => {
            let mut all = first.0.into_owned();
            for text in texts {
                all.push('\n');
                all.push_str(&text);
            }
            SourceText::from(all)
        }
    };
    (text, other_parts)
}

/// Returns the readable reasoning: the full text, else its summary.
fn reasoning_parts<'a>(item: &RawFields<'a>) -> Vec<TranscriptPart<'a>> {
    let texts = |key: &str| -> Vec<TranscriptPart<'a>> {
        let Some(raw) = item.get(key) else {
            return Vec::new();
        };
        let single_text = json_string(raw).into_iter();
        let pieces = list_items(raw).unwrap_or_default().into_iter();
        let pieces = pieces.filter_map(|piece| match RawFields::from_raw(piece) {
            Some(piece) => piece.text("text"),
            None => json_string(piece),
        });
        let all = single_text.chain(pieces).filter(|text| !text.is_empty());
        all.map(TranscriptPart::Reasoning).collect()
    };
    // A summary repeats the full text in short form, so only one of them counts.
    let full_text = texts("content");
    if full_text.is_empty() {
        texts("summary")
    } else {
        full_text
    }
}

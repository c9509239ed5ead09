//! Anthropic's content blocks as parts, for messages of the Messages API and lines of Claude Code.
//!
//! Responsible for each type of block. No block is an error: a block without the shape of its type becomes `{"type":
//! "unread", "block": …}`, because the native format would misinterpret the bare block. Does not read messages.
//!
//! | block | becomes |
//! |---|---|
//! | a string, `text` | a text part; its `citations` are returned separately |
//! | `thinking` | reasoning; nothing if the log kept only its signature |
//! | `tool_use`, `server_tool_use`, `mcp_tool_use` | a call; `input` as compact text |
//! | `tool_result`, `*_tool_result` | a result: the text blocks in it are its content, other blocks follow it |
//! | `image`, `document`, `audio`, `video`, `file` | media |
//! | any other, including `redacted_thinking` | kept as written |
//!
//! A result is an error if its block has `is_error`, or if the result of a server tool has a type that ends in
//! `_error`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::content::{ObjectOnly, RawContent};
use super::super::fields::text_or_compact_json;
use super::super::metadata::borrow_json;
use super::super::native::{json_string, parse_or_none, text_or_json, unknown_part};
use crate::model::{
    JsonText, MessageRole, SourceText, ToolCall, ToolResult, TranscriptMessage, TranscriptPart,
};

/// The content of a message, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct ContentBlocks<'a> {
    /// The parts and tool results.
    pub(super) items: Vec<ContentItem<'a>>,
    /// The citations of the texts, in order, as written.
    pub(super) citations: Vec<&'a RawValue>,
}

/// A part or a tool result.
#[derive(Debug, Clone)]
pub(super) enum ContentItem<'a> {
    /// A part of the message.
    Part(TranscriptPart<'a>),
    /// A tool result in the message.
    ToolResult(ToolResultBlock<'a>),
}

/// A tool result.
#[derive(Debug, Clone)]
pub(super) struct ToolResultBlock<'a> {
    /// The result with its text.
    pub(super) result: ToolResult<'a>,
    /// The parts that are not text, such as images.
    pub(super) other_parts: Vec<TranscriptPart<'a>>,
}

#[derive(Deserialize)]
struct RawContentBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    citations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    url: Option<&'a RawValue>,
}

impl<'a> ContentBlocks<'a> {
    /// Parses a message's `content`.
    pub(super) fn from_content(content: RawContent<'a>) -> Self {
        let mut all = Self::default();
        match content {
            // An empty text adds no part, as in the native format.
            RawContent::Text(text) if text.is_empty() => {}
            RawContent::Text(text) => all
                .items
                .push(ContentItem::Part(TranscriptPart::Text(text))),
            // The API defines no object here, so it is kept as written.
            RawContent::Object(text) => {
                let raw = serde_json::from_str::<&RawValue>(&text);
                all.items
                    .extend(raw.ok().map(|raw| ContentItem::Part(unreadable_part(raw))));
            }
            RawContent::Parts(blocks) => blocks.into_iter().for_each(|block| all.add_block(block)),
        }
        all
    }

    fn add_block(&mut self, raw: &'a RawValue) {
        // A list may mix strings and blocks, as in Claude Code's prompts.
        if let Some(text) = json_string(raw) {
            self.items
                .push(ContentItem::Part(TranscriptPart::Text(text)));
            return;
        }
        let Ok(ObjectOnly(block)) =
            serde_json::from_str::<ObjectOnly<RawContentBlock<'a>>>(raw.get())
        else {
            self.items.push(ContentItem::Part(unreadable_part(raw)));
            return;
        };
        let kind = block.kind.clone().unwrap_or_default();
        let part = match &*kind {
            "text" => {
                let cited: Option<Vec<&RawValue>> = parse_or_none(block.citations);
                self.citations.extend(cited.into_iter().flatten());
                block.text.and_then(json_string).map(TranscriptPart::Text)
            }
            "thinking" => match block.thinking.and_then(json_string) {
                // A thinking block whose text is empty has only a signature for the API.
                Some(nothing) if nothing.is_empty() => return,
                thought => thought.map(TranscriptPart::Reasoning),
            },
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                block.to_tool_call().map(TranscriptPart::ToolCall)
            }
            kind if is_tool_result(kind) && block.tool_use_id.is_some() => {
                self.items
                    .push(ContentItem::ToolResult(block.to_tool_result()));
                return;
            }
            "image" | "document" | "audio" | "video" | "file" => Some(media_part(&kind, raw)),
            _ => None,
        };
        self.items.push(ContentItem::Part(
            part.unwrap_or_else(|| raw_block_part(&kind, raw)),
        ));
    }

    /// Converts to the parts of one message with tool results among them, because a model's reply is one message.
    pub(super) fn into_parts(self) -> Vec<TranscriptPart<'a>> {
        let mut parts = Vec::with_capacity(self.items.len());
        for item in self.items {
            match item {
                ContentItem::Part(part) => parts.push(part),
                ContentItem::ToolResult(block) => {
                    parts.push(TranscriptPart::ToolResult(block.result));
                    parts.extend(block.other_parts);
                }
            }
        }
        parts
    }

    /// Converts to messages: each tool result is a message of the tool, and the parts between are messages of `role`.
    /// Returns at least one.
    pub(super) fn into_messages(self, role: &MessageRole<'a>) -> Vec<TranscriptMessage<'a>> {
        let message = |role, parts| TranscriptMessage {
            role,
            parts,
            metadata: None,
        };
        let mut messages = Vec::new();
        let mut pending_parts = Vec::new();
        for item in self.items {
            match item {
                ContentItem::Part(part) => pending_parts.push(part),
                ContentItem::ToolResult(block) => {
                    // A result ends the message before it, because it becomes a message of its own.
                    if !pending_parts.is_empty() {
                        messages.push(message(role.clone(), std::mem::take(&mut pending_parts)));
                    }
                    let mut parts = vec![TranscriptPart::ToolResult(block.result)];
                    parts.extend(block.other_parts);
                    messages.push(message(MessageRole::Tool, parts));
                }
            }
        }
        // An empty message must remain a message, because it may have metadata.
        if !pending_parts.is_empty() || messages.is_empty() {
            messages.push(message(role.clone(), pending_parts));
        }
        messages
    }
}

impl<'a> RawContentBlock<'a> {
    fn to_tool_call(&self) -> Option<ToolCall<'a>> {
        let name = self
            .name
            .and_then(json_string)
            .filter(|name| !name.is_empty())?;
        Some(ToolCall {
            id: self.id.map(text_or_json).unwrap_or_default(),
            name,
            arguments: self.input.map(text_or_compact_json).unwrap_or_default(),
        })
    }

    fn to_tool_result(&self) -> ToolResultBlock<'a> {
        let (content, other_parts) = self.content.map(split_result_content).unwrap_or_default();
        // Server tools report an error as the type of their content, without `is_error`.
        let has_error_type = || {
            let ObjectOnly(content) =
                parse_or_none::<ObjectOnly<RawContentBlock<'_>>>(self.content)?;
            content.kind?.ends_with("_error").then_some(true)
        };
        ToolResultBlock {
            result: ToolResult {
                call_id: self.tool_use_id.map(text_or_json).unwrap_or_default(),
                content,
                is_error: parse_or_none(self.is_error).or_else(has_error_type),
                duration_ms: None,
            },
            other_parts,
        }
    }
}

/// Returns true for `tool_result` and the results of server tools.
fn is_tool_result(kind: &str) -> bool {
    kind == "tool_result" || kind.ends_with("_tool_result")
}

fn media_part<'a>(kind: &SourceText<'a>, raw: &'a RawValue) -> TranscriptPart<'a> {
    TranscriptPart::Media {
        kind: kind.clone(),
        raw: borrow_json(raw),
    }
}

/// Returns the block as written, unless the native format would interpret its type.
fn raw_block_part<'a>(kind: &str, raw: &'a RawValue) -> TranscriptPart<'a> {
    let native_types = [
        "",
        "text",
        "input_text",
        "output_text",
        "refusal",
        "thinking",
        "reasoning",
        "tool_call",
        "tool_result",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
    ];
    if native_types.contains(&kind) {
        unreadable_part(raw)
    } else {
        unknown_part(raw)
    }
}

/// Returns a block without the shape of its type, wrapped so that the native format keeps it.
fn unreadable_part(raw: &RawValue) -> TranscriptPart<'static> {
    let wrapped = format!(r#"{{"type":"unread","block":{}}}"#, raw.get());
    let wrapped: JsonText<'_> = serde_json::from_str(&wrapped).expect("JSON within an object");
    TranscriptPart::Other(wrapped.into_owned())
}

/// Splits a result into its text and the parts that are not text.
fn split_result_content(raw: &RawValue) -> (SourceText<'_>, Vec<TranscriptPart<'_>>) {
    // Content that is not a list: a string, or the object of a server tool.
    let Some(blocks) = parse_or_none::<Vec<&RawValue>>(Some(raw)) else {
        return (text_or_compact_json(raw), Vec::new());
    };
    let mut joined_text: Option<SourceText<'_>> = None;
    let mut other_parts = Vec::new();
    for raw in blocks {
        let block = parse_or_none::<ObjectOnly<RawContentBlock<'_>>>(Some(raw))
            .map(|ObjectOnly(block)| block);
        let kind = block.as_ref().and_then(|block| block.kind.clone());
        let kind = kind.unwrap_or_default();
        let text = match (&*kind, &block) {
            ("text", Some(block)) => block.text.and_then(json_string),
            // The content of a search result is encrypted; title and URL are readable.
            ("web_search_result", Some(block)) => {
                let texts = [block.title, block.url].into_iter().flatten();
                let texts: Vec<SourceText<'_>> = texts.filter_map(json_string).collect();
                let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
                Some(SourceText::from(texts.join("\n")))
            }
            // An element that is a plain string.
            (_, None) => json_string(raw),
            _ => None,
        };
        match (text, joined_text.take()) {
            (Some(text), None) => joined_text = Some(text),
            (Some(text), Some(so_far)) => {
                joined_text = Some(SourceText::from(format!("{so_far}\n{text}")));
            }
            (None, so_far) => {
                joined_text = so_far;
                other_parts.push(match &*kind {
                    "image" | "document" | "audio" | "video" | "file" => media_part(&kind, raw),
                    kind => raw_block_part(kind, raw),
                });
            }
        }
    }
    (joined_text.unwrap_or_default(), other_parts)
}

#[cfg(test)]
mod tests;

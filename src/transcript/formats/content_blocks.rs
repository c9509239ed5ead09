//! Anthropic's content blocks as parts: what a message of the Messages API and a line of Claude Code hold alike.
//!
//! | block | becomes |
//! |---|---|
//! | a string, `text` | a text part; its `citations` are handed on beside |
//! | `thinking` | reasoning; one without text (only its signature was kept) is none |
//! | `tool_use`, `server_tool_use`, `mcp_tool_use` | a call; `input` as its own compact text |
//! | `tool_result`, `*_tool_result` | an answer: the text blocks in it are its content, other blocks stand beside |
//! | `image`, `document`, `audio`, `video`, `file` | media |
//! | any other, `redacted_thinking` too | kept as written |
//!
//! An answer says that it is an error where its block does (`is_error`), or where what a server's tool answered is of a
//! type that ends in `_error`. Nothing here fails: what has not the shape of its type is kept as `{"type": "unread",
//! "block": …}`, since the native form would take it for something else.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::content::{ObjectOnly, RawContent};
use super::super::metadata::borrow_json;
use super::super::native::{json_string, parse_or_none, text_or_json, unknown_part};
use crate::model::{
    JsonText, MessageRole, SourceText, ToolCall, ToolResult, TranscriptMessage, TranscriptPart,
};

/// What a message says, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct ContentBlocks<'a> {
    /// What was found.
    pub(super) items: Vec<ContentItem<'a>>,
    /// What the texts cite, in order, as written.
    pub(super) citations: Vec<&'a RawValue>,
}

/// A part, or a tool's answer.
#[derive(Debug, Clone)]
pub(super) enum ContentItem<'a> {
    /// Of the message itself.
    Part(TranscriptPart<'a>),
    /// Of a tool.
    ToolResult(ToolResultBlock<'a>),
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub(super) struct ToolResultBlock<'a> {
    /// The text of it.
    pub(super) result: ToolResult<'a>,
    /// Images and the like.
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
    /// Of a message's `content`.
    pub(super) fn from_content(content: RawContent<'a>) -> Self {
        let mut all = Self::default();
        match content {
            RawContent::Text(text) if text.is_empty() => {}
            RawContent::Text(text) => all
                .items
                .push(ContentItem::Part(TranscriptPart::Text(text))),
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
        let said = match &*kind {
            "text" => {
                let cited: Option<Vec<&RawValue>> = parse_or_none(block.citations);
                self.citations.extend(cited.into_iter().flatten());
                block.text.and_then(json_string).map(TranscriptPart::Text)
            }
            "thinking" => match block.thinking.and_then(json_string) {
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
            said.unwrap_or_else(|| raw_block_part(&kind, raw)),
        ));
    }

    /// As parts of one message, answers among them: a model's reply stays one message.
    pub(super) fn into_parts(self) -> Vec<TranscriptPart<'a>> {
        let mut parts = Vec::with_capacity(self.items.len());
        for said in self.items {
            match said {
                ContentItem::Part(part) => parts.push(part),
                ContentItem::ToolResult(answer) => {
                    parts.push(TranscriptPart::ToolResult(answer.result));
                    parts.extend(answer.other_parts);
                }
            }
        }
        parts
    }

    /// As messages: each answer is one of the tool's, what stands between is one of `role`. At least one.
    pub(super) fn into_messages(self, role: &MessageRole<'a>) -> Vec<TranscriptMessage<'a>> {
        let message = |role, parts| TranscriptMessage {
            role,
            parts,
            metadata: None,
        };
        let mut turns = Vec::new();
        let mut open = Vec::new();
        for said in self.items {
            match said {
                ContentItem::Part(part) => open.push(part),
                ContentItem::ToolResult(answer) => {
                    if !open.is_empty() {
                        turns.push(message(role.clone(), std::mem::take(&mut open)));
                    }
                    let mut parts = vec![TranscriptPart::ToolResult(answer.result)];
                    parts.extend(answer.other_parts);
                    turns.push(message(MessageRole::Tool, parts));
                }
            }
        }
        if !open.is_empty() || turns.is_empty() {
            turns.push(message(role.clone(), open));
        }
        turns
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
        let (content, beside) = self.content.map(split_result_content).unwrap_or_default();
        let failed = || {
            let ObjectOnly(inner) = parse_or_none::<ObjectOnly<RawContentBlock<'_>>>(self.content)?;
            inner.kind?.ends_with("_error").then_some(true)
        };
        ToolResultBlock {
            result: ToolResult {
                call_id: self.tool_use_id.map(text_or_json).unwrap_or_default(),
                content,
                is_error: parse_or_none(self.is_error).or_else(failed),
                duration_ms: None,
            },
            other_parts: beside,
        }
    }
}

fn is_tool_result(kind: &str) -> bool {
    kind == "tool_result" || kind.ends_with("_tool_result")
}

fn media_part<'a>(kind: &SourceText<'a>, raw: &'a RawValue) -> TranscriptPart<'a> {
    TranscriptPart::Media {
        kind: kind.clone(),
        raw: borrow_json(raw),
    }
}

/// A block of a kind that the native form has no other meaning for.
fn raw_block_part<'a>(kind: &str, raw: &'a RawValue) -> TranscriptPart<'a> {
    let taken = [
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
    if taken.contains(&kind) {
        unreadable_part(raw)
    } else {
        unknown_part(raw)
    }
}

fn unreadable_part(raw: &RawValue) -> TranscriptPart<'static> {
    let wrapped = format!(r#"{{"type":"unread","block":{}}}"#, raw.get());
    let wrapped: JsonText<'_> = serde_json::from_str(&wrapped).expect("JSON within an object");
    TranscriptPart::Other(wrapped.into_owned())
}

/// What a tool answered as one text, and what is not text.
fn split_result_content(raw: &RawValue) -> (SourceText<'_>, Vec<TranscriptPart<'_>>) {
    let Some(blocks) = parse_or_none::<Vec<&RawValue>>(Some(raw)) else {
        return (text_or_compact_json(raw), Vec::new());
    };
    let mut all: Option<SourceText<'_>> = None;
    let mut beside = Vec::new();
    for raw in blocks {
        let block = parse_or_none::<ObjectOnly<RawContentBlock<'_>>>(Some(raw))
            .map(|ObjectOnly(block)| block);
        let kind = block.as_ref().and_then(|block| block.kind.clone());
        let kind = kind.unwrap_or_default();
        let text = match (&*kind, &block) {
            ("text", Some(block)) => block.text.and_then(json_string),
            ("web_search_result", Some(block)) => {
                let told = [block.title, block.url].into_iter().flatten();
                let told: Vec<SourceText<'_>> = told.filter_map(json_string).collect();
                let told: Vec<&str> = told.iter().map(|text| &**text).collect();
                Some(SourceText::from(told.join("\n")))
            }
            (_, None) => json_string(raw),
            _ => None,
        };
        match (text, all.take()) {
            (Some(text), None) => all = Some(text),
            (Some(text), Some(so_far)) => all = Some(SourceText::from(format!("{so_far}\n{text}"))),
            (None, so_far) => {
                all = so_far;
                beside.push(match &*kind {
                    "image" | "document" | "audio" | "video" | "file" => media_part(&kind, raw),
                    kind => raw_block_part(kind, raw),
                });
            }
        }
    }
    (all.unwrap_or_default(), beside)
}

/// The text of a JSON string, null as nothing, anything else as written but without the white space between its values.
pub(super) fn text_or_compact_json(raw: &RawValue) -> SourceText<'_> {
    let written = raw.get();
    if !written.starts_with(['{', '[']) {
        return text_or_json(raw);
    }
    SourceText(super::super::fields::compact_json(written))
}

#[cfg(test)]
mod tests;

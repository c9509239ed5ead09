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

use super::super::content::{Content, Object};
use super::super::meta::json;
use super::super::native::{as_text, of, other, string};
use crate::model::{JsonText, Message, Part, Role, Text, ToolCall, ToolResult};

/// What a message says, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks<'a> {
    /// What was found.
    pub(super) said: Vec<Said<'a>>,
    /// What the texts cite, in order, as written.
    pub(super) citations: Vec<&'a RawValue>,
}

/// A part, or a tool's answer.
#[derive(Debug, Clone)]
pub(super) enum Said<'a> {
    /// Of the message itself.
    Part(Part<'a>),
    /// Of a tool.
    Answer(Answer<'a>),
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub(super) struct Answer<'a> {
    /// The text of it.
    pub(super) result: ToolResult<'a>,
    /// Images and the like.
    pub(super) beside: Vec<Part<'a>>,
}

#[derive(Deserialize)]
struct RawBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
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

impl<'a> Blocks<'a> {
    /// Of a message's `content`.
    pub(super) fn of(content: Content<'a>) -> Self {
        let mut all = Self::default();
        match content {
            Content::Text(text) if text.is_empty() => {}
            Content::Text(text) => all.said.push(Said::Part(Part::Text(text))),
            Content::Object(text) => {
                let raw = serde_json::from_str::<&RawValue>(&text);
                all.said.extend(raw.ok().map(|raw| Said::Part(unread(raw))));
            }
            Content::Parts(blocks) => blocks.into_iter().for_each(|block| all.block(block)),
        }
        all
    }

    fn block(&mut self, raw: &'a RawValue) {
        if let Some(text) = string(raw) {
            self.said.push(Said::Part(Part::Text(text)));
            return;
        }
        let Ok(Object(block)) = serde_json::from_str::<Object<RawBlock<'a>>>(raw.get()) else {
            self.said.push(Said::Part(unread(raw)));
            return;
        };
        let kind = block.kind.clone().unwrap_or_default();
        let said = match &*kind {
            "text" => {
                let cited: Option<Vec<&RawValue>> = of(block.citations);
                self.citations.extend(cited.into_iter().flatten());
                block.text.and_then(string).map(Part::Text)
            }
            "thinking" => match block.thinking.and_then(string) {
                Some(nothing) if nothing.is_empty() => return,
                thought => thought.map(Part::Reasoning),
            },
            "tool_use" | "server_tool_use" | "mcp_tool_use" => block.call().map(Part::ToolCall),
            kind if is_answer(kind) && block.tool_use_id.is_some() => {
                self.said.push(Said::Answer(block.answer()));
                return;
            }
            "image" | "document" | "audio" | "video" | "file" => Some(media(&kind, raw)),
            _ => None,
        };
        self.said
            .push(Said::Part(said.unwrap_or_else(|| kept(&kind, raw))));
    }

    /// As parts of one message, answers among them: a model's reply stays one message.
    pub(super) fn into_parts(self) -> Vec<Part<'a>> {
        let mut parts = Vec::with_capacity(self.said.len());
        for said in self.said {
            match said {
                Said::Part(part) => parts.push(part),
                Said::Answer(answer) => {
                    parts.push(Part::ToolResult(answer.result));
                    parts.extend(answer.beside);
                }
            }
        }
        parts
    }

    /// As messages: each answer is one of the tool's, what stands between is one of `role`. At least one.
    pub(super) fn into_turns(self, role: &Role<'a>) -> Vec<Message<'a>> {
        let message = |role, parts| Message {
            role,
            parts,
            metadata: None,
        };
        let mut turns = Vec::new();
        let mut open = Vec::new();
        for said in self.said {
            match said {
                Said::Part(part) => open.push(part),
                Said::Answer(answer) => {
                    if !open.is_empty() {
                        turns.push(message(role.clone(), std::mem::take(&mut open)));
                    }
                    let mut parts = vec![Part::ToolResult(answer.result)];
                    parts.extend(answer.beside);
                    turns.push(message(Role::Tool, parts));
                }
            }
        }
        if !open.is_empty() || turns.is_empty() {
            turns.push(message(role.clone(), open));
        }
        turns
    }
}

impl<'a> RawBlock<'a> {
    fn call(&self) -> Option<ToolCall<'a>> {
        let name = self.name.and_then(string).filter(|name| !name.is_empty())?;
        Some(ToolCall {
            id: self.id.map(as_text).unwrap_or_default(),
            name,
            arguments: self.input.map(compact).unwrap_or_default(),
        })
    }

    fn answer(&self) -> Answer<'a> {
        let (content, beside) = self.content.map(answered).unwrap_or_default();
        let failed = || {
            let Object(inner) = of::<Object<RawBlock<'_>>>(self.content)?;
            inner.kind?.ends_with("_error").then_some(true)
        };
        Answer {
            result: ToolResult {
                call_id: self.tool_use_id.map(as_text).unwrap_or_default(),
                content,
                is_error: of(self.is_error).or_else(failed),
                duration_ms: None,
            },
            beside,
        }
    }
}

fn is_answer(kind: &str) -> bool {
    kind == "tool_result" || kind.ends_with("_tool_result")
}

fn media<'a>(kind: &Text<'a>, raw: &'a RawValue) -> Part<'a> {
    Part::Media {
        kind: kind.clone(),
        raw: json(raw),
    }
}

/// A block of a kind that the native form has no other meaning for.
fn kept<'a>(kind: &str, raw: &'a RawValue) -> Part<'a> {
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
        unread(raw)
    } else {
        other(raw)
    }
}

fn unread(raw: &RawValue) -> Part<'static> {
    let wrapped = format!(r#"{{"type":"unread","block":{}}}"#, raw.get());
    let wrapped: JsonText<'_> = serde_json::from_str(&wrapped).expect("JSON within an object");
    Part::Other(wrapped.into_owned())
}

/// What a tool answered as one text, and what is not text.
fn answered(raw: &RawValue) -> (Text<'_>, Vec<Part<'_>>) {
    let Some(blocks) = of::<Vec<&RawValue>>(Some(raw)) else {
        return (compact(raw), Vec::new());
    };
    let mut all: Option<Text<'_>> = None;
    let mut beside = Vec::new();
    for raw in blocks {
        let block = of::<Object<RawBlock<'_>>>(Some(raw)).map(|Object(block)| block);
        let kind = block.as_ref().and_then(|block| block.kind.clone());
        let kind = kind.unwrap_or_default();
        let text = match (&*kind, &block) {
            ("text", Some(block)) => block.text.and_then(string),
            ("web_search_result", Some(block)) => {
                let told = [block.title, block.url].into_iter().flatten();
                let told: Vec<Text<'_>> = told.filter_map(string).collect();
                let told: Vec<&str> = told.iter().map(|text| &**text).collect();
                Some(Text::from(told.join("\n")))
            }
            (_, None) => string(raw),
            _ => None,
        };
        match (text, all.take()) {
            (Some(text), None) => all = Some(text),
            (Some(text), Some(so_far)) => all = Some(Text::from(format!("{so_far}\n{text}"))),
            (None, so_far) => {
                all = so_far;
                beside.push(match &*kind {
                    "image" | "document" | "audio" | "video" | "file" => media(&kind, raw),
                    kind => kept(kind, raw),
                });
            }
        }
    }
    (all.unwrap_or_default(), beside)
}

/// The text of a JSON string, null as nothing, anything else as written but without the white space between its values.
pub(super) fn compact(raw: &RawValue) -> Text<'_> {
    let written = raw.get();
    if !written.starts_with(['{', '[']) {
        return as_text(raw);
    }
    Text(super::super::fields::compact(written))
}

#[cfg(test)]
mod tests;

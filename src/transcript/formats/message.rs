//! One message as JSON, in the shapes that several tools write: `parts` of OpenTelemetry's semantic conventions and of
//! `PromptKit`, `content` of OpenAI and the Vercel AI SDK, `OpenInference`'s wrappers.
//!
//! Lenient: what is not understood stays as a part of its own; nothing is dropped.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{JsonText, Message, Part, Role, Text, ToolCall, ToolResult};
use crate::transcript::content::Object;
use crate::transcript::fields::compact;

#[derive(Deserialize, Default)]
struct Wire<'a> {
    /// `OpenInference` and `gen_ai.choice` wrap the message.
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    contents: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "toolCallId")]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
}

/// A part, whatever its dialect; the fields that a kind does not have stay empty.
#[derive(Deserialize, Default)]
struct Piece<'a> {
    /// `OpenInference` wraps it.
    #[serde(borrow, default)]
    message_content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "toolCallId", alias = "tool_use_id")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "toolName")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "input", alias = "args")]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "result", alias = "output")]
    response: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "isError")]
    is_error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Call<'a> {
    /// `OpenInference` wraps it.
    #[serde(borrow, default)]
    #[serde(rename = "tool_call")]
    inner: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "toolCallId")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<Object<Function<'a>>>,
    #[serde(borrow, default, alias = "toolName")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "input", alias = "args")]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Messages in the making.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Messages {
    pub(in crate::transcript) all: Vec<Message<'static>>,
    /// Why the last message ended, where it says so.
    pub(in crate::transcript) stop: Option<String>,
}

impl Messages {
    /// A list of messages, one message, or the text of one. Whether it could be read.
    pub(in crate::transcript) fn read(&mut self, json: &str, default: &Role<'static>) -> bool {
        let json = json.trim();
        if json.starts_with('[') {
            let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) else {
                return false;
            };
            for one in list {
                self.one(one, default);
            }
            return true;
        }
        match serde_json::from_str::<&RawValue>(json) {
            Ok(raw) => {
                self.one(raw, default);
                true
            }
            Err(_) => false,
        }
    }

    /// One message, of this role if it says none.
    pub(in crate::transcript) fn one(&mut self, raw: &RawValue, default: &Role<'static>) {
        if let Some(text) = string(raw) {
            self.text(default.clone(), &text);
            return;
        }
        let Ok(Object(mut wire)) = serde_json::from_str::<Object<Wire<'_>>>(raw.get()) else {
            self.push(default.clone(), vec![other(raw)]);
            return;
        };
        let stop = wire.finish_reason.and_then(string);
        if let Some(inner) = wire.message
            && let Ok(Object(inner)) = serde_json::from_str::<Object<Wire<'_>>>(inner.get())
        {
            wire = Wire {
                tool_call_id: inner.tool_call_id.or(wire.tool_call_id),
                ..inner
            };
        } else if wire.content.is_none() && wire.parts.is_none() {
            // `gen_ai.choice` of some holds the text itself.
            wire.content = wire.message;
        }
        let inner = wire.finish_reason.and_then(string);
        self.stop = stop
            .or(inner)
            .filter(|stop| !stop.is_empty())
            .map(Cow::into_owned)
            .or(self.stop.take());
        let role = wire.role.and_then(string);
        let role = role.map_or_else(|| default.clone(), |role| role_of(&role));
        let mut making = Making {
            out: self,
            role,
            parts: Vec::new(),
            said: false,
        };
        making.message(&wire);
        making.finish();
    }

    /// A message of text.
    pub(in crate::transcript) fn text(&mut self, role: Role<'static>, text: &str) {
        let part = if role == Role::Tool {
            result("", text.to_owned(), None)
        } else {
            Part::Text(Text::from(text.to_owned()))
        };
        self.push(role, vec![part]);
    }

    pub(in crate::transcript) fn push(&mut self, role: Role<'static>, parts: Vec<Part<'static>>) {
        self.all.push(Message {
            role,
            parts,
            metadata: None,
        });
    }
}

/// A message that may turn out to be several: each tool's answer is one of its own.
struct Making<'m> {
    out: &'m mut Messages,
    role: Role<'static>,
    parts: Vec<Part<'static>>,
    said: bool,
}

impl Making<'_> {
    fn message(&mut self, wire: &Wire<'_>) {
        if let Some(thoughts) = wire
            .reasoning_content
            .and_then(string)
            .filter(|t| !t.is_empty())
        {
            self.parts
                .push(Part::Reasoning(Text::from(thoughts.into_owned())));
        }
        let id = wire.tool_call_id.or(wire.id).and_then(string);
        // Some write both, and then both say the same.
        let said = [wire.parts, wire.contents, wire.content]
            .into_iter()
            .flatten();
        if let Some(said) = said
            .into_iter()
            .find(|raw| !matches!(raw.get(), "null" | "[]" | "\"\""))
        {
            self.said(said);
        }
        if self.role == Role::Tool && !self.said {
            self.answer(&id.unwrap_or_default());
        }
        let calls = wire.tool_calls.map(inner_json);
        if let Some(calls) = calls {
            match serde_json::from_str::<Vec<&RawValue>>(&calls) {
                Ok(calls) => self.parts.extend(calls.into_iter().map(call)),
                Err(_) => self
                    .parts
                    .extend(wire.tool_calls.filter(|raw| raw.get() != "null").map(other)),
            }
        }
    }

    /// Text, parts, or parts as JSON in a text.
    fn said(&mut self, raw: &RawValue) {
        if let Some(text) = string(raw) {
            let list = text.trim_start().starts_with("[{\"") && text.contains("\"type\"");
            match serde_json::from_str::<Vec<Object<Piece<'_>>>>(&text) {
                Ok(_) if list => {
                    let all: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
                    for one in all {
                        self.piece(one);
                    }
                }
                _ if text.is_empty() => {}
                _ => self.parts.push(Part::Text(Text::from(text.into_owned()))),
            }
            return;
        }
        match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            Ok(all) => {
                for one in all {
                    self.piece(one);
                }
            }
            Err(_) if raw.get() == "null" => {}
            Err(_) => self.parts.push(other(raw)),
        }
    }

    fn piece(&mut self, raw: &RawValue) {
        if let Some(text) = string(raw) {
            self.parts.push(Part::Text(Text::from(text.into_owned())));
            return;
        }
        let Ok(Object(piece)) = serde_json::from_str::<Object<Piece<'_>>>(raw.get()) else {
            self.parts.push(other(raw));
            return;
        };
        if let Some(inner) = piece.message_content {
            self.piece(inner);
            return;
        }
        let kind = piece.kind.and_then(string).unwrap_or_default();
        let id = piece.id.and_then(string).unwrap_or_default();
        let text = || piece.text.or(piece.content).and_then(string);
        let part = match &*kind {
            "text" | "input_text" | "output_text" => {
                text().map(|text| Part::Text(Text::from(text.into_owned())))
            }
            "reasoning" | "thinking" => piece
                .thinking
                .and_then(string)
                .or_else(text)
                .map(|text| Part::Reasoning(Text::from(text.into_owned()))),
            "tool_call" | "tool-call" | "tool_use" if piece.name.is_some() => {
                Some(Part::ToolCall(ToolCall {
                    id: Text::from(id.into_owned()),
                    name: Text::from(words(piece.name)),
                    arguments: Text::from(words(piece.arguments)),
                }))
            }
            "tool_call_response" | "tool-result" | "tool_result" => {
                let (content, failed) = response(piece.response.or(piece.content));
                let is_error = piece.is_error.and_then(|raw| raw.get().parse().ok());
                self.result(result(&id, content, is_error.or(failed)));
                return;
            }
            "blob" | "uri" | "file" | "image" | "image_url" | "input_image" | "audio"
            | "input_audio" | "video" | "document" | "media" => Some(Part::Media {
                kind: Text::from(kind.clone().into_owned()),
                raw: owned(raw),
            }),
            _ => None,
        };
        self.parts.push(part.unwrap_or_else(|| other(raw)));
    }

    /// What was said so far becomes a tool's answer.
    fn answer(&mut self, id: &str) {
        let mut texts = Vec::new();
        let mut rest = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Text(text) => texts.push(text.0.into_owned()),
                // A tool that answered with JSON.
                Part::Other(json) => texts.push(json.get().to_owned()),
                part => rest.push(part),
            }
        }
        let mut parts = vec![result(id, texts.join("\n"), None)];
        parts.extend(rest);
        self.out.push(Role::Tool, parts);
        self.said = true;
    }

    fn result(&mut self, part: Part<'static>) {
        self.flush();
        self.out.push(Role::Tool, vec![part]);
        self.said = true;
    }

    fn flush(&mut self) {
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            self.out.push(self.role.clone(), parts);
            self.said = true;
        }
    }

    fn finish(mut self) {
        self.flush();
        if !self.said {
            self.out.push(self.role.clone(), Vec::new());
        }
    }
}

/// A tool call outside the content.
pub(in crate::transcript) fn call(raw: &RawValue) -> Part<'static> {
    let Ok(Object(wire)) = serde_json::from_str::<Object<Call<'_>>>(raw.get()) else {
        return other(raw);
    };
    if let Some(inner) = wire.inner {
        return call(inner);
    }
    let Object(function) = wire.function.unwrap_or(Object(Function::default()));
    let Some(name) = function.name.or(wire.name) else {
        return other(raw);
    };
    Part::ToolCall(ToolCall {
        id: Text::from(words(wire.id)),
        name: Text::from(words(Some(name))),
        arguments: Text::from(words(function.arguments.or(wire.arguments))),
    })
}

/// A tool's answer.
pub(in crate::transcript) fn result(
    id: &str,
    content: String,
    is_error: Option<bool>,
) -> Part<'static> {
    Part::ToolResult(ToolResult {
        call_id: Text::from(id.to_owned()),
        content: Text::from(content),
        is_error,
        duration_ms: None,
    })
}

/// What a tool answered as text, and whether that says it failed. The Vercel AI SDK wraps it: `{type, value}`.
pub(in crate::transcript) fn response(raw: Option<&RawValue>) -> (String, Option<bool>) {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
        #[serde(borrow)]
        value: &'a RawValue,
    }
    let Some(raw) = raw else {
        return (String::new(), None);
    };
    if let Ok(Object(wrapped)) = serde_json::from_str::<Object<Wrapped<'_>>>(raw.get()) {
        let failed = match &*wrapped.kind {
            "error-text" | "error-json" => Some(true),
            "text" | "json" | "content" => Some(false),
            _ => None,
        };
        if failed.is_some() {
            return (texts(wrapped.value), failed);
        }
    }
    (texts(raw), None)
}

/// Text as it is, a list of text parts as their texts, anything else as JSON.
fn texts(raw: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Only<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
        #[serde(borrow, alias = "content")]
        text: Text<'a>,
    }
    if let Ok(all) = serde_json::from_str::<Vec<Object<Only<'_>>>>(raw.get())
        && !all.is_empty()
        && all.iter().all(|Object(only)| &*only.kind == "text")
    {
        let all: Vec<&str> = all.iter().map(|Object(only)| &*only.text).collect();
        return all.join("\n");
    }
    words(Some(raw))
}

/// Who speaks, as the dialects write it.
pub(in crate::transcript) fn role_of(role: &str) -> Role<'static> {
    match role.to_ascii_lowercase().as_str() {
        "system" | "developer" => Role::System,
        "user" | "human" => Role::User,
        "assistant" | "model" | "ai" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => Role::Other(Text::from(role.to_owned())),
    }
}

/// The text of a JSON string; `None` for anything else.
pub(in crate::transcript) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    Some(crate::transcript::native::string(raw)?.0)
}

/// A string as it is, anything else as compact JSON, null as nothing.
pub(in crate::transcript) fn words(raw: Option<&RawValue>) -> String {
    match raw {
        None => String::new(),
        Some(raw) if raw.get() == "null" => String::new(),
        Some(raw) => string(raw).map_or_else(|| compact(raw.get()).into_owned(), Cow::into_owned),
    }
}

/// JSON, or the JSON that a string holds.
fn inner_json(raw: &RawValue) -> Cow<'_, str> {
    string(raw).unwrap_or(Cow::Borrowed(raw.get()))
}

fn owned(raw: &RawValue) -> JsonText<'static> {
    let compact = compact(raw.get());
    serde_json::from_str::<JsonText<'_>>(&compact).map_or_else(
        |_| JsonText::of(&serde_json::Value::Null),
        JsonText::into_owned,
    )
}

fn other(raw: &RawValue) -> Part<'static> {
    Part::Other(owned(raw))
}

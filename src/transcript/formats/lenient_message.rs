//! Messages as JSON in the shapes of several tools.
//!
//! Responsible for `parts` of OpenTelemetry's semantic conventions and `PromptKit`, `content` of OpenAI and the Vercel
//! AI SDK, and `OpenInference`'s wrappers. The reader is lenient: unknown content becomes a part of its own, and
//! nothing is dropped. Does not report errors in messages.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{
    JsonText, MessageRole, SourceText, ToolCall, ToolResult, TranscriptMessage, TranscriptPart,
};
use crate::transcript::content::ObjectOnly;
use crate::transcript::fields::{compact_json, text_or_compact_json};

#[derive(Deserialize, Default)]
struct LenientMessage<'a> {
    /// The message in a wrapper of `OpenInference` or `gen_ai.choice`.
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

/// A part in any convention. Fields that a kind does not have stay empty.
#[derive(Deserialize, Default)]
struct LenientPart<'a> {
    /// The content of `OpenInference`'s wrapper.
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
struct LenientToolCall<'a> {
    /// The content of `OpenInference`'s wrapper.
    #[serde(borrow, default)]
    #[serde(rename = "tool_call")]
    inner: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "toolCallId")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<ObjectOnly<LenientFunction<'a>>>,
    #[serde(borrow, default, alias = "toolName")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "input", alias = "args")]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct LenientFunction<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// A reader of messages, with the messages so far.
#[derive(Debug, Default)]
pub(in crate::transcript) struct LenientMessageReader {
    pub(in crate::transcript) messages: Vec<TranscriptMessage<'static>>,
    /// The stop reason of the last message, if it has one.
    pub(in crate::transcript) stop_reason: Option<String>,
}

impl LenientMessageReader {
    /// Reads a list of messages, one message, or the text of one. Returns false if the JSON isn't valid.
    pub(in crate::transcript) fn read_json(
        &mut self,
        json: &str,
        default: &MessageRole<'static>,
    ) -> bool {
        let json = json.trim();
        if json.starts_with('[') {
            let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) else {
                return false;
            };
            for item in list {
                self.read_message(item, default);
            }
            return true;
        }
        match serde_json::from_str::<&RawValue>(json) {
            Ok(raw) => {
                self.read_message(raw, default);
                true
            }
            Err(_) => false,
        }
    }

    /// Reads one message; `role` is its role if it has none.
    pub(in crate::transcript) fn read_message(
        &mut self,
        raw: &RawValue,
        default: &MessageRole<'static>,
    ) {
        // A bare string is the text of a message.
        if let Some(text) = as_json_string(raw) {
            self.push_text(default.clone(), &text);
            return;
        }
        let Ok(ObjectOnly(mut wire)) =
            serde_json::from_str::<ObjectOnly<LenientMessage<'_>>>(raw.get())
        else {
            self.push_message(default.clone(), vec![unknown_part(raw)]);
            return;
        };
        // Depending on the wrapper, the stop reason is inside or outside of it.
        let stop = wire.finish_reason.and_then(as_json_string);
        if let Some(wrapped) = wire.message
            && let Ok(ObjectOnly(wrapped)) =
                serde_json::from_str::<ObjectOnly<LenientMessage<'_>>>(wrapped.get())
        {
            wire = LenientMessage {
                // Some wrappers keep the id of the call outside.
                tool_call_id: wrapped.tool_call_id.or(wire.tool_call_id),
                ..wrapped
            };
        } else if wire.content.is_none() && wire.parts.is_none() {
            // Some instrumentations put the text directly into `gen_ai.choice`.
            wire.content = wire.message;
        }
        let own_stop = wire.finish_reason.and_then(as_json_string);
        self.stop_reason = stop
            .or(own_stop)
            .filter(|stop| !stop.is_empty())
            .map(Cow::into_owned)
            .or(self.stop_reason.take());
        let role = wire.role.and_then(as_json_string);
        let role = role.map_or_else(|| default.clone(), |role| parse_role(&role));
        let mut builder = LenientMessageBuilder {
            out: self,
            role,
            parts: Vec::new(),
            wrote_message: false,
        };
        builder.add_message(&wire);
        builder.finish();
    }

    /// Adds a message of text.
    pub(in crate::transcript) fn push_text(&mut self, role: MessageRole<'static>, text: &str) {
        // A result needs a part of its own kind; without an id it matches no call.
        let part = if role == MessageRole::Tool {
            tool_result_part("", text.to_owned(), None)
        } else {
            TranscriptPart::Text(SourceText::from(text.to_owned()))
        };
        self.push_message(role, vec![part]);
    }

    pub(in crate::transcript) fn push_message(
        &mut self,
        role: MessageRole<'static>,
        parts: Vec<TranscriptPart<'static>>,
    ) {
        self.messages.push(TranscriptMessage {
            role,
            parts,
            metadata: None,
        });
    }
}

/// A message under construction. Each tool result becomes a message of its own.
struct LenientMessageBuilder<'m> {
    out: &'m mut LenientMessageReader,
    role: MessageRole<'static>,
    parts: Vec<TranscriptPart<'static>>,
    wrote_message: bool,
}

impl LenientMessageBuilder<'_> {
    fn add_message(&mut self, wire: &LenientMessage<'_>) {
        if let Some(thoughts) = wire
            .reasoning_content
            .and_then(as_json_string)
            .filter(|t| !t.is_empty())
        {
            self.parts.push(TranscriptPart::Reasoning(SourceText::from(
                thoughts.into_owned(),
            )));
        }
        let id = wire.tool_call_id.or(wire.id).and_then(as_json_string);
        // Some tools write several of these fields with the same content.
        let contents = [wire.parts, wire.contents, wire.content]
            .into_iter()
            .flatten();
        if let Some(contents) = contents
            .into_iter()
            .find(|raw| !matches!(raw.get(), "null" | "[]" | "\"\""))
        {
            self.add_content(contents);
        }
        // The role decides: the content of a tool message is one result, not text.
        if self.role == MessageRole::Tool && !self.wrote_message {
            self.flush_tool_result(&id.unwrap_or_default());
        }
        let calls = wire.tool_calls.map(unwrap_json_string);
        if let Some(calls) = calls {
            match serde_json::from_str::<Vec<&RawValue>>(&calls) {
                Ok(calls) => self.parts.extend(calls.into_iter().map(parse_tool_call)),
                Err(_) => self.parts.extend(
                    wire.tool_calls
                        .filter(|raw| raw.get() != "null")
                        .map(unknown_part),
                ),
            }
        }
    }

    /// Adds text, parts, or parts as JSON in a text.
    fn add_content(&mut self, raw: &RawValue) {
        if let Some(text) = as_json_string(raw) {
            // Some instrumentations encode the parts as JSON in a text.
            let looks_like_parts =
                text.trim_start().starts_with("[{\"") && text.contains("\"type\"");
            match serde_json::from_str::<Vec<ObjectOnly<LenientPart<'_>>>>(&text) {
                Ok(_) if looks_like_parts => {
                    let parts: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
                    for part in parts {
                        self.add_part(part);
                    }
                }
                _ if text.is_empty() => {}
                _ => self
                    .parts
                    .push(TranscriptPart::Text(SourceText::from(text.into_owned()))),
            }
            return;
        }
        match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            Ok(parts) => {
                for part in parts {
                    self.add_part(part);
                }
            }
            Err(_) if raw.get() == "null" => {}
            Err(_) => self.parts.push(unknown_part(raw)),
        }
    }

    fn add_part(&mut self, raw: &RawValue) {
        if let Some(text) = as_json_string(raw) {
            self.parts
                .push(TranscriptPart::Text(SourceText::from(text.into_owned())));
            return;
        }
        let Ok(ObjectOnly(wire_part)) =
            serde_json::from_str::<ObjectOnly<LenientPart<'_>>>(raw.get())
        else {
            self.parts.push(unknown_part(raw));
            return;
        };
        if let Some(inner) = wire_part.message_content {
            self.add_part(inner);
            return;
        }
        let kind = wire_part.kind.and_then(as_json_string).unwrap_or_default();
        let id = wire_part.id.and_then(as_json_string).unwrap_or_default();
        let text = || {
            wire_part
                .text
                .or(wire_part.content)
                .and_then(as_json_string)
        };
        let part = match &*kind {
            "text" | "input_text" | "output_text" => {
                text().map(|text| TranscriptPart::Text(SourceText::from(text.into_owned())))
            }
            "reasoning" | "thinking" => wire_part
                .thinking
                .and_then(as_json_string)
                .or_else(text)
                .map(|text| TranscriptPart::Reasoning(SourceText::from(text.into_owned()))),
            // The names of OpenTelemetry, the Vercel AI SDK and Anthropic.
            "tool_call" | "tool-call" | "tool_use" if wire_part.name.is_some() => {
                Some(TranscriptPart::ToolCall(ToolCall {
                    id: SourceText::from(id.into_owned()),
                    name: SourceText::from(text_or_json(wire_part.name)),
                    arguments: SourceText::from(text_or_json(wire_part.arguments)),
                }))
            }
            "tool_call_response" | "tool-result" | "tool_result" => {
                let response = parse_tool_response(wire_part.response.or(wire_part.content));
                let is_error = wire_part.is_error.and_then(|raw| raw.get().parse().ok());
                // The field of the part is explicit. Otherwise the shape of the response shows a failure.
                self.push_tool_result(tool_result_part(
                    &id,
                    response.content,
                    is_error.or(response.failed),
                ));
                return;
            }
            "blob" | "uri" | "file" | "image" | "image_url" | "input_image" | "audio"
            | "input_audio" | "video" | "document" | "media" => Some(TranscriptPart::Media {
                kind: SourceText::from(kind.clone().into_owned()),
                raw: to_owned_json(raw),
            }),
            _ => None,
        };
        self.parts.push(part.unwrap_or_else(|| unknown_part(raw)));
    }

    /// Converts the parts so far to a tool result.
    fn flush_tool_result(&mut self, id: &str) {
        let mut texts = Vec::new();
        let mut other_parts = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            match part {
                TranscriptPart::Text(text) => texts.push(text.0.into_owned()),
                // The tool returned JSON.
                TranscriptPart::Other(json) => texts.push(json.get().to_owned()),
                part => other_parts.push(part),
            }
        }
        let mut parts = vec![tool_result_part(id, texts.join("\n"), None)];
        parts.extend(other_parts);
        self.out.push_message(MessageRole::Tool, parts);
        self.wrote_message = true;
    }

    fn push_tool_result(&mut self, part: TranscriptPart<'static>) {
        self.flush_message();
        self.out.push_message(MessageRole::Tool, vec![part]);
        self.wrote_message = true;
    }

    fn flush_message(&mut self) {
        // An empty message is not written here; `finish` adds one if nothing else was written.
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            self.out.push_message(self.role.clone(), parts);
            self.wrote_message = true;
        }
    }

    fn finish(mut self) {
        self.flush_message();
        // A message without content must remain visible, because it has a role.
        if !self.wrote_message {
            self.out.push_message(self.role.clone(), Vec::new());
        }
    }
}

/// Parses a tool call outside the content.
pub(in crate::transcript) fn parse_tool_call(raw: &RawValue) -> TranscriptPart<'static> {
    let Ok(ObjectOnly(wire)) = serde_json::from_str::<ObjectOnly<LenientToolCall<'_>>>(raw.get())
    else {
        return unknown_part(raw);
    };
    if let Some(inner) = wire.inner {
        return parse_tool_call(inner);
    }
    let ObjectOnly(function) = wire
        .function
        .unwrap_or(ObjectOnly(LenientFunction::default()));
    // A call without a name cannot be a tool call.
    let Some(name) = function.name.or(wire.name) else {
        return unknown_part(raw);
    };
    TranscriptPart::ToolCall(ToolCall {
        id: SourceText::from(text_or_json(wire.id)),
        name: SourceText::from(text_or_json(Some(name))),
        arguments: SourceText::from(text_or_json(function.arguments.or(wire.arguments))),
    })
}

/// Returns a tool result part.
pub(in crate::transcript) fn tool_result_part(
    id: &str,
    content: String,
    is_error: Option<bool>,
) -> TranscriptPart<'static> {
    TranscriptPart::ToolResult(ToolResult {
        call_id: SourceText::from(id.to_owned()),
        content: SourceText::from(content),
        is_error,
        duration_ms: None,
    })
}

/// The response of a tool.
pub(in crate::transcript) struct ToolResponse {
    /// The text.
    pub(in crate::transcript) content: String,
    /// True or false if the response states whether the tool failed.
    pub(in crate::transcript) failed: Option<bool>,
}

/// Parses the response of a tool. The Vercel AI SDK wraps it in `{type, value}`.
pub(in crate::transcript) fn parse_tool_response(raw: Option<&RawValue>) -> ToolResponse {
    #[derive(Deserialize)]
    struct VercelToolOutput<'a> {
        #[serde(borrow, rename = "type")]
        kind: SourceText<'a>,
        #[serde(borrow)]
        value: &'a RawValue,
    }
    let Some(raw) = raw else {
        return ToolResponse {
            content: String::new(),
            failed: None,
        };
    };
    if let Ok(ObjectOnly(wrapped)) =
        serde_json::from_str::<ObjectOnly<VercelToolOutput<'_>>>(raw.get())
    {
        let failed = match &*wrapped.kind {
            "error-text" | "error-json" => Some(true),
            "text" | "json" | "content" => Some(false),
            _ => None,
        };
        // Another object may have the keys `type` and `value` by chance; its `type` is then unknown.
        if failed.is_some() {
            return ToolResponse {
                content: join_texts(wrapped.value),
                failed,
            };
        }
    }
    ToolResponse {
        content: join_texts(raw),
        failed: None,
    }
}

/// Returns text as it is, the texts of a list of text parts, or any other value as JSON.
fn join_texts(raw: &RawValue) -> String {
    #[derive(Deserialize)]
    struct TextOnlyPart<'a> {
        #[serde(borrow, rename = "type")]
        kind: SourceText<'a>,
        #[serde(borrow, alias = "content")]
        text: SourceText<'a>,
    }
    if let Ok(texts) = serde_json::from_str::<Vec<ObjectOnly<TextOnlyPart<'_>>>>(raw.get())
        && !texts.is_empty()
        && texts.iter().all(|ObjectOnly(only)| &*only.kind == "text")
    {
        let texts: Vec<&str> = texts.iter().map(|ObjectOnly(only)| &*only.text).collect();
        return texts.join("\n");
    }
    text_or_json(Some(raw))
}

/// Parses a role in any convention.
pub(in crate::transcript) fn parse_role(role: &str) -> MessageRole<'static> {
    match role.to_ascii_lowercase().as_str() {
        "system" | "developer" => MessageRole::System,
        "user" | "human" => MessageRole::User,
        "assistant" | "model" | "ai" => MessageRole::Assistant,
        "tool" | "function" => MessageRole::Tool,
        _ => MessageRole::Other(SourceText::from(role.to_owned())),
    }
}

/// Returns the text of a JSON string; `None` for any other value.
pub(in crate::transcript) fn as_json_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    Some(crate::transcript::native::json_string(raw)?.0)
}

/// Returns a string as it is, an empty text for null, or any other value as compact JSON.
pub(in crate::transcript) fn text_or_json(raw: Option<&RawValue>) -> String {
    raw.map_or_else(String::new, |raw| text_or_compact_json(raw).0.into_owned())
}

/// Returns JSON, or the JSON in a string.
fn unwrap_json_string(raw: &RawValue) -> Cow<'_, str> {
    as_json_string(raw).unwrap_or(Cow::Borrowed(raw.get()))
}

fn to_owned_json(raw: &RawValue) -> JsonText<'static> {
    // The native format has one record per line, so parts must not contain line breaks.
    let compact = compact_json(raw.get());
    serde_json::from_str::<JsonText<'_>>(&compact).map_or_else(
        |_| JsonText::from_value(&serde_json::Value::Null),
        JsonText::into_owned,
    )
}

fn unknown_part(raw: &RawValue) -> TranscriptPart<'static> {
    TranscriptPart::Other(to_owned_json(raw))
}

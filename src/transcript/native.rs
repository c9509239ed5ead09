//! The native record: OpenAI chat shapes to [`Transcript`], typed and borrowed; no tree is built of what is not asked for.
//!
//! | in the record | becomes |
//! |---|---|
//! | `id`: text or number (its digits); none, null or empty | the id, else the default one |
//! | `role` (case ignored) `developer`; `function` | system; tool |
//! | `content` text; null or absent | a text part; none |
//! | parts `text`, `refusal`; `thinking`, `reasoning` | text; reasoning |
//! | parts `tool_call` (id, name, arguments); `tool_result` with a `tool_call_id` | calls and answers between texts, as written by `write.rs` |
//! | `verdicts` | what another tool decided: see [`SourceVerdict`] |
//! | parts `verbatim` (raw), `media` (kind, raw), likewise from `write.rs` | what stands in `raw`, kept as written |
//! | parts `image_url`, `input_audio`, `file` … ; any other | media; kept as written |
//! | message `refusal`; `reasoning_content`, `reasoning` | text; reasoning, before the text |
//! | `tool_calls`; legacy `function_call` | calls; `arguments` as text, an object as its own text |
//! | a tool message | one result; `metadata.is_error` and `metadata.duration_ms` say so, nothing is guessed |
//!
//! Anthropic's `tool_use` and `tool_result` blocks would hide calls if they were kept as unknown parts: such a record is
//! no native one (`formats/anthropic.rs` reads it). A key given twice is bad, since nobody knows which one counts.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::content::{Content, Object};
use super::{BadRecord, MAX_RECORD};
use crate::model::{
    JsonText, Message, Part, Role, SourceVerdict, Text, ToolCall, ToolResult, Transcript,
};

/// Parses one record. `default_id` names it if it has no id of its own; ids are made unique by the caller.
pub fn parse<'a>(
    record: &'a [u8],
    number: u64,
    default_id: &str,
) -> Result<Transcript<'a>, BadRecord> {
    read(record, default_id).map_err(|fault| BadRecord {
        number,
        why: match fault {
            Fault::Bad(why) => why,
            Fault::Foreign(format) => format!("it is in another shape: {format}"),
        },
    })
}

/// Whether a record with `messages` is in another shape than OpenAI's.
pub(super) fn foreign_shape(record: &[u8]) -> bool {
    memchr::memmem::find(record, b"tool_").is_some()
        && matches!(read(record, ""), Err(Fault::Foreign(_)))
}

/// One message in OpenAI's shapes. The error is a sentence.
pub(super) fn message(raw: &RawValue) -> Result<Message<'_>, String> {
    let Object(message) =
        serde_json::from_str::<Object<RawMessage<'_>>>(raw.get()).map_err(|why| sentence(&why))?;
    message.read().map_err(|fault| match fault {
        Fault::Bad(why) => why,
        Fault::Foreign(format) => format!("it is one of {format}"),
    })
}

/// One part of a message's content; `None` for what cannot be one.
pub(super) fn part_of(raw: &RawValue) -> Option<Part<'_>> {
    part(raw).ok()
}

enum Fault {
    /// Recognised as another format.
    Foreign(&'static str),
    /// A sentence.
    Bad(String),
}

#[derive(Deserialize)]
struct RawRecord<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<Vec<Object<RawMessage<'a>>>>,
    #[serde(borrow, default)]
    metadata: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
    #[serde(default)]
    verdicts: Option<Vec<Object<SourceVerdict>>>,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    role: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Object<RawCall<'a>>>>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<Object<RawFunction<'a>>>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<JsonText<'a>>,
}

#[derive(Deserialize)]
struct RawCall<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<Object<RawFunction<'a>>>,
    #[serde(borrow, default)]
    custom: Option<Object<RawFunction<'a>>>,
}

#[derive(Deserialize)]
struct RawFunction<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default, alias = "input")]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawPart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    duration_ms: Option<&'a RawValue>,
    /// Of what `write.rs` wraps.
    #[serde(borrow, default)]
    raw: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "kind")]
    media: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ResultMeta<'a> {
    #[serde(borrow, default)]
    pub(super) is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) duration_ms: Option<&'a RawValue>,
}

fn read<'a>(record: &'a [u8], default_id: &str) -> Result<Transcript<'a>, Fault> {
    if record.len() >= MAX_RECORD {
        let limit = MAX_RECORD / (1024 * 1024);
        return Err(Fault::Bad(format!("the record is {limit} MiB or longer")));
    }
    let text = std::str::from_utf8(record)
        .map_err(|why| Fault::Bad(format!("not UTF-8 at byte {}", why.valid_up_to())))?;
    let Object(raw): Object<RawRecord<'a>> =
        serde_json::from_str(text).map_err(|why| Fault::Bad(sentence(&why)))?;
    let messages = raw
        .messages
        .ok_or_else(|| Fault::Bad("it has no list `messages`".to_owned()))?;
    Ok(Transcript {
        id: raw
            .id
            .and_then(id_text)
            .unwrap_or_else(|| Text::from(default_id.to_owned())),
        messages: messages
            .into_iter()
            .enumerate()
            .map(|(at, Object(message))| {
                message.read().map_err(|fault| match fault {
                    Fault::Bad(why) => Fault::Bad(format!("message {at}: {why}")),
                    foreign @ Fault::Foreign(_) => foreign,
                })
            })
            .collect::<Result<_, _>>()?,
        metadata: raw.metadata.and_then(object),
        tags: raw.tags.map(tags).unwrap_or_default(),
        verdicts: raw
            .verdicts
            .into_iter()
            .flatten()
            .map(|Object(verdict)| verdict)
            .collect(),
    })
}

/// What serde says, with the place in bytes where the record is one line.
pub(super) fn sentence(why: &serde_json::Error) -> String {
    let text = why.to_string();
    match text.rsplit_once(" at line 1 column ") {
        // Column 0 is the record as a whole.
        Some((what, "0")) => what.replace("invalid type: sequence", "it is a list"),
        Some((what, column)) => format!("{what} at byte {column}"),
        None => text,
    }
}

impl<'a> RawMessage<'a> {
    fn read(self) -> Result<Message<'a>, Fault> {
        let role = role(
            self.role
                .ok_or_else(|| Fault::Bad("it has no `role`".to_owned()))?,
        );
        let metadata = self.metadata.and_then(object);
        let mut parts = Vec::with_capacity(1 + self.tool_calls.as_ref().map_or(0, Vec::len));
        let first = self.reasoning_content.map(RawValue::get);
        // Some servers write the same thoughts under both names.
        let second = self.reasoning.filter(|again| Some(again.get()) != first);
        for thought in self.reasoning_content.into_iter().chain(second) {
            parts.push(string(thought).map_or_else(|| other(thought), Part::Reasoning));
        }
        if role == Role::Tool && !answers_in(self.content.as_ref()) {
            let (content, media) = result_content(self.content)?;
            let meta = metadata
                .as_ref()
                .and_then(|m| serde_json::from_str::<ResultMeta<'_>>(m.get()).ok());
            let meta = meta.as_ref();
            parts.push(Part::ToolResult(ToolResult {
                call_id: self.tool_call_id.map(as_text).unwrap_or_default(),
                content,
                is_error: meta.and_then(|m| of(m.is_error)),
                duration_ms: meta.and_then(|m| of(m.duration_ms)),
            }));
            parts.extend(media);
        } else {
            match self.content {
                None => {}
                Some(Content::Text(text)) if text.is_empty() => {}
                Some(Content::Text(text)) => parts.push(Part::Text(text)),
                Some(Content::Object(json)) => parts.extend(owned_json(&json).map(Part::Other)),
                Some(Content::Parts(raw)) => {
                    for one in raw {
                        parts.push(part(one)?);
                    }
                }
            }
        }
        parts.extend(
            self.refusal
                .and_then(string)
                .filter(|t| !t.is_empty())
                .map(Part::Text),
        );
        for (at, Object(call)) in self.tool_calls.into_iter().flatten().enumerate() {
            let Some(Object(function)) = call.function.or(call.custom) else {
                return Err(Fault::Bad(format!("tool call {at} has no `function`")));
            };
            let id = call.id.map(as_text).unwrap_or_default();
            parts.push(function.read(id, &format_args!("tool call {at}"))?);
        }
        if let Some(Object(function)) = self.function_call {
            parts.push(function.read(Text::default(), &format_args!("its `function_call`"))?);
        }
        Ok(Message {
            role,
            parts,
            metadata,
        })
    }
}

impl<'a> RawFunction<'a> {
    fn read(self, id: Text<'a>, place: &std::fmt::Arguments<'_>) -> Result<Part<'a>, Fault> {
        let Some(name) = self.name.filter(|n| !n.is_empty()) else {
            return Err(Fault::Bad(format!("{place} has no `name`")));
        };
        let arguments = self.arguments.map(as_text).unwrap_or_default();
        Ok(Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
        }))
    }
}

pub(super) fn role(written: Text<'_>) -> Role<'_> {
    // As most files write them, without a second look.
    match &*written {
        "assistant" => return Role::Assistant,
        "tool" => return Role::Tool,
        "user" => return Role::User,
        "system" => return Role::System,
        _ => {}
    }
    match written.to_ascii_lowercase().as_str() {
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        "user" => Role::User,
        "system" | "developer" => Role::System,
        _ => Role::Other(written),
    }
}

fn part(raw: &RawValue) -> Result<Part<'_>, Fault> {
    if let Some(text) = string(raw) {
        return Ok(Part::Text(text));
    }
    let Ok(Object(fields)) = serde_json::from_str::<Object<RawPart<'_>>>(raw.get()) else {
        return Err(Fault::Bad(
            "a part of its `content` is neither text nor an object with a text as `type`"
                .to_owned(),
        ));
    };
    let kind = fields.kind.unwrap_or_default();
    let known = match &*kind {
        "text" | "input_text" | "output_text" => fields.text.and_then(string).map(Part::Text),
        "refusal" => fields.refusal.and_then(string).map(Part::Text),
        "thinking" => fields.thinking.and_then(string).map(Part::Reasoning),
        "reasoning" => fields
            .reasoning
            .or(fields.text)
            .and_then(string)
            .map(Part::Reasoning),
        "tool_call" if fields.name.is_some() => Some(Part::ToolCall(ToolCall {
            id: fields.id.map(as_text).unwrap_or_default(),
            name: fields.name.clone().unwrap_or_default(),
            arguments: fields.arguments.map(as_text).unwrap_or_default(),
        })),
        "tool_result" if fields.tool_call_id.is_some() => Some(Part::ToolResult(ToolResult {
            call_id: fields.tool_call_id.map(as_text).unwrap_or_default(),
            content: fields.content.map(as_text).unwrap_or_default(),
            is_error: of(fields.is_error),
            duration_ms: of(fields.duration_ms),
        })),
        "verbatim" if fields.raw.is_some() => fields.raw.map(other),
        "media" if fields.raw.is_some() && fields.media.is_some() => {
            let kind = fields.media.map(as_text).unwrap_or_default();
            let raw = fields.raw.and_then(json);
            raw.map(|raw| Part::Media { kind, raw })
        }
        "tool_use" | "tool_result" | "server_tool_use" | "mcp_tool_use" => {
            return Err(Fault::Foreign("Anthropic messages (content blocks)"));
        }
        "image_url" | "input_image" | "image" | "input_audio" | "audio" | "audio_url" | "video"
        | "video_url" | "file" | "input_file" | "document" => json(raw).map(|raw| Part::Media {
            kind: kind.clone(),
            raw,
        }),
        _ => return Ok(other(raw)),
    };
    known.ok_or_else(|| Fault::Bad(format!("a part of type {:?} has no text", &*kind)))
}

/// Whether the answers stand among the parts, each with the call's id, as `write.rs` has it where one message holds more
/// than one answer and what is not text.
fn answers_in(content: Option<&Content<'_>>) -> bool {
    let Some(Content::Parts(parts)) = content else {
        return false;
    };
    // Most parts are no answers: their text tells it without a look.
    parts.iter().any(|raw| {
        raw.get().contains("tool_result") && matches!(part(raw), Ok(Part::ToolResult(_)))
    })
}

/// A tool's answer as one text, and what is not text.
fn result_content(content: Option<Content<'_>>) -> Result<(Text<'_>, Vec<Part<'_>>), Fault> {
    match content {
        None => Ok((Text::default(), Vec::new())),
        Some(Content::Text(text)) => Ok((text, Vec::new())),
        Some(Content::Object(json)) => Ok((Text::from(json), Vec::new())),
        Some(Content::Parts(raw)) => {
            let mut all: Option<Text<'_>> = None;
            let mut rest = Vec::new();
            for one in raw {
                match part(one)? {
                    Part::Text(text) => {
                        all = Some(match all {
                            None => text,
                            Some(so_far) => Text::from(format!("{so_far}\n{text}")),
                        });
                    }
                    part => rest.push(part),
                }
            }
            Ok((all.unwrap_or_default(), rest))
        }
    }
}

/// A value of the kind that is wanted; anything else is none.
pub(super) fn of<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// The text of a JSON string; `None` for anything else.
pub(super) fn string(raw: &RawValue) -> Option<Text<'_>> {
    raw.get()
        .starts_with('"')
        .then(|| serde_json::from_str(raw.get()).ok())?
}

/// The text of a JSON string; anything else as written, null as nothing.
pub(super) fn as_text(raw: &RawValue) -> Text<'_> {
    match raw.get() {
        "null" => Text::default(),
        written => string(raw).unwrap_or(Text(Cow::Borrowed(written))),
    }
}

pub(super) fn id_text(raw: &RawValue) -> Option<Text<'_>> {
    let written = raw.get();
    let number = written.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let id = if number {
        Some(Text::from(written))
    } else {
        string(raw)
    };
    id.filter(|id| !id.is_empty())
}

pub(super) fn tags(raw: &RawValue) -> Vec<Text<'_>> {
    if let Some(one) = string(raw) {
        return if one.is_empty() {
            Vec::new()
        } else {
            vec![one]
        };
    }
    let all: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    all.into_iter().filter_map(id_text).collect()
}

fn json(raw: &RawValue) -> Option<JsonText<'_>> {
    serde_json::from_str(raw.get()).ok()
}

pub(super) fn owned_json(text: &str) -> Option<JsonText<'static>> {
    serde_json::from_str::<JsonText<'_>>(text)
        .ok()
        .map(JsonText::into_owned)
}

fn object(json: JsonText<'_>) -> Option<JsonText<'_>> {
    json.get().starts_with('{').then_some(json)
}

/// A part of a kind we do not know.
pub(super) fn other(raw: &RawValue) -> Part<'_> {
    Part::Other(json(raw).expect("a raw value is JSON"))
}

#[cfg(test)]
mod tests;

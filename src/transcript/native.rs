//! The parser of native records: OpenAI chat shapes become a [`Transcript`].
//!
//! Responsible for the meaning of every field. It borrows from the record and builds no tree of unused fields. Does not
//! write: that is `write.rs`.
//!
//! | in the record | becomes |
//! |---|---|
//! | `id`: text or number (its digits); absent, null or empty | the id, else the default id |
//! | `role` (case-insensitive) `developer`; `function` | system; tool |
//! | `content` text; null or absent; an object with one text | a text part; none; that text |
//! | parts `text`, `refusal`; `thinking`, `reasoning` | text; reasoning |
//! | parts `tool_call` (id, name, arguments); `tool_result` with a `tool_call_id` | calls and results between texts, as written by `write.rs` |
//! | `verdicts` | source verdicts: see [`SourceVerdict`] |
//! | parts `verbatim` (raw), `media` (kind, raw), also from `write.rs` | the value of `raw`, kept as written |
//! | parts `image_url`, `input_audio`, `file` … ; any other | media; kept as written |
//! | message `refusal`; `reasoning_content`, `reasoning`, `thinking`, Cohere's `tool_plan` | text; reasoning, before the text |
//! | without `content`: the first of `text`, `message`, `value`, `parts`, `segments` that is not empty | the content |
//! | calls and results under other keys than `tool_calls`; `attachments` | kept as written, so that they count as unread |
//! | without other thoughts: LiteLLM's `thinking_blocks`, else OpenRouter's `reasoning_details` | reasoning |
//! | `audio` with a `transcript`; `images` | text, if the message has none, and media; media |
//! | `tool_calls`, also as the JSON text of a list; legacy `function_call` | calls; `arguments` as text, an object as its own text |
//! | a tool message | one result; `metadata.is_error` and `metadata.duration_ms` apply to it, and nothing is guessed |
//! | Cohere's parts `document` with `data` in a tool message | text of the result |
//!
//! Anthropic's `tool_use` and `tool_result` blocks would hide calls if they were unknown parts. So a record with such
//! blocks isn't native (`formats/anthropic.rs` reads it). A key that occurs twice makes a record bad, because it is
//! ambiguous.

mod json_strings;
mod message_fields;
mod messages;
mod thoughts;
mod tool_calls;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

pub(super) use self::json_strings::json_string;
use self::message_fields::{MessageKey, NativeRecordMessage};
use self::messages::ParsedMessages;
use self::thoughts::find_thoughts;
use self::tool_calls::{RawToolCalls, parse_call_text};
use super::content::{ObjectOnly, RawContent};
use super::{BadRecord, MAX_RECORD};
use crate::model::{
    JsonText, MessageRole, SourceText, SourceVerdict, ToolCall, ToolResult, Transcript,
    TranscriptMessage, TranscriptPart,
};

/// Parses one record. `default_id` is the id if the record has none; the caller makes ids unique.
pub fn parse_native<'a>(
    record: &'a [u8],
    number: u64,
    default_id: &str,
) -> Result<Transcript<'a>, BadRecord> {
    parse_record(record, default_id).map_err(|fault| BadRecord {
        number,
        why: match fault {
            NativeParseError::Invalid(why) => why,
            NativeParseError::ForeignFormat(format) => format!("it is in another shape: {format}"),
        },
    })
}

/// Returns true if a record with `messages` contains content blocks of Anthropic that the native format does not have.
pub(super) fn has_anthropic_blocks(record: &[u8]) -> bool {
    // The search avoids a full parse of most records.
    memchr::memmem::find(record, b"tool_").is_some()
        && matches!(
            parse_record(record, ""),
            Err(NativeParseError::ForeignFormat(_))
        )
}

/// Parses one message in OpenAI's format. The error is a sentence fragment.
pub(super) fn parse_message(raw: &RawValue) -> Result<TranscriptMessage<'_>, String> {
    let ObjectOnly(message) =
        serde_json::from_str::<ObjectOnly<NativeRecordMessage<'_>>>(raw.get())
            .map_err(|why| format_json_error(&why))?;
    message.into_message().map_err(|fault| match fault {
        NativeParseError::Invalid(why) => why,
        NativeParseError::ForeignFormat(format) => format!("it is one of {format}"),
    })
}

/// Parses one part of a message's content; `None` if it isn't a valid part.
pub(super) fn try_parse_part(raw: &RawValue) -> Option<TranscriptPart<'_>> {
    parse_part(raw).ok()
}

/// A reason why a record isn't native.
enum NativeParseError {
    /// The record has another format; the value is its name.
    ForeignFormat(&'static str),
    /// The record is invalid; the value is a sentence fragment.
    Invalid(String),
}

#[derive(Deserialize)]
struct NativeRecord<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<ParsedMessages<'a>>,
    #[serde(borrow, default)]
    metadata: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
    #[serde(default)]
    verdicts: Option<Vec<ObjectOnly<SourceVerdict>>>,
}

#[derive(Deserialize)]
struct NativeRecordToolCall<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<ObjectOnly<NativeRecordFunctionCall<'a>>>,
    #[serde(borrow, default)]
    custom: Option<ObjectOnly<NativeRecordFunctionCall<'a>>>,
}

#[derive(Deserialize)]
struct NativeRecordFunctionCall<'a> {
    #[serde(borrow, default)]
    name: Option<SourceText<'a>>,
    #[serde(borrow, default, alias = "input")]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct NativeRecordPart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<SourceText<'a>>,
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
    name: Option<SourceText<'a>>,
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
    /// The value that `write.rs` wraps.
    #[serde(borrow, default)]
    raw: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "kind")]
    media: Option<&'a RawValue>,
}

/// The metadata of a tool message that applies to its result.
#[derive(Default, Deserialize)]
pub(super) struct NativeResultMetadata<'a> {
    #[serde(borrow, default)]
    pub(super) is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) duration_ms: Option<&'a RawValue>,
}

fn parse_record<'a>(
    record: &'a [u8],
    default_id: &str,
) -> Result<Transcript<'a>, NativeParseError> {
    // The walker cuts longer records, so the JSON would be incomplete.
    if record.len() >= MAX_RECORD {
        let limit = MAX_RECORD / (1024 * 1024);
        return Err(NativeParseError::Invalid(format!(
            "the record is {limit} MiB or longer"
        )));
    }
    let text = std::str::from_utf8(record).map_err(|why| {
        NativeParseError::Invalid(format!("not UTF-8 at byte {}", why.valid_up_to()))
    })?;
    let ObjectOnly(raw): ObjectOnly<NativeRecord<'a>> = serde_json::from_str(text)
        .map_err(|why| NativeParseError::Invalid(format_json_error(&why)))?;
    let ParsedMessages(messages) = raw
        .messages
        .ok_or_else(|| NativeParseError::Invalid("it has no list `messages`".to_owned()))?;
    Ok(Transcript {
        id: raw
            .id
            .and_then(id_text)
            .unwrap_or_else(|| SourceText::from(default_id.to_owned())),
        messages: messages?,
        metadata: raw.metadata.and_then(object_or_none),
        tags: raw.tags.map(parse_tags).unwrap_or_default(),
        verdicts: raw
            .verdicts
            .into_iter()
            .flatten()
            .map(|ObjectOnly(verdict)| verdict)
            .collect(),
    })
}

/// Formats serde's error; the position in a one-line record is a byte.
pub(super) fn format_json_error(why: &serde_json::Error) -> String {
    let text = why.to_string();
    match text.rsplit_once(" at line 1 column ") {
        // serde uses column 0 for an error about the whole record.
        Some((what, "0")) => what.replace("invalid type: sequence", "it is a list"),
        Some((what, column)) => format!("{what} at byte {column}"),
        None => text,
    }
}

impl<'a> NativeRecordMessage<'a> {
    /// Returns the calls, results and files of other programs, each list as a part with its key.
    fn unread_lists(&self) -> Vec<TranscriptPart<'a>> {
        // Some programs write their calls twice, but not the results in these lists.
        let has_calls = self.tool_calls.as_ref().is_some_and(|all| all.count() > 0);
        let lists = [
            ("toolCalls", MessageKey::CamelCaseCalls, !has_calls),
            ("toolInvocations", MessageKey::Invocations, true),
            ("tool_uses", MessageKey::ToolUses, !has_calls),
            ("tool_results", MessageKey::ToolResults, true),
            ("attachments", MessageKey::Attachments, true),
            (
                "experimental_attachments",
                MessageKey::ExperimentalAttachments,
                true,
            ),
        ];
        let lists = lists.into_iter().filter_map(|(name, key, counts)| {
            let raw = self.rare.find(key);
            let raw = raw.filter(|raw| counts && is_filled(raw))?;
            owned_json(&format!("{{\"{name}\":{}}}", raw.get()))
        });
        lists.map(TranscriptPart::Other).collect()
    }

    fn into_message(self) -> Result<TranscriptMessage<'a>, NativeParseError> {
        let unread_lists = self.unread_lists();
        let mut parts = find_thoughts(&self);
        let rare = self.rare;
        let role = parse_role(
            self.role
                .ok_or_else(|| NativeParseError::Invalid("it has no `role`".to_owned()))?,
        );
        // Programs without OpenAI's `content` use one of these keys.
        let others = [
            rare.find(MessageKey::Text),
            rare.find(MessageKey::Message),
            rare.find(MessageKey::Value),
            rare.find(MessageKey::Parts),
            rare.find(MessageKey::Segments),
        ];
        let mut others = others.into_iter().flatten().filter(|raw| is_filled(raw));
        let content = self
            .content
            .or_else(|| others.find_map(|raw| parse_or_none(Some(raw))));
        let metadata = self.metadata.and_then(object_or_none);
        parts.reserve_exact(1 + self.tool_calls.as_ref().map_or(0, RawToolCalls::count));
        // A tool message normally is one result. Parts with call ids are several results, as `write.rs`
        // writes them.
        if role == MessageRole::Tool && !has_result_parts(content.as_ref()) {
            let (content, media) = split_result_content(content)?;
            // OpenAI has no field for the error of a tool, so dicta keeps it in the metadata.
            let meta = metadata
                .as_ref()
                .and_then(|m| serde_json::from_str::<NativeResultMetadata<'_>>(m.get()).ok());
            let meta = meta.as_ref();
            parts.push(TranscriptPart::ToolResult(ToolResult {
                call_id: self.tool_call_id.map(text_or_json).unwrap_or_default(),
                content,
                is_error: meta.and_then(|m| parse_or_none(m.is_error)),
                duration_ms: meta.and_then(|m| parse_or_none(m.duration_ms)),
            }));
            parts.extend(media);
        } else {
            match content {
                None => {}
                // An empty text is not a part: OpenAI writes it next to calls.
                Some(RawContent::Text(text)) if text.is_empty() => {}
                Some(RawContent::Text(text)) => parts.push(TranscriptPart::Text(text)),
                Some(RawContent::Object(json)) => parts.extend(parse_content_object(&json)),
                Some(RawContent::Parts(raw)) => {
                    for part in raw {
                        parts.push(parse_part(part)?);
                    }
                }
            }
        }
        add_media(
            rare.find(MessageKey::Audio),
            rare.find(MessageKey::Images),
            &mut parts,
        );
        parts.extend(unread_lists);
        parts.extend(
            self.refusal
                .and_then(json_string)
                .filter(|t| !t.is_empty())
                .map(TranscriptPart::Text),
        );
        let calls = match self.tool_calls {
            Some(RawToolCalls::List(calls)) => calls,
            Some(RawToolCalls::Text(text)) => {
                parts.extend(parse_call_text(&text)?);
                Vec::new()
            }
            None => Vec::new(),
        };
        for (at, ObjectOnly(call)) in calls.into_iter().enumerate() {
            // OpenAI's custom tools have `custom` instead of `function`.
            let Some(ObjectOnly(function)) = call.function.or(call.custom) else {
                return Err(NativeParseError::Invalid(format!(
                    "tool call {at} has no `function`"
                )));
            };
            let id = call.id.map(text_or_json).unwrap_or_default();
            parts.push(function.into_tool_call(id, &format_args!("tool call {at}"))?);
        }
        // The legacy call has no id.
        if let Some(ObjectOnly(function)) = self.function_call {
            parts.push(
                function
                    .into_tool_call(SourceText::default(), &format_args!("its `function_call`"))?,
            );
        }
        Ok(TranscriptMessage {
            role,
            parts,
            metadata,
        })
    }
}

impl<'a> NativeRecordFunctionCall<'a> {
    fn into_tool_call(
        self,
        id: SourceText<'a>,
        place: &std::fmt::Arguments<'_>,
    ) -> Result<TranscriptPart<'a>, NativeParseError> {
        let Some(name) = self.name.filter(|n| !n.is_empty()) else {
            return Err(NativeParseError::Invalid(format!("{place} has no `name`")));
        };
        let arguments = self.arguments.map(text_or_json).unwrap_or_default();
        Ok(TranscriptPart::ToolCall(ToolCall {
            id,
            name,
            arguments,
        }))
    }
}

/// Parses a role, case-insensitive.
pub(super) fn parse_role(written: SourceText<'_>) -> MessageRole<'_> {
    // The usual spelling needs no lower-case copy.
    match &*written {
        "assistant" => return MessageRole::Assistant,
        "tool" => return MessageRole::Tool,
        "user" => return MessageRole::User,
        "system" => return MessageRole::System,
        _ => {}
    }
    match written.to_ascii_lowercase().as_str() {
        "assistant" => MessageRole::Assistant,
        "tool" | "function" => MessageRole::Tool,
        "user" => MessageRole::User,
        "system" | "developer" => MessageRole::System,
        _ => MessageRole::Other(written),
    }
}

fn parse_part(raw: &RawValue) -> Result<TranscriptPart<'_>, NativeParseError> {
    // OpenAI allows a plain string among the parts.
    if let Some(text) = json_string(raw) {
        return Ok(TranscriptPart::Text(text));
    }
    let Ok(ObjectOnly(fields)) =
        serde_json::from_str::<ObjectOnly<NativeRecordPart<'_>>>(raw.get())
    else {
        return Err(NativeParseError::Invalid(
            "a part of its `content` is neither text nor an object with a text as `type`"
                .to_owned(),
        ));
    };
    let kind = fields.kind.unwrap_or_default();
    let part = match &*kind {
        "text" | "input_text" | "output_text" => {
            fields.text.and_then(json_string).map(TranscriptPart::Text)
        }
        "refusal" => fields
            .refusal
            .and_then(json_string)
            .map(TranscriptPart::Text),
        "thinking" => fields
            .thinking
            .and_then(join_texts)
            .map(TranscriptPart::Reasoning),
        "reasoning" => fields
            .reasoning
            .or(fields.text)
            .and_then(json_string)
            .map(TranscriptPart::Reasoning),
        "tool_call" if fields.name.is_some() => Some(TranscriptPart::ToolCall(ToolCall {
            id: fields.id.map(text_or_json).unwrap_or_default(),
            name: fields.name.clone().unwrap_or_default(),
            arguments: fields.arguments.map(text_or_json).unwrap_or_default(),
        })),
        "tool_result" if fields.tool_call_id.is_some() => {
            Some(TranscriptPart::ToolResult(ToolResult {
                call_id: fields.tool_call_id.map(text_or_json).unwrap_or_default(),
                content: fields.content.map(text_or_json).unwrap_or_default(),
                is_error: parse_or_none(fields.is_error),
                duration_ms: parse_or_none(fields.duration_ms),
            }))
        }
        "verbatim" if fields.raw.is_some() => fields.raw.map(unknown_part),
        "media" if fields.raw.is_some() && fields.media.is_some() => {
            let kind = fields.media.map(text_or_json).unwrap_or_default();
            let raw = fields.raw.and_then(parse_json_text);
            raw.map(|raw| TranscriptPart::Media { kind, raw })
        }
        // These types carry calls and results, so the record needs the reader of Anthropic's format.
        "tool_use" | "tool_result" | "server_tool_use" | "mcp_tool_use" => {
            return Err(NativeParseError::ForeignFormat(
                "Anthropic messages (content blocks)",
            ));
        }
        "image_url" | "input_image" | "image" | "input_audio" | "audio" | "audio_url" | "video"
        | "video_url" | "file" | "input_file" | "document" => {
            parse_json_text(raw).map(|raw| TranscriptPart::Media {
                kind: kind.clone(),
                raw,
            })
        }
        _ => return Ok(unknown_part(raw)),
    };
    part.ok_or_else(|| {
        NativeParseError::Invalid(format!("a part of type {:?} has no text", &*kind))
    })
}

/// Parses content that is an object instead of text: a part, or an object with one text, such as Arena-Hard's
/// `{"answer": …}`. Other objects are kept as written.
fn parse_content_object(json: &str) -> Option<TranscriptPart<'static>> {
    let raw: &RawValue = serde_json::from_str(json).ok()?;
    let ObjectOnly(fields) = serde_json::from_str::<ObjectOnly<NativeRecordPart<'_>>>(json).ok()?;
    if fields.kind.is_some() {
        let part = parse_part(raw).unwrap_or_else(|_| unknown_part(raw));
        return Some(part.into_owned());
    }
    let entries: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    // A second key may change the meaning of the text.
    let only = entries.values().next().filter(|_| entries.len() == 1);
    only.and_then(|only| json_string(only))
        .map(TranscriptPart::Text)
        .or_else(|| owned_json(json).map(TranscriptPart::Other))
        .map(TranscriptPart::into_owned)
}

/// Returns a text, or the texts of a list of text parts. Mistral writes its reasoning as such a list.
fn join_texts(raw: &RawValue) -> Option<SourceText<'_>> {
    if let Some(text) = json_string(raw) {
        return Some(text);
    }
    let pieces: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
    let texts: Option<Vec<SourceText<'_>>> = pieces
        .into_iter()
        .map(|piece| match parse_part(piece) {
            Ok(TranscriptPart::Text(text) | TranscriptPart::Reasoning(text)) => Some(text),
            _ => None,
        })
        .collect();
    let texts: Vec<String> = texts?.into_iter().map(|text| text.0.into_owned()).collect();
    Some(SourceText::from(texts.join("\n")))
}

/// Returns true if the parts contain tool results with call ids. `write.rs` writes this if one message contains several
/// results or other parts.
fn has_result_parts(content: Option<&RawContent<'_>>) -> bool {
    let Some(RawContent::Parts(parts)) = content else {
        return false;
    };
    // A search of the text is faster than a parse of every part, and most parts aren't tool results.
    parts.iter().any(|raw| {
        raw.get().contains("tool_result")
            && matches!(parse_part(raw), Ok(TranscriptPart::ToolResult(_)))
    })
}

/// Returns the data of a document in which Cohere's API expects a tool result: its text, or JSON as written.
pub(super) fn parse_document_data(raw: &RawValue) -> Option<SourceText<'_>> {
    #[derive(Deserialize)]
    struct CohereDocumentPart<'a> {
        #[serde(borrow)]
        document: ObjectOnly<CohereDocument<'a>>,
    }
    #[derive(Deserialize)]
    struct CohereDocument<'a> {
        #[serde(borrow)]
        data: &'a RawValue,
    }
    // The search avoids a second parse of most parts.
    if !raw.get().contains("\"document\"") {
        return None;
    }
    let ObjectOnly(part) = parse_or_none::<ObjectOnly<CohereDocumentPart<'_>>>(Some(raw))?;
    Some(text_or_json(part.document.0.data))
}

/// Splits the content of a tool message into one text and the parts that are not text.
fn split_result_content(
    content: Option<RawContent<'_>>,
) -> Result<(SourceText<'_>, Vec<TranscriptPart<'_>>), NativeParseError> {
    match content {
        None => Ok((SourceText::default(), Vec::new())),
        Some(RawContent::Text(text)) => Ok((text, Vec::new())),
        Some(RawContent::Object(json)) => Ok((SourceText::from(json), Vec::new())),
        Some(RawContent::Parts(raw)) => {
            let mut joined_text: Option<SourceText<'_>> = None;
            let mut other_parts = Vec::new();
            for raw in raw {
                // Only a part that is not text is searched for a document.
                let part = match parse_part(raw)? {
                    part @ TranscriptPart::Text(_) => part,
                    part => parse_document_data(raw).map_or(part, TranscriptPart::Text),
                };
                match part {
                    TranscriptPart::Text(text) => {
                        joined_text = Some(match joined_text {
                            None => text,
                            Some(so_far) => SourceText::from(format!("{so_far}\n{text}")),
                        });
                    }
                    part => other_parts.push(part),
                }
            }
            Ok((joined_text.unwrap_or_default(), other_parts))
        }
    }
}

/// Adds the words of a spoken answer, unless the message has a text, then the audio, then images.
fn add_media<'a>(
    audio: Option<&'a RawValue>,
    images: Option<&'a RawValue>,
    parts: &mut Vec<TranscriptPart<'a>>,
) {
    #[derive(Deserialize)]
    struct SpokenAnswer<'a> {
        #[serde(borrow, default)]
        transcript: Option<&'a RawValue>,
    }
    let is_text = |part: &TranscriptPart<'_>| matches!(part, TranscriptPart::Text(_));
    if !parts.iter().any(is_text) {
        let answer: Option<ObjectOnly<SpokenAnswer<'_>>> = parse_or_none(audio);
        let words = answer.and_then(|ObjectOnly(answer)| json_string(answer.transcript?));
        let words = words.filter(|words| !words.is_empty());
        parts.extend(words.map(TranscriptPart::Text));
    }
    for (kind, raw) in [("audio", audio), ("image", images)] {
        let raw = raw.filter(|raw| is_filled(raw));
        if let Some(raw) = raw.and_then(parse_json_text) {
            let kind = SourceText::from(kind);
            parts.push(TranscriptPart::Media { kind, raw });
        }
    }
}

/// Returns true if a value is not an empty text, list or object.
fn is_filled(raw: &RawValue) -> bool {
    !matches!(raw.get(), "\"\"" | "[]" | "{}")
}

/// Parses a value; `None` if it is absent or has another type.
pub(super) fn parse_or_none<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// Returns the text of a JSON string, an empty text for null, or any other value as written.
pub(super) fn text_or_json(raw: &RawValue) -> SourceText<'_> {
    match raw.get() {
        "null" => SourceText::default(),
        written => json_string(raw).unwrap_or(SourceText(Cow::Borrowed(written))),
    }
}

/// Returns an id: a string that is not empty, or the digits of a number.
pub(super) fn id_text(raw: &RawValue) -> Option<SourceText<'_>> {
    let written = raw.get();
    let is_number = written.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let id = if is_number {
        Some(SourceText::from(written))
    } else {
        json_string(raw)
    };
    id.filter(|id| !id.is_empty())
}

/// Parses tags: one text or a list of texts and numbers.
pub(super) fn parse_tags(raw: &RawValue) -> Vec<SourceText<'_>> {
    if let Some(one) = json_string(raw) {
        return if one.is_empty() {
            Vec::new()
        } else {
            vec![one]
        };
    }
    let all: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    all.into_iter().filter_map(id_text).collect()
}

fn parse_json_text(raw: &RawValue) -> Option<JsonText<'_>> {
    serde_json::from_str(raw.get()).ok()
}

/// Parses JSON and copies it.
pub(super) fn owned_json(text: &str) -> Option<JsonText<'static>> {
    serde_json::from_str::<JsonText<'_>>(text)
        .ok()
        .map(JsonText::into_owned)
}

fn object_or_none(json: JsonText<'_>) -> Option<JsonText<'_>> {
    json.get().starts_with('{').then_some(json)
}

/// Returns a part of an unknown kind, as written.
pub(super) fn unknown_part(raw: &RawValue) -> TranscriptPart<'_> {
    TranscriptPart::Other(parse_json_text(raw).expect("a raw value is JSON"))
}

#[cfg(test)]
mod tests;

//! One request to a model API and its reply, as all wire formats share them.
//!
//! Responsible for the two bodies, for API errors, and for token counts in OpenAI's spelling. Does not know a wire
//! format: those are `openai.rs` and `gemini.rs`. Does not read log records: that is `api_log.rs`.

use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::super::fields::{RawFields, list_items};
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::native::{json_string, text_or_json};
use super::response_items::ConversationBuilder;
use super::streamed_reply::{assemble_chunks, assemble_text};
use crate::model::{MessageRole, SourceText, TranscriptMessage, TranscriptPart};

/// The body of a request or reply.
#[derive(Debug, Clone, Default)]
pub(super) enum ExchangeBody<'a> {
    /// The log has no body.
    #[default]
    Missing,
    /// Plain text.
    Plain(SourceText<'a>),
    /// The JSON object of the API.
    Object(RawFields<'a>),
    /// A list of messages, items, or chunks of a streamed reply.
    List(Vec<&'a RawValue>),
    /// A stream that dicta cannot put together; the text is the reason as a sentence fragment.
    Unreadable(String),
}

/// A buffer for JSON text that was decoded from a JSON string.
pub(super) type UnpackedText = OnceCell<String>;

impl<'a> ExchangeBody<'a> {
    /// Returns the body in a log: the value itself, the JSON in a string, or a streamed reply put together. `unpacked`
    /// keeps the text.
    pub(super) fn from_raw(raw: Option<&'a RawValue>, unpacked: &'a UnpackedText) -> Self {
        let Some(raw) = raw else { return Self::Missing };
        let streamed = match json_string(raw) {
            Some(text) => assemble_text(&text),
            None => list_items(raw).and_then(|chunks| assemble_chunks(&chunks)),
        };
        match streamed {
            Some(Ok(reply)) => {
                let json = unpacked.get_or_init(|| reply.json);
                return serde_json::from_str(json).map_or(Self::Missing, Self::from_json);
            }
            Some(Err(why)) => return Self::Unreadable(why),
            None => {}
        }
        let Some(text) = json_string(raw) else {
            return Self::from_json(raw);
        };
        let text: &'a str = unpacked.get_or_init(|| text.0.into_owned());
        let json = text.trim_start().starts_with(['{', '[']);
        match serde_json::from_str::<&RawValue>(text) {
            // A text such as `42` is valid JSON but is meant as text.
            Ok(raw) if json => Self::from_json(raw),
            _ => Self::Plain(SourceText::from(text)),
        }
    }

    fn from_json(raw: &'a RawValue) -> Self {
        if let Some(fields) = RawFields::from_raw(raw) {
            return Self::Object(fields);
        }
        list_items(raw).map_or_else(|| Self::Plain(text_or_json(raw)), Self::List)
    }

    /// Returns the object, if the body is one.
    pub(super) fn object(&self) -> Option<&RawFields<'a>> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// Returns true if the body is an object with one of these keys.
    pub(super) fn has_any(&self, keys: &[&str]) -> bool {
        self.object()
            .is_some_and(|fields| fields.get_first(keys).is_some())
    }
}

/// The conversations of an exchange with their metadata.
#[derive(Debug, Default)]
pub(super) struct ApiExchange<'a> {
    /// The id of the reply.
    pub(super) id: Option<SourceText<'a>>,
    /// One conversation per choice of the reply, at least one.
    pub(super) conversations: Vec<Vec<TranscriptMessage<'a>>>,
    /// The metadata of the transcript.
    pub(super) meta: MetadataBuilder,
    /// The API as a word, such as `openai`.
    pub(super) source: &'static str,
}

/// Returns an API error as a sentence fragment, if the reply is one.
pub(super) fn api_error(answer: &RawFields<'_>) -> Option<String> {
    let error = answer.get("error")?;
    // Some servers send the error as text instead of an object.
    let Some(fields) = RawFields::from_raw(error) else {
        let text = text_or_json(error);
        // An empty text states no error.
        return (!text.is_empty()).then(|| format!("the API answered with an error: {text}"));
    };
    let what = fields
        .text_or_json("message")
        .unwrap_or_else(|| text_or_json(error));
    let code = fields
        .get_first(&["code", "type", "status"])
        .map(text_or_json);
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    Some(format!("the API answered with an error: {what}{code}"))
}

/// Parses token counts in the spelling of OpenAI's APIs and compatible ones.
pub(super) fn parse_usage(usage: &RawFields<'_>) -> SourceUsage {
    // Chat completions and the Responses API name the same counts differently; Codex has keys of its own.
    let first = |keys: &[&str]| keys.iter().find_map(|key| usage.integer(key));
    let detail_count = |objects: &[&str], key: &str| {
        let mut objects = objects.iter().filter_map(|name| usage.object(name));
        objects.find_map(|details| details.integer(key))
    };
    SourceUsage {
        input: first(&["prompt_tokens", "input_tokens"]),
        output: first(&["completion_tokens", "output_tokens"]),
        total: first(&["total_tokens"]),
        cached: first(&["cached_input_tokens"]).or_else(|| {
            detail_count(
                &["prompt_tokens_details", "input_tokens_details"],
                "cached_tokens",
            )
        }),
        thinking: first(&["reasoning_output_tokens"]).or_else(|| {
            let details = ["completion_tokens_details", "output_tokens_details"];
            detail_count(&details, "reasoning_tokens")
        }),
    }
}

/// Returns a message with one text.
pub(super) fn text_message<'a>(
    role: MessageRole<'a>,
    text: SourceText<'a>,
) -> TranscriptMessage<'a> {
    TranscriptMessage {
        role,
        parts: vec![TranscriptPart::Text(text)],
        metadata: None,
    }
}

/// Adds a list of items or messages to a conversation.
pub(super) fn add_items<'a>(
    conversation: &mut ConversationBuilder<'a>,
    all: &[&'a RawValue],
) -> Result<(), String> {
    for (at, raw) in all.iter().enumerate() {
        // A broken item makes the conversation incomplete, so the record is a fault.
        conversation
            .add_item(raw)
            .map_err(|why| format!("item {at}: {why}"))?;
    }
    Ok(())
}

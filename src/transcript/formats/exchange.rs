//! One exchange with a model's API: what was asked and what was answered, in whichever dialect the bodies are.
//!
//! Owns OpenAI's chat completions (and the older completions), its Responses, and the choice between dialects; Gemini's
//! are `gemini.rs`. A reply with several choices is as many conversations. An answer that is an API's error is no
//! conversation: it is told as what it says. Knows nothing of how a log wraps the two: that is `openai.rs`.

use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::super::fields::{RawFields, list_items};
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::native::{json_string, text_or_json};
use super::response_items::{ConversationBuilder, ItemError};
use crate::model::{MessageRole, SourceText, TranscriptMessage, TranscriptPart};

/// One side of an exchange.
#[derive(Debug, Clone, Default)]
pub(super) enum ExchangeBody<'a> {
    /// Not there.
    #[default]
    Missing,
    /// Words alone.
    Plain(SourceText<'a>),
    /// The API's object.
    Object(RawFields<'a>),
    /// A list of messages, items or pieces of an answer.
    List(Vec<&'a RawValue>),
}

/// A text that was unpacked from a JSON string.
pub(super) type UnpackedText = OnceCell<String>;

impl<'a> ExchangeBody<'a> {
    /// A side as a log holds it: the body itself, or its JSON as a string.
    pub(super) fn from_raw(raw: Option<&'a RawValue>, held: &'a UnpackedText) -> Self {
        let Some(raw) = raw else { return Self::Missing };
        let Some(text) = json_string(raw) else {
            return Self::from_json(raw);
        };
        let text: &'a str = held.get_or_init(|| text.0.into_owned());
        let json = text.trim_start().starts_with(['{', '[']);
        match serde_json::from_str::<&RawValue>(text) {
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

    /// The object, where it is one.
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

/// What was said, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct ApiExchange<'a> {
    /// The API's own id of the answer.
    pub(super) id: Option<SourceText<'a>>,
    /// A conversation for each choice of the reply; at least one.
    pub(super) conversations: Vec<Vec<TranscriptMessage<'a>>>,
    /// Of all of it.
    pub(super) meta: MetadataBuilder,
    /// Kinds of items that are not known.
    pub(super) unknown_kinds: Vec<String>,
    /// Whose API it is, in a word.
    pub(super) source: &'static str,
}

/// An API's error, as a sentence.
pub(super) fn api_error(answer: &RawFields<'_>) -> Option<String> {
    let error = answer.get("error")?;
    let Some(fields) = RawFields::from_raw(error) else {
        let told = text_or_json(error);
        return (!told.is_empty()).then(|| format!("the API answered with an error: {told}"));
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

/// Tokens as OpenAI's APIs and those that follow them count them.
pub(super) fn parse_usage(usage: &RawFields<'_>) -> SourceUsage {
    let first = |keys: &[&str]| keys.iter().find_map(|key| usage.integer(key));
    let within = |objects: &[&str], key: &str| {
        let mut objects = objects.iter().filter_map(|name| usage.object(name));
        objects.find_map(|details| details.integer(key))
    };
    SourceUsage {
        input: first(&["prompt_tokens", "input_tokens"]),
        output: first(&["completion_tokens", "output_tokens"]),
        total: first(&["total_tokens"]),
        cached: first(&["cached_input_tokens"]).or_else(|| {
            within(
                &["prompt_tokens_details", "input_tokens_details"],
                "cached_tokens",
            )
        }),
        thinking: first(&["reasoning_output_tokens"]).or_else(|| {
            let details = ["completion_tokens_details", "output_tokens_details"];
            within(&details, "reasoning_tokens")
        }),
    }
}

/// A message of one text.
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

/// Adds a list of items or messages.
pub(super) fn add_items<'a>(
    talk: &mut ConversationBuilder<'a>,
    all: &[&'a RawValue],
    odd: &mut Vec<String>,
) -> Result<(), String> {
    for (at, raw) in all.iter().enumerate() {
        match talk.add_item(raw) {
            Ok(()) => {}
            Err(ItemError::UnknownKind(kind)) => odd.push(kind),
            Err(ItemError::Invalid(why)) => return Err(format!("item {at}: {why}")),
        }
    }
    Ok(())
}

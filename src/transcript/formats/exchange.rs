//! One exchange with a model's API: what was asked and what was answered, in whichever dialect the bodies are.
//!
//! Owns OpenAI's chat completions (and the older completions), its Responses, and the choice between dialects; Gemini's
//! are `gemini.rs`. A reply with several choices is as many conversations. An answer that is an API's error is no
//! conversation: it is told as what it says. Knows nothing of how a log wraps the two: that is `openai.rs`.

use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::super::fields::{RawFields, list_items};
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::native::{json_string, parse_message, text_or_json};
use super::gemini;
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

    fn has_any(&self, keys: &[&str]) -> bool {
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

/// Reads both sides. The error is a sentence.
pub(super) fn parse_exchange<'a>(
    asked: &ExchangeBody<'a>,
    answered: &ExchangeBody<'a>,
) -> Result<ApiExchange<'a>, String> {
    if let Some(why) = answered.object().and_then(api_error) {
        return Err(why);
    }
    let mut found = ApiExchange {
        source: "openai",
        ..ApiExchange::default()
    };
    if let Some(asked) = asked.object() {
        found.meta.set_raw("model", asked.get("model"));
    }
    if asked.has_any(&["contents"]) || gemini::is_reply(answered) {
        found.source = "gemini";
        gemini::parse_exchange(asked, answered, &mut found)?;
    } else if asked.has_any(&["input", "instructions"]) || is_response(answered) {
        parse_responses(asked, answered, &mut found)?;
    } else if is_anthropic(answered) {
        return Err("its answer is an Anthropic message; such pairs are not read yet".to_owned());
    } else {
        parse_chat(asked, answered, &mut found)?;
    }
    if found.conversations.iter().all(Vec::is_empty) {
        return Err("it holds no message".to_owned());
    }
    Ok(found)
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

fn is_response(answered: &ExchangeBody<'_>) -> bool {
    match answered {
        ExchangeBody::Object(fields) => {
            fields.text("object").as_deref() == Some("response") || fields.list("output").is_some()
        }
        _ => false,
    }
}

fn is_anthropic(answered: &ExchangeBody<'_>) -> bool {
    let Some(fields) = answered.object() else {
        return false;
    };
    fields.text("type").as_deref() == Some("message") && fields.list("content").is_some()
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

/// What the answer says of itself; the same for the message and for the whole.
fn write_reply_metadata(answer: &RawFields<'_>, meta: &mut MetadataBuilder) {
    meta.set_raw("model", answer.get("model"));
    meta.set_raw("timestamp", answer.get_first(&["created", "created_at"]));
    if let Some(usage) = answer.object("usage") {
        meta.set("usage", parse_usage(&usage).to_json());
        meta.set_raw("cost_usd", usage.get_first(&["cost_usd", "cost"]));
    }
}

/// Gives a message what is known of it, its own metadata last.
fn with_metadata(
    mut message: TranscriptMessage<'_>,
    mut meta: MetadataBuilder,
) -> TranscriptMessage<'_> {
    if let Some(own) = &message.metadata
        && let Ok(own) = RawFields::parse(own.get())
    {
        meta.merge_source_fields(&own);
    }
    message.metadata = meta.finish();
    message
}

fn parse_chat<'a>(
    asked: &ExchangeBody<'a>,
    answered: &ExchangeBody<'a>,
    found: &mut ApiExchange<'a>,
) -> Result<(), String> {
    let mut before = Vec::new();
    match asked {
        ExchangeBody::Missing => {}
        ExchangeBody::Plain(text) => before.push(text_message(MessageRole::User, text.clone())),
        ExchangeBody::List(all) => before = parse_messages(all)?,
        ExchangeBody::Object(fields) => {
            if let Some(all) = fields.list("messages") {
                before = parse_messages(&all)?;
            } else if let Some(prompt) = fields.text("prompt") {
                before.push(text_message(MessageRole::User, prompt));
            }
        }
    }
    let answer = match answered {
        ExchangeBody::Missing => {
            found.conversations.push(before);
            return Ok(());
        }
        ExchangeBody::Plain(text) => {
            before.push(text_message(MessageRole::Assistant, text.clone()));
            found.conversations.push(before);
            return Ok(());
        }
        ExchangeBody::List(all) => {
            before.extend(parse_messages(all)?);
            found.conversations.push(before);
            return Ok(());
        }
        ExchangeBody::Object(answer) => answer,
    };
    found.id = answer.id_text("id");
    write_reply_metadata(answer, &mut found.meta);
    let choices = answer.list("choices").unwrap_or_default();
    for (at, raw) in choices.iter().enumerate() {
        let choice = RawFields::from_raw(raw).ok_or_else(|| format!("choice {at} is no object"))?;
        let reply = match (choice.get("message"), choice.text("text")) {
            (Some(raw), _) => parse_message(raw).map_err(|why| format!("choice {at}: {why}"))?,
            (None, Some(text)) => text_message(MessageRole::Assistant, text),
            (None, None) => return Err(format!("choice {at} has no `message`")),
        };
        let mut meta = MetadataBuilder::default();
        write_reply_metadata(answer, &mut meta);
        meta.set_raw("stop_reason", choice.get("finish_reason"));
        if choices.len() == 1 {
            found
                .meta
                .set_raw("stop_reason", choice.get("finish_reason"));
        }
        let mut talk = before.clone();
        talk.push(with_metadata(reply, meta));
        found.conversations.push(talk);
    }
    if choices.is_empty() {
        // Some servers answer with the message itself.
        let own = answer.get("message").map(parse_message);
        let reply = match own {
            Some(reply) => reply?,
            None if answer.has("messages") || !answer.has("choices") && answer.has("prompt") => {
                found.conversations.push(before);
                return Ok(());
            }
            None if answer.has("role") => parse_bare_message(answer)?,
            None => {
                let keys: Vec<String> = answer
                    .iter()
                    .take(6)
                    .map(|(key, _)| format!("{key:?}"))
                    .collect();
                let keys = keys.join(", ");
                return Err(format!("its answer has no `choices` (it has {keys})"));
            }
        };
        before.push(with_metadata(reply, MetadataBuilder::default()));
        found.conversations.push(before);
    }
    Ok(())
}

/// An answer that is a message with its text alone.
fn parse_bare_message<'a>(answer: &RawFields<'a>) -> Result<TranscriptMessage<'a>, String> {
    let text = answer.text("content");
    let text = text.ok_or_else(|| "its answer's `content` is no text".to_owned())?;
    Ok(text_message(MessageRole::Assistant, text))
}

fn parse_messages<'a>(all: &[&'a RawValue]) -> Result<Vec<TranscriptMessage<'a>>, String> {
    let all = all.iter().enumerate();
    all.map(|(at, raw)| parse_message(raw).map_err(|why| format!("message {at}: {why}")))
        .collect()
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

fn parse_responses<'a>(
    asked: &ExchangeBody<'a>,
    answered: &ExchangeBody<'a>,
    found: &mut ApiExchange<'a>,
) -> Result<(), String> {
    let mut talk = ConversationBuilder::default();
    let of = |body: &ExchangeBody<'a>, key: &str| body.object().and_then(|fields| fields.get(key));
    let instructions = of(asked, "instructions").or_else(|| of(answered, "instructions"));
    if let Some(raw) = instructions {
        match (json_string(raw), list_items(raw)) {
            (Some(text), _) => {
                talk.push_message(MessageRole::System, vec![TranscriptPart::Text(text)])
            }
            (None, Some(all)) => add_items(&mut talk, &all, &mut found.unknown_kinds)?,
            (None, None) => {}
        }
    }
    match of(asked, "input").or_else(|| of(answered, "input")) {
        Some(raw) => match (json_string(raw), list_items(raw)) {
            (Some(text), _) => {
                talk.push_message(MessageRole::User, vec![TranscriptPart::Text(text)])
            }
            (None, Some(all)) => add_items(&mut talk, &all, &mut found.unknown_kinds)?,
            (None, None) => return Err("its `input` is neither text nor a list".to_owned()),
        },
        None => match asked {
            ExchangeBody::Plain(text) => {
                talk.push_message(MessageRole::User, vec![TranscriptPart::Text(text.clone())])
            }
            ExchangeBody::List(all) => add_items(&mut talk, all, &mut found.unknown_kinds)?,
            ExchangeBody::Missing | ExchangeBody::Object(_) => {}
        },
    }
    talk.close_message();
    let before = talk.messages.len();
    let mut meta = MetadataBuilder::default();
    match answered {
        ExchangeBody::Missing => {}
        ExchangeBody::Plain(text) => {
            talk.add_assistant_parts(vec![TranscriptPart::Text(text.clone())])
        }
        ExchangeBody::List(all) => add_items(&mut talk, all, &mut found.unknown_kinds)?,
        ExchangeBody::Object(answer) => {
            found.id = answer.id_text("id");
            match answer
                .get("output")
                .map(|raw| (json_string(raw), list_items(raw)))
            {
                Some((Some(text), _)) => talk.add_assistant_parts(vec![TranscriptPart::Text(text)]),
                Some((None, Some(all))) => add_items(&mut talk, &all, &mut found.unknown_kinds)?,
                Some((None, None)) | None => {}
            }
            write_response_metadata(answer, &mut meta);
            write_response_metadata(answer, &mut found.meta);
        }
    }
    // Of several messages of one answer the last is what it came to.
    let mut replied = talk.messages[before..].iter_mut().rev();
    if let Some(turn) = replied.find(|turn| turn.role == MessageRole::Assistant) {
        let own = std::mem::replace(&mut turn.meta, meta);
        if let Some(own) = own.finish()
            && let Ok(own) = RawFields::parse(own.get())
        {
            turn.meta.merge_source_fields(&own);
        }
    }
    found.conversations.push(talk.finish());
    Ok(())
}

fn write_response_metadata(answer: &RawFields<'_>, meta: &mut MetadataBuilder) {
    write_reply_metadata(answer, meta);
    let incomplete = answer.object("incomplete_details");
    let why = incomplete.and_then(|details| details.get("reason"));
    meta.set_raw("stop_reason", why.or_else(|| answer.get("status")));
    // Both times in seconds: the service's own.
    if let (Some(from), Some(to)) = (answer.number("created_at"), answer.number("completed_at"))
        && to >= from
    {
        meta.set("latency_ms", (to - from) * 1000.0);
    }
}

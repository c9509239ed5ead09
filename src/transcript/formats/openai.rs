//! OpenAI's wire formats: chat completions, the older completions, and Responses.
//!
//! Responsible for the conversations and metadata of one request and its reply. Each choice of a reply is a
//! conversation. Does not read the log records around them: that is `api_log.rs`.

use serde_json::value::RawValue;

use super::exchange::{ApiExchange, ExchangeBody, add_items, parse_usage, text_message};
use super::response_items::ConversationBuilder;
use crate::model::{MessageRole, TranscriptMessage, TranscriptPart};
use crate::transcript::fields::{RawFields, list_items};
use crate::transcript::metadata::MetadataBuilder;
use crate::transcript::native::{json_string, parse_message};

/// Returns true if the body is a reply of the Responses API.
pub(super) fn is_response(reply_body: &ExchangeBody<'_>) -> bool {
    match reply_body {
        ExchangeBody::Object(fields) => {
            // Compatible servers may omit `object`, but `output` is a list in this API only.
            fields.text("object").as_deref() == Some("response") || fields.list("output").is_some()
        }
        _ => false,
    }
}

/// Sets the metadata of a reply, for its message or for the transcript.
fn write_reply_metadata(answer: &RawFields<'_>, meta: &mut MetadataBuilder) {
    meta.set_raw("model", answer.get("model"));
    // Chat completions write `created`; the Responses API writes `created_at`.
    meta.set_raw("timestamp", answer.get_first(&["created", "created_at"]));
    if let Some(usage) = answer.object("usage") {
        meta.set("usage", parse_usage(&usage).to_json());
        // OpenRouter and some proxies add the cost to the usage.
        meta.set_raw("cost_usd", usage.get_first(&["cost_usd", "cost"]));
    }
}

/// Adds `meta` to a message. Its own metadata is merged last, so that it does not replace a value.
pub(super) fn with_metadata(
    mut message: TranscriptMessage<'_>,
    mut meta: MetadataBuilder,
) -> TranscriptMessage<'_> {
    if let Some(message_metadata) = &message.metadata
        && let Ok(message_metadata) = RawFields::parse(message_metadata.get())
    {
        meta.merge_source_fields(&message_metadata);
    }
    message.metadata = meta.finish();
    message
}

/// Adds a chat completion, or an older completion, to `found`.
pub(super) fn parse_chat<'a>(
    request_body: &ExchangeBody<'a>,
    reply_body: &ExchangeBody<'a>,
    exchange: &mut ApiExchange<'a>,
) -> Result<(), String> {
    let mut request_messages = Vec::new();
    // Step 1: the messages of the request.
    match request_body {
        ExchangeBody::Missing | ExchangeBody::Unreadable(_) => {}
        ExchangeBody::Plain(text) => {
            request_messages.push(text_message(MessageRole::User, text.clone()));
        }
        ExchangeBody::List(all) => request_messages = parse_messages(all)?,
        ExchangeBody::Object(fields) => {
            if let Some(all) = fields.list("messages") {
                request_messages = parse_messages(&all)?;
            // The older completions have a `prompt` instead of messages.
            } else if let Some(prompt) = fields.text("prompt") {
                request_messages.push(text_message(MessageRole::User, prompt));
            }
        }
    }
    // Step 2: a reply without choices ends the conversation here.
    let answer = match reply_body {
        ExchangeBody::Missing | ExchangeBody::Unreadable(_) => {
            exchange.conversations.push(request_messages);
            return Ok(());
        }
        ExchangeBody::Plain(text) => {
            request_messages.push(text_message(MessageRole::Assistant, text.clone()));
            exchange.conversations.push(request_messages);
            return Ok(());
        }
        // A log may store the messages of the reply as a list.
        ExchangeBody::List(all) => {
            request_messages.extend(parse_messages(all)?);
            exchange.conversations.push(request_messages);
            return Ok(());
        }
        ExchangeBody::Object(answer) => answer,
    };
    // Step 3: one conversation per choice.
    exchange.id = answer.id_text("id");
    write_reply_metadata(answer, &mut exchange.meta);
    let choices = answer.list("choices").unwrap_or_default();
    for (at, raw) in choices.iter().enumerate() {
        let choice =
            RawFields::from_raw(raw).ok_or_else(|| format!("choice {at} is not an object"))?;
        let reply = match (choice.get("message"), choice.text("text")) {
            (Some(raw), _) => parse_message(raw).map_err(|why| format!("choice {at}: {why}"))?,
            // The older completions have the text in the choice itself.
            (None, Some(text)) => text_message(MessageRole::Assistant, text),
            (None, None) => return Err(format!("choice {at} has no `message`")),
        };
        let mut meta = MetadataBuilder::default();
        write_reply_metadata(answer, &mut meta);
        meta.set_raw("stop_reason", choice.get("finish_reason"));
        // With several choices, no single stop reason applies to the transcript.
        if choices.len() == 1 {
            exchange
                .meta
                .set_raw("stop_reason", choice.get("finish_reason"));
        }
        // Every choice continues the same request.
        let mut conversation = request_messages.clone();
        conversation.push(with_metadata(reply, meta));
        exchange.conversations.push(conversation);
    }
    if choices.is_empty() {
        // Ollama and similar servers reply with the message instead of choices.
        let direct_message = answer.get("message").map(parse_message);
        let reply = match direct_message {
            Some(reply) => reply?,
            // The record counted as both sides, and it is only a request.
            None if answer.has("messages") || !answer.has("choices") && answer.has("prompt") => {
                exchange.conversations.push(request_messages);
                return Ok(());
            }
            None if answer.has("role") => parse_bare_message(answer)?,
            None => {
                let keys: Vec<String> = answer
                    .iter()
                    .take(6)
                    .map(|(key, _)| format!("{key:?}"))
                    .collect();
                // The first keys of the reply show the user which format the log has.
                let keys = keys.join(", ");
                return Err(format!("its answer has no `choices` (it has {keys})"));
            }
        };
        request_messages.push(with_metadata(reply, MetadataBuilder::default()));
        exchange.conversations.push(request_messages);
    }
    Ok(())
}

/// Parses a reply that is a message with plain text.
fn parse_bare_message<'a>(answer: &RawFields<'a>) -> Result<TranscriptMessage<'a>, String> {
    let text = answer.text("content");
    let text = text.ok_or_else(|| "its answer's `content` is not a text".to_owned())?;
    Ok(text_message(MessageRole::Assistant, text))
}

/// Parses a list of messages; the error contains the index of the bad message.
pub(super) fn parse_messages<'a>(
    all: &[&'a RawValue],
) -> Result<Vec<TranscriptMessage<'a>>, String> {
    let all = all.iter().enumerate();
    all.map(|(at, raw)| parse_message(raw).map_err(|why| format!("message {at}: {why}")))
        .collect()
}

/// Adds a request to the Responses API and its reply to `found`.
pub(super) fn parse_responses<'a>(
    request_body: &ExchangeBody<'a>,
    reply_body: &ExchangeBody<'a>,
    exchange: &mut ApiExchange<'a>,
) -> Result<(), String> {
    let mut conversation = ConversationBuilder::default();
    let field_of =
        |body: &ExchangeBody<'a>, key: &str| body.object().and_then(|fields| fields.get(key));
    // A log may have only the reply, which repeats the instructions.
    let instructions =
        field_of(request_body, "instructions").or_else(|| field_of(reply_body, "instructions"));
    if let Some(raw) = instructions {
        match (json_string(raw), list_items(raw)) {
            (Some(text), _) => {
                conversation.push_message(MessageRole::System, vec![TranscriptPart::Text(text)]);
            }
            (None, Some(all)) => add_items(&mut conversation, &all)?,
            // Other types have no text; the conversation remains readable without them.
            (None, None) => {}
        }
    }
    match field_of(request_body, "input").or_else(|| field_of(reply_body, "input")) {
        Some(raw) => match (json_string(raw), list_items(raw)) {
            (Some(text), _) => {
                conversation.push_message(MessageRole::User, vec![TranscriptPart::Text(text)]);
            }
            (None, Some(all)) => add_items(&mut conversation, &all)?,
            (None, None) => return Err("its `input` is neither text nor a list".to_owned()),
        },
        None => match request_body {
            ExchangeBody::Plain(text) => conversation
                .push_message(MessageRole::User, vec![TranscriptPart::Text(text.clone())]),
            ExchangeBody::List(all) => {
                add_items(&mut conversation, all)?;
            }
            // A program may answer in this form, and have requests in another one.
            ExchangeBody::Object(fields) => {
                let all = fields.list("messages").unwrap_or_default();
                add_items(&mut conversation, &all)?;
            }
            ExchangeBody::Missing | ExchangeBody::Unreadable(_) => {}
        },
    }
    // The reply must not join an assistant message at the end of the request.
    conversation.close_message();
    let before = conversation.messages.len();
    let mut meta = MetadataBuilder::default();
    // The reply: its output items, and its metadata for the message and for the transcript.
    match reply_body {
        ExchangeBody::Missing | ExchangeBody::Unreadable(_) => {}
        ExchangeBody::Plain(text) => {
            conversation.add_assistant_parts(vec![TranscriptPart::Text(text.clone())]);
        }
        ExchangeBody::List(all) => add_items(&mut conversation, all)?,
        ExchangeBody::Object(answer) => {
            exchange.id = answer.id_text("id");
            match answer
                .get("output")
                .map(|raw| (json_string(raw), list_items(raw)))
            {
                Some((Some(text), _)) => {
                    conversation.add_assistant_parts(vec![TranscriptPart::Text(text)]);
                }
                Some((None, Some(all))) => {
                    add_items(&mut conversation, &all)?;
                }
                Some((None, None)) | None => {}
            }
            write_response_metadata(answer, &mut meta);
            write_response_metadata(answer, &mut exchange.meta);
        }
    }
    // A reply may contain several messages. The metadata belongs to the last one, which is the result.
    let mut reply_messages = conversation.messages[before..].iter_mut().rev();
    if let Some(message) = reply_messages.find(|message| message.role == MessageRole::Assistant) {
        // The values of the reply count, so those of the item are merged after them.
        let item_meta = std::mem::replace(&mut message.meta, meta);
        if let Some(item_meta) = item_meta.finish()
            && let Ok(item_fields) = RawFields::parse(item_meta.get())
        {
            message.meta.merge_source_fields(&item_fields);
        }
    }
    exchange.conversations.push(conversation.finish());
    Ok(())
}

/// Sets the metadata of a Responses reply.
fn write_response_metadata(answer: &RawFields<'_>, meta: &mut MetadataBuilder) {
    write_reply_metadata(answer, meta);
    let incomplete = answer.object("incomplete_details");
    let why = incomplete.and_then(|details| details.get("reason"));
    // `status` is the stop reason of a complete reply, such as `completed`.
    meta.set_raw("stop_reason", why.or_else(|| answer.get("status")));
    // Both times are in seconds on the clock of the service.
    if let (Some(from), Some(to)) = (answer.number("created_at"), answer.number("completed_at"))
        && to >= from
    {
        meta.set("latency_ms", (to - from) * 1000.0);
    }
}

//! The history as chat messages. The model's messages are sent back byte for byte, with one exception.
//!
//! **The exception.** A server may answer 5xx to past arguments that aren't JSON, because llama.cpp and others parse
//! them for their templates. If a call's `function.arguments` isn't the text of a JSON object, dicta sends the
//! canonical form instead. That is `reply.calls[i].raw`, which the judge sets to the canonical text, or `{}` if that
//! isn't a JSON object either. An unquoted object is written as the string that the protocol requires. Only those
//! bytes change.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::super::request_body::{join_paragraphs, to_json, unpaired_responses_error};
use super::super::{ProviderError, client};
use crate::model::{HistoryBlock, HistoryItem, ModelReply, ToolResponse, is_json_object};

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct ChatToolMessage<'a> {
    role: &'a str,
    tool_call_id: &'a str,
    content: &'a str,
}

/// Renders one element for each history item, in order; messages of one item are joined by commas.
///
/// Omits items without messages.
pub(super) fn render_messages(history: &[HistoryItem]) -> Result<Vec<String>, ProviderError> {
    let mut all = Vec::with_capacity(history.len());
    // Tool messages need the ids of the calls in the reply before them.
    let mut calls: &ModelReply = &ModelReply::default();
    for item in history {
        let element = match item {
            HistoryItem::User(blocks) => render_user_message(blocks),
            HistoryItem::Model {
                native,
                reply: view,
            } => {
                calls = view;
                let parts: Result<Vec<String>, _> = native
                    .iter()
                    .map(|raw| render_assistant_message(raw, view))
                    .collect();
                parts?.join(",")
            }
            HistoryItem::ToolResponses(answers) => render_tool_messages(answers, calls)?,
        };
        if !element.is_empty() {
            all.push(element);
        }
    }
    Ok(all)
}

fn render_user_message(blocks: &[HistoryBlock]) -> String {
    let messages: Vec<String> = join_paragraphs(blocks)
        .iter()
        .map(|block| match block {
            HistoryBlock::System(content) => to_json(&ChatMessage {
                role: "system",
                content,
            }),
            HistoryBlock::Text(content) => to_json(&ChatMessage {
                role: "user",
                content,
            }),
        })
        .collect();
    messages.join(",")
}

fn render_tool_messages(
    answers: &[ToolResponse],
    reply: &ModelReply,
) -> Result<String, ProviderError> {
    // Servers refuse a call without a tool message, and a tool message without a call.
    if answers.len() != reply.calls.len() {
        return Err(unpaired_responses_error(answers.len(), reply.calls.len()));
    }
    let messages: Vec<String> = answers
        .iter()
        .zip(&reply.calls)
        .map(|(answer, call)| {
            to_json(&ChatToolMessage {
                role: "tool",
                tool_call_id: &call.id,
                content: &answer.text,
            })
        })
        .collect();
    Ok(messages.join(","))
}

#[derive(Deserialize)]
struct RawAssistantMessage<'a> {
    #[serde(borrow, default)]
    tool_calls: Option<Vec<RawAssistantCall<'a>>>,
}

#[derive(Deserialize)]
struct RawAssistantCall<'a> {
    #[serde(borrow)]
    function: Option<RawAssistantFunction<'a>>,
}

#[derive(Deserialize)]
struct RawAssistantFunction<'a> {
    /// `null` is a value; only a missing key is `None`.
    #[serde(borrow, default, deserialize_with = "present")]
    arguments: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

fn render_assistant_message(native: &RawValue, view: &ModelReply) -> Result<String, ProviderError> {
    let text = native.get();
    let message: RawAssistantMessage<'_> = serde_json::from_str(text)
        .map_err(|_| client::malformed_error("a past reply is not a chat message", text))?;
    // Copy the message byte for byte, except for broken arguments, to which servers respond 5xx.
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, call) in message.tool_calls.iter().flatten().enumerate() {
        let Some(arguments) = call.function.as_ref().and_then(|f| f.arguments) else {
            continue;
        };
        let canonical = || {
            let canonical = view.calls.get(at).map(|call| call.raw.as_str());
            canonical.filter(|c| is_json_object(c)).unwrap_or("{}")
        };
        let written = arguments.get();
        let replacement = match serde_json::from_str::<String>(written) {
            // The protocol's own form: a string that contains an object.
            Ok(inner) if is_json_object(&inner) => continue,
            // Some servers send the object itself, but accept only a string.
            Err(_) if is_json_object(written) => to_json(&written),
            _ => to_json(&canonical()),
        };
        // `arguments` borrows from `text`, so its address gives its position.
        let from = written.as_ptr() as usize - text.as_ptr() as usize;
        out.push_str(&text[copied..from]);
        out.push_str(&replacement);
        copied = from + written.len();
    }
    out.push_str(&text[copied..]);
    Ok(out)
}

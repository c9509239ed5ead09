//! The history as input items. The model's items are sent back byte for byte and in order.
//!
//! A reasoning item belongs directly before its call, and the service refuses a turn that moved or lost one.
//!
//! **The one exception** is the same as in `openai_chat`. If a call's `arguments` isn't the text of a JSON object,
//! dicta sends the canonical form, because servers answer 5xx to invalid ones. If that isn't an object either, it
//! sends `{}`. Only those bytes change.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::super::request_body::{join_paragraphs, to_json as text_of, unpaired_responses_error};
use super::super::{ProviderError, client};
use crate::model::{HistoryBlock, HistoryItem, ModelReply, ToolResponse, is_json_object};

#[derive(Serialize)]
struct ResponsesCallOutput<'a> {
    r#type: &'a str,
    call_id: &'a str,
    output: &'a str,
}

/// Renders the instructions, and one element for each history item with content; items of one element are joined by
/// commas.
///
/// Instructions of the first item become `instructions`; later ones keep their place as messages.
pub(super) fn render_input(
    history: &[HistoryItem],
) -> Result<(Option<String>, Vec<String>), ProviderError> {
    let mut instructions: Option<String> = None;
    let mut all = Vec::with_capacity(history.len());
    let mut calls: &ModelReply = &ModelReply::default();
    for (at, item) in history.iter().enumerate() {
        let element = match item {
            HistoryItem::User(blocks) => {
                let blocks = join_paragraphs(blocks);
                let mut messages = Vec::new();
                for block in blocks {
                    match block {
                        // Only the first system text fills `instructions`: the protocol has one place for it.
                        HistoryBlock::System(text) if at == 0 && instructions.is_none() => {
                            instructions = Some(text);
                        }
                        HistoryBlock::System(text) => {
                            messages.push(render_message("system", &text));
                        }
                        HistoryBlock::Text(text) => messages.push(render_message("user", &text)),
                    }
                }
                messages.join(",")
            }
            HistoryItem::Model {
                native,
                reply: view,
            } => {
                calls = view;
                render_native_items(native.iter().map(|raw| &**raw), view)?
            }
            HistoryItem::ToolResponses(answers) => render_call_outputs(answers, calls)?,
        };
        if !element.is_empty() {
            all.push(element);
        }
    }
    Ok((instructions, all))
}

fn render_message(role: &str, text: &str) -> String {
    text_of(&json!({"role": role, "content": [{"type": "input_text", "text": text}]}))
}

fn render_call_outputs(
    answers: &[ToolResponse],
    reply: &ModelReply,
) -> Result<String, ProviderError> {
    // The service refuses a call without an output, and an output without a call.
    if answers.len() != reply.calls.len() {
        return Err(unpaired_responses_error(answers.len(), reply.calls.len()));
    }
    let items = answers.iter().zip(&reply.calls).map(|(answer, call)| {
        text_of(&ResponsesCallOutput {
            r#type: "function_call_output",
            call_id: &call.id,
            output: &answer.text,
        })
    });
    Ok(items.collect::<Vec<_>>().join(","))
}

#[derive(Deserialize)]
struct RawResponsesItem<'a> {
    #[serde(borrow, default)]
    r#type: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

fn render_native_items<'a>(
    native: impl Iterator<Item = &'a RawValue>,
    view: &ModelReply,
) -> Result<String, ProviderError> {
    let mut calls = view.calls.iter();
    let mut out = String::new();
    for raw in native {
        let text = raw.get();
        let item: RawResponsesItem<'_> = serde_json::from_str(text)
            .map_err(|_| client::malformed_error("a past reply contains an invalid item", text))?;
        if !out.is_empty() {
            out.push(',');
        }
        // Only calls consume an entry of `calls`, so both stay in step.
        let call = (item.r#type == "function_call")
            .then(|| calls.next())
            .flatten();
        let replaced = item.arguments.and_then(|arguments| {
            let canonical = call?.raw.as_str();
            Some((
                arguments.get(),
                repair_arguments(arguments.get(), canonical)?,
            ))
        });
        let Some((arguments, instead)) = replaced else {
            out.push_str(text);
            continue;
        };
        // `arguments` borrows from `text`, so its address gives its position.
        let from = arguments.as_ptr() as usize - text.as_ptr() as usize;
        out.push_str(&text[..from]);
        out.push_str(&instead);
        out.push_str(&text[from + arguments.len()..]);
    }
    Ok(out)
}

/// Returns the replacement for arguments that aren't the text of a JSON object; `None` if they are.
fn repair_arguments(written: &str, canonical: &str) -> Option<String> {
    match serde_json::from_str::<String>(written) {
        Ok(inner) if is_json_object(&inner) => None,
        // Some servers send the object itself, but accept only a string.
        Err(_) if is_json_object(written) => Some(text_of(&written)),
        _ if is_json_object(canonical) => Some(text_of(&canonical)),
        _ => Some(text_of(&"{}")),
    }
}

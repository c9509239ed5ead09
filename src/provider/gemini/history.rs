//! The history as contents. The model's parts are sent back in order, never merged and never changed.
//!
//! A thought signature belongs to the part it came with, and the service refuses a turn that lost one. A turn of
//! another provider's model has no such parts. dicta rewrites it and adds the mark that Google defines for such
//! history.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::ProviderError;
use super::super::request_body::{
    add_instructions, join_paragraphs, to_json as text_of, unpaired_responses_error,
};
use crate::model::{
    HistoryBlock, HistoryItem, ModelReply, ReplyCall, ToolResponse, is_json_object,
};

/// Renders the instructions, and one element for each history item with content.
///
/// Instructions of the first item become `systemInstruction`; later ones keep their place as text of the user.
pub(super) fn render_contents(
    history: &[HistoryItem],
) -> Result<(Option<String>, Vec<String>), ProviderError> {
    let mut system: Option<String> = None;
    let mut all = Vec::with_capacity(history.len());
    let mut calls: Vec<GeminiFunctionCall> = Vec::new();
    for (at, item) in history.iter().enumerate() {
        match item {
            HistoryItem::User(blocks) => {
                let blocks = join_paragraphs(blocks);
                let mut parts = Vec::new();
                for block in blocks {
                    match block {
                        // Only the first item fills `systemInstruction`: the protocol has one place for
                        // instructions.
                        HistoryBlock::System(text) if at == 0 => {
                            add_instructions(&mut system, text);
                        }
                        HistoryBlock::System(text) | HistoryBlock::Text(text) => {
                            parts.push(json!({"text": text}));
                        }
                    }
                }
                if !parts.is_empty() {
                    all.push(text_of(&json!({"role": "user", "parts": parts})));
                }
            }
            HistoryItem::Model {
                native,
                reply: view,
            } if is_foreign(native, view) => {
                let called = |call: &ReplyCall| GeminiFunctionCall {
                    name: call.name.clone(),
                    id: None,
                };
                calls = view.calls.iter().map(called).collect();
                all.extend(render_foreign_turn(view));
            }
            // Native parts go back byte for byte, because the service checks their signatures.
            HistoryItem::Model { native, .. } => {
                calls = native
                    .iter()
                    .filter_map(|part| parse_function_call(part))
                    .collect();
                let parts: Vec<&str> = native.iter().map(|part| part.get()).collect();
                if !parts.is_empty() {
                    let parts = parts.join(",");
                    all.push(format!(r#"{{"role":"model","parts":[{parts}]}}"#));
                }
            }
            HistoryItem::ToolResponses(answers) => {
                // The service refuses a turn in which calls and responses don't match.
                if answers.len() != calls.len() {
                    return Err(unpaired_responses_error(answers.len(), calls.len()));
                }
                if !answers.is_empty() {
                    all.push(render_function_responses(answers, &calls));
                }
            }
        }
    }
    Ok((system, all))
}

/// The value that the service accepts as the signature of a call that no Gemini model made.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// Returns whether a turn is from another dialect, whose items have keys that a part never has.
fn is_foreign(native: &[Arc<RawValue>], view: &ModelReply) -> bool {
    #[derive(Deserialize)]
    struct Other {
        role: Option<IgnoredAny>,
        #[serde(rename = "type")]
        kind: Option<IgnoredAny>,
    }
    let is_other = |item: &Arc<RawValue>| {
        let item: Result<Other, _> = serde_json::from_str(item.get());
        // An item that isn't an object is not a part either.
        item.map_or(true, |item| item.role.is_some() || item.kind.is_some())
    };
    // Recordings without native items still have the reply as dicta read it.
    let says_something = !view.text.is_empty() || !view.calls.is_empty();
    native.iter().any(is_other) || native.is_empty() && says_something
}

/// Renders a foreign turn: its text and its calls, the first of them with the mark.
fn render_foreign_turn(view: &ModelReply) -> Option<String> {
    let mut parts = Vec::new();
    if !view.text.is_empty() {
        parts.push(text_of(&json!({"text": view.text})));
    }
    for (at, call) in view.calls.iter().enumerate() {
        // Arguments that weren't an object were never run. The text stays, so that numbers keep their
        // spelling.
        let args = if is_json_object(&call.raw) {
            &call.raw
        } else {
            "{}"
        };
        let name = text_of(&call.name);
        // The service checks only the first call of a turn for a signature.
        let mark = if at == 0 {
            format!(r#","thoughtSignature":"{NOT_SIGNED}""#)
        } else {
            String::new()
        };
        parts.push(format!(
            r#"{{"functionCall":{{"name":{name},"args":{args}}}{mark}}}"#
        ));
    }
    let parts = parts.join(",");
    (!parts.is_empty()).then(|| format!(r#"{{"role":"model","parts":[{parts}]}}"#))
}

/// The members of a function call that its response must repeat.
#[derive(Debug, Deserialize)]
struct GeminiFunctionCall {
    name: String,
    /// Sent back only if the call had one.
    id: Option<String>,
}

fn parse_function_call(part: &RawValue) -> Option<GeminiFunctionCall> {
    #[derive(Deserialize)]
    struct Part {
        #[serde(rename = "functionCall")]
        call: Option<GeminiFunctionCall>,
    }
    let call = serde_json::from_str::<Part>(part.get()).ok()?.call?;
    Some(GeminiFunctionCall {
        // An empty id counts as none, as in the stream reader.
        id: call.id.filter(|id| !id.is_empty()),
        ..call
    })
}

/// Renders all responses to one model turn as one user content, in call order.
fn render_function_responses(answers: &[ToolResponse], calls: &[GeminiFunctionCall]) -> String {
    let parts: Vec<_> = answers
        .iter()
        .zip(calls)
        .map(|(answer, call)| {
            // The names that Google's documentation gives to a function's result.
            let key = if answer.is_error { "error" } else { "output" };
            let response = json!({ key: answer.text });
            match &call.id {
                Some(id) => {
                    json!({"functionResponse": {"id": id, "name": call.name, "response": response}})
                }
                None => json!({"functionResponse": {"name": call.name, "response": response}}),
            }
        })
        .collect();
    text_of(&json!({"role": "user", "parts": parts}))
}

//! The history as contents. What the model said goes back as its own parts, in order, never merged and never touched:
//! a thought signature belongs to the part it came on, and the service refuses a turn that lost one. What another
//! service's model said has no parts of ours: it is written anew, with the mark that Google gives for such history.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::ProviderError;
use super::super::request_body::{join_paragraphs, to_json as text_of, unpaired_responses_error};
use crate::model::{HistoryBlock, HistoryItem, ModelReply, ReplyCall, ToolResponse};

/// The instructions, and one element for each history item that says something.
///
/// Instructions of the first item become `systemInstruction`; later ones keep their place, as text of the user.
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
                        HistoryBlock::System(text) if at == 0 => match &mut system {
                            Some(all) => {
                                all.push_str("\n\n");
                                all.push_str(&text);
                            }
                            None => system = Some(text),
                        },
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

/// What is accepted in the place of a signature for a call that a Gemini model did not make.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// Whether a turn is none of this dialect's: other services' items say what they are in keys that a part never has.
fn is_foreign(native: &[Arc<RawValue>], view: &ModelReply) -> bool {
    #[derive(Deserialize)]
    struct Other {
        role: Option<IgnoredAny>,
        #[serde(rename = "type")]
        kind: Option<IgnoredAny>,
    }
    let is_other = |item: &Arc<RawValue>| {
        let item: Result<Other, _> = serde_json::from_str(item.get());
        item.map_or(true, |item| item.role.is_some() || item.kind.is_some())
    };
    let says_something = !view.text.is_empty() || !view.calls.is_empty();
    native.iter().any(is_other) || native.is_empty() && says_something
}

/// A foreign turn as contents: its text and its calls, the first of them marked.
fn render_foreign_turn(view: &ModelReply) -> Option<String> {
    let mut parts = Vec::new();
    if !view.text.is_empty() {
        parts.push(text_of(&json!({"text": view.text})));
    }
    for (at, call) in view.calls.iter().enumerate() {
        // Arguments that were no object could not be run either. Numbers stay as written.
        let args = if is_object(&call.raw) {
            &call.raw
        } else {
            "{}"
        };
        let name = text_of(&call.name);
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

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// A native function call: what its response must repeat.
#[derive(Debug, Deserialize)]
struct GeminiFunctionCall {
    name: String,
    /// Sent back only where one came.
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
        id: call.id.filter(|id| !id.is_empty()),
        ..call
    })
}

/// All answers to one model turn stand in one user content, in call order.
fn render_function_responses(answers: &[ToolResponse], calls: &[GeminiFunctionCall]) -> String {
    let parts: Vec<_> = answers
        .iter()
        .zip(calls)
        .map(|(answer, call)| {
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

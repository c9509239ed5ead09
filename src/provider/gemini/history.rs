//! The history as contents. What the model said goes back as its own parts, in order, never merged and never touched:
//! a thought signature belongs to the part it came on, and the service refuses a turn that lost one.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::ProviderError;
use super::super::body::{json as text_of, opening, paragraphs, unpaired};
use crate::model::{Answer, Block, Item, JudgeConfig};

/// The instructions, and one element for each history item that says something.
///
/// Instructions of the first item become `systemInstruction`; later ones keep their place, as text of the user.
pub(super) fn contents(
    config: &JudgeConfig,
    history: &[Item],
) -> Result<(Option<String>, Vec<String>), ProviderError> {
    let first = opening(config, history);
    let mut system: Option<String> = None;
    let mut all = Vec::with_capacity(history.len());
    let mut calls: Vec<Called> = Vec::new();
    for (at, item) in history.iter().enumerate() {
        match item {
            Item::User(blocks) => {
                let blocks = paragraphs(first.as_ref().filter(|_| at == 0).unwrap_or(blocks));
                let mut parts = Vec::new();
                for block in blocks {
                    match block {
                        Block::System(text) if at == 0 => match &mut system {
                            Some(all) => {
                                all.push_str("\n\n");
                                all.push_str(&text);
                            }
                            None => system = Some(text),
                        },
                        Block::System(text) | Block::Text(text) => {
                            parts.push(json!({"text": text}));
                        }
                    }
                }
                if !parts.is_empty() {
                    all.push(text_of(&json!({"role": "user", "parts": parts})));
                }
            }
            Item::Model { native, .. } => {
                calls = native.iter().filter_map(|part| called(part)).collect();
                let parts: Vec<&str> = native.iter().map(|part| part.get()).collect();
                if !parts.is_empty() {
                    let parts = parts.join(",");
                    all.push(format!(r#"{{"role":"model","parts":[{parts}]}}"#));
                }
            }
            Item::Answers(answers) => {
                if answers.len() != calls.len() {
                    return Err(unpaired(answers.len(), calls.len()));
                }
                if !answers.is_empty() {
                    all.push(responses(answers, &calls));
                }
            }
        }
    }
    Ok((system, all))
}

/// A native function call: what its response must repeat.
#[derive(Debug, Deserialize)]
struct Called {
    name: String,
    /// Sent back only where one came.
    id: Option<String>,
}

fn called(part: &RawValue) -> Option<Called> {
    #[derive(Deserialize)]
    struct Part {
        #[serde(rename = "functionCall")]
        call: Option<Called>,
    }
    serde_json::from_str::<Part>(part.get()).ok()?.call
}

/// All answers to one model turn stand in one user content, in call order.
fn responses(answers: &[Answer], calls: &[Called]) -> String {
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

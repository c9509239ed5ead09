//! The history as messages. The model's content blocks are sent back byte for byte and in order.
//!
//! A thinking block is signed, and the service refuses a turn that lost or changed one.
//!
//! **The exception** is the `input` of a `tool_use` that isn't a JSON object, because it was cut or streamed without
//! checks. dicta sends the canonical form instead, `reply.calls[i].raw`, or `{}` if that isn't an object either. Only
//! those bytes change.
//!
//! Consecutive texts of the user form one message, tool responses first, because the protocol requires alternating
//! turns.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::ProviderError;
use super::super::request_body::{
    add_instructions, join_paragraphs, to_json as text_of, unpaired_responses_error,
};
use crate::model::{HistoryBlock, HistoryItem, ModelReply, ToolResponse, is_json_object};

/// A message under construction.
struct AnthropicRequestMessage {
    role: &'static str,
    content: Vec<String>,
}

/// Renders the instructions and the messages.
///
/// Instructions in the first item become `system`; later ones keep their place as text of the user. `nudge` comes
/// last.
pub(super) fn render_messages(
    history: &[HistoryItem],
    nudge: Option<&str>,
) -> Result<(Option<String>, Vec<String>), ProviderError> {
    let mut system: Option<String> = None;
    let mut all: Vec<AnthropicRequestMessage> = Vec::with_capacity(history.len());
    let mut last_reply: &ModelReply = &ModelReply::default();
    for (at, item) in history.iter().enumerate() {
        match item {
            HistoryItem::User(blocks) => {
                let blocks = join_paragraphs(blocks);
                for block in blocks {
                    match block {
                        // Only the first item fills `system`: the protocol has one place for instructions.
                        HistoryBlock::System(text) if at == 0 => {
                            add_instructions(&mut system, text);
                        }
                        HistoryBlock::System(text) | HistoryBlock::Text(text) => {
                            push_block(&mut all, "user", render_text_block(&text));
                        }
                    }
                }
            }
            HistoryItem::Model {
                native,
                reply: view,
            } => {
                last_reply = view;
                // The arguments in call order, to repair a native block that isn't an object.
                let mut calls = view.calls.iter().map(|call| call.raw.as_str());
                for block in native {
                    push_block(
                        &mut all,
                        "assistant",
                        render_native_block(block, &mut calls),
                    );
                }
            }
            HistoryItem::ToolResponses(answers) => {
                // The service refuses a call without a result and a result without a call.
                if answers.len() != last_reply.calls.len() {
                    return Err(unpaired_responses_error(
                        answers.len(),
                        last_reply.calls.len(),
                    ));
                }
                for (answer, call) in answers.iter().zip(&last_reply.calls) {
                    push_block(&mut all, "user", render_result_block(&call.id, answer));
                }
            }
        }
    }
    if let Some(nudge) = nudge {
        push_block(&mut all, "user", render_text_block(nudge));
    }
    let written = all.into_iter().map(|message| {
        let content = message.content.join(",");
        format!(r#"{{"role":"{}","content":[{content}]}}"#, message.role)
    });
    Ok((system, written.collect()))
}

fn push_block(all: &mut Vec<AnthropicRequestMessage>, role: &'static str, block: String) {
    match all.last_mut() {
        // Neighbors of one role become one message: all results of a turn must be in the next user message.
        Some(last) if last.role == role => last.content.push(block),
        _ => all.push(AnthropicRequestMessage {
            role,
            content: vec![block],
        }),
    }
}

fn render_text_block(text: &str) -> String {
    text_of(&json!({"type": "text", "text": text}))
}

fn render_result_block(id: &str, answer: &ToolResponse) -> String {
    let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": answer.text});
    if answer.is_error {
        block["is_error"] = Value::Bool(true);
    }
    text_of(&block)
}

#[derive(Deserialize)]
struct AnthropicToolUse<'a> {
    #[serde(rename = "type")]
    kind: String,
    /// `null` is a value; only a missing key is `None`.
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Renders a block that is sent back. `calls` are the canonical arguments of the remaining calls.
fn render_native_block<'v>(block: &RawValue, calls: &mut impl Iterator<Item = &'v str>) -> String {
    let text = block.get();
    let Ok(used) = serde_json::from_str::<AnthropicToolUse<'_>>(text) else {
        return text.to_owned();
    };
    if used.kind != "tool_use" {
        return text.to_owned();
    }
    let canonical = calls.next().filter(|c| is_json_object(c)).unwrap_or("{}");
    // A block with an object as input goes back byte for byte.
    let Some(input) = used.input.map(RawValue::get).filter(|i| !is_json_object(i)) else {
        return text.to_owned();
    };
    // `input` borrows from `text`, so its address gives its position.
    let from = input.as_ptr() as usize - text.as_ptr() as usize;
    [&text[..from], canonical, &text[from + input.len()..]].concat()
}

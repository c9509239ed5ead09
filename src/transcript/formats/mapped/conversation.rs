//! The messages of a mapped record, as a JSON list in OpenAI's shapes.
//!
//! Responsible for the names of roles in common datasets. The native reader parses the messages.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::{MessageRole, SourceText, TranscriptMessage, TranscriptPart};
use crate::transcript::native;

/// Returns true if a JSON object is a message.
pub(super) fn is_message(json: &str) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(json) else {
        return false;
    };
    map.get("role").is_some_and(Value::is_string) && map.contains_key("content")
}

/// Returns a JSON list with one message.
pub(super) fn single_message_list(role: &str, text: &str) -> Cow<'static, str> {
    let text = Value::from(text);
    format!("[{{\"role\":\"{role}\",\"content\":{text}}}]").into()
}

/// Parses the messages of `{"messages": [...]}`.
pub(super) fn parse_conversation(wrapped: &str) -> Result<Vec<TranscriptMessage<'_>>, String> {
    // The wrapper has one record, so its number is 1, and its default id is not used.
    let parsed = native::parse_native(wrapped.as_bytes(), 1, "").map_err(|bad| {
        let hint = if bad.why.ends_with("has no `role`") {
            "; an expression such as turns[].{role: from, content: value} gives it one"
        } else {
            ""
        };
        format!("{}{hint}", bad.why)
    })?;
    let mut messages = parsed.messages;
    if !messages.is_empty()
        && messages.iter().all(|message| message.parts.is_empty())
        // Messages with empty content are valid; a wrong key name is the likely error.
        && !wrapped.contains("\"content\"")
    {
        return Err(
            "no message has `content`; an expression such as turns[].{role: role, content: text} gives it one"
                .to_owned(),
        );
    }
    for message in &mut messages {
        if let MessageRole::Other(name) = &message.role {
            // Names of roles in common datasets, such as ShareGPT.
            message.role = match name.to_lowercase().as_str() {
                "human" | "customer" | "person" => MessageRole::User,
                "ai" | "gpt" | "chatgpt" | "bot" | "chatbot" | "model" | "agent" | "llm"
                | "gemini" | "bing" | "claude" => MessageRole::Assistant,
                "function_call" | "tool_call" => {
                    convert_to_tool_call(message);
                    MessageRole::Assistant
                }
                // ShareGPT files name tool results `observation`.
                "function_response" | "tool_response" | "observation" => {
                    convert_to_tool_result(message)
                }
                _ => continue,
            };
        }
    }
    Ok(messages)
}

/// Converts the text of a `function_call` message, JSON with `name` and `arguments`, to a call.
fn convert_to_tool_call(message: &mut TranscriptMessage<'_>) {
    let [TranscriptPart::Text(text)] = &message.parts[..] else {
        return;
    };
    let call = serde_json::from_str::<Value>(text).unwrap_or_default();
    let Some(name) = call["name"].as_str() else {
        return;
    };
    let arguments = match call.get("arguments").or_else(|| call.get("parameters")) {
        Some(Value::String(written)) => written.clone(),
        Some(arguments) => arguments.to_string(),
        None => "{}".to_owned(),
    };
    message.parts = vec![TranscriptPart::ToolCall(crate::model::ToolCall {
        id: SourceText::default(),
        name: SourceText::from(name.to_owned()),
        arguments: SourceText::from(arguments),
    })];
}

/// Converts an `observation` message to a tool result and returns its role.
fn convert_to_tool_result<'m>(message: &mut TranscriptMessage<'m>) -> MessageRole<'m> {
    // An observation with several parts keeps them, because a result has only one text.
    if let [TranscriptPart::Text(text)] = &message.parts[..] {
        message.parts = vec![TranscriptPart::ToolResult(crate::model::ToolResult {
            call_id: SourceText::default(),
            content: text.clone(),
            is_error: None,
            duration_ms: None,
        })];
    }
    MessageRole::Tool
}

//! The roles of smolagents' messages, `tool-call` and `tool-response`.
//!
//! smolagents writes the calls of a step as a text of their own (`Calling tools:` and a Python list), and what they
//! returned as one text (`Observation:`, or `Error:`). The source is `memory.py` in huggingface/smolagents. Responsible
//! for these two texts, in messages of any reader. Does not read files.

use serde_json::Value;

use super::evalbench::python_literal::parse_literal;
use crate::model::{MessageRole, SourceText, ToolCall, ToolResult, TranscriptPart};

/// The role of a message with calls.
pub(super) const CALL_ROLE: &str = "tool-call";

/// The role of a message with what the calls returned.
pub(super) const RESULT_ROLE: &str = "tool-response";

/// The tag that ends code in a reply. The model stops before it, and smolagents adds it to the message that it keeps.
const CODE_END: &str = "</code>";

/// Converts the messages with roles of smolagents to calls and results. Another text stays as it is.
pub(super) fn convert_roles<'m>(
    messages: impl Iterator<
        Item = (
            &'m mut MessageRole<'static>,
            &'m mut Vec<TranscriptPart<'static>>,
        ),
    >,
) {
    // smolagents keeps one result for all calls of a step, without their ids.
    let mut last_call = SourceText::default();
    for (role, parts) in messages {
        let has_role =
            |wanted: &str| matches!(&*role, MessageRole::Other(word) if &**word == wanted);
        let (is_call, is_result) = (has_role(CALL_ROLE), has_role(RESULT_ROLE));
        if is_call {
            let calls = parse_calls(&join_texts(parts));
            let first = calls.as_deref().and_then(<[_]>::first);
            // Without readable calls, the next result has no call, and not the one of an earlier step.
            last_call = first.map(|call| call.id.clone()).unwrap_or_default();
            let Some(calls) = calls else {
                continue;
            };
            *role = MessageRole::Assistant;
            // The text repeats calls that a reader found. Other parts, such as images, stay.
            parts.retain(|part| {
                !matches!(part, TranscriptPart::Text(_) | TranscriptPart::ToolCall(_))
            });
            parts.extend(calls.into_iter().map(TranscriptPart::ToolCall));
        } else if is_result {
            let result = parse_result(&join_texts(parts), &last_call);
            *role = MessageRole::Tool;
            parts.retain(|part| !matches!(part, TranscriptPart::Text(_)));
            parts.insert(0, TranscriptPart::ToolResult(result));
        }
    }
}

/// Returns a reply as the model wrote it, for the comparison with the message that smolagents keeps.
pub(super) fn trim_code_end(text: &str) -> &str {
    let text = text.trim();
    text.strip_suffix(CODE_END).unwrap_or(text).trim_end()
}

fn join_texts(parts: &[TranscriptPart<'_>]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        TranscriptPart::Text(text) => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<&str>>().join("\n")
}

/// Parses the calls of a step: `Calling tools:` and the list that Python prints. There is at least one.
fn parse_calls(text: &str) -> Option<Vec<ToolCall<'static>>> {
    let list = parse_literal(text.trim().strip_prefix("Calling tools:")?)?;
    let calls: Option<Vec<_>> = list.as_array()?.iter().map(parse_call).collect();
    calls.filter(|calls| !calls.is_empty())
}

fn parse_call(call: &Value) -> Option<ToolCall<'static>> {
    let function = &call["function"];
    let arguments = match &function["arguments"] {
        Value::Null => "{}".to_owned(),
        // The code of an agent that writes code.
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let id = call["id"].as_str().unwrap_or_default();
    Some(ToolCall {
        id: SourceText::from(id.to_owned()),
        name: SourceText::from(function["name"].as_str()?.to_owned()),
        arguments: SourceText::from(arguments),
    })
}

/// Parses what the calls returned. Only an error names its call, and only an error shows how the call ended.
fn parse_result(text: &str, last_call: &SourceText<'static>) -> ToolResult<'static> {
    let named = text.strip_prefix("Call id: ");
    let (call_id, content) = match named.and_then(|rest| rest.split_once('\n')) {
        Some((id, content)) => (SourceText::from(id.trim().to_owned()), content),
        None => (last_call.clone(), text),
    };
    ToolResult {
        call_id,
        content: SourceText::from(content.to_owned()),
        is_error: content.starts_with("Error:").then_some(true),
        duration_ms: None,
    }
}

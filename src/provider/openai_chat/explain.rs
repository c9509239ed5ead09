//! Request bodies of the Chat Completions API as a person reads them.

use serde_json::{Map, Value};

use super::super::readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, ReadableTool, SpeakerRole,
    elements, format_field, format_settings,
};
use super::stream::read_thinking_part;

/// Reads a body; returns `None` if its messages don't have the shape of this API.
pub(in super::super) fn explain_body(mut map: Map<String, Value>) -> Option<ReadableBody> {
    let mut body = ReadableBody::default();
    let messages = map.shift_remove("messages")?;
    for message in messages.as_array()? {
        let speaker = message.get("role")?.as_str()?.to_owned();
        let role = SpeakerRole::from_name(&speaker);
        body.items.push(ReadableItem {
            speaker,
            role,
            parts: read_parts(message),
        });
    }
    let tools = map.shift_remove("tools");
    body.tools = elements(tools.as_ref())
        .map(|tool| ReadableTool::from_declaration(tool.get("function").unwrap_or(tool)))
        .collect();
    body.settings = format_settings(&map);
    Some(body)
}

/// Reads the reasoning, the content and the calls of a message.
fn read_parts(message: &Value) -> Vec<ReadablePart> {
    let mut parts = Vec::new();
    match message.get("content") {
        // A message with tool calls alone has `"content": null`.
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => parts.push(ReadablePart::new(ReadablePartKind::Text, text)),
        Some(Value::Array(list)) => parts.extend(list.iter().map(|part| {
            if part.get("type").is_some_and(|kind| kind == "thinking") {
                let thought = read_thinking_part(part).concat();
                return ReadablePart::new(ReadablePartKind::Reasoning, thought);
            }
            let text = part.get("text").and_then(Value::as_str);
            text.map_or_else(
                || ReadablePart::new(ReadablePartKind::Other, part.to_string()),
                |text| ReadablePart::new(ReadablePartKind::Text, text),
            )
        })),
        Some(other) => parts.push(ReadablePart::new(
            ReadablePartKind::Other,
            other.to_string(),
        )),
    }
    // Compatible servers disagree about the name of the field.
    for key in ["reasoning", "reasoning_content"] {
        if let Some(text) = message.get(key).and_then(Value::as_str) {
            parts.insert(0, ReadablePart::new(ReadablePartKind::Reasoning, text));
        }
    }
    for call in elements(message.get("tool_calls")) {
        let function = call.get("function").unwrap_or(call);
        let arguments = format_field(function, "arguments");
        parts.push(ReadablePart::call(
            &format_field(function, "name"),
            &arguments,
        ));
    }
    parts
}

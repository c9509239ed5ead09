//! Request bodies of the Responses API as a person reads them.

use serde_json::{Map, Value};

use super::super::readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, ReadableTool, SpeakerRole,
    elements, format_field, format_settings, format_value,
};

/// Reads a body; returns `None` if it has no array `input`.
pub(in super::super) fn explain_body(mut map: Map<String, Value>) -> Option<ReadableBody> {
    let mut body = ReadableBody::default();
    if let Some(system) = map.shift_remove("instructions") {
        let part = ReadablePart::new(ReadablePartKind::Text, format_value(&system));
        body.items.push(ReadableItem::system(vec![part]));
    }
    for item in map.shift_remove("input")?.as_array()? {
        body.items.push(read_item(item));
    }
    let tools = map.shift_remove("tools");
    body.tools = elements(tools.as_ref())
        .map(ReadableTool::from_declaration)
        .collect();
    body.settings = format_settings(&map);
    Some(body)
}

/// Reads one item: a message, reasoning, a call, or a tool response.
fn read_item(item: &Value) -> ReadableItem {
    let field = |key: &str| format_field(item, key);
    let role = item.get("role").and_then(Value::as_str);
    let (speaker, parts) = match (item.get("type").and_then(Value::as_str), role) {
        (Some("reasoning"), _) => {
            let mut parts = read_parts(item.get("summary"), ReadablePartKind::Reasoning);
            parts.extend(read_parts(item.get("content"), ReadablePartKind::Reasoning));
            ("assistant", parts)
        }
        (Some("function_call"), _) => (
            "assistant",
            vec![ReadablePart::call(&field("name"), &field("arguments"))],
        ),
        (Some("function_call_output"), _) => (
            "tool",
            vec![ReadablePart::new(ReadablePartKind::Tool, field("output"))],
        ),
        (_, Some(role)) => (
            role,
            read_parts(item.get("content"), ReadablePartKind::Text),
        ),
        (_, None) => (
            "assistant",
            vec![ReadablePart::new(ReadablePartKind::Other, item.to_string())],
        ),
    };
    ReadableItem {
        speaker: speaker.to_owned(),
        role: SpeakerRole::from_name(speaker),
        parts,
    }
}

/// Reads a content: a text, or an array of parts that hold one text each.
fn read_parts(content: Option<&Value>, kind: ReadablePartKind) -> Vec<ReadablePart> {
    let read_part = |part: &Value| match part.get("text").or_else(|| part.get("refusal")) {
        Some(text) => ReadablePart::new(kind, format_value(text)),
        None => ReadablePart::new(ReadablePartKind::Other, part.to_string()),
    };
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(read_part).collect(),
        Some(other) => vec![ReadablePart::new(kind, format_value(other))],
    }
}

//! Request bodies of the Messages API as a person reads them.

use serde_json::{Map, Value};

use super::super::readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, ReadableTool, SpeakerRole,
    elements, format_field, format_settings, format_value,
};

/// Reads a body; returns `None` if its messages don't have the shape of this API.
pub(in super::super) fn explain_body(mut map: Map<String, Value>) -> Option<ReadableBody> {
    let mut body = ReadableBody::default();
    if let Some(system) = map.shift_remove("system") {
        body.items.push(ReadableItem::system(read_parts(&system)));
    }
    for message in map.shift_remove("messages")?.as_array()? {
        let name = message.get("role")?.as_str()?;
        let parts = read_parts(message.get("content")?);
        // Anthropic sends tool results in messages of the role `user`.
        let (speaker, role) = SpeakerRole::of_message(name, &parts);
        body.items.push(ReadableItem {
            speaker: speaker.to_owned(),
            role,
            parts,
        });
    }
    let tools = map.shift_remove("tools");
    body.tools = elements(tools.as_ref())
        .map(ReadableTool::from_declaration)
        .collect();
    body.settings = format_settings(&map);
    Some(body)
}

/// Reads a content: a text, or an array of content blocks.
fn read_parts(content: &Value) -> Vec<ReadablePart> {
    let Some(blocks) = content.as_array() else {
        return vec![ReadablePart::new(
            ReadablePartKind::Text,
            format_value(content),
        )];
    };
    let read_block = |block: &Value| {
        let field = |key: &str| format_field(block, key);
        match block.get("type").and_then(Value::as_str) {
            Some("text") => ReadablePart::new(ReadablePartKind::Text, field("text")),
            Some("thinking") => ReadablePart::new(ReadablePartKind::Reasoning, field("thinking")),
            Some("tool_use") => ReadablePart::call(&field("name"), &field("input")),
            Some("tool_result") => ReadablePart::new(ReadablePartKind::Tool, field("content")),
            _ => ReadablePart::new(ReadablePartKind::Other, block.to_string()),
        }
    };
    blocks.iter().map(read_block).collect()
}

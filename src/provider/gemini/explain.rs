//! Request bodies of `generateContent` as a person reads them.

use serde_json::{Map, Value};

use super::super::readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, ReadableTool, SpeakerRole,
    elements, format_field, format_settings, format_value,
};

/// Reads a body; returns `None` if it has no array `contents`.
pub(in super::super) fn explain_body(mut map: Map<String, Value>) -> Option<ReadableBody> {
    let mut body = ReadableBody::default();
    // The REST API accepts both spellings, and `extra_body` or a hand edit can use the second.
    for key in ["systemInstruction", "system_instruction"] {
        if let Some(system) = map.shift_remove(key) {
            body.items.push(ReadableItem::system(read_parts(&system)));
        }
    }
    for content in map.shift_remove("contents")?.as_array()? {
        let name = content
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or("user");
        let parts = read_parts(content);
        let (speaker, role) = SpeakerRole::of_message(name, &parts);
        body.items.push(ReadableItem {
            speaker: speaker.to_owned(),
            role,
            parts,
        });
    }
    let tools = map.shift_remove("tools");
    body.tools = elements(tools.as_ref())
        .flat_map(|tool| elements(tool.get("functionDeclarations")))
        .map(ReadableTool::from_declaration)
        .collect();
    if let Some(Value::Object(config)) = map.shift_remove("generationConfig") {
        body.settings = format_settings(&config);
    }
    body.settings.extend(format_settings(&map));
    Some(body)
}

/// Reads the parts of a content.
fn read_parts(content: &Value) -> Vec<ReadablePart> {
    elements(content.get("parts")).map(read_part).collect()
}

fn read_part(part: &Value) -> ReadablePart {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        let kind = if is_thought {
            ReadablePartKind::Reasoning
        } else {
            ReadablePartKind::Text
        };
        ReadablePart::new(kind, text)
    } else if let Some(call) = part.get("functionCall") {
        let arguments = call.get("args").map_or_else(String::new, Value::to_string);
        ReadablePart::call(&format_field(call, "name"), &arguments)
    } else if let Some(answer) = part.get("functionResponse") {
        let response = answer.get("response").unwrap_or(answer);
        let text = response.get("output").or_else(|| response.get("error"));
        let text = text.map_or_else(|| response.to_string(), format_value);
        ReadablePart::new(ReadablePartKind::Tool, text)
    } else {
        ReadablePart::new(ReadablePartKind::Other, part.to_string())
    }
}

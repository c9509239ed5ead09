//! Request bodies of the `rules` judge as a person reads them.

use serde_json::{Map, Value};

use crate::provider::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, ReadableTool, SpeakerRole,
    format_field, format_settings, format_value,
};

/// Reads a body of the `rules` judge; returns `None` if it is another provider's.
pub fn explain_request_body(body: &str) -> Option<ReadableBody> {
    let Value::Object(mut map) = serde_json::from_str(body).ok()? else {
        return None;
    };
    // These two keys occur together only in a body of `rules`.
    if !map.get("prompt").is_some_and(Value::is_string) || !map.contains_key("judge") {
        return None;
    }
    let mut body = ReadableBody::default();
    let prompt = map.shift_remove("prompt");
    body.items.push(ReadableItem {
        speaker: "user".to_owned(),
        role: SpeakerRole::User,
        parts: prompt
            .iter()
            .map(|text| ReadablePart::new(ReadablePartKind::Text, format_value(text)))
            .collect(),
    });
    body.items
        .extend(take_array(&mut map, "results").iter().map(|result| {
            let field = |key: &str| format_field(result, key);
            let failed = result.get("is_error") == Some(&Value::Bool(true));
            let call = format!("{}({})", field("call"), field("arguments"));
            ReadableItem {
                speaker: if failed { "tool, an error" } else { "tool" }.to_owned(),
                role: SpeakerRole::Tool,
                parts: vec![
                    ReadablePart::new(ReadablePartKind::Tool, call),
                    ReadablePart::new(ReadablePartKind::Text, field("result")),
                ],
            }
        }));
    // The body lists the names of the tools alone.
    body.tools = take_array(&mut map, "tools")
        .iter()
        .map(|name| ReadableTool {
            name: format_value(name),
            description: String::new(),
        })
        .collect();
    // The keys above are removed from `map`, so only settings remain.
    let settings: Map<String, Value> = map.into_iter().map(name_setting).collect();
    body.settings = format_settings(&settings);
    Some(body)
}

/// Returns a setting with the words of the glossary: `answer` is the verdict format.
fn name_setting((key, value): (String, Value)) -> (String, Value) {
    if key != "answer" {
        return (key, value);
    }
    let format = match value.as_str() {
        Some("any") => "function call".into(),
        Some("verdict") => "function call, due in this turn".into(),
        Some("text") => "JSON text".into(),
        _ => value,
    };
    ("verdict format".to_owned(), format)
}

/// Removes an array from `map`; returns an empty one if it is absent or not an array.
fn take_array(map: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match map.shift_remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

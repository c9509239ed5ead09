//! Request bodies of the embeddings endpoints as a person reads them: the texts.

use serde_json::{Map, Value};

use super::super::readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, SpeakerRole, format_settings,
};

/// Returns true if a body asks for embeddings: `input` as a list of texts, or `requests` with contents.
pub(in super::super) fn is_body(map: &Map<String, Value>) -> bool {
    let has_texts = |key: &str| {
        let items = map.get(key).and_then(Value::as_array);
        items.is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_string))
    };
    let requests = map.get("requests").and_then(Value::as_array);
    has_texts("input") || requests.is_some_and(|all| all.iter().any(|one| text_of(one).is_some()))
}

/// Reads a body: each text is one item, the last one is compared with the others.
pub(in super::super) fn explain_body(mut map: Map<String, Value>) -> ReadableBody {
    let mut body = ReadableBody::default();
    let mut texts: Vec<String> = Vec::new();
    if let Some(Value::Array(input)) = map.shift_remove("input") {
        texts.extend(input.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    if let Some(Value::Array(requests)) = map.shift_remove("requests") {
        texts.extend(requests.iter().filter_map(text_of).map(str::to_owned));
        // The settings of all texts are equal, so those of the first are enough.
        if let Some(Value::Object(first)) = requests.into_iter().next() {
            let settings = first.into_iter().filter(|(key, _)| key != "content");
            map.extend(settings);
        }
    }
    let last = texts.len().saturating_sub(1);
    body.items
        .extend(texts.into_iter().enumerate().map(|(index, text)| {
            let speaker = if index == last {
                "compared text".to_owned()
            } else {
                format!("reference {}", index + 1)
            };
            ReadableItem {
                speaker,
                role: SpeakerRole::User,
                parts: vec![ReadablePart::new(ReadablePartKind::Text, text)],
            }
        }));
    body.settings = format_settings(&map);
    body
}

/// Returns the text of one request of the Gemini API.
fn text_of(request: &Value) -> Option<&str> {
    request.pointer("/content/parts/0/text")?.as_str()
}

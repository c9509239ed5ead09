//! Request bodies of the Decisions endpoints as a person reads them: one text, and the questions about it.

use serde_json::{Map, Value};

use super::super::readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, SpeakerRole, format_field,
    format_settings, format_value,
};

/// Reads a body. Its questions are an array with names, or an object whose keys are the names.
pub(in super::super) fn explain_body(mut map: Map<String, Value>) -> ReadableBody {
    let mut body = ReadableBody::default();
    let input = map.shift_remove("input");
    body.items.push(ReadableItem {
        speaker: "user".to_owned(),
        role: SpeakerRole::User,
        parts: input
            .iter()
            .map(|text| ReadablePart::new(ReadablePartKind::Text, format_value(text)))
            .collect(),
    });
    let questions: Vec<(String, Value)> = match map.shift_remove("questions") {
        Some(Value::Array(list)) => {
            let with_name = |question: Value| (format_field(&question, "name"), question);
            list.into_iter().map(with_name).collect()
        }
        Some(Value::Object(by_name)) => by_name.into_iter().collect(),
        _ => Vec::new(),
    };
    for (name, question) in questions {
        let mut parts = vec![ReadablePart::new(
            ReadablePartKind::Text,
            format_field(&question, "instructions"),
        )];
        // OpenAI's two keys, then Google's.
        for key in ["choices", "levels", "criteria"] {
            parts.extend(
                question
                    .get(key)
                    .map(|value| ReadablePart::new(ReadablePartKind::Other, format_value(value))),
            );
        }
        body.items.push(ReadableItem {
            speaker: format!("question {name}: {}", format_field(&question, "type")),
            role: SpeakerRole::User,
            parts,
        });
    }
    body.settings = format_settings(&map);
    body
}

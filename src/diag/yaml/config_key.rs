//! Descriptions of the keys of a file that a user writes.
//!
//! Responsible for one table of keys per mapping, which the strict decoder and the JSON Schema for editors share. Does not
//! read values: [`MappingDecoder`](super::MappingDecoder) does.

use serde_json::{Map, Value, json};

/// A key of a mapping in a user's file.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    /// The key as files spell it.
    pub name: &'static str,
    /// A sentence for editors, which show it as help.
    pub doc: &'static str,
    /// Builds the JSON Schema of the value from `doc`.
    schema: fn(&str) -> Value,
}

impl ConfigKey {
    /// Creates a key from its name, its help sentence and the builder of its JSON Schema.
    pub const fn new(name: &'static str, doc: &'static str, schema: fn(&str) -> Value) -> Self {
        Self { name, doc, schema }
    }

    /// Returns the JSON Schema of the value, with its description.
    pub fn schema(&self) -> Value {
        (self.schema)(self.doc)
    }
}

/// Returns the `properties` of a JSON Schema, in the order of the table.
pub fn properties_schema<'k>(keys: impl IntoIterator<Item = &'k ConfigKey>) -> Value {
    let properties = keys
        .into_iter()
        .map(|key| (key.name.to_owned(), key.schema()));
    Value::Object(properties.collect::<Map<_, _>>())
}

/// Returns the JSON Schema of a text that is not empty.
pub fn text_schema(doc: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": doc})
}

/// Returns the JSON Schema of a text that may be empty.
pub fn any_text_schema(doc: &str) -> Value {
    json!({"type": "string", "description": doc})
}

/// Returns the JSON Schema of one text or a list of texts, none of them empty.
pub fn text_list_schema(doc: &str) -> Value {
    json!({
        "description": doc,
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        ],
    })
}

/// Returns the names of a table of choices, as the `enum` of a JSON Schema lists them.
pub fn choice_names<T>(choices: &[(&'static str, T)]) -> Value {
    choices.iter().map(|(name, _)| Value::from(*name)).collect()
}

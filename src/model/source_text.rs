//! Text that may borrow from the file it was read from.
//!
//! `serde` borrows a bare `Cow<str>` field only with an attribute and never inside `Option` or `Vec`. These newtypes
//! borrow in every position, so that code checks need no copies.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// Formats a number with its noun: `1 cell`, `2 cells`.
pub fn pluralize<N: fmt::Display + PartialEq + From<u8> + Copy>(n: N, noun: &str) -> String {
    let many = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{many}")
}

/// A string, borrowed from its source if it contains no escapes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceText<'a>(pub Cow<'a, str>);

impl SourceText<'_> {
    /// Copies the text.
    pub fn into_owned(self) -> SourceText<'static> {
        SourceText(Cow::Owned(self.0.into_owned()))
    }
}

impl Deref for SourceText<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SourceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for SourceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> From<&'a str> for SourceText<'a> {
    fn from(s: &'a str) -> Self {
        Self(Cow::Borrowed(s))
    }
}

impl From<String> for SourceText<'_> {
    fn from(s: String) -> Self {
        Self(Cow::Owned(s))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for SourceText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = SourceText<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(SourceText(Cow::Borrowed(v)))
            }
            fn visit_str<E: Error>(self, v: &str) -> Result<Self::Value, E> {
                Ok(SourceText(Cow::Owned(v.to_owned())))
            }
            fn visit_string<E: Error>(self, v: String) -> Result<Self::Value, E> {
                Ok(SourceText(Cow::Owned(v)))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

impl Serialize for SourceText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// JSON kept as its own text, with numbers as written. Callers parse it when they need the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonText<'a>(SourceText<'a>);

impl JsonText<'_> {
    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Returns the parsed value. It always succeeds, because only valid JSON becomes a `JsonText`.
    pub fn parse_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }

    /// Copies the JSON.
    pub fn into_owned(self) -> JsonText<'static> {
        JsonText(self.0.into_owned())
    }

    /// Converts a value to compact JSON text.
    pub fn from_value(value: &serde_json::Value) -> JsonText<'static> {
        JsonText(SourceText(Cow::Owned(value.to_string())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer)
            .map(|raw| JsonText(SourceText(Cow::Borrowed(raw.get()))))
    }
}

impl Serialize for JsonText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Owned, comparable JSON kept as its own text. Events hold it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(pub Box<RawValue>);

/// Returns true if a text is a complete JSON object.
pub fn is_json_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

impl RawJson {
    /// Keeps a text as written if it is valid JSON.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Box<RawValue>>(text).map(Self)
    }

    /// Serializes a value as compact JSON.
    pub fn from_serializable(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// Escapes `~` and `/` in one step of a JSON pointer.
pub fn escape_pointer_step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Calls `visit` with the key and the value of each entry of an object, and with each item of a list. `at` is the JSON
/// pointer of `value`; during the call, it is that of the entry or item.
pub fn visit_children<'v>(
    value: &'v serde_json::Value,
    at: &mut String,
    mut visit: impl FnMut(Option<&'v str>, &'v serde_json::Value, &mut String),
) {
    let depth = at.len();
    let mut visit_at = |step: &str, key: Option<&'v str>, child: &'v serde_json::Value| {
        at.push('/');
        at.push_str(step);
        visit(key, child, at);
        at.truncate(depth);
    };
    match value {
        serde_json::Value::Object(map) => {
            for (key, child) in map {
                visit_at(&escape_pointer_step(key), Some(key.as_str()), child);
            }
        }
        serde_json::Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                visit_at(&index.to_string(), None, item);
            }
        }
        _ => {}
    }
}

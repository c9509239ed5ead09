//! Text that may still belong to the file it was read from.
//!
//! `serde` borrows a bare `Cow<str>` field only with an attribute and never inside `Option` or `Vec`; these two newtypes
//! borrow wherever they stand, which is what keeps the deterministic path free of copies.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A number with its noun: `1 cell`, `2 cells`.
pub fn pluralize<N: fmt::Display + PartialEq + From<u8> + Copy>(n: N, noun: &str) -> String {
    let many = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{many}")
}

/// A string, borrowed from its source where it holds no escapes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceText<'a>(pub Cow<'a, str>);

impl SourceText<'_> {
    /// The same text, owned.
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

/// JSON kept as its own text: parsed only by those who need it, numbers as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonText<'a>(SourceText<'a>);

impl JsonText<'_> {
    /// The text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// The parsed value. Holds for every `JsonText`, since only valid JSON becomes one.
    pub fn parse_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }

    /// The same JSON, owned.
    pub fn into_owned(self) -> JsonText<'static> {
        JsonText(self.0.into_owned())
    }

    /// Any value as its compact text.
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

/// Owned JSON kept as its own text, comparable; what events hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(pub Box<RawValue>);

impl RawJson {
    /// Checks that `text` is JSON and keeps it as written.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Box<RawValue>>(text).map(Self)
    }

    /// Any value as compact JSON.
    pub fn from_serializable(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// `name` as one step of a JSON pointer: `~` and `/` escaped.
pub fn escape_pointer_step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

//! Access to the fields of a JSON object without a tree: the keys in order, the values as written.
//!
//! Responsible for the tolerant access that readers of foreign formats share. `null` counts as absent, and a value of
//! an unexpected type counts as absent. Numbers stay as written. Does not report errors in values.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::native::{format_json_error, json_string, text_or_json};
use crate::model::SourceText;

/// The entries of a JSON object.
#[derive(Debug, Clone, Default)]
pub(super) struct RawFields<'a>(Vec<(SourceText<'a>, &'a RawValue)>);

/// Returns the whole part of a number as a count; 0 for a negative number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast of a number out of range gives the nearest count"
)]
pub(super) fn truncate_to_count(number: f64) -> u64 {
    number as u64
}

impl<'a> RawFields<'a> {
    /// Parses a text as an object. The error is a sentence fragment.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|why| format_json_error(&why))
    }

    /// Returns the object, if the bytes are one in UTF-8.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        Self::parse(std::str::from_utf8(bytes).ok()?).ok()
    }

    /// Returns the object, if the value is one.
    pub(super) fn from_raw(raw: &'a RawValue) -> Option<Self> {
        // A check of the first byte avoids serde's error, which is slow to create for a long text.
        raw.get()
            .starts_with('{')
            .then(|| serde_json::from_str(raw.get()).ok())?
    }

    /// Returns a value that is not null. If a key occurs twice, the last one counts, as in most JSON parsers.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        let mut last = self.0.iter().rev();
        // serde cannot return duplicate keys from a map type, so the entries are a list.
        let (_, value) = last.find(|(name, _)| &**name == key)?;
        (value.get() != "null").then_some(*value)
    }

    /// Returns the first of these keys that has a value.
    pub(super) fn get_first(&self, keys: &[&str]) -> Option<&'a RawValue> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// Returns true if the key has a value other than null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns true if the key exists, even with null.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| &**name == key)
    }

    /// Returns a string.
    pub(super) fn text(&self, key: &str) -> Option<SourceText<'a>> {
        self.get(key).and_then(json_string)
    }

    /// Returns a string that is not empty.
    pub(super) fn filled_text(&self, key: &str) -> Option<SourceText<'a>> {
        self.text(key).filter(|text| !text.is_empty())
    }

    /// Returns a string, or any other value as written.
    pub(super) fn text_or_json(&self, key: &str) -> Option<SourceText<'a>> {
        self.get(key).map(text_or_json)
    }

    /// Returns an id: a string that is not empty, or the digits of a number.
    pub(super) fn id_text(&self, key: &str) -> Option<SourceText<'a>> {
        self.get(key).and_then(super::native::id_text)
    }

    /// Returns an object.
    pub(super) fn object(&self, key: &str) -> Option<Self> {
        self.get(key).and_then(Self::from_raw)
    }

    /// Returns the elements of a list as written.
    pub(super) fn list(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.get(key).and_then(list_items)
    }

    /// Returns a whole number.
    pub(super) fn integer(&self, key: &str) -> Option<u64> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Returns a number.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Returns a Boolean.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Adds the entries of another object. Their values count if a key occurs in both.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns all entries in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (&**key, *value))
    }
}

/// Returns the elements of a list.
pub(super) fn list_items(raw: &RawValue) -> Option<Vec<&RawValue>> {
    raw.get()
        .starts_with('[')
        .then(|| serde_json::from_str(raw.get()).ok())?
}

/// Removes the white space between the tokens of JSON. Numbers and strings stay as written.
pub(super) fn compact_json(json: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let (mut from, mut in_string, mut escaped) = (0, false, false);
    // Bytes are enough: all tokens of JSON are ASCII, and UTF-8 has no ASCII byte inside a character.
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b' ' | b'\t' | b'\r' | b'\n' if !in_string => {
                kept.push_str(&json[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    // Most values have no white space between tokens, so the common case copies nothing.
    if from == 0 {
        return Cow::Borrowed(json);
    }
    kept.push_str(&json[from..]);
    Cow::Owned(kept)
}

/// Returns the text of a JSON string, an empty text for null, or other JSON without white space between tokens.
pub(super) fn text_or_compact_json(raw: &RawValue) -> SourceText<'_> {
    let written = raw.get();
    // Only objects and lists contain white space between tokens.
    if !written.starts_with(['{', '[']) {
        return text_or_json(raw);
    }
    SourceText(compact_json(written))
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawFieldsVisitor;
        impl<'de> Visitor<'de> for RawFieldsVisitor {
            type Value = RawFields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(RawFields(all))
            }
        }
        deserializer.deserialize_map(RawFieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sniff_keeps_known_keys_and_ignores_the_rest() {
        let text =
            r#"{"a": "x", "n": 12345678901234567890123, "null": null, "o": {"k": [1]}, "a": "y"}"#;
        let fields = RawFields::parse(text).expect("an object");
        assert_eq!(
            fields.text("a").as_deref(),
            Some("y"),
            "the last one counts"
        );
        assert!(!fields.has("null") && fields.text("n").is_none());
        let digits = Some("12345678901234567890123");
        assert_eq!(fields.text_or_json("n").as_deref(), digits);
        assert_eq!(fields.id_text("n").as_deref(), digits);
        let inner = fields.object("o").and_then(|o| o.list("k"));
        assert_eq!(inner.expect("a list").len(), 1);
        for bad in ["[]", "5", "{\"a\":", "{\"a\": nan}"] {
            assert!(RawFields::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn compact_json_keeps_strings_and_numbers() {
        for (wide, tight) in [
            ("{ \"a b\" :\n 1.0 }", "{\"a b\":1.0}"),
            (
                r#"{"q": "\" x \\", "n": 1e400}"#,
                r#"{"q":"\" x \\","n":1e400}"#,
            ),
            ("[]", "[]"),
            (" [1 , 2]", "[1,2]"),
        ] {
            assert_eq!(compact_json(wide), tight);
        }
    }
}

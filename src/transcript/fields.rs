//! An object of a foreign record, looked into without a tree: its keys in order, its values as written.
//!
//! Owns the tolerant look that the readers of other formats share. `null` is as good as absent, and what is of another
//! kind than asked for is none: a reader takes what it knows and leaves the rest where it is. Numbers stay as written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::native::{format_json_error, json_string, text_or_json};
use crate::model::SourceText;

/// The entries of a JSON object.
#[derive(Debug, Clone, Default)]
pub(super) struct RawFields<'a>(Vec<(SourceText<'a>, &'a RawValue)>);

impl<'a> RawFields<'a> {
    /// The object that a text is. The error is a sentence.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|why| format_json_error(&why))
    }

    /// The object that a value is.
    pub(super) fn from_raw(raw: &'a RawValue) -> Option<Self> {
        // Asked first: the error of a long text would be costly to make.
        raw.get()
            .starts_with('{')
            .then(|| serde_json::from_str(raw.get()).ok())?
    }

    /// A value that is not null; of a key given twice the last, as most readers have it.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        let mut last = self.0.iter().rev();
        let (_, value) = last.find(|(name, _)| &**name == key)?;
        (value.get() != "null").then_some(*value)
    }

    /// The first of these that is there.
    pub(super) fn get_first(&self, keys: &[&str]) -> Option<&'a RawValue> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// Whether the key is there and not null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether the key is there at all.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| &**name == key)
    }

    /// A string.
    pub(super) fn text(&self, key: &str) -> Option<SourceText<'a>> {
        self.get(key).and_then(json_string)
    }

    /// A string, or anything else as it is written.
    pub(super) fn text_or_json(&self, key: &str) -> Option<SourceText<'a>> {
        self.get(key).map(text_or_json)
    }

    /// A string or a number's digits, where it is not empty: what names something.
    pub(super) fn id_text(&self, key: &str) -> Option<SourceText<'a>> {
        self.get(key).and_then(super::native::id_text)
    }

    /// An object.
    pub(super) fn object(&self, key: &str) -> Option<Self> {
        self.get(key).and_then(Self::from_raw)
    }

    /// A list, its entries as written.
    pub(super) fn list(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.get(key).and_then(list_items)
    }

    /// A whole number.
    pub(super) fn integer(&self, key: &str) -> Option<u64> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// A number.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// True or false.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// All entries in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (&**key, *value))
    }
}

/// The entries of a list.
pub(super) fn list_items(raw: &RawValue) -> Option<Vec<&RawValue>> {
    raw.get()
        .starts_with('[')
        .then(|| serde_json::from_str(raw.get()).ok())?
}

/// JSON without the white space between its tokens; numbers and strings stay as written.
pub(super) fn compact_json(json: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let (mut from, mut in_string, mut escaped) = (0, false, false);
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
    if from == 0 {
        return Cow::Borrowed(json);
    }
    kept.push_str(&json[from..]);
    Cow::Owned(kept)
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
    fn a_look_takes_what_it_knows_and_leaves_the_rest() {
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

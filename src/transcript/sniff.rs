//! The top-level keys of a record, for the detection of formats.
//!
//! Responsible for a look at a record that may be incomplete. Does not parse values other than `type`.

use std::cell::OnceCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::outline::outline;
use crate::model::SourceText;

/// Returns the columns of a table if the line is its header. Each must look like a name: a sentence with a comma is not
/// a header.
pub(super) fn parse_csv_header(line: &[u8]) -> Option<Vec<&str>> {
    let header = std::str::from_utf8(line).ok()?.trim();
    let columns: Vec<&str> = header
        .split(',')
        .map(|cell| cell.trim_matches('"'))
        .collect();
    let is_name = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    (columns.len() >= 2 && columns.iter().all(is_name)).then_some(columns)
}

/// The top-level keys of a record, up to the first error.
#[derive(Debug, Default)]
pub(super) struct RecordSniff {
    keys: Vec<String>,
    /// The value of `type`, if it is a string.
    kind: String,
    /// True if the record ends early: a preview contains only the beginning of a large record.
    is_cut: bool,
    /// The outline, once a format asks for it.
    outline: OnceCell<Value>,
}

impl RecordSniff {
    /// Reads the keys of a record.
    pub(super) fn from_record(record: &[u8]) -> Self {
        let mut sniff = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(record);
        // An error is harmless: the keys before it remain, and the parser reports it later.
        let torn = (&mut sniff).deserialize(&mut reader).err();
        sniff.is_cut = torn.is_some_and(|error| error.is_eof());
        sniff
    }

    /// Returns true if the record isn't an object or has no keys.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns true if the record may have further keys after those that the preview contains.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns true if the record has the key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|own_key| own_key == key)
    }

    /// Returns true if `type` begins with one of these texts.
    pub(super) fn type_starts_with(&self, with: &[&str]) -> bool {
        with.iter().any(|prefix| self.kind.starts_with(prefix))
    }

    /// Returns the outline of the record. `record` is the record of [`Self::from_record`].
    pub(super) fn outline(&self, record: &[u8]) -> &Value {
        self.outline.get_or_init(|| outline(record))
    }

    /// Describes the record as a sentence fragment, for an error about missing messages. `is_whole` is true if the file
    /// has no more of the record.
    pub(super) fn describe(&self, record: &[u8], is_whole: bool) -> String {
        // A text such as `t` also ends early for the parser, but it is the beginning of no object.
        let is_cut_off = self.is_cut && is_whole && record.starts_with(b"{");
        if !self.keys.is_empty() {
            let keys: Vec<String> = self
                .keys
                .iter()
                .take(6)
                .map(|key| format!("{:?}", truncate_text(key)))
                .collect();
            let problem = if is_cut_off {
                "its first record is cut off before its end"
            } else if self.has("messages") {
                "the `messages` of its first record have no known shape"
            } else {
                "its first record has no `messages`"
            };
            return format!("{problem} (it has {})", keys.join(", "));
        }
        let line = record.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let beginning = truncate_text(line.trim());
        if is_cut_off {
            return format!("its first record is cut off before its end: {beginning:?}");
        }
        if beginning.starts_with('{') {
            return format!("its first record is not JSON with `messages`: {beginning:?}");
        }
        format!(
            "it is neither JSON lines nor a JSON array of objects; it begins with {beginning:?}"
        )
    }
}

/// Returns the first 40 characters.
fn truncate_text(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(at, _)| &text[..at])
}

impl<'de> DeserializeSeed<'de> for &mut RecordSniff {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut RecordSniff {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<SourceText<'de>>()? {
            // Only `type` has a value that the detection needs.
            let is_kind = &*key == "type";
            // The limit protects the memory against a record with millions of keys.
            if self.keys.len() < 256 {
                self.keys.push(key.0.into_owned());
            }
            if is_kind {
                let raw: &'de RawValue = map.next_value()?;
                // A `type` that is not a string counts as absent.
                self.kind = serde_json::from_str(raw.get()).unwrap_or_default();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

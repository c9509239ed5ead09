//! What a record tells about itself before it is read: the keys of its top level.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::SourceText;

/// The columns of a table, if the line is the header of one: names alone, since a sentence with a comma is no header.
pub(super) fn parse_csv_header(line: &[u8]) -> Option<Vec<&str>> {
    let header = std::str::from_utf8(line).ok()?.trim();
    let columns: Vec<&str> = header.split(',').map(|c| c.trim_matches('"')).collect();
    let is_name = |c: &&str| {
        !c.is_empty()
            && c.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    (columns.len() >= 2 && columns.iter().all(is_name)).then_some(columns)
}

/// The keys of a record's top level, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct RecordSniff {
    keys: Vec<String>,
    /// `type`, where it is a string.
    kind: String,
}

impl RecordSniff {
    pub(super) fn from_record(record: &[u8]) -> Self {
        let mut sniff = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(record);
        // An error is no loss: what was read before it is kept, and the parser will report it.
        let _torn = (&mut sniff).deserialize(&mut reader);
        sniff
    }

    /// Whether it is no object, or one without keys.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the key stands at the top.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|k| k == key)
    }

    /// Whether `type` begins with one of these.
    pub(super) fn type_starts_with(&self, with: &[&str]) -> bool {
        with.iter().any(|w| self.kind.starts_with(w))
    }

    /// What was found instead of messages, as a sentence.
    pub(super) fn describe(&self, record: &[u8]) -> String {
        if !self.keys.is_empty() {
            let keys: Vec<String> = self
                .keys
                .iter()
                .take(6)
                .map(|k| format!("{:?}", truncate_text(k)))
                .collect();
            return format!(
                "its first record has no `messages` (it has {})",
                keys.join(", ")
            );
        }
        let line = record.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let begin = truncate_text(line.trim());
        if begin.starts_with('{') {
            return format!("its first record is not JSON with `messages`: {begin:?}");
        }
        format!("it is neither JSON lines nor a JSON array of objects; it begins with {begin:?}")
    }
}

/// The first forty characters.
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
            let is_kind = &*key == "type";
            if self.keys.len() < 256 {
                self.keys.push(key.0.into_owned());
            }
            if is_kind {
                let raw: &'de RawValue = map.next_value()?;
                self.kind = serde_json::from_str(raw.get()).unwrap_or_default();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

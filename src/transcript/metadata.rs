//! The metadata that readers create: standard keys for evals, and the keys of the source.
//!
//! Responsible for the standard keys and for conflicts between both. Does not compute values: numbers are those of the
//! source. A reader adds up numbers only if the source counts one reply twice and reports the sum nowhere else.
//!
//! | key | of a message | of a transcript |
//! |---|---|---|
//! | `timestamp` | the time, as the source writes it | the start |
//! | `latency_ms` | the duration of the model call | the duration of the whole |
//! | `usage` | `{input, output, total, cached, thinking}` in tokens, as far as known | the sum of the source |
//! | `cost_usd` | the cost | the sum of the source |
//! | `model`, `stop_reason` | the model, and the reason why it stopped | the model |
//! | `is_error`, `duration_ms` | of a tool result | – |
//! | `source` | – | the format, in a word (`claude-code`, `inspect` …) |
//! | `parent` | – | `{transcript, tool_call_id}` of a sub-agent, `{transcript}` of a branch |
//! | `error` | – | the reason why the agent's run failed |

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::RawFields;
use super::native::owned_json;
use crate::model::JsonText;

/// The deepest nesting of a value. serde reads 128 levels, and the value is inside the metadata and `original`.
const MAX_VALUE_DEPTH: usize = 120;

/// The key below which values of the source are if dicta uses their keys.
const ORIGINAL: &str = "original";

/// The keys that readers set themselves. Their values never come from a key of a record.
const READER_KEYS: [&str; 4] = ["source", "parent", "pair", "choice"];

/// The number of keys up to which a search among all of them needs no map.
const MAX_SEARCHED_KEYS: usize = 32;

/// A metadata object under construction. Keys keep the order in which they were set. Values are JSON texts, so that the
/// numbers of the source stay as written.
#[derive(Debug, Clone, Default)]
pub(super) struct MetadataBuilder {
    entries: Vec<(String, String)>,
    /// The places of the keys in `entries`, if there are more than [`MAX_SEARCHED_KEYS`]. A source can have a million keys.
    places: Option<HashMap<String, usize>>,
}

impl MetadataBuilder {
    /// Sets a key, unless it is null.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        // Absent and null mean the same to evals, so null is never written.
        if !value.is_null() {
            self.insert_json(key, value.to_string());
        }
        self
    }

    /// Sets a key to a value of the source as written, unless it is null or absent.
    pub(super) fn set_raw(&mut self, key: &str, value: Option<&RawValue>) -> &mut Self {
        if let Some(value) = value.filter(|value| value.get() != "null") {
            self.insert_json(key, value.get().to_owned());
        }
        self
    }

    /// Like [`Self::set_raw`]; a value that is nested too deeply for evals becomes its text.
    pub(super) fn set_readable(&mut self, key: &str, value: Option<&RawValue>) -> &mut Self {
        if let Some(value) = value.filter(|value| value.get() != "null") {
            self.insert_json(key, format_readable(value));
        }
        self
    }

    /// Adds a key of a record that its reader did not read, unless it is null. If the reader uses the key for a value of its
    /// own, such as `source`, the record's value is below `original`. Any other key that is set has its value from the record.
    /// A value that is nested too deeply for evals becomes its text.
    pub(super) fn add_record_key(&mut self, key: &str, value: &RawValue) -> &mut Self {
        self.add_record_json(key, format_readable(value))
    }

    /// Adds a key as [`Self::add_record_key`] does, with its value as written.
    pub(super) fn add_raw_record_key(&mut self, key: &str, value: &RawValue) -> &mut Self {
        self.add_record_json(key, value.get().to_owned())
    }

    fn add_record_json(&mut self, key: &str, value: String) -> &mut Self {
        let is_taken = self.has(key);
        if value == "null" || (is_taken && !READER_KEYS.contains(&key)) {
            return self;
        }
        if is_taken {
            self.keep_originals([(key.to_owned(), value)]);
        } else {
            self.push(key.to_owned(), value);
        }
        self
    }

    /// Returns true if a key is set.
    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Returns the place of a key in `entries`.
    fn find(&self, key: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(key).copied(),
            None => self.entries.iter().position(|(name, _)| name == key),
        }
    }

    /// Adds a key that is not set.
    fn push(&mut self, key: String, value: String) {
        if let Some(places) = &mut self.places {
            places.insert(key.clone(), self.entries.len());
        }
        self.entries.push((key, value));
        if self.places.is_none() && self.entries.len() > MAX_SEARCHED_KEYS {
            let keys = self.entries.iter().enumerate();
            let places = keys.map(|(at, (key, _))| (key.clone(), at));
            self.places = Some(places.collect());
        }
    }

    /// Merges an object of the source: free keys as they are, taken keys below `original`.
    pub(super) fn merge_source(&mut self, source_object: Value) -> &mut Self {
        let Value::Object(source_object) = source_object else {
            return self;
        };
        let source_object = source_object
            .into_iter()
            .map(|(key, value)| (key, value.to_string()));
        self.merge_entries(source_object.collect())
    }

    /// Merges as [`Self::merge_source`] does, with every value as written.
    pub(super) fn merge_source_fields(&mut self, source_fields: &RawFields<'_>) -> &mut Self {
        let entries = source_fields
            .iter()
            .map(|(key, value)| (key.to_owned(), value.get().to_owned()));
        self.merge_entries(entries.collect())
    }

    /// Like [`Self::merge_source_fields`]; values that are nested too deeply for evals become their texts.
    pub(super) fn merge_readable_fields(&mut self, source_fields: &RawFields<'_>) -> &mut Self {
        let entries = source_fields
            .iter()
            .map(|(key, value)| (key.to_owned(), format_readable(value)));
        self.merge_entries(entries.collect())
    }

    /// Returns the object; `None` if it is empty.
    pub(super) fn finish(self) -> Option<JsonText<'static>> {
        if self.entries.is_empty() {
            return None;
        }
        owned_json(&format_object(&self.entries))
    }

    fn insert_json(&mut self, key: &str, value: String) {
        match self.find(key) {
            // The key keeps its place; only the value changes.
            Some(at) => self.entries[at].1 = value,
            None => self.push(key.to_owned(), value),
        }
    }

    fn merge_entries(&mut self, entries: Vec<(String, String)>) -> &mut Self {
        let (mut free, mut conflicts) = (IndexMap::new(), IndexMap::new());
        for (key, value) in entries {
            let list = if self.has(&key) {
                &mut conflicts
            } else {
                &mut free
            };
            // The last value of a key counts, as in most JSON parsers.
            list.insert(key, value);
        }
        for (key, value) in free {
            self.push(key, value);
        }
        // Both values remain: dicta's under the standard key, the source's below `original`.
        if !conflicts.is_empty() {
            self.keep_originals(conflicts);
        }
        self
    }

    /// Adds values of the source below `original`, next to those that are there.
    fn keep_originals(&mut self, values: impl IntoIterator<Item = (String, String)>) {
        let mut all: IndexMap<String, String> = IndexMap::new();
        if let Some(at) = self.find(ORIGINAL) {
            let before = &self.entries[at].1;
            match RawFields::parse(before) {
                Ok(fields) => {
                    let fields = fields.iter();
                    all.extend(fields.map(|(key, value)| (key.to_owned(), value.get().to_owned())));
                }
                // The source has a key `original` of its own.
                Err(_) => {
                    all.insert(ORIGINAL.to_owned(), before.clone());
                }
            }
        }
        for (key, value) in values {
            // The record and its metadata can have different values of one key.
            let key = if all.contains_key(&key) {
                format!("{key}~2")
            } else {
                key
            };
            all.insert(key, value);
        }
        let all: Vec<(String, String)> = all.into_iter().collect();
        self.insert_json(ORIGINAL, format_object(&all));
    }
}

/// Returns a value as written. A value that is nested too deeply for evals becomes its text, so that they can read the
/// rest of the metadata.
fn format_readable(value: &RawValue) -> String {
    if is_nested_deeper(value.get(), MAX_VALUE_DEPTH) {
        Value::from(value.get()).to_string()
    } else {
        value.get().to_owned()
    }
}

/// Returns true if the lists and objects of a JSON text are nested deeper than `max`.
fn is_nested_deeper(json: &str, max: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    json.bytes().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > max
    })
}

/// Returns the object of these entries, whose values are JSON.
fn format_object(entries: &[(String, String)]) -> String {
    let mut text = String::from("{");
    for (key, value) in entries {
        if text.len() > 1 {
            text.push(',');
        }
        // `Value` escapes the key; the value is already JSON.
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// Token counts under the standard key `usage`, as far as known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SourceUsage {
    /// Tokens that the model read, with those from a cache.
    pub(super) input: Option<u64>,
    /// Tokens that the model wrote, with thinking.
    pub(super) output: Option<u64>,
    /// The sum of the source.
    pub(super) total: Option<u64>,
    /// The part of `input` from a cache.
    pub(super) cached: Option<u64>,
    /// The part of `output` that is thinking.
    pub(super) thinking: Option<u64>,
}

impl SourceUsage {
    /// Returns the standard object; null if nothing is known.
    pub(super) fn to_json(self) -> Value {
        let mut map = Map::new();
        for (key, count) in [
            ("input", self.input),
            ("output", self.output),
            ("total", self.total),
            ("cached", self.cached),
            ("thinking", self.thinking),
        ] {
            if let Some(count) = count {
                map.insert(key.to_owned(), count.into());
            }
        }
        if map.is_empty() {
            Value::Null
        } else {
            Value::Object(map)
        }
    }

    /// Returns the tokens that the model read. For sources that count the tokens from a cache (`cached`) and those that
    /// were written to it (`written`) apart from the others.
    pub(super) fn input_with_cache(
        others: Option<u64>,
        cached: Option<u64>,
        written: Option<u64>,
    ) -> Option<u64> {
        let cache = [cached, written].into_iter().flatten();
        others.map(|others| cache.fold(others, u64::saturating_add))
    }

    /// Returns the sum of both. A missing count does not change the other one.
    pub(super) fn sum_with(self, more: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            input: sum(self.input, more.input),
            output: sum(self.output, more.output),
            total: sum(self.total, more.total),
            cached: sum(self.cached, more.cached),
            thinking: sum(self.thinking, more.thinking),
        }
    }
}

/// Returns the JSON of a raw value, borrowed.
pub(super) fn borrow_json(raw: &RawValue) -> JsonText<'_> {
    serde_json::from_str(raw.get()).expect("a raw value is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_a_record_that_its_reader_uses_is_below_original() {
        let record = r#"{"source":"web","parent":null,"model":"m","topic":"tea"}"#;
        let metadata = r#"{"source":"crawl","topic":"milk","lang":"en"}"#;
        let mut meta = MetadataBuilder::default();
        meta.set("source", "dataset").set("model", "m");
        for (key, value) in RawFields::parse(record).expect("a record").iter() {
            meta.add_record_key(key, value);
        }
        meta.merge_readable_fields(&RawFields::parse(metadata).expect("metadata"));
        let json = meta.finish().expect("metadata");
        assert_eq!(
            json.get(),
            r#"{"source":"dataset","model":"m","original":{"source":"web","source~2":"crawl","topic":"milk"},"topic":"tea","lang":"en"}"#
        );
    }

    #[test]
    fn own_key_original_of_a_source_is_kept_next_to_taken_keys() {
        let record = r#"{"original":"a text","source":"web"}"#;
        let mut meta = MetadataBuilder::default();
        meta.set("source", "dataset");
        for (key, value) in RawFields::parse(record).expect("a record").iter() {
            meta.add_record_key(key, value);
        }
        let json = meta.finish().expect("metadata");
        assert_eq!(
            json.get(),
            r#"{"source":"dataset","original":{"original":"a text","source":"web"}}"#
        );
    }
}

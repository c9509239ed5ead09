//! Metadata that a reader puts together: the standard keys that evals read, and the source's own beside them.
//!
//! | key | of a message | of a transcript |
//! |---|---|---|
//! | `timestamp` | when, as the source writes it | when it began |
//! | `latency_ms` | how long the model took | how long all took |
//! | `usage` | `{input, output, total, cached, thinking}` in tokens, those that are known | summed by the source |
//! | `cost_usd` | what it cost | summed by the source |
//! | `model`, `stop_reason` | which, why it stopped | which |
//! | `is_error`, `duration_ms` | of a tool's answer | – |
//! | `source` | – | the format, in a word (`claude-code`, `inspect` …) |
//! | `parent` | – | `{transcript, tool_call_id}` of a sub-agent, `{transcript}` of a branch |
//! | `error` | – | why the agent's run ended, where it failed |
//!
//! Numbers are what the source says, never made up; a sum is made here only where the source counts the same reply twice
//! and no other place says it.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::RawFields;
use super::native::owned_json;
use crate::model::JsonText;

/// Metadata in the making: keys in the order in which they were set, values as JSON texts, so that the source's own
/// numbers stay as written.
#[derive(Debug, Clone, Default)]
pub(super) struct MetadataBuilder(Vec<(String, String)>);

impl MetadataBuilder {
    /// Sets a key, unless it is null.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        if !value.is_null() {
            self.insert_json(key, value.to_string());
        }
        self
    }

    /// Sets a key to the source's own value as it is written, unless that is null or absent.
    pub(super) fn set_raw(&mut self, key: &str, value: Option<&RawValue>) -> &mut Self {
        if let Some(value) = value.filter(|value| value.get() != "null") {
            self.insert_json(key, value.get().to_owned());
        }
        self
    }

    /// Whether a key is set.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// Takes over the source's own object: keys that are not set yet as they are, the others below `original`.
    pub(super) fn merge_source(&mut self, own: Value) -> &mut Self {
        let Value::Object(own) = own else { return self };
        let own = own.into_iter().map(|(key, value)| (key, value.to_string()));
        self.merge_entries(own.collect())
    }

    /// The same, with every value as it is written.
    pub(super) fn merge_source_fields(&mut self, own: &RawFields<'_>) -> &mut Self {
        let own = own
            .iter()
            .map(|(key, value)| (key.to_owned(), value.get().to_owned()));
        self.merge_entries(own.collect())
    }

    /// The finished object; `None` where nothing was set.
    pub(super) fn finish(self) -> Option<JsonText<'static>> {
        if self.0.is_empty() {
            return None;
        }
        owned_json(&format_object(&self.0))
    }

    fn insert_json(&mut self, key: &str, value: String) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    fn merge_entries(&mut self, own: Vec<(String, String)>) -> &mut Self {
        let mut taken = Self::default();
        for (key, value) in own {
            if self.has(&key) {
                taken.insert_json(&key, value);
            } else {
                self.0.push((key, value));
            }
        }
        if !taken.0.is_empty() {
            self.insert_json("original", format_object(&taken.0));
        }
        self
    }
}

/// The object of these entries, whose values are JSON.
fn format_object(entries: &[(String, String)]) -> String {
    let mut text = String::from("{");
    for (key, value) in entries {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// Tokens as the standard key holds them: those that are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SourceUsage {
    /// Read by the model, those from a cache included.
    pub(super) input: Option<u64>,
    /// Written by the model, thinking included.
    pub(super) output: Option<u64>,
    /// As the source sums them.
    pub(super) total: Option<u64>,
    /// Of `input`, those from a cache.
    pub(super) cached: Option<u64>,
    /// Of `output`, thinking.
    pub(super) thinking: Option<u64>,
}

impl SourceUsage {
    /// The standard object; null where nothing is known.
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

    /// Both together; a number that one of them lacks is the other's.
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

/// The JSON of a raw value, borrowed.
pub(super) fn borrow_json(raw: &RawValue) -> JsonText<'_> {
    serde_json::from_str(raw.get()).expect("a raw value is JSON")
}

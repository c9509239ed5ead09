//! OTLP JSON: resources, scopes, spans, log records and attributes. Every field is optional, and nothing is copied.
//!
//! Responsible for the spellings (`instrumentationLibrarySpans`, int64 as text or number, ids of any form) and for
//! attribute values as text or JSON. Does not know the attribute names of generative AI.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::SourceText;
use crate::transcript::content::ObjectOnly;
use crate::transcript::formats::lenient_message::as_json_string;

/// The maximum depth of nested values. Deeper values stay as OTLP writes them.
const MAX_VALUE_DEPTH: usize = 64;

/// One request: a line, or the whole file.
#[derive(Deserialize)]
pub(super) struct OtlpRequest<'a> {
    #[serde(borrow, default, rename = "resourceSpans", alias = "batches")]
    pub(super) spans: Option<Vec<OtlpResource<'a>>>,
    #[serde(borrow, default, rename = "resourceLogs")]
    pub(super) logs: Option<Vec<OtlpResource<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct OtlpResource<'a> {
    #[serde(
        borrow,
        default,
        rename = "scopeSpans",
        alias = "instrumentationLibrarySpans",
        alias = "scopeLogs",
        alias = "instrumentationLibraryLogs"
    )]
    pub(super) scopes: Option<Vec<OtlpScope<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct OtlpScope<'a> {
    #[serde(
        borrow,
        default,
        rename = "spans",
        alias = "logRecords",
        alias = "logs"
    )]
    pub(super) entries: Option<Vec<&'a RawValue>>,
}

/// A span or a log record, whose fields have different names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OtlpEntry<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) trace_id: SourceText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) span_id: SourceText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) parent_span_id: SourceText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) name: SourceText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) event_name: SourceText<'a>,
    #[serde(default, deserialize_with = "nanos")]
    pub(super) start_time_unix_nano: Option<u64>,
    #[serde(default, deserialize_with = "nanos")]
    pub(super) end_time_unix_nano: Option<u64>,
    #[serde(default, deserialize_with = "nanos")]
    pub(super) time_unix_nano: Option<u64>,
    #[serde(default, deserialize_with = "nanos")]
    pub(super) observed_time_unix_nano: Option<u64>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) attributes: OtlpAttrs<'a>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) events: Vec<OtlpEvent<'a>>,
    #[serde(borrow, default)]
    pub(super) body: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) status: OtlpStatus<'a>,
}

/// An event of a span.
#[derive(Deserialize)]
pub(super) struct OtlpEvent<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) name: SourceText<'a>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) attributes: OtlpAttrs<'a>,
}

/// The status of a span.
#[derive(Deserialize, Default)]
pub(super) struct OtlpStatus<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) message: SourceText<'a>,
}

impl OtlpStatus<'_> {
    /// Returns true if the span failed.
    pub(super) fn is_error(&self) -> bool {
        // OTLP JSON writes the code as a number, its name, or a number in a string.
        let code = self.code.map(RawValue::get);
        matches!(code, Some("2" | "\"STATUS_CODE_ERROR\"" | "\"2\""))
    }
}

/// Attributes in their order.
#[derive(Deserialize, Default)]
#[serde(transparent)]
pub(super) struct OtlpAttrs<'a> {
    #[serde(borrow)]
    pairs: Vec<OtlpKeyValue<'a>>,
}

#[derive(Deserialize)]
pub(super) struct OtlpKeyValue<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) key: SourceText<'a>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

/// A value in OTLP's wrapper.
#[expect(clippy::struct_field_names, reason = "OTLP's names")]
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct OtlpAnyValue<'a> {
    #[serde(borrow, default)]
    string_value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    bool_value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    int_value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    double_value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    bytes_value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    array_value: Option<ObjectOnly<OtlpArray<'a>>>,
    #[serde(borrow, default)]
    kvlist_value: Option<ObjectOnly<OtlpKeyValueList<'a>>>,
}

#[derive(Deserialize)]
struct OtlpArray<'a> {
    #[serde(borrow, default)]
    values: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct OtlpKeyValueList<'a> {
    #[serde(borrow, default)]
    values: Vec<ObjectOnly<OtlpKeyValue<'a>>>,
}

impl<'a> OtlpAttrs<'a> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &OtlpKeyValue<'a>> {
        self.pairs.iter()
    }

    fn get(&self, key: &str) -> Option<&'a RawValue> {
        let found = self.pairs.iter().find(|pair| *pair.key == *key);
        found.and_then(|pair| pair.value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns a value as text: a string as it is, any other value as JSON. An empty value is absent.
    pub(super) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)
            .map(value_text)
            .filter(|text| !text.is_empty() && text != "null")
    }

    /// Returns the first existing value of these keys, as text.
    pub(super) fn first_text(&self, keys: &[&str]) -> Option<Cow<'a, str>> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// Returns the first whole number of these keys.
    pub(super) fn first_integer(&self, keys: &[&str]) -> Option<u64> {
        keys.iter().find_map(|key| {
            let text = self.text(key)?;
            // Some exporters write whole numbers as doubles.
            let digits = text.strip_suffix(".0").unwrap_or(&text);
            digits.parse().ok()
        })
    }

    /// Returns the first number of these keys.
    pub(super) fn first_number(&self, keys: &[&str]) -> Option<f64> {
        let number = |key: &&str| self.text(key)?.parse::<f64>().ok();
        keys.iter().find_map(number).filter(|n| n.is_finite())
    }

    /// Returns all attributes as OTLP writes them.
    pub(super) fn to_otlp_json(&self) -> String {
        let mut out = String::from("[");
        for pair in &self.pairs {
            if out.len() > 1 {
                out.push(',');
            }
            let key = serde_json::Value::from(&*pair.key);
            let value = pair.value.map_or("null", RawValue::get);
            out.push_str(&["{\"key\":", &key.to_string(), ",\"value\":", value, "}"].concat());
        }
        out.push(']');
        out
    }

    /// Returns all attributes as one JSON object.
    pub(super) fn to_json(&self) -> String {
        let mut out = String::from("{");
        for pair in &self.pairs {
            write_pair(pair, &mut out, 0);
        }
        out.push('}');
        out
    }
}

impl OtlpKeyValue<'_> {
    /// Returns the value as JSON.
    pub(super) fn value_json(&self) -> String {
        let mut out = String::new();
        match self.value {
            Some(raw) => write_json(raw, &mut out, 0),
            None => out.push_str("null"),
        }
        out
    }
}

/// Returns a wrapped value as text: a string as it is, any other value as JSON.
pub(super) fn value_text(raw: &RawValue) -> Cow<'_, str> {
    if let Some(text) = parse_any_value(raw).and_then(|any| as_json_string(any.string_value?)) {
        return text;
    }
    // OTLP writes int64 numbers as strings.
    let mut out = String::new();
    write_json(raw, &mut out, 0);
    Cow::Owned(out)
}

fn parse_any_value(raw: &RawValue) -> Option<OtlpAnyValue<'_>> {
    serde_json::from_str::<ObjectOnly<OtlpAnyValue<'_>>>(raw.get())
        .ok()
        .map(|ObjectOnly(any)| any)
}

/// Writes a wrapped value as plain JSON.
fn write_json(raw: &RawValue, out: &mut String, depth: usize) {
    // The depth limit protects the stack; deeper values stay in OTLP's wrapper.
    let Some(any) = parse_any_value(raw).filter(|_| depth < MAX_VALUE_DEPTH) else {
        out.push_str(raw.get());
        return;
    };
    let number = any.int_value.or(any.double_value);
    if let Some(list) = any.array_value {
        out.push('[');
        for (at, value) in list.0.values.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_json(value, out, depth + 1);
        }
        out.push(']');
    } else if let Some(map) = any.kvlist_value {
        out.push('{');
        for ObjectOnly(pair) in &map.0.values {
            write_pair(pair, out, depth + 1);
        }
        out.push('}');
    } else if let Some(number) = number {
        // A number in a string becomes a number, because OTLP writes int64 as text.
        let text = as_json_string(number);
        let is_number = |text: &Cow<'_, str>| {
            text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
                && serde_json::from_str::<&RawValue>(text).is_ok()
        };
        match text.filter(is_number) {
            Some(text) => out.push_str(&text),
            None => out.push_str(number.get()),
        }
    } else {
        let plain = any.string_value.or(any.bool_value).or(any.bytes_value);
        out.push_str(plain.map_or("null", RawValue::get));
    }
}

fn write_pair(pair: &OtlpKeyValue<'_>, out: &mut String, depth: usize) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push_str(&serde_json::Value::from(&*pair.key).to_string());
    out.push(':');
    match pair.value {
        Some(value) => write_json(value, out, depth),
        None => out.push_str("null"),
    }
}

/// Deserializes a string; any other value becomes an empty one.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<SourceText<'de>, D::Error> {
    let raw = <&'de RawValue>::deserialize(from)?;
    Ok(as_json_string(raw).map(SourceText).unwrap_or_default())
}

/// Deserializes a value of the expected type; any other value becomes the default.
fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    let raw = <&'de RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Deserializes nanoseconds since 1970 from text or a number; 0 means absent.
fn nanos<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let raw = <&'de RawValue>::deserialize(from)?;
    let text = as_json_string(raw).unwrap_or(Cow::Borrowed(raw.get()));
    let integer = text.parse::<u64>().ok();
    // Some exporters write floats: 1.795e18.
    let float = || text.parse::<f64>().ok().filter(|n| *n >= 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as saturates"
    )]
    Ok(integer
        .or_else(|| float().map(|n| n as u64))
        .filter(|n| *n > 0))
}

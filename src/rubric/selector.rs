//! `applies_to`: the selection of transcripts of a rubric or an eval.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::diag::yaml::{ConfigKey, MappingDecoder, properties_schema, text_list_schema};
use crate::model::{Transcript, TranscriptPart};

/// The content of `applies_to`. Every given condition must hold; within one, any entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selector {
    /// Globs over transcript ids.
    pub ids: Vec<String>,
    /// Tags, of which the transcript has one.
    pub tags: Vec<String>,
    /// The required values by dotted metadata path; a mapping with [`ANY_OF`] alone lists several.
    pub metadata: IndexMap<String, Value>,
    /// Tools, of which the transcript calls one.
    pub has_tool: Vec<String>,
}

/// The key of a metadata condition that accepts several values.
pub const ANY_OF: &str = "any_of";

/// The keys of `applies_to`.
const SELECTOR_KEYS: &[ConfigKey] = &[
    ConfigKey::new("ids", "Globs over transcript ids.", text_list_schema),
    ConfigKey::new(
        "tags",
        "Tags; the transcript must have one of them.",
        text_list_schema,
    ),
    ConfigKey::new(
        "metadata",
        "Dotted metadata paths and the values they must have; `{any_of: [A, B]}` accepts several.",
        |doc| json!({"type": "object", "description": doc}),
    ),
    ConfigKey::new(
        "has_tool",
        "Tools; the transcript must contain a call of one of them.",
        text_list_schema,
    ),
];

/// Returns the JSON Schema of `applies_to`.
pub(super) fn selector_schema() -> Value {
    json!({
        "type": "object",
        "description": "The transcripts that it is for. Every given condition must hold; within one, any entry.",
        "properties": properties_schema(SELECTOR_KEYS),
        "additionalProperties": false,
    })
}

impl Selector {
    /// Returns true if it selects every transcript.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if a transcript is selected. For many transcripts use [`Selector::compile`], which compiles the
    /// globs once.
    pub fn matches(&self, transcript: &Transcript<'_>) -> bool {
        self.is_empty() || self.compile().matches(transcript)
    }

    /// Compiles the globs for use on many transcripts.
    pub fn compile(&self) -> CompiledSelector {
        // The loader refuses invalid globs. A selector that was built otherwise drops them, and they match nothing.
        let mut ids = GlobSetBuilder::new();
        for glob in self.ids.iter().filter_map(|id| build_glob(id).ok()) {
            ids.add(glob);
        }
        CompiledSelector {
            // Without any valid glob the set matches nothing.
            ids: ids.build().unwrap_or_default(),
            selector: self.clone(),
        }
    }

    /// Reads the `applies_to` of a mapping.
    pub(super) fn read(fields: &mut MappingDecoder<'_>) -> Self {
        let Some(decoder) = fields.mapping("applies_to") else {
            return Self::default();
        };
        let mut decoder = decoder.accepting(SELECTOR_KEYS);
        let mut texts = |key: &'static str| -> Vec<(String, String)> {
            let texts = decoder.texts(key);
            // A list that is present and empty; `texts` also returns an empty list for invalid entries.
            if texts.as_ref().is_some_and(Vec::is_empty) && is_empty_list(decoder.value(key)) {
                decoder.error(
                    key,
                    "empty",
                    format!("{key} must not be empty: it would select nothing"),
                );
            }
            texts.unwrap_or_default()
        };
        let (ids, tags, has_tool) = (texts("ids"), texts("tags"), texts("has_tool"));
        // Globs are checked at load, so that a mistake is an error of the rubric.
        for (id, _) in &ids {
            if let Err(why) = build_glob(id) {
                decoder.error(
                    "ids",
                    "glob",
                    format!("`{id}` is not a glob: {}", why.kind()),
                );
            }
        }
        let metadata: IndexMap<String, Value> = match decoder.value("metadata") {
            None => IndexMap::new(),
            Some(Value::Object(map)) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            Some(_) => {
                let message = "metadata must be a mapping of dotted paths to values";
                decoder.error("metadata", "type", message);
                IndexMap::new()
            }
        };
        let is_impossible =
            |wanted: &Value| accepted_values(wanted).is_some_and(<[Value]>::is_empty);
        if metadata.values().any(is_impossible) {
            let message = "any_of must not be empty: it would select nothing";
            decoder.error("metadata", "empty", message);
        }
        decoder.finish();
        let texts_only =
            |texts: Vec<(String, String)>| texts.into_iter().map(|(text, _)| text).collect();
        Self {
            ids: texts_only(ids),
            tags: texts_only(tags),
            metadata,
            has_tool: texts_only(has_tool),
        }
    }
}

fn is_empty_list(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_some_and(Vec::is_empty)
}

fn build_glob(text: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(text).build()
}

/// A [`Selector`] with its globs compiled.
#[derive(Debug, Clone)]
pub struct CompiledSelector {
    selector: Selector,
    ids: GlobSet,
}

impl CompiledSelector {
    /// Returns true if a transcript is selected: every given condition holds; within one, any entry.
    pub fn matches(&self, transcript: &Transcript<'_>) -> bool {
        let Selector {
            ids,
            tags,
            metadata,
            has_tool,
        } = &self.selector;
        // The cheap conditions first; the metadata must be parsed.
        (ids.is_empty() || self.ids.is_match(&*transcript.id))
            && (tags.is_empty()
                || transcript
                    .tags
                    .iter()
                    .any(|tag| tags.iter().any(|t| **tag == **t)))
            && (has_tool.is_empty() || calls_any(transcript, has_tool))
            && (metadata.is_empty() || has_metadata(transcript, metadata))
    }
}

fn calls_any(transcript: &Transcript<'_>, tools: &[String]) -> bool {
    transcript
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .any(|part| match part {
            TranscriptPart::ToolCall(call) => tools.iter().any(|tool| **tool == *call.name),
            _ => false,
        })
}

fn has_metadata(transcript: &Transcript<'_>, wanted: &IndexMap<String, Value>) -> bool {
    // A transcript without metadata cannot have a required value.
    let Some(metadata) = transcript
        .metadata
        .as_ref()
        .map(crate::model::JsonText::parse_value)
    else {
        return false;
    };
    wanted.iter().all(|(path, value)| {
        value_at_path(&metadata, path).is_some_and(|found| meets(found, value))
    })
}

/// Returns true if a value meets a condition: it is the value, or one of those in `{any_of: […]}`.
fn meets(found: &Value, wanted: &Value) -> bool {
    match accepted_values(wanted) {
        Some(values) => values.iter().any(|value| json_equal(found, value)),
        None => json_equal(found, wanted),
    }
}

/// Returns the values of a condition such as `{any_of: [a, b]}`.
fn accepted_values(wanted: &Value) -> Option<&[Value]> {
    let map = wanted.as_object().filter(|map| map.len() == 1)?;
    map.get(ANY_OF)?.as_array().map(Vec::as_slice)
}

/// Returns the value at a dotted path. Also finds keys that contain dots.
fn value_at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let map = value.as_object()?;
    // A key with dots first, then each way to split the path.
    if let Some(found) = map.get(path) {
        return Some(found);
    }
    path.match_indices('.')
        .find_map(|(dot, _)| value_at_path(map.get(&path[..dot])?, &path[dot + 1..]))
}

/// Compares as JSON: numbers by value (`10` equals `10.0`), objects in any order, text never equal to a number.
pub fn json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            // Two integers compare exactly: as `f64`, different large integers could be equal.
            x == y || (x.is_f64() != y.is_f64() && x.as_f64() == y.as_f64())
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| json_equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(key, x)| y.get(key).is_some_and(|y| json_equal(x, y)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{JsonText, MessageRole, ToolCall, TranscriptMessage};

    fn transcript() -> Transcript<'static> {
        Transcript {
            verdicts: Vec::new(),
            id: "refund-03".into(),
            messages: vec![TranscriptMessage {
                role: MessageRole::Assistant,
                parts: vec![TranscriptPart::ToolCall(ToolCall {
                    id: "".into(),
                    name: "search".into(),
                    arguments: "{}".into(),
                })],
                metadata: None,
            }],
            metadata: Some(JsonText::from_value(
                &json!({"lang": {"code": "de", "n": 1.0}, "a.b": true, "list": [1, 2]}),
            )),
            tags: vec!["beam".into(), "de".into()],
        }
    }

    fn metadata(path: &str, value: Value) -> Selector {
        Selector {
            metadata: IndexMap::from([(path.to_owned(), value)]),
            ..Selector::default()
        }
    }

    #[test]
    fn every_condition_must_hold_and_within_one_any_entry() {
        let list = |items: &[&str]| items.iter().map(|&s| s.to_owned()).collect::<Vec<_>>();
        let both = Selector {
            ids: list(&["x", "refund-*"]),
            tags: list(&["beam"]),
            has_tool: list(&["fetch", "search"]),
            ..Selector::default()
        };
        let cases = [
            (Selector::default(), true),
            (both.clone(), true),
            (
                Selector {
                    tags: list(&["other"]),
                    ..both.clone()
                },
                false,
            ),
            (
                Selector {
                    ids: list(&["refund-?"]),
                    ..both.clone()
                },
                false,
            ),
            (
                Selector {
                    has_tool: list(&["fetch"]),
                    ..both
                },
                false,
            ),
            (metadata("lang.code", json!("de")), true),
            (metadata("lang.n", json!(1)), true),
            (metadata("lang.n", json!("1")), false),
            (metadata("lang", json!({"n": 1, "code": "de"})), true),
            (metadata("a.b", json!(true)), true),
            (metadata("list", json!([1, 2])), true),
            (metadata("lang.none", json!(null)), false),
            (metadata("lang.code", json!({"any_of": ["fr", "de"]})), true),
            (metadata("lang.n", json!({"any_of": ["1", 2]})), false),
            (metadata("lang", json!({"any_of": ["x"], "n": 1})), false),
        ];
        for (selector, expected) in cases {
            assert_eq!(selector.matches(&transcript()), expected, "{selector:?}");
        }
    }

    #[test]
    fn transcript_without_metadata_matches_no_metadata_condition() {
        let without_metadata = Transcript {
            metadata: None,
            ..transcript()
        };
        assert!(!metadata("lang", json!(null)).matches(&without_metadata));
    }
}

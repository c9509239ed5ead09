//! The key `split` of `labels:`: `{ test: 0.3, by: group, seed: 1 }`, also with `train` and `dev`.

use serde_json::{Value, json};

use crate::diag::find_nearest;
use crate::diag::yaml::{ConfigKey, MappingDecoder, describe_value, properties_schema};
use crate::model::{SplitRule, escape_pointer_step};

/// The keys of a split.
const SPLIT_KEYS: &[ConfigKey] = &[
    ConfigKey::new(
        "test",
        "The share of transcripts whose labels stay sealed until `dicta agree --unseal`.",
        share_schema,
    ),
    ConfigKey::new(
        "train",
        "The share of transcripts whose labels may teach a judge; 0 by default.",
        share_schema,
    ),
    ConfigKey::new(
        "dev",
        "The share of transcripts whose labels measure at any time; the rest by default.",
        share_schema,
    ),
    ConfigKey::new(
        "by",
        "What stays in one part: the transcripts with the same `metadata.group`. A transcript without it is a group of its own.",
        |doc| json!({"enum": ["group"], "description": doc}),
    ),
    ConfigKey::new(
        "seed",
        "The seed of the split; 1 by default.",
        |doc| json!({"type": "integer", "minimum": 0, "description": doc}),
    ),
];

fn share_schema(doc: &str) -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1, "description": doc})
}

/// Returns the JSON Schema of a split.
pub(super) fn split_schema(doc: &str) -> Value {
    json!({
        "type": "object",
        "description": doc,
        "properties": properties_schema(SPLIT_KEYS),
        "required": ["test"],
        "additionalProperties": false,
    })
}

/// Reads a split. Reports each problem at its place.
pub(super) fn read_split(
    at: &str,
    value: &Value,
    fields: &MappingDecoder<'_>,
) -> Option<SplitRule> {
    let Value::Object(map) = value else {
        let message = format!(
            "split is a mapping, such as {{ test: 0.3, by: group, seed: 1 }} (got {})",
            describe_value(value)
        );
        fields.error_at(at, "type", message);
        return None;
    };
    let inside = |key: &str| format!("{at}/{}", escape_pointer_step(key));
    let known = || SPLIT_KEYS.iter().map(|key| key.name);
    let mut is_valid = true;
    for key in map.keys().filter(|key| !known().any(|name| name == *key)) {
        let near = find_nearest(key, known());
        let near = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
        fields.error_at(
            &inside(key),
            "unknown-key",
            format!("unknown key `{key}`{near}"),
        );
        is_valid = false;
    }
    let mut share = |key: &str| match map.get(key) {
        None | Some(Value::Null) => None,
        Some(value) => {
            let found = value.as_f64().filter(|share| (0.0..=1.0).contains(share));
            if found.is_none() {
                let message = format!(
                    "{key} must be a share between 0 and 1 (got {})",
                    describe_value(value)
                );
                fields.error_at(&inside(key), "value", message);
                is_valid = false;
            }
            found
        }
    };
    let (train, dev, test) = (share("train"), share("dev"), share("test"));
    if let Some(by) = map.get("by").filter(|by| by.as_str() != Some("group")) {
        let message = format!("by must be `group` (got {})", describe_value(by));
        fields.error_at(&inside("by"), "value", message);
        is_valid = false;
    }
    let seed = map.get("seed").unwrap_or(&Value::Null);
    if !seed.is_null() && seed.as_u64().is_none() {
        let message = format!(
            "seed must be a whole number from 0 (got {})",
            describe_value(seed)
        );
        fields.error_at(&inside("seed"), "value", message);
        is_valid = false;
    }
    if !is_valid {
        return None;
    }
    let Some(test) = test.filter(|test| *test > 0.0) else {
        let message =
            "split needs `test`, the share of transcripts whose labels stay sealed, such as 0.3";
        fields.error_at(at, "missing", message);
        return None;
    };
    let train = train.unwrap_or(0.0);
    let sum = train + test + dev.unwrap_or(0.0);
    // Shares such as 0.2, 0.4 and 0.4 have a sum that differs from 1 by a rounding error.
    let is_complete = (sum - 1.0).abs() < 1e-9;
    if sum > 1.0 + 1e-9 || dev.is_some() && !is_complete {
        let message = format!("train, dev and test must have the sum 1 (got {sum:.3})");
        fields.error_at(at, "value", message);
        return None;
    }
    Some(SplitRule {
        train,
        test,
        seed: seed.as_u64().unwrap_or(1),
    })
}

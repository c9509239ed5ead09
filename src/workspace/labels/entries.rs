//! The content of `labels:`: a file, `{ path, eval, rubric, by, map, pass, split }`, or a list of both.

use serde_json::{Value, json};

use super::label_columns::{LabelColumns, PassRule, columns_schema, pass_schema};
use super::split_entry::{read_split, split_schema};
use crate::diag::yaml::{
    ConfigKey, MappingDecoder, describe_value, properties_schema, text_schema,
};
use crate::model::SplitRule;

/// One entry of `labels:`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LabelsEntry {
    /// A file or a glob, as written.
    pub(super) path: String,
    /// The eval of labels that name no eval.
    pub(super) eval: Option<String>,
    /// The rubric of labels that name no rubric.
    pub(super) rubric: Option<String>,
    /// The author of labels that name no author.
    pub(super) by: Option<String>,
    /// The split of all labels of the workspace.
    pub(super) split: Option<SplitRule>,
    /// The columns of a table.
    pub(super) map: Option<LabelColumns>,
    /// The values that are a pass.
    pub(super) pass: Option<PassRule>,
}

/// The keys of an entry that is a mapping.
const ENTRY_KEYS: &[ConfigKey] = &[
    ConfigKey::new("path", "A file or a glob.", text_schema),
    ConfigKey::new("eval", "The eval of labels that name no eval.", text_schema),
    ConfigKey::new(
        "rubric",
        "The rubric of labels that name no rubric.",
        text_schema,
    ),
    ConfigKey::new(
        "by",
        "The author of labels that name no author.",
        text_schema,
    ),
    ConfigKey::new(
        "split",
        "The parts of the transcripts. The labels of the part `test` stay sealed, whichever file has them.",
        split_schema,
    ),
    ConfigKey::new("map", "The columns of a table of labels.", columns_schema),
    ConfigKey::new("pass", "The ratings that are a pass.", pass_schema),
];

/// Returns the JSON Schema of an entry of `labels:`.
pub(in crate::workspace) fn label_file_schema() -> Value {
    json!({"anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": properties_schema(ENTRY_KEYS),
            "required": ["path"],
            "additionalProperties": false,
        },
    ]})
}

/// Reads the entries, each with its pointer.
pub(super) fn read_entries(fields: &mut MappingDecoder<'_>) -> Vec<(String, LabelsEntry)> {
    match fields.value("labels") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => {
            let items = items.iter().enumerate();
            let read = items.filter_map(|(nth, item)| {
                let at = format!("labels/{nth}");
                let entry = read_entry(&at, item, fields)?;
                Some((format!("/{at}"), entry))
            });
            read.collect()
        }
        Some(value) => {
            let entry = read_entry("labels", value, fields);
            let found = entry.map(|entry| ("/labels".to_owned(), entry));
            found.into_iter().collect()
        }
    }
}

fn read_entry(at: &str, value: &Value, fields: &MappingDecoder<'_>) -> Option<LabelsEntry> {
    match value {
        Value::String(path) if path.trim().is_empty() => {
            fields.error_at(at, "empty", "labels must not be empty");
            None
        }
        Value::String(path) => Some(LabelsEntry {
            path: path.clone(),
            ..LabelsEntry::default()
        }),
        Value::Object(map) => {
            let known = || ENTRY_KEYS.iter().map(|key| key.name);
            for key in map.keys().filter(|key| !known().any(|name| name == *key)) {
                let near = crate::diag::find_nearest(key, known());
                let near = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
                let inside = format!("{at}/{}", crate::model::escape_pointer_step(key));
                fields.error_at(&inside, "unknown-key", format!("unknown key `{key}`{near}"));
            }
            let text = |key: &str| match map.get(key) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
                Some(other) => {
                    let message = format!("{key} must be text (got {})", describe_value(other));
                    fields.error_at(&format!("{at}/{key}"), "type", message);
                    None
                }
            };
            let entry = LabelsEntry {
                path: text("path").unwrap_or_default(),
                eval: text("eval"),
                rubric: text("rubric"),
                by: text("by"),
                split: map
                    .get("split")
                    .filter(|split| !split.is_null())
                    .and_then(|split| read_split(&format!("{at}/split"), split, fields)),
                map: map
                    .contains_key("map")
                    .then(|| LabelColumns::parse(fields.inner_mapping(&format!("{at}/map")))),
                pass: map
                    .contains_key("pass")
                    .then(|| PassRule::parse(fields.inner_mapping(&format!("{at}/pass")))),
            };
            // A path of the wrong type has its error already.
            if entry.path.is_empty() {
                if !map.contains_key("path") {
                    fields.error_at(
                        at,
                        "missing",
                        "a file of labels needs its `path`, such as `path: labels.jsonl`",
                    );
                }
                return None;
            }
            Some(entry)
        }
        other => {
            let message = format!(
                "labels holds files as text, or {{ path, eval, rubric, by, map, pass, split }} (got {})",
                describe_value(other)
            );
            fields.error_at(at, "type", message);
            None
        }
    }
}

/// Lists the files and globs of `transcripts:` whose field mapping reads labels.
pub(in crate::workspace) fn list_mapped_files(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let entries = value.and_then(Value::as_array).into_iter().flatten();
    entries
        .filter(|entry| entry.pointer("/map/label").is_some())
        .filter_map(|entry| entry.get("path")?.as_str())
}

/// Lists the files that field mappings of `transcripts:` join, even if the rest of a mapping is broken.
pub(in crate::workspace) fn list_joined_files(value: Option<&Value>) -> Vec<&str> {
    fn listed(join: &Value) -> &[Value] {
        match join {
            Value::Array(items) => items,
            one => std::slice::from_ref(one),
        }
    }
    let entries = value.and_then(Value::as_array).into_iter().flatten();
    entries
        .filter_map(|entry| entry.pointer("/map/join"))
        .flat_map(listed)
        .filter_map(|join| join.get("path")?.as_str())
        .collect()
}

/// Lists the files and globs that a value of `labels:` names, even if the rest of it is broken.
pub(in crate::workspace) fn list_label_files(value: Option<&Value>) -> Vec<&str> {
    fn path(value: &Value) -> Option<&str> {
        value
            .as_str()
            .or_else(|| value.get("path").and_then(Value::as_str))
    }
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(path).collect(),
        Some(one) => path(one).into_iter().collect(),
        None => Vec::new(),
    }
}

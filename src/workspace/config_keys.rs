//! The keys of dicta.yaml and their JSON Schema.
//!
//! Responsible for the table of top-level keys. Each nested mapping has its table next to its decoder. Does not read the file.

use serde_json::{Value, json};

use super::file_schemas::DRAFT;
use super::{file_lists, judges, labels, limits};
use crate::diag::yaml::{ConfigKey, properties_schema, text_list_schema, text_schema};
use crate::transcript::FieldMapping;

/// The top-level keys of dicta.yaml.
#[rustfmt::skip]
pub(super) const WORKSPACE_KEYS: &[ConfigKey] = &[
    ConfigKey::new("transcripts", "Files or globs, relative to this file, absolute or from home (`~/`).", |doc| {
        let file = || json!({"type": "string", "minLength": 1});
        json!({
            "description": doc,
            "anyOf": [
                file(),
                {"type": "array", "minItems": 1, "items": {"anyOf": [file(), file_lists::mapped_file_schema()]}},
            ],
        })
    }),
    ConfigKey::new("rubrics", "Files or globs, relative to this file, absolute or from home (`~/`).", text_list_schema),
    ConfigKey::new("tools", "Files that declare tools for judges, in the format of the MCP toolbox: files, folders, globs.", |doc| {
        json!({
            "description": doc,
            "anyOf": [
                {"type": "null"},
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}},
            ],
        })
    }),
    ConfigKey::new("labels", "People's verdicts: files or globs, labels.jsonl by default. A judge sees only those that `params.shots` shows it.", |doc| {
        let file = labels::label_file_schema();
        json!({"description": doc, "anyOf": [{"type": "null"}, file, {"type": "array", "items": file}]})
    }),
    ConfigKey::new("runs", "The folder where dicta records runs; the data directory by default.", text_schema),
    ConfigKey::new("replay_tools", "A run whose recorded tool responses dicta uses instead of calls.", text_schema),
    ConfigKey::new("frozen", "The former name of `replay_tools`.", text_schema),
    ConfigKey::new(
        "allow_scripts",
        "Whether evals of type `script` may run their programs. Set it to true only if you trust the rubrics: the programs run as you.",
        |doc| json!({"type": "boolean", "default": false, "description": doc}),
    ),
    ConfigKey::new("judge", "The default judge.", text_schema),
    ConfigKey::new("judges", "The judges by name.", |doc| {
        json!({
            "type": ["object", "null"],
            "description": doc,
            "additionalProperties": {"anyOf": [
                {"type": "string", "minLength": 1, "description": "An evalbench model config."},
                judges::keys::judge_schema(),
            ]},
        })
    }),
    ConfigKey::new("limits", "The limits of a run and of its cells.", |doc| {
        let mut schema = limits::limits_schema();
        schema["description"] = doc.into();
        schema
    }),
];

/// Returns the JSON Schema (2020-12) of dicta.yaml. It accepts what the loader accepts, except conditions that a schema
/// cannot express, such as files that must exist.
pub fn json_schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "dicta workspace",
        "type": "object",
        "properties": properties_schema(WORKSPACE_KEYS),
        "required": ["transcripts", "rubrics"],
        "additionalProperties": false,
        "$defs": {
            "metadata": FieldMapping::metadata_schema(),
        },
    })
}

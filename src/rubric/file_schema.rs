//! A rubric file as a JSON Schema, for editors. Agrees with the strict loader: what it accepts loads, but for what no
//! schema can say (duplicate ids, patterns that compile).

use serde_json::{Map, Value, json};

use super::panel::MARGIN;
use super::{EvalTypeCatalog, EvalTypeSpec, LINTS};

/// The JSON Schema (2020-12) of a rubric file with the types of a catalog.
pub fn json_schema(catalog: &dyn EvalTypeCatalog) -> Value {
    let kinds = catalog.eval_types();
    let aliases = |kind: &&EvalTypeSpec| kind.aliases.iter().map(|alias| alias.name);
    let names: Vec<&str> = kinds
        .iter()
        .flat_map(|kind| std::iter::once(kind.name).chain(aliases(kind)))
        .collect();
    let mut defs = Map::new();
    let mut by_type = Vec::new();
    for kind in &kinds {
        let mut params = kind.schema.clone();
        if let Value::Object(map) = &mut params {
            map.shift_remove("$schema");
            allow_aliases_and_metadata(map, kind);
            map.insert("description".to_owned(), kind.summary.into());
            // A schema with parts of its own refers to them from its own root.
            if map.contains_key("$defs") {
                map.insert(
                    "$id".to_owned(),
                    format!("urn:dicta:params:{}", kind.name).into(),
                );
            }
        }
        let spelled: Vec<&str> = std::iter::once(kind.name).chain(aliases(kind)).collect();
        let sets_params = kind
            .aliases
            .iter()
            .any(|alias| !alias.preset_params.is_empty());
        let needs_params = !sets_params
            && kind
                .schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|required| !required.is_empty());
        let mut then =
            json!({"properties": {"params": {"$ref": format!("#/$defs/params-{}", kind.name)}}});
        if needs_params {
            then["required"] = json!(["params"]);
        }
        by_type.push(json!({
            // One that refers to another eval has only a part of its params.
            "if": {"properties": {"type": {"enum": spelled}}, "required": ["type"], "not": {"required": ["$ref"]}},
            "then": then,
        }));
        defs.insert(format!("params-{}", kind.name), params);
    }
    defs.insert("selector".to_owned(), selector_schema());
    defs.insert("jury".to_owned(), jury_schema());
    defs.insert("cascade".to_owned(), cascade_schema());
    defs.insert("eval".to_owned(), eval_schema(&names, &by_type));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dicta rubric",
        "type": "object",
        "properties": {
            "id": text_schema("Its id; the file's name without ending where none is written."),
            "description": {"type": "string", "description": "For people."},
            "threshold": {"type": "number", "minimum": 0, "maximum": 1, "description": "The score a transcript needs; 1.0 where it matters."},
            "judge": text_schema("The default judge of the evals below."),
            "jury": {"$ref": "#/$defs/jury", "description": "The default jury of the evals below."},
            "cascade": {"$ref": "#/$defs/cascade", "description": "The default cascade of the evals below."},
            "applies_to": {"$ref": "#/$defs/selector"},
            "allow": allowed_lints_schema(),
            "evals": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/eval"}},
        },
        "required": ["evals"],
        "allOf": at_most_one_judge_key(),
        "additionalProperties": false,
        "$defs": defs,
    })
}

/// Params as an author may write them: by their other names, or from the metadata.
fn allow_aliases_and_metadata(params: &mut Map<String, Value>, kind: &EvalTypeSpec) {
    let renamed = |name: &Value| kind.param_aliases.iter().any(|(_, own)| name == own);
    if let Some(Value::Array(required)) = params.get_mut("required") {
        let set = |name: &Value| {
            let mut sets = kind.aliases.iter().flat_map(|alias| alias.preset_params);
            sets.any(|(set, _)| name == set)
        };
        required.retain(|name| !renamed(name) && !set(name));
    }
    let Some(Value::Object(properties)) = params.get_mut("properties") else {
        return;
    };
    for (other, own) in kind.param_aliases {
        if let Some(schema) = properties.get(*own).cloned() {
            properties.insert((*other).to_owned(), schema);
        }
    }
    for property in properties.values_mut() {
        let Value::Object(own) = property else {
            continue;
        };
        let description = own.shift_remove("description");
        let default = own.shift_remove("default");
        let own = std::mem::take(own);
        *property = json!({"anyOf": [own, metadata_ref_schema()]});
        for (key, value) in [("description", description), ("default", default)] {
            if let Some(value) = value {
                property[key] = value;
            }
        }
    }
}

fn metadata_ref_schema() -> Value {
    json!({
        "type": "object",
        "description": "From the transcript's metadata: { from: metadata.NAME }.",
        "properties": {"from": {"type": "string", "pattern": "^metadata(\\.[^.]+)+$"}},
        "required": ["from"],
        "additionalProperties": false,
    })
}

fn text_schema(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

fn text_list_schema(description: &str) -> Value {
    json!({
        "description": description,
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        ],
    })
}

/// Lints by name, one or several.
fn allowed_lints_schema() -> Value {
    let names: Vec<&str> = LINTS.iter().map(|(name, _)| *name).collect();
    json!({
        "description": "Lints of `dicta check` that are meant so.",
        "anyOf": [{"enum": names}, {"type": "array", "items": {"enum": names}}],
    })
}

fn selector_schema() -> Value {
    json!({
        "type": "object",
        "description": "Which transcripts it is for: every given condition must hold; within one, any entry.",
        "properties": {
            "ids": text_list_schema("Globs over transcript ids."),
            "tags": text_list_schema("Any of these tags."),
            "metadata": {"type": "object", "description": "Dotted metadata paths and the values they must have."},
            "has_tool": text_list_schema("Any of these tools was called."),
        },
        "additionalProperties": false,
    })
}

fn judge_list_schema(description: &str) -> Value {
    json!({
        "type": "array",
        "minItems": 2,
        "uniqueItems": true,
        "items": {"type": "string", "minLength": 1},
        "description": description,
    })
}

fn jury_schema() -> Value {
    json!({
        "type": "object",
        "description": "Several judges, each shown; their votes decide.",
        "properties": {
            "judges": judge_list_schema("Who judges; two or more."),
            "by": {"enum": ["majority", "unanimity"], "default": "majority", "description": "Most votes win and ties fail, or all must pass it."},
        },
        "required": ["judges"],
        "additionalProperties": false,
    })
}

fn cascade_schema() -> Value {
    json!({
        "type": "object",
        "description": "One judge after the other, while the one before is unsure.",
        "properties": {
            "judges": judge_list_schema("Who judges, the cheapest first."),
            "margin": {"type": "number", "minimum": 0, "maximum": 1, "default": MARGIN, "description": "A score nearer than this to what decides is unsure."},
        },
        "required": ["judges"],
        "additionalProperties": false,
    })
}

/// Of `judge`, `jury` and `cascade` at most one.
fn at_most_one_judge_key() -> Vec<Value> {
    [["judge", "jury"], ["judge", "cascade"], ["jury", "cascade"]]
        .iter()
        .map(|both| json!({"not": {"required": both}}))
        .collect()
}

fn eval_schema(types: &[&str], by_type: &[Value]) -> Value {
    let mut all_of = by_type.to_vec();
    all_of.extend(at_most_one_judge_key());
    json!({
        "type": "object",
        "properties": {
            "id": text_schema("Unique within the rubric."),
            "$ref": {"type": "string", "pattern": "#.", "description": "Another eval, FILE#EVAL-ID or #EVAL-ID; own keys are laid over it."},
            "type": {"enum": types, "description": "The eval type; `dicta evals` lists them."},
            "trigger": {
                "enum": ["every_turn", "on_session_complete", "sample_turns", "sample_sessions"],
                "default": "on_session_complete",
            },
            "params": {"type": ["object", "null"]},
            "judge": text_schema("The judge, if another than the rubric's."),
            "jury": {"$ref": "#/$defs/jury"},
            "cascade": {"$ref": "#/$defs/cascade"},
            "description": {"type": "string"},
            "message": text_schema("Said with a failure, before why."),
            "groups": text_list_schema("Names it is chosen by: --where group:NAME."),
            "when": {
                "type": "object",
                "description": "What must have happened for it to be decided; else it is skipped. All that is given must hold.",
                "properties": {
                    "tool_called": text_schema("This tool was called."),
                    "tool_called_pattern": text_schema("A tool whose name this regex finds was called."),
                    "any_tool_called": {"const": true, "description": "Some tool was called."},
                    "min_tool_calls": {"type": "integer", "minimum": 1, "description": "So many calls were made."},
                },
                "minProperties": 1,
                "additionalProperties": false,
            },
            "not": {"type": "boolean", "default": false, "description": "Passes where its check fails. Not with a judge."},
            "threshold": {
                "type": "object",
                "description": "Bounds of the score, as min_score and max_score in params.",
                "properties": {
                    "passed": {"const": true},
                    "min_score": {"type": "number", "minimum": 0, "maximum": 1},
                    "max_score": {"type": "number", "minimum": 0, "maximum": 1},
                },
                "minProperties": 1,
                "additionalProperties": false,
            },
            "enabled": {"type": "boolean", "default": true},
            "sample_percentage": {"type": "number", "minimum": 0, "maximum": 100, "default": 5},
            "repeat": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1, "description": "Majority decides, an even split fails."},
            "weight": {"type": "number", "exclusiveMinimum": 0, "default": 1},
            "required": {"type": "boolean", "default": false},
            "allow_na": {"type": "boolean", "default": false, "description": "The judge may answer \"not applicable\"."},
            "applies_to": {"$ref": "#/$defs/selector"},
            "allow": allowed_lints_schema(),
            "examples": {
                "type": "array",
                "description": "Tests of the eval itself.",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "transcript": {
                            "description": "A transcript, or FILE#ID of one in a file.",
                            "anyOf": [{"type": "object", "required": ["messages"]}, {"type": "string", "minLength": 1}],
                        },
                        "expect": {"enum": ["pass", "fail", "na"]},
                        "why": {"type": "string"},
                    },
                    "required": ["expect"],
                    "oneOf": [{"required": ["text"]}, {"required": ["transcript"]}],
                    "additionalProperties": false,
                },
            },
            "metric": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        "anyOf": [{"required": ["id", "type"]}, {"required": ["$ref"]}],
        "additionalProperties": false,
        "allOf": all_of,
    })
}

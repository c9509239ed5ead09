//! A rubric file as a JSON Schema, for editors. Agrees with the strict loader: what it accepts loads, but for what no
//! schema can say (duplicate ids, patterns that compile).

use serde_json::{Map, Value, json};

use super::{Catalog, KindSpec, LINTS};

/// The JSON Schema (2020-12) of a rubric file with the types of a catalog.
pub fn json_schema(catalog: &dyn Catalog) -> Value {
    let kinds = catalog.kinds();
    let names: Vec<&str> = kinds.iter().flat_map(|kind| spellings(kind)).collect();
    let mut defs = Map::new();
    let mut by_type = Vec::new();
    for kind in &kinds {
        let mut params = kind.schema.clone();
        add_param_aliases(&mut params, kind);
        if let Value::Object(map) = &mut params {
            map.shift_remove("$schema");
            map.insert("description".to_owned(), kind.summary.into());
            // A schema with parts of its own refers to them from its own root.
            if map.contains_key("$defs") {
                map.insert(
                    "$id".to_owned(),
                    format!("urn:dicta:params:{}", kind.name).into(),
                );
            }
        }
        let needs_params = kind
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
            "if": {"properties": {"type": {"enum": spellings(kind).collect::<Vec<_>>()}}, "required": ["type"]},
            "then": then,
        }));
        defs.insert(format!("params-{}", kind.name), params);
    }
    defs.insert("selector".to_owned(), selector());
    defs.insert("eval".to_owned(), eval(&names, &by_type));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dicta rubric",
        "type": "object",
        "properties": {
            "id": text("Its id; the file's name without ending where none is written."),
            "description": {"type": "string", "description": "For people."},
            "threshold": {"type": "number", "minimum": 0, "maximum": 1, "description": "The score a transcript needs; 1.0 where it matters."},
            "judge": text("The default judge of the evals below."),
            "applies_to": {"$ref": "#/$defs/selector"},
            "allow": allow(),
            "evals": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/eval"}},
        },
        "required": ["evals"],
        "additionalProperties": false,
        "$defs": defs,
    })
}

/// A type's name and its other names.
fn spellings(kind: &KindSpec) -> impl Iterator<Item = &'static str> {
    let aliases = kind.aliases.iter().map(|alias| alias.name);
    std::iter::once(kind.name).chain(aliases)
}

/// A param may be written by another name: each of them is described, and where it is required one of them is.
fn add_param_aliases(params: &mut Value, kind: &KindSpec) {
    let mut one_of_each = Vec::new();
    for (alias, own) in kind.param_aliases {
        let described = params["properties"][*own].clone();
        params["properties"][*alias] = described;
        let required = params.get_mut("required").and_then(Value::as_array_mut);
        let Some(required) = required else { continue };
        if let Some(at) = required.iter().position(|name| name == own) {
            required.remove(at);
            one_of_each.push((*own, vec![json!({"required": [own]})]));
        }
        if let Some((_, any)) = one_of_each.iter_mut().find(|(name, _)| name == own) {
            any.push(json!({"required": [alias]}));
        }
    }
    if !one_of_each.is_empty() {
        let all = one_of_each
            .into_iter()
            .map(|(_, any)| json!({"oneOf": any}));
        params["allOf"] = all.collect();
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

fn texts(description: &str) -> Value {
    json!({
        "description": description,
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        ],
    })
}

/// Lints by name, one or several.
fn allow() -> Value {
    let names: Vec<&str> = LINTS.iter().map(|(name, _)| *name).collect();
    json!({
        "description": "Lints of `dicta check` that are meant so.",
        "anyOf": [{"enum": names}, {"type": "array", "items": {"enum": names}}],
    })
}

fn selector() -> Value {
    json!({
        "type": "object",
        "description": "Which transcripts it is for: every given condition must hold; within one, any entry.",
        "properties": {
            "ids": texts("Globs over transcript ids."),
            "tags": texts("Any of these tags."),
            "metadata": {"type": "object", "description": "Dotted metadata paths and the values they must have."},
            "has_tool": texts("Any of these tools was called."),
        },
        "additionalProperties": false,
    })
}

fn eval(types: &[&str], by_type: &[Value]) -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": text("Unique within the rubric."),
            "type": {"enum": types, "description": "The eval type; `dicta evals` lists them."},
            "trigger": {
                "enum": ["every_turn", "on_session_complete", "sample_turns", "sample_sessions"],
                "default": "on_session_complete",
            },
            "params": {"type": ["object", "null"]},
            "judge": text("The judge, if another than the rubric's."),
            "description": {"type": "string"},
            "enabled": {"type": "boolean", "default": true},
            "sample_percentage": {"type": "number", "minimum": 0, "maximum": 100, "default": 5},
            "repeat": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1, "description": "Majority decides, an even split fails."},
            "weight": {"type": "number", "exclusiveMinimum": 0, "default": 1},
            "required": {"type": "boolean", "default": false},
            "allow_na": {"type": "boolean", "default": false, "description": "The judge may answer \"not applicable\"."},
            "applies_to": {"$ref": "#/$defs/selector"},
            "allow": allow(),
            "examples": {
                "type": "array",
                "description": "Tests of the eval itself.",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "expect": {"enum": ["pass", "fail", "na"]},
                        "why": {"type": "string"},
                    },
                    "required": ["text", "expect"],
                    "additionalProperties": false,
                },
            },
            "metric": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        "required": ["id", "type"],
        "additionalProperties": false,
        "allOf": by_type,
    })
}

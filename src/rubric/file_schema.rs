//! The JSON Schema of rubric files, for editors.
//!
//! The strict loader accepts what the schema accepts, except conditions that a schema cannot express. Examples are
//! duplicate ids and patterns that do not compile.

use serde_json::{Map, Value, json};

use super::eval::EVAL_KEYS;
use super::load::RUBRIC_KEYS;
use super::{EvalTypeCatalog, EvalTypeSpec, panel, selector};
use crate::diag::yaml::properties_schema;

/// Returns the JSON Schema (2020-12) of a rubric file with the eval types of a catalog.
pub fn json_schema(catalog: &dyn EvalTypeCatalog) -> Value {
    let kinds = catalog.eval_types();
    let aliases = |kind: &&EvalTypeSpec| kind.aliases.iter().map(|alias| alias.name);
    let names: Vec<&str> = kinds
        .iter()
        .flat_map(|kind| std::iter::once(kind.name).chain(aliases(kind)))
        .collect();
    let mut defs = Map::new();
    // One rule for each type: the params depend on the type.
    let mut by_type = Vec::new();
    for kind in &kinds {
        let mut params = kind.schema.clone();
        if let Value::Object(map) = &mut params {
            // A nested schema must not name a draft of its own.
            map.shift_remove("$schema");
            allow_aliases_and_metadata(map, kind);
            map.insert("description".to_owned(), kind.summary.into());
            // References inside a nested schema start at the root of that schema.
            if map.contains_key("$defs") {
                map.insert(
                    "$id".to_owned(),
                    format!("urn:dicta:params:{}", kind.name).into(),
                );
            }
        }
        // An alias has the same params.
        let spelled: Vec<&str> = std::iter::once(kind.name).chain(aliases(kind)).collect();
        let sets_params = kind
            .aliases
            .iter()
            .any(|alias| !alias.preset_params.is_empty());
        // An alias with preset params can satisfy `required` without any `params`.
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
            // An eval with `$ref` may contain only some of its params.
            "if": {"properties": {"type": {"enum": spelled}}, "required": ["type"], "not": {"required": ["$ref"]}},
            "then": then,
        }));
        defs.insert(format!("params-{}", kind.name), params);
    }
    defs.insert("selector".to_owned(), selector::selector_schema());
    defs.insert("jury".to_owned(), panel::jury_schema());
    defs.insert("cascade".to_owned(), panel::cascade_schema());
    defs.insert("eval".to_owned(), eval_schema(&names, &by_type));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dicta rubric",
        "type": "object",
        "properties": properties_schema(RUBRIC_KEYS),
        "required": ["evals"],
        "allOf": at_most_one_judge_key(),
        "additionalProperties": false,
        "$defs": defs,
    })
}

/// Adds the other ways to write params: their aliases, and references to the metadata.
fn allow_aliases_and_metadata(params: &mut Map<String, Value>, kind: &EvalTypeSpec) {
    // A required param may be written under its other name, which a `required` list cannot express.
    let renamed = |name: &Value| kind.param_aliases.iter().any(|(_, param)| name == param);
    if let Some(Value::Array(required)) = params.get_mut("required") {
        let set = |name: &Value| {
            let mut sets = kind.aliases.iter().flat_map(|alias| alias.preset_params);
            sets.any(|(set, _)| name == set)
        };
        // The loader checks these params after it has resolved the aliases.
        required.retain(|name| !renamed(name) && !set(name));
    }
    let Some(Value::Object(properties)) = params.get_mut("properties") else {
        return;
    };
    for (other, param) in kind.param_aliases {
        if let Some(schema) = properties.get(*param).cloned() {
            let mut schema = schema;
            schema["description"] = format!("Another name of `{param}`.").into();
            properties.insert((*other).to_owned(), schema);
        }
    }
    for property in properties.values_mut() {
        let Value::Object(property_schema) = property else {
            continue;
        };
        // They move to the outer schema, where editors look for them.
        let description = property_schema.shift_remove("description");
        let default = property_schema.shift_remove("default");
        let property_schema = std::mem::take(property_schema);
        *property = json!({"anyOf": [property_schema, metadata_ref_schema()]});
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

/// Returns the rule that only one of `judge`, `jury` and `cascade` may occur.
fn at_most_one_judge_key() -> Vec<Value> {
    // Three rules, because `oneOf` would also require one of the keys.
    [["judge", "jury"], ["judge", "cascade"], ["jury", "cascade"]]
        .iter()
        .map(|both| json!({"not": {"required": both}}))
        .collect()
}

fn eval_schema(types: &[&str], by_type: &[Value]) -> Value {
    let mut all_of = by_type.to_vec();
    all_of.extend(at_most_one_judge_key());
    let mut properties = properties_schema(EVAL_KEYS);
    // The table has no catalog, so it accepts any text as a type.
    properties["type"]["enum"] = json!(types);
    json!({
        "type": "object",
        "properties": properties,
        "anyOf": [{"required": ["id", "type"]}, {"required": ["$ref"]}],
        "additionalProperties": false,
        "allOf": all_of,
    })
}

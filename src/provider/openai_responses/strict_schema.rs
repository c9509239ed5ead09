//! The check of a function's schema against strict mode, whose violation makes the service refuse the request.

use serde_json::{Map, Value};

/// The keywords of strict mode, except `properties` and others that are checked recursively.
///
/// A schema with any other keyword isn't declared strict: less strictness costs little, a refused request costs the
/// verdict.
const STRICT_KEYWORDS: [&str; 16] = [
    "type",
    "title",
    "description",
    "enum",
    "const",
    "$ref",
    "$schema",
    "required",
    "additionalProperties",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];

/// Returns whether a function with this schema may be declared strict.
pub(super) fn can_be_strict(schema: &Value) -> bool {
    let root = schema.as_object();
    root.is_some_and(|root| root.get("type") == Some(&Value::from("object"))) && is_strict(schema)
}

fn is_strict(schema: &Value) -> bool {
    let Value::Object(map) = schema else {
        return false;
    };
    let is_object = match map.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => map.contains_key("properties"),
    };
    (!is_object || is_closed_object(map))
        && map.iter().all(|(key, value)| is_strict_keyword(key, value))
}

fn is_strict_keyword(key: &str, value: &Value) -> bool {
    match (key, value) {
        ("properties" | "$defs" | "definitions", Value::Object(all)) => all.values().all(is_strict),
        ("items", one) => is_strict(one),
        ("anyOf", Value::Array(all)) => all.iter().all(is_strict),
        _ => STRICT_KEYWORDS.contains(&key),
    }
}

/// Every property is required and no other may come.
fn is_closed_object(map: &Map<String, Value>) -> bool {
    let required = map.get("required").and_then(Value::as_array);
    let names = |name: &String| {
        required
            .into_iter()
            .flatten()
            .any(|required| required == name)
    };
    let properties = map.get("properties").and_then(Value::as_object);
    map.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.is_some_and(|all| all.keys().all(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schema_is_strict_only_if_closed_with_known_keywords() {
        let closed = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"], "additionalProperties": false});
        for good in [
            closed(json!({"type": "string", "description": "x"})),
            closed(json!({"type": ["integer", "null"], "minimum": 1})),
            closed(
                json!({"type": "array", "items": closed(json!({"enum": ["x"], "type": "string"}))}),
            ),
            closed(json!({"anyOf": [{"type": "string"}, closed(json!({"type": "number"}))]})),
            json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
        ] {
            assert!(can_be_strict(&good), "{good}");
        }
        for bad in [
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"type": "object"}),
            json!({"type": "string"}),
            closed(json!({"type": "string", "default": "x"})),
            closed(json!({"oneOf": [{"type": "string"}]})),
            closed(json!({"type": "object", "properties": {"b": {"type": "string"}}})),
            closed(json!({"type": "array", "items": {"type": "object"}})),
            closed(json!(true)),
            json!(null),
        ] {
            assert!(!can_be_strict(&bad), "{bad}");
        }
    }
}

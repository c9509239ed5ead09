//! What to do about a param that does not satisfy its type: a list that was written as one text, a number in quotes, a key
//! that a nested mapping does not have. A hint is given only where it is sure; the message alone says what is wrong.

use serde_json::Value;

use crate::diag::find_nearest;

/// How many other names are listed with one that nobody knows.
const MAX_LISTED_NAMES: usize = 6;
/// A value with more characters is not repeated.
const MAX_SHOWN_CHARS: usize = 40;

/// What to write instead of what stands at `pointer` of the params.
pub(super) fn suggest_fix(schema: &Value, params: &Value, pointer: &str) -> Option<String> {
    let value = params.pointer(pointer)?;
    let (above, key) = pointer.rsplit_once('/')?;
    let outer = schema_at(schema, above)?;
    let Some(wanted) = schema_at(schema, pointer) else {
        return list_known_keys(outer, key);
    };
    let takes = |kind: &str| match &wanted["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    };
    let name = key.bytes().all(|b| b.is_ascii_digit());
    let name = if name {
        String::new()
    } else {
        format!("{key}: ")
    };
    let shown = match value.to_string() {
        long if long.chars().count() > MAX_SHOWN_CHARS => "…".to_owned(),
        shown => shown,
    };
    match value {
        Value::Object(_) => None,
        _ if takes("object") && !takes("string") => Some(describe_mapping(wanted)),
        Value::Array(_) | Value::Null => None,
        // A command has no shell that would take it apart.
        Value::String(text) if key == "command" && takes("array") => {
            let words: Vec<&str> = text.split_whitespace().collect();
            Some(format!("a list: write `command: {words:?}`"))
        }
        _ if takes("array") && !takes("string") => Some(format!("a list: write `{name}[{shown}]`")),
        Value::Number(_) | Value::Bool(_) if takes("string") => {
            Some(format!("a text: write `{name}\"{shown}\"`"))
        }
        Value::String(text) if takes("number") || takes("integer") => {
            let number: f64 = text.trim().parse().ok()?;
            number
                .is_finite()
                .then(|| format!("without quotes: `{name}{}`", text.trim()))
        }
        Value::String(text) if takes("boolean") => {
            let word = match text.to_lowercase().as_str() {
                "true" | "yes" | "on" => "true",
                "false" | "no" | "off" => "false",
                _ => return None,
            };
            Some(format!("write `{name}{word}`"))
        }
        _ => None,
    }
}

fn describe_mapping(schema: &Value) -> String {
    let keys = schema["properties"].as_object().into_iter().flatten();
    let keys: Vec<&str> = keys.map(|(key, _)| key.as_str()).collect();
    match keys.as_slice() {
        [] => "a mapping: `{ name: value }`".to_owned(),
        keys => format!("a mapping, of: {}", keys.join(", ")),
    }
}

/// The keys a mapping takes, the nearest first where one is near.
fn list_known_keys(schema: &Value, key: &str) -> Option<String> {
    let known: Vec<&str> = schema["properties"]
        .as_object()?
        .keys()
        .map(String::as_str)
        .collect();
    let near = find_nearest(key, known.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    Some(format!("{near}known here: {}", known.join(", ")))
}

/// The part of a schema that is about the value at a pointer.
fn schema_at<'s>(schema: &'s Value, pointer: &str) -> Option<&'s Value> {
    pointer.split('/').skip(1).try_fold(schema, |schema, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        let property = schema["properties"].get(&step);
        let item = || {
            schema
                .get("items")
                .filter(|_| step.parse::<usize>().is_ok())
        };
        let other = || schema.get("additionalProperties");
        let found = property.or_else(item).or_else(other)?;
        found.is_object().then_some(found)
    })
}

/// The names that share a word with one that nobody knows, in their order.
pub(in crate::rubric) fn find_similar_names<'k>(written: &str, known: &[&'k str]) -> Vec<&'k str> {
    let words = |name: &str| -> Vec<String> {
        let parts = name.split(|c: char| !c.is_alphanumeric());
        let long = parts.filter(|part| part.len() > 2);
        long.map(str::to_lowercase).collect()
    };
    let wanted = words(written);
    let same = |a: &str, b: &str| {
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        short == long || (short.len() > 3 && long.starts_with(short))
    };
    let shares = |name: &str| {
        let own = words(name);
        wanted
            .iter()
            .filter(|a| own.iter().any(|b| same(a, b)))
            .count()
    };
    let mut found: Vec<(usize, &str)> = known.iter().map(|name| (shares(name), *name)).collect();
    found.retain(|(shared, _)| *shared > 0);
    // Most words first; what shares as many stays in its order.
    found.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    found
        .into_iter()
        .take(MAX_LISTED_NAMES)
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_slip_is_told_with_what_to_write() {
        let schema = json!({"properties": {
            "patterns": {"type": "array", "items": {"type": "string"}},
            "max": {"type": "integer"},
            "whole": {"type": "boolean"},
            "free": {},
            "args": {"type": "object"},
            "count": {"type": "object", "properties": {"min": {}, "max": {}}},
            "command": {"type": "array", "items": {"type": "string"}},
            "expected": {"type": "array", "items": {"type": ["string", "object"], "properties": {"tool": {"type": "string"}, "args": {}}}},
        }});
        for (params, pointer, hint_is) in [
            (
                json!({"patterns": "x"}),
                "/patterns",
                Some("a list: write `patterns: [\"x\"]`"),
            ),
            (
                json!({"patterns": [7]}),
                "/patterns/0",
                Some("a text: write `\"7\"`"),
            ),
            (
                json!({"max": " 20"}),
                "/max",
                Some("without quotes: `max: 20`"),
            ),
            (json!({"max": "few"}), "/max", None),
            (
                json!({"whole": "Yes"}),
                "/whole",
                Some("write `whole: true`"),
            ),
            (json!({"whole": "so"}), "/whole", None),
            (
                json!({"expected": [{"tol": "x"}]}),
                "/expected/0/tol",
                Some("did you mean `tool`? known here: tool, args"),
            ),
            (
                json!({"expected": [{"q": 1}]}),
                "/expected/0/q",
                Some("known here: tool, args"),
            ),
            (
                json!({"count": 2}),
                "/count",
                Some("a mapping, of: min, max"),
            ),
            (
                json!({"args": [1]}),
                "/args",
                Some("a mapping: `{ name: value }`"),
            ),
            (
                json!({"command": "python3 a.py"}),
                "/command",
                Some("a list: write `command: [\"python3\", \"a.py\"]`"),
            ),
            (json!({"free": 1}), "/free", None),
            (json!({}), "", None),
        ] {
            assert_eq!(
                suggest_fix(&schema, &params, pointer).as_deref(),
                hint_is,
                "{params}"
            );
        }
    }

    #[test]
    fn names_are_alike_that_share_a_word() {
        let known = [
            "contains",
            "contains_any",
            "llm_judge",
            "binary_rubric",
            "regex",
        ];
        assert_eq!(
            find_similar_names("contain-all", &known),
            ["contains", "contains_any"]
        );
        assert_eq!(
            find_similar_names("llm-rubric", &known),
            ["llm_judge", "binary_rubric"]
        );
        assert_eq!(find_similar_names("xyzzy", &known), [""; 0]);
    }
}

//! What a tool takes, for people: a line for each of its arguments. The declaration itself is what `--provider` prints.

use std::fmt::Write as _;

use serde_json::Value;

use crate::report::wrap_line;

/// Longest name that others are aligned to.
const MAX_NAME_WIDTH: usize = 24;

/// A line for each argument, indented.
pub(super) fn format_arguments(schema: &Value, width: usize) -> String {
    let properties = schema["properties"].as_object();
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        let is_closed = schema.get("properties").is_some() || schema.get("type").is_none();
        let what = if is_closed {
            "takes nothing"
        } else {
            "takes any object"
        };
        return format!("      {what}\n");
    };
    let names = properties.keys().map(|name| name.chars().count());
    let widest = names.max().unwrap_or_default().min(MAX_NAME_WIDTH);
    let required = |name: &str| {
        let list = schema["required"].as_array();
        list.is_some_and(|list| list.iter().any(|one| one == name))
    };
    let mut out = String::new();
    for (name, property) in properties {
        let text = format!(
            "{name:<widest$}  {}",
            describe_argument(property, required(name))
        );
        let _infallible = writeln!(out, "      {}", wrap_line(&text, 6, 8 + widest, width));
    }
    out
}

fn describe_argument(property: &Value, is_required: bool) -> String {
    let mut told = describe_type(property);
    match property.get("default") {
        Some(default) => {
            let _infallible = write!(told, ", {default} by default");
        }
        None if is_required => told.push_str(", required"),
        None => told.push_str(", may be absent"),
    }
    for rule in describe_rules(property) {
        let _infallible = write!(told, ", {rule}");
    }
    if let Some(description) = property["description"].as_str() {
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let _infallible = write!(told, ": {description}");
    }
    told
}

fn describe_type(property: &Value) -> String {
    let word = match &property["type"] {
        Value::String(word) => word.clone(),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.join(" or ")
        }
        _ => "any value".to_owned(),
    };
    let inner = match word.as_str() {
        "array" => property.get("items"),
        "object" => property.get("additionalProperties"),
        _ => None,
    };
    match inner.filter(|inner| inner.is_object()) {
        Some(inner) => {
            let rules = describe_rules(inner).join(", ");
            let rules = if rules.is_empty() {
                rules
            } else {
                format!(" ({rules})")
            };
            format!("{word} of {}{rules}", describe_type(inner))
        }
        None => word,
    }
}

fn describe_rules(property: &Value) -> Vec<String> {
    let mut rules = Vec::new();
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        rules.push(format!("one of {}", values.join(" ")));
    }
    if let Some(pattern) = property["pattern"].as_str() {
        rules.push(format!("matching /{pattern}/"));
    }
    match (property.get("minimum"), property.get("maximum")) {
        (Some(low), Some(high)) => rules.push(format!("{low} to {high}")),
        (Some(low), None) => rules.push(format!("at least {low}")),
        (None, Some(high)) => rules.push(format!("at most {high}")),
        (None, None) => {}
    }
    rules
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_argument_is_told_with_its_kind_its_default_its_rules_and_what_it_means() {
        let schema = json!({"type": "object", "required": ["q", "ids"], "properties": {
            "q": {"type": "string", "description": "what to\n look for", "enum": ["a", "b"]},
            "count": {"type": "integer", "default": 3, "minimum": 0, "maximum": 5},
            "ids": {"type": "array", "items": {"type": "string", "pattern": "^x"}},
            "any": true,
        }});
        assert_eq!(
            format_arguments(&schema, 0),
            "      q      string, required, one of \"a\" \"b\": what to look for\n\
             \x20     count  integer, 3 by default, 0 to 5\n\
             \x20     ids    array of string (matching /^x/), required\n\
             \x20     any    any value, may be absent\n"
        );
    }

    #[test]
    fn what_takes_nothing_and_what_takes_anything_say_so() {
        let none = json!({"type": "object", "properties": {}});
        assert!(format_arguments(&none, 0).contains("takes nothing"));
        assert!(format_arguments(&json!({"type": "object"}), 0).contains("takes any object"));
    }
}

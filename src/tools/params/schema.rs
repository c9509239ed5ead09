//! The declaration of parameters to the language model: a JSON Schema of simple keywords that every provider accepts.
//!
//! The description states the rules that such keywords cannot express, so that a model need not learn them from
//! rejections.

use serde_json::{Map, Value, json};

use super::value_filter::{ValueMatcher, format_matchers};
use super::value_spec::{ValueSpec, ValueType};
use super::{ToolParam, ToolParams};

/// Syntax that RE2 has and the patterns of JSON Schema lack.
const NOT_PORTABLE: &[&str] = &[
    "(?i", "(?s", "(?m", "(?U", "(?P", "(?-", r"\Q", r"\p", r"\P", r"\A", r"\z", r"\x{", r"\a",
    "[[:",
];

impl ToolParams {
    /// Returns the JSON Schema of the arguments, with rules and without hidden parameters.
    pub fn schema(&self) -> Value {
        let visible: Vec<&ToolParam> = self
            .all_params()
            .filter(|param| !param.is_hidden())
            .collect();
        let properties: Map<String, Value> = visible
            .iter()
            .map(|param| (param.name.clone(), property_schema(param)))
            .collect();
        let required: Vec<&str> = visible
            .iter()
            .filter(|param| param.is_required_of_model())
            .map(|param| param.name.as_str())
            .collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

fn property_schema(param: &ToolParam) -> Value {
    let mut schema = value_schema(&param.spec);
    if let Some(default) = &param.default
        && let Ok(default) = serde_json::from_str(&default.to_compact_json())
    // A number beyond `f64` has no place in a schema, so such a default is not shown.
    {
        schema.insert("default".to_owned(), default);
    }
    Value::Object(schema)
}

fn value_schema(shape: &ValueSpec) -> Map<String, Value> {
    let mut schema = Map::new();
    let word = match shape.of {
        ValueType::Float => "number",
        ValueType::Map(_) => "object",
        _ => shape.of.name(),
    };
    schema.insert("type".to_owned(), json!(word));
    let sentences = add_filter_to_schema(shape, &mut schema);
    let description: Vec<&str> = std::iter::once(shape.description.as_str())
        .chain(sentences.iter().map(String::as_str))
        .filter(|part| !part.is_empty())
        .collect();
    if !description.is_empty() {
        let joined = description.join(" ");
        // Put the description right after the type, where readers look for it.
        schema.shift_insert(1, "description".to_owned(), json!(joined));
    }
    match &shape.of {
        ValueType::Array(items) => {
            schema.insert("items".to_owned(), Value::Object(value_schema(items)));
        }
        ValueType::Map(of) => {
            let values = match of {
                Some(scalar) => {
                    Value::Object(value_schema(&ValueSpec::without_rules((*scalar).into())))
                }
                None => json!(true),
            };
            schema.insert("additionalProperties".to_owned(), values);
        }
        _ => {}
    }
    schema
}

/// Adds the rules that a schema can express. Returns sentences for the others.
fn add_filter_to_schema(shape: &ValueSpec, schema: &mut Map<String, Value>) -> Vec<String> {
    let mut sentences = Vec::new();
    for (key, limit) in [("minimum", shape.min), ("maximum", shape.max)] {
        if let Some(limit) = limit {
            schema.insert(key.to_owned(), limit.to_json());
        }
    }
    let allowed = &shape.filter.allowed;
    // From the most exact form to the least: a list of values, one pattern, a sentence.
    if let Some(values) = enum_values(shape) {
        schema.insert("enum".to_owned(), Value::Array(values));
    } else if let Some(pattern) = find_single_pattern(shape) {
        schema.insert("pattern".to_owned(), json!(pattern));
    } else if !allowed.is_empty() {
        sentences.push(format!("Allowed: {}.", describe_matchers(allowed)));
    }
    if !shape.filter.excluded.is_empty() {
        sentences.push(format!(
            "Not allowed: {}.",
            describe_matchers(&shape.filter.excluded)
        ));
    }
    sentences
}

/// Returns all allowed values, if the allow list determines them.
fn enum_values(shape: &ValueSpec) -> Option<Vec<Value>> {
    if shape.filter.allowed.is_empty()
        || !matches!(
            shape.of,
            ValueType::Text | ValueType::Integer | ValueType::Float
        )
    {
        return None;
    }
    let entries = shape.filter.allowed.iter();
    entries
        .map(|entry| match (entry, &shape.of) {
            (ValueMatcher::Pattern(pattern), ValueType::Text) => {
                pattern.only_match().map(Value::String)
            }
            (ValueMatcher::Pattern(pattern), _) => {
                serde_json::from_str(&pattern.only_match()?).ok()
            }
            (ValueMatcher::Equal(node), _) => serde_json::from_str(&node.to_compact_json()).ok(),
        })
        .collect()
}

fn find_single_pattern(shape: &ValueSpec) -> Option<String> {
    let (ValueType::Text, [ValueMatcher::Pattern(pattern)]) =
        (&shape.of, shape.filter.allowed.as_slice())
    else {
        return None;
    };
    let written = &pattern.source;
    // JSON Schema uses JavaScript's patterns, which lack these parts of RE2.
    if NOT_PORTABLE.iter().any(|part| written.contains(part)) {
        return None;
    }
    // An alternation binds less tightly than anchors, so `^a|b$` is not anchored as a whole.
    let is_whole = written.starts_with('^') && written.ends_with('$') && !written.contains('|');
    Some(if pattern.anchored && !is_whole {
        format!("^(?:{written})$")
    } else {
        written.clone()
    })
}

fn describe_matchers(entries: &[ValueMatcher]) -> String {
    let is_pattern = |entry: &ValueMatcher| matches!(entry, ValueMatcher::Pattern(_));
    let (patterns, values): (Vec<ValueMatcher>, Vec<ValueMatcher>) =
        entries.iter().cloned().partition(is_pattern);
    let mut parts = Vec::new();
    if !values.is_empty() {
        parts.push(format_matchers(&values));
    }
    if !patterns.is_empty() {
        let how = if entries
            .iter()
            .any(|e| matches!(e, ValueMatcher::Pattern(p) if p.anchored))
        {
            "what as a whole matches"
        } else {
            "what matches"
        };
        parts.push(format!("{how} {}", format_matchers(&patterns)));
    }
    parts.join(" and ")
}

//! What the model is told: a JSON Schema of plain keywords that every provider takes, with the rules in it.
//!
//! What a schema cannot say in such keywords stands in the description, so that no rule has to be learnt by failing.

use serde_json::{Map, Value, json};

use super::rules::{Entry, list};
use super::shape::{Shape, Type};
use super::{Param, Params};

/// Beginnings of what RE2 has and JSON Schema's patterns lack.
const NOT_PORTABLE: &[&str] = &[
    "(?i", "(?s", "(?m", "(?U", "(?P", "(?-", r"\Q", r"\p", r"\P", r"\A", r"\z", r"\x{", r"\a",
    "[[:",
];

impl Params {
    /// JSON Schema of the arguments, rules included, hidden parameters left out.
    pub fn schema(&self) -> Value {
        let shown: Vec<&Param> = self.all().filter(|param| !param.is_hidden()).collect();
        let properties: Map<String, Value> = shown
            .iter()
            .map(|param| (param.name.clone(), property(param)))
            .collect();
        let required: Vec<&str> = shown
            .iter()
            .filter(|param| param.is_asked_for())
            .map(|param| param.name.as_str())
            .collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

fn property(param: &Param) -> Value {
    let mut schema = of_shape(&param.shape);
    if let Some(default) = &param.default
        && let Ok(default) = serde_json::from_str(&default.compact())
    {
        schema.insert("default".to_owned(), default);
    }
    Value::Object(schema)
}

fn of_shape(shape: &Shape) -> Map<String, Value> {
    let mut schema = Map::new();
    let word = match shape.of {
        Type::Float => "number",
        Type::Map(_) => "object",
        _ => shape.of.word(),
    };
    schema.insert("type".to_owned(), json!(word));
    let sentences = rules(shape, &mut schema);
    let description: Vec<&str> = std::iter::once(shape.description.as_str())
        .chain(sentences.iter().map(String::as_str))
        .filter(|part| !part.is_empty())
        .collect();
    if !description.is_empty() {
        let joined = description.join(" ");
        // Right behind the type, where people look for it.
        schema.shift_insert(1, "description".to_owned(), json!(joined));
    }
    match &shape.of {
        Type::Array(items) => {
            schema.insert("items".to_owned(), Value::Object(of_shape(items)));
        }
        Type::Map(of) => {
            let values = match of {
                Some(scalar) => Value::Object(of_shape(&Shape::bare((*scalar).into()))),
                None => json!(true),
            };
            schema.insert("additionalProperties".to_owned(), values);
        }
        _ => {}
    }
    schema
}

/// Puts into the schema what it can say; returns sentences for the rest.
fn rules(shape: &Shape, schema: &mut Map<String, Value>) -> Vec<String> {
    let mut sentences = Vec::new();
    for (key, limit) in [("minimum", shape.low), ("maximum", shape.high)] {
        if let Some(limit) = limit {
            schema.insert(key.to_owned(), limit.json());
        }
    }
    let allowed = &shape.rules.allowed;
    if let Some(values) = plain_values(shape) {
        schema.insert("enum".to_owned(), Value::Array(values));
    } else if let Some(pattern) = single_pattern(shape) {
        schema.insert("pattern".to_owned(), json!(pattern));
    } else if !allowed.is_empty() {
        sentences.push(format!("Allowed: {}.", said(allowed)));
    }
    if !shape.rules.excluded.is_empty() {
        sentences.push(format!("Not allowed: {}.", said(&shape.rules.excluded)));
    }
    sentences
}

/// Every value there is, where the allow list says so.
fn plain_values(shape: &Shape) -> Option<Vec<Value>> {
    if shape.rules.allowed.is_empty()
        || !matches!(shape.of, Type::Text | Type::Integer | Type::Float)
    {
        return None;
    }
    let entries = shape.rules.allowed.iter();
    entries
        .map(|entry| match (entry, &shape.of) {
            (Entry::Pattern(pattern), Type::Text) => pattern.only().map(Value::String),
            (Entry::Pattern(pattern), _) => serde_json::from_str(&pattern.only()?).ok(),
            (Entry::Same(node), _) => serde_json::from_str(&node.compact()).ok(),
        })
        .collect()
}

fn single_pattern(shape: &Shape) -> Option<String> {
    let (Type::Text, [Entry::Pattern(pattern)]) = (&shape.of, shape.rules.allowed.as_slice())
    else {
        return None;
    };
    let written = &pattern.written;
    if NOT_PORTABLE.iter().any(|part| written.contains(part)) {
        return None;
    }
    let is_whole = written.starts_with('^') && written.ends_with('$') && !written.contains('|');
    Some(if pattern.anchored && !is_whole {
        format!("^(?:{written})$")
    } else {
        written.clone()
    })
}

fn said(entries: &[Entry]) -> String {
    let is_pattern = |entry: &Entry| matches!(entry, Entry::Pattern(_));
    let (patterns, values): (Vec<Entry>, Vec<Entry>) =
        entries.iter().cloned().partition(is_pattern);
    let mut parts = Vec::new();
    if !values.is_empty() {
        parts.push(list(&values));
    }
    if !patterns.is_empty() {
        let how = if entries
            .iter()
            .any(|e| matches!(e, Entry::Pattern(p) if p.anchored))
        {
            "what as a whole matches"
        } else {
            "what matches"
        };
        parts.push(format!("{how} {}", list(&patterns)));
    }
    parts.join(" and ")
}

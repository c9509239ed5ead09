//! An assertion's `value`: filled in from variables, or read from the file it names.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::super::at::{At, find};
use super::super::make::Lost;
use crate::diag::yaml;
use crate::rubric::Files;

/// A value with its variables filled in.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rubric::forms) enum Filled {
    /// As it is.
    Plain(Value),
    /// The transcript's own, at this path of its metadata.
    Late(String),
    /// A text with parts from the transcript's metadata, as our templates write them.
    Template(String),
}

/// Whether some text of it is a template.
pub(super) fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(map) => map.values().any(has_template),
        _ => false,
    }
}

pub(in crate::rubric::forms) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// The name in `{{ name }}`, if that is the whole text.
pub(in crate::rubric::forms) fn lone(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    is_name(name).then_some(name)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// Fills in a test's variables; for an assertion of every test (`None`) a lone variable is the transcript's own.
pub(super) fn fill(value: &Value, vars: Option<&Map<String, Value>>) -> Result<Filled, Lost> {
    if !has_template(value) {
        return Ok(Filled::Plain(value.clone()));
    }
    match vars {
        Some(vars) => Ok(Filled::Plain(filled(value, vars)?)),
        None => match value.as_str().and_then(lone) {
            Some(name) if is_var(name) => Ok(Filled::Late(format!("metadata.vars.{name}"))),
            _ => from_metadata(value.as_str().unwrap_or_default()),
        },
    }
}

/// Whether a name is a variable of a test, not one that promptfoo has itself.
fn is_var(name: &str) -> bool {
    !name.starts_with("env.") && name != "output"
}

/// The same text over the transcript's metadata, where each part is one variable.
fn from_metadata(text: &str) -> Result<Filled, Lost> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let name = after
            .split_once("}}")
            .map(|(name, after)| (name.trim(), after));
        let Some((name, after)) = name.filter(|(name, _)| is_name(name) && is_var(name)) else {
            return Err(template(text));
        };
        out.push_str(before);
        let _infallible = write!(out, "{{{{ metadata.vars.{name} }}}}");
        rest = after;
    }
    if text.is_empty() || text.contains("{%") {
        return Err(template(text));
    }
    out.push_str(rest);
    Ok(Filled::Template(out))
}

pub(super) fn template(text: &str) -> Lost {
    let shown: String = text.chars().take(60).collect();
    Lost::new(
        format!("`{shown}` is a template that promptfoo fills in"),
        "write the text itself, or a param as `{ from: metadata.vars.NAME }`",
    )
}

fn filled(value: &Value, vars: &Map<String, Value>) -> Result<Value, Lost> {
    Ok(match value {
        Value::String(text) if is_template(text) => fill_text(text, vars)?.into(),
        Value::Array(items) => {
            let items = items.iter().map(|item| filled(item, vars));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let entries = map.iter().map(|(k, v)| Ok((k.clone(), filled(v, vars)?)));
            Value::Object(entries.collect::<Result<_, Lost>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, vars: &Map<String, Value>) -> Result<String, Lost> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or_else(|| template(text))?;
        let name = name.trim();
        let value = vars.get(name).or_else(|| at_path(vars, name));
        out.push_str(before);
        match value {
            Some(Value::String(value)) if !is_template(value) => out.push_str(value),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => out.push_str(&value.to_string()),
            _ => return Err(template(text)),
        }
        rest = after;
    }
    if rest.contains("{%") || out.contains("{%") {
        return Err(template(text));
    }
    out.push_str(rest);
    Ok(out)
}

fn at_path<'v>(vars: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    let mut steps = name.split('.');
    let mut value = vars.get(steps.next()?)?;
    for step in steps {
        value = value.get(step)?;
    }
    Some(value)
}

/// What a `file://` value names; any other as it is.
pub(super) fn from_file(files: &dyn Files, at: &At, value: Value) -> Result<Value, Lost> {
    let Some(path) = value.as_str().and_then(|text| text.strip_prefix("file://")) else {
        return Ok(value);
    };
    let ends = |endings: &[&str]| endings.iter().any(|end| path.ends_with(end));
    if !ends(&[".json", ".yaml", ".yml", ".txt", ".md"]) {
        return Err(Lost::new(
            format!("`{path}` is a program"),
            "a `script` eval",
        ));
    }
    let (path, text): (_, Arc<str>) = find(files, &at.doc.path, path)
        .map_err(|why| Lost::new(format!("the file `{path}` {why}"), ""))?;
    if ends(&[".txt", ".md"]) {
        return Ok(Value::from(&*text));
    }
    yaml::read_document(&text, &path)
        .map(|doc| doc.value)
        .map_err(|problems| {
            let first = problems
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            Lost::new(format!("its file cannot be read: {first}"), "")
        })
}

/// A schema as it stands or as text. Theirs is draft 7 where it does not say.
pub(super) fn schema(value: &Value) -> Result<Option<Value>, Lost> {
    let parsed;
    let value = match value {
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => {
            let source = text.as_str().into();
            parsed = yaml::read_document(&source, std::path::Path::new("schema"))
                .map_err(|_| Lost::new("its schema is no YAML or JSON", ""))?
                .value;
            &parsed
        }
        other => other,
    };
    match value {
        Value::Null | Value::Bool(true) => Ok(None),
        Value::Object(map) => {
            let mut schema = Map::new();
            if !map.contains_key("$schema") {
                let draft = "http://json-schema.org/draft-07/schema#";
                schema.insert("$schema".to_owned(), draft.into());
            }
            schema.extend(map.clone());
            Ok(Some(Value::Object(schema)))
        }
        other => {
            let why = format!(
                "its schema must be a mapping (got {})",
                yaml::describe_value(other)
            );
            Err(Lost::new(why, ""))
        }
    }
}

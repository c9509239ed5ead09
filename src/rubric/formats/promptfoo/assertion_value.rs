//! The reader of an assertion's `value`: it inserts variables, or reads the file that the value names.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::super::conversion::ConversionError;
use super::super::doc_location::{DocLocation, find_file};
use crate::diag::yaml::{self, YamlLimits};
use crate::rubric::RubricFiles;

/// A value with its variables inserted.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rubric::formats) enum FilledValue {
    /// A value without variables from the transcript.
    Plain(Value),
    /// The value at this path of the transcript's metadata.
    FromMetadata(String),
    /// A text with parts from the transcript's metadata, as a template of dicta.
    MetadataTemplate(String),
}

/// Returns true if the value contains a template.
pub(super) fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(map) => map.values().any(has_template),
        _ => false,
    }
}

pub(in crate::rubric::formats) fn is_template(text: &str) -> bool {
    // promptfoo's templates are Nunjucks: `{{ }}` for values, `{% %}` for logic.
    text.contains("{{") || text.contains("{%")
}

/// Returns the name in `{{ name }}`, if that is the whole text.
pub(in crate::rubric::formats) fn lone_variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    is_variable_name(name).then_some(name)
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// Inserts a test's variables. For an assertion of every test (`None`), a single variable refers to the transcript's
/// metadata.
pub(super) fn fill_value(
    value: &Value,
    vars: Option<&Map<String, Value>>,
) -> Result<FilledValue, ConversionError> {
    if !has_template(value) {
        return Ok(FilledValue::Plain(value.clone()));
    }
    // A test's own variables are known; those of every test come from each transcript.
    match vars {
        Some(vars) => Ok(FilledValue::Plain(fill_nested(value, vars)?)),
        None => match value.as_str().and_then(lone_variable) {
            Some(name) if is_test_variable(name) => {
                Ok(FilledValue::FromMetadata(format!("metadata.vars.{name}")))
            }
            _ => to_metadata_template(value.as_str().unwrap_or_default()),
        },
    }
}

/// Returns true if a name is a variable of a test and not one of promptfoo's own.
fn is_test_variable(name: &str) -> bool {
    !name.starts_with("env.") && name != "output"
}

/// Converts a text to a template over the transcript's metadata. Each part must be one variable.
fn to_metadata_template(text: &str) -> Result<FilledValue, ConversionError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let name = after
            .split_once("}}")
            .map(|(name, after)| (name.trim(), after));
        let Some((name, after)) =
            name.filter(|(name, _)| is_variable_name(name) && is_test_variable(name))
        else {
            // Logic, filters and promptfoo's own variables cannot be converted.
            return Err(unfilled_template_error(text));
        };
        out.push_str(before);
        let _infallible = write!(out, "{{{{ metadata.vars.{name} }}}}");
        rest = after;
    }
    // A template with logic but without variables reaches this line.
    if text.is_empty() || text.contains("{%") {
        return Err(unfilled_template_error(text));
    }
    out.push_str(rest);
    Ok(FilledValue::MetadataTemplate(out))
}

pub(super) fn unfilled_template_error(text: &str) -> ConversionError {
    let excerpt: String = text.chars().take(60).collect();
    ConversionError::new(
        format!("`{excerpt}` is a template that promptfoo fills in"),
        "write the text itself, or a param as `{ from: metadata.vars.NAME }`",
    )
}

fn fill_nested(value: &Value, vars: &Map<String, Value>) -> Result<Value, ConversionError> {
    Ok(match value {
        Value::String(text) if is_template(text) => fill_text(text, vars)?.into(),
        Value::Array(items) => {
            let items = items.iter().map(|item| fill_nested(item, vars));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(k, v)| Ok((k.clone(), fill_nested(v, vars)?)));
            Value::Object(entries.collect::<Result<_, ConversionError>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, vars: &Map<String, Value>) -> Result<String, ConversionError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after
            .split_once("}}")
            .ok_or_else(|| unfilled_template_error(text))?;
        let name = name.trim();
        // A dotted name can be a key of its own, or a path.
        let value = vars.get(name).or_else(|| at_path(vars, name));
        out.push_str(before);
        match value {
            // A value with a template of its own would be filled again, so it is refused.
            Some(Value::String(value)) if !is_template(value) => out.push_str(value),
            // Mappings and lists have no text that both tools agree on.
            Some(Value::Number(number)) => out.push_str(&number_text(number)),
            Some(Value::Bool(value)) => out.push_str(&value.to_string()),
            _ => return Err(unfilled_template_error(text)),
        }
        rest = after;
    }
    // A variable can insert `{%` as well, hence the check of the output.
    if rest.contains("{%") || out.contains("{%") {
        return Err(unfilled_template_error(text));
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns a number as JavaScript writes it in a text, which promptfoo compares: `1` for 1.0.
pub(super) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

fn at_path<'v>(vars: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    let mut steps = name.split('.');
    let mut value = vars.get(steps.next()?)?;
    for step in steps {
        value = value.get(step)?;
    }
    Some(value)
}

/// Returns the content of the files that a value names: a `file://` text, or such texts in a list.
pub(super) fn read_file_values(
    files: &dyn RubricFiles,
    at: &DocLocation,
    value: Value,
) -> Result<Value, ConversionError> {
    match value {
        Value::Array(items) => items
            .into_iter()
            .map(|item| read_file_value(files, at, item))
            .collect(),
        other => read_file_value(files, at, other),
    }
}

/// Returns the content of the file that a `file://` value names. Returns other values unchanged.
pub(super) fn read_file_value(
    files: &dyn RubricFiles,
    at: &DocLocation,
    value: Value,
) -> Result<Value, ConversionError> {
    let Some(path) = value.as_str().and_then(|text| text.strip_prefix("file://")) else {
        return Ok(value);
    };
    let ends = |endings: &[&str]| endings.iter().any(|end| path.ends_with(end));
    // promptfoo runs other files as programs; dicta does not run them.
    if !ends(&[".json", ".yaml", ".yml", ".txt", ".md"]) {
        return Err(ConversionError::new(
            format!("`{path}` is a program"),
            "a `script` eval",
        ));
    }
    let found = find_file(files, &at.doc.path, path)
        .map_err(|why| ConversionError::new(format!("the file `{path}` {why}"), ""))?;
    // The text of a file loses the blanks at its ends, as in promptfoo; the others are parsed.
    if ends(&[".txt", ".md"]) {
        return Ok(found.text.trim().into());
    }
    yaml::read_limited_document(&found.text, &found.path, YamlLimits::GENERATED)
        .map(|doc| doc.value)
        .map_err(|problems| {
            let first = problems
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            ConversionError::new(format!("its file cannot be read: {first}"), "")
        })
}

/// Reads a schema that is given as a mapping or as text. promptfoo's default is draft 7.
pub(super) fn parse_schema(value: &Value) -> Result<Option<Value>, ConversionError> {
    let parsed;
    let value = match value {
        // promptfoo's `is-json` without a schema checks only the syntax.
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => {
            let source = text.as_str().into();
            parsed = yaml::read_document(&source, std::path::Path::new("schema"))
                .map_err(|_| ConversionError::new("its schema is neither YAML nor JSON", ""))?
                .value;
            &parsed
        }
        other => other,
    };
    match value {
        // `true` accepts everything, like no schema.
        Value::Null | Value::Bool(true) => Ok(None),
        Value::Object(map) => {
            let mut schema = Map::new();
            // Without an explicit draft promptfoo uses draft 7, and dicta would use 2020-12.
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
            Err(ConversionError::new(why, ""))
        }
    }
}

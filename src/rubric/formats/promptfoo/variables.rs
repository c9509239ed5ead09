//! The variables of a promptfoo test: the tests that lists and patterns of files give, and the content of files.
//!
//! Follows promptfoo: a list of texts and a pattern of files give a test for each value, and several of them one for each
//! combination. A list that begins with another value is one value. Also knows the forms in which promptfoo's results have a
//! variable.

use serde_json::{Map, Value, json};

use super::super::conversion::ConversionError;
use super::super::doc_location::{DocLocation, find_file};
use super::assertion_value::{self, FilledValue, fill_value, number_text};
use crate::rubric::{ANY_OF, RubricFiles};

/// The largest number of tests that the variables of one test give.
const MAX_COMBINATIONS: usize = 1000;

/// Returns the variables of a test: its own, or those of the files that `vars` names.
pub(super) fn read_vars(
    files: &dyn RubricFiles,
    test: &DocLocation,
) -> Result<Map<String, Value>, ConversionError> {
    let at = test.child("vars");
    let refuse = || {
        let why = "its `vars` are neither variables nor files of variables";
        ConversionError::new(why, "write a mapping")
    };
    let patterns = match at.value() {
        Value::Null => return Ok(Map::new()),
        Value::Object(map) => return Ok(map.clone()),
        Value::String(pattern) => vec![pattern.as_str()],
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.ok_or_else(refuse)?
        }
        _ => return Err(refuse()),
    };
    let mut vars = Map::new();
    for pattern in patterns {
        let pattern = pattern.strip_prefix("file://").unwrap_or(pattern);
        let named = if pattern.contains(['*', '?']) {
            list_files(files, &at, "vars", pattern)?
        } else {
            vec![Value::from(format!("file://{pattern}"))]
        };
        for file in named {
            match assertion_value::read_file_value(files, &at, file)? {
                Value::Object(map) => vars.extend(map),
                _ => return Err(refuse()),
            }
        }
    }
    Ok(vars)
}

/// Returns true if a variable has several values.
pub(super) fn is_list(vars: &Map<String, Value>, key: &str) -> bool {
    vars.get(key)
        .is_some_and(|value| list_texts(value).is_some() || find_pattern(value).is_some())
}

/// Returns the values of a list of texts, of which promptfoo makes several tests.
fn list_texts(value: &Value) -> Option<&[Value]> {
    let items = value.as_array()?;
    items.first().is_some_and(Value::is_string).then_some(items)
}

/// Returns the pattern of files that a variable names.
fn find_pattern(value: &Value) -> Option<&str> {
    let path = value.as_str()?.strip_prefix("file://")?;
    path.contains(['*', '?']).then_some(path)
}

/// Returns the variables of each test, in promptfoo's order: the values of the last variable change first.
pub(super) fn expand(
    files: &dyn RubricFiles,
    at: &DocLocation,
    vars: &Map<String, Value>,
) -> Result<Vec<Map<String, Value>>, ConversionError> {
    let mut all = vec![Map::new()];
    for (key, value) in vars {
        let values = match (list_texts(value), find_pattern(value)) {
            (Some(values), _) => values.to_vec(),
            (None, Some(pattern)) => list_files(files, at, key, pattern)?,
            (None, None) => vec![value.clone()],
        };
        if all.len().saturating_mul(values.len()) > MAX_COMBINATIONS {
            let why = format!("its variables give more than {MAX_COMBINATIONS} tests");
            return Err(ConversionError::new(why, "split the test"));
        }
        all = all
            .into_iter()
            .flat_map(|vars: Map<String, Value>| {
                values.iter().map(move |value| {
                    let mut vars = vars.clone();
                    vars.insert(key.clone(), value.clone());
                    vars
                })
            })
            .collect();
    }
    Ok(all)
}

fn list_files(
    files: &dyn RubricFiles,
    at: &DocLocation,
    key: &str,
    pattern: &str,
) -> Result<Vec<Value>, ConversionError> {
    let folder = at.doc.path.parent().unwrap_or(std::path::Path::new(""));
    let found = files.list(&folder.join(pattern).to_string_lossy());
    if found.is_empty() {
        let why = format!("its variable `{key}` is a pattern of files, and no file matches it");
        return Err(ConversionError::new(why, "name files"));
    }
    let to_value = |path: &std::path::PathBuf| {
        let inside = path.strip_prefix(folder).unwrap_or(path);
        Value::from(format!("file://{}", inside.to_string_lossy()))
    };
    Ok(found.iter().map(to_value).collect())
}

/// Replaces the names of files by their content. A variable whose file dicta cannot read is removed: it fills no
/// assertion.
pub(super) fn read_files(files: &dyn RubricFiles, at: &DocLocation, vars: &mut Map<String, Value>) {
    vars.retain(|_, value| {
        if find_path(value).is_none() {
            return true;
        }
        // Media and programs are not text.
        match assertion_value::read_file_value(files, at, value.take()) {
            Ok(content) => {
                *value = content;
                true
            }
            Err(_) => false,
        }
    });
}

/// Returns the file that a variable names.
fn find_path(value: &Value) -> Option<&str> {
    value.as_str()?.strip_prefix("file://")
}

/// Returns the condition that a transcript of promptfoo's results meets if it has this variable. `vars` has the content of
/// files. Returns `None` if the results do not have the variable in a form that dicta knows.
///
/// Newer versions of promptfoo write a variable as the test has it, with a structure in a text on one line. Older ones
/// write the content of its file, and the text with its variables filled in.
pub(super) fn to_condition(
    files: &dyn RubricFiles,
    at: &DocLocation,
    name: &str,
    written: &Value,
    vars: &Map<String, Value>,
) -> Option<Value> {
    let mut forms = vec![written.clone()];
    match (find_path(written), written.as_str()) {
        (Some(path), _) => {
            let content = vars.get(name)?;
            forms.push(content.clone());
            if !content.is_string() {
                forms.push(write_on_one_line(content.clone()).into());
            }
            let found = find_file(files, &at.doc.path, path);
            forms.extend(found.map(|file| Value::from(file.text.trim())));
        }
        (None, Some(text)) => {
            // The values of the environment are unknown.
            if text.contains("{{env.") || text.contains("{{ env.") {
                return None;
            }
            forms.extend(structure_on_one_line(text));
            if let Ok(FilledValue::Plain(filled)) = fill_value(written, Some(vars)) {
                forms.push(filled);
            }
        }
        (None, None) => {}
    }
    let mut kept: Vec<Value> = Vec::new();
    for form in forms {
        if !kept.contains(&form) {
            kept.push(form);
        }
    }
    match &kept[..] {
        [only] => Some(only.clone()),
        _ => Some(json!({ ANY_OF: kept })),
    }
}

/// Returns an object or a list in a text as JavaScript writes it.
fn structure_on_one_line(text: &str) -> Option<Value> {
    let parsed: Value = serde_json::from_str(text).ok()?;
    let is_structure = parsed.is_object() || parsed.is_array();
    is_structure.then(|| write_on_one_line(parsed).into())
}

fn write_on_one_line(value: Value) -> String {
    with_javascript_numbers(value).to_string()
}

fn with_javascript_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => number_text(&number)
            .parse()
            .map_or(Value::Number(number), Value::Number),
        Value::Array(items) => items.into_iter().map(with_javascript_numbers).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, with_javascript_numbers(value)))
            .collect(),
        other => other,
    }
}

//! The fields of the records of a file, and what their names and values say.
//!
//! Responsible for the choice of a field by its name and for the check of its values. Does not know the mapping.

use serde_json::{Map, Value};

/// A field of some records.
#[derive(Debug)]
pub(super) struct GuessField {
    /// The JMESPath of the field.
    pub(super) path: String,
    /// The last name in the path, in lower case with `_` between words.
    pub(super) name: String,
    /// The values in the records.
    pub(super) values: Vec<Value>,
}

/// Collects the fields of an object and of nested objects, in order.
pub(super) fn collect_fields(
    map: &Map<String, Value>,
    before: &str,
    depth: usize,
    fields: &mut Vec<GuessField>,
) {
    for (key, value) in map {
        let step = quote_jmespath_key(key);
        let path = if before.is_empty() {
            step
        } else {
            format!("{before}.{step}")
        };
        match value {
            Value::Null => {}
            // Deeper objects stay one value, because a mapping of all their fields would be unreadable.
            Value::Object(object) if depth > 1 && !object.is_empty() => {
                collect_fields(object, &path, depth - 1, fields);
            }
            value => match fields.iter().position(|field| field.path == path) {
                Some(at) => fields[at].values.push(value.clone()),
                // A file of objects with data as keys could have millions of fields.
                None if fields.len() < 256 => fields.push(GuessField {
                    path,
                    name: if crate::model::make_visible(key, false) == *key {
                        normalize_name(key)
                    } else {
                        // A name with invisible characters may be deceptive, so it must not match a known name.
                        String::new()
                    },
                    values: vec![value.clone()],
                }),
                None => {}
            },
        }
    }
}

/// The keys of role and content in a list of messages.
pub(super) struct MessageKeys {
    pub(super) role: String,
    pub(super) content: String,
    /// True if the list is JSON in a text.
    pub(super) is_text: bool,
}

/// Returns the keys of a list of messages; `None` if the value isn't one.
pub(super) fn detect_message_keys(value: &Value) -> Option<MessageKeys> {
    let parsed: Value;
    let (list, is_text) = match value {
        Value::Array(list) => (list, false),
        Value::String(text) if text.trim_start().starts_with('[') => {
            parsed = serde_json::from_str(text).ok()?;
            (parsed.as_array()?, true)
        }
        _ => return None,
    };
    let first = list.first()?.as_object()?;
    let find = |names: &[&str]| {
        names.iter().find_map(|name| {
            let key = first
                .keys()
                .find(|candidate| normalize_name(candidate) == *name)?;
            Some(key.clone())
        })
    };
    let content = find(&["content", "value", "text", "message", "body", "utterance"])?;
    // An object is not the text of a message: ADK's `content` contains the role and the parts.
    if first.get(&content).is_some_and(Value::is_object) {
        return None;
    }
    Some(MessageKeys {
        role: find(&["role", "from", "speaker", "sender", "author", "type"])?,
        content,
        is_text,
    })
}

impl MessageKeys {
    /// Returns true for `role` and `content` in a list that is not JSON in a text.
    pub(super) fn is_standard(&self) -> bool {
        self.role == "role" && self.content == "content" && !self.is_text
    }
}

/// Returns the expression of a field that contains text; `None` if its values are numbers, Booleans or objects. Lists of
/// texts, as lm-eval's `resps`, give their first text.
pub(super) fn text_expression(field: &GuessField) -> Option<String> {
    let values = &field.values;
    let all = |is: &dyn Fn(&Value) -> bool| !values.is_empty() && values.iter().all(is);
    let texts = || values.iter().filter_map(Value::as_str).map(str::trim);
    let filled = texts().filter(|text| !text.is_empty()).count();
    let numbers = texts().filter(|text| text.parse::<f64>().is_ok()).count();
    // Some questions and answers are `4` or `2025`, but a column of numbers is not text.
    if all(&Value::is_string) && 2 * numbers <= filled {
        return Some(field.path.clone());
    }
    if all(&|value| value.get(0).is_some_and(Value::is_string)) {
        return Some(format!("{}[0]", field.path));
    }
    all(&|value| {
        value
            .get(0)
            .and_then(|inner| inner.get(0))
            .is_some_and(Value::is_string)
    })
    .then(|| format!("{}[0][0]", field.path))
}

/// Returns true if a path names the expected answer of a dataset, which the agent did not give.
pub(super) fn is_expected_answer(path: &str) -> bool {
    const NAMES: [&str; 16] = [
        "doc",
        "target",
        "gold",
        "golden",
        "reference",
        "references",
        "expected",
        "ground_truth",
        "groundtruth",
        "gt",
        "ideal",
        "solution",
        "correct",
        "true",
        "label",
        "labeled",
    ];
    // The objects of a row of a data set, next to an object with what the model wrote.
    const ROWS: [&str; 3] = ["item", "datasource_item", "dataset_item"];
    const ROW_ANSWERS: [&str; 3] = ["answer", "answers", "label"];
    let steps: Vec<String> = path.split('.').map(normalize_name).collect();
    let is_row_answer = match &steps[..] {
        [row, .., name] => ROWS.contains(&row.as_str()) && ROW_ANSWERS.contains(&name.as_str()),
        _ => false,
    };
    is_row_answer
        || steps.iter().any(|name| {
            name == "answer_key"
                || NAMES.iter().any(|gold| {
                    let rest = name.strip_prefix(gold);
                    let before = name.strip_suffix(gold);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
                        || before.is_some_and(|before| before.ends_with('_'))
                })
        })
}

/// Returns true if a name that begins with the name of a text ends with the name of something else: `user_id`,
/// `response_latency_mean`.
fn names_a_property(name: &str) -> bool {
    const ENDS: [&str; 18] = [
        "id", "ids", "uuid", "url", "path", "type", "kind", "format", "tokens", "count", "length",
        "latency", "mean", "model", "time", "fns", "hash", "language",
    ];
    name.rsplit('_')
        .next()
        .is_some_and(|end| ENDS.contains(&end))
}

/// Normalises a name for comparison: `Agent Response`, `agentResponse` and `agent-response` are equal.
pub(super) fn normalize_name(name: &str) -> String {
    let mut out = String::new();
    let mut lower = false;
    for c in name.trim().chars() {
        // A capital after a small letter begins a new word, as in `agentResponse`.
        if c.is_uppercase() && lower {
            out.push('_');
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.trim_matches('_').to_owned()
}

/// Returns the index of the usable field whose name is first among `names`: the whole name, else its end, else its
/// beginning.
pub(super) fn find_field_by_name(
    fields: &[GuessField],
    names: &[&str],
    is_usable: &dyn Fn(&GuessField) -> bool,
) -> Option<usize> {
    let find = |fits: fn(&str, &str) -> bool| {
        names
            // The order of `names` decides, not the order of the fields.
            .iter()
            .find_map(|name| {
                fields
                    .iter()
                    .position(|field| fits(&field.name, name) && is_usable(field))
            })
    };
    let has_suffix = |field: &str, name: &str| {
        field
            .strip_suffix(name)
            .is_some_and(|rest| rest.ends_with('_'))
    };
    let has_prefix = |field: &str, name: &str| {
        field
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('_') && !names_a_property(field))
    };
    find(|field, name| field == name)
        .or_else(|| find(has_suffix))
        .or_else(|| find(has_prefix))
}

/// Returns a key in JMESPath's notation.
pub(super) fn quote_jmespath_key(key: &str) -> String {
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_plain {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    }
}

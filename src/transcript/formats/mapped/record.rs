//! A JSON record or table row on which expressions are evaluated.
//!
//! Responsible for evaluation with as little parsing as possible. Does not know what the values mean.

use std::borrow::Cow;
use std::cell::OnceCell;

use indexmap::IndexMap;
use indexmap::map::Entry;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::preference::hash_text;
use crate::model::SourceText;
use crate::query::{JmesPathQuery, PathStep, QueryData};

/// A record on which expressions are evaluated.
pub(super) struct MappedRecord<'r> {
    pub(super) raw: RawMappedRecord<'r>,
    data: OnceCell<Result<QueryData, String>>,
    /// The same data, with cells that contain JSON parsed.
    data_with_parsed_cells: OnceCell<Result<QueryData, String>>,
    /// The records of other files, as JSON by their names. They hide fields of the record with the same name.
    joined: Vec<(String, String)>,
}

pub(super) enum RawMappedRecord<'r> {
    Object {
        text: &'r str,
        top: IndexMap<Cow<'r, str>, &'r RawValue>,
    },
    /// A record that isn't an object.
    Other(&'r str),
    Row {
        names: &'r [String],
        cells: Vec<Cow<'r, str>>,
    },
}

/// The value of an expression.
#[derive(Debug, PartialEq)]
pub(super) enum ExpressionValue<'r> {
    /// No value, or null.
    Nothing,
    Text(Cow<'r, str>),
    /// Any other value, as JSON.
    Json(Cow<'r, str>),
}

impl<'r> ExpressionValue<'r> {
    fn from_raw(raw: &'r str) -> Self {
        match raw.trim() {
            "null" => Self::Nothing,
            // A valid JSON value always parses here. If not, the text stays as JSON.
            text if text.starts_with('"') => match serde_json::from_str::<SourceText<'r>>(text) {
                Ok(text) => Self::Text(text.0),
                Err(_) => Self::Json(text.into()),
            },
            json => Self::Json(json.into()),
        }
    }

    fn from_value(value: Value) -> ExpressionValue<'static> {
        match value {
            Value::Null => ExpressionValue::Nothing,
            Value::String(text) => ExpressionValue::Text(text.into()),
            other => ExpressionValue::Json(other.to_string().into()),
        }
    }

    /// Returns the type of the value with its article.
    pub(super) fn describe_type(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Text(_) => "a text",
            Self::Json(json) => match json.as_bytes().first() {
                Some(b'[') => "a list",
                Some(b'{') => "an object",
                Some(b't' | b'f') => "true or false",
                _ => "a number",
            },
        }
    }

    /// Returns the JSON of a list, which may also be JSON in a text. The error describes the actual value.
    pub(super) fn into_list(self) -> Result<Cow<'r, str>, String> {
        match self {
            Self::Json(json) if json.starts_with('[') => Ok(json),
            Self::Text(text) => {
                let list = text.trim_start();
                match serde_json::from_str::<&RawValue>(&text) {
                    Ok(_) if list.starts_with('[') => Ok(text),
                    // pandas and `str()` write lists this way, so the message names the cause.
                    _ if list.starts_with("[{'") => Err(
                        "a text that is Python's way to print a list, which is not JSON (write it with json.dumps)"
                            .to_owned(),
                    ),
                    Err(why) if list.starts_with('[') => {
                        Err(format!("a text that is not JSON ({why})"))
                    }
                    _ => Err("a text, not a list of messages".to_owned()),
                }
            }
            other => Err(format!("{}, not a list of messages", other.describe_type())),
        }
    }

    /// Returns the value as text; a list or an object as its JSON.
    pub(super) fn into_text(self) -> Option<Cow<'r, str>> {
        match self {
            Self::Nothing => None,
            Self::Text(text) | Self::Json(text) => Some(text),
        }
    }
}

impl<'r> MappedRecord<'r> {
    pub(super) fn from_json(text: &'r str) -> Result<Self, String> {
        let text = text.trim();
        let raw = if text.starts_with('{') {
            RawMappedRecord::Object {
                text,
                top: parse_keys(text)?,
            }
        } else {
            let value: &RawValue =
                serde_json::from_str(text).map_err(|why| format_serde_error(&why))?;
            RawMappedRecord::Other(value.get())
        };
        Ok(Self::new(raw))
    }

    /// Returns a record for a row with as many cells as names.
    pub(super) fn from_row(names: &'r [String], cells: Vec<Cow<'r, str>>) -> Self {
        Self::new(RawMappedRecord::Row { names, cells })
    }

    fn new(raw: RawMappedRecord<'r>) -> Self {
        Self {
            raw,
            data: OnceCell::new(),
            data_with_parsed_cells: OnceCell::new(),
            joined: Vec::new(),
        }
    }

    /// Adds the record of another file under a name.
    pub(super) fn add_joined(&mut self, name: &str, json: String) {
        self.joined.push((name.to_owned(), json));
        // The record has another value now.
        self.data = OnceCell::new();
        self.data_with_parsed_cells = OnceCell::new();
    }

    /// Returns the value at a path of keys.
    pub(super) fn follow_keys(&self, keys: &[String]) -> Option<&'r str> {
        let RawMappedRecord::Object { top, .. } = &self.raw else {
            return None;
        };
        let (first, rest) = keys.split_first()?;
        let mut value = top.get(first.as_str())?.get();
        for key in rest {
            value = parse_keys(value).ok()?.swap_remove(key.as_str())?.get();
        }
        Some(value)
    }

    /// Evaluates an expression. If `parse` is true, table cells that contain a list or an object are parsed.
    pub(super) fn evaluate(
        &self,
        query: &JmesPathQuery,
        parse: bool,
    ) -> Result<ExpressionValue<'_>, String> {
        let with_query = |error| format!("`{}`: {error}", query.as_str());
        // A plain path needs no JMESPath, which would parse the whole record.
        if let Some(path) = query.path()
            && let Some(value) = self.follow_path(path, parse)
        {
            return Ok(value);
        }
        // Only cells can contain JSON in a text; a JSON record is already parsed.
        let parse = parse && matches!(self.raw, RawMappedRecord::Row { .. });
        let cell = if parse {
            &self.data_with_parsed_cells
        } else {
            &self.data
        };
        // The data is parsed once per record, because a mapping has several expressions.
        let data = cell.get_or_init(|| {
            QueryData::prepare(&self.to_value(parse)?).map_err(|error| error.to_string())
        });
        let data = data.as_ref().map_err(Clone::clone)?;
        query
            .search_prepared(data)
            .map(ExpressionValue::from_value)
            .map_err(with_query)
    }

    /// Follows a path; `None` if JMESPath must evaluate it.
    fn follow_path(&self, path: &[PathStep], parse: bool) -> Option<ExpressionValue<'_>> {
        // The expression `@` means the whole record.
        let Some((first, rest)) = path.split_first() else {
            return match &self.raw {
                _ if !self.joined.is_empty() => None,
                RawMappedRecord::Object { text, .. } | RawMappedRecord::Other(text) => {
                    Some(ExpressionValue::from_raw(text))
                }
                RawMappedRecord::Row { .. } => None,
            };
        };
        if let PathStep::Key(key) = first
            && let Some((_, json)) = self.joined.iter().find(|(name, _)| name == key)
        {
            return Some(descend_path(json, rest));
        }
        let raw = match (&self.raw, first) {
            (RawMappedRecord::Object { top, .. }, PathStep::Key(key)) => {
                match top.get(key.as_str()) {
                    Some(raw) => raw.get(),
                    None => return Some(ExpressionValue::Nothing),
                }
            }
            (RawMappedRecord::Row { names, cells }, PathStep::Key(key)) => {
                let Some(at) = names.iter().position(|name| name == key) else {
                    return Some(ExpressionValue::Nothing);
                };
                match rest {
                    [] => return Some(ExpressionValue::Text(Cow::Borrowed(&cells[at]))),
                    // A path into a cell: the cell contains JSON.
                    _ if parse => &cells[at],
                    // A path into a text finds nothing, as in JMESPath.
                    _ => return Some(ExpressionValue::Nothing),
                }
            }
            // JMESPath defines paths into lists and other values.
            (RawMappedRecord::Other(_), _) => return None,
            (_, PathStep::Index(_)) => return Some(ExpressionValue::Nothing),
        };
        Some(descend_path(raw, rest))
    }

    fn to_value(&self, parse: bool) -> Result<Value, String> {
        let mut value = match &self.raw {
            RawMappedRecord::Object { text, .. } | RawMappedRecord::Other(text) => {
                serde_json::from_str(text).map_err(|why| format_serde_error(&why))?
            }
            RawMappedRecord::Row { names, cells } => {
                let cell_value = |text: &str| {
                    let is_json = parse && text.trim_start().starts_with(['[', '{']);
                    // A cell that only looks like JSON stays text.
                    let value = is_json.then(|| serde_json::from_str(text).ok()).flatten();
                    value.unwrap_or_else(|| Value::String(text.to_owned()))
                };
                let cells = names.iter().zip(cells);
                Value::Object(
                    cells
                        .map(|(name, text)| (name.clone(), cell_value(text)))
                        .collect(),
                )
            }
        };
        if let Value::Object(map) = &mut value {
            for (name, json) in &self.joined {
                let other = serde_json::from_str(json).map_err(|why| format_serde_error(&why))?;
                map.insert(name.clone(), other);
            }
        }
        Ok(value)
    }

    /// Returns a hash of the record's content, which is the same in every version.
    pub(super) fn hash_content(&self) -> u64 {
        match &self.raw {
            RawMappedRecord::Object { text, .. } | RawMappedRecord::Other(text) => hash_text(text),
            RawMappedRecord::Row { cells, .. } => hash_text(&cells.join("\u{1f}")),
        }
    }
}

/// Parses the keys of an object. A key that occurs twice is an error.
fn parse_keys(text: &str) -> Result<IndexMap<Cow<'_, str>, &RawValue>, String> {
    struct ObjectKeysVisitor;
    impl<'de> serde::de::Visitor<'de> for ObjectKeysVisitor {
        type Value = IndexMap<Cow<'de, str>, &'de RawValue>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut keys = IndexMap::new();
            while let Some((key, value)) = map.next_entry::<SourceText<'de>, &'de RawValue>()? {
                match keys.entry(key.0) {
                    Entry::Vacant(free) => free.insert(value),
                    Entry::Occupied(taken) => {
                        let why = format!("the key {:?} occurs twice", taken.key());
                        return Err(serde::de::Error::custom(why));
                    }
                };
            }
            Ok(keys)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let keys = serde::Deserializer::deserialize_map(&mut deserializer, ObjectKeysVisitor);
    keys
        // `end` rejects text after the object.
        .and_then(|keys| deserializer.end().map(|()| keys))
        .map_err(|why| format_serde_error(&why))
}

/// Returns the value after some steps of a path.
fn descend_path<'r>(mut value: &'r str, steps: &[PathStep]) -> ExpressionValue<'r> {
    // Each step parses only one level, so a deep record is not parsed as a whole.
    for step in steps {
        let next = match step {
            PathStep::Key(key) => parse_keys(value.trim())
                .ok()
                .and_then(|mut all| all.swap_remove(key.as_str())),
            PathStep::Index(index) => {
                let items: Option<Vec<&'r RawValue>> = serde_json::from_str(value).ok();
                items.and_then(|items| items.get(*index).copied())
            }
        };
        let Some(next) = next else {
            return ExpressionValue::Nothing;
        };
        value = next.get();
    }
    ExpressionValue::from_raw(value)
}

/// Formats serde's error; the position of a one-line record is a byte.
pub(super) fn format_serde_error(why: &serde_json::Error) -> String {
    let text = why.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} at byte {column}"),
        None => text,
    }
}

//! What expressions find in a record of JSON or in a row of a table, without making more ready than they need.

use std::borrow::Cow;
use std::cell::OnceCell;

use indexmap::IndexMap;
use indexmap::map::Entry;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::Text;
use crate::query::{Data, Query, Step};

/// A record that expressions are asked of.
pub(in crate::transcript) struct Rec<'r> {
    pub(super) own: Own<'r>,
    ready: OnceCell<Result<Data, String>>,
    /// The same with those cells parsed that hold JSON.
    parsed: OnceCell<Result<Data, String>>,
}

pub(super) enum Own<'r> {
    Object {
        text: &'r str,
        top: IndexMap<Cow<'r, str>, &'r RawValue>,
    },
    /// A record that is no object.
    Other(&'r str),
    Row {
        names: &'r [String],
        cells: Vec<&'r str>,
    },
}

/// What an expression found.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'r> {
    /// Nothing, or null.
    Nothing,
    Text(Cow<'r, str>),
    /// Anything else, as JSON.
    Json(Cow<'r, str>),
}

impl<'r> Found<'r> {
    fn of(raw: &'r str) -> Self {
        match raw.trim() {
            "null" => Self::Nothing,
            text if text.starts_with('"') => match serde_json::from_str::<Text<'r>>(text) {
                Ok(text) => Self::Text(text.0),
                Err(_) => Self::Json(text.into()),
            },
            json => Self::Json(json.into()),
        }
    }

    fn owned(value: Value) -> Found<'static> {
        match value {
            Value::Null => Found::Nothing,
            Value::String(text) => Found::Text(text.into()),
            other => Found::Json(other.to_string().into()),
        }
    }

    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
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

    /// The JSON of a list, whether it stands there as one or as a text; of a text the error says what else it looks like.
    pub(super) fn list(self) -> Result<Cow<'r, str>, String> {
        match self {
            Self::Json(json) if json.starts_with('[') => Ok(json),
            Self::Text(text) => {
                let list = text.trim_start();
                match serde_json::from_str::<&RawValue>(&text) {
                    Ok(_) if list.starts_with('[') => Ok(text),
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
            other => Err(format!("{}, not a list of messages", other.kind())),
        }
    }

    /// As a text; a list or an object as its JSON.
    pub(super) fn text(self) -> Option<Cow<'r, str>> {
        match self {
            Self::Nothing => None,
            Self::Text(text) | Self::Json(text) => Some(text),
        }
    }
}

impl<'r> Rec<'r> {
    pub(super) fn json(text: &'r str) -> Result<Self, String> {
        let text = text.trim();
        let own = if text.starts_with('{') {
            Own::Object {
                text,
                top: keys(text)?,
            }
        } else {
            let one: &RawValue = serde_json::from_str(text).map_err(|why| told(&why))?;
            Own::Other(one.get())
        };
        Ok(Self::new(own))
    }

    /// A row with as many cells as there are names.
    pub(in crate::transcript) fn table(names: &'r [String], cells: Vec<&'r str>) -> Self {
        Self::new(Own::Row { names, cells })
    }

    fn new(own: Own<'r>) -> Self {
        Self {
            own,
            ready: OnceCell::new(),
            parsed: OnceCell::new(),
        }
    }

    /// What an expression finds. `parse`: cells of a table that hold a list or an object are taken as such.
    pub(super) fn find(&self, query: &Query, parse: bool) -> Result<Found<'_>, String> {
        let told = |why| format!("`{}`: {why}", query.as_str());
        if let Some(path) = query.path()
            && let Some(found) = self.lead(path, parse)
        {
            return Ok(found);
        }
        let parse = parse && matches!(self.own, Own::Row { .. });
        let cell = if parse { &self.parsed } else { &self.ready };
        let data = cell.get_or_init(|| Data::of(&self.value(parse)?));
        let data = data.as_ref().map_err(Clone::clone)?;
        query.find(data).map(Found::owned).map_err(told)
    }

    /// Follows a path; `None` where that is JMESPath's work.
    fn lead(&self, path: &[Step], parse: bool) -> Option<Found<'_>> {
        let Some((first, rest)) = path.split_first() else {
            return match &self.own {
                Own::Object { text, .. } | Own::Other(text) => Some(Found::of(text)),
                Own::Row { .. } => None,
            };
        };
        let raw = match (&self.own, first) {
            (Own::Object { top, .. }, Step::Key(key)) => match top.get(key.as_str()) {
                Some(raw) => raw.get(),
                None => return Some(Found::Nothing),
            },
            (Own::Row { names, cells }, Step::Key(key)) => {
                let Some(at) = names.iter().position(|name| name == key) else {
                    return Some(Found::Nothing);
                };
                match rest {
                    [] => return Some(Found::Text(cells[at].into())),
                    _ if parse => cells[at],
                    _ => return Some(Found::Nothing),
                }
            }
            (Own::Other(_), _) => return None,
            (_, Step::At(_)) => return Some(Found::Nothing),
        };
        Some(descend(raw, rest))
    }

    fn value(&self, parse: bool) -> Result<Value, String> {
        match &self.own {
            Own::Object { text, .. } | Own::Other(text) => {
                serde_json::from_str(text).map_err(|why| told(&why))
            }
            Own::Row { names, cells } => {
                let cell = |text: &str| {
                    let holds = parse && text.trim_start().starts_with(['[', '{']);
                    let value = holds.then(|| serde_json::from_str(text).ok()).flatten();
                    value.unwrap_or_else(|| Value::String(text.to_owned()))
                };
                let all = names.iter().zip(cells);
                Ok(Value::Object(
                    all.map(|(name, text)| (name.clone(), cell(text))).collect(),
                ))
            }
        }
    }
}

/// The keys of an object; one given twice is an error.
fn keys(text: &str) -> Result<IndexMap<Cow<'_, str>, &RawValue>, String> {
    struct Keys;
    impl<'de> serde::de::Visitor<'de> for Keys {
        type Value = IndexMap<Cow<'de, str>, &'de RawValue>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut keys = IndexMap::new();
            while let Some((key, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                match keys.entry(key.0) {
                    Entry::Vacant(free) => free.insert(value),
                    Entry::Occupied(taken) => {
                        let why = format!("the key {:?} stands twice", taken.key());
                        return Err(serde::de::Error::custom(why));
                    }
                };
            }
            Ok(keys)
        }
    }
    let mut from = serde_json::Deserializer::from_str(text);
    let found = serde::Deserializer::deserialize_map(&mut from, Keys);
    found
        .and_then(|keys| from.end().map(|()| keys))
        .map_err(|why| told(&why))
}

/// What stands behind some steps.
fn descend<'r>(mut at: &'r str, steps: &[Step]) -> Found<'r> {
    for step in steps {
        let next = match step {
            Step::Key(key) => keys(at.trim())
                .ok()
                .and_then(|mut all| all.swap_remove(key.as_str())),
            Step::At(index) => {
                let all: Option<Vec<&'r RawValue>> = serde_json::from_str(at).ok();
                all.and_then(|all| all.get(*index).copied())
            }
        };
        let Some(next) = next else {
            return Found::Nothing;
        };
        at = next.get();
    }
    Found::of(at)
}

/// What serde says, without the line of a record that is one.
pub(super) fn told(why: &serde_json::Error) -> String {
    let text = why.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} at byte {column}"),
        None => text,
    }
}

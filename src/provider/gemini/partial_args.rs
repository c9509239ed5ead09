//! A call whose arguments arrive in pieces (Vertex AI's `streamFunctionCallArguments`).
//!
//! Each piece has a path and a value; texts for the same path are joined. dicta sends back one part, as if the call
//! had arrived whole, because requests can't contain pieces. The other members of its parts (a signature) stay
//! unchanged.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::ProviderError;
use super::super::client::malformed_error;

/// The longest path.
const MAX_DEPTH: usize = 64;

/// A value, or more of a text, at a path.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiPartialArg {
    json_path: Option<String>,
    string_value: Option<String>,
    number_value: Option<serde_json::Number>,
    bool_value: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    null_value: bool,
}

/// Returns `true` if `null_value` is present: its value is null, or the word `NULL_VALUE`.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(from).map(|_| true)
}

/// A call that is still arriving.
#[derive(Debug)]
pub(super) struct OpenFunctionCall {
    /// The positions of its part and of its call in the reply.
    pub(super) native_index: usize,
    pub(super) call_index: usize,
    args: Value,
    /// The members of its parts.
    part_members: IndexMap<String, Box<RawValue>>,
}

enum PartialArgStep<'p> {
    Key(&'p str),
    Index(usize),
}

impl OpenFunctionCall {
    pub(super) fn new(
        native_at: usize,
        call_at: usize,
        args: &str,
        raw: &RawValue,
    ) -> Result<Self, ProviderError> {
        let args = match serde_json::from_str(args) {
            Ok(Value::Null) | Err(_) => Value::Object(Map::new()),
            Ok(args) => args,
        };
        let mut open = Self {
            native_index: native_at,
            call_index: call_at,
            args,
            part_members: IndexMap::new(),
        };
        open.merge_part_members(raw)?;
        Ok(open)
    }

    /// Adds the members of a part except its piece of the call; the first value of a member stays.
    pub(super) fn merge_part_members(&mut self, raw: &RawValue) -> Result<(), ProviderError> {
        let members: IndexMap<String, Box<RawValue>> = serde_json::from_str(raw.get())
            .map_err(|_| malformed_error("a part has an unknown shape", raw.get()))?;
        for (key, value) in members {
            self.part_members.entry(key).or_insert(value);
        }
        Ok(())
    }

    pub(super) fn add_args(&mut self, pieces: Vec<GeminiPartialArg>) -> Result<(), ProviderError> {
        for piece in pieces {
            let path = piece.json_path.as_deref().unwrap_or("$");
            let misfit = || malformed_error("a piece of a call's arguments does not fit", path);
            let steps = parse_path(path).ok_or_else(misfit)?;
            let place = find_at_path(&mut self.args, &steps).map_err(|_| misfit())?;
            let value = match (piece.string_value, piece.number_value, piece.bool_value) {
                // A text arrives in pieces at the same path; all other values arrive whole.
                (Some(more), ..) => match place {
                    Some(Value::String(text)) => {
                        text.push_str(&more);
                        continue;
                    }
                    _ => Value::String(more),
                },
                (None, Some(number), _) => Value::Number(number),
                (None, None, Some(flag)) => Value::Bool(flag),
                (None, None, None) if piece.null_value => Value::Null,
                // Only says that more is to come, or that no more is.
                (None, None, None) => continue,
            };
            set_at_path(&mut self.args, &steps, value).ok_or_else(misfit)?;
        }
        Ok(())
    }

    /// Returns the arguments, and the part that is sent back.
    pub(super) fn finish(&self) -> Result<(String, Arc<RawValue>), ProviderError> {
        let broken = || malformed_error("a call in pieces cannot be put together", "");
        let args = self.args.to_string();
        let mut members = Vec::with_capacity(self.part_members.len());
        for (key, value) in &self.part_members {
            let value = if key == "functionCall" {
                let mut call: IndexMap<String, Box<RawValue>> =
                    serde_json::from_str(value.get()).map_err(|_| broken())?;
                // The part goes back as a whole call, so the members of a piece are removed.
                for of_pieces in ["partialArgs", "willContinue"] {
                    call.shift_remove(of_pieces);
                }
                let args = RawValue::from_string(args.clone()).map_err(|_| broken())?;
                call.insert("args".to_owned(), args);
                to_json_object(&call)
            } else {
                value.get().to_owned()
            };
            members.push((key, value));
        }
        let members: Vec<String> = members
            .into_iter()
            .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
            .collect();
        let part = RawValue::from_string(format!("{{{}}}", members.join(",")));
        Ok((args, Arc::from(part.map_err(|_| broken())?)))
    }
}

fn to_json_object(map: &IndexMap<String, Box<RawValue>>) -> String {
    let members: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), value.get()))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Parses `$.a.b[0]` or `$['a b'][0]`; `None` for any other path.
fn parse_path(path: &str) -> Option<Vec<PartialArgStep<'_>>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        // Deep paths would make the later recursion over the value overflow the stack.
        if steps.len() >= MAX_DEPTH {
            return None;
        }
        if let Some(inner) = rest.strip_prefix('[') {
            if let Some(quote @ ('\'' | '"')) = inner.chars().next() {
                let (key, after) = inner[1..].split_once(quote)?;
                rest = after.strip_prefix(']')?;
                steps.push(PartialArgStep::Key(key));
            } else {
                let (index, after) = inner.split_once(']')?;
                rest = after;
                steps.push(PartialArgStep::Index(index.parse().ok()?));
            }
            continue;
        }
        // The first name may follow `$` without a point.
        let name = rest.strip_prefix('.').unwrap_or(rest);
        let end = name.find(['.', '[']).unwrap_or(name.len());
        if end == 0 {
            return None;
        }
        steps.push(PartialArgStep::Key(&name[..end]));
        rest = &name[end..];
    }
    Some(steps)
}

/// A path that leads through a value that is neither an object nor an array.
struct PathMismatch;

/// Returns the value at a path; `None` if there is none yet.
fn find_at_path<'v>(
    root: &'v mut Value,
    steps: &[PartialArgStep<'_>],
) -> Result<Option<&'v mut Value>, PathMismatch> {
    let mut at = root;
    for step in steps {
        let next = match (step, at) {
            (PartialArgStep::Key(key), Value::Object(map)) => map.get_mut(*key),
            (PartialArgStep::Index(index), Value::Array(items)) => items.get_mut(*index),
            // Null is a place that later pieces fill.
            (_, Value::Null) => None,
            _ => return Err(PathMismatch),
        };
        match next {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Sets the value at a path and creates the values on the way. Arrays grow one by one: a far index would waste
/// memory.
fn set_at_path(root: &mut Value, steps: &[PartialArgStep<'_>], value: Value) -> Option<()> {
    let mut at = root;
    for step in steps {
        // Create what the next step needs: an object for a key, an array for an index.
        if at.is_null() {
            *at = match step {
                PartialArgStep::Key(_) => Value::Object(Map::new()),
                PartialArgStep::Index(_) => Value::Array(Vec::new()),
            };
        }
        at = match (step, at) {
            (PartialArgStep::Key(key), Value::Object(map)) => {
                map.entry((*key).to_owned()).or_insert(Value::Null)
            }
            (PartialArgStep::Index(index), Value::Array(items)) => {
                if *index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(*index)?
            }
            _ => return None,
        };
    }
    // The arguments themselves stay an object.
    if steps.is_empty() && !value.is_object() {
        return None;
    }
    *at = value;
    Some(())
}

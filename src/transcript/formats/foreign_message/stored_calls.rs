//! Lists of calls as programs store them in messages, also as JSON in a text.
//!
//! Responsible for finding the calls. Does not read the fields of a call.

use serde_json::value::RawValue;

use super::super::transcript_builder::owned_unknown_part;
use super::MessageInProgress;
use crate::transcript::fields::{RawFields, list_items};
use crate::transcript::native::json_string;

impl MessageInProgress<'_> {
    /// Adds a list of calls, or the JSON text of one, as in datasets whose columns are texts.
    pub(super) fn add_calls(&mut self, raw: &RawValue) {
        let text = json_string(raw);
        let json = text.as_deref().map_or(raw.get(), str::trim);
        match serde_json::from_str::<Option<Vec<&RawValue>>>(json) {
            Ok(calls) => {
                for call in calls.into_iter().flatten() {
                    self.add_call(call);
                }
            }
            Err(_) if text.is_some() && !json.is_empty() => {
                self.parts.push(owned_unknown_part(raw));
            }
            Err(_) => {}
        }
    }
}

/// Returns true if a content is a list of calls, or a text with one.
pub(super) fn holds_calls(content: &RawValue) -> bool {
    let text = json_string(content);
    let list: Vec<&RawValue> = match &text {
        Some(text) if text.starts_with('[') => serde_json::from_str(text).unwrap_or_default(),
        Some(_) => Vec::new(),
        None => list_items(content).unwrap_or_default(),
    };
    !list.is_empty() && list.into_iter().all(is_stored_call)
}

/// Returns true if a value is a call as LangChain or Koog stores it.
pub(super) fn is_stored_call(raw: &RawValue) -> bool {
    RawFields::from_raw(raw).is_some_and(|fields| match fields.text("type").as_deref() {
        Some("tool_call") => fields.text("name").is_some() && fields.has("args"),
        // The definition of a function has parameters, and no arguments.
        Some("function") => fields
            .object("function")
            .is_some_and(|call| call.text("name").is_some() && call.has("arguments")),
        _ => false,
    })
}

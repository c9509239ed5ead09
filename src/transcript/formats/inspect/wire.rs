//! The JSON of Inspect's messages and model outputs, as a sample and its events contain it.
//!
//! Responsible for the fields alone. Does not convert them: that is `message.rs` and `events.rs`.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::InspectAttachments;
use crate::model::SourceText;
use crate::transcript::content::{ObjectOnly, RawContent};
use crate::transcript::native::json_string;

#[derive(Deserialize)]
pub(super) struct InspectMessage<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) role: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Option<RawContent<'a>>,
    #[serde(borrow, default)]
    pub(super) metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<ObjectOnly<InspectToolCall<'a>>>>,
    #[serde(borrow, default)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) function: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// The error in logs from 2024, as text.
    #[serde(borrow, default)]
    pub(super) tool_error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct InspectToolCall<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) function: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) parse_error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct InspectPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) redacted: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct InspectOutput<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Vec<ObjectOnly<InspectChoice<'a>>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) time: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct InspectChoice<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<ObjectOnly<InspectMessage<'a>>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<&'a RawValue>,
}

impl InspectMessage<'_> {
    /// Returns a hash of the text and of the ids of the calls, which identify a reply without an id. A hash keeps the
    /// keys small: many events may refer to one long attachment.
    pub(super) fn content_hash(&self, attachments: &InspectAttachments<'_>) -> u64 {
        let mut hash = DefaultHasher::new();
        match &self.content {
            Some(RawContent::Text(text)) => attachments.hash_resolved(text).hash(&mut hash),
            Some(RawContent::Parts(parts)) => {
                for part in parts {
                    let part = serde_json::from_str::<ObjectOnly<InspectPart<'_>>>(part.get());
                    let text = part.ok().and_then(|ObjectOnly(part)| part.text);
                    if let Some(text) = text.and_then(json_string) {
                        attachments.hash_resolved(&text).hash(&mut hash);
                    }
                }
            }
            _ => {}
        }
        for ObjectOnly(call) in self.tool_calls.iter().flatten() {
            // Replies without text differ only in their calls.
            call.id.map_or("", RawValue::get).hash(&mut hash);
        }
        hash.finish()
    }
}

/// Returns true if there is a value other than null.
pub(super) fn is_present(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() != "null")
}

/// The maximum size of JSON that dicta parses into a tree, in bytes. A tree of many small values needs fifty times the
/// memory of their text.
const MAX_TREE_BYTES: usize = 1 << 20;

/// Parses any JSON. JSON that is nested too deeply or too large becomes its text.
pub(super) fn parse_value(raw: &RawValue) -> Value {
    let text = raw.get();
    let parsed = (text.len() <= MAX_TREE_BYTES).then(|| serde_json::from_str(text).ok());
    parsed
        .flatten()
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

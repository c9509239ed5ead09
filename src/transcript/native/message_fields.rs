//! The fields of a message of a native record.
//!
//! Responsible for the keys: each occurs once, and unknown keys are skipped. Does not interpret the values. serde's derive
//! would need a field for each key that few programs write. These fields took a fifth of the time for an ordinary message.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::NativeRecordFunctionCall;
use super::tool_calls::RawToolCalls;
use crate::model::{JsonText, SourceText};
use crate::transcript::content::{ObjectOnly, RawContent};

/// A key of a message. The ones after `Metadata` are rare.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum MessageKey {
    Role,
    Content,
    ToolCalls,
    ToolCallId,
    FunctionCall,
    Refusal,
    ReasoningContent,
    Reasoning,
    Metadata,
    Thinking,
    ToolPlan,
    Text,
    Message,
    Value,
    Parts,
    Segments,
    #[serde(rename = "toolCalls")]
    CamelCaseCalls,
    #[serde(rename = "toolInvocations")]
    Invocations,
    ToolUses,
    ToolResults,
    ThinkingBlocks,
    ReasoningDetails,
    Audio,
    Images,
    Attachments,
    ExperimentalAttachments,
    /// A key without a meaning in the native format.
    #[serde(other)]
    Other,
}

/// The names of the keys in the order of [`MessageKey`], for errors.
const NAMES: [&str; 26] = [
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "reasoning_content",
    "reasoning",
    "metadata",
    "thinking",
    "tool_plan",
    "text",
    "message",
    "value",
    "parts",
    "segments",
    "toolCalls",
    "toolInvocations",
    "tool_uses",
    "tool_results",
    "thinking_blocks",
    "reasoning_details",
    "audio",
    "images",
    "attachments",
    "experimental_attachments",
];

/// The fields of a message.
#[derive(Default)]
pub(super) struct NativeRecordMessage<'a> {
    pub(super) role: Option<SourceText<'a>>,
    pub(super) content: Option<RawContent<'a>>,
    pub(super) tool_calls: Option<RawToolCalls<'a>>,
    pub(super) tool_call_id: Option<&'a RawValue>,
    pub(super) function_call: Option<ObjectOnly<NativeRecordFunctionCall<'a>>>,
    pub(super) refusal: Option<&'a RawValue>,
    pub(super) reasoning_content: Option<&'a RawValue>,
    pub(super) reasoning: Option<&'a RawValue>,
    pub(super) metadata: Option<JsonText<'a>>,
    pub(super) rare: RareFields<'a>,
}

/// The values of keys that few programs write, other than null.
#[derive(Default)]
pub(super) struct RareFields<'a>(Vec<(MessageKey, &'a RawValue)>);

impl<'a> RareFields<'a> {
    /// Finds the value of a key.
    pub(super) fn find(&self, key: MessageKey) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(own, _)| *own == key);
        found.map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for NativeRecordMessage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// The visitor for [`NativeRecordMessage`].
struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = NativeRecordMessage<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = NativeRecordMessage::default();
        // A bit for each key that occurred.
        let mut seen = 0_u32;
        while let Some(key) = map.next_key::<MessageKey>()? {
            if key == MessageKey::Other {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let bit = 1_u32 << (key as u32);
            if seen & bit != 0 {
                return Err(A::Error::duplicate_field(NAMES[key as usize]));
            }
            seen |= bit;
            match key {
                MessageKey::Role => found.role = map.next_value()?,
                MessageKey::Content => found.content = map.next_value()?,
                MessageKey::ToolCalls => found.tool_calls = map.next_value()?,
                MessageKey::ToolCallId => found.tool_call_id = map.next_value()?,
                MessageKey::FunctionCall => found.function_call = map.next_value()?,
                MessageKey::Refusal => found.refusal = map.next_value()?,
                MessageKey::ReasoningContent => found.reasoning_content = map.next_value()?,
                MessageKey::Reasoning => found.reasoning = map.next_value()?,
                MessageKey::Metadata => found.metadata = map.next_value()?,
                rare => {
                    let value: Option<&'de RawValue> = map.next_value()?;
                    found.rare.0.extend(value.map(|value| (rare, value)));
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_that_occurs_twice_is_an_error_with_its_name() {
        for name in NAMES {
            let twice = format!("{{\"{name}\":null,\"{name}\":null}}");
            let why = serde_json::from_str::<NativeRecordMessage<'_>>(&twice).err();
            let why = why.expect("an error").to_string();
            assert!(why.contains(&format!("duplicate field `{name}`")), "{why}");
        }
        let unknown = r#"{"name":1,"name":2}"#;
        assert!(serde_json::from_str::<NativeRecordMessage<'_>>(unknown).is_ok());
    }

    #[test]
    fn rare_key_has_its_value() {
        let message = r#"{"role":"user","toolCalls":[1],"text":null,"other":{}}"#;
        let message: NativeRecordMessage<'_> = serde_json::from_str(message).expect("a message");
        assert_eq!(message.role.as_deref(), Some("user"));
        let calls = message.rare.find(MessageKey::CamelCaseCalls);
        assert_eq!(calls.map(RawValue::get), Some("[1]"));
        assert!(message.rare.find(MessageKey::Text).is_none());
    }
}

//! `when`: the precondition of an eval. If it does not hold, dicta skips the eval's cells with the reason.

use regex::Regex;
use serde_json::{Value, json};

use crate::diag::yaml::{ConfigKey, MappingDecoder, properties_schema, text_schema};
use crate::model::{MessageRole, Transcript, TranscriptPart};

/// The conditions on the tool calls of messages up to the judged one. All given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct WhenCondition {
    /// The name of a tool that must have been called.
    pub tool_called: Option<String>,
    /// The pattern that the name of a called tool must match.
    pub tool_called_pattern: Option<Regex>,
    /// True if at least one call of any tool is required.
    pub any_tool_called: bool,
    /// The minimum number of calls.
    pub min_tool_calls: Option<u64>,
}

/// The keys of `when`.
const WHEN_KEYS: &[ConfigKey] = &[
    ConfigKey::new(
        "tool_called",
        "A tool that must have been called.",
        text_schema,
    ),
    ConfigKey::new(
        "tool_called_pattern",
        "A regular expression that must match the name of a called tool.",
        text_schema,
    ),
    ConfigKey::new(
        "any_tool_called",
        "Some tool must have been called.",
        |doc| json!({"const": true, "description": doc}),
    ),
    ConfigKey::new(
        "min_tool_calls",
        "The lowest number of tool calls.",
        |doc| json!({"type": "integer", "minimum": 1, "description": doc}),
    ),
];

/// Returns the JSON Schema of `when`.
pub(super) fn when_schema(doc: &str) -> Value {
    json!({
        "type": "object",
        "description": doc,
        "properties": properties_schema(WHEN_KEYS),
        "minProperties": 1,
        "additionalProperties": false,
    })
}

impl PartialEq for WhenCondition {
    fn eq(&self, other: &Self) -> bool {
        // `Regex` has no equality, so the pattern compares as text.
        self.canonical() == other.canonical()
    }
}

impl WhenCondition {
    /// Reads the `when` of an eval.
    pub(super) fn read(fields: &mut MappingDecoder<'_>) -> Option<Self> {
        let mut decoder = fields.mapping("when")?.accepting(WHEN_KEYS);
        if !decoder.is_mapping() {
            return None;
        }
        let pattern = decoder.text("tool_called_pattern");
        let tool_called_pattern = pattern.and_then(|pattern| match Regex::new(&pattern) {
            Ok(regex) => Some(regex),
            Err(why) => {
                let why = why.to_string();
                // The last line is the reason; the lines above it draw the pattern.
                let why = why.lines().last().unwrap_or_default();
                let why = why.trim_start_matches("error: ");
                let message = format!("tool_called_pattern is not a regular expression: {why}");
                decoder.error("tool_called_pattern", "param", message);
                None
            }
        });
        let any = decoder.boolean("any_tool_called");
        // `false` would mean "no call is required", which holds always.
        if any == Some(false) {
            let message = "any_tool_called: false asks for nothing; leave it out";
            decoder.error("any_tool_called", "no-effect", message);
        }
        let when = Self {
            tool_called: decoder.text("tool_called"),
            tool_called_pattern,
            any_tool_called: any.unwrap_or(false),
            min_tool_calls: decoder
                .integer("min_tool_calls", 1..=i64::from(u32::MAX))
                .and_then(|n| u64::try_from(n).ok()),
        };
        // Before `finish`, which takes the decoder.
        let is_empty = WHEN_KEYS.iter().all(|key| !decoder.has(key.name));
        decoder.finish();
        if is_empty {
            fields.error("when", "empty", "when must not be empty: give tool_called, tool_called_pattern, any_tool_called or min_tool_calls");
        }
        Some(when)
    }

    /// Returns the condition as JSON, for the digest.
    pub(super) fn canonical(&self) -> Value {
        json!({
            "tool_called": self.tool_called,
            "tool_called_pattern": self.tool_called_pattern.as_ref().map(Regex::as_str),
            "any_tool_called": self.any_tool_called,
            "min_tool_calls": self.min_tool_calls,
        })
    }

    /// Explains the first condition that messages `0..end` do not meet, as a sentence.
    pub fn explain_unmet(&self, transcript: &Transcript<'_>, end: usize) -> Option<String> {
        let end = end.min(transcript.messages.len());
        let names = || {
            transcript.messages[..end]
                .iter()
                .filter(|message| message.role == MessageRole::Assistant)
                .flat_map(|message| &message.parts)
                .filter_map(|part| match part {
                    TranscriptPart::ToolCall(call) => Some(&*call.name),
                    _ => None,
                })
        };
        if let Some(tool) = &self.tool_called
            // Only assistant messages call tools.
            && !names().any(|name| name == tool)
        {
            return Some(format!("{tool} was not called"));
        }
        if let Some(pattern) = &self.tool_called_pattern
            && !names().any(|name| pattern.is_match(name))
        {
            return Some(format!("no tool was called that matches {pattern}"));
        }
        let least = self
            .min_tool_calls
            // `any_tool_called` means at least one call.
            .unwrap_or(u64::from(self.any_tool_called));
        let made = names().count() as u64;
        (made < least).then(|| match made {
            0 => "no tool was called".to_owned(),
            made => format!("{made} of at least {least} tool calls were made"),
        })
    }
}

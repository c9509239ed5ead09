//! A request body as a person reads it: the speakers with their texts, the settings, and the declared tools.
//!
//! Responsible for the types and for what the dialects share. The `explain.rs` of each dialect reads the dialect's bodies,
//! and [`super::explain_request_body`] chooses the dialect.

use serde_json::{Map, Value};

/// A request body, readable.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReadableBody {
    /// The conversation, in order.
    pub items: Vec<ReadableItem>,
    /// The settings, each as `temperature: 0.0`.
    pub settings: Vec<String>,
    /// The declared functions.
    pub tools: Vec<ReadableTool>,
}

/// The contribution of one speaker.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadableItem {
    /// The speaker's name, as the body has it.
    pub speaker: String,
    /// The speaker's role.
    pub role: SpeakerRole,
    /// The texts, in order.
    pub parts: Vec<ReadablePart>,
}

/// The role of a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeakerRole {
    /// The instructions.
    System,
    /// The material and the task, from dicta.
    User,
    /// The language model.
    Assistant,
    /// A tool response.
    Tool,
}

/// A text of one speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadablePart {
    /// The kind of the text.
    pub kind: ReadablePartKind,
    /// The text.
    pub text: String,
}

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadablePartKind {
    /// Plain text.
    Text,
    /// Reasoning of the model.
    Reasoning,
    /// A tool call or a tool response.
    Tool,
    /// JSON that dicta doesn't interpret.
    Other,
}

/// A declared function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadableTool {
    /// Its name.
    pub name: String,
    /// Its description; empty if the body has none.
    pub description: String,
}

impl SpeakerRole {
    /// Returns the role that a body's name of a role means; an unknown name is the user.
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "system" | "developer" => Self::System,
            "assistant" | "model" => Self::Assistant,
            "tool" | "function" => Self::Tool,
            _ => Self::User,
        }
    }

    /// Returns speaker and role of a message; a `user` message that holds only tool responses is the tool's.
    ///
    /// Anthropic and Gemini send tool responses in messages of the user.
    pub(super) fn of_message<'n>(name: &'n str, parts: &[ReadablePart]) -> (&'n str, Self) {
        let only_tools =
            !parts.is_empty() && parts.iter().all(|part| part.kind == ReadablePartKind::Tool);
        if name == "user" && only_tools {
            ("tool", Self::Tool)
        } else {
            (name, Self::from_name(name))
        }
    }
}

impl ReadableItem {
    /// Returns the instructions.
    pub(super) fn system(parts: Vec<ReadablePart>) -> Self {
        Self {
            speaker: "system".to_owned(),
            role: SpeakerRole::System,
            parts,
        }
    }
}

impl ReadablePart {
    /// A part of this kind.
    pub fn new(kind: ReadablePartKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    /// The call of a tool.
    pub(super) fn call(name: &str, arguments: &str) -> Self {
        Self::new(ReadablePartKind::Tool, format!("calls {name}({arguments})"))
    }
}

impl ReadableTool {
    /// Reads a declaration with `name` and `description`.
    pub(super) fn from_declaration(function: &Value) -> Self {
        Self {
            name: format_field(function, "name"),
            description: format_field(function, "description"),
        }
    }
}

/// The elements of an array that may be absent.
pub(super) fn elements(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

/// Formats settings as `temperature: 0.0`, one for each entry of `map`.
///
/// A large object is shortened to its `type` (`response_format: json_schema …`), so that the prompt stays in view. The
/// body itself has it whole.
pub fn format_settings(map: &Map<String, Value>) -> Vec<String> {
    const MAX: usize = 60;
    let format_setting = |(key, value): (&String, &Value)| {
        let text = format_value(value);
        // Cut at a character, because a byte position can be inside one.
        let Some((cut, _)) = text.char_indices().nth(MAX) else {
            return format!("{key}: {text}");
        };
        match value {
            Value::Object(map) => match map.get("type").and_then(Value::as_str) {
                Some(kind) if kind.len() < MAX => format!("{key}: {kind} …"),
                _ => format!("{key}: …"),
            },
            _ => format!("{key}: {}…", &text[..cut]),
        }
    };
    map.iter().map(format_setting).collect()
}

/// Formats a field as text; returns an empty text if it is absent.
pub fn format_field(value: &Value, key: &str) -> String {
    value.get(key).map_or_else(String::new, format_value)
}

/// Formats a value: a string without its quotation marks, everything else as JSON.
pub fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

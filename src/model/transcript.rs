//! One recorded conversation of an agent. Every reader produces it and every handler reads it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Digest, JsonText, RawJson, SourceText};

/// One recorded conversation. `'a` is the lifetime of the bytes it was read from; [`Transcript::into_owned`] copies
/// them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript<'a> {
    /// The transcript's id, or `<file stem>:<record number from 1>`.
    pub id: SourceText<'a>,
    /// The messages in file order. Positions count from 0.
    pub messages: Vec<TranscriptMessage<'a>>,
    /// The metadata, a JSON object. dicta never shows it to a judge unless the rubric names it.
    pub metadata: Option<JsonText<'a>>,
    /// The tags, for `applies_to`.
    pub tags: Vec<SourceText<'a>>,
    /// The source verdicts of the file. dicta never shows them to a judge.
    pub verdicts: Vec<SourceVerdict>,
}

/// A verdict that another tool wrote into the transcript file. dicta never changes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceVerdict {
    /// The tool, as dicta names it: `inspect`, `promptfoo`, `evalbench` …
    pub judge: String,
    /// The name of the scorer, assertion or metric.
    pub eval: String,
    /// The pass or fail that the source states. Never derived from a score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The score from 0 to 1, if the source's value is or denotes such a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The value as the source writes it (`C`, `4`, `{…}`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RawJson>,
    /// The reason in the source's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The error of the source's grader, if it failed. `passed` and `score` are then absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageRole<'a> {
    /// Instructions (`system`, `developer`).
    System,
    /// The person or program that the agent serves.
    User,
    /// The agent that is judged.
    Assistant,
    /// A tool of the agent.
    Tool,
    /// Another role, as written.
    Other(SourceText<'a>),
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptMessage<'a> {
    /// The author of the message.
    pub role: MessageRole<'a>,
    /// The parts of the message, in order.
    pub parts: Vec<TranscriptPart<'a>>,
    /// The message's own metadata, a JSON object (`latency_ms`, `is_error` …).
    pub metadata: Option<JsonText<'a>>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriptPart<'a> {
    /// Text for the reader.
    Text(SourceText<'a>),
    /// The model's recorded reasoning.
    Reasoning(SourceText<'a>),
    /// A tool call of the agent.
    ToolCall(ToolCall<'a>),
    /// The result of a tool call.
    ToolResult(ToolResult<'a>),
    /// An image, sound or file: its kind as the source names it, and the raw JSON.
    Media {
        /// The kind, such as `image_url` or `input_audio`.
        kind: SourceText<'a>,
        /// The part as written.
        raw: JsonText<'a>,
    },
    /// A part of an unknown kind, kept as written.
    Other(JsonText<'a>),
}

/// A tool call of the agent, as the transcript records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The call id; empty if the source has none.
    pub id: SourceText<'a>,
    /// The tool's name.
    pub name: SourceText<'a>,
    /// The arguments as text. Usually a JSON object; invalid JSON is kept unchanged.
    pub arguments: SourceText<'a>,
}

/// The result of a tool, as the transcript records it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// The id of the call; empty if the source has none.
    pub call_id: SourceText<'a>,
    /// The text of the result.
    pub content: SourceText<'a>,
    /// The error mark of the source; `None` if the source has none. Never guessed from the text.
    pub is_error: Option<bool>,
    /// The duration of the call in milliseconds, if the source records it.
    pub duration_ms: Option<f64>,
}

/// The location of a transcript, from which dicta reads it again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TranscriptRef {
    /// The transcript's id, made unique over the workspace.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// The byte offset of the record in the file.
    pub offset: u64,
    /// The length of the record in bytes.
    pub len: u64,
    /// The number of the transcript within the record, from 0. A session may have branches and sub-agents.
    #[serde(default, skip_serializing_if = "is_first")]
    pub part: u32,
    /// The BLAKE3 digest of the transcript in the native format; [`Digest::unread`] if dicta only listed it.
    pub digest: Digest,
}

impl TranscriptRef {
    /// Replaces a default id of dicta 0.1, `<file stem>:<number>`, by today's. The path of the file makes it unique, so
    /// a suffix such as `~2` is dropped.
    pub fn upgrade_default_id(&mut self) {
        let stem = self.path.file_stem().map(|stem| stem.to_string_lossy());
        let number = stem
            .and_then(|stem| self.id.strip_prefix(&*stem)?.strip_prefix(':'))
            .map(|rest| rest.split_once('~').unwrap_or((rest, "1")));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if let Some((number, nth)) = number
            && is_number(number)
            && is_number(nth)
            && self.path.is_relative()
        {
            self.id = format!("{}:{number}", default_id_prefix(&self.path));
        }
    }
}

/// Returns the part of a default id before the record number: a path below the workspace without its extension, with
/// `.` for `/`.
pub fn default_id_prefix(path_below_workspace: &std::path::Path) -> String {
    let path = path_below_workspace.with_extension("");
    let names = path.components().filter_map(|name| match name {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    names.collect::<Vec<_>>().join(".")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_first(part: &u32) -> bool {
    *part == 0
}

impl MessageRole<'_> {
    /// Returns the role's name in OpenAI's chat format. `developer` becomes `system`.
    pub fn as_str(&self) -> &str {
        match self {
            MessageRole::System => "system",
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
            MessageRole::Tool => "tool",
            MessageRole::Other(name) => name,
        }
    }

    fn into_owned(self) -> MessageRole<'static> {
        match self {
            MessageRole::System => MessageRole::System,
            MessageRole::User => MessageRole::User,
            MessageRole::Assistant => MessageRole::Assistant,
            MessageRole::Tool => MessageRole::Tool,
            MessageRole::Other(name) => MessageRole::Other(name.into_owned()),
        }
    }
}

impl TranscriptMessage<'_> {
    /// Returns the text parts, joined with line breaks. Reasoning, calls and results are not text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            TranscriptPart::Text(text) => Some(&*text.0),
            _ => None,
        });
        // Most messages have one text, which is borrowed and not copied.
        match (texts.next(), texts.next()) {
            (None, _) => "".into(),
            (Some(only), None) => only.into(),
            (Some(first), Some(second)) => {
                let mut all = format!("{first}\n{second}");
                for text in texts {
                    all.push('\n');
                    all.push_str(text);
                }
                all.into()
            }
        }
    }

    fn into_owned(self) -> TranscriptMessage<'static> {
        TranscriptMessage {
            role: self.role.into_owned(),
            parts: self
                .parts
                .into_iter()
                .map(TranscriptPart::into_owned)
                .collect(),
            metadata: self.metadata.map(JsonText::into_owned),
        }
    }
}

impl TranscriptPart<'_> {
    /// Copies the part, so that it no longer borrows the bytes it was read from.
    pub fn into_owned(self) -> TranscriptPart<'static> {
        match self {
            TranscriptPart::Text(text) => TranscriptPart::Text(text.into_owned()),
            TranscriptPart::Reasoning(text) => TranscriptPart::Reasoning(text.into_owned()),
            TranscriptPart::ToolCall(call) => TranscriptPart::ToolCall(ToolCall {
                id: call.id.into_owned(),
                name: call.name.into_owned(),
                arguments: call.arguments.into_owned(),
            }),
            TranscriptPart::ToolResult(result) => TranscriptPart::ToolResult(ToolResult {
                call_id: result.call_id.into_owned(),
                content: result.content.into_owned(),
                is_error: result.is_error,
                duration_ms: result.duration_ms,
            }),
            TranscriptPart::Media { kind, raw } => TranscriptPart::Media {
                kind: kind.into_owned(),
                raw: raw.into_owned(),
            },
            TranscriptPart::Other(raw) => TranscriptPart::Other(raw.into_owned()),
        }
    }
}

impl Transcript<'_> {
    /// Copies the transcript, so that it no longer borrows the bytes it was read from.
    pub fn into_owned(self) -> Transcript<'static> {
        Transcript {
            id: self.id.into_owned(),
            messages: self
                .messages
                .into_iter()
                .map(TranscriptMessage::into_owned)
                .collect(),
            metadata: self.metadata.map(JsonText::into_owned),
            tags: self.tags.into_iter().map(SourceText::into_owned).collect(),
            verdicts: self.verdicts,
        }
    }
}

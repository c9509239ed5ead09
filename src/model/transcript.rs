//! One recorded conversation of an agent, in the shape every reader maps to and every handler reads.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Digest, JsonText, RawJson, SourceText};

/// One recorded conversation. `'a` is the bytes it was read from; [`Transcript::into_owned`] frees it of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript<'a> {
    /// Its own id, or `<file stem>:<record number from 1>`.
    pub id: SourceText<'a>,
    /// In the order of the file; positions count from 0.
    pub messages: Vec<TranscriptMessage<'a>>,
    /// A JSON object, where there is one. Never shown to a judge unless the rubric names it.
    pub metadata: Option<JsonText<'a>>,
    /// For `applies_to`.
    pub tags: Vec<SourceText<'a>>,
    /// What others decided of it, where its file says so. Never shown to a judge.
    pub verdicts: Vec<SourceVerdict>,
}

/// A verdict that came with a transcript: another tool's scorer or grader, read and never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceVerdict {
    /// Who decided, as dicta names the tool: `inspect`, `promptfoo`, `evalbench` …
    pub judge: String,
    /// What was decided: the scorer's, assertion's or metric's name.
    pub eval: String,
    /// Pass or fail, where the source says one of them. Never derived from a score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// From 0 to 1, where the source's value is such a number or stands for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The value as the source writes it (`C`, `4`, `{…}`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RawJson>,
    /// Why, in the source's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why there is no verdict: the source's grader failed. Then neither `passed` nor `score` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageRole<'a> {
    /// Instructions (`system`, `developer`).
    System,
    /// The person or program the agent serves.
    User,
    /// The agent that is judged.
    Assistant,
    /// A tool's answer.
    Tool,
    /// Anything else, as written.
    Other(SourceText<'a>),
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptMessage<'a> {
    /// Who speaks.
    pub role: MessageRole<'a>,
    /// What it holds, in order.
    pub parts: Vec<TranscriptPart<'a>>,
    /// A JSON object of the message's own, where there is one (`latency_ms`, `is_error` …).
    pub metadata: Option<JsonText<'a>>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriptPart<'a> {
    /// Text for the reader.
    Text(SourceText<'a>),
    /// The model's recorded thinking.
    Reasoning(SourceText<'a>),
    /// A call the agent made.
    ToolCall(ToolCall<'a>),
    /// What a tool answered.
    ToolResult(ToolResult<'a>),
    /// An image, sound or file: its kind as the source names it, and the raw JSON.
    Media {
        /// `image_url`, `input_audio` …
        kind: SourceText<'a>,
        /// The part as written.
        raw: JsonText<'a>,
    },
    /// A part of a kind we do not know, kept as written.
    Other(JsonText<'a>),
}

/// A tool call as the transcript has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The call id; empty where the source has none.
    pub id: SourceText<'a>,
    /// The tool's name.
    pub name: SourceText<'a>,
    /// The arguments as text. Usually a JSON object; may be broken, then it is kept as it is.
    pub arguments: SourceText<'a>,
}

/// A tool's recorded answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// The id of the call it answers; empty where the source has none.
    pub call_id: SourceText<'a>,
    /// The text of the answer.
    pub content: SourceText<'a>,
    /// Whether the source says that it is an error. Never guessed from text.
    pub is_error: Option<bool>,
    /// How long the tool took, in milliseconds, where the source says so.
    pub duration_ms: Option<f64>,
}

/// Where a transcript stands, so that it can be read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptRef {
    /// The transcript's id, made unique over the workspace.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// Byte offset of the record in the file.
    pub offset: u64,
    /// Length of the record in bytes.
    pub len: u64,
    /// Which of the transcripts that this place holds, from 0: a session may have branches and sub-agents.
    #[serde(default, skip_serializing_if = "is_first")]
    pub part: u32,
    /// BLAKE3 of the transcript's bytes in the native form; [`Digest::unread`] where it was only listed.
    pub digest: Digest,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_first(part: &u32) -> bool {
    *part == 0
}

impl MessageRole<'_> {
    /// The role's name as OpenAI chat spells it (`developer` is folded into `system`).
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
    /// The text parts, joined with a line break. Reasoning, calls and results are not text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            TranscriptPart::Text(text) => Some(&*text.0),
            _ => None,
        });
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
    fn into_owned(self) -> TranscriptPart<'static> {
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
    /// The same transcript, free of the bytes it was read from.
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

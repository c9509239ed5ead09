//! A line of a session: its envelope and its kind.
//!
//! Responsible for the fields of a line. Does not read the message in it: that is `line_message.rs`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::super::content::ObjectOnly;
use super::super::super::native::{json_string, parse_or_none};
use crate::model::SourceText;

/// A borrowed line. A field of an unexpected type is absent.
#[derive(Debug)]
pub(super) struct ClaudeCodeLine<'a> {
    pub(super) kind: ClaudeCodeLineKind,
    /// `type` as written.
    pub(super) type_text: SourceText<'a>,
    pub(super) uuid: Option<SourceText<'a>>,
    /// The uuid of the previous line: `parentUuid`, else (after a compaction) `logicalParentUuid`.
    pub(super) parent_uuid: Option<SourceText<'a>>,
    pub(super) session: Option<SourceText<'a>>,
    /// The sub-agent of the line: its id, or in a stream the call that started it.
    pub(super) agent: Option<SourceText<'a>>,
    /// In a stream, the call that started the sub-agent of the line.
    pub(super) parent_call: Option<SourceText<'a>>,
    pub(super) sidechain: bool,
    /// True for a line of a stream.
    pub(super) is_streamed: bool,
    pub(super) timestamp: Option<SourceText<'a>>,
    pub(super) raw: RawClaudeCodeLine<'a>,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaudeCodeLineKind {
    /// A message to the model: a prompt or tool results.
    User,
    /// One or more blocks of a reply.
    Assistant,
    /// The point at which Claude Code compacted the conversation.
    Compaction,
    /// A prompt that was typed while the agent worked.
    Queued,
    /// State of the session that is not part of the conversation.
    Housekeeping,
    /// Anything else.
    Unknown,
}

/// The fields of a line as written.
#[derive(Debug, Deserialize)]
pub(super) struct RawClaudeCodeLine<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) subtype: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uuid: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "parentUuid")]
    parent: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "logicalParentUuid")]
    logical_parent: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "sessionId")]
    session: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "agentId")]
    agent: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isSidechain")]
    sidechain: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) cwd: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "gitBranch")]
    pub(super) git_branch: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isMeta")]
    pub(super) is_meta: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isCompactSummary")]
    pub(super) is_compact_summary: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isApiErrorMessage")]
    pub(super) is_api_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) attachment: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "toolUseResult")]
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "compactMetadata")]
    pub(super) compact_metadata: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "costUSD")]
    pub(super) cost_usd: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "durationMs")]
    pub(super) duration_ms: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "leafUuid")]
    pub(super) leaf: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "aiTitle")]
    pub(super) ai_title: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "customTitle")]
    pub(super) custom_title: Option<&'a RawValue>,
    // The fields below are those of a stream (`--output-format stream-json`).
    #[serde(borrow, default, rename = "session_id")]
    stream_session: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "parent_tool_use_id")]
    parent_call: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "tool_use_result")]
    stream_tool_use_result: Option<&'a RawValue>,
    /// The answer of the run, in its last line.
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) is_error: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "duration_ms")]
    pub(super) run_duration_ms: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "total_cost_usd")]
    pub(super) total_cost_usd: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// The ids of a line, for the split into sessions.
#[derive(Debug, Deserialize)]
pub(super) struct ClaudeCodeEnvelope<'a> {
    #[serde(borrow, default)]
    pub(super) uuid: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "parentUuid")]
    pub(super) parent: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "logicalParentUuid")]
    pub(super) logical_parent: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "sessionId")]
    pub(super) session: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "session_id")]
    pub(super) stream_session: Option<&'a RawValue>,
}

/// The fields of an attachment that dicta reads.
#[derive(Deserialize)]
pub(super) struct ClaudeCodeAttachment<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    pub(super) prompt: Option<&'a RawValue>,
}

impl<'a> ClaudeCodeLine<'a> {
    /// Parses a line. The error is the kind under which dicta counts it.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "a line that is not UTF-8")?;
        let ObjectOnly(mut raw) = serde_json::from_str::<ObjectOnly<RawClaudeCodeLine<'a>>>(text)
            .map_err(|_| "a line that is not a JSON object")?;
        raw.tool_use_result = raw.tool_use_result.or(raw.stream_tool_use_result);
        let kind_text = raw.kind.and_then(json_string).unwrap_or_default();
        let named =
            |raw: Option<&'a RawValue>| raw.and_then(json_string).filter(|id| !id.is_empty());
        let parent_call = named(raw.parent_call);
        Ok(Self {
            // The kind depends on other keys too, because `type` alone does not show a compaction.
            kind: ClaudeCodeLineKind::classify(&kind_text, &raw),
            type_text: kind_text,
            uuid: raw.uuid.and_then(json_string),
            parent_uuid: parent_uuid_of(raw.parent, raw.logical_parent),
            session: raw.session.or(raw.stream_session).and_then(json_string),
            agent: named(raw.agent).or_else(|| parent_call.clone()),
            sidechain: parse_or_none(raw.sidechain) == Some(true) || parent_call.is_some(),
            parent_call,
            is_streamed: raw.session.is_none() && raw.stream_session.is_some(),
            timestamp: raw.timestamp.and_then(json_string),
            raw,
        })
    }

    /// Returns true if the line is part of the conversation.
    pub(super) fn is_conversational(&self) -> bool {
        matches!(
            self.kind,
            ClaudeCodeLineKind::User
                | ClaudeCodeLineKind::Assistant
                | ClaudeCodeLineKind::Compaction
                | ClaudeCodeLineKind::Queued
        )
    }

    /// Returns true if the line summarises the conversation before a compaction.
    pub(super) fn is_compact_summary(&self) -> bool {
        parse_or_none(self.raw.is_compact_summary) == Some(true)
    }

    /// Returns the kind under which dicta counts an unknown line.
    pub(super) fn unknown_kind_name(&self) -> String {
        let (of_what, kind) = match &*self.type_text {
            "" => return "a line without a `type`".to_owned(),
            "user" | "assistant" => return format!("{} line without a message", self.type_text),
            "attachment" => {
                let read =
                    parse_or_none::<ObjectOnly<ClaudeCodeAttachment<'_>>>(self.raw.attachment);
                ("attachment", read.and_then(|ObjectOnly(read)| read.kind))
            }
            "system" => ("system", self.raw.subtype.and_then(json_string)),
            other => return other.to_owned(),
        };
        kind.map_or_else(
            || of_what.to_owned(),
            |kind| format!("{of_what} {}", &*kind),
        )
    }
}

/// Returns the uuid of the previous line, if the line names it.
pub(super) fn parent_uuid_of<'a>(
    parent: Option<&'a RawValue>,
    logical: Option<&'a RawValue>,
) -> Option<SourceText<'a>> {
    // After a compaction, only `logicalParentUuid` names a line.
    let named = |raw: Option<&'a RawValue>| raw.and_then(json_string).filter(|id| !id.is_empty());
    named(parent).or_else(|| named(logical))
}

impl ClaudeCodeLineKind {
    fn classify(kind: &str, raw: &RawClaudeCodeLine<'_>) -> Self {
        match kind {
            "user" if raw.message.is_some() => Self::User,
            "assistant" if raw.message.is_some() => Self::Assistant,
            // Other `system` lines are notices, which dicta only counts.
            "system"
                if raw.subtype.and_then(json_string).as_deref() == Some("compact_boundary") =>
            {
                Self::Compaction
            }
            // A stream begins with the state of the program, and reports hooks and waits between messages.
            "system"
                if raw.subtype.and_then(json_string).is_some_and(|kind| {
                    matches!(&*kind, "init" | "status") || kind.starts_with("hook_")
                }) =>
            {
                Self::Housekeeping
            }
            "attachment" => {
                // Of all attachments, only a queued prompt is a message of the conversation.
                let read = parse_or_none::<ObjectOnly<ClaudeCodeAttachment<'_>>>(raw.attachment);
                let queued = read.is_some_and(|ObjectOnly(read)| {
                    read.kind.as_deref() == Some("queued_command") && read.prompt.is_some()
                });
                if queued { Self::Queued } else { Self::Unknown }
            }
            // Known types of the session's state. Any type that is not in this list counts as unknown.
            "summary"
            | "ai-title"
            | "custom-title"
            | "agent-name"
            | "agent-color"
            | "agent-setting"
            | "queue-operation"
            | "file-history-snapshot"
            | "permission-mode"
            | "mode"
            | "last-prompt"
            | "progress"
            | "tag"
            | "pr-link"
            | "worktree-state"
            | "content-replacement"
            | "speculation-accept"
            | "attribution-snapshot"
            | "file-history-delta"
            // In a stream: the end of the run, which repeats the last answer, and pieces of messages that follow.
            | "result"
            | "stream_event"
            | "rate_limit_event"
            | "tool_progress" => Self::Housekeeping,
            _ => Self::Unknown,
        }
    }
}

//! What is known of rollouts by words alone: which events repeat items, which messages the harness wrote, what an answer of
//! an older version says of itself.

use serde_json::value::RawValue;

use super::super::super::fields::RawFields;
use super::super::response_items::MessageBuilder;
use crate::model::{MessageRole, TranscriptPart};

/// Events that repeat what items say, or concern the screen alone.
pub(super) const IGNORED_EVENTS: [&str; 32] = [
    "user_message",
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "context_compacted",
    "entered_review_mode",
    "exited_review_mode",
    "thread_settings_applied",
    "thread_name_updated",
    "thread_goal_updated",
    "undo_started",
    "undo_completed",
    "warning",
    "item_started",
    "exec_command_begin",
    "exec_command_output_delta",
    "patch_apply_begin",
    "mcp_tool_call_begin",
    "web_search_begin",
    "web_search_end",
    "view_image_tool_call",
    "image_generation_begin",
    "image_generation_end",
    "plan_update",
    "turn_diff",
    "background_event",
    "session_configured",
    "collab_agent_spawn_begin",
    "collab_agent_spawn_end",
    "collab_waiting_end",
    "dynamic_tool_call_response",
];

/// What the harness wrote in the user's place is no word of the user.
pub(super) fn mark_harness_message(turn: &mut MessageBuilder<'_>, item: &RawFields<'_>) {
    const TAGS: [&str; 8] = [
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<turn_aborted>",
        "<skill>",
        "<user_shell_command>",
        "<subagent_notification>",
        "<permissions instructions>",
    ];
    if turn.role != MessageRole::User || turn.parts.is_empty() {
        return;
    }
    let texts = turn.parts.iter().all(|part| match part {
        TranscriptPart::Text(text) => TAGS.iter().any(|tag| text.trim_start().starts_with(tag)),
        _ => false,
    });
    if texts || is_harness_item(item) {
        turn.role = MessageRole::System;
    }
}

/// Newer versions say who a message's pieces are from.
fn is_harness_item(item: &RawFields<'_>) -> bool {
    let told = item.object("internal_chat_message_metadata_passthrough");
    let pieces = told.and_then(|told| told.list("content_item_metadata"));
    let pieces = pieces.unwrap_or_default();
    let harness = |raw: &&RawValue| {
        let from = RawFields::from_raw(raw).and_then(|piece| piece.object("provenance"));
        from.and_then(|from| from.text("type")).as_deref() == Some("harness")
    };
    !pieces.is_empty() && pieces.iter().all(harness)
}

/// What an answer of an older version says of itself.
#[derive(Debug, Default)]
pub(super) struct CodexOutputStatus {
    /// Its exit code is not 0.
    pub(super) failed: Option<bool>,
    /// In milliseconds.
    pub(super) duration_ms: Option<f64>,
}

pub(super) fn parse_output_status(content: &str) -> CodexOutputStatus {
    if !content.starts_with("{\"output\"") {
        return CodexOutputStatus::default();
    }
    let told = RawFields::parse(content)
        .ok()
        .and_then(|told| told.object("metadata"));
    let Some(told) = told else {
        return CodexOutputStatus::default();
    };
    CodexOutputStatus {
        failed: told.number("exit_code").map(|code| code != 0.0),
        duration_ms: told
            .number("duration_seconds")
            .map(|seconds| seconds * 1000.0),
    }
}

/// A point in time, in milliseconds.
pub(super) fn parse_timestamp_ms(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(at.as_millisecond())
}

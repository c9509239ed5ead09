//! iFlow CLI's sessions, which have the lines of Claude Code with another meaning.
//!
//! iFlow writes a line for each state of a reply. All of them follow the same line, and a call is in each state in which it
//! runs. So lines with one parent are not branches, and the order of the file is the order of the conversation. A result has
//! the form of Gemini CLI's results, and a usage of 0 means that it is unknown.
//!
//! Responsible for messages that are as Claude Code would have written them. Does not parse lines.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::native::parse_or_none;
use super::super::content_blocks::ContentItem;
use super::line::ClaudeCodeLine;
use super::line_message::ClaudeCodeMessage;
use crate::model::{SourceText, TranscriptPart};

/// Returns true for a session of iFlow. Claude Code's ids are UUIDs, and those of its replies begin with `msg_`.
pub(super) fn is_session(
    lines: &[ClaudeCodeLine<'_>],
    messages: &[Option<ClaudeCodeMessage<'_>>],
) -> bool {
    let session = lines.iter().find_map(|line| line.session.as_deref());
    let replies = messages.iter().flatten();
    let mut replies = replies.filter(|message| message.reply.is_some()).peekable();
    session.is_some_and(|id| id.starts_with("session-"))
        && replies.peek().is_some()
        && replies.all(|reply| {
            let id = reply.reply_id.as_deref();
            id.is_some_and(|id| id.starts_with("response-"))
        })
}

/// Joins the states of each reply to one reply with each call once, and takes the text out of results.
pub(super) fn join_states<'a>(
    lines: &[ClaudeCodeLine<'a>],
    messages: &mut [Option<ClaudeCodeMessage<'a>>],
) {
    let mut known_calls: HashSet<SourceText<'a>> = HashSet::new();
    // The id of the reply whose states follow.
    let mut open: Option<SourceText<'a>> = None;
    for (line, slot) in lines.iter().zip(messages) {
        let Some(message) = slot.as_mut() else {
            continue;
        };
        let Some(reply) = &mut message.reply else {
            open = None;
            unwrap_results(line, message);
            continue;
        };
        reply.usage = reply.usage.filter(|usage| !is_zero(usage));
        message.blocks.items.retain(|item| match item {
            ContentItem::Part(TranscriptPart::ToolCall(call)) => {
                call.id.is_empty() || known_calls.insert(call.id.clone())
            }
            _ => true,
        });
        if open.is_some() {
            message.reply_id.clone_from(&open);
        } else if message.blocks.items.is_empty() {
            *slot = None;
        } else {
            open.clone_from(&message.reply_id);
        }
    }
}

/// Returns true if all numbers of a usage are 0.
fn is_zero(usage: &RawValue) -> bool {
    let numbers: Option<HashMap<String, Value>> = parse_or_none(Some(usage));
    numbers.is_some_and(|all| all.values().all(|number| number.as_u64() == Some(0)))
}

/// Replaces the content of results by the output in it. `toolUseResult` states whether the call failed.
fn unwrap_results(line: &ClaudeCodeLine<'_>, message: &mut ClaudeCodeMessage<'_>) {
    let details: Option<Value> = parse_or_none(line.raw.tool_use_result);
    // It names no call, so it applies to one result.
    let details = details.filter(|_| message.only_answer().is_some());
    let status = details.as_ref().and_then(|all| all["status"].as_str());
    let has_failed = status.map(|status| status != "success");
    for item in &mut message.blocks.items {
        let ContentItem::ToolResult(block) = item else {
            continue;
        };
        let content: Value = serde_json::from_str(&block.result.content).unwrap_or_default();
        let parts = &content["responseParts"];
        // The parts are an object, or a list as in Gemini CLI.
        let part = parts.get(0).unwrap_or(parts);
        let response = &part["functionResponse"]["response"];
        let (output, error) = (response["output"].as_str(), response["error"].as_str());
        if let Some(text) = output.or(error) {
            block.result.content = SourceText::from(text.to_owned());
        }
        let has_error = (output.is_none() && error.is_some()).then_some(true);
        block.result.is_error = block.result.is_error.or(has_error).or(has_failed);
    }
}

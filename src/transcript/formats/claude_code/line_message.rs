//! The message of a line, parsed once for all conversations that contain it.
//!
//! Responsible for the content blocks of a line. Does not build transcript messages: that is `conversation.rs`.

use super::super::super::content::{ObjectOnly, RawContent};
use super::super::super::native::{id_text, json_string, parse_or_none};
use super::super::anthropic::AnthropicLogMessage;
use super::super::content_blocks::{ContentBlocks, ContentItem, ToolResultBlock};
use super::line::{ClaudeCodeAttachment, ClaudeCodeLine, ClaudeCodeLineKind};
use crate::model::{SourceText, ToolCall, TranscriptPart};

/// The message of a line.
#[derive(Debug)]
pub(super) struct ClaudeCodeMessage<'a> {
    pub(super) blocks: ContentBlocks<'a>,
    /// The `message.id` of a reply.
    pub(super) reply_id: Option<SourceText<'a>>,
    /// The metadata of a reply; `None` if the message isn't a reply.
    pub(super) reply: Option<AnthropicLogMessage<'a>>,
}

impl<'a> ClaudeCodeMessage<'a> {
    /// Parses the message of a line; `None` if the line has none that dicta understands.
    pub(super) fn from_line(line: &ClaudeCodeLine<'a>) -> Option<Self> {
        let plain = |blocks| Self {
            blocks,
            reply_id: None,
            reply: None,
        };
        match line.kind {
            ClaudeCodeLineKind::User | ClaudeCodeLineKind::Assistant => {
                let ObjectOnly(mut message) =
                    parse_or_none::<ObjectOnly<AnthropicLogMessage<'a>>>(line.raw.message)?;
                // `take` moves the content out, so that `reply` below does not keep it a second time.
                let blocks = ContentBlocks::from_content(message.content.take()?);
                if line.kind == ClaudeCodeLineKind::User {
                    return Some(plain(blocks));
                }
                Some(Self {
                    blocks,
                    reply_id: message.id.and_then(id_text),
                    reply: Some(message),
                })
            }
            ClaudeCodeLineKind::Compaction => {
                // A line without a text must still show the point of the compaction.
                let text = line.raw.content.and_then(json_string);
                let text = text.unwrap_or_else(|| SourceText::from("Conversation compacted"));
                Some(plain(ContentBlocks::from_content(RawContent::Text(text))))
            }
            ClaudeCodeLineKind::Queued => {
                let ObjectOnly(attachment) =
                    parse_or_none::<ObjectOnly<ClaudeCodeAttachment<'a>>>(line.raw.attachment)?;
                Some(plain(ContentBlocks::from_content(parse_or_none(
                    attachment.prompt,
                )?)))
            }
            ClaudeCodeLineKind::Housekeeping | ClaudeCodeLineKind::Unknown => None,
        }
    }

    /// Returns the tool calls.
    pub(super) fn tool_calls(&self) -> impl Iterator<Item = &ToolCall<'a>> {
        self.blocks.items.iter().filter_map(|item| match item {
            ContentItem::Part(TranscriptPart::ToolCall(call)) => Some(call),
            _ => None,
        })
    }

    /// Returns the ids of the tool calls.
    pub(super) fn call_ids(&self) -> Vec<SourceText<'a>> {
        self.tool_calls().map(|call| call.id.clone()).collect()
    }

    /// Returns the ids of the calls that the message answers; empty if it has any other content.
    pub(super) fn answered_call_ids(&self) -> Vec<SourceText<'a>> {
        let answer = |item: &ContentItem<'a>| match item {
            ContentItem::ToolResult(answer) => Some(answer.result.call_id.clone()),
            ContentItem::Part(_) => None,
        };
        // `collect` into an Option gives None at the first part that is not a result.
        let all: Option<Vec<_>> = self.blocks.items.iter().map(answer).collect();
        all.unwrap_or_default()
    }

    /// Returns the tool result, if there is exactly one.
    pub(super) fn only_answer(&self) -> Option<&ToolResultBlock<'a>> {
        let mut answers = self.blocks.items.iter().filter_map(|item| match item {
            ContentItem::ToolResult(answer) => Some(answer),
            ContentItem::Part(_) => None,
        });
        let one = answers.next()?;
        // `toolUseResult` of a line names no call, so two results would be ambiguous.
        answers.next().is_none().then_some(one)
    }

    /// Returns the text, if the message has no other content.
    pub(super) fn only_text(&self) -> Option<&str> {
        match &self.blocks.items[..] {
            [ContentItem::Part(TranscriptPart::Text(text))] => Some(text),
            _ => None,
        }
    }
}

//! What a line says: its message, read once for all conversations it is part of.

use super::super::super::content::{ObjectOnly, RawContent};
use super::super::super::native::{id_text, json_string, parse_or_none};
use super::super::anthropic::AnthropicLogMessage;
use super::super::content_blocks::{ContentBlocks, ContentItem, ToolResultBlock};
use super::line::{ClaudeCodeAttachment, ClaudeCodeLine, ClaudeCodeLineKind};
use crate::model::{SourceText, ToolCall, TranscriptPart};

/// A line's message.
#[derive(Debug)]
pub(super) struct ClaudeCodeMessage<'a> {
    pub(super) blocks: ContentBlocks<'a>,
    /// `message.id` of a reply.
    pub(super) reply_id: Option<SourceText<'a>>,
    /// What is told of a reply; `None` of what is none.
    pub(super) reply: Option<AnthropicLogMessage<'a>>,
}

impl<'a> ClaudeCodeMessage<'a> {
    /// `None` where the line says nothing, or nothing that is understood.
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
                let told = line.raw.content.and_then(json_string);
                let told = told.unwrap_or_else(|| SourceText::from("Conversation compacted"));
                Some(plain(ContentBlocks::from_content(RawContent::Text(told))))
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

    /// The calls it makes.
    pub(super) fn tool_calls(&self) -> impl Iterator<Item = &ToolCall<'a>> {
        self.blocks.items.iter().filter_map(|said| match said {
            ContentItem::Part(TranscriptPart::ToolCall(call)) => Some(call),
            _ => None,
        })
    }

    /// Their ids.
    pub(super) fn call_ids(&self) -> Vec<SourceText<'a>> {
        self.tool_calls().map(|call| call.id.clone()).collect()
    }

    /// The calls it answers; none if it says anything else.
    pub(super) fn answered_call_ids(&self) -> Vec<SourceText<'a>> {
        let answer = |said: &ContentItem<'a>| match said {
            ContentItem::ToolResult(answer) => Some(answer.result.call_id.clone()),
            ContentItem::Part(_) => None,
        };
        let all: Option<Vec<_>> = self.blocks.items.iter().map(answer).collect();
        all.unwrap_or_default()
    }

    /// The one answer it holds; `None` where there are several, or none.
    pub(super) fn only_answer(&self) -> Option<&ToolResultBlock<'a>> {
        let mut answers = self.blocks.items.iter().filter_map(|said| match said {
            ContentItem::ToolResult(answer) => Some(answer),
            ContentItem::Part(_) => None,
        });
        let one = answers.next()?;
        answers.next().is_none().then_some(one)
    }

    /// The one text it holds.
    pub(super) fn only_text(&self) -> Option<&str> {
        match &self.blocks.items[..] {
            [ContentItem::Part(TranscriptPart::Text(text))] => Some(text),
            _ => None,
        }
    }
}

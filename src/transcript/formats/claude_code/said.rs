//! What a line says: its message, read once for all conversations it is part of.

use super::super::super::content::{Content, Object};
use super::super::super::native::{id_text, of, string};
use super::super::anthropic::Reply;
use super::super::blocks::{Answer, Blocks, Said};
use super::line::{Attachment, Kind, Line};
use crate::model::{Part, Text, ToolCall};

/// A line's message.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) blocks: Blocks<'a>,
    /// `message.id` of a reply.
    pub(super) reply_id: Option<Text<'a>>,
    /// What is told of a reply; `None` of what is none.
    pub(super) reply: Option<Reply<'a>>,
}

impl<'a> Message<'a> {
    /// `None` where the line says nothing, or nothing that is understood.
    pub(super) fn of(line: &Line<'a>) -> Option<Self> {
        let plain = |blocks| Self {
            blocks,
            reply_id: None,
            reply: None,
        };
        match line.kind {
            Kind::User | Kind::Assistant => {
                let Object(mut message) = of::<Object<Reply<'a>>>(line.raw.message)?;
                let blocks = Blocks::of(message.content.take()?);
                if line.kind == Kind::User {
                    return Some(plain(blocks));
                }
                Some(Self {
                    blocks,
                    reply_id: message.id.and_then(id_text),
                    reply: Some(message),
                })
            }
            Kind::Compaction => {
                let told = line.raw.content.and_then(string);
                let told = told.unwrap_or_else(|| Text::from("Conversation compacted"));
                Some(plain(Blocks::of(Content::Text(told))))
            }
            Kind::Queued => {
                let Object(attachment) = of::<Object<Attachment<'a>>>(line.raw.attachment)?;
                Some(plain(Blocks::of(of(attachment.prompt)?)))
            }
            Kind::Housekeeping | Kind::Unknown => None,
        }
    }

    /// The calls it makes.
    pub(super) fn made(&self) -> impl Iterator<Item = &ToolCall<'a>> {
        self.blocks.said.iter().filter_map(|said| match said {
            Said::Part(Part::ToolCall(call)) => Some(call),
            _ => None,
        })
    }

    /// Their ids.
    pub(super) fn calls(&self) -> Vec<Text<'a>> {
        self.made().map(|call| call.id.clone()).collect()
    }

    /// The calls it answers; none if it says anything else.
    pub(super) fn answers(&self) -> Vec<Text<'a>> {
        let answer = |said: &Said<'a>| match said {
            Said::Answer(answer) => Some(answer.result.call_id.clone()),
            Said::Part(_) => None,
        };
        let all: Option<Vec<_>> = self.blocks.said.iter().map(answer).collect();
        all.unwrap_or_default()
    }

    /// The one answer it holds; `None` where there are several, or none.
    pub(super) fn answer(&self) -> Option<&Answer<'a>> {
        let mut answers = self.blocks.said.iter().filter_map(|said| match said {
            Said::Answer(answer) => Some(answer),
            Said::Part(_) => None,
        });
        let one = answers.next()?;
        answers.next().is_none().then_some(one)
    }

    /// The one text it holds.
    pub(super) fn only_text(&self) -> Option<&str> {
        match &self.blocks.said[..] {
            [Said::Part(Part::Text(text))] => Some(text),
            _ => None,
        }
    }
}

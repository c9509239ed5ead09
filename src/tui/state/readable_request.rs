//! Converts a request body to readable text: messages with their roles, settings, declared tools, and the indented
//! body.
//!
//! The provider dialects and the `rules` judge read the bodies; a body of none of them stays JSON. Bodies can have
//! megabytes, so the runtime builds a [`ReadableRequest`] off the screen's thread, once a turn.

use std::ops::Range;
use std::sync::Arc;

use crate::judge::{self, split_prompt};
use crate::model::{CellIx, RunId};
use crate::provider::{self, ReadableBody, ReadablePartKind, ReadableTool, SpeakerRole};
use crate::theme::Role;

/// Identifies a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestKey {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
    pub(crate) turn: usize,
}

/// A readable request.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadableRequest {
    pub(crate) key: RequestKey,
    /// All texts, one after another.
    pub(crate) text: String,
    pub(crate) blocks: Vec<RequestBlock>,
    /// The index of the first block that the turn before did not contain.
    pub(crate) first_new_block: usize,
    /// The number of items before it.
    pub(crate) earlier_items: usize,
    /// The new texts by block: the user's texts, and dicta's frame around them.
    pub(crate) sections: Vec<RequestSection>,
    /// The settings, such as `model: scripted · temperature: 0.0`.
    pub(crate) settings: String,
    /// The declared functions.
    pub(crate) tools: Vec<ReadableTool>,
    /// The indented body, as sent.
    pub(crate) raw: Arc<str>,
}

/// A part of the new texts of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestSection {
    /// The name of the block, such as `criteria`, or the speaker; `None` for dicta's frame.
    pub(crate) name: Option<String>,
    /// True for the criteria and the scoring guide.
    pub(crate) is_rubric: bool,
    pub(crate) range: Range<usize>,
    pub(crate) role: Role,
    /// The number of lines.
    pub(crate) lines: usize,
}

/// A block of a readable request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestBlock {
    pub(crate) range: Range<usize>,
    pub(crate) role: Role,
    /// True if the block names the role of the next blocks.
    pub(crate) is_heading: bool,
}

impl ReadableRequest {
    /// Converts a body. Items that the body of the turn before also has are collapsed.
    pub(crate) fn from_body(key: RequestKey, body: &str, before: Option<&str>) -> Self {
        let raw =
            // A body that is not JSON is shown as received.
            crate::tools::pretty_print_json(body, usize::MAX).unwrap_or_else(|| body.to_owned());
        let raw: Arc<str> = raw.into();
        let mut request = Self {
            key,
            text: String::new(),
            blocks: Vec::new(),
            first_new_block: 0,
            earlier_items: 0,
            sections: Vec::new(),
            settings: String::new(),
            tools: Vec::new(),
            raw: Arc::clone(&raw),
        };
        let Some(read) = explain_body(body) else {
            // An unknown dialect has no items, so the whole body is one block.
            request.push_block(&raw, Role::Text, false);
            return request;
        };
        let past = before.and_then(explain_body).unwrap_or_default();
        let both = read.items.iter().zip(&past.items);
        // A conversation grows at its end, so equal items are at the beginning.
        request.earlier_items = both.take_while(|(now, then)| now == then).count();
        // A body equal to the one before would be collapsed completely, so nothing is.
        if request.earlier_items == read.items.len() {
            request.earlier_items = 0;
        }
        for (at, item) in read.items.iter().enumerate() {
            if at == request.earlier_items {
                request.first_new_block = request.blocks.len();
            }
            request.push_block(&item.speaker, speaker_color(item.role), true);
            for part in &item.parts {
                request.push_block(&part.text, part_color(part.kind), false);
            }
        }
        request.sections = request.list_sections();
        request.settings = read.settings.join(" · ");
        request.tools = read.tools;
        request
    }

    /// Returns the text of the first message of the user.
    pub(crate) fn first_user_text(&self) -> Option<String> {
        let role = speaker_color(SpeakerRole::User);
        let is_user = |block: &RequestBlock| block.is_heading && block.role == role;
        let at = self.blocks.iter().position(is_user)?;
        let parts = self.blocks[at + 1..].iter();
        let parts = parts.take_while(|block| !block.is_heading);
        let texts: Vec<&str> = parts
            .filter_map(|block| self.text.get(block.range.clone()))
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// Returns the criteria and the scoring guide.
    pub(crate) fn rubric_sections(&self) -> impl Iterator<Item = &RequestSection> {
        self.sections.iter().filter(|section| section.is_rubric)
    }

    /// Splits the new blocks into sections. A first message of the system is dicta's frame.
    fn list_sections(&self) -> Vec<RequestSection> {
        let mut out = Vec::new();
        let mut speaker: (&str, Role) = ("", Role::Text);
        let mut push = |name: Option<String>, is_rubric, range: Range<usize>, role| {
            let lines = self.text[range.clone()].trim().lines().count();
            out.push(RequestSection {
                name,
                is_rubric,
                range,
                role,
                lines,
            });
        };
        for block in &self.blocks[self.first_new_block..] {
            let text = &self.text[block.range.clone()];
            if block.is_heading {
                speaker = (text, block.role);
                continue;
            }
            let parts = split_prompt(text);
            if parts.is_empty() {
                let is_frame = speaker.1 == Role::System;
                let name = (!is_frame).then(|| speaker.0.to_owned());
                push(name, false, block.range.clone(), block.role);
            }
            for part in parts {
                let is_rubric = part.is_rubric();
                let from = block.range.start;
                let range = from + part.range.start..from + part.range.end;
                push(part.name, is_rubric, range, block.role);
            }
        }
        out
    }

    fn push_block(&mut self, text: &str, role: Role, heading: bool) {
        let from = self.text.len();
        self.text.push_str(text);
        self.blocks.push(RequestBlock {
            range: from..self.text.len(),
            role,
            is_heading: heading,
        });
    }
}

/// Reads a body of the `rules` judge or of any provider dialect.
fn explain_body(body: &str) -> Option<ReadableBody> {
    judge::rules::explain_request_body(body).or_else(|| provider::explain_request_body(body))
}

fn speaker_color(role: SpeakerRole) -> Role {
    match role {
        SpeakerRole::System => Role::System,
        SpeakerRole::User => Role::User,
        SpeakerRole::Assistant => Role::Assistant,
        SpeakerRole::Tool => Role::Tool,
    }
}

fn part_color(kind: ReadablePartKind) -> Role {
    match kind {
        ReadablePartKind::Text => Role::Text,
        ReadablePartKind::Reasoning => Role::Reasoning,
        ReadablePartKind::Tool => Role::Tool,
        ReadablePartKind::Other => Role::Muted,
    }
}

#[cfg(test)]
mod tests;

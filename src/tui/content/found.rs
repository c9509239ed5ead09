//! What a check found, line by line, and a judge part by part.

use std::borrow::Cow;

use super::{Ink, rich};
use crate::model::{Outcome, Verdict};
use crate::theme::Role;
use crate::tui::widget::flow::Block;

/// A line of a check's finding; those of two aligned lists of calls as in a diff.
pub(super) fn found(line: &str) -> Block<'_> {
    let role = match line.as_bytes() {
        [b'-', b' ', ..] => Role::Removed,
        [b'+', b' ', ..] => Role::Added,
        [b'~', b' ', ..] => Role::Flipped,
        [b' ', b' ', ..] => Role::Muted,
        _ => return Block::new(line, Role::Text),
    };
    Block {
        indent: 2,
        lead: Cow::Borrowed(&line[..2]),
        ..Block::new(&line[2..], role)
    }
}

/// `✗ 2. Names the order`, and under it why.
pub(super) fn parts<'a>(ink: &Ink<'a>, verdict: &'a Verdict) -> Vec<Block<'a>> {
    let mut out = Vec::new();
    for (part, number) in verdict.parts.iter().zip(1..) {
        let (mark, role) = ink.mark(Outcome::from_passed(part.met));
        let count = part.format_suffix();
        out.push(rich([
            (format!("{mark} {number}. ").as_str(), role),
            (part.text.as_str(), Role::Text),
            (count.as_str(), role),
        ]));
        if !part.reasoning.is_empty() {
            out.push(Block {
                indent: 2,
                ..Block::new(part.reasoning.as_str(), Role::Muted)
            });
        }
    }
    out
}

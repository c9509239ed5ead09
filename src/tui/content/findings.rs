//! The lines of a check's finding, and the parts of a judge's verdict.

use std::borrow::Cow;

use super::{ContentCx, styled_line};
use crate::model::{Outcome, Verdict};
use crate::theme::Role;
use crate::tui::widget::flow::TextBlock;

/// Returns a line of a finding. Lines that compare two lists of calls look like a diff.
pub(super) fn finding_block(line: &str) -> TextBlock<'_> {
    // A check writes a mark and a blank before lines that compare two lists.
    let role = match line.as_bytes() {
        [b'-', b' ', ..] => Role::Removed,
        [b'+', b' ', ..] => Role::Added,
        [b'~', b' ', ..] => Role::Flipped,
        [b' ', b' ', ..] => Role::Muted,
        _ => return TextBlock::new(line, Role::Text),
    };
    TextBlock {
        indent: 2,
        // The match found two ASCII bytes, so the slices end between characters.
        lead: Cow::Borrowed(&line[..2]),
        ..TextBlock::new(&line[2..], role)
    }
}

/// Returns the parts of a verdict, each with its reason below: `✗ 2. Names the order`.
pub(super) fn verdict_part_blocks<'a>(
    cx: &ContentCx<'a>,
    verdict: &'a Verdict,
) -> Vec<TextBlock<'a>> {
    let mut out = Vec::new();
    for (part, number) in verdict.parts.iter().zip(1..) {
        let (mark, role) = cx.outcome_mark(Outcome::from_passed(part.met));
        let count = part.format_suffix();
        out.push(styled_line([
            (format!("{mark} {number}. ").as_str(), role),
            (part.text.as_str(), Role::Text),
            (count.as_str(), role),
        ]));
        if !part.reasoning.is_empty() {
            out.push(TextBlock {
                indent: 2,
                ..TextBlock::new(part.reasoning.as_str(), Role::Muted)
            });
        }
    }
    out
}

//! `read_message`.

use super::{ANSWER_MAX, Asked, Book, shown};
use crate::model::ToolResponse;

/// The bytes of a message: of its parts one after another.
pub(super) fn size(book: &Book, message: usize) -> usize {
    book.of(message).iter().map(|leaf| leaf.text.len()).sum()
}

/// The parts of a message from a byte on. Each part that is shown has its own delimiting line.
pub(super) fn answer(book: &Book, asked: &Asked) -> ToolResponse {
    let message = asked.message.unwrap_or_default();
    let leaves = book.of(message);
    if leaves.is_empty() {
        return shown(book.line(&format!("[{message}] left out")), 0, false);
    }
    let size = size(book, message);
    let limit = asked.limit.unwrap_or(ANSWER_MAX).min(ANSWER_MAX);
    let (mut out, mut given) = (String::new(), 0);
    let (mut at, mut next) = (0, asked.from);
    for leaf in leaves {
        let (begins, ends) = (at, at + leaf.text.len());
        at = ends;
        // A part without text is shown where the reader passes it.
        let passed = ends < asked.from || (ends == asked.from && ends > begins);
        if passed {
            continue;
        }
        if given >= limit && begins < ends {
            break;
        }
        let start = leaf.text.floor_char_boundary(next.saturating_sub(begins));
        let mut stop = leaf
            .text
            .floor_char_boundary((start + limit.saturating_sub(given)).min(leaf.text.len()));
        if stop == start && start < leaf.text.len() {
            // At least one character, so that going on goes on.
            stop = leaf.text.ceil_char_boundary(start + 1);
        }
        let continued = if start > 0 { ", continued" } else { "" };
        out.push_str(&book.line(&format!("{}{continued}", leaf.label)));
        let text = &leaf.text[start..stop];
        out.push_str(text);
        if !text.is_empty() && !text.ends_with('\n') {
            out.push('\n');
        }
        given += text.len();
        next = begins + stop;
        if stop < leaf.text.len() {
            break;
        }
    }
    let cut = next < size;
    if cut {
        out.push_str(&book.line(&format!(
            "cut at byte {next} of {size}: read_message with message: {message}, from: {next} goes on"
        )));
    }
    shown(out, given, cut)
}

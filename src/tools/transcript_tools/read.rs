//! The tool `read_message`.

use super::{JudgedMessages, MAX_RESPONSE_BYTES, TranscriptToolArgs, new_response};
use crate::model::ToolResponse;

/// Returns the size of a message in bytes: the sum of its parts.
pub(super) fn message_size(messages: &JudgedMessages, message: usize) -> usize {
    messages
        .parts_of(message)
        .iter()
        .map(|leaf| leaf.text.len())
        .sum()
}

/// Reads a message from a byte on. Each shown part has its own delimiting line.
pub(super) fn read_message(messages: &JudgedMessages, args: &TranscriptToolArgs) -> ToolResponse {
    let message = args.message.unwrap_or_default();
    let leaves = messages.parts_of(message);
    if leaves.is_empty() {
        return new_response(
            messages.delimiting_line(&format!("[{message}] left out")),
            0,
            false,
        );
    }
    let size = message_size(messages, message);
    let limit = args
        .limit
        .unwrap_or(MAX_RESPONSE_BYTES)
        .min(MAX_RESPONSE_BYTES);
    let (mut out, mut given) = (String::new(), 0);
    let (mut at, mut next) = (0, args.from);
    for leaf in leaves {
        let (begins, ends) = (at, at + leaf.text.len());
        at = ends;
        // A part without text is shown when the reader reaches its position.
        let passed = ends < args.from || (ends == args.from && ends > begins);
        if passed {
            continue;
        }
        // The limit is used up, and this part has text.
        if given >= limit && begins < ends {
            break;
        }
        let start = leaf.text.floor_char_boundary(next.saturating_sub(begins));
        let mut stop = leaf
            .text
            .floor_char_boundary((start + limit.saturating_sub(given)).min(leaf.text.len()));
        if stop == start && start < leaf.text.len() {
            // Read at least one character, so that each call makes progress.
            stop = leaf.text.ceil_char_boundary(start + 1);
        }
        let continued = if start > 0 { ", continued" } else { "" };
        out.push_str(&messages.delimiting_line(&format!("{}{continued}", leaf.label)));
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
        out.push_str(&messages.delimiting_line(&format!(
            "cut at byte {next} of {size}: read_message with message: {message}, from: {next} goes on"
        )));
    }
    new_response(out, given, cut)
}

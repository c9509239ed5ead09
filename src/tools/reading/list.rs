//! `list_messages`.

use super::{ANSWER_MAX, Asked, Book, shown};
use crate::model::ToolResponse;

/// Messages listed where the call does not say.
const LIMIT: usize = 50;

pub(super) fn answer(book: &Book, asked: &Asked) -> ToolResponse {
    let limit = asked.limit.unwrap_or(LIMIT);
    let mut out = book.line(&format!("{} messages in all", book.messages));
    let mut next = asked.from;
    let mut lines = String::new();
    while next < book.messages && next - asked.from < limit {
        let before = lines.len();
        book.list_one(next, &mut lines);
        // A message of very many parts is cut off at its end, and is listed alone.
        if lines.len() > ANSWER_MAX && before > 0 {
            lines.truncate(before);
            break;
        }
        next += 1;
    }
    let mut cut = next < book.messages;
    if lines.len() > ANSWER_MAX {
        let end = lines[..lines.floor_char_boundary(ANSWER_MAX)]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        lines.truncate(end);
        lines.push_str(
            &book.line("the other parts of this message are not listed; read_message reads them"),
        );
        cut = true;
    }
    let bytes = lines.len();
    out.push_str(&lines);
    if next < book.messages {
        out.push_str(&book.line(&format!("more: list_messages with from: {next} goes on")));
    }
    shown(out, bytes, cut)
}

//! The tool `list_messages`.

use super::{JudgedMessages, MAX_RESPONSE_BYTES, TranscriptToolArgs, new_response};
use crate::model::ToolResponse;

/// The default number of listed messages.
const DEFAULT_LIST_LIMIT: usize = 50;

pub(super) fn list_messages(messages: &JudgedMessages, args: &TranscriptToolArgs) -> ToolResponse {
    let limit = args.limit.unwrap_or(DEFAULT_LIST_LIMIT);
    let mut out = messages.delimiting_line(&format!("{} messages in all", messages.message_count));
    let mut next = args.from;
    let mut lines = String::new();
    // A limit of entries and a limit of bytes, whichever comes first.
    while next < messages.message_count && next - args.from < limit {
        let before = lines.len();
        messages.list_message_parts(next, &mut lines);
        // A message with very many parts is listed alone and cut at the end.
        if lines.len() > MAX_RESPONSE_BYTES && before > 0 {
            lines.truncate(before);
            break;
        }
        next += 1;
    }
    let mut cut = next < messages.message_count;
    if lines.len() > MAX_RESPONSE_BYTES {
        // The cut is at the end of a line, so that no part is shown without its label.
        let end = lines[..lines.floor_char_boundary(MAX_RESPONSE_BYTES)]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        lines.truncate(end);
        lines.push_str(&messages.delimiting_line(
            "the other parts of this message are not listed; read_message reads them",
        ));
        cut = true;
    }
    let bytes = lines.len();
    out.push_str(&lines);
    if next < messages.message_count {
        out.push_str(
            &messages.delimiting_line(&format!("more: list_messages with from: {next} goes on")),
        );
    }
    new_response(out, bytes, cut)
}

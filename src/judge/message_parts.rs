//! A transcript in pieces: each part of each message with the label its delimiting line has.
//!
//! What the prompt shows, what the reading tools answer and what its key digests are these pieces, so that the three
//! cannot differ. Labels hold names of the transcript through `safe_name` alone.

use std::collections::HashMap;

use super::delimiter::{Delimiter, escape_name};
use crate::model::{MessageRole, Transcript, TranscriptMessage, TranscriptPart, count_invisible};
use crate::tools::transcript_tools::{JudgedMessages, MessagePart};

/// Raw parts of unknown kinds are shown up to this many characters.
const MAX_OTHER_CHARS: usize = 2000;

/// A whole transcript as the reading tools have it outside a trace: delimited by angles alone, since no judge relies on
/// it.
pub fn collect_judged_messages(transcript: &Transcript<'_>) -> JudgedMessages {
    JudgedMessages {
        parts: label_message_parts(&transcript.messages, None, false),
        message_count: transcript.messages.len(),
        delimiter: ("<<<".to_owned(), ">>>".to_owned()),
    }
}

/// The pieces of the messages, in order. `output` is the message to be judged, where it is one.
pub(super) fn label_message_parts(
    messages: &[TranscriptMessage<'_>],
    output: Option<usize>,
    hide_calls: bool,
) -> Vec<MessagePart> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut pieces = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let role = match &message.role {
            MessageRole::Other(name) => escape_name(name),
            known => known.as_str().to_owned(),
        };
        let mark = if output == Some(n) {
            ", the output to be judged"
        } else {
            ""
        };
        let before = pieces.len();
        let hidden_part = |part: &&TranscriptPart<'_>| {
            hide_calls
                && matches!(
                    part,
                    TranscriptPart::ToolCall(_) | TranscriptPart::ToolResult(_)
                )
        };
        // A message of nothing else is left out as a whole.
        if !message.parts.is_empty() && message.parts.iter().all(|part| hidden_part(&part)) {
            continue;
        }
        for part in message.parts.iter().filter(|part| !hidden_part(part)) {
            let (label, text) = match part {
                TranscriptPart::Text(text) => (
                    format!("[{n}] {role}{mark}{}", describe_invisible(text)),
                    text.to_string(),
                ),
                TranscriptPart::Reasoning(text) => (
                    format!("[{n}] {role} thinks{}", describe_invisible(text)),
                    text.to_string(),
                ),
                TranscriptPart::ToolCall(call) => {
                    if !call.id.is_empty() {
                        names.insert(&call.id, &call.name);
                    }
                    let name = escape_name(&call.name);
                    let id = format_call_id(&call.id);
                    (
                        format!(
                            "[{n}] {role} calls {name}{id}{}",
                            describe_invisible(&call.arguments)
                        ),
                        format!("{name}({})", &*call.arguments),
                    )
                }
                TranscriptPart::ToolResult(result) => {
                    let of = names
                        .get(&*result.call_id)
                        .map_or(String::new(), |name| format!(" of {}", escape_name(name)));
                    let id = format_call_id(&result.call_id);
                    let error = if result.is_error == Some(true) {
                        ", an error"
                    } else {
                        ""
                    };
                    (
                        format!(
                            "[{n}] {role} result{of}{id}{error}{}",
                            describe_invisible(&result.content)
                        ),
                        result.content.to_string(),
                    )
                }
                TranscriptPart::Media { kind, .. } => (
                    format!("[{n}] {role} attaches {}, not shown", escape_name(kind)),
                    String::new(),
                ),
                TranscriptPart::Other(raw) => {
                    let cut: String = raw.get().chars().take(MAX_OTHER_CHARS).collect();
                    let note = if cut.len() < raw.get().len() {
                        ", cut"
                    } else {
                        ""
                    };
                    let hidden = describe_invisible(&cut);
                    let label = format!("[{n}] {role}, a part of another kind{note}{hidden}");
                    (label, cut)
                }
            };
            pieces.push(MessagePart {
                message: n,
                label,
                text,
            });
        }
        if pieces.len() == before || (output == Some(n) && message.text().is_empty()) {
            pieces.push(MessagePart {
                message: n,
                label: format!("[{n}] {role}{mark}, no text"),
                text: String::new(),
            });
        }
    }
    pieces
}

fn format_call_id(id: &str) -> String {
    if id.is_empty() {
        String::new()
    } else {
        format!(" ({})", escape_name(id))
    }
}

/// Says how many characters a reader would not see: they are a way to speak to a judge behind the author's back.
pub(super) fn describe_invisible(text: &str) -> String {
    match count_invisible(text) {
        0 => String::new(),
        1 => ", holds 1 invisible character".to_owned(),
        n => format!(", holds {n} invisible characters"),
    }
}

/// Pieces, each after its delimiting line.
pub(super) fn render_message_parts(marker: &Delimiter, pieces: &[MessagePart]) -> String {
    let mut body = String::new();
    write_message_parts(&mut body, marker, pieces);
    body
}

/// Ends in a line break, or is empty.
pub(super) fn write_message_parts(out: &mut String, marker: &Delimiter, pieces: &[MessagePart]) {
    for piece in pieces {
        marker.write_line(out, &piece.label);
        out.push_str(&piece.text);
        if !piece.text.is_empty() && !piece.text.ends_with('\n') {
            out.push('\n');
        }
    }
}

/// How many messages there are, as it stands in a block's first line.
pub(super) fn format_message_count(end: usize) -> String {
    match end {
        0 => ": no messages".to_owned(),
        1 => ": 1 message, number 0".to_owned(),
        n => format!(": {n} messages, numbered 0 to {}", n - 1),
    }
}

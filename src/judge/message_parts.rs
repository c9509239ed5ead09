//! A transcript as labelled parts: each part of each message with the label of its delimiting line.
//!
//! The prompt, the tools that read the transcript, and the cache key all use these parts, so the three can't differ.
//! Names from the transcript enter labels only through [`escape_name`].

use std::collections::HashMap;

use super::delimiter::{Delimiter, escape_name};
use crate::model::{MessageRole, Transcript, TranscriptMessage, TranscriptPart, count_invisible};
use crate::tools::transcript_tools::{JudgedMessages, MessagePart};

/// The most characters shown of a part of an unknown kind.
const MAX_OTHER_CHARS: usize = 2000;

/// Returns a whole transcript for tools that run outside a judge trace.
///
/// Its delimiters are plain angle brackets, since no judge relies on them.
pub fn collect_judged_messages(transcript: &Transcript<'_>) -> JudgedMessages {
    JudgedMessages {
        parts: label_message_parts(&transcript.messages, None, false),
        message_count: transcript.messages.len(),
        delimiter: ("<<<".to_owned(), ">>>".to_owned()),
    }
}

/// Labels the parts of the messages, in order. `output` is the number of the message to be judged, if it is one.
pub(super) fn label_message_parts(
    messages: &[TranscriptMessage<'_>],
    output: Option<usize>,
    hide_calls: bool,
) -> Vec<MessagePart> {
    // Tool names by call id, because a tool result contains only the id.
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut parts = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let role = match &message.role {
            MessageRole::Other(name) => escape_name(name),
            // Only names of unknown roles come from the file, so only these need escaping.
            known => known.as_str().to_owned(),
        };
        let mark = if output == Some(n) {
            ", the output to be judged"
        } else {
            ""
        };
        // Remember the count, to see below whether this message has any line.
        let before = parts.len();
        let hidden_part = |part: &&TranscriptPart<'_>| {
            hide_calls
                && matches!(
                    part,
                    TranscriptPart::ToolCall(_) | TranscriptPart::ToolResult(_)
                )
        };
        // A message that contains only hidden calls or results is left out as a whole.
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
                    let tool_note = names
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
                            "[{n}] {role} result{tool_note}{id}{error}{}",
                            describe_invisible(&result.content)
                        ),
                        result.content.to_string(),
                    )
                }
                TranscriptPart::Media { kind, .. } => (
                    format!("[{n}] {role} attaches {}, not shown", escape_name(kind)),
                    String::new(),
                ),
                // A cut keeps a large unknown part, such as an image, from filling the prompt.
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
            parts.push(MessagePart {
                message: n,
                label,
                text,
            });
        }
        // Every message has a line, and the output has one even without text: the task refers to its number.
        if parts.len() == before || (output == Some(n) && message.text().is_empty()) {
            parts.push(MessagePart {
                message: n,
                label: format!("[{n}] {role}{mark}, no text"),
                text: String::new(),
            });
        }
    }
    parts
}

fn format_call_id(id: &str) -> String {
    if id.is_empty() {
        String::new()
    } else {
        format!(" ({})", escape_name(id))
    }
}

/// Returns a note with the number of characters that a reader doesn't see; empty if there are none.
///
/// Such characters can address a judge without the author's knowledge.
pub(super) fn describe_invisible(text: &str) -> String {
    match count_invisible(text) {
        0 => String::new(),
        1 => ", holds 1 invisible character".to_owned(),
        n => format!(", holds {n} invisible characters"),
    }
}

/// Renders parts, each after its delimiting line.
pub(super) fn render_message_parts(delimiter: &Delimiter, parts: &[MessagePart]) -> String {
    let mut body = String::new();
    write_message_parts(&mut body, delimiter, parts);
    body
}

/// Appends parts, each after its delimiting line. The result ends in a line break, or is empty.
pub(super) fn write_message_parts(out: &mut String, delimiter: &Delimiter, parts: &[MessagePart]) {
    for part in parts {
        delimiter.write_line(out, &part.label);
        out.push_str(&part.text);
        // The next delimiting line must begin a line, or the model can't recognize it.
        if !part.text.is_empty() && !part.text.ends_with('\n') {
            out.push('\n');
        }
    }
}

/// Formats the number of messages for the first line of a block.
pub(super) fn format_message_count(end: usize) -> String {
    match end {
        0 => ": no messages".to_owned(),
        1 => ": 1 message, number 0".to_owned(),
        n => format!(": {n} messages, numbered 0 to {}", n - 1),
    }
}

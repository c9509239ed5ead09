//! The output of `opencode run --format json`: one event per line, most of them with a part of a message.
//!
//! | event | becomes |
//! |---|---|
//! | `text`, `reasoning`, `tool_use` | parts of a message of the assistant, and the results of its calls |
//! | `step_finish` | the end of a message, with its tokens and its cost |
//! | `error` | `error` in the metadata |
//! | others | counted by kind |
//!
//! Responsible for one transcript per session. The stream does not contain the prompt of the user. Exported and stored
//! sessions are those of `opencode.rs`.

use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::opencode::{self, ToolOutcome, add_part, push_results, write_reply_metadata};
use super::record_readers::{Grouping, open_groups, parse_lines};
use super::transcript_builder::TranscriptBuilder;
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// The types of events with a part.
const PART_EVENTS: [&str; 5] = ["step_start", "step_finish", "tool_use", "text", "reasoning"];

/// Returns true for the stream of a session, and for an exported or a stored one.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    opencode::is_session(preview) || is_stream(preview)
}

/// Returns true if one of the first lines is an event with a part. Other output may come first.
fn is_stream(preview: &FilePreview<'_>) -> bool {
    preview.any_matches(|s| s.has("sessionID") && s.has("part") && s.type_starts_with(&PART_EVENTS))
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    if is_stream(preview) && !opencode::is_session(preview) {
        return Ok(open_groups(
            preview,
            Grouping {
                key: session_of,
                parse: parse_stream,
                without_group: "a line without a session",
            },
        ));
    }
    opencode::open(source, preview)
}

/// Returns the session of a line.
fn session_of(line: &[u8]) -> Option<String> {
    let fields = RawFields::from_bytes(line)?;
    Some(fields.id_text("sessionID")?.0.into_owned())
}

fn parse_stream(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let rows = parse_lines(lines, out);
    let first = rows.first().map(|(_, line)| line);
    let id = first.and_then(|line| line.id_text("sessionID"));
    let mut session = OpenCodeStream {
        built: TranscriptBuilder::new("opencode", id),
        ..OpenCodeStream::default()
    };
    let time = first.and_then(|line| line.get("timestamp"));
    session.built.meta.set_raw("timestamp", time);
    for (_, line) in &rows {
        session.add_line(line);
    }
    session.close_message(None);
    session.built.finish(out);
}

/// A session under construction.
#[derive(Debug, Default)]
struct OpenCodeStream<'a> {
    built: TranscriptBuilder,
    /// The id of the message that the next parts belong to.
    message: Option<SourceText<'a>>,
    parts: Vec<TranscriptPart<'static>>,
    results: Vec<ToolOutcome<'a>>,
    /// The time of the first part.
    timestamp: Option<&'a RawValue>,
}

impl<'a> OpenCodeStream<'a> {
    fn add_line(&mut self, line: &RawFields<'a>) {
        let kind = line.text("type").unwrap_or_default();
        let part = line.get("part");
        let part = part.and_then(|raw| Some((raw, RawFields::from_raw(raw)?)));
        let Some((raw, part)) = part else {
            match line.object("error") {
                Some(error) if &*kind == "error" => {
                    let data = error.object("data");
                    let text = data.as_ref().and_then(|data| data.get("message"));
                    let text = text.or_else(|| error.get("name"));
                    self.built.meta.set_raw("error", text);
                }
                _ => {
                    let kind = format!("a line of the type `{kind}`");
                    self.built.unknown.push(kind);
                }
            }
            return;
        };
        let message = part.id_text("messageID");
        if message != self.message {
            self.close_message(None);
            self.message = message;
        }
        self.timestamp = self.timestamp.or_else(|| line.get("timestamp"));
        if part.text("type").as_deref() == Some("step-finish") {
            self.close_message(Some(&part));
        } else {
            let no_details = RawFields::default();
            add_part(raw, &part, &no_details, &mut self.parts, &mut self.results);
        }
    }

    /// Ends a message. `end` has its tokens.
    fn close_message(&mut self, end: Option<&RawFields<'a>>) {
        let parts = std::mem::take(&mut self.parts);
        let timestamp = self.timestamp.take();
        if parts.is_empty() && end.is_none() {
            return;
        }
        self.built.push(MessageRole::Assistant, parts);
        if let Some(last) = self.built.messages.last_mut() {
            last.meta.set_raw("timestamp", timestamp);
            if let Some(end) = end {
                write_reply_metadata(end, &RawFields::default(), &mut last.meta);
                last.meta.set_raw("stop_reason", end.get("reason"));
            }
        }
        push_results(std::mem::take(&mut self.results), &mut self.built);
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{lines_of_each, read};

    #[test]
    fn each_session_of_a_file_is_a_transcript_and_other_output_is_counted() {
        let text = |session: &str, message: &str, text: &str| {
            format!(
                r#"{{"type":"text","timestamp":1,"sessionID":"{session}","part":{{"messageID":"{message}","type":"text","text":"{text}"}}}}"#
            )
        };
        let lines = [
            text("ses_1", "msg_1", "One"),
            text("ses_2", "msg_2", "Two"),
            r#"{"level":"info"}"#.to_owned(),
            text("ses_1", "msg_1", "more"),
            text("ses_1", "msg_3", "Three"),
        ];
        let (all, tally) = read(lines.join("\n").as_bytes());
        let wanted: [&[&str]; 2] = [
            &["assistant One | more", "assistant Three"],
            &["assistant Two"],
        ];
        assert_eq!(lines_of_each(&all), wanted);
        assert_eq!(tally.unknown_count(), 1, "{tally:?}");
    }
}

//! Gemini CLI's recorded chats (`~/.gemini/tmp/PROJECT/chats/session-*.json` and `.jsonl`).
//!
//! Responsible for one session per file, or per line that begins one. A message of the model has its thoughts, text and
//! calls; the calls have their results with them. Messages of the program (`info`, `error`, `warning`) are counted, not
//! read. Does not read `logs.json`, which has only the prompts, and checkpoints, which are Gemini contents.
//!
//! The lines of a `.jsonl` are a log of changes, as `chatRecordingService.ts` of Gemini CLI reads them:
//!
//! | line | meaning |
//! |---|---|
//! | a message with the `id` of an earlier one | replaces it: the program writes a message again once its calls have results |
//! | `{"$rewindTo": ID}` | the message and all after it leave the session; an unknown id removes all |
//! | `{"$set": {"messages": […]}}` | replaces all messages; other keys are those of the session |

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::exit_code::has_failed_command;
use super::foreign_message::{MessageInProgress, result_text};
use super::gemini_stream;
use super::record_readers::{NOT_JSON, line_text, open_records, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, owned_text, reasoning_part,
};
use crate::model::MessageRole;

/// Returns true for a stored session, and for the stream of one.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    is_stored(preview) || gemini_stream::is_stream(preview)
}

/// Returns true if the first record is a session. One with messages of the model may lack the hash of its project.
fn is_stored(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("sessionId") && (s.has("projectHash") || s.has("messages")))
        && {
            let first = preview.first_outline();
            let messages = first["messages"].as_array().into_iter().flatten();
            let mut kinds = messages.map(|message| &message["type"]);
            !first["projectHash"].is_null() || kinds.any(|kind| *kind == "gemini")
        }
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if !is_stored(preview) {
        gemini_stream::open(preview)
    } else if preview.first_matches(|s| s.has("messages")) {
        open_records(preview, parse_session)
    } else {
        open_sessions(preview, starts_session, parse_lines)
    }
}

/// The messages of a session, as the latest lines have them.
#[derive(Debug, Default)]
struct SessionMessages<'a> {
    messages: Vec<RawFields<'a>>,
    /// The positions of the messages by their ids.
    positions: HashMap<String, usize>,
    /// The number of messages that the user took back.
    rewound: usize,
}

impl<'a> SessionMessages<'a> {
    /// Adds a message, or replaces the one with its id.
    fn add(&mut self, message: RawFields<'a>) {
        let next = self.messages.len();
        let position = match message.id_text("id") {
            Some(id) => *self.positions.entry(id.0.into_owned()).or_insert(next),
            None => next,
        };
        match self.messages.get_mut(position) {
            Some(earlier) => *earlier = message,
            None => self.messages.push(message),
        }
    }

    /// Adds all messages of a list. Counts the others.
    fn add_all(&mut self, list: Vec<&'a RawValue>, built: &mut TranscriptBuilder) {
        for raw in list {
            match RawFields::from_raw(raw) {
                Some(message) => self.add(message),
                None => built.count_unknown_message(),
            }
        }
    }

    /// Removes a message and all after it. Without such a message, all leave the session.
    fn rewind_to(&mut self, id: &str) {
        let from = self.positions.get(id).copied().unwrap_or_default();
        self.rewound += self.messages.len().saturating_sub(from);
        for message in self.messages.drain(from.min(self.messages.len())..) {
            if let Some(id) = message.id_text("id") {
                self.positions.remove(&*id);
            }
        }
    }

    /// Adds the messages to the transcript.
    fn finish(self, built: &mut TranscriptBuilder) {
        for message in &self.messages {
            add_message(message, built);
        }
        if self.rewound > 0 {
            built.meta.set("messages_rewound", self.rewound);
        }
    }
}

fn parse_session(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = begin_session(&fields);
    let list = fields.list("messages").unwrap_or_default();
    out.count_elements(list.len());
    let mut messages = SessionMessages::default();
    messages.add_all(list, &mut built);
    messages.finish(&mut built);
    built.finish(out);
    Ok(())
}

fn starts_session(line: &[u8]) -> bool {
    let fields = RawFields::from_bytes(line);
    fields.is_some_and(|fields| fields.has("sessionId") && fields.has("projectHash"))
}

fn parse_lines(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut built = TranscriptBuilder::new("gemini-cli", None);
    let mut messages = SessionMessages::default();
    for (at, line) in lines.iter().enumerate() {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        let Ok(fields) = RawFields::parse(text) else {
            built.unknown.push(NOT_JSON.to_owned());
            continue;
        };
        if at == 0 && fields.has("sessionId") {
            built = begin_session(&fields);
        } else if let Some(change) = fields.object("$set") {
            built.meta.set_raw("summary", change.get("summary"));
            if let Some(list) = change.list("messages") {
                messages = SessionMessages {
                    rewound: messages.rewound,
                    ..SessionMessages::default()
                };
                messages.add_all(list, &mut built);
            }
        } else if let Some(id) = fields.id_text("$rewindTo") {
            messages.rewind_to(&id);
        } else {
            messages.add(fields);
        }
    }
    messages.finish(&mut built);
    built.finish(out);
}

fn begin_session(fields: &RawFields<'_>) -> TranscriptBuilder {
    let mut built = TranscriptBuilder::new("gemini-cli", fields.id_text("sessionId"));
    built.meta.set_raw("timestamp", fields.get("startTime"));
    built.meta.set_raw("summary", fields.get("summary"));
    built.meta.set_raw("project", fields.get("projectHash"));
    built
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let kind = message.text("type").unwrap_or_default();
    let role = match &*kind {
        "user" => MessageRole::User,
        "gemini" => MessageRole::Assistant,
        _ => {
            built
                .unknown
                .push(format!("a message of the type `{kind}`"));
            return;
        }
    };
    let before = built.messages.len();
    let mut parts = Vec::new();
    for raw in message.list("thoughts").unwrap_or_default() {
        let Some(thought) = RawFields::from_raw(raw) else {
            continue;
        };
        let texts = ["subject", "description"];
        let texts: Vec<_> = texts.iter().filter_map(|key| thought.text(key)).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        parts.push(reasoning_part(&texts.join("\n")));
    }
    let mut progress = MessageInProgress::new(role.clone(), built);
    progress.parts = parts;
    if let Some(content) = message.get("content") {
        progress.add_content(content);
    }
    let calls = message.list("toolCalls").unwrap_or_default();
    for raw in &calls {
        let Some(call) = RawFields::from_raw(raw) else {
            continue;
        };
        let id = call.id_text("id").unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        progress
            .parts
            .push(call_part(&id, &name, call_arguments(call.get("args"))));
    }
    progress.finish();
    for raw in calls {
        match RawFields::from_raw(raw) {
            Some(call) => add_result(&call, built),
            None => built
                .unknown
                .push("a call that is not an object".to_owned()),
        }
    }
    let Some(message_built) = built.messages.get_mut(before) else {
        return;
    };
    message_built
        .meta
        .set_raw("timestamp", message.get("timestamp"));
    if role == MessageRole::Assistant {
        message_built.meta.set_raw("model", message.get("model"));
        if let Some(tokens) = message.object("tokens") {
            let usage = SourceUsage {
                input: tokens.integer("input"),
                // `output` is the visible text alone.
                output: tokens.integer("output").map(|visible| {
                    visible.saturating_add(tokens.integer("thoughts").unwrap_or_default())
                }),
                total: tokens.integer("total"),
                cached: tokens.integer("cached"),
                thinking: tokens.integer("thoughts"),
            };
            message_built.meta.set("usage", usage.to_json());
        }
    }
}

fn add_result(call: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let Some(raw) = call.get_first(&["result", "resultDisplay"]) else {
        return;
    };
    let responses = list_items(raw).unwrap_or_default();
    let mut has_error = false;
    let texts = responses.iter().filter_map(|raw| {
        let response = RawFields::from_raw(raw)?.object("functionResponse")?;
        let response = response.get("response")?;
        let fields = RawFields::from_raw(response).unwrap_or_default();
        let error = fields.get("error");
        let error = error.filter(|error| !matches!(error.get(), "\"\"" | "false"));
        has_error |= error.is_some();
        Some(owned_text(match (fields.get("output"), error) {
            (Some(text), None) | (None, Some(text)) => text,
            // With both, or with keys of the tool's own, the whole response is the text.
            _ => response,
        }))
    });
    let texts: Vec<String> = texts.collect();
    let content = if texts.is_empty() {
        result_text(raw)
    } else {
        texts.join("\n")
    };
    let name = call.text("name").unwrap_or_default();
    let is_error = match call.text("status").as_deref() {
        // A command that ran is a success to the program, whatever its exit code.
        _ if has_error || has_failed_command(&name, &content) => Some(true),
        Some("success") => Some(false),
        Some("error") => Some(true),
        _ => None,
    };
    let id = call.id_text("id").unwrap_or_default();
    built.push_result(&id, content, is_error);
    if let Some(last) = built.messages.last_mut() {
        last.meta.set_raw("timestamp", call.get("timestamp"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    const HEADER: &str = r#"{"sessionId":"s-1","projectHash":"9da8","startTime":"2026-04-23T12:52:52.759Z","kind":"main"}"#;

    /// Returns the messages of a session with these lines after its first one.
    fn lines_of(lines: &[&str]) -> Vec<String> {
        let text = format!("{HEADER}\n{}\n", lines.join("\n"));
        let (all, tally) = read(text.as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(all.len(), 1);
        message_lines(all[0].as_ref().expect("a session"))
    }

    #[test]
    fn message_that_is_written_again_replaces_the_earlier_one() {
        let lines = [
            r#"{"id":"u1","type":"user","content":[{"text":"Read a."}]}"#,
            r#"{"id":"g1","type":"gemini","content":"","model":"gemini-3"}"#,
            r#"{"$set":{"lastUpdated":"2026-04-23T12:53:11.257Z"}}"#,
            r#"{"id":"g1","type":"gemini","content":"","model":"gemini-3","toolCalls":[{"id":"c1","name":"read_file","args":{"path":"a"},"status":"success","result":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"text"}}}]}]}"#,
            r#"{"id":"g2","type":"gemini","content":"Done.","model":"gemini-3"}"#,
        ];
        assert_eq!(
            lines_of(&lines),
            [
                "user Read a.",
                r#"assistant read_file({"path":"a"})"#,
                "tool text",
                "assistant Done.",
            ]
        );
    }

    #[test]
    fn messages_that_were_taken_back_leave_the_session() {
        let lines = [
            r#"{"id":"u1","type":"user","content":"One"}"#,
            r#"{"id":"g1","type":"gemini","content":"Wrong"}"#,
            r#"{"$rewindTo":"g1"}"#,
            r#"{"id":"g1","type":"gemini","content":"Right"}"#,
        ];
        assert_eq!(lines_of(&lines), ["user One", "assistant Right"]);
        let all = [lines[0], r#"{"$rewindTo":"x"}"#, lines[3]];
        assert_eq!(lines_of(&all), ["assistant Right"]);
    }

    #[test]
    fn set_messages_replace_all_earlier_ones() {
        let lines = [
            r#"{"id":"u1","type":"user","content":"Long"}"#,
            r#"{"$set":{"messages":[{"id":"u2","type":"user","content":"Short"}]}}"#,
            r#"{"id":"g2","type":"gemini","content":"Yes"}"#,
        ];
        assert_eq!(lines_of(&lines), ["user Short", "assistant Yes"]);
    }

    #[test]
    fn session_without_the_hash_of_its_project_is_read() {
        let text = r#"{"sessionId":"s-1","messages":[{"type":"user","content":"Hi"},{"type":"gemini","content":"Hello"}]}"#;
        let (all, _) = read(text.as_bytes());
        let session = all[0].as_ref().expect("a session");
        assert_eq!(message_lines(session), ["user Hi", "assistant Hello"]);
    }

    #[test]
    fn exit_code_and_error_of_a_response_state_an_error() {
        let error_of = |name: &str, response: &str| {
            let call = format!(
                r#"{{"id":"g1","type":"gemini","content":"","toolCalls":[{{"id":"c1","name":"{name}","args":{{}},"status":"success","result":[{{"functionResponse":{{"id":"c1","name":"{name}","response":{response}}}}}]}}]}}"#
            );
            let (all, _) = read(format!("{HEADER}\n{call}\n").as_bytes());
            let session = all[0].as_ref().expect("a session");
            session["messages"][1]["metadata"]["is_error"].clone()
        };
        let ended =
            |code: u8| format!(r#"{{"output":"Command: ls\nExit Code: {code}\nSignal: 0"}}"#);
        assert_eq!(error_of("run_shell_command", &ended(0)), false);
        assert_eq!(error_of("run_shell_command", &ended(2)), true);
        assert_eq!(error_of("read_file", &ended(2)), false);
        assert_eq!(
            error_of("run_shell_command", r#"{"error":"rejected"}"#),
            true
        );
        let empty = r#"{"output":"a","error":""}"#;
        assert_eq!(error_of("read_file", empty), false);
    }

    #[test]
    fn response_with_output_and_error_keeps_both() {
        let call = r#"{"id":"g1","type":"gemini","content":"","toolCalls":[{"id":"c1","name":"f","args":{},"result":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"a","error":"b"}}}]}]}"#;
        let (all, _) = read(format!("{HEADER}\n{call}\n").as_bytes());
        let session = all[0].as_ref().expect("a session");
        assert_eq!(
            session["messages"][1]["content"],
            r#"{"output":"a","error":"b"}"#
        );
    }
}

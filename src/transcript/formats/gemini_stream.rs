//! The output of `gemini --output-format stream-json`: one event per line.
//!
//! | event | becomes |
//! |---|---|
//! | `init` | the id and the model of a session |
//! | `message` | a message; pieces of one (`delta`) are joined |
//! | `tool_use`, `tool_result` | a call and its result |
//! | `error` | `error` or `warning` in the metadata |
//! | `result` | the tokens, the time, and the error that ended the session |
//! | others | counted by kind |
//!
//! Responsible for one transcript per session. A command that ran is a success to the program, whatever its exit code, so
//! such a result does not state how the command ended. The stored sessions of Gemini CLI are those of `gemini_cli.rs`.

use std::collections::HashMap;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{
    PerSessionReader, RecordCx, SessionParser, TranscriptReader, TranscriptSink, record_text,
};
use super::exit_code::{SHELL_TOOL, has_failed_command};
use super::record_readers::parse_lines;
use super::transcript_builder::{TranscriptBuilder, call_arguments, owned_text, role_of};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// Returns true if one of the first lines begins a session or is a call. A program may write lines of its own before.
pub(super) fn is_stream(preview: &FilePreview<'_>) -> bool {
    preview.any_matches(|s| {
        let is_init =
            s.type_starts_with(&["init"]) && ["session_id", "model"].iter().all(|key| s.has(key));
        let is_call = s.type_starts_with(&["tool_use"])
            && ["tool_name", "tool_id", "parameters"]
                .iter()
                .all(|key| s.has(key));
        is_init || is_call
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        GeminiStreamParser::default(),
    ))
}

#[derive(Debug, Default)]
struct GeminiStreamParser {
    /// True after the first `init` of the file.
    has_begun: bool,
}

impl SessionParser for GeminiStreamParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        // Lines before the first `init` belong to its session.
        is_init(line) && std::mem::replace(&mut self.has_begun, true)
    }

    fn parse_session(&self, lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
        let mut session = GeminiStream {
            built: TranscriptBuilder::new("gemini-cli", None),
            ..GeminiStream::default()
        };
        for (_, line) in parse_lines(lines, out) {
            session.add_line(&line);
        }
        session.built.finish(out);
    }
}

/// Returns true if a line begins a session.
fn is_init(line: &[u8]) -> bool {
    // The type is at the beginning of the line; a scan of every long line would be slow.
    let begin = &line[..line.len().min(64)];
    memchr::memmem::find(begin, b"\"init\"").is_some()
        && record_text(line)
            .and_then(RawFields::parse)
            .is_ok_and(|line| line.text("type").as_deref() == Some("init"))
}

/// A session under construction.
#[derive(Debug, Default)]
struct GeminiStream<'a> {
    built: TranscriptBuilder,
    model: Option<SourceText<'a>>,
    /// The tools of the calls, by call id.
    tools: HashMap<String, SourceText<'a>>,
    /// True if the last line was a piece of the assistant's message.
    is_in_pieces: bool,
}

impl<'a> GeminiStream<'a> {
    fn add_line(&mut self, line: &RawFields<'a>) {
        let before = self.built.messages.len();
        let kind = line.text("type").unwrap_or_default();
        let was_in_pieces = std::mem::take(&mut self.is_in_pieces);
        match &*kind {
            "init" => {
                let id = line.id_text("session_id").unwrap_or_default();
                self.built.id = id.0.into_owned();
                let meta = &mut self.built.meta;
                meta.set_raw("timestamp", line.get("timestamp"));
                meta.set_raw("model", line.get("model"));
                self.model = line.text("model");
            }
            "message" => self.add_message(line, was_in_pieces),
            "tool_use" => {
                let id = line.id_text("tool_id").unwrap_or_default();
                let name = line.text("tool_name").unwrap_or_default();
                let arguments = call_arguments(line.get("parameters"));
                self.built.push_call(&id, &name, arguments);
                self.tools.insert(id.0.into_owned(), name);
            }
            "tool_result" => self.add_result(line),
            "error" => {
                let is_warning = line.text("severity").as_deref() == Some("warning");
                let key = if is_warning { "warning" } else { "error" };
                self.built.meta.set_raw(key, line.get("message"));
            }
            "result" => self.add_outcome(line),
            other => {
                let kind = format!("a line of the type `{other}`");
                self.built.unknown.push(kind);
            }
        }
        for message in &mut self.built.messages[before..] {
            message.meta.set_raw("timestamp", line.get("timestamp"));
            if let (MessageRole::Assistant, Some(model)) = (&message.role, &self.model) {
                message.meta.set("model", &**model);
            }
        }
    }

    fn add_message(&mut self, line: &RawFields<'a>, was_in_pieces: bool) {
        let role = line.text("role").unwrap_or_default();
        let role = role_of(&role);
        let text = line.get("content").map(owned_text).unwrap_or_default();
        self.is_in_pieces =
            role == MessageRole::Assistant && line.flag("delta").unwrap_or_default();
        if self.is_in_pieces
            && was_in_pieces
            && let Some(last) = self.built.messages.last_mut()
            && let Some(TranscriptPart::Text(before)) = last.parts.last_mut()
        {
            before.0.to_mut().push_str(&text);
        } else {
            self.built.push_text(role, &text);
        }
    }

    fn add_result(&mut self, line: &RawFields<'a>) {
        let id = line.id_text("tool_id").unwrap_or_default();
        let output = line.get("output").map(owned_text);
        let error = line.object("error");
        let error = error.and_then(|error| error.text_or_json("message"));
        // The output of a failed call repeats the error.
        let content = output.filter(|text| !text.is_empty());
        let content = content.or_else(|| error.map(|text| text.0.into_owned()));
        let content = content.unwrap_or_default();
        let tool = self.tools.get(&*id).map_or("", |tool| &**tool);
        let is_error = match line.text("status").as_deref() {
            Some("error") => Some(true),
            _ if has_failed_command(tool, &content) => Some(true),
            Some("success") if tool != SHELL_TOOL => Some(false),
            _ => None,
        };
        self.built.push_result(&id, content, is_error);
    }

    fn add_outcome(&mut self, line: &RawFields<'a>) {
        let meta = &mut self.built.meta;
        if let Some(error) = line.object("error") {
            meta.set_raw("error", error.get("message"));
        }
        let Some(stats) = line.object("stats") else {
            return;
        };
        let usage = SourceUsage {
            input: stats.integer("input_tokens"),
            // The tokens of thoughts are only in the total.
            output: stats.integer("output_tokens"),
            total: stats.integer("total_tokens"),
            cached: stats.integer("cached"),
            thinking: None,
        };
        meta.set("usage", usage.to_json());
        // A session that failed has the time 0.
        if stats.number("duration_ms").is_some_and(|time| time > 0.0) {
            meta.set_raw("latency_ms", stats.get("duration_ms"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{lines_of_each, read};

    #[test]
    fn each_init_after_the_first_one_begins_a_session() {
        let message = |role: &str, text: &str| {
            format!(r#"{{"type":"message","role":"{role}","content":"{text}"}}"#)
        };
        let init = |id: &str| format!(r#"{{"type":"init","session_id":"{id}","model":"m"}}"#);
        let lines = [
            message("user", "A line of another program"),
            init("s-1"),
            message("assistant", "One"),
            init("s-2"),
            message("assistant", "Two"),
            message("assistant", "Three"),
        ];
        let (all, tally) = read(lines.join("\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        let ids = all
            .iter()
            .map(|one| one.as_ref().expect("a session")["id"].clone());
        assert_eq!(ids.collect::<Vec<_>>(), ["s-1", "s-2"]);
        let wanted: [&[&str]; 2] = [
            &["user A line of another program", "assistant One"],
            &["assistant Two", "assistant Three"],
        ];
        assert_eq!(lines_of_each(&all), wanted);
    }

    #[test]
    fn success_of_the_shell_does_not_state_how_the_command_ended() {
        let outcome = |tool: &str, output: &str| {
            let lines = [
                r#"{"type":"init","session_id":"s-1","model":"m"}"#.to_owned(),
                format!(
                    r#"{{"type":"tool_use","tool_name":"{tool}","tool_id":"c1","parameters":{{}}}}"#
                ),
                format!(
                    r#"{{"type":"tool_result","tool_id":"c1","status":"success","output":"{output}"}}"#
                ),
            ];
            let (all, _) = read(lines.join("\n").as_bytes());
            let session = all[0].as_ref().expect("a session");
            session["messages"][1]["metadata"]["is_error"].clone()
        };
        assert!(outcome("run_shell_command", "> vite build").is_null());
        assert_eq!(
            outcome("run_shell_command", r"Output: a\nExit Code: 2"),
            true
        );
        assert_eq!(outcome("read_file", "a"), false);
    }
}

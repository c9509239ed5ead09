//! Sessions of the agent Goose.
//!
//! | file | one session is |
//! |---|---|
//! | a session file, until version 1.9 | a header with `working_dir`, and a message per line |
//! | `goose session export --format json`, `goose run --output-format json` | an object with `conversation` or `messages` |
//! | `goose run --output-format stream-json` | a line per part of a message |
//!
//! Responsible for messages, calls and results. Messages that only the model sees, such as summaries, are system messages. Of
//! a result, dicta reads what the model sees. Its database has the same messages: see
//! `databases.rs`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::{open_records, open_sessions, parse_lines};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, media_part, owned_text, owned_unknown_part,
    reasoning_part, role_of, text_part,
};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// Returns true if the file has a session, an export, or the output of a run.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    let second = preview.records.get(1);
    let second = second.map(|seen| seen.sniff.outline(seen.bytes));
    let is_after_header =
        second.is_some_and(|line| line["role"].is_string() && line["content"].is_array());
    (is_header(first) && is_after_header)
        || is_export(first)
        || preview
            .records
            .iter()
            .filter(|seen| seen.sniff.type_starts_with(&["message"]))
            .any(|seen| is_stream_line(seen.sniff.outline(seen.bytes)))
}

fn is_header(record: &Value) -> bool {
    record["working_dir"].is_string()
        && (record["message_count"].is_number() || record["description"].is_string())
        && !is_export(record)
}

fn is_export(record: &Value) -> bool {
    let is_session = record["working_dir"].is_string() && record["conversation"].is_array();
    is_session
        || record["messages"]
            .as_array()
            .is_some_and(|all| all.iter().any(is_message))
}

/// Returns true for a message with a mark of Goose.
fn is_message(message: &Value) -> bool {
    let is_part = |part: &Value| {
        part["toolCall"].is_object() && part["type"] == "toolRequest"
            || part["toolResult"].is_object() && part["type"] == "toolResponse"
    };
    let has_part = message["content"].as_array();
    has_part.is_some_and(|all| all.iter().any(is_part))
        || (message["created"].is_number() && message["metadata"]["agentVisible"].is_boolean())
}

fn is_stream_line(line: &Value) -> bool {
    let message = &line["message"];
    is_message(message)
        || (message["role"].is_string()
            && message["created"].is_number()
            && message["content"].is_array())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if is_export(preview.first_outline()) {
        return open_records(preview, parse_export);
    }
    open_sessions(preview, starts_session, parse_session)
}

fn starts_session(line: &[u8]) -> bool {
    let fields = RawFields::from_bytes(line);
    fields.is_some_and(|fields| fields.has("working_dir") && !fields.has("role"))
}

/// Adds the transcript of an exported session.
pub(super) fn parse_export(
    record: &str,
    _cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let messages = ["conversation", "messages"];
    let messages = messages.iter().find_map(|key| outer.list(key));
    let messages = messages
        .ok_or_else(|| "it is not a session: it has no `conversation` or `messages`".to_owned())?;
    let mut session = GooseSession::new(outer.id_text("id"));
    session.write_metadata(&outer);
    for raw in messages {
        match RawFields::from_raw(raw) {
            Some(message) => session.add_message(&message),
            None => session.built.count_unknown_message(),
        }
    }
    session.built.finish(out);
    Ok(())
}

fn parse_session(lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut session = GooseSession::new(None);
    for (_, line) in parse_lines(lines, out) {
        session.add_line(&line);
    }
    session.built.finish(out);
}

/// A session under construction.
struct GooseSession {
    built: TranscriptBuilder,
    /// The id of the last message: a stream writes a message in parts with the same id.
    last_id: String,
}

impl GooseSession {
    fn new(id: Option<SourceText<'_>>) -> Self {
        Self {
            built: TranscriptBuilder::new("goose", id),
            last_id: String::new(),
        }
    }

    fn write_metadata(&mut self, fields: &RawFields<'_>) {
        let meta = &mut self.built.meta;
        meta.set_raw("title", fields.get_first(&["name", "description"]));
        meta.set_raw("cwd", fields.get("working_dir"));
        meta.set_raw("timestamp", fields.get("created_at"));
        meta.set_raw("provider", fields.get("provider_name"));
        let model = fields.object("model_config").unwrap_or_default();
        meta.set_raw("model", model.get("model_name"));
        // `total_tokens` is the size of the last request.
        let usage = SourceUsage {
            input: fields.integer("accumulated_input_tokens"),
            output: fields.integer("accumulated_output_tokens"),
            total: fields.integer("accumulated_total_tokens"),
            ..SourceUsage::default()
        };
        meta.set("usage", usage.to_json());
        let run = fields.object("metadata").unwrap_or_default();
        meta.set_raw("status", run.get("status"));
    }

    fn add_line(&mut self, line: &RawFields<'_>) {
        if line.has("role") {
            return self.add_message(line);
        }
        let kind = line.text("type").unwrap_or_default();
        match (&*kind, line.object("message")) {
            ("message", Some(message)) => self.add_message(&message),
            ("error", _) => {
                self.built.meta.set_raw("error", line.get("error"));
            }
            // The output of a tool while it runs, and the tokens of the last request.
            ("notification" | "complete", _) => {}
            _ if line.has("working_dir") => self.write_metadata(line),
            _ => self
                .built
                .unknown
                .push(format!("a line of the type `{kind}`")),
        }
    }

    fn add_message(&mut self, message: &RawFields<'_>) {
        let role = role_of(&message.text("role").unwrap_or_default());
        let id = message.id_text("id").unwrap_or_default();
        let last = self.built.messages.last();
        let continues =
            !id.is_empty() && *id == *self.last_id && last.is_some_and(|last| last.role == role);
        self.last_id = id.0.into_owned();
        let visible = message.object("metadata").unwrap_or_default();
        let before = self.built.messages.len();
        let mut parts = MessageParts {
            is_hidden: visible.flag("userVisible") == Some(false),
            role,
            continues,
            parts: Vec::new(),
            built: &mut self.built,
        };
        match message.get("content").map(|raw| (raw, list_items(raw))) {
            Some((_, Some(all))) => all.iter().for_each(|part| parts.add_part(part)),
            Some((raw, None)) => parts.add_part(raw),
            None => {}
        }
        // A message without content remains visible, because it has a role.
        if !parts.parts.is_empty() || (!continues && parts.built.messages.len() == before) {
            parts.flush();
        }
        if let Some(last) = self
            .built
            .messages
            .get_mut(before..)
            .and_then(<[_]>::last_mut)
        {
            last.meta.set_raw("timestamp", message.get("created"));
        }
    }
}

/// The parts of a message that are not written yet.
struct MessageParts<'b> {
    role: MessageRole<'static>,
    /// True if only the model sees the message.
    is_hidden: bool,
    /// True if the parts belong to the last message.
    continues: bool,
    parts: Vec<TranscriptPart<'static>>,
    built: &'b mut TranscriptBuilder,
}

impl MessageParts<'_> {
    fn add_part(&mut self, raw: &RawValue) {
        if let Some(text) = json_string(raw) {
            return self.parts.push(text_part(&text));
        }
        let part = RawFields::from_raw(raw).unwrap_or_default();
        let kind = part.text("type").unwrap_or_default();
        match &*kind {
            "text" => {
                let text = part.text("text").unwrap_or_default();
                if !text.is_empty() {
                    self.parts.push(text_part(&text));
                }
            }
            "thinking" | "reasoning" => {
                let thought = ["thinking", "text"];
                let thought = thought.iter().find_map(|key| part.text(key));
                if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
                    self.parts.push(reasoning_part(&thought));
                }
            }
            "image" => self.parts.push(media_part("image", raw)),
            "toolRequest" | "frontendToolRequest" => match read_call(&part) {
                Some(call) => self.parts.push(call),
                None => self.parts.push(owned_unknown_part(raw)),
            },
            "toolResponse" => self.add_result(&part),
            // The question to the user whether a call may run.
            "toolConfirmationRequest" => {}
            "actionRequired" if asks_for_a_call(&part) => {}
            "systemNotification" | "contextLengthExceeded" | "summarizationRequested" => {
                self.flush_parts();
                let text = part.text("msg").unwrap_or_default();
                self.built.push_text(MessageRole::System, &text);
            }
            _ => self.parts.push(owned_unknown_part(raw)),
        }
    }

    fn add_result(&mut self, part: &RawFields<'_>) {
        self.flush_parts();
        let id = part.id_text("id").unwrap_or_default();
        let result = part.object("toolResult").unwrap_or_else(|| part.clone());
        if result.text("status").as_deref() == Some("error") {
            let error = result.get("error").map(owned_text);
            self.built
                .push_result(&id, error.unwrap_or_default(), Some(true));
            return;
        }
        // Until version 1.8, the value is the list itself.
        let value = result.object("value").unwrap_or_else(|| result.clone());
        let content = value.get_first(&["content", "value"]);
        let content = content.filter(|raw| raw.get() != "[]");
        let content = content.or_else(|| value.get("structuredContent"));
        let (text, media) = content.map(split_result).unwrap_or_default();
        let is_success = result.text("status").is_some().then_some(false);
        let is_error = value.flag("isError").or(is_success);
        self.built.push_result(&id, text, is_error);
        if let Some(last) = self.built.messages.last_mut() {
            last.parts.extend(media);
        }
    }

    fn flush_parts(&mut self) {
        if !self.parts.is_empty() {
            self.flush();
        }
        self.continues = false;
    }

    fn flush(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        let is_text = |part: &TranscriptPart<'_>| matches!(part, TranscriptPart::Text(_));
        let last = self.built.messages.last_mut();
        if let Some(last) = last.filter(|_| self.continues) {
            for part in parts {
                match (last.parts.last_mut(), part) {
                    (Some(TranscriptPart::Text(text)), TranscriptPart::Text(more))
                    | (Some(TranscriptPart::Reasoning(text)), TranscriptPart::Reasoning(more)) => {
                        text.0.to_mut().push_str(&more);
                    }
                    (_, part) => last.parts.push(part),
                }
            }
        } else if self.is_hidden && !parts.is_empty() && parts.iter().all(is_text) {
            self.built.push(MessageRole::System, parts);
        } else {
            self.built.push(self.role.clone(), parts);
        }
    }
}

/// Returns the call of a part; `None` if Goose could not read the model's call.
fn read_call(part: &RawFields<'_>) -> Option<TranscriptPart<'static>> {
    let call = part.object("toolCall")?;
    let value = call.object("value").unwrap_or(call);
    let id = part.id_text("id").unwrap_or_default();
    let name = value.text("name")?;
    Some(call_part(
        &id,
        &name,
        call_arguments(value.get("arguments")),
    ))
}

fn asks_for_a_call(part: &RawFields<'_>) -> bool {
    let data = part.object("data").unwrap_or_default();
    data.text("actionType").as_deref() == Some("toolConfirmation")
}

/// Splits a result into the text and the images that the model sees.
fn split_result(raw: &RawValue) -> (String, Vec<TranscriptPart<'static>>) {
    let Some(items) = list_items(raw) else {
        return (owned_text(raw), Vec::new());
    };
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for raw in items {
        let item = RawFields::from_raw(raw).unwrap_or_default();
        let annotations = item.object("annotations").unwrap_or_default();
        let audience = annotations.list("audience");
        let is_for_model =
            |all: &Vec<&RawValue>| all.iter().any(|one| one.get() == "\"assistant\"");
        // Tools write a text twice: for the user and for the model.
        if audience.as_ref().is_some_and(|all| !is_for_model(all)) {
            continue;
        }
        let text = item.text("text");
        let text = text.or_else(|| item.object("resource")?.text("text"));
        match (text, item.text("type").as_deref()) {
            (Some(text), _) => texts.push(text.0.into_owned()),
            (None, Some("image")) => media.push(media_part("image", raw)),
            (None, _) => texts.push(owned_text(raw)),
        }
    }
    (texts.join("\n"), media)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    fn read_one(records: &[Value]) -> (Value, Vec<(String, u64)>) {
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        let (mut all, tally) = read(lines.join("\n").as_bytes());
        assert_eq!(all.len(), 1);
        let transcript = all.remove(0).expect("a transcript");
        (transcript, tally.unknown.into_iter().collect())
    }

    fn call() -> Value {
        json!({"type": "toolRequest", "id": "c1", "toolCall": {"status": "success",
            "value": {"name": "developer__shell", "arguments": {"command": "ls"}}}})
    }

    #[test]
    fn parts_of_a_streamed_message_are_one_message() {
        let part = |part: Value| json!({"type": "message", "message": {"id": "m1", "role": "assistant", "created": 2, "content": [part]}});
        let result = json!({"type": "toolResponse", "id": "c1",
            "toolResult": {"status": "error", "error": "denied"}});
        let (transcript, unknown) = read_one(&[
            part(json!({"type": "text", "text": "I lo"})),
            part(json!({"type": "text", "text": "ok."})),
            part(call()),
            json!({"type": "notification", "extension_id": "developer", "log": {"message": "x"}}),
            json!({"type": "message", "message": {"id": "m2", "role": "user", "created": 3, "content": [result]}}),
            json!({"type": "complete", "total_tokens": 15}),
        ]);
        assert_eq!(
            message_lines(&transcript),
            [
                r#"assistant I look. | developer__shell({"command":"ls"})"#,
                "tool denied",
            ]
        );
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn output_of_a_run_has_what_the_model_saw() {
        let result = json!({"type": "toolResponse", "id": "c1", "toolResult": {"status": "success", "value": [
            {"type": "text", "text": "a.txt", "annotations": {"audience": ["assistant"]}},
            {"type": "text", "text": "a.txt", "annotations": {"audience": ["user"], "priority": 0.0}},
        ]}});
        let (transcript, unknown) = read_one(&[json!({
            "messages": [
                {"id": "m1", "role": "user", "created": 1, "content": [{"type": "text", "text": "List."}]},
                {"id": "m2", "role": "assistant", "created": 2, "content": [call()]},
                {"id": "m3", "role": "user", "created": 3, "content": [result]},
                {"id": "m4", "role": "user", "created": 4, "content": [{"type": "text", "text": "Summary."}],
                 "metadata": {"userVisible": false, "agentVisible": true}},
                {"id": "m5", "role": "assistant", "created": 5, "content": [
                    {"type": "toolRequest", "id": "c2", "toolCall": {"status": "error", "error": "no JSON"}},
                ]},
            ],
            "metadata": {"total_tokens": 10, "status": "completed"},
        })]);
        assert_eq!(
            message_lines(&transcript)[..4],
            [
                "user List.",
                r#"assistant developer__shell({"command":"ls"})"#,
                "tool a.txt",
                "system Summary.",
            ]
        );
        assert_eq!(transcript["metadata"]["status"], "completed");
        // A call that the agent could not read stays a part as written, which counts as unread.
        let broken = &transcript["messages"][4]["content"][0];
        assert_eq!(broken["toolCall"]["error"], "no JSON", "{broken}");
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

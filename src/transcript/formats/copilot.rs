//! GitHub Copilot's chats in VS Code: the export (`Chat: Export Chat…`) and the stored sessions (`chatSessions`).
//!
//! Responsible for these files. A request is a user message and the reply to it. The reply is read from
//! `toolCallRounds`, which has the texts and calls as the model wrote them, else from the displayed parts. A vote of the
//! user is a label of the eval `vote`. `copilot_log.rs` makes a stored log of changes such a chat, and `copilot_replay.rs`
//! reads logs of prompts. Does not read VS Code's databases, and sessions of Copilot CLI: that is `copilot_cli.rs`.

use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::text_or_json;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::foreign_message::result_text;
use super::record_readers::{open_records, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, owned_text, reasoning_part, text_part,
};
use super::{copilot_log, copilot_replay};
use crate::model::{Label, MessageRole, TranscriptPart};

/// Returns true if the first record is a chat of VS Code.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    let own = |s: &super::super::sniff::RecordSniff| {
        s.has("requests")
            && [
                "requesterUsername",
                "responderUsername",
                "initialLocation",
                "sessionId",
            ]
            .iter()
            .any(|key| s.has(key))
    };
    let first = preview.first_outline();
    // A shortened chat has the requests alone.
    let request = &first["requests"][0];
    let is_request = request["message"]["text"].is_string() && request["response"].is_array();
    is_request
        || (preview.first_matches(own) && first["requests"].is_array())
        || copilot_log::is_log(preview)
        || copilot_replay::is_replay(preview)
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    if copilot_replay::is_replay(preview) {
        return copilot_replay::open(source, preview);
    }
    if copilot_log::is_log(preview) {
        return Ok(open_sessions(preview, copilot_log::starts_chat, parse_log));
    }
    Ok(open_records(preview, parse_chat))
}

/// Reads a chat from the log of its changes.
fn parse_log(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let read = match copilot_log::replay(lines, out) {
        // The records of a log are its lines.
        Some(chat) => read_chat(&chat, out).map(|_| ()),
        None => Err("it has no first state of a chat".to_owned()),
    };
    if let Err(why) = read {
        out.push_fault(why);
    }
}

fn parse_chat(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let requests = read_chat(record, out)?;
    out.count_elements(requests);
    Ok(())
}

/// Adds the transcript of a chat, and returns the number of its requests.
fn read_chat(record: &str, out: &mut TranscriptSink) -> Result<usize, String> {
    let fields = RawFields::parse(record)?;
    let requests = fields
        .list("requests")
        .ok_or_else(|| "its `requests` are not a list".to_owned())?;
    let mut built = TranscriptBuilder::new("copilot", fields.id_text("sessionId"));
    built.meta.set_raw("timestamp", fields.get("creationDate"));
    built.meta.set_raw("title", fields.get("customTitle"));
    built.meta.set_raw("agent", fields.get("responderUsername"));
    let mut votes = Vec::new();
    for (at, raw) in requests.iter().enumerate() {
        let Some(request) = RawFields::from_raw(raw) else {
            built
                .unknown
                .push("a request that is not an object".to_owned());
            continue;
        };
        add_request(&request, &mut built);
        if let Some(vote) = request.integer("vote").filter(|vote| *vote <= 1) {
            votes.push((at + 1, vote == 1));
        }
    }
    let several = votes.len() > 1;
    for (number, passed) in votes {
        built.labels.push(Label {
            transcript: built.id.clone(),
            rubric: None,
            eval: if several {
                format!("vote@{number}")
            } else {
                "vote".to_owned()
            },
            passed: Some(passed),
            score: None,
            by: None,
            at: None,
            note: None,
            ..Label::default()
        });
    }
    built.finish(out);
    Ok(requests.len())
}

fn add_request(request: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let message = request.object("message");
    let text = message.as_ref().and_then(|message| message.text("text"));
    let text = text.or_else(|| request.text("message")).unwrap_or_default();
    built.push_text(MessageRole::User, &text);
    if let Some(last) = built.messages.last_mut() {
        last.meta.set_raw("timestamp", request.get("timestamp"));
    }
    let before = built.messages.len();
    let result = request.object("result").unwrap_or_default();
    let metadata = result.object("metadata").unwrap_or_default();
    let rounds = metadata.list("toolCallRounds").unwrap_or_default();
    let parts = request.list("response").unwrap_or_default();
    let results = metadata.object("toolCallResults").unwrap_or_default();
    let errors = stated_errors(&parts);
    let call_count: usize = rounds.iter().map(|round| count_calls(round)).sum();
    if call_count > 0 {
        // A displayed call belongs to a call of the model if there are as many of them.
        let errors = (errors.len() == call_count).then_some(errors);
        let mut number = 0;
        for raw in rounds {
            add_round(raw, &results, errors.as_deref(), &mut number, built);
        }
    } else {
        add_displayed(&parts, built);
    }
    let details = result.object("errorDetails");
    if let Some(error) = details.as_ref().and_then(|details| details.get("message")) {
        built.meta.set_raw("error", Some(error));
    }
    let timings = result.object("timings");
    let elapsed = timings
        .as_ref()
        .and_then(|timings| timings.get("totalElapsed"));
    if let Some(message) = built.messages[before..]
        .iter_mut()
        .rev()
        .find(|message| message.role == MessageRole::Assistant)
    {
        message.meta.set_raw("model", request.get("modelId"));
        message.meta.set_raw("latency_ms", elapsed);
    }
}

fn count_calls(round: &RawValue) -> usize {
    RawFields::from_raw(round)
        .and_then(|round| round.list("toolCalls"))
        .map_or(0, |calls| calls.len())
}

/// Returns whether each displayed call failed.
fn stated_errors(parts: &[&RawValue]) -> Vec<Option<bool>> {
    let calls = parts.iter().filter_map(|raw| {
        let part = RawFields::from_raw(raw)?;
        (part.text("kind")?.starts_with("toolInvocation")).then_some(part)
    });
    calls
        .map(|call| call.object("resultDetails")?.flag("isError"))
        .collect()
}

fn add_round(
    raw: &RawValue,
    results: &RawFields<'_>,
    errors: Option<&[Option<bool>]>,
    number: &mut usize,
    built: &mut TranscriptBuilder,
) {
    let Some(round) = RawFields::from_raw(raw) else {
        built
            .unknown
            .push("a round that is not an object".to_owned());
        return;
    };
    let mut parts = Vec::new();
    let thinking = round.object("thinking").and_then(|all| all.text("text"));
    if let Some(text) = thinking.filter(|text| !text.is_empty()) {
        parts.push(reasoning_part(&text));
    }
    if let Some(text) = round.filled_text("response") {
        parts.push(text_part(&text));
    }
    let calls = round.list("toolCalls").unwrap_or_default();
    let calls: Vec<RawFields<'_>> = calls
        .iter()
        .filter_map(|raw| RawFields::from_raw(raw))
        .collect();
    for call in &calls {
        let id = call.id_text("id").unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        parts.push(call_part(&id, &name, call_arguments(call.get("arguments"))));
    }
    if parts.is_empty() {
        return;
    }
    built.push(MessageRole::Assistant, parts);
    for call in calls {
        let is_error = errors.and_then(|all| all.get(*number).copied().flatten());
        *number += 1;
        let id = call.id_text("id").unwrap_or_default();
        let Some(result) = results.object(&id) else {
            continue;
        };
        let content = result.list("content").unwrap_or_default();
        let texts = content.iter().map(|raw| match RawFields::from_raw(raw) {
            Some(part) => part
                .get("value")
                .map_or_else(|| owned_text(raw), owned_text),
            None => owned_text(raw),
        });
        let content: Vec<String> = texts.collect();
        built.push_result(&id, content.join("\n"), is_error);
    }
}

/// Adds the parts that VS Code displays. Neighbouring texts are one text.
fn add_displayed(parts: &[&RawValue], built: &mut TranscriptBuilder) {
    let mut text = String::new();
    let before = built.messages.len();
    for raw in parts {
        let Some(part) = RawFields::from_raw(raw) else {
            text.push_str(&text_or_json(raw));
            continue;
        };
        let kind = part.text("kind").unwrap_or_default();
        match &*kind {
            "" | "markdownContent" | "markdownVuln" => {
                let value = part.get_first(&["value", "content"]);
                let nested = value.and_then(RawFields::from_raw);
                let nested = nested.and_then(|nested| nested.text("value"));
                match (nested, value) {
                    (Some(nested), _) => text.push_str(&nested),
                    (None, Some(value)) => text.push_str(&text_or_json(value)),
                    (None, None) => {}
                }
            }
            "inlineReference" => text.push_str(&reference_name(&part)),
            "thinking" => {
                flush_text(&mut text, built, before);
                if let Some(value) = part.get("value") {
                    let thought = result_text(value);
                    if !thought.is_empty() {
                        append_part(reasoning_part(&thought), built, before);
                    }
                }
            }
            "toolInvocationSerialized" | "toolInvocation" => {
                flush_text(&mut text, built, before);
                add_displayed_call(&part, built, before);
            }
            "textEditGroup" | "notebookEditGroup" => {
                flush_text(&mut text, built, before);
                built.unknown.push(format!("a part of the kind `{kind}`"));
            }
            // Progress, marks and buttons of the user interface.
            "prepareToolInvocation"
            | "progressMessage"
            | "progressTaskSerialized"
            | "progressTask"
            | "undoStop"
            | "codeblockUri"
            | "mcpServersStarting"
            | "command"
            | "confirmation"
            | "warning"
            | "references"
            | "extensions"
            | "elicitation" => {}
            _ => built.unknown.push(format!("a part of the kind `{kind}`")),
        }
    }
    flush_text(&mut text, built, before);
}

/// Returns the name of a file or symbol in a text.
fn reference_name(part: &RawFields<'_>) -> String {
    if let Some(name) = part.text("name") {
        return name.0.into_owned();
    }
    let reference = part.object("inlineReference").unwrap_or_default();
    let name = reference.text("name").or_else(|| reference.text("path"));
    let location = || reference.object("location")?.object("uri")?.text("path");
    name.or_else(location)
        .map(|name| name.0.into_owned())
        .unwrap_or_default()
}

fn flush_text(text: &mut String, built: &mut TranscriptBuilder, before: usize) {
    let text = std::mem::take(text);
    if !text.trim().is_empty() {
        append_part(text_part(&text), built, before);
    }
}

/// Adds a part to the reply: to its last message, unless that is a tool's.
fn append_part(part: TranscriptPart<'static>, built: &mut TranscriptBuilder, before: usize) {
    let is_reply = built.messages.len() > before;
    match built.messages.last_mut() {
        Some(last) if is_reply && last.role == MessageRole::Assistant => last.parts.push(part),
        _ => built.push(MessageRole::Assistant, vec![part]),
    }
}

fn add_displayed_call(part: &RawFields<'_>, built: &mut TranscriptBuilder, before: usize) {
    let id = part.id_text("toolCallId").unwrap_or_default();
    let name = part
        .text("toolId")
        .or_else(|| part.text("toolName"))
        .unwrap_or_default();
    let details = part.object("resultDetails").unwrap_or_default();
    let specific = part.object("toolSpecificData").unwrap_or_default();
    let input = specific
        .get_first(&["rawInput", "commandLine"])
        .or_else(|| details.get("input"));
    append_part(call_part(&id, &name, call_arguments(input)), built, before);
    let output = details.list("output").unwrap_or_default();
    let texts = output.iter().map(|raw| match RawFields::from_raw(raw) {
        Some(fields) => fields
            .get("value")
            .map_or_else(|| owned_text(raw), owned_text),
        None => owned_text(raw),
    });
    let texts: Vec<String> = texts.collect();
    // Other tools keep only the sentence that VS Code displays.
    if !texts.is_empty() {
        built.push_result(&id, texts.join("\n"), details.flag("isError"));
    } else if part.flag("isComplete") == Some(true) {
        let message = part.get_first(&["pastTenseMessage", "invocationMessage"]);
        let nested = message
            .and_then(RawFields::from_raw)
            .and_then(|all| all.text("value"));
        let text = nested
            .or_else(|| message.map(text_or_json))
            .unwrap_or_default();
        built.push_result(&id, text.0.into_owned(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn chat_with_the_requests_alone_is_read() {
        let text = r#"{"requests":[{"message":{"text":"Hi"},"response":[{"kind":"markdownContent","content":{"value":"Hello"}}]}]}"#;
        let (all, _) = read(text.as_bytes());
        let chat = all[0].as_ref().expect("a chat");
        assert_eq!(message_lines(chat), ["user Hi", "assistant Hello"]);
    }
}

//! OpenCode's exported sessions (`opencode export`): `{info, messages: [{info, parts}]}`.
//!
//! Responsible for one session per record, or a list of messages of the API (`GET /session/ID/message`). A tool part is
//! a call with its result; a command with an exit code other than 0 is an error. Messages before version 0.2 have
//! `metadata` where later ones have `info`, and calls as the AI SDK had them. [`opencode_storage`] joins the files of the
//! storage folder to such a session.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::opencode_storage;
use super::record_readers::{open_lists, open_records};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, media_part, owned_text, owned_unknown_part,
    reasoning_part, role_of, text_part,
};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// Returns true if the first record is a session, or a message of one.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_message = |value: &Value| {
        value["info"]["role"].is_string()
            && value["info"]["sessionID"].is_string()
            && value["parts"].is_array()
            || opencode_storage::is_older_message(value)
    };
    let has_session = record["info"].is_object()
        && record["messages"].as_array().is_some_and(|all| {
            all.iter().any(is_message) || all.is_empty() && record["info"]["projectID"].is_string()
        });
    has_session
        || opencode_storage::is_session_file(preview)
        || opencode_storage::is_file_of_session(preview)
        || is_message(record)
        || record
            .as_array()
            .is_some_and(|all| all.iter().any(is_message))
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    if opencode_storage::is_file_of_session(preview) {
        return Err(source.unknown_error(
            "this is a message or a part of an OpenCode session; open the session's file, `session/PROJECT/SESSION.json` or `session/info/SESSION.json`, which then has all of them",
        ));
    }
    Ok(if opencode_storage::is_session_file(preview) {
        open_records(preview, parse_stored_session)
    } else if preview.first_outline()["messages"].is_array() {
        open_records(preview, parse_session)
    } else {
        open_lists(preview, parse_session)
    })
}

/// Reads a session's file of the storage folder, with the files of its messages.
fn parse_stored_session(
    record: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let joined = opencode_storage::join_session(record, cx.source.path(), out)?;
    parse_session(&joined, cx, out)
}

/// Reads an exported session, or messages of one.
pub(super) fn parse_session(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let raw: &RawValue =
        serde_json::from_str(record).map_err(|why| format!("not a session: {why}"))?;
    let fields = RawFields::from_raw(raw).unwrap_or_default();
    let info = fields.object("info").unwrap_or_default();
    let messages = list_items(raw).or_else(|| fields.list("messages"));
    // A single message of the list that the API returns.
    let messages = messages.unwrap_or_else(|| vec![raw]);
    out.count_elements(messages.len());
    let mut built = TranscriptBuilder::new("opencode", None);
    if fields.has("messages") {
        built.id = info.id_text("id").unwrap_or_default().0.into_owned();
        built.meta.set_raw("title", info.get("title"));
        built.meta.set_raw("version", info.get("version"));
        built.meta.set_raw("directory", info.get("directory"));
        let time = info.object("time");
        built.meta.set_raw(
            "timestamp",
            time.as_ref().and_then(|time| time.get("created")),
        );
        if let Some(parent) = info.id_text("parentID") {
            built
                .meta
                .set("parent", serde_json::json!({ "transcript": &*parent }));
        }
    }
    for raw in messages {
        match RawFields::from_raw(raw) {
            Some(message) => add_message(&message, &mut built),
            None => built.count_unknown_message(),
        }
    }
    built.finish(out);
    Ok(())
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    // A message of an older version has its role next to `metadata`.
    let info = message
        .object("info")
        .or_else(|| message.object("metadata"))
        .unwrap_or_default();
    let tools = info.object("tool").unwrap_or_default();
    if built.id.is_empty() {
        built.id = info.id_text("sessionID").unwrap_or_default().0.into_owned();
    }
    let role = info.text("role").or_else(|| message.text("role"));
    let role = role.map_or(MessageRole::User, |role| role_of(&role));
    let mut parts = Vec::new();
    let mut results = Vec::new();
    for raw in message.list("parts").unwrap_or_default() {
        match RawFields::from_raw(raw) {
            Some(part) => add_part(raw, &part, &tools, &mut parts, &mut results),
            None => parts.push(owned_unknown_part(raw)),
        }
    }
    let error = info.object("error");
    if !parts.is_empty() || error.is_none() {
        built.push(role.clone(), parts);
        let time = info.object("time").unwrap_or_default();
        if let Some(last) = built.messages.last_mut() {
            last.meta.set_raw("timestamp", time.get("created"));
            if role == MessageRole::Assistant {
                let reply = info.object("assistant");
                write_reply_metadata(reply.as_ref().unwrap_or(&info), &time, &mut last.meta);
            }
        }
    }
    if let Some(error) = error {
        let data = error.object("data");
        let text = data.as_ref().and_then(|data| data.get("message"));
        built
            .meta
            .set_raw("error", text.or_else(|| error.get("name")));
    }
    push_results(results, built);
}

/// Adds the results of the calls of a message.
pub(super) fn push_results(results: Vec<ToolOutcome<'_>>, built: &mut TranscriptBuilder) {
    for (id, content, is_error, time) in results {
        built.push_result(&id, content, is_error);
        if let (Some((from, to)), Some(last)) = (time, built.messages.last_mut())
            && let Some(TranscriptPart::ToolResult(result)) = last.parts.first_mut()
        {
            result.duration_ms = Some((to - from).max(0.0));
        }
    }
}

/// Sets the model, the cost, the time and the tokens of a reply. `info` has them, and `time` the start and the end.
pub(super) fn write_reply_metadata(
    info: &RawFields<'_>,
    time: &RawFields<'_>,
    meta: &mut super::super::metadata::MetadataBuilder,
) {
    meta.set_raw("model", info.get("modelID"));
    meta.set_raw("provider", info.get("providerID"));
    if info.number("cost").is_some_and(|cost| cost > 0.0) {
        meta.set_raw("cost_usd", info.get("cost"));
    }
    if let (Some(from), Some(to)) = (time.number("created"), time.number("completed")) {
        meta.set("latency_ms", (to - from).max(0.0));
    }
    if let Some(tokens) = info.object("tokens") {
        let cache = tokens.object("cache").unwrap_or_default();
        let usage = SourceUsage {
            input: SourceUsage::input_with_cache(
                tokens.integer("input"),
                cache.integer("read"),
                cache.integer("write"),
            ),
            output: tokens.integer("output"),
            total: None,
            cached: cache.integer("read"),
            thinking: tokens.integer("reasoning"),
        };
        meta.set("usage", usage.to_json());
    }
}

/// The result of a call: its id, its text, whether it failed if that is known, and the times of its start and end.
pub(super) type ToolOutcome<'a> = (SourceText<'a>, String, Option<bool>, Option<(f64, f64)>);

/// Returns true if the details of a call have an exit code other than 0.
fn has_failed_exit(details: &RawFields<'_>) -> bool {
    details.number("exit").is_some_and(|exit| exit != 0.0)
}

/// Adds a call of an older version with its result. `tools` has the time and the failure of each call, by its id.
fn add_invocation<'a>(
    call: &RawFields<'a>,
    tools: &RawFields<'a>,
    parts: &mut Vec<TranscriptPart<'static>>,
    results: &mut Vec<ToolOutcome<'a>>,
) {
    let id = call.id_text("toolCallId").unwrap_or_default();
    let name = call.text("toolName").unwrap_or_default();
    parts.push(call_part(&id, &name, call_arguments(call.get("args"))));
    // In another state, the session ended before the tool did.
    if call.text("state").as_deref() != Some("result") {
        return;
    }
    let output = call.get("result").map(owned_text).unwrap_or_default();
    let details = tools.object(&id);
    let time = details.as_ref().and_then(|all| all.object("time"));
    let time = time.and_then(|time| time.number("start").zip(time.number("end")));
    let has_failed = details.map(|all| all.flag("error") == Some(true) || has_failed_exit(&all));
    results.push((id, output, has_failed, time));
}

/// Adds a part of a message, and the result of a call. `tools` has details of calls of older versions.
pub(super) fn add_part<'a>(
    raw: &'a RawValue,
    part: &RawFields<'a>,
    tools: &RawFields<'a>,
    parts: &mut Vec<TranscriptPart<'static>>,
    results: &mut Vec<ToolOutcome<'a>>,
) {
    let kind = part.text("type").unwrap_or_default();
    let text = part.text("text").unwrap_or_default();
    match &*kind {
        "text" | "reasoning" if text.is_empty() => {}
        "text" => parts.push(text_part(&text)),
        "reasoning" => parts.push(reasoning_part(&text)),
        "tool" => {
            let state = part.object("state").unwrap_or_default();
            let id = part
                .id_text("callID")
                .or_else(|| part.id_text("id"))
                .unwrap_or_default();
            let name = part.text("tool").unwrap_or_default();
            parts.push(call_part(&id, &name, call_arguments(state.get("input"))));
            let time = state.object("time").unwrap_or_default();
            let time = time.number("start").zip(time.number("end"));
            match state.text("status").as_deref() {
                // Older versions wrote `success`.
                Some("completed" | "success") => {
                    let output = state.get("output").map(owned_text).unwrap_or_default();
                    let details = state.object("metadata").unwrap_or_default();
                    results.push((id, output, Some(has_failed_exit(&details)), time));
                }
                Some("error") => {
                    let error = state.get("error").map(owned_text).unwrap_or_default();
                    results.push((id, error, Some(true), time));
                }
                // The session ended before the tool did.
                Some("pending" | "running") => {}
                _ => {
                    if let Some(output) = state.get_first(&["output", "error"]) {
                        let is_error = state.has("error").then_some(true);
                        results.push((id, owned_text(output), is_error, time));
                    }
                }
            }
        }
        "tool-invocation" => match part.object("toolInvocation") {
            Some(call) => add_invocation(&call, tools, parts, results),
            None => parts.push(owned_unknown_part(raw)),
        },
        "file" => parts.push(media_part("file", raw)),
        // Marks of the program, without text of the conversation.
        "step-start" | "step-finish" | "snapshot" | "patch" | "agent" | "retry" | "compaction" => {}
        _ => parts.push(owned_unknown_part(raw)),
    }
}

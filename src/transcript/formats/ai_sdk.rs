//! Messages of the Vercel AI SDK: model messages (`tool-call`, `tool-result` parts) and UI messages (`parts`).
//!
//! Responsible for records with `messages` in these shapes, and for bare lists of them. A call in a UI message has its
//! result with it, which becomes a message of its own. Does not read spans of the SDK: that is `otlp`; and results with
//! steps: that is `ai_sdk_result.rs`.

use serde_json::Value;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::ai_sdk_result::{holds_result, is_result, parse_result};
use super::message_record::{parse_message_list, parse_message_record};
use super::record_readers::{open_lists, open_records};

/// Returns true if the first record holds messages of the SDK, or a result of it.
pub(super) fn is_messages(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let in_record = record["messages"].as_array();
    in_record.is_some_and(|all| all.iter().any(is_message))
        || is_result(record)
        || is_bare_list(preview)
}

fn is_bare_list(preview: &FilePreview<'_>) -> bool {
    preview
        .records
        .iter()
        .take(32)
        .any(|seen| match seen.sniff.outline(seen.bytes) {
            Value::Array(items) => items.iter().any(is_message),
            message => !message["role"].is_null() && is_message(message),
        })
}

/// Returns true if a value is a message with a part that only this SDK writes.
fn is_message(message: &Value) -> bool {
    let role = message["role"].as_str();
    let role = role.is_some_and(|role| ["user", "assistant", "tool", "system"].contains(&role));
    let parts_of = |key: &str| message[key].as_array().into_iter().flatten();
    let is_call = |part: &Value| {
        let kind = part["type"].as_str().unwrap_or_default();
        (kind.starts_with("tool-") || kind == "dynamic-tool")
            && (part["toolCallId"].is_string() || part["toolInvocation"].is_object())
    };
    // A UI message has no `content`, or a text. Gemini's parts have no type.
    let is_ui = !message["content"].is_array()
        && parts_of("parts").any(|part| {
            let kind = part["type"].as_str().unwrap_or_default();
            is_call(part) || ["text", "reasoning", "step-start", "file"].contains(&kind)
        });
    let has_invocations = message["toolInvocations"].is_array();
    role && (parts_of("content").any(is_call) || is_ui || has_invocations)
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    let record = preview.first_outline();
    if record["messages"].is_array() || is_result(record) {
        open_records(preview, parse_record)
    } else {
        open_lists(preview, parse_record)
    }
}

fn parse_record(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    if record.starts_with('[') {
        return parse_message_list("ai-sdk", record, out);
    }
    let fields = RawFields::parse(record)?;
    if holds_result(&fields) {
        return parse_result(&fields, out);
    }
    parse_message_record("ai-sdk", record, &fields, out)
}

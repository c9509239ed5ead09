//! LangChain's messages: objects with `type: human`, the dicts of `messages_to_dict`, and serialized constructors.
//!
//! Responsible for records with `messages` (or `history`, LangGraph's `values.messages`) in these shapes, and for bare
//! lists of them. Does not read runs of LangSmith: that is `langsmith.rs`.

use serde_json::Value;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::message_record::{parse_message_list, parse_message_record};
use super::record_readers::{open_lists, open_records};
use super::transcript_builder::TranscriptBuilder;
use crate::model::MessageRole;

/// Returns true if the first record holds messages of LangChain.
pub(super) fn is_messages(preview: &FilePreview<'_>) -> bool {
    if preview.first_matches(|s| s.has("run_type") || s.has("mapping")) {
        return false;
    }
    let record = preview.first_outline();
    let lists = [&record["messages"], &record["values"]["messages"], record];
    lists.iter().any(|list| {
        list.as_array()
            .is_some_and(|all| all.iter().any(is_message))
    }) || {
        // The first message of a list may have no key of its own.
        let mut first = preview.records.iter().take(32);
        first.any(|seen| is_message(seen.sniff.outline(seen.bytes)))
    }
}

/// Returns true if a value is a message that LangChain wrote.
pub(super) fn is_message(message: &Value) -> bool {
    let kind = message["type"].as_str().unwrap_or_default();
    let known = [
        "human",
        "ai",
        "tool",
        "system",
        "function",
        "AIMessageChunk",
    ]
    .contains(&kind);
    let is_constructor = message["lc"].is_number() && message["kwargs"].is_object();
    let is_dict = known && message["data"]["content"].is_string();
    // `type` alone is a common word; LangChain writes these keys next to it.
    let has_own_keys = !message["additional_kwargs"].is_null()
        || !message["response_metadata"].is_null()
        || message["tool_calls"].is_array()
        || message["tool_call_id"].is_string()
        || ["human", "ai"].contains(&kind);
    let is_plain =
        known && message["role"].is_null() && !message["content"].is_null() && has_own_keys;
    is_constructor || is_dict || is_plain
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    let record = preview.first_outline();
    if record["messages"].is_array() || record["values"]["messages"].is_array() {
        open_records(preview, parse_record)
    } else {
        open_lists(preview, parse_record)
    }
}

fn parse_record(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    if record.starts_with('[') {
        return parse_message_list("langchain", record, out);
    }
    let fields = RawFields::parse(record)?;
    // LangGraph's state: `{values: {messages}, …}`.
    if let Some(values) = fields.object("values").filter(|all| all.has("messages")) {
        let mut built = TranscriptBuilder::new("langchain", fields.id_text("thread_id"));
        if let Some(messages) = values.get("messages") {
            add_messages(messages, &MessageRole::User, &mut built);
        }
        if let Some(metadata) = fields.object("metadata") {
            built.meta.merge_readable_fields(&metadata);
        }
        built.finish(out);
        return Ok(());
    }
    parse_message_record("langchain", record, &fields, out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn call_whose_arguments_are_not_json_is_a_call() {
        let invalid = json!({"type": "invalid_tool_call", "name": "find", "args": "{\"id\": ", "id": "c1", "error": "not JSON"});
        let written = json!({"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"id\": "}});
        for extra in [json!({}), json!({"tool_calls": [written]})] {
            let reply = json!({"type": "ai", "content": "", "tool_calls": [], "invalid_tool_calls": [invalid], "additional_kwargs": extra});
            let record = json!({"messages": [{"type": "human", "content": "Hi"}, reply]});
            let (all, tally) = read(format!("{record}\n").as_bytes());
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
            let lines = message_lines(all[0].as_ref().expect("a record"));
            assert_eq!(lines, ["user Hi", "assistant find({\"id\": )"], "{extra}");
        }
    }
}

//! Messages of Amazon Bedrock's Converse API, with its reply if the log has one.
//!
//! Responsible for records `{messages, system?, output?, usage?, stopReason?}`, for pairs of the Converse API, for bare
//! lists of its messages, and for Bedrock's invocation logs (`{input: {inputBodyJson}, output: {outputBodyJson}}`). Does
//! not read Anthropic's messages through `InvokeModel`: those are in `anthropic.rs`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::record_readers::{open_lists, open_records};
use super::transcript_builder::TranscriptBuilder;
use crate::model::MessageRole;

/// Returns true if the first record is a conversation of the Converse API.
pub(super) fn is_converse(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let messages = |value: &Value| {
        value["messages"]
            .as_array()
            .is_some_and(|all| all.iter().any(is_message))
    };
    messages(record)
        || messages(&record["input"]["inputBodyJson"])
        || messages(&record["request"])
        || is_message(&record["output"]["message"])
        || (!record["role"].is_null() && is_message(record))
        || record
            .as_array()
            .is_some_and(|all| all.iter().any(is_message))
}

/// Returns true if a value is a message whose content has parts without a type.
fn is_message(message: &Value) -> bool {
    let content = message["content"].as_array();
    message["role"].is_string()
        && content.is_some_and(|parts| {
            !parts.is_empty()
                && parts.iter().all(|part| {
                    let keys = [
                        "text",
                        "toolUse",
                        "toolResult",
                        "image",
                        "document",
                        "video",
                        "cachePoint",
                        "reasoningContent",
                        "guardContent",
                    ];
                    part["type"].is_null() && keys.iter().any(|key| !part[key].is_null())
                })
        })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if preview.first_outline()["role"].is_null() && preview.first_outline().is_object() {
        open_records(preview, parse_record)
    } else {
        open_lists(preview, parse_record)
    }
}

fn parse_record(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let raw: &RawValue =
        serde_json::from_str(record).map_err(|why| format!("not a Converse record: {why}"))?;
    let fields = RawFields::from_raw(raw).unwrap_or_default();
    let ids = ["id", "requestId", "custom_id"];
    let id = ids.iter().find_map(|key| fields.id_text(key));
    let mut built = TranscriptBuilder::new("bedrock", id);
    let logged = |side: &str, key: &str| fields.object(side).and_then(|side| side.object(key));
    let request = logged("input", "inputBodyJson")
        .or_else(|| fields.object("request"))
        .unwrap_or_else(|| fields.clone());
    let reply = logged("output", "outputBodyJson")
        .or_else(|| fields.object("response"))
        .unwrap_or_else(|| fields.clone());
    if let Some(system) = request.get("system") {
        add_messages(system, &MessageRole::System, &mut built);
    }
    match request.get("messages") {
        Some(messages) => add_messages(messages, &MessageRole::User, &mut built),
        None if fields.has("role") || record.starts_with('[') => {
            add_messages(raw, &MessageRole::User, &mut built);
        }
        None => {}
    }
    let before = built.messages.len();
    let output = reply.object("output");
    if let Some(message) = output.as_ref().and_then(|output| output.get("message")) {
        add_messages(message, &MessageRole::Assistant, &mut built);
    }
    let model = fields.get_first(&["modelId", "model"]);
    built
        .meta
        .set_raw("model", model.or_else(|| request.get("modelId")));
    built.meta.set_raw("timestamp", fields.get("timestamp"));
    let usage = reply.object("usage").map(|usage| SourceUsage {
        input: usage.integer("inputTokens"),
        output: usage.integer("outputTokens"),
        total: usage.integer("totalTokens"),
        cached: usage.integer("cacheReadInputTokens"),
        thinking: None,
    });
    let latency = reply.object("metrics");
    let latency = latency.as_ref().and_then(|all| all.get("latencyMs"));
    if let Some(usage) = usage {
        built.meta.set("usage", usage.to_json());
    }
    if built.messages.len() > before
        && let Some(meta) = built.last_meta(&MessageRole::Assistant)
    {
        meta.set_raw("latency_ms", latency);
        meta.set_raw("stop_reason", reply.get("stopReason"));
        if let Some(usage) = usage {
            meta.set("usage", usage.to_json());
        }
    }
    for (key, value) in fields.iter() {
        let known = [
            "id",
            "requestId",
            "custom_id",
            "messages",
            "system",
            "output",
            "usage",
            "metrics",
            "input",
            "request",
            "response",
            "metadata",
            "role",
            "content",
            "toolConfig",
            "modelId",
            "stopReason",
            "model",
        ];
        if !known.contains(&key) && !built.meta.has(key) {
            built.meta.set_readable(key, Some(value));
        }
    }
    if let Some(metadata) = fields.object("metadata") {
        built.meta.merge_readable_fields(&metadata);
    }
    built.finish(out);
    Ok(())
}

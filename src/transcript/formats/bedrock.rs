//! Messages of Amazon Bedrock's Converse API, with its reply if the log has one.
//!
//! Responsible for records `{messages, system?, output?, usage?, stopReason?}`, for pairs of the Converse API, for bare
//! lists of its messages, and for Bedrock's invocation logs (`{input: {inputBodyJson}, output: {outputBodyJson}}`). A
//! reply may be the list of the events of `ConverseStream`, which may also be the records of a file. Does not read
//! Anthropic's messages through `InvokeModel`: those are in `anthropic.rs`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::record_readers::{NOT_JSON, line_text, open_lists, open_records, open_sessions};
use super::transcript_builder::TranscriptBuilder;
use crate::model::MessageRole;

/// Returns true if the first record is a conversation of the Converse API.
pub(super) fn is_converse(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    has_messages(record)
        || has_messages(&record["input"]["inputBodyJson"])
        || has_messages(&record["request"])
        || is_message(&record["output"]["message"])
        || is_reply(record)
        || is_event(record)
        || (!record["role"].is_null() && is_message(record))
        || record
            .as_array()
            .is_some_and(|all| all.iter().any(is_message))
}

/// Returns true if the outline of a record is that of a request with its reply.
pub(super) fn is_pair(record: &Value) -> bool {
    let reply = &record["response"];
    has_messages(&record["request"])
        && (reply.is_null()
            || is_message(&reply["output"]["message"])
            || is_reply(reply)
            || is_stream(reply))
}

/// Returns true if a value is a list that begins with events of `ConverseStream`.
fn is_stream(reply: &Value) -> bool {
    let mut events = reply.as_array().into_iter().flatten();
    events.any(is_event)
}

fn has_messages(value: &Value) -> bool {
    let all = value["messages"].as_array();
    all.is_some_and(|all| all.iter().any(is_message))
}

/// Returns true if a value is a reply. Its content may be empty, and some tools add types to its parts.
fn is_reply(record: &Value) -> bool {
    let message = &record["output"]["message"];
    record["stopReason"].is_string() && message["role"].is_string() && message["content"].is_array()
}

/// Returns true if a value is an event of `ConverseStream` at the start of a reply.
fn is_event(record: &Value) -> bool {
    record["messageStart"]["role"].is_string()
        || ["contentBlockStart", "contentBlockDelta"]
            .iter()
            .any(|key| record[*key]["contentBlockIndex"].is_u64())
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
    if is_event(preview.first_outline()) {
        open_sessions(preview, starts_reply, parse_events)
    } else if preview.first_outline()["role"].is_null() && preview.first_outline().is_object() {
        open_records(preview, parse_record)
    } else {
        open_lists(preview, parse_record)
    }
}

fn starts_reply(line: &[u8]) -> bool {
    let event = RawFields::from_bytes(line);
    event.is_some_and(|event| event.has("messageStart"))
}

/// Reads the events of one reply, or of several without their first events.
fn parse_events(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut events: Vec<&str> = Vec::new();
    let mut has_ended = false;
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        let Ok(event) = RawFields::parse(text) else {
            out.count_unknown(NOT_JSON);
            continue;
        };
        // The usage comes after the end of a reply, and content is that of the next one.
        if has_ended && (event.has("contentBlockStart") || event.has("contentBlockDelta")) {
            parse_reply(&events, cx, out);
            events.clear();
            has_ended = false;
        }
        has_ended |= event.has("messageStop");
        events.push(text);
    }
    parse_reply(&events, cx, out);
}

/// Adds the reply that consists of these events.
fn parse_reply(events: &[&str], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let record = format!("{{\"response\":[{}]}}", events.join(","));
    if let Err(why) = parse_record(&record, cx, out) {
        out.push_fault(why);
    }
}

/// Adds the transcript of a record.
pub(super) fn parse_record(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
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
    let output = fields.object("output");
    let output = output.as_ref().and_then(|all| all.get("outputBodyJson"));
    let written = output.or_else(|| fields.get("response"));
    let assembled = written.and_then(assemble_events).transpose()?;
    if let Some(stream) = &assembled {
        built.unknown.extend(stream.unknown.iter().cloned());
    }
    let assembled = assembled.map(|stream| stream.reply);
    let written = assembled.as_deref().or(written);
    let reply = written
        .and_then(RawFields::from_raw)
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
    if written.is_some() && built.messages.len() == before {
        built.unknown.push("a reply of an unknown shape".to_owned());
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
        if !known.contains(&key) {
            built.meta.add_record_key(key, value);
        }
    }
    if let Some(metadata) = fields.object("metadata") {
        built.meta.merge_readable_fields(&metadata);
    }
    built.finish(out);
    Ok(())
}

/// A reply that dicta put together from events.
struct AssembledEvents {
    reply: Box<RawValue>,
    /// The kinds of the events and deltas that were not read.
    unknown: Vec<String>,
}

/// Returns the reply that the events of `ConverseStream` form; `None` if the value is not a list of such events. The error
/// is that of the service, which ends a stream before the reply is complete.
fn assemble_events(raw: &RawValue) -> Option<Result<AssembledEvents, String>> {
    let events: Vec<Map<String, Value>> = serde_json::from_str(raw.get()).ok()?;
    let mut blocks: BTreeMap<u64, Value> = BTreeMap::new();
    let mut reply = Map::new();
    let mut is_stream = false;
    let mut error = None;
    let mut unknown = Vec::new();
    for (kind, body) in events.into_iter().flatten() {
        let at = body["contentBlockIndex"].as_u64().unwrap_or(0);
        match kind.as_str() {
            "messageStart" | "contentBlockStop" => {}
            "contentBlockStart" => {
                if let Some(call) = body["start"].get("toolUse") {
                    blocks.insert(at, json!({"toolUse": call}));
                }
            }
            "contentBlockDelta" => {
                let block = blocks.entry(at).or_insert_with(|| json!({}));
                add_delta(block, &body["delta"], &mut unknown);
            }
            "messageStop" => {
                reply.insert("stopReason".to_owned(), body["stopReason"].clone());
            }
            "metadata" => {
                for key in ["usage", "metrics"] {
                    reply.insert(key.to_owned(), body[key].clone());
                }
                continue;
            }
            _ if kind.ends_with("Exception") => {
                let message = body["message"].as_str().unwrap_or_default();
                error.get_or_insert_with(|| {
                    format!("the service ended the stream with an error: {kind} {message}")
                });
                continue;
            }
            _ => {
                unknown.push(format!("a stream event `{kind}`"));
                continue;
            }
        }
        is_stream = true;
    }
    if !is_stream && error.is_none() {
        return None;
    }
    if let Some(error) = error {
        return Some(Err(error));
    }
    for block in blocks.values_mut() {
        // The input of a call is JSON in pieces. If it is cut off, it stays a text.
        if let Some(input) = block.pointer_mut("/toolUse/input")
            && let Some(Ok(json)) = input.as_str().map(serde_json::from_str::<Value>)
        {
            *input = json;
        }
    }
    let content: Vec<Value> = blocks.into_values().collect();
    let message = json!({"role": "assistant", "content": content});
    reply.insert("output".to_owned(), json!({"message": message}));
    let reply = RawValue::from_string(Value::Object(reply).to_string()).ok()?;
    Some(Ok(AssembledEvents { reply, unknown }))
}

/// Adds a delta to a block: the texts of equal keys grow.
fn add_delta(block: &mut Value, delta: &Value, unknown: &mut Vec<String>) {
    let Some(fields) = delta.as_object() else {
        return;
    };
    for (key, more) in fields {
        match (key.as_str(), more) {
            ("text" | "input", Value::String(more)) => match block.get_mut(key) {
                Some(Value::String(so_far)) => so_far.push_str(more),
                _ => block[key] = Value::from(more.as_str()),
            },
            // A reasoning delta has its text at the top; a complete block has it in `reasoningText`.
            ("reasoningContent", Value::Object(_)) => {
                if !block[key]["reasoningText"].is_object() {
                    block[key] = json!({"reasoningText": {}});
                }
                add_delta(&mut block[key]["reasoningText"], more, unknown);
            }
            ("toolUse", Value::Object(_)) => {
                if !block[key].is_object() {
                    block[key] = json!({});
                }
                add_delta(&mut block[key], more, unknown);
            }
            // The signature of a reasoning is not a part of its text.
            ("signature" | "redactedContent", _) => {}
            _ => unknown.push(format!("a delta `{key}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{lines_of_each, message_lines, read};

    #[test]
    fn events_of_a_stream_are_put_together() {
        let events = json!([
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "I lo"}}}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "ok."}}}},
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "Let me "}}},
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "look."}}},
            {"contentBlockStart": {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "get"}}}},
            {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "{\"city\":"}}}},
            {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "\"Tokyo\"}"}}}},
            {"contentBlockStop": {"contentBlockIndex": 2}},
            {"messageStop": {"stopReason": "tool_use"}},
            {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}},
        ]);
        let messages = json!([{"role": "user", "content": [{"text": "Weather?"}]}]);
        for record in [
            json!({"messages": messages, "response": events}),
            json!({"request": {"messages": messages}, "response": events}),
            json!({"input": {"inputBodyJson": {"messages": messages}}, "output": {"outputBodyJson": events}}),
        ] {
            let (all, tally) = read(format!("{record}\n").as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(
                message_lines(one),
                [
                    "user Weather?",
                    "assistant <reasoning> | Let me look. | get({\"city\":\"Tokyo\"})"
                ],
                "{record}"
            );
            assert_eq!(one["metadata"]["usage"]["output"], 5);
            assert_eq!(tally.unknown_count(), 0);
        }
    }

    #[test]
    fn file_of_events_has_one_transcript_per_reply() {
        let reply = concat!(
            "{\"messageStart\":{\"role\":\"assistant\"}}\n",
            "{\"contentBlockDelta\":{\"contentBlockIndex\":0,\"delta\":{\"text\":\"Let me \"}}}\n",
            "{\"contentBlockDelta\":{\"contentBlockIndex\":0,\"delta\":{\"text\":\"look.\"}}}\n",
            "{\"contentBlockStop\":{\"contentBlockIndex\":0}}\n",
        );
        // Some tools leave out the first event.
        let call = concat!(
            "{\"contentBlockStart\":{\"contentBlockIndex\":0,\"start\":{\"toolUse\":{\"toolUseId\":\"t1\",\"name\":\"json\"}}}}\n",
            "{\"contentBlockDelta\":{\"contentBlockIndex\":0,\"delta\":{\"toolUse\":{\"input\":\"{\\\"a\\\":1}\"}}}}\n",
            "{\"messageStop\":{\"stopReason\":\"tool_use\"}}\n",
        );
        let (all, tally) = read([call, call, reply].concat().as_bytes());
        let texts = lines_of_each(&all);
        assert_eq!(
            texts,
            [
                ["assistant json({\"a\":1})"],
                ["assistant json({\"a\":1})"],
                ["assistant Let me look."]
            ]
        );
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }

    #[test]
    fn reply_with_types_or_without_content_is_read() {
        let call = json!({"toolUse": {"toolUseId": "t1", "name": "json", "input": {"a": 1}}});
        let typed = json!([{"type": "text", "text": "Look."}, call]);
        for (content, expected) in [
            (typed, "assistant Look. | json({\"a\":1})"),
            (json!([]), "assistant "),
        ] {
            let message = json!({"role": "assistant", "content": content});
            let record = json!({"output": {"message": message}, "stopReason": "end_turn"});
            let (all, tally) = read(record.to_string().as_bytes());
            let reply = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(reply), [expected]);
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        }
    }

    #[test]
    fn stream_that_an_error_ends_is_no_reply() {
        let messages = json!([{"role": "user", "content": [{"text": "Hi"}]}]);
        let events = |last: serde_json::Value| {
            json!([
                {"messageStart": {"role": "assistant"}},
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hel"}}},
                last,
            ])
        };
        let cut = events(json!({"throttlingException": {"message": "slow down"}}));
        let record = json!({"messages": messages, "response": cut});
        let (all, _) = read(format!("{record}\n").as_bytes());
        let why = all[0].as_ref().expect_err("a bad record");
        assert!(why.contains("throttlingException slow down"), "{why}");
        // Other events and deltas are counted.
        let delta = json!({"citation": {"title": "t"}});
        let cited = json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}});
        let record = json!({"messages": messages, "response": events(cited)});
        let (_, tally) = read(format!("{record}\n").as_bytes());
        assert_eq!(tally.unknown["a delta `citation`"], 1);
    }

    #[test]
    fn reply_of_an_unknown_shape_is_named() {
        let messages = json!([{"role": "user", "content": [{"text": "Hi"}]}]);
        let record = json!({"request": {"messages": messages}, "response": [{"x": 1}]});
        let (_, tally) = read(format!("{record}\n").as_bytes());
        assert_eq!(tally.unknown["a reply of an unknown shape"], 1);
    }
}

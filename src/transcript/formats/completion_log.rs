//! Logs of model calls with the messages and the reply next to each other: LiteLLM's standard logging payload and spend
//! logs (`spend_log.rs`), the LLM logs of OpenHands, and logs that programs write themselves.
//!
//! Responsible for records with `messages` and `response` (also `completion`, `choices`, `output`). The reply may be a
//! chat completion, an item list of the Responses API, an Anthropic message, a bare message or a text. It may also be a
//! stream. Each further choice is a transcript `ID#2` …. Does not read `{request, response}`: that is `api_log.rs`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::MetadataBuilder;
use super::super::native::parse_tags;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::exchange::parse_usage;
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, text_part};
use super::unpacked_reply::{unpack_messages, unpack_reply};
use crate::model::{MessageRole, SourceText};

/// The keys of the reply, in the order of preference.
const REPLY_KEYS: [&str; 5] = ["response", "completion", "choices", "output", "generated"];

/// Returns true if the first record has messages and a reply next to them.
pub(super) fn is_log(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        s.has("messages")
            && !s.has("verdicts")
            && REPLY_KEYS.iter().any(|key| s.has(key))
            && !s.has("trace_id")
            && !s.has("run_type")
    }) && {
        let record = preview.first_outline();
        let messages = record["messages"].as_array();
        let messages = messages.is_some_and(|all| {
            all.first().is_some_and(|one| {
                // Content without a role or a type is not a message.
                one["role"].is_string() || (one["type"].is_string() && !one["content"].is_null())
            })
        }) || record["messages"].is_string();
        messages && REPLY_KEYS.iter().any(|key| is_reply(&record[key]))
    }
}

/// Returns true if a value is a reply in a known shape.
fn is_reply(value: &Value) -> bool {
    let has_message = |value: &Value| {
        ["choices", "content", "output", "message", "candidates"]
            .iter()
            .any(|key| !value[key].is_null())
    };
    match value {
        Value::String(_) => true,
        Value::Object(_) => has_message(value),
        Value::Array(items) => items
            .iter()
            .any(|item| has_message(item) || item["text"].is_string() || item["role"].is_string()),
        _ => false,
    }
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_log)
}

/// Adds the transcripts of a record.
pub(super) fn parse_log(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    parse_decorated(record, &mut |_| {}, out)
}

/// Adds the transcripts of a record, each after `decorate` added what the record does not have.
pub(super) fn parse_decorated(
    record: &str,
    decorate: &mut dyn FnMut(&mut TranscriptBuilder),
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let written = REPLY_KEYS
        .iter()
        .find_map(|key| fields.get(key).filter(|raw| raw.get() != "\"\""));
    let unpacked = written.map(unpack_reply).transpose()?.flatten();
    let reply = unpacked.as_deref().or(written);
    let messages = fields.get("messages");
    let unpacked = messages.and_then(unpack_messages);
    let messages = unpacked.as_deref().or(messages);
    // LiteLLM writes the error of a failed call next to an empty response.
    let error = ["error_str", "error", "exception"];
    let error = error
        .iter()
        .find_map(|key| fields.text_or_json(key))
        .filter(|error| !error.is_empty());
    let choices = list_outputs(&fields).or_else(|| reply.map(list_choices));
    let choices = choices.unwrap_or_default();
    // Once for all choices: a reply may have thousands.
    let reply_fields = reply.and_then(RawFields::from_raw).unwrap_or_default();
    let id = ["id", "request_id", "litellm_call_id"];
    let id = id.iter().find_map(|key| fields.id_text(key));
    let id = id.or_else(|| reply_fields.id_text("id"));
    let count = choices.len().max(1);
    for at in 0..count {
        let mut built = TranscriptBuilder::new("completion-log", id.clone());
        if at > 0 {
            built.meta.set("choice", at + 1);
            if !built.id.is_empty() {
                built.id = format!("{}#{}", built.id, at + 1);
            }
        }
        if let Some(system) = fields.get("system") {
            add_messages(system, &MessageRole::System, &mut built);
        }
        if let Some(messages) = messages {
            add_messages(messages, &MessageRole::User, &mut built);
        }
        let before = built.messages.len();
        match (choices.get(at), reply) {
            (Some(choice), _) => add_choice(choice, &mut built),
            (None, Some(reply)) => add_reply(reply, &mut built),
            (None, None) => {}
        }
        if built.messages.len() == before && reply.is_some() && error.is_none() {
            built.unknown.push("a reply of an unknown shape".to_owned());
        }
        drop_repeated_reply(&mut built, before);
        let has_reply = built.messages.len() > before;
        write_metadata(&fields, &reply_fields, has_reply, &mut built);
        if let Some(error) = &error {
            built.meta.set("error", &**error);
        }
        if let Some(tags) = fields.get("tags").or_else(|| fields.get("request_tags")) {
            let tags = parse_tags(tags);
            built.tags = tags.into_iter().map(SourceText::into_owned).collect();
        }
        decorate(&mut built);
        built.finish(out);
    }
    Ok(())
}

/// Returns the answers in the history of DSPy, if the `response` next to them is only a description of an object.
fn list_outputs<'a>(fields: &RawFields<'a>) -> Option<Vec<&'a RawValue>> {
    let is_text = fields.text("response").is_some() && fields.has("kwargs");
    let outputs = fields.list("outputs").filter(|_| is_text)?;
    (!outputs.is_empty()).then_some(outputs)
}

/// Returns the choices of a chat completion.
fn list_choices(reply: &RawValue) -> Vec<&RawValue> {
    if let Some(fields) = RawFields::from_raw(reply) {
        return fields.list("choices").unwrap_or_default();
    }
    let items = super::super::fields::list_items(reply).unwrap_or_default();
    let is_choice = |item: &&RawValue| {
        RawFields::from_raw(item).is_some_and(|item| item.has("message") || item.has("text"))
    };
    if items.iter().all(is_choice) {
        items
    } else {
        Vec::new()
    }
}

fn add_choice(choice: &RawValue, built: &mut TranscriptBuilder) {
    let Some(fields) = RawFields::from_raw(choice) else {
        return add_messages(choice, &MessageRole::Assistant, built);
    };
    match (fields.get("message"), fields.text("text")) {
        (Some(message), _) => add_messages(message, &MessageRole::Assistant, built),
        // The older completions have the text in the choice itself.
        (None, Some(text)) => built.push(MessageRole::Assistant, vec![text_part(&text)]),
        (None, None) => add_messages(choice, &MessageRole::Assistant, built),
    }
    if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
        meta.set_raw("stop_reason", fields.get("finish_reason"));
    }
}

fn add_reply(reply: &RawValue, built: &mut TranscriptBuilder) {
    let Some(fields) = RawFields::from_raw(reply) else {
        return add_messages(reply, &MessageRole::Assistant, built);
    };
    // The Responses API, Gemini, Ollama, Anthropic.
    if let Some(output) = fields.get_first(&["output", "content", "message"]) {
        let is_message = fields.has("content");
        let source = if is_message { reply } else { output };
        return add_messages(source, &MessageRole::Assistant, built);
    }
    for candidate in fields.list("candidates").unwrap_or_default() {
        let content = RawFields::from_raw(candidate);
        if let Some(content) = content.as_ref().and_then(|fields| fields.get("content")) {
            add_messages(content, &MessageRole::Assistant, built);
        }
    }
}

/// Removes the reply if the messages already end with it. Some programs append it before they write the log.
fn drop_repeated_reply(built: &mut TranscriptBuilder, before: usize) {
    if before == 0 || built.messages.len() != before + 1 {
        return;
    }
    let (last, reply) = (&built.messages[before - 1], &built.messages[before]);
    if last.role == reply.role && last.parts == reply.parts && !reply.parts.is_empty() {
        built.messages.remove(before - 1);
    }
}

fn write_metadata(
    record: &RawFields<'_>,
    reply: &RawFields<'_>,
    has_reply: bool,
    built: &mut TranscriptBuilder,
) {
    let mut meta = MetadataBuilder::default();
    meta.set_raw("model", reply.get("model").or_else(|| record.get("model")));
    let usage = reply.object("usage").or_else(|| record.object("usage"));
    // LiteLLM's payload has the counts at its top level.
    let usage = usage.map_or_else(|| parse_usage(record), |usage| parse_usage(&usage));
    meta.set("usage", usage.to_json());
    meta.set_raw("cost_usd", record.get_first(&["response_cost", "cost"]));
    let time = record.get_first(&["startTime", "timestamp", "created"]);
    meta.set_raw("timestamp", time.or_else(|| reply.get("created")));
    if let Some(seconds) = record.number("latency_sec") {
        meta.set("latency_ms", seconds * 1000.0);
    } else if let (Some(from), Some(to)) = (record.number("startTime"), record.number("endTime")) {
        // LiteLLM writes seconds since 1970.
        meta.set("latency_ms", (to - from).max(0.0) * 1000.0);
    } else {
        meta.set_raw(
            "latency_ms",
            record.get_first(&["latency_ms", "duration_ms"]),
        );
    }
    let all = meta.finish();
    let values = all
        .as_ref()
        .and_then(|all| RawFields::parse(all.get()).ok());
    if let Some(values) = values {
        built.meta.merge_source_fields(&values);
        // The numbers are those of the reply.
        if has_reply && let Some(meta) = built.last_meta(&MessageRole::Assistant) {
            for (key, value) in values.iter() {
                meta.set_raw(key, Some(value));
            }
        }
    }
    let known = [
        "id",
        "messages",
        "response",
        "completion",
        "choices",
        "output",
        "generated",
        "system",
        "tools",
        "kwargs",
        "cost",
        "latency_sec",
        "timestamp",
        "error",
        "error_str",
        "exception",
        "tags",
        "request_tags",
        "usage",
        "metadata",
        "startTime",
        "endTime",
        "response_cost",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
    ];
    for (key, value) in record.iter() {
        if !known.contains(&key) {
            built.meta.add_record_key(key, value);
        }
    }
    if let Some(source) = record.object("metadata") {
        built.meta.merge_readable_fields(&source);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{lines_of_each, read};

    #[test]
    fn outputs_of_dspy_are_its_answers() {
        let call = json!({
            "prompt": null, "messages": [{"role": "user", "content": "Hi"}], "kwargs": {"n": 2},
            "response": "ModelResponse(id='chatcmpl-1', choices=[Choices(...)])",
            "outputs": ["Hello", {"text": "Hey", "logprobs": null}], "model": "m",
        });
        let (all, tally) = read(format!("{call}\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(
            lines_of_each(&all),
            [["user Hi", "assistant Hello"], ["user Hi", "assistant Hey"]]
        );
    }
}

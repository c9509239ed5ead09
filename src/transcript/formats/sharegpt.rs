//! ShareGPT's conversations: `{conversations: [{from, value}]}`, also with the keys `role` and `content`, and the
//! message lists of LLaMA-Factory's v1 datasets.
//!
//! Responsible for one conversation per record, with its system prompt. `function_call` is a call and `observation` its
//! result. Does not read pairs of answers: that is `preference.rs`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, call_arguments};
use crate::model::{MessageRole, SourceText};

/// The keys of the conversation.
pub(super) const KEYS: [&str; 4] = ["conversations", "conversation", "items", "messages"];

/// Returns true if a value is a message of ShareGPT.
pub(super) fn is_message(value: &Value) -> bool {
    value["from"].is_string() && (value["value"].is_string() || value["content"].is_string())
}

/// Returns true if a value is a message whose texts have the key `value` (LLaMA-Factory).
fn is_v1_message(value: &Value) -> bool {
    let parts = value["content"].as_array();
    let parts = parts.is_some_and(|parts| {
        !parts.is_empty()
            && parts
                .iter()
                .all(|part| !part["value"].is_null() && part["type"].is_string())
    });
    value["role"].is_string() && parts
}

fn first_of<'v>(record: &'v Value, key: &str) -> Option<&'v Value> {
    record[key].as_array()?.first()
}

/// Returns true if the first record is a conversation.
pub(super) fn is_conversation(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let with_from = KEYS
        .iter()
        .any(|key| first_of(record, key).is_some_and(is_message));
    let with_role = ["conversations", "conversation"].iter().any(|key| {
        first_of(record, key)
            .is_some_and(|one| one["role"].is_string() && one["content"].is_string())
    });
    with_from || with_role || first_of(record, "messages").is_some_and(is_v1_message)
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_conversation)
}

fn parse_conversation(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = begin(&fields);
    let messages = KEYS.iter().find_map(|key| fields.list(key));
    let messages = messages.ok_or_else(|| "it has no list of messages".to_owned())?;
    add_all(&messages, &mut built);
    add_extra_keys(&fields, &KEYS, &mut built);
    built.finish(out);
    Ok(())
}

/// Returns the id of a record of a dataset.
pub(super) fn find_id<'a>(fields: &RawFields<'a>) -> Option<SourceText<'a>> {
    let ids = ["id", "conversation_id", "uuid", "prompt_id", "hash"];
    ids.iter().find_map(|key| fields.id_text(key))
}

/// Returns a transcript with the id and the system prompt of a record of a dataset.
pub(super) fn begin(fields: &RawFields<'_>) -> TranscriptBuilder {
    let mut built = TranscriptBuilder::new("dataset", find_id(fields));
    let system = ["system", "system_prompt"];
    let system = system.iter().find_map(|key| fields.text(key));
    if let Some(system) = system.filter(|text| !text.is_empty()) {
        built.push_text(MessageRole::System, &system);
    }
    built
}

/// Adds the keys of a record that are not its conversation to the metadata.
pub(super) fn add_extra_keys(fields: &RawFields<'_>, used: &[&str], built: &mut TranscriptBuilder) {
    for (key, value) in fields.iter() {
        let known = ["id", "system", "system_prompt", "metadata"].contains(&key);
        if !known && !used.contains(&key) {
            built.meta.add_record_key(key, value);
        }
    }
    if let Some(metadata) = fields.object("metadata") {
        built.meta.merge_readable_fields(&metadata);
    }
}

/// Adds messages in the shape of ShareGPT or another one.
pub(super) fn add_all(messages: &[&RawValue], built: &mut TranscriptBuilder) {
    for raw in messages {
        let fields = RawFields::from_raw(raw);
        let from = fields.as_ref().and_then(|fields| fields.text("from"));
        let text = fields.as_ref().and_then(|fields| fields.text("value"));
        match (from.as_deref(), text) {
            (Some("function_call"), Some(text)) => add_calls(&text, built),
            _ => add_messages(raw, &MessageRole::User, built),
        }
    }
}

/// Adds the calls in the text of a message: an object with name and arguments, or a list of them.
fn add_calls(text: &str, built: &mut TranscriptBuilder) {
    let raw: Result<&RawValue, _> = serde_json::from_str(text.trim());
    let calls = raw.map(|raw| {
        let items = super::super::fields::list_items(raw);
        items.unwrap_or_else(|| vec![raw])
    });
    let calls = calls.unwrap_or_default();
    let named = calls.iter().filter_map(|raw| {
        let call = RawFields::from_raw(raw)?;
        Some((
            call.text("name")?.0.into_owned(),
            call_arguments(call.get("arguments")),
        ))
    });
    let named: Vec<(String, String)> = named.collect();
    if named.is_empty() {
        built
            .unknown
            .push("a `function_call` without a name".to_owned());
        return built.push_text(MessageRole::Assistant, text);
    }
    for (name, arguments) in named {
        built.push_call("", &name, arguments);
    }
}

//! Records with `messages` in the shape of some tool, and metadata next to them.
//!
//! Responsible for the keys around the messages. Does not read the messages: that is `foreign_message.rs`.

use super::super::fields::RawFields;
use super::super::native::parse_tags;
use super::super::reader::TranscriptSink;
use super::foreign_message::add_messages;
use super::transcript_builder::TranscriptBuilder;
use crate::model::{MessageRole, SourceText};

/// Adds the transcript of a record that is a list of messages.
pub(super) fn parse_message_list(
    source: &str,
    record: &str,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    parse_messages(source, record, "a list", out)
}

/// Adds the transcript of a record that contains only messages. `shape` names the expected JSON in the error.
fn parse_messages(
    source: &str,
    record: &str,
    shape: &str,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let raw = serde_json::from_str(record).map_err(|why| format!("not {shape}: {why}"))?;
    let mut built = TranscriptBuilder::new(source, None);
    add_messages(raw, &MessageRole::User, &mut built);
    built.finish(out);
    Ok(())
}

/// Adds the transcript of a record with `messages`, or of a record that is a message itself.
pub(super) fn parse_message_record(
    source: &str,
    record: &str,
    fields: &RawFields<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let Some(messages) = fields.get("messages") else {
        // The record is a message: its id is not that of a conversation.
        return parse_messages(source, record, "a message", out);
    };
    let ids = ["id", "chatId", "thread_id", "session_id"];
    let id = ids.iter().find_map(|key| fields.id_text(key));
    let mut built = TranscriptBuilder::new(source, id);
    if let Some(system) = fields.get("system") {
        add_messages(system, &MessageRole::System, &mut built);
    }
    add_messages(messages, &MessageRole::User, &mut built);
    if let Some(tags) = fields.get("tags") {
        let tags = parse_tags(tags).into_iter();
        built.tags = tags.map(SourceText::into_owned).collect();
    }
    for (key, value) in fields.iter() {
        if !["id", "messages", "system", "tags", "metadata"].contains(&key) {
            built.meta.add_record_key(key, value);
        }
    }
    if let Some(metadata) = fields.object("metadata") {
        built.meta.merge_readable_fields(&metadata);
    }
    built.finish(out);
    Ok(())
}

//! `DeepSeek`'s data export (`conversations.json`): a tree of messages per conversation, whose texts are fragments.
//!
//! Responsible for the branch with the newest message. Messages of other branches are counted. A search is a call with its
//! result; the export has no ids for them. Does not read `user.json`.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::MetadataBuilder;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::message_tree::{branch_of, count_others};
use super::record_readers::open_records;
use super::response_items::object_text;
use super::transcript_builder::{
    TranscriptBuilder, owned_text, owned_unknown_part, reasoning_part, text_part,
};
use crate::model::{MessageRole, TranscriptPart};

/// The keys under which a fragment of a search has what was found.
const FOUND_KEYS: [&str; 3] = ["results", "result", "content"];

/// Returns true if the first record has a tree of messages with fragments.
pub(super) fn is_export(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("mapping")) && {
        let mapping = preview.first_outline()["mapping"].as_object();
        mapping.is_some_and(|nodes| {
            nodes
                .values()
                .any(|node| node["message"]["fragments"].is_array())
        })
    }
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_conversation)
}

fn parse_conversation(
    record: &str,
    _cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mapping = fields
        .object("mapping")
        .ok_or_else(|| "it has no `mapping` of messages".to_owned())?;
    let nodes: Vec<(&str, RawFields<'_>)> = mapping
        .iter()
        .map(|(id, raw)| (id, RawFields::from_raw(raw).unwrap_or_default()))
        .collect();
    let places = nodes.iter().enumerate().map(|(at, (id, _))| (*id, at));
    let places: HashMap<&str, usize> = places.collect();
    let parents: Vec<Option<usize>> = nodes
        .iter()
        .map(|(_, node)| places.get(&*node.id_text("parent")?).copied())
        .collect();
    let has_message = |(_, node): &(&str, RawFields<'_>)| node.has("message");
    // The export has the messages in the order of their times, so the last one is where the user left the conversation.
    let path = branch_of(&parents, nodes.iter().rposition(has_message));
    let mut built = TranscriptBuilder::new("deepseek", fields.id_text("id"));
    built.meta.set_raw("title", fields.get("title"));
    built.meta.set_raw("timestamp", fields.get("inserted_at"));
    let mut on_branch = 0;
    for at in path {
        if let Some(message) = nodes[at].1.object("message") {
            on_branch += 1;
            add_message(&message, &mut built);
        }
    }
    let all = nodes.iter().filter(|node| has_message(node)).count();
    count_others(all, on_branch, &mut built);
    built.finish(out);
    Ok(())
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let before = built.messages.len();
    let mut parts: Vec<TranscriptPart<'static>> = Vec::new();
    let mut role = MessageRole::Assistant;
    for raw in message.list("fragments").unwrap_or_default() {
        let fragment = RawFields::from_raw(raw).unwrap_or_default();
        let text = fragment.text("content").unwrap_or_default();
        match fragment.text("type").as_deref() {
            Some("REQUEST") => {
                role = MessageRole::User;
                parts.push(text_part(&text));
            }
            Some("RESPONSE") => parts.push(text_part(&text)),
            Some("THINK") => parts.push(reasoning_part(&text)),
            Some(kind @ ("SEARCH" | "READ_LINK")) => {
                built.push(MessageRole::Assistant, std::mem::take(&mut parts));
                add_search(&kind.to_lowercase(), &fragment, built);
            }
            _ => parts.push(owned_unknown_part(raw)),
        }
    }
    let is_answer = role == MessageRole::Assistant;
    if !parts.is_empty() || built.messages.len() == before {
        built.push(role, parts);
    }
    let files = message.list("files").unwrap_or_default();
    built.count_unknown("an attached file", files.len());
    for added in built.messages.get_mut(before..).unwrap_or_default() {
        added.meta.set_raw("timestamp", message.get("inserted_at"));
        if is_answer && added.role == MessageRole::Assistant {
            added.meta.set_raw("model", message.get("model"));
        }
    }
}

/// Adds a call and what it found.
fn add_search(tool: &str, fragment: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let mut arguments = MetadataBuilder::default();
    for (key, value) in fragment.iter() {
        if key != "type" && !FOUND_KEYS.contains(&key) {
            arguments.set_raw(key, Some(value));
        }
    }
    built.push_call("", tool, object_text(arguments));
    let found: Option<&RawValue> = fragment.get_first(&FOUND_KEYS);
    if let Some(found) = found {
        built.push_result("", owned_text(found), None);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    fn node(id: &str, parent: Option<&str>, fragments: &Value) -> Value {
        json!({"id": id, "parent": parent, "children": [], "message": {"files": [], "model": "deepseek-chat",
            "inserted_at": "2026-01-02T00:00:00Z", "fragments": fragments}})
    }

    #[test]
    fn newest_branch_is_read_with_thoughts_and_searches() {
        let search = json!([
            {"type": "THINK", "content": "I search."},
            {"type": "SEARCH", "queries": ["capital"], "results": [{"url": "u"}]},
            {"type": "RESPONSE", "content": "Paris."},
            {"type": "TIP", "content": "Check it."},
        ]);
        let conversation = json!([{"id": "c-1", "title": "T", "inserted_at": "2026-01-02T00:00:00Z", "mapping": {
            "root": {"id": "root", "parent": null, "children": ["1"], "message": null},
            "1": node("1", Some("root"), &json!([{"type": "REQUEST", "content": "Capital?"}])),
            "2": node("2", Some("1"), &json!([{"type": "RESPONSE", "content": "Rome."}])),
            "3": node("3", Some("1"), &search),
        }}]);
        let (all, tally) = read(conversation.to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(one["id"], "c-1");
        assert_eq!(
            message_lines(one),
            [
                "user Capital?",
                "assistant <reasoning> | search({\"queries\":[\"capital\"]})",
                "tool [{\"url\":\"u\"}]",
                "assistant Paris. | <TIP>",
            ]
        );
        assert_eq!(one["messages"][3]["metadata"]["model"], "deepseek-chat");
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        assert_eq!(counts, [("a message of another branch".to_owned(), 1)]);
    }
}

//! Grok's data export (`prod-grok-backend.json`): conversations with their responses.
//!
//! Responsible for the branch with the last response. Responses of other branches are counted. Does not read the other
//! files of the export.

use std::collections::HashMap;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::text_or_json;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::message_tree::{branch_of, count_others};
use super::record_readers::open_elements;
use super::transcript_builder::{TranscriptBuilder, reasoning_part, text_part};
use crate::model::{MessageRole, TranscriptPart};

/// Returns true if the first record, or the first of its conversations, has responses.
pub(super) fn is_export(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    [first, &first["conversations"][0]].iter().any(|one| {
        one["conversation"].is_object()
            && one["responses"].is_array()
            && (one["responses"][0]["response"].is_object() || one["responses"][0].is_null())
    })
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    open_elements(source, preview, &[&["conversations"]], parse_conversation)
}

fn parse_conversation(
    record: &str,
    _cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let responses = outer
        .list("responses")
        .ok_or_else(|| "it is not a conversation: it has no `responses`".to_owned())?;
    let responses: Vec<RawFields<'_>> = responses
        .into_iter()
        .map(|raw| {
            let wrapper = RawFields::from_raw(raw).unwrap_or_default();
            wrapper.object("response").unwrap_or_default()
        })
        .collect();
    let conversation = outer.object("conversation").unwrap_or_default();
    let id = conversation.id_text("id");
    let mut built = TranscriptBuilder::new("grok", id);
    built.meta.set_raw("title", conversation.get("title"));
    built
        .meta
        .set("timestamp", read_time(&conversation, "create_time"));
    // An empty conversation is not broken.
    if responses.is_empty() {
        out.count_unknown("a conversation without messages");
        return Ok(());
    }
    let path = find_path(&responses);
    for at in &path {
        add_response(&responses[*at], &mut built);
    }
    count_others(responses.len(), path.len(), &mut built);
    built.finish(out);
    Ok(())
}

/// Returns the places of the responses that lead to the last one. Older exports have no links, so all of them do.
fn find_path(responses: &[RawFields<'_>]) -> Vec<usize> {
    let ids = responses
        .iter()
        .enumerate()
        .filter_map(|(at, response)| Some((response.id_text("_id")?.0.into_owned(), at)));
    let places: HashMap<String, usize> = ids.collect();
    let parents: Vec<Option<usize>> = responses
        .iter()
        .map(|response| {
            let parent = response.id_text("parent_response_id")?;
            places.get(&*parent).copied()
        })
        .collect();
    if parents.iter().all(Option::is_none) {
        return (0..responses.len()).collect();
    }
    branch_of(&parents, responses.len().checked_sub(1))
}

fn add_response(response: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let sender = response.text("sender").unwrap_or_default();
    let role = match sender.to_ascii_lowercase().as_str() {
        "human" | "user" => MessageRole::User,
        _ => MessageRole::Assistant,
    };
    let mut parts: Vec<TranscriptPart<'static>> = Vec::new();
    let traces = response.list("agent_thinking_traces").unwrap_or_default();
    let traces = traces.into_iter().filter_map(RawFields::from_raw);
    let thoughts = traces.filter_map(|trace| trace.text("thinking_trace"));
    for thought in response.text("thinking_trace").into_iter().chain(thoughts) {
        if !thought.is_empty() {
            parts.push(reasoning_part(&thought));
        }
    }
    let text = response.text("message").unwrap_or_default();
    if !text.is_empty() {
        parts.push(text_part(&text));
    }
    let is_answer = role == MessageRole::Assistant;
    built.push(role, parts);
    if let Some(added) = built.messages.last_mut() {
        let time = read_time(response, "create_time");
        added.meta.set("timestamp", time);
        if is_answer {
            added.meta.set_raw("model", response.get("model"));
            let found = response.get("web_search_results");
            let found = found.filter(|found| found.get() != "[]");
            added.meta.set_readable("web_search_results", found);
        }
    }
    let files = response.list("file_attachments").unwrap_or_default();
    built.count_unknown("an attached file", files.len());
}

/// Returns a time: a text, or the milliseconds that `MongoDB` wraps in `{"$date": {"$numberLong": …}}`.
fn read_time(fields: &RawFields<'_>, key: &str) -> Option<String> {
    let Some(wrapper) = fields.object(key) else {
        return Some(fields.text_or_json(key)?.0.into_owned());
    };
    let date = wrapper.get("$date")?;
    let number = RawFields::from_raw(date).and_then(|date| date.text("$numberLong"));
    let time = number.unwrap_or_else(|| text_or_json(date));
    Some(time.0.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};

    fn response(id: &str, parent: Option<&str>, sender: &str, text: &str) -> Value {
        json!({"response": {"_id": id, "parent_response_id": parent, "sender": sender, "message": text, "model": "grok-3",
            "create_time": {"$date": {"$numberLong": "1735689600000"}}}})
    }

    #[test]
    fn branch_with_the_last_response_is_read() {
        let conversation = |id: &str, responses: Value| json!({"conversation": {"id": id, "title": "T"}, "responses": responses});
        let file = json!({"conversations": [
            conversation("g1", json!([
                response("r1", None, "human", "Hi"),
                response("r2", Some("r1"), "assistant", "Hello"),
                response("r3", Some("r1"), "ASSISTANT", "Hey"),
            ])),
            conversation("g2", json!([
                response("a", None, "human", "One"),
                response("b", None, "assistant", "1"),
            ])),
            conversation("g3", json!([])),
        ], "projects": []});
        let (all, tally) = read(file.to_string().as_bytes());
        assert_eq!(
            lines_of_each(&all),
            [["user Hi", "assistant Hey"], ["user One", "assistant 1"]]
        );
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(one["id"], "g1");
        let answer = &one["messages"][1]["metadata"];
        assert_eq!(answer["timestamp"], "1735689600000");
        assert_eq!(answer["model"], "grok-3");
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        let expected = [
            "a conversation without messages",
            "a message of another branch",
        ];
        assert_eq!(counts, expected.map(|kind| (kind.to_owned(), 1)));
    }
}

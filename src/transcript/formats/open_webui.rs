//! Chats of Open WebUI, as it exports them: a tree of messages per chat.
//!
//! Responsible for the branch that ends at `currentId`. Messages of other branches, such as the answers of other models, are
//! counted. Reasoning and calls are elements in the text of an answer, or items under `output`. A person's rating of an
//! answer of the branch is a label. Does not read the export of ratings.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::{json_string, parse_tags};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::details_blocks::{TextPiece, split_text};
use super::exchange::parse_usage;
use super::foreign_message::add_messages;
use super::message_tree::{branch_of, count_others};
use super::record_readers::open_records;
use super::transcript_builder::{
    TranscriptBuilder, call_part, media_part, reasoning_part, role_of, text_part,
};
use crate::model::{Label, MessageRole, SourceText, TranscriptPart};

/// Returns true if the first record is a chat.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    is_tree(&record["chat"]["history"]) || is_tree(&record["history"])
}

fn is_tree(history: &Value) -> bool {
    let messages = history["messages"].as_object();
    let is_message = |message: &Value| {
        message["role"].is_string()
            && (message["id"].is_string() || message["parentId"].is_string())
    };
    messages.is_some_and(|messages| messages.values().any(is_message))
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_chat)
}

fn parse_chat(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let chat = fields.object("chat").unwrap_or_else(|| fields.clone());
    let history = chat.object("history").unwrap_or_default();
    let tree = history
        .object("messages")
        .ok_or_else(|| "it has no `history` with messages".to_owned())?;
    let messages: Vec<(&str, RawFields<'_>)> = tree
        .iter()
        .filter_map(|(id, raw)| Some((id, RawFields::from_raw(raw)?)))
        .collect();
    if messages.is_empty() {
        out.count_unknown("a chat without messages");
        return Ok(());
    }
    let places: HashMap<&str, usize> = messages
        .iter()
        .enumerate()
        .map(|(at, (id, _))| (*id, at))
        .collect();
    let parents: Vec<Option<usize>> = messages
        .iter()
        .map(|(_, message)| places.get(&*message.id_text("parentId")?).copied())
        .collect();
    let current = history.id_text("currentId");
    let current = current.and_then(|id| places.get(&*id).copied());
    let path = branch_of(&parents, current.or_else(|| messages.len().checked_sub(1)));
    let mut built = TranscriptBuilder::new("open-webui", fields.id_text("id"));
    let system = chat
        .object("params")
        .and_then(|params| params.text("system"));
    if let Some(system) = system.filter(|system| !system.is_empty()) {
        built.push_text(MessageRole::System, &system);
    }
    for at in &path {
        add_message(&messages[*at].1, &mut built);
    }
    if let [only] = &mut built.labels[..] {
        "rating".clone_into(&mut only.eval);
    }
    count_others(messages.len(), path.len(), &mut built);
    let title = fields.get("title").or_else(|| chat.get("title"));
    built.meta.set_raw("title", title);
    built.meta.set_raw("timestamp", fields.get("created_at"));
    built.meta.set_readable("models", chat.get("models"));
    let meta = fields.object("meta").unwrap_or_default();
    let tags = meta.get("tags").map(parse_tags).unwrap_or_default();
    built.tags = tags.into_iter().map(SourceText::into_owned).collect();
    built.finish(out);
    Ok(())
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let role = role_of(&message.text("role").unwrap_or_default());
    let before = built.messages.len();
    let output = message.list("output").filter(|items| !items.is_empty());
    match (message.get("output"), message.get("content")) {
        (Some(items), _) if output.is_some() => add_messages(items, &role, built),
        (_, Some(content)) => add_content(content, &role, built),
        (_, None) => built.push(role.clone(), Vec::new()),
    }
    let own = &mut built.messages[before..];
    let Some(last) = own.iter_mut().rev().find(|own| own.role == role) else {
        return;
    };
    for raw in message.list("files").unwrap_or_default() {
        let file = RawFields::from_raw(raw).unwrap_or_default();
        let kind = file.text("type");
        let kind = kind.as_deref().unwrap_or("file");
        last.parts.push(media_part(kind, raw));
    }
    last.meta.set_raw("timestamp", message.get("timestamp"));
    if role != MessageRole::Assistant {
        return;
    }
    last.meta.set_raw("model", message.get("model"));
    if let Some(usage) = message.object("usage").or_else(|| message.object("info")) {
        last.meta.set("usage", parse_usage(&usage).to_json());
    }
    let error = message.object("error");
    let error = error.as_ref().and_then(|error| error.get("content"));
    last.meta.set_raw("error", error);
    // The pages and documents that the answer rests on.
    last.meta.set_readable("sources", message.get("sources"));
    let number = built.messages.len() - 1;
    add_rating(message, number, built);
}

/// Adds the content of a message, with the elements of an assistant's text.
fn add_content(content: &RawValue, role: &MessageRole<'static>, built: &mut TranscriptBuilder) {
    let text = json_string(content).filter(|_| *role == MessageRole::Assistant);
    let Some(text) = text else {
        return add_parts(content, role, built);
    };
    let before = built.messages.len();
    let mut parts: Vec<TranscriptPart<'static>> = Vec::new();
    for piece in split_text(&text) {
        match piece {
            TextPiece::Text(text) => parts.push(text_part(&text)),
            TextPiece::Reasoning(text) => parts.push(reasoning_part(&text)),
            TextPiece::Call {
                id,
                name,
                arguments,
                result,
            } => {
                parts.push(call_part(&id, &name, arguments));
                if let Some(result) = result {
                    built.push(role.clone(), std::mem::take(&mut parts));
                    built.push_result(&id, result, None);
                }
            }
        }
    }
    if !parts.is_empty() || built.messages.len() == before {
        built.push(role.clone(), parts);
    }
}

/// Adds content that is not an assistant's text as it is.
fn add_parts(content: &RawValue, role: &MessageRole<'static>, built: &mut TranscriptBuilder) {
    match json_string(content) {
        Some(text) => built.push_text(role.clone(), &text),
        None => add_messages(content, role, built),
    }
}

/// Adds the rating of an answer as a label. `number` is the position of its message.
fn add_rating(message: &RawFields<'_>, number: usize, built: &mut TranscriptBuilder) {
    let Some(annotation) = message.object("annotation") else {
        return;
    };
    let rating = annotation.number("rating");
    let Some(rating) = rating.filter(|rating| *rating != 0.0) else {
        return;
    };
    let note = annotation.filled_text("comment");
    built.labels.push(Label {
        transcript: built.id.clone(),
        eval: format!("rating@{number}"),
        passed: Some(rating > 0.0),
        note: note.map(|note| note.0.into_owned()),
        ..Label::default()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    fn read_one(record: &Value) -> (Value, Vec<(String, u64)>) {
        let (mut all, tally) = read(json!([record]).to_string().as_bytes());
        let transcript = all.remove(0).expect("a transcript");
        (transcript, tally.unknown.into_iter().collect())
    }

    #[test]
    fn branch_of_the_current_message_is_read_with_its_elements() {
        let answer = "<details type=\"reasoning\" done=\"true\">\n<summary>x</summary>\n> hm\n</details>\nI look.\n\
            <details type=\"tool_calls\" done=\"true\" id=\"c1\" name=\"find\" arguments=\"{}\">\n<summary>x</summary>\n60\n</details>\nSixty.";
        let chat = json!({"id": "c", "title": "Age", "chat": {"models": ["m"], "params": {"system": "Be brief."}, "history": {
            "currentId": "b",
            "messages": {
                "a": {"id": "a", "parentId": null, "role": "user", "content": "Age?"},
                "b": {"id": "b", "parentId": "a", "role": "assistant", "content": answer, "model": "m"},
                "d": {"id": "d", "parentId": "a", "role": "assistant", "content": "No.", "model": "n"},
            },
        }}});
        let (transcript, unknown) = read_one(&chat);
        assert_eq!(
            message_lines(&transcript),
            [
                "system Be brief.",
                "user Age?",
                "assistant <reasoning> | I look. | find({})",
                "tool 60",
                "assistant Sixty.",
            ]
        );
        let others = [("a message of another branch".to_owned(), 1)];
        assert_eq!(unknown, others);
    }

    #[test]
    fn items_of_an_answer_come_before_its_text() {
        let output = json!([
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "60"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sixty."}]},
        ]);
        let chat = json!({"id": "c", "chat": {"history": {"currentId": "b", "messages": {
            "a": {"id": "a", "parentId": null, "role": "user", "content": "Age?"},
            "b": {"id": "b", "parentId": "a", "role": "assistant", "content": "Sixty.", "output": output},
        }}}});
        let (transcript, _) = read_one(&chat);
        assert_eq!(
            message_lines(&transcript),
            [
                "user Age?",
                "assistant find({})",
                "tool 60",
                "assistant Sixty."
            ]
        );
    }
}

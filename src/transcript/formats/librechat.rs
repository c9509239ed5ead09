//! Exports of LibreChat's conversations.
//!
//! Responsible for the branch that ends with the last message; dicta counts messages of other branches. The messages are a
//! list, or a tree with `children`. Calls and thoughts are parts of an answer's content. A person's rating of an answer of
//! the branch is a label.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::message_tree::{branch_of, count_others};
use super::record_readers::open_records;
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, media_part, owned_text, owned_unknown_part,
    reasoning_part, text_part,
};
use crate::model::{Label, MessageRole, TranscriptPart};

/// The depth of the tree that dicta reads: it reads the text of a message again for each message above it.
const MAX_DEPTH: usize = 128;

/// Returns true if the first record is a conversation with messages of LibreChat.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    record["conversationId"].is_string() && record["messages"][0]["isCreatedByUser"].is_boolean()
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_chat)
}

fn parse_chat(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let chat = RawFields::parse(record)?;
    let messages = chat
        .list("messages")
        .ok_or_else(|| "it is not a conversation: it has no `messages`".to_owned())?;
    let messages = flatten(messages)?;
    let parents = find_parents(&messages);
    let path = branch_of(&parents, messages.len().checked_sub(1));
    let mut built = TranscriptBuilder::new("librechat", chat.id_text("conversationId"));
    let options = chat.object("options").unwrap_or_default();
    let system = ["promptPrefix", "system", "instructions"];
    let system = system.iter().find_map(|key| options.text(key));
    if let Some(system) = system.filter(|system| !system.is_empty()) {
        built.push_text(MessageRole::System, &system);
    }
    for at in &path {
        add_message(&messages[*at].fields, &mut built);
    }
    if let [only] = &mut built.labels[..] {
        "rating".clone_into(&mut only.eval);
    }
    count_others(messages.len(), path.len(), &mut built);
    built.meta.set_raw("title", chat.get("title"));
    built.meta.set_raw("provider", chat.get("endpoint"));
    built.meta.set_raw("model", options.get("model"));
    built.finish(out);
    Ok(())
}

/// A message of the list or the tree.
struct ChatMessage<'a> {
    fields: RawFields<'a>,
    /// The place of the message that has it in its `children`.
    above: Option<usize>,
}

/// Returns all messages, each before those below it.
fn flatten(messages: Vec<&RawValue>) -> Result<Vec<ChatMessage<'_>>, String> {
    let mut all: Vec<ChatMessage<'_>> = Vec::new();
    let mut open: Vec<(&RawValue, Option<usize>, usize)> = Vec::new();
    open.extend(messages.into_iter().rev().map(|raw| (raw, None, 0)));
    while let Some((raw, above, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(format!(
                "its messages are nested deeper than {MAX_DEPTH} levels; export it again without `Recursive`"
            ));
        }
        let fields = RawFields::from_raw(raw).unwrap_or_default();
        let children = fields.list("children").unwrap_or_default();
        let place = Some(all.len());
        open.extend(
            children
                .into_iter()
                .rev()
                .map(|raw| (raw, place, depth + 1)),
        );
        all.push(ChatMessage { fields, above });
    }
    Ok(all)
}

/// Returns the place of the message before each one. Without such links, the order of the list counts.
fn find_parents(messages: &[ChatMessage<'_>]) -> Vec<Option<usize>> {
    let mut places = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some(id) = message.fields.id_text("messageId") {
            places.insert(id.0.into_owned(), at);
        }
    }
    let parents = messages.iter().map(|message| {
        let named = message.fields.id_text("parentMessageId");
        let named = named.and_then(|id| places.get(&*id).copied());
        message.above.or(named)
    });
    let parents: Vec<Option<usize>> = parents.collect();
    if parents.iter().all(Option::is_none) {
        return (0..messages.len()).map(|at| at.checked_sub(1)).collect();
    }
    parents
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let role = if message.flag("isCreatedByUser") == Some(true) {
        MessageRole::User
    } else {
        MessageRole::Assistant
    };
    let before = built.messages.len();
    let mut parts = Vec::new();
    for raw in message.list("content").unwrap_or_default() {
        add_part(raw, &role, &mut parts, built);
    }
    let has_content = !parts.is_empty() || built.messages.len() > before;
    let text = message.filled_text("text");
    parts.extend(text.filter(|_| !has_content).map(|text| text_part(&text)));
    for raw in message.list("files").unwrap_or_default() {
        parts.push(media_part("file", raw));
    }
    // A message without content remains visible, because it has a sender.
    if !parts.is_empty() || built.messages.len() == before {
        built.push(role.clone(), parts);
    }
    for _ in message.list("attachments").unwrap_or_default() {
        built.unknown.push("an attachment of an answer".to_owned());
    }
    let number = built.messages.len() - 1;
    let own = &mut built.messages[before..];
    if let Some(last) = own.iter_mut().rev().find(|own| own.role == role) {
        last.meta.set_raw("timestamp", message.get("createdAt"));
        if role == MessageRole::Assistant {
            last.meta.set_raw("model", message.get("model"));
            last.meta
                .set_raw("stop_reason", message.get("finish_reason"));
        }
        if message.flag("error") == Some(true) {
            last.meta.set("error", true);
        }
    }
    add_rating(message, number, built);
}

fn add_part(
    raw: &RawValue,
    role: &MessageRole<'static>,
    parts: &mut Vec<TranscriptPart<'static>>,
    built: &mut TranscriptBuilder,
) {
    let part = RawFields::from_raw(raw).unwrap_or_default();
    let kind = part.text("type").unwrap_or_default();
    // A text is an object with `value` in conversations with Assistants.
    let read = |key: &str| {
        let inner = part.object(key);
        let text = part.text(key).or_else(|| inner?.text("value"));
        text.filter(|text| !text.is_empty())
    };
    match &*kind {
        "text" => parts.extend(read("text").map(|text| text_part(&text))),
        "think" => parts.extend(read("think").map(|thought| reasoning_part(&thought))),
        "tool_call" => {
            let call = part.object("tool_call").unwrap_or_default();
            let function = call.object("function").unwrap_or_else(|| call.clone());
            let id = call.id_text("id").unwrap_or_default();
            let name = function.text("name").unwrap_or_default();
            let arguments = call_arguments(function.get_first(&["args", "arguments"]));
            parts.push(call_part(&id, &name, arguments));
            let output = function.get("output").filter(|raw| raw.get() != "\"\"");
            if let Some(output) = output {
                built.push(role.clone(), std::mem::take(parts));
                built.push_result(&id, owned_text(output), None);
            }
        }
        "image_file" | "image_url" => parts.push(media_part(&kind, raw)),
        _ => parts.push(owned_unknown_part(raw)),
    }
}

/// Adds the rating of an answer as a label. `number` is the position of its message.
fn add_rating(message: &RawFields<'_>, number: usize, built: &mut TranscriptBuilder) {
    let feedback = message.object("feedback").unwrap_or_default();
    let passed = match feedback.text("rating").as_deref() {
        Some("thumbsUp") => true,
        Some("thumbsDown") => false,
        _ => return,
    };
    let note = feedback.filled_text("text");
    built.labels.push(Label {
        transcript: built.id.clone(),
        eval: format!("rating@{number}"),
        passed: Some(passed),
        note: note.map(|note| note.0.into_owned()),
        ..Label::default()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    fn chat(messages: &Value) -> Value {
        json!({"conversationId": "c", "endpoint": "openAI", "messages": messages})
    }

    fn say(id: &str, parent: &str, text: &str) -> Value {
        json!({"messageId": id, "parentMessageId": parent, "text": text, "isCreatedByUser": id.starts_with('u')})
    }

    #[test]
    fn list_of_branches_is_the_branch_of_the_last_message() {
        let messages = json!([
            say("u1", "0", "Hi"),
            say("a1", "u1", "Hello"),
            say("a2", "u1", "Hey"),
            say("u2", "a2", "Bye"),
        ]);
        let (all, tally) = read(chat(&messages).to_string().as_bytes());
        let lines = message_lines(all[0].as_ref().expect("a transcript"));
        assert_eq!(lines, ["user Hi", "assistant Hey", "user Bye"]);
        let unknown: Vec<(String, u64)> = tally.unknown.into_iter().collect();
        assert_eq!(unknown, [("a message of another branch".to_owned(), 1)]);
    }

    #[test]
    fn tree_that_is_too_deep_is_an_error_with_its_fix() {
        let mut message = say("u", "0", "Hi");
        for _ in 0..super::MAX_DEPTH {
            let mut above = say("u", "0", "Hi");
            above["children"] = json!([message]);
            message = above;
        }
        let record = |message: &Value| chat(&json!([message])).to_string();
        let (all, _) = read(record(&message).as_bytes());
        assert!(all[0].is_ok(), "{:?}", all[0]);
        let mut above = say("u", "0", "Hi");
        above["children"] = json!([message]);
        let both = format!(
            "{}\n{}\n",
            chat(&json!([say("u1", "0", "Hi")])),
            record(&above)
        );
        let (all, _) = read(both.as_bytes());
        let why = all[1].as_ref().expect_err("it is too deep");
        assert!(why.contains("without `Recursive`"), "{why}");
    }
}

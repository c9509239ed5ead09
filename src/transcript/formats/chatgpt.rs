//! ChatGPT's data export (`conversations.json`): a tree of messages per conversation.
//!
//! Responsible for the branch that the user last saw, which ends at `current_node`. Messages of other branches are
//! counted. Programs that rewrite exports may drop the links between messages: then the order of the file is the
//! conversation. A message to a tool is a call, and the tool's message its result; the export has no ids for them, so
//! they pair by order. Custom instructions and memories are system messages, because the program adds them. Does not
//! read `message_feedback.json` and `user.json`.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::{json_string, text_or_json};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::open_records;
use super::transcript_builder::{
    TranscriptBuilder, owned_unknown_part, reasoning_part, role_of, text_part,
};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// The keys of custom instructions and of memories, which ChatGPT adds for the model.
const CONTEXT_KEYS: [&str; 3] = ["user_profile", "user_instructions", "model_set_context"];
/// The name under which exports of 2024 have the thoughts of o1, as if a tool had written them.
const THOUGHT_TOOL: &str = "a8km123";

/// Returns true if the first record is a conversation of ChatGPT.
pub(super) fn is_export(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("mapping")) && {
        let mapping = preview.first_outline()["mapping"].as_object();
        mapping.is_some_and(|nodes| {
            nodes
                .values()
                .any(|node| node["children"].is_array() || node["message"]["author"].is_object())
        })
    }
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
    let mapping = fields
        .object("mapping")
        .ok_or_else(|| "it has no `mapping` of messages".to_owned())?;
    let nodes: HashMap<&str, RawFields<'_>> = mapping
        .iter()
        .filter_map(|(id, raw)| Some((id, RawFields::from_raw(raw)?)))
        .collect();
    let path = current_path(&fields, &mapping, &nodes);
    let id = fields
        .id_text("conversation_id")
        .or_else(|| fields.id_text("id"));
    let mut built = TranscriptBuilder::new("chatgpt", id);
    for id in &path {
        if let Some(message) = nodes.get(&**id).and_then(|node| node.object("message")) {
            add_message(&message, &mut built);
        }
    }
    let on_path: std::collections::HashSet<&str> = path.iter().map(|id| &**id).collect();
    for (id, node) in &nodes {
        let has_text = node
            .object("message")
            .is_some_and(|message| has_content(&message));
        if has_text && !on_path.contains(id) {
            built.unknown.push("a message of another branch".to_owned());
        }
    }
    built.meta.set_raw("timestamp", fields.get("create_time"));
    built
        .meta
        .set_raw("model", fields.get("default_model_slug"));
    built.meta.set_raw("title", fields.get("title"));
    built.meta.set_raw("gizmo_id", fields.get("gizmo_id"));
    built.finish(out);
    Ok(())
}

/// Returns the ids of the nodes from the root to the current node.
fn current_path<'a>(
    fields: &RawFields<'a>,
    mapping: &RawFields<'a>,
    nodes: &HashMap<&str, RawFields<'a>>,
) -> Vec<SourceText<'a>> {
    let parents = parents_of(mapping, nodes);
    if parents.is_empty() {
        // No node names another one.
        let ids = mapping
            .iter()
            .map(|(id, _)| SourceText::from(id.to_owned()));
        return ids.collect();
    }
    let mut path = Vec::new();
    // Without a current node, the last leaf of the file counts.
    let leaf = || {
        let leaves = mapping.iter().filter_map(|(id, raw)| {
            let children = RawFields::from_raw(raw)?
                .list("children")
                .unwrap_or_default();
            children.is_empty().then(|| SourceText::from(id.to_owned()))
        });
        leaves.last()
    };
    let mut next = fields.id_text("current_node").or_else(leaf);
    while let Some(id) = next {
        // A cycle of parents would never end.
        if path.len() > nodes.len() {
            break;
        }
        next = parents.get(&*id).cloned();
        path.push(id);
    }
    path.reverse();
    path
}

/// Returns the parent of each node, by its id: the one that the node names, else the one that lists it as its child.
fn parents_of<'a>(
    mapping: &RawFields<'a>,
    nodes: &HashMap<&str, RawFields<'a>>,
) -> HashMap<String, SourceText<'a>> {
    let mut parents = HashMap::new();
    for (id, _) in mapping.iter() {
        let Some(node) = nodes.get(id) else { continue };
        for child in node.list("children").unwrap_or_default() {
            if let Some(child) = json_string(child) {
                parents.insert(child.0.into_owned(), SourceText::from(id.to_owned()));
            }
        }
    }
    for (id, node) in nodes {
        if let Some(parent) = node.id_text("parent") {
            parents.insert((*id).to_owned(), parent);
        }
    }
    parents
}

fn has_content(message: &RawFields<'_>) -> bool {
    let Some(content) = message.object("content") else {
        return false;
    };
    let texts = ["text", "result", "content", "thoughts"];
    let mut keys = texts.iter().chain(&CONTEXT_KEYS);
    let parts = content.list("parts").unwrap_or_default();
    let is_filled = |raw: &RawValue| !matches!(raw.get(), "\"\"" | "null");
    keys.any(|key| content.get(key).is_some_and(is_filled))
        || parts.iter().any(|part| part.get() != "\"\"")
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    // Empty system messages mark the beginning of a conversation.
    if !has_content(message) {
        return;
    }
    let author = message.object("author").unwrap_or_default();
    let role = author.text("role");
    let role = role.map_or(MessageRole::User, |role| role_of(&role));
    let content = message.object("content").unwrap_or_default();
    let kind = content.text("content_type").unwrap_or_default();
    let recipient = message.text("recipient").unwrap_or_default();
    let mut parts = content_parts(&kind, &content);
    let is_thought =
        role == MessageRole::Tool && author.text("name").as_deref() == Some(THOUGHT_TOOL);
    let role = if is_context(&kind) {
        MessageRole::System
    } else if is_thought {
        parts = vec![reasoning_part(&join_texts(&parts))];
        MessageRole::Assistant
    } else {
        role
    };
    let metadata = message.object("metadata").unwrap_or_default();
    let is_call =
        !is_thought && role == MessageRole::Assistant && !matches!(&*recipient, "" | "all");
    if is_call {
        built.push_call("", &recipient, join_texts(&parts));
    } else if role == MessageRole::Tool {
        let text = join_texts(&parts);
        built.push_result("", text, tool_failed(&kind, &metadata));
        let media = parts
            .into_iter()
            .filter(|part| matches!(part, TranscriptPart::Media { .. }));
        if let Some(last) = built.messages.last_mut() {
            if let Some(TranscriptPart::ToolResult(result)) = last.parts.first_mut() {
                result.duration_ms = run_time(&metadata);
            }
            last.parts.extend(media);
        }
    } else if !parts.is_empty() {
        let only_thoughts = parts
            .iter()
            .all(|part| matches!(part, TranscriptPart::Reasoning(_)));
        // Reasoning is a message of its own in the export, before the message that it belongs to.
        built.push(role.clone(), parts);
        if only_thoughts {
            return;
        }
        merge_reasoning(built);
    } else {
        // The metadata below belongs to no message.
        return;
    }
    if let Some(last) = built.messages.last_mut() {
        last.meta.set_raw("timestamp", message.get("create_time"));
        if last.role == MessageRole::Assistant {
            last.meta.set_raw("model", metadata.get("model_slug"));
            let finish = metadata.object("finish_details");
            let stop = finish.as_ref().and_then(|details| details.get("type"));
            last.meta.set_raw("stop_reason", stop);
        }
    }
}

/// Returns true or false if a message of a tool states whether it failed.
fn tool_failed(kind: &str, metadata: &RawFields<'_>) -> Option<bool> {
    if kind == "system_error" {
        return Some(true);
    }
    let run = metadata.object("aggregate_result")?;
    match run.text("status").as_deref() {
        Some("success") => Some(false),
        Some(status) if status.starts_with("failed") => Some(true),
        // A run that was cancelled, or that goes on.
        _ => None,
    }
}

/// Returns the duration of a run of code, in milliseconds.
fn run_time(metadata: &RawFields<'_>) -> Option<f64> {
    let run = metadata.object("aggregate_result")?;
    let (from, to) = (run.number("start_time")?, run.number("end_time")?);
    Some(((to - from) * 1000.0).max(0.0))
}

/// Joins the last message with a message of reasoning before it.
fn merge_reasoning(built: &mut TranscriptBuilder) {
    let Some(at) = built.messages.len().checked_sub(2) else {
        return;
    };
    let before = &built.messages[at];
    let is_reasoning = before.role == MessageRole::Assistant
        && built.messages[at + 1].role == MessageRole::Assistant
        && before
            .parts
            .iter()
            .all(|part| matches!(part, TranscriptPart::Reasoning(_)));
    if is_reasoning {
        let mut last = built.messages.pop().expect("there are two");
        let mut before = built.messages.pop().expect("there are two");
        before.parts.append(&mut last.parts);
        last.parts = before.parts;
        built.messages.push(last);
    }
}

/// Returns true for custom instructions and memories.
fn is_context(kind: &str) -> bool {
    matches!(kind, "user_editable_context" | "model_editable_context")
}

fn content_parts(kind: &str, content: &RawFields<'_>) -> Vec<TranscriptPart<'static>> {
    match kind {
        "thoughts" => {
            let thoughts = content.list("thoughts").unwrap_or_default();
            let texts = thoughts.iter().filter_map(|raw| {
                let thought = RawFields::from_raw(raw)?;
                thought.text("content").or_else(|| thought.text("summary"))
            });
            texts.map(|text| reasoning_part(&text)).collect()
        }
        "reasoning_recap" => {
            let text = content.text("content").unwrap_or_default();
            vec![reasoning_part(&text)]
        }
        kind if is_context(kind) => {
            let texts = CONTEXT_KEYS.iter().filter_map(|key| content.text(key));
            texts
                .filter(|text| !text.is_empty())
                .map(|text| text_part(&text))
                .collect()
        }
        _ => {
            let mut parts: Vec<TranscriptPart<'static>> = Vec::new();
            for raw in content.list("parts").unwrap_or_default() {
                add_part(raw, &mut parts);
            }
            let texts = ["text", "result", "content"];
            if parts.is_empty()
                && let Some(raw) = texts.iter().find_map(|key| content.get(key))
            {
                parts.push(text_part(&text_or_json(raw)));
            }
            parts
        }
    }
}

fn add_part(raw: &RawValue, parts: &mut Vec<TranscriptPart<'static>>) {
    if let Some(text) = json_string(raw) {
        if !text.is_empty() {
            parts.push(text_part(&text));
        }
        return;
    }
    let fields = RawFields::from_raw(raw).unwrap_or_default();
    // A spoken message has its text in the part.
    if let Some(text) = fields.filled_text("text") {
        return parts.push(text_part(&text));
    }
    let kind = fields.text("content_type").unwrap_or_default();
    match owned_unknown_part(raw) {
        TranscriptPart::Other(raw) if kind.contains("asset_pointer") => {
            parts.push(TranscriptPart::Media {
                kind: kind.into_owned(),
                raw,
            });
        }
        part => parts.push(part),
    }
}

fn join_texts(parts: &[TranscriptPart<'_>]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        TranscriptPart::Text(text) => Some(text.to_string()),
        TranscriptPart::Other(raw) => Some(raw.get().to_owned()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    /// Returns a node with a text, and with links if there are any.
    fn node(role: &str, text: &str, links: &Value) -> Value {
        let mut node = json!({"message": {"author": {"role": role}, "content": {"parts": [text]}}});
        for (key, value) in links.as_object().into_iter().flatten() {
            node[key] = value.clone();
        }
        node
    }

    /// Returns the messages of the only conversation, and the number of messages that were not read.
    fn read_mapping(mapping: &Value) -> (Vec<String>, u64) {
        let export = json!([{"id": "c1", "title": "t", "mapping": mapping}]);
        let (all, tally) = read(export.to_string().as_bytes());
        assert_eq!(all.len(), 1);
        let lines = message_lines(all[0].as_ref().expect("a conversation"));
        (lines, tally.unknown_count())
    }

    #[test]
    fn without_links_the_order_of_the_file_is_the_conversation() {
        let none = json!({});
        let mapping = json!({
            "n1": node("user", "Hi", &none),
            "n2": node("assistant", "Hello", &none),
            "n3": {"message": null},
            "n4": node("user", "Bye", &none),
        });
        let wanted = ["user Hi", "assistant Hello", "user Bye"];
        let (lines, unread) = read_mapping(&mapping);
        assert_eq!(
            (lines.as_slice(), unread),
            (&wanted.map(String::from)[..], 0)
        );
    }

    #[test]
    fn children_name_the_parent_of_a_node_that_does_not() {
        let mapping = json!({
            "n1": node("user", "Hi", &json!({"children": ["n2", "n3"]})),
            "n2": node("assistant", "An earlier answer", &json!({"children": []})),
            "n3": node("assistant", "Hello", &json!({"children": []})),
        });
        let wanted = ["user Hi", "assistant Hello"];
        let (lines, unread) = read_mapping(&mapping);
        assert_eq!(
            (lines.as_slice(), unread),
            (&wanted.map(String::from)[..], 1)
        );
    }

    #[test]
    fn custom_instructions_and_memories_are_system_messages() {
        let context = |role: &str, content: &Value| {
            let metadata = json!({"is_visually_hidden_from_conversation": true});
            json!({"message": {"author": {"role": role}, "content": content, "metadata": metadata}})
        };
        let none = json!({});
        let mapping = json!({
            "n1": context("user", &json!({"content_type": "user_editable_context", "user_profile": "", "user_instructions": "Write short answers."})),
            "n2": context("assistant", &json!({"content_type": "model_editable_context", "model_set_context": "The user grows roses."})),
            "n3": context("assistant", &json!({"content_type": "model_editable_context", "model_set_context": ""})),
            "n4": node("user", "Hi", &none),
            "n5": node("assistant", "Hello", &none),
        });
        let wanted = [
            "system Write short answers.",
            "system The user grows roses.",
            "user Hi",
            "assistant Hello",
        ];
        assert_eq!(
            read_mapping(&mapping),
            (wanted.map(String::from).to_vec(), 0)
        );
    }

    #[test]
    fn thoughts_of_o1_are_reasoning_of_the_answer() {
        let thoughts = json!({"author": {"role": "tool", "name": "a8km123"}, "recipient": "all", "content": {"content_type": "text", "parts": ["The sum is small."]}});
        let none = json!({});
        let mapping = json!({
            "n1": node("user", "What is 2+2?", &none),
            "n2": {"message": thoughts},
            "n3": node("assistant", "It is 4.", &none),
        });
        let export = json!([{"id": "c1", "mapping": mapping}]);
        let (all, _) = read(export.to_string().as_bytes());
        let messages = &all[0].as_ref().expect("a conversation")["messages"];
        assert_eq!(messages.as_array().expect("a list").len(), 2);
        let answer = messages[1].to_string();
        assert!(answer.contains("The sum is small."), "{answer}");
        assert!(answer.contains("It is 4."), "{answer}");
        assert_eq!(messages[1]["role"], "assistant");
    }

    #[test]
    fn result_of_code_states_whether_it_failed_and_its_time() {
        let metadata_of = |kind: &str, run: &Value| {
            let call = json!({"author": {"role": "assistant"}, "recipient": "python", "content": {"content_type": "code", "text": "1/0"}});
            let result = json!({"author": {"role": "tool", "name": "python"}, "content": {"content_type": kind, "text": "x"}, "metadata": {"aggregate_result": run}});
            let mapping = json!({"n1": {"message": call}, "n2": {"message": result}});
            let export = json!([{"id": "c1", "mapping": mapping}]);
            let (all, _) = read(export.to_string().as_bytes());
            all[0].as_ref().expect("a conversation")["messages"][1]["metadata"].clone()
        };
        let kind = "execution_output";
        let failed = json!({"status": "failed_with_in_kernel_exception", "start_time": 10.0, "end_time": 10.5});
        let metadata = metadata_of(kind, &failed);
        assert_eq!(metadata["is_error"], true);
        assert_eq!(metadata["duration_ms"], json!(500.0));
        assert_eq!(
            metadata_of(kind, &json!({"status": "success"}))["is_error"],
            false
        );
        let cancelled = metadata_of(kind, &json!({"status": "cancelled"}));
        assert!(cancelled["is_error"].is_null(), "{cancelled}");
        assert_eq!(metadata_of("system_error", &Value::Null)["is_error"], true);
    }
}

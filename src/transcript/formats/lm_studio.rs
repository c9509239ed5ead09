//! Chats of LM Studio (`~/.lmstudio/conversations/*.conversation.json`).
//!
//! | in the file | becomes |
//! |---|---|
//! | the selected version of a message | a message |
//! | the other versions | counted |
//! | steps with text, and their thoughts | an answer |
//! | requests of tools and their results | calls and results; the state of a call shows whether it failed |
//! | the system prompt of the chat, else of the program | a system message |
//! | other steps about states | nothing; unknown ones are counted |

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::{MessageInProgress, result_text};
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, call_arguments, reasoning_part, role_of};
use crate::model::MessageRole;

/// The key of the system prompt in the settings of a chat.
const PROMPT_KEY: &str = "llm.prediction.systemPrompt";

/// The types of steps about the state of the program.
const STATES: [&str; 3] = ["debugInfoBlock", "status", "toolStatus"];

/// Returns true if the first record has messages with versions.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    let version = &preview.first_outline()["messages"][0]["versions"][0];
    let is_step = matches!(version["type"].as_str(), Some("singleStep" | "multiStep"));
    is_step || (version["role"].is_string() && version["steps"].is_array())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_chat)
}

fn parse_chat(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let messages = outer
        .list("messages")
        .ok_or_else(|| "it is not a chat: it has no `messages`".to_owned())?;
    let mut chat = Chat {
        built: TranscriptBuilder::new("lm-studio", None),
        is_answering: false,
    };
    chat.built.meta.set_raw("title", outer.get("name"));
    chat.built.meta.set_raw("timestamp", outer.get("createdAt"));
    let model = outer.object("lastUsedModel").unwrap_or_default();
    chat.built.meta.set_raw("model", model.get("identifier"));
    if let Some(prompt) = system_prompt(&outer).filter(|prompt| !prompt.is_empty()) {
        chat.built.push_text(MessageRole::System, &prompt);
    }
    for raw in messages {
        chat.add_message(&RawFields::from_raw(raw).unwrap_or_default());
    }
    chat.built.finish(out);
    Ok(())
}

/// Returns the system prompt of the chat; without one, that of the program.
fn system_prompt(chat: &RawFields<'_>) -> Option<String> {
    let settings = chat.object("perChatPredictionConfig").unwrap_or_default();
    let fields = settings.list("fields").unwrap_or_default();
    let own = fields.into_iter().find_map(|raw| {
        let field = RawFields::from_raw(raw)?;
        let is_prompt = field.text("key").as_deref() == Some(PROMPT_KEY);
        is_prompt.then(|| field.text("value"))?
    });
    let prompt = own
        .filter(|prompt| !prompt.is_empty())
        .or_else(|| chat.text("systemPrompt"));
    Some(prompt?.0.into_owned())
}

/// A chat under construction.
#[derive(Debug)]
struct Chat {
    built: TranscriptBuilder,
    /// True if the last message is the answer to which the next step belongs.
    is_answering: bool,
}

impl Chat {
    fn add_message(&mut self, message: &RawFields<'_>) {
        let versions = message.list("versions").unwrap_or_default();
        let last = versions.len().saturating_sub(1);
        let selected = message.integer("currentlySelected");
        let selected = selected.and_then(|at| usize::try_from(at).ok());
        let selected = selected.filter(|at| *at <= last).unwrap_or(last);
        let Some(version) = versions
            .get(selected)
            .and_then(|raw| RawFields::from_raw(raw))
        else {
            return self.built.count_unknown_message();
        };
        self.built
            .count_unknown("a version that was not selected", last);
        self.is_answering = false;
        let role = role_of(&version.text("role").unwrap_or_default());
        if let Some(steps) = version.list("steps") {
            return self.add_steps(&steps, &version);
        }
        let mut added = MessageInProgress::new(role, &mut self.built);
        if let Some(content) = version.get("content") {
            added.add_content(content);
        }
        added.finish();
    }

    fn add_steps(&mut self, steps: &[&RawValue], version: &RawFields<'_>) {
        let steps: Vec<RawFields<'_>> = steps
            .iter()
            .filter_map(|raw| RawFields::from_raw(raw))
            .collect();
        let states: HashMap<String, bool> = steps.iter().filter_map(read_state).collect();
        for step in &steps {
            match step.text("type").as_deref() {
                Some("contentBlock") => self.add_block(step, &states),
                Some(kind) if STATES.contains(&kind) => {}
                kind => {
                    let kind = format!("a step of the type `{}`", kind.unwrap_or_default());
                    self.built.unknown.push(kind);
                }
            }
        }
        let sender = version.object("senderInfo").unwrap_or_default();
        if let Some(meta) = self.built.last_meta(&MessageRole::Assistant)
            && !meta.has("model")
        {
            meta.set_raw("model", sender.get("senderName"));
        }
    }

    fn add_block(&mut self, step: &RawFields<'_>, states: &HashMap<String, bool>) {
        let style = step.object("style").unwrap_or_default();
        let is_thought = style.text("type").as_deref() == Some("thinking");
        let content = step.get("content");
        let parts = content.and_then(list_items);
        for raw in parts.unwrap_or_else(|| content.into_iter().collect()) {
            let part = RawFields::from_raw(raw).unwrap_or_default();
            match part.text("type").as_deref() {
                Some("text") if is_thought => {
                    let text = part.text("text").unwrap_or_default();
                    self.built.begin_answer(&mut self.is_answering);
                    if let Some(answer) = self.built.messages.last_mut() {
                        answer.parts.push(reasoning_part(&text));
                    }
                }
                Some("toolCallRequest") => self.add_call(&part),
                Some("toolCallResult") => self.add_result(&part, states),
                _ => {
                    self.built.begin_answer(&mut self.is_answering);
                    let mut read = MessageInProgress::new(MessageRole::Assistant, &mut self.built);
                    read.add_part(raw);
                    let parts = std::mem::take(&mut read.parts);
                    if let Some(answer) = self.built.messages.last_mut() {
                        answer.parts.extend(parts);
                    }
                }
            }
        }
        let facts = step.object("genInfo").unwrap_or_default();
        let counts = facts.object("stats").unwrap_or_default();
        let usage = SourceUsage {
            input: counts.integer("promptTokensCount"),
            output: counts.integer("predictedTokensCount"),
            total: counts.integer("totalTokensCount"),
            ..SourceUsage::default()
        };
        let model = facts.get_first(&["identifier", "indexedModelIdentifier"]);
        if let Some(meta) = self.built.last_meta(&MessageRole::Assistant) {
            meta.set_raw("model", model);
            meta.set("usage", usage.to_json());
            meta.set_raw("stop_reason", counts.get("stopReason"));
        }
    }

    fn add_call(&mut self, part: &RawFields<'_>) {
        self.built.begin_answer(&mut self.is_answering);
        let inner = part.object("toolCallRequest");
        let call = inner.as_ref().unwrap_or(part);
        let id = call_id(part).or_else(|| Some(call.id_text("id")?.0.into_owned()));
        let name = call.text("name").unwrap_or_default();
        let arguments = call.get_first(&["parameters", "arguments"]);
        let id = id.unwrap_or_default();
        self.built.push_call(&id, &name, call_arguments(arguments));
    }

    fn add_result(&mut self, part: &RawFields<'_>, states: &HashMap<String, bool>) {
        self.is_answering = false;
        let content = part.text_or_json("content").unwrap_or_default();
        // Servers of the Model Context Protocol return a list of parts, which the file has as a text.
        let list = Some(&*content).filter(|text| text.starts_with('['));
        let list = list.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let text = list.map_or_else(|| content.to_string(), result_text);
        let state = part.id_text("callId");
        let has_failed = state.and_then(|id| states.get(&*id).copied());
        let id = call_id(part).unwrap_or_default();
        self.built.push_result(&id, text, has_failed);
    }
}

/// Returns the id of a call that a part names.
fn call_id(part: &RawFields<'_>) -> Option<String> {
    let keys = ["toolCallRequestId", "toolCallId", "callId"];
    let id = keys.iter().find_map(|key| part.id_text(key))?;
    Some(id.0.into_owned())
}

/// Returns the number of a call that ended, and whether it failed.
fn read_state(step: &RawFields<'_>) -> Option<(String, bool)> {
    let state = step.object("statusState")?;
    let status = state.object("status")?;
    let has_failed = match status.text("type").as_deref() {
        Some("toolCallFailed" | "toolCallDenied") => true,
        Some("toolCallSucceeded") => false,
        _ => return None,
    };
    let id = step.id_text("callId").or_else(|| state.id_text("callId"))?;
    Some((id.0.into_owned(), has_failed))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn selected_versions_calls_and_thoughts_are_read() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let chat = json!({"name": "Weather", "createdAt": 1_754_425_094_719_u64, "systemPrompt": "Be kind.",
        "perChatPredictionConfig": {"fields": [{"key": "llm.prediction.systemPrompt", "value": "Be brief."}]},
        "messages": [
            {"currentlySelected": 1, "versions": [
                {"type": "singleStep", "role": "user", "content": text("Wether?")},
                {"type": "singleStep", "role": "user", "content": text("Weather?")}]},
            {"currentlySelected": 9, "versions": [{"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "m-1"}, "steps": [
                {"type": "contentBlock", "style": {"type": "thinking"}, "content": text("Hm.")},
                {"type": "contentBlock", "content": [{"type": "toolCallRequest", "callId": 7, "toolCallRequestId": "r7", "name": "get", "parameters": {"city": "Rome"}}]},
                {"type": "toolStatus", "callId": 7, "statusState": {"status": {"type": "toolCallFailed", "error": "closed"}}},
                {"type": "contentBlock", "role": "tool", "content": [{"type": "toolCallResult", "callId": 7, "toolCallRequestId": "r7", "content": "[{\"type\":\"text\",\"text\":\"closed\"}]"}]},
                {"type": "contentBlock", "content": text("I don't know."), "genInfo": {"identifier": "m-2", "stats": {"promptTokensCount": 12, "predictedTokensCount": 3, "stopReason": "eosFound"}}},
                {"type": "debugInfoBlock", "debugInfo": "x"},
                {"type": "newBlock"}]}]},
        ]});
        let (all, tally) = read(format!("{chat:#}").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "system Be brief.",
                "user Weather?",
                "assistant <reasoning> | get({\"city\":\"Rome\"})",
                "tool closed",
                "assistant I don't know.",
            ]
        );
        assert_eq!(one["messages"][3]["tool_call_id"], "r7");
        assert_eq!(one["messages"][3]["metadata"]["is_error"], true);
        let answer = &one["messages"][4]["metadata"];
        assert_eq!(answer["model"], "m-2");
        assert_eq!(answer["usage"], json!({"input": 12, "output": 3}));
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        let expected = [
            "a step of the type `newBlock`",
            "a version that was not selected",
        ];
        assert_eq!(counts, expected.map(|kind| (kind.to_owned(), 1)));
    }
}

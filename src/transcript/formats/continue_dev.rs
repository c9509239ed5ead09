//! Sessions of Continue (`~/.continue/sessions/ID.json`), of its editor extensions and its command line.
//!
//! Responsible for the history: messages, thoughts, attached context, and calls with their results. The command line writes
//! a result only in the state of its call. Does not read the list `sessions.json`.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::{add_messages, result_text};
use super::record_readers::open_records;
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, owned_text, reasoning_part, text_part,
};
use crate::model::{MessageRole, TranscriptPart};

/// Returns true if the first record is a session with messages.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    record["sessionId"].is_string() && record["history"][0]["message"]["role"].is_string()
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_session)
}

fn parse_session(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let history = outer
        .list("history")
        .ok_or_else(|| "it is not a session: it has no `history`".to_owned())?;
    let mut built = TranscriptBuilder::new("continue", outer.id_text("sessionId"));
    built.meta.set_raw("title", outer.get("title"));
    built.meta.set_raw("cwd", outer.get("workspaceDirectory"));
    built.meta.set_raw("model", outer.get("chatModelTitle"));
    let usage = outer.object("usage").unwrap_or_default();
    built.meta.set("usage", read_usage(&usage).to_json());
    built.meta.set_raw("cost_usd", usage.get("totalCost"));
    let items: Vec<RawFields<'_>> = history
        .into_iter()
        .map(|raw| RawFields::from_raw(raw).unwrap_or_default())
        .collect();
    let mut session = ContinueSession {
        answered: items.iter().filter_map(answered_call).collect(),
        states: items.iter().flat_map(call_states).collect(),
        thoughts: Vec::new(),
        built,
    };
    for item in &items {
        session.add_item(item);
    }
    session.add_thoughts();
    session.built.finish(out);
    Ok(())
}

fn read_usage(usage: &RawFields<'_>) -> SourceUsage {
    SourceUsage {
        input: usage.integer("promptTokens"),
        output: usage.integer("completionTokens"),
        ..SourceUsage::default()
    }
}

/// Returns the id of the call that a message of a tool answers.
fn answered_call(item: &RawFields<'_>) -> Option<String> {
    let message = item.object("message")?;
    let is_tool = message.text("role").as_deref() == Some("tool");
    let id = message.id_text("toolCallId").filter(|_| is_tool)?;
    Some(id.0.into_owned())
}

/// Returns the ids and the states of the calls of an item.
fn call_states(item: &RawFields<'_>) -> Vec<(String, String)> {
    let states = read_states(item);
    let named = states.iter().filter_map(|state| {
        let end = state.text("status")?;
        Some((state_id(state), end.0.into_owned()))
    });
    named.collect()
}

fn read_states<'a>(item: &RawFields<'a>) -> Vec<RawFields<'a>> {
    let states = item.list("toolCallStates");
    // Until version 1.0, an item has one call.
    let one = || item.get("toolCallState").into_iter().collect();
    let states = states.unwrap_or_else(one);
    states.into_iter().filter_map(RawFields::from_raw).collect()
}

fn state_id(state: &RawFields<'_>) -> String {
    let id = state.id_text("toolCallId");
    let id = id.or_else(|| state.object("toolCall")?.id_text("id"));
    id.map(|id| id.0.into_owned()).unwrap_or_default()
}

/// A session under construction.
struct ContinueSession {
    /// The ids of the calls that a message of a tool answers.
    answered: HashSet<String>,
    /// The state of each call.
    states: HashMap<String, String>,
    /// The thoughts before the next answer.
    thoughts: Vec<TranscriptPart<'static>>,
    built: TranscriptBuilder,
}

impl ContinueSession {
    fn add_item(&mut self, item: &RawFields<'_>) {
        let Some(raw) = item.get("message") else {
            return self.built.count_unknown_message();
        };
        let message = RawFields::from_raw(raw).unwrap_or_default();
        let role = message.text("role").unwrap_or_default();
        if &*role == "thinking" {
            let thought = message.get("content").map(result_text).unwrap_or_default();
            if !thought.is_empty() {
                self.thoughts.push(reasoning_part(&thought));
            }
            return;
        }
        if &*role != "assistant" {
            self.add_thoughts();
        }
        let before = self.built.messages.len();
        add_messages(raw, &MessageRole::User, &mut self.built);
        match &*role {
            "assistant" => self.complete_answer(item, &message, before),
            "tool" => {
                let id = message.id_text("toolCallId").unwrap_or_default();
                let is_error = self.states.get(&*id).and_then(|state| failed(state));
                self.set_error(before, is_error);
            }
            _ => self.add_context(item, before),
        }
        let added = self.built.messages.get_mut(before..);
        if let Some(first) = added.and_then(<[_]>::first_mut) {
            first.meta.set_raw("timestamp", item.get("timestamp"));
        }
    }

    /// Writes thoughts that no answer follows as a message.
    fn add_thoughts(&mut self) {
        let thoughts = std::mem::take(&mut self.thoughts);
        if !thoughts.is_empty() {
            self.built.push(MessageRole::Assistant, thoughts);
        }
    }

    /// Adds what an answer has next to its message: thoughts, calls, and results that no message repeats.
    fn complete_answer(&mut self, item: &RawFields<'_>, message: &RawFields<'_>, before: usize) {
        let mut thoughts = std::mem::take(&mut self.thoughts);
        let own = item.object("reasoning").unwrap_or_default();
        let own = own.filled_text("text");
        if let Some(own) = own.filter(|_| thoughts.is_empty()) {
            thoughts.push(reasoning_part(&own));
        }
        let added = self.built.messages.get_mut(before..);
        if let Some(first) = added.and_then(<[_]>::first_mut) {
            first.parts.splice(0..0, thoughts);
        }
        let has_calls = message.list("toolCalls").is_some_and(|all| !all.is_empty());
        let states = read_states(item);
        for state in states.iter().filter(|_| !has_calls) {
            let call = state.object("toolCall").unwrap_or_default();
            let function = call.object("function").unwrap_or_default();
            let name = function.text("name").unwrap_or_default();
            let arguments = function
                .get("arguments")
                .or_else(|| state.get("parsedArgs"));
            self.built
                .push_call(&state_id(state), &name, call_arguments(arguments));
        }
        for state in &states {
            let id = state_id(state);
            let Some(output) = state.get("output") else {
                continue;
            };
            if self.answered.contains(&id) {
                continue;
            }
            let end = state.text("status").unwrap_or_default();
            self.built
                .push_result(&id, output_text(output), failed(&end));
        }
    }

    fn set_error(&mut self, before: usize, is_error: Option<bool>) {
        let added = self.built.messages.get_mut(before..).unwrap_or_default();
        for part in added.iter_mut().flat_map(|message| &mut message.parts) {
            if let TranscriptPart::ToolResult(result) = part {
                result.is_error = result.is_error.or(is_error);
            }
        }
    }

    /// Adds the texts that the user or the editor attached.
    fn add_context(&mut self, item: &RawFields<'_>, before: usize) {
        let mut names = Vec::new();
        let added = self.built.messages.get_mut(before..);
        let Some(first) = added.and_then(<[_]>::first_mut) else {
            return;
        };
        for raw in item.list("contextItems").unwrap_or_default() {
            let context = RawFields::from_raw(raw).unwrap_or_default();
            let text = context.text("content");
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                first.parts.push(text_part(&text));
                let name = context.text("name").unwrap_or_default();
                names.push(name.0.into_owned());
            }
        }
        if !names.is_empty() {
            first.meta.set("attachments", names);
        }
    }
}

/// Returns whether a call failed; `None` if it did not end.
fn failed(state: &str) -> Option<bool> {
    match state {
        "errored" => Some(true),
        "done" => Some(false),
        _ => None,
    }
}

/// Returns the text of an output: the contents of its items.
fn output_text(raw: &RawValue) -> String {
    let Some(items) = list_items(raw) else {
        return owned_text(raw);
    };
    let contents = items
        .iter()
        .filter_map(|item| RawFields::from_raw(item)?.text("content"));
    let texts: Vec<String> = contents.map(|text| text.0.into_owned()).collect();
    if texts.is_empty() && !items.is_empty() {
        return owned_text(raw);
    }
    texts.join("\n\n")
}

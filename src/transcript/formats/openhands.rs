//! OpenHands' events: downloaded trajectories, `output.jsonl` of its evaluations, and events of its newer SDK.
//!
//! Responsible for events as a list, one per line, or in the `history` of a result. Actions of one reply of the model are
//! one message; an observation is the result of the action that caused it. States and other events of the program are
//! counted, not read. `resolved` and `success` of a result are verdicts of the judge `openhands`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::walk::RecordLayout;
use super::foreign_message::{add_messages, result_text};
use super::record_readers::{NOT_JSON, line_text, open_lists, open_records, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, reasoning_part, text_part, verdict_of,
};
use crate::model::MessageRole;

/// The kinds of the newer SDK that are part of the conversation.
const SDK_KINDS: [&str; 6] = [
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "AgentErrorEvent",
    "ConversationStateUpdateEvent",
];

fn is_event(value: &Value) -> bool {
    let sources = ["agent", "user", "environment"];
    let has_source = value["source"]
        .as_str()
        .is_some_and(|source| sources.contains(&source));
    let is_old = (value["action"].is_string()
        && (value["args"].is_object() || value["thought"].is_string()))
        || (value["observation"].is_string() && value["content"].is_string());
    let kind = value["kind"].as_str().unwrap_or_default();
    has_source && (is_old || SDK_KINDS.contains(&kind))
}

/// Returns true if a value is an event of the first versions, which have no source.
fn is_first_event(value: &Value) -> bool {
    let is_one = |value: &Value| {
        (value["action"].is_string() || value["observation"].is_string()) && value["role"].is_null()
    };
    is_event(value) || is_one(value) || is_one(&value[0])
}

/// Returns true if the first record is an event, or a result with its events.
pub(super) fn is_events(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let in_history = record["history"]
        .as_array()
        .and_then(|all| all.first())
        .is_some_and(is_first_event);
    is_event(record)
        || record
            .as_array()
            .and_then(|all| all.first())
            .is_some_and(is_event)
        || (in_history && record["trajectory"].is_null())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if preview.first_outline()["history"].is_array() {
        return open_records(preview, parse_result);
    }
    match preview.layout {
        RecordLayout::Lines if preview.first_outline().is_object() => {
            open_sessions(preview, |_| false, parse_lines)
        }
        _ => open_lists(preview, parse_list),
    }
}

fn parse_list(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let raw: &RawValue =
        serde_json::from_str(record).map_err(|why| format!("not a list of events: {why}"))?;
    let events = list_items(raw).unwrap_or_else(|| vec![raw]);
    out.count_elements(events.len());
    let mut session = EventSession::new(TranscriptBuilder::new("openhands", None));
    // The name of a downloaded file is the id of its conversation.
    cx.source.stem().clone_into(&mut session.built.id);
    for raw in events {
        session.add(raw);
    }
    session.built.finish(out);
    Ok(())
}

fn parse_lines(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let id = cx.source.stem().to_owned();
    let mut session = EventSession::new(TranscriptBuilder::new("openhands", Some(id.into())));
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        match serde_json::from_str(text) {
            Ok(raw) => session.add(raw),
            Err(_) => session.built.unknown.push(NOT_JSON.to_owned()),
        }
    }
    session.built.finish(out);
}

fn parse_result(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = TranscriptBuilder::new("openhands", fields.id_text("instance_id"));
    if let Some(instruction) = fields.text("instruction") {
        built.meta.set("instruction", &*instruction);
    }
    let mut session = EventSession::new(built);
    let history = fields.list("history").unwrap_or_default();
    // Older results have pairs of an action and its observation.
    let events = history
        .into_iter()
        .flat_map(|raw| list_items(raw).unwrap_or_else(|| vec![raw]));
    let events: Vec<&RawValue> = events.collect();
    out.count_elements(events.len());
    for raw in events {
        session.add(raw);
    }
    let mut built = session.built;
    // The first event may be the reply: then the instruction is the user's message.
    if built
        .messages
        .first()
        .is_some_and(|first| first.role == MessageRole::Assistant)
        && let Some(instruction) = fields.text("instruction")
    {
        built.push_text(MessageRole::User, &instruction);
        built.messages.rotate_right(1);
    }
    let metrics = fields.object("metrics").unwrap_or_default();
    built
        .meta
        .set_raw("cost_usd", metrics.get("accumulated_cost"));
    built.meta.set_raw("error", fields.get("error"));
    if let Some(metadata) = fields.object("metadata") {
        built.meta.set_raw("agent", metadata.get("agent_class"));
        let config = metadata.object("llm_config");
        built.meta.set_raw(
            "model",
            config.as_ref().and_then(|config| config.get("model")),
        );
    }
    let test = fields.object("test_result").unwrap_or_default();
    let patch = fields.get("git_patch").or_else(|| test.get("git_patch"));
    let patch = patch.filter(|raw| raw.get() != "\"\"");
    built.meta.set_readable("git_patch", patch);
    let report = fields
        .object("report")
        .or_else(|| test.object("report"))
        .unwrap_or_default();
    let resolved = report.get("resolved");
    if resolved.is_some() {
        built.push_verdict(verdict_of("openhands", "resolved", resolved, None));
    }
    if fields.flag("success").is_some() {
        let reason = fields.text("result_explanation");
        built.push_verdict(verdict_of(
            "openhands",
            "success",
            fields.get("success"),
            reason,
        ));
    }
    built.finish(out);
    Ok(())
}

/// A conversation under construction.
struct EventSession {
    built: TranscriptBuilder,
    /// The id of the model's reply that the last message belongs to.
    reply: String,
}

impl EventSession {
    fn new(built: TranscriptBuilder) -> Self {
        Self {
            built,
            reply: String::new(),
        }
    }

    fn add(&mut self, raw: &RawValue) {
        let Some(event) = RawFields::from_raw(raw) else {
            self.built
                .unknown
                .push("an event that is not an object".to_owned());
            return;
        };
        let before = self.built.messages.len();
        if event.has("kind") {
            self.add_sdk_event(&event);
        } else if let Some(action) = event.text("action") {
            self.add_action(&action, &event);
        } else if let Some(observation) = event.text("observation") {
            self.add_observation(&observation, &event);
        } else {
            self.built
                .unknown
                .push("an event of an unknown kind".to_owned());
        }
        for message in &mut self.built.messages[before..] {
            message.meta.set_raw("timestamp", event.get("timestamp"));
        }
    }

    /// Adds a call to the message of the model's reply `reply`, or to a new one.
    fn add_call(
        &mut self,
        reply: &str,
        thought: &str,
        reasoning: &str,
        call: [&str; 2],
        arguments: String,
    ) {
        let continues = !reply.is_empty()
            && reply == self.reply
            && self
                .built
                .messages
                .last()
                .is_some_and(|last| last.role == MessageRole::Assistant);
        if !continues {
            let mut parts = Vec::new();
            if !reasoning.is_empty() {
                parts.push(reasoning_part(reasoning));
            }
            if !thought.is_empty() {
                parts.push(text_part(thought));
            }
            self.built.push(MessageRole::Assistant, parts);
        }
        reply.clone_into(&mut self.reply);
        let [id, name] = call;
        if let Some(last) = self.built.messages.last_mut() {
            last.parts.push(call_part(id, name, arguments));
        }
    }

    fn add_action(&mut self, action: &str, event: &RawFields<'_>) {
        let args = event.object("args").unwrap_or_else(|| event.clone());
        let is_user = event.text("source").as_deref() == Some("user");
        match action {
            "message" | "system" => {
                let text = args
                    .text("content")
                    .or_else(|| event.text("message"))
                    .unwrap_or_default();
                let role = match (
                    action,
                    is_user || !event.has("source") && self.built.messages.is_empty(),
                ) {
                    ("system", _) => MessageRole::System,
                    (_, true) => MessageRole::User,
                    _ => MessageRole::Assistant,
                };
                self.built.push_text(role, &text);
            }
            // States of the program and its memory.
            "change_agent_state" | "null" | "recall" | "condensation" | "initialize" | "start"
            | "pause" | "resume" => {
                self.built
                    .unknown
                    .push(format!("an action of the kind `{action}`"));
            }
            _ => {
                let call = event.object("tool_call_metadata").unwrap_or_default();
                let reply = call.object("model_response").unwrap_or_default();
                let id = call.id_text("tool_call_id").map(|id| id.0.into_owned());
                let id = id.or_else(|| Some(format!("event-{}", &*event.id_text("id")?)));
                let name = call
                    .text("function_name")
                    .unwrap_or_else(|| action.to_owned().into());
                let thought = args.text("thought").unwrap_or_default();
                let arguments = written_arguments(&reply, id.as_deref())
                    .unwrap_or_else(|| action_arguments(&args));
                let id = id.unwrap_or_default();
                let reply_id = reply.id_text("id").unwrap_or_default();
                self.add_call(&reply_id, &thought, "", [&id, &name], arguments);
                if let Some(last) = self.built.messages.last_mut() {
                    last.meta.set_raw("model", reply.get("model"));
                    if let Some(usage) = reply.object("usage") {
                        last.meta
                            .set("usage", super::exchange::parse_usage(&usage).to_json());
                    }
                }
                // `finish` has the answer, and no observation follows.
                let answer = ["final_thought", "message"];
                let answer = answer.iter().find_map(|key| args.filled_text(key));
                if action == "finish"
                    && let Some(answer) = answer
                    && let Some(last) = self.built.messages.last_mut()
                {
                    last.parts.insert(last.parts.len() - 1, text_part(&answer));
                }
            }
        }
    }

    fn add_observation(&mut self, observation: &str, event: &RawFields<'_>) {
        if matches!(
            observation,
            "agent_state_changed" | "null" | "recall" | "condense"
        ) {
            self.built
                .unknown
                .push(format!("an observation of the kind `{observation}`"));
            return;
        }
        let call = event.object("tool_call_metadata").unwrap_or_default();
        let id = call.id_text("tool_call_id").map(|id| id.0.into_owned());
        let id = id.or_else(|| Some(format!("event-{}", &*event.id_text("cause")?)));
        let extras = event.object("extras").unwrap_or_default();
        let metadata = extras.object("metadata").unwrap_or_default();
        let code = ["exit_code"].iter().find_map(|key| {
            let found = extras.number(key).or_else(|| metadata.number(key));
            found.or_else(|| event.number(key))
        });
        let is_error = match observation {
            "error" => Some(true),
            // -1 means that the command is still running.
            _ => code.filter(|code| *code >= 0.0).map(|code| code != 0.0),
        };
        let content = event.get("content").map(result_text).unwrap_or_default();
        self.built
            .push_result(&id.unwrap_or_default(), content, is_error);
    }

    fn add_sdk_event(&mut self, event: &RawFields<'_>) {
        let kind = event.text("kind").unwrap_or_default();
        match &*kind {
            "SystemPromptEvent" => {
                if let Some(prompt) = event.get("system_prompt") {
                    add_messages(prompt, &MessageRole::System, &mut self.built);
                }
            }
            "MessageEvent" => {
                let is_user = event.text("source").as_deref() == Some("user");
                let role = if is_user {
                    MessageRole::User
                } else {
                    MessageRole::Assistant
                };
                if let Some(message) = event.get("llm_message") {
                    add_messages(message, &role, &mut self.built);
                }
            }
            "ActionEvent" => {
                let call = event.object("tool_call").unwrap_or_default();
                let id = event
                    .id_text("tool_call_id")
                    .or_else(|| call.id_text("id"))
                    .unwrap_or_default();
                let name = event
                    .text("tool_name")
                    .or_else(|| call.text("name"))
                    .unwrap_or_default();
                let thought = event.get("thought").filter(|raw| raw.get() != "[]");
                let thought = thought.map(result_text).unwrap_or_default();
                let reasoning = event.text("reasoning_content").unwrap_or_default();
                let arguments = call.get("arguments").or_else(|| event.get("action"));
                let reply = event.id_text("llm_response_id").unwrap_or_default();
                let arguments = call_arguments(arguments);
                self.add_call(&reply, &thought, &reasoning, [&id, &name], arguments);
            }
            "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent" => {
                let id = event.id_text("tool_call_id").unwrap_or_default();
                let observation = event.object("observation").unwrap_or_default();
                let content = observation.get_first(&["content", "output", "text"]);
                let content = content
                    .or_else(|| event.get_first(&["error", "rejection_reason", "observation"]));
                let content = content.map(result_text).unwrap_or_default();
                let failed = &*kind == "AgentErrorEvent";
                let metadata = observation.object("metadata").unwrap_or_default();
                let code = observation
                    .number("exit_code")
                    .or_else(|| metadata.number("exit_code"));
                // To the SDK, a command that failed is not an error of the tool. -1 means that it is still running.
                let is_error = match code {
                    Some(code) if code > 0.0 => Some(true),
                    _ => observation.flag("is_error").or(failed.then_some(true)),
                };
                self.built.push_result(&id, content, is_error);
            }
            _ => self
                .built
                .unknown
                .push(format!("an event of the kind `{kind}`")),
        }
    }
}

/// Returns the arguments of a call as the model wrote them.
fn written_arguments(reply: &RawFields<'_>, id: Option<&str>) -> Option<String> {
    let choice = reply
        .list("choices")?
        .first()
        .copied()
        .and_then(RawFields::from_raw)?;
    let calls = choice.object("message")?.list("tool_calls")?;
    calls.iter().find_map(|raw| {
        let call = RawFields::from_raw(raw)?;
        if call.id_text("id").as_deref() != id {
            return None;
        }
        let function = call.object("function")?;
        Some(call_arguments(function.get("arguments")))
    })
}

/// Returns the arguments of an action without the fields that OpenHands adds.
fn action_arguments(args: &RawFields<'_>) -> String {
    let added = [
        "thought",
        "keep_prompt",
        "action",
        "is_confirmed",
        "confirmation_state",
        "action_risk",
        "hidden",
        "is_input",
        "blocking",
        "translated_ipython_code",
        "impl_source",
        "id",
        "timestamp",
        "source",
        "message",
        "timeout",
        "security_risk",
    ];
    let mut meta = super::super::metadata::MetadataBuilder::default();
    for (key, value) in args.iter() {
        if !added.contains(&key) {
            meta.set_raw(key, Some(value));
        }
    }
    super::response_items::object_text(meta)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::read;

    #[test]
    fn patch_of_a_result_is_metadata() {
        let history = json!([{"action": "message", "source": "user", "args": {"content": "Fix it."}}, {"action": "message", "source": "agent", "args": {"content": "Done."}}]);
        let patch = "diff --git a/x b/x\n";
        for fields in [
            json!({"test_result": {"git_patch": patch}}),
            json!({"git_patch": patch, "test_result": {}}),
        ] {
            let mut result = json!({"instance_id": "i-1", "history": history});
            let all = result.as_object_mut().expect("an object");
            all.extend(fields.as_object().expect("fields").clone());
            let (all, _) = read(format!("{result}\n").as_bytes());
            let session = all[0].as_ref().expect("a transcript");
            assert_eq!(session["metadata"]["git_patch"], patch);
        }
    }

    #[test]
    fn exit_code_of_a_command_of_the_sdk_states_an_error() {
        let error_of = |fields: Value| {
            let mut observation =
                json!({"content": [{"type": "text", "text": "3"}], "kind": "TerminalObservation"});
            let all = observation.as_object_mut().expect("an object");
            all.extend(fields.as_object().expect("fields").clone());
            let call = json!({"id": "e1", "source": "agent", "kind": "ActionEvent", "thought": [], "tool_name": "terminal",
                "tool_call_id": "t1", "tool_call": {"id": "t1", "name": "terminal", "arguments": "{}"}});
            let result = json!({"id": "e2", "source": "environment", "kind": "ObservationEvent", "tool_name": "terminal",
                "tool_call_id": "t1", "observation": observation});
            let (all, _) = read(format!("{call}\n{result}\n").as_bytes());
            let session = all[0].as_ref().expect("a transcript");
            session["messages"][1]["metadata"]["is_error"].clone()
        };
        assert_eq!(error_of(json!({"is_error": false, "exit_code": 1})), true);
        let nested = json!({"is_error": false, "exit_code": null, "metadata": {"exit_code": 2}});
        assert_eq!(error_of(nested), true);
        assert_eq!(error_of(json!({"is_error": false, "exit_code": 0})), false);
        assert_eq!(
            error_of(json!({"is_error": false, "metadata": {"exit_code": -1}})),
            false
        );
        assert_eq!(error_of(json!({"exit_code": 0})), Value::Null);
    }
}

//! Sessions of Copilot CLI (`~/.copilot/session-state/ID/events.jsonl`): one event per line.
//!
//! Responsible for one session per `session.start`, with its sub-agents. An event of a sub-agent names the call that
//! started it (`parentToolCallId`), or the agent (`agentId`). Its messages are the transcript `ID.agent-AGENT`. The
//! program writes the system prompt before each prompt; a repetition adds nothing. A prompt without text of the user
//! is text of the program, so it is a system message. The program reports the tokens of each model when it ends; the sum
//! is the usage of the session, with its sub-agents. The events are those of `github/copilot-sdk`. Does not read chats of
//! VS Code: that is `copilot.rs`.

use std::collections::HashMap;

use serde_json::json;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::exit_code::ends_with_failure;
use super::foreign_message::result_text;
use super::record_readers::{NOT_JSON, line_text, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, media_part, owned_unknown_part, reasoning_part,
    text_part,
};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// Returns true if the first line begins a session.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("data")) && preview.first_outline()["type"] == "session.start"
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_sessions(preview, starts_session, parse_session)
}

fn starts_session(line: &[u8]) -> bool {
    let fields = RawFields::from_bytes(line);
    fields.is_some_and(|fields| fields.text("type").as_deref() == Some("session.start"))
}

fn parse_session(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut session = CliSession::new();
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        match RawFields::parse(text) {
            Ok(event) => session.add_event(&event),
            Err(_) => session.count_unknown(NOT_JSON.to_owned()),
        }
    }
    session.finish(out);
}

/// An agent of a session.
#[derive(Debug)]
struct CliAgent {
    built: TranscriptBuilder,
    /// The agent's id; empty for the session's own agent.
    id: String,
    /// The index of the agent that started this one, and the call that did.
    spawn: Option<(usize, String)>,
    /// The latest system prompt.
    system: String,
}

impl CliAgent {
    fn new(id: &str) -> Self {
        Self {
            built: TranscriptBuilder::new("copilot-cli", None),
            id: id.to_owned(),
            spawn: None,
            system: String::new(),
        }
    }
}

/// A session under construction.
#[derive(Debug)]
struct CliSession {
    /// The session's own agent, then its sub-agents.
    agents: Vec<CliAgent>,
    /// The indexes of sub-agents by the calls that started them.
    by_call: HashMap<String, usize>,
    /// The indexes of sub-agents by their ids.
    by_id: HashMap<String, usize>,
    /// The index of the agent of each call, by the call's id.
    callers: HashMap<String, usize>,
    /// The token counts that the program reported when it ended, also after the session was resumed.
    usage: SourceUsage,
}

impl CliSession {
    fn new() -> Self {
        Self {
            agents: vec![CliAgent::new("")],
            by_call: HashMap::new(),
            by_id: HashMap::new(),
            callers: HashMap::new(),
            usage: SourceUsage::default(),
        }
    }

    fn count_unknown(&mut self, kind: String) {
        // The first agent always exists, and a sub-agent without messages does not become a transcript.
        self.agents[0].built.unknown.push(kind);
    }

    /// Returns the index of the agent of an event.
    fn agent_of(&mut self, event: &RawFields<'_>, data: &RawFields<'_>) -> usize {
        let call = data.id_text("parentToolCallId");
        let id = event.id_text("agentId");
        if call.is_some() || id.is_some() {
            return self.find_sub_agent(call.as_deref(), id.as_deref());
        }
        // In older versions, only the call shows whose result it is.
        let answered = data.id_text("toolCallId");
        let caller = answered.and_then(|call| self.callers.get(&*call).copied());
        caller.unwrap_or_default()
    }

    /// Returns the index of a sub-agent, which may be new. At least one of its names is known.
    fn find_sub_agent(&mut self, call: Option<&str>, id: Option<&str>) -> usize {
        let by_id = id.and_then(|id| self.by_id.get(id));
        let known = by_id.or_else(|| self.by_call.get(call?));
        let at = known.copied().unwrap_or(self.agents.len());
        if at == self.agents.len() {
            let name = id.or(call).unwrap_or_default();
            self.agents.push(CliAgent::new(name));
        }
        if let Some(id) = id {
            self.by_id.insert(id.to_owned(), at);
        }
        if let Some(call) = call {
            self.by_call.insert(call.to_owned(), at);
            let caller = self.callers.get(call).copied().unwrap_or_default();
            let spawn = &mut self.agents[at].spawn;
            if spawn.is_none() {
                *spawn = Some((caller, call.to_owned()));
            }
        }
        at
    }

    fn add_event(&mut self, event: &RawFields<'_>) {
        let kind = event.text("type").unwrap_or_default();
        let data = event.object("data").unwrap_or_default();
        if &*kind == "subagent.started" {
            return self.add_sub_agent(event, &data);
        }
        let at = self.agent_of(event, &data);
        let agent = &mut self.agents[at];
        let built = &mut agent.built;
        match &*kind {
            "session.start" => {
                built.id = data.id_text("sessionId").unwrap_or_default().0.into_owned();
                built.meta.set_raw("timestamp", event.get("timestamp"));
                built.meta.set_raw("version", data.get("copilotVersion"));
                built.meta.set_raw("model", data.get("selectedModel"));
                return;
            }
            "session.model_change" => {
                built.meta.set_raw("model", data.get("newModel"));
                return;
            }
            // The program chose a model for the user.
            "session.auto_mode_resolved" => {
                built.meta.set_raw("model", data.get("chosenModel"));
                return;
            }
            "session.error" => {
                built.meta.set_raw("error", data.get("message"));
                return;
            }
            "session.shutdown" => return self.add_totals(&data),
            "system.message" | "system.notification" => {
                let text = data.text("content").unwrap_or_default();
                if text.is_empty() || *text == *agent.system {
                    return;
                }
                built.push_text(MessageRole::System, &text);
                if &*kind == "system.message" {
                    agent.system = text.0.into_owned();
                }
            }
            "user.message" => add_prompt(&data, built),
            "assistant.message" => {
                for raw in data.list("toolRequests").unwrap_or_default() {
                    let call = RawFields::from_raw(raw).and_then(|call| call.id_text("toolCallId"));
                    self.callers.extend(call.map(|id| (id.0.into_owned(), at)));
                }
                add_reply(&data, built);
            }
            "tool.execution_complete" => {
                let id = data.id_text("toolCallId").unwrap_or_default();
                let result = data.object("result");
                let result = result.as_ref().and_then(|result| result.get("content"));
                let result = result.or_else(|| data.get_first(&["result", "error"]));
                let text = result.map(result_text).unwrap_or_default();
                // A command that ran is a success to the program, whatever its exit code.
                let failed = ends_with_failure(&text).then_some(true);
                let is_error = failed.or_else(|| Some(!data.flag("success")?));
                built.push_result(&id, text, is_error);
            }
            "session.compaction_complete" => {
                let Some(summary) = data.filled_text("summaryContent") else {
                    return;
                };
                built.push_text(MessageRole::System, &summary);
                if let Some(last) = built.messages.last_mut() {
                    last.meta.set("compacted", true);
                }
            }
            kind if IGNORED_EVENTS.contains(&kind) => return,
            kind => {
                let kind = format!("an event of the type `{kind}`");
                return self.count_unknown(kind);
            }
        }
        if let Some(last) = built.messages.last_mut() {
            last.meta.set_raw("timestamp", event.get("timestamp"));
        }
    }

    /// Adds a sub-agent by the event that reports its start.
    fn add_sub_agent(&mut self, event: &RawFields<'_>, data: &RawFields<'_>) {
        let call = data.id_text("toolCallId");
        let id = event.id_text("agentId");
        if call.is_none() && id.is_none() {
            return self.count_unknown("a sub-agent without an id".to_owned());
        }
        let at = self.find_sub_agent(call.as_deref(), id.as_deref());
        let agent = &mut self.agents[at];
        let name = data.text("agentName");
        let about = json!({"id": agent.id, "type": name.as_deref()});
        agent.built.meta.set_raw("model", data.get("model"));
        agent
            .built
            .meta
            .set_raw("timestamp", event.get("timestamp"));
        agent.built.meta.set("agent", about);
    }

    /// Adds the token counts of the event that ends the program. Each model has its own counts.
    fn add_totals(&mut self, data: &RawFields<'_>) {
        let Some(metrics) = data.get("modelMetrics") else {
            return;
        };
        let Some(models) = RawFields::from_raw(metrics) else {
            return self.count_unknown("token counts of an unknown shape".to_owned());
        };
        for (_, raw) in models.iter() {
            let usage = RawFields::from_raw(raw).and_then(|model| model.object("usage"));
            let usage = usage.map(|usage| parse_totals(&usage)).unwrap_or_default();
            if usage == SourceUsage::default() {
                self.count_unknown("token counts of an unknown shape".to_owned());
            }
            self.usage = self.usage.sum_with(usage);
        }
    }

    /// Adds the session and its sub-agents to `out`.
    fn finish(mut self, out: &mut TranscriptSink) {
        self.agents[0].built.meta.set("usage", self.usage.to_json());
        let session = self.agents[0].built.id.clone();
        let transcript_id = |agent: &CliAgent| match (&*session, &*agent.id) {
            // Without the session's id, the file's name and a number are the id.
            ("", _) | (_, "") => session.clone(),
            (session, agent) => format!("{session}.agent-{agent}"),
        };
        let ids: Vec<String> = self.agents.iter().map(transcript_id).collect();
        for (at, agent) in self.agents.into_iter().enumerate() {
            let mut built = agent.built;
            // A version that keeps the events of sub-agents elsewhere reports only their start.
            if at > 0 && !built.has_messages() {
                continue;
            }
            if at > 0 {
                built.id.clone_from(&ids[at]);
                built.tags.push(SourceText::from("sub-agent"));
                let mut parent = json!({"transcript": session});
                if let Some((caller, call)) = agent.spawn {
                    parent = json!({"transcript": ids[caller], "tool_call_id": call});
                }
                built.meta.set("parent", parent);
            }
            built.finish(out);
        }
    }
}

/// The events that report the state of the session, or the start of what another event reports.
const IGNORED_EVENTS: [&str; 21] = [
    "session.info",
    "session.idle",
    "session.mode_changed",
    "session.plan_changed",
    "session.context_changed",
    "session.title_changed",
    "session.usage_checkpoint",
    "session.usage_info",
    "session.task_complete",
    "session.truncation",
    "session.resume",
    "session.compaction_start",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.usage",
    "tool.execution_start",
    "hook.start",
    "hook.end",
    "subagent.selected",
    "subagent.completed",
    "subagent.failed",
];

/// Parses the token counts of a model. The input includes the tokens from the cache, the output those of reasoning.
fn parse_totals(usage: &RawFields<'_>) -> SourceUsage {
    SourceUsage {
        input: usage.integer("inputTokens"),
        output: usage.integer("outputTokens"),
        total: None,
        cached: usage.integer("cacheReadTokens"),
        thinking: usage.integer("reasoningTokens"),
    }
}

/// Adds a prompt with its attachments.
fn add_prompt(data: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let text = data.text("content").unwrap_or_default();
    let attachments = data.list("attachments").unwrap_or_default();
    let sent = data.text("transformedContent").unwrap_or_default();
    if text.is_empty() && attachments.is_empty() && !sent.is_empty() {
        return built.push_text(MessageRole::System, &sent);
    }
    let mut parts = Vec::new();
    if !text.is_empty() || attachments.is_empty() {
        parts.push(text_part(&text));
    }
    parts.extend(attachments.into_iter().map(attachment_part));
    built.push(MessageRole::User, parts);
}

/// Returns an attachment, such as a file, as written.
fn attachment_part(raw: &RawValue) -> TranscriptPart<'static> {
    let kind = RawFields::from_raw(raw).and_then(|fields| fields.text("type"));
    match kind {
        Some(kind) => media_part(&kind, raw),
        None => owned_unknown_part(raw),
    }
}

/// Adds a message of the model with its calls.
fn add_reply(data: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let mut parts = Vec::new();
    if let Some(text) = data.filled_text("reasoningText") {
        parts.push(reasoning_part(&text));
    }
    if let Some(text) = data.filled_text("content") {
        parts.push(text_part(&text));
    }
    for raw in data.list("toolRequests").unwrap_or_default() {
        let Some(call) = RawFields::from_raw(raw) else {
            built
                .unknown
                .push("a call that is not an object".to_owned());
            continue;
        };
        let id = call.id_text("toolCallId").unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        parts.push(call_part(&id, &name, call_arguments(call.get("arguments"))));
    }
    built.push(MessageRole::Assistant, parts);
    if let Some(last) = built.messages.last_mut() {
        last.meta.set_raw("model", data.get("model"));
        let usage = SourceUsage {
            output: data.integer("outputTokens"),
            ..SourceUsage::default()
        };
        last.meta.set("usage", usage.to_json());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    const HEADER: &str =
        r#"{"type":"session.start","data":{"sessionId":"s-1","copilotVersion":"1.0.34"},"id":"1"}"#;

    /// Returns the transcripts of a session with these lines after its first one.
    fn transcripts(lines: &[&str]) -> Vec<Value> {
        let text = format!("{HEADER}\n{}\n", lines.join("\n"));
        let (all, tally) = read(text.as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        all.into_iter()
            .map(|transcript| transcript.expect("a transcript"))
            .collect()
    }

    #[test]
    fn messages_of_a_sub_agent_are_a_transcript_of_their_own() {
        let lines = [
            r#"{"type":"user.message","data":{"content":"Count them."}}"#,
            r#"{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"t1","name":"task","arguments":{"agent_type":"explore"}}]}}"#,
            r#"{"type":"subagent.started","agentId":"a1","data":{"toolCallId":"t1","agentName":"explore","model":"m"}}"#,
            r#"{"type":"assistant.message","agentId":"a1","data":{"content":"Looking","parentToolCallId":"t1","toolRequests":[{"toolCallId":"g1","name":"glob","arguments":{}}]}}"#,
            r#"{"type":"tool.execution_complete","agentId":"a1","data":{"toolCallId":"g1","success":true,"result":{"content":"a.txt"}}}"#,
            r#"{"type":"subagent.completed","agentId":"a1","data":{"toolCallId":"t1","agentName":"explore"}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true,"result":{"content":"One file."}}}"#,
            r#"{"type":"assistant.message","data":{"content":"One.","toolRequests":[]}}"#,
        ];
        let all = transcripts(&lines);
        assert_eq!(
            message_lines(&all[0]),
            [
                "user Count them.",
                r#"assistant task({"agent_type":"explore"})"#,
                "tool One file.",
                "assistant One.",
            ]
        );
        assert_eq!(all[1]["id"], "s-1.agent-a1");
        assert_eq!(all[1]["tags"], json!(["sub-agent"]));
        let parent = json!({"transcript": "s-1", "tool_call_id": "t1"});
        assert_eq!(all[1]["metadata"]["parent"], parent);
        assert_eq!(
            message_lines(&all[1]),
            ["assistant Looking | glob({})", "tool a.txt"]
        );
    }

    #[test]
    fn older_sub_agents_are_found_by_the_calls_alone() {
        let lines = [
            r#"{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"t1","name":"task","arguments":{}}]}}"#,
            r#"{"type":"subagent.started","data":{"toolCallId":"t1","agentName":"explore"}}"#,
            r#"{"type":"assistant.message","data":{"content":"","parentToolCallId":"t1","toolRequests":[{"toolCallId":"g1","name":"glob","arguments":{}}]}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"g1","success":true,"result":{"content":"a.txt"}}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true,"result":{"content":"One"}}}"#,
        ];
        let all = transcripts(&lines);
        assert_eq!(message_lines(&all[0]), ["assistant task({})", "tool One"]);
        assert_eq!(all[1]["id"], "s-1.agent-t1");
        assert_eq!(message_lines(&all[1]), ["assistant glob({})", "tool a.txt"]);
    }

    #[test]
    fn call_that_is_not_an_object_is_counted() {
        let reply =
            r#"{"type":"assistant.message","data":{"content":"Hi.","toolRequests":["ls"]}}"#;
        let (all, tally) = read(format!("{HEADER}\n{reply}\n").as_bytes());
        let session = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(session), ["assistant Hi."]);
        assert_eq!(tally.unknown["a call that is not an object"], 1);
    }

    #[test]
    fn system_prompts_and_prompts_of_the_program_are_system_messages() {
        let system = r#"{"type":"system.message","data":{"role":"system","content":"Be brief."}}"#;
        let lines = [
            system,
            r#"{"type":"user.message","data":{"content":"What is it?","transformedContent":"<now> What is it?","attachments":[{"type":"file","path":"a.png"}]}}"#,
            r#"{"type":"session.mode_changed","data":{"newMode":"autopilot"}}"#,
            system,
            r#"{"type":"user.message","data":{"content":"","transformedContent":"You have not finished.","attachments":[]}}"#,
            r#"{"type":"session.task_complete","data":{"summary":"Done"}}"#,
        ];
        let all = transcripts(&lines);
        assert_eq!(
            message_lines(&all[0]),
            [
                "system Be brief.",
                "user What is it? | <file>",
                "system You have not finished.",
            ]
        );
    }

    #[test]
    fn token_counts_of_all_models_and_parts_of_a_session_are_its_usage() {
        let reply = r#"{"type":"assistant.message","data":{"content":"Hi.","toolRequests":[],"outputTokens":7}}"#;
        let ended = |metrics: &str| {
            format!(
                r#"{{"type":"session.shutdown","data":{{"shutdownType":"routine","modelMetrics":{metrics}}}}}"#
            )
        };
        let both = ended(
            r#"{"sonnet":{"requests":{"count":2,"cost":1},"usage":{"inputTokens":100,"outputTokens":5,"cacheReadTokens":80,"cacheWriteTokens":3,"reasoningTokens":2}},"mini":{"usage":{"inputTokens":10,"outputTokens":1,"cacheReadTokens":0,"cacheWriteTokens":0}}}"#,
        );
        let resumed = ended(r#"{"mini":{"usage":{"inputTokens":1,"outputTokens":1}}}"#);
        let all = transcripts(&[
            reply,
            &both,
            r#"{"type":"session.resume","data":{}}"#,
            &resumed,
        ]);
        assert_eq!(
            all[0]["metadata"]["usage"],
            json!({"input": 111, "output": 7, "cached": 80, "thinking": 2})
        );
        assert_eq!(
            all[0]["messages"][0]["metadata"]["usage"],
            json!({"output": 7})
        );
    }

    #[test]
    fn token_counts_of_an_unknown_shape_are_counted() {
        let reply = r#"{"type":"assistant.message","data":{"content":"Hi.","toolRequests":[]}}"#;
        for metrics in [
            r#""later""#,
            r#"{"mini":{"usage":{"in":1}}}"#,
            r#"{"mini":7}"#,
        ] {
            let ended =
                format!(r#"{{"type":"session.shutdown","data":{{"modelMetrics":{metrics}}}}}"#);
            let (all, tally) = read(format!("{HEADER}\n{reply}\n{ended}\n").as_bytes());
            let session = all[0].as_ref().expect("a transcript");
            assert!(session["metadata"]["usage"].is_null(), "{metrics}");
            let count = tally.unknown["token counts of an unknown shape"];
            assert_eq!(count, 1, "{metrics}");
        }
    }

    #[test]
    fn model_that_the_program_chose_is_the_model_of_the_session() {
        let lines = [
            r#"{"type":"user.message","data":{"content":"Hello."}}"#,
            r#"{"type":"session.auto_mode_resolved","data":{"chosenModel":"mini","candidateModels":["mini","large"]}}"#,
            r#"{"type":"session.usage_checkpoint","data":{"totalNanoAiu":7}}"#,
        ];
        assert_eq!(transcripts(&lines)[0]["metadata"]["model"], "mini");
    }

    #[test]
    fn command_with_another_exit_code_than_0_is_an_error() {
        let ended = |code: u8| {
            format!(
                r#"{{"type":"tool.execution_complete","data":{{"toolCallId":"t{code}","success":true,"result":{{"content":"a\n<exited with exit code {code}>"}}}}}}"#
            )
        };
        let all = transcripts(&[&ended(0), &ended(1)]);
        let is_error = |at: usize| all[0]["messages"][at]["metadata"]["is_error"].clone();
        assert_eq!(is_error(0), false);
        assert_eq!(is_error(1), true);
    }
}

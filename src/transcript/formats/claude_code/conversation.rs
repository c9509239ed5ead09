//! The messages of one conversation, with the times, tokens, costs and errors from its lines.
//!
//! Responsible for the metadata of messages and transcripts. Does not choose the lines: that is `branches.rs`.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::super::content::ObjectOnly;
use super::super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::super::native::{json_string, parse_or_none};
use super::super::anthropic::{AnthropicLogMessage, parse_usage};
use super::agents::{AgentCallResult, AgentSpawn};
use super::line::{ClaudeCodeLine, ClaudeCodeLineKind};
use super::line_message::ClaudeCodeMessage;
use crate::model::{self, JsonText, MessageRole, SourceText, TranscriptPart};

/// The size limit in bytes of a `toolUseResult` member in the metadata. A longer one remains only in the file.
const MAX_RESULT_BYTES: usize = 1000;

/// The model name in messages that Claude Code itself wrote.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// A conversation under construction.
pub(super) struct ClaudeCodeConversationBuilder<'s, 'a> {
    lines: &'s [ClaudeCodeLine<'a>],
    path: &'s [usize],
    /// The name of the tool that wrote the session, for the metadata.
    pub(super) tool: &'static str,
    messages: Vec<model::TranscriptMessage<'a>>,
    /// The reply whose blocks follow.
    open_reply: Option<OpenReply<'s, 'a>>,
    /// The times of calls by id; `None` if the line has a copied time.
    call_times: HashMap<SourceText<'a>, Option<&'s str>>,
    /// The time of the last line that a reply can answer.
    prompt_time: Option<&'s str>,
    totals: ReplyTotals,
}

/// The sums over all replies. A sum is valid only if every reply has the number.
#[derive(Default)]
struct ReplyTotals {
    replies: usize,
    /// The usage of each reply that has one.
    usages: Vec<CountedUsage>,
    /// The indexes in `usages` by the id of the reply.
    usage_by_reply: HashMap<String, usize>,
    with_cost: usize,
    cost: f64,
    model: Option<String>,
    /// The error text, if the last reply is an API error.
    error: Option<String>,
}

/// The usage of a reply, with the index of the message that shows it.
struct CountedUsage {
    message_index: usize,
    tokens: SourceUsage,
}

struct OpenReply<'s, 'a> {
    /// Its index among the messages.
    message_index: usize,
    id: Option<SourceText<'a>>,
    prompt_time: Option<&'s str>,
    first_time: Option<&'s str>,
    last_line: &'s ClaudeCodeLine<'a>,
    citations: Vec<Value>,
    model: Option<SourceText<'a>>,
    stop_reason: Option<SourceText<'a>>,
    usage: Option<&'a RawValue>,
    api_error: bool,
}

impl<'s, 'a> ClaudeCodeConversationBuilder<'s, 'a> {
    pub(super) fn new(lines: &'s [ClaudeCodeLine<'a>], path: &'s [usize]) -> Self {
        Self {
            lines,
            path,
            tool: "claude-code",
            messages: Vec::new(),
            open_reply: None,
            call_times: HashMap::new(),
            prompt_time: None,
            totals: ReplyTotals::default(),
        }
    }

    /// Builds the messages.
    pub(super) fn build_messages(
        &mut self,
        line_messages: &'s [Option<ClaudeCodeMessage<'a>>],
        session: Option<&str>,
    ) -> Vec<model::TranscriptMessage<'a>> {
        for at in self.path {
            let line = &self.lines[*at];
            let Some(message) = &line_messages[*at] else {
                continue;
            };
            match &message.reply {
                Some(reply) => self.add_reply_line(line, message, reply),
                None => self.add_user_line(line, message, session),
            }
        }
        self.close_reply();
        std::mem::take(&mut self.messages)
    }

    /// Adds blocks of a reply. Tool results between them do not end the reply.
    fn add_reply_line(
        &mut self,
        line: &'s ClaudeCodeLine<'a>,
        message: &'s ClaudeCodeMessage<'a>,
        reply: &'s AnthropicLogMessage<'a>,
    ) {
        let current = self.open_reply.as_ref();
        // Claude Code writes one line per block, so lines with the same reply id are one message.
        let continues =
            current.is_some_and(|current| current.id.is_some() && current.id == message.reply_id);
        let time = line.timestamp.as_deref();
        if !continues {
            self.close_reply();
            self.open_reply = Some(OpenReply {
                message_index: self.messages.len(),
                id: message.reply_id.clone(),
                prompt_time: self.prompt_time,
                first_time: time,
                last_line: line,
                citations: Vec::new(),
                model: None,
                stop_reason: None,
                usage: None,
                api_error: false,
            });
            self.messages.push(model::TranscriptMessage {
                role: MessageRole::Assistant,
                parts: Vec::new(),
                metadata: None,
            });
        }
        let Some(open) = &mut self.open_reply else {
            return;
        };
        // The newest line of the reply has the final usage, stop reason and duration.
        open.last_line = line;
        open.model = reply.model.and_then(json_string).or(open.model.take());
        open.stop_reason = reply
            .stop_reason
            .and_then(json_string)
            .or(open.stop_reason.take());
        open.usage = reply.usage.or(open.usage);
        open.api_error |= parse_or_none(line.raw.is_api_error) == Some(true);
        let cited = message.blocks.citations.iter();
        open.citations
            .extend(cited.filter_map(|raw| parse_or_none::<Value>(Some(raw))));
        // Lines copied from an older session all have the same time, which says nothing about durations.
        let copied = open.prompt_time.is_some() && open.prompt_time == time;
        for call in message.tool_calls() {
            self.call_times
                .insert(call.id.clone(), time.filter(|_| !copied));
        }
        let parts = &mut self.messages[open.message_index].parts;
        parts.extend(message.blocks.clone().into_parts());
    }

    /// Adds a prompt, tool results or a compaction.
    fn add_user_line(
        &mut self,
        line: &'s ClaudeCodeLine<'a>,
        message: &'s ClaudeCodeMessage<'a>,
        session: Option<&str>,
    ) {
        let role = match line.kind {
            ClaudeCodeLineKind::Compaction => MessageRole::System,
            _ => MessageRole::User,
        };
        let mut messages = message.blocks.clone().into_messages(&role);
        if messages
            .iter()
            .any(|message| message.role != MessageRole::Tool)
        {
            // A prompt ends the reply. A tool result does not, because more blocks of the reply may follow.
            self.close_reply();
        }
        // `toolUseResult` has no call id, so it applies only if the line has exactly one result.
        let has_one_result = message.only_answer().is_some();
        for message in &mut messages {
            let mut meta = MetadataBuilder::default();
            if let Some(time) = &line.timestamp {
                meta.set("timestamp", &**time);
            }
            for (key, is_set) in [
                ("is_meta", parse_or_none(line.raw.is_meta) == Some(true)),
                ("compact_summary", line.is_compact_summary()),
                ("queued", line.kind == ClaudeCodeLineKind::Queued),
            ] {
                if is_set {
                    meta.set(key, true);
                }
            }
            if line.kind == ClaudeCodeLineKind::Compaction {
                let compaction = parse_or_none::<Value>(line.raw.compact_metadata);
                meta.set("compaction", compaction.unwrap_or(Value::Bool(true)));
            }
            // The result of a tool: `into_messages` creates one message per result.
            if let Some(TranscriptPart::ToolResult(result)) = message.parts.first_mut() {
                let use_result = line.raw.tool_use_result.filter(|_| has_one_result);
                result.is_error = result.is_error.or(Some(false));
                result.duration_ms = use_result.and_then(measured_duration_ms).or_else(|| {
                    let called = self.call_times.get(&result.call_id).copied().flatten()?;
                    elapsed_ms(called, line.timestamp.as_deref()?)
                });
                if let Some(use_result) = use_result {
                    add_tool_use_result(use_result, session, &mut meta);
                }
            }
            message.metadata = meta.finish();
        }
        self.messages.extend(messages);
        self.prompt_time = line.timestamp.as_deref().or(self.prompt_time);
    }

    /// Completes the open reply.
    fn close_reply(&mut self) {
        let Some(open) = self.open_reply.take() else {
            return;
        };
        let totals = &mut self.totals;
        // A prompt of the user may interrupt a reply. Its later blocks have the same id, and the usage of the whole reply.
        let reply_id = open.id.as_deref();
        let earlier = reply_id.and_then(|id| totals.usage_by_reply.get(id).copied());
        // Count every reply, also without numbers: the totals need to know whether one is missing.
        totals.replies += usize::from(earlier.is_none());
        let mut meta = MetadataBuilder::default();
        if let Some(time) = open.first_time {
            meta.set("timestamp", time);
        }
        let latency = parse_or_none::<f64>(open.last_line.raw.duration_ms);
        let latency = latency.or_else(|| {
            let prompt_time = open.prompt_time?;
            // Copied lines have one time, so 0 means unknown.
            elapsed_ms(prompt_time, open.last_line.timestamp.as_deref()?).filter(|ms| *ms > 0.0)
        });
        if let Some(ms) = latency {
            meta.set("latency_ms", ms);
        }
        if let Some(usage) = open.usage {
            let tokens = parse_usage(usage);
            let counted = CountedUsage {
                message_index: open.message_index,
                tokens,
            };
            if let Some(at) = earlier {
                let before = std::mem::replace(&mut totals.usages[at], counted);
                remove_usage(&mut self.messages[before.message_index]);
            } else {
                totals
                    .usage_by_reply
                    .extend(reply_id.map(|id| (id.to_owned(), totals.usages.len())));
                totals.usages.push(counted);
            }
            meta.set("usage", tokens.to_json());
        }
        if let Some(cost) = parse_or_none::<f64>(open.last_line.raw.cost_usd) {
            totals.with_cost += 1;
            totals.cost += cost;
            meta.set("cost_usd", cost);
        }
        if let Some(model) = &open.model {
            meta.set("model", &**model);
            // Claude Code's own notices must not hide the real model.
            if &**model != SYNTHETIC_MODEL {
                totals.model = Some(model.to_string());
            }
        }
        if let Some(why) = &open.stop_reason {
            meta.set("stop_reason", &**why);
        }
        if !open.citations.is_empty() {
            meta.set("citations", open.citations);
        }
        let message = &mut self.messages[open.message_index];
        // Only the last reply decides: an API error that a retry fixed is not the end of the run.
        totals.error = None;
        if open.api_error {
            let kind = open.last_line.raw.error.and_then(json_string);
            let kind = kind.map_or(Value::Bool(true), |kind| json!(&*kind));
            meta.set("api_error", kind);
            totals.error = Some(message.text().into_owned());
        }
        message.metadata = meta.finish();
    }

    /// Builds the metadata of the transcript. `own` is the id without a branch number, and `nth` the branch.
    pub(super) fn build_metadata(
        self,
        session: Option<&str>,
        own: &str,
        branch_index: usize,
        spawn: Option<(&str, &AgentSpawn)>,
    ) -> Option<JsonText<'static>> {
        let mut meta = MetadataBuilder::default();
        meta.set("source", self.tool);
        let first_on_path = |field: &dyn Fn(&ClaudeCodeLine<'a>) -> Option<String>| {
            let mut path_lines = self.path.iter().map(|at| &self.lines[*at]);
            path_lines.find_map(field).filter(|text| !text.is_empty())
        };
        let text_of =
            |raw: Option<&'a RawValue>| raw.and_then(json_string).map(|text| text.to_string());
        for (key, value) in [
            (
                "timestamp",
                first_on_path(&|line| line.timestamp.as_deref().map(str::to_owned)),
            ),
            ("cwd", first_on_path(&|line| text_of(line.raw.cwd))),
            (
                "git_branch",
                first_on_path(&|line| text_of(line.raw.git_branch)),
            ),
            ("version", first_on_path(&|line| text_of(line.raw.version))),
            ("session_id", session.map(str::to_owned)),
            ("model", self.totals.model),
            // The title describes the session, not its sub-agents.
            (
                "title",
                if spawn.is_none() {
                    session_title(self.lines)
                } else {
                    None
                },
            ),
            ("error", self.totals.error),
        ] {
            meta.set(key, value);
        }
        let totals = &self.totals.replies;
        // A sum over some of the replies would look like the total.
        if *totals > 0 && self.totals.usages.len() == *totals {
            let all = self.totals.usages.iter();
            let sum = all.fold(SourceUsage::default(), |sum, one| sum.sum_with(one.tokens));
            meta.set("usage", sum.to_json());
        }
        if *totals > 0 && self.totals.with_cost == *totals {
            meta.set("cost_usd", self.totals.cost);
        }
        if spawn.is_none() && branch_index == 0 {
            write_run_result(self.lines, &mut meta);
        }
        let session = session.unwrap_or_default();
        match spawn {
            // A branch belongs to the transcript it left, which may itself be a sub-agent.
            _ if branch_index > 0 => drop(meta.set("parent", json!({"transcript": own}))),
            Some((_, spawn)) => {
                let parent_id = spawn.parent_agent.as_ref();
                let parent_id = parent_id.map_or(session.to_owned(), |agent| {
                    agent_transcript_id(session, agent)
                });
                let mut parent = json!({"transcript": parent_id});
                if let Some(call) = &spawn.call_id {
                    parent["tool_call_id"] = json!(call);
                }
                meta.set("parent", parent);
            }
            None => {}
        }
        if let Some((agent, spawn)) = spawn {
            let mut agent_meta = Map::new();
            agent_meta.insert("id".to_owned(), json!(agent));
            for (key, value) in [
                ("type", &spawn.agent_type),
                ("description", &spawn.description),
            ] {
                if let Some(value) = value {
                    agent_meta.insert(key.to_owned(), json!(value));
                }
            }
            meta.set("agent", agent_meta);
        }
        meta.finish()
    }
}

/// Sets what the last line of a stream reports about the run.
fn write_run_result(lines: &[ClaudeCodeLine<'_>], meta: &mut MetadataBuilder) {
    let mut results = lines.iter().filter(|line| &*line.type_text == "result");
    let Some(first) = results.next() else {
        return;
    };
    let last = results.next_back();
    let run = &last.unwrap_or(first).raw;
    // The cost is that of the session so far. The usage and the duration are those of one of several runs.
    meta.set_raw("cost_usd", run.total_cost_usd);
    if last.is_none() {
        // Each message of a stream has the usage at its start, so their sum is not that of the run.
        if let Some(usage) = run.usage {
            meta.set("usage", parse_usage(usage).to_json());
        }
        meta.set_raw("latency_ms", run.run_duration_ms);
    }
    let kind = run.subtype.and_then(json_string).unwrap_or_default();
    if parse_or_none(run.is_error) == Some(true) || kind.starts_with("error") {
        meta.set_raw("error", run.result.or(run.subtype));
    }
}

/// Removes the usage from a message's metadata.
fn remove_usage(message: &mut model::TranscriptMessage<'_>) {
    if let Some(metadata) = &message.metadata
        && let Value::Object(mut fields) = metadata.parse_value()
    {
        fields.shift_remove("usage");
        message.metadata = Some(JsonText::from_value(&Value::Object(fields)));
    }
}

/// Returns the id of a sub-agent's transcript.
pub(super) fn agent_transcript_id(session: &str, agent: &str) -> String {
    format!("{session}.agent-{agent}")
}

/// Returns the title of a session: the user's, else the model's, else a summary of one of its own lines.
fn session_title(lines: &[ClaudeCodeLine<'_>]) -> Option<String> {
    let newest_text =
        |field: &dyn Fn(&ClaudeCodeLine<'_>) -> Option<String>| lines.iter().rev().find_map(field);
    let text_of = |raw: Option<&RawValue>| raw.and_then(json_string).map(|text| text.to_string());
    newest_text(&|line| text_of(line.raw.custom_title))
        // Summaries come last: Claude Code also copies summaries of other sessions into a file.
        .or_else(|| newest_text(&|line| text_of(line.raw.ai_title)))
        .or_else(|| {
            let mut summaries = lines
                .iter()
                .filter(|line| line.raw.summary.is_some())
                .peekable();
            summaries.peek()?;
            let uuids: HashSet<&str> = lines
                .iter()
                .filter_map(|line| line.uuid.as_deref())
                .collect();
            let is_of_session = |line: &&ClaudeCodeLine<'_>| {
                let leaf = line.raw.leaf.and_then(json_string);
                leaf.is_some_and(|leaf| uuids.contains(&*leaf))
            };
            summaries
                .rfind(is_of_session)
                .and_then(|line| text_of(line.raw.summary))
        })
}

/// Returns a tool's duration as Claude Code measured it, in milliseconds.
fn measured_duration_ms(tool_use_result: &RawValue) -> Option<f64> {
    #[derive(serde::Deserialize)]
    struct ClaudeCodeDurations<'a> {
        #[serde(borrow, default, rename = "totalDurationMs")]
        total: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "durationMs")]
        ms: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "durationSeconds")]
        seconds: Option<&'a RawValue>,
    }
    // The tools write their duration under different keys, in milliseconds or in seconds.
    let ObjectOnly(durations) =
        parse_or_none::<ObjectOnly<ClaudeCodeDurations<'_>>>(Some(tool_use_result))?;
    let ms = parse_or_none::<f64>(durations.total).or_else(|| parse_or_none(durations.ms));
    ms.or_else(|| Some(parse_or_none::<f64>(durations.seconds)? * 1000.0))
}

/// Returns the time between two timestamps in milliseconds; `None` if the clock went back.
fn elapsed_ms(from: &str, to: &str) -> Option<f64> {
    let at = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let ms = at(to)?.duration_since(at(from)?).as_millis_f64();
    (ms >= 0.0).then_some(ms)
}

/// Adds the short members of a `toolUseResult` to the metadata, and the names of the others.
fn add_tool_use_result(
    tool_use_result: &RawValue,
    session: Option<&str>,
    meta: &mut MetadataBuilder,
) {
    let short = |raw: &&RawValue| raw.get().len() <= MAX_RESULT_BYTES;
    // A result that is a text or a list has no members.
    let Some(members) = parse_or_none::<BTreeMap<String, &RawValue>>(Some(tool_use_result)) else {
        if let Some(value) = parse_or_none::<Value>(Some(tool_use_result).filter(short)) {
            meta.set("tool_use_result", value);
        }
        return;
    };
    let agent = parse_or_none::<ObjectOnly<AgentCallResult<'_>>>(Some(tool_use_result))
        .and_then(|ObjectOnly(result)| json_string(result.agent?));
    if let (Some(session), Some(agent)) = (session, agent) {
        meta.set("sub_agent", agent_transcript_id(session, &agent));
    }
    let (mut kept, mut left_out) = (Map::new(), Vec::new());
    for (key, raw) in members {
        match parse_or_none::<Value>(Some(raw).filter(short)) {
            Some(value) => drop(kept.insert(key, value)),
            // Long members stay in the file; their names show that they exist.
            None => left_out.push(Value::String(key)),
        }
    }
    meta.set("tool_use_result", kept);
    if !left_out.is_empty() {
        meta.set("tool_use_result_left_out", left_out);
    }
}

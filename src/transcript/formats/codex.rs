//! Codex rollouts: a session is a file of lines; a file may contain several sessions. The first versions, in TypeScript,
//! wrote an object with `session` and `items`.
//!
//! Responsible for the lines of a rollout. The conversation consists of `response_item` lines, which
//! `response_items.rs` converts; very old files have bare items. Events repeat the items: they supply only tokens,
//! times, failures, and turns that the user took back (`thread_rolled_back`), which leave the transcript. In a session
//! without items, the messages of the events are the conversation. A compaction
//! shortens the model's context, not the conversation: all messages stay. A readable summary becomes a system message
//! at that point. Text that the harness wrote under the user's role (`<environment_context>` …) is a system message
//! too. The base instructions are not read.

mod event_messages;

use std::collections::HashMap;

use event_messages::{EventMessages, start_of_last_turns};
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::reader::{
    PerRecordReader, PerSessionReader, RecordCx, RecordParser, SessionParser, TranscriptReader,
    TranscriptSink, record_text,
};
use super::exchange::parse_usage;
use super::record_readers::NOT_JSON;
use super::response_items::{ConversationBuilder, MessageBuilder};
use super::signatures::wraps_response_items;
use crate::model::{MessageRole, SourceText, Transcript, TranscriptPart};

/// Returns true if a file is a session as one object: the header under `session`, and the items under `items`.
pub(super) fn is_session_object(preview: &FilePreview<'_>) -> bool {
    preview.first_outline()["session"].is_object() && wraps_response_items(preview)
}

/// Returns true if one of the first records is a state of the first Codex versions. Events of other programs also have a
/// `record_type`.
pub(super) fn has_state_record(preview: &FilePreview<'_>) -> bool {
    preview.records.iter().any(|seen| {
        seen.sniff.has("record_type") && seen.sniff.outline(seen.bytes)["record_type"] == "state"
    })
}

/// Returns the reader of a rollout file.
pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if is_session_object(preview) {
        return Box::new(PerRecordReader::new(
            preview.record_walker(),
            CodexSessionObjectParser,
        ));
    }
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        CodexRolloutParser::default(),
    ))
}

/// The parser of sessions that are one object.
#[derive(Debug)]
struct CodexSessionObjectParser;

impl RecordParser for CodexSessionObjectParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let fields = RawFields::parse(record)?;
        let items = fields.list("items");
        let items = items.ok_or_else(|| "the session has no list `items`".to_owned())?;
        out.count_records(items.len() as u64);
        let mut rollout = CodexRollout::default();
        if let Some(session) = fields.object("session") {
            rollout.add_head(&session);
        }
        for raw in items {
            match RawFields::from_raw(raw) {
                Some(item) => rollout.add_line(raw, &item, out),
                None => out.count_unknown("an item that is not an object"),
            }
        }
        let transcript = rollout.finish();
        let transcript = transcript.ok_or_else(|| "the session holds no message".to_owned())?;
        out.push_transcript(&transcript);
        Ok(())
    }
}

/// The parser of rollout lines.
#[derive(Debug, Default)]
struct CodexRolloutParser {
    /// The ids of this session and of the sessions that it was forked from. Their headers follow its own.
    lineage: Vec<String>,
    /// True if all lines so far were headers.
    only_heads: bool,
}

impl SessionParser for CodexRolloutParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        // `session_meta` is at the beginning of a header; a scan of every long line would be slow.
        let begin = &line[..line.len().min(256)];
        let may_be_header =
            line.starts_with(b"{\"id\"") || memchr::memmem::find(begin, b"session_meta").is_some();
        let header = may_be_header
            .then(|| record_text(line).ok().and_then(parse_head))
            .flatten();
        let Some(header) = header else {
            self.only_heads = false;
            return false;
        };
        let id = header
            .id_text("id")
            .map(|id| id.0.into_owned())
            .unwrap_or_default();
        // A fork repeats the headers of its ancestors after its own header.
        let repeated = self.only_heads && self.lineage.contains(&id);
        if !repeated {
            self.lineage = vec![id];
        }
        self.only_heads = true;
        self.lineage
            .extend(parent_session(&header).map(|id| id.0.into_owned()));
        !repeated
    }

    fn parse_session(&self, lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
        let mut rollout = CodexRollout::default();
        for line in lines {
            let raw = record_text(line)
                .ok()
                .and_then(|text| serde_json::from_str(text).ok());
            match raw.and_then(|raw| Some((raw, RawFields::from_raw(raw)?))) {
                Some((raw, line)) => rollout.add_line(raw, &line, out),
                None => out.count_unknown(NOT_JSON),
            }
        }
        match rollout.finish() {
            Some(transcript) => out.push_transcript(&transcript),
            None => out.push_fault("the session holds no message"),
        }
    }
}

/// Returns the header in the first line of a session.
fn parse_head(line: &str) -> Option<RawFields<'_>> {
    let fields = RawFields::parse(line).ok()?;
    match fields.text("type").as_deref() {
        Some("session_meta") => fields.object("payload"),
        None if fields.has("id") && fields.has("timestamp") && !fields.has("role") => Some(fields),
        _ => None,
    }
}

/// Returns the session that this one was forked from or called by.
fn parent_session<'a>(head: &RawFields<'a>) -> Option<SourceText<'a>> {
    // Versions of Codex write the parent in three places.
    let subagent = head
        .object("source")
        .and_then(|source| source.object("subagent"));
    let spawned = subagent.and_then(|agent| agent.object("thread_spawn"));
    spawned
        .and_then(|spawn| spawn.id_text("parent_thread_id"))
        .or_else(|| head.id_text("parent_thread_id"))
        .or_else(|| head.id_text("forked_from_id"))
}

/// A session under construction.
#[derive(Debug, Default)]
struct CodexRollout<'a> {
    id: Option<SourceText<'a>>,
    meta: MetadataBuilder,
    builder: ConversationBuilder<'a>,
    event_messages: EventMessages<'a>,
    model: Option<SourceText<'a>>,
    /// The times of calls by call id, in milliseconds.
    call_times: HashMap<SourceText<'a>, i64>,
    /// The tool failures by call id; true if the tool failed.
    call_failures: HashMap<SourceText<'a>, bool>,
    usage: CodexUsage,
    clock: CodexTurnTimer,
    error: Option<SourceText<'a>>,
    /// The reason why the last turn was aborted.
    aborted: Option<SourceText<'a>>,
    rolled_back: u64,
    compactions: u64,
}

/// The token counts of a session.
#[derive(Debug, Default)]
struct CodexUsage {
    total: Option<SourceUsage>,
    /// The sum from before a restarted count.
    before: SourceUsage,
    /// The usage of a reply whose items follow.
    pending: Option<SourceUsage>,
}

/// The durations of the agent's turns.
#[derive(Debug, Default)]
struct CodexTurnTimer {
    /// The start of the current turn, in milliseconds.
    since: Option<i64>,
    /// The time of the last item, in milliseconds.
    last: Option<i64>,
    total: Option<f64>,
    /// True if events report the turns, so that user messages do not have to.
    has_turn_events: bool,
}

impl CodexTurnTimer {
    /// Ends a turn at `at` and adds its duration: `stated` if the log has it, else the time since the start.
    fn stop(&mut self, at: Option<i64>, stated: Option<f64>) {
        let since = self.since.take();
        let duration = stated.or_else(|| match (since, at) {
            // A clock that went back gives no duration.
            (Some(from), Some(to)) if to > from => Some((to - from) as f64),
            _ => None,
        });
        if let Some(duration) = duration {
            self.total = Some(self.total.unwrap_or(0.0) + duration);
        }
    }
}

impl<'a> CodexRollout<'a> {
    fn add_line(&mut self, raw: &'a RawValue, line: &RawFields<'a>, out: &mut TranscriptSink) {
        let stamp = line.get("timestamp");
        let at = line
            .text("timestamp")
            .and_then(|text| parse_timestamp_ms(&text));
        let kind = line.text("type").unwrap_or_default();
        let Some(payload) = line.object("payload") else {
            // Files of the first versions have no envelope.
            return match &*kind {
                // Lines with a `record_type` describe state, not the conversation.
                _ if line.has("record_type") => {}
                // The header of the first versions: an id without a role.
                "" if line.has("id") && !line.has("role") => self.add_head(line),
                _ => self.add_item(raw, line, stamp, at, out),
            };
        };
        match &*kind {
            "session_meta" => self.add_head(&payload),
            "response_item" => {
                let raw = line.get("payload").unwrap_or(raw);
                self.add_item(raw, &payload, stamp, at, out);
            }
            "event_msg" => self.add_event(&payload, at, out),
            "turn_context" => {
                self.model = payload.text("model").or(self.model.take());
            }
            "compacted" => self.add_compaction(&payload, stamp),
            "token_usage_record" => {
                let usage = payload.object("usage").map(|usage| parse_usage(&usage));
                let total = payload.object("thread_token_usage");
                self.add_usage(usage, total.map(|total| parse_usage(&total)));
            }
            "world_state" => {}
            other => out.count_unknown(other),
        }
    }

    fn add_head(&mut self, head: &RawFields<'a>) {
        // The headers of ancestors follow in a fork; only the first one is that of this session.
        if self.id.is_some() {
            return;
        }
        self.id = head.id_text("id");
        self.meta.set("source", "codex");
        let copied_keys = [
            ("timestamp", "timestamp"),
            ("cwd", "cwd"),
            ("version", "cli_version"),
            ("originator", "originator"),
            ("provider", "model_provider"),
            ("git", "git"),
        ];
        for (key, codex_key) in copied_keys {
            self.meta.set_raw(key, head.get(codex_key));
        }
        if let Some(parent) = parent_session(head) {
            let parent = serde_json::json!({ "transcript": &*parent });
            self.meta.set("parent", parent);
        }
        let agent = head
            .object("source")
            .filter(|source| source.has("subagent"));
        self.meta
            .set_raw("subagent", agent.and_then(|agent| agent.get("subagent")));
    }

    fn add_item(
        &mut self,
        raw: &'a RawValue,
        item: &RawFields<'a>,
        stamp: Option<&RawValue>,
        at: Option<i64>,
        out: &mut TranscriptSink,
    ) {
        // `add_item` may append several messages; the loop below marks exactly those.
        let before = self.builder.messages.len();
        if self.builder.add_item(raw).is_err() {
            out.count_unknown("a broken item");
        }
        if let (Some(id), Some(at)) = (item.id_text("call_id"), at) {
            // The call comes before its output, which has the same id.
            self.call_times.entry(id).or_insert(at);
        }
        // A reply may span several items, and its model is known from the turn context.
        if let Some(turn) = self.builder.open()
            && !turn.meta.has("model")
            && let Some(model) = &self.model
        {
            turn.meta.set("model", &**model);
        }
        for turn in &mut self.builder.messages[before..] {
            turn.meta.set_raw("timestamp", stamp);
            mark_harness_message(turn, item);
            match &turn.role {
                // Versions without turn events: the user's message ends a turn and begins the next one.
                MessageRole::User if !self.clock.has_turn_events => {
                    let last = self.clock.last;
                    self.clock.stop(last, None);
                    self.clock.since = at;
                }
                MessageRole::Assistant => {
                    // The usage arrived before the first message of the reply.
                    if let Some(usage) = self.usage.pending.take() {
                        turn.meta.set("usage", usage.to_json());
                    }
                }
                // The time between a call and its result. `finish` replaces it if the result states a
                // duration.
                MessageRole::Tool => {
                    for part in &mut turn.parts {
                        if let (TranscriptPart::ToolResult(result), Some(at)) = (part, at)
                            && let Some(from) = self.call_times.get(&result.call_id)
                            && at >= *from
                        {
                            result.duration_ms = Some((at - from) as f64);
                        }
                    }
                }
                _ => {}
            }
        }
        self.clock.last = at.or(self.clock.last);
    }

    fn add_event(&mut self, event: &RawFields<'a>, at: Option<i64>, out: &mut TranscriptSink) {
        let kind = event.text("type").unwrap_or_default();
        self.event_messages.add(&kind, event);
        match &*kind {
            "token_count" => {
                if let Some(info) = event.object("info") {
                    let usage_at = |key: &str| info.object(key).map(|usage| parse_usage(&usage));
                    self.add_usage(usage_at("last_token_usage"), usage_at("total_token_usage"));
                }
            }
            "task_started" | "turn_started" => {
                // A new turn shows that the error did not end the session.
                self.error = None;
                self.clock.has_turn_events = true;
                self.clock.since = at;
            }
            "task_complete" | "turn_complete" | "turn_aborted" => {
                self.clock.has_turn_events = true;
                self.clock.stop(at, event.number("duration_ms"));
                // The reason stays only until the next turn ends.
                let aborted = &*kind == "turn_aborted";
                let why = event
                    .text("reason")
                    .unwrap_or_else(|| SourceText::from("aborted"));
                self.aborted = aborted.then_some(why);
                // The next item begins a new message, even if the role is the same.
                self.builder.close_message();
            }
            "thread_rolled_back" => self.roll_back(event.integer("num_turns").unwrap_or(0)),
            "error" | "stream_error" => {
                // A `stream_error` is retried, so it isn't the end of the turn.
                if &*kind == "error" {
                    self.error = event.text_or_json("message");
                }
            }
            "item_completed" => {
                if let Some(item) = event.object("item") {
                    self.add_tool_end(item.id_text("id"), &item);
                }
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => {
                self.add_tool_end(event.id_text("call_id"), event);
            }
            // Events about sub-agents repeat the calls that start, ask and close them.
            kind if IGNORED_EVENTS.contains(&kind) || kind.starts_with("collab_") => {}
            kind => out.count_unknown(&format!("event {kind}")),
        }
    }

    fn add_tool_end(&mut self, id: Option<SourceText<'a>>, event: &RawFields<'a>) {
        let Some(id) = id else { return };
        let failed = match event.text("status").as_deref() {
            Some("failed" | "declined") => Some(true),
            Some("completed") => Some(false),
            _ => None,
        };
        let result = event
            .object("result")
            .map(|result| result.has("Err") || result.has("error"));
        // From the most explicit key to the least: state, success, exit code, then the result.
        let failed = failed
            .or_else(|| event.flag("success").map(|success| !success))
            .or_else(|| event.number("exit_code").map(|code| code != 0.0))
            .or(result);
        if let Some(failed) = failed {
            self.call_failures.insert(id, failed);
        }
    }

    fn add_compaction(&mut self, payload: &RawFields<'a>, stamp: Option<&RawValue>) {
        self.compactions += 1;
        self.builder.close_message();
        // The summary may be unreadable, so a compaction may have no text.
        if let Some(summary) = payload.filled_text("message") {
            self.builder
                .push_message(MessageRole::System, vec![TranscriptPart::Text(summary)]);
            if let Some(turn) = self.builder.messages.last_mut() {
                turn.meta.set_raw("timestamp", stamp).set("compacted", true);
            }
        }
    }

    /// Removes the user's last turns and everything after them.
    fn roll_back(&mut self, turns: u64) {
        self.rolled_back += turns;
        self.event_messages.roll_back(turns);
        let roles = self.builder.messages.iter().map(|turn| &turn.role);
        if let Some(from) = start_of_last_turns(roles, turns) {
            self.builder.messages.truncate(from);
        }
        self.builder.close_message();
    }

    /// Adds the usage of a reply, unless the session repeats an earlier count.
    fn add_usage(&mut self, last: Option<SourceUsage>, total: Option<SourceUsage>) {
        // Codex repeats the last count.
        if total.is_none() || total == self.usage.total {
            return;
        }
        let total_of =
            |tokens: Option<SourceUsage>| tokens.and_then(|tokens| tokens.total).unwrap_or(0);
        if total_of(total) < total_of(self.usage.total) {
            // Another version of Codex resumed the session and restarted the count.
            let before = self.usage.total.take().unwrap_or_default();
            self.usage.before = self.usage.before.sum_with(before);
        }
        self.usage.total = total;
        let Some(last) = last else { return };
        // The count follows the last item of the reply. If the reply is not open yet, it waits for it.
        match self.builder.open() {
            Some(turn) if !turn.meta.has("usage") => {
                turn.meta.set("usage", last.to_json());
                self.builder.close_message();
            }
            _ => self.usage.pending = Some(last),
        }
    }

    fn finish(mut self) -> Option<Transcript<'a>> {
        self.event_messages.move_to(&mut self.builder);
        if self.builder.messages.is_empty() {
            return None;
        }
        // The last turn may have no end event, so the last item ends it.
        let last = self.clock.last;
        self.clock.stop(last, None);
        for turn in &mut self.builder.messages {
            for part in &mut turn.parts {
                let TranscriptPart::ToolResult(result) = part else {
                    continue;
                };
                let status = parse_output_status(&result.content);
                if result.is_error.is_none() {
                    let failed = self.call_failures.get(&result.call_id).copied();
                    // An event is more reliable than the text of the result.
                    result.is_error = failed.or(status.failed);
                }
                // Old versions write a call and its result at the same time and put the duration into the result.
                result.duration_ms = status.duration_ms.or(result.duration_ms);
            }
        }
        let mut meta = self.meta;
        meta.set("source", "codex");
        if let Some(model) = &self.model {
            meta.set("model", &**model);
        }
        if let Some(total) = self.usage.total {
            meta.set("usage", self.usage.before.sum_with(total).to_json());
        }
        if let Some(total) = self.clock.total {
            meta.set("latency_ms", total);
        }
        for (key, count) in [
            ("turns_rolled_back", self.rolled_back),
            ("compactions", self.compactions),
        ] {
            if count > 0 {
                meta.set(key, count);
            }
        }
        for (key, why) in [("stop_reason", &self.aborted), ("error", &self.error)] {
            if let Some(why) = why {
                meta.set(key, &**why);
            }
        }
        Some(Transcript {
            id: self.id.unwrap_or_default(),
            messages: self.builder.finish(),
            metadata: meta.finish(),
            ..Transcript::default()
        })
    }
}

/// The events that repeat items or concern only the screen.
const IGNORED_EVENTS: [&str; 29] = [
    "user_message",
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "context_compacted",
    "entered_review_mode",
    "exited_review_mode",
    "thread_settings_applied",
    "thread_name_updated",
    "thread_goal_updated",
    "undo_started",
    "undo_completed",
    "warning",
    "item_started",
    "exec_command_begin",
    "exec_command_output_delta",
    "patch_apply_begin",
    "mcp_tool_call_begin",
    "web_search_begin",
    "web_search_end",
    "view_image_tool_call",
    "image_generation_begin",
    "image_generation_end",
    "plan_update",
    "turn_diff",
    "background_event",
    "session_configured",
    "dynamic_tool_call_response",
];

/// Makes a message of the harness under the user's role a system message.
fn mark_harness_message(turn: &mut MessageBuilder<'_>, item: &RawFields<'_>) {
    const TAGS: [&str; 8] = [
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<turn_aborted>",
        "<skill>",
        "<user_shell_command>",
        "<subagent_notification>",
        "<permissions instructions>",
    ];
    if turn.role != MessageRole::User || turn.parts.is_empty() {
        return;
    }
    let only_harness_text = turn.parts.iter().all(|part| match part {
        TranscriptPart::Text(text) => TAGS.iter().any(|tag| text.trim_start().starts_with(tag)),
        _ => false,
    });
    if only_harness_text || is_harness_item(item) {
        turn.role = MessageRole::System;
    }
}

/// Returns true if the metadata of an item states that the harness wrote all of it. Newer versions record this.
fn is_harness_item(item: &RawFields<'_>) -> bool {
    let metadata = item.object("internal_chat_message_metadata_passthrough");
    let pieces = metadata.and_then(|metadata| metadata.list("content_item_metadata"));
    let pieces = pieces.unwrap_or_default();
    let is_from_harness = |raw: &&RawValue| {
        let provenance = RawFields::from_raw(raw).and_then(|piece| piece.object("provenance"));
        provenance
            .and_then(|provenance| provenance.text("type"))
            .as_deref()
            == Some("harness")
    };
    !pieces.is_empty() && pieces.iter().all(is_from_harness)
}

/// The status in a tool result of an older version.
#[derive(Debug, Default)]
struct CodexOutputStatus {
    /// True if the exit code isn't 0.
    failed: Option<bool>,
    /// The duration in milliseconds.
    duration_ms: Option<f64>,
}

/// Parses the status that an older version wrote into a tool result.
fn parse_output_status(content: &str) -> CodexOutputStatus {
    // A check of the first bytes avoids a parse of every long result.
    if !content.starts_with("{\"output\"") {
        return parse_status_header(content);
    }
    let metadata = RawFields::parse(content)
        .ok()
        .and_then(|metadata| metadata.object("metadata"));
    let Some(metadata) = metadata else {
        return CodexOutputStatus::default();
    };
    CodexOutputStatus {
        failed: metadata.number("exit_code").map(|code| code != 0.0),
        duration_ms: metadata
            .number("duration_seconds")
            .map(|seconds| seconds * 1000.0),
    }
}

/// Parses the lines that Codex writes before the output of a command: `Exit code: 1`, `Process exited with code 1`,
/// `Wall time: 0.4 seconds`. Only these lines count, because the output itself may contain the same text.
fn parse_status_header(content: &str) -> CodexOutputStatus {
    let mut status = CodexOutputStatus::default();
    for line in content.lines() {
        let code = line
            .strip_prefix("Process exited with code ")
            .or_else(|| line.strip_prefix("Exit code: "));
        if let Some(code) = code.and_then(|code| code.trim().parse::<i64>().ok()) {
            status.failed = Some(code != 0);
        } else if let Some(time) = line.strip_prefix("Wall time: ") {
            let seconds = time
                .split(' ')
                .next()
                .and_then(|time| time.parse::<f64>().ok());
            status.duration_ms = seconds
                .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
                .map(|seconds| seconds * 1000.0);
        } else {
            let known = [
                "Chunk ID: ",
                "Original token count: ",
                "Total output lines: ",
                "Process running with session ID ",
            ];
            if !known.iter().any(|prefix| line.starts_with(prefix)) {
                break;
            }
        }
    }
    status
}

/// Parses a time as milliseconds since 1970.
fn parse_timestamp_ms(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(at.as_millisecond())
}

#[cfg(test)]
mod tests;

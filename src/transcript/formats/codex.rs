//! Codex rollouts: a session is a file of lines, and files that were put together are as many sessions.
//!
//! Owns what of a rollout is conversation: `response_item` lines (of very old files the bare items), read by `items.rs`.
//! Events repeat them; they are asked only for tokens, times, failures and turns taken back (`thread_rolled_back`), which
//! leave the transcript. A compaction shortens what the model sees, not what was said: all of it stays, and a summary that
//! can be read stands where it was made, as a system message. What the harness wrote under the user's role
//! (`<environment_context>` …) is a system message too. The base instructions are left where they are.

mod known;

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::super::detect::Look;
use super::super::fields::Fields;
use super::super::meta::{Meta, Tokens};
use super::super::reader::{BySession, Out, Reader, RecordCx, Sessions, text_of};
use super::exchange::tokens;
use super::items::{Odd, Talk};
use crate::model::{Part, Role, Text, Transcript};
use known::{REPEATS, by_harness, millis, said_of_itself};

/// A rollout file.
pub(super) fn open(look: &Look<'_>) -> Box<dyn Reader> {
    Box::new(BySession::new(look.walk(), Rollouts::default()))
}

/// Finds where a session begins.
#[derive(Debug, Default)]
struct Rollouts {
    /// This session's id and those it was forked from, whose heads follow its own.
    line: Vec<String>,
    /// Only heads were seen so far.
    heads: bool,
}

impl Sessions for Rollouts {
    fn begins(&mut self, line: &[u8]) -> bool {
        let begin = &line[..line.len().min(256)];
        let may_be =
            line.starts_with(b"{\"id\"") || memchr::memmem::find(begin, b"session_meta").is_some();
        let head = may_be.then(|| text_of(line).ok().and_then(head)).flatten();
        let Some(head) = head else {
            self.heads = false;
            return false;
        };
        let id = head
            .id("id")
            .map(|id| id.0.into_owned())
            .unwrap_or_default();
        // A fork repeats the heads of those it comes from, right behind its own.
        let repeated = self.heads && self.line.contains(&id);
        if !repeated {
            self.line = vec![id];
        }
        self.heads = true;
        self.line.extend(parent(&head).map(|id| id.0.into_owned()));
        !repeated
    }

    fn read(&self, lines: &[&[u8]], _: RecordCx<'_>, out: &mut Out) {
        let mut rollout = Rollout::default();
        for line in lines {
            let raw = text_of(line)
                .ok()
                .and_then(|text| serde_json::from_str(text).ok());
            match raw.and_then(|raw| Some((raw, Fields::of(raw)?))) {
                Some((raw, line)) => rollout.line(raw, &line, out),
                None => out.unknown("a line that is not JSON"),
            }
        }
        match rollout.finish() {
            Some(transcript) => out.transcript(&transcript),
            None => out.fault("the session holds no message"),
        }
    }
}

/// What the first line of a session tells of it.
fn head(line: &str) -> Option<Fields<'_>> {
    let fields = Fields::parse(line).ok()?;
    match fields.text("type").as_deref() {
        Some("session_meta") => fields.object("payload"),
        None if fields.has("id") && fields.has("timestamp") && !fields.has("role") => Some(fields),
        _ => None,
    }
}

/// The session that this one came from: forked, or called by.
fn parent<'a>(head: &Fields<'a>) -> Option<Text<'a>> {
    let called = head
        .object("source")
        .and_then(|source| source.object("subagent"));
    let spawned = called.and_then(|agent| agent.object("thread_spawn"));
    spawned
        .and_then(|spawn| spawn.id("parent_thread_id"))
        .or_else(|| head.id("parent_thread_id"))
        .or_else(|| head.id("forked_from_id"))
}

/// A session in the making.
#[derive(Debug, Default)]
struct Rollout<'a> {
    id: Option<Text<'a>>,
    meta: Meta,
    talk: Talk<'a>,
    model: Option<Text<'a>>,
    /// When calls were made, by their ids, in milliseconds.
    called: HashMap<Text<'a>, i64>,
    /// Whether tools failed, by the calls' ids.
    failed: HashMap<Text<'a>, bool>,
    spent: Spent,
    clock: Clock,
    error: Option<Text<'a>>,
    /// Why the last turn did not end by itself.
    aborted: Option<Text<'a>>,
    rolled_back: u64,
    compactions: u64,
}

/// Tokens as the session counts them.
#[derive(Debug, Default)]
struct Spent {
    total: Option<Tokens>,
    /// Of before the count began anew.
    before: Tokens,
    /// Of a reply whose items come later.
    pending: Option<Tokens>,
}

/// How long the agent's turns took.
#[derive(Debug, Default)]
struct Clock {
    /// Since when the agent works.
    since: Option<i64>,
    /// When something was last said.
    last: Option<i64>,
    total: Option<f64>,
    /// Turns are told by events.
    told: bool,
}

impl Clock {
    fn stop(&mut self, at: Option<i64>, stated: Option<f64>) {
        let since = self.since.take();
        let took = stated.or_else(|| match (since, at) {
            (Some(from), Some(to)) if to > from => Some((to - from) as f64),
            _ => None,
        });
        if let Some(took) = took {
            self.total = Some(self.total.unwrap_or(0.0) + took);
        }
    }
}

impl<'a> Rollout<'a> {
    fn line(&mut self, raw: &'a RawValue, line: &Fields<'a>, out: &mut Out) {
        let stamp = line.get("timestamp");
        let at = line.text("timestamp").and_then(|text| millis(&text));
        let kind = line.text("type").unwrap_or_default();
        let Some(payload) = line.object("payload") else {
            // A line of a very old file.
            return match &*kind {
                _ if line.has("record_type") => {}
                "" if line.has("id") && !line.has("role") => self.head(line),
                _ => self.item(raw, line, stamp, at, out),
            };
        };
        match &*kind {
            "session_meta" => self.head(&payload),
            "response_item" => {
                let raw = line.get("payload").unwrap_or(raw);
                self.item(raw, &payload, stamp, at, out);
            }
            "event_msg" => self.event(&payload, at, out),
            "turn_context" => {
                self.model = payload.text("model").or(self.model.take());
            }
            "compacted" => self.compacted(&payload, stamp),
            "token_usage_record" => {
                let usage = payload.object("usage").map(|usage| tokens(&usage));
                let total = payload.object("thread_token_usage");
                self.used(usage, total.map(|total| tokens(&total)));
            }
            "world_state" => {}
            other => out.unknown(other),
        }
    }

    fn head(&mut self, head: &Fields<'a>) {
        if self.id.is_some() {
            return;
        }
        self.id = head.id("id");
        self.meta.set("source", "codex");
        let same = [
            ("timestamp", "timestamp"),
            ("cwd", "cwd"),
            ("version", "cli_version"),
            ("originator", "originator"),
            ("provider", "model_provider"),
            ("git", "git"),
        ];
        for (key, theirs) in same {
            self.meta.keep(key, head.get(theirs));
        }
        if let Some(parent) = parent(head) {
            let parent = serde_json::json!({ "transcript": &*parent });
            self.meta.set("parent", parent);
        }
        let agent = head
            .object("source")
            .filter(|source| source.has("subagent"));
        self.meta
            .keep("subagent", agent.and_then(|agent| agent.get("subagent")));
    }

    fn item(
        &mut self,
        raw: &'a RawValue,
        item: &Fields<'a>,
        stamp: Option<&RawValue>,
        at: Option<i64>,
        out: &mut Out,
    ) {
        let before = self.talk.turns.len();
        match self.talk.item(raw) {
            Ok(()) => {}
            Err(Odd::Kind(kind)) => out.unknown(&kind),
            Err(Odd::Bad(_)) => out.unknown("a broken item"),
        }
        if let (Some(id), Some(at)) = (item.id("call_id"), at) {
            self.called.entry(id).or_insert(at);
        }
        if let Some(turn) = self.talk.open()
            && !turn.meta.has("model")
            && let Some(model) = &self.model
        {
            turn.meta.set("model", &**model);
        }
        for turn in &mut self.talk.turns[before..] {
            turn.meta.keep("timestamp", stamp);
            by_harness(turn, item);
            match &turn.role {
                Role::User if !self.clock.told => {
                    let last = self.clock.last;
                    self.clock.stop(last, None);
                    self.clock.since = at;
                }
                Role::Assistant => {
                    if let Some(usage) = self.spent.pending.take() {
                        turn.meta.set("usage", usage.value());
                    }
                }
                Role::Tool => {
                    for part in &mut turn.parts {
                        if let (Part::ToolResult(result), Some(at)) = (part, at)
                            && let Some(from) = self.called.get(&result.call_id)
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

    fn event(&mut self, event: &Fields<'a>, at: Option<i64>, out: &mut Out) {
        let kind = event.text("type").unwrap_or_default();
        match &*kind {
            "token_count" => {
                if let Some(info) = event.object("info") {
                    let of = |key: &str| info.object(key).map(|usage| tokens(&usage));
                    self.used(of("last_token_usage"), of("total_token_usage"));
                }
            }
            "task_started" | "turn_started" => {
                self.error = None;
                self.clock.told = true;
                self.clock.since = at;
            }
            "task_complete" | "turn_complete" | "turn_aborted" => {
                self.clock.told = true;
                self.clock.stop(at, event.number("duration_ms"));
                let aborted = &*kind == "turn_aborted";
                let why = event
                    .text("reason")
                    .unwrap_or_else(|| Text::from("aborted"));
                self.aborted = aborted.then_some(why);
                self.talk.close();
            }
            "thread_rolled_back" => self.roll_back(event.count("num_turns").unwrap_or(0)),
            "error" | "stream_error" => {
                if &*kind == "error" {
                    self.error = event.written("message");
                }
            }
            "item_completed" => {
                if let Some(item) = event.object("item") {
                    self.tool_ended(item.id("id"), &item);
                }
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => {
                self.tool_ended(event.id("call_id"), event);
            }
            kind if REPEATS.contains(&kind) => {}
            kind => out.unknown(&format!("event {kind}")),
        }
    }

    fn tool_ended(&mut self, id: Option<Text<'a>>, told: &Fields<'a>) {
        let Some(id) = id else { return };
        let failed = match told.text("status").as_deref() {
            Some("failed" | "declined") => Some(true),
            Some("completed") => Some(false),
            _ => None,
        };
        let result = told
            .object("result")
            .map(|result| result.has("Err") || result.has("error"));
        let failed = failed
            .or_else(|| told.flag("success").map(|success| !success))
            .or_else(|| told.number("exit_code").map(|code| code != 0.0))
            .or(result);
        if let Some(failed) = failed {
            self.failed.insert(id, failed);
        }
    }

    fn compacted(&mut self, told: &Fields<'a>, stamp: Option<&RawValue>) {
        self.compactions += 1;
        self.talk.close();
        if let Some(summary) = told.text("message").filter(|text| !text.is_empty()) {
            self.talk.push(Role::System, vec![Part::Text(summary)]);
            if let Some(turn) = self.talk.turns.last_mut() {
                turn.meta.keep("timestamp", stamp).set("compacted", true);
            }
        }
    }

    /// The user's last turns are taken back, with all that followed from them.
    fn roll_back(&mut self, turns: u64) {
        self.rolled_back += turns;
        let users = self.talk.turns.iter().enumerate();
        let users: Vec<usize> = users
            .filter(|(_, turn)| turn.role == Role::User)
            .map(|(at, _)| at)
            .collect();
        let turns = usize::try_from(turns)
            .unwrap_or(usize::MAX)
            .min(users.len());
        if let Some(from) = users.get(users.len() - turns) {
            self.talk.turns.truncate(*from);
        }
        self.talk.close();
    }

    /// Tokens of a reply. The same count is told more than once.
    fn used(&mut self, last: Option<Tokens>, total: Option<Tokens>) {
        if total.is_none() || total == self.spent.total {
            return;
        }
        let sum = |tokens: Option<Tokens>| tokens.and_then(|tokens| tokens.total).unwrap_or(0);
        if sum(total) < sum(self.spent.total) {
            // Resumed by a version that counts anew.
            let before = self.spent.total.take().unwrap_or_default();
            self.spent.before = self.spent.before.plus(before);
        }
        self.spent.total = total;
        let Some(last) = last else { return };
        match self.talk.open() {
            Some(turn) if !turn.meta.has("usage") => {
                turn.meta.set("usage", last.value());
                self.talk.close();
            }
            _ => self.spent.pending = Some(last),
        }
    }

    fn finish(mut self) -> Option<Transcript<'a>> {
        if self.talk.turns.is_empty() {
            return None;
        }
        let last = self.clock.last;
        self.clock.stop(last, None);
        for turn in &mut self.talk.turns {
            for part in &mut turn.parts {
                let Part::ToolResult(result) = part else {
                    continue;
                };
                let own = said_of_itself(&result.content);
                if result.is_error.is_none() {
                    let told = self.failed.get(&result.call_id).copied();
                    result.is_error = told.or(own.failed);
                }
                // Old versions write a call and its answer at once, and the time into the answer.
                result.duration_ms = own.took.or(result.duration_ms);
            }
        }
        let mut meta = self.meta;
        meta.set("source", "codex");
        if let Some(model) = &self.model {
            meta.set("model", &**model);
        }
        if let Some(total) = self.spent.total {
            meta.set("usage", self.spent.before.plus(total).value());
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
            messages: self.talk.finish(),
            metadata: meta.finish(),
            ..Transcript::default()
        })
    }
}

#[cfg(test)]
mod tests;

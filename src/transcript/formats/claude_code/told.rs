//! The lines of one conversation as its messages, with what the lines tell of them: times, tokens, costs, errors.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::super::content::Object;
use super::super::super::meta::{Meta, Tokens};
use super::super::super::native::{of, string};
use super::super::anthropic::{Reply, tokens};
use super::agents::{Finished, Spawn};
use super::line::{Kind, Line};
use super::said::Message;
use crate::model::{self, JsonText, Part, Role, Text};

/// Members of a `toolUseResult` that are longer stay in the file.
const RESULT_MOST: usize = 1000;

/// What Claude Code calls the author of its own notices.
const SYNTHETIC: &str = "<synthetic>";

/// A conversation that is being told.
pub(super) struct Told<'s, 'a> {
    lines: &'s [Line<'a>],
    way: &'s [usize],
    messages: Vec<model::Message<'a>>,
    /// The reply whose blocks are being read.
    open: Option<Open<'s, 'a>>,
    /// When each call was made; `None`: its line bears a time that was copied.
    called: HashMap<Text<'a>, Option<&'s str>>,
    /// When the last line stood there that a reply answers to.
    asked: Option<&'s str>,
    totals: Totals,
}

/// What all replies took together; a number that one of them lacks is none.
#[derive(Default)]
struct Totals {
    replies: usize,
    with_usage: usize,
    tokens: Tokens,
    with_cost: usize,
    cost: f64,
    model: Option<String>,
    /// Why the last reply is none.
    error: Option<String>,
}

struct Open<'s, 'a> {
    /// Its place among the messages.
    at: usize,
    id: Option<Text<'a>>,
    asked: Option<&'s str>,
    first: Option<&'s str>,
    last: &'s Line<'a>,
    citations: Vec<Value>,
    model: Option<Text<'a>>,
    stop_reason: Option<Text<'a>>,
    usage: Option<&'a RawValue>,
    api_error: bool,
}

impl<'s, 'a> Told<'s, 'a> {
    pub(super) fn new(lines: &'s [Line<'a>], way: &'s [usize]) -> Self {
        Self {
            lines,
            way,
            messages: Vec::new(),
            open: None,
            called: HashMap::new(),
            asked: None,
            totals: Totals::default(),
        }
    }

    /// Its messages.
    pub(super) fn conversation(
        &mut self,
        said: &'s [Option<Message<'a>>],
        session: Option<&str>,
    ) -> Vec<model::Message<'a>> {
        for at in self.way {
            let line = &self.lines[*at];
            let Some(message) = &said[*at] else { continue };
            match &message.reply {
                Some(reply) => self.block(line, message, reply),
                None => self.turn(line, message, session),
            }
        }
        self.close();
        std::mem::take(&mut self.messages)
    }

    /// Blocks of a reply. What tools answered in the meantime does not end it.
    fn block(&mut self, line: &'s Line<'a>, message: &'s Message<'a>, reply: &'s Reply<'a>) {
        let open = self.open.as_ref();
        let goes_on = open.is_some_and(|open| open.id.is_some() && open.id == message.reply_id);
        let time = line.timestamp.as_deref();
        if !goes_on {
            self.close();
            self.open = Some(Open {
                at: self.messages.len(),
                id: message.reply_id.clone(),
                asked: self.asked,
                first: time,
                last: line,
                citations: Vec::new(),
                model: None,
                stop_reason: None,
                usage: None,
                api_error: false,
            });
            self.messages.push(model::Message {
                role: Role::Assistant,
                parts: Vec::new(),
                metadata: None,
            });
        }
        let Some(open) = &mut self.open else { return };
        open.last = line;
        open.model = reply.model.and_then(string).or(open.model.take());
        open.stop_reason = reply
            .stop_reason
            .and_then(string)
            .or(open.stop_reason.take());
        open.usage = reply.usage.or(open.usage);
        open.api_error |= of(line.raw.is_api_error) == Some(true);
        let cited = message.blocks.citations.iter();
        open.citations
            .extend(cited.filter_map(|raw| of::<Value>(Some(raw))));
        let copied = open.asked.is_some() && open.asked == time;
        for call in message.made() {
            self.called
                .insert(call.id.clone(), time.filter(|_| !copied));
        }
        let parts = &mut self.messages[open.at].parts;
        parts.extend(message.blocks.clone().into_parts());
    }

    /// A prompt, tools' answers, a compaction.
    fn turn(&mut self, line: &'s Line<'a>, message: &'s Message<'a>, session: Option<&str>) {
        let role = match line.kind {
            Kind::Compaction => Role::System,
            _ => Role::User,
        };
        let mut turns = message.blocks.clone().into_turns(&role);
        if turns.iter().any(|turn| turn.role != Role::Tool) {
            self.close();
        }
        let only = message.answer().is_some();
        for turn in &mut turns {
            let mut meta = Meta::default();
            if let Some(time) = &line.timestamp {
                meta.set("timestamp", &**time);
            }
            for (key, said) in [
                ("is_meta", of(line.raw.is_meta) == Some(true)),
                ("compact_summary", line.summarizes()),
                ("queued", line.kind == Kind::Queued),
            ] {
                if said {
                    meta.set(key, true);
                }
            }
            if line.kind == Kind::Compaction {
                let told = of::<Value>(line.raw.compact_metadata);
                meta.set("compaction", told.unwrap_or(Value::Bool(true)));
            }
            if let Some(Part::ToolResult(result)) = turn.parts.first_mut() {
                let own = line.raw.tool_use_result.filter(|_| only);
                result.is_error = result.is_error.or(Some(false));
                result.duration_ms = own.and_then(measured).or_else(|| {
                    let called = self.called.get(&result.call_id).copied().flatten()?;
                    between(called, line.timestamp.as_deref()?)
                });
                if let Some(own) = own {
                    tool_use_result(own, session, &mut meta);
                }
            }
            turn.metadata = meta.finish();
        }
        self.messages.extend(turns);
        self.asked = line.timestamp.as_deref().or(self.asked);
    }

    /// The open reply is whole.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let totals = &mut self.totals;
        totals.replies += 1;
        let mut meta = Meta::default();
        if let Some(time) = open.first {
            meta.set("timestamp", time);
        }
        let took = of::<f64>(open.last.raw.duration_ms);
        let took = took.or_else(|| {
            let asked = open.asked?;
            between(asked, open.last.timestamp.as_deref()?).filter(|ms| *ms > 0.0)
        });
        if let Some(ms) = took {
            meta.set("latency_ms", ms);
        }
        if let Some(usage) = open.usage {
            let tokens = tokens(usage);
            totals.with_usage += 1;
            totals.tokens = totals.tokens.plus(tokens);
            meta.set("usage", tokens.value());
        }
        if let Some(cost) = of::<f64>(open.last.raw.cost_usd) {
            totals.with_cost += 1;
            totals.cost += cost;
            meta.set("cost_usd", cost);
        }
        if let Some(model) = &open.model {
            meta.set("model", &**model);
            if &**model != SYNTHETIC {
                totals.model = Some(model.to_string());
            }
        }
        if let Some(why) = &open.stop_reason {
            meta.set("stop_reason", &**why);
        }
        if !open.citations.is_empty() {
            meta.set("citations", open.citations);
        }
        let message = &mut self.messages[open.at];
        totals.error = None;
        if open.api_error {
            let kind = open.last.raw.error.and_then(string);
            let kind = kind.map_or(Value::Bool(true), |kind| json!(&*kind));
            meta.set("api_error", kind);
            totals.error = Some(message.text().into_owned());
        }
        message.metadata = meta.finish();
    }

    /// What is known of the whole; `own` is the id without a branch's number.
    pub(super) fn metadata(
        self,
        session: Option<&str>,
        own: &str,
        nth: usize,
        spawn: Option<(&str, &Spawn)>,
    ) -> Option<JsonText<'static>> {
        let mut meta = Meta::default();
        meta.set("source", "claude-code");
        let first = |field: &dyn Fn(&Line<'a>) -> Option<String>| {
            let mut on_way = self.way.iter().map(|at| &self.lines[*at]);
            on_way.find_map(field).filter(|text| !text.is_empty())
        };
        let raw = |raw: Option<&'a RawValue>| raw.and_then(string).map(|text| text.to_string());
        for (key, value) in [
            (
                "timestamp",
                first(&|line| line.timestamp.as_deref().map(str::to_owned)),
            ),
            ("cwd", first(&|line| raw(line.raw.cwd))),
            ("git_branch", first(&|line| raw(line.raw.git_branch))),
            ("version", first(&|line| raw(line.raw.version))),
            ("session_id", session.map(str::to_owned)),
            ("model", self.totals.model),
            (
                "title",
                if spawn.is_none() {
                    title(self.lines)
                } else {
                    None
                },
            ),
            ("error", self.totals.error),
        ] {
            meta.set(key, value);
        }
        let totals = &self.totals.replies;
        if *totals > 0 && self.totals.with_usage == *totals {
            meta.set("usage", self.totals.tokens.value());
        }
        if *totals > 0 && self.totals.with_cost == *totals {
            meta.set("cost_usd", self.totals.cost);
        }
        let session = session.unwrap_or_default();
        match spawn {
            _ if nth > 0 => drop(meta.set("parent", json!({"transcript": own}))),
            Some((_, spawn)) => {
                let by = spawn.by.as_ref();
                let by = by.map_or(session.to_owned(), |agent| agent_id(session, agent));
                let mut parent = json!({"transcript": by});
                if let Some(call) = &spawn.call {
                    parent["tool_call_id"] = json!(call);
                }
                meta.set("parent", parent);
            }
            None => {}
        }
        if let Some((agent, spawn)) = spawn {
            let mut told = Map::new();
            told.insert("id".to_owned(), json!(agent));
            for (key, value) in [("type", &spawn.kind), ("description", &spawn.description)] {
                if let Some(value) = value {
                    told.insert(key.to_owned(), json!(value));
                }
            }
            meta.set("agent", told);
        }
        meta.finish()
    }
}

/// The id of a sub-agent's transcript.
pub(super) fn agent_id(session: &str, agent: &str) -> String {
    format!("{session}.agent-{agent}")
}

/// What the session is called: by its user, else by a model; else by a summary of one of its own lines.
fn title(lines: &[Line<'_>]) -> Option<String> {
    let newest = |field: &dyn Fn(&Line<'_>) -> Option<String>| lines.iter().rev().find_map(field);
    let raw = |raw: Option<&RawValue>| raw.and_then(string).map(|text| text.to_string());
    newest(&|line| raw(line.raw.custom_title))
        .or_else(|| newest(&|line| raw(line.raw.ai_title)))
        .or_else(|| {
            let mut told = lines
                .iter()
                .filter(|line| line.raw.summary.is_some())
                .peekable();
            told.peek()?;
            let uuids: HashSet<&str> = lines
                .iter()
                .filter_map(|line| line.uuid.as_deref())
                .collect();
            let own = |line: &&Line<'_>| {
                let leaf = line.raw.leaf.and_then(string);
                leaf.is_some_and(|leaf| uuids.contains(&*leaf))
            };
            told.rfind(own).and_then(|line| raw(line.raw.summary))
        })
}

/// What Claude Code itself measured of a tool, in milliseconds.
fn measured(own: &RawValue) -> Option<f64> {
    #[derive(serde::Deserialize)]
    struct Took<'a> {
        #[serde(borrow, default, rename = "totalDurationMs")]
        total: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "durationMs")]
        ms: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "durationSeconds")]
        seconds: Option<&'a RawValue>,
    }
    let Object(took) = of::<Object<Took<'_>>>(Some(own))?;
    let ms = of::<f64>(took.total).or_else(|| of(took.ms));
    ms.or_else(|| Some(of::<f64>(took.seconds)? * 1000.0))
}

/// From one time to the other in milliseconds; `None` where the clock went back.
fn between(from: &str, to: &str) -> Option<f64> {
    let at = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let ms = at(to)?.duration_since(at(from)?).as_millis_f64();
    (ms >= 0.0).then_some(ms)
}

/// What a tool told Claude Code, as far as it is short; the names of the rest.
fn tool_use_result(own: &RawValue, session: Option<&str>, meta: &mut Meta) {
    let short = |raw: &&RawValue| raw.get().len() <= RESULT_MOST;
    let Some(members) = of::<BTreeMap<String, &RawValue>>(Some(own)) else {
        if let Some(value) = of::<Value>(Some(own).filter(short)) {
            meta.set("tool_use_result", value);
        }
        return;
    };
    let agent = of::<Object<Finished<'_>>>(Some(own)).and_then(|Object(told)| string(told.agent?));
    if let (Some(session), Some(agent)) = (session, agent) {
        meta.set("sub_agent", agent_id(session, &agent));
    }
    let (mut kept, mut left) = (Map::new(), Vec::new());
    for (key, raw) in members {
        match of::<Value>(Some(raw).filter(short)) {
            Some(value) => drop(kept.insert(key, value)),
            None => left.push(Value::String(key)),
        }
    }
    meta.set("tool_use_result", kept);
    if !left.is_empty() {
        meta.set("tool_use_result_left_out", left);
    }
}

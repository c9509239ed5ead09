//! Session recordings: events of a session, of which those about messages and tools make a transcript.
//!
//! As lines: a metadata line and event lines (`{"type": "metadata" | "event", …}`), or an event store's
//! (`{"seq", "event": {…}}`), where another `session_id` begins another session.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::content::Object;
use super::super::super::meta::Meta;
use super::super::super::reader::{Out, RecordCx, Sessions};
use super::super::message::{Messages, words};
use super::{message, of, transcript};
use crate::model::{Message, Part, Role, SourceVerdict};

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Go writes the fields of an event's data under their own names.
#[derive(Deserialize, Default)]
struct Data<'a> {
    #[serde(borrow, default, rename = "Role", alias = "role")]
    role: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Content", alias = "content")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Parts", alias = "parts")]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ToolCalls", alias = "tool_calls")]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ToolResult", alias = "tool_result")]
    tool_result: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "tool_call_id")]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Index", alias = "index")]
    index: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "LatencyMs")]
    latency_ms: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "InputTokens")]
    input: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "OutputTokens")]
    output: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "TotalCost")]
    cost: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "SystemPrompt")]
    system: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "CallID")]
    call_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Duration")]
    duration: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Status")]
    status: Option<&'a RawValue>,
}

/// Reads a recording that is one object.
pub(super) fn whole(record: &str, out: &mut Out) -> Result<(), String> {
    let Object(whole): Object<Whole<'_>> =
        serde_json::from_str(record).map_err(|why| format!("not a PromptKit recording: {why}"))?;
    out.count(whole.events.len() as u64);
    let mut session = Session::default();
    for event in whole.events {
        session.event(event, out);
    }
    session.hand_out(whole.metadata, out);
    Ok(())
}

/// Recordings as lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Whose the last event was.
    session: String,
    any: bool,
}

impl Sessions for Lines {
    fn begins(&mut self, line: &[u8]) -> bool {
        let Ok(Object(line)) = serde_json::from_slice::<Object<Line<'_>>>(line) else {
            return false;
        };
        if line.metadata.is_some() {
            let begins = self.any;
            self.any = true;
            self.session.clear();
            return begins;
        }
        let event = of::<Object<Event<'_>>>(line.event);
        let session = event
            .map(|Object(event)| words(event.session_id))
            .unwrap_or_default();
        let begins = !self.session.is_empty() && !session.is_empty() && session != self.session;
        if !session.is_empty() {
            self.session = session;
        }
        self.any = true;
        begins
    }

    fn read(&self, lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut Out) {
        let mut session = Session::default();
        let mut metadata = None;
        for line in lines {
            let Ok(Object(line)) = serde_json::from_slice::<Object<Line<'_>>>(line) else {
                out.unknown("a line that is no JSON (cut off?)");
                continue;
            };
            match (line.metadata, line.event) {
                (Some(raw), _) => metadata = Some(raw),
                (None, Some(event)) => session.event(event, out),
                (None, None) => out.unknown(&format!("a line of type {:?}", words(line.kind))),
            }
        }
        session.hand_out(metadata, out);
    }
}

/// A session on its way to a transcript.
#[derive(Debug, Default)]
struct Session {
    id: String,
    messages: Vec<Message<'static>>,
    /// The position that each message says it has.
    said: Vec<(u64, usize)>,
    /// Numbers that came after the message.
    updates: Vec<(u64, Meta)>,
    /// By call: how long it took, and whether it failed.
    tools: Vec<(String, Option<f64>, bool)>,
    verdicts: Vec<SourceVerdict>,
    began: Option<Value>,
}

impl Session {
    fn event(&mut self, raw: &RawValue, out: &mut Out) {
        let Ok(Object(event)) = serde_json::from_str::<Object<Event<'_>>>(raw.get()) else {
            out.unknown("an event that is no object");
            return;
        };
        if self.id.is_empty() {
            self.id = words(event.session_id);
        }
        let at = event.timestamp;
        if self.began.is_none() {
            self.began = of(at);
        }
        let kind = words(event.kind);
        let data = of::<Object<Data<'_>>>(event.data)
            .map(|Object(data)| data)
            .unwrap_or_default();
        match kind.as_str() {
            "message" if event.message.is_some() => {
                if let Some(raw) = event.message {
                    message::read(raw, at, &mut self.messages, &mut self.verdicts);
                }
            }
            "message.created" => self.created(&data, at),
            "message.updated" => self.updated(&data),
            "conversation.started" => {
                let prompt = words(data.system);
                if !prompt.is_empty() && self.messages.is_empty() {
                    let mut system = Messages::default();
                    system.text(Role::System, &prompt);
                    self.messages.append(&mut system.all);
                }
            }
            "tool.call.completed" | "tool.call.failed" => {
                let took = of::<f64>(data.duration).map(|nanos| nanos / 1e6);
                let failed = kind == "tool.call.failed" || words(data.status) == "error";
                self.tools.push((words(data.call_id), took, failed));
            }
            // What it says, the message with the call says too.
            "tool.call.started" => {}
            _ => out.unknown(&format!("an event {kind}")),
        }
    }

    fn created(&mut self, data: &Data<'_>, at: Option<&RawValue>) {
        let mut json = String::from("{");
        for (key, raw) in [
            ("role", data.role),
            ("content", data.content),
            ("parts", data.parts),
            ("tool_calls", data.tool_calls),
            ("tool_result", data.tool_result),
            ("tool_call_id", data.tool_call_id),
        ] {
            if let Some(raw) = raw.filter(|raw| raw.get() != "null") {
                if json.len() > 1 {
                    json.push(',');
                }
                json.push_str(&["\"", key, "\":", raw.get()].concat());
            }
        }
        json.push('}');
        if words(data.role) == "system"
            && self
                .messages
                .first()
                .is_some_and(|message| message.role == Role::System)
            && self.messages.len() == 1
        {
            // The conversation began with it.
            self.messages.clear();
        }
        if let Ok(raw) = serde_json::from_str::<&RawValue>(&json) {
            message::read(raw, at, &mut self.messages, &mut self.verdicts);
        }
        if let Some(index) = of(data.index) {
            self.said
                .push((index, self.messages.len().saturating_sub(1)));
        }
    }

    fn updated(&mut self, data: &Data<'_>) {
        let Some(index) = of(data.index) else { return };
        let mut meta = Meta::default();
        meta.set("latency_ms", of::<f64>(data.latency_ms));
        let tokens = super::super::super::meta::Tokens {
            input: of(data.input),
            output: of(data.output),
            ..Default::default()
        };
        meta.set("usage", tokens.value());
        meta.set("cost_usd", of::<f64>(data.cost));
        self.updates.push((index, meta));
    }

    fn hand_out(mut self, metadata: Option<&RawValue>, out: &mut Out) {
        for (index, mut meta) in std::mem::take(&mut self.updates) {
            let at = self
                .said
                .iter()
                .rev()
                .find(|(said, _)| *said == index)
                .map(|(_, at)| *at);
            if let Some(message) = at.and_then(|at| self.messages.get_mut(at)) {
                if let Some(own) = &message.metadata {
                    meta.adopt(own.value());
                }
                message.metadata = meta.finish();
            }
        }
        for (id, took, failed) in &self.tools {
            let results = self
                .messages
                .iter_mut()
                .flat_map(|message| &mut message.parts);
            for part in results {
                if let Part::ToolResult(result) = part
                    && *result.call_id == **id
                {
                    result.duration_ms = took.or(result.duration_ms);
                    result.is_error = Some(*failed || result.is_error == Some(true));
                }
            }
        }
        let said: Value = of(metadata).unwrap_or_default();
        let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut meta = Meta::default();
        meta.set("source", "arena");
        meta.set(
            "timestamp",
            said.get("start_time")
                .cloned()
                .or(self.began)
                .unwrap_or_default(),
        );
        let took = said
            .get("duration")
            .and_then(Value::as_f64)
            .map(|nanos| nanos / 1e6);
        meta.set("duration_ms", took);
        for key in [
            "model",
            "provider_id",
            "provider_name",
            "conversation_id",
            "description",
        ] {
            if !text(key).is_empty() {
                meta.set(key, text(key));
            }
        }
        let id = if text("session_id").is_empty() {
            &self.id
        } else {
            text("session_id")
        };
        let tags = said
            .get("tags")
            .and_then(|tags| serde_json::value::to_raw_value(tags).ok());
        out.transcript(&transcript(
            id,
            self.messages,
            meta,
            tags.as_deref(),
            self.verdicts,
        ));
    }
}

//! livekit agents: a chat history (`ChatContext.to_dict()`: `{"items": […]}`) and a session report around one
//! (`{"chat_history": {"items": […]}, "job_id", "room", …}`).
//!
//! Calls join the assistant message right before them. A handoff and a change of tools are messages of their own role
//! (`agent_handoff`, `agent_config_update`), new instructions a system message. A tool's time is from when its call was
//! made to when its output was; a history without `created_at` has none. The id is the report's `job_id`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::TranscriptError;
use super::super::content::Object;
use super::super::detect::Look;
use super::super::meta::{Meta, Tokens, json};
use super::super::reader::{ByRecord, Out, Reader, RecordCx, Shape};
use super::super::source::Source;
use super::message::{result, role_of, words};
use crate::model::{Message, Part, Role, Text, ToolCall, Transcript};
use crate::transcript::native::of;

/// Makes the reader.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open(_source: &Source, look: &Look<'_>) -> Result<Box<dyn Reader>, TranscriptError> {
    Ok(Box::new(ByRecord::new(look.walk(), Histories)))
}

#[derive(Debug)]
struct Histories;

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    chat_history: Option<Object<History<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct History<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    created_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    interrupted: Option<&'a RawValue>,
    #[serde(borrow, default)]
    transcript_confidence: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metrics: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old_agent_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    new_agent_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools_added: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools_removed: Option<&'a RawValue>,
}

impl Shape for Histories {
    fn read(&self, record: &str, _cx: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        let Object(whole): Object<Record<'_>> =
            serde_json::from_str(record).map_err(|why| format!("not a livekit history: {why}"))?;
        let reported = whole.chat_history.map(|Object(history)| history.items);
        let items = reported
            .or(whole.items)
            .ok_or("it has no list `items`, nor a `chat_history` with one")?;
        out.count(items.len() as u64);
        let mut history = Reading::default();
        for raw in items {
            match serde_json::from_str::<Object<Item<'_>>>(raw.get()) {
                Ok(Object(item)) => history.item(raw, &item, out),
                Err(_) => out.unknown("an item that is no object"),
            }
        }
        let report: Map<String, Value> = serde_json::from_str(record).unwrap_or_default();
        let text = |key: &str| report.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut meta = Meta::default();
        meta.set("source", "livekit");
        if let Some(usage) = whole.usage {
            meta.set("usage", tokens(usage).value());
        }
        if !text("job_id").is_empty() {
            told(&mut meta, &report);
        }
        let tags: Vec<String> = of(whole.tags).unwrap_or_default();
        out.transcript(&Transcript {
            id: Text::from(text("job_id").to_owned()),
            messages: history.messages,
            metadata: meta.finish(),
            tags: tags.into_iter().map(Text::from).collect(),
            ..Transcript::default()
        });
        Ok(())
    }
}

/// What a report says of the session.
fn told(meta: &mut Meta, report: &Map<String, Value>) {
    let of = |key: &str| report.get(key).cloned().unwrap_or_default();
    let started = of("started_at");
    meta.set(
        "timestamp",
        if started.is_null() {
            of("timestamp")
        } else {
            started
        },
    );
    for key in [
        "room",
        "room_id",
        "agent_name",
        "sdk_version",
        "close_reason",
        "duration_ms",
        "errors",
    ] {
        meta.set(key, of(key));
    }
    let failed = report.get("events").and_then(Value::as_array);
    let mut failed = failed
        .into_iter()
        .flatten()
        .filter(|event| event["type"] == "error");
    if let (Some(last), "CR_ERROR") = (
        failed.next_back(),
        report
            .get("close_reason")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    ) {
        let error = &last["error"];
        let why = error["error"]
            .as_str()
            .or(error["message"].as_str())
            .or(error.as_str());
        meta.set(
            "error",
            why.map_or_else(|| error.to_string(), str::to_owned),
        );
    }
}

/// The report's usage: one entry a model, or one for all.
fn tokens(usage: &RawValue) -> Tokens {
    let entries: Vec<Map<String, Value>> = match serde_json::from_str(usage.get()) {
        Ok(Value::Array(all)) => all.into_iter().filter_map(as_map).collect(),
        Ok(Value::Object(one)) => vec![one],
        _ => Vec::new(),
    };
    let count = |entry: &Map<String, Value>, keys: [&str; 2]| {
        keys.iter().find_map(|key| entry.get(*key)?.as_u64())
    };
    // Speech models count tokens, too; only those of language models are the agent's.
    let is_llm = |entry: &&Map<String, Value>| {
        entry
            .get("type")
            .and_then(Value::as_str)
            .is_none_or(|kind| kind.starts_with("llm"))
    };
    entries
        .iter()
        .filter(is_llm)
        .fold(Tokens::default(), |sum, entry| {
            sum.plus(Tokens {
                input: count(entry, ["input_tokens", "llm_prompt_tokens"]),
                output: count(entry, ["output_tokens", "llm_completion_tokens"]),
                cached: count(entry, ["input_cached_tokens", "llm_prompt_cached_tokens"]),
                thinking: count(entry, ["output_reasoning_tokens", "llm_reasoning_tokens"]),
                ..Tokens::default()
            })
        })
}

fn as_map(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// A history on its way to messages.
#[derive(Debug, Default)]
struct Reading {
    messages: Vec<Message<'static>>,
    /// When each call was made.
    called: Vec<(String, f64)>,
    /// Whether the last message is an assistant's that calls may still join.
    open: bool,
}

impl Reading {
    fn item(&mut self, raw: &RawValue, item: &Item<'_>, out: &mut Out) {
        let kind = words(item.kind);
        let open = std::mem::take(&mut self.open);
        match kind.as_str() {
            "message" => self.message(item),
            "function_call" => self.call(item, open),
            "function_call_output" => self.output(item),
            "agent_handoff" => {
                let (old, new) = (words(item.old_agent_id), words(item.new_agent_id));
                let text = if old.is_empty() {
                    new
                } else {
                    format!("{old} -> {new}")
                };
                self.note(item, Role::Other(Text::from(kind)), text, Meta::default());
            }
            "agent_config_update" => self.config(item, kind),
            _ => {
                out.unknown(&format!("an item of type {kind:?}"));
                let kept = super::super::fields::compact(raw.get());
                if let Ok(kept) = serde_json::from_str::<crate::model::JsonText<'_>>(&kept) {
                    self.messages.push(Message {
                        role: Role::Other(Text::from(kind)),
                        parts: vec![Part::Other(kept.into_owned())],
                        metadata: None,
                    });
                }
            }
        }
    }

    fn message(&mut self, item: &Item<'_>) {
        let role = role_of(&words(item.role));
        let mut meta = Meta::default();
        let metrics: Map<String, Value> = of(item.metrics).unwrap_or_default();
        if let Some(seconds) = metrics.get("e2e_latency").and_then(Value::as_f64) {
            meta.set("end_to_end_latency_ms", seconds * 1000.0);
        }
        let model = metrics
            .get("llm_metadata")
            .and_then(|llm| llm.get("model_name"));
        meta.set("model", model.cloned().unwrap_or_default());
        if !metrics.is_empty() {
            meta.set("metrics", metrics);
        }
        if of(item.interrupted) == Some(true) {
            meta.set("interrupted", true);
        }
        meta.set(
            "transcript_confidence",
            of::<Value>(item.transcript_confidence).unwrap_or_default(),
        );
        let parts = item.content.map(content).unwrap_or_default();
        self.open = role == Role::Assistant;
        self.push(item, role, parts, meta);
    }

    fn call(&mut self, item: &Item<'_>, open: bool) {
        let id = words(item.call_id);
        if let Some(at) = of(item.created_at) {
            self.called.push((id.clone(), at));
        }
        let call = Part::ToolCall(ToolCall {
            id: Text::from(id),
            name: Text::from(words(item.name)),
            arguments: Text::from(words(item.arguments)),
        });
        self.open = true;
        match self.messages.last_mut().filter(|_| open) {
            Some(message) => message.parts.push(call),
            None => self.push(item, Role::Assistant, vec![call], Meta::default()),
        }
    }

    fn output(&mut self, item: &Item<'_>) {
        let id = words(item.call_id);
        let made = self.called.iter().rev().find(|(call, _)| *call == id);
        let done: Option<f64> = of(item.created_at);
        let mut part = result(&id, words(item.output), of(item.is_error));
        if let (Part::ToolResult(result), Some((_, made)), Some(done)) = (&mut part, made, done)
            && done >= *made
        {
            // Both are seconds as floats: what is below a microsecond is their noise.
            result.duration_ms = Some(((done - made) * 1e6).round() / 1e3);
        }
        self.push(item, Role::Tool, vec![part], Meta::default());
    }

    fn config(&mut self, item: &Item<'_>, kind: String) {
        let mut meta = Meta::default();
        let (added, removed): (Vec<String>, Vec<String>) = (
            of(item.tools_added).unwrap_or_default(),
            of(item.tools_removed).unwrap_or_default(),
        );
        let mut tools = Vec::new();
        for (what, names) in [("tools added", added), ("tools removed", removed)] {
            if !names.is_empty() {
                tools.push(format!("{what}: {}", names.join(", ")));
                meta.set(&what.replace(' ', "_"), names);
            }
        }
        let instructions = words(item.instructions);
        if instructions.is_empty() {
            self.note(item, Role::Other(Text::from(kind)), tools.join("; "), meta);
        } else {
            self.note(item, Role::System, instructions, meta);
        }
    }

    fn note(&mut self, item: &Item<'_>, role: Role<'static>, text: String, meta: Meta) {
        self.push(item, role, vec![Part::Text(Text::from(text))], meta);
    }

    fn push(
        &mut self,
        item: &Item<'_>,
        role: Role<'static>,
        parts: Vec<Part<'static>>,
        mut meta: Meta,
    ) {
        meta.set(
            "timestamp",
            of::<Value>(item.created_at).unwrap_or_default(),
        );
        self.messages.push(Message {
            role,
            parts,
            metadata: meta.finish(),
        });
    }
}

/// Texts as they are; sound by what was understood of it, else as it is.
fn content(raw: &RawValue) -> Vec<Part<'static>> {
    #[derive(Deserialize)]
    struct Piece<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow, default)]
        transcript: Option<&'a RawValue>,
    }
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        let text = words(Some(raw));
        return if text.is_empty() {
            Vec::new()
        } else {
            vec![Part::Text(Text::from(text))]
        };
    };
    let part = |raw: &RawValue| {
        let Ok(Object(piece)) = serde_json::from_str::<Object<Piece<'_>>>(raw.get()) else {
            return Part::Text(Text::from(words(Some(raw))));
        };
        let kind = words(piece.kind);
        let heard = words(piece.transcript);
        match kind.as_str() {
            "audio_content" if !heard.is_empty() => Part::Text(Text::from(heard)),
            "image_content" | "audio_content" => Part::Media {
                kind: Text::from(kind),
                raw: json(raw).into_owned(),
            },
            _ => Part::Other(json(raw).into_owned()),
        }
    };
    all.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests;

//! OpenAI's shapes beside `messages` lines, and the logs that people keep of any model's API.
//!
//! | record | becomes |
//! |---|---|
//! | `{request, response}`: chat completions, Responses, Gemini; each an object, its JSON as a string, or plain text | what was asked and the reply; every further choice a transcript `ID#2` … |
//! | a body in `{status_code, body}`, `{body}` | the body |
//! | Batch output `{custom_id, response, error}` | the reply; an error is a fault that names it |
//! | Batch input `{custom_id, method, url, body}` | what is asked |
//! | a reply alone (`choices`, `object: response`), `{input, output}` | as far as it tells |
//! | a list of messages or items, or one on each line | one transcript |
//!
//! The record's id is its `id`, `custom_id` or `key`, else that of the reply. Its other keys go into the metadata as they
//! stand (`latency_ms`, `cost_usd` …), below what the reply itself says; `metadata` of the record likewise.

use serde_json::value::RawValue;

use super::super::detect::{Form, Look};
use super::super::fields::{Fields, list};
use super::super::meta::Meta;
use super::super::native::{parse, tags};
use super::super::reader::{ByRecord, BySession, Out, Reader, RecordCx, Sessions, Shape, text_of};
use super::exchange::{self, Body, Exchange, Held, api_error, items};
use super::gemini;
use super::items::Talk;
use crate::model::{Message, Text, Transcript};

/// Logs and replies, a record each.
pub(super) fn open(look: &Look<'_>) -> Box<dyn Reader> {
    Box::new(ByRecord::new(look.walk(), OpenAi))
}

/// Lists of messages or items: a list is a conversation, and so are lines that follow each other.
pub(super) fn open_list(look: &Look<'_>) -> Box<dyn Reader> {
    match look.form {
        Form::Values { array: true } => Box::new(ByRecord::new(look.whole(), OpenAi)),
        Form::Lines => Box::new(BySession::new(look.walk(), Loose)),
        _ => Box::new(ByRecord::new(look.walk(), OpenAi)),
    }
}

/// Whether the records are items of Responses. An Anthropic message has its type and role in common with them.
pub(super) fn is_items(look: &Look<'_>) -> bool {
    look.first(|s| {
        let message = s.has("role") && s.has("content") && s.kind_begins(&["message"]);
        let others = [
            "function_call",
            "reasoning",
            "custom_tool_call",
            "local_shell_call",
            "web_search_call",
        ];
        (message && !s.has("model") && !s.has("stop_reason"))
            || s.kind_begins(&others)
                && (s.has("call_id") || s.has("summary") || s.has("id") || s.has("name"))
    })
}

/// Whether the records are replies of Responses, requests to it, or both in one.
pub(super) fn is_responses(look: &Look<'_>) -> bool {
    let Some(seen) = look.records.first() else {
        return false;
    };
    let s = &seen.sniff;
    // Other tools write plain `input` and `output`; here one of them is a list.
    let holds_list = |key: &str| s.has(key) && holds_list(seen.bytes, key);
    (s.has("object") && s.has("output"))
        || holds_list("output") && (s.has("input") || s.has("usage") || s.has("model"))
        || holds_list("input") && (s.has("model") || s.has("instructions"))
}

/// Whether a list stands somewhere under this key.
fn holds_list(record: &[u8], key: &str) -> bool {
    let quoted = format!("\"{key}\"");
    let mut places = memchr::memmem::find_iter(record, quoted.as_bytes());
    places.any(|at| {
        let after = record[at + quoted.len()..].trim_ascii_start();
        let value = after.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| value.starts_with(b"["))
    })
}

/// Whether the records are messages, or lists of them.
pub(super) fn is_list(look: &Look<'_>) -> bool {
    look.first(|s| s.has("role"))
        || look.records.first().is_some_and(|seen| {
            seen.bytes.starts_with(b"[") && memchr::memmem::find(seen.bytes, b"\"role\"").is_some()
        })
}

/// Records in OpenAI's shapes or in those of the APIs that logs hold beside them.
#[derive(Debug)]
pub(super) struct OpenAi;

/// Texts that were unpacked from strings, for as long as the record is read.
#[derive(Debug, Default)]
struct Unpacked {
    asked: [Held; 2],
    answered: [Held; 2],
}

impl Shape for OpenAi {
    fn read(&self, record: &str, cx: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        let record = record.trim_start_matches('\u{feff}').trim();
        if record.starts_with('[') {
            return one_list(record, out);
        }
        let fields = Fields::parse(record)?;
        let pair = fields.names("response") || fields.has("request");
        if fields.has("messages") && !pair && !fields.has("choices") {
            let native = parse(record.as_bytes(), cx.span.number, "").map_err(|bad| bad.why)?;
            out.transcript(&native);
            return Ok(());
        }
        let held = Unpacked::default();
        let (asked, answered) = sides(&fields, &held)?;
        let exchange = exchange::read(&asked, &answered)?;
        hand_out(exchange, &fields, out);
        Ok(())
    }
}

fn hand_out(found: Exchange<'_>, record: &Fields<'_>, out: &mut Out) {
    for kind in &found.odd {
        out.unknown(kind);
    }
    let own = ["custom_id", "key", "id", "request_id"];
    let wrapped = WRAPPED.iter().any(|key| record.names(key));
    // A batch's `id` is the line's, and its `custom_id` the author's.
    let id = own.iter().find_map(|key| record.id(key));
    let id = id.or(found.id).unwrap_or_default();
    let tags = record.get("tags").map(tags).unwrap_or_default();
    for (at, messages) in found.talks.into_iter().enumerate() {
        let mut meta = Meta::default();
        meta.set("source", found.source);
        if let Some(told) = found.meta.clone().finish()
            && let Ok(told) = Fields::parse(told.get())
        {
            meta.adopt_written(&told);
        }
        if wrapped {
            more(record, &mut meta);
        }
        let number = at + 1;
        let id = match (at, id.is_empty()) {
            (0, _) => id.clone(),
            (_, true) => Text::default(),
            _ => Text::from(format!("{}#{number}", &*id)),
        };
        if at > 0 {
            meta.set("choice", number);
        }
        out.transcript(&Transcript {
            id,
            messages,
            metadata: meta.finish(),
            tags: tags.clone(),
            verdicts: Vec::new(),
        });
    }
}

/// A list is one conversation; a list of lists is as many.
fn one_list(record: &str, out: &mut Out) -> Result<(), String> {
    let raw: &RawValue =
        serde_json::from_str(record).map_err(|why| super::super::native::sentence(&why))?;
    let all = list(raw).unwrap_or_default();
    let mut odd = Vec::new();
    let transcript = conversation(&all, &mut odd)?;
    for kind in &odd {
        out.unknown(kind);
    }
    out.transcript(&transcript);
    Ok(())
}

/// Keys of a record that wraps an exchange.
const WRAPPED: [&str; 4] = ["request", "response", "body", "custom_id"];

/// The record's own keys beside the exchange.
fn more(record: &Fields<'_>, meta: &mut Meta) {
    let known = [
        "request",
        "response",
        "body",
        "custom_id",
        "key",
        "id",
        "tags",
        "metadata",
        "error",
        "method",
        "url",
    ];
    if !record.has("latency_ms") {
        meta.keep("latency_ms", record.get("duration_ms"));
    }
    for (key, value) in record.iter() {
        if !known.contains(&key) && !meta.has(key) {
            meta.keep(key, Some(value));
        }
    }
    if let Some(own) = record.object("metadata") {
        meta.adopt_written(&own);
    }
}

/// What was asked and what was answered.
fn sides<'a>(record: &Fields<'a>, held: &'a Unpacked) -> Result<(Body<'a>, Body<'a>), String> {
    let wrapped = record.names("response") || record.names("request");
    if !wrapped && !record.has("body") {
        // The record is the body, of whichever side.
        if let Some(why) = api_error(record).filter(|_| record.has("custom_id")) {
            return Err(why);
        }
        return Ok((Body::Object(record.clone()), Body::Object(record.clone())));
    }
    let [first, second] = &held.asked;
    let asked = record.either(&["request", "body"]);
    let asked = within(Body::of(asked, first), second)?;
    let [first, second] = &held.answered;
    let answered = within(Body::of(record.get("response"), first), second);
    // Whoever wrote the log may say why there is no answer, beside it.
    let failed = record.has("error") && !record.has("response");
    match api_error(record).filter(|_| failed) {
        Some(why) => Err(why),
        None => Ok((asked, answered?)),
    }
}

/// The body of an answer of HTTP.
fn within<'a>(side: Body<'a>, held: &'a Held) -> Result<Body<'a>, String> {
    let Body::Object(fields) = &side else {
        return Ok(side);
    };
    let status = ["status_code", "statusCode", "status"];
    let status = status.iter().find_map(|key| fields.count(key));
    let body = Body::of(fields.get("body"), held);
    if let Some(status) = status.filter(|status| *status >= 400) {
        let told = match &body {
            Body::Object(body) => api_error(body),
            Body::Plain(text) => Some(format!("the API answered with an error: {text}")),
            Body::Missing | Body::List(_) => None,
        };
        let told = told.unwrap_or_else(|| "the API answered with an error".to_owned());
        return Err(format!("{told} (status {status})"));
    }
    let is_body = fields.either(&["choices", "messages", "contents", "candidates"]);
    if fields.has("body") && is_body.is_none() {
        return Ok(body);
    }
    Ok(side)
}

/// A list of messages of chat, items of Responses or contents of Gemini.
fn conversation<'a>(all: &[&'a RawValue], odd: &mut Vec<String>) -> Result<Transcript<'a>, String> {
    let parts = |raw: &&RawValue| {
        Fields::of(raw).is_some_and(|entry| entry.has("parts") && !entry.has("content"))
    };
    if all.iter().any(parts) {
        return Ok(alone("gemini", gemini::contents(all, odd)?));
    }
    let mut talk = Talk::default();
    items(&mut talk, all, odd)?;
    if talk.turns.is_empty() {
        return Err("the list holds no message".to_owned());
    }
    Ok(alone("openai", talk.finish()))
}

fn alone<'a>(source: &str, messages: Vec<Message<'a>>) -> Transcript<'a> {
    let mut meta = Meta::default();
    meta.set("source", source);
    Transcript {
        messages,
        metadata: meta.finish(),
        ..Transcript::default()
    }
}

/// A conversation whose messages or items stand on lines of their own: the file is one.
#[derive(Debug)]
struct Loose;

impl Sessions for Loose {
    fn begins(&mut self, _: &[u8]) -> bool {
        false
    }

    fn read(&self, lines: &[&[u8]], _: RecordCx<'_>, out: &mut Out) {
        let mut all: Vec<&RawValue> = Vec::new();
        for line in lines {
            let raw = text_of(line)
                .ok()
                .and_then(|text| serde_json::from_str(text).ok());
            match raw {
                Some(raw) => all.push(raw),
                None => out.unknown("a line that is not JSON"),
            }
        }
        let mut odd = Vec::new();
        match conversation(&all, &mut odd) {
            Ok(transcript) => out.transcript(&transcript),
            Err(why) => out.fault(why),
        }
        for kind in &odd {
            out.unknown(kind);
        }
    }
}

#[cfg(test)]
mod tests;

//! Anthropic's Messages API, as people log it: each record is a request, a request with its reply, or a reply alone.
//!
//! | record | transcript |
//! |---|---|
//! | `{system?, messages, tools?, model?}` | its messages, `system` as the first one |
//! | `{request, response}`, each an object or JSON in a string, either perhaps below `body` | those of the request, then the reply |
//! | `{custom_id, params}`, a line of a Message Batch | the request |
//! | `{custom_id, result}`, a line of its results | the reply; of a request that failed none, and why as `error` |
//! | `{type: "message", role, content}` | the reply |
//!
//! Ids: `id`, else `custom_id`, else that of the reply, else the default one. A user's turn that answers tools becomes a
//! message of each tool, then one of the user, in the order of its blocks ([`super::blocks`]). **Tokens:** Anthropic counts
//! the cached part of a prompt beside `input_tokens`; here `usage.input` holds `input_tokens`,
//! `cache_creation_input_tokens` and `cache_read_input_tokens` together, and `usage.cached` the last of them.
//!
//! A file may mix these with records in OpenAI's shapes: each is read in its own.

mod reply;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::content::{Content, Object};
use super::super::detect::Look;
use super::super::meta::Meta;
use super::super::native::{self, as_text, id_text, of, string, tags};
use super::super::parse;
use super::super::reader::{ByRecord, Out, Reader, RecordCx, Shape};
use super::super::sniff::Sniff;
use super::blocks::Blocks;
use crate::model::{Message, Role, SourceVerdict, Text, Transcript};
pub(super) use reply::{Reply, tokens};
use reply::{error_told, tool_names};

/// The reader of a file that was recognised.
pub(super) fn reader(look: &Look<'_>) -> Box<dyn Reader> {
    Box::new(ByRecord::new(look.walk(), Messages))
}

/// Whether one of the first records is in these shapes.
pub(super) fn is(look: &Look<'_>) -> bool {
    let mut records = look.records.iter();
    records.any(|seen| is_record(seen.bytes, &seen.sniff))
}

/// The native form of a record that stands among native ones and is none itself; `None` for a native one.
pub(in crate::transcript) fn converted(record: &[u8]) -> Option<Vec<u8>> {
    if !maybe(record) {
        return None;
    }
    let text = std::str::from_utf8(record).ok()?;
    if !is_record(record, &Sniff::of(record)) {
        return None;
    }
    Some(super::super::to_native(&transcript(text).ok()?))
}

/// Whether bytes hold anything by which a record of ours could be known: a look that costs next to nothing.
pub(in crate::transcript) fn maybe(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"tool_use").is_some() || holds_key(bytes, b"\"system\"")
}

/// Whether a string stands there as a key, at whatever depth.
fn holds_key(bytes: &[u8], key: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, key)
        .any(|at| bytes[at + key.len()..].trim_ascii_start().first() == Some(&b':'))
}

fn is_record(record: &[u8], sniff: &Sniff) -> bool {
    if sniff.has("messages") {
        return is_request(record, sniff.has("system"));
    }
    (sniff.has("custom_id") && (sniff.has("params") || sniff.has("result")))
        || (sniff.kind_begins(&["message"]) && sniff.has("role") && sniff.has("stop_reason"))
        || (sniff.has("request") && sniff.has("response") && is_pair(record))
}

/// Whether a record with `messages` is in Anthropic's shapes.
fn is_request(record: &[u8], system: bool) -> bool {
    #[derive(Deserialize)]
    struct Prompted<'a> {
        #[serde(borrow)]
        system: &'a RawValue,
        #[serde(borrow)]
        messages: Vec<Object<Spoken<'a>>>,
    }
    #[derive(Deserialize)]
    struct Spoken<'a> {
        #[serde(borrow, default)]
        role: Text<'a>,
        #[serde(default)]
        tool_calls: Option<serde::de::IgnoredAny>,
    }
    // Chat records may have a `system` of their own (which system it was): then a message says what it is told, or who
    // speaks is not what Anthropic knows.
    let prompted = || {
        let Ok(Object(read)) = serde_json::from_slice::<Object<Prompted<'_>>>(record) else {
            return false;
        };
        let spoken = |Object(one): &Object<Spoken<'_>>| {
            matches!(&*one.role, "user" | "assistant") && one.tool_calls.is_none()
        };
        read.system.get().starts_with(['"', '[']) && read.messages.iter().all(spoken)
    };
    native::foreign_shape(record)
        || (system && prompted())
        // Torn: the beginning of a large record.
        || (memchr::memmem::find(record, b"\"tool_use_id\"").is_some()
            && serde_json::from_slice::<&RawValue>(record).is_err())
}

fn is_pair(record: &[u8]) -> bool {
    let Ok(Object(pair)) = serde_json::from_slice::<Object<RawRecord<'_>>>(record) else {
        return false;
    };
    let inner = |raw: Option<&RawValue>| raw.map(|raw| as_text(raw).into_owned());
    let response = inner(pair.response.map(body_of));
    let request = inner(pair.request.map(body_of));
    let replied = response.is_some_and(|text| {
        let sniff = Sniff::of(text.as_bytes());
        sniff.has("content") && sniff.has("role") && sniff.kind_begins(&["message"])
    });
    replied
        || request.is_some_and(|text| {
            let sniff = Sniff::of(text.as_bytes());
            sniff.has("messages") && is_request(text.as_bytes(), sniff.has("system"))
        })
}

/// The reader of one record.
#[derive(Debug)]
struct Messages;

impl Shape for Messages {
    fn read(&self, record: &str, cx: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        if is_record(record.as_bytes(), &Sniff::of(record.as_bytes())) {
            out.transcript(&transcript(record)?);
            return Ok(());
        }
        let parsed = parse(record.as_bytes(), cx.span.number, "");
        out.transcript(&parsed.map_err(|bad| bad.why)?);
        Ok(())
    }
}

#[derive(Deserialize, Default)]
struct RawRecord<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    custom_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    system: Option<Content<'a>>,
    #[serde(borrow, default)]
    messages: Option<Vec<Object<Reply<'a>>>>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
    #[serde(default)]
    verdicts: Option<Vec<Object<SourceVerdict>>>,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    latency_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    duration_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost_usd: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawResult<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// What stands below `body`, where a log keeps the whole of an exchange.
fn body_of(raw: &RawValue) -> &RawValue {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        body: &'a RawValue,
    }
    of::<Object<Whole<'_>>>(Some(raw)).map_or(raw, |Object(whole)| whole.body)
}

/// A transcript in the making, and what is known of its last reply.
#[derive(Default)]
struct Making<'a> {
    id: Option<Text<'a>>,
    messages: Vec<Message<'a>>,
    meta: Meta,
}

/// One record of ours.
fn transcript(record: &str) -> Result<Transcript<'static>, String> {
    let Object(mut raw): Object<RawRecord<'_>> =
        serde_json::from_str(record).map_err(|why| native::sentence(&why))?;
    let mut made = Making {
        id: raw.id.or(raw.custom_id).and_then(id_text),
        ..Making::default()
    };
    made.meta.set("source", "anthropic");
    let mut reply_meta = Meta::default();
    let (tags_of, verdicts) = (raw.tags, raw.verdicts.take());
    for (key, raw) in [
        ("timestamp", raw.timestamp),
        ("latency_ms", raw.latency_ms.or(raw.duration_ms)),
        ("cost_usd", raw.cost_usd),
    ] {
        if let Some(value) = of::<Value>(raw).filter(|v| v.is_number() || v.is_string()) {
            reply_meta.set(key, value);
        }
    }
    if let Some(request) = raw.request.or(raw.params) {
        let request = as_text(body_of(request));
        let Object(request): Object<RawRecord<'_>> =
            serde_json::from_str(&request).map_err(|why| format!("its request: {why}"))?;
        made.request(request)?;
        if let Some(response) = raw.response {
            let response = as_text(body_of(response));
            made.reply(&response, reply_meta)
                .map_err(|why| format!("its response: {why}"))?;
        }
        if let Some(own) = of(raw.metadata) {
            made.meta.adopt(own);
        }
    } else if let Some(result) = raw.result {
        made.result(result, reply_meta)?;
    } else if raw.messages.is_some() {
        made.meta.adopt(Value::Object(Map::from_iter(
            of::<Value>(raw.timestamp).map(|at| ("timestamp".to_owned(), at)),
        )));
        made.request(raw)?;
    } else if raw.role.is_some() {
        made.reply(record, reply_meta)?;
    } else {
        return Err("it holds neither `messages` nor a reply".to_owned());
    }
    Ok(made.finish(tags_of, verdicts))
}

impl Making<'_> {
    fn request(&mut self, raw: RawRecord<'_>) -> Result<(), String> {
        if let Some(system) = raw.system {
            let parts = Blocks::of(system).into_parts();
            if !parts.is_empty() {
                self.push(Message {
                    role: Role::System,
                    parts,
                    metadata: None,
                });
            }
        }
        let messages = raw.messages.ok_or("it has no list `messages`")?;
        for (at, Object(message)) in messages.into_iter().enumerate() {
            let turns = message
                .turns(Meta::default())
                .map_err(|why| format!("message {at}: {why}"))?;
            for turn in turns {
                self.push(turn);
            }
        }
        if let Some(model) = raw.model.and_then(string) {
            self.meta.set("model", &*model);
        }
        let names = raw.tools.map(tool_names).unwrap_or_default();
        if !names.is_empty() {
            self.meta.set("tools", names);
        }
        if let Some(own) = of(raw.metadata) {
            self.meta.adopt(own);
        }
        Ok(())
    }

    fn reply(&mut self, text: &str, meta: Meta) -> Result<(), String> {
        let failed = of_text::<Object<RawResult<'_>>>(text)
            .filter(|Object(read)| read.kind.as_deref() == Some("error"));
        if let Some(Object(RawResult {
            error: Some(why), ..
        })) = failed
        {
            self.meta.set("error", error_told(why));
            return Ok(());
        }
        let Object(reply): Object<Reply<'_>> =
            serde_json::from_str(text).map_err(|why| native::sentence(&why))?;
        if self.id.is_none() {
            self.id = reply.id.and_then(id_text).map(Text::into_owned);
        }
        if let Some(model) = reply.model.and_then(string) {
            self.meta.set("model", &*model);
        }
        let turns = reply.turns(meta)?;
        for turn in turns {
            self.push(turn);
        }
        Ok(())
    }

    /// Of a Message Batch.
    fn result(&mut self, raw: &RawValue, meta: Meta) -> Result<(), String> {
        let result = of::<Object<RawResult<'_>>>(Some(raw));
        let Object(result) = result.ok_or("its `result` is no object")?;
        match (result.message, result.error, &result.kind) {
            (Some(message), _, _) => self.reply(message.get(), meta),
            (None, Some(why), _) => {
                self.meta.set("error", error_told(why));
                Ok(())
            }
            (None, None, Some(kind)) => {
                self.meta
                    .set("error", format!("the batch says: {}", &**kind));
                Ok(())
            }
            (None, None, None) => Err("its `result` says nothing".to_owned()),
        }
    }

    fn push(&mut self, message: Message<'_>) {
        // What came out of a string is gone with it.
        let one = Transcript {
            messages: vec![message],
            ..Transcript::default()
        };
        self.messages.extend(one.into_owned().messages);
    }

    fn finish(
        self,
        tags_of: Option<&RawValue>,
        verdicts: Option<Vec<Object<SourceVerdict>>>,
    ) -> Transcript<'static> {
        let tags_of = tags_of.map(tags).unwrap_or_default();
        let verdicts = verdicts.into_iter().flatten();
        let made = Transcript {
            id: self.id.unwrap_or_default(),
            messages: self.messages,
            metadata: self.meta.finish(),
            tags: tags_of,
            verdicts: verdicts.map(|Object(verdict)| verdict).collect(),
        };
        made.into_owned()
    }
}

fn of_text<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests;

//! Streamed replies of model APIs, put together to the reply that the API sends without streaming.
//!
//! Responsible for server-sent events, for one JSON chunk per line, and for lists of chunks, in seven dialects: OpenAI's
//! chat completions and Responses, Anthropic's messages, Gemini's contents, the chats of Ollama and Cohere, and the UI
//! messages of the Vercel AI SDK. The result is JSON in the same dialect, which the readers of complete replies read; a UI
//! message becomes a reply of the Responses API. Events of other services are an error. What a
//! reply lacks is a part of a kind that those readers count as unread. Works through the events one by one, so memory does
//! not grow with their number. Does not know the record around a reply.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::cohere_stream::{self, CohereReply};
use super::ui_message_stream::{self, UiMessageReply};

/// The largest number of lines of one event's data. APIs write one; the limit keeps the time linear.
const MAX_EVENT_LINES: usize = 16;

/// A reply that was put together.
#[derive(Debug)]
pub(super) struct AssembledReply {
    /// The reply as JSON; for Gemini a list of its chunks.
    pub(super) json: String,
    /// True if the reply is an Anthropic message.
    pub(super) is_anthropic: bool,
    /// True if the reply is not a record of a log by itself: a list of chunks, or a reply of Ollama.
    pub(super) is_partial_record: bool,
}

/// Returns true if a text begins as a stream does: with an event, or with one of several chunks.
pub(super) fn looks_streamed(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if ["data:", "event:"]
        .iter()
        .any(|field| text.starts_with(field))
    {
        return true;
    }
    // A comment of the protocol, such as OpenRouter's `: PROCESSING`.
    if text.starts_with(':') {
        return text.lines().take(20).any(|line| line.starts_with("data:"));
    }
    // One chunk per line: the first line is complete, and another one follows.
    let Some((first, rest)) = text.split_once('\n') else {
        return false;
    };
    first.trim_end().ends_with('}')
        && rest.trim_start().starts_with('{')
        && serde_json::from_str::<Value>(first).is_ok_and(|chunk| Dialect::detect(&chunk).is_some())
}

/// Returns true if a value is one chunk of a streamed reply.
pub(super) fn is_chunk(value: &Value) -> bool {
    match Dialect::detect(value) {
        // A complete reply of Gemini and Ollama has the same form as a chunk.
        Some(Dialect::Gemini | Dialect::Ollama) | None => false,
        Some(Dialect::UiMessage) => !ui_message_stream::is_bare_event(value),
        Some(_) => true,
    }
}

/// Puts a streamed reply together from its text. `None` if the text is not a stream. The error is a sentence fragment.
pub(super) fn assemble_text(text: &str) -> Option<Result<AssembledReply, String>> {
    if !looks_streamed(text) {
        return None;
    }
    let mut assembler = ReplyAssembler::default();
    let mut pending = PendingEvent::default();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let line = line.trim_end_matches('\r');
        let data = match line.strip_prefix("data:") {
            Some(data) => data.strip_prefix(' ').unwrap_or(data),
            None if line.starts_with('{') => line,
            None => {
                // An empty line ends an event. Names and ids of events repeat what the data contains.
                if line.is_empty() {
                    pending.end(&mut assembler);
                }
                continue;
            }
        };
        pending.add_line(data, &mut assembler);
    }
    pending.end(&mut assembler);
    if assembler.dialect.is_none() && assembler.first_event.is_none() {
        // Text that begins with `data:` and contains no JSON is a text.
        return None;
    }
    Some(assembler.finish())
}

/// An event whose data is not complete.
#[derive(Debug, Default)]
struct PendingEvent {
    data: String,
    lines: usize,
}

impl PendingEvent {
    /// Adds a line of data. The data of one event may extend over several lines.
    fn add_line(&mut self, data: &str, assembler: &mut ReplyAssembler) {
        // An event that is cut off must not take the next one with it.
        if !self.data.is_empty()
            && serde_json::from_str(data).is_ok_and(|event| Dialect::detect(&event).is_some())
        {
            self.end(assembler);
        }
        self.data.push_str(data);
        if let Ok(event) = serde_json::from_str::<Value>(&self.data) {
            assembler.add_event(event);
            *self = Self::default();
        } else if self.lines == MAX_EVENT_LINES || data.trim() == "[DONE]" {
            self.end(assembler);
        } else {
            self.data.push('\n');
            self.lines += 1;
        }
    }

    /// Drops the data. Counts it if it is the beginning of JSON, and not a text such as `[DONE]`.
    fn end(&mut self, assembler: &mut ReplyAssembler) {
        assembler.broken_events += u64::from(self.data.starts_with('{'));
        *self = Self::default();
    }
}

/// Puts a streamed reply together from a list of its chunks. `None` if the list contains none.
pub(super) fn assemble_chunks(
    chunks: &[&serde_json::value::RawValue],
) -> Option<Result<AssembledReply, String>> {
    let mut events = chunks
        .iter()
        .map(|raw| serde_json::from_str::<Value>(raw.get()));
    let first = events.next()?.ok()?;
    if !is_chunk(&first) {
        return None;
    }
    let mut assembler = ReplyAssembler::default();
    assembler.add_event(first);
    for event in events {
        match event {
            Ok(event) => assembler.add_event(event),
            // It is nested too deeply.
            Err(_) => assembler.broken_events += 1,
        }
    }
    Some(assembler.finish())
}

/// Returns true if a text, or a list of chunks, is a streamed reply of Anthropic's API.
pub(super) fn is_anthropic_stream(text: &str) -> bool {
    // The search is faster than an assembly, and every such reply has this event.
    memchr::memmem::find(text.as_bytes(), b"message_start").is_some()
        && matches!(assemble_reply(text), Some(Ok(reply)) if reply.is_anthropic)
}

/// Puts a reply together from a text that may be a stream, or a list of chunks; `None` for any other text.
pub(super) fn assemble_reply(text: &str) -> Option<Result<AssembledReply, String>> {
    if text.trim_start().starts_with('[') {
        let chunks: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
        return assemble_chunks(&chunks);
    }
    assemble_text(text)
}

/// The API that sent a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Chat,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
    Cohere,
    UiMessage,
}

impl Dialect {
    fn detect(event: &Value) -> Option<Self> {
        let kind = event["type"].as_str().unwrap_or_default();
        let object = event["object"].as_str().unwrap_or_default();
        let has_delta = |choices: &Value| {
            choices[0].get("delta").is_some()
                || (object == "text_completion" && choices[0].get("text").is_some())
        };
        // Azure's first chunk has the results of its filter, and no choices.
        let is_filter = event["prompt_filter_results"].is_array()
            && event["choices"].as_array().is_some_and(Vec::is_empty);
        if object == "chat.completion.chunk" || has_delta(&event["choices"]) || is_filter {
            return Some(Self::Chat);
        }
        if kind.starts_with("response.") {
            return Some(Self::Responses);
        }
        let anthropic = [
            "message_start",
            "content_block_",
            "message_delta",
            "message_stop",
            "ping",
        ];
        if anthropic.iter().any(|prefix| kind.starts_with(prefix)) {
            return Some(Self::Anthropic);
        }
        if cohere_stream::is_event(event) {
            return Some(Self::Cohere);
        }
        if ui_message_stream::is_event(event) {
            return Some(Self::UiMessage);
        }
        let reply = event.get("response").unwrap_or(event);
        let gemini = [
            "candidates",
            "usageMetadata",
            "usage_metadata",
            "promptFeedback",
        ];
        if gemini.iter().any(|key| reply.get(key).is_some()) {
            return Some(Self::Gemini);
        }
        if event["done"].is_boolean()
            && (event["message"].is_object() || event["response"].is_string())
        {
            return Some(Self::Ollama);
        }
        None
    }
}

/// A reply under construction.
#[derive(Debug, Default)]
struct ReplyAssembler {
    dialect: Option<Dialect>,
    /// The first event of an unknown service, for the error.
    first_event: Option<String>,
    /// The error that the API reported in the stream.
    error: Option<Value>,
    /// The keys of the reply, without its content.
    reply: Map<String, Value>,
    /// Chat: the choices. Anthropic: the blocks. Responses: the items. By index.
    pieces: BTreeMap<u64, Map<String, Value>>,
    /// Texts of Responses items that have no final item yet, by output index.
    texts: BTreeMap<u64, String>,
    /// Gemini: the chunks.
    chunks: Vec<Value>,
    /// The number of events that are not JSON.
    broken_events: u64,
    /// Anthropic: the number of blocks of messages that a gateway began again.
    restarted_blocks: u64,
    cohere: CohereReply,
    ui_message: UiMessageReply,
}

impl ReplyAssembler {
    fn add_event(&mut self, event: Value) {
        // Some streams end with an error, after a part of the reply or without any.
        let error = event.get("error").filter(|error| !error.is_null());
        if let Some(error) = error {
            self.error = Some(error.clone());
            return;
        }
        if event["type"] == "error" {
            self.error = Some(event);
            return;
        }
        let detected = Dialect::detect(&event);
        if self.dialect.is_none_or(|known| known == Dialect::Anthropic) {
            // A ping of Anthropic's kind may come before the first chunk of other services.
            self.dialect = detected.or(self.dialect);
        }
        match self.dialect {
            Some(Dialect::Chat) => self.add_chat_chunk(&event),
            Some(Dialect::Responses) => self.add_response_event(event),
            Some(Dialect::Anthropic) => self.add_anthropic_event(event),
            Some(Dialect::Gemini) => {
                // Google's Code Assist wraps each chunk.
                let mut event = event;
                let wrapped = event.get_mut("response").map(Value::take);
                self.chunks.push(wrapped.unwrap_or(event));
            }
            Some(Dialect::Ollama) => self.add_ollama_chunk(&event),
            Some(Dialect::Cohere) => self.cohere.add_event(event),
            Some(Dialect::UiMessage) => self.ui_message.add_event(event),
            None => {
                self.first_event.get_or_insert_with(|| {
                    event["type"].as_str().map_or_else(
                        || {
                            let keys = event.as_object().map(|fields| {
                                let keys = fields.keys().take(4).map(|key| format!("`{key}`"));
                                keys.collect::<Vec<_>>().join(", ")
                            });
                            format!("it begins with the keys {}", keys.unwrap_or_default())
                        },
                        |kind| format!("it begins with an event `{kind}`"),
                    )
                });
            }
        }
    }

    /// Sets keys of the reply that have a value.
    fn copy_keys(&mut self, from: &Value, keys: &[&str]) {
        for key in keys {
            if let Some(value) = from.get(key).filter(|value| !value.is_null()) {
                self.reply.insert((*key).to_owned(), value.clone());
            }
        }
    }

    fn add_chat_chunk(&mut self, event: &Value) {
        self.copy_keys(event, &["id", "model", "created", "usage"]);
        // Groq reports the usage in a key of its own.
        if let Some(usage) = event["x_groq"].get("usage") {
            self.reply.insert("usage".to_owned(), usage.clone());
        }
        let Some(choices) = event["choices"].as_array() else {
            return;
        };
        for (at, choice) in choices.iter().enumerate() {
            let index = choice["index"].as_u64().unwrap_or(at as u64);
            let piece = self.pieces.entry(index).or_default();
            if let Some(text) = choice["text"].as_str() {
                append_text(piece, "text", text);
            }
            if let Some(reason) = choice
                .get("finish_reason")
                .filter(|reason| !reason.is_null())
            {
                piece.insert("finish_reason".to_owned(), reason.clone());
            }
            let Value::Object(delta) = &choice["delta"] else {
                continue;
            };
            let message = entry_object(piece, "message");
            for (key, value) in delta {
                match (key.as_str(), value) {
                    (_, Value::Null) => {}
                    ("tool_calls", Value::Array(calls)) => add_tool_call_deltas(message, calls),
                    ("function_call", Value::Object(call)) => {
                        let own = entry_object(message, "function_call");
                        for (key, value) in call {
                            append_value(own, key, value);
                        }
                    }
                    ("role", value) => {
                        message.insert(key.clone(), value.clone());
                    }
                    (key, value) => append_value(message, key, value),
                }
            }
        }
    }

    fn add_response_event(&mut self, mut event: Value) {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let index = event["output_index"].as_u64().unwrap_or(0);
        match kind.as_str() {
            "response.output_item.done" => {
                if let Value::Object(item) = event["item"].take() {
                    self.texts.remove(&index);
                    self.pieces.insert(index, item);
                }
            }
            "response.output_text.delta" => {
                if let Some(delta) = event["delta"].as_str() {
                    self.texts.entry(index).or_default().push_str(delta);
                }
            }
            // `created`, `in_progress`, `completed`, `incomplete` and `failed` contain the whole reply so far.
            _ => {
                if let Value::Object(response) = event["response"].take() {
                    self.reply.extend(response);
                }
            }
        }
    }

    fn add_anthropic_event(&mut self, mut event: Value) {
        let index = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                // A gateway that tries again sends a second start. The blocks before it are of another message.
                self.restarted_blocks += self.pieces.len() as u64;
                self.pieces.clear();
                if let Value::Object(mut message) = event["message"].take() {
                    // After the calls of a program, the message begins with its blocks.
                    let blocks = message.remove("content");
                    let blocks = blocks.iter().filter_map(Value::as_array).flatten();
                    for (at, block) in blocks.enumerate() {
                        if let Value::Object(block) = block {
                            self.pieces.insert(at as u64, block.clone());
                        }
                    }
                    self.reply.extend(message);
                }
            }
            "content_block_start" => {
                if let Value::Object(block) = event["content_block"].take() {
                    self.pieces.insert(index, block);
                }
            }
            "content_block_delta" => {
                let block = self.pieces.entry(index).or_default();
                let delta = &event["delta"];
                // A stream that begins late lacks the start of its first block.
                if !block.contains_key("type") {
                    let kind = match delta["type"].as_str() {
                        Some("input_json_delta") => "tool_use",
                        Some("thinking_delta" | "signature_delta") => "thinking",
                        _ => "text",
                    };
                    block.insert("type".to_owned(), Value::from(kind));
                }
                match delta["type"].as_str().unwrap_or_default() {
                    "input_json_delta" => {
                        let json = delta["partial_json"].as_str().unwrap_or_default();
                        append_text(block, PARTIAL_INPUT, json);
                    }
                    "citations_delta" => {
                        append_value(block, "citations", &json!([delta["citation"]]));
                    }
                    kind => {
                        let key = kind.strip_suffix("_delta").unwrap_or(kind);
                        let text = delta[key].as_str().unwrap_or_default();
                        append_text(block, key, text);
                    }
                }
            }
            "message_delta" => {
                self.copy_keys(&event["delta"], &["stop_reason", "stop_sequence"]);
                let usage = entry_object(&mut self.reply, "usage");
                if let Value::Object(counts) = event["usage"].take() {
                    // The counts of the end include those of the start.
                    usage.extend(counts.into_iter().filter(|(_, count)| !count.is_null()));
                }
            }
            _ => {}
        }
    }

    fn add_ollama_chunk(&mut self, event: &Value) {
        self.copy_keys(event, &["model", "created_at", "done_reason"]);
        let message = entry_object(&mut self.reply, "message");
        message
            .entry("role")
            .or_insert_with(|| Value::from("assistant"));
        if let Some(text) = event["response"].as_str() {
            append_text(message, "content", text);
        }
        if let Value::Object(delta) = &event["message"] {
            for (key, value) in delta.iter().filter(|(key, _)| *key != "role") {
                append_value(message, key, value);
            }
        }
        let count = |key: &str| event[key].as_u64();
        if let (Some(input), Some(output)) = (count("prompt_eval_count"), count("eval_count")) {
            let usage = json!({"prompt_tokens": input, "completion_tokens": output});
            self.reply.insert("usage".to_owned(), usage);
        }
    }

    /// Returns the parts that name what the reply lacks. No reader knows their types, so they count as unread.
    fn unread_parts(&self) -> Vec<Value> {
        let counts = [
            ("broken_stream_events", self.broken_events),
            ("blocks_before_a_restart", self.restarted_blocks),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        counts
            .map(|(kind, count)| json!({"type": kind, "count": count}))
            .collect()
    }

    fn finish(self) -> Result<AssembledReply, String> {
        let unread = self.unread_parts();
        let Some(dialect) = self.dialect else {
            let why = match (self.error, self.first_event) {
                (Some(error), _) => return Ok(error_reply(&error)),
                (None, Some(event)) => event,
                (None, None) => "it has no events".to_owned(),
            };
            return Err(format!(
                "its reply is a stream of a service that dicta does not know: {why}"
            ));
        };
        // An error at the end makes the reply incomplete, so the record is a fault with its reason.
        if let Some(error) = self.error {
            return Ok(error_reply(&error));
        }
        let mut reply = self.reply;
        let pieces = self.pieces.into_values();
        match dialect {
            Dialect::Chat => {
                reply.insert("object".to_owned(), Value::from("chat.completion"));
                let choices = pieces.map(|mut choice| {
                    if let Some(Value::Object(message)) = choice.get_mut("message") {
                        message
                            .entry("role")
                            .or_insert_with(|| Value::from("assistant"));
                        list_tool_calls(message);
                        append_parts(message, &unread);
                    }
                    Value::Object(choice)
                });
                reply.insert("choices".to_owned(), choices.collect());
            }
            Dialect::Responses => {
                let is_listed =
                    matches!(reply.get("output"), Some(Value::Array(items)) if !items.is_empty());
                // Some services leave the items out of the final event. If it has them, no broken event is missed.
                if !is_listed {
                    let mut items: Vec<Value> = pieces.map(Value::Object).collect();
                    items.extend(self.texts.into_values().map(|text| {
                        let part = json!({"type": "output_text", "text": text});
                        json!({"type": "message", "role": "assistant", "content": [part]})
                    }));
                    items.extend(unread);
                    reply.insert("output".to_owned(), Value::Array(items));
                }
                reply
                    .entry("object")
                    .or_insert_with(|| Value::from("response"));
            }
            Dialect::Anthropic => {
                let blocks = pieces.map(|mut block| {
                    if let Some(Value::String(written)) = block.remove(PARTIAL_INPUT)
                        && !written.is_empty()
                    {
                        // Input that is cut off stays a text.
                        let input =
                            serde_json::from_str(&written).unwrap_or(Value::String(written));
                        block.insert("input".to_owned(), input);
                    }
                    Value::Object(block)
                });
                let blocks = blocks.chain(unread);
                reply.insert("content".to_owned(), blocks.collect());
                reply
                    .entry("type")
                    .or_insert_with(|| Value::from("message"));
                reply
                    .entry("role")
                    .or_insert_with(|| Value::from("assistant"));
            }
            Dialect::Gemini => {
                let mut chunks = self.chunks;
                if !unread.is_empty() {
                    // The last chunk has the counts of the reply, so this one is the first.
                    let content = json!({"role": "model", "parts": unread});
                    chunks.insert(0, json!({"candidates": [{"content": content}]}));
                }
                return Ok(AssembledReply {
                    json: Value::Array(chunks).to_string(),
                    is_anthropic: false,
                    is_partial_record: true,
                });
            }
            Dialect::Cohere => {
                return Ok(AssembledReply {
                    json: self.cohere.finish(unread)?.to_string(),
                    is_anthropic: false,
                    is_partial_record: false,
                });
            }
            Dialect::UiMessage => {
                return Ok(AssembledReply {
                    json: self.ui_message.finish(unread).to_string(),
                    is_anthropic: false,
                    is_partial_record: false,
                });
            }
            Dialect::Ollama => append_parts(entry_object(&mut reply, "message"), &unread),
        }
        Ok(AssembledReply {
            json: Value::Object(reply).to_string(),
            is_anthropic: dialect == Dialect::Anthropic,
            is_partial_record: dialect == Dialect::Ollama,
        })
    }
}

/// The key of a block's input while its JSON is incomplete.
const PARTIAL_INPUT: &str = "partial_json";

/// Returns the reply of an API that reports an error.
fn error_reply(error: &Value) -> AssembledReply {
    // Some services repeat the type next to the message, and others send the error as text.
    AssembledReply {
        json: json!({"type": "error", "error": error}).to_string(),
        is_anthropic: false,
        is_partial_record: false,
    }
}

/// Returns the object below a key, and creates it if necessary.
fn entry_object<'m>(map: &'m mut Map<String, Value>, key: &str) -> &'m mut Map<String, Value> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("an object")
}

fn append_text(map: &mut Map<String, Value>, key: &str, text: &str) {
    match map.get_mut(key) {
        Some(Value::String(so_far)) => so_far.push_str(text),
        // Mistral streams parts first and text afterwards.
        Some(Value::Array(parts)) if !text.is_empty() => {
            parts.push(json!({"type": "text", "text": text}));
        }
        Some(Value::Array(_)) => {}
        _ => {
            map.insert(key.to_owned(), Value::from(text));
        }
    }
}

/// Appends a delta: texts and lists grow, and any other value replaces the one before.
fn append_value(map: &mut Map<String, Value>, key: &str, delta: &Value) {
    match delta {
        Value::Null => {}
        Value::String(text) => append_text(map, key, text),
        Value::Array(more) => match map.get_mut(key) {
            Some(Value::Array(so_far)) => so_far.extend(more.iter().cloned()),
            Some(Value::String(text)) if !text.is_empty() => {
                let mut parts = vec![json!({"type": "text", "text": text})];
                parts.extend(more.iter().cloned());
                map.insert(key.to_owned(), Value::Array(parts));
            }
            _ => {
                map.insert(key.to_owned(), delta.clone());
            }
        },
        value => {
            map.insert(key.to_owned(), value.clone());
        }
    }
}

/// Appends parts to the content of a message.
fn append_parts(message: &mut Map<String, Value>, parts: &[Value]) {
    if !parts.is_empty() {
        append_value(message, "content", &Value::from(parts));
    }
}

/// Adds deltas of tool calls. The calls are an object by index until `list_tool_calls`.
fn add_tool_call_deltas(message: &mut Map<String, Value>, deltas: &[Value]) {
    let calls = entry_object(message, "tool_calls");
    for (at, delta) in deltas.iter().enumerate() {
        // Without an index, an id begins a call, and arguments continue the last one.
        let index = match delta["index"].as_u64() {
            Some(index) => index,
            None if delta["id"].is_string() => calls.len() as u64,
            None => (calls.len() as u64).saturating_sub(1).max(at as u64),
        };
        // Fixed width, so that the keys sort by number.
        let call = entry_object(calls, &format!("{index:020}"));
        for key in ["id", "type"] {
            if let Some(text) = delta[key].as_str().filter(|text| !text.is_empty()) {
                call.insert(key.to_owned(), Value::from(text));
            }
        }
        if let Value::Object(function) = &delta["function"] {
            let own = entry_object(call, "function");
            for (key, value) in function {
                append_value(own, key, value);
            }
        }
    }
}

/// Converts the calls of a message to a list in the order of their index.
fn list_tool_calls(message: &mut Map<String, Value>) {
    if let Some(Value::Object(calls)) = message.get_mut("tool_calls") {
        let mut calls: Vec<(String, Value)> = std::mem::take(calls).into_iter().collect();
        calls.sort_by(|one, other| one.0.cmp(&other.0));
        let calls = calls.into_iter().map(|(_, call)| call).collect();
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
}

#[cfg(test)]
mod tests;

//! Logs of Anthropic's Messages API: each record is a request, a request with its reply, or a reply alone.
//!
//! Responsible for the records and for messages with their token counts. Does not interpret content blocks: that is
//! [`super::content_blocks`].
//!
//! | record | transcript |
//! |---|---|
//! | `{system?, messages, tools?, model?}` | its messages, with `system` first |
//! | `{request, response}`, each an object or JSON in a string, either possibly below `body`; the response may be a stream of events | the messages of the request, then the reply |
//! | `{custom_id, params}`, a line of a Message Batch | the request |
//! | `{custom_id, result}`, a line of its results | the reply; for a failed request no message, but the reason as `error` |
//! | `{type: "message", role, content}` | the reply |
//!
//! The id is `id`, else `custom_id`, else that of the reply, else the default id. A user message with tool results
//! becomes one message per tool and one of the user, in the order of its blocks. **Tokens:** Anthropic does not include
//! cached tokens in `input_tokens`. In dicta, `usage.input` is the sum of `input_tokens`, `cache_creation_input_tokens`
//! and `cache_read_input_tokens`. `usage.cached` is the last of them.
//!
//! A file may also contain records in OpenAI's shapes; dicta reads each record in its own format.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::content::{ObjectOnly, RawContent};
use super::super::detect::FilePreview;
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::native::{self, id_text, json_string, parse_or_none, parse_tags, text_or_json};
use super::super::parse_native;
use super::super::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::sniff::RecordSniff;
use super::super::write::write_native;
use super::content_blocks::ContentBlocks;
use super::signatures::contains_key;
use super::streamed_reply;
use crate::model::{MessageRole, SourceText, SourceVerdict, Transcript, TranscriptMessage};

/// Returns the reader of a detected file.
pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerRecordReader::new(
        preview.record_walker(),
        AnthropicLogParser,
    ))
}

/// Returns true if one of the first records is in Anthropic's format.
pub(super) fn is_anthropic_log(preview: &FilePreview<'_>) -> bool {
    let mut records = preview.records.iter();
    records.any(|seen| is_record(seen.bytes, &seen.sniff))
}

/// Converts a record in Anthropic's format, among native records, to native JSON; `None` for a native record.
pub(super) fn convert_to_native(record: &[u8]) -> Option<Vec<u8>> {
    if !may_need_conversion(record) {
        return None;
    }
    let text = std::str::from_utf8(record).ok()?;
    if !is_record(record, &RecordSniff::from_record(record)) {
        return None;
    }
    let mut line = Vec::new();
    write_native(&parse_transcript(text).ok()?, &mut line);
    Some(line)
}

/// Returns true if the bytes may contain a record in Anthropic's format. The check is fast, because it runs on every
/// native block.
pub(super) fn may_need_conversion(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, BLOCK_TEXT.as_bytes()).is_some() || contains_key(bytes, SYSTEM_KEY)
}

/// A text of the content blocks that the native format does not have. A converted record has it, or [`SYSTEM_KEY`].
pub(super) const BLOCK_TEXT: &str = "tool_use";

/// The key of the system prompt next to `messages`.
pub(super) const SYSTEM_KEY: &str = "system";

/// Returns true if the record is in Anthropic's format.
fn is_record(record: &[u8], sniff: &RecordSniff) -> bool {
    if sniff.has("messages") {
        // A record with `messages` is never one of the other shapes, so their checks do not run.
        return is_request(record, sniff.has("system"));
    }
    // A line of a Message Batch, or a line of its results.
    (sniff.has("custom_id") && (sniff.has("params") || sniff.has("result")))
        // A reply alone. `stop_reason` excludes items of the Responses API, which also have this type.
        || (sniff.type_starts_with(&["message"]) && sniff.has("role") && sniff.has("stop_reason"))
        // A log of HTTP calls. The keys are common, so the bodies decide.
        || (sniff.has("request") && sniff.has("response") && is_pair(record))
        // The preview may contain only the beginning of a large record.
        || (sniff.has("request")
            && sniff.is_cut()
            && memchr::memmem::find(record, b"\"tool_use_id\"").is_some())
}

/// Returns true if a record with `messages` is in Anthropic's format.
fn is_request(record: &[u8], system: bool) -> bool {
    #[derive(Deserialize)]
    struct AnthropicRequestProbe<'a> {
        #[serde(borrow)]
        system: &'a RawValue,
        #[serde(borrow)]
        messages: Vec<ObjectOnly<AnthropicMessageProbe<'a>>>,
    }
    #[derive(Deserialize)]
    struct AnthropicMessageProbe<'a> {
        #[serde(borrow, default)]
        role: SourceText<'a>,
        #[serde(default)]
        tool_calls: Option<serde::de::IgnoredAny>,
    }
    // OpenAI records may have their own `system` field, such as the name of a system. Those contain `tool_calls`, or
    // roles that Anthropic does not have.
    let has_only_anthropic_roles = || {
        let Ok(ObjectOnly(read)) =
            serde_json::from_slice::<ObjectOnly<AnthropicRequestProbe<'_>>>(record)
        else {
            return false;
        };
        let has_anthropic_role = |ObjectOnly(one): &ObjectOnly<AnthropicMessageProbe<'_>>| {
            matches!(&*one.role, "user" | "assistant") && one.tool_calls.is_none()
        };
        read.system.get().starts_with(['"', '[']) && read.messages.iter().all(has_anthropic_role)
    };
    native::has_anthropic_blocks(record)
        || (system && has_only_anthropic_roles())
        // The preview may contain only the beginning of a large record.
        || (memchr::memmem::find(record, b"\"tool_use_id\"").is_some()
            && serde_json::from_slice::<&RawValue>(record).is_err())
}

/// Returns true if a request and response pair is in Anthropic's format.
pub(super) fn is_pair(record: &[u8]) -> bool {
    let Ok(ObjectOnly(pair)) = serde_json::from_slice::<ObjectOnly<AnthropicLogRecord<'_>>>(record)
    else {
        return false;
    };
    // Some logs store the bodies as JSON in a string.
    let inner = |raw: Option<&RawValue>| raw.map(|raw| text_or_json(raw).into_owned());
    let response = inner(pair.response.map(unwrap_body));
    if response
        .as_deref()
        .is_some_and(streamed_reply::is_anthropic_stream)
    {
        return true;
    }
    let request = inner(pair.request.map(unwrap_body));
    let has_anthropic_reply = response.is_some_and(|text| {
        let sniff = RecordSniff::from_record(text.as_bytes());
        sniff.has("content") && sniff.has("role") && sniff.type_starts_with(&["message"])
    });
    has_anthropic_reply
        || request.is_some_and(|text| {
            let sniff = RecordSniff::from_record(text.as_bytes());
            sniff.has("messages") && is_request(text.as_bytes(), sniff.has("system"))
        })
}

/// The parser of one record, in Anthropic's or the native format.
#[derive(Debug)]
struct AnthropicLogParser;

impl RecordParser for AnthropicLogParser {
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        // A file may mix both formats, so each record decides by itself.
        if is_record(
            record.as_bytes(),
            &RecordSniff::from_record(record.as_bytes()),
        ) {
            out.push_transcript(&parse_transcript(record)?);
            return Ok(());
        }
        // An empty default id: the caller sets the default id of a record without one.
        let parsed = parse_native(record.as_bytes(), cx.span.number, "");
        out.push_transcript(&parsed.map_err(|bad| bad.why)?);
        Ok(())
    }
}

#[derive(Deserialize, Default)]
struct AnthropicLogRecord<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    custom_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    system: Option<RawContent<'a>>,
    #[serde(borrow, default)]
    messages: Option<Vec<ObjectOnly<AnthropicLogMessage<'a>>>>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
    #[serde(default)]
    verdicts: Option<Vec<ObjectOnly<SourceVerdict>>>,
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
struct AnthropicBatchResult<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Returns the value below `body`, if a log stores the whole HTTP message.
fn unwrap_body(raw: &RawValue) -> &RawValue {
    #[derive(Deserialize)]
    struct AnthropicHttpBody<'a> {
        #[serde(borrow)]
        body: &'a RawValue,
    }
    parse_or_none::<ObjectOnly<AnthropicHttpBody<'_>>>(Some(raw))
        .map_or(raw, |ObjectOnly(http)| http.body)
}

/// A transcript under construction.
#[derive(Default)]
struct AnthropicTranscriptBuilder<'a> {
    id: Option<SourceText<'a>>,
    messages: Vec<TranscriptMessage<'a>>,
    meta: MetadataBuilder,
}

/// Parses a record in Anthropic's format.
pub(super) fn parse_transcript(record: &str) -> Result<Transcript<'static>, String> {
    let ObjectOnly(mut raw): ObjectOnly<AnthropicLogRecord<'_>> =
        serde_json::from_str(record).map_err(|why| native::format_json_error(&why))?;
    let mut builder = AnthropicTranscriptBuilder {
        id: raw.id.or(raw.custom_id).and_then(id_text),
        ..AnthropicTranscriptBuilder::default()
    };
    builder.meta.set("source", "anthropic");
    // These values describe the call, so they belong to the message of the reply.
    let mut reply_meta = MetadataBuilder::default();
    let (tags, verdicts) = (raw.tags, raw.verdicts.take());
    for (key, raw) in [
        ("timestamp", raw.timestamp),
        ("latency_ms", raw.latency_ms.or(raw.duration_ms)),
        ("cost_usd", raw.cost_usd),
    ] {
        if let Some(value) = parse_or_none::<Value>(raw).filter(|v| v.is_number() || v.is_string())
        {
            reply_meta.set(key, value);
        }
    }
    // A log of calls (`request`) or a line of a batch (`params`).
    if let Some(request) = raw.request.or(raw.params) {
        let request = text_or_json(unwrap_body(request));
        let ObjectOnly(request): ObjectOnly<AnthropicLogRecord<'_>> =
            serde_json::from_str(&request).map_err(|why| format!("its request: {why}"))?;
        builder.add_request(request)?;
        if let Some(response) = raw.response {
            let mut response = text_or_json(unwrap_body(response))
                .into_owned()
                .0
                .into_owned();
            if let Some(assembled) = streamed_reply::assemble_reply(&response) {
                response = assembled?.json;
            }
            builder
                .add_reply(&response, reply_meta)
                .map_err(|why| format!("its response: {why}"))?;
        }
        if let Some(record_metadata) = parse_or_none(raw.metadata) {
            builder.meta.merge_source(record_metadata);
        }
    } else if let Some(result) = raw.result {
        builder.add_batch_result(result, reply_meta)?;
    } else if raw.messages.is_some() {
        // A request without a reply has no message for the time, so the transcript gets it.
        builder.meta.merge_source(Value::Object(Map::from_iter(
            parse_or_none::<Value>(raw.timestamp).map(|at| ("timestamp".to_owned(), at)),
        )));
        builder.add_request(raw)?;
    } else if raw.role.is_some() {
        builder.add_reply(record, reply_meta)?;
    } else {
        return Err("it holds neither `messages` nor a reply".to_owned());
    }
    Ok(builder.finish(tags, verdicts))
}

impl AnthropicTranscriptBuilder<'_> {
    fn add_request(&mut self, raw: AnthropicLogRecord<'_>) -> Result<(), String> {
        // Anthropic keeps the system prompt outside of `messages`.
        if let Some(system) = raw.system {
            let parts = ContentBlocks::from_content(system).into_parts();
            if !parts.is_empty() {
                self.push_message(TranscriptMessage {
                    role: MessageRole::System,
                    parts,
                    metadata: None,
                });
            }
        }
        let messages = raw.messages.ok_or("it has no list `messages`")?;
        for (at, ObjectOnly(message)) in messages.into_iter().enumerate() {
            let converted = message
                .into_messages(MetadataBuilder::default())
                .map_err(|why| format!("message {at}: {why}"))?;
            for message in converted {
                self.push_message(message);
            }
        }
        if let Some(model) = raw.model.and_then(json_string) {
            self.meta.set("model", &*model);
        }
        let names = raw.tools.map(parse_tool_names).unwrap_or_default();
        if !names.is_empty() {
            self.meta.set("tools", names);
        }
        if let Some(request_metadata) = parse_or_none(raw.metadata) {
            self.meta.merge_source(request_metadata);
        }
        Ok(())
    }

    fn add_reply(&mut self, text: &str, meta: MetadataBuilder) -> Result<(), String> {
        // A failed call has an error object instead of a message. It is not a fault: the request is readable.
        let failed = parse_text::<ObjectOnly<AnthropicBatchResult<'_>>>(text)
            .filter(|ObjectOnly(read)| read.kind.as_deref() == Some("error"));
        if let Some(ObjectOnly(AnthropicBatchResult {
            error: Some(why), ..
        })) = failed
        {
            self.meta.set("error", format_error(why));
            return Ok(());
        }
        let ObjectOnly(reply): ObjectOnly<AnthropicLogMessage<'_>> =
            serde_json::from_str(text).map_err(|why| native::format_json_error(&why))?;
        if self.id.is_none() {
            self.id = reply.id.and_then(id_text).map(SourceText::into_owned);
        }
        if let Some(model) = reply.model.and_then(json_string) {
            self.meta.set("model", &*model);
        }
        // The request may contain earlier replies, whose usage is unknown. The log is about this call alone.
        let has_history = self
            .messages
            .iter()
            .any(|message| message.role == MessageRole::Assistant);
        if let (true, Some(usage)) = (has_history, reply.usage) {
            self.meta.set("usage", parse_usage(usage).to_json());
        }
        let converted = reply.into_messages(meta)?;
        for message in converted {
            self.push_message(message);
        }
        Ok(())
    }

    /// Adds a result of a Message Batch.
    fn add_batch_result(&mut self, raw: &RawValue, meta: MetadataBuilder) -> Result<(), String> {
        let result = parse_or_none::<ObjectOnly<AnthropicBatchResult<'_>>>(Some(raw));
        let ObjectOnly(result) = result.ok_or("its `result` is not an object")?;
        match (result.message, result.error, &result.kind) {
            (Some(message), _, _) => self.add_reply(message.get(), meta),
            (None, Some(why), _) => {
                self.meta.set("error", format_error(why));
                Ok(())
            }
            // The batch states `canceled` or `expired` without an error object.
            (None, None, Some(kind)) => {
                self.meta
                    .set("error", format!("the batch says: {}", &**kind));
                Ok(())
            }
            (None, None, None) => Err("its `result` says nothing".to_owned()),
        }
    }

    fn push_message(&mut self, message: TranscriptMessage<'_>) {
        // The message may borrow from a decoded string that does not live long enough, so it is copied.
        let holder = Transcript {
            messages: vec![message],
            ..Transcript::default()
        };
        self.messages.extend(holder.into_owned().messages);
    }

    fn finish(
        self,
        tags: Option<&RawValue>,
        verdicts: Option<Vec<ObjectOnly<SourceVerdict>>>,
    ) -> Transcript<'static> {
        let tags = tags.map(parse_tags).unwrap_or_default();
        let verdicts = verdicts.into_iter().flatten();
        let transcript = Transcript {
            id: self.id.unwrap_or_default(),
            messages: self.messages,
            metadata: self.meta.finish(),
            tags,
            verdicts: verdicts.map(|ObjectOnly(verdict)| verdict).collect(),
        };
        transcript.into_owned()
    }
}

fn parse_text<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// A message of a request, or a reply with its usage and stop reason.
#[derive(Debug, Deserialize)]
pub(super) struct AnthropicLogMessage<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    role: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content: Option<RawContent<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

impl<'a> AnthropicLogMessage<'a> {
    /// Converts to messages. `meta` contains the metadata from the log record.
    fn into_messages(
        self,
        mut meta: MetadataBuilder,
    ) -> Result<Vec<TranscriptMessage<'a>>, String> {
        let role = self.role.ok_or("it has no `role`")?;
        let role = native::parse_role(role);
        let blocks = self
            .content
            .map(ContentBlocks::from_content)
            .unwrap_or_default();
        for (key, raw) in [("model", self.model), ("stop_reason", self.stop_reason)] {
            if let Some(text) = raw.and_then(json_string) {
                meta.set(key, &*text);
            }
        }
        if let Some(usage) = self.usage {
            meta.set("usage", parse_usage(usage).to_json());
        }
        let cited: Vec<Value> = blocks
            .citations
            .iter()
            .filter_map(|raw| parse_or_none(Some(raw)))
            .collect();
        if !cited.is_empty() {
            meta.set("citations", cited);
        }
        if let Some(message_metadata) = parse_or_none(self.metadata) {
            meta.merge_source(message_metadata);
        }
        let meta = meta.finish();
        // A reply is one message. Only user messages contain tool results, which need messages of their own.
        if role == MessageRole::Assistant {
            return Ok(vec![TranscriptMessage {
                role,
                parts: blocks.into_parts(),
                metadata: meta,
            }]);
        }
        let mut messages = blocks.into_messages(&role);
        for message in &mut messages {
            message.metadata.clone_from(&meta);
        }
        Ok(messages)
    }
}

/// Parses token counts. The module documentation defines `input`.
pub(super) fn parse_usage(usage: &RawValue) -> SourceUsage {
    #[derive(Deserialize)]
    struct AnthropicLogUsage<'a> {
        #[serde(borrow, default)]
        input_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_creation_input_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_read_input_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        output_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        output_tokens_details: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct AnthropicUsageDetails {
        #[serde(default)]
        thinking_tokens: Option<u64>,
    }
    let Some(ObjectOnly(usage)) = parse_or_none::<ObjectOnly<AnthropicLogUsage<'_>>>(Some(usage))
    else {
        return SourceUsage::default();
    };
    let cached = parse_or_none::<u64>(usage.cache_read_input_tokens);
    let written = parse_or_none::<u64>(usage.cache_creation_input_tokens);
    let details = parse_or_none::<ObjectOnly<AnthropicUsageDetails>>(usage.output_tokens_details);
    SourceUsage {
        input: SourceUsage::input_with_cache(parse_or_none(usage.input_tokens), cached, written),
        output: parse_or_none(usage.output_tokens),
        total: None,
        cached,
        thinking: details.and_then(|ObjectOnly(details)| details.thinking_tokens),
    }
}

/// Formats `{type, message}`, possibly below another `error`, as `overloaded_error: Overloaded`.
fn format_error(raw: &RawValue) -> String {
    #[derive(Deserialize)]
    struct AnthropicLogError<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<SourceText<'a>>,
        #[serde(borrow, default)]
        message: Option<SourceText<'a>>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    match parse_or_none::<ObjectOnly<AnthropicLogError<'_>>>(Some(raw)) {
        // Error bodies of the API wrap the error object in another one.
        Some(ObjectOnly(AnthropicLogError {
            error: Some(inner), ..
        })) => format_error(inner),
        Some(ObjectOnly(AnthropicLogError {
            kind: Some(kind),
            message: Some(message),
            ..
        })) => format!("{kind}: {message}"),
        _ => text_or_json(raw).to_string(),
    }
}

/// Returns the names of a request's tools.
fn parse_tool_names(raw: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct AnthropicToolName<'a> {
        #[serde(borrow, default)]
        name: Option<SourceText<'a>>,
    }
    let tools: Vec<&RawValue> = parse_or_none(Some(raw)).unwrap_or_default();
    tools
        .into_iter()
        .filter_map(|raw| {
            parse_or_none::<ObjectOnly<AnthropicToolName<'_>>>(Some(raw))?
                .0
                .name
        })
        .map(|name| name.to_string())
        .collect()
}

#[cfg(test)]
mod tests;

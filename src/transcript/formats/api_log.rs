//! Logs of any model API, except Anthropic's: requests, replies and pairs, one record each.
//!
//! Responsible for the records and for the choice of the wire format. Does not read the bodies: that is `openai.rs`,
//! `gemini.rs` and `cohere.rs`.
//!
//! | record | becomes |
//! |---|---|
//! | `{request, response}`: chat completions, Responses, Gemini, Cohere; each an object, its JSON as a string, or plain text | the request and the reply; every further choice a transcript `ID#2` … |
//! | a body in `{status_code, body}`, `{body}` | the body |
//! | a streamed reply: the text of its events, or a list of its chunks | the reply, put together |
//! | `messages` with `response`, `choices`, `completion` or `output` next to them | the messages and the reply |
//! | Batch output `{custom_id, response, error}` | the reply; an error is a fault with its text |
//! | Batch input `{custom_id, method, url, body}` | the request |
//! | a reply alone (`choices`, `object: response`), `{input, output}` | the messages that it contains |
//! | a list of messages or items, or one per line; a list under `items` | one transcript; if they name several conversations, one for each |
//!
//! The record's id is its `id`, `custom_id` or `key`, else that of the reply. Its other keys become metadata as written
//! (`latency_ms`, `cost_usd` …), unless the reply has a value for them. The record's `metadata` is merged in the same
//! way.

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::MetadataBuilder;
use super::super::native::{has_anthropic_blocks, parse_native, parse_tags};
use super::super::reader::{
    PerRecordReader, PerSessionReader, RecordCx, RecordParser, SessionParser, TranscriptReader,
    TranscriptSink, record_text,
};
use super::super::source::SourceFile;
use super::super::walk::RecordLayout;
use super::api_pages::is_stored_completions;
use super::exchange::{ApiExchange, ExchangeBody, UnpackedText, add_items, api_error};
use super::record_readers::{Grouping, NOT_JSON, open_elements, open_groups};
use super::response_items::ConversationBuilder;
use super::signatures::{ANSWER_KEYS, contains_key, wraps_response_items};
use super::{anthropic, cohere, gemini, openai};
use crate::model::{MessageRole, SourceText, Transcript, TranscriptMessage};
use crate::transcript::{ReadTally, TranscriptError};

/// Returns a reader of logs and replies, one record each.
pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerRecordReader::new(preview.record_walker(), ApiLogParser))
}

/// Returns a reader of replies of chat completions, alone or as the list of stored ones.
pub(super) fn open_completions(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    if is_stored_completions(preview) {
        return open_elements(source, preview, &[&["data"]], |record, cx, out| {
            ApiLogParser.parse_record(record, cx, out)
        });
    }
    Ok(open(preview))
}

/// Returns a reader of Gemini's contents. A list of contents is one record; in a list of replies or requests, each is one.
pub(super) fn open_contents(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    let first = preview.first_outline();
    let is_exchange = ["candidates", "contents"]
        .iter()
        .any(|key| !first[*key].is_null());
    let walk = if is_exchange {
        preview.record_walker()
    } else {
        preview.list_walker()
    };
    Box::new(PerRecordReader::new(walk, ApiLogParser))
}

/// Returns a reader of lists of messages or items. A list is a conversation, and so are consecutive lines, unless the
/// messages name their conversations.
pub(super) fn open_list(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if names_several_conversations(preview) {
        return open_groups(
            preview,
            Grouping {
                key: conversation_of,
                parse: parse_named_conversation,
                without_group: "a message without a conversation",
            },
        );
    }
    match preview.layout {
        RecordLayout::Values { array: true } => {
            // `list_walker` keeps the outer bracket, so the whole list is one record.
            Box::new(PerRecordReader::new(preview.list_walker(), ApiLogParser))
        }
        // One message per line: only a session parser joins lines to one conversation.
        RecordLayout::Lines => Box::new(PerSessionReader::new(
            preview.record_walker(),
            ApiLinesParser,
        )),
        _ => Box::new(PerRecordReader::new(preview.record_walker(), ApiLogParser)),
    }
}

/// Returns a reader of items of the Responses API: lists as in [`open_list`], or objects with the list under `items`.
pub(super) fn open_items(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    if wraps_response_items(preview) {
        open(preview)
    } else {
        open_list(preview)
    }
}

/// Returns true if the records are items of the Responses API. An Anthropic message has the same type and role.
pub(super) fn is_responses_items(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        // Anthropic messages also have this type and role, but with `model` and `stop_reason`.
        let message = s.has("role") && s.has("content") && s.type_starts_with(&["message"]);
        let item_types = [
            "function_call",
            "reasoning",
            "custom_tool_call",
            "local_shell_call",
            "web_search_call",
        ];
        (message && !s.has("model") && !s.has("stop_reason"))
            // The types are common words, so an item also needs a key that the Responses API writes.
            || s.type_starts_with(&item_types)
                && (s.has("call_id") || s.has("summary") || s.has("id") || s.has("name"))
    })
}

/// The parser of a record in any of these formats.
#[derive(Debug)]
pub(super) struct ApiLogParser;

/// Bodies that were decoded from strings. They live as long as the parser borrows from them.
#[derive(Debug, Default)]
struct UnpackedBodies {
    request: [UnpackedText; 2],
    response: [UnpackedText; 2],
}

impl RecordParser for ApiLogParser {
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        // Concatenated files may have a byte order mark in the middle.
        let record = record.trim_start_matches('\u{feff}').trim();
        if record.starts_with('[') {
            return parse_list_record(record, out);
        }
        let fields = RawFields::parse(record)?;
        let has_exchange_keys = fields.has_key("response") || fields.has("request");
        // A native record in a log: `messages` without a request or reply.
        let answer = ANSWER_KEYS.iter().find(|key| has_value(&fields, key));
        if fields.has("messages") && !has_exchange_keys && answer.is_none() {
            let native =
                parse_native(record.as_bytes(), cx.span.number, "").map_err(|bad| bad.why)?;
            out.push_transcript(&native);
            return Ok(());
        }
        let other_keys = ["messages", "input", "contents", "candidates", "body"];
        let has_only_items =
            !has_exchange_keys && answer.is_none() && other_keys.iter().all(|key| !fields.has(key));
        if has_only_items && let Some(items) = fields.list("items") {
            return push_wrapped_items(&items, &fields, out);
        }
        let unpacked = UnpackedBodies::default();
        if fields.has("messages") && !fields.has("request") {
            return push_message_log(&fields, &unpacked, out);
        }
        let (request_body, reply_body) = split_exchange(&fields, &unpacked)?;
        let exchange = parse_exchange(&request_body, &reply_body)?;
        push_exchange(exchange, &fields, out);
        Ok(())
    }
}

/// Returns true if a key has a value that is not empty.
fn has_value(fields: &RawFields<'_>, key: &str) -> bool {
    let value = fields.get(key).map(RawValue::get);
    value.is_some_and(|value| !matches!(value, "\"\"" | "[]" | "{}"))
}

/// Converts a record with an answer next to its `messages`, among native records, to native JSON; `None` for a native
/// record.
pub(super) fn convert_to_native(record: &[u8]) -> Option<Vec<u8>> {
    // Most records have none of the keys, and this search is much faster than a parse.
    if !may_have_answer(record) {
        return None;
    }
    let fields = RawFields::from_bytes(record)?;
    if !fields.has("messages") || !ANSWER_KEYS.iter().any(|key| has_value(&fields, key)) {
        return None;
    }
    let unpacked = UnpackedBodies::default();
    let mut out = TranscriptSink::new(ReadTally::default());
    push_message_log(&fields, &unpacked, &mut out).ok()?;
    out.into_first_native()
}

/// Returns true if the bytes may contain a record with an answer next to its `messages`.
pub(super) fn may_have_answer(bytes: &[u8]) -> bool {
    ANSWER_KEYS.iter().any(|key| contains_key(bytes, key))
}

/// Adds the transcripts of a record with `messages` and the answer next to them.
fn push_message_log<'a>(
    fields: &RawFields<'a>,
    unpacked: &'a UnpackedBodies,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let answer = ANSWER_KEYS.iter().find(|key| has_value(fields, key));
    let answer = answer.filter(|key| **key != "choices");
    let reply = match answer.and_then(|key| fields.get(key)) {
        Some(raw) => ExchangeBody::from_raw(Some(raw), &unpacked.response[0]),
        // A record with `choices` is the reply itself.
        None => ExchangeBody::Object(fields.clone()),
    };
    let mut exchange = parse_exchange(&ExchangeBody::Object(fields.clone()), &reply)?;
    for messages in &mut exchange.conversations {
        drop_repeated_answer(messages);
    }
    push_exchange(exchange, fields, out);
    Ok(())
}

/// Removes the last message but one if it is the answer, too: some logs store it in both places.
fn drop_repeated_answer(messages: &mut Vec<TranscriptMessage<'_>>) {
    if let [.., own, reply] = &messages[..]
        && own.role == MessageRole::Assistant
        && reply.role == MessageRole::Assistant
        && own.parts == reply.parts
    {
        // The reply stays, because it has the metadata.
        messages.remove(messages.len() - 2);
    }
}

/// Returns the id of a record. In a batch, `id` identifies the line, and the author of the batch chose `custom_id`. So
/// `custom_id` comes first.
fn record_id<'a>(record: &RawFields<'a>) -> Option<SourceText<'a>> {
    let keys = ["custom_id", "key", "id", "request_id"];
    keys.iter().find_map(|key| record.id_text(key))
}

/// Adds one transcript per choice of the reply.
fn push_exchange(exchange: ApiExchange<'_>, record: &RawFields<'_>, out: &mut TranscriptSink) {
    let wrapped = record.has("messages") || EXCHANGE_KEYS.iter().any(|key| record.has_key(key));
    let id = record_id(record);
    let id = id.or(exchange.id).unwrap_or_default();
    let tags = record.get("tags").map(parse_tags).unwrap_or_default();
    for (at, messages) in exchange.conversations.into_iter().enumerate() {
        let mut meta = MetadataBuilder::default();
        meta.set("source", exchange.source);
        if let Some(reply_meta) = exchange.meta.clone().finish()
            && let Ok(reply_meta) = RawFields::parse(reply_meta.get())
        {
            meta.merge_source_fields(&reply_meta);
        }
        if wrapped {
            add_extra_keys(record, &[], &mut meta);
        }
        let number = at + 1;
        // The first choice keeps the id. Each further choice is a transcript with a number.
        let id = match (at, id.is_empty()) {
            (0, _) => id.clone(),
            (_, true) => SourceText::default(),
            _ => SourceText::from(format!("{}#{number}", &*id)),
        };
        if at > 0 {
            meta.set("choice", number);
        }
        out.push_transcript(&Transcript {
            id,
            messages,
            metadata: meta.finish(),
            tags: tags.clone(),
            verdicts: Vec::new(),
        });
    }
}

/// Adds the conversation of a list.
fn parse_list_record(record: &str, out: &mut TranscriptSink) -> Result<(), String> {
    let raw: &RawValue = serde_json::from_str(record)
        .map_err(|why| super::super::native::format_json_error(&why))?;
    let all = list_items(raw).unwrap_or_default();
    push_conversations(&all, out)
}

/// The keys of a record that contains a request or reply below another key.
const EXCHANGE_KEYS: [&str; 4] = ["request", "response", "body", "custom_id"];

/// Adds the record's other keys to the metadata. `read` are further keys that are not among them.
fn add_extra_keys(record: &RawFields<'_>, read: &[&str], meta: &mut MetadataBuilder) {
    let known = [
        "messages",
        "choices",
        "completion",
        "output",
        "generation",
        "model_output",
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
    // `latency_ms` is the standard key in dicta; many logs name it `duration_ms`.
    if !record.has("latency_ms") {
        meta.set_raw("latency_ms", record.get("duration_ms"));
    }
    for (key, value) in record.iter() {
        if !known.contains(&key) && !read.contains(&key) {
            meta.add_raw_record_key(key, value);
        }
    }
    if let Some(record_metadata) = record.object("metadata") {
        meta.merge_source_fields(&record_metadata);
    }
}

/// Returns the request and the reply of a record.
fn split_exchange<'a>(
    record: &RawFields<'a>,
    unpacked: &'a UnpackedBodies,
) -> Result<(ExchangeBody<'a>, ExchangeBody<'a>), String> {
    let wrapped = record.has_key("response") || record.has_key("request");
    if !wrapped && !record.has("body") {
        // The record itself is the body. Whether it is a request or a reply depends on its keys, so it counts as both.
        if let Some(why) = api_error(record).filter(|_| record.has("custom_id")) {
            return Err(why);
        }
        return Ok((
            ExchangeBody::Object(record.clone()),
            ExchangeBody::Object(record.clone()),
        ));
    }
    // One slot for the HTTP message and one for its body: each may be JSON in a string.
    let [first, second] = &unpacked.request;
    let request_body = record.get_first(&["request", "body"]);
    let request_body = unwrap_http_body(ExchangeBody::from_raw(request_body, first), second)?;
    let [first, second] = &unpacked.response;
    let reply_body = unwrap_http_body(
        ExchangeBody::from_raw(record.get("response"), first),
        second,
    );
    // A log may record the error of a failed call next to an absent response.
    let failed = record.has("error") && !record.has("response");
    match api_error(record).filter(|_| failed) {
        Some(why) => Err(why),
        None => Ok((request_body, reply_body?)),
    }
}

/// Returns the body of an HTTP message.
fn unwrap_http_body<'a>(
    side: ExchangeBody<'a>,
    unpacked: &'a UnpackedText,
) -> Result<ExchangeBody<'a>, String> {
    let ExchangeBody::Object(fields) = &side else {
        return Ok(side);
    };
    // Programs spell the status of an HTTP reply differently.
    let status = ["status_code", "statusCode", "status"];
    let status = status.iter().find_map(|key| {
        // VCR writes an object with the code and its name.
        let object = fields.object(key);
        let code = object.and_then(|status| status.integer("code"));
        fields.integer(key).or(code)
    });
    // VCR wraps the text of a body, too.
    let wrapped = fields.object("body").and_then(|body| body.get("string"));
    let body = ExchangeBody::from_raw(wrapped.or_else(|| fields.get("body")), unpacked);
    if let Some(status) = status.filter(|status| *status >= 400) {
        let error = match &body {
            ExchangeBody::Object(body) => api_error(body),
            ExchangeBody::Plain(text) => Some(format!("the API answered with an error: {text}")),
            ExchangeBody::Missing | ExchangeBody::List(_) | ExchangeBody::Unreadable(_) => None,
        };
        let error = error.unwrap_or_else(|| "the API answered with an error".to_owned());
        return Err(format!("{error} (status {status})"));
    }
    // A body may itself have a field `body`.
    let is_body = fields.get_first(&["choices", "messages", "contents", "candidates"]);
    if fields.has("body") && is_body.is_none() {
        return Ok(body);
    }
    Ok(side)
}

/// Parses a request and its reply in the wire format that their keys indicate. The error is a sentence fragment.
fn parse_exchange<'a>(
    request_body: &ExchangeBody<'a>,
    reply_body: &ExchangeBody<'a>,
) -> Result<ApiExchange<'a>, String> {
    for body in [request_body, reply_body] {
        if let ExchangeBody::Unreadable(why) = body {
            return Err(why.clone());
        }
    }
    // The error comes first: an error body has no other key that shows the wire format.
    if let Some(why) = reply_body.object().and_then(api_error) {
        return Err(why);
    }
    let mut exchange = ApiExchange {
        source: "openai",
        ..ApiExchange::default()
    };
    if let Some(request_body) = request_body.object() {
        exchange.meta.set_raw("model", request_body.get("model"));
    }
    // The keys of one side are enough, because a log may have only one.
    // The first match decides. Chat completions come last, because they have no key of their own.
    if request_body.has_any(&["contents"]) || gemini::is_reply(reply_body) {
        exchange.source = "gemini";
        gemini::parse_exchange(request_body, reply_body, &mut exchange)?;
    } else if request_body.has_any(&["input", "instructions"]) || openai::is_response(reply_body) {
        openai::parse_responses(request_body, reply_body, &mut exchange)?;
    } else if cohere::is_reply(reply_body) || cohere::is_request(request_body) {
        exchange.source = "cohere";
        cohere::parse_exchange(request_body, reply_body, &mut exchange)?;
    } else if is_anthropic(reply_body) {
        // A pair in Anthropic's format among other records, which `anthropic.rs` did not claim.
        return Err(
            "its answer is an Anthropic message, but its request is of another API".to_owned(),
        );
    } else {
        openai::parse_chat(request_body, reply_body, &mut exchange)?;
    }
    if exchange.conversations.iter().all(Vec::is_empty) {
        return Err("it holds no message".to_owned());
    }
    Ok(exchange)
}

fn is_anthropic(reply_body: &ExchangeBody<'_>) -> bool {
    let Some(fields) = reply_body.object() else {
        return false;
    };
    fields.text("type").as_deref() == Some("message") && fields.list("content").is_some()
}

/// Parses a list of chat messages, items of the Responses API, or contents of Gemini.
fn parse_conversation<'a>(all: &[&'a RawValue]) -> Result<Transcript<'a>, String> {
    let is_gemini_content = |raw: &&RawValue| {
        RawFields::from_raw(raw).is_some_and(|entry| entry.has("parts") && !entry.has("content"))
    };
    // Gemini names the content of a message `parts`.
    if all.iter().any(is_gemini_content) {
        return Ok(build_transcript("gemini", gemini::parse_contents(all)?));
    }
    if let Some(transcript) = parse_anthropic_messages(all) {
        return transcript;
    }
    let mut conversation = ConversationBuilder::default();
    add_items(&mut conversation, all)?;
    if conversation.messages.is_empty() {
        return Err("the list holds no message".to_owned());
    }
    Ok(build_transcript("openai", conversation.finish()))
}

/// Parses a list of messages with Anthropic's blocks, as Cline and Roo Code keep them; `None` for any other list.
fn parse_anthropic_messages(all: &[&RawValue]) -> Option<Result<Transcript<'static>, String>> {
    // The search avoids a copy of most lists.
    if !all.iter().any(|raw| raw.get().contains("tool_use")) {
        return None;
    }
    let messages: Vec<&str> = all.iter().map(|raw| raw.get()).collect();
    let record = format!("{{\"messages\":[{}]}}", messages.join(","));
    has_anthropic_blocks(record.as_bytes()).then(|| anthropic::parse_transcript(&record))
}

fn build_transcript<'a>(source: &str, messages: Vec<TranscriptMessage<'a>>) -> Transcript<'a> {
    let mut meta = MetadataBuilder::default();
    meta.set("source", source);
    Transcript {
        messages,
        metadata: meta.finish(),
        ..Transcript::default()
    }
}

/// Returns the id of the conversation that a message names.
fn conversation_of(line: &[u8]) -> Option<String> {
    let fields = RawFields::parse(record_text(line).ok()?).ok()?;
    let keys = [
        "conversation_id",
        "conversationId",
        "conv_id",
        "dialogue_id",
        "thread_id",
        "threadId",
        "chat_id",
        "chatId",
        "session_id",
        "sessionId",
    ];
    let id = keys.iter().find_map(|key| fields.id_text(key))?;
    Some(id.0.into_owned())
}

/// Returns true if each of the first messages names its conversation, and there is more than one.
fn names_several_conversations(preview: &FilePreview<'_>) -> bool {
    // The end of the preview may cut the last message.
    let complete = preview.records.iter().filter(|seen| !seen.sniff.is_cut());
    let ids: Option<Vec<String>> = complete.map(|seen| conversation_of(seen.bytes)).collect();
    ids.is_some_and(|ids| ids.iter().any(|id| *id != ids[0]))
}

/// Adds the conversation of messages that name it.
fn parse_named_conversation(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    let id = lines.first().and_then(|line| conversation_of(line));
    let all = parse_lines(lines, out);
    if let Err(why) = push_conversation(&all, id, out) {
        out.push_fault(why);
    }
}

/// Parses lines of JSON, and counts the others.
fn parse_lines<'a>(lines: &[&'a [u8]], out: &mut TranscriptSink) -> Vec<&'a RawValue> {
    let mut all: Vec<&RawValue> = Vec::new();
    for line in lines {
        let raw = record_text(line)
            .ok()
            .and_then(|text| serde_json::from_str(text).ok());
        match raw {
            Some(raw) => all.push(raw),
            None => out.count_unknown(NOT_JSON),
        }
    }
    all
}

/// Adds the conversations of messages or items. If the messages name several, each one is a transcript with its id. The
/// preview of a file may end before the second one. A message without a name continues the conversation before it.
fn push_conversations(all: &[&RawValue], out: &mut TranscriptSink) -> Result<(), String> {
    let mut groups: IndexMap<Option<String>, Vec<&RawValue>> = IndexMap::new();
    let mut current = None;
    for raw in all {
        current = conversation_of(raw.get().as_bytes()).or(current);
        groups.entry(current.clone()).or_default().push(raw);
    }
    let named = groups.keys().flatten().count();
    if named < 2 {
        return push_conversation(all, None, out);
    }
    // The messages before the first name are part of its conversation.
    if let Some(mut first) = groups.shift_remove(&None::<String>)
        && let Some((_, named)) = groups.first_mut()
    {
        first.append(named);
        *named = first;
    }
    for (id, messages) in groups {
        if let Err(why) = push_conversation(&messages, id, out) {
            out.push_fault(why);
        }
    }
    Ok(())
}

/// Adds the conversations of a list under `items`. A single one has the id, the tags and the other keys of the record.
fn push_wrapped_items<'a>(
    items: &[&'a RawValue],
    record: &RawFields<'a>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let named = items.iter();
    let mut named = named.filter_map(|raw| conversation_of(raw.get().as_bytes()));
    if let Some(first) = named.next()
        && named.any(|id| id != first)
    {
        return push_conversations(items, out);
    }
    let mut transcript = parse_conversation(items)?;
    let mut meta = MetadataBuilder::default();
    if let Some(own) = &transcript.metadata
        && let Ok(own) = RawFields::parse(own.get())
    {
        meta.merge_source_fields(&own);
    }
    add_extra_keys(record, &["items"], &mut meta);
    transcript.metadata = meta.finish();
    transcript.id = record_id(record).unwrap_or_default();
    transcript.tags = record.get("tags").map(parse_tags).unwrap_or_default();
    out.push_transcript(&transcript);
    Ok(())
}

/// Adds the conversation of messages or items. Without an id, it gets the default id.
fn push_conversation(
    all: &[&RawValue],
    id: Option<String>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let mut transcript = parse_conversation(all)?;
    transcript.id = SourceText::from(id.unwrap_or_default());
    out.push_transcript(&transcript);
    Ok(())
}

/// The parser of a file with one message or item per line. The file is one conversation, unless its lines name several.
#[derive(Debug)]
struct ApiLinesParser;

impl SessionParser for ApiLinesParser {
    fn starts_session(&mut self, _: &[u8]) -> bool {
        // The lines of several conversations can alternate, so the end of the file decides.
        false
    }

    fn parse_session(&self, lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
        let all = parse_lines(lines, out);
        if let Err(why) = push_conversations(&all, out) {
            out.push_fault(why);
        }
    }
}

#[cfg(test)]
mod tests;

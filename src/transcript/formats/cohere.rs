//! Cohere's wire formats: chats of version 2 and 1, and the older completions.
//!
//! Responsible for one request and its reply, and for lists of messages of version 1. The messages of version 2 are those
//! of OpenAI with a plan and with documents, so the native parser reads them. Does not read log records: that is
//! `api_log.rs`. Does not put streams together: that is `cohere_stream.rs`.
//!
//! | in a body | becomes |
//! |---|---|
//! | `preamble`, `chat_history`, `message`, `prompt` of a request | messages |
//! | `documents` of a request | a system message, as in the prompt that the model sees |
//! | `tool_results` of version 1 | a result for each call, by its name and parameters |
//! | `message`, `text`, `generations` of a reply | the answer; each further generation is a conversation |
//! | `citations`, and what connectors found | metadata of the answer |
//!
//! **Tokens:** `usage` has the counts that the model processed (`tokens`). `billed_units` count only without them.

use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, compact_json, text_or_compact_json, truncate_to_count};
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::native::{json_string, parse_message, unknown_part};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::walk::RecordLayout;
use super::exchange::{ApiExchange, ExchangeBody, text_message};
use super::openai::{parse_messages, with_metadata};
use super::record_readers::open_lists;
use super::response_items::arguments_text;
use super::transcript_builder::role_of;
use crate::model::{
    MessageRole, SourceText, ToolCall, ToolResult, Transcript, TranscriptMessage, TranscriptPart,
};

/// The reasons for the end of a reply.
const FINISH_REASONS: [&str; 9] = [
    "COMPLETE",
    "STOP_SEQUENCE",
    "MAX_TOKENS",
    "TOOL_CALL",
    "ERROR",
    "ERROR_TOXIC",
    "ERROR_LIMIT",
    "USER_CANCEL",
    "TIMEOUT",
];

/// Returns true if one of the first records is a reply, or a request of version 1. The file may also be a list of messages
/// of version 1.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    // The keys are a cheap check before a parse.
    let keys = ["message", "text", "generations", "chat_history"];
    let mut records = preview.records.iter();
    is_list_of_messages(preview)
        || records.any(|seen| {
            keys.iter().any(|key| seen.sniff.has(key)) && is_reply_or_request(seen.bytes)
        })
}

fn is_reply_or_request(record: &[u8]) -> bool {
    let Some(fields) = RawFields::from_bytes(record) else {
        return false;
    };
    let has_end = states_end(&fields) || fields.text("prompt").is_some();
    // Logs of other programs have the answer next to such keys. A request of the API has none.
    let has_answer = ["answer", "reply", "output"]
        .iter()
        .any(|key| fields.has(key));
    let body = ExchangeBody::Object(fields);
    (has_end && is_reply(&body)) || (!has_answer && is_request(&body))
}

/// Returns true if the file is a list of messages of version 1.
fn is_list_of_messages(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    // Other programs write these keys with roles of their own.
    preview.layout == (RecordLayout::Values { array: true })
        && matches!(first["role"].as_str(), Some("USER" | "CHATBOT"))
        && first["message"].is_string()
}

/// Returns a reader if the file is a list of messages of version 1.
pub(super) fn open_list_of_messages(
    preview: &FilePreview<'_>,
) -> Option<Box<dyn TranscriptReader>> {
    is_list_of_messages(preview).then(|| open_lists(preview, parse_list))
}

fn parse_list(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let all: Vec<&RawValue> =
        serde_json::from_str(record).map_err(|why| format!("not a list of messages: {why}"))?;
    let mut history = ChatHistory::default();
    history.add_messages(&all)?;
    let mut meta = MetadataBuilder::default();
    meta.set("source", "cohere");
    out.push_transcript(&Transcript {
        messages: history.messages,
        metadata: meta.finish(),
        ..Transcript::default()
    });
    Ok(())
}

/// Returns true if a reply states its end or its tokens in Cohere's words.
fn states_end(reply: &RawFields<'_>) -> bool {
    let reason = reply.text("finish_reason");
    reason.is_some_and(|reason| FINISH_REASONS.contains(&&*reason))
        || reply.object("token_count").is_some()
        || ["usage", "meta"].iter().any(|key| {
            let usage = reply.object(key).unwrap_or_default();
            let tokens = usage.object("tokens").unwrap_or_default();
            usage.object("billed_units").is_some() || tokens.has("input_tokens")
        })
}

/// Returns true if the body is a reply of Cohere.
pub(super) fn is_reply(body: &ExchangeBody<'_>) -> bool {
    let Some(fields) = body.object() else {
        return false;
    };
    let message = fields.object("message").unwrap_or_default();
    let is_version_2 = message.text("role").as_deref() == Some("assistant") && states_end(fields);
    // Surveys have a `response_id`, too.
    let has_id = fields.text("generation_id").is_some()
        || (fields.text("response_id").is_some() && states_end(fields));
    let is_version_1 = fields.text("text").is_some() && has_id;
    is_version_2 || is_version_1 || (is_completion(fields) && states_completion(fields))
}

/// Returns true if a reply has texts under `generations`.
fn is_completion(fields: &RawFields<'_>) -> bool {
    let all = fields.list("generations").unwrap_or_default();
    let first = all.first().and_then(|raw| RawFields::from_raw(raw));
    first.is_some_and(|first| first.text("text").is_some())
}

/// Returns true if a completion has another key of Cohere's API. LangChain writes `generations`, too.
fn states_completion(fields: &RawFields<'_>) -> bool {
    fields.text("prompt").is_some() || states_end(fields)
}

/// Returns true if the body is a request of version 1. Other programs write its keys, too, so a value must be Cohere's.
pub(super) fn is_request(body: &ExchangeBody<'_>) -> bool {
    // A message with its results has a role.
    let Some(fields) = body.object().filter(|fields| !fields.has("role")) else {
        return false;
    };
    let history = fields.list("chat_history").unwrap_or_default();
    let is_own_history = history.iter().any(|raw| is_own_message(raw));
    let first_of = |key: &str| {
        let all = fields.list(key)?;
        let first = all.first().copied()?;
        RawFields::from_raw(first)
    };
    let has_own_key = || {
        fields.text("preamble").is_some()
            || first_of("connectors").is_some_and(|first| first.text("id").is_some())
            || first_of("tool_results").is_some_and(|first| first.object("call").is_some())
    };
    is_own_history || (fields.text("message").is_some() && has_own_key())
}

/// Returns true if a value is a message with a role of version 1. In small letters, only `chatbot` is Cohere's.
fn is_own_message(raw: &RawValue) -> bool {
    let Some(message) = RawFields::from_raw(raw) else {
        return false;
    };
    let role = message.text("role").unwrap_or_default();
    let is_own_role =
        role.eq_ignore_ascii_case("chatbot") || ["USER", "SYSTEM", "TOOL"].contains(&&*role);
    let keys = ["message", "tool_results", "tool_calls"];
    is_own_role && keys.iter().any(|key| message.has(key))
}

/// Adds a request and its reply to `exchange`.
pub(super) fn parse_exchange<'a>(
    request_body: &ExchangeBody<'a>,
    reply_body: &ExchangeBody<'a>,
    exchange: &mut ApiExchange<'a>,
) -> Result<(), String> {
    let is_own_request = is_reply(request_body);
    let mut chat = match request_body {
        ExchangeBody::Missing | ExchangeBody::Unreadable(_) => ChatHistory::default(),
        ExchangeBody::Plain(text) => {
            ChatHistory::new(vec![text_message(MessageRole::User, text.clone())])
        }
        ExchangeBody::List(all) => ChatHistory::new(parse_messages(all)?),
        ExchangeBody::Object(fields) => parse_request(fields, !is_own_request)?,
    };
    let reply = match reply_body {
        ExchangeBody::Object(reply) if is_reply(reply_body) => reply,
        ExchangeBody::Missing | ExchangeBody::Unreadable(_) => {
            exchange.conversations.push(chat.messages);
            return Ok(());
        }
        // The record counted as both sides, and it is only a request.
        ExchangeBody::Object(_) if is_request(reply_body) => {
            exchange.conversations.push(chat.messages);
            return Ok(());
        }
        ExchangeBody::Plain(text) => {
            let answer = text_message(MessageRole::Assistant, text.clone());
            chat.messages.push(answer);
            exchange.conversations.push(chat.messages);
            return Ok(());
        }
        ExchangeBody::Object(_) | ExchangeBody::List(_) => {
            return Err("its request is one to Cohere's API, but its answer is not".to_owned());
        }
    };
    // The history of a reply of version 1 ends with the answer.
    if is_own_request && reply.has("text") {
        chat.remove_answer();
    }
    let ids = ["id", "response_id", "generation_id"];
    exchange.id = ids.iter().find_map(|key| reply.id_text(key));
    write_reply_metadata(reply, &mut exchange.meta);
    let mut answers = chat.parse_answers(reply)?;
    if let [answer] = &mut answers[..] {
        let reason = reply.get("finish_reason");
        exchange.meta.set_raw("stop_reason", reason);
        let mut meta = MetadataBuilder::default();
        write_reply_metadata(reply, &mut meta);
        meta.set_raw("stop_reason", reason);
        let message = reply.object("message").unwrap_or_default();
        let found = ["citations", "documents", "search_queries", "search_results"];
        for key in found {
            let value = message.get(key).or_else(|| reply.get(key));
            meta.set_readable(key, value.filter(|value| value.get() != "[]"));
        }
        let empty = text_message(MessageRole::Assistant, SourceText::default());
        *answer = with_metadata(std::mem::replace(answer, empty), meta);
    }
    for answer in answers {
        let mut conversation = chat.messages.clone();
        conversation.push(answer);
        exchange.conversations.push(conversation);
    }
    Ok(())
}

/// Parses the messages of a request. `has_documents` is false for a reply of version 1, whose documents are the results of a
/// search.
fn parse_request<'a>(
    fields: &RawFields<'a>,
    has_documents: bool,
) -> Result<ChatHistory<'a>, String> {
    let mut chat = match fields.list("messages") {
        Some(all) => ChatHistory::new(parse_messages(&all)?),
        None => parse_version_1(fields)?,
    };
    let documents = fields.list("documents").filter(|_| has_documents);
    let documents: Vec<TranscriptPart<'a>> = documents
        .unwrap_or_default()
        .into_iter()
        .map(|raw| TranscriptPart::Text(text_or_compact_json(raw)))
        .collect();
    if !documents.is_empty() {
        chat.messages.push(TranscriptMessage {
            role: MessageRole::System,
            parts: documents,
            metadata: None,
        });
    }
    Ok(chat)
}

fn parse_version_1<'a>(fields: &RawFields<'a>) -> Result<ChatHistory<'a>, String> {
    let mut history = ChatHistory::default();
    let filled = |key: &str| fields.filled_text(key);
    if let Some(text) = filled("preamble") {
        history
            .messages
            .push(text_message(MessageRole::System, text));
    }
    history.add_messages(&fields.list("chat_history").unwrap_or_default())?;
    // The older completions have a `prompt`.
    if let Some(text) = filled("message").or_else(|| filled("prompt")) {
        history.messages.push(text_message(MessageRole::User, text));
    }
    history.add_results(&fields.list("tool_results").unwrap_or_default());
    Ok(history)
}

/// The messages of a request. The calls of version 1 have no ids.
#[derive(Debug, Default)]
struct ChatHistory<'a> {
    messages: Vec<TranscriptMessage<'a>>,
    /// The ids of the calls without a result, by their name and parameters.
    open_calls: HashMap<String, VecDeque<String>>,
    calls: usize,
}

impl<'a> ChatHistory<'a> {
    /// Returns a history of messages whose calls have ids.
    fn new(messages: Vec<TranscriptMessage<'a>>) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }

    /// Removes the last message if it is the assistant's.
    fn remove_answer(&mut self) {
        let last = self.messages.last();
        if last.is_none_or(|last| last.role != MessageRole::Assistant) {
            return;
        }
        let answer = self.messages.pop();
        let parts = answer.iter().flat_map(|answer| &answer.parts);
        let calls = parts.filter(|part| matches!(part, TranscriptPart::ToolCall(_)));
        self.calls = self.calls.saturating_sub(calls.count());
    }

    fn add_messages(&mut self, all: &[&'a RawValue]) -> Result<(), String> {
        for (at, raw) in all.iter().enumerate() {
            let entry =
                RawFields::from_raw(raw).ok_or_else(|| format!("message {at} is not an object"))?;
            let role = entry.text("role").unwrap_or_default();
            let role = role_of(&role);
            self.add_results(&entry.list("tool_results").unwrap_or_default());
            let content = entry.get_first(&["message", "text"]);
            let text = content.and_then(json_string);
            // Content that is not text stays as written, so that it counts as unread.
            let unread = content.filter(|_| text.is_none()).map(unknown_part);
            let text = text.filter(|text| !text.is_empty());
            let text = text.map(|text| {
                if role == MessageRole::Tool {
                    result_part(String::new(), text)
                } else {
                    TranscriptPart::Text(text)
                }
            });
            let mut parts: Vec<TranscriptPart<'a>> = text.into_iter().chain(unread).collect();
            for raw in entry.list("tool_calls").unwrap_or_default() {
                parts.push(self.parse_call(raw));
            }
            if !parts.is_empty() || role != MessageRole::Tool {
                self.messages.push(TranscriptMessage {
                    role,
                    parts,
                    metadata: None,
                });
            }
        }
        Ok(())
    }

    fn parse_call(&mut self, raw: &'a RawValue) -> TranscriptPart<'a> {
        let fields = RawFields::from_raw(raw).unwrap_or_default();
        let Some(name) = fields.filled_text("name") else {
            return unknown_part(raw);
        };
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        let open = self.open_calls.entry(call_key(&fields)).or_default();
        open.push_back(id.clone());
        let arguments = fields.get("parameters").map(arguments_text);
        TranscriptPart::ToolCall(ToolCall {
            id: SourceText::from(id),
            name,
            arguments: arguments.unwrap_or_else(|| SourceText::from("{}")),
        })
    }

    /// Adds a message for each result.
    fn add_results(&mut self, all: &[&'a RawValue]) {
        for &raw in all {
            let fields = RawFields::from_raw(raw).unwrap_or_default();
            let call = fields.object("call").unwrap_or_default();
            let open = self.open_calls.get_mut(&call_key(&call));
            let id = open.and_then(VecDeque::pop_front).unwrap_or_default();
            let content = fields.get("outputs").unwrap_or(raw);
            self.messages.push(TranscriptMessage {
                role: MessageRole::Tool,
                parts: vec![result_part(id, arguments_text(content))],
                metadata: None,
            });
        }
    }

    /// Returns the answers of a reply: one, or one for each generation.
    fn parse_answers(
        &mut self,
        reply: &RawFields<'a>,
    ) -> Result<Vec<TranscriptMessage<'a>>, String> {
        let message = reply.get("message");
        if let Some(message) = message.filter(|raw| raw.get().starts_with('{')) {
            return Ok(vec![parse_message(message)?]);
        }
        if let Some(text) = reply.text("text") {
            let mut answer = text_message(MessageRole::Assistant, text.clone());
            if text.is_empty() {
                answer.parts.clear();
            }
            for raw in reply.list("tool_calls").unwrap_or_default() {
                answer.parts.push(self.parse_call(raw));
            }
            return Ok(vec![answer]);
        }
        let mut answers = Vec::new();
        let generations = reply.list("generations").unwrap_or_default();
        for (at, raw) in generations.into_iter().enumerate() {
            let generation = RawFields::from_raw(raw).unwrap_or_default();
            let text = generation.text("text");
            let text = text.ok_or_else(|| format!("generation {at} has no `text`"))?;
            let mut meta = MetadataBuilder::default();
            meta.set_raw("stop_reason", generation.get("finish_reason"));
            let answer = text_message(MessageRole::Assistant, text);
            answers.push(with_metadata(answer, meta));
        }
        Ok(answers)
    }
}

/// Returns a tool result of which the source states no error.
fn result_part(call_id: String, content: SourceText<'_>) -> TranscriptPart<'_> {
    TranscriptPart::ToolResult(ToolResult {
        call_id: SourceText::from(call_id),
        content,
        is_error: None,
        duration_ms: None,
    })
}

/// Returns the text by which a result names its call.
fn call_key(call: &RawFields<'_>) -> String {
    let name = call.text("name").unwrap_or_default();
    let parameters = call.get("parameters").map(RawValue::get);
    format!("{name}\n{}", compact_json(parameters.unwrap_or_default()))
}

/// Sets the tokens of a reply, for its message or for the transcript.
fn write_reply_metadata(reply: &RawFields<'_>, meta: &mut MetadataBuilder) {
    let usage = reply.object("usage").or_else(|| reply.object("meta"));
    let usage = usage.unwrap_or_default();
    let tokens = usage.object("tokens");
    let tokens = tokens.or_else(|| usage.object("billed_units"));
    let tokens = tokens.unwrap_or_default();
    // Cohere's SDK for Python writes counts with a decimal point.
    let count = |fields: &RawFields<'_>, key: &str| fields.number(key).map(truncate_to_count);
    let totals = reply.object("token_count").unwrap_or_default();
    let counts = SourceUsage {
        input: count(&tokens, "input_tokens").or_else(|| count(&totals, "prompt_tokens")),
        output: count(&tokens, "output_tokens").or_else(|| count(&totals, "response_tokens")),
        total: None,
        cached: count(&usage, "cached_tokens"),
        thinking: None,
    };
    meta.set("usage", counts.to_json());
    meta.set_readable("billed_units", usage.get("billed_units"));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, message_lines, read};

    fn read_one(record: &Value) -> Value {
        let (mut all, tally) = read(format!("{record}\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        all.remove(0).expect("a transcript")
    }

    #[test]
    fn reply_of_version_2_has_plan_calls_and_tokens() {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\":1}"}});
        let reply = json!({
            "id": "r1", "finish_reason": "TOOL_CALL",
            "message": {"role": "assistant", "tool_plan": "I will look.", "tool_calls": [call]},
            "usage": {"billed_units": {"input_tokens": 3, "output_tokens": 2},
                "tokens": {"input_tokens": 1683.0, "output_tokens": 62}, "cached_tokens": 992},
        });
        let transcript = read_one(&reply);
        assert_eq!(transcript["id"], "r1");
        assert_eq!(
            message_lines(&transcript),
            ["assistant <reasoning> | find({\"q\":1})"]
        );
        let meta = &transcript["messages"][0]["metadata"];
        assert_eq!(
            meta["usage"],
            json!({"input": 1683, "output": 62, "cached": 992})
        );
        assert_eq!(meta["stop_reason"], "TOOL_CALL");
    }

    #[test]
    fn pair_keeps_documents_and_citations() {
        let citation = json!({"start": 0, "end": 2, "text": "60", "sources": []});
        let pair = json!({
            "request": {"model": "command-r", "messages": [{"role": "user", "content": "How old?"}],
                "documents": ["He is 60.", {"id": "d", "data": {"text": "x"}}]},
            "response": {"id": "r1", "finish_reason": "COMPLETE", "message": {"role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "60"}],
                "citations": [citation]}},
        });
        let transcript = read_one(&pair);
        assert_eq!(
            message_lines(&transcript),
            [
                "user How old?",
                "system He is 60. | {\"id\":\"d\",\"data\":{\"text\":\"x\"}}",
                "assistant <reasoning> | 60",
            ]
        );
        assert_eq!(transcript["metadata"]["source"], "cohere");
        assert_eq!(
            transcript["messages"][2]["metadata"]["citations"],
            json!([citation])
        );
    }

    #[test]
    fn request_of_version_1_pairs_results_with_calls() {
        let call = |city: &str| json!({"name": "weather", "parameters": {"city": city}});
        let result = |city: &str, sky: &str| json!({"call": call(city), "outputs": [{"sky": sky}]});
        let request = json!({
            "preamble": "Be brief.", "message": "",
            "chat_history": [
                {"role": "USER", "message": "Weather?"},
                {"role": "CHATBOT", "message": "I look.", "tool_calls": [call("Rome"), call("Oslo")]},
            ],
            "tool_results": [result("Oslo", "grey"), result("Rome", "blue")],
        });
        let transcript = read_one(&request);
        assert_eq!(
            message_lines(&transcript),
            [
                "system Be brief.",
                "user Weather?",
                "assistant I look. | weather({\"city\":\"Rome\"}) | weather({\"city\":\"Oslo\"})",
                "tool [{\"sky\":\"grey\"}]",
                "tool [{\"sky\":\"blue\"}]",
            ]
        );
        let ids = [3_usize, 4].map(|at| transcript["messages"][at]["tool_call_id"].clone());
        assert_eq!(ids, ["call-2", "call-1"]);
    }

    #[test]
    fn requests_of_version_1_are_recognised() {
        for request in [
            json!({"message": "q", "preamble": ""}),
            json!({"message": "q", "connectors": [{"id": "web-search"}]}),
            json!({"message": "", "tool_results": [{"call": {"name": "f"}, "outputs": []}]}),
            json!({"message": "q", "chat_history": [{"role": "User", "message": "hi"}, {"role": "Chatbot", "message": "ho"}]}),
        ] {
            let text = format!("{request}\n");
            let preview = super::super::super::detect::preview_file(text.as_bytes());
            assert!(super::is_chat(&preview.expect("records")), "{request}");
        }
    }

    #[test]
    fn reply_of_version_1_has_its_answer_once() {
        let reply = json!({
            "response_id": "r", "generation_id": "g", "text": "Blue.", "finish_reason": "COMPLETE",
            "chat_history": [{"role": "USER", "message": "Sky?"}, {"role": "CHATBOT", "message": "Blue."}],
            "meta": {"billed_units": {"input_tokens": 3, "output_tokens": 2}},
        });
        let transcript = read_one(&reply);
        assert_eq!(message_lines(&transcript), ["user Sky?", "assistant Blue."]);
        assert_eq!(
            transcript["messages"][1]["metadata"]["usage"],
            json!({"input": 3, "output": 2})
        );
    }

    #[test]
    fn each_generation_is_a_transcript() {
        let reply = json!({"id": "r", "prompt": "Pluto?", "generations": [
            {"id": "a", "text": "A dwarf.", "finish_reason": "COMPLETE"},
            {"id": "b", "text": "Small.", "finish_reason": "MAX_TOKENS"},
        ]});
        let (all, _) = read(format!("{reply}\n").as_bytes());
        assert_eq!(
            lines_of_each(&all),
            [
                ["user Pluto?", "assistant A dwarf."],
                ["user Pluto?", "assistant Small."]
            ]
        );
    }

    #[test]
    fn list_of_messages_of_version_1_is_one_transcript() {
        let list =
            json!([{"role": "USER", "message": "Sky?"}, {"role": "CHATBOT", "message": "Blue."}]);
        let (all, _) = read(list.to_string().as_bytes());
        assert_eq!(lines_of_each(&all), [["user Sky?", "assistant Blue."]]);
    }

    #[test]
    fn content_that_is_not_text_is_an_unread_part() {
        let list =
            json!([{"role": "USER", "message": "Sky?"}, {"role": "CHATBOT", "message": ["Blue."]}]);
        let (all, _) = read(list.to_string().as_bytes());
        assert_eq!(lines_of_each(&all), [["user Sky?", "assistant <?>"]]);
        let content = &all[0].as_ref().expect("a transcript")["messages"][1]["content"];
        assert_eq!(*content, json!([{"type": "verbatim", "raw": ["Blue."]}]));
    }

    #[test]
    fn stream_of_each_version_is_a_reply() {
        let version_2 = [
            json!({"id": "r", "type": "message-start", "delta": {"message": {"role": "assistant", "content": [], "tool_calls": [], "citations": []}}}),
            json!({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I "}}}),
            json!({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "look."}}}),
            json!({"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {"id": "c1", "type": "function", "function": {"name": "find", "arguments": ""}}}}}),
            json!({"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": "{}"}}}}}),
            json!({"type": "tool-call-end", "index": 0}),
            json!({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 5, "output_tokens": 2}}}}),
        ];
        let version_1 = [
            json!({"is_finished": false, "event_type": "stream-start", "generation_id": "g"}),
            json!({"is_finished": false, "event_type": "text-generation", "text": "Bl"}),
            json!({"is_finished": false, "event_type": "text-generation", "text": "ue."}),
            json!({"is_finished": true, "event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"response_id": "s", "text": "Blue.", "generation_id": "g"}}),
        ];
        let lines = |events: &[Value]| {
            let lines: Vec<String> = events.iter().map(Value::to_string).collect();
            lines.join("\n")
        };
        let file = [lines(&version_2), lines(&version_2), lines(&version_1)].join("\n");
        let (all, _) = read(file.as_bytes());
        let call = "assistant <reasoning> | find({})";
        assert_eq!(lines_of_each(&all), [[call], [call], ["assistant Blue."]]);
        let first = all[0].as_ref().expect("a transcript");
        assert_eq!(
            (&first["id"], &first["metadata"]["usage"]["input"]),
            (&json!("r"), &json!(5))
        );
        // A stream that was cut has its texts.
        let (all, _) = read(lines(&version_1[..3]).as_bytes());
        assert_eq!(lines_of_each(&all), [["assistant Blue."]]);
    }

    #[test]
    fn other_files_with_these_keys_are_not_cohere() {
        for record in [
            json!({"message": "hi", "chat_history": [["a", "b"]]}),
            json!({"text": "hi", "generation_id": "g"}),
            json!({"generations": [{"text": "hi"}]}),
            json!({"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}),
            json!([{"role": "user", "message": "hi"}]),
            json!({"question": "q", "chat_history": [{"role": "user", "message": "hi"}, {"role": "assistant", "message": "ho"}]}),
            json!({"message": "q", "chat_history": [{"role": "USER", "message": "hi"}], "answer": "a"}),
            json!({"message": "ho", "role": "assistant", "tool_results": [{"call": {"name": "f"}, "outputs": []}]}),
            json!({"message": "ho", "tool_results": [{"name": "f", "output": "x"}]}),
            json!({"message": "hi", "connectors": []}),
            json!({"prompt": "q", "text": "a", "response_id": "r"}),
            json!({"type": "assistant", "message": {"role": "assistant", "content": "hi"}, "token_count": 5}),
        ] {
            let text = format!("{record}\n");
            let preview = super::super::super::detect::preview_file(text.as_bytes());
            assert!(!super::is_chat(&preview.expect("records")), "{record}");
        }
    }
}

//! The reader of a chat completion, streamed or whole, from OpenAI and from servers that nearly speak its protocol.
//!
//! A reply is complete if a `finish_reason` arrived *and* the stream ended with `[DONE]`. Except for api.openai.com,
//! the proper end of the HTTP body is enough, because llama.cpp and gateways omit the mark. A body that breaks off is
//! an HTTP error and never gets here. Without a reason, a stream with `[DONE]` and a whole document are complete, and
//! the reason is unknown (Snowflake Cortex). Every other end is [`ProviderError::Cut`].
//!
//! Accepted deviations, each seen in practice:
//!
//! - `index` is a key, not a position, and may be missing or the same for all calls;
//! - missing or repeated ids;
//! - `arguments` as an object;
//! - a call in `function_call`, the member before tools, also next to `tool_calls`;
//! - `content` null, absent or an array, with thinking in it (Mistral);
//! - a whole reply with an empty `delta` next to its `message` (Perplexity);
//! - a reply in one JSON document although dicta requested a stream;
//! - errors as object or text, in a frame, as an `error` event, or outside SSE.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::client::{
    NewDelta, NewDeltas, ReplyReader, StreamProgress, cut_line_error, has_answer, in_stream_error,
    malformed_error, truncated_error, unfinished_error, unreadable_document_error,
    usage_or_one_call,
};
use super::super::foreign_text::ForeignText;
use super::super::sse::SseFrame;
use super::super::{CompletedReply, ProviderError};
use super::tool_calls::ChatToolCalls;
use crate::event::DeltaPart;
use crate::model::{ModelReply, StopReason, TokenUsage, TurnIx};

/// The finish reason of a reply that failed.
const ERROR: &str = "error";

const NOT_A_COMPLETION: &str = "it is not a chat completion";

/// The place of the reasoning in a message.
#[derive(Debug, Clone, Copy)]
enum ReasoningPlace {
    /// A member of this name.
    Member(&'static str),
    /// Parts of `content`.
    Content,
}

/// The state of one reply.
#[derive(Debug)]
pub(super) struct ChatReplyReader {
    /// `true` if a missing `[DONE]` means that the reply was cut.
    strict: bool,
    text: String,
    reasoning: String,
    /// The place of the server's reasoning, in which it is also sent back.
    reasoning_place: ReasoningPlace,
    refusal: String,
    reasoning_details: Vec<Value>,
    calls: ChatToolCalls,
    finish: Option<String>,
    usage: Option<TokenUsage>,
    done: bool,
    chunks: usize,
    has_choice: bool,
    /// The text that explains a reply without chunks.
    foreign: ForeignText,
    /// The message of a reply that wasn't streamed, as received.
    message: Option<Box<RawValue>>,
}

impl ChatReplyReader {
    pub(super) fn new(turn: TurnIx, strict: bool) -> Self {
        Self {
            strict,
            text: String::new(),
            reasoning: String::new(),
            reasoning_place: ReasoningPlace::Member("reasoning"),
            refusal: String::new(),
            reasoning_details: Vec::new(),
            calls: ChatToolCalls::new(turn),
            finish: None,
            usage: None,
            done: false,
            chunks: 0,
            has_choice: false,
            foreign: ForeignText::default(),
            message: None,
        }
    }

    /// Reads a chunk, or a whole reply.
    fn read_chunk(
        &mut self,
        chunk: &Value,
        whole: bool,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        self.chunks += 1;
        // Gateways report errors inside chunks after status 200.
        check_error(chunk)?;
        // vLLM sends the error itself as the object.
        if chunk.get("object").is_some_and(|kind| kind == "error") {
            return Err(in_stream_error(chunk.clone()));
        }
        // The usage comes in a last chunk without choices; other chunks have `null`.
        if let Some(usage) = chunk.get("usage").filter(|u| u.is_object()) {
            self.usage = Some(read_usage(usage));
        }
        let choices = chunk.get("choices").and_then(Value::as_array);
        let first = choices
            .into_iter()
            .flatten()
            // Some servers omit the index of the only choice.
            .find(|choice| choice.get("index").is_none_or(|i| i == 0 || i.is_null()));
        let Some(choice) = first else {
            return Ok(());
        };
        self.has_choice = true;
        // OpenRouter reports the error of a provider in the choice, next to the text so far.
        check_error(choice)?;
        // Perplexity sends both: an empty `delta` in a whole reply, and the whole text so far in each chunk's
        // `message`.
        let (first, second) = if whole {
            ("message", "delta")
        } else {
            ("delta", "message")
        };
        let message = [first, second].iter().find_map(|key| choice.get(*key));
        if let Some(message) = message {
            self.read_message(message, new)?;
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str)
            // Some servers send an empty reason in every chunk.
            && !finish.is_empty()
            && !self.is_cut_or_refused()
        {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn read_message(&mut self, message: &Value, new: &mut NewDeltas) -> Result<(), ProviderError> {
        for key in ["reasoning", "reasoning_content"] {
            // Some send the same text under both names.
            if let Some(thought) = message.get(key).and_then(Value::as_str)
                && !thought.is_empty()
            {
                self.reasoning_place = ReasoningPlace::Member(key);
                self.add_reasoning(thought, new);
                break;
            }
        }
        if let Some(details) = message.get("reasoning_details").and_then(Value::as_array) {
            for detail in details {
                merge_reasoning_detail(&mut self.reasoning_details, detail);
            }
        }
        match message.get("content") {
            Some(Value::String(text)) => self.add_text(text, new),
            // Mistral's models stream content as a list of parts.
            Some(Value::Array(parts)) => {
                for part in parts {
                    if part.get("type").is_some_and(|kind| kind == "thinking") {
                        self.reasoning_place = ReasoningPlace::Content;
                        for thought in read_thinking_part(part) {
                            self.add_reasoning(thought, new);
                        }
                    } else if let Some(text) = part.get("text").and_then(Value::as_str) {
                        self.add_text(text, new);
                    } else if let Some(refusal) = part.get("refusal").and_then(Value::as_str) {
                        self.refusal.push_str(refusal);
                    }
                }
            }
            _ => {}
        }
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            self.refusal.push_str(refusal);
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let mut added = Vec::new();
        for call in calls.into_iter().flatten() {
            added.extend(self.calls.add_delta(call)?);
        }
        if let Some(function) = message.get("function_call") {
            added.extend(self.calls.add_function_call(function)?);
        }
        let pieces = added.into_iter().filter(|(_, args)| !args.is_empty());
        new.extend(pieces.map(|(ix, text)| NewDelta {
            part: DeltaPart::Args(ix),
            text,
        }));
        Ok(())
    }

    fn add_reasoning(&mut self, thought: &str, new: &mut NewDeltas) {
        self.reasoning.push_str(thought);
        new.push(NewDelta {
            part: DeltaPart::Thought,
            text: thought.to_owned(),
        });
    }

    fn add_text(&mut self, text: &str, new: &mut NewDeltas) {
        self.text.push_str(text);
        new.push(NewDelta {
            part: DeltaPart::Text,
            text: text.to_owned(),
        });
    }

    /// Returns true if the reply ended without an answer. A later reason, such as `stop` of a gateway, doesn't change that.
    fn is_cut_or_refused(&self) -> bool {
        let finish = self.finish.as_deref();
        finish.is_some_and(|finish| finish == ERROR || !has_answer(&Ok(read_stop_word(finish))))
    }

    fn read_stop_reason(&self, finish: Option<&str>) -> StopReason {
        // A refusal wins, because its finish reason is an ordinary `stop`.
        if !self.refusal.is_empty() {
            return StopReason::Refused(self.refusal.clone());
        }
        match finish {
            None => StopReason::Unknown,
            // Some servers send `stop` with calls, and some send `tool_calls` without any.
            Some(finish) if !self.calls.is_empty() && ends_with_calls(finish) => {
                StopReason::ToolCalls
            }
            Some(finish) => read_stop_word(finish),
        }
    }

    /// Builds the assistant message from its deltas, as OpenAI would have sent it whole.
    fn build_native_message(&self) -> Value {
        let mut message = Map::new();
        let mut set = |key: &str, value: Value| {
            message.insert(key.to_owned(), value);
        };
        set("role", "assistant".into());
        // The protocol wants `null` instead of an empty text next to calls or a refusal.
        let silent = self.text.is_empty() && !(self.calls.is_empty() && self.refusal.is_empty());
        set(
            "content",
            if silent {
                Value::Null
            } else {
                self.text.as_str().into()
            },
        );
        if !self.refusal.is_empty() {
            set("refusal", self.refusal.as_str().into());
        }
        match self.reasoning_place {
            _ if self.reasoning.is_empty() => {}
            ReasoningPlace::Member(key) => set(key, self.reasoning.as_str().into()),
            // Mistral refuses members that it doesn't know, and expects the thinking where it wrote it.
            ReasoningPlace::Content => {
                let thinking = json!({"type": "thinking",
                    "thinking": [{"type": "text", "text": self.reasoning}]});
                let text = json!({"type": "text", "text": self.text});
                let text = (!self.text.is_empty()).then_some(text);
                set("content", [thinking].into_iter().chain(text).collect());
            }
        }
        if !self.reasoning_details.is_empty() {
            set("reasoning_details", self.reasoning_details.clone().into());
        }
        if !self.calls.is_empty() {
            set("tool_calls", self.calls.native());
        }
        message.into()
    }
}

impl ReplyReader for ChatReplyReader {
    fn read_frame(
        &mut self,
        frame: SseFrame,
        new: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError> {
        match frame {
            SseFrame::Event { data, .. } if data.trim() == "[DONE]" => {
                self.done = true;
                Ok(StreamProgress::Done)
            }
            SseFrame::Event {
                name,
                data,
                complete,
            } => match serde_json::from_str::<Value>(&data) {
                Ok(error) if name == "error" => {
                    let inner = error.get("error").filter(|e| !e.is_null()).cloned();
                    Err(in_stream_error(inner.unwrap_or(error)))
                }
                Ok(chunk @ Value::Object(_)) => {
                    self.foreign
                        .add_event(chunk.get("choices").is_some(), &data);
                    self.read_chunk(&chunk, false, new)?;
                    Ok(StreamProgress::More)
                }
                Err(_) if !complete => Err(truncated_error("it ended inside an event")),
                _ if name == "error" => Err(in_stream_error(data.into())),
                // An event without content keeps the connection alive.
                Err(_) if data.trim().is_empty() => Ok(StreamProgress::More),
                _ => Err(malformed_error(
                    "an event is not a chat completion chunk",
                    &data,
                )),
            },
            SseFrame::Stray { text, complete } => {
                match serde_json::from_str::<Value>(&text) {
                    Ok(Value::Object(map)) if map.contains_key("choices") && self.chunks == 0 => {
                        self.read_document(&text, new)?;
                    }
                    Ok(Value::Object(mut map))
                        if map.get("error").is_some_and(|e| !e.is_null()) =>
                    {
                        return Err(in_stream_error(map.remove("error").unwrap_or_default()));
                    }
                    _ if !complete => {
                        return Err(cut_line_error());
                    }
                    _ => {
                        self.foreign.add_line(&text);
                    }
                }
                Ok(StreamProgress::More)
            }
        }
    }

    fn read_document(&mut self, body: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        let reply: Value = match serde_json::from_str(body) {
            Ok(reply @ Value::Object(_)) => reply,
            _ => return Err(unreadable_document_error(NOT_A_COMPLETION, body)),
        };
        self.foreign.add_event(reply.get("choices").is_some(), body);
        self.read_chunk(&reply, true, new)?;
        self.message = find_message(body);
        self.done = true;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<CompletedReply, ProviderError> {
        let finish = self.finish.as_deref();
        // A reply that reached its end mark wasn't cut, even if the server gives no reason.
        if finish.is_none() && !(self.done && self.has_choice) {
            return Err(unfinished_error(
                &self.foreign,
                self.chunks,
                "a finish reason",
                NOT_A_COMPLETION,
            ));
        }
        // Compatible servers often omit `[DONE]`, so only OpenAI's own streams need it.
        if self.strict && !self.done {
            return Err(truncated_error("it ended without [DONE]"));
        }
        // OpenRouter ends a failed reply this way.
        if finish == Some(ERROR) {
            return Err(in_stream_error("the finish reason is `error`".into()));
        }
        let native = match &self.message {
            // The message must contain created ids too, because the tool responses refer to them.
            Some(message) if !self.calls.has_generated_ids() => Arc::from(message.clone()),
            _ => Arc::from(
                serde_json::value::to_raw_value(&self.build_native_message())
                    .expect("a JSON value can be written"),
            ),
        };
        let usage = usage_or_one_call(self.usage);
        let stop = self.read_stop_reason(finish);
        Ok(CompletedReply {
            native: vec![native],
            reply: ModelReply {
                text: self.text,
                thought: self.reasoning,
                calls: self.calls.to_reply_calls(),
                stop,
            },
            usage,
        })
    }

    fn billed_usage(&self) -> Option<TokenUsage> {
        self.usage
    }
}

/// Returns an error if a chunk or a choice reports one.
fn check_error(reports: &Value) -> Result<(), ProviderError> {
    match reports.get("error").filter(|error| !error.is_null()) {
        Some(error) => Err(in_stream_error(error.clone())),
        None => Ok(()),
    }
}

/// Returns true if a finish reason is an ordinary one of a reply with calls.
fn ends_with_calls(finish: &str) -> bool {
    let words = ["stop", "tool_calls", "function_call"];
    words.iter().any(|word| finish.eq_ignore_ascii_case(word))
}

/// Returns the meaning of a finish reason without calls. Gateways pass on the words of other vendors, some in capitals.
fn read_stop_word(finish: &str) -> StopReason {
    match &*finish.to_ascii_lowercase() {
        "content_filter" | "safety" | "refusal" | "sensitive" | "recitation" | "blocklist"
        | "prohibited_content" | "spii" => StopReason::Refused(finish.to_owned()),
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => StopReason::Length,
        "stop" | "eos" | "end_turn" | "stop_sequence" => StopReason::Stop,
        _ => StopReason::Other(finish.to_owned()),
    }
}

/// Returns the texts of a thinking part: a list of text parts, or one text.
pub(super) fn read_thinking_part(part: &Value) -> Vec<&str> {
    match part.get("thinking") {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the assistant message of a whole reply as received; `None` if its role is another one.
fn find_message(body: &str) -> Option<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        choices: Vec<Choice<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Choice<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    let body: Body<'_> = serde_json::from_str(body).ok()?;
    let message = body.choices.first()?.message;
    let says: Value = serde_json::from_str(message.get()).ok()?;
    (says.get("role").and_then(Value::as_str) == Some("assistant")).then(|| message.to_owned())
}

/// Adds a reasoning detail. `OpenRouter` splits one over chunks: the same type and index continue the last one.
fn merge_reasoning_detail(details: &mut Vec<Value>, detail: &Value) {
    let same = |last: &Value, key: &str| last.get(key) == detail.get(key);
    let last = details
        .last_mut()
        .filter(|last| detail.get("index").is_some() && same(last, "type") && same(last, "index"));
    let (Some(Value::Object(last)), Value::Object(more)) = (last, detail) else {
        details.push(detail.clone());
        return;
    };
    for (key, value) in more {
        match (last.get_mut(key), value) {
            (Some(Value::String(all)), Value::String(text))
                if ["text", "summary", "data"].contains(&key.as_str()) =>
            {
                all.push_str(text);
            }
            // `null` adds nothing and must not erase an earlier value.
            (_, Value::Null) => {}
            _ => {
                last.insert(key.clone(), value.clone());
            }
        }
    }
}

fn read_usage(usage: &Value) -> TokenUsage {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    TokenUsage {
        input: number("/prompt_tokens"),
        output: number("/completion_tokens"),
        cached: number("/prompt_tokens_details/cached_tokens"),
        thinking: number("/completion_tokens_details/reasoning_tokens"),
        calls: 1,
    }
}

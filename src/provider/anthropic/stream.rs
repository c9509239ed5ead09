//! The reader of a message, streamed or whole, from Anthropic and from servers that nearly speak its protocol.
//!
//! A streamed message is complete with `message_stop`, and a whole one with the end of its JSON. Gateways may omit the
//! stop reason, which is then unknown. Every other end is [`ProviderError::Cut`].
//!
//! Accepted deviations, each seen in practice:
//!
//! - `index` is a key, a block may begin before the previous one stopped, and a block's stop may be missing;
//! - `tool_use` without `input` or id;
//! - `message_start` twice, or with content;
//! - pings, and unknown events and deltas;
//! - errors in Anthropic's shape and OpenAI's, in a frame or outside SSE;
//! - a message in one JSON document although dicta requested a stream.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::client::{
    NewDeltas, ReplyReader, StreamProgress, cut_line_error, has_answer, in_stream_error,
    malformed_error, truncated_error, unfinished_error, unreadable_document_error,
    usage_or_one_call, wrong_protocol_error,
};
use super::super::foreign_text::ForeignText;
use super::super::retry::CAPPED;
use super::super::sse::SseFrame;
use super::super::{CompletedReply, ProviderError};
use super::blocks::AnthropicBlocks;
use crate::model::{ModelReply, StopReason, TokenUsage, TurnIx};

const NOT_A_MESSAGE: &str = "it is not an Anthropic message";

/// The state of one message.
#[derive(Debug)]
pub(super) struct AnthropicReplyReader {
    blocks: AnthropicBlocks,
    /// The content in `message_start`, by position. A block that begins at the same position replaces it.
    prefilled: Vec<Option<Box<RawValue>>>,
    stop: Option<String>,
    /// The details of a refusal.
    stop_details: Option<Value>,
    usage: AnthropicUsage,
    events: usize,
    done: bool,
    /// The text that explains a reply without events of this protocol.
    foreign: ForeignText,
}

#[derive(Debug, Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<AnthropicMessage<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    delta: Option<Value>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct AnthropicMessage<'a> {
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    stop_reason: Option<String>,
    stop_details: Option<Value>,
    usage: Option<Value>,
    error: Option<Value>,
}

/// The counts as reported; later ones replace earlier ones, missing ones change nothing.
#[derive(Debug, Default)]
struct AnthropicUsage {
    input: Option<u64>,
    cache_written: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl AnthropicUsage {
    fn add(&mut self, usage: &Value) {
        let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        // The counts are cumulative: `message_delta` repeats and completes those of `message_start`.
        let keep = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        keep(&mut self.input, number("/input_tokens"));
        keep(
            &mut self.cache_written,
            number("/cache_creation_input_tokens"),
        );
        keep(&mut self.cache_read, number("/cache_read_input_tokens"));
        keep(&mut self.output, number("/output_tokens"));
        keep(
            &mut self.thinking,
            number("/output_tokens_details/thinking_tokens"),
        );
    }

    /// Converts the counts. `input_tokens` excludes the cache; dicta's count includes it.
    fn to_usage(&self) -> Option<TokenUsage> {
        let cache = self
            .cache_written
            .unwrap_or(0)
            .saturating_add(self.cache_read.unwrap_or(0));
        let usage = TokenUsage {
            input: self.input.map(|input| input.saturating_add(cache)),
            output: self.output,
            cached: self.cache_read,
            thinking: self.thinking,
            calls: 1,
        };
        (usage.input.is_some() || usage.output.is_some()).then_some(usage)
    }
}

impl AnthropicReplyReader {
    pub(super) fn new(turn: TurnIx) -> Self {
        Self {
            blocks: AnthropicBlocks::new(turn),
            prefilled: Vec::new(),
            stop: None,
            stop_details: None,
            usage: AnthropicUsage::default(),
            events: 0,
            done: false,
            foreign: ForeignText::default(),
        }
    }

    fn read_event(
        &mut self,
        name: &str,
        text: &str,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        let event: AnthropicEvent<'_> =
            serde_json::from_str(text).map_err(|_| explain_unreadable_event(name, text))?;
        // Gateways may omit the `type` or the event's name, so either is enough.
        let kind = event.kind.as_deref().unwrap_or(name);
        // An error counts in any event, because gateways attach it to whatever they send.
        if let Some(error) = event.error.filter(|error| !error.is_null()) {
            return Err(parse_reported_error(error));
        }
        if kind == "error" {
            let error: Value = serde_json::from_str(text).unwrap_or_default();
            return Err(parse_reported_error(error));
        }
        self.events += 1;
        let is_known =
            kind == "ping" || kind.starts_with("message") || kind.starts_with("content_block");
        self.foreign.add_event(is_known, text);
        let at = |what: &str| {
            let index = event.index;
            index.ok_or_else(|| malformed_error(&format!("a {what} without its index"), text))
        };
        match kind {
            "message_start" => {
                let Some(message) = event.message else {
                    return Ok(());
                };
                self.merge_envelope(&message);
                if self.blocks.is_empty() && self.prefilled.is_empty() {
                    let content = message.content.into_iter().flatten();
                    self.prefilled = content.map(|raw| Some(raw.to_owned())).collect();
                }
            }
            "content_block_start" => {
                let index = at(kind)?;
                let raw = event
                    .content_block
                    .ok_or_else(|| malformed_error("a block begins without a block", text))?;
                // Blocks of `message_start` before this position come first.
                for before in 0..index.min(self.prefilled.len() as u64) {
                    self.continue_prefilled(before, new)?;
                }
                self.replace_prefilled(index);
                self.blocks.start(index, raw, new)?;
            }
            "content_block_delta" => {
                let index = at(kind)?;
                self.continue_prefilled(index, new)?;
                let delta = event.delta.unwrap_or_default();
                self.blocks.add_delta(index, &delta, new)?;
            }
            "message_delta" => {
                if let Some(usage) = &event.usage {
                    self.usage.add(usage);
                }
                let delta = event.delta.unwrap_or_default();
                self.merge_stop(delta.get("stop_reason").and_then(Value::as_str));
                let details = delta.get("stop_details").filter(|d| d.is_object());
                self.stop_details = details.cloned().or(self.stop_details.take());
            }
            // The end of the reply: complete what has no event of its own.
            "message_stop" => {
                for index in 0..self.prefilled.len() as u64 {
                    self.continue_prefilled(index, new)?;
                }
                self.blocks.finish(new);
                self.done = true;
            }
            // A whole message although dicta requested a stream.
            "message" if self.events == 1 => self.read_message(text, new)?,
            // `ping`, `content_block_stop`, and what later versions bring.
            _ => {}
        }
        Ok(())
    }

    fn merge_envelope(&mut self, message: &AnthropicMessage<'_>) {
        if let Some(usage) = &message.usage {
            self.usage.add(usage);
        }
        self.merge_stop(message.stop_reason.as_deref());
        let details = message.stop_details.clone().filter(Value::is_object);
        self.stop_details = details.or(self.stop_details.take());
    }

    /// Takes over a stop reason. An event without one doesn't erase an earlier one, and a reply that was cut or refused stays
    /// so.
    fn merge_stop(&mut self, reason: Option<&str>) {
        let earlier = self.stop.as_deref();
        let is_final = earlier.is_some_and(|earlier| !has_answer(&self.stop(earlier, false)));
        if !is_final && let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.stop = Some(reason.to_owned());
        }
    }

    fn replace_prefilled(&mut self, index: u64) {
        let place = usize::try_from(index).ok();
        if let Some(held) = place.and_then(|at| self.prefilled.get_mut(at)) {
            *held = None;
        }
    }

    /// Begins a block from the content in `message_start`, unless an event began one at this position.
    fn continue_prefilled(&mut self, index: u64, new: &mut NewDeltas) -> Result<(), ProviderError> {
        let place = usize::try_from(index).ok();
        let held = place.and_then(|at| self.prefilled.get_mut(at)?.take());
        match held {
            Some(raw) => self.blocks.start(index, &raw, new),
            None => Ok(()),
        }
    }

    fn read_message(&mut self, text: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        let message: AnthropicMessage<'_> = serde_json::from_str(text)
            .map_err(|_| unreadable_document_error(NOT_A_MESSAGE, text))?;
        if let Some(error) = message.error.as_ref().filter(|error| !error.is_null()) {
            return Err(parse_reported_error(error.clone()));
        }
        // Any JSON object would parse here, so check for a member of a message.
        if message.content.is_none() && message.stop_reason.is_none() {
            return Err(wrong_protocol_error(NOT_A_MESSAGE, text));
        }
        self.merge_envelope(&message);
        for (index, raw) in (0..).zip(message.content.into_iter().flatten()) {
            self.blocks.start(index, raw, new)?;
        }
        self.blocks.finish(new);
        self.events += 1;
        self.done = true;
        Ok(())
    }

    fn stop(&self, reason: &str, calls: bool) -> Result<StopReason, ProviderError> {
        Ok(match reason {
            "max_tokens" => StopReason::Length,
            "model_context_window_exceeded" => {
                // Like a token limit it ends the reply without a verdict, but no higher limit helps.
                return Err(truncated_error(format!(
                    "{CAPPED}what is left of the model's context window ({reason})"
                )));
            }
            "refusal" => StopReason::Refused(self.describe_refusal()),
            // Gateways in front of other vendors' models use these words.
            "content_filter" | "safety" => StopReason::Refused(reason.to_owned()),
            "pause_turn" => {
                return Err(ProviderError::InStream {
                    message: "the model paused its turn for a tool of the server's (pause_turn), and judges have none"
                        .to_owned(),
                    retryable: false,
                });
            }
            // Compatible servers send `end_turn` with calls too.
            "end_turn" | "tool_use" | "stop_sequence" if calls => StopReason::ToolCalls,
            "end_turn" | "stop_sequence" => StopReason::Stop,
            other => StopReason::Other(other.to_owned()),
        })
    }

    /// Formats a refusal as `refusal (cyber): why`.
    fn describe_refusal(&self) -> String {
        let word = |key: &str| self.stop_details.as_ref()?.get(key)?.as_str();
        let mut text = "refusal".to_owned();
        if let Some(category) = word("category") {
            text = format!("{text} ({category})");
        }
        if let Some(why) = word("explanation") {
            text.push_str(": ");
            text.push_str(why);
        }
        text
    }
}

/// Parses an error inside a reply by Anthropic's error types; other shapes are parsed like any server's.
fn parse_reported_error(error: Value) -> ProviderError {
    let kind = error.get("type").and_then(Value::as_str);
    let known = match kind {
        Some("overloaded_error" | "rate_limit_error" | "api_error" | "timeout_error") => Some(true),
        Some(
            "invalid_request_error"
            | "authentication_error"
            | "billing_error"
            | "permission_error"
            | "not_found_error"
            | "conflict_error"
            | "request_too_large",
        ) => Some(false),
        _ => None,
    };
    match (in_stream_error(error), known) {
        // Anthropic's error type decides about a retry; the generic rules only guess.
        (ProviderError::InStream { message, .. }, Some(retryable)) => {
            ProviderError::InStream { message, retryable }
        }
        (other, _) => other,
    }
}

/// Explains an event that cannot be parsed: an error of another shape, or not of this protocol.
fn explain_unreadable_event(name: &str, text: &str) -> ProviderError {
    match serde_json::from_str::<Value>(text) {
        Ok(error) if name == "error" || error.get("type").is_some_and(|kind| kind == "error") => {
            parse_reported_error(error)
        }
        Err(_) if name == "error" => parse_reported_error(text.into()),
        _ => malformed_error("an event is none of Anthropic Messages'", text),
    }
}

impl ReplyReader for AnthropicReplyReader {
    fn read_frame(
        &mut self,
        frame: SseFrame,
        new: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError> {
        match frame {
            SseFrame::Event {
                name,
                data,
                complete,
            } => {
                let data = data.trim();
                if serde_json::from_str::<&RawValue>(data).is_err() && !complete {
                    return Err(truncated_error("it ended inside an event"));
                }
                // `[DONE]` doesn't belong to this protocol, but gateways send it. An empty event keeps the
                // connection alive.
                if data != "[DONE]" && !data.is_empty() {
                    self.read_event(&name, data, new)?;
                }
            }
            SseFrame::Stray { text, complete } => match serde_json::from_str::<Value>(&text) {
                Ok(Value::Object(mut map)) if map.get("error").is_some_and(|e| !e.is_null()) => {
                    return Err(parse_reported_error(
                        map.remove("error").unwrap_or_default(),
                    ));
                }
                Ok(Value::Object(map)) if map.contains_key("content") && self.events == 0 => {
                    self.read_message(&text, new)?;
                }
                // The stream broke off inside a line, so this is a cut and not another format.
                _ if !complete => {
                    return Err(cut_line_error());
                }
                _ => {
                    self.foreign.add_line(&text);
                }
            },
        }
        Ok(if self.done {
            StreamProgress::Done
        } else {
            StreamProgress::More
        })
    }

    fn read_document(&mut self, body: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        self.read_message(body, new)
    }

    fn finish(self: Box<Self>) -> Result<CompletedReply, ProviderError> {
        // Only `message_stop` ends a reply; without it the text may be cut.
        if !self.done {
            return Err(unfinished_error(
                &self.foreign,
                self.events,
                "message_stop",
                NOT_A_MESSAGE,
            ));
        }
        let calls = self.blocks.calls();
        let stop = match &self.stop {
            Some(reason) => self.stop(reason, !calls.is_empty())?,
            None if self.blocks.is_empty() => {
                return Err(truncated_error("it ended without a stop reason"));
            }
            None => StopReason::Unknown,
        };
        let usage = usage_or_one_call(self.usage.to_usage());
        Ok(CompletedReply {
            native: self.blocks.native(),
            reply: ModelReply {
                text: self.blocks.text_of_type("text"),
                thought: self.blocks.text_of_type("thinking"),
                calls,
                stop,
            },
            usage,
        })
    }

    fn billed_usage(&self) -> Option<TokenUsage> {
        self.usage.to_usage()
    }
}

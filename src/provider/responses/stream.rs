//! Reads a response, streamed or whole.
//!
//! An event is what the `type` in its data says; its SSE name counts only where there is none. A reply is complete once
//! `response.completed` or `response.incomplete` came; `[DONE]` is no end mark of this protocol (gateways add it), and a
//! stream without its last event is [`ProviderError::Cut`]. The items that go back are those of
//! `response.output_item.done`: earlier copies may lack their encrypted part.
//!
//! **The token limit.** llama.cpp calls a reply `completed` that ended at its token limit. So a server other than OpenAI
//! that wrote as many tokens as were allowed has been cut off, whatever it calls that.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::client::{New, Progress, Reader, cut, in_stream, malformed};
use super::super::frames::Frame;
use super::super::{Finished, ProviderError};
use super::items::{Items, Kind, Place, word};
use crate::event::DeltaPart;
use crate::model::{ModelReply, StopReason, TokenUsage, TurnIx};

/// Gathers one reply.
#[derive(Debug)]
pub(super) struct ResponseReader {
    /// The tokens allowed, where the server does not say itself that they were used up.
    limit: Option<u64>,
    items: Items,
    thought: String,
    /// A paragraph of thinking has ended.
    gap: bool,
    refusal: String,
    /// An item says of itself that it is not complete.
    unfinished: bool,
    /// How it ended; `None`: not yet.
    end: Option<End>,
    usage: Option<TokenUsage>,
    events: usize,
    /// The first line that was no event, to explain a reply that is none.
    stray: Option<String>,
}

#[derive(Debug, PartialEq)]
enum End {
    Completed,
    Length,
    Filtered(String),
}

/// An event or a response with its items as received.
#[derive(Deserialize)]
struct Native<'a> {
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Last<'a> {
    #[serde(borrow, default)]
    response: Option<Native<'a>>,
}

impl ResponseReader {
    pub(super) fn new(turn: TurnIx, limit: Option<u64>) -> Self {
        Self {
            limit,
            items: Items::new(turn),
            thought: String::new(),
            gap: false,
            refusal: String::new(),
            unfinished: false,
            end: None,
            usage: None,
            events: 0,
            stray: None,
        }
    }

    fn event(
        &mut self,
        name: &str,
        event: &Value,
        data: &str,
        new: &mut New,
    ) -> Result<Progress, ProviderError> {
        self.events += 1;
        let kind = match word(event, "type") {
            "" => name,
            kind => kind,
        };
        match kind {
            "error" => return Err(in_stream(flat(event))),
            other if !other.starts_with("response.") && !event["error"].is_null() => {
                return Err(in_stream(event["error"].clone()));
            }
            "response.output_item.added" => {
                let item = &event["item"];
                let place = Place::of_item(event["output_index"].as_u64(), item);
                let slot = self.items.added(place)?;
                slot.named(item);
                self.gap |= slot.kind == Kind::Reasoning || slot.commentary;
            }
            "response.output_item.done" => {
                let native: Native<'_> = serde_json::from_str(data)
                    .map_err(|_| malformed("an item's end holds no item", data))?;
                let raw = native
                    .item
                    .ok_or_else(|| malformed("an item's end holds no item", data))?;
                self.done(event["output_index"].as_u64(), &event["item"], raw, new)?;
            }
            "response.output_text.delta" => {
                self.say("message", event, word(event, "delta"), new)?;
            }
            "response.function_call_arguments.delta" => {
                self.say("function_call", event, word(event, "delta"), new)?;
            }
            "response.refusal.delta" => self.refusal.push_str(word(event, "delta")),
            "response.reasoning_summary_part.added" => self.gap = true,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(word(event, "delta"), new);
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let last: Last<'_> = serde_json::from_str(data)
                    .map_err(|_| malformed("its last event holds no response", data))?;
                let output = last.response.map(|r| r.output).unwrap_or_default();
                let says = kind.trim_start_matches("response.");
                self.over(&event["response"], says, &output, new)?;
                return Ok(Progress::Done);
            }
            // `…done` of a part says what its pieces said; the item's end says it once more. What is not known is
            // passed over: vendors add events monthly.
            _ => {}
        }
        Ok(Progress::More)
    }

    /// A piece of a message or of a call's arguments.
    fn say(
        &mut self,
        kind: &str,
        event: &Value,
        piece: &str,
        new: &mut New,
    ) -> Result<(), ProviderError> {
        let slot = self.items.at(Place::of_part(event, kind))?;
        slot.said.push_str(piece);
        let (kind, commentary) = (slot.kind, slot.commentary);
        self.tell(kind, commentary, piece, new);
        Ok(())
    }

    fn tell(&mut self, kind: Kind, commentary: bool, piece: &str, new: &mut New) {
        match kind {
            _ if piece.is_empty() => {}
            Kind::Message if commentary => self.think(piece, new),
            Kind::Message => new.push((DeltaPart::Text, piece.to_owned())),
            Kind::Call(ix) => new.push((DeltaPart::Args(ix), piece.to_owned())),
            Kind::Reasoning | Kind::Other => {}
        }
    }

    fn think(&mut self, piece: &str, new: &mut New) {
        if piece.is_empty() {
            return;
        }
        let gap = std::mem::take(&mut self.gap) && !self.thought.is_empty();
        let piece = if gap {
            format!("\n\n{piece}")
        } else {
            piece.to_owned()
        };
        self.thought.push_str(&piece);
        new.push((DeltaPart::Thought, piece));
    }

    /// An item as it ended: what goes back, and what its pieces lacked.
    fn done(
        &mut self,
        index: Option<u64>,
        item: &Value,
        raw: &RawValue,
        new: &mut New,
    ) -> Result<(), ProviderError> {
        if !item.is_object() {
            return Err(malformed("an item is no object", raw.get()));
        }
        let slot = self.items.at(Place::of_item(index, item))?;
        if slot.done.is_some() {
            return Err(malformed("an item ends twice", raw.get()));
        }
        slot.named(item);
        slot.done = Some(raw.to_owned());
        self.unfinished |= word(item, "status") == "incomplete";
        let kind = slot.kind;
        match kind {
            Kind::Message => {
                let (text, refusal) = content(item);
                let (rest, commentary) = (slot.rest(&text)?, slot.commentary);
                self.tell(kind, commentary, &rest, new);
                if !refusal.is_empty() && !self.refusal.ends_with(&refusal) {
                    self.refusal = refusal;
                }
            }
            Kind::Call(_) => {
                let arguments = match &item["arguments"] {
                    Value::String(text) => text.clone(),
                    Value::Null => slot.said.clone(),
                    _ if !slot.said.is_empty() => slot.said.clone(),
                    other => other.to_string(),
                };
                let rest = slot.rest(&arguments)?;
                self.tell(kind, false, &rest, new);
            }
            Kind::Reasoning => {
                if self.thought.is_empty() {
                    for text in summary(item) {
                        self.gap = true;
                        self.think(text, new);
                    }
                }
            }
            Kind::Other => {}
        }
        Ok(())
    }

    /// The response as it ended. `says` is the last word of the last event, or of a whole reply its status.
    fn over(
        &mut self,
        response: &Value,
        says: &str,
        output: &[&RawValue],
        new: &mut New,
    ) -> Result<(), ProviderError> {
        if let Some(usage) = response.get("usage").filter(|u| u.is_object()) {
            self.usage = Some(read_usage(usage));
        }
        let status = match word(response, "status") {
            "" => says,
            status => status,
        };
        let error = response.get("error").filter(|e| !e.is_null());
        if let Some(error) = error {
            return Err(in_stream(error.clone()));
        }
        if [says, status].contains(&"failed") {
            return Err(in_stream("the response failed, without a reason".into()));
        }
        let incomplete = [says, status].contains(&"incomplete");
        if !incomplete && [says, status] != ["completed", "completed"] {
            return Err(cut(format!("the response was left {status}")));
        }
        self.fill(output, new)?;
        let reason = response.pointer("/incomplete_details/reason");
        let allowed_all = || {
            let written = self.usage.and_then(|usage| usage.output);
            self.limit
                .is_some_and(|limit| written.is_some_and(|n| n >= limit))
        };
        let ended = match reason.and_then(Value::as_str) {
            Some("content_filter") => End::Filtered("content_filter".to_owned()),
            Some("max_output_tokens") => End::Length,
            None if incomplete || self.unfinished || allowed_all() => End::Length,
            None => End::Completed,
            Some(other) => return Err(cut(format!("the response is incomplete: {other}"))),
        };
        let read = |kind: Kind| matches!(kind, Kind::Message | Kind::Call(_));
        let mut left = self.items.all().iter().filter(|slot| slot.done.is_none());
        if ended == End::Completed && left.any(|slot| read(slot.kind)) {
            return Err(cut("an item never ended"));
        }
        self.end = Some(ended);
        Ok(())
    }

    /// Takes items from the last event that had no event of their own: all, or the ends of those that began.
    fn fill(&mut self, output: &[&RawValue], new: &mut New) -> Result<(), ProviderError> {
        let known = self.items.all().len();
        let lacks = known == 0 || self.items.all().iter().any(|slot| slot.done.is_none());
        if !lacks || !(known == 0 || known == output.len()) {
            return Ok(());
        }
        for (at, raw) in output.iter().enumerate() {
            if self
                .items
                .all()
                .get(at)
                .is_some_and(|slot| slot.done.is_some())
            {
                continue;
            }
            let item: Value = serde_json::from_str(raw.get()).unwrap_or_default();
            if known == 0 {
                self.items.added(Place::of_item(None, &item))?;
            }
            self.done(None, &item, raw, new)?;
        }
        Ok(())
    }

    fn stop(&self, end: End, calls: bool) -> StopReason {
        if !self.refusal.is_empty() {
            return StopReason::Refused(self.refusal.clone());
        }
        match end {
            End::Filtered(word) => StopReason::Refused(word),
            End::Length => StopReason::Length,
            End::Completed if calls => StopReason::ToolCalls,
            End::Completed => StopReason::Stop,
        }
    }

    fn is_response(value: &Value) -> bool {
        value.get("output").is_some_and(Value::is_array)
            && (value.get("status").is_some() || value["object"] == "response")
    }
}

impl Reader for ResponseReader {
    fn frame(&mut self, frame: Frame, new: &mut New) -> Result<Progress, ProviderError> {
        match frame {
            Frame::Event { data, .. } if data.trim() == "[DONE]" => Ok(Progress::More),
            Frame::Event {
                name,
                data,
                complete,
            } => match serde_json::from_str::<Value>(&data) {
                Ok(event @ Value::Object(_)) => self.event(&name, &event, &data, new),
                Err(_) if !complete => Err(cut("it ended inside an event")),
                _ if name == "error" => Err(in_stream(data.into())),
                // An event without content keeps the connection alive.
                Err(_) if data.trim().is_empty() => Ok(Progress::More),
                _ => Err(malformed("an event is no JSON object", &data)),
            },
            Frame::Stray { text, complete } => {
                match serde_json::from_str::<Value>(&text) {
                    Ok(value) if self.events == 0 && Self::is_response(&value) => {
                        self.whole(&text, new)?;
                        return Ok(Progress::Done);
                    }
                    Ok(mut value) if value.get("error").is_some_and(|e| !e.is_null()) => {
                        return Err(in_stream(value["error"].take()));
                    }
                    _ if !complete => return Err(cut("it ended inside a line that is no event")),
                    _ => {
                        self.stray.get_or_insert(text);
                    }
                }
                Ok(Progress::More)
            }
        }
    }

    fn whole(&mut self, body: &str, new: &mut New) -> Result<(), ProviderError> {
        let response: Value = match serde_json::from_str(body) {
            Ok(response @ Value::Object(_)) => response,
            Err(error) if error.is_eof() => return Err(cut("it ended inside its JSON")),
            _ => return Err(malformed("it is no response", body)),
        };
        if let Some(error) = response.get("error").filter(|e| !e.is_null()) {
            return Err(in_stream(error.clone()));
        }
        if !Self::is_response(&response) {
            return Err(malformed("it is no response", body));
        }
        let native: Native<'_> =
            serde_json::from_str(body).map_err(|_| malformed("it is no response", body))?;
        let says = match word(&response, "status") {
            "" => "completed",
            status => status,
        };
        self.over(&response, says, &native.output, new)
    }

    fn end(mut self: Box<Self>) -> Result<Finished, ProviderError> {
        let Some(end) = self.end.take() else {
            return Err(match &self.stray {
                Some(stray) if self.events == 0 => malformed("it holds no events", stray),
                _ if self.events == 0 => cut("it is empty"),
                _ => cut("it ended without its last event"),
            });
        };
        self.items.settle();
        let usage = self.usage.unwrap_or(TokenUsage {
            calls: 1,
            ..TokenUsage::default()
        });
        let calls = self.items.read();
        let stop = self.stop(end, !calls.is_empty());
        let answers = self
            .items
            .all()
            .iter()
            .filter(|slot| slot.kind == Kind::Message && !slot.commentary);
        let text = answers.map(|slot| slot.said.as_str()).collect();
        let native = self.items.all().iter().filter_map(|slot| slot.done.clone());
        Ok(Finished {
            native: native.map(Arc::from).collect(),
            reply: ModelReply {
                text,
                thought: self.thought,
                calls,
                stop,
            },
            usage,
        })
    }

    fn billed(&self) -> Option<TokenUsage> {
        self.usage
    }
}

/// The error of an error event, which stands in it or under `error`.
fn flat(event: &Value) -> Value {
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        return error.clone();
    }
    let mut error = event.clone();
    if let Value::Object(map) = &mut error {
        map.shift_remove("type");
        map.shift_remove("sequence_number");
    }
    error
}

/// The text of a message, and what it refuses.
fn content(item: &Value) -> (String, String) {
    let (mut text, mut refusal) = (String::new(), String::new());
    match &item["content"] {
        Value::String(all) => text.push_str(all),
        Value::Array(parts) => {
            for part in parts {
                text.push_str(word(part, "text"));
                refusal.push_str(word(part, "refusal"));
            }
        }
        _ => {}
    }
    (text, refusal)
}

/// The paragraphs of a reasoning item that may be read.
fn summary(item: &Value) -> Vec<&str> {
    let of = |key: &str| {
        let parts = item[key].as_array().into_iter().flatten();
        parts
            .map(|part| word(part, "text"))
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
    };
    let summary = of("summary");
    if summary.is_empty() {
        of("content")
    } else {
        summary
    }
}

fn read_usage(usage: &Value) -> TokenUsage {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    TokenUsage {
        input: number("/input_tokens"),
        output: number("/output_tokens"),
        cached: number("/input_tokens_details/cached_tokens"),
        thinking: number("/output_tokens_details/reasoning_tokens"),
        calls: 1,
    }
}

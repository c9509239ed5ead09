//! The reader of a response, streamed or whole.
//!
//! The `type` in an event's data is its kind; the SSE name counts only without it. A reply is complete with
//! `response.completed` or `response.incomplete`. `[DONE]` isn't an end mark of this protocol (gateways add it), and
//! a stream without its last event is [`ProviderError::Cut`]. The items that are sent back are those of
//! `response.output_item.done`, because earlier copies may lack their encrypted part.
//!
//! **The token limit.** llama.cpp reports a reply as `completed` that ended at its token limit. So if a server other
//! than OpenAI wrote as many tokens as allowed, dicta treats the reply as cut off.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::client::{
    NewDelta, NewDeltas, ReplyReader, StreamProgress, cut_line_error, in_stream_error,
    malformed_error, truncated_error, unfinished_error, unreadable_document_error,
    usage_or_one_call, wrong_protocol_error,
};
use super::super::foreign_text::ForeignText;
use super::super::sse::SseFrame;
use super::super::{CompletedReply, ProviderError};
use super::output_items::{ItemRef, OutputItemKind, OutputItems, str_member};
use crate::event::DeltaPart;
use crate::model::{ModelReply, StopReason, TokenUsage, TurnIx};

const NOT_A_RESPONSE: &str = "it is not a response";

/// The state of one reply.
#[derive(Debug)]
pub(super) struct ResponsesReplyReader {
    /// The token limit, for a server that doesn't report reliably that it was reached.
    limit: Option<u64>,
    items: OutputItems,
    reasoning: String,
    /// `true` after the end of a paragraph of reasoning.
    paragraph_ended: bool,
    /// `true` if a piece of reasoning named no item that began.
    has_unplaced_reasoning: bool,
    refusal: String,
    /// `true` if an item reports that it is incomplete.
    unfinished: bool,
    /// The end of the reply; `None` before it ended.
    end: Option<ResponsesEnd>,
    usage: Option<TokenUsage>,
    events: usize,
    /// The text that explains a reply without events of this protocol.
    foreign: ForeignText,
}

#[derive(Debug, PartialEq)]
enum ResponsesEnd {
    Completed,
    Length,
    Filtered(String),
}

/// An event or a response with its items as received.
#[derive(Deserialize)]
struct RawResponsesEvent<'a> {
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawResponsesFinalEvent<'a> {
    #[serde(borrow, default)]
    response: Option<RawResponsesEvent<'a>>,
}

impl ResponsesReplyReader {
    pub(super) fn new(turn: TurnIx, limit: Option<u64>) -> Self {
        Self {
            limit,
            items: OutputItems::new(turn),
            reasoning: String::new(),
            paragraph_ended: false,
            has_unplaced_reasoning: false,
            refusal: String::new(),
            unfinished: false,
            end: None,
            usage: None,
            events: 0,
            foreign: ForeignText::default(),
        }
    }

    fn read_event(
        &mut self,
        name: &str,
        event: &Value,
        data: &str,
        new: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError> {
        self.events += 1;
        let kind = match str_member(event, "type") {
            "" => name,
            kind => kind,
        };
        self.foreign.add_event(kind.starts_with("response."), data);
        match kind {
            "error" => return Err(in_stream_error(find_error(event))),
            other if !other.starts_with("response.") && !event["error"].is_null() => {
                return Err(in_stream_error(event["error"].clone()));
            }
            "response.output_item.added" => {
                let item = &event["item"];
                let place = ItemRef::from_item(event["output_index"].as_u64(), item);
                let slot = self.items.begin_item(place)?;
                slot.update_from_item(item);
                // Reasoning of different items is separated by a blank line.
                self.paragraph_ended |= slot.kind == OutputItemKind::Reasoning || slot.commentary;
            }
            "response.output_item.done" => {
                let native: RawResponsesEvent<'_> = serde_json::from_str(data)
                    .map_err(|_| malformed_error("an item's end contains no item", data))?;
                let raw = native
                    .item
                    .ok_or_else(|| malformed_error("an item's end contains no item", data))?;
                self.finish_item(event["output_index"].as_u64(), &event["item"], raw, new)?;
            }
            "response.output_text.delta" => {
                self.add_piece("message", event, str_member(event, "delta"), new)?;
            }
            "response.function_call_arguments.delta" => {
                self.add_piece("function_call", event, str_member(event, "delta"), new)?;
            }
            "response.refusal.delta" => self.refusal.push_str(str_member(event, "delta")),
            "response.reasoning_summary_part.added" => self.paragraph_ended = true,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let piece = str_member(event, "delta");
                let place = ItemRef::from_part_event(event, "reasoning");
                match self.items.find_mut(place) {
                    Some(slot) => slot.text.push_str(piece),
                    // Its item is unknown, so any item's summary may repeat it.
                    None => self.has_unplaced_reasoning = true,
                }
                self.add_reasoning(piece, new);
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                // Parse the raw text again: items must go back byte for byte.
                let last: RawResponsesFinalEvent<'_> = serde_json::from_str(data)
                    .map_err(|_| malformed_error("its last event contains no response", data))?;
                let output = last.response.map(|r| r.output).unwrap_or_default();
                let says = kind.trim_start_matches("response.");
                self.finish_response(&event["response"], says, &output, new)?;
                return Ok(StreamProgress::Done);
            }
            // The `…done` event of a part repeats its pieces, and the item's end repeats it once more.
            // Vendors add events often, so unknown ones are ignored.
            _ => {}
        }
        Ok(StreamProgress::More)
    }

    /// Adds a piece of a message or of a call's arguments.
    fn add_piece(
        &mut self,
        kind: &str,
        event: &Value,
        piece: &str,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        let slot = self
            .items
            .find_or_begin(ItemRef::from_part_event(event, kind))?;
        slot.text.push_str(piece);
        let (kind, commentary) = (slot.kind, slot.commentary);
        self.emit_delta(kind, commentary, piece, new);
        Ok(())
    }

    fn emit_delta(
        &mut self,
        kind: OutputItemKind,
        commentary: bool,
        piece: &str,
        new: &mut NewDeltas,
    ) {
        match kind {
            // An empty delta would only create an empty event.
            _ if piece.is_empty() => {}
            // Commentary is shown as reasoning, because it isn't the answer.
            OutputItemKind::Message if commentary => self.add_reasoning(piece, new),
            OutputItemKind::Message => new.push(NewDelta {
                part: DeltaPart::Text,
                text: piece.to_owned(),
            }),
            OutputItemKind::Call(ix) => new.push(NewDelta {
                part: DeltaPart::Args(ix),
                text: piece.to_owned(),
            }),
            OutputItemKind::Reasoning | OutputItemKind::Other => {}
        }
    }

    fn add_reasoning(&mut self, piece: &str, new: &mut NewDeltas) {
        if piece.is_empty() {
            return;
        }
        let gap = std::mem::take(&mut self.paragraph_ended) && !self.reasoning.is_empty();
        let piece = if gap {
            format!("\n\n{piece}")
        } else {
            piece.to_owned()
        };
        self.reasoning.push_str(&piece);
        new.push(NewDelta {
            part: DeltaPart::Thought,
            text: piece,
        });
    }

    /// Completes an item: stores it to be sent back, and emits the text that its pieces lacked.
    fn finish_item(
        &mut self,
        index: Option<u64>,
        item: &Value,
        raw: &RawValue,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        if !item.is_object() {
            return Err(malformed_error("an item is not an object", raw.get()));
        }
        let slot = self.items.find_or_begin(ItemRef::from_item(index, item))?;
        if slot.received.is_some() {
            return Err(malformed_error("an item ends twice", raw.get()));
        }
        slot.update_from_item(item);
        slot.received = Some(raw.to_owned());
        self.unfinished |= str_member(item, "status") == "incomplete";
        let kind = slot.kind;
        match kind {
            OutputItemKind::Message => {
                let (text, refusal) = read_message_content(item);
                let is_new = slot.text.is_empty();
                let (rest, commentary) = (slot.find_missing_text(&text)?, slot.commentary);
                // Commentary that comes whole is a paragraph of its own, too.
                self.paragraph_ended |= commentary && is_new;
                self.emit_delta(kind, commentary, &rest, new);
                // The refusal may have arrived in deltas already.
                if !refusal.is_empty() && !self.refusal.ends_with(&refusal) {
                    self.refusal = refusal;
                }
            }
            OutputItemKind::Call(_) => {
                let arguments = match &item["arguments"] {
                    Value::String(text) => text.clone(),
                    Value::Null => slot.text.clone(),
                    // Arguments of another type don't compare with the streamed text, which is complete.
                    _ if !slot.text.is_empty() => slot.text.clone(),
                    other => other.to_string(),
                };
                let rest = slot.find_missing_text(&arguments)?;
                self.emit_delta(kind, false, &rest, new);
            }
            OutputItemKind::Reasoning => {
                // The summary repeats the item's deltas; it counts only if there were none.
                if slot.text.is_empty() && !self.has_unplaced_reasoning {
                    for text in read_reasoning_summary(item) {
                        self.paragraph_ended = true;
                        self.add_reasoning(text, new);
                    }
                }
            }
            OutputItemKind::Other => {}
        }
        Ok(())
    }

    /// Completes the response. `says` is the last word of the last event's type, or the status of a whole reply.
    fn finish_response(
        &mut self,
        response: &Value,
        says: &str,
        output: &[&RawValue],
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        // Before any error, so that the tokens of a failed response are billed.
        if let Some(usage) = response.get("usage").filter(|u| u.is_object()) {
            self.usage = Some(read_usage(usage));
        }
        let status = match str_member(response, "status") {
            "" => says,
            status => status,
        };
        let error = response.get("error").filter(|e| !e.is_null());
        if let Some(error) = error {
            return Err(in_stream_error(error.clone()));
        }
        if [says, status].contains(&"failed") {
            return Err(in_stream_error(
                "the response failed, without a reason".into(),
            ));
        }
        // The event's name and the status can differ on compatible servers, so both count.
        let incomplete = [says, status].contains(&"incomplete");
        if !incomplete && [says, status] != ["completed", "completed"] {
            return Err(truncated_error(format!("the response was left {status}")));
        }
        // Some servers send the items only in the last event.
        self.add_missing_items(output, new)?;
        let reason = response.pointer("/incomplete_details/reason");
        let allowed_all = || {
            let written = self.usage.and_then(|usage| usage.output);
            self.limit
                .is_some_and(|limit| written.is_some_and(|n| n >= limit))
        };
        let ended = match reason.and_then(Value::as_str) {
            Some("content_filter") => ResponsesEnd::Filtered("content_filter".to_owned()),
            Some("max_output_tokens") => ResponsesEnd::Length,
            // No reason, but one of three signs of the token limit.
            None if incomplete || self.unfinished || allowed_all() => ResponsesEnd::Length,
            None => ResponsesEnd::Completed,
            Some(other) => {
                return Err(truncated_error(format!(
                    "the response is incomplete: {other}"
                )));
            }
        };
        let read = |kind: OutputItemKind| {
            matches!(kind, OutputItemKind::Message | OutputItemKind::Call(_))
        };
        let mut left = self
            .items
            .all()
            .iter()
            .filter(|slot| slot.received.is_none());
        // A complete response with an open item lost a part of the stream.
        if ended == ResponsesEnd::Completed && left.any(|slot| read(slot.kind)) {
            return Err(truncated_error("an item never ended"));
        }
        self.end = Some(ended);
        Ok(())
    }

    /// Adds items of the last event that had no event of their own: all items, or the ends of those that began.
    fn add_missing_items(
        &mut self,
        output: &[&RawValue],
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        let known = self.items.all().len();
        let lacks = known == 0 || self.items.all().iter().any(|slot| slot.received.is_none());
        // If the counts differ, positions don't identify the items.
        if !lacks || !(known == 0 || known == output.len()) {
            return Ok(());
        }
        for (at, raw) in output.iter().enumerate() {
            if self
                .items
                .all()
                .get(at)
                .is_some_and(|slot| slot.received.is_some())
            {
                continue;
            }
            let item: Value = serde_json::from_str(raw.get()).unwrap_or_default();
            if known == 0 {
                self.items.begin_item(ItemRef::from_item(None, &item))?;
            }
            self.finish_item(None, &item, raw, new)?;
        }
        Ok(())
    }

    fn to_stop_reason(&self, end: ResponsesEnd, calls: bool) -> StopReason {
        if !self.refusal.is_empty() {
            return StopReason::Refused(self.refusal.clone());
        }
        match end {
            ResponsesEnd::Filtered(word) => StopReason::Refused(word),
            ResponsesEnd::Length => StopReason::Length,
            ResponsesEnd::Completed if calls => StopReason::ToolCalls,
            ResponsesEnd::Completed => StopReason::Stop,
        }
    }

    fn is_response(value: &Value) -> bool {
        value.get("output").is_some_and(Value::is_array)
            && (value.get("status").is_some() || value["object"] == "response")
    }
}

impl ReplyReader for ResponsesReplyReader {
    fn read_frame(
        &mut self,
        frame: SseFrame,
        new: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError> {
        match frame {
            // Not part of this protocol, but gateways send it after the last event.
            SseFrame::Event { data, .. } if data.trim() == "[DONE]" => Ok(StreamProgress::More),
            SseFrame::Event {
                name,
                data,
                complete,
            } => match serde_json::from_str::<Value>(&data) {
                Ok(event @ Value::Object(_)) => self.read_event(&name, &event, &data, new),
                Err(_) if !complete => Err(truncated_error("it ended inside an event")),
                _ if name == "error" => Err(in_stream_error(data.into())),
                // An event without content keeps the connection alive.
                Err(_) if data.trim().is_empty() => Ok(StreamProgress::More),
                _ => Err(malformed_error("an event is not a JSON object", &data)),
            },
            SseFrame::Stray { text, complete } => {
                match serde_json::from_str::<Value>(&text) {
                    Ok(value) if self.events == 0 && Self::is_response(&value) => {
                        self.read_document(&text, new)?;
                        return Ok(StreamProgress::Done);
                    }
                    Ok(mut value) if value.get("error").is_some_and(|e| !e.is_null()) => {
                        return Err(in_stream_error(value["error"].take()));
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
        let response: Value = match serde_json::from_str(body) {
            Ok(response @ Value::Object(_)) => response,
            _ => return Err(unreadable_document_error(NOT_A_RESPONSE, body)),
        };
        if let Some(error) = response.get("error").filter(|e| !e.is_null()) {
            return Err(in_stream_error(error.clone()));
        }
        if !Self::is_response(&response) {
            return Err(wrong_protocol_error(NOT_A_RESPONSE, body));
        }
        let native: RawResponsesEvent<'_> =
            serde_json::from_str(body).map_err(|_| malformed_error(NOT_A_RESPONSE, body))?;
        let says = match str_member(&response, "status") {
            "" => "completed",
            status => status,
        };
        self.finish_response(&response, says, &native.output, new)
    }

    fn finish(mut self: Box<Self>) -> Result<CompletedReply, ProviderError> {
        let Some(end) = self.end.take() else {
            return Err(unfinished_error(
                &self.foreign,
                self.events,
                "its last event",
                NOT_A_RESPONSE,
            ));
        };
        self.items.assign_order_and_ids();
        let usage = usage_or_one_call(self.usage);
        let calls = self.items.to_reply_calls();
        let stop = self.to_stop_reason(end, !calls.is_empty());
        let answers = self
            .items
            .all()
            .iter()
            .filter(|slot| slot.kind == OutputItemKind::Message && !slot.commentary);
        let text = answers.map(|slot| slot.text.as_str()).collect();
        let native = self
            .items
            .all()
            .iter()
            .filter_map(|slot| slot.received.clone());
        Ok(CompletedReply {
            native: native.map(Arc::from).collect(),
            reply: ModelReply {
                text,
                thought: self.reasoning,
                calls,
                stop,
            },
            usage,
        })
    }

    fn billed_usage(&self) -> Option<TokenUsage> {
        self.usage
    }
}

/// Returns the error of an error event, which is the event itself or its `error`.
fn find_error(event: &Value) -> Value {
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

/// Returns the text of a message and its refusal.
fn read_message_content(item: &Value) -> (String, String) {
    let (mut text, mut refusal) = (String::new(), String::new());
    match &item["content"] {
        Value::String(all) => text.push_str(all),
        Value::Array(parts) => {
            for part in parts {
                text.push_str(str_member(part, "text"));
                refusal.push_str(str_member(part, "refusal"));
            }
        }
        _ => {}
    }
    (text, refusal)
}

/// Returns the readable paragraphs of a reasoning item.
fn read_reasoning_summary(item: &Value) -> Vec<&str> {
    let read_texts = |key: &str| {
        let parts = item[key].as_array().into_iter().flatten();
        parts
            .map(|part| str_member(part, "text"))
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
    };
    let summary = read_texts("summary");
    if summary.is_empty() {
        read_texts("content")
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

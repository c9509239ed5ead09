//! The reader of a `generateContent` reply, streamed or whole.
//!
//! The stream ends only at the end of the body: older replies have `finishReason` on every frame, so the last one
//! counts, unless one before it is a limit, a refusal or a fault. A stream without any is [`ProviderError::Cut`], unless
//! a gateway ended it with `[DONE]`. A whole document without any is complete, and its reason is unknown. After some
//! frames the body may continue with a bare JSON error outside SSE, which is an error and not an end. A reply that ends
//! in `CONTINUATION` is requested again for its rest.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::client::{
    NewDelta, NewDeltas, ReplyReader, StreamProgress, cut_line_error, in_stream_error,
    malformed_error, truncated_error, unfinished_error, unreadable_document_error,
    usage_or_one_call,
};
use super::super::foreign_text::ForeignText;
use super::super::sse::SseFrame;
use super::super::{CompletedReply, ProviderError};
use super::finish_reason;
use super::partial_args::{GeminiPartialArg, OpenFunctionCall};
use crate::event::DeltaPart;
use crate::model::{CallIx, ModelReply, ReplyCall, StopReason, TokenUsage, TurnIx};

const NOT_A_RESPONSE: &str = "it is not a generateContent response";
/// The most calls of one reply.
const MAX_CALLS: usize = 1000;
/// The most requests for a reply's rest.
const MAX_CONTINUATIONS: usize = 3;

/// The state of one reply.
#[derive(Debug)]
pub(super) struct GeminiReplyReader {
    turn: TurnIx,
    native: Vec<Arc<RawValue>>,
    reply: ModelReply,
    finish: Option<String>,
    finish_message: Option<String>,
    block_reason: Option<String>,
    usage: Option<TokenUsage>,
    /// The usage of the replies before, if this is the rest of one.
    earlier_usage: Option<TokenUsage>,
    frames: usize,
    /// The text that explains a reply without responses.
    foreign: ForeignText,
    /// `true` after an end mark of a gateway, or the end of a whole document.
    ended: bool,
    has_content: bool,
    /// The call whose arguments are still arriving.
    open_call: Option<OpenFunctionCall>,
    continuation: Option<String>,
    continuations: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<GeminiCandidate<'a>>>,
    prompt_feedback: Option<Value>,
    usage_metadata: Option<Value>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<GeminiContent<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    continuation_token: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    text: Option<String>,
    thought: Option<bool>,
    #[serde(borrow)]
    function_call: Option<GeminiCallPart<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCallPart<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    /// Vertex AI streams arguments in pieces on request.
    partial_args: Option<Vec<GeminiPartialArg>>,
    will_continue: Option<bool>,
}

impl GeminiReplyReader {
    pub(super) fn new(turn: TurnIx) -> Self {
        Self {
            turn,
            native: Vec::new(),
            reply: ModelReply::default(),
            finish: None,
            finish_message: None,
            block_reason: None,
            usage: None,
            earlier_usage: None,
            frames: 0,
            foreign: ForeignText::default(),
            ended: false,
            has_content: false,
            open_call: None,
            continuation: None,
            continuations: 0,
        }
    }

    fn read_chunk(&mut self, text: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        let chunk: GeminiChunk<'_> = serde_json::from_str(text)
            .map_err(|_| malformed_error("an event is not a generateContent response", text))?;
        self.frames += 1;
        let is_known = chunk.candidates.is_some()
            || chunk.prompt_feedback.is_some()
            || chunk.usage_metadata.is_some();
        self.foreign.add_event(is_known, text);
        // Before any error, so that the tokens of a failed reply are billed.
        if let Some(usage) = &chunk.usage_metadata {
            self.usage = Some(read_usage(usage));
        }
        if let Some(error) = chunk.error {
            return Err(in_stream_error(error));
        }
        if let Some(why) = chunk
            .prompt_feedback
            .as_ref()
            .and_then(finish_reason::find_block_reason)
        {
            self.block_reason = Some(why);
        }
        let candidates = chunk.candidates.into_iter().flatten();
        // dicta asks for one candidate; gateways may still send several.
        let first = candidates.into_iter().find(|c| c.index.unwrap_or(0) == 0);
        let Some(candidate) = first else {
            return Ok(());
        };
        self.has_content |= candidate.content.is_some();
        let parts = candidate.content.and_then(|content| content.parts);
        for raw in parts.into_iter().flatten() {
            self.read_part(raw, new)?;
        }
        // A later chunk without a reason must not erase an earlier one, and a reply without an answer stays so.
        let finish = candidate
            .finish_reason
            .filter(|reason| finish_reason::is_specified(reason));
        let earlier = self.finish.take();
        self.finish = match earlier {
            Some(earlier) if finish_reason::is_final(&earlier) => Some(earlier),
            earlier => finish.or(earlier),
        };
        self.continuation = candidate.continuation_token.or(self.continuation.take());
        self.finish_message = candidate.finish_message.or(self.finish_message.take());
        Ok(())
    }

    /// Reads one response, or an array of them.
    ///
    /// The service sends arrays without `alt=sse`, and wraps some errors in them.
    fn read_chunks(&mut self, text: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        if !text.trim_start().starts_with('[') {
            return self.read_chunk(text, new);
        }
        let all: Vec<&RawValue> =
            serde_json::from_str(text).map_err(|_| malformed_error(NOT_A_RESPONSE, text))?;
        all.into_iter()
            .try_for_each(|one| self.read_chunk(one.get(), new))?;
        // The array closed, so the reply wasn't cut.
        self.ended = true;
        Ok(())
    }

    fn read_part(&mut self, raw: &RawValue, new: &mut NewDeltas) -> Result<(), ProviderError> {
        let part: GeminiPart<'_> = serde_json::from_str(raw.get())
            .map_err(|_| malformed_error("a part has an unknown shape", raw.get()))?;
        if part.text.as_deref() == Some("") && has_single_member(raw) {
            // It has no content, and some models refuse an empty text in the history.
            return Ok(());
        }
        match part.function_call {
            // Only a piece of an open call has no name.
            Some(call) if call.name.is_none() && self.open_call.is_some() => {
                return self.continue_call(call, raw, new);
            }
            Some(call) => {
                self.close_call(new)?;
                self.native.push(Arc::from(raw.to_owned()));
                self.read_call(call, raw, new)?;
            }
            None => self.native.push(Arc::from(raw.to_owned())),
        }
        if let Some(text) = part.text {
            let (part, all) = if part.thought == Some(true) {
                (DeltaPart::Thought, &mut self.reply.thought)
            } else {
                (DeltaPart::Text, &mut self.reply.text)
            };
            all.push_str(&text);
            new.push(NewDelta { part, text });
        }
        Ok(())
    }

    /// Reads a whole call, or its beginning. The caller has added its part to `native`.
    fn read_call(
        &mut self,
        call: GeminiCallPart<'_>,
        raw: &RawValue,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        let at = self.reply.calls.len();
        let Some(name) = call.name else {
            return Err(malformed_error("a function call without a name", raw.get()));
        };
        if at >= MAX_CALLS {
            return Err(ProviderError::Malformed(format!(
                "it makes more than {MAX_CALLS} calls"
            )));
        }
        // A call without arguments may omit the member.
        let args = call.args.map_or("{}", RawValue::get);
        let id = call.id.filter(|id| !id.is_empty());
        // A repeated id identifies neither call. The native part keeps what arrived.
        let id = id.filter(|id| self.reply.calls.iter().all(|other| other.id != *id));
        self.reply.calls.push(ReplyCall {
            id: id.unwrap_or_else(|| format!("call_{}_{at}", self.turn.0)),
            name,
            raw: args.to_owned(),
        });
        // A streamed call: its arguments are complete only when it closes.
        if call.will_continue == Some(true) || call.partial_args.is_some() {
            let mut open = OpenFunctionCall::new(self.native.len() - 1, at, args, raw)?;
            open.add_args(call.partial_args.unwrap_or_default())?;
            self.open_call = Some(open);
            if call.will_continue != Some(true) {
                self.close_call(new)?;
            }
            return Ok(());
        }
        new.push(NewDelta {
            part: DeltaPart::Args(CallIx::from_position(at)),
            text: args.to_owned(),
        });
        Ok(())
    }

    /// Reads a part without a name while a call is open: more of its arguments, or its end.
    fn continue_call(
        &mut self,
        call: GeminiCallPart<'_>,
        raw: &RawValue,
        new: &mut NewDeltas,
    ) -> Result<(), ProviderError> {
        if let Some(open) = &mut self.open_call {
            open.add_args(call.partial_args.unwrap_or_default())?;
            open.merge_part_members(raw)?;
        }
        if call.will_continue == Some(true) {
            return Ok(());
        }
        self.close_call(new)
    }

    /// Completes the open call. Its closing part may be missing, so the next call and the end of the reply close it
    /// too.
    fn close_call(&mut self, new: &mut NewDeltas) -> Result<(), ProviderError> {
        let Some(open) = self.open_call.take() else {
            return Ok(());
        };
        let (args, part) = open.finish()?;
        if let Some(native) = self.native.get_mut(open.native_index) {
            *native = part;
        }
        if let Some(call) = self.reply.calls.get_mut(open.call_index) {
            call.raw.clone_from(&args);
        }
        new.push(NewDelta {
            part: DeltaPart::Args(CallIx::from_position(open.call_index)),
            text: args,
        });
        Ok(())
    }
}

/// Returns whether a part has no member except the one that is known.
fn has_single_member(raw: &RawValue) -> bool {
    let map: Result<serde_json::Map<String, Value>, _> = serde_json::from_str(raw.get());
    map.is_ok_and(|map| map.len() == 1)
}

impl ReplyReader for GeminiReplyReader {
    fn read_frame(
        &mut self,
        frame: SseFrame,
        new: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError> {
        match frame {
            SseFrame::Event { data, complete, .. } => {
                let data = data.trim();
                if serde_json::from_str::<&RawValue>(data).is_err() && !complete {
                    return Err(truncated_error("it ended inside an event"));
                }
                // Neither belongs to this protocol, but gateways send both.
                if data == "[DONE]" {
                    self.ended = true;
                } else if !data.is_empty() {
                    self.read_chunks(data, new)?;
                }
            }
            SseFrame::Stray { text, complete } => match serde_json::from_str::<Value>(&text) {
                // Without `alt=sse`, or for errors, the service sends plain JSON lines.
                Ok(Value::Object(_) | Value::Array(_)) => self.read_chunks(&text, new)?,
                _ if !complete => {
                    return Err(cut_line_error());
                }
                _ => {
                    self.foreign.add_line(&text);
                }
            },
        }
        Ok(StreamProgress::More)
    }

    fn read_document(&mut self, body: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        match serde_json::from_str::<&RawValue>(body) {
            Ok(raw) if raw.get().starts_with(['{', '[']) => {}
            _ => return Err(unreadable_document_error(NOT_A_RESPONSE, body)),
        }
        self.read_chunks(body, new)?;
        self.ended = true;
        Ok(())
    }

    fn take_continuation_member(&mut self) -> Option<String> {
        if self.finish.as_deref() != Some(finish_reason::CONTINUATION)
            || self.continuations >= MAX_CONTINUATIONS
        {
            return None;
        }
        // Without a token there is nothing to continue from, and `finish` reports the cut.
        let token = self.continuation.take()?;
        self.continuations += 1;
        // The next reply brings its own reason; the text and calls so far stay.
        self.finish = None;
        self.finish_message = None;
        self.ended = false;
        // Each reply reports only its own tokens, so add them up.
        let usage = usage_or_one_call(self.usage.take());
        self.earlier_usage = Some(
            self.earlier_usage
                .map_or(usage, |before| before.plus(usage)),
        );
        Some(format!("\"continuationToken\":{}", Value::from(token)))
    }

    fn finish(mut self: Box<Self>) -> Result<CompletedReply, ProviderError> {
        // The stream may end before the piece that closes the last call.
        self.close_call(&mut NewDeltas::new())?;
        let stop = match (&self.block_reason, &self.finish) {
            // A blocked prompt wins over any finish reason.
            (Some(why), _) => finish_reason::blocked_prompt_stop(why),
            (None, Some(finish)) => {
                let has_calls = !self.reply.calls.is_empty();
                finish_reason::read_finish_reason(
                    finish,
                    self.finish_message.as_deref(),
                    has_calls,
                )?
            }
            (None, None) if self.ended && self.has_content => StopReason::Unknown,
            (None, None) => {
                return Err(unfinished_error(
                    &self.foreign,
                    self.frames,
                    "a finish reason",
                    NOT_A_RESPONSE,
                ));
            }
        };
        let usage = usage_or_one_call(self.billed_usage());
        Ok(CompletedReply {
            native: self.native,
            reply: ModelReply { stop, ..self.reply },
            usage,
        })
    }

    fn billed_usage(&self) -> Option<TokenUsage> {
        match (self.earlier_usage, self.usage) {
            (Some(before), Some(usage)) => Some(before.plus(usage)),
            (before, usage) => before.or(usage),
        }
    }
}

/// Reads the counts, which are cumulative. `candidatesTokenCount` excludes thinking; dicta's count includes it.
fn read_usage(usage: &Value) -> TokenUsage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    let thinking = number("thoughtsTokenCount");
    TokenUsage {
        input: sum(
            number("promptTokenCount"),
            number("toolUsePromptTokenCount"),
        ),
        output: sum(number("candidatesTokenCount"), thinking),
        cached: number("cachedContentTokenCount"),
        thinking,
        calls: 1,
    }
}

//! The view of a transcript that checks get, prepared once for all evals of a transcript and all judged messages.
//!
//! Everything is computed on first use and kept. All prefixes of a transcript share what does not depend on their end
//! ([`TranscriptIndex`]): a prefix sees the first messages, calls and results. Threads share checks, but not
//! subjects.

mod transcript_index;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::transcript_index::TranscriptIndex;
use super::grounding::GroundingSources;
use super::text::lowercase;
use super::{CancelFlag, TranscriptSpan};
use crate::event::Redactor;
use crate::model::{MessageRole, ToolCall, Transcript, TranscriptPart};

pub(super) use self::transcript_index::CheckCacheKey;
pub use self::transcript_index::LocatedToolResult;

/// The view of a check: a transcript, or its messages up to one, prepared once for all evals.
/// Calls are joined with their results by call id; texts are lower-cased at most once.
#[derive(Debug)]
pub struct Subject<'t> {
    /// The transcript.
    pub transcript: &'t Transcript<'t>,
    /// The check reads messages `0..end`.
    pub end: usize,
    index: Rc<TranscriptIndex<'t>>,
    /// The number of assistant messages before the end.
    assistant_text_count: OnceCell<usize>,
    /// The number of calls before the end.
    call_count: OnceCell<usize>,
    empty_text: MessageText<'t>,
    cancel_flag: Option<CancelFlag>,
    redactor: Option<Arc<Redactor>>,
}

/// The text of one assistant message, or of one tool result.
#[derive(Debug, Default)]
pub struct MessageText<'t> {
    /// The position of the message; `None` without an assistant message; the text is then empty.
    pub message: Option<usize>,
    /// The text parts of the message, joined with a line break.
    pub text: Cow<'t, str>,
    /// The text in lower case; `None` inside if the text itself is in lower case.
    lowercase_cell: OnceCell<Option<String>>,
}

/// A call that the agent made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectCall<'t> {
    /// The position of the assistant message that made it.
    pub message: usize,
    /// The position of the call among the message's parts.
    pub part: usize,
    /// The call.
    pub call: &'t ToolCall<'t>,
}

impl<'t> MessageText<'t> {
    fn new(message: usize, text: Cow<'t, str>) -> Self {
        Self {
            message: Some(message),
            text,
            lowercase_cell: OnceCell::new(),
        }
    }

    /// Returns the text in lower case, character by character.
    pub fn lowercase(&self) -> &str {
        // `None` if the text is in lower case already, so most texts are not copied.
        let folded =
            self.lowercase_cell
                .get_or_init(|| match lowercase::to_lowercase(&self.text) {
                    Cow::Owned(folded) => Some(folded),
                    Cow::Borrowed(_) => None,
                });
        folded.as_deref().unwrap_or(&self.text)
    }
}

impl<'t> Subject<'t> {
    /// Creates a subject of the whole transcript.
    pub fn new(transcript: &'t Transcript<'t>) -> Self {
        Self::from_index(
            Rc::new(TranscriptIndex::new(transcript)),
            transcript.messages.len(),
        )
    }

    /// Creates a subject of messages `0..end`, as an eval with `every_turn` sees them. Results after `end` do not
    /// exist for it.
    pub fn prefix(transcript: &'t Transcript<'t>, end: usize) -> Self {
        Self::from_index(Rc::new(TranscriptIndex::new(transcript)), end)
    }

    /// Returns a subject of another prefix of the same transcript. It shares the prepared data and the cancellation
    /// flag.
    #[must_use]
    pub fn with_end(&self, end: usize) -> Self {
        Self {
            cancel_flag: self.cancel_flag.clone(),
            redactor: self.redactor.clone(),
            ..Self::from_index(Rc::clone(&self.index), end)
        }
    }

    fn from_index(index: Rc<TranscriptIndex<'t>>, end: usize) -> Self {
        let transcript = index.transcript;
        Self {
            transcript,
            // A prefix can be requested beyond the end, as for an eval of the whole transcript.
            end: end.min(transcript.messages.len()),
            index,
            assistant_text_count: OnceCell::new(),
            call_count: OnceCell::new(),
            empty_text: MessageText::default(),
            cancel_flag: None,
            redactor: None,
        }
    }

    /// Returns the subject with the run's secrets, for checks that cut the output of a program.
    #[must_use]
    pub fn with_redactor(mut self, redactor: &Arc<Redactor>) -> Self {
        self.redactor = Some(Arc::clone(redactor));
        self
    }

    /// Returns a text without the run's secrets. A check must call it before it cuts the text: a part of a secret is
    /// not recognized later.
    pub(super) fn redact<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        let clean = self.redactor.as_ref().and_then(|all| all.redact(&text));
        clean.map_or(text, Cow::Owned)
    }

    /// Returns bytes without the run's secrets, as [`Self::redact`] does.
    pub(super) fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let redactor = self.redactor.as_ref();
        let clean = redactor.and_then(|all| all.redact_bytes(bytes));
        clean.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// Returns the subject with a cancellation flag for its checks.
    #[must_use]
    pub fn with_cancel_flag(mut self, stop: &CancelFlag) -> Self {
        self.cancel_flag = Some(stop.clone());
        self
    }

    /// Returns `true` if the finding is no longer needed. A loop over messages then stops, and its finding is
    /// dropped.
    pub fn is_cancelled(&self) -> bool {
        self.cancel_flag
            .as_ref()
            .is_some_and(CancelFlag::is_cancelled)
    }

    /// Returns the items until the finding is no longer needed.
    pub(super) fn until_cancelled<I: IntoIterator>(
        &self,
        items: I,
    ) -> impl Iterator<Item = I::Item> {
        // Checked before each item: one item is a message or a call, which is quick.
        items.into_iter().take_while(|_| !self.is_cancelled())
    }

    /// Returns the texts of the assistant messages, in order. A message without text (only calls) has the empty text.
    pub fn assistant_texts(&self) -> &[MessageText<'t>] {
        // The index has the texts of all messages, in order, so a binary search finds the end.
        let all = self.index.assistant_texts();
        let is_before =
            |message_text: &MessageText<'_>| message_text.message.is_some_and(|at| at < self.end);
        let count = self
            // Computed once for each subject, because checks call this often.
            .assistant_text_count
            .get_or_init(|| all.partition_point(is_before));
        &all[..*count]
    }

    /// Returns `true` if the agent has written a message before the end, also one without text.
    pub(super) fn has_answer(&self) -> bool {
        let messages = &self.transcript.messages[..self.end];
        messages
            .iter()
            .any(|message| message.role == MessageRole::Assistant)
    }

    /// Returns the output: the text of the last assistant message. If there is none, the empty text; that is not
    /// missing data.
    pub fn output(&self) -> &MessageText<'t> {
        self.assistant_texts().last().unwrap_or(&self.empty_text)
    }

    /// Returns `true` if the output is calls without a text, or a message with calls that promptfoo's results have as a
    /// structure.
    pub(super) fn has_calls_as_output(&self) -> bool {
        let output = self.output();
        let Some(at) = output.message else {
            return false;
        };
        let message = &self.transcript.messages[at];
        let is_call = |part: &TranscriptPart<'_>| matches!(part, TranscriptPart::ToolCall(_));
        let is_structure = || {
            let metadata = message.metadata.as_ref();
            metadata.is_some_and(|json| json.parse_value()["output_type"] == "message")
        };
        message.parts.iter().any(is_call) && (output.text.trim().is_empty() || is_structure())
    }

    /// Returns the calls of all assistant messages, in order.
    pub fn calls(&self) -> &[SubjectCall<'t>] {
        let all = self.index.calls();
        let is_before = |call: &SubjectCall<'_>| call.message < self.end;
        let count = self
            .call_count
            .get_or_init(|| all.partition_point(is_before));
        &all[..*count]
    }

    /// Returns the arguments of `self.calls()[call]`; no text at all is the empty object. The error explains why they
    /// are not an object.
    pub fn arguments(&self, call: usize) -> Result<&Map<String, Value>, &str> {
        self.index.arguments(call)
    }

    /// Returns the value of the transcript's own metadata at a dotted path (`latency_ms`, `usage.input`); `null`
    /// counts as missing.
    pub fn metadata(&self, path: &str) -> Option<&Value> {
        lookup_path(self.transcript_metadata()?, path)
    }

    /// Returns all of the transcript's own metadata.
    pub(super) fn transcript_metadata(&self) -> Option<&Value> {
        self.index.metadata()
    }

    /// Returns the cache of a check, shared by all messages of the transcript; empty at first. It must contain only
    /// data that does not depend on where this subject ends.
    pub(super) fn check_cache<T: Default + 'static>(&self, key: &CheckCacheKey) -> Rc<T> {
        self.index.check_cache(key)
    }

    /// Returns the tool results of the whole transcript as sources of facts, with the texts of users and of the
    /// system if they count. Of its locations, only those before this subject's end count.
    pub(super) fn grounding_sources(&self, user: bool, system: bool) -> &GroundingSources<'t> {
        self.index.grounding_sources(user, system)
    }

    /// Returns a location in the text of an assistant message. `None` without a message, or if the range crosses
    /// a part.
    pub fn text_span(
        &self,
        message_text: &MessageText<'_>,
        bytes: &Range<usize>,
    ) -> Option<TranscriptSpan> {
        let message = message_text.message?;
        // The position of the part in the joined text.
        let mut from = 0;
        for (part, content) in self.transcript.messages[message].parts.iter().enumerate() {
            let TranscriptPart::Text(text) = content else {
                continue;
            };
            let to = from + text.len();
            if (from..=to).contains(&bytes.start) && bytes.end <= to {
                return Some(TranscriptSpan {
                    message,
                    part,
                    bytes: bytes.start - from..bytes.end - from,
                });
            }
            // The parts are joined with a line break of one byte.
            from = to + 1;
        }
        None
    }

    /// Returns the location of `self.calls()[call]` as a whole.
    pub fn call_span(&self, call: usize) -> TranscriptSpan {
        let call = &self.calls()[call];
        TranscriptSpan {
            message: call.message,
            part: call.part,
            bytes: 0..0,
        }
    }

    /// Returns a location in the result of `self.calls()[call]`.
    pub fn result_span(&self, call: usize, bytes: Range<usize>) -> Option<TranscriptSpan> {
        let LocatedToolResult { message, result } = self.result(call)?;
        let parts = &self.transcript.messages[message].parts;
        let part = parts.iter().position(
            // By address: several results may have the same call id and content.
            |part| matches!(part, TranscriptPart::ToolResult(other) if std::ptr::eq(other, result)),
        )?;
        Some(TranscriptSpan {
            message,
            part,
            bytes,
        })
    }

    /// Returns the result of `self.calls()[call]`, if the call has one before the end.
    pub fn result(&self, call: usize) -> Option<LocatedToolResult<'t>> {
        let result = self.index.results().get(call).copied().flatten();
        // A result after the end does not exist for this prefix.
        result.filter(|located| located.message < self.end)
    }

    /// Returns the text of the result of `self.calls()[call]`, for searching; lower-cased at most once.
    pub fn result_text(&self, call: usize) -> Option<&MessageText<'t>> {
        let answer = self.index.result_texts().get(call)?.as_ref();
        // As for `result`: a prefix does not see later results.
        answer.filter(|message_text| message_text.message.is_some_and(|at| at < self.end))
    }
}

/// Returns the value at a dotted path; `null` counts as missing.
pub(super) fn lookup_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut at = value;
    for step in path.split('.') {
        at = match at {
            // A number is a position in a list, as in `messages.0.role`.
            Value::Object(map) => map.get(step)?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    (!at.is_null()).then_some(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::transcript;
    use super::*;

    #[test]
    fn the_output_is_the_last_assistant_message_of_the_prefix() {
        let t = transcript(&json!({"messages": [
            {"role": "user", "content": "Q"}, {"role": "assistant", "content": "ONE"},
            {"role": "user", "content": "Q"}, {"role": "assistant", "content": "Two"},
            {"role": "tool", "content": "T"}]}));
        let full = Subject::new(&t);
        assert_eq!(
            (full.output().message, &*full.output().text),
            (Some(3), "Two")
        );
        assert_eq!(full.output().lowercase(), "two");
        assert_eq!(full.assistant_texts().len(), 2);
        let early = Subject::prefix(&t, 3);
        assert_eq!(
            (early.output().message, early.output().lowercase()),
            (Some(1), "one")
        );
        let none = Subject::prefix(&t, 1);
        assert_eq!((none.output().message, &*none.output().text), (None, ""));
        assert!(none.calls().is_empty());
        assert_eq!(Subject::prefix(&t, 99).end, 5);
    }

    #[test]
    fn results_join_their_calls() {
        let call = |id: &str, name: &str| json!({"id": id, "function": {"name": name}});
        let t = transcript(&json!({"messages": [
            {"role": "assistant", "tool_calls": [call("a", "x"), call("b", "y"), call("lost", "z")]},
            {"role": "tool", "tool_call_id": "b", "content": "for b"},
            {"role": "tool", "tool_call_id": "a", "content": "for a"},
            {"role": "assistant", "tool_calls": [call("a", "again"), call("a", "twice")]},
            {"role": "tool", "tool_call_id": "a", "content": "second a"},
            {"role": "tool", "tool_call_id": "a", "content": "third a"},
            {"role": "tool", "tool_call_id": "zz", "content": "nobody's"},
            {"role": "assistant", "tool_calls": [call("", "no id")]},
            {"role": "tool", "content": "in order"},
            {"role": "user", "tool_calls": [call("u", "not the agent's")]}]}));
        let subject = Subject::new(&t);
        let joined: Vec<_> = (0..subject.calls().len())
            .map(|ix| {
                let call = subject.calls()[ix];
                let result = subject.result(ix);
                let result = result.map(|located| (located.message, &*located.result.content));
                (call.message, &*call.call.name, result)
            })
            .collect();
        assert_eq!(
            joined,
            [
                (0, "x", Some((2, "for a"))),
                (0, "y", Some((1, "for b"))),
                (0, "z", None),
                (3, "again", Some((4, "second a"))),
                (3, "twice", Some((5, "third a"))),
                (7, "no id", Some((8, "in order"))),
            ]
        );
        let prefix = Subject::prefix(&t, 2);
        assert_eq!(prefix.result(0), None, "not answered yet at message 1");
        assert!(prefix.result(1).is_some());
    }
}

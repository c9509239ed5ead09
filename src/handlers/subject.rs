//! What a check looks at, prepared once for all evals of a transcript and for all its messages that are judged.
//!
//! Everything is made when it is first asked for and kept. What does not depend on where a subject ends is shared by all
//! prefixes of a transcript ([`Whole`]): a prefix sees the first of the messages, calls and answers. Not shared by
//! threads: checks are, subjects are not.

mod transcript_index;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use serde_json::{Map, Value};

use self::transcript_index::TranscriptIndex;
use super::grounding::GroundingSources;
use super::text::lowercase;
use super::{CancelFlag, TranscriptSpan};
use crate::model::{ToolCall, ToolResult, Transcript, TranscriptPart};

pub(super) use self::transcript_index::CheckCacheKey;

/// What a check looks at: a transcript, or its messages up to one, prepared once for all evals.
/// Calls are joined with their results by call id; texts are lower-cased at most once.
#[derive(Debug)]
pub struct Subject<'t> {
    /// The transcript.
    pub transcript: &'t Transcript<'t>,
    /// Messages `0..end` are looked at.
    pub end: usize,
    index: Rc<TranscriptIndex<'t>>,
    /// How many of the assistant messages, and of the calls, stand before the end.
    assistant_text_count: OnceCell<usize>,
    call_count: OnceCell<usize>,
    empty_text: MessageText<'t>,
    cancel_flag: Option<CancelFlag>,
}

/// The text of one assistant message, or of one tool's answer.
#[derive(Debug, Default)]
pub struct MessageText<'t> {
    /// The message's position; `None`: there is no assistant message, and this is the empty text.
    pub message: Option<usize>,
    /// Its text parts, joined with a line break.
    pub text: Cow<'t, str>,
    /// `None` inside: the text is in lower case already.
    lowercase_cell: OnceCell<Option<String>>,
}

/// A call the agent made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectCall<'t> {
    /// The position of the assistant message that made it.
    pub message: usize,
    /// Its position among the message's parts.
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

    /// The text in lower case, character by character.
    pub fn lowercase(&self) -> &str {
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
    /// The whole transcript.
    pub fn new(transcript: &'t Transcript<'t>) -> Self {
        Self::from_index(
            Rc::new(TranscriptIndex::new(transcript)),
            transcript.messages.len(),
        )
    }

    /// Messages `0..end` of a transcript: what an eval sees at `every_turn`. Results after `end` are not there yet.
    pub fn prefix(transcript: &'t Transcript<'t>, end: usize) -> Self {
        Self::from_index(Rc::new(TranscriptIndex::new(transcript)), end)
    }

    /// The same as [`Subject::prefix`] of this one's transcript, with all that this one has prepared, stop included.
    #[must_use]
    pub fn with_end(&self, end: usize) -> Self {
        Self {
            cancel_flag: self.cancel_flag.clone(),
            ..Self::from_index(Rc::clone(&self.index), end)
        }
    }

    fn from_index(index: Rc<TranscriptIndex<'t>>, end: usize) -> Self {
        let transcript = index.transcript;
        Self {
            transcript,
            end: end.min(transcript.messages.len()),
            index,
            assistant_text_count: OnceCell::new(),
            call_count: OnceCell::new(),
            empty_text: MessageText::default(),
            cancel_flag: None,
        }
    }

    /// The same, for checks that are to stop when told.
    #[must_use]
    pub fn with_cancel_flag(mut self, stop: &CancelFlag) -> Self {
        self.cancel_flag = Some(stop.clone());
        self
    }

    /// Whether nobody wants the finding any more: a loop over messages asks, and leaves. What it found is dropped.
    pub fn is_cancelled(&self) -> bool {
        self.cancel_flag
            .as_ref()
            .is_some_and(CancelFlag::is_cancelled)
    }

    /// The items, until nobody wants the finding any more.
    pub(super) fn until_cancelled<I: IntoIterator>(
        &self,
        items: I,
    ) -> impl Iterator<Item = I::Item> {
        items.into_iter().take_while(|_| !self.is_cancelled())
    }

    /// The texts of the assistant messages, in order; messages without text (calls alone) are the empty text.
    pub fn assistant_texts(&self) -> &[MessageText<'t>] {
        let all = self.index.assistant_texts();
        let is_before = |said: &MessageText<'_>| said.message.is_some_and(|at| at < self.end);
        let count = self
            .assistant_text_count
            .get_or_init(|| all.partition_point(is_before));
        &all[..*count]
    }

    /// The output: the text of the last assistant message. Without one the empty text, which is not missing data.
    pub fn output(&self) -> &MessageText<'t> {
        self.assistant_texts().last().unwrap_or(&self.empty_text)
    }

    /// The calls of all assistant messages, in order.
    pub fn calls(&self) -> &[SubjectCall<'t>] {
        let all = self.index.calls();
        let is_before = |call: &SubjectCall<'_>| call.message < self.end;
        let count = self
            .call_count
            .get_or_init(|| all.partition_point(is_before));
        &all[..*count]
    }

    /// The arguments of `self.calls()[call]`; no text at all is the empty object. The error says why they are no object.
    pub fn arguments(&self, call: usize) -> Result<&Map<String, Value>, &str> {
        self.index.arguments(call)
    }

    /// The transcript's own metadata at a dotted path (`latency_ms`, `usage.input`); `null` is no value.
    pub fn metadata(&self, path: &str) -> Option<&Value> {
        lookup_path(self.transcript_metadata()?, path)
    }

    /// The transcript's own metadata as a whole.
    pub(super) fn transcript_metadata(&self) -> Option<&Value> {
        self.index.metadata()
    }

    /// What a check keeps for all the messages it is asked about; made empty. Only what does not depend on where this
    /// subject ends belongs there.
    pub(super) fn check_cache<T: Default + 'static>(&self, of: &CheckCacheKey) -> Rc<T> {
        self.index.check_cache(of)
    }

    /// The tool results of the whole transcript, with the texts of users and of the system where these count, to look
    /// facts up in. Of the places it names, those before this subject's end count.
    pub(super) fn grounding_sources(&self, user: bool, system: bool) -> &GroundingSources<'t> {
        self.index.grounding_sources(user, system)
    }

    /// A place in what an assistant message said. `None` where there is no message, or the range leaves a part.
    pub fn text_span(
        &self,
        said: &MessageText<'_>,
        bytes: &Range<usize>,
    ) -> Option<TranscriptSpan> {
        let message = said.message?;
        let mut from = 0;
        for (part, of) in self.transcript.messages[message].parts.iter().enumerate() {
            let TranscriptPart::Text(text) = of else {
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
            // Texts are joined with a line break.
            from = to + 1;
        }
        None
    }

    /// `self.calls()[call]` as a whole.
    pub fn call_span(&self, call: usize) -> TranscriptSpan {
        let call = &self.calls()[call];
        TranscriptSpan {
            message: call.message,
            part: call.part,
            bytes: 0..0,
        }
    }

    /// A place in what was answered to `self.calls()[call]`.
    pub fn result_span(&self, call: usize, bytes: Range<usize>) -> Option<TranscriptSpan> {
        let (message, result) = self.result(call)?;
        let parts = &self.transcript.messages[message].parts;
        let part = parts.iter().position(
            |part| matches!(part, TranscriptPart::ToolResult(own) if std::ptr::eq(own, result)),
        )?;
        Some(TranscriptSpan {
            message,
            part,
            bytes,
        })
    }

    /// What was answered to `self.calls()[call]`, and in which message; `None`: nothing (yet).
    pub fn result(&self, call: usize) -> Option<(usize, &'t ToolResult<'t>)> {
        let result = self.index.results().get(call).copied().flatten();
        result.filter(|(message, _)| *message < self.end)
    }

    /// The text that was answered to `self.calls()[call]`, to be searched; lower-cased at most once.
    pub fn result_text(&self, call: usize) -> Option<&MessageText<'t>> {
        let answer = self.index.result_texts().get(call)?.as_ref();
        answer.filter(|said| said.message.is_some_and(|at| at < self.end))
    }
}

/// What stands at a dotted path; `null` is no value.
pub(super) fn lookup_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut at = value;
    for step in path.split('.') {
        at = match at {
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
        let whole = Subject::new(&t);
        assert_eq!(
            (whole.output().message, &*whole.output().text),
            (Some(3), "Two")
        );
        assert_eq!(whole.output().lowercase(), "two");
        assert_eq!(whole.assistant_texts().len(), 2);
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
    fn results_find_their_calls() {
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
                let result = subject.result(ix).map(|(at, r)| (at, &*r.content));
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

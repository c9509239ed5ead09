//! What a check looks at, prepared once for all evals of a transcript (or of its messages up to one).
//!
//! Everything is made when it is first asked for and kept. Not shared by threads: checks are, subjects are not.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::text::fold;
use super::{Mark, Stop};
use crate::model::{Part, Role, ToolCall, ToolResult, Transcript};

/// What a check looks at: a transcript, or its messages up to one, prepared once for all evals.
/// Calls are joined with their results by call id; texts are lower-cased at most once.
#[derive(Debug)]
pub struct Subject<'t> {
    /// The transcript.
    pub transcript: &'t Transcript<'t>,
    /// Messages `0..end` are looked at.
    pub end: usize,
    said: OnceCell<Vec<Said<'t>>>,
    silence: Said<'t>,
    calls: OnceCell<Vec<Call<'t>>>,
    results: OnceCell<Vec<Option<(usize, &'t ToolResult<'t>)>>>,
    answers: OnceCell<Vec<Option<Said<'t>>>>,
    /// By call: the arguments as an object, or why they are none.
    arguments: OnceCell<Vec<Result<Map<String, Value>, String>>>,
    metadata: OnceCell<Option<Value>>,
    stop: Option<Stop>,
}

/// The text of one assistant message, or of one tool's answer.
#[derive(Debug, Default)]
pub struct Said<'t> {
    /// The message's position; `None`: there is no assistant message, and this is the empty text.
    pub message: Option<usize>,
    /// Its text parts, joined with a line break.
    pub text: Cow<'t, str>,
    /// `None` inside: the text is in lower case already.
    folded: OnceCell<Option<String>>,
}

/// A call the agent made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'t> {
    /// The position of the assistant message that made it.
    pub message: usize,
    /// Its position among the message's parts.
    pub part: usize,
    /// The call.
    pub call: &'t ToolCall<'t>,
}

impl Said<'_> {
    /// The text in lower case, character by character.
    pub fn folded(&self) -> &str {
        let folded = self.folded.get_or_init(|| match fold::fold(&self.text) {
            Cow::Owned(folded) => Some(folded),
            Cow::Borrowed(_) => None,
        });
        folded.as_deref().unwrap_or(&self.text)
    }
}

impl<'t> Subject<'t> {
    /// The whole transcript.
    pub fn new(transcript: &'t Transcript<'t>) -> Self {
        Self::prefix(transcript, transcript.messages.len())
    }

    /// Messages `0..end` of a transcript: what an eval sees at `every_turn`. Results after `end` are not there yet.
    pub fn prefix(transcript: &'t Transcript<'t>, end: usize) -> Self {
        Self {
            transcript,
            end: end.min(transcript.messages.len()),
            said: OnceCell::new(),
            silence: Said::default(),
            calls: OnceCell::new(),
            results: OnceCell::new(),
            answers: OnceCell::new(),
            arguments: OnceCell::new(),
            metadata: OnceCell::new(),
            stop: None,
        }
    }

    /// The same, for checks that are to stop when told.
    #[must_use]
    pub fn heeding(mut self, stop: &Stop) -> Self {
        self.stop = Some(stop.clone());
        self
    }

    /// Whether nobody wants the finding any more: a loop over messages asks, and leaves. What it found is dropped.
    pub fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_set)
    }

    /// The texts of the assistant messages, in order; messages without text (calls alone) are the empty text.
    pub fn said(&self) -> &[Said<'t>] {
        self.said.get_or_init(|| {
            let messages = self.transcript.messages[..self.end].iter().enumerate();
            messages
                .filter(|(_, message)| message.role == Role::Assistant)
                .map(|(at, message)| Said {
                    message: Some(at),
                    text: message.text(),
                    folded: OnceCell::new(),
                })
                .collect()
        })
    }

    /// The output: the text of the last assistant message. Without one the empty text, which is not missing data.
    pub fn output(&self) -> &Said<'t> {
        self.said().last().unwrap_or(&self.silence)
    }

    /// The calls of all assistant messages, in order.
    pub fn calls(&self) -> &[Call<'t>] {
        self.calls.get_or_init(|| {
            let messages = self.transcript.messages[..self.end].iter().enumerate();
            messages
                .filter(|(_, message)| message.role == Role::Assistant)
                .flat_map(|(at, message)| {
                    let parts = message.parts.iter().enumerate();
                    parts.map(move |(nth, part)| (at, nth, part))
                })
                .filter_map(|(message, nth, part)| match part {
                    Part::ToolCall(call) => Some(Call {
                        message,
                        part: nth,
                        call,
                    }),
                    _ => None,
                })
                .collect()
        })
    }

    /// The arguments of `self.calls()[call]`; no text at all is the empty object. The error says why they are no object.
    pub fn arguments(&self, call: usize) -> Result<&Map<String, Value>, &str> {
        let all = self.arguments.get_or_init(|| {
            let calls = self.calls().iter();
            calls.map(|c| read_arguments(&c.call.arguments)).collect()
        });
        all[call].as_ref().map_err(String::as_str)
    }

    /// The transcript's own metadata at a dotted path (`latency_ms`, `usage.input`); `null` is no value.
    pub fn metadata(&self, path: &str) -> Option<&Value> {
        at_path(self.all_metadata()?, path)
    }

    /// The transcript's own metadata as a whole.
    pub(super) fn all_metadata(&self) -> Option<&Value> {
        let all = self.metadata.get_or_init(|| {
            let metadata = self.transcript.metadata.as_ref()?;
            serde_json::from_str(metadata.get()).ok()
        });
        all.as_ref()
    }

    /// A place in what an assistant message said. `None` where there is no message, or the range leaves a part.
    pub fn mark_said(&self, said: &Said<'_>, bytes: &Range<usize>) -> Option<Mark> {
        let message = said.message?;
        let mut from = 0;
        for (part, of) in self.transcript.messages[message].parts.iter().enumerate() {
            let Part::Text(text) = of else { continue };
            let to = from + text.len();
            if (from..=to).contains(&bytes.start) && bytes.end <= to {
                return Some(Mark {
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
    pub fn mark_call(&self, call: usize) -> Mark {
        let call = &self.calls()[call];
        Mark {
            message: call.message,
            part: call.part,
            bytes: 0..0,
        }
    }

    /// A place in what was answered to `self.calls()[call]`.
    pub fn mark_result(&self, call: usize, bytes: Range<usize>) -> Option<Mark> {
        let (message, result) = self.result(call)?;
        let parts = &self.transcript.messages[message].parts;
        let part = parts
            .iter()
            .position(|part| matches!(part, Part::ToolResult(own) if std::ptr::eq(own, result)))?;
        Some(Mark {
            message,
            part,
            bytes,
        })
    }

    /// What was answered to `self.calls()[call]`, and in which message; `None`: nothing (yet).
    pub fn result(&self, call: usize) -> Option<(usize, &'t ToolResult<'t>)> {
        let results = self.results.get_or_init(|| self.join());
        results.get(call).copied().flatten()
    }

    /// The text that was answered to `self.calls()[call]`, to be searched; lower-cased at most once.
    pub fn answer(&self, call: usize) -> Option<&Said<'t>> {
        let answers = self.answers.get_or_init(|| {
            let results = (0..self.calls().len()).map(|call| self.result(call));
            let said = |(message, result): (usize, &'t ToolResult<'t>)| Said {
                message: Some(message),
                text: Cow::Borrowed(&*result.content),
                folded: OnceCell::new(),
            };
            results.map(|result| result.map(said)).collect()
        });
        answers.get(call)?.as_ref()
    }

    /// A result answers the newest message that has an unanswered call of its id, and there the first such call. So ids
    /// that are used again in every turn (`call_0`) and calls without ids (all have the empty one) join in order.
    fn join(&self) -> Vec<Option<(usize, &'t ToolResult<'t>)>> {
        let calls = self.calls();
        let mut results = vec![None; calls.len()];
        // By id: the calls that wait, newest message last; within a message the first call last.
        let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut next = 0;
        for (at, message) in self.transcript.messages[..self.end].iter().enumerate() {
            let from = next;
            while next < calls.len() && calls[next].message == at {
                next += 1;
            }
            for ix in (from..next).rev() {
                waiting.entry(&calls[ix].call.id).or_default().push(ix);
            }
            for part in &message.parts {
                if let Part::ToolResult(result) = part
                    && let Some(ix) = waiting.get_mut(&*result.call_id).and_then(Vec::pop)
                {
                    results[ix] = Some((at, result));
                }
            }
        }
        results
    }
}

/// What stands at a dotted path; `null` is no value.
pub(super) fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
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

fn read_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("its arguments are no JSON object".to_owned()),
        Err(why) => Err(format!("its arguments are no JSON: {why}")),
    }
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
        assert_eq!(whole.output().folded(), "two");
        assert_eq!(whole.said().len(), 2);
        let early = Subject::prefix(&t, 3);
        assert_eq!(
            (early.output().message, early.output().folded()),
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

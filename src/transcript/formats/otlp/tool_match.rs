//! The match between tool spans and the calls in the messages.
//!
//! Responsible for the call of a span and for its result. It uses the call's id, else the tool's name and arguments,
//! else the name alone in order. Equal calls need one span each. All searches use an index, because one trace may
//! contain tens of thousands of calls. Does not read the attributes of spans.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Bound, Range};

use super::tool::ToolSpan;
use crate::model::{MessageRole, SourceText, TranscriptMessage, TranscriptPart};
use crate::transcript::fields::compact_json;

/// The place of a call or of a result. The order of places is the order of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ToolPlace {
    /// The index of the draft.
    draft: usize,
    /// The index of its message.
    message: usize,
    /// The index of the part for a call. The number of the added message for a result; 0 is the message itself.
    part: usize,
}

impl ToolPlace {
    /// Returns the first place of a message.
    fn of_message(draft: usize, message: usize) -> Self {
        Self {
            draft,
            message,
            part: 0,
        }
    }
}

/// The results of one call id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ResultKey {
    draft: usize,
    call_id: String,
}

/// A run of tool messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ToolMessageRun {
    draft: usize,
    /// The index after its last message.
    end: usize,
}

/// The calls of all drafts, with the searches that tool spans need.
pub(super) struct ToolCallIndex {
    drafts: Vec<Vec<MessageSlot>>,
    calls: BTreeMap<ToolPlace, CallInfo>,
    /// The calls without a span, by each of the ways to match them.
    unused: HashMap<CallKey, BTreeSet<ToolPlace>>,
    results: HashMap<ResultKey, BTreeSet<ToolPlace>>,
    /// The results without a call id in each run of tool messages.
    unnamed_results: HashMap<ToolMessageRun, Vec<ToolPlace>>,
}

/// A message, and the results that were added after it.
struct MessageSlot {
    message: TranscriptMessage<'static>,
    added: Vec<TranscriptMessage<'static>>,
    /// The index after the tool messages that directly follow this message.
    results_end: usize,
}

#[derive(Debug, Clone)]
struct CallInfo {
    id: String,
    /// The index among the calls of its message.
    index_in_message: usize,
    keys: [CallKey; 3],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CallKey {
    Id(String),
    /// The hash of the tool's name and the arguments without white space, in which programs differ.
    NameAndArguments(u64),
    Name(String),
}

impl CallKey {
    fn from_arguments(name: &str, arguments: &str) -> Self {
        let mut hash = DefaultHasher::new();
        (name, &*compact_json(arguments)).hash(&mut hash);
        Self::NameAndArguments(hash.finish())
    }
}

impl ToolCallIndex {
    /// Returns an index of the messages of all drafts.
    pub(super) fn new(drafts: impl Iterator<Item = Vec<TranscriptMessage<'static>>>) -> Self {
        let mut index = Self {
            drafts: Vec::new(),
            calls: BTreeMap::new(),
            unused: HashMap::new(),
            results: HashMap::new(),
            unnamed_results: HashMap::new(),
        };
        for messages in drafts {
            index.add_draft(messages);
        }
        index
    }

    fn add_draft(&mut self, messages: Vec<TranscriptMessage<'static>>) {
        let draft = self.drafts.len();
        let mut slots: Vec<MessageSlot> = Vec::with_capacity(messages.len());
        for (at, message) in messages.into_iter().enumerate() {
            let mut index_in_message = 0;
            for (part_index, part) in message.parts.iter().enumerate() {
                if let TranscriptPart::ToolCall(call) = part {
                    let place = ToolPlace {
                        draft,
                        message: at,
                        part: part_index,
                    };
                    let keys = [
                        CallKey::Id(call.id.to_string()),
                        CallKey::from_arguments(&call.name, &call.arguments),
                        CallKey::Name(call.name.to_string()),
                    ];
                    for key in &keys {
                        self.unused.entry(key.clone()).or_default().insert(place);
                    }
                    let info = CallInfo {
                        id: call.id.to_string(),
                        index_in_message,
                        keys,
                    };
                    self.calls.insert(place, info);
                    index_in_message += 1;
                }
            }
            if let Some(call_id) = result_call_id(&message).filter(|id| !id.is_empty()) {
                let key = ResultKey {
                    draft,
                    call_id: call_id.to_owned(),
                };
                let place = ToolPlace::of_message(draft, at);
                self.results.entry(key).or_default().insert(place);
            }
            slots.push(MessageSlot {
                message,
                added: Vec::new(),
                results_end: 0,
            });
        }
        let mut results_end = slots.len();
        for (at, slot) in slots.iter_mut().enumerate().rev() {
            slot.results_end = results_end;
            if slot.message.role != MessageRole::Tool {
                results_end = at;
            }
        }
        for (at, slot) in slots.iter().enumerate() {
            if slot.message.role == MessageRole::Tool && result_call_id(&slot.message) == Some("") {
                let run = ToolMessageRun {
                    draft,
                    end: slot.results_end,
                };
                let place = ToolPlace::of_message(draft, at);
                self.unnamed_results.entry(run).or_default().push(place);
            }
        }
        self.drafts.push(slots);
    }

    /// Adds a span to its call in the first of these drafts that has the call: duration and error of the result, or the
    /// whole result. Returns true if the call was found.
    pub(super) fn apply(&mut self, span: &ToolSpan, drafts: Range<usize>) -> bool {
        let Some(place) = self.find_call(span, &drafts) else {
            return false;
        };
        let ToolPlace {
            draft,
            message,
            part,
        } = place;
        let Some(call) = self.calls.get(&place).cloned() else {
            return false;
        };
        for key in &call.keys {
            if let Some(unused) = self.unused.get_mut(key) {
                unused.remove(&place);
            }
        }
        // The messages may leave out the arguments, which the span has.
        if let (Some(TranscriptPart::ToolCall(call)), Some(arguments)) = (
            self.drafts[draft][message].message.parts.get_mut(part),
            &span.arguments,
        ) && call.arguments.is_empty()
        {
            call.arguments = SourceText::from(arguments.clone());
        }
        match self.find_result(place, &call) {
            Some(result) => {
                let slot = &mut self.drafts[draft][result.message];
                span.update_result(match result.part {
                    0 => &mut slot.message,
                    added => &mut slot.added[added - 1],
                });
            }
            None => self.add_result(span, place, &call.id),
        }
        true
    }

    /// Returns the messages of all drafts.
    pub(super) fn finish(self) -> impl Iterator<Item = Vec<TranscriptMessage<'static>>> {
        self.drafts.into_iter().map(|slots| {
            slots
                .into_iter()
                .flat_map(|slot| std::iter::once(slot.message).chain(slot.added))
                .collect()
        })
    }

    fn find_call(&self, span: &ToolSpan, drafts: &Range<usize>) -> Option<ToolPlace> {
        let by_id = span.id.clone().map(CallKey::Id);
        let arguments = span.arguments.as_deref();
        let by_arguments =
            arguments.map(|arguments| CallKey::from_arguments(&span.name, arguments));
        // The name alone is too weak for a span whose id matches no call.
        let by_name = span.id.is_none().then(|| CallKey::Name(span.name.clone()));
        let range = ToolPlace::of_message(drafts.start, 0)..ToolPlace::of_message(drafts.end, 0);
        let first = |key: CallKey| self.unused.get(&key)?.range(range.clone()).next().copied();
        let found = [by_id, by_arguments, by_name].map(|key| key.and_then(first));
        // The earliest draft counts, and in it the strongest match.
        found.into_iter().flatten().min_by_key(|place| place.draft)
    }

    /// Returns the place of the result of a call.
    fn find_result(&self, place: ToolPlace, call: &CallInfo) -> Option<ToolPlace> {
        let ToolPlace { draft, message, .. } = place;
        if call.id.is_empty() {
            // Only the results directly after the call can belong to it, and they have the order of the calls.
            let run = ToolMessageRun {
                draft,
                end: self.drafts[draft][message].results_end,
            };
            return self
                .unnamed_results
                .get(&run)?
                .get(call.index_in_message)
                .copied();
        }
        let key = ResultKey {
            draft,
            call_id: call.id.clone(),
        };
        let results = self.results.get(&key)?;
        let after = Bound::Excluded(ToolPlace::of_message(draft, message));
        results.range((after, Bound::Unbounded)).next().copied()
    }

    /// Adds a result after those of the calls in the same message.
    fn add_result(&mut self, span: &ToolSpan, call_place: ToolPlace, call_id: &str) {
        let ToolPlace { draft, message, .. } = call_place;
        let Some(result) = span.to_result(call_id) else {
            return;
        };
        let results_end = self.drafts[draft][message].results_end;
        let slot = results_end - 1;
        let added = &mut self.drafts[draft][slot].added;
        added.push(result);
        let place = ToolPlace {
            draft,
            message: slot,
            part: added.len(),
        };
        if call_id.is_empty() {
            let run = ToolMessageRun {
                draft,
                end: results_end,
            };
            self.unnamed_results.entry(run).or_default().push(place);
        } else {
            let key = ResultKey {
                draft,
                call_id: call_id.to_owned(),
            };
            self.results.entry(key).or_default().insert(place);
        }
    }
}

/// Returns the call id of a message that is a tool result.
fn result_call_id<'m>(message: &'m TranscriptMessage<'static>) -> Option<&'m str> {
    match message.parts.first() {
        Some(TranscriptPart::ToolResult(result)) => Some(&result.call_id),
        _ => None,
    }
}

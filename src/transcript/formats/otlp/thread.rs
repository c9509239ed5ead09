//! Model calls of one agent as threads: each call repeats what was said before it, and a thread holds everything once.
//!
//! A call goes on with a thread if the thread's messages stand at the beginning of its input, or the thread's last ones do
//! (a window that moved). Instructions (`system`) are not compared; of an answer with calls, only their names are, since
//! many leave out text and thoughts when they repeat it. A call that goes on with none begins another thread.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{JsonText, MessageRole, TranscriptMessage, TranscriptPart};

/// Messages said once.
#[derive(Debug, Default)]
pub(super) struct MessageThread {
    pub(super) messages: Vec<TranscriptMessage<'static>>,
    /// The trace of its first call.
    pub(super) trace: u64,
    /// What each message but instructions is compared by, and where it stands.
    message_keys: Vec<(u64, usize)>,
}

/// How a call relates to a thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ThreadMatch {
    /// It goes on: so many of its input's messages (instructions apart) are known.
    Continues(usize),
    /// The thread holds all of it.
    Contained,
    Unrelated,
}

impl MessageThread {
    /// A thread that begins with a call.
    pub(super) fn new(trace: u64, said: Vec<TranscriptMessage<'static>>) -> Self {
        let mut thread = Self {
            trace,
            ..Self::default()
        };
        thread.append(said, 0);
        thread
    }

    /// How many messages it has, instructions apart.
    pub(super) fn len(&self) -> usize {
        self.message_keys.len()
    }

    /// How a call with these messages relates to it.
    pub(super) fn match_call(
        &self,
        input: &[TranscriptMessage<'static>],
        output: &[TranscriptMessage<'static>],
    ) -> ThreadMatch {
        let asked: Vec<u64> = input.iter().filter_map(message_key).collect();
        let answered: Vec<u64> = output.iter().filter_map(message_key).collect();
        let own: Vec<u64> = self.message_keys.iter().map(|(mark, _)| *mark).collect();
        let whole = [&asked[..], &answered[..]].concat();
        if !whole.is_empty() && own.starts_with(&whole) {
            return ThreadMatch::Contained;
        }
        if own.is_empty() {
            return ThreadMatch::Unrelated;
        }
        let most = own.len().min(asked.len());
        let overlaps = |known: &usize| own[own.len() - known..] == asked[..*known];
        let known = (1..=most).rev().find(overlaps);
        match known {
            Some(known) if known == own.len() || known > 1 => ThreadMatch::Continues(known),
            _ => ThreadMatch::Unrelated,
        }
    }

    /// Takes what a call adds.
    pub(super) fn extend_with_call(
        &mut self,
        known: usize,
        input: Vec<TranscriptMessage<'static>>,
        output: Vec<TranscriptMessage<'static>>,
    ) {
        self.add_reasoning(known, &input);
        self.append(input, known);
        self.append(output, 0);
    }

    /// Some spans tell of thoughts only when they repeat the answer.
    fn add_reasoning(&mut self, known: usize, input: &[TranscriptMessage<'static>]) {
        let own = &self.message_keys[self.message_keys.len() - known..];
        let repeated = input
            .iter()
            .filter(|message| message.role != MessageRole::System);
        for ((_, at), message) in own.iter().zip(repeated) {
            let own = &mut self.messages[*at];
            let is_thought =
                |part: &TranscriptPart<'_>| matches!(part, TranscriptPart::Reasoning(_));
            if message.role == MessageRole::Assistant && !own.parts.iter().any(is_thought) {
                let thoughts = message
                    .parts
                    .iter()
                    .filter(|part| is_thought(part))
                    .cloned();
                own.parts.splice(0..0, thoughts);
            }
        }
    }

    /// Puts a thread behind this one; instructions that are there already are not repeated.
    pub(super) fn append_thread(&mut self, other: Self) {
        self.append(other.messages, 0);
    }

    /// The place of the last message of a call that is known already.
    pub(super) fn last_message_index(
        &self,
        input: &[TranscriptMessage<'static>],
        output: &[TranscriptMessage<'static>],
    ) -> Option<usize> {
        let count = input.iter().chain(output).filter_map(message_key).count();
        Some(self.message_keys.get(count.checked_sub(1)?)?.1)
    }

    fn append(&mut self, messages: Vec<TranscriptMessage<'static>>, mut pass: usize) {
        for message in messages {
            match message_key(&message) {
                Some(_) if pass > 0 => pass -= 1,
                Some(mark) => {
                    self.message_keys.push((mark, self.messages.len()));
                    self.messages.push(message);
                }
                None => {
                    // Instructions once, and none from the part that is known.
                    let known = self.messages.iter().any(|one| one.parts == message.parts);
                    let early = pass > 0 && !self.messages.is_empty();
                    if !known && !early {
                        self.messages.push(message);
                    }
                }
            }
        }
    }
}

/// What a message is recognised by; none for instructions.
fn message_key(message: &TranscriptMessage<'_>) -> Option<u64> {
    if message.role == MessageRole::System {
        return None;
    }
    let mut hash = DefaultHasher::new();
    message.role.as_str().hash(&mut hash);
    let mut calls = 0;
    for part in &message.parts {
        match part {
            TranscriptPart::ToolCall(call) => {
                calls += 1;
                call.name.hash(&mut hash);
            }
            TranscriptPart::ToolResult(result) => result.content.trim().hash(&mut hash),
            _ => {}
        }
    }
    if calls == 0 {
        message.text().trim().hash(&mut hash);
    }
    Some(hash.finish())
}

/// Sets a message's numbers, unless it has some.
pub(super) fn set_metrics(
    message: &mut TranscriptMessage<'static>,
    meta: Option<JsonText<'static>>,
) {
    let has = |meta: &JsonText<'_>| meta.get().contains("\"usage\"");
    if message.metadata.as_ref().is_none_or(|own| !has(own)) && meta.is_some() {
        message.metadata = meta;
    }
}

/// The threads of one agent: the conversation first, then what has nothing in common with it. The longest thread of each
/// trace that went on with none is what was said next.
pub(super) fn join_threads(
    threads: Vec<MessageThread>,
    went_on: &HashSet<u64>,
) -> Vec<MessageThread> {
    let mut traces: Vec<u64> = Vec::new();
    for thread in &threads {
        if !traces.contains(&thread.trace) && !went_on.contains(&thread.trace) {
            traces.push(thread.trace);
        }
    }
    let mut rest: Vec<Option<MessageThread>> = threads.into_iter().map(Some).collect();
    let mut main: Option<MessageThread> = None;
    for trace in traces {
        let mut longest: Option<(usize, usize)> = None;
        for (at, thread) in rest.iter().enumerate() {
            if let Some(thread) = thread
                && thread.trace == trace
                && longest.is_none_or(|(_, len)| thread.len() >= len)
            {
                longest = Some((at, thread.len()));
            }
        }
        let Some(thread) = longest.and_then(|(at, _)| rest[at].take()) else {
            continue;
        };
        match &mut main {
            None => main = Some(thread),
            Some(main) => main.append_thread(thread),
        }
    }
    main.into_iter().chain(rest.into_iter().flatten()).collect()
}

//! Threads of the model calls of one agent. Each call repeats the earlier messages; a thread contains each message
//! once.
//!
//! Responsible for the match between calls and threads. A call continues a thread if its input begins with the messages
//! of the thread, or with its last ones (a moving window). Instructions (`system`) do not count. For a reply with
//! calls, only the names of the calls count, because many programs drop text and reasoning when they repeat it. A call
//! without a match begins a new thread.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{JsonText, MessageRole, TranscriptMessage, TranscriptPart};

/// The messages of a thread, each once.
#[derive(Debug, Default)]
pub(super) struct MessageThread {
    pub(super) messages: Vec<TranscriptMessage<'static>>,
    /// The hash of the trace of the first call.
    pub(super) trace: u64,
    /// The comparison keys of the messages, except instructions.
    message_keys: Vec<MessageKey>,
}

/// The comparison key of a message of a thread.
#[derive(Debug)]
struct MessageKey {
    key: u64,
    /// The index of the message in the thread.
    message_index: usize,
}

/// The relation of a call to a thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ThreadMatch {
    /// The call continues the thread, which has this number of its input messages, without instructions.
    Continues(usize),
    /// The thread already contains the call.
    Contained,
    /// The call belongs to another thread.
    Unrelated,
}

impl MessageThread {
    /// Returns a thread that begins with a call.
    pub(super) fn new(trace: u64, messages: Vec<TranscriptMessage<'static>>) -> Self {
        let mut thread = Self {
            trace,
            ..Self::default()
        };
        thread.append(messages, 0);
        thread
    }

    /// Returns the number of messages without instructions.
    pub(super) fn len(&self) -> usize {
        self.message_keys.len()
    }

    /// Returns the relation of a call to this thread.
    pub(super) fn match_call(
        &self,
        input: &[TranscriptMessage<'static>],
        output: &[TranscriptMessage<'static>],
    ) -> ThreadMatch {
        let input_keys: Vec<u64> = input.iter().filter_map(message_key).collect();
        let output_keys: Vec<u64> = output.iter().filter_map(message_key).collect();
        let thread_keys: Vec<u64> = self.message_keys.iter().map(|known| known.key).collect();
        let call_keys = [&input_keys[..], &output_keys[..]].concat();
        // The call is the beginning of the thread, so another span already recorded it.
        if !call_keys.is_empty() && thread_keys.starts_with(&call_keys) {
            return ThreadMatch::Contained;
        }
        // A thread of instructions only has nothing to compare.
        if thread_keys.is_empty() {
            return ThreadMatch::Unrelated;
        }
        let max_overlap = thread_keys.len().min(input_keys.len());
        let overlaps =
            |known: &usize| thread_keys[thread_keys.len() - known..] == input_keys[..*known];
        // The longest overlap wins: a shorter one can occur by chance.
        let known = (1..=max_overlap).rev().find(overlaps);
        match known {
            // One equal message, such as a short greeting, is not enough for a moving window.
            Some(known) if known == thread_keys.len() || known > 1 => ThreadMatch::Continues(known),
            _ => ThreadMatch::Unrelated,
        }
    }

    /// Adds the new messages of a call.
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

    /// Adds reasoning that a span records only when it repeats the reply.
    fn add_reasoning(&mut self, known: usize, input: &[TranscriptMessage<'static>]) {
        let known_keys = &self.message_keys[self.message_keys.len() - known..];
        // `message_keys` has no instructions, so the input is compared without them.
        let repeated = input
            .iter()
            .filter(|message| message.role != MessageRole::System);
        for (known, message) in known_keys.iter().zip(repeated) {
            let thread_message = &mut self.messages[known.message_index];
            let is_thought =
                |part: &TranscriptPart<'_>| matches!(part, TranscriptPart::Reasoning(_));
            // Reasoning that the thread already has is not added twice.
            if message.role == MessageRole::Assistant
                && !thread_message.parts.iter().any(is_thought)
            {
                let thoughts = message
                    .parts
                    .iter()
                    .filter(|part| is_thought(part))
                    .cloned();
                thread_message.parts.splice(0..0, thoughts);
            }
        }
    }

    /// Appends a thread. Repeated instructions are dropped.
    pub(super) fn append_thread(&mut self, other: Self) {
        self.append(other.messages, 0);
    }

    /// Returns the index of the last message of a call that this thread contains.
    pub(super) fn last_message_index(
        &self,
        input: &[TranscriptMessage<'static>],
        output: &[TranscriptMessage<'static>],
    ) -> Option<usize> {
        let count = input.iter().chain(output).filter_map(message_key).count();
        let last = self.message_keys.get(count.checked_sub(1)?)?;
        Some(last.message_index)
    }

    fn append(&mut self, messages: Vec<TranscriptMessage<'static>>, mut skip_count: usize) {
        for message in messages {
            match message_key(&message) {
                Some(_) if skip_count > 0 => skip_count -= 1,
                Some(key) => {
                    let message_index = self.messages.len();
                    self.message_keys.push(MessageKey { key, message_index });
                    self.messages.push(message);
                }
                None => {
                    // Instructions appear once, and never again from the known part.
                    let is_known = self
                        .messages
                        .iter()
                        .any(|existing| existing.parts == message.parts);
                    let is_before_new = skip_count > 0 && !self.messages.is_empty();
                    if !is_known && !is_before_new {
                        self.messages.push(message);
                    }
                }
            }
        }
    }
}

/// Returns the comparison key of a message; `None` for instructions.
fn message_key(message: &TranscriptMessage<'_>) -> Option<u64> {
    // Instructions may change between calls of one conversation.
    if message.role == MessageRole::System {
        return None;
    }
    // A hash keeps the threads small: only equality matters.
    let mut hash = DefaultHasher::new();
    message.role.as_str().hash(&mut hash);
    let mut calls = 0;
    for part in &message.parts {
        match part {
            // Only the name: programs reformat the arguments when they repeat a call.
            TranscriptPart::ToolCall(call) => {
                calls += 1;
                call.name.hash(&mut hash);
            }
            TranscriptPart::ToolResult(result) => result.content.trim().hash(&mut hash),
            _ => {}
        }
    }
    // Text counts only without calls, because many programs drop it next to calls.
    if calls == 0 {
        message.text().trim().hash(&mut hash);
    }
    Some(hash.finish())
}

/// Sets a message's metadata, unless it has some.
pub(super) fn set_metrics(
    message: &mut TranscriptMessage<'static>,
    meta: Option<JsonText<'static>>,
) {
    // Metadata with token counts comes from the model call itself; a wrapper has none.
    let has_usage = |meta: &JsonText<'_>| meta.get().contains("\"usage\"");
    if message
        .metadata
        .as_ref()
        .is_none_or(|existing| !has_usage(existing))
        && meta.is_some()
    {
        message.metadata = meta;
    }
}

/// Returns the threads of one agent: first the conversation, then unrelated threads. If a trace continues no thread,
/// its longest thread is the next part of the conversation.
pub(super) fn join_threads(
    threads: Vec<MessageThread>,
    continued_traces: &HashSet<u64>,
) -> Vec<MessageThread> {
    let mut traces: Vec<u64> = Vec::new();
    // A trace that continues a thread has its messages there already.
    for thread in &threads {
        if !traces.contains(&thread.trace) && !continued_traces.contains(&thread.trace) {
            traces.push(thread.trace);
        }
    }
    let mut remaining: Vec<Option<MessageThread>> = threads.into_iter().map(Some).collect();
    let mut main: Option<MessageThread> = None;
    for trace in traces {
        let mut longest: Option<(usize, usize)> = None;
        for (at, thread) in remaining.iter().enumerate() {
            if let Some(thread) = thread
                && thread.trace == trace
                // Of equally long threads, the later one counts.
                && longest.is_none_or(|(_, len)| thread.len() >= len)
            {
                longest = Some((at, thread.len()));
            }
        }
        let Some(thread) = longest.and_then(|(at, _)| remaining[at].take()) else {
            continue;
        };
        match &mut main {
            None => main = Some(thread),
            Some(main) => main.append_thread(thread),
        }
    }
    // The main thread first; the rest are branches.
    main.into_iter()
        .chain(remaining.into_iter().flatten())
        .collect()
}

//! Model calls of one agent as threads: each call repeats what was said before it, and a thread holds everything once.
//!
//! A call goes on with a thread if the thread's messages stand at the beginning of its input, or the thread's last ones do
//! (a window that moved). Instructions (`system`) are not compared; of an answer with calls, only their names are, since
//! many leave out text and thoughts when they repeat it. A call that goes on with none begins another thread.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{JsonText, Message, Part, Role};

/// Messages said once.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) messages: Vec<Message<'static>>,
    /// The trace of its first call.
    pub(super) trace: u64,
    /// What each message but instructions is compared by, and where it stands.
    marks: Vec<(u64, usize)>,
}

/// How a call relates to a thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It goes on: so many of its input's messages (instructions apart) are known.
    On(usize),
    /// The thread holds all of it.
    Known,
    No,
}

impl Thread {
    /// A thread that begins with a call.
    pub(super) fn new(trace: u64, said: Vec<Message<'static>>) -> Self {
        let mut thread = Self {
            trace,
            ..Self::default()
        };
        thread.append(said, 0);
        thread
    }

    /// How many messages it has, instructions apart.
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// How a call with these messages relates to it.
    pub(super) fn fit(&self, input: &[Message<'static>], output: &[Message<'static>]) -> Fit {
        let asked: Vec<u64> = input.iter().filter_map(mark).collect();
        let answered: Vec<u64> = output.iter().filter_map(mark).collect();
        let own: Vec<u64> = self.marks.iter().map(|(mark, _)| *mark).collect();
        let whole = [&asked[..], &answered[..]].concat();
        if !whole.is_empty() && own.starts_with(&whole) {
            return Fit::Known;
        }
        if own.is_empty() {
            return Fit::No;
        }
        let most = own.len().min(asked.len());
        let overlaps = |known: &usize| own[own.len() - known..] == asked[..*known];
        let known = (1..=most).rev().find(overlaps);
        match known {
            Some(known) if known == own.len() || known > 1 => Fit::On(known),
            _ => Fit::No,
        }
    }

    /// Takes what a call adds.
    pub(super) fn go_on(
        &mut self,
        known: usize,
        input: Vec<Message<'static>>,
        output: Vec<Message<'static>>,
    ) {
        self.enrich(known, &input);
        self.append(input, known);
        self.append(output, 0);
    }

    /// Some spans tell of thoughts only when they repeat the answer.
    fn enrich(&mut self, known: usize, input: &[Message<'static>]) {
        let own = &self.marks[self.marks.len() - known..];
        let repeated = input.iter().filter(|message| message.role != Role::System);
        for ((_, at), message) in own.iter().zip(repeated) {
            let own = &mut self.messages[*at];
            let is_thought = |part: &Part<'_>| matches!(part, Part::Reasoning(_));
            if message.role == Role::Assistant && !own.parts.iter().any(is_thought) {
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
    pub(super) fn join(&mut self, other: Self) {
        self.append(other.messages, 0);
    }

    /// The place of the last message of a call that is known already.
    pub(super) fn place(
        &self,
        input: &[Message<'static>],
        output: &[Message<'static>],
    ) -> Option<usize> {
        let count = input.iter().chain(output).filter_map(mark).count();
        Some(self.marks.get(count.checked_sub(1)?)?.1)
    }

    fn append(&mut self, messages: Vec<Message<'static>>, mut pass: usize) {
        for message in messages {
            match mark(&message) {
                Some(_) if pass > 0 => pass -= 1,
                Some(mark) => {
                    self.marks.push((mark, self.messages.len()));
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
fn mark(message: &Message<'_>) -> Option<u64> {
    if message.role == Role::System {
        return None;
    }
    let mut hash = DefaultHasher::new();
    message.role.as_str().hash(&mut hash);
    let mut calls = 0;
    for part in &message.parts {
        match part {
            Part::ToolCall(call) => {
                calls += 1;
                call.name.hash(&mut hash);
            }
            Part::ToolResult(result) => result.content.trim().hash(&mut hash),
            _ => {}
        }
    }
    if calls == 0 {
        message.text().trim().hash(&mut hash);
    }
    Some(hash.finish())
}

/// Sets a message's numbers, unless it has some.
pub(super) fn number(message: &mut Message<'static>, meta: Option<JsonText<'static>>) {
    let has = |meta: &JsonText<'_>| meta.get().contains("\"usage\"");
    if message.metadata.as_ref().is_none_or(|own| !has(own)) && meta.is_some() {
        message.metadata = meta;
    }
}

/// The threads of one agent: the conversation first, then what has nothing in common with it. The longest thread of each
/// trace that went on with none is what was said next.
pub(super) fn joined(threads: Vec<Thread>, went_on: &HashSet<u64>) -> Vec<Thread> {
    let mut traces: Vec<u64> = Vec::new();
    for thread in &threads {
        if !traces.contains(&thread.trace) && !went_on.contains(&thread.trace) {
            traces.push(thread.trace);
        }
    }
    let mut rest: Vec<Option<Thread>> = threads.into_iter().map(Some).collect();
    let mut main: Option<Thread> = None;
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
            Some(main) => main.join(thread),
        }
    }
    main.into_iter().chain(rest.into_iter().flatten()).collect()
}

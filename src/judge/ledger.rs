//! What the calls of a trace know of each other: what was asked already, how often a tool was called, and which calls of a
//! turn wait for which (`after:`).
//!
//! Refuses to call anything and to tell facts: `calls` does both.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::evidence::EvidenceKey;
use crate::model::{CallIx, ModelReply, Rejection, ToolResponse, TurnIx};
use crate::tools::Tool;

/// The calls of a trace so far, those in flight included.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// Calls of cached tools by what they ask; the answer comes once the first of them has it.
    asked: HashMap<EvidenceKey, Asked>,
    /// Calls by tool; those answered by an identical one do not count.
    made: HashMap<String, u32>,
    /// Tools that ran in earlier turns, and whether one call of each was answered without an error.
    ran: HashMap<String, bool>,
}

struct Asked {
    turn: TurnIx,
    call: CallIx,
    answer: watch::Receiver<Option<ToolResponse>>,
}

/// An identical call of this trace.
pub(super) struct Same {
    pub(super) turn: TurnIx,
    pub(super) call: CallIx,
    pub(super) answer: watch::Receiver<Option<ToolResponse>>,
}

impl Ledger {
    /// The identical call that answers this one. An earlier turn's failure is no answer: the model asked again because it
    /// wants another try.
    pub(super) fn same(&self, tool: &dyn Tool, key: &EvidenceKey, turn: TurnIx) -> Option<Same> {
        if !tool.is_cached() {
            return None;
        }
        let entries = self.lock();
        let asked = entries.asked.get(key)?;
        let failed = asked.answer.borrow().as_ref().is_some_and(|a| a.is_error);
        (asked.turn == turn || !failed).then(|| Same {
            turn: asked.turn,
            call: asked.call,
            answer: asked.answer.clone(),
        })
    }

    /// Whether the tool may be called once more.
    pub(super) fn within(&self, tool: &dyn Tool, key: &EvidenceKey) -> Result<(), Rejection> {
        let made = self.lock().made.get(&key.tool).copied().unwrap_or_default();
        let Some(max) = tool.max_calls().filter(|max| made >= *max) else {
            return Ok(());
        };
        let text = match max {
            0 => "may not be called here".to_owned(),
            1 => "may be called once, and was".to_owned(),
            n => format!("may be called {n} times, and was"),
        };
        Err(Rejection {
            rule: "max_calls".to_owned(),
            text: format!("Error: `{}` {text}: decide with what you have", key.tool),
        })
    }

    /// Counts a call that is about to be made. Whoever makes it says the answer here, for identical ones.
    pub(super) fn claim(
        &self,
        tool: &dyn Tool,
        key: &EvidenceKey,
        turn: TurnIx,
        call: CallIx,
    ) -> watch::Sender<Option<ToolResponse>> {
        let mut entries = self.lock();
        *entries.made.entry(key.tool.clone()).or_default() += 1;
        let (tell, answer) = watch::channel(None);
        if tool.is_cached() {
            entries
                .asked
                .insert(key.clone(), Asked { turn, call, answer });
        }
        tell
    }

    /// A turn is over: its calls count for `after:` in later ones.
    pub(super) fn close(&self, round: &Round<'_>) {
        let mut entries = self.lock();
        for (name, end) in &round.calls {
            let ended = *end.borrow();
            if let Some(ended @ (Ended::Well | Ended::Failed)) = ended {
                *entries.ran.entry((*name).to_owned()).or_default() |= ended == Ended::Well;
            }
        }
    }

    /// How an earlier turn's calls of a tool ended, at best.
    fn ran(&self, name: &str) -> Option<Ended> {
        let well = self.lock().ran.get(name).copied()?;
        Some(if well { Ended::Well } else { Ended::Failed })
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a call ended, for those that come after it; the better the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ended {
    /// Rejected.
    NeverRan,
    /// Answered with an error.
    Failed,
    /// Answered without one.
    Well,
}

/// The calls of one reply, each with how it ended.
pub(super) struct Round<'r> {
    calls: Vec<(&'r str, watch::Sender<Option<Ended>>)>,
}

impl<'r> Round<'r> {
    pub(super) fn of(reply: &'r ModelReply) -> Self {
        let calls = reply.calls.iter();
        Self {
            calls: calls
                .map(|call| (call.name.as_str(), watch::Sender::new(None)))
                .collect(),
        }
    }

    pub(super) fn ended(&self, ix: CallIx, how: Ended) {
        if let Some((_, end)) = self.calls.get(usize::from(ix.0)) {
            end.send_replace(Some(how));
        }
    }

    /// Waits for the calls of this turn that a tool comes after, wherever they stand in the reply. Where the turn calls
    /// a prerequisite, that counts, as a model that asks for both wants the second on the first; else what earlier turns
    /// brought.
    pub(super) async fn prerequisites(
        &self,
        ix: CallIx,
        tool: &dyn Tool,
        ledger: &Ledger,
    ) -> Result<(), Rejection> {
        let mut missing = Vec::new();
        for name in tool.prerequisites() {
            let how = match self.wait(ix, name).await {
                Some(how) => Some(how),
                None => ledger.ran(name),
            };
            match how {
                Some(Ended::Well) => {}
                Some(Ended::Failed) => missing.push(format!("`{name}` failed")),
                Some(Ended::NeverRan) => {
                    missing.push(format!("call `{name}` first: its call was rejected"));
                }
                None => missing.push(format!("call `{name}` first: it has not been called")),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let own = &tool.decl().name;
        Err(Rejection {
            rule: "after".to_owned(),
            text: format!("Error: `{own}` was not called: {}", missing.join("; ")),
        })
    }

    /// The best end of this turn's other calls of a tool, once all have one; `None` where there are none.
    async fn wait(&self, ix: CallIx, name: &str) -> Option<Ended> {
        let mut best = None;
        for (at, (called, end)) in self.calls.iter().enumerate() {
            if *called != name || at == usize::from(ix.0) {
                continue;
            }
            let mut end = end.subscribe();
            // The sender is ours, so that the wait cannot fail.
            let how = end
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|how| *how);
            best = best.max(how);
        }
        best
    }
}

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
pub(super) struct CallHistory(Mutex<CallHistoryState>);

#[derive(Default)]
struct CallHistoryState {
    /// Calls of cached tools by what they ask; the answer comes once the first of them has it.
    cached_calls: HashMap<EvidenceKey, CachedCall>,
    /// Calls by tool; those answered by an identical one do not count.
    call_counts: HashMap<String, u32>,
    /// Tools that ran in earlier turns, and whether one call of each was answered without an error.
    earlier_results: HashMap<String, bool>,
}

struct CachedCall {
    turn: TurnIx,
    call: CallIx,
    response: watch::Receiver<Option<ToolResponse>>,
}

/// An identical call of this trace.
pub(super) struct IdenticalCall {
    pub(super) turn: TurnIx,
    pub(super) call: CallIx,
    pub(super) response: watch::Receiver<Option<ToolResponse>>,
}

impl CallHistory {
    /// The identical call that answers this one. An earlier turn's failure is no answer: the model asked again because it
    /// wants another try.
    pub(super) fn find_identical(
        &self,
        tool: &dyn Tool,
        key: &EvidenceKey,
        turn: TurnIx,
    ) -> Option<IdenticalCall> {
        if !tool.is_cached() {
            return None;
        }
        let entries = self.lock();
        let asked = entries.cached_calls.get(key)?;
        let failed = asked.response.borrow().as_ref().is_some_and(|a| a.is_error);
        (asked.turn == turn || !failed).then(|| IdenticalCall {
            turn: asked.turn,
            call: asked.call,
            response: asked.response.clone(),
        })
    }

    /// Whether the tool may be called once more.
    pub(super) fn check_call_limit(
        &self,
        tool: &dyn Tool,
        key: &EvidenceKey,
    ) -> Result<(), Rejection> {
        let made = self
            .lock()
            .call_counts
            .get(&key.tool)
            .copied()
            .unwrap_or_default();
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
    pub(super) fn register_call(
        &self,
        tool: &dyn Tool,
        key: &EvidenceKey,
        turn: TurnIx,
        call: CallIx,
    ) -> watch::Sender<Option<ToolResponse>> {
        let mut entries = self.lock();
        *entries.call_counts.entry(key.tool.clone()).or_default() += 1;
        let (tell, answer) = watch::channel(None);
        if tool.is_cached() {
            entries.cached_calls.insert(
                key.clone(),
                CachedCall {
                    turn,
                    call,
                    response: answer,
                },
            );
        }
        tell
    }

    /// A turn is over: its calls count for `after:` in later ones.
    pub(super) fn end_turn(&self, round: &TurnCalls<'_>) {
        let mut entries = self.lock();
        for (name, end) in &round.calls {
            let ended = *end.borrow();
            if let Some(ended @ (ToolCallStatus::Succeeded | ToolCallStatus::Failed)) = ended {
                *entries
                    .earlier_results
                    .entry((*name).to_owned())
                    .or_default() |= ended == ToolCallStatus::Succeeded;
            }
        }
    }

    /// How an earlier turn's calls of a tool ended, at best.
    fn earlier_status(&self, name: &str) -> Option<ToolCallStatus> {
        let well = self.lock().earlier_results.get(name).copied()?;
        Some(if well {
            ToolCallStatus::Succeeded
        } else {
            ToolCallStatus::Failed
        })
    }

    fn lock(&self) -> MutexGuard<'_, CallHistoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a call ended, for those that come after it; the better the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ToolCallStatus {
    /// Rejected.
    NeverRan,
    /// Answered with an error.
    Failed,
    /// Answered without one.
    Succeeded,
}

/// The calls of one reply, each with how it ended.
pub(super) struct TurnCalls<'r> {
    calls: Vec<(&'r str, watch::Sender<Option<ToolCallStatus>>)>,
}

impl<'r> TurnCalls<'r> {
    pub(super) fn from_reply(reply: &'r ModelReply) -> Self {
        let calls = reply.calls.iter();
        Self {
            calls: calls
                .map(|call| (call.name.as_str(), watch::Sender::new(None)))
                .collect(),
        }
    }

    pub(super) fn set_status(&self, ix: CallIx, how: ToolCallStatus) {
        if let Some((_, end)) = self.calls.get(usize::from(ix.0)) {
            end.send_replace(Some(how));
        }
    }

    /// Waits for the calls of this turn that a tool comes after, wherever they stand in the reply. Where the turn calls
    /// a prerequisite, that counts, as a model that asks for both wants the second on the first; else what earlier turns
    /// brought.
    pub(super) async fn check_prerequisites(
        &self,
        ix: CallIx,
        tool: &dyn Tool,
        ledger: &CallHistory,
    ) -> Result<(), Rejection> {
        let mut missing = Vec::new();
        for name in tool.prerequisites() {
            let how = match self.wait_for_tool(ix, name).await {
                Some(how) => Some(how),
                None => ledger.earlier_status(name),
            };
            match how {
                Some(ToolCallStatus::Succeeded) => {}
                Some(ToolCallStatus::Failed) => missing.push(format!("`{name}` failed")),
                Some(ToolCallStatus::NeverRan) => {
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
    async fn wait_for_tool(&self, ix: CallIx, name: &str) -> Option<ToolCallStatus> {
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

//! The tool calls of one trace in relation to each other: identical calls, call limits, and the order that `after:`
//! demands.
//!
//! Does not run calls and does not record events; [`super::tool_calls`] does both.

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
    /// The calls of cached tools, by what they ask. The response arrives when the first of the calls has it.
    cached_calls: HashMap<EvidenceKey, CachedCall>,
    /// The number of calls by tool. Calls that an identical call answers don't count.
    call_counts: HashMap<String, u32>,
    /// The tools that ran in earlier turns. `true` if at least one call succeeded.
    earlier_results: HashMap<String, bool>,
}

/// A call of a cached tool, which answers later identical calls.
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
    /// Returns the identical call that answers this one.
    ///
    /// A failure of an earlier turn doesn't answer a call: the model asks again because it wants another attempt.
    pub(super) fn find_identical(
        &self,
        tool: &dyn Tool,
        key: &EvidenceKey,
        turn: TurnIx,
    ) -> Option<IdenticalCall> {
        // A tool with side effects must run each time that the model calls it.
        if !tool.is_cached() {
            return None;
        }
        let entries = self.lock();
        let earlier = entries.cached_calls.get(key)?;
        let failed = earlier
            .response
            .borrow()
            .as_ref()
            .is_some_and(|a| a.is_error);
        // Within one turn the model can't react to a failure, so even a failed call answers its twin.
        (earlier.turn == turn || !failed).then(|| IdenticalCall {
            turn: earlier.turn,
            call: earlier.call,
            response: earlier.response.clone(),
        })
    }

    /// Checks that the tool's `max_calls` allows one more call.
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
        // Identical calls aren't counted, so repeating a question doesn't use up the limit.
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

    /// Counts a call that is about to run, and returns the sender for its response.
    ///
    /// The caller sends the response to it, so that identical calls receive it.
    pub(super) fn register_call(
        &self,
        tool: &dyn Tool,
        key: &EvidenceKey,
        turn: TurnIx,
        call: CallIx,
    ) -> watch::Sender<Option<ToolResponse>> {
        let mut entries = self.lock();
        *entries.call_counts.entry(key.tool.clone()).or_default() += 1;
        // A watch channel keeps the last value, so calls that ask later receive it too.
        let (sender, response) = watch::channel(None);
        if tool.is_cached() {
            entries.cached_calls.insert(
                key.clone(),
                CachedCall {
                    turn,
                    call,
                    response,
                },
            );
        }
        sender
    }

    /// Records the results of a finished turn for `after:` in later turns.
    pub(super) fn end_turn(&self, turn_calls: &TurnCalls<'_>) {
        let mut entries = self.lock();
        for call in &turn_calls.calls {
            let status = *call.status.borrow();
            // A rejected call is not a call for `after:`: the model has to make it first.
            if let Some(status @ (ToolCallStatus::Succeeded | ToolCallStatus::Failed)) = status {
                *entries
                    .earlier_results
                    .entry(call.tool.to_owned())
                    // One success in any earlier turn is enough for `after:`.
                    .or_default() |= status == ToolCallStatus::Succeeded;
            }
        }
    }

    /// Returns the best status of a tool's calls in earlier turns.
    fn earlier_status(&self, name: &str) -> Option<ToolCallStatus> {
        let succeeded = self.lock().earlier_results.get(name).copied()?;
        Some(if succeeded {
            ToolCallStatus::Succeeded
        } else {
            ToolCallStatus::Failed
        })
    }

    fn lock(&self) -> MutexGuard<'_, CallHistoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The status of an ended call, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ToolCallStatus {
    /// The call was rejected.
    NeverRan,
    /// The tool responded with an error.
    Failed,
    /// The tool responded without an error.
    Succeeded,
}

/// The calls of one reply, each with its status once it has ended.
pub(super) struct TurnCalls<'r> {
    calls: Vec<TurnCall<'r>>,
}

/// One call of a reply.
struct TurnCall<'r> {
    tool: &'r str,
    status: watch::Sender<Option<ToolCallStatus>>,
}

impl<'r> TurnCalls<'r> {
    /// The calls of `reply`, all still running.
    pub(super) fn from_reply(reply: &'r ModelReply) -> Self {
        let calls = reply.calls.iter();
        Self {
            calls: calls
                .map(|call| TurnCall {
                    tool: call.name.as_str(),
                    status: watch::Sender::new(None),
                })
                .collect(),
        }
    }

    /// Records the status of an ended call and wakes the calls that wait for it.
    pub(super) fn set_status(&self, ix: CallIx, status: ToolCallStatus) {
        if let Some(call) = self.calls.get(usize::from(ix.0)) {
            call.status.send_replace(Some(status));
        }
    }

    /// Waits for the calls of this turn that must come before `tool`, and checks that they succeeded.
    ///
    /// The position in the reply doesn't matter. A model that requests both in one turn wants the second
    /// to use the first. So earlier turns count only if this turn doesn't call the prerequisite.
    pub(super) async fn check_prerequisites(
        &self,
        ix: CallIx,
        tool: &dyn Tool,
        history: &CallHistory,
    ) -> Result<(), Rejection> {
        let mut missing = Vec::new();
        // Collect all missing tools, so that the model reads the whole list in one error.
        for name in tool.prerequisites() {
            let status = match self.wait_for_tool(ix, name).await {
                Some(status) => Some(status),
                // This turn doesn't call the tool, so its last result is in an earlier turn.
                None => history.earlier_status(name),
            };
            match status {
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
        let tool_name = &tool.decl().name;
        Err(Rejection {
            rule: "after".to_owned(),
            text: format!(
                "Error: `{tool_name}` was not called: {}",
                missing.join("; ")
            ),
        })
    }

    /// Waits until this turn's other calls of a tool have ended; returns their best status, or `None` if there are
    /// none.
    async fn wait_for_tool(&self, ix: CallIx, name: &str) -> Option<ToolCallStatus> {
        let mut best = None;
        for (at, call) in self.calls.iter().enumerate() {
            // A call never waits for itself: that wait would never end.
            if call.tool != name || at == usize::from(ix.0) {
                continue;
            }
            let mut status = call.status.subscribe();
            // `self` owns the sender, so the channel can't close while this waits.
            let status = status
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|status| *status);
            // The statuses are ordered, so the maximum is the best one.
            best = best.max(status);
        }
        best
    }
}

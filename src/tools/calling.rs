//! Calling a tool: the one place that does, for judges and for `dicta tool` alike.
//!
//! Owns what is the same for every tool: a panic is contained and its details go to the log, never to the model; a failure
//! that another try may not have is tried once more where the tool changes nothing. Refuses to know traces: what is
//! answered without a call, and what may not be called, is `judge`'s.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use super::{Prepared, PreparedCall, Seen, Tool, ToolSet, prepare_call};
use crate::event::{CallCx, EventKind};
use crate::model::{CallIx, Millis, Rejection, ToolResponse};

/// How long is waited before the second try, at least and at most: what failed for a moment is not asked at once, and
/// calls that failed together do not come back together.
const BACKOFF: (u64, u64) = (250, 1000);

/// Longest failure that is kept of a first try, in characters.
const KEPT: usize = 1000;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// What the tool answered in the end.
    pub answer: ToolResponse,
    /// The transient failure after which it was tried once more, as the model would have been told it.
    pub retried: Option<String>,
}

/// Calls a tool with what was prepared. Whatever happens is an answer.
pub async fn call(tool: &dyn Tool, prepared: &Prepared, ix: CallIx, cx: &CallCx) -> Called {
    let first = once(tool, prepared, ix, cx).await;
    if !(first.is_error && first.transient && tool.read_only()) {
        return Called {
            answer: first,
            retried: None,
        };
    }
    let wait = Millis(fastrand::u64(BACKOFF.0..=BACKOFF.1));
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Called { answer: first, retried: None },
        () = cx.clock.sleep(wait) => {}
    }
    Called {
        answer: once(tool, prepared, ix, cx).await,
        retried: Some(first.text.chars().take(KEPT).collect()),
    }
}

/// As [`prepare_call`]; a tool whose rules fail inside dicta rejects the call.
pub fn ready(set: &ToolSet, name: &str, raw: &str, seen: &Seen) -> PreparedCall {
    let prepared = catch_unwind(AssertUnwindSafe(|| prepare_call(set, name, raw, seen)));
    prepared.unwrap_or_else(|_panic| PreparedCall {
        outcome: Err(Rejection {
            rule: "crashed".to_owned(),
            text: format!("Error: the tool `{name}` crashed while it read these arguments"),
        }),
        // What was read of them is told all the same; it is not reading that failed.
        ..prepare_call(&ToolSet::default(), name, raw, seen)
    })
}

async fn once(tool: &dyn Tool, prepared: &Prepared, ix: CallIx, cx: &CallCx) -> ToolResponse {
    // Inside of a future of ours, so that a tool that panics before its first wait is caught, too.
    let work = AssertUnwindSafe(async { tool.call(prepared, ix, cx).await });
    match work.catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => {
            let name = &prepared.tool;
            let why = reason(&*panic);
            let text = format!("the tool `{name}` crashed: {why}");
            let cell = Some(cx.cell);
            cx.out.send(EventKind::Note { cell, text }).await;
            ToolResponse::error(format_args!("the tool `{name}` crashed"))
        }
    }
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no reason given".to_owned())
}

#[cfg(test)]
mod tests;

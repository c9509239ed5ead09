//! Calling a tool: the one place that does, for judges and for `dicta tool` alike.
//!
//! Owns what is the same for every tool: a panic is contained and its details go to the log, never to the model; a failure
//! that another try may not have is tried once more where the tool changes nothing. Refuses to know traces: what is
//! answered without a call, and what may not be called, is `judge`'s.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use super::{PreparedCall, SeenUrls, Tool, ToolSet, ValidatedCall, prepare_call};
use crate::event::{CallCx, EventKind};
use crate::model::{CallIx, Millis, Rejection, ToolResponse};

/// How long is waited before the second try, at least and at most: what failed for a moment is not asked at once, and
/// calls that failed together do not come back together.
const RETRY_DELAY_MS: (u64, u64) = (250, 1000);

/// Longest failure that is kept of a first try, in characters.
const MAX_FAILURE_CHARS: usize = 1000;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolExecution {
    /// What the tool answered in the end.
    pub response: ToolResponse,
    /// The transient failure after which it was tried once more, as the model would have been told it.
    pub first_failure: Option<String>,
}

/// Calls a tool with what was prepared. Whatever happens is an answer.
pub async fn execute_tool_call(
    tool: &dyn Tool,
    prepared: &ValidatedCall,
    ix: CallIx,
    cx: &CallCx,
) -> ToolExecution {
    let first = execute_catching_panics(tool, prepared, ix, cx).await;
    if !(first.is_error && first.transient && tool.is_read_only()) {
        return ToolExecution {
            response: first,
            first_failure: None,
        };
    }
    let wait = Millis(fastrand::u64(RETRY_DELAY_MS.0..=RETRY_DELAY_MS.1));
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return ToolExecution { response: first, first_failure: None },
        () = cx.clock.sleep(wait) => {}
    }
    ToolExecution {
        response: execute_catching_panics(tool, prepared, ix, cx).await,
        first_failure: Some(first.text.chars().take(MAX_FAILURE_CHARS).collect()),
    }
}

/// As [`prepare_call`]; a tool whose rules fail inside dicta rejects the call.
pub fn prepare_call_catching_panics(
    set: &ToolSet,
    name: &str,
    raw: &str,
    seen: &SeenUrls,
) -> PreparedCall {
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

async fn execute_catching_panics(
    tool: &dyn Tool,
    prepared: &ValidatedCall,
    ix: CallIx,
    cx: &CallCx,
) -> ToolResponse {
    // Inside of a future of ours, so that a tool that panics before its first wait is caught, too.
    let work = AssertUnwindSafe(async { tool.call(prepared, ix, cx).await });
    match work.catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => {
            let name = &prepared.tool;
            let why = panic_message(&*panic);
            let text = format!("the tool `{name}` crashed: {why}");
            let cell = Some(cx.cell);
            cx.out.send(EventKind::Note { cell, text }).await;
            ToolResponse::error(format_args!("the tool `{name}` crashed"))
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no reason given".to_owned())
}

#[cfg(test)]
mod tests;

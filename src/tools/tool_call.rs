//! The execution of a tool call, for judges and for `dicta tool`.
//!
//! Responsible for what is the same for every tool: it contains panics and writes their details to the log, not to
//! the response. It retries a transient failure of a read-only tool once. Does not know judge traces; `judge` decides
//! which calls are reused or forbidden.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use super::{PreparedCall, SeenUrls, Tool, ToolSet, ValidatedCall, prepare_call};
use crate::event::{CallCx, EventKind};
use crate::model::{CallIx, Millis, Rejection, ToolResponse};

/// The bounds of the delay before the retry, in milliseconds. The delay gives a temporary failure time to pass, and
/// its randomness keeps calls that failed together from returning together.
const RETRY_DELAY_MS: (u64, u64) = (250, 1000);

/// The length at which the failure of a first try is cut, in characters.
const MAX_FAILURE_CHARS: usize = 1000;

/// The result of an executed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolExecution {
    /// The final response of the tool.
    pub response: ToolResponse,
    /// The transient failure before the retry, as the language model would have read it.
    pub first_failure: Option<String>,
}

/// Calls a tool with validated arguments. Every failure becomes a response.
pub async fn execute_tool_call(
    tool: &dyn Tool,
    prepared: &ValidatedCall,
    ix: CallIx,
    cx: &CallCx,
) -> ToolExecution {
    let first = execute_catching_panics(tool, prepared, ix, cx).await;
    // A tool that changes data may have done so before it failed, so it is not retried.
    if !(first.is_error && first.transient && tool.is_read_only()) {
        return ToolExecution {
            response: first,
            first_failure: None,
        };
    }
    // A random delay, so that parallel calls do not all return at the same moment.
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

/// Works like [`prepare_call`]. If the tool's rules panic, the call is rejected.
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
        // The rules failed, not the parsing: keep what the parser reported about the arguments.
        ..prepare_call(&ToolSet::default(), name, raw, seen)
    })
}

async fn execute_catching_panics(
    tool: &dyn Tool,
    prepared: &ValidatedCall,
    ix: CallIx,
    cx: &CallCx,
) -> ToolResponse {
    // The async block makes the call itself part of the future, so that `catch_unwind` also catches a panic before
    // the first await.
    let work = AssertUnwindSafe(async { tool.call(prepared, ix, cx).await });
    match work.catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => {
            let name = &prepared.tool;
            // The panic's message may contain internals, so only the log gets it.
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

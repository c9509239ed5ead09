//! What a finish reason means: an answer, a refusal, or a fault. The list is open: a word we do not know is passed on.

use serde_json::Value;

use super::super::ProviderError;
use super::super::client::truncated_error;
use crate::model::StopReason;

/// The reply is to be asked for its rest.
pub(super) const CONTINUATION: &str = "CONTINUATION";

/// Whether this says anything: the default of the field does not.
pub(super) fn is_specified(reason: &str) -> bool {
    !reason.is_empty() && reason != "FINISH_REASON_UNSPECIFIED"
}

/// Why the reply ended. A fault of the reply is an error, whatever stands in it: what came before it is no answer.
pub(super) fn read_finish_reason(
    finish: &str,
    message: Option<&str>,
    has_calls: bool,
) -> Result<StopReason, ProviderError> {
    let told = match message {
        Some(message) => format!("{finish}: {message}"),
        None => finish.to_owned(),
    };
    let fault = |retryable: bool| {
        Err(ProviderError::InStream {
            message: format!("the model stopped with {told}"),
            retryable,
        })
    };
    Ok(match finish {
        // aimock says FUNCTION_CALL where the service says STOP.
        "STOP" | "FUNCTION_CALL" if has_calls => StopReason::ToolCalls,
        "STOP" => StopReason::Stop,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Refused(told),
        // The model's slip: another try may go well.
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "OTHER" => return fault(true),
        "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "PUP_LIMITED_DISABLED"
        | "NO_IMAGE"
        | "IMAGE_OTHER" => return fault(false),
        CONTINUATION => {
            return Err(truncated_error(
                "the server stopped in the middle of it, and gave no rest of it",
            ));
        }
        _ => StopReason::Other(told),
    })
}

/// Why a prompt was blocked, from `promptFeedback`.
pub(super) fn find_block_reason(feedback: &Value) -> Option<String> {
    let text = |key: &str| feedback.get(key).and_then(Value::as_str);
    let reason = text("blockReason")?;
    if reason == "BLOCK_REASON_UNSPECIFIED" || reason == "BLOCKED_REASON_UNSPECIFIED" {
        return None;
    }
    Some(match text("blockReasonMessage") {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    })
}

/// A blocked prompt has no answer, whatever came beside.
pub(super) fn blocked_prompt_stop(why: &str) -> StopReason {
    StopReason::Refused(format!("the prompt was blocked: {why}"))
}

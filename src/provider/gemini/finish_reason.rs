//! The meaning of a finish reason: an answer, a refusal, or a fault. Unknown words are passed on, because the list is
//! open.

use serde_json::Value;

use super::super::ProviderError;
use super::super::client::{has_answer, truncated_error};
use crate::model::StopReason;

/// The reply must be requested again for its rest.
pub(super) const CONTINUATION: &str = "CONTINUATION";

/// Returns whether the reason has a meaning: the field's default has none.
pub(super) fn is_specified(reason: &str) -> bool {
    !reason.is_empty() && reason != "FINISH_REASON_UNSPECIFIED"
}

/// Returns true if a later reason does not replace this one: the reply was cut or refused, or is faulty.
pub(super) fn is_final(finish: &str) -> bool {
    // The rest of the reply follows a continuation.
    finish != CONTINUATION && !has_answer(&read_finish_reason(finish, None, false))
}

/// Returns the reason why the reply ended. If the reply is faulty, this is an error whatever text came before.
pub(super) fn read_finish_reason(
    finish: &str,
    message: Option<&str>,
    has_calls: bool,
) -> Result<StopReason, ProviderError> {
    let reason = match message {
        Some(message) => format!("{finish}: {message}"),
        None => finish.to_owned(),
    };
    let fault = |retryable: bool| {
        Err(ProviderError::InStream {
            message: format!("the model stopped with {reason}"),
            retryable,
        })
    };
    Ok(match finish {
        // aimock sends FUNCTION_CALL where the service sends STOP.
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
        | "IMAGE_RECITATION" => StopReason::Refused(reason),
        // The model made a mistake that another attempt may avoid.
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
        // Google adds reasons often, so an unknown one does not make the reply faulty.
        _ => StopReason::Other(reason),
    })
}

/// Returns the reason why a prompt was blocked, from `promptFeedback`.
pub(super) fn find_block_reason(feedback: &Value) -> Option<String> {
    let text = |key: &str| feedback.get(key).and_then(Value::as_str);
    let reason = text("blockReason")?;
    // The field's default value; the service has used both spellings.
    if reason == "BLOCK_REASON_UNSPECIFIED" || reason == "BLOCKED_REASON_UNSPECIFIED" {
        return None;
    }
    Some(match text("blockReasonMessage") {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    })
}

/// Returns the stop reason of a blocked prompt. It has no answer, even if the reply has other content.
pub(super) fn blocked_prompt_stop(why: &str) -> StopReason {
    StopReason::Refused(format!("the prompt was blocked: {why}"))
}

//! The tool calls of a reply: their numbers, the form in which a later request has them, and the verdict of several. Also
//! the signs that a reply was cut.

use crate::model::{
    ArgumentChange, CallIx, ModelReply, RawJson, ReplyCall, StopReason, Verdict, is_json_object,
};
use crate::provider::CompletedReply;

/// Replaces arguments that aren't valid JSON, because servers respond 5xx to a history with broken arguments.
pub(super) fn make_sendable(call: &mut ReplyCall, canonical: Option<RawJson>) {
    if !is_json_object(&call.raw) {
        call.raw = canonical.map_or_else(|| "{}".to_owned(), |json| json.get().to_owned());
    }
}

/// Returns whether a text is the beginning of a JSON value and not the whole value.
pub(super) fn is_truncated_json(raw: &str) -> bool {
    !raw.trim().is_empty()
        && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err_and(|error| error.is_eof())
}

/// Returns why a reply was cut, if its stop reason shows that.
pub(super) fn explain_cut(finished: &CompletedReply) -> Option<String> {
    match &finished.reply.stop {
        StopReason::Length => Some(finished.explain_token_limit()),
        StopReason::Other(word) if is_interruption(word) => Some(format!(
            "the reply was cut: the server stopped it with {word}"
        )),
        StopReason::Stop
        | StopReason::ToolCalls
        | StopReason::Refused(_)
        | StopReason::Other(_)
        | StopReason::Unknown => None,
    }
}

/// Returns true for the stop reason of a server that interrupts a reply: `insufficient_system_resource` of `DeepSeek`, or
/// `abort` of vLLM.
fn is_interruption(stop_reason: &str) -> bool {
    matches!(
        &*stop_reason.to_ascii_lowercase(),
        "insufficient_system_resource" | "abort" | "aborted" | "cancelled" | "canceled"
    )
}

/// Returns the word or the text with which a server or a model refused to answer; `None` for another stop reason.
pub(super) fn find_refusal_word(stop: &StopReason) -> Option<&str> {
    match stop {
        StopReason::Refused(word) => Some(word),
        StopReason::Other(word) => is_block(word).then_some(word),
        StopReason::Length | StopReason::Stop | StopReason::ToolCalls | StopReason::Unknown => None,
    }
}

/// Returns true for the stop reason of a filter. Bedrock has these words, and gateways pass them on in each protocol.
fn is_block(stop_reason: &str) -> bool {
    matches!(
        &*stop_reason.to_ascii_lowercase(),
        "guardrail_intervened" | "content_filtered" | "content_filter" | "blocked"
    )
}

/// Keeps the first verdict of a reply, with the repairs of its arguments. A later one is equal to it, but can contradict
/// itself, which flags the first.
pub(super) fn keep_first_verdict(
    stated: &mut Option<Verdict>,
    verdict: Verdict,
    repaired: Vec<ArgumentChange>,
) {
    match stated {
        Some(first) => first.contradiction = first.contradiction.take().or(verdict.contradiction),
        None => {
            *stated = Some(Verdict {
                repaired,
                ..verdict
            });
        }
    }
}

/// Iterates over a reply's calls with their numbers.
pub(super) fn index_calls(reply: &ModelReply) -> impl Iterator<Item = (CallIx, &ReplyCall)> {
    (0..).map(CallIx).zip(&reply.calls)
}

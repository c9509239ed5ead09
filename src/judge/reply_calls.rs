//! The tool calls of a reply: their numbers, and the form in which a later request has them.

use crate::model::{CallIx, ModelReply, RawJson, ReplyCall, is_json_object};

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

/// Iterates over a reply's calls with their numbers.
pub(super) fn index_calls(reply: &ModelReply) -> impl Iterator<Item = (CallIx, &ReplyCall)> {
    (0..).map(CallIx).zip(&reply.calls)
}

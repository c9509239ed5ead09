//! Text in the transcript and in fetched pages that a person doesn't see, described in sentences for the reader of
//! the verdict.
//!
//! A verdict may rest on such text, so dicta flags it. It doesn't interpret the text and changes no outcome. The
//! prompt shows judges where the text is (`message_parts`, `trace_state`).

use crate::handlers::JudgeRequest;
use crate::model::{ToolResponse, TranscriptPart, count_invisible};

/// The most messages that a sentence names.
const MAX_NAMED_MESSAGES: usize = 4;

/// Describes the hidden text behind a verdict: the transcript in one sentence, then each page.
pub(super) fn describe_hidden_text(request: &JudgeRequest, pages: &[String]) -> Vec<String> {
    let mut all: Vec<String> = describe_in_transcript(request).into_iter().collect();
    all.extend_from_slice(pages);
    all
}

fn describe_in_transcript(request: &JudgeRequest) -> Option<String> {
    let end = request.end.min(request.transcript.messages.len());
    let hide_calls = request.params.hide_calls;
    // Count only parts that the prompt shows: hidden calls can't influence the judge.
    let count = |part: &TranscriptPart<'_>| match part {
        TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => count_invisible(text),
        TranscriptPart::ToolCall(call) if !hide_calls => count_invisible(&call.arguments),
        TranscriptPart::ToolResult(result) if !hide_calls => count_invisible(&result.content),
        TranscriptPart::Other(raw) => count_invisible(raw.get()),
        TranscriptPart::ToolCall(_)
        | TranscriptPart::ToolResult(_)
        | TranscriptPart::Media { .. } => 0,
    };
    let counts = request.transcript.messages[..end].iter().enumerate();
    let found: Vec<(usize, usize)> = counts
        .map(|(n, message)| (n, message.parts.iter().map(count).sum()))
        .filter(|(_, count)| *count > 0)
        .collect();
    // One sentence with the total, because a list of every message would be too long.
    let all: usize = found.iter().map(|(_, count)| count).sum();
    let named: Vec<String> = found
        .iter()
        .take(MAX_NAMED_MESSAGES)
        .map(|(n, _)| n.to_string())
        .collect();
    let more = match found.len().saturating_sub(MAX_NAMED_MESSAGES) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let noun = if found.len() == 1 {
        "message"
    } else {
        "messages"
    };
    let named = named.join(", ");
    (all > 0).then(|| {
        format!(
            "the transcript holds {} ({noun} {named}{more})",
            format_invisible_count(all)
        )
    })
}

/// Describes the hidden text of a tool response. `source` names the response: `fetch 1`, `an error of search`.
pub(super) fn describe_in_response(source: &str, answer: &ToolResponse) -> Option<String> {
    let unseen = match count_invisible(&answer.text) {
        0 => None,
        n => Some(format_invisible_count(n)),
    };
    // Text that HTML hides, as opposed to characters without a glyph.
    let unshown = match answer.hidden {
        0 => None,
        n => Some(format!(
            "{} that a browser does not show",
            format_character_count(n)
        )),
    };
    let both: Vec<String> = unseen.into_iter().chain(unshown).collect();
    (!both.is_empty()).then(|| format!("{source} holds {}", both.join(", and ")))
}

/// Formats a count as `1 character` or `31 characters`.
pub(super) fn format_character_count(n: u64) -> String {
    crate::model::pluralize(n, "character")
}

fn format_invisible_count(n: usize) -> String {
    crate::model::pluralize(n as u64, "invisible character")
}

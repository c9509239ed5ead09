//! What the judged texts and fetched pages hold that a person who reads them does not see, as sentences for the people who
//! read the verdict. Judges are told where it stands (`pieces`, `answers`).
//!
//! A verdict may rest on such text, so it is flagged; what it says is left to the reader, and nothing is overridden.

use crate::handlers::JudgeRequest;
use crate::model::{ToolResponse, TranscriptPart, count_invisible};

/// Messages named at most.
const MAX_NAMED_MESSAGES: usize = 4;

/// What is told of a verdict: of the transcript in one sentence, and of each page.
pub(super) fn describe_hidden_text(ask: &JudgeRequest, pages: &[String]) -> Vec<String> {
    let mut all: Vec<String> = describe_in_transcript(ask).into_iter().collect();
    all.extend_from_slice(pages);
    all
}

fn describe_in_transcript(ask: &JudgeRequest) -> Option<String> {
    let end = ask.end.min(ask.transcript.messages.len());
    let hides = ask.params.hide_calls;
    let count = |part: &TranscriptPart<'_>| match part {
        TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => count_invisible(text),
        TranscriptPart::ToolCall(call) if !hides => count_invisible(&call.arguments),
        TranscriptPart::ToolResult(result) if !hides => count_invisible(&result.content),
        TranscriptPart::Other(raw) => count_invisible(raw.get()),
        TranscriptPart::ToolCall(_)
        | TranscriptPart::ToolResult(_)
        | TranscriptPart::Media { .. } => 0,
    };
    let counts = ask.transcript.messages[..end].iter().enumerate();
    let found: Vec<(usize, usize)> = counts
        .map(|(n, message)| (n, message.parts.iter().map(count).sum()))
        .filter(|(_, count)| *count > 0)
        .collect();
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

/// What is told of an answer that is cited as `fetch N`.
pub(super) fn describe_in_page(number: usize, answer: &ToolResponse) -> Option<String> {
    let unseen = match count_invisible(&answer.text) {
        0 => None,
        n => Some(format_invisible_count(n)),
    };
    let unshown = match answer.hidden {
        0 => None,
        n => Some(format!(
            "{} that a browser does not show",
            format_character_count(n)
        )),
    };
    let both: Vec<String> = unseen.into_iter().chain(unshown).collect();
    (!both.is_empty()).then(|| format!("fetch {number} holds {}", both.join(", and ")))
}

/// `1 character`, `31 characters`.
pub(super) fn format_character_count(n: u64) -> String {
    crate::model::pluralize(n, "character")
}

fn format_invisible_count(n: usize) -> String {
    crate::model::pluralize(n as u64, "invisible character")
}

//! What a trace has seen: hosts and URLs in transcript, rubric and fetched pages, which `fetch_url` may open.

use crate::handlers::JudgeRequest;
use crate::model::TranscriptPart;
use crate::tools::Seen;

/// The hosts and URLs of a cell's transcript, rubric and named metadata.
pub(super) fn of(ask: &JudgeRequest) -> Seen {
    let mut seen = Seen::default();
    seen.note(&ask.params.criteria);
    seen.note(&ask.params.guide);
    for material in &ask.params.material {
        seen.note(&material.text);
    }
    for (_, value) in &ask.metadata {
        seen.note(value.get());
    }
    let end = ask.end.min(ask.transcript.messages.len());
    for part in ask.transcript.messages[..end].iter().flat_map(|m| &m.parts) {
        match part {
            TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => seen.note(text),
            TranscriptPart::ToolCall(call) => seen.note(&call.arguments),
            TranscriptPart::ToolResult(result) => seen.note(&result.content),
            TranscriptPart::Media { .. } | TranscriptPart::Other(_) => {}
        }
    }
    seen
}

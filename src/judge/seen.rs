//! The URLs and hosts that a trace has seen in the transcript and the rubric. `fetch_url` may open only these.

use crate::handlers::JudgeRequest;
use crate::model::TranscriptPart;
use crate::tools::SeenUrls;

/// Collects the hosts and URLs of a cell's transcript, rubric and named metadata.
pub(super) fn collect_seen_urls(ask: &JudgeRequest) -> SeenUrls {
    let mut seen = SeenUrls::default();
    seen.add_text(&ask.params.criteria);
    seen.add_text(&ask.params.guide);
    for material in &ask.params.prompt_blocks {
        seen.add_text(&material.text);
    }
    for (_, value) in &ask.metadata {
        seen.add_text(value.get());
    }
    let end = ask.end.min(ask.transcript.messages.len());
    for part in ask.transcript.messages[..end].iter().flat_map(|m| &m.parts) {
        match part {
            TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => seen.add_text(text),
            TranscriptPart::ToolCall(call) => seen.add_text(&call.arguments),
            TranscriptPart::ToolResult(result) => seen.add_text(&result.content),
            // Media has no text, and a part of an unknown kind is no source of addresses.
            TranscriptPart::Media { .. } | TranscriptPart::Other(_) => {}
        }
    }
    seen
}

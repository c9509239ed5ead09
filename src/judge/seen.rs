//! The URLs and hosts that a trace has seen in the transcript and the rubric. `fetch_url` may open only these.

use crate::handlers::JudgeRequest;
use crate::model::TranscriptPart;
use crate::tools::SeenUrls;

/// Collects the hosts and URLs of a cell's transcript, rubric and named metadata.
pub(super) fn collect_seen_urls(request: &JudgeRequest) -> SeenUrls {
    let mut seen = SeenUrls::default();
    seen.add_text(&request.params.criteria);
    seen.add_text(&request.params.guide);
    for material in &request.params.prompt_blocks {
        seen.add_text(&material.text);
    }
    for (_, value) in &request.metadata {
        seen.add_text(value.get());
    }
    let end = request.end.min(request.transcript.messages.len());
    for part in request.transcript.messages[..end]
        .iter()
        .flat_map(|m| &m.parts)
    {
        match part {
            TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => seen.add_text(text),
            TranscriptPart::ToolCall(call) => seen.add_text(&call.arguments),
            TranscriptPart::ToolResult(result) => seen.add_text(&result.content),
            // Media has no text, and addresses in a part of an unknown kind do not count.
            TranscriptPart::Media { .. } | TranscriptPart::Other(_) => {}
        }
    }
    seen
}

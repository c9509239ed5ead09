//! OpenTelemetry spans of generative AI as OTLP JSON: one request, or one a line (the collector's file exporter).
//!
//! Owns the way from spans to conversations. Reads the semantic conventions (attributes, events, log records) and three
//! dialects: `OpenInference`, `OpenLLMetry`, the Vercel AI SDK. Refuses to guess: a span that says nothing of a model, a tool
//! or an agent is counted by its operation or name; a conversation without messages is a named fault.
//!
//! A transcript's id is the conversation's (`gen_ai.conversation.id`, `session.id` …), else the trace's id. Behind it
//! stands `/` and the name of a sub-agent, or the number of a branch. Its place is the records from its first span to its
//! last; `part` is the number of the first span within the first record times 4096, and which of the transcripts there.

mod build;
mod dialect;
mod metrics;
mod node;
mod span_kind;
mod stream;
mod thread;
mod tool;
mod verdict;
mod wire;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::reader::TranscriptReader;
use super::super::source::SourceFile;

/// Makes the reader.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open(
    _source: &SourceFile,
    look: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    Ok(Box::new(stream::OtlpReader::new(
        look.record_walker(),
        look.layout,
    )))
}

#[cfg(test)]
mod tests;

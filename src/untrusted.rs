//! Entries through which `tests/fuzz` and `tests/campaign` give bytes to private readers.
//!
//! Not an interface for users: it may change at any time. Everything else that those tests read is public already.

use std::ops::Range;
use std::path::Path;

use crate::model::ProviderKind;
use crate::provider::{self, CompletedReply, ProviderError};
use crate::tools;
use crate::transcript::{self, TranscriptError, TranscriptFile};

/// Returns the names of the transcript formats that have a reader.
pub fn transcript_formats() -> Vec<&'static str> {
    transcript::readable_formats()
}

/// Opens a file with the reader of one format, whatever its content is.
pub fn open_transcripts(path: &Path, format: &str) -> Result<TranscriptFile, TranscriptError> {
    TranscriptFile::open_as(path, format)
}

/// Splits a stream of server-sent events into its frames, each as text.
pub fn split_frames(chunks: &[&[u8]]) -> Result<Vec<String>, ProviderError> {
    provider::split_frames(chunks)
}

/// Reads a provider's reply from its body.
pub fn read_reply(
    kind: ProviderKind,
    streamed: bool,
    chunks: &[&[u8]],
) -> Result<CompletedReply, ProviderError> {
    provider::read_reply_bytes(kind, streamed, chunks)
}

/// Renders a fetched page as the text that a judge reads; `None` for a binary body.
pub fn render_page(bytes: &[u8], content_type: Option<&str>, max: usize) -> Option<String> {
    tools::render_page_text(bytes, content_type, max)
}

/// Returns the ranges that a browser does not show in the text of an HTML page. `shown` is the result of
/// [`render_page`].
pub fn find_hidden_ranges(bytes: &[u8], shown: &str) -> Vec<Range<usize>> {
    let found = tools::find_hidden_ranges(bytes, Some("text/html"), None, shown, &mut || true);
    found.unwrap_or_default()
}

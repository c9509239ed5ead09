//! Entries through which `tests/fuzz` and `tests/campaign` give bytes to private readers.
//!
//! Not an interface for users: it may change at any time. Everything else that those tests read is public already.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::diag::Diagnostic;
use crate::model::ProviderKind;
use crate::provider::{self, CompletedReply, ProviderError};
use crate::tools;
use crate::transcript::{self, FieldMapping, MappingGuess, TranscriptError, TranscriptFile};
use crate::workspace;

/// Returns the names of the transcript formats that have a reader.
pub fn transcript_formats() -> Vec<&'static str> {
    transcript::readable_formats()
}

/// The path of a file that does not exist. Its bytes are in memory.
const INPUT: &str = "input";

/// Reads bytes as a file of one format, whatever they are.
pub fn read_transcripts_as(bytes: &[u8], format: &str) -> Result<TranscriptFile, TranscriptError> {
    TranscriptFile::read_bytes_as(Path::new(INPUT), bytes, format)
}

/// Reads bytes as a file of transcripts, with a field mapping or in the format that dicta detects.
pub fn read_transcripts(
    bytes: &[u8],
    map: Option<&Arc<FieldMapping>>,
) -> Result<TranscriptFile, TranscriptError> {
    TranscriptFile::read_bytes(Path::new(INPUT), bytes, map)
}

/// Guesses the field mapping of bytes, as [`transcript::guess_mapping`] does for a file.
pub fn guess_mapping(bytes: &[u8]) -> Result<MappingGuess, TranscriptError> {
    transcript::guess_mapping_of_bytes(Path::new(INPUT), bytes)
}

/// Reads the text of a label file. Returns the number of labels, and the problems. The ending of `name` is a part of the
/// detection of its format.
pub fn read_labels(text: &str, name: &str) -> (usize, Vec<Diagnostic>) {
    workspace::read_label_text(text, Path::new(name))
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

//! Readers: any supported file as transcripts, lazily; one file per format.
//!
//! Owns detection by content, the index of records by byte offset, and the mapping to [`crate::model::Transcript`]. Keeps offsets, not
//! copies; reads with positioned reads (no mmap: `unsafe_code` is forbidden). Refuses to know rubrics or runs.
//!
//! The native form is one JSON object a line, `{"id"?, "messages": [...], "metadata"?, "tags"?}` in OpenAI chat shapes
//! (the mapping is told in `native.rs`); the same objects in a JSON array, or one after another over
//! several lines, are read too. A record's number counts the records of its file from 1; lines that hold only white
//! space are none. A byte order mark, CRLF and a torn last line are accepted; a bad record is counted with its reason
//! and never refuses the file.

mod content;
mod detect;
mod file;
mod native;
mod scan;
mod sniff;
mod unix;

use std::path::PathBuf;

use thiserror::Error;

pub use file::TranscriptFile;
pub use native::parse;

/// Records of this many bytes or more are bad: reading one must not fill the memory.
pub const MAX_RECORD: usize = 128 * 1024 * 1024;

/// Why a file cannot be opened at all. Single bad records never refuse a file.
#[derive(Debug, Error)]
pub enum TranscriptError {
    /// The system refused.
    #[error("{path}: {why}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// A directory, a device, a pipe.
    #[error("{path} is {what}, not a file of transcripts")]
    NotAFile {
        /// Which.
        path: PathBuf,
        /// `a directory` …
        what: &'static str,
    },
    /// Recognised, not read yet.
    #[error("{path} looks like {format}; this version does not read it yet")]
    Unsupported {
        /// Which file.
        path: PathBuf,
        /// The format's name.
        format: &'static str,
    },
    /// Not recognised.
    #[error("{path} holds no transcripts: {why}")]
    Unknown {
        /// Which file.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
}

/// Where a record stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From the start of the file, in bytes.
    pub offset: u64,
    /// In bytes, line end excluded; [`MAX_RECORD`] for a record that is longer still.
    pub len: u64,
    /// The record's number in its file, from 1 (what ids are made of). Blank lines are no records.
    pub number: u64,
}

/// A bad record: its number, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// From 1.
    pub number: u64,
    /// A sentence.
    pub why: String,
}

/// A run of whole records, as bytes and spans.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The bytes of all records of the block.
    pub bytes: Vec<u8>,
    /// Where `bytes` begins in the file.
    pub offset: u64,
    /// The records in it.
    pub spans: Vec<Span>,
}

impl Block {
    /// The bytes of one of the block's own records.
    pub fn record(&self, span: Span) -> &[u8] {
        let start = usize::try_from(span.offset - self.offset).unwrap_or(usize::MAX);
        let len = usize::try_from(span.len).unwrap_or(usize::MAX);
        &self.bytes[start..start + len]
    }

    /// Every record with its span, in order.
    pub fn records(&self) -> impl Iterator<Item = (Span, &[u8])> {
        self.spans.iter().map(|span| (*span, self.record(*span)))
    }
}

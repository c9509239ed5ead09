//! Readers: any supported file as transcripts, lazily; one file per format.
//!
//! Owns detection by content, the index of records by byte offset, and the mapping to [`Transcript`]. Keeps offsets, not
//! copies; reads with positioned reads (no mmap: `unsafe_code` is forbidden). Refuses to know rubrics or runs.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::Transcript;

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
    /// In bytes, line end excluded.
    pub len: u64,
    /// The record's number in its file, from 1 (what ids are made of).
    pub number: u64,
}

/// An open file of transcripts.
pub struct TranscriptFile {
    // file handle, format, path
}

/// A bad record: its number, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// From 1.
    pub number: u64,
    /// A sentence.
    pub why: String,
}

impl TranscriptFile {
    /// Opens a file and recognises its format from its first bytes.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        let _ = path;
        unimplemented!("transcript")
    }

    /// The file.
    pub fn path(&self) -> &Path {
        unimplemented!("transcript")
    }

    /// Walks the file once in blocks of whole records: each call returns the next block (a few hundred KB) with the
    /// spans of its records, or `None` at the end. The first block is there long before a large file is walked.
    pub fn next_block(&mut self) -> Result<Option<Block>, TranscriptError> {
        unimplemented!("transcript")
    }

    /// Reads one record's bytes again (positioned read).
    pub fn read(&self, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let _ = span;
        unimplemented!("transcript")
    }

    /// The id of a record that has none of its own: `<file stem>:<number>`.
    pub fn default_id(&self, number: u64) -> String {
        let _ = number;
        unimplemented!("transcript")
    }
}

/// A run of whole records, as bytes and spans.
pub struct Block {
    /// The bytes of all records of the block.
    pub bytes: Vec<u8>,
    /// Where `bytes` begins in the file.
    pub offset: u64,
    /// The records in it.
    pub spans: Vec<Span>,
}

/// Parses one record. `default_id` names it if it has no id of its own; ids are made unique by the caller.
pub fn parse<'a>(
    record: &'a [u8],
    number: u64,
    default_id: &str,
) -> Result<Transcript<'a>, BadRecord> {
    let _ = (record, number, default_id);
    unimplemented!("transcript")
}

//! Readers: any supported file as transcripts, lazily; one file per format.
//!
//! Owns detection by content, the walk over a file, and the mapping to [`crate::model::Transcript`]. Keeps places, not
//! copies; reads with positioned reads (no mmap: `unsafe_code` is forbidden). Refuses to know rubrics or runs.
//!
//! **Everything downstream knows one form.** The native form is one JSON object a line, `{"id"?, "messages": [...],
//! "metadata"?, "tags"?, "verdicts"?}` in OpenAI chat shapes (`native.rs` reads it, `write.rs` writes it). A native file is
//! handed on as its own bytes; a reader of another format (`formats/`, one file each) turns what it finds into model
//! transcripts, and those are written in the native form. So a run's copy of a transcript can be shown without the format
//! it came from, and `dicta import` prints what every other command sees. What the source had, byte for byte, is
//! [`TranscriptFile::raw`].
//!
//! A record's number counts the records of its file from 1; lines that hold only white space are none. A byte order mark,
//! CRLF and a torn last line are accepted; a bad record is counted with its reason and never refuses the file; what a
//! reader did not understand is counted by kind ([`Tally`]).

mod content;
mod detect;
mod field_mapping;
mod fields;
mod file;
mod formats;
mod guess;
mod json_path;
mod lenient;
mod metadata;
mod native;
mod reader;
mod scan;
mod sniff;
mod source;
mod unix;
mod walk;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

use crate::model::{Label, SourceVerdict, Transcript};

pub use field_mapping::{FieldMapping, FieldMappings};
pub use file::TranscriptFile;
pub use formats::promptfoo::promptfoo_id;
pub use guess::{MappingGuess, guess_mapping};
pub use native::parse_native;
pub use write::to_native;

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
    /// Records or rows of a shape that is nobody's in particular.
    #[error(
        "{path} holds no transcripts that are recognised: {why}; `dicta map {path}` prints a guess of what its fields mean, for dicta.yaml"
    )]
    Unmapped {
        /// Which file.
        path: PathBuf,
        /// What was found.
        why: String,
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
pub struct RecordSpan {
    /// From the start of the file, in bytes.
    pub offset: u64,
    /// In bytes, line end excluded; [`MAX_RECORD`] for a record that is longer still.
    pub len: u64,
    /// Which of the transcripts at this place, from 0.
    pub part: u32,
    /// The number in its file, from 1 (what ids are made of): of a native record among the records, else of the
    /// transcript among those handed out. Blank lines are no records.
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

/// A run of transcripts in the native form.
#[derive(Debug, Default, PartialEq)]
pub struct TranscriptBlock {
    /// The bytes of all of them.
    pub bytes: Vec<u8>,
    /// In the file's order.
    pub records: Vec<TranscriptRecord>,
}

/// One transcript, or what should have been one.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptRecord {
    /// Where it stands in its file.
    pub span: RecordSpan,
    /// Where its native form stands in the block's bytes.
    pub byte_range: Range<usize>,
    /// Why there is none, as far as its reader could tell: a sentence.
    pub fault: Option<String>,
    /// What people said of it, where its file says so. `transcript` is the id that the file has: who makes ids unique
    /// takes the label along.
    pub labels: Vec<Label>,
}

impl TranscriptBlock {
    /// Every record with its bytes, in order.
    pub fn records(&self) -> impl Iterator<Item = (&TranscriptRecord, &[u8])> {
        self.records
            .iter()
            .map(|record| (record, &self.bytes[record.byte_range.clone()]))
    }
}

impl TranscriptRecord {
    /// The record as a transcript. `bytes` are its own; `default_id` names it if it has no id.
    pub fn parse<'b>(
        &self,
        bytes: &'b [u8],
        default_id: &str,
    ) -> Result<Transcript<'b>, BadRecord> {
        match &self.fault {
            None => parse_native(bytes, self.span.number, default_id),
            Some(why) => Err(BadRecord {
                number: self.span.number,
                why: why.clone(),
            }),
        }
    }
}

/// How a reader fared with a file of another format than the native one, so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadTally {
    /// Records as the format counts them: lines of a session, samples, spans.
    pub records: u64,
    /// Those that were passed over, by what they are; kept where they are, reachable as raw.
    pub unknown: BTreeMap<String, u64>,
    /// Of records that were understood: what a map looks for and did not find, in words.
    pub missing: BTreeMap<String, u64>,
    /// Transcripts and faults handed out: where their numbers come from.
    emitted: u64,
}

impl ReadTally {
    /// How many were passed over.
    pub fn unknown_count(&self) -> u64 {
        self.unknown.values().sum()
    }
}

/// A transcript as a format's own directory tells of it, without its content.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptIndexEntry {
    /// Where it is.
    pub span: RecordSpan,
    /// Its id.
    pub id: String,
    /// What its own tools call it, where that is another name.
    pub uuid: Option<String>,
    /// What the source decided.
    pub verdicts: Vec<SourceVerdict>,
}

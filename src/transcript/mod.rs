//! Transcript files: one reader per format, which turns a file into transcripts as the caller asks for them.
//!
//! Responsible for the detection of a format from the content, the walk over a file, and the conversion to
//! [`crate::model::Transcript`]. Keeps the location of each record, not a copy, and uses positioned reads. It can't map
//! files into memory, because the crate forbids `unsafe_code`. Does not know rubrics or runs.
//!
//! # The native format
//!
//! All code after the readers knows one format. A native file has one JSON object per line, `{"id"?, "messages": [...],
//! "metadata"?, "tags"?, "verdicts"?}`, with messages as in OpenAI chat. `native.rs` reads it and `write.rs` writes it.
//! dicta passes a native file through as its own bytes. A reader of another format (`formats/`, one file each) creates
//! model transcripts, and dicta writes those in the native format. So dicta can show a run's copy of a transcript without
//! the original format. `dicta import` prints what every other command reads. [`TranscriptFile::read_raw`] returns the
//! bytes of the source.
//!
//! # Records
//!
//! A record's number is its position in the file, from 1; lines of white space do not count. A byte order mark, CRLF
//! and a torn last line are valid. A bad record never makes a file unreadable: dicta counts it with its reason. Content
//! that a reader did not understand is counted by kind in [`ReadTally`].

mod content;
mod detect;
mod field_mapping;
mod fields;
mod file;
mod file_version;
mod formats;
mod guess;
mod json_path;
mod lenient;
mod line_counter;
mod metadata;
mod native;
mod outline;
mod own_file;
mod pages;
mod pairs;
#[cfg(feature = "parquet")]
mod parquet_limits;
#[cfg(feature = "parquet")]
mod parquet_rows;
mod reader;
mod scan;
mod sniff;
mod source;
mod text_encoding;
mod trial;
mod unique_ids;
mod unix;
mod unread;
mod unread_files;
mod walk;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

use crate::model::{Label, SourceVerdict, Transcript, explain_file_error, quote_shell_path};

pub use field_mapping::{FieldMapping, FieldMappings};
pub use file::TranscriptFile;
pub(crate) use file_version::FileVersion;
pub(crate) use formats::api_pages::find_missing_pages;
pub use formats::promptfoo::promptfoo_id;
#[cfg(test)]
pub(crate) use formats::{catalog::DESCRIPTIONS, description::SampleOrigin};
pub(crate) use guess::guess_mapping_of_bytes;
pub use guess::{MappingGuess, guess_mapping};
pub use native::parse_native;
pub use trial::DetectionConfidence;
pub(crate) use unique_ids::TranscriptIds;
pub use unread::{ReadCounts, UnreadContent};
pub use write::to_native;

/// Returns the names of the formats that have a reader.
pub(crate) fn readable_formats() -> Vec<&'static str> {
    formats::readers().map(|(name, _)| name).collect()
}

/// Returns the part of a file's default ids before the record number.
pub(crate) fn default_id_prefix(path: &std::path::Path) -> String {
    source::find_id_prefix(path)
}

/// The size limit of a record, in bytes. A record of this size or more is bad, because it could fill the memory.
pub const MAX_RECORD: usize = 128 * 1024 * 1024;

/// An error that makes a whole file unreadable. A single bad record never does.
#[derive(Debug, Error)]
pub enum TranscriptError {
    /// The operating system returned an error.
    #[error("{}", explain_file_error(.path, .why))]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        why: std::io::Error,
    },
    /// The path names a directory, a device or a pipe.
    #[error("{path} is {what}, not a file of transcripts")]
    NotAFile {
        /// The path of the file.
        path: PathBuf,
        /// The type of the file with its article, such as `a directory`.
        what: &'static str,
    },
    /// dicta recognises the format but has no reader for it.
    #[error(
        "{path} looks like {format}, which this version of dicta cannot read; unpack it, or export JSON lines or CSV"
    )]
    Unsupported {
        /// The path of the file.
        path: PathBuf,
        /// The name of the format.
        format: &'static str,
    },
    /// The file has records or rows, but in no format that dicta knows. A field mapping can describe them.
    #[error(
        "{path} holds no transcripts in a known format: {why}; `dicta map {}` prints a guess of the field mapping for dicta.yaml",
        quote_shell_path(.path)
    )]
    Unmapped {
        /// The path of the file.
        path: PathBuf,
        /// A sentence fragment that describes the first record.
        why: String,
    },
    /// The file is one of dicta's own, such as a file of labels.
    #[error("{path} holds {content}, not transcripts: {advice}")]
    OwnFile {
        /// The path of the file.
        path: PathBuf,
        /// A sentence fragment that names the content.
        content: &'static str,
        /// A sentence fragment with the commands that read the file.
        advice: String,
    },
    /// The file has no records that dicta can recognise.
    #[error("{path} holds no transcripts: {why}")]
    Unknown {
        /// The path of the file.
        path: PathBuf,
        /// A sentence fragment that describes the content.
        why: String,
    },
}

/// The location of a record in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSpan {
    /// The offset from the start of the file, in bytes.
    pub offset: u64,
    /// The length in bytes, without the line end. It is [`MAX_RECORD`] for a longer record.
    pub len: u64,
    /// The index of the transcript among those at this location, from 0.
    pub part: u32,
    /// The number in its file, from 1, which default ids contain. For a native file it counts records, for other
    /// formats the transcripts that the reader returned. Blank lines do not count.
    pub number: u64,
}

/// A record that is not a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// The number of the record in its file, from 1.
    pub number: u64,
    /// The reason, as a sentence fragment.
    pub why: String,
}

/// Consecutive transcripts of a file, in the native format.
#[derive(Debug, Default, PartialEq)]
pub struct TranscriptBlock {
    /// The bytes of all transcripts.
    pub bytes: Vec<u8>,
    /// The transcripts in the order of the file.
    pub records: Vec<TranscriptRecord>,
}

/// One transcript of a block, or a fault in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptRecord {
    /// The location in its file.
    pub span: RecordSpan,
    /// The range of its native JSON in the bytes of the block.
    pub byte_range: Range<usize>,
    /// The reason why the reader found no transcript, as a sentence fragment; `None` if there is one.
    pub fault: Option<String>,
    /// The labels of this transcript that its file contains. A label's `transcript` is the id in the file: code that
    /// makes ids unique must update the label too.
    pub labels: Vec<Label>,
}

impl TranscriptBlock {
    /// Returns every record with its bytes, in order.
    pub fn records(&self) -> impl Iterator<Item = (&TranscriptRecord, &[u8])> {
        self.records
            .iter()
            .map(|record| (record, &self.bytes[record.byte_range.clone()]))
    }
}

impl TranscriptRecord {
    /// Returns true if the record is a pair that dicta joined, not a record of the file.
    pub const fn is_pair(&self) -> bool {
        self.span.part & pairs::PAIR_PART != 0
    }

    /// Parses the record. `bytes` are the bytes of this record; `default_id` is the id if the record has none.
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

/// The counts of a reader of a format other than the native one, so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadTally {
    /// The number of records, as the format counts them: lines of a session, samples, spans.
    pub records: u64,
    /// The skipped records, by kind. They remain readable as raw content.
    pub unknown: BTreeMap<String, u64>,
    /// For records that were read: the parts that a field mapping did not find, in words.
    pub missing: BTreeMap<String, u64>,
    /// The number of transcripts and faults returned, from which dicta computes record numbers.
    emitted: u64,
}

impl ReadTally {
    /// Returns the number of skipped records.
    pub fn unknown_count(&self) -> u64 {
        self.unknown.values().sum()
    }
}

/// A transcript as the index of its file describes it, without its content.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptIndexEntry {
    /// The location of the transcript.
    pub span: RecordSpan,
    /// The id of the transcript.
    pub id: String,
    /// The id that the tools of the format use, if it differs.
    pub uuid: Option<String>,
    /// The source verdicts.
    pub verdicts: Vec<SourceVerdict>,
}

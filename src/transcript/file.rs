//! An open file of transcripts, in whatever format.

use std::path::Path;
use std::sync::Arc;

use super::detect::{self, DetectError};
use super::field_mapping::FieldMapping;
use super::formats::mapped;
use super::reader::TranscriptReader;
use super::source::SourceFile;
use super::{ReadTally, RecordSpan, TranscriptBlock, TranscriptError, TranscriptIndexEntry, walk};

/// An open file of transcripts.
#[derive(Debug)]
pub struct TranscriptFile {
    source: SourceFile,
    format: &'static str,
    reader: Box<dyn TranscriptReader>,
}

impl TranscriptFile {
    /// Opens a file and recognises its format from its first bytes. Never blocks: what is no regular file is refused
    /// before it is opened.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        Self::open_mapped(path, None)
    }

    /// The same, of a file whose fields a map names.
    pub fn open_mapped(
        path: &Path,
        map: Option<&Arc<FieldMapping>>,
    ) -> Result<Self, TranscriptError> {
        let source = SourceFile::open(path)?;
        let mut head = Vec::new();
        source.fill_buffer(0, &mut head, walk::BLOCK_SIZE)?;
        let refused = |refusal| match refusal {
            DetectError::Unsupported(format) => TranscriptError::Unsupported {
                path: path.to_owned(),
                format,
            },
            DetectError::Unknown(why) => source.unknown_error(why),
            DetectError::Unmapped(why) => source.unmapped_error(why),
        };
        let (format, reader) = if let Some(map) = map {
            mapped::open(&source, &head, map).map_err(refused)?
        } else {
            let found = detect::detect(&head).map_err(refused)?;
            (found.name, (found.create_reader)(&source, &found.preview)?)
        };
        Ok(Self {
            source,
            format,
            reader,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// What it is, as a sentence can hold it: `a Claude Code session`.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Walks the file once: each call returns the next few transcripts (about 1 MiB of them), or `None` at the end. The
    /// first ones are there long before a large file is walked.
    pub fn next_block(&mut self) -> Result<Option<TranscriptBlock>, TranscriptError> {
        self.reader.next_block(&self.source)
    }

    /// One transcript's native form again.
    pub fn read_native(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        self.reader.read_native(&self.source, span)
    }

    /// What the file itself holds of a transcript, as written; of a compressed one, unpacked.
    pub fn read_raw(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        self.reader.read_raw(&self.source, span)
    }

    /// All transcripts by the file's own directory, where the format has one: none is read.
    pub fn read_index(&mut self) -> Result<Option<Vec<TranscriptIndexEntry>>, TranscriptError> {
        self.reader.read_index(&self.source)
    }

    /// What was counted so far; `None` for native files, where every record is a transcript or a bad one.
    pub fn tally(&self) -> Option<&ReadTally> {
        self.reader.tally()
    }

    /// The id of a record that has none of its own: `<file stem>:<number>`.
    pub fn default_id(&self, number: u64) -> String {
        self.source.default_id(number)
    }
}

#[cfg(test)]
mod tests;

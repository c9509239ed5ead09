//! An open transcript file in any format.
//!
//! Responsible for the choice between detection and a field mapping. Does not know any format.

use std::path::Path;
use std::sync::Arc;

use super::detect::{self, DetectError};
use super::field_mapping::FieldMapping;
use super::formats::{self, mapped};
use super::reader::TranscriptReader;
use super::source::SourceFile;
use super::{ReadTally, RecordSpan, TranscriptBlock, TranscriptError, TranscriptIndexEntry, walk};

/// An open transcript file.
#[derive(Debug)]
pub struct TranscriptFile {
    source: SourceFile,
    format: &'static str,
    reader: Box<dyn TranscriptReader>,
}

impl TranscriptFile {
    /// Opens a file and detects its format from its first bytes. It never blocks: only regular files are opened.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        Self::open_mapped(path, None)
    }

    /// Opens a file as [`Self::open`] does, with a field mapping if the workspace has one for it.
    pub fn open_mapped(
        path: &Path,
        map: Option<&Arc<FieldMapping>>,
    ) -> Result<Self, TranscriptError> {
        let source = SourceFile::open(path)?;
        let mut head = Vec::new();
        // One block is enough for the detection, and it bounds the memory for any file size.
        source.fill_buffer(0, &mut head, walk::BLOCK_SIZE)?;
        let refused = |refusal| match refusal {
            DetectError::Unsupported(format) => TranscriptError::Unsupported {
                path: path.to_owned(),
                format,
            },
            DetectError::Unknown(why) => source.unknown_error(why),
            DetectError::Unmapped(why) => source.unmapped_error(why),
        };
        // A mapping is explicit, so it takes precedence over detection.
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

    /// Opens a file with the reader of `format`, whatever its content is.
    pub(crate) fn open_as(path: &Path, format: &str) -> Result<Self, TranscriptError> {
        let source = SourceFile::open(path)?;
        let mut head = Vec::new();
        source.fill_buffer(0, &mut head, walk::BLOCK_SIZE)?;
        let (name, create_reader) = formats::readers()
            .find(|(name, _)| *name == format)
            .ok_or_else(|| source.unknown_error(format!("no reader is named `{format}`")))?;
        let preview = detect::preview_as(&head, name)
            .map_err(|_| source.unknown_error("it has no records".to_owned()))?;
        let reader = create_reader(&source, &preview)?;
        Ok(Self {
            source,
            format: name,
            reader,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Returns the format with its article: `a Claude Code session`.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Returns the next transcripts (about 1 MiB), or `None` at the end. The first transcripts are available long
    /// before a large file is read.
    pub fn next_block(&mut self) -> Result<Option<TranscriptBlock>, TranscriptError> {
        self.reader.next_block(&self.source)
    }

    /// Returns the native JSON of the transcript at `span`.
    pub fn read_native(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        self.reader.read_native(&self.source, span)
    }

    /// Returns the bytes of the file for a transcript, decompressed if necessary.
    pub fn read_raw(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        self.reader.read_raw(&self.source, span)
    }

    /// Returns all transcripts from the index of the file, without reading them; `None` if the format has no index.
    pub fn read_index(&mut self) -> Result<Option<Vec<TranscriptIndexEntry>>, TranscriptError> {
        self.reader.read_index(&self.source)
    }

    /// Returns the counts so far; `None` for native files, in which each record is a transcript or a bad record.
    pub fn tally(&self) -> Option<&ReadTally> {
        self.reader.tally()
    }

    /// Returns the id of a record without one: `<file stem>:<number>`.
    pub fn default_id(&self, number: u64) -> String {
        self.source.default_id(number)
    }
}

#[cfg(test)]
mod tests;

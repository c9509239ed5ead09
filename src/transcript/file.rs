//! An open file of transcripts, in whatever format.

use std::path::Path;
use std::sync::Arc;

use super::detect::{self, Refusal};
use super::formats::mapped;
use super::map::FieldMap;
use super::reader::Reader;
use super::source::Source;
use super::{Block, Entry, Span, Tally, TranscriptError, walk};

/// An open file of transcripts.
#[derive(Debug)]
pub struct TranscriptFile {
    source: Source,
    format: &'static str,
    reader: Box<dyn Reader>,
}

impl TranscriptFile {
    /// Opens a file and recognises its format from its first bytes. Never blocks: what is no regular file is refused
    /// before it is opened.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        Self::open_as(path, None)
    }

    /// The same, of a file whose fields a map names.
    pub fn open_as(path: &Path, map: Option<&Arc<FieldMap>>) -> Result<Self, TranscriptError> {
        let source = Source::open(path)?;
        let mut head = Vec::new();
        source.fill(0, &mut head, walk::BLOCK)?;
        let refused = |refusal| match refusal {
            Refusal::Unsupported(format) => TranscriptError::Unsupported {
                path: path.to_owned(),
                format,
            },
            Refusal::Unknown(why) => source.unknown(why),
            Refusal::Foreign(why) => source.unmapped(why),
        };
        let (format, reader) = if let Some(map) = map {
            mapped::open(&source, &head, map).map_err(refused)?
        } else {
            let found = detect::detect(&head).map_err(refused)?;
            (found.name, (found.open)(&source, &found.look)?)
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
    pub fn next_block(&mut self) -> Result<Option<Block>, TranscriptError> {
        self.reader.next(&self.source)
    }

    /// One transcript's native form again.
    pub fn read(&self, span: Span) -> Result<Vec<u8>, TranscriptError> {
        self.reader.again(&self.source, span)
    }

    /// What the file itself holds of a transcript, as written; of a compressed one, unpacked.
    pub fn raw(&self, span: Span) -> Result<Vec<u8>, TranscriptError> {
        self.reader.raw(&self.source, span)
    }

    /// All transcripts by the file's own directory, where the format has one: none is read.
    pub fn entries(&mut self) -> Result<Option<Vec<Entry>>, TranscriptError> {
        self.reader.entries(&self.source)
    }

    /// What was counted so far; `None` for native files, where every record is a transcript or a bad one.
    pub fn tally(&self) -> Option<&Tally> {
        self.reader.tally()
    }

    /// The id of a record that has none of its own: `<file stem>:<number>`.
    pub fn default_id(&self, number: u64) -> String {
        self.source.default_id(number)
    }
}

#[cfg(test)]
mod tests;

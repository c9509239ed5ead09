//! An open transcript file in any format.
//!
//! Responsible for the choice between detection and a field mapping. Does not know any format.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::detect::{self, DetectError};
use super::field_mapping::FieldMapping;
use super::formats::{self, mapped};
use super::line_counter::LineCounter;
use super::own_file::OwnFile;
use super::pairs::{PAIR_PART, PairJoiner};
use super::reader::TranscriptReader;
use super::source::{BLOCK_SIZE, SourceFile};
use super::trial::{ChoiceError, DetectionConfidence, choose_format};
use super::{ReadTally, RecordSpan, TranscriptBlock, TranscriptError, TranscriptIndexEntry};
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::pluralize;

/// The code of the warning about a transcript that is not compared.
const PAIR_WARNING: &str = "pair";

/// An open transcript file.
#[derive(Debug)]
pub struct TranscriptFile {
    source: SourceFile,
    format: &'static str,
    confidence: Option<DetectionConfidence>,
    reader: Box<dyn TranscriptReader>,
    /// The blocks that the detection of the format already read.
    read_ahead: VecDeque<TranscriptBlock>,
    /// The field mapping, to open the file again.
    map: Option<Arc<FieldMapping>>,
    /// The state of the search for pairs; `None` if the caller does not want them.
    pairs: Option<PairJoiner>,
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
        Self::from_source(SourceFile::open(path)?, map)
    }

    /// Reads an open file as [`Self::open_mapped`] does.
    pub(super) fn from_source(
        source: SourceFile,
        map: Option<&Arc<FieldMapping>>,
    ) -> Result<Self, TranscriptError> {
        let path = source.path();
        let mut head = Vec::new();
        // One block is enough for the detection, and it bounds the memory for any file size.
        source.fill_buffer(0, &mut head, BLOCK_SIZE)?;
        let refused = |refusal| match refusal {
            DetectError::Unsupported(format) => TranscriptError::Unsupported {
                path: path.to_owned(),
                format,
            },
            DetectError::Unknown(why) => source.unknown_error(why),
            DetectError::Unmapped(why) => source.unmapped_error(why),
        };
        // A run reports an empty file, and this one has no transcripts either.
        if source.size() <= BLOCK_SIZE as u64 && detect::is_empty_list(&head) {
            return Err(source.unknown_error("its list is empty"));
        }
        // A mapping is explicit, so it takes precedence over detection.
        if let Some(map) = map {
            let (format, reader) = mapped::open(&source, &head, map).map_err(refused)?;
            return Ok(Self {
                source,
                format,
                confidence: None,
                reader,
                read_ahead: VecDeque::new(),
                map: Some(Arc::clone(map)),
                pairs: None,
            });
        }
        let candidates = detect::find_candidates(&head).map_err(|refusal| {
            // Only a file without a known format, because other tools use some of the same keys.
            match OwnFile::find(path, &head) {
                Some(own) => TranscriptError::OwnFile {
                    path: path.to_owned(),
                    content: own.content(),
                    advice: own.advice(path),
                },
                None => refused(refusal),
            }
        })?;
        let chosen = choose_format(&source, &candidates).map_err(|error| match error {
            ChoiceError::Refused(refusal) => refused(refusal),
            ChoiceError::Failed(error) => error,
        })?;
        Ok(Self {
            format: chosen.name,
            confidence: Some(chosen.confidence),
            reader: chosen.reader,
            read_ahead: chosen.blocks,
            map: None,
            pairs: None,
            source,
        })
    }

    /// Reads bytes in the place of the file `path`, as [`Self::open_mapped`] does.
    pub(crate) fn read_bytes(
        path: &Path,
        bytes: &[u8],
        map: Option<&Arc<FieldMapping>>,
    ) -> Result<Self, TranscriptError> {
        Self::from_source(SourceFile::from_bytes(path, bytes), map)
    }

    /// Reads bytes in the place of the file `path` with the reader of `format`, whatever they are.
    pub(crate) fn read_bytes_as(
        path: &Path,
        bytes: &[u8],
        format: &str,
    ) -> Result<Self, TranscriptError> {
        Self::from_source_as(SourceFile::from_bytes(path, bytes), format)
    }

    /// Opens a file with the reader of `format`, whatever its content is.
    #[cfg(test)]
    pub(super) fn open_as(path: &Path, format: &str) -> Result<Self, TranscriptError> {
        Self::from_source_as(SourceFile::open(path)?, format)
    }

    fn from_source_as(source: SourceFile, format: &str) -> Result<Self, TranscriptError> {
        let mut head = Vec::new();
        source.fill_buffer(0, &mut head, BLOCK_SIZE)?;
        let (name, create_reader) = formats::readers()
            .find(|(name, _)| *name == format)
            .ok_or_else(|| source.unknown_error(format!("no reader is named `{format}`")))?;
        let preview = detect::preview_as(&head, name)
            .map_err(|_| source.unknown_error("it has no records".to_owned()))?;
        let reader = create_reader(&source, &preview)?;
        Ok(Self {
            source,
            format: name,
            confidence: None,
            reader,
            read_ahead: VecDeque::new(),
            map: None,
            pairs: None,
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

    /// Returns true if the reader reads other files of the same tool, so that the file alone does not decide the reading.
    pub(crate) fn reads_other_files(&self) -> bool {
        formats::reads_other_files(self.format)
    }

    /// Returns the confidence of the detection; `None` if the caller named the format or gave a field mapping.
    pub fn confidence(&self) -> Option<DetectionConfidence> {
        self.confidence
    }

    /// Returns the next transcripts (about 1 MiB), or `None` at the end. The first transcripts are available long
    /// before a large file is read.
    pub fn next_block(&mut self) -> Result<Option<TranscriptBlock>, TranscriptError> {
        let next = match self.read_ahead.pop_front() {
            Some(block) => Some(block),
            None => self.reader.next_block(&self.source)?,
        };
        let mut pairs = self.pairs.take();
        let joined = match (next, &mut pairs) {
            (Some(mut block), Some(pairs)) => {
                pairs.join(&mut block, &|number| self.source.default_id(number));
                Some(block)
            }
            (next, _) => next,
        };
        self.pairs = pairs;
        Ok(joined)
    }

    /// Returns the file with a further transcript after each complete pair (see [`crate::model::ComparedPair`]).
    #[must_use]
    pub fn join_pairs(mut self) -> Self {
        self.pairs = Some(PairJoiner::default());
        self
    }

    /// Returns the lines of ascending offsets: in a Parquet file the rows, and unknown ones in other binary files.
    pub fn find_lines(&self, offsets: &[u64]) -> Vec<SourceSpan> {
        let mut lines = LineCounter::new(&self.source);
        let spans = offsets
            .iter()
            .map(|offset| lines.find_line(*offset).unwrap_or_default());
        spans.collect()
    }

    /// Returns a warning for each of the first transcripts read so far that name a pair of two other transcripts, and one
    /// for the others. `shown` is the name of the file for the user.
    pub fn pair_warnings(&self, shown: &Path) -> Vec<Diagnostic> {
        let Some(pairs) = &self.pairs else {
            return Vec::new();
        };
        let (named, more) = pairs.further();
        let mut lines = LineCounter::new(&self.source);
        let mut warnings: Vec<Diagnostic> = named
            .iter()
            .map(|member| Diagnostic {
                span: lines.find_line(member.offset),
                ..Diagnostic::warning(PAIR_WARNING, shown, member.describe())
            })
            .collect();
        if more > 0 {
            let what = pluralize(more, "further transcript");
            let message = format!("{what} of complete pairs: not compared either");
            warnings.push(Diagnostic::warning(PAIR_WARNING, shown, message));
        }
        warnings
            .into_iter()
            .map(|warning| {
                warning.help(
                    "`metadata.pair` joins two transcripts: give each two a name of their own",
                )
            })
            .collect()
    }

    /// Returns the native JSON of the transcript at `span`.
    pub fn read_native(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        if span.part & PAIR_PART != 0 {
            return self.read_pair(span);
        }
        self.reader.read_native(&self.source, span)
    }

    /// Returns the native JSON of a pair. Its transcripts can be anywhere in the file, so this reads the file up to it.
    fn read_pair(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        let mut file = Self::open_mapped(self.path(), self.map.as_ref())?.join_pairs();
        while let Some(block) = file.next_block()? {
            let found = block.records().find(|(record, _)| {
                (record.span.offset, record.span.part) == (span.offset, span.part)
            });
            if let Some((_, bytes)) = found {
                return Ok(bytes.to_vec());
            }
        }
        Err(self.source.unknown_error(format!(
            "the file changed: it has no pair at byte {} any more; open it again",
            span.offset
        )))
    }

    /// Returns the bytes of the file for a transcript, decompressed if necessary. Of a pair, these are the bytes of its
    /// second transcript.
    pub fn read_raw(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        let part = span.part & !PAIR_PART;
        self.reader
            .read_raw(&self.source, RecordSpan { part, ..span })
    }

    /// Returns all transcripts from the index of the file, without reading them; `None` if the format has no index.
    pub fn read_index(&mut self) -> Result<Option<Vec<TranscriptIndexEntry>>, TranscriptError> {
        self.reader.read_index(&self.source)
    }

    /// Returns the counts so far; `None` for native files, in which each record is a transcript or a bad record.
    pub fn tally(&self) -> Option<&ReadTally> {
        self.reader.tally()
    }

    /// Returns the id of a record without one: the path below the workspace without extension, with `.` for `/`, then
    /// `:` and the number.
    pub fn default_id(&self, number: u64) -> String {
        self.source.default_id(number)
    }
}

#[cfg(test)]
mod tests;

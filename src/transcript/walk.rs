//! The walk over the records of a file: lines, rows, or consecutive JSON values, each found in one pass.
//!
//! Responsible for the location of records. Does not know any format. Memory does not grow with the file: a block has
//! about [`BLOCK_SIZE`] bytes, and more only for a single record that is longer.

use std::ops::Range;

use super::scan::{CsvRowScanner, JsonValueScanner};
use super::source::SourceFile;
use super::{MAX_RECORD, RecordSpan, TranscriptError};

/// The number of bytes that one read requests.
pub(super) const BLOCK_SIZE: usize = 1024 * 1024;

/// The layout of the records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordLayout {
    /// One record per line.
    Lines,
    /// Consecutive JSON values, which may extend over several lines: elements of an array, or values without one.
    Values {
        /// True if the walk is inside an array.
        array: bool,
    },
    /// The elements of an array within a larger value; the walk ends with the array. If the file ends before the array
    /// does, an empty record represents the rest.
    Elements,
    /// Rows of a CSV table; a quoted cell may contain line breaks.
    Rows,
    /// The walk has reached the end.
    Done,
}

/// The position of a walk over a file.
#[derive(Debug)]
pub(super) struct RecordWalker {
    layout: RecordLayout,
    /// The offset of the next block.
    pos: u64,
    /// The number of the next record, from 1.
    number: u64,
}

/// Consecutive complete records, as bytes of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordBlock {
    /// The bytes of all records and of the text between them.
    pub(super) bytes: Vec<u8>,
    /// The offset of `bytes` in the file.
    pub(super) offset: u64,
    /// The records in the block.
    pub(super) spans: Vec<RecordSpan>,
}

impl RecordBlock {
    /// Returns the range in `bytes` of a record of this block.
    pub(super) fn byte_range(&self, span: RecordSpan) -> Range<usize> {
        let start = usize::try_from(span.offset - self.offset).expect("a block fits in memory");
        let len = usize::try_from(span.len).expect("a record fits in memory");
        start..start + len
    }
}

impl RecordWalker {
    /// Returns true if each record is a line.
    pub(super) fn has_lines(&self) -> bool {
        self.layout == RecordLayout::Lines
    }

    /// Returns a walker that begins at `pos`.
    pub(super) fn new(layout: RecordLayout, pos: u64) -> Self {
        Self {
            layout,
            pos,
            number: 1,
        }
    }

    /// Returns the next block (about 1 MiB) with the locations of its records, or `None` at the end.
    pub(super) fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<RecordBlock>, TranscriptError> {
        loop {
            let block = match self.layout {
                RecordLayout::Done => return Ok(None),
                RecordLayout::Lines => self.next_lines(source)?,
                RecordLayout::Rows => self.next_rows(source)?,
                RecordLayout::Values { .. } | RecordLayout::Elements => self.next_values(source)?,
            };
            // A block of blank lines has no record, so the walk continues.
            if !block.spans.is_empty() {
                return Ok(Some(block));
            }
        }
    }

    fn number_span(&mut self, start: usize, end: usize) -> RecordSpan {
        let number = self.number;
        self.number += 1;
        RecordSpan {
            offset: self.pos + start as u64,
            len: (end - start) as u64,
            part: 0,
            number,
        }
    }

    fn finish_block(
        &mut self,
        mut bytes: Vec<u8>,
        end: usize,
        spans: Vec<RecordSpan>,
    ) -> RecordBlock {
        bytes.truncate(end);
        let offset = self.pos;
        self.pos += end as u64;
        RecordBlock {
            bytes,
            offset,
            spans,
        }
    }

    fn next_lines(&mut self, source: &SourceFile) -> Result<RecordBlock, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK_SIZE;
        let end = loop {
            let len_before = bytes.len();
            let ended = source.fill_buffer(self.pos, &mut bytes, want)?;
            if ended {
                self.layout = RecordLayout::Done;
                break bytes.len();
            }
            // The block ends at its last complete line; the rest begins the next block.
            if let Some(at) = memchr::memrchr(b'\n', &bytes[len_before..]) {
                break len_before + at + 1;
            }
            if bytes.len() >= MAX_RECORD {
                return self.skip_overlong(source, bytes, 0, MAX_RECORD, |piece| {
                    memchr::memchr(b'\n', piece).map(|at| at + 1)
                });
            }
            // Doubling keeps the total work linear for one long record.
            want = (bytes.len() * 2).clamp(BLOCK_SIZE, MAX_RECORD);
        };
        // A guess of the number of records, to avoid most reallocations.
        let mut spans = Vec::with_capacity(end / 4096 + 1);
        let mut start = 0;
        while start < end {
            let stop = memchr::memchr(b'\n', &bytes[start..end]).map_or(end, |at| start + at);
            let line = &bytes[start..stop];
            if !line.trim_ascii_start().is_empty() {
                // A record excludes its line end, and files from Windows end lines with CRLF.
                let len = line.strip_suffix(b"\r").unwrap_or(line).len();
                spans.push(self.number_span(start, start + len));
            }
            start = stop + 1;
        }
        Ok(self.finish_block(bytes, end, spans))
    }

    fn next_rows(&mut self, source: &SourceFile) -> Result<RecordBlock, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK_SIZE;
        let mut spans = Vec::new();
        let (mut start, mut at) = (0, 0);
        // The scanner keeps its state between reads, so a long row is scanned once.
        let mut scan = CsvRowScanner::default();
        loop {
            let ended = source.fill_buffer(self.pos, &mut bytes, want)?;
            while let Some(len) = scan.feed(&bytes[at..]) {
                at += len;
                self.push_row(&bytes, start, at, &mut spans);
                start = at;
                scan = CsvRowScanner::default();
            }
            at = bytes.len();
            if ended {
                self.layout = RecordLayout::Done;
                self.push_row(&bytes, start, at, &mut spans);
                return Ok(self.finish_block(bytes, at, spans));
            }
            // At least one row is complete. The torn rest begins the next block.
            if !spans.is_empty() {
                return Ok(self.finish_block(bytes, start, spans));
            }
            if bytes.len() - start >= MAX_RECORD {
                return self.skip_overlong(source, bytes, start, at, |piece| scan.feed(piece));
            }
            want = (bytes.len() * 2).clamp(BLOCK_SIZE, start + MAX_RECORD);
        }
    }

    /// Adds a row to `spans`, unless it is blank.
    fn push_row(&mut self, bytes: &[u8], start: usize, end: usize, spans: &mut Vec<RecordSpan>) {
        let row = &bytes[start..end];
        if !row.trim_ascii_start().is_empty() {
            let row = row.strip_suffix(b"\n").unwrap_or(row);
            let row = row.strip_suffix(b"\r").unwrap_or(row);
            spans.push(self.number_span(start, start + row.len()));
        }
    }

    /// Returns a block with the head of a record of [`MAX_RECORD`] bytes or more that begins at `start`, and skips its
    /// rest. `end` finds the end of the record in the bytes that follow `read`.
    fn skip_overlong(
        &mut self,
        source: &SourceFile,
        bytes: Vec<u8>,
        start: usize,
        read: usize,
        end: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Result<RecordBlock, TranscriptError> {
        // The record keeps its head, so that the parser reports it as too long.
        let head = self.number_span(start, start + MAX_RECORD);
        let block = self.finish_block(bytes, read, vec![head]);
        self.skip_until(source, end)?;
        Ok(block)
    }

    /// Advances to the position that `end` finds, or to the end of the file.
    fn skip_until(
        &mut self,
        source: &SourceFile,
        mut end: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Result<(), TranscriptError> {
        let mut block = Vec::new();
        loop {
            block.clear();
            let ended = source.fill_buffer(self.pos, &mut block, BLOCK_SIZE)?;
            if let Some(at) = end(&block) {
                self.pos += at as u64;
                return Ok(());
            }
            self.pos += block.len() as u64;
            if ended {
                self.layout = RecordLayout::Done;
                return Ok(());
            }
        }
    }

    fn next_values(&mut self, source: &SourceFile) -> Result<RecordBlock, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK_SIZE;
        let mut spans = Vec::new();
        let mut at = 0;
        // The start of the value that the loop reads, and its scanner.
        let mut open: Option<(usize, JsonValueScanner)> = None;
        loop {
            let ended = source.fill_buffer(self.pos, &mut bytes, want)?;
            loop {
                // Inside a value, the scanner continues; between values, the loop looks for the next start.
                if let Some((start, scan)) = &mut open {
                    let Some(len) = scan.feed(&bytes[at..]) else {
                        at = bytes.len();
                        break;
                    };
                    at += len;
                    let start = *start;
                    spans.push(self.number_span(start, at));
                    open = None;
                } else {
                    at = self.skip_separators(&bytes, at);
                    if at == bytes.len() || self.layout == RecordLayout::Done {
                        break;
                    }
                    open = Some((at, JsonValueScanner::default()));
                }
            }
            let Some((start, mut scan)) = open else {
                if ended {
                    // The empty record makes the reader report that the file ends too early.
                    if self.layout == RecordLayout::Elements {
                        spans.push(self.number_span(at, at));
                    }
                    self.layout = RecordLayout::Done;
                }
                return Ok(self.finish_block(bytes, at, spans));
            };
            if ended {
                // Either a torn value, which the parser reports, or a valid bare value at the end of the file.
                self.layout = RecordLayout::Done;
                spans.push(self.number_span(start, bytes.trim_ascii_end().len()));
                return Ok(self.finish_block(bytes, at, spans));
            }
            // At least one value is complete. The torn rest begins the next block.
            if !spans.is_empty() {
                return Ok(self.finish_block(bytes, start, spans));
            }
            if bytes.len() - start >= MAX_RECORD {
                return self.skip_overlong(source, bytes, start, at, |piece| scan.feed(piece));
            }
            want = (bytes.len() * 2).clamp(BLOCK_SIZE, start + MAX_RECORD);
        }
    }

    /// Skips white space, the commas of an array, and its end. Text after the end is read as values of its own.
    fn skip_separators(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(byte) = bytes.get(at) {
            match (byte, self.layout) {
                (b',', RecordLayout::Values { array: true } | RecordLayout::Elements) => {}
                // The value around the array follows, which is not a record.
                (b']', RecordLayout::Elements) => {
                    self.layout = RecordLayout::Done;
                    break;
                }
                (b']', RecordLayout::Values { array: true }) => {
                    // Concatenated files may have further values after the array.
                    self.layout = RecordLayout::Values { array: false }
                }
                (byte, _) if byte.is_ascii_whitespace() => {}
                _ => break,
            }
            at += 1;
        }
        at
    }
}

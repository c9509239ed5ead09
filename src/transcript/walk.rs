//! A walk over the records of a file as they stand in it: lines, or JSON values one after another; each found in one pass.
//!
//! Memory does not grow with the file: a block is about [`BLOCK`] bytes, more only for a single record that is longer.
//! Knows no format.

use std::ops::Range;

use super::detect::Form;
use super::scan::{RowScan, ValueScan};
use super::source::Source;
use super::{MAX_RECORD, Span, TranscriptError};

/// How much is read at a time, in bytes.
pub(super) const BLOCK: usize = 1024 * 1024;

/// Where a walk over a file is.
#[derive(Debug)]
pub(super) struct Walk {
    form: Form,
    /// Where the next block begins.
    pos: u64,
    /// The number of the next record.
    number: u64,
}

/// A run of whole records as the file has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Raw {
    /// The bytes of all of them, and of what stands between.
    pub(super) bytes: Vec<u8>,
    /// Where `bytes` begins in the file.
    pub(super) offset: u64,
    /// The records in it.
    pub(super) spans: Vec<Span>,
}

impl Raw {
    /// Where one of its own records stands in the bytes.
    pub(super) fn at(&self, span: Span) -> Range<usize> {
        let start = usize::try_from(span.offset - self.offset).expect("a block fits in memory");
        let len = usize::try_from(span.len).expect("a record fits in memory");
        start..start + len
    }
}

impl Walk {
    /// A walk that begins at `pos`, in records of this form.
    pub(super) fn new(form: Form, pos: u64) -> Self {
        Self {
            form,
            pos,
            number: 1,
        }
    }

    /// Each call returns the next block (about 1 MiB) with the places of its records, or `None` at the end.
    pub(super) fn next(&mut self, source: &Source) -> Result<Option<Raw>, TranscriptError> {
        loop {
            let block = match self.form {
                Form::Done => return Ok(None),
                Form::Lines => self.next_lines(source)?,
                Form::Rows => self.next_rows(source)?,
                Form::Values { .. } | Form::Elements => self.next_values(source)?,
            };
            if !block.spans.is_empty() {
                return Ok(Some(block));
            }
        }
    }

    fn span(&mut self, start: usize, end: usize) -> Span {
        let number = self.number;
        self.number += 1;
        Span {
            offset: self.pos + start as u64,
            len: (end - start) as u64,
            part: 0,
            number,
        }
    }

    fn block(&mut self, mut bytes: Vec<u8>, end: usize, spans: Vec<Span>) -> Raw {
        bytes.truncate(end);
        let offset = self.pos;
        self.pos += end as u64;
        Raw {
            bytes,
            offset,
            spans,
        }
    }

    fn next_lines(&mut self, source: &Source) -> Result<Raw, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK;
        let end = loop {
            let had = bytes.len();
            let ended = source.fill(self.pos, &mut bytes, want)?;
            if ended {
                self.form = Form::Done;
                break bytes.len();
            }
            if let Some(at) = memchr::memrchr(b'\n', &bytes[had..]) {
                break had + at + 1;
            }
            if bytes.len() >= MAX_RECORD {
                return self.overlong(source, bytes, 0, MAX_RECORD, |piece| {
                    memchr::memchr(b'\n', piece).map(|at| at + 1)
                });
            }
            want = (bytes.len() * 2).clamp(BLOCK, MAX_RECORD);
        };
        let mut spans = Vec::with_capacity(end / 4096 + 1);
        let mut start = 0;
        while start < end {
            let stop = memchr::memchr(b'\n', &bytes[start..end]).map_or(end, |at| start + at);
            let line = &bytes[start..stop];
            if !line.trim_ascii_start().is_empty() {
                let len = line.strip_suffix(b"\r").unwrap_or(line).len();
                spans.push(self.span(start, start + len));
            }
            start = stop + 1;
        }
        Ok(self.block(bytes, end, spans))
    }

    fn next_rows(&mut self, source: &Source) -> Result<Raw, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK;
        let mut spans = Vec::new();
        let (mut start, mut at) = (0, 0);
        let mut scan = RowScan::default();
        loop {
            let ended = source.fill(self.pos, &mut bytes, want)?;
            while let Some(len) = scan.feed(&bytes[at..]) {
                at += len;
                self.row(&bytes, start, at, &mut spans);
                start = at;
                scan = RowScan::default();
            }
            at = bytes.len();
            if ended {
                self.form = Form::Done;
                self.row(&bytes, start, at, &mut spans);
                return Ok(self.block(bytes, at, spans));
            }
            if !spans.is_empty() {
                return Ok(self.block(bytes, start, spans));
            }
            if bytes.len() - start >= MAX_RECORD {
                return self.overlong(source, bytes, start, at, |piece| scan.feed(piece));
            }
            want = (bytes.len() * 2).clamp(BLOCK, start + MAX_RECORD);
        }
    }

    /// Notes a row, unless it is blank.
    fn row(&mut self, bytes: &[u8], start: usize, end: usize, spans: &mut Vec<Span>) {
        let row = &bytes[start..end];
        if !row.trim_ascii_start().is_empty() {
            let row = row.strip_suffix(b"\n").unwrap_or(row);
            let row = row.strip_suffix(b"\r").unwrap_or(row);
            spans.push(self.span(start, start + row.len()));
        }
    }

    /// A record of [`MAX_RECORD`] bytes or more, that begins at `start`: its head stands for it, the rest is passed over,
    /// from `read` on to where `end` finds it.
    fn overlong(
        &mut self,
        source: &Source,
        bytes: Vec<u8>,
        start: usize,
        read: usize,
        end: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Result<Raw, TranscriptError> {
        let head = self.span(start, start + MAX_RECORD);
        let block = self.block(bytes, read, vec![head]);
        self.pass_over(source, end)?;
        Ok(block)
    }

    /// Moves on until `end` finds where to stop, or to the end of the file.
    fn pass_over(
        &mut self,
        source: &Source,
        mut end: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Result<(), TranscriptError> {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let ended = source.fill(self.pos, &mut piece, BLOCK)?;
            if let Some(at) = end(&piece) {
                self.pos += at as u64;
                return Ok(());
            }
            self.pos += piece.len() as u64;
            if ended {
                self.form = Form::Done;
                return Ok(());
            }
        }
    }

    fn next_values(&mut self, source: &Source) -> Result<Raw, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK;
        let mut spans = Vec::new();
        let mut at = 0;
        // The value that is being read: where it began, and how far its scanner is.
        let mut open: Option<(usize, ValueScan)> = None;
        loop {
            let ended = source.fill(self.pos, &mut bytes, want)?;
            loop {
                if let Some((start, scan)) = &mut open {
                    let Some(len) = scan.feed(&bytes[at..]) else {
                        at = bytes.len();
                        break;
                    };
                    at += len;
                    let start = *start;
                    spans.push(self.span(start, at));
                    open = None;
                } else {
                    at = self.skip_separators(&bytes, at);
                    if at == bytes.len() || self.form == Form::Done {
                        break;
                    }
                    open = Some((at, ValueScan::default()));
                }
            }
            let Some((start, mut scan)) = open else {
                if ended {
                    if self.form == Form::Elements {
                        spans.push(self.span(at, at));
                    }
                    self.form = Form::Done;
                }
                return Ok(self.block(bytes, at, spans));
            };
            if ended {
                // Torn: the parser will say so, or it is a bare value that ends with the file.
                self.form = Form::Done;
                spans.push(self.span(start, bytes.trim_ascii_end().len()));
                return Ok(self.block(bytes, at, spans));
            }
            if !spans.is_empty() {
                return Ok(self.block(bytes, start, spans));
            }
            if bytes.len() - start >= MAX_RECORD {
                return self.overlong(source, bytes, start, at, |piece| scan.feed(piece));
            }
            want = (bytes.len() * 2).clamp(BLOCK, start + MAX_RECORD);
        }
    }

    /// Passes white space, the commas of an array, and its end; what follows the end is read as values of its own.
    fn skip_separators(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(byte) = bytes.get(at) {
            match (byte, self.form) {
                (b',', Form::Values { array: true } | Form::Elements) => {}
                (b']', Form::Elements) => {
                    self.form = Form::Done;
                    break;
                }
                (b']', Form::Values { array: true }) => self.form = Form::Values { array: false },
                (byte, _) if byte.is_ascii_whitespace() => {}
                _ => break,
            }
            at += 1;
        }
        at
    }
}

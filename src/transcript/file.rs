//! An open file of transcripts: its form, and its records in blocks, each found in one walk over the bytes.
//!
//! Memory does not grow with the file: a block is about [`BLOCK`] bytes, more only for a single record that is longer.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::detect::{self, Form, Refusal};
use super::scan::ValueScan;
use super::{Block, MAX_RECORD, Span, TranscriptError, unix};

/// How much is read at a time, in bytes.
const BLOCK: usize = 1024 * 1024;

/// An open file of transcripts.
#[derive(Debug)]
pub struct TranscriptFile {
    file: File,
    path: PathBuf,
    stem: String,
    form: Form,
    /// Where the next block begins.
    pos: u64,
    /// The number of the next record.
    number: u64,
    /// The size when it was opened: what to read at once, never where to stop.
    size: u64,
}

impl TranscriptFile {
    /// Opens a file and recognises its format from its first bytes. Never blocks: what is no regular file is refused
    /// before it is opened.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        let io = |why: std::io::Error| {
            if unix::is_link_loop(&why) {
                let what = "a circle of symbolic links";
                return TranscriptError::NotAFile {
                    path: path.to_owned(),
                    what,
                };
            }
            TranscriptError::Io {
                path: path.to_owned(),
                why,
            }
        };
        let meta = std::fs::metadata(path).map_err(io)?;
        if let Some(what) = unix::not_a_file(&meta) {
            return Err(TranscriptError::NotAFile {
                path: path.to_owned(),
                what,
            });
        }
        let file = File::open(path).map_err(io)?;
        let mut opened = Self {
            file,
            path: path.to_owned(),
            stem: path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default(),
            form: Form::Lines,
            pos: 0,
            number: 1,
            size: meta.len(),
        };
        // Files of /proc say 0 and hold something, or wait for ever: they are no transcripts either.
        if meta.len() == 0 {
            return Err(TranscriptError::Unknown {
                path: path.to_owned(),
                why: "it is empty".to_owned(),
            });
        }
        let mut head = Vec::new();
        opened.fill(&mut head, BLOCK)?;
        let found = detect::detect(&head).map_err(|refusal| match refusal {
            Refusal::Unsupported(format) => TranscriptError::Unsupported {
                path: path.to_owned(),
                format,
            },
            Refusal::Unknown(why) => TranscriptError::Unknown {
                path: path.to_owned(),
                why,
            },
        })?;
        opened.form = found.form;
        opened.pos = found.start as u64;
        Ok(opened)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Walks the file once in blocks of whole records: each call returns the next block (about 1 MiB) with the
    /// spans of its records, or `None` at the end. The first block is there long before a large file is walked.
    pub fn next_block(&mut self) -> Result<Option<Block>, TranscriptError> {
        loop {
            let block = match self.form {
                Form::Done => return Ok(None),
                Form::Lines => self.next_lines()?,
                Form::Values { .. } => self.next_values()?,
            };
            if !block.spans.is_empty() {
                return Ok(Some(block));
            }
        }
    }

    /// Reads one record's bytes again (positioned read).
    pub fn read(&self, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let len = usize::try_from(span.len).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.min(MAX_RECORD)];
        let had = unix::fill_at(&self.file, &mut bytes, span.offset).map_err(|why| self.io(why))?;
        if had < len {
            let why = std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                format!("record {} is gone: the file became shorter", span.number),
            );
            return Err(self.io(why));
        }
        Ok(bytes)
    }

    /// The id of a record that has none of its own: `<file stem>:<number>`.
    pub fn default_id(&self, number: u64) -> String {
        format!("{}:{number}", self.stem)
    }

    fn io(&self, why: std::io::Error) -> TranscriptError {
        TranscriptError::Io {
            path: self.path.clone(),
            why,
        }
    }

    /// Makes `bytes`, which begin at `pos`, `want` long. Returns whether the file ends within them.
    fn fill(&self, bytes: &mut Vec<u8>, want: usize) -> Result<bool, TranscriptError> {
        let had = bytes.len();
        // One byte more than is left shows the end in the same read.
        let left = usize::try_from(self.size.saturating_sub(self.pos)).unwrap_or(usize::MAX);
        let want = if left >= had {
            want.min(left.saturating_add(1))
        } else {
            want
        };
        bytes.resize(want, 0);
        let read = unix::fill_at(&self.file, &mut bytes[had..], self.pos + had as u64)
            .map_err(|why| self.io(why))?;
        bytes.truncate(had + read);
        Ok(had + read < want)
    }

    fn span(&mut self, start: usize, end: usize) -> Span {
        let number = self.number;
        self.number += 1;
        Span {
            offset: self.pos + start as u64,
            len: (end - start) as u64,
            number,
        }
    }

    fn block(&mut self, mut bytes: Vec<u8>, end: usize, spans: Vec<Span>) -> Block {
        bytes.truncate(end);
        let offset = self.pos;
        self.pos += end as u64;
        Block {
            bytes,
            offset,
            spans,
        }
    }

    fn next_lines(&mut self) -> Result<Block, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK;
        let end = loop {
            let had = bytes.len();
            let ended = self.fill(&mut bytes, want)?;
            if ended {
                self.form = Form::Done;
                break bytes.len();
            }
            if let Some(at) = memchr::memrchr(b'\n', &bytes[had..]) {
                break had + at + 1;
            }
            if bytes.len() >= MAX_RECORD {
                return self.overlong_line(bytes);
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

    /// A line of [`MAX_RECORD`] bytes or more: its head stands for it, the rest is passed over.
    fn overlong_line(&mut self, bytes: Vec<u8>) -> Result<Block, TranscriptError> {
        let span = self.span(0, MAX_RECORD);
        let block = self.block(bytes, MAX_RECORD, vec![span]);
        self.pass_over(|piece| memchr::memchr(b'\n', piece).map(|at| at + 1))?;
        Ok(block)
    }

    /// Moves on until `end` finds where to stop, or to the end of the file.
    fn pass_over(
        &mut self,
        mut end: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Result<(), TranscriptError> {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let ended = self.fill(&mut piece, BLOCK)?;
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

    fn next_values(&mut self) -> Result<Block, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK;
        let mut spans = Vec::new();
        let mut at = 0;
        // The value that is being read: where it began, and how far its scanner is.
        let mut open: Option<(usize, ValueScan)> = None;
        loop {
            let ended = self.fill(&mut bytes, want)?;
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
                    if at == bytes.len() {
                        break;
                    }
                    open = Some((at, ValueScan::default()));
                }
            }
            let Some((start, mut scan)) = open else {
                if ended {
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
                let head = self.span(start, start + MAX_RECORD);
                let block = self.block(bytes, at, vec![head]);
                self.pass_over(|piece| scan.feed(piece))?;
                return Ok(block);
            }
            want = (bytes.len() * 2).clamp(BLOCK, start + MAX_RECORD);
        }
    }

    /// Passes white space, the commas of an array, and its end; what follows the end is read as values of its own.
    fn skip_separators(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(byte) = bytes.get(at) {
            match (byte, self.form) {
                (b',', Form::Values { array: true }) => {}
                (b']', Form::Values { array: true }) => self.form = Form::Values { array: false },
                (byte, _) if byte.is_ascii_whitespace() => {}
                _ => break,
            }
            at += 1;
        }
        at
    }
}

#[cfg(test)]
mod tests;

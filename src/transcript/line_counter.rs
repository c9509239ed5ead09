//! The lines of offsets in a transcript file, for problems that name a place.
//!
//! Responsible for one pass over the file. Does not know records.

use super::formats::BINARY_FORMATS;
use super::source::{BLOCK_SIZE, SourceFile};
use crate::diag::SourceSpan;

/// A count of the lines before offsets that ascend. It reads the file once.
#[derive(Debug)]
pub(super) struct LineCounter<'s> {
    source: &'s SourceFile,
    is_text: bool,
    pos: u64,
    line: u32,
}

impl<'s> LineCounter<'s> {
    /// Returns a count from the beginning of a file.
    pub(super) fn new(source: &'s SourceFile) -> Self {
        Self {
            source,
            is_text: is_text(source),
            pos: 0,
            line: 1,
        }
    }

    /// Returns the beginning of the line of an offset; `None` in a binary file, or if the file cannot be read.
    pub(super) fn find_line(&mut self, offset: u64) -> Option<SourceSpan> {
        if offset < self.pos || !self.is_text {
            return None;
        }
        let mut buffer = Vec::new();
        while self.pos < offset {
            buffer.clear();
            let rest = usize::try_from(offset - self.pos).unwrap_or(usize::MAX);
            let want = rest.min(BLOCK_SIZE);
            self.source.fill_buffer(self.pos, &mut buffer, want).ok()?;
            if buffer.is_empty() {
                return None;
            }
            let lines = memchr::memchr_iter(b'\n', &buffer).count();
            self.line = self
                .line
                .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
            self.pos += buffer.len() as u64;
        }
        Some(SourceSpan {
            bytes: 0..0,
            line: self.line,
            column: 1,
        })
    }
}

/// Returns true if lines of the file are text. Offsets in an archive or a database name no line.
fn is_text(source: &SourceFile) -> bool {
    let mut first = [0; 16];
    let read = source.content().fill_at(&mut first, 0).unwrap_or_default();
    let first = &first[..read];
    !BINARY_FORMATS
        .iter()
        .any(|format| first.starts_with(format.magic))
}

//! Computes the starts of a text's rows: at line ends, at words, and at the fixed breaks of very long lines.
//!
//! A fixed break is at each multiple of the chunk size, unless the chunk before contains a line end. That depends on
//! one chunk only, so the row of any byte is found without reading the rest of its line.

use memchr::{memchr, memrchr};
use unicode_segmentation::UnicodeSegmentation as _;

use super::super::glyph::{self, GlyphUnit, UnitDisplay};

/// The distance between two fixed breaks of a long line, in bytes.
pub(super) const CHUNK_BYTES: usize = 4096;
/// The number of bytes around a fixed break that are read, so that it splits no grapheme cluster.
const BOUNDARY_CONTEXT_BYTES: usize = 64;

/// A line, or the part of a long line between two fixed breaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineSegment {
    /// The first byte.
    pub(super) start: usize,
    /// The end, without the line break.
    pub(super) end: usize,
    /// The start of the next segment, or the end of the text.
    pub(super) next: usize,
}

impl LineSegment {
    /// Returns the segment that contains a byte, or the last one if the byte is past the end.
    pub(super) fn containing(text: &str, byte: usize) -> Self {
        let byte = text.floor_char_boundary(byte.min(text.len().saturating_sub(1)));
        Self::starting_at(text, segment_start(text, byte))
    }

    /// Returns the segment with a known start.
    pub(super) fn starting_at(text: &str, start: usize) -> Self {
        let (end, next) = segment_end(text, start);
        touched(next - start);
        Self { start, end, next }
    }

    /// Returns the starts of its rows: at least one, in order.
    pub(super) fn row_starts(self, text: &str, width: usize) -> Vec<usize> {
        wrap_rows(&text[self.start..self.end], width)
            .into_iter()
            .map(|at| at + self.start)
            .collect()
    }
}

fn segment_start(text: &str, byte: usize) -> usize {
    let bytes = text.as_bytes();
    let mut chunk = byte / CHUNK_BYTES;
    // The break after the byte's chunk can lie before the byte, because breaks move back to a cluster
    // boundary.
    if let Some(at) = fixed_break(text, chunk + 1)
        && at <= byte
    {
        return at;
    }
    let mut to = byte;
    loop {
        let known = if chunk == 0 {
            Some(0)
        } else {
            fixed_break(text, chunk)
        };
        let from = known.unwrap_or(chunk * CHUNK_BYTES);
        touched(to - from);
        if let Some(line_end) = memrchr(b'\n', &bytes[from..to]) {
            return from + line_end + 1;
        }
        if let Some(at) = known {
            return at;
        }
        // There is no fixed break at this multiple: the chunk before contains a line end, or one follows
        // directly.
        to = from;
        chunk -= 1;
    }
}

fn segment_end(text: &str, start: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let mut chunk = start / CHUNK_BYTES + 1;
    let mut from = start;
    loop {
        let to = (chunk * CHUNK_BYTES).min(bytes.len());
        if let Some(found) = memchr(b'\n', &bytes[from..to]) {
            let line_end = from + found;
            // A carriage return before the line feed belongs to the line break, so that files from Windows
            // show no marks.
            let carriage = line_end > start && bytes[line_end - 1] == b'\r';
            return (line_end - usize::from(carriage), line_end + 1);
        }
        if to == bytes.len() {
            return (to, to);
        }
        if let Some(at) = fixed_break(text, chunk)
            && at > start
        {
            return (at, at);
        }
        from = to;
        chunk += 1;
    }
}

/// Returns the fixed break at a multiple of the chunk size, if there is one.
fn fixed_break(text: &str, chunk: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = chunk * CHUNK_BYTES;
    if chunk == 0 || at >= bytes.len() {
        return None;
    }
    touched(CHUNK_BYTES);
    let rest = &bytes[at..];
    let line = memchr(b'\n', &bytes[at - CHUNK_BYTES..at]).is_some();
    // A break directly before a line end would add an empty row.
    if line || rest.starts_with(b"\n") || rest.starts_with(b"\r\n") {
        return None;
    }
    Some(cluster_boundary(text, at))
}

/// Returns the last position at or before a byte that does not split a cluster, judged by its surroundings.
fn cluster_boundary(text: &str, byte: usize) -> usize {
    let bytes = text.as_bytes();
    // Fast path: two ASCII characters are always separate clusters, except CR and LF, which `fixed_break` has
    // excluded.
    if bytes[byte].is_ascii() && bytes[byte - 1].is_ascii() {
        return byte;
    }
    // Segmenting from the start of the text would read all of it. A cluster longer than the context is split.
    let at = text.floor_char_boundary(byte);
    let from = text.floor_char_boundary(at - BOUNDARY_CONTEXT_BYTES);
    let to = text.floor_char_boundary((at + BOUNDARY_CONTEXT_BYTES).min(bytes.len()));
    let found = text[from..to]
        .grapheme_indices(true)
        .map(|(offset, _)| from + offset)
        .take_while(|offset| *offset <= at)
        .last();
    found.filter(|found| *found > from).unwrap_or(at)
}

/// Returns the row starts of one line. Breaks are after spaces, after hyphens and slashes inside words, next to wide
/// characters, and anywhere in a word that is wider than the row. Spaces at a row's end may exceed its width.
fn wrap_rows(line: &str, width: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut row = 0;
    let mut column = 0;
    // The last possible break: byte and column.
    let mut last_break = (0, 0);
    let mut before = BreakClass::Other;
    // A break after a line's indent would leave an empty-looking row, so it is not allowed.
    let mut inked = false;
    for unit in glyph::split_units(line) {
        let kind = BreakClass::classify(&unit);
        let wide = unit.width(column);
        // Spaces never start a row: they stay at the end of the previous one, beyond its width if necessary.
        if kind == BreakClass::Space {
            column += wide;
            if inked {
                last_break = (unit.bytes.end, column);
            }
            before = kind;
            continue;
        }
        inked = true;
        if kind == BreakClass::Wide && before != BreakClass::Other {
            last_break = (unit.bytes.start, column);
        }
        if column + wide > width && unit.bytes.start > row {
            if last_break.0 > row {
                row = last_break.0;
                column -= last_break.1;
                starts.push(row);
            }
            // The word itself can still be wider than a row; then it is broken here.
            if column + wide > width && unit.bytes.start > row {
                row = unit.bytes.start;
                column = 0;
                starts.push(row);
            }
            last_break = (row, 0);
        }
        column += wide;
        let ends = match kind {
            BreakClass::Hyphen => before == BreakClass::Letter,
            BreakClass::Wide => true,
            BreakClass::Letter | BreakClass::Space | BreakClass::Other => false,
        };
        if ends {
            last_break = (unit.bytes.end, column);
        }
        before = kind;
    }
    starts
}

/// The class of a unit for line breaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakClass {
    Space,
    Letter,
    /// A hyphen or slash inside a word.
    Hyphen,
    Wide,
    Other,
}

impl BreakClass {
    fn classify(unit: &GlyphUnit<'_>) -> Self {
        match &unit.display {
            _ if unit.is_space() => Self::Space,
            UnitDisplay::Symbol { width: 2, .. } => Self::Wide,
            UnitDisplay::Symbol { text, .. } if text == "-" || text == "/" => Self::Hyphen,
            UnitDisplay::Symbol { text, .. } if text.starts_with(char::is_alphanumeric) => {
                Self::Letter
            }
            _ => Self::Other,
        }
    }
}

/// Counts the bytes read, so that tests can check that the cost depends only on the visible part.
#[cfg(test)]
fn touched(bytes: usize) {
    TOUCHED.set(TOUCHED.get() + bytes);
}

#[cfg(not(test))]
const fn touched(_: usize) {}

#[cfg(test)]
thread_local! {
    pub(super) static TOUCHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

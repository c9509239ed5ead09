//! Where a text's rows begin: lines, the fixed breaks of lines that are longer than a chunk, and words.
//!
//! A fixed break stands at every multiple of a chunk that no line end stands in the chunk before. Whether it does is known
//! from that chunk alone, so the row of any byte is found without looking at the rest of its line.

use memchr::{memchr, memrchr};
use unicode_segmentation::UnicodeSegmentation as _;

use super::super::glyph::{self, GlyphUnit, UnitDisplay};

/// Bytes from one fixed break of a long line to the next.
pub(super) const CHUNK_BYTES: usize = 4096;
/// How far a fixed break looks around itself so that it splits no cluster.
const BOUNDARY_CONTEXT_BYTES: usize = 64;

/// A line, or the part of a long one between two fixed breaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineSegment {
    /// Its first byte.
    pub(super) start: usize,
    /// Behind its last byte, line end not included.
    pub(super) end: usize,
    /// Where the next one begins, or the text's end.
    pub(super) next: usize,
}

impl LineSegment {
    /// The one that holds a byte (any byte beyond the text: the last one).
    pub(super) fn containing(text: &str, byte: usize) -> Self {
        let byte = text.floor_char_boundary(byte.min(text.len().saturating_sub(1)));
        Self::starting_at(text, segment_start(text, byte))
    }

    /// The one that is known to begin there.
    pub(super) fn starting_at(text: &str, start: usize) -> Self {
        let (end, next) = segment_end(text, start);
        touched(next - start);
        Self { start, end, next }
    }

    /// Where its rows begin: at least one, in order.
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
        // A line end follows the multiple at once, so that it is none: the chunk before decides.
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

/// The fixed break at a multiple of the chunk, if there is one.
fn fixed_break(text: &str, chunk: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = chunk * CHUNK_BYTES;
    if chunk == 0 || at >= bytes.len() {
        return None;
    }
    touched(CHUNK_BYTES);
    let rest = &bytes[at..];
    let line = memchr(b'\n', &bytes[at - CHUNK_BYTES..at]).is_some();
    if line || rest.starts_with(b"\n") || rest.starts_with(b"\r\n") {
        return None;
    }
    Some(cluster_boundary(text, at))
}

/// The last place at or before a byte that splits no cluster, as far as its surroundings tell.
fn cluster_boundary(text: &str, byte: usize) -> usize {
    let bytes = text.as_bytes();
    if bytes[byte].is_ascii() && bytes[byte - 1].is_ascii() {
        return byte;
    }
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

/// Where the rows of one line begin: broken after spaces, hyphens and slashes within words, beside wide characters, and
/// anywhere in a word that is wider than the row. Spaces at a row's end hang over its edge.
fn wrap_rows(line: &str, width: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut row = 0;
    let mut column = 0;
    // The last place a row may end: its byte and column.
    let mut chance = (0, 0);
    let mut before = BreakClass::Other;
    // A line's own indent is no place to break: it would stand alone in a row.
    let mut inked = false;
    for unit in glyph::split_units(line) {
        let kind = BreakClass::classify(&unit);
        let wide = unit.width(column);
        if kind == BreakClass::Space {
            column += wide;
            if inked {
                chance = (unit.bytes.end, column);
            }
            before = kind;
            continue;
        }
        inked = true;
        if kind == BreakClass::Wide && before != BreakClass::Other {
            chance = (unit.bytes.start, column);
        }
        if column + wide > width && unit.bytes.start > row {
            if chance.0 > row {
                row = chance.0;
                column -= chance.1;
                starts.push(row);
            }
            if column + wide > width && unit.bytes.start > row {
                row = unit.bytes.start;
                column = 0;
                starts.push(row);
            }
            chance = (row, 0);
        }
        column += wide;
        let ends = match kind {
            BreakClass::Hyphen => before == BreakClass::Letter,
            BreakClass::Wide => true,
            BreakClass::Letter | BreakClass::Space | BreakClass::Other => false,
        };
        if ends {
            chance = (unit.bytes.end, column);
        }
        before = kind;
    }
    starts
}

/// What a unit is to line breaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakClass {
    Space,
    Letter,
    /// A hyphen or a slash.
    Hyphen,
    Wide,
    Other,
}

impl BreakClass {
    fn classify(unit: &GlyphUnit<'_>) -> Self {
        match &unit.shown {
            _ if unit.is_space() => Self::Space,
            UnitDisplay::Symbol(_, 2) => Self::Wide,
            UnitDisplay::Symbol(symbol, _) if symbol == "-" || symbol == "/" => Self::Hyphen,
            UnitDisplay::Symbol(symbol, _) if symbol.starts_with(char::is_alphanumeric) => {
                Self::Letter
            }
            _ => Self::Other,
        }
    }
}

/// Counts the bytes that were looked at, so that tests can hold the cost to what is visible.
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

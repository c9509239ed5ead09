//! Where a text's rows begin: lines, the fixed breaks of lines that are longer than a chunk, and words.
//!
//! A fixed break stands at every multiple of a chunk that no line end stands in the chunk before. Whether it does is known
//! from that chunk alone, so the row of any byte is found without looking at the rest of its line.

use memchr::{memchr, memrchr};
use unicode_segmentation::UnicodeSegmentation as _;

use super::super::glyph::{self, Shown, Unit};

/// Bytes from one fixed break of a long line to the next.
pub(super) const CHUNK: usize = 4096;
/// How far a fixed break looks around itself so that it splits no cluster.
const AROUND: usize = 64;

/// A line, or the part of a long one between two fixed breaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its first byte.
    pub(super) start: usize,
    /// Behind its last byte, line end not included.
    pub(super) end: usize,
    /// Where the next one begins, or the text's end.
    pub(super) next: usize,
}

impl Segment {
    /// The one that holds a byte (any byte beyond the text: the last one).
    pub(super) fn at(text: &str, byte: usize) -> Self {
        let byte = text.floor_char_boundary(byte.min(text.len().saturating_sub(1)));
        Self::from(text, start(text, byte))
    }

    /// The one that is known to begin there.
    pub(super) fn from(text: &str, start: usize) -> Self {
        let (end, next) = end(text, start);
        touched(next - start);
        Self { start, end, next }
    }

    /// Where its rows begin: at least one, in order.
    pub(super) fn rows(self, text: &str, width: usize) -> Vec<usize> {
        rows(&text[self.start..self.end], width)
            .into_iter()
            .map(|at| at + self.start)
            .collect()
    }
}

fn start(text: &str, byte: usize) -> usize {
    let bytes = text.as_bytes();
    let mut chunk = byte / CHUNK;
    if let Some(at) = fixed(text, chunk + 1)
        && at <= byte
    {
        return at;
    }
    let mut to = byte;
    loop {
        let known = if chunk == 0 {
            Some(0)
        } else {
            fixed(text, chunk)
        };
        let from = known.unwrap_or(chunk * CHUNK);
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

fn end(text: &str, start: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let mut chunk = start / CHUNK + 1;
    let mut from = start;
    loop {
        let to = (chunk * CHUNK).min(bytes.len());
        if let Some(found) = memchr(b'\n', &bytes[from..to]) {
            let line_end = from + found;
            let carriage = line_end > start && bytes[line_end - 1] == b'\r';
            return (line_end - usize::from(carriage), line_end + 1);
        }
        if to == bytes.len() {
            return (to, to);
        }
        if let Some(at) = fixed(text, chunk)
            && at > start
        {
            return (at, at);
        }
        from = to;
        chunk += 1;
    }
}

/// The fixed break at a multiple of the chunk, if there is one.
fn fixed(text: &str, chunk: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = chunk * CHUNK;
    if chunk == 0 || at >= bytes.len() {
        return None;
    }
    touched(CHUNK);
    let rest = &bytes[at..];
    let line = memchr(b'\n', &bytes[at - CHUNK..at]).is_some();
    if line || rest.starts_with(b"\n") || rest.starts_with(b"\r\n") {
        return None;
    }
    Some(boundary(text, at))
}

/// The last place at or before a byte that splits no cluster, as far as its surroundings tell.
fn boundary(text: &str, byte: usize) -> usize {
    let bytes = text.as_bytes();
    if bytes[byte].is_ascii() && bytes[byte - 1].is_ascii() {
        return byte;
    }
    let at = text.floor_char_boundary(byte);
    let from = text.floor_char_boundary(at - AROUND);
    let to = text.floor_char_boundary((at + AROUND).min(bytes.len()));
    let found = text[from..to]
        .grapheme_indices(true)
        .map(|(offset, _)| from + offset)
        .take_while(|offset| *offset <= at)
        .last();
    found.filter(|found| *found > from).unwrap_or(at)
}

/// Where the rows of one line begin: broken after spaces, hyphens and slashes within words, beside wide characters, and
/// anywhere in a word that is wider than the row. Spaces at a row's end hang over its edge.
fn rows(line: &str, width: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut row = 0;
    let mut column = 0;
    // The last place a row may end: its byte and column.
    let mut chance = (0, 0);
    let mut before = Kind::Other;
    // A line's own indent is no place to break: it would stand alone in a row.
    let mut inked = false;
    for unit in glyph::units(line) {
        let kind = Kind::of(&unit);
        let wide = unit.width(column);
        if kind == Kind::Space {
            column += wide;
            if inked {
                chance = (unit.at.end, column);
            }
            before = kind;
            continue;
        }
        inked = true;
        if kind == Kind::Wide && before != Kind::Other {
            chance = (unit.at.start, column);
        }
        if column + wide > width && unit.at.start > row {
            if chance.0 > row {
                row = chance.0;
                column -= chance.1;
                starts.push(row);
            }
            if column + wide > width && unit.at.start > row {
                row = unit.at.start;
                column = 0;
                starts.push(row);
            }
            chance = (row, 0);
        }
        column += wide;
        let ends = match kind {
            Kind::Hyphen => before == Kind::Letter,
            Kind::Wide => true,
            Kind::Letter | Kind::Space | Kind::Other => false,
        };
        if ends {
            chance = (unit.at.end, column);
        }
        before = kind;
    }
    starts
}

/// What a unit is to line breaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Letter,
    /// A hyphen or a slash.
    Hyphen,
    Wide,
    Other,
}

impl Kind {
    fn of(unit: &Unit<'_>) -> Self {
        match &unit.shown {
            _ if unit.is_space() => Self::Space,
            Shown::Symbol(_, 2) => Self::Wide,
            Shown::Symbol(symbol, _) if symbol == "-" || symbol == "/" => Self::Hyphen,
            Shown::Symbol(symbol, _) if symbol.starts_with(char::is_alphanumeric) => Self::Letter,
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

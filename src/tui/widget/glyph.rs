//! How untrusted text becomes cells: one unit after another, each with its columns, nothing a terminal would obey or hide.
//!
//! Terminals disagree about clusters of several bases and about picture selectors (joined emoji, skin tones, flags), and
//! one that takes more columns than the buffer thinks tears the screen. So only a base with its marks stays whole; other
//! clusters are drawn as their parts, side by side, the joiner or picture selector that did its usual work left out (what
//! Unicode names as the fallback; a terminal that knows flags still joins their two letters). What remains of controls, bidi, zero-width characters and
//! tags becomes a mark. More combining marks than a script needs are counted, not drawn.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::buffer::CellWidth as _;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::model::{is_invisible, make_visible};

/// Columns from one tab stop to the next.
pub(super) const TAB: usize = 4;
/// Combining marks drawn on one base; scripts need fewer.
const MARKS: usize = 4;
/// What a combining mark without a base stands on.
const BASE: char = '◌';
const JOINER: char = '\u{200D}';
const PICTURE: char = '\u{FE0F}';

/// The smallest piece that is drawn whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit<'a> {
    /// The bytes of the text it stands for.
    pub(super) at: Range<usize>,
    /// What is drawn.
    pub(super) shown: Shown<'a>,
}

/// What is drawn for a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown<'a> {
    /// One symbol and its columns.
    Symbol(Cow<'a, str>, usize),
    /// A mark for what must not be drawn; every character takes one column.
    Mark(String),
    /// Spaces up to the next stop.
    Tab,
}

impl Unit<'_> {
    /// Columns it takes when it begins at this column.
    pub(super) fn width(&self, column: usize) -> usize {
        match &self.shown {
            Shown::Symbol(_, width) => *width,
            Shown::Mark(mark) => mark.chars().count(),
            Shown::Tab => TAB - column % TAB,
        }
    }

    /// Whether a row may end after it and nobody misses it.
    pub(super) fn is_space(&self) -> bool {
        match &self.shown {
            Shown::Symbol(symbol, _) => symbol == " ",
            Shown::Tab => true,
            Shown::Mark(_) => false,
        }
    }
}

/// The units of a text.
pub(super) fn units(text: &str) -> Units<'_> {
    Units {
        text,
        at: 0,
        split: Vec::new(),
    }
}

/// See [`units`].
#[derive(Debug)]
pub(super) struct Units<'a> {
    text: &'a str,
    at: usize,
    /// Parts of a cluster that are not yet handed out, the next one last.
    split: Vec<Unit<'a>>,
}

impl<'a> Iterator for Units<'a> {
    type Item = Unit<'a>;

    fn next(&mut self) -> Option<Unit<'a>> {
        if let Some(unit) = self.split.pop() {
            return Some(unit);
        }
        let rest = &self.text[self.at..];
        let bytes = rest.as_bytes();
        let start = self.at;
        let first = *bytes.first()?;
        if first.is_ascii() && bytes.get(1).is_none_or(u8::is_ascii) {
            self.at += 1;
            let shown = match first {
                b'\t' => Shown::Tab,
                b' '..=b'~' => Shown::Symbol(Cow::Borrowed(&rest[..1]), 1),
                _ => Shown::Mark(make_visible(&rest[..1], false).into_owned()),
            };
            return Some(Unit {
                at: start..self.at,
                shown,
            });
        }
        let cluster = rest.graphemes(true).next()?;
        self.at += cluster.len();
        if let Some(width) = whole(cluster) {
            return Some(Unit {
                at: start..self.at,
                shown: Shown::Symbol(Cow::Borrowed(cluster), width),
            });
        }
        split(start, cluster, &mut self.split);
        self.split.reverse();
        self.split.pop()
    }
}

/// The columns of a cluster, if every terminal measures it alike and it hides nothing: one base and a few marks. Of two
/// bases in one symbol (a flag, a conjunct) a terminal that knows no clusters would keep the second when the first goes.
fn whole(cluster: &str) -> Option<usize> {
    if cluster
        .chars()
        .any(|c| c.is_control() || is_invisible(c) || c == PICTURE)
    {
        return None;
    }
    let mut chars = cluster.chars();
    let width = columns(chars.next()?);
    let marks = chars.clone().count();
    let plain = width > 0 && marks <= MARKS && chars.all(|c| columns(c) == 0);
    (plain && width == usize::from(cluster.cell_width())).then_some(width)
}

/// Takes a cluster apart.
fn split(start: usize, cluster: &str, out: &mut Vec<Unit<'_>>) {
    let mut marks = 0;
    let mut chars = cluster.char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        let mut at = start + offset..start + offset + c.len_utf8();
        let joins = c == JOINER && chars.peek().is_some_and(|(_, next)| columns(*next) > 0);
        if (joins || c == PICTURE)
            && let Some(last) = out.last_mut()
            && let Shown::Symbol(symbol, _) = &last.shown
            && (joins || turns_picture(symbol))
        {
            last.at.end = at.end;
            continue;
        }
        if c == '\t' {
            out.push(Unit {
                at,
                shown: Shown::Tab,
            });
            continue;
        }
        let width = columns(c);
        let shown = if c.is_control() || is_invisible(c) || c == PICTURE {
            Shown::Mark(mark(c))
        } else if width > 0 {
            marks = 0;
            Shown::Symbol(Cow::Owned(c.to_string()), width)
        } else if let Some(Unit {
            at: last,
            shown: Shown::Symbol(symbol, _),
        }) = out.last_mut()
        {
            if marks < MARKS {
                marks += 1;
                symbol.to_mut().push(c);
                last.end = at.end;
                continue;
            }
            let mut surplus = 1_usize;
            while let Some((_, next)) = chars.next_if(|(_, next)| {
                columns(*next) == 0
                    && !is_invisible(*next)
                    && !next.is_control()
                    && *next != PICTURE
            }) {
                surplus += 1;
                at.end += next.len_utf8();
            }
            Shown::Mark(format!("‹+{surplus} marks›"))
        } else if combines(c) {
            marks = 1;
            Shown::Symbol(Cow::Owned(format!("{BASE}{c}")), 1)
        } else {
            Shown::Mark(mark(c))
        };
        out.push(Unit { at, shown });
    }
}

/// Whether the picture selector means something after this.
fn turns_picture(symbol: &str) -> bool {
    let mut both = String::from(symbol);
    both.push(PICTURE);
    both.width() == 2
}

/// Whether a character that takes no column is a mark on the one before it.
fn combines(c: char) -> bool {
    format!("a{c}").graphemes(true).count() == 1
}

/// The mark for one character.
fn mark(c: char) -> String {
    let text = c.to_string();
    match make_visible(&text, false) {
        Cow::Owned(mark) => mark,
        Cow::Borrowed(_) => format!("‹U+{:04X}›", c as u32),
    }
}

/// Columns of one character where a terminal draws it alone.
fn columns(c: char) -> usize {
    match c {
        // Half-width sound marks extend a cluster, yet terminals give each a column.
        '\u{FF9E}' | '\u{FF9F}' => 1,
        _ => c.width().unwrap_or(0),
    }
}

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
pub(super) const TAB_WIDTH: usize = 4;
/// Combining marks drawn on one base; scripts need fewer.
const MAX_COMBINING_MARKS: usize = 4;
/// What a combining mark without a base stands on.
const DOTTED_CIRCLE: char = '◌';
const ZERO_WIDTH_JOINER: char = '\u{200D}';
const PICTURE_SELECTOR: char = '\u{FE0F}';

/// The smallest piece that is drawn whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GlyphUnit<'a> {
    /// The bytes of the text it stands for.
    pub(super) bytes: Range<usize>,
    /// What is drawn.
    pub(super) shown: UnitDisplay<'a>,
}

/// What is drawn for a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnitDisplay<'a> {
    /// One symbol and its columns.
    Symbol(Cow<'a, str>, usize),
    /// A mark for what must not be drawn; every character takes one column.
    Mark(String),
    /// Spaces up to the next stop.
    Tab,
}

impl GlyphUnit<'_> {
    /// Columns it takes when it begins at this column.
    pub(super) fn width(&self, column: usize) -> usize {
        match &self.shown {
            UnitDisplay::Symbol(_, width) => *width,
            UnitDisplay::Mark(mark) => mark.chars().count(),
            UnitDisplay::Tab => TAB_WIDTH - column % TAB_WIDTH,
        }
    }

    /// Whether a row may end after it and nobody misses it.
    pub(super) fn is_space(&self) -> bool {
        match &self.shown {
            UnitDisplay::Symbol(symbol, _) => symbol == " ",
            UnitDisplay::Tab => true,
            UnitDisplay::Mark(_) => false,
        }
    }
}

/// The units of a text.
pub(super) fn split_units(text: &str) -> GlyphUnits<'_> {
    GlyphUnits {
        text,
        at: 0,
        split: Vec::new(),
    }
}

/// See [`units`].
#[derive(Debug)]
pub(super) struct GlyphUnits<'a> {
    text: &'a str,
    at: usize,
    /// Parts of a cluster that are not yet handed out, the next one last.
    split: Vec<GlyphUnit<'a>>,
}

impl<'a> Iterator for GlyphUnits<'a> {
    type Item = GlyphUnit<'a>;

    fn next(&mut self) -> Option<GlyphUnit<'a>> {
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
                b'\t' => UnitDisplay::Tab,
                b' '..=b'~' => UnitDisplay::Symbol(Cow::Borrowed(&rest[..1]), 1),
                _ => UnitDisplay::Mark(make_visible(&rest[..1], false).into_owned()),
            };
            return Some(GlyphUnit {
                bytes: start..self.at,
                shown,
            });
        }
        let cluster = rest.graphemes(true).next()?;
        self.at += cluster.len();
        if let Some(width) = whole_cluster_width(cluster) {
            return Some(GlyphUnit {
                bytes: start..self.at,
                shown: UnitDisplay::Symbol(Cow::Borrowed(cluster), width),
            });
        }
        split_cluster(start, cluster, &mut self.split);
        self.split.reverse();
        self.split.pop()
    }
}

/// The columns of a cluster, if every terminal measures it alike and it hides nothing: one base and a few marks. Of two
/// bases in one symbol (a flag, a conjunct) a terminal that knows no clusters would keep the second when the first goes.
fn whole_cluster_width(cluster: &str) -> Option<usize> {
    if cluster
        .chars()
        .any(|c| c.is_control() || is_invisible(c) || c == PICTURE_SELECTOR)
    {
        return None;
    }
    let mut chars = cluster.chars();
    let width = char_width(chars.next()?);
    let marks = chars.clone().count();
    let plain = width > 0 && marks <= MAX_COMBINING_MARKS && chars.all(|c| char_width(c) == 0);
    (plain && width == usize::from(cluster.cell_width())).then_some(width)
}

/// Takes a cluster apart.
fn split_cluster(start: usize, cluster: &str, out: &mut Vec<GlyphUnit<'_>>) {
    let mut marks = 0;
    let mut chars = cluster.char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        let mut at = start + offset..start + offset + c.len_utf8();
        let joins =
            c == ZERO_WIDTH_JOINER && chars.peek().is_some_and(|(_, next)| char_width(*next) > 0);
        if (joins || c == PICTURE_SELECTOR)
            && let Some(last) = out.last_mut()
            && let UnitDisplay::Symbol(symbol, _) = &last.shown
            && (joins || takes_picture_selector(symbol))
        {
            last.bytes.end = at.end;
            continue;
        }
        if c == '\t' {
            out.push(GlyphUnit {
                bytes: at,
                shown: UnitDisplay::Tab,
            });
            continue;
        }
        let width = char_width(c);
        let shown = if c.is_control() || is_invisible(c) || c == PICTURE_SELECTOR {
            UnitDisplay::Mark(mark_for_char(c))
        } else if width > 0 {
            marks = 0;
            UnitDisplay::Symbol(Cow::Owned(c.to_string()), width)
        } else if let Some(GlyphUnit {
            bytes: last,
            shown: UnitDisplay::Symbol(symbol, _),
        }) = out.last_mut()
        {
            if marks < MAX_COMBINING_MARKS {
                marks += 1;
                symbol.to_mut().push(c);
                last.end = at.end;
                continue;
            }
            let mut surplus = 1_usize;
            while let Some((_, next)) = chars.next_if(|(_, next)| {
                char_width(*next) == 0
                    && !is_invisible(*next)
                    && !next.is_control()
                    && *next != PICTURE_SELECTOR
            }) {
                surplus += 1;
                at.end += next.len_utf8();
            }
            UnitDisplay::Mark(format!("‹+{surplus} marks›"))
        } else if is_combining(c) {
            marks = 1;
            UnitDisplay::Symbol(Cow::Owned(format!("{DOTTED_CIRCLE}{c}")), 1)
        } else {
            UnitDisplay::Mark(mark_for_char(c))
        };
        out.push(GlyphUnit { bytes: at, shown });
    }
}

/// Whether the picture selector means something after this.
fn takes_picture_selector(symbol: &str) -> bool {
    let mut both = String::from(symbol);
    both.push(PICTURE_SELECTOR);
    both.width() == 2
}

/// Whether a character that takes no column is a mark on the one before it.
fn is_combining(c: char) -> bool {
    format!("a{c}").graphemes(true).count() == 1
}

/// The mark for one character.
fn mark_for_char(c: char) -> String {
    let text = c.to_string();
    match make_visible(&text, false) {
        Cow::Owned(mark) => mark,
        Cow::Borrowed(_) => format!("‹U+{:04X}›", c as u32),
    }
}

/// Columns of one character where a terminal draws it alone.
fn char_width(c: char) -> usize {
    match c {
        // Half-width sound marks extend a cluster, yet terminals give each a column.
        '\u{FF9E}' | '\u{FF9F}' => 1,
        _ => c.width().unwrap_or(0),
    }
}

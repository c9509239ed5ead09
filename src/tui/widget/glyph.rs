//! Splits untrusted text into units for the screen, so that no character can control the terminal or hide.
//!
//! Terminals disagree about the width of joined clusters (joined emoji, skin tones, flags), and a wrong width breaks
//! the screen. So only a base with its combining marks stays one unit; other clusters are drawn as their parts, side
//! by side. Their joiners and variation selectors are dropped, which is the fallback that Unicode recommends. Other
//! control, bidi and zero-width characters and tags become marks. Surplus combining marks are counted, not drawn.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::buffer::CellWidth as _;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::model::is_invisible;
use crate::model::make_visible;

/// The distance of tab stops in columns.
pub(super) const TAB_WIDTH: usize = 4;
/// The largest number of combining marks drawn on one base; scripts need fewer.
const MAX_COMBINING_MARKS: usize = 4;
/// The base of a combining mark that has none.
const DOTTED_CIRCLE: char = '◌';
const ZERO_WIDTH_JOINER: char = '\u{200D}';
const PICTURE_SELECTOR: char = '\u{FE0F}';

/// The smallest piece of text that is drawn as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GlyphUnit<'a> {
    /// The bytes of the text.
    pub(super) bytes: Range<usize>,
    /// The displayed form.
    pub(super) display: UnitDisplay<'a>,
}

/// The displayed form of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnitDisplay<'a> {
    /// A symbol that is drawn unchanged.
    Symbol {
        /// One base with its combining marks.
        text: Cow<'a, str>,
        /// The width in columns.
        width: usize,
    },
    /// A mark for a character that must not be drawn; each of its characters takes one column.
    Mark(String),
    /// Spaces up to the next tab stop.
    Tab,
}

impl GlyphUnit<'_> {
    /// Returns the width in columns at a column.
    pub(super) fn width(&self, column: usize) -> usize {
        match &self.display {
            UnitDisplay::Symbol { width, .. } => *width,
            UnitDisplay::Mark(mark) => mark.chars().count(),
            UnitDisplay::Tab => TAB_WIDTH - column % TAB_WIDTH,
        }
    }

    /// Returns true for a space, which may be invisible at a row's end.
    pub(super) fn is_space(&self) -> bool {
        match &self.display {
            UnitDisplay::Symbol { text, .. } => text == " ",
            UnitDisplay::Tab => true,
            UnitDisplay::Mark(_) => false,
        }
    }
}

/// Splits a text into units.
pub(super) fn split_units(text: &str) -> GlyphUnits<'_> {
    GlyphUnits {
        text,
        at: 0,
        split: Vec::new(),
    }
}

/// The iterator of [`split_units`].
#[derive(Debug)]
pub(super) struct GlyphUnits<'a> {
    text: &'a str,
    at: usize,
    /// The remaining parts of a cluster, the next one last.
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
        // Fast path for ASCII, the most frequent text. The next byte must be ASCII too, or a combining mark
        // could follow.
        if first.is_ascii() && bytes.get(1).is_none_or(u8::is_ascii) {
            self.at += 1;
            let display = match first {
                b'\t' => UnitDisplay::Tab,
                b' '..=b'~' => UnitDisplay::Symbol {
                    text: Cow::Borrowed(&rest[..1]),
                    width: 1,
                },
                _ => UnitDisplay::Mark(make_visible(&rest[..1], false).into_owned()),
            };
            return Some(GlyphUnit {
                bytes: start..self.at,
                display,
            });
        }
        let cluster = rest.graphemes(true).next()?;
        self.at += cluster.len();
        if let Some(width) = whole_cluster_width(cluster) {
            return Some(GlyphUnit {
                bytes: start..self.at,
                display: UnitDisplay::Symbol {
                    text: Cow::Borrowed(cluster),
                    width,
                },
            });
        }
        split_cluster(start, cluster, &mut self.split);
        // `split` is a stack, so its parts are stored in reverse order.
        self.split.reverse();
        self.split.pop()
    }
}

/// Returns the width of a cluster if every terminal measures it the same and nothing in it is hidden: one base with a
/// few marks. In a symbol with two bases, a terminal without clusters would keep the second when the first is
/// overwritten.
fn whole_cluster_width(cluster: &str) -> Option<usize> {
    if cluster.chars().any(|c| c.is_control() || is_invisible(c)) {
        return None;
    }
    let mut chars = cluster.chars();
    let width = char_width(chars.next()?);
    let marks = chars.clone().count();
    // The widths by character and by cluster must agree, because different terminals use one or the other.
    let plain = width > 0 && marks <= MAX_COMBINING_MARKS && chars.all(|c| char_width(c) == 0);
    (plain && width == usize::from(cluster.cell_width())).then_some(width)
}

/// Splits a cluster into parts.
fn split_cluster(start: usize, cluster: &str, out: &mut Vec<GlyphUnit<'_>>) {
    let mut marks = 0;
    let mut chars = cluster.char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        let mut at = start + offset..start + offset + c.len_utf8();
        let joins =
            c == ZERO_WIDTH_JOINER && chars.peek().is_some_and(|(_, next)| char_width(*next) > 0);
        if (joins || c == PICTURE_SELECTOR)
            && let Some(last) = out.last_mut()
            && let UnitDisplay::Symbol { text: symbol, .. } = &last.display
            && (joins || takes_picture_selector(symbol))
        {
            // The joiner has no width of its own, so its bytes belong to the symbol before it.
            last.bytes.end = at.end;
            continue;
        }
        if c == '\t' {
            out.push(GlyphUnit {
                bytes: at,
                display: UnitDisplay::Tab,
            });
            continue;
        }
        let width = char_width(c);
        let display = if c.is_control() || is_invisible(c) {
            UnitDisplay::Mark(mark_for_char(c))
        } else if width > 0 {
            marks = 0;
            UnitDisplay::Symbol {
                text: Cow::Owned(c.to_string()),
                width,
            }
        } else if let Some(GlyphUnit {
            bytes: last,
            display: UnitDisplay::Symbol { text: symbol, .. },
        }) = out.last_mut()
        {
            if marks < MAX_COMBINING_MARKS {
                marks += 1;
                symbol.to_mut().push(c);
                last.end = at.end;
                continue;
            }
            // Surplus marks (Zalgo text) would overlap the rows above and below.
            let mut surplus = 1_usize;
            while let Some((_, next)) = chars.next_if(|(_, next)| {
                char_width(*next) == 0 && !is_invisible(*next) && !next.is_control()
            }) {
                surplus += 1;
                at.end += next.len_utf8();
            }
            UnitDisplay::Mark(format!("‹+{surplus} marks›"))
        } else if is_combining(c) {
            marks = 1;
            UnitDisplay::Symbol {
                text: Cow::Owned(format!("{DOTTED_CIRCLE}{c}")),
                width: 1,
            }
        } else {
            UnitDisplay::Mark(mark_for_char(c))
        };
        out.push(GlyphUnit { bytes: at, display });
    }
}

/// Returns true if a variation selector has an effect after this symbol.
fn takes_picture_selector(symbol: &str) -> bool {
    let mut both = String::from(symbol);
    both.push(PICTURE_SELECTOR);
    both.width() == 2
}

/// Returns true if a character without width is a mark on the previous one.
fn is_combining(c: char) -> bool {
    format!("a{c}").graphemes(true).count() == 1
}

/// Returns the mark for a character.
fn mark_for_char(c: char) -> String {
    let text = c.to_string();
    match make_visible(&text, false) {
        Cow::Owned(mark) => mark,
        Cow::Borrowed(_) => format!("‹U+{:04X}›", c as u32),
    }
}

/// Returns the width of a character that the terminal draws alone.
fn char_width(c: char) -> usize {
    match c {
        // Half-width sound marks extend a cluster, but terminals give each of them a column.
        '\u{FF9E}' | '\u{FF9F}' => 1,
        _ => c.width().unwrap_or(0),
    }
}

//! One row of text made of pieces, each with a role.
//!
//! Reads only the part of a piece that a screen could show, so a malicious title of any length costs nothing.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::glyph;
use crate::theme::Role;

/// The number of bytes of a piece that are read.
const MAX_PIECE_BYTES: usize = 4096;
/// The number of bytes at each end of a name that are measured.
const MAX_NAME_END_BYTES: usize = 400;

/// A row of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StyledRow<'a>(pub(crate) Vec<(Cow<'a, str>, Role)>);

impl<'a> StyledRow<'a> {
    /// Returns a row of one piece.
    pub(crate) fn new(text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        Self::default().with(text, role)
    }

    /// Adds a piece.
    #[must_use]
    pub(crate) fn with(mut self, text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        self.0.push((text.into(), role));
        self
    }

    /// Returns the width in columns, including the marks of invisible characters. Measures only the beginning of a
    /// long piece.
    pub(crate) fn width(&self) -> usize {
        let mut column = 0;
        for (text, _) in &self.0 {
            // No screen shows more of a piece, so do not measure the rest.
            let (seen, cut) = visible_prefix(text);
            for unit in glyph::split_units(seen) {
                column += unit.width(column);
            }
            if cut {
                // The ellipsis takes one more column.
                return column + 1;
            }
        }
        column
    }
}

/// Returns the visible part of a piece, and true if it is shortened.
fn visible_prefix(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(MAX_PIECE_BYTES);
    (&text[..end], end < text.len())
}

/// Draws a row from the left edge and ends it with an ellipsis if necessary. Draws `over`, the selection, over each
/// piece. Returns the columns used.
pub(crate) fn draw_row<T>(
    canvas: &mut Canvas<'_, T>,
    area: Rect,
    row: &StyledRow<'_>,
    over: Option<Role>,
) -> u16 {
    let area = canvas.clip(area);
    if area.is_empty() {
        return 0;
    }
    let used = draw_pieces(canvas, area, row);
    if let Some(role) = over {
        let style = canvas.style(role);
        // The selection reaches the right edge, beyond the text.
        canvas.buffer.set_style(Rect { height: 1, ..area }, style);
    }
    used
}

/// Draws one row at both ends: `right` ends at the right edge and `left` is cut before it. If they don't fit
/// together, `left` gets at least half of the width. Returns the columns of `left`.
pub(crate) fn draw_ends<T>(
    canvas: &mut Canvas<'_, T>,
    area: Rect,
    left: &StyledRow<'_>,
    right: &StyledRow<'_>,
    over: Option<Role>,
) -> u16 {
    let area = canvas.clip(area);
    if area.is_empty() {
        return 0;
    }
    let room = usize::from(area.width);
    let (wants, tail) = (left.width(), right.width());
    // One blank separates both ends.
    let tail = if tail == 0 || wants + 1 + tail <= room {
        tail
    } else {
        tail.min(room - (wants + 1).min(room.div_ceil(2)))
    };
    // Draw both ends, then the selection above them.
    let tail = u16::try_from(tail).unwrap_or(area.width);
    let head = area.width - tail;
    let used = draw_pieces(
        canvas,
        Rect {
            width: head.saturating_sub(u16::from(tail > 0)),
            ..area
        },
        left,
    );
    draw_pieces(
        canvas,
        Rect {
            x: area.x + head,
            width: tail,
            ..area
        },
        right,
    );
    if let Some(role) = over {
        let style = canvas.style(role);
        canvas.buffer.set_style(Rect { height: 1, ..area }, style);
    }
    used
}

/// Draws the pieces into an area inside the buffer.
fn draw_pieces<T>(canvas: &mut Canvas<'_, T>, area: Rect, row: &StyledRow<'_>) -> u16 {
    if area.is_empty() {
        return 0;
    }
    let room = usize::from(area.width);
    let mut column = 0;
    // The last position with room for an ellipsis, in case the row is too long.
    let mut cut = (0, Role::default());
    for (text, role) in &row.0 {
        let style = canvas.style(*role);
        let hostile = style.patch(canvas.style(Role::Hostile));
        let (seen, more) = visible_prefix(text);
        for unit in glyph::split_units(seen) {
            let width = unit.width(column);
            if column + width > room {
                return draw_ellipsis(canvas, area, cut);
            }
            canvas.draw_unit(area, column, &unit, style, hostile);
            column += width;
            if column < room {
                cut = (column, *role);
            }
        }
        if more {
            return draw_ellipsis(canvas, area, cut);
        }
    }
    u16::try_from(column).unwrap_or(area.width)
}

/// Ends a row that is longer than its area.
fn draw_ellipsis<T>(canvas: &mut Canvas<'_, T>, area: Rect, (column, role): (usize, Role)) -> u16 {
    let from = u16::try_from(column)
        .unwrap_or(area.width)
        .min(area.width - 1);
    let rest = Rect {
        x: area.x + from,
        width: area.width - from,
        height: 1,
        ..area
    };
    // Units after the cut are already drawn.
    canvas.blank(rest);
    let style = canvas.style(role);
    let symbol = canvas.glyphs().ellipsis;
    canvas.put_symbol(rest.x, rest.y, symbol, 1, style);
    from + 1
}

/// A piece of a text that fits into one row.
pub(crate) struct RowPiece {
    /// The bytes of the text.
    pub(crate) range: Range<usize>,
    /// The width in columns.
    pub(crate) columns: usize,
}

/// Breaks a part of a text into pieces that each end before the column `to`, and returns them with their columns. The
/// pieces begin at the column `from`. Line breaks also end a piece and belong to none.
pub(crate) fn break_into_rows(
    text: &str,
    part: Range<usize>,
    from: usize,
    to: usize,
) -> Vec<RowPiece> {
    let mut out = Vec::new();
    let (mut begins, mut column) = (part.start, from);
    for unit in glyph::split_units(&text[part.clone()]) {
        let at = part.start + unit.bytes.start..part.start + unit.bytes.end;
        // CR and LF are one unit.
        if matches!(&text[at.clone()], "\n" | "\r\n") {
            out.push(RowPiece {
                range: begins..at.start,
                columns: column - from,
            });
            (begins, column) = (at.end, from);
            continue;
        }
        let width = unit.width(column);
        // A unit that is wider than a row gets a row of its own.
        if column + width > to && column > from {
            out.push(RowPiece {
                range: begins..at.start,
                columns: column - from,
            });
            (begins, column) = (at.start, from);
        }
        // Measure again, because the width of a tab depends on its column.
        column += unit.width(column);
    }
    if begins < part.end {
        out.push(RowPiece {
            range: begins..part.end,
            columns: column - from,
        });
    }
    out
}

/// Shortens a name to `room` columns in the middle, because names differ at their ends.
pub(crate) fn elide_middle<'n>(name: &'n str, room: usize, ellipsis: &str) -> Cow<'n, str> {
    // A name with more bytes is shortened without measuring it.
    if name.len() <= MAX_NAME_END_BYTES && StyledRow::new(name, Role::Text).width() <= room {
        return name.into();
    }
    let wide = |c: char| {
        let mut buffer = [0; 4];
        StyledRow::new(&*c.encode_utf8(&mut buffer), Role::Text).width()
    };
    // The ellipsis takes one column.
    let half = room.saturating_sub(1);
    let (head, tail) = (half.div_ceil(2), half / 2);
    let take = |chars: &mut dyn Iterator<Item = char>, room: usize| -> Vec<char> {
        let mut used = 0;
        chars
            .take_while(|c| {
                used += wide(*c);
                used <= room
            })
            .collect()
    };
    let front = take(&mut name.chars(), head);
    let mut back = take(&mut name.chars().rev(), tail);
    back.reverse();
    let mut out: String = front.into_iter().collect();
    out.push_str(ellipsis);
    out.extend(back);
    out.into()
}

#[cfg(test)]
mod tests;

//! One row of text made of pieces, each with a role.
//!
//! Refuses to look at more of a piece than a screen could show, so that a hostile title of any length costs nothing.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::glyph;
use crate::theme::Role;

/// Bytes of a piece that are looked at.
const MAX_PIECE_BYTES: usize = 4096;

/// A row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StyledRow<'a>(pub(crate) Vec<(Cow<'a, str>, Role)>);

impl<'a> StyledRow<'a> {
    /// A row of one piece.
    pub(crate) fn new(text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        Self::default().with(text, role)
    }

    /// Adds a piece.
    #[must_use]
    pub(crate) fn with(mut self, text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        self.0.push((text.into(), role));
        self
    }

    /// Columns it takes, marks for hostile characters included. Of a piece of many kilobytes only the beginning counts.
    pub(crate) fn width(&self) -> usize {
        let mut column = 0;
        for (text, _) in &self.0 {
            let (seen, cut) = visible_prefix(text);
            for unit in glyph::split_units(seen) {
                column += unit.width(column);
            }
            if cut {
                return column + 1;
            }
        }
        column
    }
}

/// What is looked at of a piece, and whether that is not all.
fn visible_prefix(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(MAX_PIECE_BYTES);
    (&text[..end], end < text.len())
}

/// Draws a row from the left edge, cut with an ellipsis; `over` is laid over every piece (selection). Returns the columns used.
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
        canvas.buffer.set_style(Rect { height: 1, ..area }, style);
    }
    used
}

/// Draws one row at both ends: `right` ends at the right edge, `left` is cut before it. Where both do not fit, `left` has
/// at least half of the room. Returns the columns `left` used.
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
    let tail = if tail == 0 || wants + 1 + tail <= room {
        tail
    } else {
        tail.min(room - (wants + 1).min(room.div_ceil(2)))
    };
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

/// Draws the pieces into an area that lies within the buffer.
fn draw_pieces<T>(canvas: &mut Canvas<'_, T>, area: Rect, row: &StyledRow<'_>) -> u16 {
    if area.is_empty() {
        return 0;
    }
    let room = usize::from(area.width);
    let mut column = 0;
    // The last place where the ellipsis still fits, for a row that turns out too long.
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

/// Ends a row that is longer than its room.
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
    canvas.blank(rest);
    let style = canvas.style(role);
    let symbol = canvas.glyphs().ellipsis;
    canvas.put_symbol(rest.x, rest.y, symbol, 1, style);
    from + 1
}

/// Where a part of a text is broken so that each piece ends before the column `to`, and the columns each takes; they
/// begin at the column `from`. Line ends break too and belong to no piece.
pub(crate) fn break_into_rows(
    text: &str,
    part: Range<usize>,
    from: usize,
    to: usize,
) -> Vec<(Range<usize>, usize)> {
    let mut out = Vec::new();
    let (mut begins, mut column) = (part.start, from);
    for unit in glyph::split_units(&text[part.clone()]) {
        let at = part.start + unit.bytes.start..part.start + unit.bytes.end;
        if matches!(&text[at.clone()], "\n" | "\r\n") {
            out.push((begins..at.start, column - from));
            (begins, column) = (at.end, from);
            continue;
        }
        let width = unit.width(column);
        if column + width > to && column > from {
            out.push((begins..at.start, column - from));
            (begins, column) = (at.start, from);
        }
        column += unit.width(column);
    }
    if begins < part.end {
        out.push((begins..part.end, column - from));
    }
    out
}

#[cfg(test)]
mod tests;

//! Where views draw: the buffer, the theme, and the places a click would hit.
//!
//! Everything clips: an area may be empty, or lie partly or wholly beyond the screen.

use ratatui::buffer::{Buffer, CellWidth as _};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::glyph::{GlyphUnit, UnitDisplay};
use crate::model::is_invisible;
use crate::theme::{Glyphs, Role, Theme};

/// What lies where, in drawing order; the last one wins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HitMap<T>(pub(crate) Vec<(Rect, T)>);

impl<T> Default for HitMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> HitMap<T> {
    /// What a click at a position means.
    pub(crate) fn find(&self, column: u16, row: u16) -> Option<&(Rect, T)> {
        let position = Position::new(column, row);
        self.0
            .iter()
            .rev()
            .find(|(area, _)| area.contains(position))
    }
}

/// A screen while it is drawn.
pub(crate) struct Canvas<'a, T> {
    /// The cells; write through the methods here.
    pub(crate) buffer: &'a mut Buffer,
    /// How things look.
    pub(crate) theme: &'a Theme,
    /// What a click would hit.
    pub(crate) hits: HitMap<T>,
}

impl<'a, T> Canvas<'a, T> {
    /// A canvas over a buffer.
    pub(crate) fn new(buffer: &'a mut Buffer, theme: &'a Theme) -> Self {
        Self {
            buffer,
            theme,
            hits: HitMap::default(),
        }
    }

    /// The style of a role.
    pub(crate) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// The marks.
    pub(crate) fn glyphs(&self) -> &'a Glyphs {
        self.theme.glyphs()
    }

    /// Notes what a click there means.
    pub(crate) fn add_hit(&mut self, area: Rect, target: T) {
        self.hits.0.push((area, target));
    }

    /// The part of an area that is on the screen.
    pub(crate) fn clip(&self, area: Rect) -> Rect {
        area.intersection(self.buffer.area)
    }

    /// Lays a role's look over an area, whatever stands in it.
    pub(crate) fn fill(&mut self, area: Rect, role: Role) {
        let area = self.clip(area);
        let style = self.style(role);
        self.buffer.set_style(area, style);
    }

    /// Empties an area, half-covered wide characters at its left edge included.
    pub(crate) fn clear(&mut self, area: Rect) {
        let area = self.clip(area);
        for y in area.top()..area.bottom() {
            self.clear_half_covered(area.x, y);
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
        self.fill(area, Role::Text);
    }

    /// Makes room in the middle of the screen, never more than there is: emptied, and clicks do not fall through.
    pub(crate) fn open_popup(&mut self, width: u16, height: u16, hit: T) -> Rect {
        let screen = self.buffer.area;
        let (width, height) = (width.min(screen.width), height.min(screen.height));
        let area = Rect::new(
            screen.x + (screen.width - width) / 2,
            screen.y + (screen.height - height) / 2,
            width,
            height,
        );
        self.clear(area);
        self.add_hit(area, hit);
        area
    }

    /// Draws which part of the whole is visible into the area's last column (a frame's right border, say); nothing where
    /// all is.
    pub(crate) fn draw_scrollbar(&mut self, area: Rect, from: f64, to: f64) {
        let area = self.clip(area);
        if area.is_empty() || (from <= 0.0 && to >= 1.0) || !from.is_finite() || !to.is_finite() {
            return;
        }
        let height = f64::from(area.height);
        let place = |part: f64| rows_of_height(part.clamp(0.0, 1.0) * height);
        let first = place(from).min(area.height - 1);
        let last = place(to).max(first + 1).min(area.height);
        let style = self.style(Role::Bar);
        let symbol = self.glyphs().bar.0;
        for y in first..last {
            self.put_symbol(area.right() - 1, area.y + y, symbol, 1, style);
        }
    }

    /// Holds the screen to what may be sent to a terminal; called when everything is drawn.
    ///
    /// The last line of defence, for cells someone wrote past [`line`] and [`super::flow`]: no control, bidi or zero-width
    /// character is left, joiners included (no cluster drawn here needs one), and none wider than the room at the right
    /// edge. In ASCII mode our own marks and punctuation become ASCII too; letters stay.
    pub(crate) fn sanitize(&mut self) {
        let area = self.buffer.area;
        let ascii = self.glyphs().ascii;
        let width = usize::from(area.width).max(1);
        for (at, cell) in self.buffer.content.iter_mut().enumerate() {
            let symbol = cell.symbol();
            if let [byte] = symbol.as_bytes() {
                if !(b' '..=b'~').contains(byte) {
                    cell.set_symbol("?");
                }
                continue;
            }
            let hostile = symbol.chars().any(|c| c.is_control() || is_invisible(c));
            let room = width - at % width;
            let replaced = if symbol.is_empty() {
                Some(" ")
            } else if hostile || symbol.cell_width() == 0 || usize::from(symbol.cell_width()) > room
            {
                Some(if ascii { "?" } else { "\u{FFFD}" })
            } else if ascii {
                own_mark_in_ascii(symbol)
            } else {
                None
            };
            if let Some(symbol) = replaced {
                cell.set_symbol(symbol);
            }
        }
    }

    /// Draws a unit at a column of an area that lies within the buffer; what does not fit is left out.
    pub(super) fn draw_unit(
        &mut self,
        area: Rect,
        column: usize,
        unit: &GlyphUnit<'_>,
        style: Style,
        hostile: Style,
    ) {
        let room = usize::from(area.width);
        let x = |column: usize| area.x + u16::try_from(column).unwrap_or(u16::MAX - area.x);
        let width = unit.width(column);
        match &unit.shown {
            UnitDisplay::Symbol(symbol, wide) if column + wide <= room => {
                let wide = u16::try_from(*wide).unwrap_or(1);
                self.put_symbol(x(column), area.y, symbol, wide, style);
            }
            UnitDisplay::Symbol(..) => {}
            UnitDisplay::Mark(mark) => {
                let mut buffer = [0; 4];
                for (column, c) in (column..room).zip(mark.chars()) {
                    self.put_symbol(x(column), area.y, c.encode_utf8(&mut buffer), 1, hostile);
                }
            }
            UnitDisplay::Tab => {
                for column in column..(column + width).min(room) {
                    self.put_symbol(x(column), area.y, " ", 1, style);
                }
            }
        }
    }

    /// Writes one symbol; what it half covers is emptied.
    pub(super) fn put_symbol(&mut self, x: u16, y: u16, symbol: &str, width: u16, style: Style) {
        self.clear_half_covered(x, y);
        let Some(cell) = self.buffer.cell_mut((x, y)) else {
            return;
        };
        cell.set_symbol(symbol).set_style(style);
        for x in x.saturating_add(1)..x.saturating_add(width) {
            if let Some(cell) = self.buffer.cell_mut((x, y)) {
                cell.set_symbol(" ").set_style(style);
            }
        }
    }

    /// Spaces over what stands in a row; looks stay.
    pub(super) fn blank(&mut self, area: Rect) {
        for x in area.left()..area.right() {
            self.put_symbol(x, area.y, " ", 1, Style::new());
        }
    }

    pub(super) fn put_space(&mut self, x: u16, y: u16, style: Style) {
        self.put_symbol(x, y, " ", 1, style);
    }

    /// A wide character just left of `x` loses its second half to what comes: it goes.
    fn clear_half_covered(&mut self, x: u16, y: u16) {
        if let Some(left) = x.checked_sub(1)
            && let Some(cell) = self.buffer.cell_mut((left, y))
            && cell.symbol().len() > 1
            && cell.symbol().cell_width() > 1
        {
            cell.set_symbol(" ");
        }
    }
}

/// Rows a height takes, as drawn.
fn rows_of_height(height: f64) -> u16 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and a screen's height"
    )]
    let rows = height.round() as u16;
    rows
}

/// The ASCII form of a mark that this program makes, in its own texts too; each is one column wide.
fn own_mark_in_ascii(symbol: &str) -> Option<&'static str> {
    let mut chars = symbol.chars();
    match (chars.next(), chars.next()) {
        (Some('‹'), None) => Some("<"),
        (Some('›' | '…' | '→'), None) => Some(">"),
        // Between the parts of titles and lines.
        (Some('·' | '–'), None) => Some("-"),
        (Some('“' | '”'), None) => Some("\""),
        (Some('×' | '✗'), None) => Some("x"),
        (Some('\u{2400}'..='\u{2421}'), None) => Some("^"),
        (Some('✓'), None) => Some("+"),
        (Some('⇄'), None) => Some("%"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

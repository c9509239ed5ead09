//! The canvas for drawing: the buffer, the theme, and the click targets.
//!
//! All methods clip: an area may be empty, or partly or completely outside of the screen.

use ratatui::buffer::{Buffer, CellWidth as _};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::glyph::{GlyphUnit, UnitDisplay};
use crate::model::is_invisible;
use crate::theme::{Glyphs, Role, Theme};

/// The mean size of a cell's symbol in bytes, above which a frame is not drawn as it is. Text of living scripts needs
/// less, because it has spaces and letters without marks.
const MEAN_CELL_BYTES: usize = 9;
/// The largest symbol in such a frame, in bytes per column.
const MAX_DENSE_CELL_BYTES: usize = 8;

/// An area of the screen and the target of a click on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HitArea<T> {
    pub(crate) area: Rect,
    pub(crate) target: T,
}

/// The areas with click targets in drawing order; the last one has priority.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HitMap<T>(pub(crate) Vec<HitArea<T>>);

impl<T> Default for HitMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> HitMap<T> {
    /// Returns the area of a click at a position.
    pub(crate) fn find(&self, column: u16, row: u16) -> Option<&HitArea<T>> {
        let position = Position::new(column, row);
        self.0
            .iter()
            // Later targets are above earlier ones.
            .rev()
            .find(|hit| hit.area.contains(position))
    }
}

/// The screen while it is drawn.
pub(crate) struct Canvas<'a, T> {
    /// The cells. Write to them only through the methods of this type.
    pub(crate) buffer: &'a mut Buffer,
    /// The theme.
    pub(crate) theme: &'a Theme,
    /// The click targets.
    pub(crate) hits: HitMap<T>,
}

impl<'a, T> Canvas<'a, T> {
    /// Returns a canvas over a buffer.
    pub(crate) fn new(buffer: &'a mut Buffer, theme: &'a Theme) -> Self {
        Self {
            buffer,
            theme,
            hits: HitMap::default(),
        }
    }

    /// Returns the style of a role.
    pub(crate) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// Returns the characters of marks and borders.
    pub(crate) fn glyphs(&self) -> &'a Glyphs {
        self.theme.glyphs()
    }

    /// Adds a click target.
    pub(crate) fn add_hit(&mut self, area: Rect, target: T) {
        self.hits.0.push(HitArea { area, target });
    }

    /// Returns the part of an area that is on the screen.
    pub(crate) fn clip(&self, area: Rect) -> Rect {
        area.intersection(self.buffer.area)
    }

    /// Draws a role's style over an area and keeps its text.
    pub(crate) fn fill(&mut self, area: Rect, role: Role) {
        let area = self.clip(area);
        let style = self.style(role);
        self.buffer.set_style(area, style);
    }

    /// Empties an area, including half-covered wide characters at its left edge.
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

    /// Clears a box of at most this size in the middle of the screen and returns it. Clicks don't reach what is
    /// below.
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

    /// Draws a scrollbar into the right border of a frame, next to the rows of a list that begins with the row `first` of
    /// `count`.
    pub(crate) fn draw_list_scrollbar(
        &mut self,
        frame: Rect,
        rows: Rect,
        first: usize,
        count: usize,
    ) {
        let edge = Rect {
            y: rows.y,
            height: rows.height,
            ..frame
        };
        let share = |row: usize| row as f64 / count.max(1) as f64;
        let end = first.saturating_add(usize::from(rows.height)).min(count);
        self.draw_scrollbar(edge, share(first), share(end));
    }

    /// Draws a scrollbar into the last column of an area, such as a frame's right border. Draws nothing if everything
    /// is visible.
    pub(crate) fn draw_scrollbar(&mut self, area: Rect, from: f64, to: f64) {
        let area = self.clip(area);
        if area.is_empty() || (from <= 0.0 && to >= 1.0) || !from.is_finite() || !to.is_finite() {
            return;
        }
        let height = f64::from(area.height);
        let place = |part: f64| rows_of_height(part.clamp(0.0, 1.0) * height);
        let first = place(from).min(area.height - 1);
        // A scrollbar has at least one row.
        let last = place(to).max(first + 1).min(area.height);
        let style = self.style(Role::Bar);
        let symbol = self.glyphs().bar_filled;
        for y in first..last {
            self.put_symbol(area.right() - 1, area.y + y, symbol, 1, style);
        }
    }

    /// Removes everything that must not reach a terminal. Runs after everything is drawn.
    ///
    /// This is the last line of defense, for cells that were written without [`super::styled_row`] and
    /// [`super::flow`]. Removes control, bidi and zero-width characters, also joiners (no cluster drawn here needs
    /// one). Removes wide characters that exceed the right edge. In ASCII mode it replaces dicta's own marks and
    /// punctuation; letters stay.
    pub(crate) fn sanitize(&mut self) {
        let area = self.buffer.area;
        let ascii = self.glyphs().ascii;
        let width = usize::from(area.width).max(1);
        for (at, cell) in self.buffer.content.iter_mut().enumerate() {
            let symbol = cell.symbol();
            // Fast path: most cells contain one ASCII character.
            if let [byte] = symbol.as_bytes() {
                if !(b' '..=b'~').contains(byte) {
                    cell.set_symbol("?");
                }
                continue;
            }
            let hostile = symbol.chars().any(|c| c.is_control() || is_invisible(c));
            // The number of columns up to the right edge.
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
        self.limit_frame_bytes();
    }

    /// Draws a dotted circle in place of each long symbol, if the whole frame has too many bytes.
    ///
    /// Scripts stack marks on some letters. Only a hostile text stacks them on nearly all letters of a screen, and a
    /// slow terminal would draw such a frame for seconds.
    fn limit_frame_bytes(&mut self) {
        let cells = &mut self.buffer.content;
        let bytes: usize = cells.iter().map(|cell| cell.symbol().len()).sum();
        if bytes <= MEAN_CELL_BYTES * cells.len() {
            return;
        }
        let replacement = if self.theme.glyphs().ascii {
            "?"
        } else {
            "◌"
        };
        for cell in cells {
            let symbol = cell.symbol();
            if symbol.len() > MAX_DENSE_CELL_BYTES * usize::from(symbol.cell_width()) {
                cell.set_symbol(replacement);
            }
        }
    }

    /// Draws a unit at a column of an area inside the buffer. Omits it if it does not fit.
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
        match &unit.display {
            UnitDisplay::Symbol { text, width } if column + width <= room => {
                let width = u16::try_from(*width).unwrap_or(1);
                self.put_symbol(x(column), area.y, text, width, style);
            }
            // A wide symbol that exceeds the area is left out.
            UnitDisplay::Symbol { .. } => {}
            UnitDisplay::Mark(mark) => {
                let mut buffer = [0; 4];
                // A mark can be cut, because each of its characters is harmless.
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

    /// Writes one symbol and empties the cells that it half covers.
    pub(super) fn put_symbol(&mut self, x: u16, y: u16, symbol: &str, width: u16, style: Style) {
        self.clear_half_covered(x, y);
        let Some(cell) = self.buffer.cell_mut((x, y)) else {
            return;
        };
        cell.set_symbol(symbol).set_style(style);
        // The other cells of a wide symbol become blanks in its style.
        for x in x.saturating_add(1)..x.saturating_add(width) {
            if let Some(cell) = self.buffer.cell_mut((x, y)) {
                cell.set_symbol(" ").set_style(style);
            }
        }
    }

    /// Replaces the text of an area by spaces and keeps its style.
    pub(super) fn blank(&mut self, area: Rect) {
        for x in area.left()..area.right() {
            self.put_symbol(x, area.y, " ", 1, Style::new());
        }
    }

    pub(super) fn put_space(&mut self, x: u16, y: u16, style: Style) {
        self.put_symbol(x, y, " ", 1, style);
    }

    /// Empties a wide character left of `x` whose second half is about to be overwritten.
    fn clear_half_covered(&mut self, x: u16, y: u16) {
        if let Some(left) = x.checked_sub(1)
            && let Some(cell) = self.buffer.cell_mut((left, y))
            // An ASCII character is never wide, so test the length first.
            && cell.symbol().len() > 1
            && cell.symbol().cell_width() > 1
        {
            cell.set_symbol(" ");
        }
    }
}

/// Returns the number of rows of a drawn height.
fn rows_of_height(height: f64) -> u16 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and a screen's height"
    )]
    let rows = height.round() as u16;
    rows
}

/// Returns the ASCII form of a mark of dicta. Each is one column wide.
fn own_mark_in_ascii(symbol: &str) -> Option<&'static str> {
    let mut chars = symbol.chars();
    match (chars.next(), chars.next()) {
        (Some('‹'), None) => Some("<"),
        (Some('›' | '…' | '→'), None) => Some(">"),
        // The separators in titles and lines.
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

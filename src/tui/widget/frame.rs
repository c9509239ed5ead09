//! Draws rows of text and titled frames on a canvas.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::canvas::Canvas;
use super::styled_row::{self, StyledRow};
use crate::theme::Role;

/// Returns the border symbols: the corners (top left, top right, bottom left, bottom right), then horizontal and
/// vertical. The focused frame differs in shape, too, for screens without colors.
fn border_symbols(ascii: bool, focused: bool) -> [&'static str; 6] {
    match (ascii, focused) {
        (false, false) => ["┌", "┐", "└", "┘", "─", "│"],
        (false, true) => ["┏", "┓", "┗", "┛", "━", "┃"],
        (true, false) => ["+", "+", "+", "+", "-", "|"],
        (true, true) => ["#", "#", "#", "#", "=", "#"],
    }
}

impl<T> Canvas<'_, T> {
    /// Draws one row of text and ends it with an ellipsis if necessary. Returns the columns used.
    pub(crate) fn draw_text(&mut self, area: Rect, text: &str, role: Role) -> u16 {
        styled_row::draw_row(self, area, &StyledRow::new(text, role), None)
    }

    /// Draws a box with its title in the top border and makes it the click target `hit`. Returns the inside.
    pub(crate) fn draw_frame(
        &mut self,
        area: Rect,
        title: &StyledRow<'_>,
        focused: bool,
        hit: T,
    ) -> Rect {
        let area = self.clip(area);
        if area.is_empty() {
            return area;
        }
        self.add_hit(area, hit);
        let role = if focused {
            Role::BorderFocus
        } else {
            Role::Border
        };
        let style = self.style(role);
        let [tl, tr, bl, br, across, down] = border_symbols(self.glyphs().ascii, focused);
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        for x in area.left()..area.right() {
            self.put_symbol(x, bottom, across, 1, style);
            self.put_symbol(x, area.y, across, 1, style);
        }
        for y in area.top()..area.bottom() {
            self.put_symbol(area.x, y, down, 1, style);
            self.put_symbol(right, y, down, 1, style);
        }
        // The corners come last, because both borders cover them.
        self.put_symbol(right, bottom, br, 1, style);
        self.put_symbol(area.x, bottom, bl, 1, style);
        self.put_symbol(right, area.y, tr, 1, style);
        self.put_symbol(area.x, area.y, tl, 1, style);
        // The title needs a blank on each side, between the corners.
        if area.width > 4 && title.width() > 0 {
            let at = Rect::new(area.x + 2, area.y, area.width - 4, 1);
            self.put_space(at.x - 1, at.y, style);
            let used = styled_row::draw_row(self, at, title, None);
            self.put_space(at.x + used, at.y, style);
        }
        if area.width < 3 || area.height < 3 {
            return Rect::new(area.x, area.y, 0, 0);
        }
        Rect::new(area.x + 1, area.y + 1, area.width - 2, area.height - 2)
    }

    /// Draws a note at the right end of a frame's bottom border, such as `12/240`.
    pub(crate) fn draw_corner_note(&mut self, frame: Rect, note: &StyledRow<'_>) {
        let frame = self.clip(frame);
        let wide = u16::try_from(note.width()).unwrap_or(u16::MAX);
        // A very small frame has no room for a note.
        if wide == 0 || frame.height < 2 || frame.width < 6 {
            return;
        }
        let wide = wide.min(frame.width - 4);
        let at = Rect::new(frame.right() - 2 - wide, frame.bottom() - 1, wide, 1);
        self.put_space(at.x - 1, at.y, Style::new());
        self.put_space(at.right(), at.y, Style::new());
        self.blank(at);
        styled_row::draw_row(self, at, note, None);
    }
}

//! Draws the list of keys and values that can continue the typed filter, next to the line in the footer.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::state::cells::completion::FilterCompletion;
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{self, StyledRow};

/// The maximum width of a list of ids. A longer id loses its middle. A list with descriptions is as wide as it needs.
const MAX_IDS_WIDTH: u16 = 84;
/// The number of columns between a text and its description.
const NOTE_GAP: usize = 2;

/// Draws the list above the line, from its column on. Draws nothing without offers.
pub(super) fn draw(canvas: &mut Canvas<'_>, line: Rect, column: u16, list: &FilterCompletion) {
    let screen = canvas.buffer.area;
    // The cells that the filter selects stay visible above the list.
    let most_rows =
        usize::from((screen.height / 3).max(3)).min(usize::from(line.y.saturating_sub(4)));
    let rows = list.offers.len().min(most_rows);
    if rows == 0 {
        return;
    }
    let chosen = list.chosen.unwrap_or(0);
    // The chosen offer is visible, with as many before it as fit.
    let top = (chosen + 1).saturating_sub(rows);
    let visible = &list.offers[top..top + rows];
    let text_width = |text: &str| StyledRow::new(text, Role::Text).width();
    let texts = list.offers.iter().map(|offer| text_width(&offer.text));
    let texts = texts.max().unwrap_or(0);
    let notes = list.offers.iter().map(|offer| text_width(offer.note)).max();
    let keys = if list.total > list.offers.len() {
        format!("{} of {} · tab, shift-tab", list.offers.len(), list.total)
    } else {
        "tab, shift-tab choose".to_owned()
    };
    let notes = notes
        .filter(|width| *width > 0)
        .map_or(0, |width| width + NOTE_GAP);
    // The frame takes two columns, and a blank is at each end of a row.
    let width = (texts + notes).max(text_width(&keys) + 2) + 4;
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let most = if notes > 0 {
        screen.width
    } else {
        screen.width.min(MAX_IDS_WIDTH)
    };
    let width = width.min(most);
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX);
    let area = Rect {
        x: column.min(screen.width - width) + screen.x,
        y: line.y.saturating_sub(height),
        width,
        height,
    };
    canvas.clear(area);
    let inside = canvas.draw_frame(area, &StyledRow::default(), true, ClickTarget::Nothing);
    canvas.draw_corner_note(area, &StyledRow::new(keys, Role::Muted));
    // A blank is at each end.
    let text_room = usize::from(inside.width).saturating_sub(2);
    for ((at, offer), y) in visible.iter().enumerate().zip(inside.y..) {
        let text = styled_row::elide_middle(&offer.text, text_room, canvas.glyphs().ellipsis);
        let mut row = StyledRow::new(" ", Role::Text).with(text, Role::Text);
        // Blanks at the end of a row would count as hidden text.
        if !offer.note.is_empty() {
            let gap = texts.saturating_sub(text_width(&offer.text)) + NOTE_GAP;
            row = row
                .with(" ".repeat(gap), Role::Text)
                .with(offer.note, Role::Muted);
        }
        let over = (list.chosen == Some(top + at)).then_some(Role::Selected);
        let row_area = Rect {
            y,
            height: 1,
            ..inside
        };
        styled_row::draw_ends(canvas, row_area, &row, &StyledRow::default(), over);
        canvas.add_hit(row_area, ClickTarget::FilterOffer(top + at));
    }
}

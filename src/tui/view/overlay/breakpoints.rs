//! Draws the list of breakpoints.

use super::{draw_frame, nth_row};
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::state::App;
use crate::tui::state::pauses::explain_breakpoint;
use crate::tui::view::Canvas;
use crate::tui::widget::line_input::LineInput;
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws the list, and the line for another breakpoint above it.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App, input: &LineInput, selected: usize) {
    let offers = app.list_breakpoints();
    let screen = canvas.buffer.area;
    let width = usize::from(screen.width.saturating_sub(4)).min(76);
    let rows = usize::from(screen.height.saturating_sub(4)).min(offers.len() + 2);
    let keys = "enter sets or removes  space also, and stays  tab this cell only  esc";
    let inside = draw_frame(canvas, width, rows, "breakpoints", keys);
    let label = StyledRow::new(" add: ", Role::Key);
    let used = styled_row::draw_row(canvas, nth_row(inside, 0), &label, None);
    let mut field = nth_row(inside, 0);
    field.x += used;
    field.width = field.width.saturating_sub(used);
    if input.text.is_empty() {
        let example = StyledRow::new("call:TOOL:TEXT, outcome:NAME, STOP in CELL", Role::Muted);
        styled_row::draw_row(canvas, field, &example, None);
    } else {
        input.draw(canvas, field, Role::Text);
    }
    // The line and the blank row below it.
    let visible = usize::from(inside.height).saturating_sub(2).max(1);
    let top = (selected + 1).saturating_sub(visible);
    for (at, offer) in offers.iter().enumerate().skip(top).take(visible) {
        let area = nth_row(inside, at - top + 2);
        let mark = if offer.is_set { " [x] " } else { " [ ] " };
        let name = offer.breakpoint.to_string();
        let row = StyledRow::new(mark, Role::Key)
            .with(format!("{name:<24} "), Role::Text)
            .with(explain_breakpoint(&offer.breakpoint), Role::Muted);
        // A typed text takes the place of the selection.
        let is_selected = at == selected && input.text.is_empty();
        styled_row::draw_row(canvas, area, &row, is_selected.then_some(Role::Selected));
        canvas.add_hit(area, ClickTarget::OverlayLine(at));
    }
}

//! The parts that the views of the reading screen share: the row with the progress, and the lines below the frame.

use ratatui::layout::Rect;

use crate::model::pluralize;
use crate::theme::Role;
use crate::tui::content::review::list_below;
use crate::tui::state::review::ReviewScreen;
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, ScrollState};
use crate::tui::widget::styled_row::{self, StyledRow};

pub(super) fn row_of(area: Rect, at: usize) -> Rect {
    let at = u16::try_from(at).unwrap_or(u16::MAX).min(area.height);
    Rect {
        y: area.y + at,
        height: u16::from(at < area.height),
        ..area
    }
}

/// Returns the progress: `37 of 100, 2 new modes in the last 20`.
fn describe_progress(screen: &ReviewScreen) -> String {
    let queue = screen.session.as_ref();
    let queue = queue.map_or(0, |session| session.queue.len());
    let visited = format!("{} of {queue}", screen.visited);
    let saturation = &screen.saturation;
    if saturation.window == 0 {
        return visited;
    }
    let modes = pluralize(saturation.in_last, "new mode");
    format!("{visited}, {modes} in the last {}", saturation.window)
}

pub(super) fn draw_progress(
    canvas: &mut Canvas<'_>,
    area: Rect,
    screen: &ReviewScreen,
    right: String,
) {
    let left = StyledRow::new(" review ", Role::Badge)
        .with(" ", Role::Text)
        .with(describe_progress(screen), Role::Accent);
    let right = StyledRow::new(right, Role::Muted);
    styled_row::draw_ends(canvas, row_of(area, 0), &left, &right, None);
}

pub(super) fn draw_below(canvas: &mut Canvas<'_>, area: Rect, screen: &ReviewScreen) {
    flow::draw(canvas, area, &list_below(screen), &ScrollState::top());
}

/// Returns the first visible position of a list.
pub(super) fn first_visible(selected: usize, height: u16) -> usize {
    (selected + 1).saturating_sub(usize::from(height).max(1))
}

//! Draws the table of modes: how often each occurs, with the facts of the sample below.

use ratatui::layout::Rect;

use super::review_parts::{draw_below, draw_progress, first_visible, row_of};
use crate::model::make_visible;
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::content::review::find_areas;
use crate::tui::content::review_counts::{columns, columns_width, headings};
use crate::tui::state::App;
use crate::tui::state::review::{CountedModes, ReviewScreen};
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, ScrollState, TextBlock, TextSource};
use crate::tui::widget::styled_row::{self, StyledRow};

/// The least rows of modes on a small screen.
const LEAST_MODES: u16 = 4;

/// Draws the table between progress and footer.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let screen = &app.review;
    let areas = find_areas(app);
    draw_progress(canvas, areas.progress, screen, "esc goes back ".to_owned());
    let title = StyledRow::new("modes, counted over what was read", Role::Title);
    let inside = canvas.draw_frame(areas.frame, &title, true, ClickTarget::Nothing);
    match &screen.counts.counted {
        None => {
            let text = StyledRow::new("counting …", Role::Muted);
            styled_row::draw_row(canvas, row_of(inside, 0), &text, None);
        }
        Some(Err(why)) => {
            let text = format!("dicta can't count the modes: {}", make_visible(why, false));
            let blocks = vec![TextBlock::new(text, Role::Error)];
            flow::draw(canvas, inside, &blocks, &ScrollState::top());
        }
        Some(Ok(counted)) => draw_table(canvas, inside, screen, counted),
    }
    draw_below(canvas, areas.below, screen);
}

fn draw_table(
    canvas: &mut Canvas<'_>,
    inside: Rect,
    screen: &ReviewScreen,
    counted: &CountedModes,
) {
    let modes = screen.session.as_ref();
    let modes = modes.map_or(&[][..], |session| session.book.modes.modes.as_slice());
    let facts = list_facts(counted);
    let wanted = u16::try_from(modes.len()).unwrap_or(u16::MAX).max(1);
    let fact_rows = flow::count_rows(&facts, inside.width, inside.height);
    // The heading and an empty row. Facts get the rest, so few modes leave room for all of them.
    let room = inside.height.saturating_sub(2);
    let mode_rows = wanted.min(room.saturating_sub(fact_rows).max(LEAST_MODES.min(room)));
    let cursor = canvas.glyphs().cursor;
    let columns_width = u16::try_from(columns_width(counted)).unwrap_or(u16::MAX);
    let mut draw_line = |at: u16, name: StyledRow<'_>, rest: String, role: Role, over| {
        let row = row_of(inside, usize::from(at));
        let name_width = row.width.saturating_sub(columns_width);
        let left = Rect {
            width: name_width,
            ..row
        };
        let right = Rect {
            x: row.x + name_width,
            width: row.width - name_width,
            ..row
        };
        styled_row::draw_row(canvas, left, &name, over);
        styled_row::draw_row(canvas, right, &StyledRow::new(rest, role), over);
    };
    let head = StyledRow::new(" mode", Role::Muted);
    draw_line(0, head, headings(counted), Role::Muted, None);
    let selected = screen.modes.selected_mode;
    let top = first_visible(selected, mode_rows);
    for (row, (at, mode)) in (1..).zip(modes.iter().enumerate().skip(top).take(mode_rows.into())) {
        let cursor = if at == selected { cursor } else { " " };
        let name = StyledRow::new(cursor, Role::Key)
            .with(make_visible(&mode.name, false).into_owned(), Role::Text);
        let counts = counted.table.modes.iter().find(|one| one.mode == mode.id);
        let rest = counts.map_or_else(String::new, |counts| columns(counted, counts));
        let over = (at == selected).then_some(Role::Selected);
        draw_line(row, name, rest, Role::Text, over);
    }
    let used = mode_rows + 2;
    let area = Rect {
        y: inside.y + used.min(inside.height),
        height: inside.height.saturating_sub(used),
        ..inside
    };
    draw_facts(canvas, area, &facts, fact_rows);
}

/// Draws the facts. If they have too many rows, the last row says where the others are.
fn draw_facts(canvas: &mut Canvas<'_>, area: Rect, facts: &dyn TextSource, rows: u16) {
    let fits = rows <= area.height;
    let shown = Rect {
        height: area.height.saturating_sub(u16::from(!fits)),
        ..area
    };
    flow::draw(canvas, shown, facts, &ScrollState::top());
    if !fits {
        let more = StyledRow::new(" … `dicta review report` prints the rest", Role::Muted);
        styled_row::draw_row(canvas, row_of(area, usize::from(shown.height)), &more, None);
    }
}

fn list_facts(counted: &CountedModes) -> Vec<TextBlock<'_>> {
    let facts = counted.facts.iter();
    let facts = facts.map(|fact| TextBlock {
        indent: 1,
        ..TextBlock::new(make_visible(fact, false), Role::Muted)
    });
    facts.collect()
}

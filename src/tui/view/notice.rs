//! Draws a notice over the last row, or over several rows if it is long.

use ratatui::layout::Rect;

use crate::report::wrap_line;
use crate::theme::Role;
use crate::tui::state::notices::{Notice, NoticeLevel};
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, ScrollState, TextBlock};
use crate::tui::widget::styled_row::{self, StyledRow};

/// The most rows of a notice.
const MAX_ROWS: u16 = 4;
/// The bytes of a notice that are read: more than its rows show.
const MAX_BYTES: usize = 8192;
/// The fewest columns next to a notice that show keys.
const MIN_KEY_COLUMNS: u16 = 20;

/// Draws a notice. Returns the place next to it for the keys, if the notice leaves enough of the row free: the right
/// half, or less.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, notice: &Notice) -> Option<Rect> {
    let role = match notice.level {
        NoticeLevel::Info => Role::Toast,
        NoticeLevel::Warning => Role::Warning,
        NoticeLevel::Error => Role::Error,
    };
    // The words distinguish the levels on a screen without colors.
    let mark = match notice.level {
        NoticeLevel::Info => " ",
        NoticeLevel::Warning => " warning: ",
        NoticeLevel::Error => " error: ",
    };
    // The log shows the message with its line breaks.
    let text: Vec<&str> = notice.text.split('\n').map(str::trim).collect();
    let text = text.join(" ");
    let more = match notice.level {
        NoticeLevel::Info => StyledRow::default(),
        _ => StyledRow::new(" L ", Role::Key).with("log ", Role::Muted),
    };
    let row = StyledRow::new(mark, role).with(text.as_str(), role);
    if row.width() + more.width() > usize::from(area.width) {
        draw_rows(canvas, area, &format!("{mark}{text}"), role, &more);
        return None;
    }
    styled_row::draw_ends(canvas, area, &row, &more, None);
    // One more blank separates the notice from the keys.
    let used = u16::try_from(row.width() + 1).unwrap_or(u16::MAX);
    let used = used.max(area.width / 2).min(area.width);
    let rest = Rect {
        x: area.x + used,
        width: area.width - used,
        ..area
    };
    (more.0.is_empty() && rest.width >= MIN_KEY_COLUMNS).then_some(rest)
}

/// Draws a notice that does not fit into the row on more rows, over what is above. Breaks it at spaces, so that people can
/// copy a path.
fn draw_rows(canvas: &mut Canvas<'_>, area: Rect, text: &str, role: Role, more: &StyledRow<'_>) {
    let tail = u16::try_from(more.width()).unwrap_or(u16::MAX);
    let width = area.width.saturating_sub(tail);
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let text = wrap_line(text, 0, 1, usize::from(width)).into_owned();
    let blocks = vec![TextBlock::new(text, role)];
    let most = MAX_ROWS.min(area.y / 2 + 1);
    let needed = flow::count_rows(&blocks, width, most + 1).max(1);
    let rows = needed.min(most);
    let whole = Rect {
        y: area.y.saturating_sub(rows - 1),
        height: rows,
        ..area
    };
    canvas.clear(whole);
    canvas.fill(whole, role);
    flow::draw(
        canvas,
        Rect { width, ..whole },
        &blocks,
        &ScrollState::top(),
    );
    if needed > rows {
        let last = Rect {
            x: area.x + width.saturating_sub(1),
            width: 1,
            ..area
        };
        let ellipsis = canvas.glyphs().ellipsis;
        styled_row::draw_row(canvas, last, &StyledRow::new(ellipsis, role), None);
    }
    let end = Rect {
        x: area.x + width,
        width: area.width - width,
        ..area
    };
    styled_row::draw_row(canvas, end, more, None);
}

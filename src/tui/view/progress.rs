//! Draws the progress screen: the answer, the entries, and below them the flips, the difference of the rubrics, the
//! agreement over edits, and the scores with the threshold.

mod chart;
mod entries;
mod flips;
mod scores;

use ratatui::layout::Rect;

use super::scrolled_text;
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::content;
use crate::tui::state::App;
use crate::tui::state::progress::{
    HEADLINE_BADGE, ProgressArea, ProgressLayout, ProgressPane, ProgressScreen, headline_ends,
};
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws the screen between header and footer.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let layout = app.progress_layout();
    let screen = &app.progress;
    draw_headline(
        canvas,
        layout.headline,
        (screen, app.layout().middle().height),
    );
    let edit = screen.edit_rows(layout.edit.width, canvas.glyphs());
    for (row, text) in rows_of(layout.edit).zip(edit) {
        let text = StyledRow::new(" ", Role::Muted).with(text, Role::Muted);
        styled_row::draw_row(canvas, row, &text, None);
    }
    let list_width = layout.inner_size(ProgressPane::Entries).width;
    for ProgressArea { pane, area } in &layout.parts {
        let title = match pane {
            ProgressPane::Entries => entries::title(screen),
            ProgressPane::Flips => flips::title(screen, canvas.glyphs()),
            ProgressPane::Diff => diff_title(screen),
            ProgressPane::Agreement => ProgressPane::Agreement.title().to_owned(),
            ProgressPane::Scores => scores::title(screen),
        };
        let inside = canvas.draw_frame(
            *area,
            &StyledRow::new(title, Role::Title),
            screen.focus == *pane,
            ClickTarget::ProgressPane(*pane),
        );
        if layout.has_tabs && *pane != ProgressPane::Entries {
            draw_tabs(canvas, *area, &layout, *pane);
        }
        if inside.is_empty() {
            continue;
        }
        match pane {
            ProgressPane::Entries => entries::draw(canvas, *area, inside, screen),
            ProgressPane::Flips => {
                // The list is not next to the flips on a small screen, which has a row for the edit.
                let width = layout.edit.is_empty().then_some(list_width);
                flips::draw(canvas, *area, inside, (screen, width));
            }
            ProgressPane::Diff => {
                let blocks = content::state_diff_blocks(screen);
                scrolled_text::draw(canvas, inside, &blocks, &screen.diff_scroll);
            }
            ProgressPane::Agreement => chart::draw(canvas, inside, screen),
            ProgressPane::Scores => scores::draw(canvas, inside, screen),
        }
    }
}

/// Draws the rows of the answer at the left, and the chosen eval at the right of the first one.
fn draw_headline(canvas: &mut Canvas<'_>, area: Rect, (screen, height): (&ProgressScreen, u16)) {
    let title = screen.eval_title();
    let (badge, eval) = headline_ends(area.width, &title);
    let sentence = screen.headline_rows(area.width, height);
    for (at, (row, text)) in rows_of(area).zip(sentence).enumerate() {
        let begin = if at == 0 { badge } else { 0 };
        let start = if begin == 0 { " " } else { "" };
        let text = StyledRow::new(start, Role::Text).with(text, Role::Title);
        let room = Rect {
            x: row.x + begin,
            width: row.width.saturating_sub(begin + eval + 1),
            ..row
        };
        styled_row::draw_row(canvas, room, &text, None);
    }
    let first = Rect {
        height: area.height.min(1),
        ..area
    };
    if badge > 0 {
        styled_row::draw_row(
            canvas,
            first,
            &StyledRow::new(HEADLINE_BADGE, Role::Badge),
            None,
        );
    }
    let end = match title.strip_prefix("eval ") {
        Some(name) => StyledRow::new("eval ", Role::Muted).with(name, Role::Accent),
        None => StyledRow::new(title.as_str(), Role::Accent),
    };
    let end_area = Rect {
        x: first.right().saturating_sub(eval),
        width: eval.min(first.width),
        ..first
    };
    styled_row::draw_row(canvas, end_area, &end, None);
}

/// Returns the rows of an area, from top to bottom.
fn rows_of(area: Rect) -> impl Iterator<Item = Rect> {
    (area.top()..area.bottom()).map(move |y| Rect {
        y,
        height: 1,
        ..area
    })
}

fn diff_title(screen: &ProgressScreen) -> String {
    match screen.pair {
        Some(pair) => format!(
            "{}: {} to {}",
            ProgressPane::Diff.title(),
            pair.before,
            pair.after
        ),
        None => ProgressPane::Diff.title().to_owned(),
    }
}

/// Draws the names of the parts into the bottom border, if they do not all fit on the screen.
fn draw_tabs(canvas: &mut Canvas<'_>, frame: Rect, layout: &ProgressLayout, shown: ProgressPane) {
    let mut row = StyledRow::new("tab ", Role::Key);
    for pane in ProgressPane::ALL {
        if layout.area(pane).is_some() && pane != shown {
            continue;
        }
        let role = if pane == shown {
            Role::SelectedUnfocused
        } else {
            Role::Muted
        };
        row = row.with(format!(" {} ", pane.title()), role);
    }
    canvas.draw_corner_note(frame, &row);
}

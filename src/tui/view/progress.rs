//! Draws the progress screen: the answer, the entries, and below them the flips, the difference of the rubrics, the
//! agreement over edits, and the scores with the threshold.

mod chart;
mod entries;
mod flips;
mod scores;

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::content;
use crate::tui::state::App;
use crate::tui::state::progress::{ProgressArea, ProgressLayout, ProgressPane, ProgressScreen};
use crate::tui::view::Canvas;
use crate::tui::widget::flow;
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws the screen between header and footer.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let layout = app.progress_layout();
    let screen = &app.progress;
    draw_headline(canvas, layout.headline, screen);
    let list_width = layout.inner_size(ProgressPane::Entries).width;
    for ProgressArea { pane, area } in &layout.parts {
        let title = match pane {
            ProgressPane::Entries => entries::title(screen),
            ProgressPane::Flips => flips::title(screen, canvas.glyphs()),
            ProgressPane::Diff => diff_title(screen),
            ProgressPane::Chart => ProgressPane::Chart.title().to_owned(),
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
            ProgressPane::Flips => flips::draw(canvas, *area, inside, (screen, list_width)),
            ProgressPane::Diff => {
                let blocks = content::state_diff_blocks(screen);
                flow::draw(canvas, inside, &blocks, &screen.diff_scroll);
            }
            ProgressPane::Chart => chart::draw(canvas, inside, screen),
            ProgressPane::Scores => scores::draw(canvas, inside, screen),
        }
    }
}

/// Draws the answer at the left, and the chosen eval at the right.
fn draw_headline(canvas: &mut Canvas<'_>, area: Rect, screen: &ProgressScreen) {
    let left = StyledRow::new(" progress ", Role::Badge)
        .with(" ", Role::Text)
        .with(screen.headline(), Role::Title);
    let eval = screen.eval.as_ref().map_or("all", |eval| &eval.eval);
    let right = StyledRow::new("eval ", Role::Muted).with(format!("{eval} "), Role::Accent);
    styled_row::draw_ends(canvas, area, &left, &right, None);
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
        row = row.with(format!(" {} ", pane.short_title()), role);
    }
    canvas.draw_corner_note(frame, &row);
}

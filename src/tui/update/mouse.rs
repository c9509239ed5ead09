//! The mouse. A click focuses, selects and runs hints; the wheel scrolls the pane under the pointer; borders can be
//! dragged.

use ratatui::layout::Rect;

use super::{commands, focus, footer_input, overlay_input, panes, progress, replay, trace_screen};
use crate::tui::click_target::ClickTarget;
use crate::tui::effect::Effect;
use crate::tui::msg::{MouseAction, MouseInput};
use crate::tui::state::App;
use crate::tui::state::cells::CellsEntry;
use crate::tui::state::pane::Pane;
use crate::tui::state::progress::ProgressPane;

/// The rows that one notch of the wheel scrolls.
const ROWS_PER_WHEEL_NOTCH: i64 = 3;

/// Handles a mouse event.
pub(super) fn handle_mouse(app: &mut App, mouse: MouseInput) -> Vec<Effect> {
    let (column, row) = (mouse.column, mouse.row);
    match mouse.action {
        MouseAction::Pressed => handle_press(app, column, row),
        MouseAction::Dragged => handle_drag(app, column, row),
        MouseAction::Released => {
            if app.ui.drag.take().is_some() {
                app.ui.choices.splits = Some(app.ui.splits);
            }
            Vec::new()
        }
        MouseAction::Scrolled(notches) => {
            handle_scroll(app, column, row, i64::from(notches) * ROWS_PER_WHEEL_NOTCH)
        }
    }
}

fn handle_press(app: &mut App, column: u16, row: u16) -> Vec<Effect> {
    let hit = app.ui.hits.find(column, row);
    let hit = hit.map(|hit| (hit.area, hit.target.clone()));
    if !app.overlays.is_empty() {
        // An overlay covers the screen, so a click next to its lines does nothing.
        return match hit {
            Some((_, ClickTarget::OverlayLine(line))) => overlay_input::handle_click(app, line),
            _ => Vec::new(),
        };
    }
    // Only the border of a pane starts a drag. Rows and hints on it remain clickable.
    let on_a_pane = matches!(hit, None | Some((_, ClickTarget::Pane(_))));
    if on_a_pane && let Some(found) = app.layout().divider_at(column, row) {
        app.ui.drag = Some(found.divider);
    }
    match hit {
        Some((area, ClickTarget::Pane(Pane::Steps))) => {
            let effects = panes::focus_pane(app, Pane::Steps);
            // The first row is below the border.
            if let Some(below) = row.checked_sub(area.y + 1) {
                trace_screen::select_row(app, below);
            }
            effects
        }
        Some((area, target)) => handle_click(app, area, &target, column),
        // An area without its own target belongs to a pane.
        None => match app.layout().pane_at(column, row) {
            Some(pane) => panes::focus_pane(app, pane),
            None => Vec::new(),
        },
    }
}

fn handle_click(app: &mut App, area: Rect, target: &ClickTarget, column: u16) -> Vec<Effect> {
    match *target {
        ClickTarget::Pane(pane) => panes::focus_pane(app, pane),
        ClickTarget::Row(row) => {
            // Scrolls as little as possible, so that the clicked row stays under the pointer.
            let height = usize::from(app.layout().inner_size(Pane::Cells).height);
            let cells = &mut app.session_mut().cells;
            cells.select_entry(CellsEntry::Row(row), height);
            panes::focus_pane(app, Pane::Cells)
        }
        ClickTarget::Group(eval) => {
            panes::focus_pane(app, Pane::Cells);
            let height = usize::from(app.layout().inner_size(Pane::Cells).height);
            let cells = &mut app.session_mut().cells;
            cells.select_entry(CellsEntry::Group(eval), height);
            cells.toggle_group();
            panes::keep_selection_visible(app);
            Vec::new()
        }
        ClickTarget::Step(step) => focus::select_step(app, step),
        ClickTarget::Command(command) => commands::run_command(app, command),
        // A click on the selected flip opens its cell.
        ClickTarget::Flip(at) if app.ui.focus == Pane::Changes && app.saves.selected == at => {
            panes::go_to_flip(app, at)
        }
        ClickTarget::Flip(at) => {
            app.saves.selected = at;
            panes::focus_pane(app, Pane::Changes)
        }
        ClickTarget::Progress => {
            let part = f64::from(column.saturating_sub(area.x)) / f64::from(area.width.max(1));
            replay::seek_fraction(app, part)
        }
        ClickTarget::ProgressPane(pane) => {
            progress::focus_pane(app, pane);
            Vec::new()
        }
        ClickTarget::ProgressItem(at) => {
            progress::focus_pane(app, ProgressPane::Entries);
            progress::select_item(app, at);
            Vec::new()
        }
        ClickTarget::StateFlip(at) => {
            progress::select_flip(app, at);
            Vec::new()
        }
        ClickTarget::FilterOffer(at) => footer_input::click_offer(app, at),
        ClickTarget::OverlayLine(_) | ClickTarget::Nothing => Vec::new(),
    }
}

fn handle_drag(app: &mut App, column: u16, row: u16) -> Vec<Effect> {
    let Some(divider) = app.ui.drag else {
        return Vec::new();
    };
    let layout = app.layout();
    // The layout is computed again, because a resize may have removed the divider.
    let dragged = layout.dividers.iter().find(|one| one.divider == divider);
    if let Some(dragged) = dragged {
        app.ui
            .splits
            .drag_divider(divider, dragged.divided_area, column, row);
        panes::keep_selection_visible(app);
    }
    Vec::new()
}

/// Scrolls the part of the screen under the pointer, focused or not.
fn handle_scroll(app: &mut App, column: u16, row: u16, rows: i64) -> Vec<Effect> {
    if !app.overlays.is_empty() {
        return overlay_input::handle_scroll(app, rows);
    }
    if app.shows_review() {
        super::review::scroll_by(app, rows);
        return Vec::new();
    }
    if app.shows_progress() {
        // The wheel scrolls the part under the pointer.
        let hit = app.ui.hits.find(column, row).map(|hit| hit.target.clone());
        match hit {
            Some(ClickTarget::ProgressPane(pane)) => progress::focus_pane(app, pane),
            Some(ClickTarget::StateFlip(_)) => progress::focus_pane(app, ProgressPane::Flips),
            Some(ClickTarget::ProgressItem(_)) => {
                progress::focus_pane(app, ProgressPane::Entries);
            }
            _ => return Vec::new(),
        }
        progress::move_by(app, rows);
        return Vec::new();
    }
    match app.layout().pane_at(column, row) {
        Some(pane) => panes::scroll_pane_by(app, pane, rows),
        None => Vec::new(),
    }
}

//! The mouse: a click focuses, selects and runs hints; the wheel scrolls what is under it; borders can be dragged.

use ratatui::layout::Rect;

use super::{focus, keys, overlay, panes, replay};
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::Entry;
use crate::tui::model::pane::Pane;
use crate::tui::msg::{Mouse, MouseDid, Target};

/// Rows a notch of the wheel scrolls.
const NOTCH: i64 = 3;

/// It did something.
pub(super) fn moved(model: &mut Model, mouse: Mouse) -> Vec<Effect> {
    let (column, row) = (mouse.column, mouse.row);
    match mouse.did {
        MouseDid::Pressed => pressed(model, column, row),
        MouseDid::Dragged => dragged(model, column, row),
        MouseDid::Released => {
            model.ui.drag = None;
            Vec::new()
        }
        MouseDid::Scrolled(notches) => scrolled(model, column, row, i64::from(notches) * NOTCH),
    }
}

fn pressed(model: &mut Model, column: u16, row: u16) -> Vec<Effect> {
    let hit = model.ui.hits.at(column, row).cloned();
    if !model.overlays.is_empty() {
        return match hit {
            Some((_, Target::OverlayLine(line))) => overlay::clicked(model, line),
            _ => Vec::new(),
        };
    }
    let on_a_pane = matches!(hit, None | Some((_, Target::Pane(_))));
    if on_a_pane && let Some((divider, _)) = model.layout().divider_at(column, row) {
        model.ui.drag = Some(divider);
    }
    match hit {
        Some((area, target)) => clicked(model, area, &target, column),
        None => match model.layout().pane_at(column, row) {
            Some(pane) => panes::focus(model, pane),
            None => Vec::new(),
        },
    }
}

fn clicked(model: &mut Model, area: Rect, target: &Target, column: u16) -> Vec<Effect> {
    match *target {
        Target::Pane(pane) => panes::focus(model, pane),
        Target::Row(row) => {
            // What is clicked stays under the pointer.
            let height = usize::from(model.layout().inside(Pane::Cells).height);
            let cells = &mut model.desk_mut().cells;
            cells.select_entry(Entry::Row(row), height);
            panes::focus(model, Pane::Cells)
        }
        Target::Group(eval) => {
            panes::focus(model, Pane::Cells);
            let height = usize::from(model.layout().inside(Pane::Cells).height);
            let cells = &mut model.desk_mut().cells;
            cells.select_entry(Entry::Group(eval), height);
            cells.toggle_group();
            panes::in_view(model);
            Vec::new()
        }
        Target::Step(step) => focus::select_step(model, step),
        Target::Command(command) => keys::run(model, command),
        Target::Flip(at) if model.ui.focus == Pane::Changes && model.saves.selected == at => {
            panes::go_to_flip(model, at)
        }
        Target::Flip(at) => {
            model.saves.selected = at;
            panes::focus(model, Pane::Changes)
        }
        Target::Progress => {
            let part = f64::from(column.saturating_sub(area.x)) / f64::from(area.width.max(1));
            replay::seek_fraction(model, part)
        }
        Target::OverlayLine(_) | Target::Nothing => Vec::new(),
    }
}

fn dragged(model: &mut Model, column: u16, row: u16) -> Vec<Effect> {
    let Some(divider) = model.ui.drag else {
        return Vec::new();
    };
    let layout = model.layout();
    let held = layout.dividers.iter().find(|(one, _, _)| *one == divider);
    if let Some((_, _, area)) = held {
        model.ui.splits.drag(divider, *area, column, row);
        panes::in_view(model);
    }
    Vec::new()
}

/// What lies under the pointer, whatever has the focus.
fn scrolled(model: &mut Model, column: u16, row: u16, rows: i64) -> Vec<Effect> {
    if !model.overlays.is_empty() {
        return overlay::scrolled(model, rows);
    }
    match model.layout().pane_at(column, row) {
        Some(pane) => panes::scroll_by(model, pane, rows),
        None => Vec::new(),
    }
}

//! Focus, zoom, moving and scrolling.

use ratatui::layout::{Rect, Size};

use super::keys::told;
use crate::tui::command::flips;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::Entry;
use crate::tui::model::pane::Pane;
use crate::tui::widget::flow::{Found, Scroll, Source};

/// The terminal has another size: everything flows anew, the focused item stays in view.
pub(super) fn resized(model: &mut Model, width: u16, height: u16) -> Vec<Effect> {
    model.ui.size = Size::new(width, height);
    model.ui.drag = None;
    in_view(model);
    Vec::new()
}

/// Keeps the selected cell in view after the pane's height changed.
pub(super) fn in_view(model: &mut Model) {
    let height = height(model, Pane::Cells);
    model.desk_mut().cells.move_by(0, height);
}

/// Rows inside a pane.
fn height(model: &Model, pane: Pane) -> usize {
    usize::from(model.layout().inside(pane).height)
}

/// A moment came: a long search goes on, marks turn.
pub(super) fn time_passed(model: &mut Model) {
    model.ui.frame = model.ui.frame.wrapping_add(1);
    if let Some((pane, forward)) = model.ui.searching {
        seek(model, pane, forward);
    }
}

/// Focuses a pane; where it is not shown, it takes the place of the one that is.
pub(super) fn focus(model: &mut Model, pane: Pane) -> Vec<Effect> {
    model.ui.focus = pane;
    if pane != Pane::Cells {
        model.ui.tab = pane;
    }
    in_view(model);
    Vec::new()
}

/// `tab`: the next pane by number, over those that are shown, or that are tabs.
pub(super) fn cycle(model: &mut Model, forward: bool) -> Vec<Effect> {
    let layout = model.layout();
    let tabs = !layout.tabs.is_empty() || model.ui.zoom;
    let panes: Vec<Pane> = Pane::ALL
        .into_iter()
        .filter(|pane| tabs || layout.area(*pane).is_some())
        .collect();
    let at = panes.iter().position(|pane| *pane == model.ui.focus);
    let step = if forward {
        1
    } else {
        panes.len().saturating_sub(1)
    };
    let next = (at.unwrap_or(0) + step) % panes.len().max(1);
    match panes.get(next) {
        Some(pane) => focus(model, *pane),
        None => Vec::new(),
    }
}

/// `h`, `l`: the pane on that side; with tabs, to the right is the next tab.
pub(super) fn beside(model: &mut Model, right: bool) -> Vec<Effect> {
    let layout = model.layout();
    let from = layout.area(model.ui.focus).unwrap_or_default();
    let near = layout
        .panes
        .iter()
        .filter(|(_, area)| {
            if right {
                area.x >= from.right()
            } else {
                area.right() <= from.x
            }
        })
        .min_by_key(|(_, area)| {
            let gap = if right {
                area.x - from.right()
            } else {
                from.x - area.right()
            };
            (gap, std::cmp::Reverse(overlap(from, *area)))
        })
        .map(|(pane, _)| *pane);
    match near {
        Some(pane) => focus(model, pane),
        None if !layout.tabs.is_empty() => cycle(model, right),
        None if right => told(model, "there is no pane further to the right"),
        None => told(model, "there is no pane further to the left"),
    }
}

fn overlap(one: Rect, other: Rect) -> u16 {
    one.bottom()
        .min(other.bottom())
        .saturating_sub(one.y.max(other.y))
}

/// The focused pane over the whole screen, and back.
pub(super) fn zoom(model: &mut Model) -> Vec<Effect> {
    model.ui.zoom = !model.ui.zoom;
    in_view(model);
    Vec::new()
}

/// Does something to a pane's place in its text.
pub(super) fn with_scroll<T>(
    model: &mut Model,
    pane: Pane,
    act: impl FnOnce(&mut Scroll, &dyn Source, Size) -> T,
) -> Option<T> {
    let area = model.layout().inside(pane);
    let mut scroll = std::mem::take(content::scroll_mut(model, pane)?);
    let done = {
        let source = content::of(model, pane);
        act(&mut scroll, &*source, area)
    };
    *content::scroll_mut(model, pane)? = scroll;
    Some(done)
}

/// Rows down (negative: up) in the focused pane.
pub(super) fn move_by(model: &mut Model, rows: i64) -> Vec<Effect> {
    let pane = model.ui.focus;
    if pane == Pane::Changes && flip_by(model, rows) {
        return Vec::new();
    }
    scroll_by(model, pane, rows)
}

/// Rows down in any pane, whatever is focused.
pub(super) fn scroll_by(model: &mut Model, pane: Pane, rows: i64) -> Vec<Effect> {
    if pane == Pane::Cells {
        let height = height(model, pane);
        let rows = isize::try_from(rows).unwrap_or(0);
        model.desk_mut().cells.move_by(rows, height);
    } else {
        with_scroll(model, pane, |scroll, source, area| {
            scroll.by(source, area, rows);
        });
    }
    Vec::new()
}

/// Moves over the listed flips; past them the text scrolls.
fn flip_by(model: &mut Model, rows: i64) -> bool {
    let next = usize::try_from(i64::try_from(model.saves.selected).unwrap_or(0) + rows).ok();
    match next.filter(|next| *next < flips(model)) {
        Some(next) => {
            model.saves.selected = next;
            true
        }
        None => false,
    }
}

/// A page, or a part of one.
pub(super) fn page(model: &mut Model, pages: i64, parts: i64) -> Vec<Effect> {
    let pane = model.ui.focus;
    let rows = i64::try_from(height(model, pane)).unwrap_or(1);
    let step = if parts == 1 { rows - 1 } else { rows / parts };
    scroll_by(model, pane, pages * step.max(1))
}

/// The first row, or the last.
pub(super) fn end(model: &mut Model, last: bool) -> Vec<Effect> {
    let pane = model.ui.focus;
    if pane == Pane::Cells {
        let height = height(model, pane);
        let cells = &mut model.desk_mut().cells;
        if last {
            cells.last(height);
        } else {
            cells.first(height);
        }
    } else if let Some(scroll) = content::scroll_mut(model, pane) {
        if last {
            scroll.end();
        } else {
            scroll.home();
        }
    }
    Vec::new()
}

/// `enter`: into what is selected; a text fills the screen.
pub(super) fn enter(model: &mut Model) -> Vec<Effect> {
    match model.ui.focus {
        Pane::Cells if matches!(model.desk().cells.list.selected, Some(Entry::Group(_))) => {
            model.desk_mut().cells.toggle_group();
            in_view(model);
            Vec::new()
        }
        Pane::Cells => focus(model, Pane::Verdict),
        Pane::Changes => go_to_flip(model, model.saves.selected),
        _ => zoom(model),
    }
}

/// The cell of a flip, and its verdict.
pub(super) fn go_to_flip(model: &mut Model, at: usize) -> Vec<Effect> {
    if model.replay.is_some() {
        return told(
            model,
            "this is a replay: q goes back to where verdicts moved",
        );
    }
    let row = model
        .report()
        .and_then(|report| Some(report.flips.get(at)?.row));
    let Some(row) = row else {
        return Vec::new();
    };
    model.saves.selected = at;
    if !model.live.cells.select(row) {
        return told(model, "this cell is not there any more");
    }
    in_view(model);
    focus(model, Pane::Verdict)
}

/// `]`, `[`.
pub(super) fn problem(model: &mut Model, forward: bool) -> Vec<Effect> {
    if !model.desk_mut().cells.next_problem(forward) {
        return told(
            model,
            "nothing failed, flipped or is in error among what is listed",
        );
    }
    in_view(model);
    Vec::new()
}

/// The next of the sorts.
pub(super) fn sort(model: &mut Model) -> Vec<Effect> {
    let cells = &mut model.desk_mut().cells;
    let sort = cells.sort.next();
    cells.set_sort(sort);
    in_view(model);
    told(model, sort.words())
}

/// Goes to the next match of a pane's search.
pub(super) fn seek(model: &mut Model, pane: Pane, forward: bool) -> Vec<Effect> {
    model.ui.searching = None;
    let found = with_scroll(model, pane, |scroll, source, area| {
        let found = scroll.seek(source, area, forward);
        let needle = scroll.find.as_ref().map(|find| find.needle.clone());
        (found, needle.unwrap_or_default())
    });
    match found {
        Some((Found::Around(_), _)) if forward => told(model, "on from the beginning"),
        Some((Found::Around(_), _)) => told(model, "on from the end"),
        Some((Found::Nowhere, needle)) => {
            let title = pane.title();
            told(model, format!("`{needle}` stands nowhere in {title}"))
        }
        Some((Found::NotYet, _)) => {
            model.ui.searching = Some((pane, forward));
            Vec::new()
        }
        Some((Found::At(_), _)) | None => Vec::new(),
    }
}

/// Takes the marks of a search away; whether there were any.
pub(super) fn forget_search(model: &mut Model, pane: Pane) -> bool {
    let stopped = model.ui.searching.take().is_some();
    let find = content::scroll_mut(model, pane).and_then(|scroll| scroll.find.take());
    stopped || find.is_some()
}

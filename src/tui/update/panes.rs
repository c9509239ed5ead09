//! Focus, zoom, moving and scrolling.

use ratatui::layout::{Rect, Size};

use super::keys::push_info;
use crate::tui::command::count_flips;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::CellsEntry;
use crate::tui::state::pane::Pane;
use crate::tui::widget::flow::{ScrollState, SearchOutcome, TextSource};

/// The terminal has another size: everything flows anew, the focused item stays in view.
pub(super) fn handle_resize(model: &mut App, width: u16, height: u16) -> Vec<Effect> {
    model.ui.size = Size::new(width, height);
    model.ui.drag = None;
    keep_selection_visible(model);
    Vec::new()
}

/// Keeps the selected cell in view after the pane's height changed.
pub(super) fn keep_selection_visible(model: &mut App) {
    let height = pane_height(model, Pane::Cells);
    model.session_mut().cells.move_cursor_by(0, height);
}

/// Rows inside a pane.
fn pane_height(model: &App, pane: Pane) -> usize {
    usize::from(model.layout().inner_size(pane).height)
}

/// A moment came: a long search goes on, marks turn.
pub(super) fn handle_time_passed(model: &mut App) {
    model.ui.spinner_frame = model.ui.spinner_frame.wrapping_add(1);
    if let Some((pane, forward)) = model.ui.pending_search {
        find_next_match(model, pane, forward);
    }
}

/// Focuses a pane; where it is not shown, it takes the place of the one that is.
pub(super) fn focus_pane(model: &mut App, pane: Pane) -> Vec<Effect> {
    model.ui.focus = pane;
    if pane != Pane::Cells {
        model.ui.tab_pane = pane;
    }
    keep_selection_visible(model);
    Vec::new()
}

/// `tab`: the next pane by number, over those that are shown, or that are tabs.
pub(super) fn cycle_focus(model: &mut App, forward: bool) -> Vec<Effect> {
    let layout = model.layout();
    let tabs = !layout.tabs.is_empty() || model.ui.zoomed;
    let panes: Vec<Pane> = Pane::ALL
        .into_iter()
        .filter(|pane| tabs || layout.pane_area(*pane).is_some())
        .collect();
    let at = panes.iter().position(|pane| *pane == model.ui.focus);
    let step = if forward {
        1
    } else {
        panes.len().saturating_sub(1)
    };
    let next = (at.unwrap_or(0) + step) % panes.len().max(1);
    match panes.get(next) {
        Some(pane) => focus_pane(model, *pane),
        None => Vec::new(),
    }
}

/// `h`, `l`: the pane on that side; with tabs, to the right is the next tab.
pub(super) fn focus_neighbour(model: &mut App, right: bool) -> Vec<Effect> {
    let layout = model.layout();
    let from = layout.pane_area(model.ui.focus).unwrap_or_default();
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
            (gap, std::cmp::Reverse(compute_overlap(from, *area)))
        })
        .map(|(pane, _)| *pane);
    match near {
        Some(pane) => focus_pane(model, pane),
        None if !layout.tabs.is_empty() => cycle_focus(model, right),
        None if right => push_info(model, "there is no pane further to the right"),
        None => push_info(model, "there is no pane further to the left"),
    }
}

fn compute_overlap(one: Rect, other: Rect) -> u16 {
    one.bottom()
        .min(other.bottom())
        .saturating_sub(one.y.max(other.y))
}

/// The focused pane over the whole screen, and back.
pub(super) fn toggle_zoom(model: &mut App) -> Vec<Effect> {
    model.ui.zoomed = !model.ui.zoomed;
    keep_selection_visible(model);
    Vec::new()
}

/// Does something to a pane's place in its text.
pub(super) fn with_scroll<T>(
    model: &mut App,
    pane: Pane,
    act: impl FnOnce(&mut ScrollState, &dyn TextSource, Size) -> T,
) -> Option<T> {
    let area = model.layout().inner_size(pane);
    let mut scroll = std::mem::take(content::pane_scroll_mut(model, pane)?);
    let done = {
        let source = content::pane_source(model, pane);
        act(&mut scroll, &*source, area)
    };
    *content::pane_scroll_mut(model, pane)? = scroll;
    Some(done)
}

/// Rows down (negative: up) in the focused pane.
pub(super) fn move_focused_by(model: &mut App, rows: i64) -> Vec<Effect> {
    let pane = model.ui.focus;
    if pane == Pane::Changes && move_flip_by(model, rows) {
        return Vec::new();
    }
    scroll_pane_by(model, pane, rows)
}

/// Rows down in any pane, whatever is focused.
pub(super) fn scroll_pane_by(model: &mut App, pane: Pane, rows: i64) -> Vec<Effect> {
    if pane == Pane::Cells {
        let height = pane_height(model, pane);
        let rows = isize::try_from(rows).unwrap_or(0);
        model.session_mut().cells.move_cursor_by(rows, height);
    } else {
        with_scroll(model, pane, |scroll, source, area| {
            scroll.scroll_rows(source, area, rows);
        });
    }
    Vec::new()
}

/// Moves over the listed flips; past them the text scrolls.
fn move_flip_by(model: &mut App, rows: i64) -> bool {
    let next = usize::try_from(i64::try_from(model.saves.selected).unwrap_or(0) + rows).ok();
    match next.filter(|next| *next < count_flips(model)) {
        Some(next) => {
            model.saves.selected = next;
            true
        }
        None => false,
    }
}

/// A page, or a part of one.
pub(super) fn move_by_page(model: &mut App, pages: i64, parts: i64) -> Vec<Effect> {
    let pane = model.ui.focus;
    let rows = i64::try_from(pane_height(model, pane)).unwrap_or(1);
    let step = if parts == 1 { rows - 1 } else { rows / parts };
    scroll_pane_by(model, pane, pages * step.max(1))
}

/// The first row, or the last.
pub(super) fn move_to_end(model: &mut App, last: bool) -> Vec<Effect> {
    let pane = model.ui.focus;
    if pane == Pane::Cells {
        let height = pane_height(model, pane);
        let cells = &mut model.session_mut().cells;
        if last {
            cells.select_last(height);
        } else {
            cells.select_first(height);
        }
    } else if let Some(scroll) = content::pane_scroll_mut(model, pane) {
        if last {
            scroll.scroll_to_end();
        } else {
            scroll.scroll_to_start();
        }
    }
    Vec::new()
}

/// `enter`: into what is selected; a text fills the screen.
pub(super) fn enter_selection(model: &mut App) -> Vec<Effect> {
    match model.ui.focus {
        Pane::Cells
            if matches!(
                model.session().cells.list.selected,
                Some(CellsEntry::Group(_))
            ) =>
        {
            model.session_mut().cells.toggle_group();
            keep_selection_visible(model);
            Vec::new()
        }
        Pane::Cells => focus_pane(model, Pane::Verdict),
        Pane::Changes => go_to_flip(model, model.saves.selected),
        _ => toggle_zoom(model),
    }
}

/// The cell of a flip, and its verdict.
pub(super) fn go_to_flip(model: &mut App, at: usize) -> Vec<Effect> {
    if model.replay.is_some() {
        return push_info(
            model,
            "this is a replay: q goes back to where verdicts moved",
        );
    }
    let row = model
        .visible_report()
        .and_then(|report| Some(report.flips.get(at)?.row));
    let Some(row) = row else {
        return Vec::new();
    };
    model.saves.selected = at;
    if !model.live_session.cells.select_row(row) {
        return push_info(model, "this cell is not there any more");
    }
    keep_selection_visible(model);
    focus_pane(model, Pane::Verdict)
}

/// `]`, `[`.
pub(super) fn select_next_problem(model: &mut App, forward: bool) -> Vec<Effect> {
    if !model.session_mut().cells.select_next_problem(forward) {
        return push_info(
            model,
            "nothing failed, flipped or is in error among what is listed",
        );
    }
    keep_selection_visible(model);
    Vec::new()
}

/// The next of the sorts.
pub(super) fn cycle_sort(model: &mut App) -> Vec<Effect> {
    let cells = &mut model.session_mut().cells;
    let sort = cells.sort.cycle();
    cells.set_sort(sort);
    keep_selection_visible(model);
    push_info(model, sort.title())
}

/// Goes to the next match of a pane's search.
pub(super) fn find_next_match(model: &mut App, pane: Pane, forward: bool) -> Vec<Effect> {
    model.ui.pending_search = None;
    let found = with_scroll(model, pane, |scroll, source, area| {
        let found = scroll.seek_match(source, area, forward);
        let needle = scroll.search.as_ref().map(|find| find.needle.clone());
        (found, needle.unwrap_or_default())
    });
    match found {
        Some((SearchOutcome::Wrapped(_), _)) if forward => {
            push_info(model, "on from the beginning")
        }
        Some((SearchOutcome::Wrapped(_), _)) => push_info(model, "on from the end"),
        Some((SearchOutcome::NotFound, needle)) => {
            let title = pane.title();
            push_info(model, format!("`{needle}` stands nowhere in {title}"))
        }
        Some((SearchOutcome::Pending, _)) => {
            model.ui.pending_search = Some((pane, forward));
            Vec::new()
        }
        Some((SearchOutcome::At(_), _)) | None => Vec::new(),
    }
}

/// Takes the marks of a search away; whether there were any.
pub(super) fn clear_search(model: &mut App, pane: Pane) -> bool {
    let stopped = model.ui.pending_search.take().is_some();
    let find = content::pane_scroll_mut(model, pane).and_then(|scroll| scroll.search.take());
    stopped || find.is_some()
}

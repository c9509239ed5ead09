//! Focus, zoom, movement and scrolling.

use ratatui::layout::{Rect, Size};

use super::notices::push_info;
use crate::tui::command::count_flips;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::state::cells::{CellsEntry, RowSort, SlotId};
use crate::tui::state::filled_panes::find_filled_panes;
use crate::tui::state::pane::{Pane, PaneArea};
use crate::tui::state::{App, PendingPaneSearch};
use crate::tui::widget::flow::{ScrollState, SearchOutcome, TextSource};

/// Lays out the panes for a new terminal size and keeps the selected row in view.
pub(super) fn handle_resize(app: &mut App, width: u16, height: u16) -> Vec<Effect> {
    app.ui.size = Size::new(width, height);
    // The dragged divider belongs to the old layout.
    app.ui.drag = None;
    keep_selection_visible(app);
    Vec::new()
}

/// Scrolls the cells pane so that the selected row is in view.
pub(super) fn keep_selection_visible(app: &mut App) {
    let height = pane_height(app, Pane::Cells);
    // A move by 0 rows keeps the selection and only scrolls.
    app.session_mut().cells.move_cursor_by(0, height);
}

/// Returns the height of a pane's inside in rows.
fn pane_height(app: &App, pane: Pane) -> usize {
    usize::from(app.layout().inner_size(pane).height)
}

/// Continues a long search and advances the spinner.
pub(super) fn handle_time_passed(app: &mut App) {
    app.ui.spinner_frame = app.ui.spinner_frame.wrapping_add(1);
    if let Some(PendingPaneSearch { pane, forward }) = app.ui.pending_search {
        find_next_match(app, pane, forward);
    }
}

/// Focuses a pane. A hidden pane replaces the visible tab.
pub(super) fn focus_pane(app: &mut App, pane: Pane) -> Vec<Effect> {
    // The other panes are on the home screen.
    if app.ui.trace_open && !Pane::TRACE_SCREEN.contains(&pane) {
        app.close_trace_screen();
    }
    app.ui.focus = pane;
    // The cells and the list of steps are never the tab.
    if !matches!(pane, Pane::Cells | Pane::Steps) {
        app.ui.tab_pane = pane;
    }
    keep_selection_visible(app);
    Vec::new()
}

/// Moves the focus out of a pane that has nothing to show any more, because another entry is selected.
pub(super) fn leave_empty_pane(app: &mut App) {
    let filled = find_filled_panes(app);
    // The focus of the home screen has no meaning on the trace screen.
    if filled.trace_screen && !Pane::TRACE_SCREEN.contains(&app.ui.focus) {
        app.ui.focus = Pane::Steps;
    }
    if !filled.trace_screen && matches!(app.ui.focus, Pane::Steps | Pane::Details) {
        app.ui.focus = Pane::Cells;
    }
    if !filled.contains(app.ui.focus) {
        app.ui.focus = filled.or_filled(app.ui.focus).unwrap_or(Pane::Cells);
    }
}

/// `tab`: focuses the next pane by number, visible panes and tabs included.
pub(super) fn cycle_focus(app: &mut App, forward: bool) -> Vec<Effect> {
    let layout = app.layout();
    // While zoomed, each pane can be the visible one.
    let tabs = !layout.tabs.is_empty() || app.ui.zoomed;
    let on_trace_screen = layout.filled.trace_screen;
    let all: &[Pane] = if on_trace_screen {
        &Pane::TRACE_SCREEN
    } else {
        &Pane::ALL
    };
    let tabs = tabs || on_trace_screen;
    let panes: Vec<Pane> = all
        .iter()
        .copied()
        .filter(|pane| tabs || layout.pane_area(*pane).is_some())
        .filter(|pane| layout.filled.contains(*pane))
        .collect();
    let at = panes.iter().position(|pane| *pane == app.ui.focus);
    let step = if forward {
        1
    } else {
        // Adding the count minus one goes one back without a negative number.
        panes.len().saturating_sub(1)
    };
    let next = (at.unwrap_or(0) + step) % panes.len().max(1);
    match panes.get(next) {
        Some(pane) => focus_pane(app, *pane),
        None => Vec::new(),
    }
}

/// `h`, `l`: focuses the pane on that side, or the next tab on the right.
pub(super) fn focus_neighbour(app: &mut App, right: bool) -> Vec<Effect> {
    let layout = app.layout();
    let from = layout.pane_area(app.ui.focus).unwrap_or_default();
    let near = layout
        .panes
        .iter()
        .filter(|PaneArea { area, .. }| {
            if right {
                area.x >= from.right()
            } else {
                area.right() <= from.x
            }
        })
        .min_by_key(|PaneArea { area, .. }| {
            let gap = if right {
                area.x - from.right()
            } else {
                from.x - area.right()
            };
            // Of several panes at the same distance, the one with the most common rows is next to it.
            (gap, std::cmp::Reverse(compute_overlap(from, *area)))
        })
        .map(|near| near.pane);
    match near {
        Some(pane) => focus_pane(app, pane),
        // On a narrow screen, the hidden panes are tabs.
        None if !layout.tabs.is_empty() => cycle_focus(app, right),
        None if right => push_info(app, "this is the rightmost pane"),
        None => push_info(app, "this is the leftmost pane"),
    }
}

fn compute_overlap(one: Rect, other: Rect) -> u16 {
    one.bottom()
        .min(other.bottom())
        .saturating_sub(one.y.max(other.y))
}

/// Shows the focused pane on the whole screen, or ends that.
pub(super) fn toggle_zoom(app: &mut App) -> Vec<Effect> {
    app.ui.zoomed = !app.ui.zoomed;
    keep_selection_visible(app);
    Vec::new()
}

/// Calls a function with a pane's scroll state, text and size.
pub(super) fn with_scroll<T>(
    app: &mut App,
    pane: Pane,
    act: impl FnOnce(&mut ScrollState, &dyn TextSource, Size) -> T,
) -> Option<T> {
    let area = app.layout().inner_size(pane);
    // The text source borrows the app, so the scroll state is taken out of it.
    let mut scroll = std::mem::take(content::pane_scroll_mut(app, pane)?);
    let done = {
        let source = content::pane_source(app, pane);
        act(&mut scroll, &*source, area)
    };
    *content::pane_scroll_mut(app, pane)? = scroll;
    Some(done)
}

/// Moves so many rows down in the focused pane; negative is up.
pub(super) fn move_focused_by(app: &mut App, rows: i64) -> Vec<Effect> {
    let pane = app.ui.focus;
    // The changes pane moves over its flips first, and scrolls only past them.
    if pane == Pane::Changes && move_flip_by(app, rows) {
        return Vec::new();
    }
    scroll_pane_by(app, pane, rows)
}

/// Scrolls any pane so many rows down.
pub(super) fn scroll_pane_by(app: &mut App, pane: Pane, rows: i64) -> Vec<Effect> {
    if pane == Pane::Cells {
        let height = pane_height(app, pane);
        let rows = isize::try_from(rows).unwrap_or(0);
        app.session_mut().cells.move_cursor_by(rows, height);
    } else {
        with_scroll(app, pane, |scroll, source, area| {
            scroll.scroll_rows(source, area, rows);
        });
    }
    Vec::new()
}

/// Moves over the listed flips. Returns false past the last one, so that the text scrolls.
fn move_flip_by(app: &mut App, rows: i64) -> bool {
    let next = usize::try_from(i64::try_from(app.saves.selected).unwrap_or(0) + rows).ok();
    match next.filter(|next| *next < count_flips(app)) {
        Some(next) => {
            app.saves.selected = next;
            true
        }
        None => false,
    }
}

/// Moves by a page, or by a part of one.
pub(super) fn move_by_page(app: &mut App, pages: i64, parts: i64) -> Vec<Effect> {
    let pane = app.ui.focus;
    let rows = i64::try_from(pane_height(app, pane)).unwrap_or(1);
    // A whole page keeps one row of the previous page in view.
    let step = if parts == 1 { rows - 1 } else { rows / parts };
    scroll_pane_by(app, pane, pages * step.max(1))
}

/// Moves to the first or the last row.
pub(super) fn move_to_end(app: &mut App, last: bool) -> Vec<Effect> {
    let pane = app.ui.focus;
    if pane == Pane::Cells {
        let height = pane_height(app, pane);
        let cells = &mut app.session_mut().cells;
        if last {
            cells.select_last(height);
        } else {
            cells.select_first(height);
        }
    } else if let Some(scroll) = content::pane_scroll_mut(app, pane) {
        if last {
            scroll.scroll_to_end();
        } else {
            scroll.scroll_to_start();
        }
    }
    Vec::new()
}

/// `enter`: opens the selected item; a text pane zooms.
pub(super) fn enter_selection(app: &mut App) -> Vec<Effect> {
    match app.ui.focus {
        Pane::Cells
            if matches!(
                app.session().cells.list.selected,
                Some(CellsEntry::Group(_))
            ) =>
        {
            app.session_mut().cells.toggle_group();
            keep_selection_visible(app);
            Vec::new()
        }
        Pane::Cells => focus_pane(app, Pane::Verdict),
        Pane::Changes => go_to_flip(app, app.saves.selected),
        _ => toggle_zoom(app),
    }
}

/// Selects the cell of a flip and shows its verdict.
pub(super) fn go_to_flip(app: &mut App, at: usize) -> Vec<Effect> {
    // The flips belong to the live cells, which a replay hides.
    if app.replay.is_some() {
        return push_info(app, "this is a replay: q goes back to where verdicts moved");
    }
    let Some(report) = app.visible_report() else {
        return Vec::new();
    };
    let (row, entries) = (
        report.flips.get(at).map(|flip| flip.row),
        report.count_entries(),
    );
    drop(report);
    let Some(row) = row else {
        if at >= entries {
            return Vec::new();
        }
        app.saves.selected = at;
        return push_info(app, "the revision no longer plans this cell");
    };
    app.saves.selected = at;
    // An outline may have removed the row since the flip.
    if !app.live_session.cells.select_row(row) {
        return push_info(app, "this cell is not there any more");
    }
    keep_selection_visible(app);
    focus_pane(app, Pane::Verdict)
}

/// `]`, `[`: selects the next or the previous problem.
pub(super) fn select_next_problem(app: &mut App, forward: bool) -> Vec<Effect> {
    // A paused trace waits for the user, so it comes first.
    if let Some(SlotId { row, slot }) = app.next_paused(forward) {
        app.live_session.focus_decision(CellsEntry::Row(row), slot);
        keep_selection_visible(app);
        return Vec::new();
    }
    if !app.session_mut().cells.select_next_problem(forward) {
        let none = if app.session().cells.sort == RowSort::Disagreements {
            "no verdict disagrees with its label among what is listed"
        } else {
            "nothing failed, flipped or is in error among what is listed"
        };
        return push_info(app, none);
    }
    keep_selection_visible(app);
    Vec::new()
}

/// Selects the next sort order.
pub(super) fn cycle_sort(app: &mut App) -> Vec<Effect> {
    let cells = &mut app.session_mut().cells;
    let sort = cells.sort.cycle();
    cells.set_sort(sort);
    // Each workspace has its own order.
    if let Some(root) = app.workspace().map(|open| open.root.clone()) {
        app.ui.choices.set_order(&root, sort);
    }
    if let Some(before) = &mut app.labelling.before_blind {
        before.sort = None;
    }
    keep_selection_visible(app);
    push_info(app, sort.title())
}

/// Goes to the next match of the pane's search.
pub(super) fn find_next_match(app: &mut App, pane: Pane, forward: bool) -> Vec<Effect> {
    // A new search replaces one that is not finished.
    app.ui.pending_search = None;
    let found = with_scroll(app, pane, |scroll, source, area| {
        let found = scroll.seek_match(source, area, forward);
        let needle = scroll.search.as_ref().map(|find| find.needle.clone());
        (found, needle.unwrap_or_default())
    });
    match found {
        Some((SearchOutcome::Wrapped(_), _)) if forward => {
            push_info(app, "the search continues from the beginning")
        }
        Some((SearchOutcome::Wrapped(_), _)) => push_info(app, "the search continues from the end"),
        Some((SearchOutcome::NotFound, needle)) => {
            let title = app.pane_title(pane);
            let hint = explain_search_target(&needle);
            push_info(app, format!("`{needle}` is not in the {title}{hint}"))
        }
        // The time limit of one step is over; a timer continues the search.
        Some((SearchOutcome::Pending, _)) => {
            app.ui.pending_search = Some(PendingPaneSearch { pane, forward });
            Vec::new()
        }
        Some((SearchOutcome::At(_), _)) | None => Vec::new(),
    }
}

/// Returns where to type a text that looks like a filter of cells; nothing for other texts.
fn explain_search_target(needle: &str) -> &'static str {
    let word = needle.split_whitespace().next().unwrap_or_default();
    let is_filter = word.split_once(':').is_some_and(|(key, value)| {
        !value.is_empty() && key.chars().all(|letter| letter.is_ascii_lowercase())
    });
    if is_filter {
        "; 1, then / filters the cells"
    } else {
        ""
    }
}

/// Clears the search of a pane; returns false if there was none.
pub(super) fn clear_search(app: &mut App, pane: Pane) -> bool {
    let stopped = app.ui.pending_search.take().is_some();
    let find = content::pane_scroll_mut(app, pane).and_then(|scroll| scroll.search.take());
    stopped || find.is_some()
}

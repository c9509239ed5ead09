//! From a wish to areas. Three shapes by size: a column for everything, one pane beside the cells, one pane at a time.

use ratatui::layout::Rect;

use super::{Divider, Layout, Pane, Wish};

/// Columns and rows from which a shape is used.
const WIDE: (u16, u16) = (180, 40);
const FULL: (u16, u16) = (100, 30);
const BESIDE: (u16, u16) = (60, 15);
const LEAST: (u16, u16) = (30, 8);
/// Columns and rows from which the tour has a row of its own.
const TOUR: (u16, u16) = (60, 20);
/// What a pane needs: its border and a few words.
const NARROWEST: u16 = 16;
/// Its border and two rows.
const LOWEST: u16 = 4;
/// Columns a cell's row needs to be told from another.
const CELLS: u16 = 34;

/// See [`Layout::of`].
pub(super) fn arrange(wish: &Wish) -> Layout {
    let size = wish.size;
    let fits = |least: (u16, u16)| size.width >= least.0 && size.height >= least.1;
    if !fits(LEAST) {
        return Layout {
            too_small: true,
            ..Layout::default()
        };
    }
    let mut layout = Layout::default();
    let mut rest = Rect::new(0, 0, size.width, size.height);
    layout.header = top(&mut rest, 1);
    layout.footer = bottom(&mut rest, 1);
    if wish.tour && fits(TOUR) {
        layout.tour = bottom(&mut rest, 1);
    }
    if wish.zoom {
        layout.panes.push((wish.focus, rest));
        return layout;
    }
    if wish.replay {
        layout.replay = top(&mut rest, 1);
    }
    let problems = wish.problems.min(4).min((size.height / 6).max(1));
    layout.problems = bottom(&mut rest, problems);
    if wish.bare && fits(BESIDE) {
        beside(&mut layout, wish, rest);
    } else if fits(WIDE) {
        wide(&mut layout, wish, rest);
    } else if fits(FULL) {
        full(&mut layout, wish, rest);
    } else if fits(BESIDE) {
        beside(&mut layout, wish, rest);
    } else {
        alone(&mut layout, wish, rest);
    }
    layout
}

/// Three columns: cells, the trace over what changed, the transcript.
fn wide(layout: &mut Layout, wish: &Wish, area: Rect) {
    let (cells, rest) = columns(area, wish.splits.wide_main, (CELLS, 4 * NARROWEST));
    divider(layout, Divider::WideMain, cells, rest);
    let (middle, transcript) = columns(rest, wish.splits.third, (2 * NARROWEST, NARROWEST));
    divider(layout, Divider::Third, middle, transcript);
    layout.panes.push((Pane::Cells, cells));
    trace(layout, wish, middle);
    layout.panes.push((Pane::Transcript, transcript));
}

/// Cells over the transcript; beside them the trace over what changed.
fn full(layout: &mut Layout, wish: &Wish, area: Rect) {
    let (left, right) = columns(area, wish.splits.main, (CELLS, 2 * NARROWEST));
    divider(layout, Divider::Main, left, right);
    let (cells, transcript) = rows(left, wish.splits.left, LOWEST);
    divider(layout, Divider::Left, cells, transcript);
    layout.panes.push((Pane::Cells, cells));
    trace(layout, wish, right);
    layout.panes.push((Pane::Transcript, transcript));
}

/// The strip, the four panes of a trace, and what changed below, where something did.
fn trace(layout: &mut Layout, wish: &Wish, mut area: Rect) {
    let changes = if wish.changes || wish.focus == Pane::Changes {
        let (over, under) = rows(area, wish.splits.changes, 1 + 2 * LOWEST);
        divider(layout, Divider::Changes, over, under);
        area = over;
        Some(under)
    } else {
        None
    };
    layout.strip = top(&mut area, 1);
    let (over, under) = rows(area, wish.splits.level, LOWEST);
    divider(layout, Divider::TraceLevel, over, under);
    let (prompt, call) = columns(over, wish.splits.upright, (NARROWEST, NARROWEST));
    let (fetched, verdict) = columns(under, wish.splits.upright, (NARROWEST, NARROWEST));
    let (left, right) = columns(area, wish.splits.upright, (NARROWEST, NARROWEST));
    divider(layout, Divider::TraceUpright, left, right);
    layout.panes.extend([
        (Pane::Prompt, prompt),
        (Pane::FunctionCall, call),
        (Pane::FetchedContent, fetched),
        (Pane::Verdict, verdict),
    ]);
    layout
        .panes
        .extend(changes.map(|area| (Pane::Changes, area)));
}

/// The cells, and one other pane; the rest are tabs.
fn beside(layout: &mut Layout, wish: &Wish, mut area: Rect) {
    let shown = match (wish.focus, wish.tab) {
        (Pane::Cells, Pane::Cells) => Pane::Verdict,
        (Pane::Cells, tab) => tab,
        (focus, _) => focus,
    };
    layout.tabs = top(&mut area, 1);
    let (cells, mut right) = columns(area, wish.splits.main, (CELLS, NARROWEST));
    divider(layout, Divider::Main, cells, right);
    layout.panes.push((Pane::Cells, cells));
    if shown.is_trace() {
        layout.strip = top(&mut right, 1);
    }
    layout.panes.push((shown, right));
}

/// One pane at a time.
fn alone(layout: &mut Layout, wish: &Wish, mut area: Rect) {
    layout.tabs = top(&mut area, 1);
    if wish.focus.is_trace() && area.height >= 8 {
        layout.strip = top(&mut area, 1);
    }
    layout.panes.push((wish.focus, area));
}

/// Takes rows off the top, as many as there are.
fn top(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let taken = Rect::new(area.x, area.y, area.width, rows);
    area.y += rows;
    area.height -= rows;
    taken
}

/// Takes rows off the bottom.
fn bottom(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    area.height -= rows;
    Rect::new(area.x, area.y + area.height, area.width, rows)
}

/// Left and right; each at least so wide, unless that is over half of it all.
fn columns(area: Rect, part: u16, least: (u16, u16)) -> (Rect, Rect) {
    let left = least.0.min(area.width / 2);
    let right = least.1.min(area.width / 2);
    let width = share(area.width, part).clamp(left, area.width - right);
    (
        Rect { width, ..area },
        Rect {
            x: area.x + width,
            width: area.width - width,
            ..area
        },
    )
}

/// Over and under; the upper one at least so high, unless that is over half of it all.
fn rows(area: Rect, part: u16, least: u16) -> (Rect, Rect) {
    let over = least.min(area.height / 2);
    let under = LOWEST.min(area.height / 2);
    let height = share(area.height, part).clamp(over, area.height - under);
    (
        Rect { height, ..area },
        Rect {
            y: area.y + height,
            height: area.height - height,
            ..area
        },
    )
}

fn share(length: u16, part: u16) -> u16 {
    let share = (u32::from(length) * u32::from(part.min(1000)) + 500) / 1000;
    u16::try_from(share).unwrap_or(length)
}

/// The borders that meet between two areas can be dragged.
fn divider(layout: &mut Layout, divider: Divider, first: Rect, second: Rect) {
    let whole = first.union(second);
    let hold = if divider.upright() {
        Rect::new(second.x.saturating_sub(1), whole.y, 2, whole.height)
    } else {
        Rect::new(whole.x, second.y.saturating_sub(1), whole.width, 2)
    };
    layout
        .dividers
        .push((divider, hold.intersection(whole), whole));
}

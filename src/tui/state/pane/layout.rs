//! From a wish to areas. Three shapes by size: a column for everything, one pane beside the cells, one pane at a time.

use ratatui::layout::Rect;

use super::{LayoutParams, Pane, PaneDivider, ScreenLayout};

/// Columns and rows from which a shape is used.
const WIDE_MIN_SIZE: (u16, u16) = (180, 40);
const FULL_MIN_SIZE: (u16, u16) = (100, 30);
const TWO_PANES_MIN_SIZE: (u16, u16) = (60, 15);
const SCREEN_MIN_SIZE: (u16, u16) = (30, 8);
/// Columns and rows from which the tour has a row of its own.
const TOUR_ROW_MIN_SIZE: (u16, u16) = (60, 20);
/// What a pane needs: its border and a few words.
const MIN_PANE_WIDTH: u16 = 16;
/// Its border and two rows.
const MIN_PANE_HEIGHT: u16 = 4;
/// Columns a cell's row needs to be told from another.
const MIN_CELLS_WIDTH: u16 = 34;

/// See [`Layout::of`].
pub(super) fn compute_layout(wish: &LayoutParams) -> ScreenLayout {
    let size = wish.size;
    let fits = |least: (u16, u16)| size.width >= least.0 && size.height >= least.1;
    if !fits(SCREEN_MIN_SIZE) {
        return ScreenLayout {
            too_small: true,
            ..ScreenLayout::default()
        };
    }
    let mut layout = ScreenLayout::default();
    let mut rest = Rect::new(0, 0, size.width, size.height);
    layout.header = take_top_rows(&mut rest, 1);
    layout.footer = take_bottom_rows(&mut rest, 1);
    if wish.tour && fits(TOUR_ROW_MIN_SIZE) {
        layout.tour = take_bottom_rows(&mut rest, 1);
    }
    if wish.zoomed {
        layout.panes.push((wish.focus, rest));
        return layout;
    }
    if wish.replay {
        layout.replay = take_top_rows(&mut rest, 1);
    }
    let problems = wish.problems.min(4).min((size.height / 6).max(1));
    layout.problems = take_bottom_rows(&mut rest, problems);
    if wish.hide_trace && fits(TWO_PANES_MIN_SIZE) {
        lay_out_two_panes(&mut layout, wish, rest);
    } else if fits(WIDE_MIN_SIZE) {
        lay_out_wide(&mut layout, wish, rest);
    } else if fits(FULL_MIN_SIZE) {
        lay_out_full(&mut layout, wish, rest);
    } else if fits(TWO_PANES_MIN_SIZE) {
        lay_out_two_panes(&mut layout, wish, rest);
    } else {
        lay_out_single_pane(&mut layout, wish, rest);
    }
    layout
}

/// Three columns: cells, the trace over what changed, the transcript.
fn lay_out_wide(layout: &mut ScreenLayout, wish: &LayoutParams, area: Rect) {
    let (cells, rest) = split_columns(
        area,
        wish.splits.wide_main,
        (MIN_CELLS_WIDTH, 4 * MIN_PANE_WIDTH),
    );
    add_divider(layout, PaneDivider::WideMain, cells, rest);
    let (middle, transcript) = split_columns(
        rest,
        wish.splits.transcript_column,
        (2 * MIN_PANE_WIDTH, MIN_PANE_WIDTH),
    );
    add_divider(layout, PaneDivider::TranscriptColumn, middle, transcript);
    layout.panes.push((Pane::Cells, cells));
    lay_out_trace(layout, wish, middle);
    layout.panes.push((Pane::Transcript, transcript));
}

/// Cells over the transcript; beside them the trace over what changed.
fn lay_out_full(layout: &mut ScreenLayout, wish: &LayoutParams, area: Rect) {
    let (left, right) = split_columns(
        area,
        wish.splits.main,
        (MIN_CELLS_WIDTH, 2 * MIN_PANE_WIDTH),
    );
    add_divider(layout, PaneDivider::Main, left, right);
    let (cells, transcript) = split_rows(left, wish.splits.cells_transcript, MIN_PANE_HEIGHT);
    add_divider(layout, PaneDivider::CellsTranscript, cells, transcript);
    layout.panes.push((Pane::Cells, cells));
    lay_out_trace(layout, wish, right);
    layout.panes.push((Pane::Transcript, transcript));
}

/// The strip, the four panes of a trace, and what changed below, where something did.
fn lay_out_trace(layout: &mut ScreenLayout, wish: &LayoutParams, mut area: Rect) {
    let changes = if wish.changes || wish.focus == Pane::Changes {
        let (over, under) = split_rows(area, wish.splits.changes, 1 + 2 * MIN_PANE_HEIGHT);
        add_divider(layout, PaneDivider::Changes, over, under);
        area = over;
        Some(under)
    } else {
        None
    };
    layout.turn_strip = take_top_rows(&mut area, 1);
    let (over, under) = split_rows(area, wish.splits.trace_horizontal, MIN_PANE_HEIGHT);
    add_divider(layout, PaneDivider::TraceHorizontal, over, under);
    let (prompt, call) = split_columns(
        over,
        wish.splits.trace_vertical,
        (MIN_PANE_WIDTH, MIN_PANE_WIDTH),
    );
    let (fetched, verdict) = split_columns(
        under,
        wish.splits.trace_vertical,
        (MIN_PANE_WIDTH, MIN_PANE_WIDTH),
    );
    let (left, right) = split_columns(
        area,
        wish.splits.trace_vertical,
        (MIN_PANE_WIDTH, MIN_PANE_WIDTH),
    );
    add_divider(layout, PaneDivider::TraceVertical, left, right);
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
fn lay_out_two_panes(layout: &mut ScreenLayout, wish: &LayoutParams, mut area: Rect) {
    let shown = match (wish.focus, wish.tab_pane) {
        (Pane::Cells, Pane::Cells) => Pane::Verdict,
        (Pane::Cells, tab) => tab,
        (focus, _) => focus,
    };
    layout.tabs = take_top_rows(&mut area, 1);
    let (cells, mut right) =
        split_columns(area, wish.splits.main, (MIN_CELLS_WIDTH, MIN_PANE_WIDTH));
    add_divider(layout, PaneDivider::Main, cells, right);
    layout.panes.push((Pane::Cells, cells));
    if shown.is_trace_pane() {
        layout.turn_strip = take_top_rows(&mut right, 1);
    }
    layout.panes.push((shown, right));
}

/// One pane at a time.
fn lay_out_single_pane(layout: &mut ScreenLayout, wish: &LayoutParams, mut area: Rect) {
    layout.tabs = take_top_rows(&mut area, 1);
    if wish.focus.is_trace_pane() && area.height >= 8 {
        layout.turn_strip = take_top_rows(&mut area, 1);
    }
    layout.panes.push((wish.focus, area));
}

/// Takes rows off the top, as many as there are.
fn take_top_rows(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let taken = Rect::new(area.x, area.y, area.width, rows);
    area.y += rows;
    area.height -= rows;
    taken
}

/// Takes rows off the bottom.
fn take_bottom_rows(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    area.height -= rows;
    Rect::new(area.x, area.y + area.height, area.width, rows)
}

/// Left and right; each at least so wide, unless that is over half of it all.
fn split_columns(area: Rect, part: u16, least: (u16, u16)) -> (Rect, Rect) {
    let left = least.0.min(area.width / 2);
    let right = least.1.min(area.width / 2);
    let width = compute_share(area.width, part).clamp(left, area.width - right);
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
fn split_rows(area: Rect, part: u16, least: u16) -> (Rect, Rect) {
    let over = least.min(area.height / 2);
    let under = MIN_PANE_HEIGHT.min(area.height / 2);
    let height = compute_share(area.height, part).clamp(over, area.height - under);
    (
        Rect { height, ..area },
        Rect {
            y: area.y + height,
            height: area.height - height,
            ..area
        },
    )
}

fn compute_share(length: u16, part: u16) -> u16 {
    let share = (u32::from(length) * u32::from(part.min(1000)) + 500) / 1000;
    u16::try_from(share).unwrap_or(length)
}

/// The borders that meet between two areas can be dragged.
fn add_divider(layout: &mut ScreenLayout, divider: PaneDivider, first: Rect, second: Rect) {
    let whole = first.union(second);
    let hold = if divider.is_vertical() {
        Rect::new(second.x.saturating_sub(1), whole.y, 2, whole.height)
    } else {
        Rect::new(whole.x, second.y.saturating_sub(1), whole.width, 2)
    };
    layout
        .dividers
        .push((divider, hold.intersection(whole), whole));
}

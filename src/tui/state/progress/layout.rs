//! The layout of the progress screen. Its size selects one of three shapes: all parts at once, the entries above one
//! other part, or one part at a time.

use ratatui::layout::{Rect, Size};

use super::ProgressPane;

/// The minimum columns and rows of the shape with all parts.
const FULL_MIN_SIZE: Size = Size::new(100, 30);
/// The minimum rows of the shape with two parts.
const TWO_PARTS_MIN_HEIGHT: u16 = 15;
/// The minimum rows of the entries: the frame, the headings and three rows.
const MIN_ENTRIES_HEIGHT: u16 = 6;

/// A part and its area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgressArea {
    pub(crate) pane: ProgressPane,
    pub(crate) area: Rect,
}

/// The layout: see the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProgressLayout {
    /// The rows with the answer.
    pub(crate) headline: Rect,
    /// The rows with the whole text of the selected edit, below the entries; empty on a large screen.
    pub(crate) edit: Rect,
    pub(crate) parts: Vec<ProgressArea>,
    /// True if only some parts are visible, so that tabs name the others.
    pub(crate) has_tabs: bool,
}

/// The rows of the texts outside of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextRows {
    /// The rows of the answer.
    pub(crate) headline: u16,
    /// The rows of the text of the selected edit, for a screen without room for all parts.
    pub(crate) edit: u16,
}

impl ProgressLayout {
    /// Returns true if a screen of this size shows all parts.
    pub(crate) const fn shows_all_parts(area: Rect) -> bool {
        area.width >= FULL_MIN_SIZE.width && area.height + 2 >= FULL_MIN_SIZE.height
    }

    /// Computes the layout in the area between header and footer. `items` is the number of rows of the list, `tab` the
    /// part below the entries if only one fits.
    pub(crate) fn compute(
        area: Rect,
        items: usize,
        focus: ProgressPane,
        tab: ProgressPane,
        text: TextRows,
    ) -> Self {
        let headline = Rect {
            height: area.height.min(text.headline),
            ..area
        };
        let rest = Rect {
            y: area.y + headline.height,
            height: area.height - headline.height,
            ..area
        };
        let part = |pane, area| ProgressArea { pane, area };
        let full = Self::shows_all_parts(area);
        // A text that takes room from the parts must not decide their shape.
        if area.height.saturating_sub(1) < TWO_PARTS_MIN_HEIGHT {
            let rows = if focus == ProgressPane::Entries {
                text.edit
            } else {
                0
            };
            let height = rest.height.saturating_sub(rows).max(rest.height.min(5));
            let (list, edit) = split_rows(rest, height);
            return Self {
                headline,
                edit,
                parts: vec![part(focus, list)],
                has_tabs: true,
            };
        }
        // Short histories leave their rows to the other parts. The frame and the headings take three rows.
        let wanted = u16::try_from(items.saturating_add(3)).unwrap_or(u16::MAX);
        let most = if full {
            rest.height * 2 / 5
        } else {
            rest.height / 2
        };
        let (top, below) = split_rows(rest, wanted.clamp(MIN_ENTRIES_HEIGHT, most));
        // The table and the bars of the scores need the rows.
        let has_edit = !full && focus != ProgressPane::Scores;
        let (edit, below) = split_rows(below, if has_edit { text.edit } else { 0 });
        let mut parts = vec![part(ProgressPane::Entries, top)];
        if full {
            let (middle, bottom) = split_rows(below, below.height.div_ceil(2));
            let (flips, diff) = split_columns(middle);
            let (chart, scores) = split_columns(bottom);
            parts.extend([
                part(ProgressPane::Flips, flips),
                part(ProgressPane::Diff, diff),
                part(ProgressPane::Agreement, chart),
                part(ProgressPane::Scores, scores),
            ]);
        } else {
            parts.push(part(tab, below));
        }
        Self {
            headline,
            edit,
            parts,
            has_tabs: !full,
        }
    }

    /// Returns the area of a part, if it is visible.
    pub(crate) fn area(&self, pane: ProgressPane) -> Option<Rect> {
        let found = self.parts.iter().find(|part| part.pane == pane)?;
        Some(found.area)
    }

    /// Returns the size inside the frame of a part; 0×0 if it is not visible.
    pub(crate) fn inner_size(&self, pane: ProgressPane) -> Size {
        let area = self.area(pane).unwrap_or_default();
        Size::new(area.width.saturating_sub(2), area.height.saturating_sub(2))
    }

    /// Returns the number of rows inside the frame of a part; 0 if it is not visible.
    pub(crate) fn inner_height(&self, pane: ProgressPane) -> usize {
        let area = self.area(pane).unwrap_or_default();
        usize::from(area.height.saturating_sub(2))
    }
}

fn split_rows(area: Rect, height: u16) -> (Rect, Rect) {
    let top = Rect { height, ..area };
    let bottom = Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    };
    (top, bottom)
}

fn split_columns(area: Rect) -> (Rect, Rect) {
    let half = area.width / 2;
    let left = Rect {
        width: half,
        ..area
    };
    let right = Rect {
        x: area.x + half,
        width: area.width - half,
        ..area
    };
    (left, right)
}

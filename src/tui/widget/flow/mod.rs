//! Scrollable long texts: any number of blocks of any length, wrapped only where they are visible.
//!
//! There is no index of the whole text. A position is a block and a byte; rows are computed from the nearest fixed
//! point before it (the start of a line, or a fixed break in a very long line). So the cost of a jump, a resize or an
//! appended part depends only on the visible part. A text that grows is followed until the user scrolls up.

mod draw;
mod row_walker;
mod text_search;
mod wrap;

use std::borrow::Cow;

use ratatui::layout::{Rect, Size};

use self::row_walker::{RowWalker, visible_rows};
use self::text_search::PendingSearch;
use super::canvas::Canvas;
use crate::theme::{Role, StyledSpan};

/// The largest number of rows in one move. For longer distances, [`ScrollState::scroll_to_start`],
/// [`ScrollState::scroll_to_end`] and [`ScrollState::reveal`] jump without walking through the rows.
const MAX_ROW_MOVE: u64 = 10_000;

/// A block of a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextBlock<'a> {
    /// The raw text; `\n` ends a line. Drawing replaces control and invisible characters by marks.
    pub(crate) text: Cow<'a, str>,
    /// The role of the text outside of spans.
    pub(crate) role: Role,
    /// The roles of byte ranges: sorted, without overlaps.
    pub(crate) spans: Cow<'a, [StyledSpan]>,
    /// The number of empty columns before each row.
    pub(crate) indent: u16,
    /// A mark in the indent of the first row, such as `[3]`.
    pub(crate) lead: Cow<'a, str>,
}

impl<'a> TextBlock<'a> {
    /// Returns a block with one role.
    pub(crate) fn new(text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        Self {
            text: text.into(),
            role,
            ..Self::default()
        }
    }
}

/// A text to scroll through. `block` must be cheap: it must not wrap, highlight or copy large texts.
pub(crate) trait TextSource {
    /// Returns the number of blocks.
    fn len(&self) -> usize;
    /// Returns a block. An empty text takes one empty row.
    fn block(&self, at: usize) -> TextBlock<'_>;
}

impl TextSource for Vec<TextBlock<'_>> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn block(&self, at: usize) -> TextBlock<'_> {
        self[at].clone()
    }
}

/// A position in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockPosition {
    /// The index of the block.
    pub(crate) block: usize,
    /// The byte in its text.
    pub(crate) byte: usize,
}

/// The scroll position of a pane in its text, and its search.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ScrollState {
    /// A position in the topmost visible row. Meaningless while `follow` is true.
    pub(crate) top: BlockPosition,
    /// True if the pane shows the end of the text and follows it as it grows.
    pub(crate) follow: bool,
    /// The search and its current match.
    pub(crate) search: Option<TextSearch>,
    /// The unfinished search; None cancels it.
    pub(crate) pending_search: Option<PendingSearch>,
}

/// A search in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextSearch {
    /// The needle as typed. Letter case matters only if it contains a capital.
    pub(crate) needle: String,
    /// The current match.
    pub(crate) current_match: Option<TextMatch>,
}

/// Returns the number of rows of a text at a width; stops counting at `max`.
pub(crate) fn count_rows(source: &dyn TextSource, width: u16, max: u16) -> u16 {
    let Some(mut row) = RowWalker::new(source, width, BlockPosition::default()) else {
        return 0;
    };
    let mut rows = 1;
    while rows < max && row.move_down() {
        rows += 1;
    }
    rows.min(max)
}

/// A match of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextMatch {
    /// The position of its first byte.
    pub(crate) start: BlockPosition,
    /// The length in bytes.
    pub(crate) len: usize,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchOutcome {
    /// The match is at this position.
    At(BlockPosition),
    /// The match is at this position, found after wrapping around the end.
    Wrapped(BlockPosition),
    /// The text has no match.
    NotFound,
    /// The budget is used up; call again to continue.
    Pending,
}

impl ScrollState {
    /// Returns the position at the top.
    pub(crate) fn top() -> Self {
        Self::default()
    }

    /// Returns the position at the end, following it.
    pub(crate) fn tail() -> Self {
        Self {
            follow: true,
            ..Self::default()
        }
    }

    /// Scrolls by rows. Follows again at the end; stops following when moving up.
    pub(crate) fn scroll_rows(&mut self, source: &dyn TextSource, area: Size, rows: i64) {
        let Some((mut top, mut bottom)) = visible_rows(source, area, self) else {
            return;
        };
        // Each row costs a wrap, so limit the work of one key press.
        let count = rows.unsigned_abs().min(MAX_ROW_MOVE);
        if rows > 0 {
            // `top` moves together with `bottom`, and stops when the end of the text is visible.
            self.follow =
                !(0..count).all(|_| bottom.move_down() && top.move_down()) || !bottom.has_next();
        } else if rows < 0 {
            for _ in 0..count {
                if !top.move_up() {
                    break;
                }
            }
            self.follow = false;
        }
        self.top = top.position();
    }

    /// Scrolls to the first row.
    pub(crate) fn scroll_to_start(&mut self) {
        self.top = BlockPosition::default();
        self.follow = false;
    }

    /// Scrolls to the last row and follows it.
    pub(crate) fn scroll_to_end(&mut self) {
        self.follow = true;
    }

    /// Makes a position visible. If it is not visible yet, shows it a third from the top.
    pub(crate) fn reveal(&mut self, source: &dyn TextSource, area: Size, place: BlockPosition) {
        let rows = visible_rows(source, area, self).zip(RowWalker::new(source, area.width, place));
        let Some(((top, bottom), mut row)) = rows else {
            // Without a size, rows can't be measured. The next draw then shows the position.
            self.top = place;
            self.follow = false;
            return;
        };
        // A visible position needs no scrolling, so the text does not jump.
        if (top.position()..=bottom.position()).contains(&row.position()) {
            return;
        }
        // The larger part of the pane shows the text after the position.
        for _ in 0..area.height / 3 {
            if !row.move_up() {
                break;
            }
        }
        self.top = row.position();
        self.follow = false;
    }

    /// Goes to the next or previous match, starting from the current match or else from the visible part. Searches at
    /// most 2 MB; after [`SearchOutcome::Pending`], call again with the same direction.
    pub(crate) fn seek_match(
        &mut self,
        source: &dyn TextSource,
        area: Size,
        forward: bool,
    ) -> SearchOutcome {
        text_search::seek_match(
            self,
            source,
            area,
            forward,
            text_search::SEARCH_BUDGET_BYTES,
        )
    }

    /// Returns the start of the row that is drawn `below` rows below the top, or None if there is no such row.
    pub(crate) fn row_position(
        &self,
        source: &dyn TextSource,
        area: Size,
        below: u16,
    ) -> Option<BlockPosition> {
        let (mut top, _) = visible_rows(source, area, self)?;
        (0..below).all(|_| top.move_down()).then(|| top.position())
    }
}

/// The part of the text that was drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct VisibleRange {
    /// The start of the visible part, as a fraction of the text from 0 to 1.
    pub(crate) from: f64,
    /// The end of the visible part, as a fraction.
    pub(crate) to: f64,
    /// True if more text follows below.
    pub(crate) more_below: bool,
}

/// Draws the visible rows.
pub(crate) fn draw<T>(
    canvas: &mut Canvas<'_, T>,
    area: Rect,
    source: &dyn TextSource,
    scroll: &ScrollState,
) -> VisibleRange {
    draw::draw_visible(canvas, area, source, scroll)
}

#[cfg(test)]
mod tests;

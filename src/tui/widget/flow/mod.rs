//! Long texts: any number of blocks, any length, wrapped only where they are seen.
//!
//! No index over the whole text exists: a place is a block and a byte, rows are found by wrapping from the nearest fixed
//! point before it (a line's start, or every few kilobytes of a line that is longer). So a jump, a resize and an appended
//! piece cost what is visible, whatever the size. A pane follows its tail until the user scrolls up.

mod draw;
mod row_walker;
mod text_search;
mod wrap;

use std::borrow::Cow;
use std::ops::Range;

use ratatui::layout::{Rect, Size};

use self::row_walker::{RowWalker, visible_rows};
use self::text_search::PendingSearch;
use super::canvas::Canvas;
use crate::theme::Role;

/// Rows one move may go: further, [`Scroll::home`], [`Scroll::end`] and [`Scroll::show`] go without walking.
const MAX_ROW_MOVE: u64 = 10_000;

/// A piece of a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextBlock<'a> {
    /// Raw text; `\n` ends a line. Marks for hostile characters are made while drawing.
    pub(crate) text: Cow<'a, str>,
    /// What it is, where no span says otherwise.
    pub(crate) role: Role,
    /// What byte ranges of it are: sorted, not overlapping.
    pub(crate) spans: Cow<'a, [(Range<usize>, Role)]>,
    /// Columns left free before each row.
    pub(crate) indent: u16,
    /// A mark in the indent of the first row, such as `[3]`.
    pub(crate) lead: Cow<'a, str>,
}

impl<'a> TextBlock<'a> {
    /// A block of one role.
    pub(crate) fn new(text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        Self {
            text: text.into(),
            role,
            ..Self::default()
        }
    }
}

/// Something to scroll through. `block` must be cheap: no wrapping, no highlighting, no copy of a large text.
pub(crate) trait TextSource {
    /// How many blocks.
    fn len(&self) -> usize;
    /// One of them. An empty text takes one empty row.
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

/// A place in a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockPosition {
    /// Which block.
    pub(crate) block: usize,
    /// Which byte of its text.
    pub(crate) byte: usize,
}

/// Where a pane stands in its source.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ScrollState {
    /// A place in the topmost visible row; means nothing while it follows ([`Scroll::row`] tells).
    pub(crate) top: BlockPosition,
    /// Shows the end, and goes with it.
    pub(crate) follow: bool,
    /// What is searched for, and the match last gone to.
    pub(crate) search: Option<TextSearch>,
    /// A search that is not finished; set to `None` to give it up.
    pub(crate) pending_search: Option<PendingSearch>,
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextSearch {
    /// As typed; letter case matters only if it holds a capital.
    pub(crate) needle: String,
    /// The match gone to: where, and how many bytes.
    pub(crate) current_match: Option<(BlockPosition, usize)>,
}

/// How a search went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchOutcome {
    /// At this place.
    At(BlockPosition),
    /// At this place, past the end and on from the other one.
    Wrapped(BlockPosition),
    /// Nowhere.
    NotFound,
    /// Not yet: a large text is searched piece by piece; ask again.
    Pending,
}

impl ScrollState {
    /// At the top.
    pub(crate) fn top() -> Self {
        Self::default()
    }

    /// At the end, going with it.
    pub(crate) fn tail() -> Self {
        Self {
            follow: true,
            ..Self::default()
        }
    }

    /// Moves by rows; at the end it follows again, upwards it stops following.
    pub(crate) fn scroll_rows(&mut self, source: &dyn TextSource, area: Size, rows: i64) {
        let Some((mut top, mut bottom)) = visible_rows(source, area, self) else {
            return;
        };
        let count = rows.unsigned_abs().min(MAX_ROW_MOVE);
        if rows > 0 {
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

    /// To the first row.
    pub(crate) fn scroll_to_start(&mut self) {
        self.top = BlockPosition::default();
        self.follow = false;
    }

    /// To the last row, following.
    pub(crate) fn scroll_to_end(&mut self) {
        self.follow = true;
    }

    /// Makes a place visible, a third from the top unless it is visible already.
    pub(crate) fn reveal(&mut self, source: &dyn TextSource, area: Size, place: BlockPosition) {
        let rows = visible_rows(source, area, self).zip(RowWalker::new(source, area.width, place));
        let Some(((top, bottom), mut row)) = rows else {
            // Nothing to measure with yet: the place is shown as soon as there is.
            self.top = place;
            self.follow = false;
            return;
        };
        if (top.position()..=bottom.position()).contains(&row.position()) {
            return;
        }
        for _ in 0..area.height / 3 {
            if !row.move_up() {
                break;
            }
        }
        self.top = row.position();
        self.follow = false;
    }

    /// Goes to the next (or previous) match of [`Scroll::find`]; without one gone to before, from what is visible on.
    /// Looks at 2 MB at most: on [`Found::NotYet`] call again with the same direction.
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

    /// Where the row begins that is drawn so many rows below the top; `None` where no row is.
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

/// What was drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct VisibleRange {
    /// The place of each end of what is visible, as parts of the whole (0–1).
    pub(crate) from: f64,
    /// See `from`.
    pub(crate) to: f64,
    /// Whether there is more below.
    pub(crate) more_below: bool,
}

/// Draws what is visible.
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

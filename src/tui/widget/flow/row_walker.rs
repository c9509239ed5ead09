//! Moves through rows, up and down, across lines and blocks. Keeps only one block and the rows of one segment in
//! memory.

use ratatui::layout::Size;

use super::wrap::LineSegment;
use super::{BlockPosition, ScrollState, TextBlock, TextSource};

/// The smallest text width in columns; below it, the indent shrinks.
const MIN_TEXT_WIDTH: u16 = 8;

/// A position on a row.
#[derive(Clone)]
pub(super) struct RowWalker<'a> {
    source: &'a dyn TextSource,
    width: u16,
    at: usize,
    pub(super) block: TextBlock<'a>,
    pub(super) segment: LineSegment,
    starts: Vec<usize>,
    row: usize,
}

impl<'a> RowWalker<'a> {
    /// Returns a walker at the row that contains a position, or at the last row if it is past the end. None without
    /// blocks.
    pub(super) fn new(
        source: &'a dyn TextSource,
        width: u16,
        place: BlockPosition,
    ) -> Option<Self> {
        let last = source.len().checked_sub(1)?;
        // The text may be shorter than when the position was stored.
        let (at, byte) = if place.block > last {
            (last, usize::MAX)
        } else {
            (place.block, place.byte)
        };
        let mut walker = Self {
            source,
            width,
            at,
            block: source.block(at),
            segment: LineSegment::default(),
            starts: Vec::new(),
            row: 0,
        };
        walker.load_segment(byte);
        Some(walker)
    }

    /// Returns a walker at the last row.
    pub(super) fn at_last_row(source: &'a dyn TextSource, width: u16) -> Option<Self> {
        let end = BlockPosition {
            block: usize::MAX,
            byte: usize::MAX,
        };
        Self::new(source, width, end)
    }

    /// Returns the position of the row's start.
    pub(super) fn position(&self) -> BlockPosition {
        BlockPosition {
            block: self.at,
            byte: self.starts[self.row],
        }
    }

    /// Returns the start of the block's next row, or the block's end.
    pub(super) fn next_row_start(&self) -> usize {
        self.starts
            .get(self.row + 1)
            .copied()
            .unwrap_or(self.segment.next)
    }

    /// Returns the starts of the segment's rows, from this one on.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts[self.row..]
    }

    /// Moves to the last row of the segment.
    pub(super) fn skip_to_last_row(&mut self) {
        self.row = self.starts.len() - 1;
    }

    /// Returns the number of columns before the row's text.
    pub(super) fn indent(&self) -> u16 {
        let indent = self.block.indent;
        // In a narrow pane the text needs the columns more than the indent.
        if self.width.saturating_sub(indent) >= MIN_TEXT_WIDTH {
            indent
        } else {
            indent.min(self.width / 4)
        }
    }

    /// Returns true if a row follows.
    pub(super) fn has_next(&self) -> bool {
        self.next_row_start() < self.block.text.len() || self.at + 1 < self.source.len()
    }

    /// Moves to the next row. Returns false at the last one.
    pub(super) fn move_down(&mut self) -> bool {
        if self.row + 1 < self.starts.len() {
            self.row += 1;
        } else if self.segment.next < self.block.text.len() {
            self.start_segment(LineSegment::starting_at(
                &self.block.text,
                self.segment.next,
            ));
        } else if self.at + 1 < self.source.len() {
            self.enter_block(self.at + 1, 0);
        } else {
            return false;
        }
        true
    }

    /// Moves to the previous row. Returns false at the first one.
    pub(super) fn move_up(&mut self) -> bool {
        if self.row > 0 {
            self.row -= 1;
        } else if self.segment.start > 0 {
            // The byte before this segment belongs to the previous one.
            self.load_segment(self.segment.start - 1);
            self.row = self.starts.len() - 1;
        } else if self.at > 0 {
            // A byte past the end selects the last row of the block.
            self.enter_block(self.at - 1, usize::MAX);
        } else {
            return false;
        }
        true
    }

    fn enter_block(&mut self, block: usize, byte: usize) {
        self.at = block;
        self.block = self.source.block(block);
        self.load_segment(byte);
    }

    /// Loads the segment that contains a byte, and selects its row.
    fn load_segment(&mut self, byte: usize) {
        self.start_segment(LineSegment::containing(&self.block.text, byte));
        let after = self.starts.partition_point(|start| *start <= byte);
        self.row = after.saturating_sub(1);
    }

    /// Moves to the first row of a segment.
    fn start_segment(&mut self, segment: LineSegment) {
        self.segment = segment;
        // The indent can be as wide as a narrow pane, but a row has at least one column.
        let width = usize::from(self.width.saturating_sub(self.indent()).max(1));
        self.starts = segment.row_starts(&self.block.text, width);
        self.row = 0;
    }
}

/// Returns the first and the last visible row, or None if nothing is visible.
pub(super) fn visible_rows<'a>(
    source: &'a dyn TextSource,
    size: Size,
    scroll: &ScrollState,
) -> Option<(RowWalker<'a>, RowWalker<'a>)> {
    if size.width == 0 || size.height == 0 {
        return None;
    }
    if !scroll.follow {
        let top = RowWalker::new(source, size.width, scroll.top)?;
        let mut bottom = top.clone();
        if (1..size.height).all(|_| bottom.move_down()) {
            return Some((top, bottom));
        }
    }
    // A text is never scrolled past its end, so the last row stays at the bottom.
    let bottom = RowWalker::at_last_row(source, size.width)?;
    let mut top = bottom.clone();
    for _ in 1..size.height {
        if !top.move_up() {
            break;
        }
    }
    Some((top, bottom))
}

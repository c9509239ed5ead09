//! Going through rows, up and down, across lines and blocks; holds one block and the rows of one segment.

use ratatui::layout::Size;

use super::wrap::LineSegment;
use super::{BlockPosition, ScrollState, TextBlock, TextSource};

/// Columns a text keeps at least before an indent gives way.
const MIN_TEXT_WIDTH: u16 = 8;

/// At a row.
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
    /// At the row that holds a place; beyond the end: at the last row. `None` if there is no block.
    pub(super) fn new(
        source: &'a dyn TextSource,
        width: u16,
        place: BlockPosition,
    ) -> Option<Self> {
        let last = source.len().checked_sub(1)?;
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

    /// At the last row.
    pub(super) fn at_last_row(source: &'a dyn TextSource, width: u16) -> Option<Self> {
        let end = BlockPosition {
            block: usize::MAX,
            byte: usize::MAX,
        };
        Self::new(source, width, end)
    }

    /// Where the row begins.
    pub(super) fn position(&self) -> BlockPosition {
        BlockPosition {
            block: self.at,
            byte: self.starts[self.row],
        }
    }

    /// Where the next row of the block begins, or the block's end.
    pub(super) fn next_row_start(&self) -> usize {
        self.starts
            .get(self.row + 1)
            .copied()
            .unwrap_or(self.segment.next)
    }

    /// Where the rows of the segment begin, from this one on.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts[self.row..]
    }

    /// To the last row of the segment.
    pub(super) fn skip_to_last_row(&mut self) {
        self.row = self.starts.len() - 1;
    }

    /// Columns left free before the row.
    pub(super) fn indent(&self) -> u16 {
        let indent = self.block.indent;
        if self.width.saturating_sub(indent) >= MIN_TEXT_WIDTH {
            indent
        } else {
            indent.min(self.width / 4)
        }
    }

    /// Whether a row follows.
    pub(super) fn has_next(&self) -> bool {
        self.next_row_start() < self.block.text.len() || self.at + 1 < self.source.len()
    }

    /// To the next row, if there is one.
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

    /// To the row before, if there is one.
    pub(super) fn move_up(&mut self) -> bool {
        if self.row > 0 {
            self.row -= 1;
        } else if self.segment.start > 0 {
            self.load_segment(self.segment.start - 1);
            self.row = self.starts.len() - 1;
        } else if self.at > 0 {
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

    /// Takes the segment of a byte and the row in it.
    fn load_segment(&mut self, byte: usize) {
        self.start_segment(LineSegment::containing(&self.block.text, byte));
        let after = self.starts.partition_point(|start| *start <= byte);
        self.row = after.saturating_sub(1);
    }

    /// To the first row of a segment.
    fn start_segment(&mut self, segment: LineSegment) {
        self.segment = segment;
        let width = usize::from(self.width.saturating_sub(self.indent()).max(1));
        self.starts = segment.row_starts(&self.block.text, width);
        self.row = 0;
    }
}

/// The first and the last visible row. `None` if nothing can be seen.
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
    // There is no room below the end.
    let bottom = RowWalker::at_last_row(source, size.width)?;
    let mut top = bottom.clone();
    for _ in 1..size.height {
        if !top.move_up() {
            break;
        }
    }
    Some((top, bottom))
}

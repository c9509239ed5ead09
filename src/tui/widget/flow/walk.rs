//! Going through rows, up and down, across lines and blocks; holds one block and the rows of one segment.

use ratatui::layout::Size;

use super::wrap::Segment;
use super::{Block, Place, Scroll, Source};

/// Columns a text keeps at least before an indent gives way.
const LEAST: u16 = 8;

/// At a row.
#[derive(Clone)]
pub(super) struct Walker<'a> {
    source: &'a dyn Source,
    width: u16,
    at: usize,
    pub(super) block: Block<'a>,
    pub(super) segment: Segment,
    starts: Vec<usize>,
    row: usize,
}

impl<'a> Walker<'a> {
    /// At the row that holds a place; beyond the end: at the last row. `None` if there is no block.
    pub(super) fn new(source: &'a dyn Source, width: u16, place: Place) -> Option<Self> {
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
            segment: Segment::default(),
            starts: Vec::new(),
            row: 0,
        };
        walker.load(byte);
        Some(walker)
    }

    /// At the last row.
    pub(super) fn last(source: &'a dyn Source, width: u16) -> Option<Self> {
        let end = Place {
            block: usize::MAX,
            byte: usize::MAX,
        };
        Self::new(source, width, end)
    }

    /// Where the row begins.
    pub(super) fn place(&self) -> Place {
        Place {
            block: self.at,
            byte: self.starts[self.row],
        }
    }

    /// Where the next row of the block begins, or the block's end.
    pub(super) fn next(&self) -> usize {
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
    pub(super) fn skip(&mut self) {
        self.row = self.starts.len() - 1;
    }

    /// Columns left free before the row.
    pub(super) fn indent(&self) -> u16 {
        let indent = self.block.indent;
        if self.width.saturating_sub(indent) >= LEAST {
            indent
        } else {
            indent.min(self.width / 4)
        }
    }

    /// Whether a row follows.
    pub(super) fn has_next(&self) -> bool {
        self.next() < self.block.text.len() || self.at + 1 < self.source.len()
    }

    /// To the next row, if there is one.
    pub(super) fn down(&mut self) -> bool {
        if self.row + 1 < self.starts.len() {
            self.row += 1;
        } else if self.segment.next < self.block.text.len() {
            self.take(Segment::from(&self.block.text, self.segment.next));
        } else if self.at + 1 < self.source.len() {
            self.enter(self.at + 1, 0);
        } else {
            return false;
        }
        true
    }

    /// To the row before, if there is one.
    pub(super) fn up(&mut self) -> bool {
        if self.row > 0 {
            self.row -= 1;
        } else if self.segment.start > 0 {
            self.load(self.segment.start - 1);
            self.row = self.starts.len() - 1;
        } else if self.at > 0 {
            self.enter(self.at - 1, usize::MAX);
        } else {
            return false;
        }
        true
    }

    fn enter(&mut self, block: usize, byte: usize) {
        self.at = block;
        self.block = self.source.block(block);
        self.load(byte);
    }

    /// Takes the segment of a byte and the row in it.
    fn load(&mut self, byte: usize) {
        self.take(Segment::at(&self.block.text, byte));
        let after = self.starts.partition_point(|start| *start <= byte);
        self.row = after.saturating_sub(1);
    }

    /// To the first row of a segment.
    fn take(&mut self, segment: Segment) {
        self.segment = segment;
        let width = usize::from(self.width.saturating_sub(self.indent()).max(1));
        self.starts = segment.rows(&self.block.text, width);
        self.row = 0;
    }
}

/// The first and the last visible row. `None` if nothing can be seen.
pub(super) fn window<'a>(
    source: &'a dyn Source,
    size: Size,
    scroll: &Scroll,
) -> Option<(Walker<'a>, Walker<'a>)> {
    if size.width == 0 || size.height == 0 {
        return None;
    }
    if !scroll.follow {
        let top = Walker::new(source, size.width, scroll.top)?;
        let mut bottom = top.clone();
        if (1..size.height).all(|_| bottom.down()) {
            return Some((top, bottom));
        }
    }
    // There is no room below the end.
    let bottom = Walker::last(source, size.width)?;
    let mut top = bottom.clone();
    for _ in 1..size.height {
        if !top.up() {
            break;
        }
    }
    Some((top, bottom))
}

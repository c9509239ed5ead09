//! Draws the visible rows of a text.

use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::super::canvas::Canvas;
use super::super::glyph;
use super::super::styled_row::{self, StyledRow};
use super::row_walker::{RowWalker, visible_rows};
use super::text_search::SearchNeedle;
use super::wrap::LineSegment;
use super::{BlockPosition, ScrollState, TextSource, VisibleRange};
use crate::theme::{Role, StyledSpan};

/// Implements [`super::draw`].
pub(super) fn draw_visible<T>(
    canvas: &mut Canvas<'_, T>,
    area: Rect,
    source: &dyn TextSource,
    scroll: &ScrollState,
) -> VisibleRange {
    let Some((mut row, bottom)) = visible_rows(source, area.as_size(), scroll) else {
        return VisibleRange {
            from: 0.0,
            to: 1.0,
            more_below: source.len() > 0,
        };
    };
    // Measure before drawing, because the loop moves the walker.
    let drawn = VisibleRange {
        from: fraction_of(source, row.position(), row.block.text.len()),
        to: if bottom.has_next() {
            let end = BlockPosition {
                byte: bottom.next_row_start(),
                ..bottom.position()
            };
            fraction_of(source, end, bottom.block.text.len())
        } else {
            1.0
        },
        more_below: bottom.has_next(),
    };
    let mut matches = RowMatches::from_scroll(scroll);
    let mut y = area.top();
    // Draw segment by segment, so that each is split into units only once.
    while y < area.bottom() {
        let rest = Rect {
            y,
            height: area.bottom() - y,
            ..area
        };
        draw_segment(canvas, rest, &row, matches.matches_in_row(&row));
        let rows = u16::try_from(row.starts().len()).unwrap_or(u16::MAX);
        y = y.saturating_add(rows);
        // `draw_segment` drew all rows of this segment.
        row.skip_to_last_row();
        if !row.move_down() {
            break;
        }
    }
    drawn
}

/// Returns a position as a fraction of the text. Each block counts the same, because measuring all of them is
/// expensive.
fn fraction_of(source: &dyn TextSource, place: BlockPosition, len: usize) -> f64 {
    let within = if len == 0 {
        0.0
    } else {
        place.byte as f64 / len as f64
    };
    (place.block as f64 + within) / source.len().max(1) as f64
}

/// A range of bytes in a block.
struct BlockRange {
    block: usize,
    bytes: Range<usize>,
}

/// The matches of the search in one segment, cached for its rows.
struct RowMatches {
    needle: Option<SearchNeedle>,
    current: Option<BlockRange>,
    /// The block and the segment of `found`.
    known: Option<(usize, LineSegment)>,
    found: Vec<Range<usize>>,
}

impl RowMatches {
    fn from_scroll(scroll: &ScrollState) -> Self {
        let find = scroll.search.as_ref();
        Self {
            needle: find.and_then(|find| SearchNeedle::new(&find.needle)),
            current: find
                .and_then(|find| find.current_match)
                .map(|found| BlockRange {
                    block: found.start.block,
                    bytes: found.start.byte..found.start.byte.saturating_add(found.len),
                }),
            known: None,
            found: Vec::new(),
        }
    }

    /// Returns the matches that overlap the row's segment, and the current match.
    fn matches_in_row(&mut self, row: &RowWalker<'_>) -> (&[Range<usize>], Option<&Range<usize>>) {
        let block = row.position().block;
        let segment = row.segment;
        if let Some(needle) = &self.needle
            && self.known != Some((block, segment))
        {
            self.found = needle.find_touching(&row.block.text, segment.start..segment.end);
            self.known = Some((block, segment));
        }
        let current = self.current.as_ref();
        let current = current
            .filter(|found| found.block == block)
            .map(|found| &found.bytes);
        (&self.found, current)
    }
}

/// A cursor over sorted ranges, for queries with increasing bytes.
struct RangeCursor<'a, T> {
    items: &'a [T],
    range: fn(&T) -> &Range<usize>,
}

impl<'a, T> RangeCursor<'a, T> {
    fn new(items: &'a [T], from: usize, range: fn(&T) -> &Range<usize>) -> Self {
        // The ranges are sorted, so a binary search skips those that end earlier.
        let first = items.partition_point(|item| range(item).end <= from);
        Self {
            items: &items[first..],
            range,
        }
    }

    fn item_at(&mut self, byte: usize) -> Option<&'a T> {
        while let [first, rest @ ..] = self.items
            && (self.range)(first).end <= byte
        {
            self.items = rest;
        }
        let first = self.items.first()?;
        (self.range)(first).start.le(&byte).then_some(first)
    }
}

/// Draws the rows of a segment from the walker's row on, as far as there is room. Goes through the whole segment, so
/// that its units are the same as when it was wrapped.
fn draw_segment<T>(
    canvas: &mut Canvas<'_, T>,
    area: Rect,
    row: &RowWalker<'_>,
    (matches, current): (&[Range<usize>], Option<&Range<usize>>),
) {
    let block = &row.block;
    let segment = row.segment;
    let mut starts = row.starts();
    let first = starts[0];
    let indent = row.indent();
    // Only the first row of a block has the lead.
    if first == 0 && !block.lead.is_empty() {
        let lead = StyledRow::new(&*block.lead, Role::Muted);
        let width = indent;
        styled_row::draw_row(canvas, Rect { width, ..area }, &lead, None);
    }
    let plain = canvas.style(block.role);
    let look_of_match = canvas.style(Role::Match);
    let hostile = canvas.style(Role::Hostile);
    let mut spans = RangeCursor::new(&block.spans, first, |span| &span.range);
    let mut matches = RangeCursor::new(matches, first, |range| range);
    let mut column = 0;
    let mut line = Rect {
        x: area.x.saturating_add(indent),
        width: area.width - indent,
        height: 1,
        ..area
    };
    for unit in glyph::split_units(&block.text[segment.start..segment.end]) {
        let byte = segment.start + unit.bytes.start;
        // These units belong to rows above the visible part.
        if byte < first {
            continue;
        }
        while starts.get(1).is_some_and(|next| *next <= byte) {
            starts = &starts[1..];
            column = 0;
            line.y += 1;
            if line.y >= area.bottom() {
                return;
            }
        }
        // The style of a match is above the style of a span.
        let mut over = Style::new();
        if current.is_some_and(|current| current.contains(&byte)) {
            // Also distinguishes the current match in themes that show matches reversed.
            over = look_of_match
                .add_modifier(Modifier::REVERSED | Modifier::BOLD | Modifier::UNDERLINED);
        } else if matches.item_at(byte).is_some() {
            over = look_of_match;
        }
        let mut style = plain;
        if let Some(StyledSpan { role, .. }) = spans.item_at(byte) {
            style = style.patch(canvas.style(*role));
        }
        canvas.draw_unit(
            canvas.clip(line),
            column,
            &unit,
            style.patch(over),
            style.patch(hostile).patch(over),
        );
        column += unit.width(column);
    }
}

//! The visible rows as cells.

use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::super::canvas::Canvas;
use super::super::glyph;
use super::super::line::{self, Row};
use super::seek::Needle;
use super::walk::{Walker, window};
use super::wrap::Segment;
use super::{Drawn, Place, Scroll, Source};
use crate::theme::Role;

/// See [`super::draw`].
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    source: &dyn Source,
    scroll: &Scroll,
) -> Drawn {
    let Some((mut row, bottom)) = window(source, area.as_size(), scroll) else {
        return Drawn {
            from: 0.0,
            to: 1.0,
            more_below: source.len() > 0,
        };
    };
    let drawn = Drawn {
        from: part(source, row.place(), row.block.text.len()),
        to: if bottom.has_next() {
            let end = Place {
                byte: bottom.next(),
                ..bottom.place()
            };
            part(source, end, bottom.block.text.len())
        } else {
            1.0
        },
        more_below: bottom.has_next(),
    };
    let mut matches = Matches::of(scroll);
    let mut y = area.top();
    while y < area.bottom() {
        let rest = Rect {
            y,
            height: area.bottom() - y,
            ..area
        };
        draw_segment(canvas, rest, &row, matches.at(&row));
        let rows = u16::try_from(row.starts().len()).unwrap_or(u16::MAX);
        y = y.saturating_add(rows);
        row.skip();
        if !row.down() {
            break;
        }
    }
    drawn
}

/// A place as a part of the whole: blocks count alike, bytes within them.
fn part(source: &dyn Source, place: Place, len: usize) -> f64 {
    let within = if len == 0 {
        0.0
    } else {
        place.byte as f64 / len as f64
    };
    (place.block as f64 + within) / source.len().max(1) as f64
}

/// What is searched for, in the segment last asked about.
struct Matches {
    needle: Option<Needle>,
    current: Option<(usize, Range<usize>)>,
    known: Option<(usize, Segment)>,
    found: Vec<Range<usize>>,
}

impl Matches {
    fn of(scroll: &Scroll) -> Self {
        let find = scroll.find.as_ref();
        Self {
            needle: find.and_then(|find| Needle::new(&find.needle)),
            current: find
                .and_then(|find| find.at)
                .map(|(at, len)| (at.block, at.byte..at.byte.saturating_add(len))),
            known: None,
            found: Vec::new(),
        }
    }

    /// Matches that touch the row's segment, and the one gone to.
    fn at(&mut self, row: &Walker<'_>) -> (&[Range<usize>], Option<&Range<usize>>) {
        let block = row.place().block;
        let segment = row.segment;
        if let Some(needle) = &self.needle
            && self.known != Some((block, segment))
        {
            self.found = needle.within(&row.block.text, segment.start..segment.end);
            self.known = Some((block, segment));
        }
        let current = self.current.as_ref();
        let current = current.filter(|(at, _)| *at == block).map(|(_, at)| at);
        (&self.found, current)
    }
}

/// Ranges that are asked about byte after byte.
struct Cursor<'a, T> {
    items: &'a [T],
    range: fn(&T) -> &Range<usize>,
}

impl<'a, T> Cursor<'a, T> {
    fn new(items: &'a [T], from: usize, range: fn(&T) -> &Range<usize>) -> Self {
        let first = items.partition_point(|item| range(item).end <= from);
        Self {
            items: &items[first..],
            range,
        }
    }

    fn at(&mut self, byte: usize) -> Option<&'a T> {
        while let [first, rest @ ..] = self.items
            && (self.range)(first).end <= byte
        {
            self.items = rest;
        }
        let first = self.items.first()?;
        (self.range)(first).start.le(&byte).then_some(first)
    }
}

/// Draws the rows of a segment from the walker's on, as far as there is room. Goes through the whole segment, so that
/// units are the same ones that were wrapped.
fn draw_segment(
    canvas: &mut Canvas<'_>,
    area: Rect,
    row: &Walker<'_>,
    (matches, current): (&[Range<usize>], Option<&Range<usize>>),
) {
    let block = &row.block;
    let segment = row.segment;
    let mut starts = row.starts();
    let first = starts[0];
    let indent = row.indent();
    if first == 0 && !block.lead.is_empty() {
        let lead = Row::of(&*block.lead, Role::Muted);
        let width = indent;
        line::draw(canvas, Rect { width, ..area }, &lead, None);
    }
    let plain = canvas.style(block.role);
    let look_of_match = canvas.style(Role::Match);
    let hostile = canvas.style(Role::Hostile);
    let mut spans = Cursor::new(&block.spans, first, |(range, _)| range);
    let mut matches = Cursor::new(matches, first, |range| range);
    let mut column = 0;
    let mut line = Rect {
        x: area.x.saturating_add(indent),
        width: area.width - indent,
        height: 1,
        ..area
    };
    for unit in glyph::units(&block.text[segment.start..segment.end]) {
        let byte = segment.start + unit.at.start;
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
        let mut over = Style::new();
        if current.is_some_and(|current| current.contains(&byte)) {
            // Also told from other matches where a theme shows those reversed.
            over = look_of_match
                .add_modifier(Modifier::REVERSED | Modifier::BOLD | Modifier::UNDERLINED);
        } else if matches.at(byte).is_some() {
            over = look_of_match;
        }
        let mut style = plain;
        if let Some((_, role)) = spans.at(byte) {
            style = style.patch(canvas.style(*role));
        }
        canvas.unit(
            canvas.clip(line),
            column,
            &unit,
            style.patch(over),
            style.patch(hostile).patch(over),
        );
        column += unit.width(column);
    }
}

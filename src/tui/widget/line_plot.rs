//! A line through points, drawn with braille dots, or with characters in ASCII mode.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::theme::Role;

/// The bits of the dots of a braille character, by row and column.
const BRAILLE_BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
/// The first braille character.
const BRAILLE_BASE: u32 = 0x2800;

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlotPoint {
    /// The height, from 0 at the bottom to 1 at the top.
    pub(crate) height: f64,
    /// The role of the point's mark.
    pub(crate) role: Role,
    /// True if the line joins the point with the one before.
    pub(crate) is_joined: bool,
}

/// The dots of an area, several per cell.
struct DotGrid {
    columns: usize,
    rows: usize,
    /// The dots per cell: 2×4 for braille, 1×1 in ASCII.
    dots: (usize, usize),
    bits: Vec<u8>,
}

impl DotGrid {
    fn new(area: Rect, ascii: bool) -> Self {
        let (columns, rows) = (usize::from(area.width), usize::from(area.height));
        Self {
            columns,
            rows,
            dots: if ascii { (1, 1) } else { (2, 4) },
            bits: vec![0; columns * rows],
        }
    }

    fn size(&self) -> (usize, usize) {
        (self.columns * self.dots.0, self.rows * self.dots.1)
    }

    fn set(&mut self, x: usize, y: usize) {
        let (column, row) = (x / self.dots.0, y / self.dots.1);
        if let Some(bits) = self.bits.get_mut(row * self.columns + column)
            && column < self.columns
        {
            *bits |= BRAILLE_BITS[y % self.dots.1][x % self.dots.0];
        }
    }

    /// Sets the dots between two points, one for each step of the longer side.
    fn connect(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |a: usize, b: usize, step: usize| {
            // The nearest dot, with whole numbers only.
            if b >= a {
                a + ((b - a) * step * 2 + steps) / (steps * 2)
            } else {
                a - ((a - b) * step * 2 + steps) / (steps * 2)
            }
        };
        for step in 0..=steps {
            self.set(between(from.0, to.0, step), between(from.1, to.1, step));
        }
    }
}

/// Returns the column of a point of a line, from the left edge of the area.
pub(crate) fn point_column(at: usize, points: usize, width: u16) -> u16 {
    let room = usize::from(width.saturating_sub(1));
    let last = points.saturating_sub(1).max(1);
    u16::try_from((at * room * 2 + last) / (last * 2)).unwrap_or(width)
}

/// Draws a line through points at equal distances. More points than columns are not readable, so the caller passes at
/// most one per column.
pub(crate) fn draw_line_plot<T>(canvas: &mut Canvas<'_, T>, area: Rect, points: &[PlotPoint]) {
    let area = canvas.clip(area);
    if area.is_empty() {
        return;
    }
    let ascii = canvas.glyphs().ascii;
    let mut grid = DotGrid::new(area, ascii);
    let (_, height) = grid.size();
    let place = |at: usize, point: &PlotPoint| {
        let column = point_column(at, points.len(), area.width);
        let down = (1.0 - point.height.clamp(0.0, 1.0)) * (height - 1) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the height of a screen"
        )]
        let y = down.round() as usize;
        (usize::from(column), y)
    };
    let places: Vec<(usize, usize)> = points
        .iter()
        .enumerate()
        .map(|(at, p)| place(at, p))
        .collect();
    let dots = grid.dots;
    for (pair, point) in places.windows(2).zip(&points[1..]) {
        if !point.is_joined {
            continue;
        }
        let dot = |(column, y): (usize, usize)| (column * dots.0, y);
        grid.connect(dot(pair[0]), dot(pair[1]));
    }
    let line = canvas.style(Role::Bar);
    for (at, bits) in grid.bits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
        let (column, row) = (at % grid.columns, at / grid.columns);
        let (x, y) = (offset(area.x, column), offset(area.y, row));
        let braille = char::from_u32(BRAILLE_BASE + u32::from(*bits)).unwrap_or(' ');
        let symbol = if ascii { '.' } else { braille };
        canvas.put_symbol(x, y, symbol.encode_utf8(&mut [0; 4]), 1, line);
    }
    let mark = if ascii { "o" } else { "●" };
    for ((column, y), point) in places.iter().zip(points) {
        let style = canvas.style(point.role);
        let (x, y) = (offset(area.x, *column), offset(area.y, y / dots.1));
        canvas.put_symbol(x, y, mark, 1, style);
    }
}

fn offset(from: u16, by: usize) -> u16 {
    from.saturating_add(u16::try_from(by).unwrap_or(u16::MAX))
}

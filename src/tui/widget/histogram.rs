//! Bars of counts, one or more rows high, with eighths of a row, or whole rows in ASCII mode.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::theme::Role;

/// The bars of one eighth to eight eighths.
const EIGHTHS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws one bar per count, from the left edge, as high as the area for the count `most`. A count above 0 is always
/// visible.
pub(crate) fn draw_bars<T>(
    canvas: &mut Canvas<'_, T>,
    area: Rect,
    counts: &[u64],
    most: u64,
    role: Role,
) {
    let area = canvas.clip(area);
    let style = canvas.style(role);
    let (ascii, full) = (canvas.glyphs().ascii, canvas.glyphs().bar_filled);
    for (count, x) in counts.iter().zip(area.left()..area.right()) {
        if *count == 0 {
            continue;
        }
        // The height in eighths of a row, at least one.
        let eighths = count * u64::from(area.height) * 8 / most.max(1);
        let eighths = usize::try_from(eighths).unwrap_or(usize::MAX).max(1);
        for (row, y) in (area.top()..area.bottom()).rev().enumerate() {
            let left = eighths.saturating_sub(row * 8);
            let symbol = match left {
                0 => break,
                _ if ascii => full,
                1..=8 => EIGHTHS[left - 1],
                _ => EIGHTHS[7],
            };
            canvas.put_symbol(x, y, symbol, 1, style);
        }
    }
}

/// Returns the bar of a value from 0 to 1.
pub(crate) fn bin_of(value: f64, bins: usize) -> usize {
    let last = bins.saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of bins"
    )]
    let bin = (value.clamp(0.0, 1.0) * last as f64).round() as usize;
    bin.min(last)
}

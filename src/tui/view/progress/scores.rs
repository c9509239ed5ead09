//! Draws the scores of an eval in the newest state: a histogram by label, the threshold, and the agreement at it.

use ratatui::layout::Rect;

use super::flips::describe_flips;
use crate::compare::{PreviewCounts, ThresholdPreview};
use crate::model::pluralize;
use crate::report::format_threshold;
use crate::theme::Role;
use crate::tui::state::progress::{ProgressPane, ProgressScreen, format_agreement};
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, ScrollState, TextBlock};
use crate::tui::widget::histogram;
use crate::tui::widget::styled_row::{self, StyledRow};

/// The columns of the names at the left of the bars.
const NAME_WIDTH: u16 = 11;
/// The largest number of bars; more are narrower than the steps of the threshold.
const MAX_BARS: u16 = 101;
/// The rows of the table of verdicts and labels.
const TABLE_ROWS: u16 = 3;

/// Returns the title.
pub(super) fn title(screen: &ProgressScreen) -> String {
    match &screen.eval {
        Some(eval) => format!("{} of {} now", ProgressPane::Scores.title(), eval.eval),
        None => ProgressPane::Scores.title().to_owned(),
    }
}

/// Draws the counts, the bars by label, the threshold, and the table.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, screen: &ProgressScreen) {
    let preview = match screen.preview() {
        Ok(preview) => preview,
        Err(why) => {
            let text = vec![TextBlock::new(why, Role::Muted)];
            flow::draw(canvas, area, &text, &ScrollState::top());
            return;
        }
    };
    let counts = preview.count_at(screen.threshold);
    let mut rest = area;
    draw_counts(canvas, &mut rest, screen, preview, &counts);
    let table = if rest.height >= TABLE_ROWS + 4 {
        let table = Rect {
            y: rest.bottom() - TABLE_ROWS,
            height: TABLE_ROWS,
            ..rest
        };
        rest.height -= TABLE_ROWS;
        Some(table)
    } else {
        None
    };
    draw_bars(canvas, rest, screen, preview);
    if let Some(table) = table {
        draw_table(canvas, table, &counts);
    }
}

/// Draws the two rows of counts, and takes them off the area.
fn draw_counts(
    canvas: &mut Canvas<'_>,
    area: &mut Rect,
    screen: &ProgressScreen,
    preview: &ThresholdPreview,
    counts: &PreviewCounts,
) {
    let glyphs = canvas.glyphs();
    let bound = preview.bound.as_str();
    let current = preview.current.map_or_else(
        || format!("no {bound}"),
        |at| format!("{bound} {}", format_threshold(at)),
    );
    let recorded = preview.count_at(None);
    // Labels of the question before an edit count for nothing until the user confirms them.
    let newest = screen.view.newest();
    let facts = newest.and_then(|entry| screen.counts(entry.number));
    let waiting = facts.map_or(0, |counts| counts.agreement.to_confirm);
    let agreement = |counts: &PreviewCounts| match counts.agreement.total() {
        0 if waiting > 0 => format!("{} to confirm", pluralize(waiting, "label")),
        0 => "no labels".to_owned(),
        _ => format!("{} agree", format_agreement(&counts.agreement)),
    };
    let first = match screen.threshold {
        Some(moved) => StyledRow::new(format!(" {current} {} ", glyphs.arrow), Role::Muted)
            .with(format_threshold(moved), Role::Accent)
            .with(
                format!("   {} {} ", agreement(&recorded), glyphs.arrow),
                Role::Muted,
            )
            .with(agreement(counts), Role::Label),
        None => StyledRow::new(format!(" {current}   "), Role::Accent)
            .with(agreement(counts), Role::Label)
            .with(
                format!(
                    "   {} {} {} {}",
                    glyphs.pass, counts.pass, glyphs.fail, counts.fail
                ),
                Role::Text,
            ),
    };
    let second = match screen.threshold {
        Some(_) => StyledRow::new(format!(" {}", describe_flips(counts.flips)), Role::Flipped)
            .with("   enter", Role::Key)
            .with(" writes  ", Role::Muted)
            .with("esc", Role::Key)
            .with(" resets", Role::Muted),
        None => StyledRow::new(" h l", Role::Key)
            .with(" move the threshold, ", Role::Muted)
            .with("left right", Role::Key)
            .with(" by 0.01", Role::Muted),
    };
    for row in [first, second] {
        if area.height == 0 {
            return;
        }
        styled_row::draw_row(canvas, Rect { height: 1, ..*area }, &row, None);
        area.y += 1;
        area.height -= 1;
    }
}

/// Draws one row of bars per label, then the scale with the threshold.
fn draw_bars(
    canvas: &mut Canvas<'_>,
    area: Rect,
    screen: &ProgressScreen,
    preview: &ThresholdPreview,
) {
    if area.height < 2 || area.width <= NAME_WIDTH {
        return;
    }
    let glyphs = canvas.glyphs();
    let width = (area.width - NAME_WIDTH - 1).min(MAX_BARS);
    let bins = usize::from(width);
    let mut series: [(String, Role, Vec<u64>); 3] = [
        (format!(" label {}", glyphs.pass), Role::Pass, vec![0; bins]),
        (format!(" label {}", glyphs.fail), Role::Fail, vec![0; bins]),
        (" no label".to_owned(), Role::Muted, vec![0; bins]),
    ];
    for one in &preview.decisions {
        let at = match one.label {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        };
        if let Some(count) = series[at].2.get_mut(histogram::bin_of(one.score, bins)) {
            *count += 1;
        }
    }
    let most = series.iter().flat_map(|(_, _, counts)| counts).max();
    let most = most.copied().unwrap_or(0);
    // The last row is the scale.
    let each = ((area.height - 1) / 3).max(1);
    let mut y = area.y;
    for (name, role, counts) in &series {
        let height = each.min((area.bottom() - 1).saturating_sub(y));
        if height == 0 {
            break;
        }
        let name_row = Rect::new(area.x, y + height - 1, NAME_WIDTH, 1);
        styled_row::draw_row(
            canvas,
            name_row,
            &StyledRow::new(name.as_str(), *role),
            None,
        );
        let bars = Rect::new(area.x + NAME_WIDTH, y, width, height);
        histogram::draw_bars(canvas, bars, counts, most, *role);
        y += height;
    }
    let scale = Rect::new(area.x, y, area.width, 1);
    draw_scale(canvas, scale, width, screen.threshold.or(preview.current));
}

/// Draws `0.00   ▲0.70   1.00` below the bars.
fn draw_scale(canvas: &mut Canvas<'_>, row: Rect, width: u16, threshold: Option<f64>) {
    let start = row.x + NAME_WIDTH;
    let name = StyledRow::new(" score", Role::Muted);
    styled_row::draw_row(
        canvas,
        Rect {
            width: NAME_WIDTH,
            ..row
        },
        &name,
        None,
    );
    let mut ends = vec![(start, "0".to_owned()), (start + width - 1, "1".to_owned())];
    if let Some(threshold) = threshold {
        let mark = if canvas.glyphs().ascii { "^" } else { "▲" };
        let bin = histogram::bin_of(threshold, usize::from(width));
        let text = format!("{mark}{}", format_threshold(threshold));
        let long = u16::try_from(text.chars().count()).unwrap_or(0);
        let at = start + u16::try_from(bin).unwrap_or(0);
        // Near the right edge, the number is before the mark.
        let (x, text) = if at + long > row.right() {
            let text = format!("{}{mark}", format_threshold(threshold));
            (at + 1 - long.min(at + 1), text)
        } else {
            (at, text)
        };
        // The number covers the end of the scale that it touches.
        ends.retain(|(end, _)| *end < x.saturating_sub(1) || *end > x + long);
        let area = Rect {
            x,
            width: row.right().saturating_sub(x),
            ..row
        };
        styled_row::draw_row(canvas, area, &StyledRow::new(text, Role::Accent), None);
    }
    for (x, text) in ends {
        let area = Rect { x, width: 1, ..row };
        styled_row::draw_row(canvas, area, &StyledRow::new(text, Role::Muted), None);
    }
}

/// Draws the verdicts against the labels.
fn draw_table(canvas: &mut Canvas<'_>, area: Rect, counts: &PreviewCounts) {
    let glyphs = canvas.glyphs();
    let (pass, fail) = (glyphs.pass, glyphs.fail);
    let agreement = &counts.agreement;
    let cell = |n: u64, role: Role| (format!("{n:>9}"), role);
    let line = |name: String, first: (String, Role), second: (String, Role)| {
        StyledRow::new(name, Role::Muted)
            .with(first.0, first.1)
            .with(second.0, second.1)
    };
    let rows = [
        StyledRow::new(
            format!("            label {pass}  label {fail}"),
            Role::Muted,
        ),
        line(
            format!(" verdict {pass} "),
            cell(agreement.true_pass, Role::Text),
            cell(agreement.false_pass, Role::Away),
        ),
        line(
            format!(" verdict {fail} "),
            cell(agreement.false_fail, Role::Away),
            cell(agreement.true_fail, Role::Text),
        ),
    ];
    for (row, y) in rows.iter().zip(area.top()..area.bottom()) {
        styled_row::draw_row(
            canvas,
            Rect {
                y,
                height: 1,
                ..area
            },
            row,
            None,
        );
    }
}

//! Draws the agreement with the labels over the edits.

use ratatui::layout::Rect;

use crate::model::LabelAgreement;
use crate::theme::Role;
use crate::tui::state::progress::{ProgressItem, ProgressScreen, format_agreement};
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, ScrollState, TextBlock};
use crate::tui::widget::line_plot::{self, PlotPoint};
use crate::tui::widget::styled_row::{self, StyledRow};

/// The columns of the scale at the left.
const SCALE_WIDTH: u16 = 6;
/// The smallest height, in rows, with a row about a gap in the line.
const MIN_GAP_HEIGHT: u16 = 6;

/// Draws the line, with the share of agreeing verdicts at the left and the entries below.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, screen: &ProgressScreen) {
    let all: Vec<(usize, LabelAgreement)> = screen.agreement_points().collect();
    if all.is_empty() {
        let text = vec![TextBlock::new(screen.explain_missing_points(), Role::Muted)];
        flow::draw(canvas, area, &text, &ScrollState::top());
        return;
    }
    if area.height < 3 || area.width <= SCALE_WIDTH {
        return;
    }
    let gaps = explain_gaps(screen, &all);
    let has_gaps = gaps.iter().any(Option::is_some);
    let has_gap_row = has_gaps && area.height >= MIN_GAP_HEIGHT;
    let plot = Rect {
        x: area.x + SCALE_WIDTH,
        width: area.width - SCALE_WIDTH,
        height: area.height - if has_gap_row { 3 } else { 2 },
        ..area
    };
    // One column per entry at most, so a longer history shows its newest part.
    let hidden = all.len().saturating_sub(usize::from(plot.width));
    let shown = &all[hidden..];
    let lowest = shown
        .iter()
        .map(|(_, agreement)| share(agreement))
        .fold(1.0, f64::min);
    // The scale begins at a tenth below the lowest point, so that small differences are visible.
    let bottom = (((lowest * 10.0).floor() - 1.0) / 10.0).max(0.0);
    let selected = screen.list.selected.map(ProgressItem::entry);
    let points: Vec<PlotPoint> = shown
        .iter()
        .zip(&gaps[hidden..])
        .map(|((number, agreement), gap)| PlotPoint {
            is_joined: gap.is_none(),
            height: (share(agreement) - bottom) / (1.0 - bottom),
            role: if selected == Some(*number) {
                Role::Flipped
            } else {
                Role::Label
            },
        })
        .collect();
    line_plot::draw_line_plot(canvas, plot, &points);
    for (at, y) in [(1.0, plot.y), (bottom, plot.bottom() - 1)] {
        let text = format!("{:>4.0}%", at * 100.0);
        let row = Rect::new(area.x, y, SCALE_WIDTH, 1);
        styled_row::draw_row(canvas, row, &StyledRow::new(text, Role::Muted), None);
    }
    draw_entry_numbers(canvas, plot, shown, selected);
    let focused = all
        .iter()
        .position(|(number, _)| selected == Some(*number))
        .unwrap_or(all.len() - 1);
    let (number, agreement) = &all[focused];
    let text = format!(
        " state {number}: {} agree, {} false pass, {} false fail",
        format_agreement(agreement),
        agreement.false_pass,
        agreement.false_fail
    );
    let rows = if has_gap_row { 2 } else { 1 };
    let row = Rect::new(area.x, area.bottom() - rows, area.width, 1);
    styled_row::draw_row(canvas, row, &StyledRow::new(text, Role::Text), None);
    if has_gap_row {
        let text = match (&gaps[focused], focused.checked_sub(1)) {
            (Some(why), Some(before)) => {
                format!(" other labels than state {}: {why}", all[before].0)
            }
            _ => " a gap in the line: its sides count other labels".to_owned(),
        };
        let row = Rect::new(area.x, area.bottom() - 1, area.width, 1);
        styled_row::draw_row(canvas, row, &StyledRow::new(text, Role::Warning), None);
    }
}

/// Returns for each point the reason why it does not continue the line: it counts other labels than the point before.
fn explain_gaps(screen: &ProgressScreen, all: &[(usize, LabelAgreement)]) -> Vec<Option<String>> {
    let before = std::iter::once(None).chain(all.iter().map(|(number, _)| Some(*number)));
    let pairs = all.iter().zip(before);
    let gaps = pairs.map(|((number, _), before)| screen.explain_other_labels(before?, *number));
    gaps.collect()
}

fn share(agreement: &LabelAgreement) -> f64 {
    let total = agreement.total().max(1);
    (total - agreement.disagreements()) as f64 / total as f64
}

/// Draws the numbers of the entries below the line, as many as fit.
fn draw_entry_numbers(
    canvas: &mut Canvas<'_>,
    plot: Rect,
    shown: &[(usize, LabelAgreement)],
    selected: Option<usize>,
) {
    let mut free = plot.x;
    for (at, (number, _)) in shown.iter().enumerate() {
        let text = number.to_string();
        let width = u16::try_from(text.len()).unwrap_or(1);
        let column = line_plot::point_column(at, shown.len(), plot.width);
        let x = (plot.x + column).min(plot.right().saturating_sub(width));
        if x < free {
            continue;
        }
        let role = if selected == Some(*number) {
            Role::Accent
        } else {
            Role::Muted
        };
        let row = Rect::new(x, plot.bottom(), width, 1);
        styled_row::draw_row(canvas, row, &StyledRow::new(text, role), None);
        free = x + width + 1;
    }
}

//! What does not load, beside the last good state.

use ratatui::layout::Rect;

use crate::diag::{Diagnostic, Severity};
use crate::theme::Role;
use crate::tui::model::Model;
use crate::tui::widget::canvas::Canvas;
use crate::tui::widget::line::{self, Row};

/// Draws it: errors first; the last row says how many more there are, and what is still in use.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, model: &Model) {
    let problems = &model.saves.problems;
    let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        problems.iter().partition(|p| p.severity == Severity::Error);
    let rows = usize::from(area.height);
    let shown = errors.into_iter().chain(warnings).take(rows);
    for (at, problem) in (0_u16..).zip(shown) {
        let role = match problem.severity {
            Severity::Error => Role::Error,
            Severity::Warning => Role::Warning,
        };
        let last = usize::from(at) + 1 == rows.min(problems.len());
        let mark = canvas.glyphs().fail;
        let mut row = Row::default().with(format!("{mark} "), role);
        if last {
            row = row.with(in_use(problems.len().saturating_sub(rows)), Role::Muted);
        }
        let row = row.with(problem.to_string(), role);
        let place = Rect {
            y: area.y + at,
            height: 1,
            ..area
        };
        line::draw(canvas, place, &row, None);
    }
}

/// In front of the message, where no long one can push it off the screen.
fn in_use(more: usize) -> String {
    match more {
        0 => "(the last good state is in use) ".to_owned(),
        more => format!("({more} more; the last good state is in use) "),
    }
}

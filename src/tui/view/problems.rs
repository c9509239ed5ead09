//! Draws the errors of files that failed to load, and before them the missed examples.

use ratatui::layout::Rect;

use crate::diag::{Diagnostic, Severity};
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::state::App;
use crate::tui::state::pane::Pane;
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws the errors; the last row shows how many more there are and that the last valid version is in use.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let area = draw_failing_examples(canvas, area, app);
    let problems = &app.saves.problems;
    // Errors come first, because only errors prevent the load of a file.
    let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        problems.iter().partition(|p| p.severity == Severity::Error);
    let rows = usize::from(area.height);
    let visible = errors.into_iter().chain(warnings).take(rows);
    for (at, problem) in (0_u16..).zip(visible) {
        let role = match problem.severity {
            Severity::Error => Role::Error,
            Severity::Warning => Role::Warning,
        };
        let last = usize::from(at) + 1 == rows.min(problems.len());
        let mark = canvas.glyphs().fail;
        let mut row = StyledRow::default().with(format!("{mark} "), role);
        // The note is in the last visible row.
        if last {
            row = row.with(
                describe_kept_version(problems.len().saturating_sub(rows)),
                Role::Muted,
            );
        }
        let row = row.with(problem.to_string(), role);
        let place = Rect {
            y: area.y + at,
            height: 1,
            ..area
        };
        styled_row::draw_row(canvas, place, &row, None);
    }
}

/// Draws `✗ 1 example misses: names-a-version, e edits` and returns the remaining area. In a single row, an error has
/// priority, because dicta can't judge examples until the file loads.
fn draw_failing_examples(canvas: &mut Canvas<'_>, area: Rect, app: &App) -> Rect {
    let room = area.height > u16::from(!app.saves.problems.is_empty());
    let Some(missing) = app
        .examples
        .describe_misses()
        .filter(|_| app.shows_example_misses() && room)
    else {
        return area;
    };
    let mark = canvas.glyphs().fail;
    let mut row = StyledRow::new(format!("{mark} {missing}, "), Role::Error);
    let opened = app.focused_example_miss();
    if opened.is_none() {
        // Another eval has the focus. The changes pane lists all misses, and `e` opens the first.
        row = row.with("7 ", Role::Key);
    }
    row = row.with("e", Role::Key).with(" edits", Role::Error);
    if let Some(trial) = opened.or_else(|| app.examples.misses().next()) {
        row = row.with(format!("   {}", trial.sentence()), Role::Muted);
    }
    let line = Rect { height: 1, ..area };
    styled_row::draw_row(canvas, line, &row, None);
    canvas.add_hit(line, ClickTarget::Pane(Pane::Changes));
    Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    }
}

/// Returns the note that precedes a message, so that a long message can't push it off the screen.
fn describe_kept_version(more: usize) -> String {
    match more {
        0 => "(dicta uses the last valid version) ".to_owned(),
        more => format!("({more} more; dicta uses the last valid version) "),
    }
}

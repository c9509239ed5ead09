//! Draws the rows below the panes: missed examples, and files that do not load.

use ratatui::layout::Rect;

use crate::diag::{Diagnostic, Severity};
use crate::model::{make_visible, pluralize};
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::state::App;
use crate::tui::state::pane::Pane;
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws one row about the files that do not load. The changes pane shows the errors in full.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let area = draw_failing_examples(canvas, area, app);
    if area.is_empty() || !app.shows_load_errors() {
        return;
    }
    let mark = canvas.glyphs().fail;
    let rows = describe_problems(&app.saves.problems).map(|(what, kept)| {
        StyledRow::new(format!("{mark} {what}: "), Role::Error)
            .with("7", Role::Key)
            .with(" shows it in full", Role::Error)
            .with(kept, Role::Muted)
    });
    let fits = |row: &&StyledRow<'_>| row.width() <= usize::from(area.width);
    // The last wording is the shortest one.
    let row = rows.iter().find(fits).or(rows.last());
    let line = Rect { height: 1, ..area };
    if let Some(row) = row {
        styled_row::draw_row(canvas, line, row, None);
        canvas.add_hit(line, ClickTarget::Pane(Pane::Changes));
    }
}

/// Describes the problems in three lengths, the longest first, each with a note on the version in use.
fn describe_problems(problems: &[Diagnostic]) -> [(String, &'static str); 3] {
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    let count = pluralize(errors.count().max(1), "load error");
    let place = problems.first().map_or_else(String::new, |problem| {
        let file = make_visible(&problem.file.display().to_string(), false).into_owned();
        match &problem.span {
            Some(span) => format!("{file}:{}:{}", span.line, span.column),
            None => file,
        }
    });
    [
        (
            format!("{count}, {place}"),
            " (dicta uses the last valid version)",
        ),
        (format!("{count}, {place}"), ""),
        (count, ""),
    ]
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

//! The text of the changes pane: the diff of the last save, or the errors of files that do not load.

use crate::diag::{Diagnostic, Severity, render_plain};
use crate::theme::Role;
use crate::tui::state::App;
use crate::tui::state::pane::Pane;
use crate::tui::widget::flow::{TextBlock, TextSource};

/// The width of a snippet in columns, if its pane is not visible.
const DEFAULT_WIDTH: u16 = 80;

/// Returns the text of the pane: the errors of files that do not load, or else the diff.
pub(super) fn build_source(app: &App) -> Box<dyn TextSource + '_> {
    if app.shows_load_errors() {
        return Box::new(load_error_blocks(app));
    }
    let files = app.saves.report.iter().flat_map(|report| &report.files);
    let lines = files.flat_map(|file| file.diff.lines());
    Box::new(
        lines
            .map(|line| TextBlock::new(line, diff_line_role(line)))
            .collect::<Vec<_>>(),
    )
}

/// Returns every error with its lines, a mark below the place, and the suggested fix.
fn load_error_blocks(app: &App) -> Vec<TextBlock<'_>> {
    let width = match app.layout().inner_size(Pane::Changes).width {
        0 => DEFAULT_WIDTH,
        width => width,
    };
    let ascii = app.ui.theme.glyphs().ascii;
    let mut out = Vec::new();
    for problem in sort_problems(&app.saves.problems) {
        if !out.is_empty() {
            out.push(TextBlock::default());
        }
        let snippet = render_plain(problem, ascii, usize::from(width));
        for (at, line) in snippet.lines().enumerate() {
            let role = match (at, problem.severity) {
                (0, Severity::Error) => Role::Error,
                (0, Severity::Warning) => Role::Warning,
                _ if is_mark_line(line) => Role::Error,
                _ => Role::Text,
            };
            out.push(TextBlock::new(line.to_owned(), role));
        }
    }
    out.push(TextBlock::default());
    out.push(TextBlock::new(
        "dicta uses the last valid version until the file loads again; e edits the file",
        Role::Muted,
    ));
    out
}

/// Returns the problems with errors first, because only errors prevent the load of a file.
fn sort_problems(problems: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    let of = |severity| problems.iter().filter(move |p| p.severity == severity);
    of(Severity::Error).chain(of(Severity::Warning))
}

/// Returns true for the line with the mark below a place: only the frame of the snippet and marks.
fn is_mark_line(line: &str) -> bool {
    line.contains(['^', '━'])
        && line
            .chars()
            .all(|c| matches!(c, ' ' | '|' | '│' | '^' | '━'))
}

/// Returns the role of a line in a unified diff.
fn diff_line_role(line: &str) -> Role {
    match line.as_bytes() {
        // A file's header looks like a changed line, so test it first.
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Role::Title,
        [b'+', ..] => Role::Added,
        [b'-', ..] => Role::Removed,
        [b'@', ..] => Role::Hunk,
        _ => Role::Muted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_lines_have_roles() {
        let roles = ["--- a", "+++ a", "@@ -1 +1 @@", "-old", "+new", " same"].map(diff_line_role);
        assert_eq!(
            roles,
            [
                Role::Title,
                Role::Title,
                Role::Hunk,
                Role::Removed,
                Role::Added,
                Role::Muted
            ]
        );
    }
}

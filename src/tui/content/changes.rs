//! The text of the changes pane: the diff of the last save.

use crate::theme::Role;
use crate::tui::state::App;
use crate::tui::widget::flow::{TextBlock, TextSource};

/// Returns the text of the pane.
pub(super) fn build_source(app: &App) -> Box<dyn TextSource + '_> {
    let files = app.saves.report.iter().flat_map(|report| &report.files);
    let lines = files.flat_map(|file| file.diff.lines());
    Box::new(
        lines
            .map(|line| TextBlock::new(line, diff_line_role(line)))
            .collect::<Vec<_>>(),
    )
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

//! What the last save edited, as a diff.

use crate::theme::Role;
use crate::tui::model::Model;
use crate::tui::widget::flow::{Block, Source};

/// The pane's text.
pub(super) fn source(model: &Model) -> Box<dyn Source + '_> {
    let files = model.saves.report.iter().flat_map(|report| &report.files);
    let lines = files.flat_map(|file| file.diff.lines());
    Box::new(
        lines
            .map(|line| Block::new(line, role(line)))
            .collect::<Vec<_>>(),
    )
}

/// What a line of a unified diff is.
fn role(line: &str) -> Role {
    match line.as_bytes() {
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
    fn lines_of_a_diff_differ_by_what_they_are() {
        let roles = ["--- a", "+++ a", "@@ -1 +1 @@", "-old", "+new", " same"].map(role);
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

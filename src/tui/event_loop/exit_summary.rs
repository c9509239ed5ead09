//! The line that stays on the normal screen after the workbench ends.

use std::path::Path;

use crate::model::{make_visible, pluralize};
use crate::review::ReviewSession;
use crate::tui::runtime::CreatedRun;

/// Renders the number of transcripts that the reader visited, and the file of notes; `None` if no review was open.
pub(super) fn render_review_summary(review: Option<&ReviewSession>) -> Option<String> {
    let review = review?;
    let line = format!(
        "dicta: {} of {} read, notes are in {}",
        review.visited(),
        pluralize(review.queue.len() as u64, "transcript"),
        review.place.files.notes().display()
    );
    Some(make_visible(&line, false).into_owned())
}

/// Renders the number of created runs and their folder. Names the workspace if it is not at or above the folder `here`,
/// because a command there does not find it.
pub(super) fn render_exit_summary(made: &[CreatedRun], here: &Path) -> String {
    let Some(last) = made.last() else {
        // A session without runs prints a line too, so that the user sees this.
        return "dicta: nothing was run".to_owned();
    };
    let letters = last.run.letters();
    let recorded = if made.len() == 1 {
        let place = last.runs_dir.join(&last.run.0);
        format!("dicta: run {letters} is recorded in {}", place.display())
    } else {
        // Runs of several folders have no common place to name.
        let same = made.iter().all(|run| run.runs_dir == last.runs_dir);
        let place = if same {
            format!(" in {}", last.runs_dir.display())
        } else {
            String::new()
        };
        let runs = pluralize(made.len() as u64, "run");
        format!("dicta: {runs} are recorded{place}, the last one is {letters}")
    };
    // Paths may contain control characters, and these lines go to the normal screen.
    let recorded = make_visible(&recorded, false);
    if here.starts_with(&last.workspace) {
        return format!("{recorded} (dicta show {letters})");
    }
    let root = last.workspace.display().to_string();
    let root = make_visible(&root, false);
    format!(
        "{recorded}\ndicta: the workspace is {root}; in that folder, `dicta` opens it again, and `dicta show {letters}` prints the run"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RunId;

    #[test]
    fn created_runs_are_summarized_in_one_line() {
        let made = |letters: &str| CreatedRun {
            run: RunId(format!("20260101T000000Z-{letters}")),
            runs_dir: "/d/runs".into(),
            workspace: "/home/a/w".into(),
        };
        let render_exit_summary =
            |made: &[CreatedRun]| super::render_exit_summary(made, Path::new("/home/a/w/rubrics"));
        assert_eq!(render_exit_summary(&[]), "dicta: nothing was run");
        assert_eq!(
            render_exit_summary(&[made("abcd")]),
            "dicta: run abcd is recorded in /d/runs/20260101T000000Z-abcd (dicta show abcd)"
        );
        assert_eq!(
            render_exit_summary(&[made("abcd"), made("wxyz")]),
            "dicta: 2 runs are recorded in /d/runs, the last one is wxyz (dicta show wxyz)"
        );
        assert_eq!(
            super::render_exit_summary(&[made("abcd")], Path::new("/home/a")),
            "dicta: run abcd is recorded in /d/runs/20260101T000000Z-abcd\n\
             dicta: the workspace is /home/a/w; in that folder, `dicta` opens it again, and `dicta show abcd` prints the run"
        );
    }
}

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
    let line = match made {
        // A session without runs prints a line too, so that the user sees this.
        [] => "dicta: nothing was run".to_owned(),
        [one] => format!(
            "dicta: run {} is recorded in {} (dicta show {})",
            one.run.letters(),
            one.runs_dir.join(&one.run.0).display(),
            one.run.letters()
        ),
        [.., last] => {
            // Runs of several folders have no common place to name.
            let same = made.iter().all(|run| run.runs_dir == last.runs_dir);
            let place = if same {
                format!(" in {}", last.runs_dir.display())
            } else {
                String::new()
            };
            format!(
                "dicta: {} are recorded{place}, the last one is {} (dicta show {})",
                pluralize(made.len() as u64, "run"),
                last.run.letters(),
                last.run.letters()
            )
        }
    };
    // Paths may contain control characters, and these lines go to the normal screen.
    let mut text = make_visible(&line, false).into_owned();
    let workspace = made.last().map(|run| run.workspace.as_path());
    if let Some(root) = workspace.filter(|root| !here.starts_with(root)) {
        let root = root.display().to_string();
        let root = make_visible(&root, false);
        text += "\ndicta: the workspace is ";
        text += &root;
        text += "; `dicta` in that folder opens it again";
    }
    text
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
            "dicta: run abcd is recorded in /d/runs/20260101T000000Z-abcd (dicta show abcd)\n\
             dicta: the workspace is /home/a/w; `dicta` in that folder opens it again"
        );
    }
}

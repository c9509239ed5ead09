//! The line that stays on the normal screen after the workbench ends.

use crate::model::{make_visible, pluralize};
use crate::tui::runtime::CreatedRun;

/// Renders the number of created runs and their folder.
pub(super) fn render_exit_summary(made: &[CreatedRun]) -> String {
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
    // Paths may contain control characters, and this line goes to the normal screen.
    make_visible(&line, false).into_owned()
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
        };
        assert_eq!(render_exit_summary(&[]), "dicta: nothing was run");
        assert_eq!(
            render_exit_summary(&[made("abcd")]),
            "dicta: run abcd is recorded in /d/runs/20260101T000000Z-abcd (dicta show abcd)"
        );
        assert_eq!(
            render_exit_summary(&[made("abcd"), made("wxyz")]),
            "dicta: 2 runs are recorded in /d/runs, the last one is wxyz (dicta show wxyz)"
        );
    }
}

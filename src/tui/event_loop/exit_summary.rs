//! The line that stays on the normal screen after the workbench ends.

use std::path::Path;

use crate::model::{make_visible, pluralize};
use crate::review::ReviewSession;
use crate::tui::runtime::CreatedRun;

/// Renders the number of transcripts that the reader visited, and the file of notes; `None` if no review was open.
pub(super) fn render_review_summary(review: Option<&ReviewSession>) -> Option<String> {
    let review = review?;
    // Without a visited transcript, there may be no file of notes.
    if review.visited() == 0 {
        return Some("dicta: nothing was read".to_owned());
    }
    let lines = format!(
        "dicta: {} of {} read, notes are in\n{}",
        review.visited(),
        pluralize(review.queue.len() as u64, "transcript"),
        show_path(&review.place.files.notes())
    );
    Some(lines)
}

/// Renders the number of created runs and their folder. Names the workspace if it is not at or above the folder `here`,
/// because a command there does not find it. A path has a line of its own, so that people can copy it. Then comes the
/// number of cells without a result, if there are any.
pub(super) fn render_exit_summary(
    made: &[CreatedRun],
    here: &Path,
    unjudged: Option<String>,
) -> String {
    let runs = render_runs(made, here);
    match unjudged.filter(|_| !made.is_empty()) {
        Some(unjudged) => format!("{runs}\n{unjudged}: press R in dicta"),
        None => runs,
    }
}

fn render_runs(made: &[CreatedRun], here: &Path) -> String {
    let Some(last) = made.last() else {
        // A session without runs prints a line too, so that the user sees this.
        return "dicta: nothing was run".to_owned();
    };
    let letters = last.run.letters();
    let (recorded, printed) = if made.len() == 1 {
        let place = show_path(&last.runs_dir.join(&last.run.0));
        let recorded = format!("dicta: run {letters} is recorded in\n{place}");
        (recorded, "the run")
    } else {
        // Runs of several folders have no common place to name.
        let same = made.iter().all(|run| run.runs_dir == last.runs_dir);
        let place = if same {
            format!(" in\n{}", show_path(&last.runs_dir))
        } else {
            String::new()
        };
        let runs = pluralize(made.len() as u64, "run");
        (format!("dicta: {runs} are recorded{place}"), "the last one")
    };
    if here.starts_with(&last.workspace) {
        return format!("{recorded}\n`dicta show {letters}` prints {printed}");
    }
    let root = show_path(&last.workspace);
    format!(
        "{recorded}\nthe workspace is\n{root}\nin that folder, `dicta` opens it again, and `dicta show {letters}` prints {printed}"
    )
}

/// Returns a path for the normal screen: it may contain control characters.
fn show_path(path: &Path) -> String {
    make_visible(&path.display().to_string(), false).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RunId;

    #[test]
    fn created_runs_are_summarized_with_each_path_on_its_own_line() {
        let made = |letters: &str| CreatedRun {
            run: RunId(format!("20260101T000000Z-{letters}")),
            runs_dir: "/d/runs".into(),
            workspace: "/home/a/w".into(),
        };
        let render_exit_summary = |made: &[CreatedRun]| {
            super::render_exit_summary(made, Path::new("/home/a/w/rubrics"), None)
        };
        assert_eq!(render_exit_summary(&[]), "dicta: nothing was run");
        assert_eq!(
            render_exit_summary(&[made("abcd")]),
            "dicta: run abcd is recorded in\n/d/runs/20260101T000000Z-abcd\n`dicta show abcd` prints the run"
        );
        assert_eq!(
            render_exit_summary(&[made("abcd"), made("wxyz")]),
            "dicta: 2 runs are recorded in\n/d/runs\n`dicta show wxyz` prints the last one"
        );
        assert_eq!(
            super::render_exit_summary(&[made("abcd")], Path::new("/home/a"), None),
            "dicta: run abcd is recorded in\n/d/runs/20260101T000000Z-abcd\nthe workspace is\n/home/a/w\n\
             in that folder, `dicta` opens it again, and `dicta show abcd` prints the run"
        );
    }
}

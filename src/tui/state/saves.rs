//! The state of saves: the last valid workspace, errors, flips, and the judging that waits.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use super::edit_report::EvalName;
use super::edit_report::{EditReport, EvalRename, RecordedEdit};
use super::runs::RunTicket;
use crate::diag::Diagnostic;
use crate::model::{Millis, pluralize};
use crate::tui::widget::flow::ScrollState;
use crate::workspace::trust::Permission;

/// The time that judges wait for another save.
pub(crate) const JUDGE_DEBOUNCE: Millis = Millis(300);
/// The time in which an editor may write a file in pieces. Evals that return within it belong to the same save.
pub(crate) const PARTIAL_WRITE_WINDOW: Millis = Millis(3000);

/// A cost estimate that was ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingEstimate {
    pub(crate) ticket: RunTicket,
    /// The paid judges of the evals that were touched.
    pub(crate) judges: Vec<String>,
}

/// Judging that waits until the user stops saving.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingJudging {
    /// The time at which it starts, unless another save comes first.
    pub(crate) due: Millis,
    /// Single decisions: the focused one of a paid judge.
    pub(crate) decisions: Vec<String>,
    /// Whole evals of free judges.
    pub(crate) evals: Vec<EvalName>,
    pub(crate) save: u64,
}

/// A run that a save started, with its cells. A later save may cancel it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SaveRun {
    pub(crate) ticket: RunTicket,
    pub(crate) evals: Vec<EvalName>,
    pub(crate) decisions: Vec<String>,
}

/// The state of saves.
#[derive(Debug, Clone, Default)]
pub(crate) struct SavesState {
    pub(crate) number: u64,
    /// True if saves do not judge.
    pub(crate) paused: bool,
    /// True if the judges of a save fetch pages again instead of using recorded tool responses.
    pub(crate) refetch: bool,
    /// The number of saves while judging was off.
    pub(crate) unjudged_saves: u64,
    /// The number of the newest edit; 0 before the first edit of this session.
    pub(crate) edit: u64,
    /// The number of changes of the revision in this session.
    pub(crate) revision: u64,
    /// The time at which a run without judged cells records the revision, unless another run did.
    pub(crate) record_due: Option<Millis>,
    /// The newest edit, shown in the changes pane.
    pub(crate) report: Option<EditReport>,
    /// True if the user closed the changes pane. The next edit opens it.
    pub(crate) changes_closed: bool,
    /// The newest edit of the history, until its rows are known.
    pub(crate) recorded_edit: Option<Arc<RecordedEdit>>,
    /// The evals renamed in this session, oldest first.
    pub(crate) renames: Vec<EvalRename>,
    /// The errors of files that do not load; empty if all load.
    pub(crate) problems: Vec<Diagnostic>,
    pub(crate) pending_judging: Option<PendingJudging>,
    /// Runs of saves that a later save may cancel.
    pub(crate) save_runs: Vec<SaveRun>,
    /// The estimated cost in USD of the calls that saves made without a question, since the last answer.
    pub(crate) unasked_usd: f64,
    /// The cost estimate that was ordered.
    pub(crate) pending_estimate: Option<PendingEstimate>,
    pub(crate) scroll: ScrollState,
    /// The index of the selected flip.
    pub(crate) selected: usize,
    /// The permissions that the user has given since the workspace was opened.
    pub(crate) allowed: BTreeSet<Permission>,
    /// The changed files that the user did not allow, so they are not applied.
    pub(crate) refused_changes: Vec<PathBuf>,
    /// The time at which a save replaced an open question about a changed workspace by a different one.
    pub(crate) question_changed_at: Option<Millis>,
}

impl SavesState {
    /// Returns the time at which the waiting judging starts.
    pub(crate) fn next_wake(&self) -> Option<Millis> {
        let judging = self.pending_judging.as_ref().map(|waiting| waiting.due);
        judging.into_iter().chain(self.record_due).min()
    }
}

/// Shortens the name of a judge.
fn shorten_judge_name(judge: &str) -> String {
    // Enough for a common model name.
    const MOST: usize = 24;
    let judge = crate::model::make_visible(judge, false);
    match judge.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &judge[..at]),
        None => judge.into_owned(),
    }
}

/// Describes the cells that were not judged because of their cost: `12 cells of gemini wait for R: about $0.04`.
/// Cells are by judge.
pub(crate) fn describe_unjudged_cells(cells: &[(u64, &str)], usd: Option<f64>) -> String {
    let one = |(n, judge): &(u64, &str)| {
        format!("{} of {}", pluralize(*n, "cell"), shorten_judge_name(judge))
    };
    // The figures must stay visible, so many names are not listed.
    let parts = match cells {
        [_, _, _, ..] => {
            let sum: u64 = cells.iter().map(|(n, _)| n).sum();
            let judges = pluralize(cells.len() as u64, "judge");
            vec![format!("{} of {judges}", pluralize(sum, "cell"))]
        }
        few => few.iter().map(one).collect(),
    };
    // One cell takes the singular verb.
    let wait = match cells {
        [(1, _)] => "waits",
        _ => "wait",
    };
    let about = match usd {
        Some(usd) if usd < 0.01 => ": less than $0.01",
        Some(usd) => &format!(": about ${usd:.2}"),
        None => "",
    };
    format!("{} {wait} for R{about}", parts.join(" and "))
}

/// Describes the cells that were not judged before their number is known.
pub(crate) fn describe_costly_judges(judges: &[String], focused: bool) -> String {
    let names = match judges {
        [_, _, _, ..] => pluralize(judges.len() as u64, "judge"),
        few => few
            .iter()
            .map(|judge| shorten_judge_name(judge))
            .collect::<Vec<_>>()
            .join(" and "),
    };
    if focused {
        format!("only the focused cell is judged again: {names} may cost, R asks first")
    } else {
        format!("nothing is judged by itself: {names} may cost, R asks first")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unjudged_cells_show_cost_once_known() {
        let of = |n| [(n, "gemini")];
        for (summary, expected) in [
            (
                describe_unjudged_cells(&of(12), Some(0.04)),
                "12 cells of gemini wait for R: about $0.04",
            ),
            (
                describe_unjudged_cells(&of(2), Some(0.004)),
                "2 cells of gemini wait for R: less than $0.01",
            ),
            (
                describe_unjudged_cells(&of(1), None),
                "1 cell of gemini waits for R",
            ),
            (
                describe_unjudged_cells(&[(1, "gemini"), (3, "gpt")], Some(1.5)),
                "1 cell of gemini and 3 cells of gpt wait for R: about $1.50",
            ),
            (
                describe_unjudged_cells(&[(1, "a"), (3, "b"), (8, "c")], Some(1.5)),
                "12 cells of 3 judges wait for R: about $1.50",
            ),
            (
                describe_unjudged_cells(&[(2, &"long ".repeat(9))], None),
                "2 cells of long long long long long… wait for R",
            ),
        ] {
            assert_eq!(summary, expected);
        }
    }
}

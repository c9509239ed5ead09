//! The state of saves: the last valid workspace, errors, flips, and the judging that waits.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::cells::{CellsState, RowFlip};
use super::runs::RunTicket;
use crate::diag::{Diagnostic, LoadedFile};
use crate::model::{Millis, Outcome, pluralize};
use crate::theme::Glyphs;
use crate::tui::widget::flow::ScrollState;
use crate::workspace::Workspace;
use crate::workspace::trust::Permission;

/// The time that judges wait for another save.
pub(crate) const JUDGE_DEBOUNCE: Millis = Millis(300);
/// The time in which an editor may write a file in pieces. Evals that return within it belong to the same save.
pub(crate) const PARTIAL_WRITE_WINDOW: Millis = Millis(3000);

/// A changed file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EditedFile {
    pub(crate) path: PathBuf,
    /// The unified diff.
    pub(crate) diff: Arc<str>,
    pub(crate) change: FileChange,
}

/// The kind of a file's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChange {
    Saved,
    New,
    Deleted,
}

/// The changes that a save, or a run over the whole workspace, caused.
#[derive(Debug, Clone, Default)]
pub(crate) struct SaveReport {
    /// The time of the last save in the report.
    pub(crate) saved_at: Millis,
    /// The number of the save; 0 for a run without a save.
    pub(crate) number: u64,
    /// The number of the first save in the report.
    pub(crate) first_save: u64,
    /// The workspace that the report compares with.
    pub(crate) base: Option<Arc<Workspace>>,
    pub(crate) files: Vec<EditedFile>,
    /// The evals whose verdicts may change, as `rubric/eval`.
    pub(crate) touched_evals: Vec<String>,
    pub(crate) flips: Vec<RowFlip>,
    /// The number of decisions judged again so far.
    pub(crate) judged: u64,
    /// The number of these decisions without an earlier verdict.
    pub(crate) first_verdicts: u64,
    /// The judging that was left out and the reason: one line.
    pub(crate) not_judged: Option<String>,
    /// The runs whose tool responses the judges get instead of fetching pages.
    pub(crate) replayed_evidence: Option<String>,
    /// The result of the examples, if it is worth a word.
    pub(crate) examples: Option<String>,
    /// The runs of the save that have not ended.
    pub(crate) running_runs: Vec<RunTicket>,
    /// True if automatic judging was off.
    pub(crate) paused: bool,
    /// True if evals disappeared. They may return when the rest of the file is written.
    pub(crate) lost_evals: bool,
    /// True if a blind screen hides some flips.
    pub(crate) hides_flips: bool,
}

impl SaveReport {
    /// Returns true if the report includes this save.
    pub(crate) fn covers_save(&self, save: u64) -> bool {
        (self.first_save..=self.number).contains(&save)
    }

    /// Returns the report without the flips that a blind screen hides.
    pub(crate) fn without_hidden(&self, cells: &CellsState) -> Cow<'_, Self> {
        let is_hidden = |flip: &RowFlip| cells.row(flip.row).is_some_and(|row| row.hidden);
        if !self.flips.iter().any(is_hidden) {
            return Cow::Borrowed(self);
        }
        let mut visible = self.clone();
        visible.flips.retain(|flip| !is_hidden(flip));
        visible.hides_flips = true;
        Cow::Owned(visible)
    }

    /// Adds a flip. Two flips of one row are combined, and cancel out if the row has its old verdict again.
    pub(crate) fn add_flip(&mut self, flip: RowFlip) {
        let Some(at) = self.flips.iter().position(|known| known.row == flip.row) else {
            self.flips.push(flip);
            return;
        };
        let known = &mut self.flips[at];
        // The row has its old verdict again, so the two flips cancel out.
        if known.before.outcome == flip.after.outcome {
            self.flips.remove(at);
        } else {
            (known.after, known.agrees_with_label) = (flip.after, flip.agrees_with_label);
        }
    }
}

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

/// An eval, by the ids of its rubric and itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EvalName {
    pub(crate) rubric: String,
    pub(crate) eval: String,
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
    /// The newest report, shown in the changes pane.
    pub(crate) report: Option<SaveReport>,
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
    /// Evals whose decision settings changed. Their stale verdicts were not decided again and may hold again.
    pub(crate) redecided_evals: BTreeSet<EvalName>,
}

impl SavesState {
    /// Returns the time at which the waiting judging starts.
    pub(crate) fn next_wake(&self) -> Option<Millis> {
        self.pending_judging.as_ref().map(|waiting| waiting.due)
    }
}

/// Summarizes a report in one line, such as `saved beam.yaml: 2 flips, both towards your labels`.
pub(crate) fn summarize(report: &SaveReport) -> String {
    summarize_with_glyphs(report, &Glyphs::UNICODE)
}

/// Summarizes a report with the glyphs of a theme.
pub(crate) fn summarize_with_glyphs(report: &SaveReport, glyphs: &Glyphs) -> String {
    prepend_examples(report, summarize_verdicts(report, glyphs))
}

/// Summarizes a report for narrow places.
pub(crate) fn summarize_briefly(report: &SaveReport, glyphs: &Glyphs) -> String {
    prepend_examples(report, describe_changes(report, glyphs))
}

fn prepend_examples(report: &SaveReport, rest: String) -> String {
    match &report.examples {
        Some(examples) => format!("{examples}; {rest}"),
        None => rest,
    }
}

/// Summarizes the verdicts of a report without the examples.
pub(crate) fn summarize_verdicts(report: &SaveReport, glyphs: &Glyphs) -> String {
    let head = match report.files.as_slice() {
        // A run over the whole workspace has no files.
        [] => String::new(),
        [file] => {
            let how = match file.change {
                FileChange::Saved => "saved",
                FileChange::New => "new file",
                FileChange::Deleted => "deleted",
            };
            format!("{how} {}: ", format_file_name(&file.path))
        }
        [file, rest @ ..] => format!(
            "saved {} and {} more: ",
            format_file_name(&file.path),
            rest.len()
        ),
    };
    format!("{head}{}", describe_changes(report, glyphs))
}

fn format_file_name(path: &std::path::Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    crate::model::make_visible(&name.to_string_lossy(), false).into_owned()
}

/// Describes the changes without the file name, for narrow places.
pub(crate) fn describe_changes(report: &SaveReport, glyphs: &Glyphs) -> String {
    match (report.hides_flips, report.flips.is_empty()) {
        (true, true) => "what moved is hidden until you label it".to_owned(),
        (true, false) => format!("{}; more is hidden", describe_verdicts(report, glyphs)),
        (false, _) => describe_verdicts(report, glyphs),
    }
}

fn describe_verdicts(report: &SaveReport, glyphs: &Glyphs) -> String {
    let judging = !report.running_runs.is_empty();
    match report.flips.as_slice() {
        [] if report.paused => "auto is off, nothing judged again (A turns it on)".to_owned(),
        [] if judging => format!("no verdict moved yet ({} judged)", report.judged),
        // First verdicts can't flip, so the report does not claim that nothing moved.
        [] if report.judged > 0 && report.first_verdicts == report.judged => {
            format!(
                "{} judged for the first time",
                pluralize(report.judged, "cell")
            )
        }
        [] if report.judged > 0 => format!("no verdict moved ({} judged)", report.judged),
        // Evals were touched but no verdict is new, so the reason is shown.
        [] if !report.touched_evals.is_empty() => match &report.not_judged {
            Some(rest) => rest.clone(),
            None => "nothing judged yet".to_owned(),
        },
        [] => report.not_judged.clone().unwrap_or_else(|| {
            let why = if changes_tools(report) {
                "no verdict depends on what changed"
            } else {
                "only comments or layout changed"
            };
            format!("nothing to judge again: {why}")
        }),
        [flip] => {
            let sides = format!(
                "{}{}{}",
                outcome_glyph(flip.before.outcome, glyphs),
                glyphs.arrow,
                outcome_glyph(flip.after.outcome, glyphs)
            );
            let where_to = match flip.agrees_with_label {
                Some(true) => ", towards your label",
                Some(false) => ", away from your label",
                None => "",
            };
            format!("1 flip {sides}{where_to}")
        }
        flips => format!("{} flips{}", flips.len(), describe_directions(flips)),
    }
}

/// Describes the directions of several flips, as far as labels exist.
fn describe_directions(flips: &[RowFlip]) -> String {
    let count = |wanted: Option<bool>| {
        flips
            .iter()
            .filter(|f| f.agrees_with_label == wanted)
            .count()
    };
    let (towards, away, unknown) = (count(Some(true)), count(Some(false)), count(None));
    let all = |n: usize| match n {
        2 => "both".to_owned(),
        n => format!("all {n}"),
    };
    match (towards, away, unknown) {
        // Without labels no direction is known.
        (0, 0, _) => String::new(),
        (n, 0, 0) => format!(", {} towards your labels", all(n)),
        (0, n, 0) => format!(", {} away from your labels", all(n)),
        _ => {
            let mut parts = Vec::new();
            if towards > 0 {
                parts.push(format!("{towards} towards your labels"));
            }
            // A shorter phrase: `your labels` is already in the line.
            if away > 0 && towards > 0 {
                parts.push(format!("{away} away"));
            } else if away > 0 {
                parts.push(format!("{away} away from your labels"));
            }
            if unknown > 0 {
                parts.push(format!("{unknown} without a label"));
            }
            format!(": {}", parts.join(", "))
        }
    }
}

/// Returns the glyph of an outcome.
pub(crate) fn outcome_glyph(outcome: Outcome, glyphs: &Glyphs) -> &'static str {
    match outcome {
        Outcome::Pass => glyphs.pass,
        Outcome::Fail => glyphs.fail,
        Outcome::NotApplicable => glyphs.not_applicable,
        Outcome::Skipped => glyphs.skipped,
        _ => glyphs.error,
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

/// Returns true if a file of tools changed. Its sources may return other data although no verdict used them.
fn changes_tools(report: &SaveReport) -> bool {
    let base = report.base.as_ref();
    base.is_some_and(|base| contains_tool_file(&report.files, &base.tools.recorded_files))
}

fn contains_tool_file(files: &[EditedFile], tools: &[LoadedFile]) -> bool {
    let mut files = files.iter();
    // Recorded paths are absolute, changed paths are relative to the workspace.
    files.any(|file| tools.iter().any(|tool| tool.path.ends_with(&file.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::state::cells::{FlipSide, RowId};

    fn flip(after: Outcome, towards: Option<bool>) -> RowFlip {
        let side = |outcome| FlipSide {
            outcome,
            score: None,
            explanation: "".into(),
        };
        let before = if after == Outcome::Pass {
            Outcome::Fail
        } else {
            Outcome::Pass
        };
        RowFlip {
            row: RowId(0),
            before: side(before),
            after: side(after),
            agrees_with_label: towards,
        }
    }

    fn file(name: &str) -> EditedFile {
        EditedFile {
            path: name.into(),
            diff: "".into(),
            change: FileChange::Saved,
        }
    }

    fn summary(towards: &[Option<bool>]) -> String {
        summarize(&SaveReport {
            files: vec![file("rubrics/beam.yaml")],
            flips: towards.iter().map(|t| flip(Outcome::Pass, *t)).collect(),
            touched_evals: vec!["beam/x".into()],
            judged: 18,
            ..SaveReport::default()
        })
    }

    #[test]
    fn save_summary_lists_flips_and_their_direction() {
        let (yes, no) = (Some(true), Some(false));
        for (towards, expected) in [
            (&[][..], "no verdict moved (18 judged)"),
            (&[yes], "1 flip ✗→✓, towards your label"),
            (&[no], "1 flip ✗→✓, away from your label"),
            (&[None], "1 flip ✗→✓"),
            (&[yes, yes], "2 flips, both towards your labels"),
            (&[no, no, no], "3 flips, all 3 away from your labels"),
            (&[yes, yes, no], "3 flips: 2 towards your labels, 1 away"),
            (
                &[no, None],
                "2 flips: 1 away from your labels, 1 without a label",
            ),
            (&[None, None], "2 flips"),
        ] {
            assert_eq!(summary(towards), format!("saved beam.yaml: {expected}"));
        }
    }

    #[test]
    fn save_summary_explains_why_nothing_was_judged() {
        let comment = SaveReport {
            files: vec![file("a/x.yaml"), file("b.yaml")],
            ..SaveReport::default()
        };
        assert_eq!(
            summarize(&comment),
            "saved x.yaml and 1 more: nothing to judge again: only comments or layout changed"
        );
        let tools = [LoadedFile {
            path: PathBuf::from("b.yaml"),
            text: Arc::from(""),
        }];
        assert!(contains_tool_file(&comment.files, &tools));
        assert!(!contains_tool_file(&comment.files[..1], &tools));
        let paused = SaveReport {
            paused: true,
            touched_evals: vec!["x/y".into()],
            ..comment
        };
        assert!(
            summarize(&paused).ends_with(": auto is off, nothing judged again (A turns it on)")
        );
    }

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

    #[test]
    fn reverted_flip_is_removed() {
        let mut report = SaveReport::default();
        report.add_flip(flip(Outcome::Pass, Some(true)));
        assert_eq!(report.flips.len(), 1);
        report.add_flip(flip(Outcome::Fail, Some(false)));
        assert_eq!(report.flips, []);
    }
}

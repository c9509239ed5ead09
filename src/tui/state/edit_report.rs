//! The newest edit, which the changes pane shows: its diff and everything judged because of it.
//!
//! An edit begins with a save that changes what determines verdicts, and lasts until the next one. Saves of comments,
//! several runs, cancels and restarts belong to it. Responsible for its data and its words. Does not decide when an
//! edit begins: `update::edits` does.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::cells::{CellsState, DecidedRow, RowFlip, RowId};
use super::runs::RunTicket;
use crate::diag::LoadedFile;
use crate::model::{
    CellIx, CellName, Label, Millis, Outcome, RunId, ScoreBounds, make_visible, pluralize,
};
use crate::rubric::Rubric;
use crate::theme::Glyphs;
use crate::workspace::Workspace;

/// The reason why a judged edit of an earlier session lists no flips.
pub(crate) const NOTHING_MOVED: &str = "no verdict moved";

/// An eval, by the ids of its rubric and itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EvalName {
    pub(crate) rubric: String,
    pub(crate) eval: String,
}

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

/// A decision that the revision no longer plans.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemovedDecision {
    /// The name before the edit.
    pub(crate) name: CellName,
    /// The row, if this session knows it.
    pub(crate) row: Option<RowId>,
    /// The last outcome, if there is one.
    pub(crate) outcome: Option<Outcome>,
}

/// An eval that asks the same question under another name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EvalRename {
    pub(crate) from: EvalName,
    pub(crate) to: EvalName,
    /// The number of its verdicts.
    pub(crate) verdicts: u64,
}

impl EvalRename {
    /// Formats the names: `grounded → grounded-facts`, with the rubrics if they differ.
    pub(crate) fn format_names(&self, glyphs: &Glyphs) -> String {
        let (from, to) = (&self.from, &self.to);
        let show = |text: &str| make_visible(text, false).into_owned();
        if from.rubric == to.rubric {
            return format!("{} {} {}", show(&from.eval), glyphs.arrow, show(&to.eval));
        }
        format!(
            "{}/{} {} {}/{}",
            show(&from.rubric),
            show(&from.eval),
            glyphs.arrow,
            show(&to.rubric),
            show(&to.eval)
        )
    }

    /// Returns true if the label belongs to the eval under its old name.
    pub(crate) fn selects_label(&self, label: &Label, workspace: &Workspace) -> bool {
        let evals = |rubric: &Rubric| rubric.evals.iter().any(|eval| eval.id == self.from.eval);
        label.eval == self.from.eval
            && match &label.rubric {
                Some(rubric) => *rubric == self.from.rubric,
                // Without a rubric, the label belongs to any eval of that name.
                None => !workspace.rubrics.iter().any(|rubric| evals(rubric)),
            }
    }

    /// Describes the rename: `grounded → grounded-facts: 22 verdicts go along`.
    pub(crate) fn describe(&self, glyphs: &Glyphs) -> String {
        let go = if self.verdicts == 1 { "goes" } else { "go" };
        format!(
            "{}: {} {go} along",
            self.format_names(glyphs),
            pluralize(self.verdicts, "verdict")
        )
    }
}

/// Returns the renames whose labels still have the old name, with the numbers of these labels.
///
/// Each frame counts them, and a new id of a rubric renames all its evals. So labels are counted once, by name.
pub(crate) fn count_movable_labels(
    renames: &[EvalRename],
    workspace: &Workspace,
) -> Vec<(EvalRename, u64)> {
    if renames.is_empty() {
        return Vec::new();
    }
    let evals = workspace.rubrics.iter().flat_map(|rubric| {
        let evals = rubric.evals.iter();
        evals.map(move |eval| (rubric.id.as_str(), eval.id.as_str()))
    });
    let evals: HashSet<(&str, &str)> = evals.collect();
    let ids: HashSet<&str> = evals.iter().map(|(_, eval)| *eval).collect();
    let has = |name: &EvalName| evals.contains(&(&*name.rubric, &*name.eval));
    // A later save may bring the old name back, and its labels belong to it then.
    let renames = renames
        .iter()
        .filter(|rename| !has(&rename.from) && has(&rename.to));
    let wanted = renames.clone().map(|rename| rename.from.eval.as_str());
    let wanted: HashSet<&str> = wanted.collect();
    let mut labels: HashMap<(&str, Option<&str>), u64> = HashMap::new();
    for label in &workspace.labels {
        if wanted.contains(label.eval.as_str()) {
            let name = (label.eval.as_str(), label.rubric.as_deref());
            *labels.entry(name).or_default() += 1;
        }
    }
    let counted = renames.map(|rename| {
        let from = &rename.from;
        let with_rubric = labels.get(&(&*from.eval, Some(&*from.rubric)));
        // As `EvalRename::selects_label`: without a rubric, the label belongs to any eval of that name.
        let without_rubric = labels.get(&(&*from.eval, None));
        let without_rubric = without_rubric.filter(|_| !ids.contains(from.eval.as_str()));
        let many = with_rubric.into_iter().chain(without_rubric).sum::<u64>();
        (rename.clone(), many)
    });
    counted.filter(|(_, many)| *many > 0).collect()
}

/// The newest edit: its diff and everything judged because of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EditReport {
    /// The time of the last save in the report.
    pub(crate) saved_at: Millis,
    /// The number of the newest save; 0 if no save of this session belongs to the report.
    pub(crate) number: u64,
    /// The number of the first save in the report.
    pub(crate) first_save: u64,
    /// The number of the edit, which its runs carry.
    pub(crate) edit: u64,
    /// True if the report is an edit. Otherwise it describes a save or a run before the first edit.
    pub(crate) is_edit: bool,
    /// True if the edit is from an earlier session.
    pub(crate) is_restored: bool,
    /// The workspace before the edit. A restored edit has [`Self::base_texts`] instead.
    pub(crate) base: Option<Arc<Workspace>>,
    /// The texts of the files before a restored edit.
    pub(crate) base_texts: HashMap<PathBuf, Arc<str>>,
    /// The score bounds before the edit, by the evals' names now.
    pub(crate) base_bounds: HashMap<EvalName, ScoreBounds>,
    pub(crate) files: Vec<EditedFile>,
    /// The evals whose verdicts may change, as `rubric/eval`.
    pub(crate) touched_evals: IndexSet<String>,
    pub(crate) renames: Vec<EvalRename>,
    /// New evals that are probably removed ones, renamed and edited at once. No verdict goes along.
    pub(crate) replaced: Vec<EvalRename>,
    pub(crate) flips: Vec<RowFlip>,
    /// The decisions that the revision no longer plans.
    pub(crate) removed: Vec<RemovedDecision>,
    /// The number of different decisions that runs of the edit made so far, by judges and by code.
    pub(crate) judged: u64,
    /// These decisions.
    pub(crate) judged_rows: HashSet<RowId>,
    /// Those of them that were decided again from recorded verdicts, for example by another `min_score`.
    pub(crate) redecided_rows: HashSet<RowId>,
    /// Those of them that code decided without a judge.
    pub(crate) checked_rows: HashSet<RowId>,
    /// The decisions without an earlier verdict, with their newest outcomes.
    pub(crate) first_verdicts: IndexMap<RowId, Outcome>,
    /// The judging that was left out and the reason: one line.
    pub(crate) not_judged: Option<String>,
    /// The runs whose tool responses the judges get instead of fetching pages.
    pub(crate) replayed_evidence: Option<String>,
    /// The result of the examples, if it is worth a word.
    pub(crate) examples: Option<String>,
    /// The runs of the edit that have not ended.
    pub(crate) running_runs: Vec<RunTicket>,
    /// True if automatic judging was off.
    pub(crate) paused: bool,
    /// True if evals disappeared. They may return when the rest of the file is written.
    pub(crate) lost_evals: bool,
    /// True if a blind screen hides some flips.
    pub(crate) hides_flips: bool,
    /// True if a blind screen hides outcomes.
    pub(crate) hides_outcomes: bool,
}

/// The newest edit as the history has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedEdit {
    /// The edit without the parts that need rows.
    pub(crate) report: EditReport,
    pub(crate) flips: Vec<RecordedFlip>,
    /// The decisions without a verdict before the edit.
    pub(crate) first_verdicts: Vec<(CellName, Outcome)>,
    /// The recorded cells of each decision from before the edit of its question.
    pub(crate) cells_before: Vec<DecisionBefore>,
}

/// The recorded cells of a decision from before an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecisionBefore {
    pub(crate) name: CellName,
    /// The run and the number of each cell, in the order of judges and repeats.
    pub(crate) cells: Vec<(RunId, CellIx)>,
}

/// A flip as the history has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedFlip {
    pub(crate) name: CellName,
    pub(crate) before: super::cells::FlipSide,
    pub(crate) after: super::cells::FlipSide,
    pub(crate) arithmetic: Option<String>,
}

impl EditReport {
    /// Returns true if the report includes this save.
    pub(crate) fn covers_save(&self, save: u64) -> bool {
        (self.first_save..=self.number).contains(&save)
    }

    /// Returns true if the edit left verdicts to be judged, and nothing was judged since. The next edit continues it.
    pub(crate) fn waits_for_judging(&self) -> bool {
        self.is_edit && !self.touched_evals.is_empty() && self.judged == 0
    }

    /// Returns the number of entries in the pane's list: flips, then decisions that are no longer planned.
    pub(crate) fn count_entries(&self) -> usize {
        self.flips.len() + self.removed.len()
    }

    /// Returns the text of a file before the edit, without its secrets, if it is known.
    pub(crate) fn base_text(&self, path: &Path) -> Option<Arc<str>> {
        if let Some(base) = &self.base {
            return base.masked_text(path);
        }
        self.base_texts.get(path).cloned()
    }

    /// Returns the report without the flips and outcomes that a blind screen hides.
    pub(crate) fn without_hidden(&self, cells: &CellsState) -> Cow<'_, Self> {
        if !cells.blind {
            return Cow::Borrowed(self);
        }
        let is_hidden = |row: RowId| cells.row(row).is_some_and(|row| row.hidden);
        let mut visible = self.clone();
        visible.flips.retain(|flip| !is_hidden(flip.row));
        visible.hides_flips = visible.flips.len() < self.flips.len();
        visible.hides_outcomes = true;
        Cow::Owned(visible)
    }

    /// Adds a decision that a run made. A decision that is judged once counts as judged, also if it is decided again.
    pub(crate) fn add_decided(&mut self, one: DecidedRow) {
        let row = one.row;
        let is_new = self.judged_rows.insert(row);
        self.judged += u64::from(is_new);
        if one.is_check {
            self.checked_rows.insert(row);
        } else {
            self.checked_rows.remove(&row);
        }
        if !one.is_recorded {
            self.redecided_rows.remove(&row);
        } else if is_new {
            self.redecided_rows.insert(row);
        }
        if one.is_first || self.first_verdicts.contains_key(&row) {
            self.first_verdicts.insert(row, one.outcome);
        }
    }

    /// Counts the decisions: `6 judged, 3 checked by code, 30 decided again`.
    fn count_decisions(&self) -> String {
        let again = self.redecided_rows.len() as u64;
        let checked = self.checked_rows.difference(&self.redecided_rows).count() as u64;
        let judged = self.judged.saturating_sub(again + checked);
        if again + checked == 0 {
            return format!("{judged} judged");
        }
        let parts = [
            (judged, "judged"),
            (checked, "checked by code"),
            (again, "decided again"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, how)| format!("{count} {how}")).collect();
        parts.join(", ")
    }

    /// Adds a flip. Flips are in the order of the rows, however their cells end. Two flips of one row are combined, and
    /// cancel out if the row has its old verdict again.
    pub(crate) fn add_flip(&mut self, flip: RowFlip) {
        let at = match self
            .flips
            .binary_search_by_key(&flip.row, |known| known.row)
        {
            Ok(at) => at,
            Err(at) => {
                // An earlier run moved no verdict, and this flip contradicts its sentence.
                self.not_judged.take_if(|why| why == NOTHING_MOVED);
                return self.flips.insert(at, flip);
            }
        };
        let known = &mut self.flips[at];
        // The row has its old verdict again, so the two flips cancel out.
        if known.before.outcome == flip.after.outcome {
            self.flips.remove(at);
        } else {
            known.after = flip.after;
            known.agrees_with_label = flip.agrees_with_label;
            known.arithmetic = flip.arithmetic;
        }
    }
}

/// Summarizes a report in one line, such as `saved beam.yaml: 2 flips, both towards your labels`.
pub(crate) fn summarize(report: &EditReport) -> String {
    summarize_with_glyphs(report, &Glyphs::UNICODE)
}

/// Summarizes a report with the glyphs of a theme.
pub(crate) fn summarize_with_glyphs(report: &EditReport, glyphs: &Glyphs) -> String {
    prepend_examples(report, summarize_verdicts(report, glyphs))
}

/// Summarizes a report for narrow places.
pub(crate) fn summarize_briefly(report: &EditReport, glyphs: &Glyphs) -> String {
    prepend_examples(report, describe_changes(report, glyphs))
}

fn prepend_examples(report: &EditReport, rest: String) -> String {
    match &report.examples {
        Some(examples) => format!("{examples}; {rest}"),
        None => rest,
    }
}

/// Summarizes the verdicts of a report without the examples.
pub(crate) fn summarize_verdicts(report: &EditReport, glyphs: &Glyphs) -> String {
    let head = match report.files.as_slice() {
        // A run over the whole workspace has no files.
        [] => String::new(),
        files if report.is_restored => format!("the last edit, {}: ", name_files(files)),
        [file] => {
            let how = match file.change {
                FileChange::Saved => "saved",
                FileChange::New => "new file",
                FileChange::Deleted => "deleted",
            };
            format!("{how} {}: ", format_file_name(&file.path))
        }
        files => format!("saved {}: ", name_files(files)),
    };
    format!("{head}{}", describe_changes(report, glyphs))
}

fn name_files(files: &[EditedFile]) -> String {
    match files {
        [] => String::new(),
        [file] => format_file_name(&file.path),
        [file, rest @ ..] => format!("{} and {} more", format_file_name(&file.path), rest.len()),
    }
}

fn format_file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    make_visible(&name.to_string_lossy(), false).into_owned()
}

/// Describes the changes without the file name, for narrow places.
pub(crate) fn describe_changes(report: &EditReport, glyphs: &Glyphs) -> String {
    match (report.hides_flips, report.flips.is_empty()) {
        (true, true) => "what moved is hidden until you label it".to_owned(),
        (true, false) => format!("{}; more is hidden", describe_verdicts(report, glyphs)),
        (false, _) => describe_verdicts(report, glyphs),
    }
}

fn describe_verdicts(report: &EditReport, glyphs: &Glyphs) -> String {
    let judging = !report.running_runs.is_empty();
    match report.flips.as_slice() {
        [] if report.paused => "auto is off, nothing judged again (A turns it on)".to_owned(),
        // A run of other cells in this session does not change what the edit moved.
        [] if report.first_verdicts.is_empty()
            && report.not_judged.as_deref() == Some(NOTHING_MOVED) =>
        {
            NOTHING_MOVED.to_owned()
        }
        [] if judging => format!("no verdict moved yet ({})", report.count_decisions()),
        // First verdicts can't flip, so the report does not claim that nothing moved.
        [] if report.judged > 0 && report.first_verdicts.len() as u64 == report.judged => {
            describe_first_verdicts(report, glyphs).unwrap_or_default()
        }
        [] if report.judged > 0 => format!("no verdict moved ({})", report.count_decisions()),
        // Runs of an earlier session judged these, so this session counts none.
        [] if report.is_restored
            && report.not_judged.is_none()
            && !report.first_verdicts.is_empty() =>
        {
            describe_first_verdicts(report, glyphs).unwrap_or_default()
        }
        // Evals were touched but no verdict is new, so the reason is shown.
        [] if !report.touched_evals.is_empty() => match &report.not_judged {
            Some(rest) => rest.clone(),
            None => "nothing judged yet".to_owned(),
        },
        [] if !report.renames.is_empty() => describe_renames(report, glyphs),
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

/// Describes the decisions that had no verdict before: `22 cells decided for the first time: ✓ 14 ✗ 8`.
pub(crate) fn describe_first_verdicts(report: &EditReport, glyphs: &Glyphs) -> Option<String> {
    let first = &report.first_verdicts;
    if first.is_empty() {
        return None;
    }
    let mut text = format!(
        "{} decided for the first time",
        pluralize(first.len() as u64, "cell")
    );
    // The counts would reveal verdicts to a user who labels blind.
    if report.hides_outcomes {
        return Some(text);
    }
    let mut counts: BTreeMap<(u8, &str), u64> = BTreeMap::new();
    for outcome in first.values() {
        let rank = match outcome {
            Outcome::Pass => 0,
            Outcome::Fail => 1,
            Outcome::NotApplicable => 2,
            Outcome::Skipped => 3,
            _ => 4,
        };
        *counts
            .entry((rank, outcome_glyph(*outcome, glyphs)))
            .or_default() += 1;
    }
    let counts = counts.iter().map(|((_, mark), n)| format!("{mark} {n}"));
    text.push_str(": ");
    text.push_str(&counts.collect::<Vec<_>>().join(" "));
    Some(text)
}

/// Describes the decisions that the revision no longer plans, by eval: `13 cells are no longer planned: polite 13`.
pub(crate) fn describe_removed(report: &EditReport) -> Option<String> {
    if report.removed.is_empty() {
        return None;
    }
    let mut by_eval: IndexMap<&str, u64> = IndexMap::new();
    for removed in &report.removed {
        *by_eval.entry(removed.name.eval.as_str()).or_default() += 1;
    }
    let are = if report.removed.len() == 1 {
        "is"
    } else {
        "are"
    };
    let evals = by_eval
        .iter()
        .map(|(eval, n)| format!("{} {n}", make_visible(eval, false)));
    Some(format!(
        "{} {are} no longer planned: {}",
        pluralize(report.removed.len() as u64, "cell"),
        evals.collect::<Vec<_>>().join(", ")
    ))
}

/// Describes the renamed evals: `grounded → grounded-facts: 22 verdicts go along`.
pub(crate) fn describe_renames(report: &EditReport, glyphs: &Glyphs) -> String {
    let renames = report.renames.iter().map(|rename| rename.describe(glyphs));
    renames.collect::<Vec<_>>().join("; ")
}

/// Describes the evals that were probably renamed and edited at once: `facts is new: perhaps grounded, renamed and edited`.
pub(crate) fn describe_replaced(report: &EditReport) -> Option<String> {
    let show = |text: &str| make_visible(text, false).into_owned();
    let replaced = report.replaced.iter().map(|one| {
        let (from, to) = (show(&one.from.eval), show(&one.to.eval));
        format!("{to} is new: perhaps {from}, renamed and edited")
    });
    let replaced = replaced.collect::<Vec<_>>().join("; ");
    (!replaced.is_empty()).then_some(replaced)
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

/// Returns true if a file of tools changed. Its sources may return other data although no verdict used them.
fn changes_tools(report: &EditReport) -> bool {
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
            arithmetic: None,
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
        summarize(&EditReport {
            files: vec![file("rubrics/beam.yaml")],
            flips: towards.iter().map(|t| flip(Outcome::Pass, *t)).collect(),
            touched_evals: IndexSet::from(["beam/x".into()]),
            judged: 18,
            ..EditReport::default()
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
    fn decisions_count_by_who_decided_them() {
        let mut report = EditReport {
            touched_evals: IndexSet::from(["beam/x".into()]),
            ..EditReport::default()
        };
        let mut decide = |row: u32, is_check: bool, is_recorded: bool| {
            report.add_decided(DecidedRow {
                row: RowId(row),
                outcome: Outcome::Pass,
                is_first: false,
                is_check,
                is_recorded,
            });
            summarize(&report)
        };
        for (row, is_check, is_recorded, expected) in [
            (1, false, true, "1 decided again"),
            (2, false, false, "1 judged, 1 decided again"),
            (1, false, false, "2 judged"),
            (1, false, true, "2 judged"),
            (3, true, false, "2 judged, 1 checked by code"),
            (
                4,
                true,
                true,
                "2 judged, 1 checked by code, 1 decided again",
            ),
            // The eval asks a judge now.
            (3, false, false, "3 judged, 1 decided again"),
        ] {
            assert_eq!(
                decide(row, is_check, is_recorded),
                format!("no verdict moved ({expected})")
            );
        }
    }

    #[test]
    fn save_summary_explains_why_nothing_was_judged() {
        let comment = EditReport {
            files: vec![file("a/x.yaml"), file("b.yaml")],
            ..EditReport::default()
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
        let paused = EditReport {
            paused: true,
            touched_evals: IndexSet::from(["x/y".into()]),
            ..comment
        };
        assert!(
            summarize(&paused).ends_with(": auto is off, nothing judged again (A turns it on)")
        );
    }

    #[test]
    fn flips_are_in_the_order_of_the_rows_whichever_cell_ends_first() {
        let mut report = EditReport::default();
        for row in [3, 1, 2] {
            report.add_flip(RowFlip {
                row: RowId(row),
                ..flip(Outcome::Pass, None)
            });
        }
        let rows: Vec<u32> = report.flips.iter().map(|flip| flip.row.0).collect();
        assert_eq!(rows, [1, 2, 3]);
    }

    #[test]
    fn restored_edit_with_new_evals_counts_its_first_verdicts() {
        let report = EditReport {
            is_edit: true,
            is_restored: true,
            files: vec![file("rubrics/new.yaml")],
            first_verdicts: IndexMap::from([(RowId(1), Outcome::Pass), (RowId(2), Outcome::Fail)]),
            ..EditReport::default()
        };
        assert_eq!(
            summarize(&report),
            "the last edit, new.yaml: 2 cells decided for the first time: ✓ 1 ✗ 1"
        );
    }

    #[test]
    fn run_of_another_cell_keeps_the_sentence_of_a_restored_edit() {
        let mut report = EditReport {
            is_edit: true,
            is_restored: true,
            files: vec![file("rubrics/orders.yaml")],
            not_judged: Some(NOTHING_MOVED.to_owned()),
            ..EditReport::default()
        };
        let sentence = "the last edit, orders.yaml: no verdict moved";
        assert_eq!(summarize(&report), sentence);
        report.running_runs.push(RunTicket(1));
        assert_eq!(summarize(&report), sentence);
        report.running_runs.clear();
        report.add_decided(DecidedRow {
            row: RowId(1),
            outcome: Outcome::Pass,
            is_first: false,
            is_check: false,
            is_recorded: false,
        });
        assert_eq!(summarize(&report), sentence);
    }

    #[test]
    fn flip_replaces_the_sentence_that_nothing_moved() {
        let mut report = EditReport {
            not_judged: Some(NOTHING_MOVED.to_owned()),
            ..EditReport::default()
        };
        report.add_flip(flip(Outcome::Pass, None));
        assert_eq!(report.not_judged, None);
        let waits = Some("2 cells wait for R".to_owned());
        report.not_judged.clone_from(&waits);
        report.add_flip(RowFlip {
            row: RowId(7),
            ..flip(Outcome::Pass, None)
        });
        assert_eq!(report.not_judged, waits);
    }

    #[test]
    fn reverted_flip_is_removed() {
        let mut report = EditReport::default();
        report.add_flip(flip(Outcome::Pass, Some(true)));
        assert_eq!(report.flips.len(), 1);
        report.add_flip(flip(Outcome::Fail, Some(false)));
        assert_eq!(report.flips, []);
    }
}

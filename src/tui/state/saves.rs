//! What saving a file does: the last good state, what is broken, what flipped, what waits.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::cells::{CellsState, RowFlip};
use super::runs::RunTicket;
use crate::diag::Diagnostic;
use crate::model::{Millis, Outcome, pluralize};
use crate::theme::Glyphs;
use crate::tui::widget::flow::ScrollState;
use crate::workspace::Workspace;

/// How long judge cells wait for another save.
pub(crate) const JUDGE_DEBOUNCE: Millis = Millis(300);
/// A file may be written in pieces that load each: how long what one of them lost may come back in the same save.
pub(crate) const PARTIAL_WRITE_WINDOW: Millis = Millis(3000);

/// A file that changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EditedFile {
    pub(crate) path: PathBuf,
    /// Its unified diff.
    pub(crate) diff: Arc<str>,
    pub(crate) change: FileChange,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChange {
    Saved,
    New,
    Deleted,
}

/// What a save, or a run over everything, changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SaveReport {
    /// When it was saved last, of the writes it tells.
    pub(crate) saved_at: Millis,
    /// Which save; counts up. 0: a run that no save caused.
    pub(crate) number: u64,
    /// The first of the saves that it tells of as one.
    pub(crate) first_save: u64,
    /// What it is compared with.
    pub(crate) base: Option<Arc<Workspace>>,
    pub(crate) files: Vec<EditedFile>,
    /// Evals whose verdicts may change, as `rubric/eval`.
    pub(crate) touched_evals: Vec<String>,
    pub(crate) flips: Vec<RowFlip>,
    /// Decisions judged again so far.
    pub(crate) judged: u64,
    /// Of them, those that had no verdict before.
    pub(crate) first_verdicts: u64,
    /// What was not judged again and why: one line.
    pub(crate) not_judged: Option<String>,
    /// Whose pages judges are given instead of fetching them again.
    pub(crate) replayed_evidence: Option<String>,
    /// What became of examples, where that is worth a word.
    pub(crate) examples: Option<String>,
    /// Runs it caused, that have not ended.
    pub(crate) running_runs: Vec<RunTicket>,
    /// It came while saves judge nothing.
    pub(crate) paused: bool,
    /// Evals went away with it, perhaps only until the rest of the file is written.
    pub(crate) lost_evals: bool,
    /// Some flips are left out, because a blind screen hides them.
    pub(crate) hides_flips: bool,
}

impl SaveReport {
    /// Whether a save is among those it tells of.
    pub(crate) fn covers_save(&self, save: u64) -> bool {
        (self.first_save..=self.number).contains(&save)
    }

    /// Without what a blind screen hides.
    pub(crate) fn without_hidden(&self, cells: &CellsState) -> Cow<'_, Self> {
        let veiled = |flip: &RowFlip| cells.row(flip.row).is_some_and(|row| row.hidden);
        if !self.flips.iter().any(veiled) {
            return Cow::Borrowed(self);
        }
        let mut seen = self.clone();
        seen.flips.retain(|flip| !veiled(flip));
        seen.hides_flips = true;
        Cow::Owned(seen)
    }

    /// Adds a flip; what flips twice is told as one, and not at all where it came back to what it was.
    pub(crate) fn add_flip(&mut self, flip: RowFlip) {
        let Some(at) = self.flips.iter().position(|known| known.row == flip.row) else {
            self.flips.push(flip);
            return;
        };
        let known = &mut self.flips[at];
        if known.before.outcome == flip.after.outcome {
            self.flips.remove(at);
        } else {
            (known.after, known.agrees_with_label) = (flip.after, flip.agrees_with_label);
        }
    }
}

/// What the rest would take is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingEstimate {
    pub(crate) ticket: RunTicket,
    /// Judges that cost, of the evals that were touched.
    pub(crate) judges: Vec<String>,
}

/// Judge cells wait for quiet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingJudging {
    /// When they start, unless another save comes first.
    pub(crate) due: Millis,
    /// Exact decisions: the focused one of a judge that costs.
    pub(crate) decisions: Vec<String>,
    /// Whole evals, of free judges.
    pub(crate) evals: Vec<EvalName>,
    pub(crate) save: u64,
}

/// An eval, by its rubric's id and its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EvalName {
    pub(crate) rubric: String,
    pub(crate) eval: String,
}

/// A run that a save started, and what it is over: a later save may make it pointless.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SaveRun {
    pub(crate) ticket: RunTicket,
    pub(crate) evals: Vec<EvalName>,
    pub(crate) decisions: Vec<String>,
}

/// Everything about saves.
#[derive(Debug, Clone, Default)]
pub(crate) struct SavesState {
    pub(crate) number: u64,
    /// Whether a save judges again.
    pub(crate) paused: bool,
    /// Whether judges of a save fetch their pages again, instead of getting those they were given before.
    pub(crate) refetch: bool,
    /// Saves that came while paused.
    pub(crate) unjudged_saves: u64,
    /// The newest report, shown in the changes pane.
    pub(crate) report: Option<SaveReport>,
    /// What does not load; empty: all is well.
    pub(crate) problems: Vec<Diagnostic>,
    pub(crate) pending_judging: Option<PendingJudging>,
    /// Judge runs of saves that may still be superseded.
    pub(crate) save_runs: Vec<SaveRun>,
    /// What the rest would take, while it is worked out.
    pub(crate) pending_estimate: Option<PendingEstimate>,
    pub(crate) scroll: ScrollState,
    /// The selected flip.
    pub(crate) selected: usize,
    /// Evals of which what only decides changed: what was stale then was not decided anew, and may hold again.
    pub(crate) redecided_evals: BTreeSet<EvalName>,
}

impl SavesState {
    /// When something starts by itself.
    pub(crate) fn next_wake(&self) -> Option<Millis> {
        self.pending_judging.as_ref().map(|waiting| waiting.due)
    }
}

/// `saved beam.yaml: 2 flips, both towards your labels`, in one line.
pub(crate) fn summarize(report: &SaveReport) -> String {
    summarize_with_glyphs(report, &Glyphs::UNICODE)
}

/// The same, with a theme's marks.
pub(crate) fn summarize_with_glyphs(report: &SaveReport, glyphs: &Glyphs) -> String {
    prepend_examples(report, summarize_verdicts(report, glyphs))
}

/// The same for little room.
pub(crate) fn summarize_briefly(report: &SaveReport, glyphs: &Glyphs) -> String {
    prepend_examples(report, describe_changes(report, glyphs))
}

fn prepend_examples(report: &SaveReport, rest: String) -> String {
    match &report.examples {
        Some(examples) => format!("{examples}; {rest}"),
        None => rest,
    }
}

/// What a save moved, but for what became of examples.
pub(crate) fn summarize_verdicts(report: &SaveReport, glyphs: &Glyphs) -> String {
    let head = match report.files.as_slice() {
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

/// The same without the file, for little room: what moved.
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
        [] if report.judged > 0 && report.first_verdicts == report.judged => {
            format!(
                "{} judged for the first time",
                pluralize(report.judged, "cell")
            )
        }
        [] if report.judged > 0 => format!("no verdict moved ({} judged)", report.judged),
        [] if !report.touched_evals.is_empty() => match &report.not_judged {
            Some(rest) => rest.clone(),
            None => "nothing judged yet".to_owned(),
        },
        [] => report.not_judged.clone().unwrap_or_else(|| {
            let why = if changes_tools(report) {
                "no verdict stands on what changed"
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

/// Where several flips went, as far as labels say.
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
        (0, 0, _) => String::new(),
        (n, 0, 0) => format!(", {} towards your labels", all(n)),
        (0, n, 0) => format!(", {} away from your labels", all(n)),
        _ => {
            let mut parts = Vec::new();
            if towards > 0 {
                parts.push(format!("{towards} towards your labels"));
            }
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

/// The mark of an outcome.
pub(crate) fn outcome_glyph(outcome: Outcome, glyphs: &Glyphs) -> &'static str {
    match outcome {
        Outcome::Pass => glyphs.pass,
        Outcome::Fail => glyphs.fail,
        Outcome::NotApplicable => glyphs.not_applicable,
        Outcome::Skipped => glyphs.skipped,
        _ => glyphs.error,
    }
}

/// A judge's name where there is little room.
fn shorten_judge_name(judge: &str) -> String {
    const MOST: usize = 24;
    let judge = crate::model::make_visible(judge, false);
    match judge.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &judge[..at]),
        None => judge.into_owned(),
    }
}

/// What was left out because it costs: `12 cells of gemini wait for R: about $0.04`. Cells by judge.
pub(crate) fn describe_unjudged_cells(cells: &[(u64, &str)], usd: Option<f64>) -> String {
    let one = |(n, judge): &(u64, &str)| {
        format!("{} of {}", pluralize(*n, "cell"), shorten_judge_name(judge))
    };
    // Of many judges the figures count: they must not be pushed off the row by names.
    let of = match cells {
        [_, _, _, ..] => {
            let sum: u64 = cells.iter().map(|(n, _)| n).sum();
            let judges = pluralize(cells.len() as u64, "judge");
            vec![format!("{} of {judges}", pluralize(sum, "cell"))]
        }
        few => few.iter().map(one).collect(),
    };
    let wait = match cells {
        [(1, _)] => "waits",
        _ => "wait",
    };
    let about = match usd {
        Some(usd) if usd < 0.01 => ": less than $0.01",
        Some(usd) => &format!(": about ${usd:.2}"),
        None => "",
    };
    format!("{} {wait} for R{about}", of.join(" and "))
}

/// The same before it is known how much that is.
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

/// Whether a file of tools is among them: what its sources do may have changed though no verdict used them.
fn changes_tools(report: &SaveReport) -> bool {
    let base = report.base.as_ref();
    base.is_some_and(|base| contains_tool_file(&report.files, &base.tools.recorded_files))
}

fn contains_tool_file(files: &[EditedFile], tools: &[(PathBuf, Arc<str>)]) -> bool {
    let mut files = files.iter();
    files.any(|file| tools.iter().any(|(path, _)| path.ends_with(&file.path)))
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

    fn said(towards: &[Option<bool>]) -> String {
        summarize(&SaveReport {
            files: vec![file("rubrics/beam.yaml")],
            flips: towards.iter().map(|t| flip(Outcome::Pass, *t)).collect(),
            touched_evals: vec!["beam/x".into()],
            judged: 18,
            ..SaveReport::default()
        })
    }

    #[test]
    fn a_save_says_what_moved_and_whether_it_is_progress() {
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
            assert_eq!(said(towards), format!("saved beam.yaml: {expected}"));
        }
    }

    #[test]
    fn a_save_that_judges_nothing_says_why() {
        let comment = SaveReport {
            files: vec![file("a/x.yaml"), file("b.yaml")],
            ..SaveReport::default()
        };
        assert_eq!(
            summarize(&comment),
            "saved x.yaml and 1 more: nothing to judge again: only comments or layout changed"
        );
        let tools = [(PathBuf::from("b.yaml"), Arc::from(""))];
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
    fn what_the_rest_would_take_is_told_with_a_figure_once_it_is_known() {
        let of = |n| [(n, "gemini")];
        for (said, expected) in [
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
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn what_flips_back_is_no_flip() {
        let mut report = SaveReport::default();
        report.add_flip(flip(Outcome::Pass, Some(true)));
        assert_eq!(report.flips.len(), 1);
        report.add_flip(flip(Outcome::Fail, Some(false)));
        assert_eq!(report.flips, []);
    }
}

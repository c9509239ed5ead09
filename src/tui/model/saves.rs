//! What saving a file does: the last good state, what is broken, what flipped, what waits.

use std::path::PathBuf;
use std::sync::Arc;

use super::cells::Flip;
use super::runs::Ticket;
use crate::diag::Diagnostic;
use crate::model::{Millis, Outcome, counted};
use crate::theme::Glyphs;
use crate::tui::widget::flow::Scroll;

/// How long judge cells wait for another save.
pub(crate) const JUDGE_QUIET: Millis = Millis(300);

/// What a save, or a run over everything, changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// Which save; counts up. 0: a run that no save caused.
    pub(crate) number: u64,
    pub(crate) at: Millis,
    /// Files that changed, with their unified diffs.
    pub(crate) files: Vec<(PathBuf, Arc<str>)>,
    /// Evals whose verdicts may change, as `rubric/eval`.
    pub(crate) touched: Vec<String>,
    pub(crate) flips: Vec<Flip>,
    /// Decisions judged again so far.
    pub(crate) judged: u64,
    /// What was not judged again and why: one line.
    pub(crate) rest: Option<String>,
    /// Runs it caused, that have not ended.
    pub(crate) running: Vec<Ticket>,
    /// It came while saves judge nothing.
    pub(crate) paused: bool,
}

/// Judge cells wait for quiet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    /// When they start, unless another save comes first.
    pub(crate) due: Millis,
    /// Exact decisions: the focused one of a judge that costs.
    pub(crate) names: Vec<String>,
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
pub(crate) struct Caused {
    pub(crate) ticket: Ticket,
    pub(crate) evals: Vec<EvalName>,
    pub(crate) names: Vec<String>,
}

/// Everything about saves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Saves {
    pub(crate) number: u64,
    /// Whether a save judges again.
    pub(crate) paused: bool,
    /// Saves that came while paused.
    pub(crate) missed: u64,
    /// The newest report, shown in the changes pane.
    pub(crate) report: Option<Report>,
    /// What does not load; empty: all is well.
    pub(crate) problems: Vec<Diagnostic>,
    pub(crate) waiting: Option<Waiting>,
    /// Judge runs of saves that may still be superseded.
    pub(crate) caused: Vec<Caused>,
    /// What the rest would take was asked under this ticket.
    pub(crate) figure: Option<Ticket>,
    /// How many cells of which judge the rest is.
    pub(crate) left: Option<(u64, String)>,
    pub(crate) scroll: Scroll,
    /// The selected flip.
    pub(crate) selected: usize,
}

impl Saves {
    /// When something starts by itself.
    pub(crate) fn next_wake(&self) -> Option<Millis> {
        self.waiting.as_ref().map(|waiting| waiting.due)
    }
}

/// `saved beam.yaml: 2 flips, both towards your labels`, in one line.
pub(crate) fn summary(report: &Report) -> String {
    summary_with(report, &Glyphs::UNICODE)
}

/// The same, with a theme's marks.
pub(crate) fn summary_with(report: &Report, glyphs: &Glyphs) -> String {
    let head = match report.files.as_slice() {
        [] => String::new(),
        [(path, _)] => format!("saved {}: ", file_name(path)),
        [(path, _), rest @ ..] => format!("saved {} and {} more: ", file_name(path), rest.len()),
    };
    format!("{head}{}", moved(report, glyphs))
}

fn file_name(path: &std::path::Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    crate::model::visible(&name.to_string_lossy(), false).into_owned()
}

fn moved(report: &Report, glyphs: &Glyphs) -> String {
    let judging = !report.running.is_empty();
    match report.flips.as_slice() {
        [] if report.paused => "auto is off, nothing judged again (A turns it on)".to_owned(),
        [] if judging => format!("no verdict moved yet ({} judged)", report.judged),
        [] if report.judged > 0 => format!("no verdict moved ({} judged)", report.judged),
        [] if !report.touched.is_empty() => match &report.rest {
            Some(rest) => rest.clone(),
            None => "nothing judged yet".to_owned(),
        },
        [] => report.rest.clone().unwrap_or_else(|| {
            "nothing to judge again: only comments or layout changed".to_owned()
        }),
        [flip] => {
            let sides = format!(
                "{}{}{}",
                mark(flip.before.outcome, glyphs),
                glyphs.arrow,
                mark(flip.after.outcome, glyphs)
            );
            let where_to = match flip.towards {
                Some(true) => ", towards your label",
                Some(false) => ", away from your label",
                None => "",
            };
            format!("1 flip {sides}{where_to}")
        }
        flips => format!("{} flips{}", flips.len(), directions(flips)),
    }
}

/// Where several flips went, as far as labels say.
fn directions(flips: &[Flip]) -> String {
    let count = |wanted: Option<bool>| flips.iter().filter(|f| f.towards == wanted).count();
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
pub(crate) fn mark(outcome: Outcome, glyphs: &Glyphs) -> &'static str {
    match outcome {
        Outcome::Pass => glyphs.pass,
        Outcome::Fail => glyphs.fail,
        Outcome::NotApplicable => glyphs.not_applicable,
        Outcome::Skipped => glyphs.skipped,
        _ => glyphs.error,
    }
}

/// What was left out because it costs: `12 more cells of gemini are stale: R judges them, about $0.04`.
pub(crate) fn rest(cells: u64, judge: &str, usd: Option<f64>) -> String {
    let (are, them) = if cells == 1 {
        ("is", "it")
    } else {
        ("are", "them")
    };
    let judge = crate::model::visible(judge, false);
    let cells = counted(cells, "more cell");
    let about = match usd {
        Some(usd) if usd < 0.01 => ", less than $0.01".to_owned(),
        Some(usd) => format!(", about ${usd:.2}"),
        None => String::new(),
    };
    format!("{cells} of {judge} {are} stale: R judges {them}{about}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::cells::{RowId, Side};

    fn flip(after: Outcome, towards: Option<bool>) -> Flip {
        let side = |outcome| Side {
            outcome,
            score: None,
            why: "".into(),
        };
        let before = if after == Outcome::Pass {
            Outcome::Fail
        } else {
            Outcome::Pass
        };
        Flip {
            row: RowId(0),
            before: side(before),
            after: side(after),
            towards,
        }
    }

    fn said(towards: &[Option<bool>]) -> String {
        summary(&Report {
            files: vec![("rubrics/beam.yaml".into(), "".into())],
            flips: towards.iter().map(|t| flip(Outcome::Pass, *t)).collect(),
            touched: vec!["beam/x".into()],
            judged: 18,
            ..Report::default()
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
        let file = |name: &str| (PathBuf::from(name), Arc::from(""));
        let comment = Report {
            files: vec![file("a/x.yaml"), file("b.yaml")],
            ..Report::default()
        };
        assert_eq!(
            summary(&comment),
            "saved x.yaml and 1 more: nothing to judge again: only comments or layout changed"
        );
        let paused = Report {
            paused: true,
            touched: vec!["x/y".into()],
            ..comment
        };
        assert!(summary(&paused).ends_with(": auto is off, nothing judged again (A turns it on)"));
    }

    #[test]
    fn what_the_rest_would_take_is_told_with_a_figure_once_it_is_known() {
        assert_eq!(
            rest(12, "gemini", Some(0.04)),
            "12 more cells of gemini are stale: R judges them, about $0.04"
        );
        assert_eq!(
            rest(1, "gemini", None),
            "1 more cell of gemini is stale: R judges it"
        );
    }
}

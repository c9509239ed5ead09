//! What saving a file does: the last good state, what is broken, what flipped, what waits.

use std::path::PathBuf;
use std::sync::Arc;

use super::cells::Flip;
use super::runs::Ticket;
use crate::diag::Diagnostic;
use crate::model::Millis;
use crate::tui::widget::flow::Scroll;

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
}

/// Judge cells wait for quiet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    /// When they start, unless another save comes first.
    pub(crate) due: Millis,
    /// Which decisions.
    pub(crate) names: Vec<String>,
    pub(crate) save: u64,
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
    pub(crate) scroll: Scroll,
    /// The selected flip.
    pub(crate) selected: usize,
}

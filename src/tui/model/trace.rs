//! The four panes of a trace: which cell, which turn, how far each is scrolled.

use std::path::PathBuf;
use std::sync::Arc;

use super::cells::RowId;
use crate::event::{CellState, RunHeader};
use crate::model::{CellIx, RunId};
use crate::tui::widget::flow::Scroll;

/// A cell read from a recording.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
    pub(crate) header: RunHeader,
    pub(crate) state: CellState,
    pub(crate) dir: PathBuf,
}

/// What the panes show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    /// The focused row.
    pub(crate) row: Option<RowId>,
    /// Which of its cells (judges, repeats).
    pub(crate) slot: u16,
    /// The recording, for a cell that no run in memory holds.
    pub(crate) recorded: Loaded,
    /// Which step of the strip.
    pub(crate) step: StepAt,
    /// Which citation was gone to last.
    pub(crate) citation: Option<usize>,
    /// The raw form, instead of the readable one.
    pub(crate) raw: bool,
    pub(crate) prompt: Scroll,
    pub(crate) call: Scroll,
    pub(crate) fetched: Scroll,
    pub(crate) verdict: Scroll,
}

/// A recording that is read when it is looked at.
#[derive(Debug, Clone, Default)]
pub(crate) enum Loaded {
    /// Not needed.
    #[default]
    Not,
    /// Being read.
    Reading(RunId, CellIx),
    /// Here.
    Here(Arc<Recorded>),
    /// Cannot be read.
    Failed(String),
}

/// Which step of a trace is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StepAt {
    /// The newest, going with the judge.
    #[default]
    Newest,
    /// This one of the strip.
    At(usize),
}

/// A step of the strip: a turn, or one tool call of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A model call.
    Turn(usize),
    /// A tool call: which turn, which of its calls.
    Call(usize, usize),
}

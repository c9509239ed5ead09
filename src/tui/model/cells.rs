//! The cells pane: every decision, where it stands, and which are shown in which order.
//!
//! Owns rows and their selection. Fed by the same facts from three sources: the outline of what a run would decide, the
//! board of past runs, and live or replayed runs. Refuses to hold traces: a row says where its trace stands.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{CellKey, RunHeader};
use crate::model::{CellIx, CellName, CellResult, Decision, Digest, Outcome, RunId, TranscriptRef};
use crate::record::Board;
use crate::tui::widget::list::List;

/// A decision: a row of the pane. Dense and stable while a desk lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowId(pub(crate) u32);

/// A cell: which row, and which of its slots.
pub(crate) type SlotAt = (RowId, u16);

/// What a run's numbers mean here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Our eval, by the header's.
    pub(crate) evals: Vec<u32>,
    /// Our judge, by the header's.
    pub(crate) judges: Vec<u32>,
}

/// An eval, as known from the newest header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EvalInfo {
    pub(crate) rubric: String,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) digest: Digest,
    pub(crate) judged: bool,
}

/// One cell of a decision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    /// Position in [`Cells::judges`], for judge cells.
    pub(crate) judge: Option<u32>,
    pub(crate) repeat: Option<u32>,
    /// The run its newest state is from, and its number there. The run is a position in [`Cells::runs`].
    pub(crate) at: Option<(u32, CellIx)>,
    /// The run whose trace stands behind it, where the result was taken from a past run.
    pub(crate) cached: Option<RunId>,
    pub(crate) state: SlotState,
}

/// Where a cell stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SlotState {
    /// Never run.
    Never,
    /// Planned or judged right now; the phase stands in the run's state.
    Live,
    /// Has a result.
    Done {
        outcome: Outcome,
        score: Option<f64>,
        why: Arc<str>,
    },
}

/// Why a verdict may not hold any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stale {
    /// The eval changed since.
    Eval,
    /// The judge changed since.
    Judge,
    /// The transcript changed since.
    Transcript,
}

/// What a decision was before it flipped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Side {
    pub(crate) outcome: Outcome,
    pub(crate) score: Option<f64>,
    pub(crate) why: Arc<str>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Position in [`Cells::transcripts`].
    pub(crate) transcript: u32,
    /// Position in [`Cells::evals`].
    pub(crate) eval: u32,
    pub(crate) message: Option<u32>,
    pub(crate) slots: Vec<Slot>,
    /// The vote; `None` until all planned cells have results.
    pub(crate) decision: Option<Decision>,
    /// The newest verdict: what a new one is compared with.
    pub(crate) verdict: Option<Side>,
    pub(crate) stale: Option<Stale>,
    /// What it was before, where the newest verdict is another.
    pub(crate) flipped: Option<Side>,
    /// The human's verdict.
    pub(crate) label: Option<bool>,
}

/// How the rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    /// Flips, failures and errors first, within an eval.
    #[default]
    ProblemsFirst,
    /// As the files list them.
    FileOrder,
}

/// A line of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Entry {
    /// A rubric × eval, by position in [`Cells::evals`].
    Group(u32),
    /// A decision.
    Row(RowId),
}

/// Everything the pane knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cells {
    pub(crate) evals: Vec<EvalInfo>,
    pub(crate) judges: Vec<(String, Digest)>,
    pub(crate) transcripts: Vec<TranscriptRef>,
    pub(crate) runs: Vec<RunId>,
    pub(crate) rows: Vec<Row>,
    /// What is shown, in order: filtered, sorted, closed groups without their rows.
    pub(crate) shown: Vec<Entry>,
    pub(crate) list: List<Entry>,
    pub(crate) sort: Sort,
    /// As typed; empty: everything.
    pub(crate) filter: String,
    /// Whether the outline is complete.
    pub(crate) complete: bool,
    index: HashMap<(u32, u32, Option<u32>), RowId>,
}

/// A verdict that arrived and is another than the one before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flip {
    pub(crate) row: RowId,
    pub(crate) before: Side,
    pub(crate) after: Side,
    /// Whether it moved to the human's label; `None` without one.
    pub(crate) towards: Option<bool>,
}

impl Cells {
    /// Learns a header's evals and judges (the newest digests win if `current`), and says which of ours they are.
    pub(crate) fn meet(&mut self, _header: &RunHeader, _current: bool) -> Names {
        Names::default()
    }

    /// Learns a transcript's cells; the places of the keys, in order.
    pub(crate) fn plan(
        &mut self,
        _names: &Names,
        _transcript: &TranscriptRef,
        _keys: &[CellKey],
    ) -> Vec<Option<SlotAt>> {
        Vec::new()
    }

    /// Lays the board under what is known: rows that no live run has touched take its results, stale where digests differ.
    pub(crate) fn lay(&mut self, _board: &Board) {}

    /// A live cell began anew: its slot is live.
    pub(crate) fn began(&mut self, _at: SlotAt, _run: &RunId, _cell: CellIx) {}

    /// A cell ended. The flip, where its decision is complete and another verdict than before.
    pub(crate) fn ended(
        &mut self,
        _at: SlotAt,
        _run: &RunId,
        _cell: CellIx,
        _result: &CellResult,
    ) -> Option<Flip> {
        None
    }

    /// Works out [`Cells::shown`] anew, keeping the selection; cheap enough for every batch of events (skipped if nothing moved).
    pub(crate) fn settle(&mut self) {}

    /// The name of a row's decision: without judge and repeat.
    pub(crate) fn name(&self, _row: RowId) -> Option<CellName> {
        None
    }

    /// The row of a decision's name.
    pub(crate) fn row_of(&self, _name: &CellName) -> Option<RowId> {
        None
    }

    /// The row under the cursor.
    pub(crate) fn selected(&self) -> Option<RowId> {
        match self.list.selected {
            Some(Entry::Row(row)) => Some(row),
            _ => None,
        }
    }

    /// A row.
    pub(crate) fn row(&self, row: RowId) -> Option<&Row> {
        self.rows.get(row.0 as usize)
    }
}

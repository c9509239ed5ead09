//! The plan of a recorded run: the names and keys of its cells, without their traces.
//!
//! Responsible for the part of the fold that maps cell numbers to cells. Does not keep results: callers collect the
//! results that they need. [`crate::event::RunState`] is the fold that keeps everything.

use crate::event::{CellKey, EvalSpec, EventKind, JudgeSpec, RubricSpec, RunEvent, RunHeader};
use crate::model::{CellIx, CellName, TranscriptRef};

/// The header and the plan of a run, as far as its events were applied. Needs the events `run_started` and
/// `cells_planned`.
#[derive(Debug, Default)]
pub struct RecordedPlan {
    /// The header, if `run_started` was applied.
    pub header: Option<Box<RunHeader>>,
    /// The planned ranges, by first cell, ascending and without overlap.
    ranges: Vec<PlannedRange>,
}

/// The consecutive cells of one `cells_planned` event.
#[derive(Debug)]
pub struct PlannedRange {
    /// The number of the first cell.
    pub first: CellIx,
    /// The transcript of all cells.
    pub transcript: TranscriptRef,
    /// The cells, in the order of their numbers.
    pub keys: Vec<CellKey>,
}

/// One cell of the plan.
#[derive(Debug, Clone, Copy)]
pub struct PlannedCell<'p> {
    header: &'p RunHeader,
    /// The transcript that the cell judges.
    pub transcript: &'p TranscriptRef,
    key: &'p CellKey,
}

impl RecordedPlan {
    /// Applies the next event. Events that plan nothing have no effect.
    pub fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::RunStarted(header) => self.header = Some(header.clone()),
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } if self.is_in_order(*first) => self.ranges.push(PlannedRange {
                first: *first,
                transcript: transcript.clone(),
                keys: keys.clone(),
            }),
            _ => {}
        }
    }

    /// Reports whether `first` is after all planned cells. [`crate::event::RunState`] ignores the same plans.
    fn is_in_order(&self, first: CellIx) -> bool {
        let last = self.ranges.last();
        last.is_none_or(|last| last.end() <= u64::from(first.0))
    }

    /// Returns the cell with this number, if the header is known and the cell is planned.
    pub fn cell(&self, cell: CellIx) -> Option<PlannedCell<'_>> {
        // The ranges ascend, so the last range that begins at or before the cell is the only candidate.
        let after = self.ranges.partition_point(|range| range.first <= cell);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        let key = range.keys.get(cell.index() - range.first.index())?;
        Some(PlannedCell {
            header: self.header.as_deref()?,
            transcript: &range.transcript,
            key,
        })
    }

    /// Returns the planned ranges, in the order of their cells. A transcript with further repeats has several ranges.
    pub fn into_ranges(self) -> Vec<PlannedRange> {
        self.ranges
    }
}

impl PlannedRange {
    fn end(&self) -> u64 {
        u64::from(self.first.0) + self.keys.len() as u64
    }
}

impl<'p> PlannedCell<'p> {
    /// Returns the cell's name, if the header describes its eval and judge.
    pub fn name(self) -> Option<CellName> {
        Some(self.header.cell_name(self.transcript, self.key)?.to_owned())
    }

    /// Returns the cell's eval, if the header describes it.
    pub fn eval(self) -> Option<&'p EvalSpec> {
        self.header.evals.get(self.key.eval as usize)
    }

    /// Returns the rubric of the cell's eval, if the header describes it.
    pub fn rubric(self) -> Option<&'p RubricSpec> {
        self.header.rubrics.get(self.eval()?.rubric as usize)
    }

    /// Returns the cell's judge; `None` for a cell without a judge.
    pub fn judge(self) -> Option<&'p JudgeSpec> {
        self.header.judges.get(self.key.judge? as usize)
    }
}

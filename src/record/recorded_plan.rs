//! What a run's cell numbers stand for, kept small: for readers that need names and no traces.

use crate::event::{CellKey, EvalSpec, EventKind, JudgeSpec, RunEvent, RunHeader};
use crate::model::{CellIx, CellName, TranscriptRef};

/// The header and the plan of a run, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct RecordedPlan {
    pub(super) header: Option<Box<RunHeader>>,
    /// By first cell, ascending and without overlap.
    ranges: Vec<PlannedRange>,
}

#[derive(Debug)]
struct PlannedRange {
    first: CellIx,
    transcript: TranscriptRef,
    keys: Vec<CellKey>,
}

/// One cell of the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedCell<'p> {
    header: &'p RunHeader,
    pub(super) transcript: &'p TranscriptRef,
    key: &'p CellKey,
}

impl RecordedPlan {
    /// Takes what it needs of the next event.
    pub(super) fn apply(&mut self, event: &RunEvent) {
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

    /// As in the fold: a plan that goes back over planned cells is none.
    fn is_in_order(&self, first: CellIx) -> bool {
        let last = self.ranges.last();
        last.is_none_or(|last| last.end() <= u64::from(first.0))
    }

    /// What a cell is.
    pub(super) fn cell(&self, cell: CellIx) -> Option<PlannedCell<'_>> {
        let after = self.ranges.partition_point(|place| place.first <= cell);
        let place = self.ranges.get(after.checked_sub(1)?)?;
        let key = place.keys.get(cell.index() - place.first.index())?;
        Some(PlannedCell {
            header: self.header.as_deref()?,
            transcript: &place.transcript,
            key,
        })
    }
}

impl PlannedRange {
    fn end(&self) -> u64 {
        u64::from(self.first.0) + self.keys.len() as u64
    }
}

impl<'p> PlannedCell<'p> {
    pub(super) fn name(self) -> Option<CellName> {
        Some(self.header.cell_name(self.transcript, self.key)?.to_owned())
    }

    pub(super) fn eval(self) -> Option<&'p EvalSpec> {
        self.header.evals.get(self.key.eval as usize)
    }

    pub(super) fn judge(self) -> Option<&'p JudgeSpec> {
        self.header.judges.get(self.key.judge? as usize)
    }
}

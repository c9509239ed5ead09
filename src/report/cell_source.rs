//! The recordings from which exports of a state read results and judge traces.
//!
//! Responsible for reading only the requested cells. Does not format them.

use std::collections::{HashMap, HashSet};

use crate::event::{CellState, EventKind, RunState};
use crate::model::{CellIx, CellResult, Digest};
use crate::record::{History, RecordedCell, RecordedRun};
use crate::report::judge_trace::QuotePlaces;

/// The recordings of a state's cells.
pub trait CellSource {
    /// Reads the full results of cells. Cells that no log has are absent.
    fn read_results(&self, cells: Vec<RecordedCell>) -> HashMap<RecordedCell, CellResult>;

    /// Returns the run with this number, see [`RecordedCell::run`]; `None` for cells without a recording.
    fn find_run(&self, number: u32) -> Option<&RecordedRun>;

    /// Returns the traces of those cells of a run whose verdicts it reused, from the runs that judged them.
    fn find_reused_traces(
        &self,
        _run: &RecordedRun,
        _cells: &HashSet<CellIx>,
    ) -> HashMap<CellIx, JudgedTrace> {
        HashMap::new()
    }

    /// Returns where quotes of a verdict occur that their sources lack.
    fn find_quotes(&self, _trace: &JudgedTrace) -> QuotePlaces {
        QuotePlaces::new()
    }
}

/// A judge trace, and the run that has it.
#[derive(Debug)]
pub struct JudgedTrace {
    /// The run.
    pub run: RecordedRun,
    /// The cell with its trace.
    pub cell: CellState,
    /// The digest of the transcript; `None` if the plan of the cell is lost.
    pub transcript: Option<Digest>,
}

impl CellSource for History {
    fn read_results(&self, cells: Vec<RecordedCell>) -> HashMap<RecordedCell, CellResult> {
        History::read_results(self, cells)
    }

    fn find_run(&self, number: u32) -> Option<&RecordedRun> {
        self.runs().get(number as usize)
    }
}

/// Reads the states of some cells of a run, with their judge traces. The other cells take no memory for traces. Cells of
/// an unreadable log are absent.
pub(super) fn read_cells(
    run: &RecordedRun,
    wanted: &HashSet<CellIx>,
    source: &dyn CellSource,
) -> HashMap<CellIx, JudgedTrace> {
    let mut state = RunState::default();
    let read = run.for_each_event(|event| {
        let is_wanted = match &event.kind {
            EventKind::RunStarted(_) | EventKind::CellsPlanned { .. } => true,
            EventKind::CellsSettled(settled) => {
                settled.iter().any(|one| wanted.contains(&one.cell))
            }
            kind => kind.cell().is_some_and(|cell| wanted.contains(&cell)),
        };
        if is_wanted {
            state.apply(event);
        }
    });
    // The part before a damaged place is still worth reading, so an error only ends the reading.
    drop(read);
    let is_reused = |number: &CellIx| {
        let cell = state.cells.get(number.index());
        let result = cell.and_then(|cell| cell.result.as_deref());
        result.is_some_and(|result| result.cached.is_some())
    };
    let reused: HashSet<CellIx> = wanted.iter().copied().filter(is_reused).collect();
    let mut traces = if reused.is_empty() {
        HashMap::new()
    } else {
        source.find_reused_traces(run, &reused)
    };
    let cells = state.cells.into_iter().zip(0..);
    for (cell, number) in cells.map(|(cell, number)| (cell, CellIx(number))) {
        if wanted.contains(&number) {
            let planned = cell.planned.map(|planned| planned.transcript as usize);
            let transcript = planned.and_then(|at| state.transcripts.get(at));
            traces.entry(number).or_insert(JudgedTrace {
                run: run.clone(),
                cell,
                transcript: transcript.map(|known| known.source.digest.clone()),
            });
        }
    }
    traces
}

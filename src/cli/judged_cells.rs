//! The judge traces of reused verdicts: they are in the run that judged, which may be several runs away.
//!
//! Responsible for finding the same question in an older run. Reads each older run once, so many cells cost as much as
//! one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{CellKey, CellState, LastEvent, RunHeader, RunState};
use crate::model::{CellIx, CellName, Digest, RunId};
use crate::record::{FinalState, RecordedRun, RunStore};

/// The largest number of runs through which dicta follows a reused verdict. A changed recording could name itself.
pub(super) const MAX_REUSES: usize = 16;

/// The identity of the question of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CellIdentity {
    transcript: Digest,
    eval: Digest,
    judge: Option<Digest>,
    message: Option<u32>,
    repeat: Option<u32>,
}

/// A reused verdict: the run that it came from, and its question.
struct ReusedVerdict {
    from: RunId,
    identity: CellIdentity,
    /// If the same question occurs twice, the name decides.
    name: Option<CellName>,
}

/// An older run, with the cells of each question.
struct OlderRun {
    run: RecordedRun,
    header: Arc<RunHeader>,
    recorded: FinalState,
    cells: HashMap<CellIdentity, Vec<CellIx>>,
}

/// A judged cell, in the run that has its trace.
pub(super) struct JudgedCell {
    pub(super) run: RecordedRun,
    pub(super) header: Arc<RunHeader>,
    pub(super) name: Option<CellName>,
    pub(super) trace: CellState,
    /// The digest of the transcript.
    pub(super) transcript: Option<Digest>,
    /// The last event of the run.
    pub(super) last: Option<LastEvent>,
}

/// The cells through which a verdict was reused.
#[derive(Debug, Default)]
pub(super) struct ReusedFrom {
    /// The runs and their cells, the newest first.
    pub(super) cells: Vec<(RunId, CellIx)>,
    /// The run that the store no longer has.
    pub(super) missing: Option<RunId>,
}

/// The runs that judged reused verdicts, as far as they were read.
pub(super) struct JudgedCells<'s> {
    store: &'s RunStore,
    older: HashMap<RunId, Option<OlderRun>>,
}

impl<'s> JudgedCells<'s> {
    /// Creates an empty cache.
    pub(super) fn new(store: &'s RunStore) -> Self {
        Self {
            store,
            older: HashMap::new(),
        }
    }

    /// Returns the cell that was judged; `None` if the verdict is not reused, or the run that judged it is gone.
    pub(super) fn find(&mut self, state: &RunState, cell: CellIx) -> Option<JudgedCell> {
        let ReusedFrom { cells, .. } = self.follow(state, cell);
        let (id, at) = cells.into_iter().next_back()?;
        let older = self.older.get_mut(&id)?.as_mut()?;
        older.recorded.load_trace(at).ok()?;
        let identity = identify(&older.recorded.state, at);
        Some(JudgedCell {
            transcript: identity.map(|identity| identity.transcript),
            run: older.run.clone(),
            header: Arc::clone(&older.header),
            name: older.recorded.state.cell_name(at),
            trace: older.recorded.state.cells.get(at.index())?.clone(),
            last: older.recorded.state.last,
        })
    }

    /// Returns the cells through which a verdict was reused, the newest first.
    pub(super) fn follow(&mut self, state: &RunState, cell: CellIx) -> ReusedFrom {
        let mut found = ReusedFrom::default();
        let mut next = find_reused(state, cell);
        for _ in 0..MAX_REUSES {
            let Some(reused) = next.take() else { break };
            let Some(older) = self.open(&reused.from) else {
                found.missing = Some(reused.from);
                break;
            };
            let Some(at) = older.find_cell(&reused) else {
                break;
            };
            next = find_reused(&older.recorded.state, at);
            found.cells.push((reused.from, at));
        }
        found
    }

    /// Returns an older run that was read.
    pub(super) fn run(&self, id: &RunId) -> Option<&RecordedRun> {
        let older = self.older.get(id)?.as_ref();
        older.map(|older| &older.run)
    }

    fn open(&mut self, id: &RunId) -> Option<&OlderRun> {
        let store = self.store;
        let older = self.older.entry(id.clone());
        older.or_insert_with(|| OlderRun::read(store, id)).as_ref()
    }
}

impl OlderRun {
    fn read(store: &RunStore, id: &RunId) -> Option<Self> {
        let run = store.resolve(&id.0).ok()?;
        let recorded = run.read_final_state().ok()?;
        let state = &recorded.state;
        let mut cells: HashMap<CellIdentity, Vec<CellIx>> = HashMap::new();
        for cell in (0..u32::try_from(state.cells.len()).ok()?).map(CellIx) {
            if let Some(identity) = identify(state, cell) {
                cells.entry(identity).or_default().push(cell);
            }
        }
        Some(Self {
            run,
            header: Arc::new(state.header.as_deref()?.clone()),
            recorded,
            cells,
        })
    }

    fn find_cell(&self, reused: &ReusedVerdict) -> Option<CellIx> {
        let same = self.cells.get(&reused.identity)?;
        let has_name = |cell: &&CellIx| self.recorded.state.cell_name(**cell) == reused.name;
        same.iter().find(has_name).or(same.first()).copied()
    }
}

/// Returns the run that a reused verdict came from, with its state and the cell of the same question; `None` if the
/// verdict is not reused, or that run is gone.
pub(super) fn find_judged_cell(
    store: &RunStore,
    state: &RunState,
    cell: CellIx,
) -> Option<(RecordedRun, RunState, CellIx)> {
    let reused = find_reused(state, cell)?;
    let older = OlderRun::read(store, &reused.from)?;
    let at = older.find_cell(&reused)?;
    Some((older.run, older.recorded.into_cell_state(at).ok()?, at))
}

fn find_reused(state: &RunState, cell: CellIx) -> Option<ReusedVerdict> {
    let result = state.cells.get(cell.index())?.result.as_deref()?;
    Some(ReusedVerdict {
        from: result.cached.clone()?,
        identity: identify(state, cell)?,
        name: state.cell_name(cell),
    })
}

fn identify(state: &RunState, cell: CellIx) -> Option<CellIdentity> {
    let planned = state.cells.get(cell.index())?.planned?;
    let header = state.header.as_deref()?;
    let CellKey {
        eval,
        message,
        judge,
        repeat,
    } = planned.key;
    let judge = judge.and_then(|judge| header.judges.get(judge as usize));
    Some(CellIdentity {
        transcript: state
            .transcripts
            .get(planned.transcript as usize)?
            .source
            .digest
            .clone(),
        eval: header.evals.get(eval as usize)?.digest.clone(),
        judge: judge.map(|judge| judge.digest.clone()),
        message,
        repeat,
    })
}

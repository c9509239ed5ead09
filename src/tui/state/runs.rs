//! Runs that feed the screen: live ones, and the one that is replayed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use indexmap::IndexMap;

use super::cells::{RunIndexMap, SlotId};
use crate::event::{CellPhase, EventKind, RunEvent, RunState};
use crate::model::{CellIx, Cost, Millis, RunId, pluralize};

/// Names a run before it has an id; counts up over the program's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RunTicket(pub(crate) u64);

/// Ended runs that are kept in memory; older ones are read from disk again when they are looked at.
const MAX_ENDED_RUNS: usize = 8;
/// So many cells they may hold together, the newest run aside.
const MAX_ENDED_CELLS: usize = 200_000;
/// Judged cells after which the time left is worth telling.
const MIN_JUDGED_FOR_RATE: u64 = 3;

/// A run on the screen.
#[derive(Debug, Default)]
pub(crate) struct TrackedRun {
    pub(crate) id: Option<RunId>,
    /// Its folder, for blobs.
    pub(crate) dir: Option<PathBuf>,
    /// The fold of its events.
    pub(crate) state: RunState,
    /// What its numbers mean.
    pub(crate) index_map: RunIndexMap,
    /// By cell number.
    pub(crate) cell_slots: Vec<Option<SlotId>>,
    /// The save it belongs to, by the save's number.
    pub(crate) save_number: Option<u64>,
    pub(crate) stage: RunStage,
    /// Cells with a result.
    pub(crate) finished_cells: u64,
    /// Decisions that are complete.
    pub(crate) decided_count: u64,
    /// Of them, those without a verdict before.
    pub(crate) first_verdicts: u64,
    /// It is over everything.
    pub(crate) covers_everything: bool,
    /// The model's time at which the run's own began.
    pub(crate) began_at: Option<Millis>,
    /// Cells that a judge began in this run.
    pub(crate) judge_started: u64,
    /// Cells that a judge decided in this run, and when the first of them began.
    pub(crate) judged: u64,
    pub(crate) judging_since: Option<Millis>,
    /// Cells whose judge waits for another attempt.
    pub(crate) backing_off: BTreeSet<CellIx>,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum RunStage {
    /// Ordered, nothing heard yet.
    #[default]
    Requested,
    /// Events come.
    Running,
    /// Asked to end.
    Cancelling,
    /// Ended; why not well, if not.
    Ended(Option<String>),
}

/// The runs of a desk.
#[derive(Debug, Default)]
pub(crate) struct TrackedRuns {
    pub(crate) by_ticket: IndexMap<RunTicket, TrackedRun>,
}

impl TrackedRun {
    /// Folds an event, and counts what it brought.
    pub(crate) fn apply_event(&mut self, event: &RunEvent) {
        self.state.apply(event);
        match &event.kind {
            EventKind::CellsSettled(settled) => {
                self.finished_cells += settled.len() as u64;
            }
            EventKind::CellStarted { .. } => {
                self.judge_started += 1;
                self.judging_since.get_or_insert(event.at);
            }
            EventKind::CellFinished { .. } => {
                self.judged += 1;
                self.finished_cells += 1;
            }
            _ => {}
        }
        if let Some(cell) = event.kind.cell() {
            let phase = self.state.cells.get(cell.index()).map(|cell| cell.phase);
            if matches!(phase, Some(CellPhase::BackingOff { .. })) {
                self.backing_off.insert(cell);
            } else {
                self.backing_off.remove(&cell);
            }
        }
    }

    /// Whether it has not ended.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.stage, RunStage::Ended(_))
    }

    /// Cells that judges work on right now.
    pub(crate) fn live_traces(&self) -> u64 {
        self.judge_started.saturating_sub(self.judged)
    }

    /// Whether all that is left to see is a countdown: every judge at work waits for another attempt.
    pub(crate) fn is_only_backing_off(&self) -> bool {
        self.is_live()
            && self.live_traces() > 0
            && self.backing_off.len() as u64 == self.live_traces()
    }

    /// Cells planned so far.
    pub(crate) fn planned_cells(&self) -> u64 {
        self.state.cells.len() as u64
    }

    /// The run's own time at a moment of the model.
    pub(crate) fn run_time(&self, now: Millis) -> Millis {
        let last = self.state.last.map_or(Millis(0), |last| last.at);
        match self.began_at {
            Some(origin) if self.is_live() => now.since(origin).max(last),
            _ => last,
        }
    }

    /// Judged cells a second, once there are enough to tell.
    pub(crate) fn rate(&self, now: Millis) -> Option<f64> {
        let took = self.run_time(now).since(self.judging_since?);
        (self.judged >= MIN_JUDGED_FOR_RATE && took.0 > 0)
            .then(|| self.judged as f64 * 1000.0 / took.0 as f64)
    }

    /// About how long it still takes; `None` while nothing can be said.
    pub(crate) fn eta(&self, now: Millis) -> Option<Millis> {
        let rest = self.planned_cells().saturating_sub(self.finished_cells);
        if rest == 0 || !self.is_live() {
            return None;
        }
        Some(Millis::from_secs_f64(rest as f64 / self.rate(now)?))
    }

    /// Whether a model call was made, so that ending it throws something away.
    pub(crate) fn has_called_model(&self) -> bool {
        self.state
            .cells
            .iter()
            .any(|cell| !cell.judge_trace.is_empty())
    }
}

impl TrackedRuns {
    /// Runs that have not ended.
    pub(crate) fn live(&self) -> impl Iterator<Item = (RunTicket, &TrackedRun)> {
        self.by_ticket
            .iter()
            .filter(|(_, run)| run.is_live())
            .map(|(ticket, run)| (*ticket, run))
    }

    /// The run of an id, if it is held in memory.
    pub(crate) fn find(&self, id: &RunId) -> Option<&TrackedRun> {
        self.by_ticket
            .values()
            .find(|run| run.id.as_ref() == Some(id))
    }

    /// Drops the oldest ended runs beyond those that are kept, but none that is looked at.
    pub(crate) fn drop_oldest(&mut self, looked_at: impl Fn(&RunId) -> bool) {
        let ended = |run: &TrackedRun| !run.is_live();
        let mut many = self.by_ticket.values().filter(|run| ended(run)).count();
        let mut cells: usize = self
            .by_ticket
            .values()
            .map(|run| run.state.cells.len())
            .sum();
        self.by_ticket.retain(|_, run| {
            let fits = many <= MAX_ENDED_RUNS && (cells <= MAX_ENDED_CELLS || many <= 1);
            let kept = fits || !ended(run) || run.id.as_ref().is_some_and(&looked_at);
            if !kept {
                many -= 1;
                cells -= run.state.cells.len();
            }
            kept
        });
    }

    /// The newest run that has begun: what a child run names as its parent.
    pub(crate) fn newest(&self) -> Option<&RunId> {
        self.by_ticket
            .values()
            .rev()
            .find_map(|run| run.id.as_ref())
    }
}

/// What is known of a sum, and how much is not; `None`: nothing was asked that costs.
pub(crate) fn format_bill(bill: Cost) -> Option<String> {
    let calls = pluralize(bill.unknown, "call");
    match (bill.usd > 0.0, bill.unknown > 0) {
        (false, false) => None,
        (false, true) => Some(format!("cost unknown for {calls}")),
        (true, false) => Some(format_usd(bill.usd)),
        (true, true) => Some(format!("{} + unknown for {calls}", format_usd(bill.usd))),
    }
}

/// An amount of money: `$0.12`, `$0.0031`, `$0`.
pub(crate) fn format_usd(amount: f64) -> String {
    if amount == 0.0 {
        "$0".to_owned()
    } else if amount < 0.1 {
        format!("${amount:.4}")
    } else {
        format!("${amount:.2}")
    }
}

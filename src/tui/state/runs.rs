//! The runs of a session: live ones, or the replayed one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use indexmap::IndexMap;

use super::cells::{RunIndexMap, SlotId};
use crate::event::{
    CellPhase, CellState, EventKind, GatePoint, RunEvent, RunState, ThrottleReason,
};
use crate::judge::PausedAt;
use crate::model::{CellIx, Cost, Millis, RunId, format_usd, pluralize};

/// Identifies a run before it has an id. Tickets increase while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RunTicket(pub(crate) u64);

/// The maximum number of ended runs in memory. Older runs are read from disk when they are shown.
const MAX_ENDED_RUNS: usize = 8;
/// The maximum number of cells in these runs, without the newest run.
const MAX_ENDED_CELLS: usize = 200_000;
/// The number of judged cells after which an estimate of the remaining time is useful.
const MIN_JUDGED_FOR_RATE: u64 = 3;

/// A run of a session.
#[derive(Debug, Default)]
pub(crate) struct TrackedRun {
    pub(crate) id: Option<RunId>,
    /// The run's folder, which contains its blobs.
    pub(crate) dir: Option<PathBuf>,
    /// True if the traces of finished cells are not in memory, because the recording is large.
    pub(crate) traces_on_disk: bool,
    /// The state: the fold of the events.
    pub(crate) state: RunState,
    /// The header's indexes, mapped to those of the cells.
    pub(crate) index_map: RunIndexMap,
    /// The slot of each cell, by number.
    pub(crate) cell_slots: Vec<Option<SlotId>>,
    /// The number of the save that caused the run.
    pub(crate) save_number: Option<u64>,
    /// The number of the edit at the start of the run; `None` for a second opinion, which decides nothing.
    pub(crate) edit: Option<u64>,
    /// The number of changes of the revision at the start of the run; `None` for a second opinion.
    pub(crate) revision: Option<u64>,
    /// True if the run judges nothing and only records the revision.
    pub(crate) only_records: bool,
    /// True if the run measures noise, and decides nothing.
    pub(crate) measures_noise: bool,
    pub(crate) stage: RunStage,
    /// The number of cells that the screen ordered; 0 if it is unknown.
    pub(crate) ordered_cells: u64,
    /// The number of cells with a result.
    pub(crate) finished_cells: u64,
    /// The number of complete decisions.
    pub(crate) decided_count: u64,
    /// True if the run covers the whole workspace.
    pub(crate) covers_everything: bool,
    /// True if the workbench started the run because it opened the workspace.
    pub(crate) started_on_open: bool,
    /// A sentence about the cells that this run leaves to the user. Its end repeats the sentence, because such a run is short.
    pub(crate) left_out: Option<String>,
    /// The app's time at the start of the run.
    pub(crate) began_at: Option<Millis>,
    /// The number of cells that a judge started in this run.
    pub(crate) judge_started: u64,
    /// The number of cells that a judge decided in this run, and the start of the first of them.
    pub(crate) judged: u64,
    pub(crate) judging_since: Option<Millis>,
    /// The cells whose judge waits for a retry.
    pub(crate) backing_off: BTreeSet<CellIx>,
    /// The cells that a limit of the server, or of requests or tokens, holds back.
    pub(crate) held: BTreeSet<CellIx>,
    /// The cells whose trace is paused.
    pub(crate) paused: BTreeSet<CellIx>,
    /// The paused traces that wait for a decision.
    pub(crate) pauses: BTreeMap<CellIx, TracePause>,
    /// The traces whose last decision was to step.
    pub(crate) stepping: BTreeSet<CellIx>,
}

/// The thing at which a trace is paused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TracePause {
    pub(crate) point: GatePoint,
    pub(crate) at: PausedAt,
    /// The edited text that dicta could not use.
    pub(crate) draft: Option<String>,
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum RunStage {
    /// Ordered; no event arrived yet.
    #[default]
    Requested,
    /// Events arrive.
    Running,
    /// Being cancelled.
    Cancelling,
    /// Ended, with its problem if it failed.
    Ended(Option<String>),
}

/// All runs of a session.
#[derive(Debug, Default)]
pub(crate) struct TrackedRuns {
    pub(crate) by_ticket: IndexMap<RunTicket, TrackedRun>,
}

/// The cells of one judge that a rate limit holds back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RateLimitWait {
    pub(crate) cells: u64,
    /// The longest rest of a wait.
    pub(crate) longest: Millis,
}

/// Returns true if the last attempt of a cell ended with the status 429 (too many requests).
fn is_rate_limited(cell: &CellState) -> bool {
    let attempt = cell
        .judge_trace
        .last()
        .and_then(|turn| turn.attempts.values().last());
    let failure = attempt.and_then(|attempt| attempt.failed.as_ref());
    failure.is_some_and(|failure| failure.status == Some(429))
}

impl TrackedRun {
    /// Folds an event and updates the counters.
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
            EventKind::CellFinished { cell, .. } => {
                self.judged += 1;
                self.finished_cells += 1;
                self.pauses.remove(cell);
                self.stepping.remove(cell);
            }
            _ => {}
        }
        // A cell in back-off ends it with any other event.
        if let Some(cell) = event.kind.cell() {
            let phase = self.state.cells.get(cell.index()).map(|cell| cell.phase);
            if matches!(phase, Some(CellPhase::BackingOff { .. })) {
                self.backing_off.insert(cell);
            } else {
                self.backing_off.remove(&cell);
            }
            if matches!(phase, Some(CellPhase::Paused(_))) {
                self.paused.insert(cell);
            } else {
                self.paused.remove(&cell);
            }
            // Waiting for a free place is normal and no limit of a server.
            if matches!(phase, Some(CellPhase::Held { by, .. }) if by != ThrottleReason::Concurrency)
            {
                self.held.insert(cell);
            } else {
                self.held.remove(&cell);
            }
        }
    }

    /// Returns true if the run has not ended.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.stage, RunStage::Ended(_))
    }

    /// Returns the number of cells that judges work on.
    pub(crate) fn live_traces(&self) -> u64 {
        self.judge_started.saturating_sub(self.judged)
    }

    /// Returns true if all working judges wait for a retry, so that only a countdown changes.
    pub(crate) fn is_only_backing_off(&self) -> bool {
        self.is_live()
            && self.live_traces() > 0
            && self.backing_off.len() as u64 == self.live_traces()
    }

    /// Returns the judges that a limit holds back, each with the number of waiting cells and the longest wait.
    pub(crate) fn rate_limits(&self, now: Millis) -> BTreeMap<&str, RateLimitWait> {
        let mut waits: BTreeMap<&str, RateLimitWait> = BTreeMap::new();
        let Some(header) = self.state.header.as_deref().filter(|_| self.is_live()) else {
            return waits;
        };
        for cell in self.held.iter().chain(&self.backing_off) {
            let Some(cell) = self.state.cells.get(cell.index()) else {
                continue;
            };
            let until = match cell.phase {
                CellPhase::Held { until, .. } => until,
                // Other failures are retried too, but they are no rate limit.
                CellPhase::BackingOff { until } if is_rate_limited(cell) => Some(until),
                _ => continue,
            };
            let judge = cell.planned.and_then(|planned| planned.key.judge);
            let Some(judge) = judge.and_then(|judge| header.judges.get(judge as usize)) else {
                continue;
            };
            let wait = waits.entry(judge.config.name.as_str()).or_default();
            wait.cells += 1;
            let rest = until.map_or(Millis(0), |until| until.since(now));
            wait.longest = wait.longest.max(rest);
        }
        waits
    }

    /// Returns the number of cells planned so far.
    pub(crate) fn planned_cells(&self) -> u64 {
        self.state.cells.len() as u64
    }

    /// Returns the number of all cells. A live run plans the cells of a transcript when it reads it, so it has more cells
    /// than those planned so far.
    pub(crate) fn total_cells(&self) -> u64 {
        let planned = self.planned_cells();
        if self.is_live() {
            planned.max(self.ordered_cells)
        } else {
            planned
        }
    }

    /// Converts the app's time to the run's time.
    pub(crate) fn run_time(&self, now: Millis) -> Millis {
        let last = self.state.last.map_or(Millis(0), |last| last.at);
        match self.began_at {
            // The run's own clock may be ahead of the screen's after the last event.
            Some(origin) if self.is_live() => now.since(origin).max(last),
            // An ended run has no current time.
            _ => last,
        }
    }

    /// Returns the judged cells per second, once enough cells are judged.
    pub(crate) fn rate(&self, now: Millis) -> Option<f64> {
        let took = self.run_time(now).since(self.judging_since?);
        // The first judgments include the start of servers, so a rate from them would be wrong.
        (self.judged >= MIN_JUDGED_FOR_RATE && took.0 > 0)
            .then(|| self.judged as f64 * 1000.0 / took.0 as f64)
    }

    /// Returns an estimate of the remaining time; `None` if there is too little data.
    pub(crate) fn eta(&self, now: Millis) -> Option<Millis> {
        let planned = self.planned_cells();
        let rest = planned.saturating_sub(self.finished_cells);
        // Of the cells that are not planned yet, it is unknown how many need a judge.
        if rest == 0 || !self.is_live() || planned < self.total_cells() {
            return None;
        }
        Some(Millis::from_secs_f64(rest as f64 / self.rate(now)?))
    }

    /// Returns true if the run called a model, so that cancelling it wastes money.
    pub(crate) fn has_called_model(&self) -> bool {
        self.state
            .cells
            .iter()
            .flat_map(|cell| &cell.judge_trace)
            // A request at a pause is not sent yet.
            .any(|turn| !turn.unsent)
    }
}

impl TrackedRuns {
    /// Returns the runs that have not ended.
    pub(crate) fn live(&self) -> impl Iterator<Item = (RunTicket, &TrackedRun)> {
        self.by_ticket
            .iter()
            .filter(|(_, run)| run.is_live())
            .map(|(ticket, run)| (*ticket, run))
    }

    /// Returns the run with this id, if it is in memory.
    pub(crate) fn find(&self, id: &RunId) -> Option<&TrackedRun> {
        self.by_ticket
            .values()
            .find(|run| run.id.as_ref() == Some(id))
    }

    /// Drops the oldest ended runs above the limits, except those that the screen shows.
    pub(crate) fn drop_oldest(&mut self, looked_at: impl Fn(&RunId) -> bool) {
        let ended = |run: &TrackedRun| !run.is_live();
        let mut many = self.by_ticket.values().filter(|run| ended(run)).count();
        let mut cells: usize = self
            .by_ticket
            .values()
            .map(|run| run.state.cells.len())
            .sum();
        self.by_ticket.retain(|_, run| {
            // The newest ended run stays, even if it has too many cells.
            let fits = many <= MAX_ENDED_RUNS && (cells <= MAX_ENDED_CELLS || many <= 1);
            // A run that the screen shows must not disappear under the user.
            let kept = fits || !ended(run) || run.id.as_ref().is_some_and(&looked_at);
            if !kept {
                many -= 1;
                cells -= run.state.cells.len();
            }
            kept
        });
    }

    /// Returns the newest run that started, which a child run names as its parent.
    pub(crate) fn newest(&self) -> Option<&RunId> {
        self.by_ticket
            .values()
            .rev()
            .find_map(|run| run.id.as_ref())
    }
}

/// Formats a cost and its unknown part; `None` if nothing was called that costs money.
pub(crate) fn format_bill(bill: Cost) -> Option<String> {
    let calls = pluralize(bill.unknown, "call");
    match (bill.usd > 0.0, bill.unknown > 0) {
        (false, false) => None,
        (false, true) => Some(format!("cost unknown for {calls}")),
        (true, false) => Some(format_usd(bill.usd)),
        (true, true) => Some(format!("{} + unknown for {calls}", format_usd(bill.usd))),
    }
}

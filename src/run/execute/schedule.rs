//! The schedule of judge cells: they start in plan order, with as many at once as there are permits.
//!
//! Responsible for starting and ending cells, and the only place that plans further repeats. Does not read
//! transcripts.
//!
//! Cells that wait for a program (`script`) also start in plan order, from a separate queue. So slow programs hold no
//! judge permit and no worker. They settle as other checks do, without a start event.
//!
//! At the end of a cell, dicta *first* plans the cells that its result requires, then records `cell_finished`. So a
//! decision is complete whenever all of its planned cells have results, and readers of the log need no rule about
//! repeats.
//!
//! After several equal errors in a row from one judge, its circuit breaker opens. Its cells that have not called it stay
//! pending, and a cascade continues with its next judge. One note in the log states this.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;

use futures_util::FutureExt as _;
use tokio::sync::{SemaphorePermit, mpsc};
use tokio::task::JoinSet;

use super::context::RunCx;
use super::program_check::run_program_check;
use super::worker::panic_message;
use crate::event::{CallCx, EventKind, SettledCell};
use crate::model::{
    CellIx, CellResult, Millis, Outcome, StoppedJudge, Transcript, TranscriptRef, TurnIx,
};
use crate::run::CachePolicy;
use crate::run::judges::circuit_breaker::{CircuitBreaker, MAX_EQUAL_ERRORS};
use crate::run::judges::live_cell_names::LiveCell;
use crate::run::judges::pool::{DecisionCell, JudgeSlot, PlannedCellState};
use crate::run::plan::judged_decision::{JudgeRepeat, JudgedDecision};

/// The time that a judge has to end after the run is cancelled. Then dicta drops it.
const CANCEL_GRACE: Millis = Millis(2000);
/// The number of programs at once on a machine with few processors.
const MIN_PROGRAMS: usize = 2;
/// The maximum number of programs of one run at once. Below it, the number of processors decides.
const MAX_PROGRAMS: usize = 16;

/// The open judged decisions of one transcript.
pub(in crate::run) struct JudgeJob {
    /// The position among the transcripts with cells.
    pub(in crate::run) transcript_no: u64,
    /// The location of the transcript in its file.
    pub(in crate::run) reference: TranscriptRef,
    /// The transcript.
    pub(in crate::run) transcript: Arc<Transcript<'static>>,
    /// The decisions without a result.
    pub(in crate::run) decisions: Vec<OpenDecision>,
}

/// A decision without a result.
pub(in crate::run) struct OpenDecision {
    pub(in crate::run) decision: JudgedDecision,
    /// The cells so far.
    pub(in crate::run) cells: Vec<OpenCell>,
}

/// A cell of an open decision.
pub(in crate::run) struct OpenCell {
    pub(in crate::run) cell: CellIx,
    pub(in crate::run) judge_repeat: JudgeRepeat,
    pub(in crate::run) state: PlannedCellState,
    /// True if the run leaves the cell pending, because it stopped calling the judge.
    pub(in crate::run) is_left: bool,
}

impl OpenCell {
    /// Reports whether the run still has to judge the cell.
    fn is_open(&self) -> bool {
        matches!(self.state, PlannedCellState::NeedsJudge(_)) && !self.is_left
    }
}

/// A transcript with open decisions.
struct OpenTranscript {
    reference: TranscriptRef,
    transcript: Arc<Transcript<'static>>,
    decisions: HashMap<JudgedDecision, Vec<OpenCell>>,
}

/// A cell that may start. Cells start in the order of these fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedCell {
    transcript_no: u64,
    decision: JudgedDecision,
    /// The position among the cells of the decision.
    position: usize,
}

struct FinishedCell {
    queued: QueuedCell,
    cell: CellIx,
    /// The result; `None` if the run ended the program, so that the cell stays pending.
    result: Option<CellResult>,
}

struct JudgeScheduler {
    core: Arc<RunCx>,
    open: HashMap<u64, OpenTranscript>,
    judge_queue: BTreeSet<QueuedCell>,
    /// The cells that wait for a program.
    program_queue: BTreeSet<QueuedCell>,
    /// The number of further programs that this run may start now. Each also needs a place among those of all runs.
    free_programs: usize,
    running: JoinSet<FinishedCell>,
    /// `true` once no further cell starts.
    is_stopped: bool,
    /// `true` once the circuit breaker of a judge is open.
    has_stopped_judge: bool,
    /// The withdrawn evals that the log names.
    noted_withdrawals: HashSet<u32>,
}

/// Runs judge cells until the order queue is closed and empty.
pub(in crate::run) async fn run_scheduler(
    core: Arc<RunCx>,
    mut orders: mpsc::UnboundedReceiver<JudgeJob>,
) {
    let mut scheduler = JudgeScheduler {
        core: Arc::clone(&core),
        open: HashMap::new(),
        judge_queue: BTreeSet::new(),
        program_queue: BTreeSet::new(),
        free_programs: thread::available_parallelism()
            .map_or(MIN_PROGRAMS, |n| n.get().clamp(MIN_PROGRAMS, MAX_PROGRAMS)),
        running: JoinSet::new(),
        is_stopped: false,
        has_stopped_judge: false,
        noted_withdrawals: HashSet::new(),
    };
    // The loop ends when no job can arrive, no cell runs, and no cell waits.
    let mut is_feed_open = true;
    loop {
        // Subscribe before looking for permits, so that a permit that is released in between is not missed.
        let changed = core.permits.changed();
        scheduler.start_programs();
        scheduler.start_judges().await;
        let none_left = scheduler.judge_queue.is_empty() && scheduler.program_queue.is_empty();
        if !is_feed_open && scheduler.running.is_empty() && (scheduler.is_stopped || none_left) {
            return;
        }
        tokio::select! {
            // `biased` handles finished cells first, so that their permits are free before further jobs.
            biased;
            Some(done) = scheduler.running.join_next(), if !scheduler.running.is_empty() => {
                if let Ok(done) = done {
                    scheduler.finish_cell(done).await;
                }
            }
            // The guard prevents a busy loop, because a cancelled token stays ready.
            () = core.cancel.cancelled(), if !scheduler.is_stopped => scheduler.stop(),
            // Another run has all places, so this run waits for one of them.
            Ok(place) = core.program_places.acquire(), if scheduler.wants_program() => {
                scheduler.start_next_program(place);
            }
            order = orders.recv(), if is_feed_open => match order {
                Some(order) => scheduler.add_job(order).await,
                None => is_feed_open = false,
            },
            // A paused trace released its permit, or a cell ended: the next pass starts cells.
            () = changed => {}
        }
    }
}

impl JudgeScheduler {
    async fn add_job(&mut self, order: JudgeJob) {
        if self.is_stopped {
            // The cells of this transcript stay pending.
            return;
        }
        let mut for_judges = Vec::new();
        for OpenDecision { decision, cells } in &order.decisions {
            let asked = cells
                .iter()
                .enumerate()
                // Cells with cached verdicts are in the same decision and need no call.
                .filter(|(_, open)| matches!(open.state, PlannedCellState::NeedsJudge(_)));
            let asked = asked.map(|(position, _)| QueuedCell {
                transcript_no: order.transcript_no,
                decision: *decision,
                position,
            });
            if decision.is_program_check() {
                self.program_queue.extend(asked);
            } else {
                for_judges.extend(asked);
            }
        }
        self.judge_queue.extend(&for_judges);
        self.open.insert(
            order.transcript_no,
            OpenTranscript {
                reference: order.reference,
                transcript: order.transcript,
                decisions: order
                    .decisions
                    .into_iter()
                    .map(|open| (open.decision, open.cells))
                    .collect(),
            },
        );
        self.leave_cells_of_stopped_judges(for_judges).await;
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.judge_queue.clear();
        self.program_queue.clear();
        // No further cell starts, so the merge must not wait for the open ones.
        self.core.window.close();
    }

    /// Starts programs in order while there is room.
    fn start_programs(&mut self) {
        let places = self.core.program_places;
        while self.wants_program()
            && let Ok(place) = places.try_acquire()
        {
            self.start_next_program(place);
        }
    }

    /// Reports whether a program may start as soon as it has a place.
    fn wants_program(&self) -> bool {
        !self.core.cancel.is_cancelled() && self.free_programs > 0 && !self.program_queue.is_empty()
    }

    /// Starts the first program of the queue, which keeps its place until its end.
    fn start_next_program(&mut self, place: SemaphorePermit<'static>) {
        let Some(queued) = self.program_queue.pop_first() else {
            return;
        };
        let decision = queued.decision;
        // A transcript is removed only after its last cell, so this is a safeguard.
        let Some(open) = self.open.get(&queued.transcript_no) else {
            return;
        };
        let cells = open.decisions.get(&decision);
        let Some(OpenCell {
            cell,
            state: PlannedCellState::NeedsJudge(_),
            ..
        }) = cells.and_then(|cells| cells.get(queued.position))
        else {
            return;
        };
        self.free_programs -= 1;
        let (core, transcript, cell) =
            (Arc::clone(&self.core), Arc::clone(&open.transcript), *cell);
        // Waiting for a program blocks a thread. The program ends soon after the run is cancelled.
        self.running.spawn_blocking(move || {
            let _place = place;
            FinishedCell {
                queued,
                cell,
                result: run_program_check(&core, &transcript, decision),
            }
        });
    }

    /// Starts cells in order while permits are free and the budget lasts.
    async fn start_judges(&mut self) {
        // The first cell stays in the queue until its permit and budget are certain.
        while !self.is_stopped
            && !self.core.cancel.is_cancelled()
            && self.core.permits.has_free()
            && let Some(queued) = self.judge_queue.first().copied()
        {
            let decision = queued.decision;
            if self.is_withdrawn(decision.eval) {
                self.leave_withdrawn_cell(&queued).await;
                continue;
            }
            let Some(open) = self.open.get(&queued.transcript_no) else {
                self.judge_queue.pop_first();
                continue;
            };
            let cells = open.decisions.get(&decision);
            let Some(OpenCell {
                cell,
                judge_repeat,
                state: PlannedCellState::NeedsJudge(key),
                ..
            }) = cells.and_then(|cells| cells.get(queued.position))
            else {
                self.judge_queue.pop_first();
                continue;
            };
            // Without a key in its start event, no later run uses the verdict of this cell.
            let remembered = self.core.judge_pool.cache_policy != CachePolicy::Off;
            let (cell, judge_repeat) = (*cell, *judge_repeat);
            let key = key.clone().filter(|_| remembered);
            // Check the budget before the permit, so that a used-up budget leaves no start event.
            if let Some(slot) = self.core.judge_pool.slot_of(judge_repeat)
                && slot.is_limited()
                && let Err(reached) = self.core.budget.check(slot.is_free)
            {
                if reached.is_first_report {
                    self.core.emitter.send(reached.to_event(None, true)).await;
                }
                self.stop();
                return;
            }
            if !self.core.permits.try_take(cell) {
                return;
            }
            self.judge_queue.pop_first();
            let transcript = Arc::clone(&open.transcript);
            let name =
                self.core
                    .judge_pool
                    .plan
                    .cell_name(&open.reference.id, decision, judge_repeat);
            // Insert the name before the judge starts: replay and source judges look it up.
            let live = LiveCell {
                name,
                transcript: open.reference.digest.clone(),
            };
            self.core.judge_pool.cell_names.insert(cell, live);
            self.core
                .emitter
                // Send the start event from here and not from the task, so that starts are in plan order.
                .send(EventKind::CellStarted { cell, key })
                .await;
            let core = Arc::clone(&self.core);
            self.running.spawn(async move {
                let result = judge_cell(&core, &transcript, decision, judge_repeat, cell).await;
                FinishedCell {
                    queued,
                    cell,
                    result: Some(result),
                }
            });
        }
    }

    /// Reports whether the run reached its limit before the cell called anything. Such a cell stays pending, as cells
    /// that did not start.
    async fn was_not_run(&mut self, result: &CellResult, slot: &JudgeSlot) -> bool {
        let calls = result.usage.map_or(0, |usage| usage.calls);
        // After a call, the cell keeps its `budget` outcome, because it caused a cost.
        if result.outcome != Outcome::Budget || calls > 0 || !slot.is_limited() {
            return false;
        }
        // If the cell's own limit was reached, the cell has a result.
        let Err(reached) = self.core.budget.check(slot.is_free) else {
            return false;
        };
        if reached.is_first_report {
            self.core.emitter.send(reached.to_event(None, true)).await;
        }
        self.stop();
        true
    }

    /// Releases the permit and the name of a cell that has ended.
    fn release_cell(&self, cell: CellIx) {
        self.core.judge_pool.cell_names.remove(cell);
        if let Some(frozen) = &self.core.judge_pool.replayed_evidence {
            // The recorded tool responses keep what the cell received, which the log holds already.
            drop(frozen.take(cell));
        }
        self.core.permits.release(cell);
    }

    async fn finish_cell(&mut self, done: FinishedCell) {
        let QueuedCell {
            transcript_no,
            decision,
            position,
        } = done.queued;
        let core = Arc::clone(&self.core);
        if decision.is_program_check() {
            self.free_programs += 1;
        }
        // A cancelled program leaves its cell pending.
        let Some(result) = done.result else { return };
        let cells = self.open.get(&transcript_no);
        let cells = cells.and_then(|open| open.decisions.get(&decision));
        let judge_repeat = cells.and_then(|cells| Some(cells.get(position)?.judge_repeat));
        let slot = judge_repeat.and_then(|cell| core.judge_pool.slot_of(cell));
        if let Some(slot) = slot
            && self.was_not_run(&result, slot).await
        {
            self.release_cell(done.cell);
            return;
        }
        let is_free = slot.is_none_or(|slot| slot.is_free);
        let breaker = judge_repeat.and_then(|cell| core.judge_pool.breaker_of(decision, cell));
        if let (Some(breaker), Some(judge_repeat)) = (&breaker, judge_repeat)
            && was_refused(breaker, &result)
            && !core.judge_pool.has_fallback(decision, judge_repeat)
        {
            self.release_cell(done.cell);
            self.leave_cell(&done.queued);
            return;
        }
        core.tally.add_judged(&result, is_free);
        let stops_judge = breaker.filter(|breaker| breaker.record(&result));
        let result = Arc::new(result);
        // Step: plan the cells that this result makes necessary, before recording the result.
        let further = self.settle_cell(&done.queued, &result).await;
        // Step: record the result. A program's cell had no start event, so it settles like a check.
        if decision.is_program_check() {
            let settled = vec![SettledCell::new(done.cell, result)];
            core.emitter.send(EventKind::CellsSettled(settled)).await;
        } else {
            core.emitter
                .send(EventKind::CellFinished {
                    cell: done.cell,
                    result,
                })
                .await;
            // Release after recording, so that the log never shows more running cells than permits.
            self.release_cell(done.cell);
        }
        if !further.cached.is_empty() {
            let cached = EventKind::CellsSettled(further.cached);
            core.emitter.send(cached).await;
        }
        // Do this last: reports that print in plan order need the results above first.
        self.close_decision(transcript_no, decision);
        if let (Some(breaker), Some(judge_repeat)) = (stops_judge, judge_repeat) {
            self.stop_judge(&breaker, decision, judge_repeat).await;
        } else {
            self.leave_cells_of_stopped_judges(further.queued).await;
        }
        core.check_blobs();
    }

    /// Stores the result of a cell, and plans and queues the cells that it makes necessary.
    async fn settle_cell(&mut self, queued: &QueuedCell, result: &Arc<CellResult>) -> FurtherCells {
        let core = Arc::clone(&self.core);
        let mut further = FurtherCells::default();
        let QueuedCell {
            transcript_no,
            decision,
            position,
        } = *queued;
        let Some(open) = self.open.get_mut(&transcript_no) else {
            return further;
        };
        let Some(cells) = open.decisions.get_mut(&decision) else {
            return further;
        };
        cells[position].state = PlannedCellState::Settled(Arc::clone(result));
        // Cells at or after this position are those that this result added.
        let before = cells.len();
        further.cached =
            plan_further_cells(&core, &open.reference, &open.transcript, decision, cells).await;
        let new = cells.iter().enumerate().skip(before);
        let new = new.filter(|(_, cell)| cell.is_open() && !self.is_stopped);
        further.queued = new
            .map(|(position, _)| QueuedCell {
                transcript_no,
                decision,
                position,
            })
            .collect();
        self.judge_queue.extend(&further.queued);
        further
    }

    /// Counts a decision without open cells and forgets it, and its transcript after its last decision.
    fn close_decision(&mut self, transcript_no: u64, decision: JudgedDecision) {
        let Some(open) = self.open.get_mut(&transcript_no) else {
            return;
        };
        if let Some(cells) = open.decisions.get(&decision)
            && !cells.iter().any(OpenCell::is_open)
        {
            // A decision with a cell that stays pending has no outcome.
            let combined = self.core.judge_pool.decide(decision, &strip_numbers(cells));
            self.core.tally.add_decision(combined.as_ref());
            open.decisions.remove(&decision);
        }
        if open.decisions.is_empty() {
            self.open.remove(&transcript_no);
            self.core.window.finish(transcript_no);
        }
    }

    /// Records that the run stops calling a judge, and leaves its waiting cells pending.
    async fn stop_judge(
        &mut self,
        breaker: &CircuitBreaker,
        decision: JudgedDecision,
        judge_repeat: JudgeRepeat,
    ) {
        let pool = &self.core.judge_pool;
        let judge = judge_repeat
            .judge
            .and_then(|judge| pool.plan.judges.get(judge as usize));
        let stopped = StoppedJudge {
            judge: judge.cloned().unwrap_or_default(),
            model: pool.model_of(decision).map(str::to_owned),
            errors: MAX_EQUAL_ERRORS,
            error: breaker.last_error(),
        };
        self.has_stopped_judge = true;
        let note = EventKind::Note {
            cell: None,
            text: stopped.to_note(),
        };
        self.core.emitter.send(note).await;
        let waiting: Vec<QueuedCell> = self.judge_queue.iter().copied().collect();
        self.leave_cells_of_stopped_judges(waiting).await;
    }

    /// Leaves those of the waiting cells pending whose judge the run no longer calls. A cascade continues with its next
    /// judge.
    async fn leave_cells_of_stopped_judges(&mut self, mut waiting: Vec<QueuedCell>) {
        if !self.has_stopped_judge {
            return;
        }
        while let Some(queued) = waiting.pop() {
            let QueuedCell {
                transcript_no,
                decision,
                position,
            } = queued;
            let open = self.open.get(&transcript_no);
            let cells = open.and_then(|open| open.decisions.get(&decision));
            let Some(waiting_cell) = cells.and_then(|cells| cells.get(position)) else {
                continue;
            };
            let (cell, judge_repeat) = (waiting_cell.cell, waiting_cell.judge_repeat);
            let pool = &self.core.judge_pool;
            let breaker = pool.breaker_of(decision, judge_repeat);
            let Some(breaker) = breaker.filter(|breaker| breaker.is_open()) else {
                continue;
            };
            self.judge_queue.remove(&queued);
            if !pool.has_fallback(decision, judge_repeat) {
                self.leave_cell(&queued);
                continue;
            }
            let unavailable = CellResult::from_error(Outcome::JudgeError, breaker.explain());
            let unavailable = Arc::new(unavailable);
            self.core.tally.add_settled(1);
            let further = self.settle_cell(&queued, &unavailable).await;
            let mut settled = vec![SettledCell::new(cell, unavailable)];
            settled.extend(further.cached);
            self.core
                .emitter
                .send(EventKind::CellsSettled(settled))
                .await;
            self.close_decision(transcript_no, decision);
            // The next judge may be stopped, too.
            waiting.extend(further.queued);
        }
    }

    /// Reports whether a save replaced the question of an eval since the run began.
    fn is_withdrawn(&self, eval: u32) -> bool {
        let (_, rubric, spec) = self.core.judge_pool.plan.eval(eval);
        self.core.withdrawn.contains(&rubric.id, &spec.id)
    }

    /// Leaves the first cell of the queue pending, because its eval is withdrawn. Records the reason once per eval.
    async fn leave_withdrawn_cell(&mut self, queued: &QueuedCell) {
        self.judge_queue.remove(queued);
        let eval = queued.decision.eval;
        if self.noted_withdrawals.insert(eval) {
            let (_, rubric, spec) = self.core.judge_pool.plan.eval(eval);
            let text = format!(
                "{}/{}: a save replaced the question, so the rest of its cells stays pending",
                rubric.id, spec.id
            );
            self.core
                .emitter
                .send(EventKind::Note { cell: None, text })
                .await;
        }
        self.leave_cell(queued);
    }

    /// Leaves a cell pending.
    fn leave_cell(&mut self, queued: &QueuedCell) {
        let open = self.open.get_mut(&queued.transcript_no);
        let cells = open.and_then(|open| open.decisions.get_mut(&queued.decision));
        if let Some(cell) = cells.and_then(|cells| cells.get_mut(queued.position)) {
            cell.is_left = true;
            self.close_decision(queued.transcript_no, queued.decision);
        }
    }
}

/// The cells that a result made necessary.
#[derive(Default)]
struct FurtherCells {
    /// Those that the cache settled.
    cached: Vec<SettledCell>,
    /// Those that a judge must decide.
    queued: Vec<QueuedCell>,
}

/// Reports whether the run stopped calling the judge before the cell called it.
fn was_refused(breaker: &CircuitBreaker, result: &CellResult) -> bool {
    let calls = result.usage.map_or(0, |usage| usage.calls);
    breaker.is_open() && result.outcome == Outcome::JudgeError && calls == 0
}

/// Plans the cells that are certain to be needed now, and returns the cached ones among them.
async fn plan_further_cells(
    core: &RunCx,
    reference: &TranscriptRef,
    transcript: &Arc<Transcript<'static>>,
    decision: JudgedDecision,
    cells: &mut Vec<OpenCell>,
) -> Vec<SettledCell> {
    let mut states = strip_numbers(cells);
    core.judge_pool
        .add_needed_cells(transcript, decision, &mut states);
    let new = states.split_off(cells.len());
    if new.is_empty() {
        return Vec::new();
    }
    // `cells_planned` must come before the cells' results in the log, so send it first.
    let keys = new
        .iter()
        .map(|cell| decision.cell_key(cell.judge_repeat))
        .collect();
    core.tally.add_planned(new.len());
    let mut numbering = core.cell_counter.lock().await;
    let first = numbering.reserve(new.len());
    core.emitter
        .send(EventKind::CellsPlanned {
            transcript: reference.clone(),
            first,
            keys,
        })
        .await;
    // Release the lock before the loop, so that the merge can number its cells.
    drop(numbering);
    let mut cached = Vec::new();
    for (cell, new) in (first.0..).map(CellIx).zip(new) {
        let DecisionCell {
            judge_repeat,
            state,
        } = new;
        if let PlannedCellState::Settled(result) = &state {
            cached.push(SettledCell::new(cell, Arc::clone(result)));
        }
        cells.push(OpenCell {
            cell,
            judge_repeat,
            state,
            is_left: false,
        });
    }
    core.tally.add_settled(cached.len());
    cached
}

fn strip_numbers(cells: &[OpenCell]) -> Vec<DecisionCell> {
    let cells = cells.iter();
    cells
        .map(|open| DecisionCell {
            judge_repeat: open.judge_repeat,
            state: open.state.clone(),
        })
        .collect()
}

/// Calls the judge of one cell. Always returns a result, which is a verdict only if the judge reached one.
pub(in crate::run) async fn judge_cell(
    core: &RunCx,
    transcript: &Arc<Transcript<'static>>,
    decision: JudgedDecision,
    judge_repeat: JudgeRepeat,
    cell: CellIx,
) -> CellResult {
    let Some(slot) = core.judge_pool.slot_of(judge_repeat) else {
        return CellResult::from_error(Outcome::JudgeError, "this judge was not built for the run");
    };
    let plan = &core.judge_pool.plan;
    let mut request = match plan.build_request(
        transcript,
        decision.eval,
        decision.message,
        judge_repeat.repeat,
    ) {
        Ok(request) => request,
        Err(settled) => return settled.into(),
    };
    request.cell = cell;
    let cx = CallCx {
        out: core.emitter.clone(),
        clock: Arc::clone(&core.clock),
        cancel: core.cancel.child_token(),
        cell,
        turn: TurnIx(0),
    };
    let began = core.clock.now();
    let judging = AssertUnwindSafe(slot.judge.judge(&request, &cx)).catch_unwind();
    // A judge that ignores the cancellation must not keep the run open.
    let grace_over = async {
        core.cancel.cancelled().await;
        core.clock.sleep(CANCEL_GRACE).await;
    };
    let mut result = tokio::select! {
        biased;
        judged = judging => judged.unwrap_or_else(|panic| {
            let why = format!("the judge failed inside dicta: {}", panic_message(&*panic));
            CellResult::from_error(Outcome::JudgeError, why)
        }),
        () = grace_over => CellResult::cancelled(),
    };
    // Judges with an engine measure without the wait for a rate limit, so keep their value.
    if result.duration_ms == Millis(0) {
        result.duration_ms = core.clock.now().since(began);
    }
    plan.prepend_message(decision.eval, &mut result);
    result
}

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

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::context::RunCx;
use super::worker::{panic_message, run_check};
use crate::event::{CallCx, EventKind, SettledCell};
use crate::handlers::Subject;
use crate::model::{CellIx, CellResult, Millis, Outcome, Transcript, TranscriptRef, TurnIx};
use crate::run::CachePolicy;
use crate::run::judges::pool::{JudgeSlot, PlannedCellState};
use crate::run::plan::judged_decision::{JudgeRepeat, JudgedDecision};
use crate::run::plan::judged_message_count;

/// The time that a judge has to end after the run is cancelled. Then dicta drops it.
const CANCEL_GRACE: Millis = Millis(2000);
/// The minimum and maximum number of programs at once. Between them, the number of processors decides.
const PROGRAM_LIMITS: (usize, usize) = (2, 16);

/// The open judged decisions of one transcript.
pub(in crate::run) struct JudgeJob {
    /// The position among the transcripts with cells.
    pub(in crate::run) transcript_no: u64,
    /// The location of the transcript in its file.
    pub(in crate::run) reference: TranscriptRef,
    /// The transcript.
    pub(in crate::run) transcript: Arc<Transcript<'static>>,
    /// The decisions, each with its cells so far.
    pub(in crate::run) decisions: Vec<(JudgedDecision, Vec<OpenCell>)>,
}

/// A cell of an open decision.
pub(in crate::run) type OpenCell = (CellIx, JudgeRepeat, PlannedCellState);

/// A transcript with open decisions.
struct OpenTranscript {
    reference: TranscriptRef,
    transcript: Arc<Transcript<'static>>,
    decisions: HashMap<JudgedDecision, Vec<OpenCell>>,
}

/// A cell that may start: transcript, decision, position in the decision. Cells start in this order.
type QueuedCell = (u64, JudgedDecision, usize);

struct FinishedCell {
    position: QueuedCell,
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
    /// The number of further programs that may start now.
    free_programs: usize,
    running: JoinSet<FinishedCell>,
    /// `true` once no further cell starts.
    is_stopped: bool,
}

/// Runs judge cells until the order queue is closed and empty.
pub(in crate::run) async fn run_scheduler(
    core: Arc<RunCx>,
    mut orders: mpsc::UnboundedReceiver<JudgeJob>,
) {
    let mut conductor = JudgeScheduler {
        core: Arc::clone(&core),
        open: HashMap::new(),
        judge_queue: BTreeSet::new(),
        program_queue: BTreeSet::new(),
        free_programs: thread::available_parallelism().map_or(PROGRAM_LIMITS.0, |n| {
            n.get().clamp(PROGRAM_LIMITS.0, PROGRAM_LIMITS.1)
        }),
        running: JoinSet::new(),
        is_stopped: false,
    };
    // The loop ends when no job can arrive, no cell runs, and no cell waits.
    let mut fed = true;
    loop {
        // Subscribe before looking for permits, so that a permit that is released in between is not missed.
        let changed = core.permits.changed();
        conductor.start_programs();
        conductor.start_judges().await;
        let none_left = conductor.judge_queue.is_empty() && conductor.program_queue.is_empty();
        if !fed && conductor.running.is_empty() && (conductor.is_stopped || none_left) {
            return;
        }
        tokio::select! {
            // `biased` handles finished cells first, so that their permits are free before further jobs.
            biased;
            Some(done) = conductor.running.join_next(), if !conductor.running.is_empty() => {
                if let Ok(done) = done {
                    conductor.finish_cell(done).await;
                }
            }
            // The guard prevents a busy loop, because a cancelled token stays ready.
            () = core.cancel.cancelled(), if !conductor.is_stopped => conductor.stop(),
            order = orders.recv(), if fed => match order {
                Some(order) => conductor.add_job(order),
                None => fed = false,
            },
            // A paused trace released its permit, or a cell ended: the next pass starts cells.
            () = changed => {}
        }
    }
}

impl JudgeScheduler {
    fn add_job(&mut self, order: JudgeJob) {
        if self.is_stopped {
            // The cells of this transcript stay pending.
            return;
        }
        for (of, cells) in &order.decisions {
            let asked = cells
                .iter()
                .enumerate()
                // Cells with cached verdicts are in the same decision and need no call.
                .filter(|(_, (_, _, state))| matches!(state, PlannedCellState::NeedsJudge(_)));
            let queue = if of.is_program_check() {
                &mut self.program_queue
            } else {
                &mut self.judge_queue
            };
            queue.extend(asked.map(|(nth, _)| (order.transcript_no, *of, nth)));
        }
        self.open.insert(
            order.transcript_no,
            OpenTranscript {
                reference: order.reference,
                transcript: order.transcript,
                decisions: order.decisions.into_iter().collect(),
            },
        );
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
        while !self.core.cancel.is_cancelled()
            && self.free_programs > 0
            && let Some(place) = self.program_queue.pop_first()
        {
            let (no, of, nth) = place;
            // A transcript is removed only after its last cell, so this is a safeguard.
            let Some(open) = self.open.get(&no) else {
                continue;
            };
            let cells = open.decisions.get(&of);
            let Some((cell, _, PlannedCellState::NeedsJudge(_))) =
                cells.and_then(|cells| cells.get(nth))
            else {
                continue;
            };
            self.free_programs -= 1;
            let (core, transcript, cell) =
                (Arc::clone(&self.core), Arc::clone(&open.transcript), *cell);
            // Waiting for a program blocks a thread. The program ends soon after the run is cancelled.
            self.running.spawn_blocking(move || FinishedCell {
                position: place,
                cell,
                result: run_program_check(&core, &transcript, of),
            });
        }
    }

    /// Starts cells in order while permits are free and the budget lasts.
    async fn start_judges(&mut self) {
        // The first cell stays in the queue until its permit and budget are certain.
        while !self.is_stopped
            && !self.core.cancel.is_cancelled()
            && self.core.permits.has_free()
            && let Some(place) = self.judge_queue.first().copied()
        {
            let (no, of, nth) = place;
            let Some(open) = self.open.get(&no) else {
                self.judge_queue.pop_first();
                continue;
            };
            let Some((cell, post, PlannedCellState::NeedsJudge(key))) =
                open.decisions.get(&of).and_then(|c| c.get(nth))
            else {
                self.judge_queue.pop_first();
                continue;
            };
            // Without a key in its start event, no later run uses the verdict of this cell.
            let remembered = self.core.judge_pool.cache_policy != CachePolicy::Off;
            let (cell, post) = (*cell, *post);
            let key = key.clone().filter(|_| remembered);
            // Check the budget before the permit, so that a used-up budget leaves no start event.
            if let Some(seat) = self.core.judge_pool.slot(post.judge)
                && seat.is_limited()
                && let Err(reached) = self.core.budget.check(seat.is_free)
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
            let name = self
                .core
                .judge_pool
                .plan
                .cell_name(&open.reference.id, of, post);
            // Insert the name before the judge starts: replay and source judges look it up.
            self.core.judge_pool.cell_names.insert(cell, name);
            self.core
                .emitter
                // Send the start event from here and not from the task, so that starts are in plan order.
                .send(EventKind::CellStarted { cell, key })
                .await;
            let core = Arc::clone(&self.core);
            self.running.spawn(async move {
                let result = judge_cell(&core, &transcript, of, post, cell).await;
                FinishedCell {
                    position: place,
                    cell,
                    result: Some(result),
                }
            });
        }
    }

    /// Reports whether the run reached its limit before the cell called anything. Such a cell stays pending, as cells
    /// that did not start.
    async fn was_not_run(&mut self, result: &CellResult, seat: &JudgeSlot) -> bool {
        let calls = result.usage.map_or(0, |usage| usage.calls);
        // After a call, the cell keeps its `budget` outcome, because it caused a cost.
        if result.outcome != Outcome::Budget || calls > 0 || !seat.is_limited() {
            return false;
        }
        // If the cell's own limit was reached, the cell has a result.
        let Err(reached) = self.core.budget.check(seat.is_free) else {
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
        let (no, of, nth) = done.position;
        let core = Arc::clone(&self.core);
        if of.is_program_check() {
            self.free_programs += 1;
        }
        // A cancelled program leaves its cell pending.
        let Some(result) = done.result else { return };
        let cells = self.open.get(&no).and_then(|open| open.decisions.get(&of));
        let post = cells
            .and_then(|cells| cells.get(nth))
            .map(|(_, post, _)| *post);
        let seat = post.and_then(|post| core.judge_pool.slot(post.judge));
        if let Some(seat) = seat
            && self.was_not_run(&result, seat).await
        {
            self.release_cell(done.cell);
            return;
        }
        core.tally
            .add_judged(&result, seat.is_none_or(|seat| seat.is_free));
        // Step: plan the cells that this result makes necessary, before recording the result.
        let (mut recalled, mut through) = (Vec::new(), false);
        if let Some(open) = self.open.get_mut(&no)
            && let Some(cells) = open.decisions.get_mut(&of)
        {
            cells[nth].2 = PlannedCellState::Settled(result.clone());
            // Cells at or after this position are those that this result added.
            let before = cells.len();
            recalled =
                plan_further_cells(&core, &open.reference, &open.transcript, of, cells).await;
            let mut complete = true;
            for (nth, (_, _, state)) in cells.iter().enumerate() {
                let asks = matches!(state, PlannedCellState::NeedsJudge(_));
                complete &= !asks;
                if asks && nth >= before && !self.is_stopped {
                    self.judge_queue.insert((no, of, nth));
                }
            }
            // Step: count a complete decision and forget its cells.
            if complete {
                let decision = core.judge_pool.decide(of, &strip_numbers(cells));
                core.tally.add_decision(decision.as_ref());
                open.decisions.remove(&of);
                if open.decisions.is_empty() {
                    self.open.remove(&no);
                    through = true;
                }
            }
        }
        // Step: record the result. A program's cell had no start event, so it settles like a check.
        if of.is_program_check() {
            let settled = vec![SettledCell(done.cell, result)];
            core.emitter.send(EventKind::CellsSettled(settled)).await;
        } else {
            core.emitter
                .send(EventKind::CellFinished {
                    cell: done.cell,
                    result: Box::new(result),
                })
                .await;
            // Release after recording, so that the log never shows more running cells than permits.
            self.release_cell(done.cell);
        }
        if !recalled.is_empty() {
            core.emitter.send(EventKind::CellsSettled(recalled)).await;
        }
        if through {
            // Do this last: reports that print in plan order need the results above first.
            core.window.finish(no);
        }
        core.check_blobs();
    }
}

/// Plans the cells that are certain to be needed now, and returns the cached ones among them.
async fn plan_further_cells(
    core: &RunCx,
    reference: &TranscriptRef,
    transcript: &Arc<Transcript<'static>>,
    of: JudgedDecision,
    cells: &mut Vec<OpenCell>,
) -> Vec<SettledCell> {
    let mut states = strip_numbers(cells);
    core.judge_pool
        .add_needed_cells(transcript, of, &mut states);
    let new = states.split_off(cells.len());
    if new.is_empty() {
        return Vec::new();
    }
    // `cells_planned` must come before the cells' results in the log, so send it first.
    let keys = new.iter().map(|(post, _)| of.cell_key(*post)).collect();
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
    let mut recalled = Vec::new();
    for (ix, (post, state)) in (first.0..).map(CellIx).zip(new) {
        if let PlannedCellState::Settled(result) = &state {
            recalled.push(SettledCell(ix, result.clone()));
        }
        cells.push((ix, post, state));
    }
    core.tally.add_settled(recalled.len());
    recalled
}

fn strip_numbers(cells: &[OpenCell]) -> Vec<(JudgeRepeat, PlannedCellState)> {
    let cells = cells.iter();
    cells
        .map(|(_, post, state)| (*post, state.clone()))
        .collect()
}

/// Runs the check of a cell that waits for a program; `None` if the run was cancelled meanwhile.
fn run_program_check(
    core: &RunCx,
    transcript: &Transcript<'_>,
    of: JudgedDecision,
) -> Option<CellResult> {
    let began = core.clock.now();
    let stop = &core.judge_pool.cancel_flag;
    let subject = Subject::prefix(transcript, judged_message_count(transcript, of.message))
        .with_cancel_flag(stop);
    let mut result = match core.judge_pool.check(of.eval) {
        Some(check) => run_check(check, &subject),
        None => CellResult::from_error(Outcome::CheckError, "this eval has no check"),
    };
    // The handler does not measure time, so measure the program here.
    result.duration_ms = core.clock.now().since(began);
    (!stop.is_cancelled()).then_some(result)
}

/// Calls the judge of one cell. Always returns a result, which is a verdict only if the judge reached one.
pub(in crate::run) async fn judge_cell(
    core: &RunCx,
    transcript: &Arc<Transcript<'static>>,
    of: JudgedDecision,
    post: JudgeRepeat,
    cell: CellIx,
) -> CellResult {
    let Some(seat) = core.judge_pool.slot(post.judge) else {
        return CellResult::from_error(Outcome::JudgeError, "this judge was not built for the run");
    };
    let plan = &core.judge_pool.plan;
    let mut request = match plan.build_request(transcript, of.eval, of.message, post.repeat) {
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
    let judging = AssertUnwindSafe(seat.judge.judge(&request, &cx)).catch_unwind();
    // A judge that ignores the cancellation must not keep the run open.
    let late = async {
        core.cancel.cancelled().await;
        core.clock.sleep(CANCEL_GRACE).await;
    };
    let mut result = tokio::select! {
        biased;
        judged = judging => judged.unwrap_or_else(|panic| {
            let why = format!("the judge failed inside dicta: {}", panic_message(&*panic));
            CellResult::from_error(Outcome::JudgeError, why)
        }),
        () = late => CellResult::cancelled(),
    };
    // Judges with an engine measure without the wait for a rate limit, so keep their value.
    if result.duration_ms == Millis(0) {
        result.duration_ms = core.clock.now().since(began);
    }
    plan.prepend_message(of.eval, &mut result);
    result
}

//! Who judges what when: judge cells start in plan order, as many at once as there are permits.
//!
//! Cells that wait for a program (`script`) start in plan order too, from a queue of their own: slow programs hold no
//! permit of a judge, and no worker that reads and checks. They are settled like any check's, without a start.
//!
//! The one place that plans further repeats. Order of facts at the end of a cell: the cells that its result makes
//! necessary are planned *first*, then it is said to have finished. So at every moment a decision all of whose planned
//! cells have results is complete, and a reader of the log needs no rule of its own.

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::CachePolicy;
use super::bench::{Judged, Post, Seat, State};
use super::core::Core;
use super::plan::end;
use super::work::{run, said};
use crate::event::{CallCx, EventKind, SettledCell};
use crate::handlers::Subject;
use crate::model::{CellIx, CellResult, Millis, Outcome, Transcript, TranscriptRef, TurnIx};

/// How long a judge may take to end after it was told to; then it is dropped.
const GRACE: Millis = Millis(2000);
/// Fewest and most programs at once; between them as many as there are processors.
const PROGRAMS: (usize, usize) = (2, 16);

/// The judged decisions of one transcript that are not settled yet.
pub(super) struct Order {
    /// The transcript's position among those with cells.
    pub(super) no: u64,
    /// Where it stands.
    pub(super) reference: TranscriptRef,
    /// What is judged.
    pub(super) transcript: Arc<Transcript<'static>>,
    /// Each with its cells so far.
    pub(super) decisions: Vec<(Judged, Vec<Held>)>,
}

/// A cell of a decision that is not settled yet.
pub(super) type Held = (CellIx, Post, State);

/// A transcript with open decisions.
struct Open {
    reference: TranscriptRef,
    transcript: Arc<Transcript<'static>>,
    decisions: HashMap<Judged, Vec<Held>>,
}

/// A cell that may start: transcript, decision, position in the decision. Their order is the order of starting.
type Place = (u64, Judged, usize);

struct Done {
    place: Place,
    cell: CellIx,
    /// `None`: a program that was ended with the run; its cell stays pending.
    result: Option<CellResult>,
}

struct Conductor {
    core: Arc<Core>,
    open: HashMap<u64, Open>,
    queue: BTreeSet<Place>,
    /// Those that wait for a program.
    programs: BTreeSet<Place>,
    /// How many programs may still start, beside those that run.
    free: usize,
    live: JoinSet<Done>,
    /// Nothing more is started.
    stopped: bool,
}

/// Runs judge cells until no more orders come and none is left.
pub(super) async fn conduct(core: Arc<Core>, mut orders: mpsc::UnboundedReceiver<Order>) {
    let mut conductor = Conductor {
        core: Arc::clone(&core),
        open: HashMap::new(),
        queue: BTreeSet::new(),
        programs: BTreeSet::new(),
        free: thread::available_parallelism()
            .map_or(PROGRAMS.0, |n| n.get().clamp(PROGRAMS.0, PROGRAMS.1)),
        live: JoinSet::new(),
        stopped: false,
    };
    let mut fed = true;
    loop {
        // Before looking for permits, so that one given back meanwhile is not missed.
        let changed = core.permits.changed();
        conductor.start_programs();
        conductor.start().await;
        let none_left = conductor.queue.is_empty() && conductor.programs.is_empty();
        if !fed && conductor.live.is_empty() && (conductor.stopped || none_left) {
            return;
        }
        tokio::select! {
            biased;
            Some(done) = conductor.live.join_next(), if !conductor.live.is_empty() => {
                if let Ok(done) = done {
                    conductor.finish(done).await;
                }
            }
            () = core.cancel.cancelled(), if !conductor.stopped => conductor.stop(),
            order = orders.recv(), if fed => match order {
                Some(order) => conductor.take(order),
                None => fed = false,
            },
            () = changed => {}
        }
    }
}

impl Conductor {
    fn take(&mut self, order: Order) {
        if self.stopped {
            // Its cells stay pending.
            return;
        }
        for (of, cells) in &order.decisions {
            let asked = cells
                .iter()
                .enumerate()
                .filter(|(_, (_, _, state))| matches!(state, State::Ask(_)));
            let queue = if of.by_program() {
                &mut self.programs
            } else {
                &mut self.queue
            };
            queue.extend(asked.map(|(nth, _)| (order.no, *of, nth)));
        }
        self.open.insert(
            order.no,
            Open {
                reference: order.reference,
                transcript: order.transcript,
                decisions: order.decisions.into_iter().collect(),
            },
        );
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.queue.clear();
        self.programs.clear();
        self.core.window.close();
    }

    /// Starts programs in order while there is room.
    fn start_programs(&mut self) {
        while !self.core.cancel.is_cancelled()
            && self.free > 0
            && let Some(place) = self.programs.pop_first()
        {
            let (no, of, nth) = place;
            let Some(open) = self.open.get(&no) else {
                continue;
            };
            let cells = open.decisions.get(&of);
            let Some((cell, _, State::Ask(_))) = cells.and_then(|cells| cells.get(nth)) else {
                continue;
            };
            self.free -= 1;
            let (core, transcript, cell) =
                (Arc::clone(&self.core), Arc::clone(&open.transcript), *cell);
            // Waiting for a program blocks. It ends by itself soon after the run is told to stop.
            self.live.spawn_blocking(move || Done {
                place,
                cell,
                result: wait_for(&core, &transcript, of),
            });
        }
    }

    /// Starts cells in order while permits are free and money is left.
    async fn start(&mut self) {
        while !self.stopped
            && !self.core.cancel.is_cancelled()
            && self.core.permits.any_free()
            && let Some(place) = self.queue.first().copied()
        {
            let (no, of, nth) = place;
            let Some(open) = self.open.get(&no) else {
                self.queue.pop_first();
                continue;
            };
            let Some((cell, post, State::Ask(key))) =
                open.decisions.get(&of).and_then(|c| c.get(nth))
            else {
                self.queue.pop_first();
                continue;
            };
            // Under its key a later run would find it.
            let remembered = self.core.bench.cache != CachePolicy::Off;
            let (cell, post) = (*cell, *post);
            let key = key.clone().filter(|_| remembered);
            if let Some(seat) = self.core.bench.seat(post.judge)
                && seat.is_limited()
                && let Err(reached) = self.core.budget.check(seat.free)
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
            self.queue.pop_first();
            let transcript = Arc::clone(&open.transcript);
            let name = self.core.bench.plan.name(&open.reference.id, of, post);
            self.core.bench.names.put(cell, name);
            self.core
                .emitter
                .send(EventKind::CellStarted { cell, key })
                .await;
            let core = Arc::clone(&self.core);
            self.live.spawn(async move {
                let result = ask(&core, &transcript, of, post, cell).await;
                Done {
                    place,
                    cell,
                    result: Some(result),
                }
            });
        }
    }

    /// Whether the run's limit was reached before the cell asked anything: it was begun and waited for its share while
    /// others took theirs. It stays pending, as those that were not begun.
    async fn was_not_run(&mut self, result: &CellResult, seat: &Seat) -> bool {
        let calls = result.usage.map_or(0, |usage| usage.calls);
        if result.outcome != Outcome::Budget || calls > 0 || !seat.is_limited() {
            return false;
        }
        // Its own limit may be the one that is reached: then it has a result.
        let Err(reached) = self.core.budget.check(seat.free) else {
            return false;
        };
        if reached.is_first_report {
            self.core.emitter.send(reached.to_event(None, true)).await;
        }
        self.stop();
        true
    }

    /// Nobody works on a cell any more.
    fn leave(&self, cell: CellIx) {
        self.core.bench.names.forget(cell);
        if let Some(frozen) = &self.core.bench.frozen {
            // It remembers what each cell was answered; the log holds that already.
            drop(frozen.take(cell));
        }
        self.core.permits.give_back(cell);
    }

    async fn finish(&mut self, done: Done) {
        let (no, of, nth) = done.place;
        let core = Arc::clone(&self.core);
        if of.by_program() {
            self.free += 1;
        }
        let Some(result) = done.result else { return };
        let cells = self.open.get(&no).and_then(|open| open.decisions.get(&of));
        let post = cells
            .and_then(|cells| cells.get(nth))
            .map(|(_, post, _)| *post);
        let seat = post.and_then(|post| core.bench.seat(post.judge));
        if let Some(seat) = seat
            && self.was_not_run(&result, seat).await
        {
            self.leave(done.cell);
            return;
        }
        core.tally
            .judged(&result, seat.is_none_or(|seat| seat.free));
        let (mut recalled, mut through) = (Vec::new(), false);
        if let Some(open) = self.open.get_mut(&no)
            && let Some(cells) = open.decisions.get_mut(&of)
        {
            cells[nth].2 = State::Settled(result.clone());
            let before = cells.len();
            recalled = further(&core, &open.reference, &open.transcript, of, cells).await;
            let mut complete = true;
            for (nth, (_, _, state)) in cells.iter().enumerate() {
                let asks = matches!(state, State::Ask(_));
                complete &= !asks;
                if asks && nth >= before && !self.stopped {
                    self.queue.insert((no, of, nth));
                }
            }
            if complete {
                let decision = core.bench.decide(of, &without_numbers(cells));
                core.tally.decided(decision.as_ref());
                open.decisions.remove(&of);
                if open.decisions.is_empty() {
                    self.open.remove(&no);
                    through = true;
                }
            }
        }
        if of.by_program() {
            let settled = vec![SettledCell(done.cell, result)];
            core.emitter.send(EventKind::CellsSettled(settled)).await;
        } else {
            core.emitter
                .send(EventKind::CellFinished {
                    cell: done.cell,
                    result: Box::new(result),
                })
                .await;
            // Only now, so that the log never shows more cells at once than there are permits.
            self.leave(done.cell);
        }
        if !recalled.is_empty() {
            core.emitter.send(EventKind::CellsSettled(recalled)).await;
        }
        if through {
            // Last, since whoever holds results back until they can be printed in order needs these first.
            core.window.done(no);
        }
        core.check_blobs();
    }
}

/// Plans the cells that are certain to be needed now, and returns those of them that past runs know.
async fn further(
    core: &Core,
    reference: &TranscriptRef,
    transcript: &Arc<Transcript<'static>>,
    of: Judged,
    cells: &mut Vec<Held>,
) -> Vec<SettledCell> {
    let mut states = without_numbers(cells);
    core.bench.extend(transcript, of, &mut states);
    let new = states.split_off(cells.len());
    if new.is_empty() {
        return Vec::new();
    }
    let keys = new.iter().map(|(post, _)| of.key(*post)).collect();
    core.tally.planned(new.len());
    let mut numbering = core.numbers.lock().await;
    let first = numbering.take(new.len());
    core.emitter
        .send(EventKind::CellsPlanned {
            transcript: reference.clone(),
            first,
            keys,
        })
        .await;
    drop(numbering);
    let mut recalled = Vec::new();
    for (ix, (post, state)) in (first.0..).map(CellIx).zip(new) {
        if let State::Settled(result) = &state {
            recalled.push(SettledCell(ix, result.clone()));
        }
        cells.push((ix, post, state));
    }
    core.tally.settled(recalled.len());
    recalled
}

fn without_numbers(cells: &[Held]) -> Vec<(Post, State)> {
    let cells = cells.iter();
    cells
        .map(|(_, post, state)| (*post, state.clone()))
        .collect()
}

/// Decides a cell that waits for a program. `None` if the run was told to stop meanwhile.
fn wait_for(core: &Core, transcript: &Transcript<'_>, of: Judged) -> Option<CellResult> {
    let began = core.clock.now();
    let stop = &core.bench.stop;
    let subject = Subject::prefix(transcript, end(transcript, of.message)).with_cancel_flag(stop);
    let mut result = match core.bench.check(of.eval) {
        Some(check) => run(check, &subject),
        None => CellResult::from_error(Outcome::CheckError, "this eval has no check"),
    };
    result.duration_ms = core.clock.now().since(began);
    (!stop.is_cancelled()).then_some(result)
}

/// Asks a judge about one cell. Whatever happens, there is a result, and it is no verdict unless the judge reached one.
pub(super) async fn ask(
    core: &Core,
    transcript: &Arc<Transcript<'static>>,
    of: Judged,
    post: Post,
    cell: CellIx,
) -> CellResult {
    let Some(seat) = core.bench.seat(post.judge) else {
        return CellResult::from_error(Outcome::JudgeError, "this judge was not built for the run");
    };
    let plan = &core.bench.plan;
    let mut request = match plan.request(transcript, of.eval, of.message, post.repeat) {
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
    let late = async {
        core.cancel.cancelled().await;
        core.clock.sleep(GRACE).await;
    };
    let mut result = tokio::select! {
        biased;
        judged = judging => judged.unwrap_or_else(|panic| {
            let why = format!("the judge failed inside dicta: {}", said(&*panic));
            CellResult::from_error(Outcome::JudgeError, why)
        }),
        () = late => CellResult::cancelled(),
    };
    if result.duration_ms == Millis(0) {
        result.duration_ms = core.clock.now().since(began);
    }
    plan.tell(of.eval, &mut result);
    result
}

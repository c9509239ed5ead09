//! The threads of a run: one reads, several work, one merges in order.
//!
//! ```text
//! reader ──chunks──► workers ──worked chunks──► merge ── facts ─► emitter
//!    ▲                                           │  └── orders ─► scheduler (judges)
//!    └────────────── tickets ◄───────────────────┘
//! ```
//! Readers and workers hold nothing that keeps the log open: a cancelled run does not wait for a worker that is inside a
//! check, nor for a reader inside a file. It leaves them behind; what they still find is dropped.
//!
//! A ticket goes with every chunk, so that a slow chunk cannot pile up those behind it; the window holds the merge back
//! behind slow judges. So memory does not grow with the number of transcripts (but for a hash of each id).

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::bench::{Bench, Post, State};
use super::core::Core;
use super::ids::Ids;
use super::schedule::{Held, Order};
use super::source::{Chunk, Feed};
use super::work::{Item, Worked, work};
use crate::event::{CellKey, EventKind, SettledCell};
use crate::model::{Ballot, CellIx, CellVote, TranscriptRef, decide_cells};
use crate::transcript::BadRecord;

/// Bad records of one file that are told one by one; the rest are counted.
const BAD_TOLD: u64 = 10;
/// How often the merge looks up from waiting for workers, to see whether the run is cancelled.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Starts the threads. Judge cells go to `orders`; the receiver tells when all is merged, with a sentence if the
/// transcripts could not be read to the end.
pub(super) fn spawn(
    core: &Arc<Core>,
    feed: Box<dyn Feed>,
    orders: mpsc::UnboundedSender<Order>,
) -> oneshot::Receiver<Result<(), String>> {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let in_flight = threads * 4;
    let (ticket, tickets) = sync_channel::<()>(in_flight);
    let (to_workers, chunks) = sync_channel::<(u64, Chunk)>(in_flight);
    let (to_merge, worked) = channel();
    let chunks = Arc::new(Mutex::new(chunks));

    let reading = {
        let cancel = core.cancel.clone();
        thread::spawn(move || read(&cancel, feed, &ticket, &to_workers))
    };
    for _ in 0..threads {
        let (bench, cancel) = (Arc::clone(&core.bench), core.cancel.clone());
        let (chunks, to_merge) = (Arc::clone(&chunks), to_merge.clone());
        thread::spawn(move || labour(&bench, &cancel, &chunks, &to_merge));
    }
    drop(to_merge);
    let (done, ended) = oneshot::channel();
    let (core, runtime) = (Arc::clone(core), Handle::current());
    thread::spawn(move || {
        let result = Merge {
            core: &core,
            runtime,
            orders,
            ids: Ids::default(),
            no: 0,
            bad: HashMap::new(),
        }
        .run(&worked, &tickets, reading);
        // Nobody listens if the run was dropped.
        let _dropped = done.send(result);
    });
    ended
}

fn read(
    cancel: &CancellationToken,
    mut feed: Box<dyn Feed>,
    ticket: &SyncSender<()>,
    to_workers: &SyncSender<(u64, Chunk)>,
) -> Result<(), String> {
    for seq in 0.. {
        if cancel.is_cancelled() {
            break;
        }
        let Some(chunk) = feed.next()? else { break };
        // A closed channel: the merge has all it wants.
        if ticket.send(()).is_err() || to_workers.send((seq, chunk)).is_err() {
            break;
        }
    }
    Ok(())
}

type Done = (u64, Chunk, Vec<Worked>);

fn labour(
    bench: &Bench,
    cancel: &CancellationToken,
    chunks: &Mutex<Receiver<(u64, Chunk)>>,
    to_merge: &Sender<Done>,
) {
    loop {
        let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((seq, chunk)) = next else { return };
        if cancel.is_cancelled() {
            return;
        }
        let worked = work(bench, &chunk);
        // What a check found that was told to stop is no finding.
        if cancel.is_cancelled() || to_merge.send((seq, chunk, worked)).is_err() {
            return;
        }
    }
}

struct Merge<'c> {
    core: &'c Core,
    runtime: Handle,
    orders: mpsc::UnboundedSender<Order>,
    ids: Ids,
    /// Transcripts with cells so far.
    no: u64,
    bad: HashMap<PathBuf, u64>,
}

impl Merge<'_> {
    fn run(
        mut self,
        worked: &Receiver<Done>,
        tickets: &Receiver<()>,
        reading: JoinHandle<Result<(), String>>,
    ) -> Result<(), String> {
        let mut early: BTreeMap<u64, (Chunk, Vec<Worked>)> = BTreeMap::new();
        let mut next = 0;
        'all: loop {
            let (seq, chunk, items) = match worked.recv_timeout(LOOK_UP) {
                Ok(done) => done,
                // A worker may be inside a check for long.
                Err(RecvTimeoutError::Timeout) if self.core.cancel.is_cancelled() => break,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            early.insert(seq, (chunk, items));
            while let Some((chunk, items)) = early.remove(&next) {
                for item in items {
                    if self.is_over() {
                        break 'all;
                    }
                    self.take(&chunk, item);
                }
                next += 1;
                // One ticket was sent for each chunk.
                let _taken = tickets.try_recv();
            }
        }
        let over = self.is_over();
        self.tell_bad();
        if over {
            // The reader may be waiting for a ticket or for room; it ends when these channels close, on our return.
            return Ok(());
        }
        reading
            .join()
            .unwrap_or_else(|_| Err("reading the transcripts failed inside dicta".to_owned()))
    }

    /// Whether no further transcript is wanted.
    fn is_over(&self) -> bool {
        self.core.cancel.is_cancelled() || self.core.limit.is_some_and(|limit| self.no >= limit)
    }

    fn take(&mut self, chunk: &Chunk, worked: Worked) {
        match worked {
            Worked::Bad(bad) => self.note_bad(&chunk.path, &bad),
            Worked::Item(item) => self.plan(chunk, *item),
        }
    }

    fn plan(&mut self, chunk: &Chunk, mut item: Item) {
        let own = named(&mut self.ids, &mut item);
        item.keep_named(&self.core.bench.plan);
        if let Some(own) = own
            && !item.cells.is_empty()
        {
            self.note(format!(
                "{}: another transcript is called `{own}`; this one is shown as `{}`",
                chunk.path.display(),
                item.id
            ));
        }
        if item.cells.is_empty() {
            return;
        }
        self.core.window.wait(self.no);
        if self.core.cancel.is_cancelled() {
            return;
        }
        let raw = &chunk.bytes[item.at.clone()];
        if item.transcript.is_some() {
            // A judge sees it, now or when it was recalled: this run must be showable when the file has changed.
            self.runtime.block_on(self.core.emitter.store_blob(raw));
            self.core.check_blobs();
        }
        let reference = TranscriptRef {
            id: item.id,
            path: chunk.path.to_path_buf(),
            offset: item.offset,
            len: item.len,
            part: item.part,
            digest: item.digest,
        };
        let keys: Vec<CellKey> = item.cells.iter().map(|(key, _)| *key).collect();
        self.core.tally.planned(keys.len());
        let mut numbering = self.core.numbers.blocking_lock();
        let first = numbering.take(keys.len());
        self.core.emitter.send_blocking(EventKind::CellsPlanned {
            transcript: reference.clone(),
            first,
            keys,
        });
        drop(numbering);

        let mut cells = number(first, item.cells);
        let mut decisions = Vec::new();
        let mut next = 0;
        for (of, range) in item.judged {
            self.decided_alone(&cells[next..range.start]);
            next = range.end;
            let group = &cells[range];
            let held =
                |(ix, key, state): &Numbered| -> Held { (*ix, Post::of(key), state.clone()) };
            if group.iter().all(|cell| result(cell).is_some()) {
                let (eval, _, _) = self.core.bench.plan.eval(of.eval);
                let decision = eval
                    .terms()
                    .decide(&group.iter().map(cast).collect::<Vec<_>>());
                self.core.tally.decided(decision.as_ref());
            } else {
                decisions.push((of, group.iter().map(held).collect()));
            }
        }
        self.decided_alone(&cells[next..]);
        cells.retain(|(_, _, state)| matches!(state, State::Settled(_)));
        self.core.tally.settled(cells.len());
        if !cells.is_empty() {
            let settled = cells
                .into_iter()
                .filter_map(|(ix, _, state)| match state {
                    State::Settled(result) => Some(SettledCell(ix, result)),
                    State::Ask(_) => None,
                })
                .collect();
            self.core
                .emitter
                .send_blocking(EventKind::CellsSettled(settled));
        }
        if let Some(transcript) = item.transcript
            && !decisions.is_empty()
            && self.core.bench.cache.asks()
        {
            self.core.window.open(self.no, raw.len());
            // A closed channel: the scheduler is gone, and so is the run.
            let _closed = self.orders.send(Order {
                no: self.no,
                reference,
                transcript,
                decisions,
            });
        }
        self.no += 1;
    }

    /// Cells of checks, and skipped ones: each is a decision.
    fn decided_alone(&self, cells: &[Numbered]) {
        for result in cells.iter().filter_map(result) {
            self.core.tally.decided(decide_cells([result]).as_ref());
        }
    }

    fn note(&self, text: String) {
        self.core
            .emitter
            .send_blocking(EventKind::Note { cell: None, text });
    }

    fn note_bad(&mut self, path: &Path, bad: &BadRecord) {
        let count = self.bad.entry(path.to_owned()).or_default();
        *count += 1;
        if *count <= BAD_TOLD {
            self.note(format!(
                "{}: record {} is skipped: {}",
                path.display(),
                bad.number,
                bad.why
            ));
        }
    }

    fn tell_bad(&self) {
        let mut many: Vec<(&PathBuf, u64)> = self
            .bad
            .iter()
            .filter(|(_, count)| **count > BAD_TOLD)
            .map(|(path, count)| (path, *count))
            .collect();
        many.sort_unstable();
        for (path, count) in many {
            self.note(format!(
                "{}: {count} records are skipped; the first {BAD_TOLD} are named above",
                path.display()
            ));
        }
    }
}

/// Makes an item's id unique; its own, if that was taken.
pub(super) fn named(ids: &mut Ids, item: &mut Item) -> Option<String> {
    if item.named {
        ids.take(&item.id);
        return None;
    }
    let own = std::mem::take(&mut item.id);
    let (id, changed) = ids.unique(own.clone());
    item.id = id;
    changed.then_some(own)
}

type Numbered = (CellIx, CellKey, State);

fn number(first: CellIx, cells: Vec<(CellKey, State)>) -> Vec<Numbered> {
    (first.0..)
        .zip(cells)
        .map(|(ix, (key, state))| (CellIx(ix), key, state))
        .collect()
}

fn cast((_, key, state): &Numbered) -> CellVote {
    CellVote {
        judge: key.judge,
        repeat: key.repeat,
        ballot: match state {
            State::Settled(result) => Some(Ballot::from(result)),
            State::Ask(_) => None,
        },
    }
}

fn result(cell: &Numbered) -> Option<&crate::model::CellResult> {
    match &cell.2 {
        State::Settled(result) => Some(result),
        State::Ask(_) => None,
    }
}

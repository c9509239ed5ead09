//! The threads of a run: one reads, several work, one merges in order.
//!
//! ```text
//! reader ──chunks──► workers ──worked chunks──► merge ── facts ─► emitter
//!    ▲                                           │  └── orders ─► scheduler (judges)
//!    └────────────── tickets ◄───────────────────┘
//! ```
//!
//! Responsible for order, memory bounds and cancellation. Does not judge.
//!
//! Readers and workers hold nothing that keeps the log open. So a cancelled run does not wait for a worker inside a
//! check or for a reader inside a file. It leaves them behind and drops their results.
//!
//! Every chunk needs a ticket, so the chunks behind a slow one cannot pile up. The merge window holds the merge back
//! behind slow judges. So memory does not grow with the number of transcripts, except for a hash of each id.

pub(super) mod context;
mod file_counts;
pub(super) mod merge_window;
mod program_check;
pub(super) mod schedule;
pub(super) mod tally;
pub(in crate::run) mod withdrawn;
pub(super) mod worker;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::context::RunCx;
use self::file_counts::FileCounts;
use self::schedule::{JudgeJob, OpenCell, OpenDecision};
use self::worker::{JudgedRange, WorkedCell, WorkedRecord, WorkedTranscript, process_chunk};
use crate::event::{CellKey, EventKind, RevisionPlan, SettledCell};
use crate::model::{
    Ballot, CellIx, CellVote, TranscriptRef, describe_skipped_file, describe_skipped_record,
};
use crate::run::TranscriptSourceError;
use crate::run::inputs::feed::{FileReport, RecordChunk, TranscriptFeed};
use crate::run::inputs::ids::TranscriptIds;
use crate::run::judges::pool::{JudgePool, PlannedCellState};
use crate::run::plan::judged_decision::JudgeRepeat;
use crate::transcript::{BadRecord, TranscriptError};

/// The number of bad records of one file that get a note each; the run only counts further ones.
const MAX_BAD_RECORD_NOTES: u64 = 10;
/// The interval at which the merge checks for a cancel while it waits for workers.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts the threads. Judge cells go to `orders`. The receiver yields once everything is merged; its error states
/// why the transcripts could not be read to the end.
pub(in crate::run) fn spawn_threads(
    core: &Arc<RunCx>,
    feed: Box<dyn TranscriptFeed>,
    orders: mpsc::UnboundedSender<JudgeJob>,
) -> oneshot::Receiver<Result<(), TranscriptSourceError>> {
    // Two threads if the system does not report its number of processors.
    let threads = thread::available_parallelism().map_or(2, usize::from);
    // Four chunks per worker keep all workers busy while the merge waits for a slow chunk.
    let in_flight = threads * 4;
    let (ticket, tickets) = sync_channel::<()>(in_flight);
    let (to_workers, chunks) = sync_channel::<(u64, RecordChunk)>(in_flight);
    // This channel needs no bound, because tickets limit the chunks in flight.
    let (to_merge, worked) = channel();
    // All workers take from one queue, so a long chunk blocks only its own worker.
    let chunks = Arc::new(Mutex::new(chunks));

    let reports = FileReports::default();
    let reading = {
        let (cancel, reports) = (core.cancel.clone(), Arc::clone(&reports));
        thread::spawn(move || read_chunks(&cancel, feed, &reports, &ticket, &to_workers))
    };
    for _ in 0..threads {
        let (judge_pool, cancel) = (Arc::clone(&core.judge_pool), core.cancel.clone());
        let (chunks, to_merge) = (Arc::clone(&chunks), to_merge.clone());
        thread::spawn(move || run_worker(&judge_pool, &cancel, &chunks, &to_merge));
    }
    // Only the workers keep the channel open, so the merge ends when the last worker ends.
    drop(to_merge);
    let (done, ended) = oneshot::channel();
    // The merge runs on a thread of its own, because it blocks on the window and the emitter.
    let (core, runtime) = (Arc::clone(core), Handle::current());
    thread::spawn(move || {
        let result = ChunkMerger {
            core: &core,
            runtime,
            orders,
            ids: TranscriptIds::default(),
            transcript_count: 0,
            bad_records: HashMap::new(),
            revision_plan: RevisionPlan::default(),
            reports,
            files: FileCounts::default(),
        }
        .run(&worked, &tickets, reading);
        // The receiver is gone if the run was dropped.
        let _dropped = done.send(result);
    });
    ended
}

fn read_chunks(
    cancel: &CancellationToken,
    mut feed: Box<dyn TranscriptFeed>,
    reports: &FileReports,
    ticket: &SyncSender<()>,
    to_workers: &SyncSender<(u64, RecordChunk)>,
) -> Result<(), TranscriptError> {
    for seq in 0.. {
        if cancel.is_cancelled() {
            break;
        }
        let next = feed.next_chunk();
        reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(feed.take_file_reports());
        let Some(chunk) = next? else {
            break;
        };
        // A closed channel means that the merge needs no more chunks.
        if ticket.send(()).is_err() || to_workers.send((seq, chunk)).is_err() {
            break;
        }
    }
    Ok(())
}

/// A chunk with the results of its worker.
struct WorkedChunk {
    /// The position of the chunk in the feed.
    position: u64,
    chunk: RecordChunk,
    records: Vec<WorkedRecord>,
}

fn run_worker(
    judge_pool: &JudgePool,
    cancel: &CancellationToken,
    chunks: &Mutex<Receiver<(u64, RecordChunk)>>,
    to_merge: &Sender<WorkedChunk>,
) {
    loop {
        // The lock is held while waiting: exactly one idle worker waits for the next chunk.
        let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((position, chunk)) = next else { return };
        if cancel.is_cancelled() {
            return;
        }
        let records = process_chunk(judge_pool, &chunk);
        let worked = WorkedChunk {
            position,
            chunk,
            records,
        };
        // A check that a cancel interrupted returns no valid result.
        if cancel.is_cancelled() || to_merge.send(worked).is_err() {
            return;
        }
    }
}

struct ChunkMerger<'c> {
    core: &'c RunCx,
    runtime: Handle,
    orders: mpsc::UnboundedSender<JudgeJob>,
    ids: TranscriptIds,
    /// The number of transcripts with cells so far.
    transcript_count: u64,
    bad_records: HashMap<PathBuf, u64>,
    /// The decisions that the revision plans, if the run records it.
    revision_plan: RevisionPlan,
    reports: FileReports,
    files: FileCounts,
}

/// The reports of the reading thread that the merge has not taken yet.
type FileReports = Arc<Mutex<Vec<FileReport>>>;

impl ChunkMerger<'_> {
    fn run(
        mut self,
        worked: &Receiver<WorkedChunk>,
        tickets: &Receiver<()>,
        reading: JoinHandle<Result<(), TranscriptError>>,
    ) -> Result<(), TranscriptSourceError> {
        // Chunks arrive in any order. Those that arrive before their predecessors wait here.
        let mut early: BTreeMap<u64, WorkedChunk> = BTreeMap::new();
        let mut next = 0;
        'all: loop {
            let done = match worked.recv_timeout(CANCEL_POLL_INTERVAL) {
                Ok(done) => done,
                // The worker may be inside a long check.
                Err(RecvTimeoutError::Timeout) if self.core.cancel.is_cancelled() => break,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            early.insert(done.position, done);
            while let Some(WorkedChunk { chunk, records, .. }) = early.remove(&next) {
                for item in records {
                    if self.is_done() {
                        break 'all;
                    }
                    self.files.add_record(&chunk.path, &item);
                    self.merge_record(&chunk, item);
                }
                self.take_file_reports();
                next += 1;
                // The reader sent one ticket per chunk.
                let _taken = tickets.try_recv();
            }
        }
        // Compute this before the notes, because a cancel during them would hide the reader's error.
        let is_done = self.is_done();
        self.emit_bad_record_counts();
        self.take_file_reports();
        for note in self.files.describe_unread() {
            self.emit_note(note);
        }
        self.core.tally.set_reading(self.files.totals());
        if is_done {
            // The reader may wait for a ticket or for room. It ends when these channels close, which this return
            // causes.
            return Ok(());
        }
        // All chunks are merged, so the reader has ended. Its error becomes the run's error.
        match reading.join() {
            Ok(read) => {
                read.map_err(TranscriptSourceError::Read)?;
                self.emit_revision_plan();
                Ok(())
            }
            Err(_panic) => Err(TranscriptSourceError::ReaderPanicked),
        }
    }

    /// Returns `true` if the run needs no further transcript.
    fn is_done(&self) -> bool {
        self.core.cancel.is_cancelled()
            || self
                .core
                .transcript_limit
                .is_some_and(|limit| self.transcript_count >= limit)
    }

    fn merge_record(&mut self, chunk: &RecordChunk, worked: WorkedRecord) {
        match worked {
            WorkedRecord::Bad(bad) => self.note_bad_record(&chunk.path, &bad),
            WorkedRecord::Transcript(item) => self.plan_transcript(chunk, *item),
        }
    }

    fn plan_transcript(&mut self, chunk: &RecordChunk, mut item: WorkedTranscript) {
        // Ids become unique in file order, so the merge does it and not a worker.
        let original_id = make_id_unique(&mut self.ids, &mut item);
        if !item.revision_plan.is_empty() {
            let decisions = std::mem::take(&mut item.revision_plan);
            self.revision_plan.push(&item.id, &item.digest, decisions);
        }
        // A filter by names needs the unique id, so it applies only now.
        item.retain_named(&self.core.judge_pool.plan);
        if let Some(original_id) = original_id
            && !item.cells.is_empty()
        {
            self.emit_note(format!(
                "{}: another transcript is called `{original_id}`; this one is shown as `{}`",
                chunk.path.display(),
                item.id
            ));
        }
        if item.cells.is_empty() {
            return;
        }
        // Step: wait until the judges are near enough. A cancel closes the window.
        self.core.window.wait(self.transcript_count);
        if self.core.cancel.is_cancelled() {
            return;
        }
        let raw = &chunk.bytes[item.byte_range.clone()];
        if item.transcript.is_some() {
            // A judge reads this transcript, or a cached verdict is about it. The run must be able to show it after
            // its file changes.
            self.runtime.block_on(self.core.emitter.store_blob(raw));
            self.core.check_blobs();
        }
        // Step: number the cells and record the plan.
        let reference = TranscriptRef {
            id: item.id,
            path: chunk.path.to_path_buf(),
            offset: item.offset,
            len: item.len,
            part: item.part,
            digest: item.digest,
        };
        // Only judges need the place after the event.
        let for_judges = item.transcript.is_some().then(|| reference.clone());
        let keys: Vec<CellKey> = item.cells.iter().map(|cell| cell.key).collect();
        self.core.tally.add_planned(keys.len());
        // The lock covers the event, because the scheduler numbers further repeats at the same time.
        let mut numbering = self.core.cell_counter.blocking_lock();
        let first = numbering.reserve(keys.len());
        self.core.emitter.send_blocking(EventKind::CellsPlanned {
            transcript: reference,
            first,
            keys,
        });
        drop(numbering);

        // Step: separate the open judged decisions from the complete ones.
        let mut cells = number_cells(first, item.cells);
        let mut decisions = Vec::new();
        let mut next = 0;
        for JudgedRange {
            decision,
            cells: range,
        } in item.judged_ranges
        {
            // The cells between two judged ranges are checks and skipped decisions.
            self.count_check_decisions(&cells[next..range.start]);
            next = range.end;
            let group = &cells[range];
            let to_open_cell = |numbered: &NumberedCell| OpenCell {
                cell: numbered.cell,
                judge_repeat: JudgeRepeat::from_key(&numbered.key),
                state: numbered.state.clone(),
                is_left: false,
            };
            if group.iter().all(|cell| settled_result(cell).is_some()) {
                let (eval, _, _) = self.core.judge_pool.plan.eval(decision.eval);
                let combined = eval
                    .terms()
                    .decide(&group.iter().map(cell_vote).collect::<Vec<_>>());
                self.core.tally.add_decision(combined.as_ref());
            } else {
                decisions.push(OpenDecision {
                    decision,
                    cells: group.iter().map(to_open_cell).collect(),
                });
            }
        }
        self.count_check_decisions(&cells[next..]);
        // Step: record the results that exist already, in one event per transcript.
        cells.retain(|numbered| matches!(numbered.state, PlannedCellState::Settled(_)));
        self.core.tally.add_settled(cells.len());
        if !cells.is_empty() {
            let settled = cells
                .into_iter()
                .filter_map(|numbered| match numbered.state {
                    PlannedCellState::Settled(result) => {
                        Some(SettledCell::new(numbered.cell, result))
                    }
                    PlannedCellState::NeedsJudge(_) => None,
                })
                .collect();
            self.core
                .emitter
                .send_blocking(EventKind::CellsSettled(settled));
        }
        // Step: hand the open decisions to the scheduler. Open the window first, so that it can be finished.
        if let (Some(transcript), Some(reference)) = (item.transcript, for_judges)
            && !decisions.is_empty()
            && self.core.judge_pool.cache_policy.can_call_judges()
        {
            self.core.window.open(self.transcript_count, raw.len());
            // A closed channel means that the scheduler and the run have ended.
            let _closed = self.orders.send(JudgeJob {
                transcript_no: self.transcript_count,
                reference,
                transcript,
                decisions,
            });
        }
        // Only transcripts with cells count, for the limit and for the window.
        self.transcript_count += 1;
    }

    /// Counts the decisions of checks and skipped decisions: each of these cells is a decision.
    fn count_check_decisions(&self, cells: &[NumberedCell]) {
        let results = cells.iter().filter_map(settled_result);
        self.core.tally.add_single_cells(results);
    }

    /// Records what the revision plans, if the run leaves out a part of it.
    fn emit_revision_plan(&self) {
        if !self.core.judge_pool.plan.records_revision_plan {
            return;
        }
        let text = self.revision_plan.to_json();
        let plan = self.runtime.block_on(self.core.emitter.store_text(&text));
        self.core.check_blobs();
        self.core
            .emitter
            .send_blocking(EventKind::RevisionPlanned { plan });
    }

    fn emit_note(&self, text: String) {
        self.core
            .emitter
            .send_blocking(EventKind::Note { cell: None, text });
    }

    fn note_bad_record(&mut self, path: &Path, bad: &BadRecord) {
        let count = self.bad_records.entry(path.to_owned()).or_default();
        *count += 1;
        if *count <= MAX_BAD_RECORD_NOTES {
            self.emit_note(describe_skipped_record(path, bad.number, &bad.why));
        }
    }

    /// Takes the reports of files, and notes those that could not be read.
    fn take_file_reports(&mut self) {
        let reports =
            std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner));
        for report in reports {
            if let Some(error) = &report.error {
                self.emit_note(describe_skipped_file(&report.path, error));
            }
            for warning in &report.pair_warnings {
                self.emit_note(warning.to_string());
            }
            self.files.add_report(report);
        }
    }

    fn emit_bad_record_counts(&self) {
        let mut many: Vec<(&PathBuf, u64)> = self
            .bad_records
            .iter()
            .filter(|(_, count)| **count > MAX_BAD_RECORD_NOTES)
            .map(|(path, count)| (path, *count))
            .collect();
        // A hash map has no order, so sort the notes by file.
        many.sort_unstable();
        for (path, count) in many {
            self.emit_note(format!(
                "{}: {count} records are skipped; the first {MAX_BAD_RECORD_NOTES} are named above",
                path.display()
            ));
        }
    }
}

/// Makes an item's id unique. Keeps its own id if no other item has it.
pub(in crate::run) fn make_id_unique(
    ids: &mut TranscriptIds,
    item: &mut WorkedTranscript,
) -> Option<String> {
    if item.has_unique_id {
        // The id still counts, because a later transcript may have the same id.
        ids.reserve(&item.id);
        return None;
    }
    let original_id = std::mem::take(&mut item.id);
    let (id, changed) = ids.make_unique(original_id.clone());
    item.id = id;
    changed.then_some(original_id)
}

/// A planned cell with its number in the run.
struct NumberedCell {
    cell: CellIx,
    key: CellKey,
    state: PlannedCellState,
}

fn number_cells(first: CellIx, cells: Vec<WorkedCell>) -> Vec<NumberedCell> {
    (first.0..)
        .zip(cells)
        .map(|(number, WorkedCell { key, state })| NumberedCell {
            cell: CellIx(number),
            key,
            state,
        })
        .collect()
}

fn cell_vote(numbered: &NumberedCell) -> CellVote {
    CellVote {
        judge: numbered.key.judge,
        repeat: numbered.key.repeat,
        ballot: match &numbered.state {
            PlannedCellState::Settled(result) => Some(Ballot::from(&**result)),
            PlannedCellState::NeedsJudge(_) => None,
        },
    }
}

fn settled_result(cell: &NumberedCell) -> Option<&crate::model::CellResult> {
    match &cell.state {
        PlannedCellState::Settled(result) => Some(&**result),
        PlannedCellState::NeedsJudge(_) => None,
    }
}

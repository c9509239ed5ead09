//! The sequencer, which is also the recorder: numbers facts, writes them, and only then hands them on.
//!
//! One thread owns the log. What is queued is written with one write; fdatasync comes at most once a second and at the
//! end. A failure is final: nothing is written after a line that may be torn, nothing is shown that was not recorded,
//! and a failed fsync is never tried again, since the second one may succeed with the data gone.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::blobs::NewBlobs;
use super::disk::{Disk, Held, LogFile, RealDisk, write_all};
use super::failure::Failure;
use super::{EVENTS, EventStream, RECORD_MAX, RecordError, lock};
use crate::clock::{Clock, Fut};
use crate::event::{Emitter, Envelope, Kind, Redactor, RunEvent, RunHeader};
use crate::model::Millis;

/// Facts on their way to the writer; 128 ms of slack at the busiest would be 256.
const QUEUE: usize = 4096;
/// At most so many facts are one batch.
const BATCH: usize = 512;
/// A batch is written early once it has so many bytes.
const BATCH_BYTES: usize = 4 << 20;
/// Batches that may wait for whoever shows them.
const SHOWN: usize = 64;
/// Between two fdatasyncs.
const SYNC_EVERY: Millis = Millis::from_secs(1);

/// A run being recorded: the writer thread and what it hands on.
pub struct Recorder {
    failure: Arc<Failure>,
    dir: PathBuf,
    /// `Err` when the thread is gone: it says so by dropping the other end.
    done: oneshot::Receiver<()>,
    thread: std::thread::JoinHandle<()>,
}

/// What [`Recorder::start`] gives.
pub struct Started {
    /// Finish with it.
    pub recorder: Recorder,
    /// The way in. The log ends when every clone is dropped.
    pub emitter: Emitter,
    /// What was recorded, after it was written. Drain it or drop it: while it is full, the run waits.
    pub events: EventStream,
    /// Fires when recording failed; the run must end.
    pub failed: CancellationToken,
    /// The run's folder.
    pub dir: PathBuf,
}

impl Recorder {
    /// Makes the run's folder (0700) under `runs`, takes its lock, and records `header` as the first event.
    /// `header.run` names the folder.
    pub fn start(
        runs: &Path,
        header: RunHeader,
        redactor: Arc<Redactor>,
        clock: Arc<dyn Clock>,
    ) -> Result<Started, RecordError> {
        Self::start_on(Arc::new(RealDisk), runs, header, redactor, clock)
    }

    /// As [`Recorder::start`], on a file system of one's choice.
    pub(super) fn start_on(
        disk: Arc<dyn Disk>,
        runs: &Path,
        header: RunHeader,
        redactor: Arc<Redactor>,
        clock: Arc<dyn Clock>,
    ) -> Result<Started, RecordError> {
        let dir = folder(runs, &header)?;
        disk.ensure_dir(runs).map_err(at(runs))?;
        disk.create_dir(&dir).map_err(|why| taken(&dir, why))?;
        let sealed = Envelope::seal(Kind::RunStarted(Box::new(header)), &redactor);
        let begun =
            Begun::new(&disk, &dir, runs, sealed, clock).inspect_err(|_| disk.discard(&dir))?;
        let Begun {
            writer,
            blobs,
            first,
        } = begun;

        let failure = Arc::clone(&writer.failure);
        let (to, queue) = mpsc::channel(QUEUE);
        let (shown, events) = mpsc::channel(SHOWN);
        let (finished, done) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(at(&dir))?;
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                runtime.block_on(writer.run(queue, shown, first));
                let _nobody_waits = finished.send(());
            })
            .map_err(at(&dir))?;
        Ok(Started {
            recorder: Self {
                failure: Arc::clone(&failure),
                dir: dir.clone(),
                done,
                thread,
            },
            emitter: Emitter::new(to, blobs, redactor),
            events,
            failed: failure.failed.clone(),
            dir,
        })
    }

    /// Waits until everything is written and synced; every [`Emitter`] must have been dropped, and the events drained
    /// or their stream dropped.
    pub async fn finish(self) -> Result<(), RecordError> {
        let ended_well = self.done.await.is_ok();
        let _panicked = self.thread.join();
        match self.failure.take() {
            Some(error) => Err(error),
            None if ended_well => Ok(()),
            None => Err(RecordError::Io {
                path: self.dir,
                why: io::Error::other("the recorder ended early; this is a defect of dicta"),
            }),
        }
    }
}

/// The run's folder. A run id is one name, so that a header cannot lead out of `runs`.
fn folder(runs: &Path, header: &RunHeader) -> Result<PathBuf, RecordError> {
    let name = header.run.0.as_str();
    let plain = !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if plain {
        Ok(runs.join(name))
    } else {
        Err(RecordError::NotARun {
            path: runs.join(name.escape_debug().to_string()),
            why: "a run's name is made of letters, digits and dashes".to_owned(),
        })
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_owned();
    move |why| RecordError::Io { path, why }
}

/// Why the folder could not be made: it may be another's.
fn taken(dir: &Path, why: io::Error) -> RecordError {
    match lock::holder(dir) {
        Some(pid) if why.kind() == io::ErrorKind::AlreadyExists => RecordError::Locked {
            path: dir.to_owned(),
            pid,
        },
        _ => at(dir)(why),
    }
}

/// A run whose header is written.
struct Begun {
    writer: Writer,
    blobs: Arc<NewBlobs>,
    first: RunEvent,
}

impl Begun {
    fn new(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        runs: &Path,
        header: Envelope,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RecordError> {
        let path = dir.join(EVENTS);
        if !matches!(header.kind, Kind::RunStarted(_)) || header.json.len() > RECORD_MAX {
            let why = "the run's header cannot be recorded: it is larger than 16 MiB, or a secret stands where it must not";
            return Err(at(&path)(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let failure = Arc::new(Failure::default());
        let lock_path = dir.join(lock::LOCK);
        let held = disk
            .lock(&lock_path, std::process::id())
            .map_err(at(&lock_path))?;
        let blobs =
            NewBlobs::create(Arc::clone(disk), dir, Arc::clone(&failure)).map_err(at(dir))?;
        let blobs = Arc::new(blobs);
        let file = disk.create(&path).map_err(at(&path))?;
        let mut writer = Writer {
            disk: Arc::clone(disk),
            file,
            path,
            folders: vec![dir.to_owned(), runs.to_owned()],
            blobs: Arc::clone(&blobs),
            start: clock.now(),
            clock,
            seq: 0,
            at: Millis(0),
            lines: Vec::with_capacity(64 << 10),
            unsynced: false,
            synced: None,
            failure,
            _held: held,
        };
        let mut first = Vec::with_capacity(1);
        writer.take(header, &mut first);
        writer.write().map_err(at(&writer.path))?;
        let first = first.remove(0);
        Ok(Self {
            writer,
            blobs,
            first,
        })
    }
}

/// The thread's own.
struct Writer {
    disk: Arc<dyn Disk>,
    file: Box<dyn LogFile>,
    path: PathBuf,
    /// Their entries are new: synced with the first sync.
    folders: Vec<PathBuf>,
    blobs: Arc<NewBlobs>,
    clock: Arc<dyn Clock>,
    start: Millis,
    /// The number of the next event.
    seq: u64,
    /// The time of the last one.
    at: Millis,
    /// Lines to be written.
    lines: Vec<u8>,
    unsynced: bool,
    synced: Option<Millis>,
    failure: Arc<Failure>,
    _held: Box<dyn Held>,
}

impl Writer {
    async fn run(
        mut self,
        mut queue: mpsc::Receiver<Envelope>,
        shown: mpsc::Sender<Arc<Vec<RunEvent>>>,
        first: RunEvent,
    ) {
        let guard = self.failure.failed.clone().drop_guard(); // a panic tells the run, too
        let mut shown = Some(shown);
        let clock = Arc::clone(&self.clock);
        let mut sync_due = SyncDue::new(clock.as_ref());
        let mut queued = Vec::with_capacity(BATCH);
        let result = async {
            self.show(&mut shown, vec![first], &mut sync_due).await?;
            self.sync_when_due(&mut sync_due)?;
            loop {
                tokio::select! {
                    biased;
                    () = sync_due.wait() => self.sync_when_due(&mut sync_due)?,
                    n = queue.recv_many(&mut queued, BATCH) => {
                        if n == 0 {
                            return self.sync();
                        }
                        self.batch(&mut queued, &mut shown, &mut sync_due).await?;
                        self.sync_when_due(&mut sync_due)?;
                    }
                }
            }
        }
        .await;
        match result {
            Ok(()) => {
                guard.disarm();
            }
            // Dropping the queue makes every emitter swallow what it is given; dropping `shown` ends the stream.
            Err(why) => self.failure.note(&self.path, &why),
        }
    }

    /// Numbers, writes and hands on what was queued.
    async fn batch(
        &mut self,
        queued: &mut Vec<Envelope>,
        shown: &mut Option<mpsc::Sender<Arc<Vec<RunEvent>>>>,
        sync_due: &mut SyncDue<'_>,
    ) -> io::Result<()> {
        self.at = self.at.max(self.clock.now() - self.start);
        let mut events = Vec::with_capacity(queued.len());
        for envelope in queued.drain(..) {
            self.take(envelope, &mut events);
            if self.lines.len() >= BATCH_BYTES {
                self.write()?;
                self.show(shown, std::mem::take(&mut events), sync_due)
                    .await?;
            }
        }
        if events.is_empty() {
            return Ok(());
        }
        self.write()?;
        self.show(shown, events, sync_due).await
    }

    /// Numbers a fact and puts its line with those to be written.
    fn take(&mut self, envelope: Envelope, events: &mut Vec<RunEvent>) {
        let Envelope { kind, json } = fitting(envelope);
        let seq = self.seq;
        self.seq += 1;
        self.lines.reserve(json.len() + 64);
        let _a_vec_takes_all = write!(self.lines, r#"{{"seq":{seq},"at":{},"kind":"#, self.at.0);
        self.lines.extend_from_slice(json.as_bytes());
        self.lines.extend_from_slice(b"}\n");
        events.push(RunEvent {
            seq,
            at: self.at,
            kind,
        });
    }

    /// One write(2), unless the system takes it in parts.
    fn write(&mut self) -> io::Result<()> {
        if self.failure.happened() {
            // A blob could not be stored; the next line may name it. The reason is noted already.
            return Err(io::Error::other("recording failed before"));
        }
        self.unsynced = true;
        write_all(self.file.as_mut(), &self.lines)?;
        self.lines.clear();
        self.lines.shrink_to(2 * BATCH_BYTES);
        Ok(())
    }

    /// Hands events on, syncing while it waits. Nobody to hand them to is no reason to stop recording.
    async fn show(
        &mut self,
        shown: &mut Option<mpsc::Sender<Arc<Vec<RunEvent>>>>,
        events: Vec<RunEvent>,
        sync_due: &mut SyncDue<'_>,
    ) -> io::Result<()> {
        sync_due.arm(self.synced, self.unsynced);
        let Some(to) = shown else { return Ok(()) };
        let permit = loop {
            tokio::select! {
                biased;
                permit = to.reserve() => break permit,
                () = sync_due.wait() => self.sync_when_due(sync_due)?,
            }
        };
        let listens = permit.map(|permit| permit.send(Arc::new(events))).is_ok();
        if !listens {
            *shown = None;
        }
        Ok(())
    }

    fn sync_when_due(&mut self, sync_due: &mut SyncDue<'_>) -> io::Result<()> {
        if sync_due.is_past() {
            self.sync()?;
            sync_due.disarm();
        }
        Ok(())
    }

    /// Blobs first: a line that survives names nothing that does not.
    fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.blobs.sync()?;
            self.file.sync()?;
            for folder in self.folders.drain(..) {
                self.disk.sync(&folder)?;
            }
            self.unsynced = false;
        }
        self.synced = Some(self.clock.now());
        Ok(())
    }
}

/// When the next sync comes: one second after the last, if there is anything to sync.
struct SyncDue<'c> {
    clock: &'c dyn Clock,
    at: Option<(Millis, Fut<'c, ()>)>,
    /// The wait is over; its future must not be polled again.
    fired: bool,
}

impl<'c> SyncDue<'c> {
    fn new(clock: &'c dyn Clock) -> Self {
        Self {
            clock,
            at: None,
            fired: false,
        }
    }

    fn arm(&mut self, last: Option<Millis>, unsynced: bool) {
        if self.at.is_none() && unsynced {
            let now = self.clock.now();
            let due = last.map_or(now, |last| last + SYNC_EVERY);
            self.at = Some((due, self.clock.sleep(due - now)));
        }
    }

    fn disarm(&mut self) {
        self.at = None;
        self.fired = false;
    }

    fn is_past(&self) -> bool {
        self.fired
            || self
                .at
                .as_ref()
                .is_some_and(|(due, _)| *due <= self.clock.now())
    }

    /// Waits for the moment; for ever when there is none.
    async fn wait(&mut self) {
        match &mut self.at {
            Some((due, sleep)) => {
                if !self.fired && *due > self.clock.now() {
                    sleep.as_mut().await;
                }
                self.fired = true;
            }
            None => std::future::pending().await,
        }
    }
}

/// A fact as one line can hold it: not over 16 MiB, and without line breaks (raw JSON in it may have been written over
/// several lines).
fn fitting(envelope: Envelope) -> Envelope {
    let note = |text: String, cell| {
        let kind = Kind::Note { cell, text };
        let json = kind.to_json().unwrap_or_default();
        Envelope { kind, json }
    };
    if envelope.json.len() > RECORD_MAX {
        let mib = envelope.json.len() >> 20;
        let text = format!("a fact of {mib} MiB was left out: a record has at most 16 MiB");
        return note(text, envelope.kind.cell());
    }
    if memchr::memchr2(b'\n', b'\r', envelope.json.as_bytes()).is_none() {
        return envelope;
    }
    // Inside strings JSON escapes them, so these stand between tokens.
    let json = envelope.json.replace(['\n', '\r'], " ");
    match Kind::from_json(&json) {
        Ok(kind) => Envelope { kind, json },
        Err(error) => note(
            format!("a fact was left out: it is not one line of JSON: {error}"),
            envelope.kind.cell(),
        ),
    }
}

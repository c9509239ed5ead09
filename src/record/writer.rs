//! The sequencer, which is also the recorder: it numbers facts, writes them, and only then passes them on.
//!
//! Responsible for the order and durability of the log. Does not redact facts. One thread owns the log: it writes
//! queued facts with one write, and calls fdatasync at most once a second and at the end.
//!
//! A failure is final. After it, the thread writes nothing behind a line that may be torn, and shows nothing
//! unrecorded. It never repeats a failed fsync, because a second one may succeed although the data is lost.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::blobs::BlobWriter;
use super::disk::{Disk, LockGuard, LogFile, write_all};
use super::failure::RecordingFailure;
use super::lines::finish_line;
use super::seal::{LogSigner, RecordKey};
use super::sync_timer::SyncTimer;
use super::{EVENTS_FILE, MAX_FACT_BYTES, RecordError, lock};
use crate::clock::Clock;
use crate::event::{BlobStore as _, EventKind, RedactedEvent, RunEvent};
use crate::model::Millis;

/// The maximum number of facts in a batch.
const MAX_BATCH_FACTS: usize = 256;
/// The number of bytes at which a batch is written early.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// A run whose header is written.
pub(super) struct StartedLog {
    pub(super) writer: LogWriter,
    pub(super) blobs: Arc<BlobWriter>,
    pub(super) first_event: RunEvent,
}

impl StartedLog {
    pub(super) fn new(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        runs: &Path,
        header: RedactedEvent,
        texts: &[Cow<'_, str>],
        clock: Arc<dyn Clock>,
        key: Option<RecordKey>,
    ) -> Result<Self, RecordError> {
        let path = dir.join(EVENTS_FILE);
        // Redaction replaces a header that it breaks with a note, and a log without a header cannot be read.
        if !matches!(header.kind, EventKind::RunStarted(_)) || header.json.len() > MAX_FACT_BYTES {
            let why = "dicta can't record the run's header: it is larger than 16 MiB, or redaction of a secret broke its format";
            return Err(io_error_at(&path)(io::Error::new(
                io::ErrorKind::InvalidInput,
                why,
            )));
        }
        let failure = Arc::new(RecordingFailure::default());
        let lock_path = dir.join(lock::LOCK_FILE);
        // The lock comes first: a folder with a log but without a lock looks like an interrupted run.
        let run_lock = disk
            .lock(&lock_path, std::process::id())
            .map_err(io_error_at(&lock_path))?;
        let blobs = BlobWriter::create(Arc::clone(disk), dir, Arc::clone(&failure))
            .map_err(io_error_at(dir))?;
        let blobs = Arc::new(blobs);
        // The header names these blobs, so they are stored before it.
        for text in texts {
            blobs.put(text.as_bytes()).map_err(io_error_at(dir))?;
        }
        let file = disk.create(&path).map_err(io_error_at(&path))?;
        // The header is written before `new` returns, so every folder with a log has a header.
        let mut writer = LogWriter {
            disk: Arc::clone(disk),
            file,
            path,
            folders: vec![dir.to_owned(), runs.to_owned()],
            blobs: Arc::clone(&blobs),
            start: clock.now(),
            clock,
            seq: 0,
            last_at: Millis(0),
            lines: Vec::with_capacity(64 << 10),
            signer: key.map(LogSigner::new),
            unsynced: false,
            last_sync: None,
            failure,
            _lock: run_lock,
        };
        let mut first = Vec::with_capacity(1);
        writer.append_line(header, &mut first);
        writer.write_lines().map_err(io_error_at(&writer.path))?;
        let first = first.remove(0);
        Ok(Self {
            writer,
            blobs,
            first_event: first,
        })
    }
}

/// The time for which facts are collected while many arrive. No screen draws more often.
const GATHER_TIME: Duration = Duration::from_millis(2);

/// The state of the writer thread.
pub(super) struct LogWriter {
    disk: Arc<dyn Disk>,
    file: Box<dyn LogFile>,
    path: PathBuf,
    /// The folders with new entries, which the first sync includes.
    folders: Vec<PathBuf>,
    blobs: Arc<BlobWriter>,
    clock: Arc<dyn Clock>,
    start: Millis,
    /// The number of the next event.
    seq: u64,
    /// The time of the last event.
    last_at: Millis,
    /// The lines to write.
    lines: Vec<u8>,
    /// The signer of results; `None` if the installation has no secret.
    signer: Option<LogSigner>,
    unsynced: bool,
    last_sync: Option<Millis>,
    pub(super) failure: Arc<RecordingFailure>,
    _lock: Box<dyn LockGuard>,
}

impl LogWriter {
    /// Records until every emitter is dropped, or until it fails. The caller has written `first`.
    pub(super) async fn run(
        mut self,
        mut queue: mpsc::Receiver<RedactedEvent>,
        stream: mpsc::Sender<Arc<Vec<RunEvent>>>,
        first: RunEvent,
    ) {
        let guard = self.failure.failed.clone().drop_guard(); // a panic tells the run, too
        // The stream becomes `None` when its receiver is gone.
        let mut stream = Some(stream);
        let clock = Arc::clone(&self.clock);
        let mut sync_due = SyncTimer::new(clock.as_ref());
        let mut queued = Vec::with_capacity(MAX_BATCH_FACTS);
        let result = async {
            self.send_events(&mut stream, vec![first], &mut sync_due)
                .await?;
            self.sync_when_due(&mut sync_due)?;
            loop {
                tokio::select! {
                    biased;
                    () = sync_due.wait() => self.sync_when_due(&mut sync_due)?,
                    n = queue.recv_many(&mut queued, MAX_BATCH_FACTS) => {
                        if n == 0 {
                            return self.sync();
                        }
                        self.write_batch(&mut queued, &mut stream, &mut sync_due).await?;
                        self.sync_when_due(&mut sync_due)?;
                        if n > 1 {
                            // Many facts arrive: the pause saves the sender of the next fact from waking this thread.
                            std::thread::park_timeout(GATHER_TIME);
                        }
                    }
                }
            }
        }
        .await;
        match result {
            Ok(()) => {
                guard.disarm();
            }
            // Without the queue, every emitter drops its facts. Dropping `shown` ends the stream.
            Err(why) => self.failure.report(&self.path, &why),
        }
    }

    /// Numbers, writes and passes on the queued facts.
    async fn write_batch(
        &mut self,
        queued: &mut Vec<RedactedEvent>,
        stream: &mut Option<mpsc::Sender<Arc<Vec<RunEvent>>>>,
        sync_due: &mut SyncTimer<'_>,
    ) -> io::Result<()> {
        // The times in a log never decrease.
        self.last_at = self.last_at.max(self.clock.now() - self.start);
        let mut events = Vec::with_capacity(queued.len());
        for envelope in queued.drain(..) {
            self.append_line(envelope, &mut events);
            // A batch of large facts is written in parts to limit memory and delay.
            if self.lines.len() >= MAX_BATCH_BYTES {
                self.write_lines()?;
                self.send_events(stream, std::mem::take(&mut events), sync_due)
                    .await?;
            }
        }
        if events.is_empty() {
            return Ok(());
        }
        self.write_lines()?;
        self.send_events(stream, events, sync_due).await
    }

    /// Numbers a fact and adds its line to the batch.
    fn append_line(&mut self, envelope: RedactedEvent, events: &mut Vec<RunEvent>) {
        let RedactedEvent { kind, json } = fit_to_line(envelope);
        let seq = self.seq;
        self.seq += 1;
        self.lines.reserve(json.len() + 160);
        let start = self.lines.len();
        let _a_vec_takes_all = write!(
            self.lines,
            r#"{{"seq":{seq},"at":{},"kind":"#,
            self.last_at.0
        );
        self.lines.extend_from_slice(json.as_bytes());
        let signer = self.signer.as_mut();
        let mac = signer.and_then(|signer| signer.sign(&kind, &self.lines[start..]));
        finish_line(&mut self.lines, start, mac);
        events.push(RunEvent {
            seq,
            at: self.last_at,
            kind,
        });
    }

    /// Writes the batch with one write(2), unless the system splits it.
    fn write_lines(&mut self) -> io::Result<()> {
        if self.failure.has_occurred() {
            // A blob could not be stored, and the next line may name it. `failure` already has the reason.
            return Err(io::Error::other("recording failed before"));
        }
        // This is set before the write, because a failed write may have written a part.
        self.unsynced = true;
        write_all(self.file.as_mut(), &self.lines)?;
        self.lines.clear();
        // One large fact must not keep its memory for the rest of the run.
        self.lines.shrink_to(2 * MAX_BATCH_BYTES);
        Ok(())
    }

    /// Passes events on, and syncs while it waits. Recording continues without a receiver.
    async fn send_events(
        &mut self,
        stream: &mut Option<mpsc::Sender<Arc<Vec<RunEvent>>>>,
        events: Vec<RunEvent>,
        sync_due: &mut SyncTimer<'_>,
    ) -> io::Result<()> {
        // A full stream can block for long, so the sync must be able to interrupt the wait.
        sync_due.arm(self.last_sync, self.unsynced);
        let Some(to) = stream else { return Ok(()) };
        let permit = loop {
            tokio::select! {
                biased;
                permit = to.reserve() => break permit,
                () = sync_due.wait() => self.sync_when_due(sync_due)?,
            }
        };
        let listens = permit.map(|permit| permit.send(Arc::new(events))).is_ok();
        if !listens {
            *stream = None;
        }
        Ok(())
    }

    fn sync_when_due(&mut self, sync_due: &mut SyncTimer<'_>) -> io::Result<()> {
        if sync_due.is_due() {
            self.sync()?;
            sync_due.disarm();
        }
        Ok(())
    }

    /// Syncs blobs first, so that a line that survives a crash names no missing blob.
    fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.blobs.sync()?;
            self.file.sync()?;
            for folder in self.folders.drain(..) {
                self.disk.sync(&folder)?;
            }
            self.unsynced = false;
        }
        self.last_sync = Some(self.clock.now());
        Ok(())
    }
}

/// Returns an error about a file.
pub(super) fn io_error_at(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_owned();
    move |why| RecordError::Io { path, why }
}

/// Returns a fact as one line: at most 16 MiB, and without line breaks, which raw JSON may contain.
fn fit_to_line(envelope: RedactedEvent) -> RedactedEvent {
    let note = |text: String, cell| {
        let kind = EventKind::Note { cell, text };
        let json = kind.to_json().unwrap_or_default();
        RedactedEvent { kind, json }
    };
    if envelope.json.len() > MAX_FACT_BYTES {
        let mib = envelope.json.len() >> 20;
        let text = format!("a fact of {mib} MiB was left out: a record has at most 16 MiB");
        return note(text, envelope.kind.cell());
    }
    if memchr::memchr2(b'\n', b'\r', envelope.json.as_bytes()).is_none() {
        return envelope;
    }
    // JSON escapes line breaks inside strings, so these are between tokens.
    let json = envelope.json.replace(['\n', '\r'], " ");
    // The event on screen must equal the line in the log.
    match EventKind::from_json(&json) {
        Ok(kind) => RedactedEvent { kind, json },
        Err(error) => note(
            format!("a fact was left out: it is not one line of JSON: {error}"),
            envelope.kind.cell(),
        ),
    }
}

//! The start and end of a recording: the run's folder, its lock, and the writer thread.
//!
//! Responsible for these resources. Does not number facts (see `writer`).

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::disk::{Disk, RealDisk};
use super::failure::RecordingFailure;
use super::seal::RecordKey;
use super::writer::{StartedLog, io_error_at};
use super::{EventStream, RecordError, lock};
use crate::clock::Clock;
use crate::event::{Emitter, EventKind, RedactedEvent, Redactor, RunHeader};

/// The number of facts that may wait for the writer. A fact has up to some kilobytes: all results of a transcript are one.
const QUEUE_CAPACITY: usize = 1024;
/// The number of batches that may wait for the receiver. It bounds the memory of a run whose output is slower than its
/// checks.
const EVENT_STREAM_CAPACITY: usize = 8;

/// A run that is being recorded.
pub struct Recorder {
    failure: Arc<RecordingFailure>,
    dir: PathBuf,
    /// The end of the thread. The channel closes if the thread panicked.
    done: oneshot::Receiver<()>,
    thread: std::thread::JoinHandle<()>,
}

/// The parts that [`Recorder::start`] returns.
pub struct StartedRecording {
    /// The recorder, to finish the recording.
    pub recorder: Recorder,
    /// The emitter. The log ends when every clone is dropped.
    pub emitter: Emitter,
    /// The recorded events. Drain or drop the stream: while it is full, the run waits.
    pub events: EventStream,
    /// Cancelled when recording fails. The run must end then.
    pub failed: CancellationToken,
    /// The run's folder.
    pub dir: PathBuf,
}

impl Recorder {
    /// Creates the run's folder (0700) under `runs`, locks it, and records `header` as the first event. `header.run`
    /// names the folder. Without a key, the cache can use nothing of this run.
    pub fn start(
        runs: &Path,
        header: RunHeader,
        redactor: Arc<Redactor>,
        clock: Arc<dyn Clock>,
    ) -> Result<StartedRecording, RecordError> {
        Self::start_with_texts(runs, header, &[], redactor, clock, None)
    }

    /// As [`Recorder::start`], but first stores the texts that the header names as blobs, redacted. Signs the results
    /// with `key`.
    pub fn start_with_texts(
        runs: &Path,
        header: RunHeader,
        texts: &[&str],
        redactor: Arc<Redactor>,
        clock: Arc<dyn Clock>,
        key: Option<RecordKey>,
    ) -> Result<StartedRecording, RecordError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        Self::start_on_disk(&disk, runs, header, texts, redactor, clock, key)
    }

    /// As [`Recorder::start_with_texts`], on any file system.
    pub(super) fn start_on_disk(
        disk: &Arc<dyn Disk>,
        runs: &Path,
        header: RunHeader,
        texts: &[&str],
        redactor: Arc<Redactor>,
        clock: Arc<dyn Clock>,
        key: Option<RecordKey>,
    ) -> Result<StartedRecording, RecordError> {
        let dir = run_dir(runs, &header)?;
        disk.ensure_dir(runs).map_err(io_error_at(runs))?;
        // Creating the folder also reserves the run's name against other processes.
        disk.create_dir(&dir)
            .map_err(|why| dir_taken_error(&dir, why))?;
        let sealed = RedactedEvent::from_kind(EventKind::RunStarted(Box::new(header)), &redactor);
        let texts: Vec<Cow<'_, str>> = texts
            .iter()
            .map(|text| {
                redactor
                    .redact(text)
                    .map_or(Cow::Borrowed(*text), Cow::Owned)
            })
            .collect();
        let begun = StartedLog::new(disk, &dir, runs, sealed, &texts, clock, key)
            // A folder without a header would look like a run that cannot be read.
            .inspect_err(|_| disk.remove_unused_dir(&dir))?;
        let StartedLog {
            writer,
            blobs,
            first_event: first,
        } = begun;

        let failure = Arc::clone(&writer.failure);
        let (to, queue) = mpsc::channel(QUEUE_CAPACITY);
        let (stream, events) = mpsc::channel(EVENT_STREAM_CAPACITY);
        let (finished, done) = oneshot::channel();
        // Writing and syncing block, so the recorder has a thread of its own.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(io_error_at(&dir))?;
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                runtime.block_on(writer.run(queue, stream, first));
                let _nobody_waits = finished.send(());
            })
            .map_err(io_error_at(&dir))?;
        Ok(StartedRecording {
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

    /// Waits until everything is written and synced. Every [`Emitter`] must be dropped before, and the events drained
    /// or their stream dropped.
    pub async fn finish(self) -> Result<(), RecordError> {
        // Waiting on the channel does not block the runtime; the join afterwards returns at once.
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

/// Returns the run's folder. A run id must be one name, so that a header cannot point outside `runs`.
fn run_dir(runs: &Path, header: &RunHeader) -> Result<PathBuf, RecordError> {
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

/// Returns the reason why the folder could not be created, for example another owner.
fn dir_taken_error(dir: &Path, why: io::Error) -> RecordError {
    match lock::find_lock_holder(dir) {
        // The owner is only interesting if the folder's existence is the reason.
        Some(pid) if why.kind() == io::ErrorKind::AlreadyExists => RecordError::Locked {
            path: dir.to_owned(),
            pid,
        },
        _ => io_error_at(dir)(why),
    }
}

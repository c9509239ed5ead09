//! Runs on disk: the sequencer that is also the recorder, the reader, blobs, the player, the run store and the board.
//!
//! Owns the folder of a run (`events.jsonl`, `blobs/`, `lock`) and its format. write(2) comes before an event is shown;
//! fdatasync at most once a second, on the writer's own thread. Refuses to know judges, rubrics' meaning or screens.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::event::{BlobSource, Emitter, Redactor, RunEvent, RunHeader, RunState};
use crate::model::RunId;

/// Recorded events, in order, in batches as they were written.
pub type EventStream = tokio::sync::mpsc::Receiver<Arc<Vec<RunEvent>>>;

/// Why recording or reading failed.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A file could not be written or read.
    #[error("{path}: {why}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why, from the system.
        why: std::io::Error,
    },
    /// Another process records into this folder.
    #[error("{path} is being recorded by process {pid}")]
    Locked {
        /// The run's folder.
        path: PathBuf,
        /// Who holds it; 0 when unknown.
        pid: u32,
    },
    /// Written by a newer major version.
    #[error("{path} was written in format {major}; this dicta reads up to {known}")]
    Newer {
        /// The log.
        path: PathBuf,
        /// Its major version.
        major: u16,
        /// Ours.
        known: u16,
    },
    /// No such run.
    #[error("{0}")]
    NoRun(String),
    /// Not a log.
    #[error("{path} is not a run: {why}")]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A run being recorded: the writer thread and what it hands on.
pub struct Recorder {
    // thread handle, failure
}

/// What [`Recorder::start`] gives.
pub struct Started {
    /// Finish with it.
    pub recorder: Recorder,
    /// The way in. The log ends when every clone is dropped.
    pub emitter: Emitter,
    /// What was recorded, after it was written.
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
        runs: &std::path::Path,
        header: RunHeader,
        redactor: Arc<Redactor>,
        clock: Arc<dyn Clock>,
    ) -> Result<Started, RecordError> {
        let _ = (runs, header, redactor, clock);
        unimplemented!("record")
    }

    /// Waits until everything is written and synced; every [`Emitter`] must have been dropped.
    pub async fn finish(self) -> Result<(), RecordError> {
        unimplemented!("record")
    }
}

/// A fresh run id: the time, and four random letters that no run in the store ends in.
pub fn new_run_id(store: &RunStore, clock: &dyn Clock) -> RunId {
    let _ = (store, clock);
    unimplemented!("record")
}

/// A folder of runs, and the samples that ship with dicta.
#[derive(Debug, Clone)]
pub struct RunStore {
    /// Where new runs are recorded.
    pub dir: PathBuf,
    /// Further folders to read from.
    pub also: Vec<PathBuf>,
}

/// A run on disk.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its id: the folder's name.
    pub id: RunId,
    /// Its folder.
    pub dir: PathBuf,
}

impl RunStore {
    /// All runs, newest first. Folders that are no runs are left out.
    pub fn runs(&self) -> Vec<Run> {
        unimplemented!("record")
    }

    /// Resolves `@`, `@2`, four letters, a unique prefix of letters or id, or a path to a run's folder.
    pub fn resolve(&self, name: &str) -> Result<Run, RecordError> {
        let _ = name;
        unimplemented!("record")
    }
}

/// A log as it was read.
#[derive(Debug, Clone)]
pub struct Log {
    /// Its events in order.
    pub events: Vec<RunEvent>,
    /// What was wrong with lines that could not be read, as sentences.
    pub warnings: Vec<String>,
    /// No end, and nobody holds the lock.
    pub interrupted: bool,
    /// No end, and somebody holds the lock.
    pub running: bool,
}

impl Run {
    /// Reads the header alone.
    pub fn header(&self) -> Result<RunHeader, RecordError> {
        unimplemented!("record")
    }

    /// Reads the whole log.
    pub fn log(&self) -> Result<Log, RecordError> {
        unimplemented!("record")
    }

    /// Reads and folds the whole log.
    pub fn state(&self) -> Result<RunState, RecordError> {
        unimplemented!("record")
    }

    /// Its blobs.
    pub fn blobs(&self) -> Arc<dyn BlobSource> {
        unimplemented!("record")
    }
}

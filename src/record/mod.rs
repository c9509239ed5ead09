//! Runs on disk: the sequencer that is also the recorder, the reader, blobs, the player, the run store and the board.
//!
//! Owns the folder of a run (`events.jsonl`, `blobs/`, `lock`) and its format. write(2) comes before an event is shown;
//! fdatasync at most once a second, on the writer's own thread. Refuses to know judges, rubrics' meaning or screens.

//!
//! ```text
//! <time>-<4 letters>/        0700; the letters alone name the run
//!   events.jsonl             0600; {"seq":N,"at":M,"kind":{...}} a line, the header first
//!   blobs/<BLAKE3 in hex>    texts over 4 KB, each once
//!   lock                     flock while recorded; holds the process id
//! ```
//! No end and a free lock: interrupted. Everything else (board, caches) is rebuilt from runs and never needed.

mod blobs;
mod disk;
mod failure;
mod index;
mod lines;
mod lock;
mod newest_verdicts;
mod player;
mod reader;
mod recorded_plan;
mod recorder;
mod rescore;
mod store;
mod sync_timer;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::event::RunEvent;
use crate::model::RunId;

pub use blobs::{FolderBlobs, MAX_BLOB_BYTES};
pub use index::{CacheEntry, CacheIndex, EvidenceUsed, RecordedToolCall};
pub use newest_verdicts::{NewestVerdicts, RecordedResult};
pub use player::{Playback, PlaybackSpeed, PlaybackStep, Player, SeekResult, play_events};
pub use reader::{EventReader, LogEnding, parse_log};
pub use recorded_plan::{PlannedCell, PlannedRange, RecordedPlan};
pub use recorder::{Recorder, StartedRecording};
pub use rescore::{DecisionSettings, EvalDecisionSettings, PanelRules, VerdictCounts};
pub use store::new_run_id;

/// The log in a run's folder.
const EVENTS_FILE: &str = "events.jsonl";

/// A record's fact has at most this many bytes of JSON; what is larger belongs into a blob.
pub const MAX_FACT_BYTES: usize = 16 << 20;

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
    NewerFormat {
        /// The log.
        path: PathBuf,
        /// Its major version.
        major: u16,
        /// Ours.
        known: u16,
    },
    /// No such run.
    #[error("{0}")]
    UnknownRun(String),
    /// Not a log.
    #[error("{path} is not a run: {why}")]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A folder of runs, and the samples that ship with dicta.
#[derive(Debug, Clone)]
pub struct RunStore {
    /// Where new runs are recorded.
    pub dir: PathBuf,
    /// Further folders to read from.
    pub extra_dirs: Vec<PathBuf>,
}

/// A run on disk.
#[derive(Debug, Clone)]
pub struct RecordedRun {
    /// Its id: the folder's name.
    pub id: RunId,
    /// Its folder.
    pub dir: PathBuf,
}

/// A log as it was read.
#[derive(Debug, Clone)]
pub struct RunLog {
    /// Its events in order.
    pub events: Vec<RunEvent>,
    /// What was wrong with lines that could not be read, as sentences.
    pub warnings: Vec<String>,
    /// No end, and nobody holds the lock.
    pub interrupted: bool,
    /// No end, and somebody holds the lock.
    pub running: bool,
}

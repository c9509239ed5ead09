//! Runs on disk: the recorder (which is the sequencer), the reader, blobs, the player, the run store and the newest
//! verdicts.
//!
//! Responsible for the folder of a run (`events.jsonl`, `blobs/`, `lock`) and its format. Does not know judges, the
//! meaning of rubrics, or screens. write(2) precedes the display of an event. The writer's own thread calls fdatasync at
//! most once a second.
//!
//! ```text
//! <time>-<4 letters>/        0700; the letters alone name the run
//!   events.jsonl             0600; {"seq":N,"at":M,"kind":{...},"mac":"…","crc":"…"} a line, the header first
//!   blobs/<BLAKE3 in hex>    texts over 4 KB, each once
//!   events.index             0600; the index of a large log, which dicta builds again if it is absent or stale
//!   lock                     flock while recorded; holds the process id
//!   pinned                   present if the user pinned the run; `dicta runs prune` keeps it then
//! ```
//! `crc` is a checksum of the line before it; a reader leaves out a line that does not match, and reports it. `mac` is
//! a keyed checksum of the header, the plan and each result; the verdict cache uses a result only with it (`record/seal.rs`).
//! Logs of earlier versions (format 1.3 and before) have neither.
//!
//! A log without an end and with a free lock is interrupted. dicta computes everything else, such as the newest
//! verdicts, from the runs.

mod blobs;
mod bundle;
mod cache_file;
mod disk;
mod extra_results;
mod failure;
mod family;
mod follow_ups;
mod history;
mod index;
mod lines;
mod lock;
mod log_index;
mod log_version;
mod newest_verdicts;
mod noise;
mod noise_reader;
mod partial_log;
mod player;
mod prune;
mod reader;
mod recorded_plan;
mod recorder;
mod rescore;
mod run_lister;
mod run_needs;
mod run_status;
mod seal;
mod store;
mod sync_timer;
mod verdict_reader;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::event::RunEvent;
use crate::model::RunId;

pub use blobs::{FolderBlobs, MAX_BLOB_BYTES};
pub use bundle::{
    BundleError, BundleManifest, BundledRun, ReusedRuns, is_bundle, unpack_bundle, write_bundle,
};
pub use extra_results::{ExtraResult, Interruption, RecordedBranch};
pub use family::FamilyMember;
pub use follow_ups::FollowUp;
#[cfg(test)]
pub(crate) use history::testing as history_testing;
pub use history::{
    CellSlot, Correspondence, DecisionStanding, EntryRun, EvalDecisions, EvalEdit, EvalEditKind,
    EvalIdentity, EvalPath, EvalPlace, History, HistoryEntry, HistoryReader, RecordedCell, State,
    StateDecision, StateTranscript, find_edits, pair_replaced_evals,
};
pub use index::{CacheEntry, CacheIndex, EvidenceUsed, RecordedToolCall};
pub use log_index::{FinalState, LogIndex, OutlineEvent, StateAt};
pub use newest_verdicts::{NewestVerdicts, RecordedResult, decide_under};
pub use noise::{NoiseRecords, RepeatedQuestion, RepeatedVerdicts};
pub use noise_reader::NoiseReader;
pub use player::{
    MAX_EVENT_WAIT, Playback, PlaybackSpeed, Player, RecordedLog, SeekResult, StepUnit, play_events,
};
pub use prune::{KeepReason, PrunePlan, PruneRules, StoredRun};
pub use reader::{EventReader, LogEnding, parse_log};
pub use recorded_plan::{PlannedCell, PlannedRange, RecordedPlan};
pub use recorder::{Recorder, StartedRecording};
pub use rescore::{
    DecisionSettings, EvalDecisionSettings, EvalKey, PanelRules, PassFailCount, VerdictCounts,
};
pub use run_lister::RunLister;
pub use run_needs::RunNeed;
pub use run_status::RunStatus;
pub use seal::{LogIntegrity, LogOrigin, RecordKey};
pub use store::{list_store_files, new_run_id};
pub use verdict_reader::NewestVerdictsReader;

/// The log in a run's folder.
const EVENTS_FILE: &str = "events.jsonl";

/// The largest JSON of a fact, in bytes. Larger texts must be blobs.
pub const MAX_FACT_BYTES: usize = 16 << 20;

/// Recorded events in order, in the batches in which they were written.
pub type EventStream = tokio::sync::mpsc::Receiver<Arc<Vec<RunEvent>>>;

/// The reason why recording or reading failed.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A file could not be written or read.
    #[error("{path}: {why}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        why: std::io::Error,
    },
    /// Another process records into this folder.
    #[error("{path} is being recorded by process {pid}")]
    Locked {
        /// The run's folder.
        path: PathBuf,
        /// The id of the process that holds the lock; 0 if it is unknown.
        pid: u32,
    },
    /// A newer major version wrote the log.
    #[error("{path} was written in format {major}; this dicta reads up to {known}")]
    NewerFormat {
        /// The log.
        path: PathBuf,
        /// The major version of the log.
        major: u16,
        /// The major version that this build knows.
        known: u16,
    },
    /// The run does not exist.
    #[error("{0}")]
    UnknownRun(String),
    /// The state does not exist.
    #[error("{0}")]
    UnknownState(String),
    /// The folder contains no log.
    #[error("{path} is not a run: {why}")]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// A folder of runs, and the samples that ship with dicta.
#[derive(Debug, Clone)]
pub struct RunStore {
    /// The folder for new runs.
    pub dir: PathBuf,
    /// Further folders to read runs from.
    pub extra_dirs: Vec<PathBuf>,
    /// The key of this installation; `None` if it has no secret yet. Without it, every run is of another installation.
    pub key: Option<RecordKey>,
}

/// A run on disk.
#[derive(Debug, Clone)]
pub struct RecordedRun {
    /// The id, which is the folder's name.
    pub id: RunId,
    /// Its folder.
    pub dir: PathBuf,
    /// The key of this installation, if it has one.
    pub key: Option<RecordKey>,
}

/// A log, read completely.
#[derive(Debug, Clone)]
pub struct RunLog {
    /// Its events in order.
    pub events: Vec<RunEvent>,
    /// A sentence for each line that could not be read or was changed.
    pub warnings: Vec<String>,
    /// The result of the checksums.
    pub integrity: LogIntegrity,
    /// `true` if the log has no end and no process holds the lock.
    pub interrupted: bool,
    /// `true` if the log has no end and a process holds the lock.
    pub running: bool,
}

//! The file of unsealings next to a file of labels: `labels.jsonl` has `labels.unsealings.jsonl`, one look per line.
//!
//! Responsible for reading and for adding one line. A second look at test labels is worth less than the first one,
//! because the judge may have changed after the first.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::label_log::{add_log_line, read_log};
use crate::model::{RunId, WallTime};

/// A recorded unsealing: who looked, when, at which state, and what the figures were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unsealing {
    /// The time.
    pub at: WallTime,
    /// The name of the person; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The description of the state.
    pub state: String,
    /// The newest run of the state.
    pub run: RunId,
    /// The number of sealed labels.
    pub labels: u64,
    /// The figures per eval, as `dicta agree --format json` prints them.
    pub figures: Vec<Value>,
}

/// Returns the file of unsealings of a file of labels.
pub fn unsealings_file_path(labels: &Path) -> PathBuf {
    labels.with_extension("unsealings.jsonl")
}

/// Reads the unsealings, oldest first. A missing file has none, and a line that dicta cannot read is skipped: a person
/// may have written a remark there.
pub fn read_unsealings(labels: &Path) -> io::Result<Vec<Unsealing>> {
    let text = read_log(&unsealings_file_path(labels))?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.flatten().collect())
}

/// Adds an unsealing at the end of the file. All other lines stay.
pub fn add_unsealing(labels: &Path, unsealing: &Unsealing) -> io::Result<()> {
    add_log_line(&unsealings_file_path(labels), unsealing)
}

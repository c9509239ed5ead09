//! The file of proposals next to a file of labels: `labels.jsonl` has `labels.proposals.jsonl`. Each line is one call of
//! `dicta improve`, with its prompt, its reply and what became of each proposal.
//!
//! Responsible for reading and for adding one line. Contains no label of `dev` or `test`.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::label_log::{add_log_line, read_log};
use crate::model::{Digest, WallTime};
use crate::rubric::EvalValue;

/// A call for proposals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposalCall {
    /// The time.
    pub at: WallTime,
    /// The eval: `rubric/eval`.
    pub eval: String,
    /// The judge whose model was asked.
    pub judge: String,
    /// The model.
    pub model: String,
    /// The digest of the rubric file that the proposals change.
    pub rubric_digest: Digest,
    /// The instructions of the prompt.
    pub system: String,
    /// The material of the prompt.
    pub user: String,
    /// The reply; `None` without one.
    pub reply: Option<String>,
    /// The reason why the reply is missing or not usable.
    pub error: Option<String>,
    /// The cost of the call in USD; `None` if it is unknown.
    pub cost_usd: Option<f64>,
    /// The proposals of the reply.
    pub proposals: Vec<LoggedProposal>,
}

/// A proposal and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedProposal {
    /// The number in the reply, from 1.
    pub number: u32,
    /// The model's reason.
    pub why: String,
    /// The change; empty if the proposal was not usable.
    pub values: Vec<EvalValue>,
    /// The reason why the proposal is not offered; `None` if it is.
    pub refused: Option<String>,
}

/// Returns the file of proposals of a file of labels.
pub fn proposals_file_path(labels: &Path) -> PathBuf {
    labels.with_extension("proposals.jsonl")
}

/// Reads the last call about an eval; `None` without one. A line that dicta cannot read is skipped.
pub fn read_last_call(labels: &Path, eval: &str) -> io::Result<Option<ProposalCall>> {
    let text = read_log(&proposals_file_path(labels))?;
    let mut calls = text
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<ProposalCall>(line).ok());
    Ok(calls.find(|call| call.eval == eval))
}

/// Adds a call at the end of the file. All other lines stay.
pub fn add_call(labels: &Path, call: &ProposalCall) -> io::Result<()> {
    add_log_line(&proposals_file_path(labels), call)
}

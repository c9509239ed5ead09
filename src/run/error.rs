//! The errors of a run.
//!
//! Responsible for the reasons and their texts. Does not choose exit codes.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::plan::filter::FilterError;
use crate::model::RunId;
use crate::record::RecordError;
use crate::transcript::TranscriptError;
use crate::workspace::DataDirError;
use crate::workspace::trust::{SendPermission, TrustError, trust_command};

/// The reason why a run did not start or did not end well.
#[derive(Debug, Error)]
pub enum RunError {
    /// The run did not start, because the request is invalid. One problem per line.
    #[error(transparent)]
    Usage(#[from] RunUsageError),
    /// dicta could not record the run, or could not read another run.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// dicta could not read all transcripts. The transcripts before the error are judged and recorded. The log has no
    /// end, so the run counts as interrupted and can be resumed.
    #[error(transparent)]
    Source(#[from] TranscriptSourceError),
}

/// Secrets that dicta does not send, because the user has not allowed their addresses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "this workspace would {}, and you have not allowed that; to allow it, run `{}`{}",
    join_sends(.sends),
    trust_command(.root),
    hint_at_keyless_server(.sends)
)]
pub struct UnconfirmedSends {
    /// The workspace's folder.
    pub root: PathBuf,
    /// The secrets and the addresses.
    pub sends: Vec<SendPermission>,
}

fn join_sends(sends: &[SendPermission]) -> String {
    let all: Vec<String> = sends.iter().map(ToString::to_string).collect();
    all.join(", and ")
}

/// Returns the hint that a server on this machine often needs no key, such as Ollama.
fn hint_at_keyless_server(sends: &[SendPermission]) -> &'static str {
    const LOCAL: [&str; 3] = ["://127.0.0.1", "://localhost", "://[::1]"];
    let is_local = |send: &SendPermission| LOCAL.iter().any(|host| send.address.contains(host));
    if sends.iter().any(is_local) {
        "; if the server of a judge needs no key, write `api_key_env: null` at the judge"
    } else {
        ""
    }
}

impl RunError {
    /// Returns the secrets and addresses that the user must allow first, if that is the error.
    pub fn unconfirmed_sends(&self) -> Option<&UnconfirmedSends> {
        match self {
            Self::Usage(RunUsageError::UnconfirmedSends(sends)) => Some(sends),
            _ => None,
        }
    }
}

/// The reason why the request for a run is invalid.
#[derive(Debug, Error)]
pub enum RunUsageError {
    /// Evals, judges or tools have problems, one sentence each.
    #[error("{}", .0.join("\n"))]
    Problems(Vec<String>),
    /// No judge has this name.
    #[error("no judge is called `{name}`; {hint}")]
    UnknownJudge {
        /// The name.
        name: String,
        /// The nearest name, or all names.
        hint: String,
    },
    /// The filter is not valid.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// No judged cell matches this pattern.
    #[error("no judged cell is called `{pattern}`{hint}")]
    UnknownCell {
        /// The pattern.
        pattern: String,
        /// The end of the message: a similar name, or the number of cells.
        hint: String,
    },
    /// dicta cannot render the prompt of a cell.
    #[error("{0}")]
    PromptNotRendered(String),
    /// No cell of this pattern has a request.
    #[error("`{pattern}` is judged without a request (a replay judge, or an eval that is skipped)")]
    NoRequest {
        /// The pattern.
        pattern: String,
    },
    /// dicta cannot read the run that it should resume.
    #[error(transparent)]
    ResumedRun(RecordError),
    /// The options change the plan of a resumed run.
    #[error(
        "--resume takes up a run as it was planned: leave out --where, --judge, --limit, --sample and --repeat"
    )]
    ResumeOptions,
    /// A run cannot be resumed.
    #[error("run {} cannot be taken up again: {why}", .run.letters())]
    NotResumable {
        /// The run.
        run: RunId,
        /// The reason.
        why: String,
    },
    /// A branch cannot continue a trace of a run.
    #[error("run {} cannot be branched: {why}", .run.letters())]
    NotBranchable {
        /// The run.
        run: RunId,
        /// The reason.
        why: String,
    },
    /// The tools of a resumed run have changed.
    #[error(
        "run {} cannot be taken up again: since then what these tools declare or do has changed: {}",
        .run.letters(),
        .tools.join(", ")
    )]
    ToolsChanged {
        /// The run.
        run: RunId,
        /// The tools, each with its judge.
        tools: Vec<String>,
    },
    /// Transcript files cannot be read.
    #[error("transcripts cannot be read:\n  {}", join_errors(.0))]
    UnreadableTranscripts(Vec<TranscriptError>),
    /// The run would send secrets to addresses that the user has not allowed.
    #[error(transparent)]
    UnconfirmedSends(#[from] UnconfirmedSends),
    /// dicta cannot read what the user trusts.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The data directory is unknown.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// dicta cannot read or create the secret of this installation.
    #[error("{0}")]
    InstallationSecret(#[source] io::Error),
    /// No run with recorded tool responses has this name.
    #[error("recorded tool responses of `{name}`: {why}")]
    UnknownEvidenceRun {
        /// The name.
        name: String,
        /// The error of the run store.
        why: RecordError,
    },
    /// The list of runs with recorded tool responses is empty.
    #[error("`--replay-tools` needs a run; `dicta runs` lists them")]
    NoEvidenceRun,
    /// dicta cannot read a recorded tool response.
    #[error("recorded tool responses of run {}: {why}", .run.letters())]
    UnreadableEvidence {
        /// The run.
        run: RunId,
        /// The error of the system.
        why: io::Error,
    },
    /// A robustness run cannot attack a source judge.
    #[error(
        "the judge `{judge}` gives verdicts that another tool recorded: it reads no answer, so that none could turn it"
    )]
    AttackedSourceJudge {
        /// The judge.
        judge: String,
    },
    /// A robustness run finds no base answers. The text is a sentence.
    #[error("{0}")]
    NoBaseAnswers(String),
    /// dicta cannot write the cases of a robustness run.
    #[error("{}: the cases cannot be written: {why}", .folder.display())]
    CasesNotWritten {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        #[source]
        why: io::Error,
    },
}

/// The reason why a run could not read its transcripts to the end.
#[derive(Debug, Error)]
pub enum TranscriptSourceError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] TranscriptError),
    /// The reader panicked.
    #[error("reading the transcripts failed inside dicta")]
    ReaderPanicked,
    /// The thread that merges results panicked.
    #[error("a thread of the run ended early; this is a defect of dicta")]
    MergePanicked,
}

fn join_errors(errors: &[TranscriptError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n  ")
}

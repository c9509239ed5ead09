//! The orders that `update` returns, as data. The runtime carries them out.

use std::path::PathBuf;
use std::sync::Arc;

use super::content::HiddenTextRequest;
use super::label_write::LabelWriteOrder;
use super::run_order::RunOrder;
use super::screen_choices::ScreenChoices;
use super::state::cells::RowId;
use super::state::finding_marks::{FindingMarksKey, RubricEval};
use super::state::judge_trace::CellRef;
use super::state::readable_request::RequestKey;
use super::state::runs::RunTicket;
use super::state::saves::EvalName;
use crate::event::RecordedRequest;
use crate::model::{Blob, RunId, TranscriptRef};
use crate::theme::CodeLanguage;
use crate::transcript::FieldMapping;
use crate::workspace::Workspace;
use crate::workspace::trust::SendPermission;

/// An order to the runtime or to the terminal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Compute the outline: the cells of a run over the whole workspace.
    ComputeOutline {
        generation: u64,
        workspace: Arc<Workspace>,
    },
    /// Read the newest verdicts of past runs, decided by the evals of `decided_by`. After a save that is the
    /// workspace before the save, so that the runs of the save show what changes.
    ReadNewestVerdicts {
        generation: u64,
        workspace: Arc<Workspace>,
        decided_by: Arc<Workspace>,
    },
    /// Watch the files of this workspace instead of those watched before.
    WatchWorkspace(Arc<Workspace>),
    /// Check the watched files for changes now.
    RescanFiles,
    /// Find the warnings of `dicta check` that need all transcripts or the newest verdicts. A newer order cancels an
    /// older one.
    FindWarnings {
        number: u64,
        workspace: Arc<Workspace>,
    },
    /// Check the examples of all evals: first those that code decides, then those of the evals in `judged`. Runs wait
    /// for the first part. A newer order cancels an older one.
    TryExamples {
        number: u64,
        workspace: Arc<Workspace>,
        judged: Vec<EvalName>,
    },
    /// Estimate the calls of paid judges for the examples of these evals.
    PreviewExamples {
        number: u64,
        workspace: Arc<Workspace>,
        evals: Vec<EvalName>,
    },
    /// Call paid judges for the examples of these evals, because the user allows their cost.
    JudgeExamples {
        number: u64,
        workspace: Arc<Workspace>,
        evals: Vec<EvalName>,
    },
    /// Start a run.
    StartRun(RunOrder),
    /// Record that runs of a workspace may send these secrets to these addresses.
    AllowSends {
        root: PathBuf,
        sends: Vec<SendPermission>,
    },
    /// End a run.
    CancelRun(RunTicket),
    /// Estimate the cost and size of a run.
    PreviewRun(RunOrder),
    /// Read the judge trace of a recorded cell.
    ReadTrace {
        row: RowId,
        run: RunId,
        cell: CellRef,
        workspace: Option<Arc<Workspace>>,
        dir: Option<PathBuf>,
    },
    /// Read a blob of a run.
    ReadBlob { dir: PathBuf, blob: Blob },
    /// Convert a request to readable text, compared with the request of the turn before.
    ReadRequest {
        key: RequestKey,
        dir: Option<PathBuf>,
        request: RecordedRequest,
        before: RecordedRequest,
    },
    /// Highlight a text.
    Highlight {
        key: u64,
        lang: CodeLanguage,
        text: Arc<str>,
    },
    /// Find the parts of a page that a browser hides. The result arrives as [`super::msg::Msg::Highlighted`].
    FindUnshown {
        dir: PathBuf,
        page: HiddenTextRequest,
    },
    /// Read a transcript, or the run's blob if the file no longer contains it.
    ReadDocument {
        transcript: TranscriptRef,
        run_dir: Option<PathBuf>,
        map: Option<Arc<FieldMapping>>,
    },
    /// Read the file's own record of a transcript.
    ReadSource {
        transcript: TranscriptRef,
        map: Option<Arc<FieldMapping>>,
    },
    /// Run a check again to find the text that its finding rests on.
    FindMarks {
        key: FindingMarksKey,
        eval: RubricEval,
        message: Option<u32>,
        transcript: TranscriptRef,
        run_dir: Option<PathBuf>,
        map: Option<Arc<FieldMapping>>,
    },
    /// Read a run for a replay.
    ReadReplay {
        run: RunId,
        workspace: Option<Arc<Workspace>>,
        dir: Option<PathBuf>,
    },
    /// Find judges that the user could ask (API keys in the environment, local servers) and the cost of this cell
    /// with each.
    FindJudges { row: RowId, order: RunOrder },
    /// List one page of transcripts of an opened file, after the first `after` records. Then count the rest.
    ListTranscripts { file: PathBuf, after: u64 },
    /// Create a workspace and a first rubric around a file of transcripts.
    MakeWorkspace { file: PathBuf },
    /// Write a label to the file of labels. The runtime carries these orders out one after the other.
    WriteLabel(LabelWriteOrder),
    /// Open an editor at a position. The editor has the screen until it ends.
    OpenEditor {
        path: PathBuf,
        line: u32,
        column: u32,
    },
    /// Write choices on the screen for the next start.
    RememberChoices(ScreenChoices),
    /// Copy a text to the clipboard. `what` names the text in the notice.
    Copy { what: String, text: String },
    /// Stop the process until the shell continues it (ctrl-z).
    Suspend,
    /// Draw the whole screen again.
    Redraw,
    /// End the program.
    Quit,
}

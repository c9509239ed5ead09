//! Everything the workbench can ask to be done. Orders, as data: `update` returns them, `runtime` carries them out.

use std::path::PathBuf;
use std::sync::Arc;

use super::content::HiddenTextRequest;
use super::label_write::LabelWriteOrder;
use super::run_order::RunOrder;
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

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// Find out which cells there are.
    ComputeOutline {
        generation: u64,
        workspace: Arc<Workspace>,
    },
    /// Read the board of past runs, as the evals of `decided_by` decide: of the workspace itself, or of it before a save,
    /// so that what the save moves can be told.
    ReadNewestVerdicts {
        generation: u64,
        workspace: Arc<Workspace>,
        decided_by: Arc<Workspace>,
    },
    /// Watch the workspace's files from now on, instead of those watched before.
    WatchWorkspace(Arc<Workspace>),
    /// Look at the watched files now.
    RescanFiles,
    /// Try the evals' own examples: what code decides, then those of these judged evals. No run begins before the first
    /// part is done. A newer one ends an older one.
    TryExamples {
        number: u64,
        workspace: Arc<Workspace>,
        judged: Vec<EvalName>,
    },
    /// Start a run.
    StartRun(RunOrder),
    /// End a run.
    CancelRun(RunTicket),
    /// Find out what a run would take.
    PreviewRun(RunOrder),
    /// Read a recorded cell's trace.
    ReadTrace {
        row: RowId,
        run: RunId,
        cell: CellRef,
        workspace: Option<Arc<Workspace>>,
        dir: Option<PathBuf>,
    },
    /// Read a blob of a run.
    ReadBlob { dir: PathBuf, blob: Blob },
    /// Make a request readable, beside that of the turn before.
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
    /// Find where a browser does not show what a page says; told as looks.
    FindUnshown {
        dir: PathBuf,
        page: HiddenTextRequest,
    },
    /// Read a transcript; from the run's blob where the file no longer holds it.
    ReadDocument {
        transcript: TranscriptRef,
        run_dir: Option<PathBuf>,
        map: Option<Arc<FieldMapping>>,
    },
    /// Read what the file itself has of a transcript.
    ReadSource {
        transcript: TranscriptRef,
        map: Option<Arc<FieldMapping>>,
    },
    /// Have the check decide again, for the places its finding rests on.
    FindMarks {
        key: FindingMarksKey,
        eval: RubricEval,
        message: Option<u32>,
        transcript: TranscriptRef,
        run_dir: Option<PathBuf>,
        map: Option<Arc<FieldMapping>>,
    },
    /// Read a run, to be replayed.
    ReadReplay {
        run: RunId,
        workspace: Option<Arc<Workspace>>,
        dir: Option<PathBuf>,
    },
    /// Look for real judges that could be asked: keys in the environment, local servers; and what this cell would cost.
    FindJudges { row: RowId, order: RunOrder },
    /// List transcripts of a bare file, past the first `after` records: a page of them, then count the rest.
    ListTranscripts { file: PathBuf, after: u64 },
    /// Make a workspace and a first rubric around a file of transcripts.
    MakeWorkspace { file: PathBuf },
    /// Write what a person said into the file of labels. Orders are carried out one after the other.
    WriteLabel(LabelWriteOrder),
    /// Open an editor at a place; the screen is the editor's meanwhile.
    OpenEditor {
        path: PathBuf,
        line: u32,
        column: u32,
    },
    /// Put a text on the clipboard; `what` names it in the message.
    Copy { what: String, text: String },
    /// Stop the program until it is continued (ctrl-z).
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// End.
    Quit,
}

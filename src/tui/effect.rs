//! The orders that `update` returns, as data. The runtime carries them out.

use std::path::PathBuf;
use std::sync::Arc;

use super::content::HiddenTextRequest;
use super::history_view::{HistoryView, RubricEditOrder, Shared, SharedLabels, StatePair};
use super::label_figures::{FiguresInput, StateFiguresInput};
use super::label_write::{LabelWriteOrder, MovedLabels};
use super::run_order::RunOrder;
use super::screen_choices::ScreenChoices;
use super::state::cells::RowId;
use super::state::edit_report::{EvalName, EvalRename};
use super::state::finding_marks::{FindingMarksKey, RubricEval};
use super::state::follow_ups::{FollowUpKey, FollowUpOrder};
use super::state::judge_trace::CellRef;
use super::state::pauses::EditTarget;
use super::state::readable_request::RequestKey;
use super::state::replay::ReplayRequest;
use super::state::runs::RunTicket;
use super::state::variants::VariantListing;
use crate::compare::{QueueEval, StratumProperty};
use crate::event::RecordedRequest;
use crate::judge::{Breakpoint, PauseDecision};
use crate::model::{Blob, CellIx, CellName, JudgeConfig, RunId, TranscriptRef};
use crate::record::{LogIndex, RecordedCell};
use crate::review::{
    EvalDraft, ModeList, ReviewFiles, ReviewNote, ReviewPlace, ReviewSession, SuggestionOrder,
    UndoStep,
};
use crate::theme::CodeLanguage;
use crate::transcript::FieldMapping;
use crate::workspace::Workspace;
use crate::workspace::trust::SendPermission;

/// An order to read the other runs of the family of an opened recording.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FamilyOrder {
    pub(crate) ticket: RunTicket,
    /// The opened run, and those whose verdicts it reused.
    pub(crate) runs: Vec<RunId>,
    /// The cell that the opened run continues, if it is a branch.
    pub(crate) parent: Option<(RunId, CellIx)>,
    pub(crate) workspace: Option<Arc<Workspace>>,
    /// The folder of the opened recording.
    pub(crate) dir: PathBuf,
}

/// An order to write notes and modes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewWriteOrder {
    pub(crate) number: u64,
    pub(crate) files: ReviewFiles,
    /// The text of modes.yaml that the change is based on.
    pub(crate) modes_before: Arc<str>,
    /// The modes, if they change.
    pub(crate) modes: Option<ModeList>,
    /// The records to add. A note without an id is new.
    pub(crate) notes: Vec<ReviewNote>,
    /// The change that the write makes, for its undo.
    pub(crate) step: Option<UndoStep>,
    /// The change that the write undoes.
    pub(crate) undoes: Option<UndoStep>,
}

/// The result of an order to write notes and modes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenReview {
    /// The notes with their ids and times.
    pub(crate) notes: Vec<ReviewNote>,
    /// The new text of modes.yaml, if it changed.
    pub(crate) modes_text: Option<Arc<str>>,
    /// The reason why the undo is not recorded for the next start.
    pub(crate) unkept: Option<String>,
}

/// An eval that was written from a mode.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenReviewEval {
    /// A sentence about it.
    pub(crate) text: String,
    /// The change, for its undo.
    pub(crate) step: UndoStep,
    /// The reason why the undo is not recorded for the next start.
    pub(crate) unkept: Option<String>,
}

/// The reason why a change was not undone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UndoFailure {
    pub(crate) why: String,
    /// True if another try can succeed.
    pub(crate) can_retry: bool,
}

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
        /// The evals that were renamed since, oldest first.
        renames: Vec<EvalRename>,
    },
    /// Read the repeats of the noise runs. `measured` is the run that just ended.
    ReadNoise {
        number: u64,
        workspace: Arc<Workspace>,
        measured: Option<RunTicket>,
    },
    /// Read the newest edit from the history of the workspace.
    ReadEdit { workspace: Arc<Workspace> },
    /// Move the labels of renamed evals to their new names.
    RenameLabels {
        workspace: Arc<Workspace>,
        renames: Vec<EvalRename>,
    },
    /// Give the labels that `M` moved their old names again.
    UndoLabelMove(MovedLabels),
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
    /// Find the judges of the workspace that lack their key.
    CheckKeys(Arc<Workspace>),
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
    /// Leave the cells of these evals pending that a run has not started.
    WithdrawEvals {
        ticket: RunTicket,
        evals: Vec<EvalName>,
    },
    /// Replace the breakpoints of all runs.
    SetBreakpoints(Vec<Breakpoint>),
    /// Release a paused judge trace.
    DecidePause {
        ticket: RunTicket,
        cell: CellIx,
        decision: PauseDecision,
    },
    /// Open a text of a judge trace in the editor, which has the screen until it ends.
    EditText { target: EditTarget, text: String },
    /// Estimate the cost and size of a run.
    PreviewRun(RunOrder),
    /// Read the follow-up questions about a cell.
    ReadFollowUps(FollowUpKey),
    /// Ask a judge about its verdict, and record the answer.
    AskFollowUp(FollowUpOrder),
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
    /// Read the other runs of the family of an opened recording.
    ReadFamily(FamilyOrder),
    /// Read a part of the indexed log of a replay.
    ReadReplayPart {
        ticket: RunTicket,
        index: Shared<LogIndex>,
        request: ReplayRequest,
    },
    /// Read the history of the workspace.
    ReadHistory {
        number: u64,
        workspace: Arc<Workspace>,
    },
    /// Count the entries of the history. A newer order cancels an older one.
    CountHistory {
        number: u64,
        view: Shared<HistoryView>,
        labels: SharedLabels,
        /// The workspace with the file of draws.
        workspace: Option<Arc<Workspace>>,
    },
    /// Compare two states of the history. `number` is the number of the read history.
    CompareStates {
        number: u64,
        view: Shared<HistoryView>,
        labels: SharedLabels,
        pair: StatePair,
    },
    /// Read the reasons of verdicts of the history that was read last.
    ReadReasons {
        number: u64,
        cells: Vec<RecordedCell>,
    },
    /// Read the state of an entry of the history that was read last, to show its cells.
    ReadState {
        entry: usize,
        select: Option<CellName>,
    },
    /// Set the baseline to an entry; `None` removes it.
    SetBaseline {
        workspace: Arc<Workspace>,
        entry: Option<usize>,
    },
    /// Write the state of an entry to a file, whose path is relative to the folder of the workspace.
    ExportState {
        workspace: Arc<Workspace>,
        entry: usize,
        output: PathBuf,
    },
    /// Find the rubric files of an entry's revision that differ from the current ones.
    PlanRestore {
        workspace: Arc<Workspace>,
        view: Shared<HistoryView>,
        entry: usize,
    },
    /// Change rubric files.
    EditRubrics {
        workspace: Arc<Workspace>,
        order: RubricEditOrder,
    },
    /// Find judges that the user could ask (API keys in the environment, local servers) and the cost of this cell
    /// with each.
    FindJudges { row: RowId, order: RunOrder },
    /// List one page of transcripts of an opened file, after the first `after` records. Then count the rest.
    ListTranscripts { file: PathBuf, after: u64 },
    /// Create a workspace and a first rubric around a file of transcripts.
    MakeWorkspace { file: PathBuf },
    /// Read the recorded draws of a file of labels.
    ReadDraws { file: PathBuf },
    /// Draw decisions of an eval by chance and record the draw next to the file of labels.
    DrawLabels {
        file: PathBuf,
        eval: u32,
        items: Shared<QueueEval>,
        by: Option<StratumProperty>,
        size: usize,
    },
    /// Compute the figures of an eval against the labels.
    ComputeFigures {
        eval: u32,
        version: u64,
        input: Shared<FiguresInput>,
    },
    /// Compute the figures of an eval of an opened state.
    ComputeStateFigures(Shared<StateFiguresInput>),
    /// List the variants of the workspace's files.
    ListVariants {
        number: u64,
        workspace: Arc<Workspace>,
    },
    /// Judge a variant on its dev labels.
    JudgeVariant {
        number: u64,
        listing: Shared<VariantListing>,
        position: usize,
    },
    /// Cancel the runs of variants.
    CancelVariants,
    /// Read a review. `more` extends its sample.
    OpenReview {
        number: u64,
        place: Shared<ReviewPlace>,
        more: Option<usize>,
    },
    /// Write notes and modes. The screen waits for the answer.
    WriteReview(ReviewWriteOrder),
    /// Count how often each mode occurs.
    CountModes {
        number: u64,
        session: Shared<ReviewSession>,
    },
    /// Count in how many transcripts each draft fails.
    CountDraftHits {
        mode: String,
        session: Shared<ReviewSession>,
        drafts: Vec<EvalDraft>,
    },
    /// Write an eval into a rubric, with its labels.
    WriteEval {
        session: Shared<ReviewSession>,
        draft: EvalDraft,
        rubric: String,
    },
    /// Take an eval back, with its labels.
    UndoEval {
        workspace: Arc<Workspace>,
        files: ReviewFiles,
        step: Box<UndoStep>,
    },
    /// Forget a change that cannot be undone.
    ForgetUndo {
        files: ReviewFiles,
        step: Box<UndoStep>,
    },
    /// Group notes by similar words.
    SuggestGroups {
        number: u64,
        notes: Vec<ReviewNote>,
        cut: f64,
    },
    /// Estimate the cost of a question to a judge about groups.
    EstimateSuggestions {
        number: u64,
        session: Shared<ReviewSession>,
        judge: Box<JudgeConfig>,
    },
    /// Ask a judge for groups.
    AskForSuggestions {
        number: u64,
        order: Shared<SuggestionOrder>,
    },
    /// Stop the question to a judge.
    StopSuggestions,
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

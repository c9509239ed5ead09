//! The inputs of `update`: facts, named in the past tense. An [`super::effect::Effect`] orders the reaction.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::click_target::ClickTarget;
use super::effect::{ReviewWriteOrder, UndoFailure, WrittenReview, WrittenReviewEval};
use super::history_view::{
    ComparedStates, HistoryFacts, HistoryView, ReadState, RestorePlan, RubricEdit, Shared,
    StatePair,
};
use super::key_chord::KeyChord;
use super::label_write::{MovedLabels, WrittenLabel};
use super::listing::ListingUpdate;
use super::run_order::RunOrder;
use super::state::cells::{RecordedFamily, RowId};
use super::state::document::TranscriptDocument;
use super::state::edit_report::{EvalName, RecordedEdit};
use super::state::finding_marks::FindingMarksKey;
use super::state::follow_ups::{FollowUpKey, FollowUpOrder};
use super::state::judge_trace::RecordedCell;
use super::state::labelling::ScreenFigures;
use super::state::overlay::AvailableJudge;
use super::state::pauses::EditTarget;
use super::state::readable_request::{ReadableRequest, RequestKey};
use super::state::replay::ReplayPart;
use super::state::review::CountedModes;
use super::state::runs::RunTicket;
use super::state::transcript_source::TranscriptSourceText;
use super::state::variants::{VariantListing, VariantsRead};
use super::task_failure::TaskFailure;
use super::widget::canvas::HitMap;
use crate::diag::Diagnostic;
use crate::event::{GatePoint, RunEvent};
use crate::handlers::TranscriptSpan;
use crate::judge::PausedAt;
use crate::model::{Blob, CellIx, CellName, RecordedDraw, RunId, TranscriptRef, WallTime};
use crate::record::{
    FollowUp, LogIntegrity, NewestVerdicts, NoiseRecords, RecordedCell as HistoryCell, RecordedLog,
};
use crate::review::{
    DraftHits, JudgeSuggestions, NoteGroup, ReviewSession, SuggestionOrder, UndoStep,
};
use crate::run::{OutlineBatch, PaidCalls, RunPreview};
use crate::theme::StyledSpan;
use crate::workspace::Workspace;
use crate::workspace::lint::ExampleResult;
use crate::workspace::trust::SendPermission;

/// A workspace around an opened file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MadeWorkspace {
    pub(crate) workspace: Arc<Workspace>,
    /// False if an earlier session made it.
    pub(crate) is_new: bool,
}

/// An event that changes the app.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Msg {
    /// A key was pressed.
    Key(KeyChord),
    /// A text was pasted. It never runs a command.
    Pasted(String),
    /// The user pressed, dragged or scrolled the mouse.
    Mouse(MouseInput),
    /// The terminal has another size.
    Resized { width: u16, height: u16 },
    /// The terminal got the focus. Files may have changed in the meantime.
    FocusGained,
    /// The time came that [`super::state::App::next_wake`] had announced.
    TimePassed,
    /// The program received a signal to end, with this number.
    Signalled(i32),
    /// A background task panicked; the text is a sentence. The task's own result message follows separately.
    WorkerPanicked(String),
    /// dicta can't do what was requested; the text is a sentence.
    Refused(String),
    /// A review was read, or it does not open for these reasons.
    ReviewOpened {
        number: u64,
        session: Result<Shared<ReviewSession>, Vec<String>>,
        /// The changes before the restart that can be undone.
        undo: Vec<UndoStep>,
        at: WallTime,
    },
    /// Notes and modes are on disk: the notes with their ids, and the new text of modes.yaml.
    ReviewWritten {
        order: Box<ReviewWriteOrder>,
        written: Result<WrittenReview, TaskFailure>,
    },
    /// A change that cannot be undone was forgotten, or not, for this reason.
    UndoForgotten(Option<String>),
    /// The modes were counted.
    ModesCounted {
        number: u64,
        counted: Result<Box<CountedModes>, TaskFailure>,
    },
    /// The hits of drafts were counted.
    DraftHitsCounted {
        mode: String,
        hits: Vec<Result<Option<DraftHits>, String>>,
    },
    /// The notes without a mode are grouped by similar words.
    GroupsSuggested {
        number: u64,
        groups: Result<Vec<NoteGroup>, TaskFailure>,
    },
    /// The cost of a question to a judge about groups is estimated.
    SuggestionsEstimated {
        number: u64,
        estimated: Result<(Shared<SuggestionOrder>, PaidCalls), TaskFailure>,
    },
    /// A question to a judge goes on.
    SuggestionProgress { number: u64, phrase: String },
    /// A judge suggests groups.
    SuggestionsMade {
        number: u64,
        made: Result<JudgeSuggestions, TaskFailure>,
    },
    /// An eval was written.
    ReviewEvalWritten(Result<Box<WrittenReviewEval>, TaskFailure>),
    /// An eval was taken back, or why not.
    ReviewEvalUndone {
        step: Box<UndoStep>,
        done: Result<(), UndoFailure>,
        /// The reason why the undo is not recorded for the next start.
        unkept: Option<String>,
    },
    /// A frame was drawn, with the areas that a click can hit.
    Drawn(HitMap<ClickTarget>),

    /// A part of the outline arrived: the cells of a run over the whole workspace. `run_started` comes first, then
    /// `cells_planned`.
    OutlineExtended {
        generation: u64,
        batch: OutlineBatch,
    },
    /// The outline is complete, or it failed with this problem.
    OutlineEnded {
        generation: u64,
        problem: Option<String>,
    },
    /// The newest verdicts of past runs were read. `problems` are sentences about unreadable runs.
    NewestVerdictsRead {
        generation: u64,
        verdicts: Arc<NewestVerdicts>,
        problems: Vec<String>,
    },
    /// The newest edit was read from the history; `None` if there is none.
    EditRead(Result<Option<Arc<RecordedEdit>>, TaskFailure>),
    /// The labels of renamed evals were moved.
    LabelsRenamed(Result<MovedLabels, TaskFailure>),
    /// The labels that `M` moved have their old names again: the move, and the number of labels.
    LabelMoveUndone {
        moved: MovedLabels,
        restored: Result<u64, TaskFailure>,
    },
    /// A watched file changed and the workspace loads. `changed` lists the files that differ from the last valid
    /// version.
    Reloaded {
        workspace: Arc<Workspace>,
        changed: Vec<PathBuf>,
    },
    /// A watched file changed, was stable for 200 ms, and does not load.
    ReloadFailed { problems: Vec<Diagnostic> },
    /// dicta can't watch files; the sentence says what it does instead.
    WatchFailed(String),

    /// The keys of the judges were checked: the judges that lack one, each with the reason.
    KeysChecked(BTreeMap<String, String>),

    /// The warnings of `dicta check` were found.
    WarningsFound {
        number: u64,
        warnings: Vec<Diagnostic>,
    },

    /// The examples of evals without a judge were checked.
    ExamplesTried {
        number: u64,
        trials: Vec<ExampleResult>,
    },
    /// The paid calls for the examples of these evals were estimated.
    ExamplesPreviewed {
        number: u64,
        workspace: Arc<Workspace>,
        evals: Vec<EvalName>,
        calls: Result<PaidCalls, TaskFailure>,
    },
    /// Judges were called for the examples of these evals; `problem` says why some were not called.
    ExamplesJudged {
        number: u64,
        evals: Vec<EvalName>,
        trials: Vec<ExampleResult>,
        problem: Option<String>,
    },

    /// A run started.
    RunStarted {
        ticket: RunTicket,
        run: RunId,
        dir: PathBuf,
    },
    /// A run could not start, for this reason.
    RunRefused { ticket: RunTicket, why: String },
    /// A run did not start, because it would send secrets to addresses that the user has not allowed.
    RunUnconfirmed {
        order: Box<RunOrder>,
        sends: Vec<SendPermission>,
    },
    /// The run recorded more events.
    RunEvents {
        ticket: RunTicket,
        events: Arc<Vec<RunEvent>>,
    },
    /// The run ended, with its problem if it failed.
    RunEnded {
        ticket: RunTicket,
        problem: Option<String>,
    },
    /// A judge trace paused. The recording has an event for it, too.
    TracePaused {
        ticket: RunTicket,
        cell: CellIx,
        /// The name of the cell, because the message may arrive before the plan of its run.
        name: Option<Box<CellName>>,
        point: GatePoint,
        at: Box<PausedAt>,
    },
    /// The editor of a step ended: the new text, or `None` if it is unchanged.
    TextEdited {
        target: Box<EditTarget>,
        edited: Result<Option<String>, TaskFailure>,
    },
    /// The follow-up questions about a cell were read.
    FollowUpsRead {
        key: FollowUpKey,
        list: Vec<FollowUp>,
    },
    /// A follow-up question costs more than the limit, and was not sent.
    FollowUpPriced {
        order: Box<FollowUpOrder>,
        calls: PaidCalls,
    },
    /// A judge answered a follow-up question, or not: a sentence.
    FollowUpAnswered {
        key: FollowUpKey,
        answered: Result<Box<FollowUp>, TaskFailure>,
    },
    /// The cost and size of a run were estimated.
    Previewed {
        ticket: RunTicket,
        preview: Result<RunPreview, TaskFailure>,
    },

    /// A recorded cell was read.
    TraceRead {
        row: RowId,
        recorded: Result<Arc<RecordedCell>, TaskFailure>,
    },
    /// A blob was read.
    BlobRead {
        blob: Blob,
        text: Result<Arc<str>, TaskFailure>,
    },
    /// A request was converted to readable text.
    RequestRead {
        key: RequestKey,
        request: Result<Arc<ReadableRequest>, TaskFailure>,
    },
    /// A text was highlighted. `key` is the key of the order.
    Highlighted { key: u64, spans: Vec<StyledSpan> },
    /// A transcript was read.
    DocumentRead {
        id: String,
        doc: Result<Arc<TranscriptDocument>, TaskFailure>,
    },
    /// The file's own record of a transcript was read.
    SourceRead {
        transcript: TranscriptRef,
        record: Result<Arc<TranscriptSourceText>, TaskFailure>,
    },
    /// A check ran again to locate its finding. `marks` is empty if the finding differs now.
    MarksFound {
        key: FindingMarksKey,
        marks: Vec<TranscriptSpan>,
    },
    /// A recording was read for a replay.
    ReplayRead {
        run: RunId,
        dir: PathBuf,
        log: Result<RecordedLog, TaskFailure>,
        warnings: Vec<String>,
        integrity: LogIntegrity,
    },
    /// The results of the other runs of an opened recording's family were read.
    FamilyRead {
        ticket: RunTicket,
        family: RecordedFamily,
    },
    /// A part of the indexed log of a replay was read.
    ReplayPartRead {
        ticket: RunTicket,
        part: Result<ReplayPart, TaskFailure>,
    },
    /// The history was read.
    HistoryRead {
        number: u64,
        view: Result<Shared<HistoryView>, TaskFailure>,
    },
    /// Some entries of the history were counted.
    HistoryCounted { number: u64, facts: HistoryFacts },
    /// Two states were compared.
    StatesCompared {
        number: u64,
        pair: StatePair,
        compared: Result<Arc<ComparedStates>, TaskFailure>,
    },
    /// The reasons of verdicts were read.
    ReasonsRead {
        number: u64,
        reasons: Vec<(HistoryCell, String)>,
    },
    /// The state of an entry was read.
    StateRead {
        number: usize,
        read: Result<ReadState, TaskFailure>,
    },
    /// The baseline was set to an entry.
    BaselineSet {
        entry: Option<usize>,
        done: Result<(), TaskFailure>,
    },
    /// The rubric files that a restore would write were found.
    RestorePlanned(Result<RestorePlan, TaskFailure>),
    /// Rubric files were changed, or a change was undone.
    RubricsWritten {
        undoes: bool,
        written: Result<RubricEdit, TaskFailure>,
    },
    /// A state was written to a file, or not. The text is a sentence about the file.
    StateExported(Result<String, TaskFailure>),
    /// The repeats of the noise runs were read. `measured` is the run that just ended.
    NoiseRead {
        number: u64,
        root: PathBuf,
        measured: Option<RunTicket>,
        noise: Result<Shared<NoiseRecords>, TaskFailure>,
    },
    /// The recorded draws of a file of labels were read.
    DrawsRead {
        file: PathBuf,
        draws: Result<Shared<Vec<RecordedDraw>>, TaskFailure>,
    },
    /// A draw was recorded; `None` if nothing was left to draw.
    LabelsDrawn {
        eval: u32,
        drawn: Result<Option<Box<RecordedDraw>>, TaskFailure>,
    },
    /// The figures of an eval were computed.
    FiguresComputed {
        eval: u32,
        version: u64,
        figures: Result<Shared<ScreenFigures>, TaskFailure>,
    },
    /// The figures of an eval of an opened state were computed.
    StateFiguresComputed {
        number: usize,
        eval: u32,
        figures: Result<Shared<ScreenFigures>, TaskFailure>,
    },
    /// Some variants of a file were read.
    VariantsRead { number: u64, read: VariantsRead },
    /// The variants of the workspace's files were listed.
    VariantsListed {
        number: u64,
        listed: Result<Shared<VariantListing>, TaskFailure>,
    },
    /// The run of a variant ended.
    VariantJudged {
        number: u64,
        name: String,
        done: Result<(), TaskFailure>,
    },
    /// The search for available judges ended.
    JudgesFound {
        row: RowId,
        judges: Result<Vec<AvailableJudge>, TaskFailure>,
    },
    /// A part of the records of an opened file was listed.
    TranscriptsListed {
        file: PathBuf,
        listed: ListingUpdate,
    },
    /// A workspace was created around a file, or not: a sentence.
    WorkspaceMade(Result<MadeWorkspace, TaskFailure>),
    /// A label was written, or not: a sentence.
    LabelWritten {
        number: u64,
        written: Box<Result<WrittenLabel, TaskFailure>>,
    },
    /// The editor ended.
    EditorClosed(Result<(), TaskFailure>),
    /// A text was copied to the clipboard, or not. Both values are sentences.
    Copied(Result<String, TaskFailure>),
}

/// One mouse event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MouseInput {
    /// The kind of the event.
    pub(crate) action: MouseAction,
    /// The column of the pointer, from 0.
    pub(crate) column: u16,
    /// The row of the pointer, from 0.
    pub(crate) row: u16,
}

/// The mouse events that dicta uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseAction {
    /// The left button went down.
    Pressed,
    /// The pointer moved while the button was down.
    Dragged,
    /// The button was released.
    Released,
    /// The wheel turned by so many rows; negative is up.
    Scrolled(i8),
}

//! The inputs of `update`: facts, named in the past tense. An [`super::effect::Effect`] orders the reaction.

use std::path::PathBuf;
use std::sync::Arc;

use super::click_target::ClickTarget;
use super::key_chord::KeyChord;
use super::label_write::WrittenLabel;
use super::listing::ListingUpdate;
use super::run_order::RunOrder;
use super::state::cells::RowId;
use super::state::document::TranscriptDocument;
use super::state::finding_marks::FindingMarksKey;
use super::state::judge_trace::RecordedCell;
use super::state::overlay::AvailableJudge;
use super::state::readable_request::{ReadableRequest, RequestKey};
use super::state::runs::RunTicket;
use super::state::saves::EvalName;
use super::state::transcript_source::TranscriptSourceText;
use super::task_failure::TaskFailure;
use super::widget::canvas::HitMap;
use crate::diag::Diagnostic;
use crate::event::{EventKind, RunEvent};
use crate::handlers::TranscriptSpan;
use crate::model::{Blob, RunId, TranscriptRef};
use crate::record::{LogIntegrity, NewestVerdicts};
use crate::run::{PaidCalls, RunPreview};
use crate::theme::StyledSpan;
use crate::workspace::Workspace;
use crate::workspace::lint::ExampleResult;
use crate::workspace::trust::SendPermission;

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
    /// A frame was drawn, with the areas that a click can hit.
    Drawn(HitMap<ClickTarget>),

    /// A part of the outline arrived: the cells of a run over the whole workspace. `run_started` comes first, then
    /// `cells_planned`.
    OutlineExtended {
        generation: u64,
        facts: Vec<EventKind>,
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
        log: Result<Arc<Vec<RunEvent>>, TaskFailure>,
        warnings: Vec<String>,
        integrity: LogIntegrity,
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
    WorkspaceMade(Result<Arc<Workspace>, TaskFailure>),
    /// A label was written, or not: a sentence.
    LabelWritten {
        number: u64,
        written: Result<WrittenLabel, TaskFailure>,
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

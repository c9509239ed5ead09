//! Everything that can happen to the workbench. Facts, in the past; what is to be done about them is an [`super::effect::Effect`].

use std::path::PathBuf;
use std::sync::Arc;

use super::click_target::ClickTarget;
use super::key_chord::KeyChord;
use super::label_write::WrittenLabel;
use super::listing::ListingUpdate;
use super::state::cells::RowId;
use super::state::document::TranscriptDocument;
use super::state::finding_marks::FindingMarksKey;
use super::state::judge_trace::RecordedCell;
use super::state::overlay::AvailableJudge;
use super::state::readable_request::{ReadableRequest, RequestKey};
use super::state::runs::RunTicket;
use super::state::transcript_source::TranscriptSourceText;
use super::widget::canvas::HitMap;
use crate::diag::Diagnostic;
use crate::event::{EventKind, RunEvent};
use crate::handlers::TranscriptSpan;
use crate::model::{Blob, RunId, TranscriptRef};
use crate::record::NewestVerdicts;
use crate::run::RunPreview;
use crate::theme::Role;
use crate::workspace::Workspace;
use crate::workspace::lint::ExampleResult;

/// What happened.
#[derive(Debug, Clone)]
pub(crate) enum Msg {
    /// A key was pressed.
    Key(KeyChord),
    /// A text was pasted. Never runs anything.
    Pasted(String),
    /// The mouse did something.
    Mouse(MouseInput),
    /// The terminal has another size.
    Resized { width: u16, height: u16 },
    /// The terminal got the focus: files may have changed.
    FocusGained,
    /// A moment came that the model waited for (see [`super::model::Model::next_wake`]).
    TimePassed,
    /// A signal asks to end: its number.
    Signalled(i32),
    /// A task of ours panicked: a sentence. Whoever waited for it is told besides.
    WorkerPanicked(String),
    /// Something that was asked for cannot be done here: a sentence.
    Refused(String),
    /// A frame was drawn; what lies where.
    Drawn(HitMap<ClickTarget>),

    /// More of what a run over the whole workspace would decide: `run_started` first, then `cells_planned`.
    OutlineExtended {
        generation: u64,
        facts: Vec<EventKind>,
    },
    /// All of it is known, or why not.
    OutlineEnded {
        generation: u64,
        problem: Option<String>,
    },
    /// The board of past runs, and sentences about runs that could not be read.
    NewestVerdictsRead {
        generation: u64,
        verdicts: Arc<NewestVerdicts>,
        problems: Vec<String>,
    },
    /// A watched file changed and everything loaded: which files differ from the last good state.
    Reloaded {
        workspace: Arc<Workspace>,
        changed: Vec<PathBuf>,
    },
    /// A watched file changed and does not load (and has not changed since for 200 ms).
    ReloadFailed { problems: Vec<Diagnostic> },
    /// Watching files is not possible; a sentence that says what is done instead.
    WatchFailed(String),

    /// The examples that code decides were tried.
    ExamplesTried {
        number: u64,
        trials: Vec<ExampleResult>,
    },
    /// Judges were asked about examples; why some could not be.
    ExamplesJudged {
        number: u64,
        trials: Vec<ExampleResult>,
        problem: Option<String>,
    },

    /// A run began.
    RunStarted {
        ticket: RunTicket,
        run: RunId,
        dir: PathBuf,
    },
    /// A run could not begin.
    RunRefused { ticket: RunTicket, why: String },
    /// More was recorded of it.
    RunEvents {
        ticket: RunTicket,
        events: Arc<Vec<RunEvent>>,
    },
    /// It ended; why not well, if not.
    RunEnded {
        ticket: RunTicket,
        problem: Option<String>,
    },
    /// What a run would take.
    Previewed {
        ticket: RunTicket,
        preview: Result<RunPreview, String>,
    },

    /// A recorded cell was read.
    TraceRead {
        row: RowId,
        recorded: Result<Arc<RecordedCell>, String>,
    },
    /// A blob was read.
    BlobRead {
        blob: Blob,
        text: Result<Arc<str>, String>,
    },
    /// A request was made readable.
    RequestRead {
        key: RequestKey,
        request: Result<Arc<ReadableRequest>, String>,
    },
    /// A text was highlighted; `key` as it was asked for.
    Highlighted {
        key: u64,
        spans: Vec<(std::ops::Range<usize>, Role)>,
    },
    /// A transcript was read.
    DocumentRead {
        id: String,
        doc: Result<Arc<TranscriptDocument>, String>,
    },
    /// What a file has of a transcript was read.
    SourceRead {
        transcript: TranscriptRef,
        record: Result<Arc<TranscriptSourceText>, String>,
    },
    /// A check decided again: where its finding stands. Nothing, if it says something else now.
    MarksFound {
        key: FindingMarksKey,
        marks: Vec<TranscriptSpan>,
    },
    /// A recording was read, to be replayed.
    ReplayRead {
        run: RunId,
        dir: PathBuf,
        log: Result<Arc<Vec<RunEvent>>, String>,
        warnings: Vec<String>,
    },
    /// Judges at hand were looked for.
    JudgesFound {
        row: RowId,
        judges: Vec<AvailableJudge>,
    },
    /// Some more of a bare file was listed.
    TranscriptsListed {
        file: PathBuf,
        listed: ListingUpdate,
    },
    /// A workspace was made around a file.
    WorkspaceMade(Result<Arc<Workspace>, String>),
    /// A label was written, or why not: a sentence.
    LabelWritten {
        number: u64,
        written: Result<WrittenLabel, String>,
    },
    /// The editor was left.
    EditorClosed(Result<(), String>),
    /// Something was put on the clipboard, or why not; a sentence either way.
    Copied(Result<String, String>),
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MouseInput {
    /// What.
    pub(crate) action: MouseAction,
    /// Where.
    pub(crate) column: u16,
    /// See `column`.
    pub(crate) row: u16,
}

/// What a mouse can do here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseAction {
    /// The left button went down.
    Pressed,
    /// It moves while down.
    Dragged,
    /// It went up.
    Released,
    /// The wheel turned: rows down (negative: up).
    Scrolled(i8),
}

//! Responsible for the only event type: the facts of a run, their format version, their fold ([`RunState`]) and their
//! emitter ([`Emitter`], [`CallCx`]). Does not store, print or time events: `record` numbers and writes them,
//! `report` and `tui` show them. Recorder, player, reports, comparison and screen use the same enum, so a replay is a
//! live run with another source.
//!
//! Properties that tests check:
//! - fold(live) = fold(read(write(live)))
//! - the deltas of a finished attempt concatenate to its text
//! - the fold of a prefix never panics
//! - a replay at any speed ends in the same state
//!
//! **To add a fact**: add a variant and its [`EventTag`], add a case in `state.rs`, and raise the minor version of
//! [`FORMAT`]. Older readers keep it as [`EventKind::Unknown`]. Variants are *externally* tagged: serde buffers
//! internally tagged ones, reads them 2.4 times slower, and cannot keep raw JSON in them. Fields may be added, never
//! renamed.

mod branch_point;
mod emitter;
mod exchange;
mod fetch_numbers;
mod header;
#[cfg(test)]
pub(crate) mod laws;
mod redact;
mod revision_plan;
mod state;
mod stats;
mod tag;
mod tool;
mod trace_steps;

use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use branch_point::BranchPoint;
pub use emitter::{
    BlobSource, BlobStore, CallCx, DeltaCoalescer, Emitter, INLINE_MAX, MemoryBlobs, RedactedEvent,
};
pub use exchange::{HttpExchange, ThrottleReason};
pub use fetch_numbers::{CallPosition, find_fetch, number_fetch};
pub use header::{
    CellKey, DroppedSetting, EvalSpec, JudgeSpec, LogFormat, ParentCause, ParentRun, ReadingTotals,
    RecordedShot, ReplayedEvidencePlan, RubricSpec, RunHeader, RunPurpose, RunTotals, SnapshotFile,
    TablePrices,
};
pub use redact::{REDACTED, Redactor, StreamRedactor};
pub use revision_plan::{PlannedDecision, PlannedTranscript, RevisionPlan};
pub use state::{
    AttemptFailure, AttemptReply, AttemptState, CallRejection, CallState, CellPhase, CellState,
    FinishedCall, LastEvent, PlanPosition, RunNote, RunState, TranscriptState, TurnState,
    UnparsedVerdict,
};
pub use stats::{
    BudgetStop, CallDurations, JudgeStats, RunStats, StatsDurations, StatsSnapshot, ToolStats,
    format_limit_amount,
};
pub use tag::EventTag;
pub use tool::{FROZEN_RULE, RecordedToolResponse, ToolFact, ToolResponseSource};
pub use trace_steps::{
    AlignedSteps, StepId, StepIdError, StepPart, StepProgress, TraceStep, align_traces, find_call,
    list_trace_steps, reply_texts,
};

use crate::model::{
    Blob, CallIx, CellIx, CellResult, Digest, Millis, ModelReply, RawJson, TokenUsage,
    TranscriptRef, TurnIx, Verdict,
};

/// The version that this build writes. A reader rejects a newer major version, and reads a newer minor version but
/// keeps unknown kinds as they are.
pub const FORMAT: LogFormat = LogFormat { major: 1, minor: 5 };

/// A fact with its number and time, which the sequencer (also the recorder) assigns.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// The number in the log, from 0, without gaps.
    pub seq: u64,
    /// Milliseconds since the run began, from a monotonic clock. Only the header has wall time.
    pub at: Millis,
    /// The fact.
    pub kind: EventKind,
}

/// A fact about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The first event of every run.
    RunStarted(Box<RunHeader>),
    /// The store has the blob. Precedes every event that names the blob.
    BlobStored(Blob),
    /// The run reached a transcript and numbered its cells: `first`, `first + 1` … in the order of `keys`.
    CellsPlanned {
        /// The transcript and its position in its file.
        transcript: TranscriptRef,
        /// The number of the first cell.
        first: CellIx,
        /// The eval, message, judge and repeat of each cell.
        keys: Vec<CellKey>,
    },
    /// The run read all transcripts, and its options leave out a part of what the revision plans.
    RevisionPlanned {
        /// Everything that the revision plans: the JSON of a [`RevisionPlan`].
        plan: StoredText,
    },
    /// Deterministic, skipped and cached cells of one transcript, in one event.
    CellsSettled(Vec<SettledCell>),
    /// A judge began a cell.
    CellStarted {
        /// The cell.
        cell: CellIx,
        /// Its cache key; `None` if the cell can never be cached.
        key: Option<Digest>,
    },
    /// A judge cell ended.
    CellFinished {
        /// The cell.
        cell: CellIx,
        /// Its result.
        result: Arc<CellResult>,
    },
    /// A fact about a model call.
    Turn {
        /// The cell.
        cell: CellIx,
        /// The turn of its judge trace.
        turn: TurnIx,
        /// The fact.
        fact: TurnFact,
    },
    /// A fact about a tool call.
    Tool {
        /// The cell.
        cell: CellIx,
        /// The turn whose reply made the call.
        turn: TurnIx,
        /// The number of the call in that reply.
        call: CallIx,
        /// The fact.
        fact: ToolFact,
    },
    /// A judge trace pauses at a gate. Its deadline pauses too.
    Paused {
        /// The cell.
        cell: CellIx,
        /// The gate.
        at: GatePoint,
        /// The part of the trace that a person sees there and that no other event contains yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pending: Option<Box<PendingPart>>,
    },
    /// A paused judge trace continues.
    Resumed {
        /// The cell.
        cell: CellIx,
        /// The actor and the action.
        how: GateRelease,
    },
    /// A budget was reached.
    BudgetReached {
        /// The name of the limit: `usd`, `tokens`, `calls` or `minutes`.
        limit: String,
        /// `true`: the run sends nothing more. `false`: dicta asked the judges to conclude.
        hard: bool,
        /// The cell that has the limit or that must conclude; `None` for the run's own limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cell: Option<CellIx>,
        /// The value of the limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
        /// The amount that was used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<f64>,
    },
    /// A message that fits none of the other kinds, such as a skipped record or a warning.
    Note {
        /// The cell it concerns, if it concerns one.
        cell: Option<CellIx>,
        /// A sentence.
        text: String,
    },
    /// The last event of a run that was not interrupted.
    RunFinished(Box<RunTotals>),
    /// An event of a kind that a newer minor version added. A writer writes it back unchanged.
    #[serde(skip)]
    Unknown(RawJson),
}

/// The position of a tool call in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolCallKey {
    /// The cell.
    pub cell: CellIx,
    /// The turn of the cell's judge trace.
    pub turn: TurnIx,
    /// The call of the turn.
    pub call: CallIx,
}

/// One cell of [`EventKind::CellsSettled`]; a pair in JSON.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "(CellIx, CellResult)")]
pub struct SettledCell {
    /// The cell.
    pub cell: CellIx,
    /// Its result.
    pub result: Arc<CellResult>,
}

impl SettledCell {
    /// Creates the pair.
    pub fn new(cell: CellIx, result: impl Into<Arc<CellResult>>) -> Self {
        Self {
            cell,
            result: result.into(),
        }
    }
}

impl From<(CellIx, CellResult)> for SettledCell {
    fn from((cell, result): (CellIx, CellResult)) -> Self {
        Self::new(cell, result)
    }
}

impl Serialize for SettledCell {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // By hand, because `serde(into)` would clone each result.
        (&self.cell, &self.result).serialize(to)
    }
}

/// A text in an event: inline up to [`INLINE_MAX`] bytes, otherwise a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredText {
    /// The text itself.
    Text(String),
    /// The blob that holds the text.
    Blob(Blob),
}

/// A request body in pieces, which concatenate to the exact body. Turns share pieces, so the store keeps a repeated
/// history once.
pub type RecordedRequest = Vec<StoredText>;

/// A fact about a model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFact {
    /// The turn began with this redacted request body.
    Started {
        /// The exact body.
        request: RecordedRequest,
        /// The settings that dicta left out because the model does not accept them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<DroppedSetting>,
    },
    /// The next attempt waits for a limit before dicta sends it.
    Held {
        /// The limit.
        by: ThrottleReason,
        /// The expected wait, if it is known.
        about: Option<Millis>,
    },
    /// One HTTP attempt began; attempts count from 1.
    AttemptStarted {
        /// The number of the attempt.
        attempt: u8,
    },
    /// A piece of the reply, redacted and combined with others for up to 33 ms.
    Delta {
        /// The number of the attempt.
        attempt: u8,
        /// The part of the reply.
        part: DeltaPart,
        /// The streamed text.
        text: String,
    },
    /// An attempt failed. Its deltas are void.
    AttemptFailed {
        /// The number of the attempt.
        attempt: u8,
        /// The HTTP status, if the server replied.
        status: Option<u16>,
        /// The reason, as a sentence.
        why: String,
        /// The wait until the next attempt; `None` if there is no next attempt.
        retry_in: Option<Millis>,
        /// The usage of the failed attempt, if the server reported it.
        billed: Option<TokenUsage>,
        /// The reason for the wait: the server's delay, the back-off, or a setting that was left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_why: Option<String>,
        /// The HTTP exchange, if it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange: Option<HttpExchange>,
    },
    /// The reply is complete.
    Finished {
        /// The attempt that succeeded.
        attempt: u8,
        /// The provider's own items in order, which the next turn sends back.
        native: Vec<StoredText>,
        /// `false` if redaction changed an item. A fork cannot send such an item again.
        resendable: bool,
        /// The reply as dicta read it.
        reply: ModelReply,
        /// The usage of the successful attempt.
        usage: TokenUsage,
        /// The HTTP exchange that brought the reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange: Option<HttpExchange>,
    },
    /// The judge read a valid verdict from the reply.
    VerdictReached(Box<Verdict>),
    /// The judge found no valid verdict in the reply.
    VerdictUnparsed {
        /// The reason, as a sentence.
        why: String,
        /// The text that was read.
        raw: StoredText,
    },
}

/// The part of a reply that a delta belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaPart {
    /// The text of the reply.
    Text,
    /// The reasoning that the provider shows.
    Thought,
    /// The arguments of a tool call of this reply.
    Args(CallIx),
}

/// A point of a judge trace at which it can pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatePoint {
    /// Before a model call.
    BeforeTurn,
    /// Before a tool call whose arguments are valid.
    Call,
    /// After a rejected tool call.
    Rejected,
    /// After a tool response.
    Answered,
    /// After a verdict.
    Verdict,
    /// At the end of the trace.
    Ended,
}

/// A part of a judge trace that waits for a person's decision. JSON has its fields without a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PendingPart {
    /// A tool response, or the error of a rejected call.
    Response(PendingResponse),
    /// A request.
    Request(PendingRequest),
}

/// A request that is not sent yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// The turn.
    pub turn: TurnIx,
    /// The request as it is before an edit.
    pub request: RecordedRequest,
}

/// A text for the judge that waits for a person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingResponse {
    /// The turn of the call.
    pub turn: TurnIx,
    /// The call of the turn.
    pub call: CallIx,
    /// The response.
    pub response: RecordedToolResponse,
}

/// The release of a paused judge trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRelease {
    /// `human`, or the rule that released it.
    pub by: String,
    /// The action: `go`, `edited`, `answered` or `ended`.
    pub what: String,
    /// The edited text, for an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<StoredText>,
}

impl GateRelease {
    /// Returns true if a person changed the trace. Every action except `go` changes it.
    pub fn is_edit(&self) -> bool {
        self.by == "human" && self.what != "go"
    }
}

impl EventKind {
    /// The cell that the fact is about, if it is about one.
    pub fn cell(&self) -> Option<CellIx> {
        match self {
            EventKind::CellStarted { cell, .. }
            | EventKind::CellFinished { cell, .. }
            | EventKind::Turn { cell, .. }
            | EventKind::Tool { cell, .. }
            | EventKind::Paused { cell, .. }
            | EventKind::Resumed { cell, .. } => Some(*cell),
            EventKind::Note { cell, .. } | EventKind::BudgetReached { cell, .. } => *cell,
            _ => None,
        }
    }

    /// Replaces the number of the cell that the fact is about, if it is about one.
    pub fn set_cell(&mut self, number: CellIx) {
        match self {
            EventKind::CellStarted { cell, .. }
            | EventKind::CellFinished { cell, .. }
            | EventKind::Turn { cell, .. }
            | EventKind::Tool { cell, .. }
            | EventKind::Paused { cell, .. }
            | EventKind::Resumed { cell, .. } => *cell = number,
            EventKind::Note { cell, .. } | EventKind::BudgetReached { cell, .. } => {
                *cell = cell.map(|_| number);
            }
            _ => {}
        }
    }

    /// The tag under which the log stores the fact; `None` for a kind of a newer version.
    pub fn tag(&self) -> Option<EventTag> {
        match self {
            EventKind::RunStarted(_) => Some(EventTag::RunStarted),
            EventKind::BlobStored(_) => Some(EventTag::BlobStored),
            EventKind::CellsPlanned { .. } => Some(EventTag::CellsPlanned),
            EventKind::RevisionPlanned { .. } => Some(EventTag::RevisionPlanned),
            EventKind::CellsSettled(_) => Some(EventTag::CellsSettled),
            EventKind::CellStarted { .. } => Some(EventTag::CellStarted),
            EventKind::CellFinished { .. } => Some(EventTag::CellFinished),
            EventKind::Turn { .. } => Some(EventTag::Turn),
            EventKind::Tool { .. } => Some(EventTag::Tool),
            EventKind::Paused { .. } => Some(EventTag::Paused),
            EventKind::Resumed { .. } => Some(EventTag::Resumed),
            EventKind::BudgetReached { .. } => Some(EventTag::BudgetReached),
            EventKind::Note { .. } => Some(EventTag::Note),
            EventKind::RunFinished(_) => Some(EventTag::RunFinished),
            EventKind::Unknown(_) => None,
        }
    }

    /// The fact as the JSON of the log.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        match self {
            EventKind::Unknown(raw) => Ok(raw.get().to_owned()),
            known => {
                // Most results need less, so the text of a large run seldom grows.
                let size = match known {
                    EventKind::CellsSettled(settled) => 64 + 160 * settled.len(),
                    _ => 512,
                };
                let mut json = Vec::with_capacity(size);
                serde_json::to_writer(&mut json, known)?;
                Ok(String::from_utf8(json).expect("serde_json writes UTF-8"))
            }
        }
    }

    /// Parses a fact. Keeps a fact of an unknown kind unchanged.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        // From bytes, like the lines of a log: the compiler repeats the parser of all facts for each kind of source.
        match serde_json::from_slice::<Self>(json.as_bytes()) {
            Ok(kind) => Ok(kind),
            // Only an unknown tag means a newer version. A known tag with wrong content is a damaged log.
            Err(error) if is_unknown_kind(json) => RawJson::parse(json)
                .map(EventKind::Unknown)
                .map_err(|_| error),
            Err(error) => Err(error),
        }
    }
}

/// Reports whether `json` is an object or string whose tag names no kind of this version.
fn is_unknown_kind(json: &str) -> bool {
    let tag = match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json) {
        // serde writes a variant with data as an object with one key, and one without data as a string.
        Ok(map) if map.len() == 1 => map.keys().next().cloned(),
        Ok(_) => None,
        Err(_) => serde_json::from_str::<String>(json).ok(),
    };
    tag.is_some_and(|tag| EventTag::parse(&tag).is_none())
}

impl Serialize for RunEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("at", &self.at)?;
        match &self.kind {
            // The variant is not part of the derived format, so its raw JSON is written in its place.
            EventKind::Unknown(raw) => map.serialize_entry("kind", raw)?,
            known => map.serialize_entry("kind", known)?,
        }
        map.end()
    }
}

impl RunEvent {
    /// Parses a line of a log.
    pub fn from_line(line: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct KnownLine {
            seq: u64,
            at: Millis,
            kind: EventKind,
        }
        match serde_json::from_slice::<KnownLine>(line) {
            Ok(KnownLine { seq, at, kind }) => Ok(Self { seq, at, kind }),
            // The general way reads a line twice. Few lines need it: those of unknown kinds, and damaged ones.
            Err(_) => serde_json::from_slice(line),
        }
    }
}

impl<'de> Deserialize<'de> for RunEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Line<'a> {
            seq: u64,
            at: Millis,
            #[serde(borrow)]
            // The raw text keeps numbers and spelling of unknown kinds exactly as written.
            kind: &'a RawValue,
        }
        let line = Line::deserialize(deserializer)?;
        let kind = EventKind::from_json(line.kind.get()).map_err(D::Error::custom)?;
        Ok(Self {
            seq: line.seq,
            at: line.at,
            kind,
        })
    }
}

#[cfg(test)]
mod tests;

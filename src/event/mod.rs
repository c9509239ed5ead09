//! The one event type. Everything that happens in a run is a [`RunEvent`]: recorder, player, reports, comparison and
//! screen consume this same enum, and replay is the live path with another source.
//!
//! Owns the facts, their format version, the fold over them ([`RunState`]) and the way in ([`Emitter`], [`CallCx`]).
//! Refuses to store, print or time anything: `record` numbers and writes, `report` and `tui` show.
//!
//! Laws, tested as properties: fold(live) = fold(read(write(live))); the deltas of a finished attempt concatenate to
//! its text; folding any prefix never panics; replay at any speed ends in the same state.
//!
//! **Adding a fact**: add a variant here, a case in `state.rs`, and raise the minor of [`FORMAT`]. Older readers keep it
//! as [`Kind::Unknown`]. Variants are *externally* tagged: internal tags buffer, read 2.4 times slower and cannot hold
//! raw JSON. Field names of events may be added, never renamed.

mod emitter;
mod exchange;
mod header;
#[cfg(test)]
pub(crate) mod laws;
mod redact;
mod state;
mod stats;
mod tag;
mod tool;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use emitter::{
    BlobSource, BlobStore, CallCx, DeltaCoalescer, Emitter, INLINE_MAX, MemoryBlobs, RedactedEvent,
};
pub use exchange::{HttpExchange, ThrottleReason};
pub use header::{
    CellKey, DroppedSetting, EvalSpec, JudgeSpec, LogFormat, ParentCause, ParentRun,
    ReplayedEvidencePlan, RubricSpec, RunHeader, RunTotals, SnapshotFile, TablePrices,
};
pub use redact::{REDACTED, Redactor, StreamRedactor};
pub use state::{
    AttemptFailure, AttemptReply, AttemptState, CallRejection, CallState, CellPhase, CellState,
    FinishedCall, LastEvent, PlanPosition, RunNote, RunState, TranscriptState, TurnState,
    UnparsedVerdict,
};
pub use stats::{BudgetStop, CallDurations, JudgeStats, RunStats, ToolStats};
pub use tag::EventTag;
pub use tool::{FROZEN_RULE, RecordedToolResponse, ToolFact, ToolResponseSource};

use crate::model::{
    Blob, CallIx, CellIx, CellResult, Digest, Millis, ModelReply, RawJson, TokenUsage,
    TranscriptRef, TurnIx, Verdict,
};

/// The version this build writes. A newer major is refused when reading; a newer minor is read, unknown kinds kept.
pub const FORMAT: LogFormat = LogFormat { major: 1, minor: 3 };

/// One fact, numbered and timed by the one sequencer, which is also the recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// From 0, without gaps.
    pub seq: u64,
    /// Milliseconds since the run began, monotonic. Wall time stands in the header alone.
    pub at: Millis,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The first event of every run.
    RunStarted(Box<RunHeader>),
    /// A blob is in the store; comes before any event that names it.
    BlobStored(Blob),
    /// A transcript was reached and its cells numbered: `first`, `first + 1` … in the order of `keys`.
    CellsPlanned {
        /// Where it stands.
        transcript: TranscriptRef,
        /// The number of the first cell.
        first: CellIx,
        /// What the cells are.
        keys: Vec<CellKey>,
    },
    /// Deterministic, skipped and cached cells of one transcript, all at once.
    CellsSettled(Vec<SettledCell>),
    /// A judge began a cell.
    CellStarted {
        /// Which.
        cell: CellIx,
        /// Its cache key; `None` where the cell can never be cached.
        key: Option<Digest>,
    },
    /// A judge cell ended.
    CellFinished {
        /// Which.
        cell: CellIx,
        /// How.
        result: Box<CellResult>,
    },
    /// Something about a model call.
    Turn {
        /// Which cell.
        cell: CellIx,
        /// Which turn of its trace.
        turn: TurnIx,
        /// What.
        fact: TurnFact,
    },
    /// Something about a tool call.
    Tool {
        /// Which cell.
        cell: CellIx,
        /// The turn whose reply made the call.
        turn: TurnIx,
        /// Which call of that reply.
        call: CallIx,
        /// What.
        fact: ToolFact,
    },
    /// A trace stands still at a boundary; its deadline stands still too.
    Paused {
        /// Which cell.
        cell: CellIx,
        /// At which boundary.
        at: GatePoint,
    },
    /// A paused trace goes on.
    Resumed {
        /// Which cell.
        cell: CellIx,
        /// By whom and how.
        how: GateRelease,
    },
    /// A budget was reached.
    BudgetReached {
        /// `usd`, `tokens`, `calls`, `minutes`.
        limit: String,
        /// Hard: nothing more is sent. Soft: judges were asked to conclude.
        hard: bool,
        /// The cell whose own limit it is, or that was asked to conclude; `None`: the run's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cell: Option<CellIx>,
        /// The limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
        /// What was taken of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<f64>,
    },
    /// Something worth telling that is none of the above: a skipped record, a warning.
    Note {
        /// The cell it concerns, if one.
        cell: Option<CellIx>,
        /// A sentence.
        text: String,
    },
    /// The last event of a run that was not interrupted.
    RunFinished(Box<RunTotals>),
    /// A kind of a newer minor version, kept and written back as it was.
    #[serde(skip)]
    Unknown(RawJson),
}

/// One cell of [`Kind::CellsSettled`]; a pair in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettledCell(pub CellIx, pub CellResult);

/// A text held in an event: inline up to [`INLINE_MAX`] bytes, else a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredText {
    /// The text itself.
    Text(String),
    /// Where it is.
    Blob(Blob),
}

/// A request body as pieces, so that a history repeated each turn is stored once. Concatenated they are the exact body.
pub type RecordedRequest = Vec<StoredText>;

/// A fact about a model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFact {
    /// The exact redacted request body, and what the model does not take.
    Started {
        /// The body.
        request: RecordedRequest,
        /// What was left out of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<DroppedSetting>,
    },
    /// The next attempt waits for a limit before it is sent.
    Held {
        /// For which.
        by: ThrottleReason,
        /// About how long, where that can be foretold.
        about: Option<Millis>,
    },
    /// One HTTP attempt began; attempts count from 1.
    AttemptStarted {
        /// Which.
        attempt: u8,
    },
    /// More of the reply. Redacted and coalesced to 33 ms before it became an event.
    Delta {
        /// Of which attempt.
        attempt: u8,
        /// Of which part.
        part: DeltaPart,
        /// What came.
        text: String,
    },
    /// An attempt failed; its deltas are void.
    AttemptFailed {
        /// Which.
        attempt: u8,
        /// The HTTP status, if there was one.
        status: Option<u16>,
        /// A sentence.
        why: String,
        /// When the next one starts; `None`: there is none.
        retry_in: Option<Millis>,
        /// What it cost, where the server said so.
        billed: Option<TokenUsage>,
        /// Why that long: the server's delay, back-off, a setting left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_why: Option<String>,
        /// The exchange, where one began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange: Option<HttpExchange>,
    },
    /// The reply is complete.
    Finished {
        /// The attempt that succeeded.
        attempt: u8,
        /// The provider's own items in order; what is resent.
        native: Vec<StoredText>,
        /// `false`: redaction changed an item, so that a fork cannot resend it.
        resendable: bool,
        /// Our reading.
        reply: ModelReply,
        /// What it cost.
        usage: TokenUsage,
        /// The exchange that brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange: Option<HttpExchange>,
    },
    /// A valid verdict was read from the reply.
    VerdictReached(Box<Verdict>),
    /// The reply should have held a verdict and did not.
    VerdictUnparsed {
        /// A sentence.
        why: String,
        /// The text that was read.
        raw: StoredText,
    },
}

/// Which part of a reply a delta belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaPart {
    /// The answer's text.
    Text,
    /// Thinking the provider shows.
    Thought,
    /// The arguments of a call of this reply.
    Args(CallIx),
}

/// A boundary of a trace at which it can stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatePoint {
    /// Before a model call.
    BeforeTurn,
    /// Before a prepared tool call.
    Call,
    /// After a rejected one.
    Rejected,
    /// After a tool's answer.
    Answered,
    /// After a verdict.
    Verdict,
    /// At the end.
    Ended,
}

/// How a paused trace was let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRelease {
    /// `human`, or the rule that let it go.
    pub by: String,
    /// What was done: `go`, `edited`, `answered`, `ended`.
    pub what: String,
    /// The edit, if one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<StoredText>,
}

impl EventKind {
    /// The cell the fact is about, if it is about one.
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

    /// The tag under which the log stores the fact; `None` for a kind of a newer version.
    pub fn tag(&self) -> Option<EventTag> {
        match self {
            EventKind::RunStarted(_) => Some(EventTag::RunStarted),
            EventKind::BlobStored(_) => Some(EventTag::BlobStored),
            EventKind::CellsPlanned { .. } => Some(EventTag::CellsPlanned),
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

    /// The fact as the JSON that stands in the log.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        match self {
            EventKind::Unknown(raw) => Ok(raw.get().to_owned()),
            known => serde_json::to_string(known),
        }
    }

    /// Reads a fact; one of an unknown kind is kept whole.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        match serde_json::from_str::<Self>(json) {
            Ok(kind) => Ok(kind),
            Err(error) if is_unknown_kind(json) => RawJson::parse(json)
                .map(EventKind::Unknown)
                .map_err(|_| error),
            Err(error) => Err(error),
        }
    }
}

/// Whether `json` is an object or word whose tag names no kind of this version.
fn is_unknown_kind(json: &str) -> bool {
    let tag = match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json) {
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
            EventKind::Unknown(raw) => map.serialize_entry("kind", raw)?,
            known => map.serialize_entry("kind", known)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RunEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Line<'a> {
            seq: u64,
            at: Millis,
            #[serde(borrow)]
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

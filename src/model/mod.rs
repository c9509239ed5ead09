//! The nouns of dicta: ids, transcripts, tool calls, replies, verdicts, results.
//!
//! Owns plain data with serde and the arithmetic that belongs to it (the vote of a decision, the name of a cell).
//! Refuses I/O, clocks, and knowledge of any file format or model protocol.

mod bounds;
mod calibrated;
mod cell_name;
mod ids;
mod judge;
mod label;
mod money;
mod panel;
mod reply;
mod result;
mod secret;
mod text;
mod tool;
mod transcript;
mod visible;

pub use bounds::{Bounds, Stated};
pub use calibrated::{Calibrated, ValueOdds};
pub use cell_name::{CellName, CellNameError, CellNameRef, CellPattern};
pub use ids::{Blob, CallIx, CellIx, Digest, Millis, RunId, TurnIx, WallTime};
pub use judge::{
    JudgeConfig, KeySource, Prices, ProviderKind, SOURCES, ToolUse, TranscriptMode, VerdictMode,
    is_loopback_url, source_judge,
};
pub use label::{Against, Label, Labels, pass_or_fail};
pub use money::{Bill, Budgets, Caps, Pricing};
pub use panel::{
    Cast, Doubt, Member, Panel, Rule, Ruling, Said, Share, Terms, Undecided, probability,
};
pub use reply::{Block, Item, Reply, ReplyCall, StopReason, Usage};
pub use result::{CellResult, Citation, Decision, Outcome, Verdict, VerdictPart, Votes, decide};
pub use secret::looks_secret;
pub use text::{JsonText, RawJson, Text, counted, pointer_step};
pub(crate) use tool::none_hidden;
pub use tool::{Answer, Change, Hop, Rejection, SUBMIT, ToolDecl};
pub use transcript::{
    Message, Part, Role, SourceVerdict, ToolCall, ToolResult, Transcript, TranscriptRef,
};
pub use visible::{count_invisible, is_invisible, visible};

//! The domain types of dicta: ids, transcripts, tool calls, replies, verdicts, results.
//!
//! Responsible for plain data with serde, and for the arithmetic that belongs to it, such as the vote of a decision.
//! Does not do I/O, read clocks, or know any file format or model protocol.

mod calibrated;
mod cell_name;
mod cost;
mod exit_reason;
mod ids;
mod installation_secret;
mod judge;
mod label;
mod panel;
mod reply;
mod result;
mod score_bounds;
mod secret_names;
mod secret_values;
mod source_text;
pub mod surrogates;
mod tool;
mod transcript;
mod visible;

pub use calibrated::{CalibratedScore, ValueProbability};
pub use cell_name::{CellName, CellNameError, CellNameRef, CellPattern};
pub use cost::{BudgetLimits, Cost, ModelPricing, RunAndCellBudgets, format_usd};
pub use exit_reason::ExitReason;
pub use ids::{Blob, CallIx, CellIx, Digest, Millis, RunId, TurnIx, WallTime};
pub use installation_secret::InstallationSecret;
pub use judge::{
    ApiKeySource, JudgeConfig, JudgeTool, Prices, ProviderKind, TranscriptMode, VERDICT_SOURCES,
    VerdictMode, find_source_judge, is_loopback_url,
};
pub use label::{Label, LabelAgreement, Labels, parse_pass_or_fail};
pub use panel::{
    Ballot, CellVote, Doubt, Panel, PanelDecision, PanelMember, PanelRule, UndecidedPanel,
    VoteParams, VoteShare, verdict_probability,
};
pub use reply::{HistoryBlock, HistoryItem, ModelReply, ReplyCall, StopReason, TokenUsage};
pub use result::{
    CellResult, Citation, Decision, Outcome, Verdict, VerdictPart, VoteCounts, decide_cells,
};
pub use score_bounds::{ScoreBounds, VerdictSummary};
pub use secret_names::{is_api_key_name, is_secret_key, is_secret_name};
pub use secret_values::{MIN_UNNAMED_SECRET_LEN, find_body_secrets, list_header_secrets};
pub use source_text::{
    JsonText, RawJson, SourceText, escape_pointer_step, is_json_object, pluralize,
};
pub(crate) use tool::none_hidden;
pub use tool::{ArgumentChange, Hop, Rejection, SUBMIT_VERDICT, ToolDeclaration, ToolResponse};
pub use transcript::{
    MessageRole, SourceVerdict, ToolCall, ToolResult, Transcript, TranscriptMessage,
    TranscriptPart, TranscriptRef,
};
pub use visible::{count_invisible, escape_invisible_json, is_invisible, make_visible};

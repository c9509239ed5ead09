//! The judge: one judge trace from prompt to verdict.
//!
//! Responsible for the prompt, the turns and tool calls, the verdict format and its parsing, [`Gate`],
//! [`EvidenceStore`] and [`Budget`], and the built-in [`rules`] judge. It records facts. It does not print, store or
//! schedule: repeats, juries and cascades are more cells of a plan, not loops in here.
//!
//! ```text
//!  JudgeRequest ─ render_prompt ─► body ─ gate ─ budget ─► provider ─► reply ─┬─ submit_verdict / text ─► verdict ─► apply_bounds
//!                                   ▲                                         └─ calls: prepare ─ gate ─ evidence ─► tool
//!                                   └──────────── tool responses, in call order ◄─────────────────────────────────┘
//! ```
//!
//! [`JudgeEngine`] prepares a cell (`cell_setup`) and runs its trace (`trace`). `trace_state` is what grows from turn
//! to turn, `trace_gate` the gate of one cell, `tool_calls` the calls of one turn.

mod branch;
mod breakpoint;
mod budget;
mod budget_limits;
mod cache_key;
mod calibrated;
mod call_history;
mod cell_setup;
mod citations;
mod claims;
mod context_fit;
mod contradiction;
mod deadline;
mod delimiter;
mod engine;
mod evidence;
mod gate;
mod hidden_text;
mod message_parts;
mod parts;
mod prompt;
mod prompt_sections;
mod prompt_shots;
mod reply_calls;
mod reply_frame;
mod request_texts;
pub mod rules;
mod seen;
mod similarity;
mod submit_verdict_tool;
mod token_estimate;
mod tool_calls;
mod trace;
mod trace_gate;
mod trace_size;
mod trace_state;
mod transcript_summary;
mod usage_meter;
mod verdict_error;
mod verdict_format;
mod verdict_parser;
mod verdict_text;

#[cfg(test)]
mod fake;

pub use branch::{BranchChange, RecordedCall, RecordedTurn, RequestEdit, TracePrefix};
pub use breakpoint::{
    Breakpoint, BreakpointError, BreakpointGate, BreakpointSet, PauseDecision, PauseEditError,
    PausedAt, PausedTrace,
};
pub use budget::{Budget, BudgetSpend, LimitReached};
pub use cache_key::VerdictCacheKey;
pub use citations::CitableSources;
pub(crate) use citations::{CitationTarget as CitedPlace, parse_citation_target as cited_place};
pub(crate) use claims::{
    ClaimFinding, ClaimKind, ClaimPlace, SearchedMessage, SearchedResponse, SearchedTexts,
    VerdictClaim, collect_claims, find_quote, list_citable_texts, list_rubric_texts,
};
pub use delimiter::Delimiter;
pub use engine::{
    FirstTurn, JudgeEngine, JudgeEngineDeps, ModelAnswer, ModelQuestion, QuestionError,
};
pub use evidence::{
    EvidenceKey, EvidenceLookup, EvidenceMissPolicy, EvidenceStore, LiveEvidence, NoEvidence,
    ReplayedEvidence,
};
pub use gate::{ArgumentCheck, CellNames, Gate, GateAction, GateEdit, GateStop, OpenGate};
pub use message_parts::collect_judged_messages;
pub use parts::PartsFormat;
pub use prompt::{JudgePrompt, PromptFrame, render_prompt};
pub use prompt_sections::{PromptSection, split_prompt};
pub use prompt_shots::estimate_shot_tokens;
pub use reply_frame::strip_reply_frame;
pub use verdict_error::VerdictParseError;
pub use verdict_format::{ScoreRange, VerdictFormat};
pub use verdict_parser::{PARSER_VERSION, apply_bounds, parse_verdict_object, update_score_flag};
pub use verdict_text::parse_verdict_text;

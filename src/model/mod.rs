//! The domain types of dicta: ids, transcripts, tool calls, replies, verdicts, results.
//!
//! Responsible for plain data with serde, and for the arithmetic that belongs to it, such as the vote of a decision.
//! Does not do I/O, read clocks, or know any file format or model protocol.

mod calibrated;
mod cause;
mod cell_name;
mod compared_pair;
mod cost;
mod exit_reason;
mod file_error;
mod formula_mark;
mod ids;
mod installation_secret;
mod judge;
mod label;
mod label_draw;
mod label_fields;
mod label_split;
mod labels;
mod list_diff;
mod normal_words;
mod other_model;
mod pair_preference;
mod panel;
mod reason;
mod reply;
mod result;
mod score_bounds;
mod secret_names;
mod secret_values;
mod shell_word;
mod skipped_input;
mod source_text;
mod stopped_judge;
pub mod surrogates;
mod tool;
mod transcript;
mod vectors;
mod visible;

pub use calibrated::{CalibratedScore, ValueProbability};
pub use cause::{Cause, CauseSet};
pub use cell_name::{CellName, CellNameError, CellNameRef, CellPattern};
pub use compared_pair::{ComparedPair, PairMember};
pub use cost::{BudgetLimits, Cost, ModelPricing, RunAndCellBudgets, format_usd};
pub use exit_reason::ExitReason;
pub use file_error::explain_file_error;
pub use formula_mark::{has_formula_marks, mark_formula, unmark_formula};
pub use ids::{Blob, CallIx, CellIx, Digest, Millis, RunId, TurnIx, WallTime};
pub use installation_secret::InstallationSecret;
pub use judge::{
    ApiKeySource, JudgeConfig, JudgeTool, Prices, ProviderKind, SIMILAR_EVAL_TYPE, TranscriptMode,
    VERDICT_SOURCES, VerdictMode, find_source_judge, is_loopback_url,
};
pub use label::{
    DisagreementCause, EarlierAnswer, EvalWhole, Label, LabelAgreement, LabelSample, PartVerdicts,
    SeenVerdicts, parse_pass_or_fail,
};
pub use label_draw::{DrawProbability, DrawStratum, RecordedDraw};
pub use label_fields::LABEL_KEYS;
pub use label_split::{LabelSplit, SplitPart, SplitRule};
pub use labels::{
    CountedLabel, LabelDrift, LabelLookup, LabelQuery, LabelSeal, Labels, UNKNOWN_RATER,
    find_answer, name_rater,
};
pub use list_diff::diff_lists;
pub use normal_words::normalize_words;
pub use other_model::OtherModel;
pub use pair_preference::{
    PAIRWISE_EVAL_TYPE, PairAgreement, PairChoice, PairOrder, PairPreference, compares_pairs,
};
pub use panel::{
    Ballot, CellVote, Doubt, Panel, PanelDecision, PanelMember, PanelRule, UndecidedPanel,
    VoteParams, VoteShare, verdict_probability,
};
pub use reason::{RULES_HEAD, find_outcome_reason, find_reason, skip_rules_head};
pub use reply::{HistoryBlock, HistoryItem, ModelReply, ReplyCall, StopReason, TokenUsage};
pub use result::{
    CellResult, Citation, DISABLED_EVAL, Decision, NOT_SAMPLED, Outcome, Verdict, VerdictPart,
    VoteCounts, decide_cell, decide_cells,
};
pub use score_bounds::{ScoreBounds, UNCERTAIN_MARGIN, VerdictSummary};
pub use secret_names::{is_api_key_name, is_secret_key, is_secret_name, split_words};
pub use secret_values::{
    MIN_UNNAMED_SECRET_LEN, find_body_secrets, list_header_secrets, strip_auth_scheme,
};
pub use shell_word::{quote_shell_path, quote_shell_word};
pub use skipped_input::{describe_skipped_file, describe_skipped_record, is_skip_note};
pub use source_text::{
    JsonText, RawJson, SourceText, escape_pointer_step, is_json_object, pluralize, visit_children,
};
pub use stopped_judge::StoppedJudge;
pub(crate) use tool::none_hidden;
pub use tool::{ArgumentChange, Hop, Rejection, SUBMIT_VERDICT, ToolDeclaration, ToolResponse};
pub use transcript::{
    MessageRole, SourceVerdict, ToolCall, ToolResult, Transcript, TranscriptMessage,
    TranscriptPart, TranscriptRef, default_id_prefix,
};
pub use vectors::{COSINE_TOLERANCE, compute_cosine, normalize_vector};
pub use visible::{count_invisible, escape_invisible_json, is_invisible, make_visible};

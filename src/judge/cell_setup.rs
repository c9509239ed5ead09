//! The setup of one cell: everything that is the same on every turn of its judge trace.

use serde_json::json;

use super::prompt::JudgePrompt;
use super::verdict_format::VerdictFormat;
use crate::model::{ProviderKind, SUBMIT_VERDICT, ToolDeclaration, VerdictMode};
use crate::provider::decisions::ProbabilityQuestion;
use crate::provider::{Provider, ToolChoice};
use crate::tools::ToolSet;

/// The settings of one cell's trace.
pub(super) struct CellSetup<'a> {
    pub(super) provider: &'a dyn Provider,
    pub(super) provider_kind: ProviderKind,
    /// The way in which the judge submits its verdict; never `Auto`.
    pub(super) verdict_mode: VerdictMode,
    pub(super) verdict_format: VerdictFormat,
    /// The judge's tools, the tools that read a summarized transcript, and `submit_verdict` if the verdict is a call.
    /// Empty if the verdict is not a call.
    pub(super) tools: ToolSet,
    /// The declarations of `tools`, in the same order; `submit_verdict` is the last one.
    pub(super) tool_decls: Vec<ToolDeclaration>,
    pub(super) prompt: JudgePrompt,
    pub(super) max_turns: u16,
    /// The questions for a judge that answers with probabilities; empty for all others.
    pub(super) questions: Vec<ProbabilityQuestion>,
}

impl CellSetup<'_> {
    /// Returns what the model may answer with; on the last turn a tool user can only submit its verdict.
    pub(super) fn tool_choice(&self, last: bool) -> ToolChoice {
        match self.verdict_mode {
            // Decisions endpoints receive their questions in place of a schema.
            _ if !self.questions.is_empty() => ToolChoice::Schema(json!(self.questions)),
            VerdictMode::Schema => ToolChoice::Schema(self.verdict_format.schema()),
            VerdictMode::Text => ToolChoice::NoTools,
            // On the last turn another tool call would leave no turn for the verdict.
            VerdictMode::Call | VerdictMode::Auto if last => {
                ToolChoice::ForcedTool(SUBMIT_VERDICT.to_owned())
            }
            VerdictMode::Call | VerdictMode::Auto => ToolChoice::Auto,
        }
    }
}

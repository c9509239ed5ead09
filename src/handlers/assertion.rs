//! `assertion` and `guardrail`, PromptKit's types around another type.
//!
//! The rubric loader replaces them with the eval inside (`rubric::wrapper`). This file contains only their
//! documentation and schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::CompiledEval;
use super::eval_type::{EvalType, param_problem};
use crate::rubric::ParamProblem;

/// Params of `assertion`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read by the loader; here they are its schema")]
pub(super) struct AssertionEval {
    /// The type of the eval inside.
    #[schemars(length(min = 1))]
    eval_type: String,
    /// The params of the eval inside.
    #[serde(default)]
    eval_params: Map<String, Value>,
    /// Passes if the score is at least this. Without a bound the type itself decides (PromptKit requires exactly 1.0
    /// in that case).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    min_score: Option<f64>,
    /// Passes if the score is at most this.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    max_score: Option<f64>,
}

impl EvalType for AssertionEval {
    const NAME: &'static str = "assertion";
    const SUMMARY: &'static str = "Runs another type and applies bounds to its score. dicta counts and shows it as that type.";
    const EXAMPLE: &'static str =
        "eval_type: llm_judge\neval_params: { criteria: The answer is polite }\nmin_score: 0.8";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        // The loader resolves every wrapper before it compiles, so an eval that reaches this line is a
        // defect.
        Err(vec![wrapper_not_resolved_problem()])
    }
}

/// Params of `guardrail`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read by the loader; here they are its schema")]
pub(super) struct GuardrailEval {
    /// The type of the eval inside.
    #[serde(default)]
    #[schemars(length(min = 1))]
    eval_type: Option<String>,
    /// Another name of `eval_type`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    validator: Option<String>,
    /// The params of the eval inside.
    #[serde(default)]
    eval_params: Map<String, Value>,
    /// The action that a live guardrail would take. dicta only shows it.
    #[serde(default)]
    #[schemars(length(min = 1))]
    action: Option<String>,
    /// Passes if the score is at least this. Without a bound the type itself decides.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    min_score: Option<f64>,
    /// Passes if the score is at most this.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    max_score: Option<f64>,
}

impl EvalType for GuardrailEval {
    const NAME: &'static str = "guardrail";
    const SUMMARY: &'static str = "Runs another type as a guardrail: fails if the guardrail would have triggered. Errors count as neither.";
    const EXAMPLE: &'static str =
        "eval_type: content_excludes\neval_params: { patterns: [password] }\naction: block";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        // As for `assertion`: a wrapper that reaches this line was not resolved.
        Err(vec![wrapper_not_resolved_problem()])
    }
}

fn wrapper_not_resolved_problem() -> ParamProblem {
    param_problem(
        "",
        "the rubric loader must replace a wrapper with the eval inside",
    )
}

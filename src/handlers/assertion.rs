//! `assertion` and `guardrail`, PromptKit's types around another one. A rubric's loader resolves them to the eval they are
//! around (`rubric::wrapper`); here is what authors read of them.

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
    /// The type that decides.
    #[schemars(length(min = 1))]
    eval_type: String,
    /// Its params.
    #[serde(default)]
    eval_params: Map<String, Value>,
    /// Passed if the score is at least this. Without a bound the type itself decides (PromptKit wants exactly 1.0 then).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    min_score: Option<f64>,
    /// Passed if the score is at most this.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    max_score: Option<f64>,
}

impl EvalType for AssertionEval {
    const NAME: &'static str = "assertion";
    const SUMMARY: &'static str =
        "Another type with bounds on its score; it counts and is shown as that type.";
    const EXAMPLE: &'static str =
        "eval_type: llm_judge\neval_params: { criteria: The answer is polite }\nmin_score: 0.8";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        Err(vec![wrapper_not_resolved_problem()])
    }
}

/// Params of `guardrail`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read by the loader; here they are its schema")]
pub(super) struct GuardrailEval {
    /// The type that decides.
    #[serde(default)]
    #[schemars(length(min = 1))]
    eval_type: Option<String>,
    /// The same as `eval_type`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    validator: Option<String>,
    /// Its params.
    #[serde(default)]
    eval_params: Map<String, Value>,
    /// What would be done live; shown, nothing more.
    #[serde(default)]
    #[schemars(length(min = 1))]
    action: Option<String>,
    /// Passed if the score is at least this. Without a bound the type itself decides.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    min_score: Option<f64>,
    /// Passed if the score is at most this.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    max_score: Option<f64>,
}

impl EvalType for GuardrailEval {
    const NAME: &'static str = "guardrail";
    const SUMMARY: &'static str =
        "Another type as a guardrail: what would have triggered it fails, an error does neither.";
    const EXAMPLE: &'static str =
        "eval_type: content_excludes\neval_params: { patterns: [password] }\naction: block";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        Err(vec![wrapper_not_resolved_problem()])
    }
}

fn wrapper_not_resolved_problem() -> ParamProblem {
    param_problem("", "a wrapper is resolved where its rubric is loaded")
}

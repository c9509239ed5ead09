//! `llm_rater`: the output gives the same information as the expected answer.
//!
//! Calls the judge even if the texts are equal (evalbench then scores 100 without a call). Otherwise the judge's
//! statistics would contain a verdict that it never gave. `exact_match` is the check for equal texts.

use super::{BOUND_PARAMS, check_not_empty, judged_params};
use crate::handlers::eval_type::EvalType;
use crate::handlers::{CompiledEval, JudgedEval, JudgedParams, PromptBlock};
use crate::rubric::{EvalTypeAlias, ParamProblem};

const SAME_INFORMATION_CRITERIA: &str = "\
The output gives the same information as the block `expected answer`.
Compare what is stated, not how: other words, another order, another format, rounding that changes nothing and units that \
convert do not matter. Every fact of the expected answer must be there, and none may be contradicted. If one of the two gives \
no answer, or says that there is none, the other must do so too.
";
const EXTRA_ALLOWED: &str =
    "Further information in the output is allowed, as long as it contradicts nothing.";
const EXTRA_FORBIDDEN: &str =
    "Further facts that the expected answer does not hold are not allowed.";
const SCORING_GUIDE: &str = "\
The score is the share of the facts of the expected answer that the output gives rightly; 0 if it contradicts one. Passed only \
if the criteria are met in full.";

judged_params! {
    /// Params of `llm_rater`.
    struct LlmRater {
        /// The correct answer.
        #[schemars(length(min = 1))]
        expected: String,
        /// `true`: the output may contain more information than the expected answer.
        #[serde(default = "yes")]
        allow_extra: bool,
    }
}

const fn yes() -> bool {
    true
}

impl EvalType for LlmRater {
    const NAME: &'static str = "llm_rater";
    const SUMMARY: &'static str =
        "A judge decides whether the output gives the same information as the expected answer.";
    const EXAMPLE: &'static str = "expected: Order 4711 was shipped on October 6";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("llmrater")];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] =
        &[("golden", "expected"), ("expected_output", "expected")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let (known, mut problems) = self.common();
        check_not_empty("expected", Some(&self.expected), &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let extra = if self.allow_extra {
            EXTRA_ALLOWED
        } else {
            EXTRA_FORBIDDEN
        };
        Ok(CompiledEval::Judged(JudgedEval::new(JudgedParams {
            criteria: format!("{SAME_INFORMATION_CRITERIA}{extra}"),
            guide: SCORING_GUIDE.to_owned(),
            // A block and not a part of the criteria, so that the judge treats the expected answer as
            // material.
            prompt_blocks: vec![PromptBlock {
                label: "expected answer".to_owned(),
                text: self.expected,
            }],
            ..known
        })))
    }
}

//! `binary_rubric`: a list of criteria, each met or not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::parts_spec::{VerdictPartsSpec, format_numbered_list};
use super::{BOUND_PARAMS, judged_params, list_problems};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{CompiledEval, JudgedEval, JudgedParams};
use crate::rubric::{EvalTypeAlias, ParamProblem, SubEval, metadata_param_path};

/// The way in which the judge gets the criteria.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CriteriaGrouping {
    // All in one call, with a verdict for each. The variants have no doc comments, or the schema would be a union of
    // constants.
    #[default]
    OneCall,
    // Each as its own eval.
    PerCriterion,
}

judged_params! {
    /// Params of `binary_rubric`.
    struct BinaryRubric {
        /// The criteria. Each is met or not. The eval passes if all are met, and the score is the share of criteria
        /// met.
        #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
        criteria: Vec<String>,
        /// `one_call`: one judge call returns a verdict for each criterion. `per_criterion`: each criterion is an
        /// eval of its own with the id `<id>.1`, `<id>.2` …, and with the weight, judge and repeats written here.
        #[serde(default)]
        #[expect(dead_code, reason = "the loader reads it, from the params as JSON")]
        grouping: CriteriaGrouping,
        /// `true`: the judge sees the agent's tool calls and their results. (The default of evalbench is false; the
        /// judge then does not see what the agent did.)
        #[serde(default = "yes")]
        include_tool_calls: bool,
    }
}

const fn yes() -> bool {
    true
}

impl EvalType for BinaryRubric {
    const NAME: &'static str = "binary_rubric";
    const SUMMARY: &'static str = "A judge decides for each criterion whether the conversation meets it. Passes if all are met.";
    const EXAMPLE: &'static str = "criteria:\n  - The agent names the order number\n  - The agent offers a refund\ngrouping: one_call";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("binary_rubric_scorer")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let (known, mut problems) = self.common();
        list_problems("criteria", &self.criteria, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CompiledEval::Judged(JudgedEval::new(JudgedParams {
            criteria: format_numbered_list(&self.criteria),
            parts_spec: VerdictPartsSpec::Criteria(self.criteria),
            // `include_tool_calls: false` is evalbench's default: the judge then sees only texts.
            hide_calls: !self.include_tool_calls,
            session: true,
            ..known
        })))
    }

    fn expand(params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        // One call: the eval stays as it is.
        if params["grouping"] != json!("per_criterion") {
            return Ok(Vec::new());
        }
        // The loader expands without a transcript, so neither param may come from one.
        for name in ["criteria", "grouping"] {
            if metadata_param_path(&params[name]).is_some() {
                let why = "from a transcript's metadata needs `grouping: one_call`: dicta must know the number of evals \
                           without a transcript";
                return Err(param_problem(format!("/{name}"), why));
            }
        }
        let criteria = params["criteria"].as_array().into_iter().flatten();
        let criteria = criteria.enumerate().map(|(at, criterion)| {
            // A list of one criterion, so the new eval compiles as any other.
            let mut sub_params = params.clone();
            sub_params["criteria"] = json!([criterion]);
            sub_params["grouping"] = json!("one_call");
            SubEval {
                params: sub_params,
                pointer: format!("/criteria/{at}"),
                description: criterion.as_str().unwrap_or_default().to_owned(),
            }
        });
        Ok(criteria.collect())
    }
}

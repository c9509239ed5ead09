//! `binary_rubric`: a list of criteria, each met or not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::parts_spec::{VerdictPartsSpec, format_numbered_list};
use super::{BOUND_PARAMS, judged_params, list_problems};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{CompiledEval, JudgedEval, JudgedParams};
use crate::rubric::{EvalTypeAlias, ParamProblem, SubEval, metadata_param_path};

/// How criteria are put to the judge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CriteriaGrouping {
    // All in one call, a verdict each. (No doc comments here: the schema would be a union of constants.)
    #[default]
    OneCall,
    // An eval of its own for each.
    PerCriterion,
}

judged_params! {
    /// Params of `binary_rubric`.
    struct BinaryRubric {
        /// What is judged, one by one: each is met or not. Passes when all are; the score is the share that is met.
        #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
        criteria: Vec<String>,
        /// `one_call`: one judge call states a verdict for each. `per_criterion`: each is an eval of its own, called
        /// `<id>.1`, `<id>.2` …, with the weight, judge and repeats written here.
        #[serde(default)]
        #[expect(dead_code, reason = "the loader reads it, from the params as JSON")]
        grouping: CriteriaGrouping,
        /// Whether the judge sees the agent's tool calls and their results (evalbench's default is false: there the judge
        /// cannot see what the agent did).
        #[serde(default = "yes")]
        include_tool_calls: bool,
    }
}

const fn yes() -> bool {
    true
}

impl EvalType for BinaryRubric {
    const NAME: &'static str = "binary_rubric";
    const SUMMARY: &'static str = "A judge decides of each criterion whether the conversation meets it; passes when all are met.";
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
            hide_calls: !self.include_tool_calls,
            session: true,
            ..known
        })))
    }

    fn expand(params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        if params["grouping"] != json!("per_criterion") {
            return Ok(Vec::new());
        }
        for name in ["criteria", "grouping"] {
            if metadata_param_path(&params[name]).is_some() {
                let why = "from a transcript's metadata needs `grouping: one_call`: how many evals there are must be known \
                           without a transcript";
                return Err(param_problem(format!("/{name}"), why));
            }
        }
        let criteria = params["criteria"].as_array().into_iter().flatten();
        let criteria = criteria.enumerate().map(|(at, criterion)| {
            let mut own = params.clone();
            own["criteria"] = json!([criterion]);
            own["grouping"] = json!("one_call");
            SubEval {
                params: own,
                pointer: format!("/criteria/{at}"),
                description: criterion.as_str().unwrap_or_default().to_owned(),
            }
        });
        Ok(criteria.collect())
    }
}

//! `goal_completion`: the user reached their goals.

use super::parts_spec::{VerdictPartsSpec, format_numbered_list};
use super::{BOUND_PARAMS, check_not_empty, judged_params, list_problems};
use crate::handlers::eval_type::EvalType;
use crate::handlers::{CompiledEval, JudgedEval, JudgedParams, PromptBlock};
use crate::rubric::ParamProblem;

/// The criteria if the judge names the goals itself.
const INFERRED_GOALS_CRITERIA: &str = "\
The user's request is completed.
Name the goals of the user first: each thing the user asks for in the conversation that can be done or not done by itself, in \
their order. A goal is what the user wants, not a step of the agent on the way to it. A goal the user withdrew is none.
A goal is met if the conversation shows that it was reached: by what the agent answered, or by the result of a tool call. A \
promise, a plan or a claim that no result bears out does not meet it.";

/// The criteria if the author names the goals.
const GIVEN_GOALS_CRITERIA: &str = "\
A goal is met if the conversation shows that it was reached: by what the agent answered, or by the result of a tool call. A \
promise, a plan or a claim that no result bears out does not meet it.";

judged_params! {
    /// Params of `goal_completion`.
    struct GoalCompletion {
        /// The goals of the user, one by one. Without it, the judge takes the goals from the user's request.
        #[serde(default)]
        #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
        sub_goals: Option<Vec<String>>,
        /// The task of the (simulated) user, as in an evalset's `conversation_plan`. The judge sees it as material.
        #[serde(default)]
        #[schemars(length(min = 1))]
        conversation_plan: Option<String>,
    }
}

impl EvalType for GoalCompletion {
    const NAME: &'static str = "goal_completion";
    const SUMMARY: &'static str = "A judge decides for each goal of the user whether it was met. Passes if all were met. \
                                   The score is the share of goals met.";
    const EXAMPLE: &'static str = "sub_goals:\n  - The booking is moved to Friday\n  - The user gets a confirmation\nmin_score: 0.5";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let (known, mut problems) = self.common();
        if let Some(goals) = &self.sub_goals {
            list_problems("sub_goals", goals, &mut problems);
        }
        check_not_empty(
            "conversation_plan",
            self.conversation_plan.as_deref(),
            &mut problems,
        );
        if !problems.is_empty() {
            return Err(problems);
        }
        // Given goals are the criteria themselves, and the rule for "met" moves to the scoring guide.
        let (criteria, guide) = match &self.sub_goals {
            Some(goals) => (format_numbered_list(goals), GIVEN_GOALS_CRITERIA.to_owned()),
            None => (INFERRED_GOALS_CRITERIA.to_owned(), String::new()),
        };
        // The plan is material of the author, in a block, so that it cannot act as an instruction.
        let plan = self.conversation_plan.map(|text| PromptBlock {
            label: "conversation plan".to_owned(),
            text,
        });
        Ok(CompiledEval::Judged(JudgedEval::new(JudgedParams {
            criteria,
            guide,
            // An empty list means that the judge names the goals.
            parts_spec: VerdictPartsSpec::Goals(self.sub_goals.unwrap_or_default()),
            prompt_blocks: plan.into_iter().collect(),
            session: true,
            ..known
        })))
    }
}

//! `behavioral_metrics`: counts the agent's hallucinations and unneeded clarifications.

use super::parts_spec::VerdictPartsSpec;
use super::{BOUND_PARAMS, judged_params};
use crate::handlers::eval_type::EvalType;
use crate::handlers::{CompiledEval, JudgedEval, JudgedParams};
use crate::rubric::ParamProblem;

const CRITERIA: &str = "\
Count two kinds of slips in what the agent said in the whole conversation.
- Hallucinations: each claim about the case at hand (a name, number, date, state, source, or a deed of the agent) that a \
message or tool result contradicts, or that nothing in the conversation bears out. The same claim said again counts once. \
General knowledge is none, nor is a claim that the agent marks as a guess.
- Clarifications: each message in which the agent asks the user for something instead of going on, although the conversation \
or its tools could have told it. Asking for consent before a deed that cannot be undone is none, nor is asking for what only \
the user knows.
Quote each one you count. If there are none of a kind, its count is 0.";

judged_params! {
    /// Params of `behavioral_metrics`.
    struct BehavioralMetrics {
    }
}

impl EvalType for BehavioralMetrics {
    const NAME: &'static str = "behavioral_metrics";
    const SUMMARY: &'static str = "A judge counts hallucinations and needless clarifications. Passes if there are none. The score is 1 minus \
                                   0.5 per hallucination and 0.2 per clarification, at least 0.";
    const EXAMPLE: &'static str = "min_score: 0.8";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let (known, problems) = self.common();
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CompiledEval::Judged(JudgedEval::new(JudgedParams {
            criteria: CRITERIA.to_owned(),
            parts_spec: VerdictPartsSpec::Behaviors,
            // Slips of earlier messages count, so the judge sees the whole conversation.
            session: true,
            ..known
        })))
    }
}

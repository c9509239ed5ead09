//! `shouting`: limits the share of capital letters in the output.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `shouting`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct Shouting {
    /// The largest share of capital letters among the letters, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    max_share: f64,
}

impl EvalType for Shouting {
    const NAME: &'static str = "shouting";
    const SUMMARY: &'static str =
        "At most a share of the output's letters are capitals. The score is 1 minus that share.";
    const EXAMPLE: &'static str = "max_share: 0.3";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        if self.max_share >= 1.0 {
            return Err(vec![param_problem(
                "/max_share",
                "must be below 1: nothing could fail",
            )]);
        }
        Ok(CompiledEval::Check(Box::new(self)))
    }
}

impl Check for Shouting {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let letters = || subject.output().text.chars().filter(|c| c.is_alphabetic());
        let all = letters().count();
        let capitals = letters().filter(|c| c.is_uppercase()).count();
        let share = capitals as f64 / all.max(1) as f64;
        let why = format!("{capitals} of {all} letters are capitals");
        Finding::new(share <= self.max_share, why).with_score(1.0 - share)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handlers::testing::{compile_as, passes_as};

    #[test]
    fn share_at_the_limit_passes() {
        let params = json!({"max_share": 0.3});
        for (output, passed) in [
            ("Hello.", true),
            ("HI there", true),
            ("HEY you", false),
            ("", true),
        ] {
            assert_eq!(
                passes_as::<Shouting>(&params, output),
                Some(passed),
                "{output}"
            );
        }
    }

    #[test]
    fn param_that_nothing_could_fail_is_refused() {
        assert!(compile_as::<Shouting>(&json!({"max_share": 1})).is_err());
    }
}

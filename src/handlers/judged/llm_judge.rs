//! `llm_judge` and `llm_judge_session`: a judge decides by the author's criteria. Only the params are read here;
//! `judge` judges.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{BOUND_PARAMS, SCORING_GUIDE_ALIASES, check_not_empty, judged_params, scale_problem};
use crate::handlers::eval_type::EvalType;
use crate::handlers::{CompiledEval, JudgedEval, JudgedParams, JudgedPart, ScoreScale};
use crate::rubric::{EvalTypeAlias, ParamProblem};

judged_params! {
    /// Params of `llm_judge` and `llm_judge_session`.
    struct Params {
        /// The criteria, in plain words.
        #[schemars(length(min = 1))]
        criteria: String,
        /// The scoring guide: the meaning of each score.
        #[serde(default)]
        scoring_guide: Option<String>,
        /// The lowest and the highest score that the judge may give, such as [1, 5]. Default: 0 to 1.
        #[serde(default)]
        scale: Option<[f64; 2]>,
    }
}

/// `llm_judge`: judges the output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct LlmJudge(Params);

impl EvalType for LlmJudge {
    const NAME: &'static str = "llm_judge";
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Output);
    const SUMMARY: &'static str =
        "A judge decides whether the output meets the criteria, with the conversation as context.";
    const EXAMPLE: &'static str = "criteria: The answer is polite and concrete\nmin_score: 0.7";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = SCORING_GUIDE_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        self.0.compile(false)
    }
}

/// `llm_judge_session`: judges the whole conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct LlmJudgeSession(Params);

impl EvalType for LlmJudgeSession {
    const NAME: &'static str = "llm_judge_session";
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("llm_judge_conversation")];
    const SUMMARY: &'static str =
        "A judge decides whether the whole conversation, tool calls included, meets the criteria.";
    const EXAMPLE: &'static str =
        "criteria: The agent checked the order before it promised a refund";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = SCORING_GUIDE_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        self.0.compile(true)
    }
}

impl Params {
    fn compile(self, session: bool) -> Result<CompiledEval, Vec<ParamProblem>> {
        let (known, mut problems) = self.common();
        check_not_empty("criteria", Some(&self.criteria), &mut problems);
        problems.extend(scale_problem(self.scale));
        let known = JudgedParams {
            criteria: self.criteria,
            guide: self.scoring_guide.unwrap_or_default(),
            // serde reads a list of two numbers; `scale_problem` has checked the order.
            scale: self.scale.map(ScoreScale::from),
            session,
            ..known
        };
        if problems.is_empty() {
            Ok(CompiledEval::Judged(JudgedEval::new(known)))
        } else {
            Err(problems)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::handlers::testing::refused;
    use crate::handlers::{CompiledEval, EvalTypeRegistry, JudgedParams};

    fn compiled(kind: &str, params: &serde_json::Value) -> JudgedParams {
        match EvalTypeRegistry::builtin().compile(kind, params) {
            Ok(CompiledEval::Judged(eval)) => eval.known_params,
            other => panic!("{kind} {params}: {other:?}"),
        }
    }

    #[test]
    fn params_reach_the_judge() {
        let params = json!({"criteria": "Polite", "scoring_guide": "1 = yes", "model": "m", "system_prompt": "You are strict",
                            "min_score": 1, "max_score": 1.0, "scale": [1, 5]});
        let full = JudgedParams {
            criteria: "Polite".to_owned(),
            guide: "1 = yes".to_owned(),
            model: Some("m".to_owned()),
            system_prompt: Some("You are strict".to_owned()),
            min_score: Some(1.0),
            max_score: Some(1.0),
            scale: Some([1.0, 5.0].into()),
            ..JudgedParams::default()
        };
        assert_eq!(compiled("llm_judge", &params), full);
        assert_eq!(
            compiled("llm_judge_session", &params),
            JudgedParams {
                session: true,
                ..full
            }
        );
        let least = compiled("llm_judge", &json!({"criteria": "Polite"}));
        assert_eq!(
            least,
            JudgedParams {
                criteria: "Polite".to_owned(),
                ..JudgedParams::default()
            }
        );
    }

    #[test]
    fn criteria_are_needed_and_bounds_are_in_order() {
        for kind in ["llm_judge", "llm_judge_session"] {
            for params in [
                json!({}),
                json!({"criteria": ""}),
                json!({"criteria": " \n"}),
                json!({"criteria": "x", "model": ""}),
                json!({"criteria": "x", "min_score": 1.01}),
                json!({"criteria": "x", "min_score": 0.8, "max_score": 0.2}),
                json!({"criteria": "x", "scale": [1]}),
                json!({"criteria": "x", "scale": [5, 5]}),
                json!({"criteria": "x", "judge": "quick"}),
            ] {
                assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
            }
        }
    }
}

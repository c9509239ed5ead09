//! Judged eval types: their params, the criteria of the preset judges, and the blocks of the prompt.
//!
//! Does not judge: `judge` does. Nothing here passes without a judge. What needs no judge ends as a fail, as "not
//! applicable", or as missing data.

mod behavioral_metrics;
mod binary_rubric;
mod calls;
mod goal_completion;
mod llm_judge;
mod llm_rater;
mod pairwise;
mod parts_spec;
mod personal_data;
mod preset_criteria;
mod preset_judges;
mod prompt_blocks;
mod shots_spec;
mod similar;

#[cfg(test)]
mod tests;

use super::JudgedParams;
use super::eval_type::param_problem;
use crate::rubric::ParamProblem;

pub(super) use self::behavioral_metrics::BehavioralMetrics;
pub(super) use self::binary_rubric::BinaryRubric;
pub(crate) use self::calls::CALLS_BLOCK;
pub(super) use self::calls::{LlmJudgeToolCalls, ParameterAnalysis};
pub(super) use self::goal_completion::GoalCompletion;
pub(super) use self::llm_judge::{LlmJudge, LlmJudgeSession};
pub(super) use self::llm_rater::LlmRater;
pub(super) use self::pairwise::PairwisePreference;
pub use self::parts_spec::VerdictPartsSpec;
pub(super) use self::preset_judges::{
    AnswerRelevancy, Bias, ContextualPrecision, ContextualRecall, ContextualRelevancy,
    Faithfulness, Hallucination, PiiLeakage, RoleViolation, Toxicity,
};
pub use self::shots_spec::{SHOTS_PARAM, ShotRule, ShotsSpec};
pub(super) use self::similar::Similar;

/// The largest number of entries in one list of an eval. More are a mistake.
const MAX_ENTRIES: usize = 100;

/// PromptKit's name of the scoring guide, which dicta accepts without documenting it: `rubric` means a file here.
const SCORING_GUIDE_ALIASES: &[(&str, &str)] = &[("rubric", "scoring_guide")];

/// The params that bound the score of a judged eval.
const BOUND_PARAMS: &[&str] = &["min_score", "max_score"];

/// Declares a params struct with the params that every judged type has. A macro, because serde cannot flatten into a
/// struct that denies unknown fields.
macro_rules! judged_params {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_meta])* $field: $type,)*
            /// A model that replaces the judge's own.
            #[serde(default)]
            #[schemars(length(min = 1))]
            model: Option<String>,
            /// Replaces the opening of the judge's prompt, never its frame.
            #[serde(default)]
            #[schemars(length(min = 1))]
            system_prompt: Option<String>,
            /// Decision setting: the eval passes if its score (0 to 1, after scaling) is at least this.
            #[serde(default)]
            #[schemars(range(min = 0, max = 1))]
            min_score: Option<f64>,
            /// Decision setting: the eval passes if its score (0 to 1, after scaling) is at most this.
            #[serde(default)]
            #[schemars(range(min = 0, max = 1))]
            max_score: Option<f64>,
            /// The labelled transcripts that the prompt shows as examples.
            #[serde(default)]
            #[schemars(with = "crate::handlers::ShotsSpec")]
            shots: Option<$crate::handlers::ShotsSpec>,
        }

        impl $name {
            /// The checked params that every judged type has.
            fn common(&self) -> (
                $crate::handlers::JudgedParams,
                Vec<$crate::rubric::ParamProblem>,
            ) {
                // Clones, because the type still uses its other fields after this call.
                let known = $crate::handlers::JudgedParams {
                    model: self.model.clone(),
                    system_prompt: self.system_prompt.clone(),
                    min_score: self.min_score,
                    max_score: self.max_score,
                    ..$crate::handlers::JudgedParams::default()
                };
                let mut problems = super::common_problems(&known);
                // The run adds the texts of the shots, because only it reads labels.
                problems.extend(self.shots.iter().flat_map($crate::handlers::ShotsSpec::problems));
                (known, problems)
            }
        }
    };
}
use judged_params;

/// Returns the problems of the params that every judged type has.
fn common_problems(known: &JudgedParams) -> Vec<ParamProblem> {
    let mut problems = Vec::new();
    for (name, text) in [
        ("model", &known.model),
        ("system_prompt", &known.system_prompt),
    ] {
        check_not_empty(name, text.as_deref(), &mut problems);
    }
    for (name, score) in [
        ("min_score", known.min_score),
        ("max_score", known.max_score),
    ] {
        if let Some(score) = score.filter(|s| !(0.0..=1.0).contains(s)) {
            problems.push(param_problem(
                format!("/{name}"),
                format!("must be between 0 and 1 (got {score})"),
            ));
        }
    }
    // Equal bounds are allowed: they require exactly one score.
    if let (Some(min), Some(max)) = (known.min_score, known.max_score)
        && min > max
    {
        let why = format!("is above max_score ({min} > {max}): nothing could pass");
        problems.push(param_problem("/min_score", why));
    }
    problems
}

/// Checks that a text is not empty, if it is written.
fn check_not_empty(name: &str, text: Option<&str>, problems: &mut Vec<ParamProblem>) {
    if text.is_some_and(|text| text.trim().is_empty()) {
        problems.push(param_problem(format!("/{name}"), "is empty"));
    }
}

/// Checks a scale: the lowest and the highest score, in that order.
fn scale_problem(scale: Option<[f64; 2]>) -> Option<ParamProblem> {
    let [low, high] = scale?;
    // NaN and infinity are refused first, because comparisons with them are always false.
    if low.is_finite() && high.is_finite() && low < high {
        return None;
    }
    let why =
        format!("must be the lowest and the highest score, such as [1, 5] (got [{low}, {high}])");
    Some(param_problem("/scale", why))
}

/// Checks a list of texts: none empty, no duplicates, not too long.
fn list_problems(name: &str, texts: &[String], problems: &mut Vec<ParamProblem>) {
    if texts.is_empty() {
        problems.push(param_problem(
            format!("/{name}"),
            "needs at least one entry",
        ));
    }
    if texts.len() > MAX_ENTRIES {
        let count = texts.len();
        let why = format!("has {count} entries, more than {MAX_ENTRIES}");
        problems.push(param_problem(format!("/{name}"), why));
        // The comparison below is quadratic.
        return;
    }
    // Trimmed, because a judge cannot tell two criteria apart that differ in spaces.
    for (at, text) in texts.iter().enumerate() {
        let pointer = format!("/{name}/{at}");
        if text.trim().is_empty() {
            problems.push(param_problem(pointer, "is empty"));
        } else if let Some(first) = texts[..at].iter().position(|t| t.trim() == text.trim()) {
            problems.push(param_problem(
                pointer,
                format!("is the same as {name}[{first}]"),
            ));
        }
    }
}

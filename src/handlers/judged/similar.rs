//! `similar`: the output means the same as a reference, by the embeddings of both.
//!
//! The judge is an embedding model (`provider: openai-embeddings` or `gemini-embeddings`). It gets the texts alone.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{BOUND_PARAMS, check_not_empty, common_problems, list_problems};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::NO_ANSWER;
use crate::handlers::wrap::ParamsCompleter;
use crate::handlers::{CompiledEval, Finding, JudgedEval, JudgedParams, JudgedPart, Subject};
use crate::model::SIMILAR_EVAL_TYPE;
use crate::rubric::ParamProblem;

/// Params of `similar`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Similar {
    /// The text that the output should resemble.
    #[serde(default)]
    #[schemars(length(min = 1))]
    reference: Option<String>,
    /// Several such texts. The closest one counts.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
    references: Option<Vec<String>>,
    /// Decision setting: the eval passes if the similarity (the cosine, at least 0) is at least this.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    min_score: Option<f64>,
    /// Decision setting: the eval passes if the similarity is at most this.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    max_score: Option<f64>,
    /// A model that replaces the judge's own.
    #[serde(default)]
    #[schemars(length(min = 1))]
    model: Option<String>,
}

impl EvalType for Similar {
    const NAME: &'static str = SIMILAR_EVAL_TYPE;
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Output);
    const SUMMARY: &'static str = "The output resembles a reference: an embedding model compares both. The score is the cosine \
                                   of the embeddings, or 0 if it is negative. Needs a judge with `provider: openai-embeddings` or \
                                   `gemini-embeddings`.";
    const EXAMPLE: &'static str = "reference: Refunds take five working days\nmin_score: 0.8";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let known = JudgedParams {
            model: self.model,
            min_score: self.min_score,
            max_score: self.max_score,
            ..JudgedParams::default()
        };
        let mut problems = common_problems(&known);
        // Any cosine would pass without a bound.
        if known.min_score.is_none() && known.max_score.is_none() {
            let why = "is missing: without `min_score` or `max_score` nothing decides";
            problems.push(param_problem("/min_score", why));
        }
        let references = match (self.reference, self.references) {
            (Some(text), None) => {
                check_not_empty("reference", Some(&text), &mut problems);
                vec![text]
            }
            (None, Some(texts)) => {
                list_problems("references", &texts, &mut problems);
                texts
            }
            (None, None) => {
                let why = "is missing: name a `reference`, or several `references`";
                problems.push(param_problem("/reference", why));
                Vec::new()
            }
            (Some(_), Some(_)) => {
                let why = "is next to `reference`: name one of both";
                problems.push(param_problem("/references", why));
                Vec::new()
            }
        };
        if problems.is_empty() {
            Ok(CompiledEval::Judged(JudgedEval::with_completer(
                known,
                OutputAppender { references },
            )))
        } else {
            Err(problems)
        }
    }
}

/// Completes the params with the references and the output.
#[derive(Debug)]
struct OutputAppender {
    references: Vec<String>,
}

impl ParamsCompleter for OutputAppender {
    fn complete(
        &self,
        subject: &Subject<'_>,
        known: JudgedParams,
    ) -> Result<JudgedParams, Finding> {
        let output = subject.output();
        // Services refuse an empty text, and it resembles nothing.
        if output.text.trim().is_empty() {
            let why = match output.message {
                None => NO_ANSWER,
                Some(_) => "the output has no text",
            };
            return Err(Finding::new(false, why).with_score(0.0));
        }
        let mut compared_texts = self.references.clone();
        compared_texts.push(output.text.clone().into_owned());
        Ok(JudgedParams {
            compared_texts,
            ..known
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::handlers::testing::{refused, transcript};
    use crate::handlers::{CompiledEval, EvalTypeRegistry, Subject};
    use crate::model::Outcome;

    fn resolve(
        params: &serde_json::Value,
        record: &serde_json::Value,
    ) -> Result<Vec<String>, Outcome> {
        let Ok(CompiledEval::Judged(eval)) = EvalTypeRegistry::builtin().compile("similar", params)
        else {
            panic!("{params} must compile");
        };
        let transcript = transcript(record);
        let resolved = eval.resolve(&Subject::new(&transcript));
        resolved
            .map(|params| params.compared_texts)
            .map_err(|finding| finding.outcome)
    }

    #[test]
    fn judge_gets_the_references_and_then_the_output() {
        let record = json!({"messages": [{"role": "assistant", "content": "It is Paris"}]});
        let one = json!({"reference": "Paris", "min_score": 0.8});
        assert_eq!(
            resolve(&one, &record),
            Ok(vec!["Paris".to_owned(), "It is Paris".to_owned()])
        );
        let two = json!({"references": ["Paris", "France"], "max_score": 0.2});
        assert_eq!(resolve(&two, &record).map(|texts| texts.len()), Ok(3));
    }

    #[test]
    fn missing_output_fails_without_a_judge() {
        let params = json!({"reference": "Paris", "min_score": 0.8});
        for record in [
            json!({"messages": [{"role": "user", "content": "Where?"}]}),
            json!({"messages": [{"role": "assistant", "content": " "}]}),
        ] {
            assert_eq!(resolve(&params, &record), Err(Outcome::Fail));
        }
    }

    #[test]
    fn reference_and_a_bound_are_needed() {
        for params in [
            json!({}),
            json!({"reference": "Paris"}),
            json!({"min_score": 0.8}),
            json!({"reference": "", "min_score": 0.8}),
            json!({"references": [], "min_score": 0.8}),
            json!({"references": ["a", "a"], "min_score": 0.8}),
            json!({"references": ["a"], "reference": "a", "min_score": 0.8}),
            json!({"reference": "Paris", "min_score": 1.2}),
            json!({"reference": "Paris", "min_score": 0.8, "max_score": 0.2}),
        ] {
            assert!(!refused("similar", &params).is_empty(), "{params}");
        }
    }
}

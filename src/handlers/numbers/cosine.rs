//! `cosine_similarity`: the similarity of the answer's recorded embedding to a reference.

use schemars::JsonSchema;
use serde::Deserialize;

use super::recorded_metrics::{MetricReader, format_number};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::{COSINE_TOLERANCE, compute_cosine, normalize_vector};
use crate::rubric::ParamProblem;

/// Params of `cosine_similarity`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct CosineSimilarity {
    /// The reference vector, of the same length as the recorded embeddings.
    #[schemars(length(min = 1))]
    reference: Vec<f64>,
    /// The smallest cosine, above -1 and up to 1, with a tolerance of 1e-9.
    #[schemars(range(min = -1, max = 1))]
    min_similarity: f64,
}

impl EvalType for CosineSimilarity {
    const NAME: &'static str = "cosine_similarity";
    const SUMMARY: &'static str = "The cosine similarity of the recorded `embedding` and the reference is at least `min_similarity`. The embedding is in the transcript's metadata, otherwise in that of the judged assistant message. The score is the cosine, or 0 if it is negative.";
    const EXAMPLE: &'static str = "reference: [0.12, -0.4, 0.9]\nmin_similarity: 0.8";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        // A zero vector has no direction, so every cosine with it is undefined.
        if self.reference.is_empty() {
            problems.push(param_problem("/reference", "needs at least one number"));
        } else if normalize_vector(&self.reference).is_none() {
            problems.push(param_problem(
                "/reference",
                "is all zeros: it has no direction",
            ));
        }
        // -1 itself is refused: every cosine would meet it. The negated form also refuses NaN.
        if !(self.min_similarity > -1.0 && self.min_similarity <= 1.0) {
            let why = format!(
                "must be above -1 and at most 1 (got {})",
                self.min_similarity
            );
            problems.push(param_problem("/min_similarity", why));
        }
        // The reference is scaled once here and not for every transcript.
        match normalize_vector(&self.reference) {
            Some(reference) if problems.is_empty() => {
                Ok(CompiledEval::Check(Box::new(CosineSimilarityCheck {
                    reference,
                    min_similarity: self.min_similarity,
                })))
            }
            _ => Err(problems),
        }
    }
}

#[derive(Debug)]
struct CosineSimilarityCheck {
    /// The reference, scaled to length 1.
    reference: Vec<f64>,
    min_similarity: f64,
}

impl Check for CosineSimilarityCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let (vector, from) = match MetricReader::new(subject).read_embedding() {
            Ok(read) => read,
            Err(why) => return Finding::check_error(why),
        };
        // Vectors of different lengths come from different models and cannot be compared.
        if vector.len() != self.reference.len() {
            return Finding::check_error(format!(
                "embedding in {from} has {} numbers, the reference {}",
                vector.len(),
                self.reference.len()
            ));
        }
        // An all-zero embedding is a failure of its source, so it is an error and not a fail.
        let Some(vector) = normalize_vector(&vector) else {
            let why = format!("embedding in {from} is all zeros: it has no direction");
            return Finding::check_error(why);
        };
        let cosine = compute_cosine(&vector, &self.reference);
        // The tolerance lets a recorded copy of the reference pass with a minimum of 1.
        let passed = cosine >= self.min_similarity - COSINE_TOLERANCE;
        let how = if passed {
            format!("at least {}", format_number(self.min_similarity))
        } else {
            format!(
                "{} less than {}",
                format_number(self.min_similarity - cosine),
                format_number(self.min_similarity)
            )
        };
        Finding::new(
            passed,
            format!("cosine {}, {how} ({from})", format_number(cosine)),
        )
        // A score is from 0 to 1, so a negative cosine scores 0.
        .with_score(cosine.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::handlers::testing::{check_record, loads, refused};
    use crate::model::Outcome::{CheckError, Fail, Pass};

    fn with(embedding: &Value) -> Value {
        json!({"messages": [{"role": "assistant", "content": "a", "metadata": {"embedding": embedding}}]})
    }

    #[test]
    fn vector_has_cosine_1_with_itself() {
        for vector in [
            json!([1, 1]),
            json!([1, 1, 1]),
            json!([1e200, 3e200]),
            json!([1e-200, 2e-200]),
        ] {
            let params = json!({"reference": vector, "min_similarity": 1});
            let found = check_record("cosine_similarity", &params, &with(&vector));
            assert_eq!((found.outcome, found.score), (Pass, Some(1.0)), "{vector}");
        }
    }

    #[test]
    fn limit_has_a_tolerance_of_one_billionth() {
        let found = |embedding: Value, least: f64| {
            let params = json!({"reference": [1, 0], "min_similarity": least});
            check_record("cosine_similarity", &params, &with(&embedding))
        };
        assert_eq!(found(json!([0, 1]), 0.0).outcome, Pass);
        assert_eq!(found(json!([3, 4]), 0.6).outcome, Pass);
        assert_eq!(found(json!([3, 4]), 0.6001).outcome, Fail);
        let away = found(json!([-1, 0]), -0.5);
        assert_eq!((away.outcome, away.score), (Fail, Some(0.0)));
        assert_eq!(
            away.explanation,
            "cosine -1, 0.5 less than -0.5 (message 0)"
        );
    }

    #[test]
    fn zero_vector_or_other_length_is_a_check_error() {
        let params = json!({"reference": [1, 0], "min_similarity": 0.5});
        for (record, why) in [
            (
                with(&json!([0, 0])),
                "embedding in message 0 is all zeros: it has no direction",
            ),
            (
                with(&json!([1, 0, 0])),
                "embedding in message 0 has 3 numbers, the reference 2",
            ),
            (
                with(&json!([1, "0"])),
                "embedding[1] in message 0 is \"0\", not a number",
            ),
            (
                with(&json!("x")),
                "embedding in message 0 is \"x\", not a list of numbers",
            ),
            (
                with(&json!([])),
                "embedding in message 0 has 0 numbers, the reference 2",
            ),
            (
                with(&Value::Null),
                "there is no embedding: no `embedding` in the transcript's metadata, nor in that of message 0",
            ),
        ] {
            let found = check_record("cosine_similarity", &params, &record);
            assert_eq!(
                (found.outcome, found.explanation.as_str()),
                (CheckError, why)
            );
        }
    }

    #[test]
    fn a_reference_without_direction_and_a_limit_that_nothing_misses_are_refused() {
        for params in [
            json!({"reference": [1]}),
            json!({"min_similarity": 0.5}),
            json!({"reference": [], "min_similarity": 0.5}),
            json!({"reference": [0, 0], "min_similarity": 0.5}),
            json!({"reference": "x", "min_similarity": 0.5}),
            json!({"reference": [1], "min_similarity": -1}),
            json!({"reference": [1], "min_similarity": 1.1}),
        ] {
            assert!(
                !refused("cosine_similarity", &params).is_empty(),
                "{params}"
            );
        }
        let late = json!({"reference": {"from": "metadata.r"}, "min_similarity": 0.5});
        assert!(loads("cosine_similarity", &late).is_ok());
    }

    proptest! {
        #[test]
        fn cosine_is_symmetric_bounded_and_independent_of_length(
            pairs in prop::collection::vec((-1e6_f64..1e6, -1e6_f64..1e6), 1..8), factor in 1e-3_f64..1e3
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let longer: Vec<f64> = a.iter().map(|x| x * factor).collect();
            if let (Some(a), Some(b), Some(longer)) = (normalize_vector(&a), normalize_vector(&b), normalize_vector(&longer)) {
                let near = compute_cosine(&a, &b);
                prop_assert!((-1.0..=1.0).contains(&near));
                prop_assert!((near - compute_cosine(&b, &a)).abs() < 1e-12);
                prop_assert!((near - compute_cosine(&longer, &b)).abs() < 1e-6);
                prop_assert!(compute_cosine(&a, &a) >= 1.0);
            }
        }
    }
}

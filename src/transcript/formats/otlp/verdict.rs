//! Source verdicts from `gen_ai.evaluation.result` events.
//!
//! Responsible for the labels that mean pass or fail, and for scores from 0 to 1. Does not interpret other labels or
//! scores.

use super::super::transcript_builder::label_and_number;
use super::wire::OtlpAttrs;
use crate::model::{RawJson, SourceVerdict};

/// The name of the event.
pub(super) const EVALUATION_EVENT: &str = "gen_ai.evaluation.result";

const EVALUATOR_KEYS: [&str; 3] = [
    "gen_ai.evaluation.evaluator",
    "gen_ai.evaluation.evaluator.name",
    "gen_ai.evaluator.name",
];

/// Parses the verdict of an evaluation event.
pub(super) fn parse_verdict(attrs: &OtlpAttrs<'_>) -> SourceVerdict {
    let text = |key: &str| attrs.text(key).map(std::borrow::Cow::into_owned);
    let label = text("gen_ai.evaluation.score.label");
    let score = attrs.first_number(&["gen_ai.evaluation.score.value"]);
    let value = match (&label, score) {
        // The label is what the evaluator decided, so it comes before the number.
        (Some(label), _) => label_and_number(label, score),
        (None, Some(score)) => RawJson::from_serializable(&score).ok(),
        (None, None) => None,
    };
    let judge = attrs.first_text(&EVALUATOR_KEYS);
    let mut verdict = SourceVerdict {
        judge: judge.map_or_else(|| "otel".to_owned(), std::borrow::Cow::into_owned),
        eval: text("gen_ai.evaluation.name").unwrap_or_else(|| "evaluation".to_owned()),
        passed: None,
        score: None,
        value,
        reasoning: text("gen_ai.evaluation.explanation"),
        error: text("error.type"),
    };
    // A failed evaluation decided nothing, whatever its other attributes are.
    if verdict.error.is_none() {
        verdict.passed = match label.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("pass" | "passed") => Some(true),
            Some("fail" | "failed") => Some(false),
            // Other labels, such as `relevant`, do not state pass or fail.
            _ => None,
        };
        verdict.score = score.filter(|score| (0.0..=1.0).contains(score));
    }
    verdict
}

//! The verdict that the answers of a Decisions endpoint yield.

use super::super::verdict_format::VerdictFormat;
use super::questions::list_scale_levels;
use crate::model::{CalibratedScore, ProviderKind, ValueProbability, Verdict, VerdictPart};
use crate::provider::decisions::{
    AllowedAnswers, ProbabilityAnswer, ProbabilityQuestion, parse_answers,
};

/// The reason why the reply yields no verdict.
#[derive(Debug, PartialEq)]
pub(in super::super) enum CalibratedVerdictError {
    /// The service refused to answer.
    Refused(String),
    /// The reply doesn't answer the questions.
    Unparsed(String),
}

/// The lowest probability of a yes.
const PASS_PROBABILITY: f64 = 0.5;

/// Reads a verdict. It has neither a reasoning nor citations.
pub(in super::super) fn read_answers(
    provider: ProviderKind,
    format: &VerdictFormat,
    questions: &[ProbabilityQuestion],
    reply: &str,
) -> Result<Verdict, CalibratedVerdictError> {
    let answers = parse_answers(provider, questions, reply)
        .map_err(|why| CalibratedVerdictError::Unparsed(why.0))?;
    let mut verdict = Verdict {
        calibrated: Some(CalibratedScore {
            by: provider.as_str().to_owned(),
            ..CalibratedScore::default()
        }),
        ..Verdict::default()
    };
    // `parse_answers` returns the answers in the order of the questions.
    for (question, answer) in questions.iter().zip(answers) {
        apply_answer(&mut verdict, format, question, answer)?;
    }
    if let Some(parts) = format.parts
        // The verdict "not applicable" has no result to aggregate.
        && verdict.applicable != Some(false)
    {
        let Some((passed, score)) = parts.aggregate(&verdict.parts) else {
            return Err(CalibratedVerdictError::Unparsed(
                "the eval asks for no parts".to_owned(),
            ));
        };
        (verdict.passed, verdict.score) = (Some(passed), Some(score));
    }
    Ok(verdict)
}

fn apply_answer(
    verdict: &mut Verdict,
    format: &VerdictFormat,
    question: &ProbabilityQuestion,
    answer: ProbabilityAnswer,
) -> Result<(), CalibratedVerdictError> {
    let calibrated = verdict.calibrated.get_or_insert_default();
    match (question.id.as_str(), answer) {
        (id, ProbabilityAnswer::Refused(why)) => {
            let why = if why.is_empty() {
                "it gives no reason"
            } else {
                &why
            };
            return Err(CalibratedVerdictError::Refused(format!(
                "the service refuses to answer the question `{id}`: {why}"
            )));
        }
        (
            "met",
            ProbabilityAnswer::Yes {
                probability,
                confidence,
            },
        ) => {
            calibrated.confidence = confidence;
            set_pass_probability(verdict, probability);
        }
        (
            "met",
            ProbabilityAnswer::Distribution {
                probabilities,
                confidence,
            },
        ) => {
            calibrated.confidence = confidence;
            calibrated.values = list_value_odds(question, &probabilities);
            let [met, failed, not_applicable] = probabilities[..] else {
                return Err(CalibratedVerdictError::Unparsed(
                    "`met` must have three values".to_owned(),
                ));
            };
            // A tie counts as applicable, so that a verdict exists.
            let applies = not_applicable <= met.max(failed);
            verdict.applicable = Some(applies);
            if applies {
                // The probability among the two remaining options, because the third one is excluded now.
                set_pass_probability(verdict, met / (met + failed));
            }
        }
        ("score", ProbabilityAnswer::Distribution { probabilities, .. }) => {
            let range = format.score_range();
            let levels = list_scale_levels(range);
            // Services round, so the sum is only near 1. Dividing by it normalizes the mean.
            let sum: f64 = probabilities.iter().sum();
            let worth = levels
                .iter()
                .zip(&probabilities)
                .map(|(level, p)| level * p);
            // Rounding can push the mean slightly outside the scale.
            let expected = (worth.sum::<f64>() / sum).clamp(range.low, range.high);
            verdict.raw_score = Some(expected);
            // dicta's score is always from 0 to 1; `raw_score` keeps the eval's own scale.
            verdict.score = Some((expected - range.low) / (range.high - range.low));
        }
        ("applicable", ProbabilityAnswer::Yes { probability, .. }) => {
            verdict.applicable = Some(probability >= PASS_PROBABILITY);
        }
        // Every other yes-or-no question is a numbered part; their order is that of the parts.
        (_, ProbabilityAnswer::Yes { probability, .. }) => verdict.parts.push(VerdictPart {
            met: probability >= PASS_PROBABILITY,
            probability: Some(probability),
            ..VerdictPart::default()
        }),
        (id, ProbabilityAnswer::Distribution { .. }) => {
            return Err(CalibratedVerdictError::Unparsed(format!(
                "`{id}` is not one of the questions"
            )));
        }
    }
    Ok(())
}

/// Sets the probability of passing. It is also the score, unless the eval asks for one.
fn set_pass_probability(verdict: &mut Verdict, probability: f64) {
    if let Some(calibrated) = &mut verdict.calibrated {
        calibrated.probability = Some(probability);
    }
    verdict.passed = Some(probability >= PASS_PROBABILITY);
    verdict.score = Some(probability);
}

fn list_value_odds(question: &ProbabilityQuestion, probabilities: &[f64]) -> Vec<ValueProbability> {
    let AllowedAnswers::Options(all) = &question.allowed_answers else {
        return Vec::new();
    };
    let pairs = all.iter().zip(probabilities);
    pairs
        .map(|((value, _), p)| ValueProbability {
            value: value.clone(),
            probability: *p,
        })
        .collect()
}

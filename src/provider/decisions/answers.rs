//! The parser of a Decisions endpoint's answers, which it checks against the questions.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{AllowedAnswers, ProbabilityQuestion};
use crate::model::ProviderKind;

/// The largest difference of a question's probabilities from 1 in all, because services round and avoid 0 and 1.
const PROBABILITY_TOLERANCE: f64 = 0.1;

/// An answer with checked numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbabilityAnswer {
    /// The probability of a yes.
    Yes {
        /// From 0 to 1.
        probability: f64,
        /// The confidence of the service, if it states one.
        confidence: Option<f64>,
    },
    /// The probability of each option or level, in the order of the question.
    Distribution {
        /// From 0 to 1 each, 1 in all.
        probabilities: Vec<f64>,
        /// The confidence of the service, if it states one.
        confidence: Option<f64>,
    },
    /// The service refused the question, with this text.
    Refused(String),
}

/// The reason why a reply doesn't answer the questions, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbabilityAnswerError(pub String);

fn answer_error<T>(why: impl Into<String>) -> Result<T, ProbabilityAnswerError> {
    Err(ProbabilityAnswerError(why.into()))
}

/// One answer of either protocol. A field stated twice is an error (serde's own).
#[derive(Debug, Deserialize)]
struct RawProbabilityAnswer {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    probability: Option<f64>,
    #[serde(default)]
    noul: Option<f64>,
    #[serde(default)]
    choice: Option<Value>,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    probabilities: Option<RawProbabilities>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawProbabilities {
    Listed(Vec<RawListedProbability>),
    Named(UniquePairs<f64>),
}

#[derive(Debug, Deserialize)]
struct RawListedProbability {
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    label: Option<String>,
    probability: f64,
}

#[derive(Deserialize)]
struct OpenAiDecisionsReply {
    answers: Vec<RawProbabilityAnswer>,
}

#[derive(Deserialize)]
struct GoogleDecisionsReply {
    answers: UniquePairs<RawProbabilityAnswer>,
}

/// An object in which no key occurs twice.
#[derive(Debug)]
struct UniquePairs<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for UniquePairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Of<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Of<T> {
            type Value = UniquePairs<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniquePairs<T>, A::Error> {
                let mut all: Vec<(String, T)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, T>()? {
                    // Choosing one of two answers to the same question would be a guess.
                    if all.iter().any(|(other, _)| *other == key) {
                        return Err(serde::de::Error::custom(format!("`{key}` occurs twice")));
                    }
                    all.push((key, value));
                }
                Ok(UniquePairs(all))
            }
        }
        from.deserialize_map(Of(PhantomData))
    }
}

/// Parses the answers to these questions, in their order.
pub fn parse_answers(
    provider: ProviderKind,
    questions: &[ProbabilityQuestion],
    reply: &str,
) -> Result<Vec<ProbabilityAnswer>, ProbabilityAnswerError> {
    let misformed = |error: serde_json::Error| {
        ProbabilityAnswerError(format!("the reply holds no answers: {error}"))
    };
    // Google names the answers by question; OpenAI lists them in the order of the questions.
    let stated = if provider == ProviderKind::GeminiDecisions {
        let UniquePairs(mut all) = serde_json::from_str::<GoogleDecisionsReply>(reply)
            .map_err(misformed)?
            .answers;
        let mut stated = Vec::with_capacity(questions.len());
        for question in questions {
            let Some(at) = all.iter().position(|(id, _)| *id == question.id) else {
                return answer_error(format!("the question `{}` is not answered", question.id));
            };
            stated.push(all.swap_remove(at).1);
        }
        // A leftover answer shows that the reply belongs to other questions.
        if let Some((id, _)) = all.first() {
            return answer_error(format!("the reply answers `{id}`, which was not asked"));
        }
        stated
    } else {
        let all = serde_json::from_str::<OpenAiDecisionsReply>(reply)
            .map_err(misformed)?
            .answers;
        if all.len() != questions.len() {
            return answer_error(format!(
                "the reply holds {} answers to {} questions",
                all.len(),
                questions.len()
            ));
        }
        all
    };
    let pairs = questions.iter().zip(stated);
    pairs
        .map(|(question, stated)| parse_answer(question, stated))
        .collect()
}

fn parse_answer(
    question: &ProbabilityQuestion,
    stated: RawProbabilityAnswer,
) -> Result<ProbabilityAnswer, ProbabilityAnswerError> {
    let id = &question.id;
    if let Some(name) = stated.name.as_ref().filter(|name| *name != id) {
        return answer_error(format!("`{name}` is answered where `{id}` was asked"));
    }
    let kind = stated.kind.as_deref();
    // Before the checks of the form: a refusal has no numbers.
    if kind == Some("refusal") || stated.refusal.is_some() {
        return Ok(ProbabilityAnswer::Refused(
            stated.refusal.unwrap_or_default(),
        ));
    }
    let expected: &[&str] = match question.allowed_answers {
        // OpenAI's word, then Google's.
        AllowedAnswers::YesNo(..) => &["predicate", "noul"],
        AllowedAnswers::Options(_) => &["choice"],
        AllowedAnswers::Levels(_) => &["score"],
    };
    if let Some(kind) = kind.filter(|kind| !expected.contains(kind)) {
        return answer_error(format!(
            "`{id}` is answered as a {kind}, not a {}",
            expected[0]
        ));
    }
    // The confidence is optional, but a value outside 0 to 1 makes the answer invalid.
    let confidence = match stated.confidence {
        Some(confidence) => Some(check_probability(id, "confidence", confidence)?),
        None => None,
    };
    let levels = match &question.allowed_answers {
        AllowedAnswers::YesNo(..) => {
            let Some(p) = stated.probability.or(stated.noul) else {
                return answer_error(format!("the answer to `{id}` holds no probability"));
            };
            return Ok(ProbabilityAnswer::Yes {
                probability: check_probability(id, "probability", p)?,
                confidence,
            });
        }
        AllowedAnswers::Options(all) | AllowedAnswers::Levels(all) => all,
    };
    let by_number = matches!(question.allowed_answers, AllowedAnswers::Levels(_));
    let Some(given) = stated.probabilities else {
        return answer_error(format!("the answer to `{id}` holds no probabilities"));
    };
    let probabilities = order_probabilities(id, levels, by_number, given)?;
    if by_number {
        // dicta computes the score itself; a missing one shows a broken reply.
        if !stated.score.is_some_and(f64::is_finite) {
            return answer_error(format!("the answer to `{id}` holds no score"));
        }
    } else {
        check_choice(id, levels, &probabilities, stated.choice.as_ref())?;
    }
    Ok(ProbabilityAnswer::Distribution {
        probabilities,
        confidence,
    })
}

fn check_probability(id: &str, what: &str, p: f64) -> Result<f64, ProbabilityAnswerError> {
    if (0.0..=1.0).contains(&p) {
        Ok(p)
    } else {
        answer_error(format!(
            "the {what} of `{id}` must be from 0 to 1 (got {p})"
        ))
    }
}

/// Orders the probabilities like the options of the question.
fn order_probabilities(
    id: &str,
    offered: &[(String, String)],
    by_number: bool,
    given: RawProbabilities,
) -> Result<Vec<f64>, ProbabilityAnswerError> {
    let named: Vec<(String, f64)> = match given {
        // Levels are in the order of the question. If an entry has a label, the label decides its place.
        RawProbabilities::Listed(all) => {
            let name = |(at, one): (usize, RawListedProbability)| {
                let value = match one.value {
                    Some(Value::String(text)) => Some(text),
                    Some(other) => Some(other.to_string()),
                    None => None,
                };
                let name = if by_number {
                    let place = offered
                        .iter()
                        .position(|(label, _)| Some(label) == one.label.as_ref());
                    match (one.label, place) {
                        (Some(_), Some(place)) => place.to_string(),
                        (Some(other), None) => other,
                        (None, _) => at.to_string(),
                    }
                } else {
                    value.unwrap_or_default()
                };
                (name, one.probability)
            };
            all.into_iter().enumerate().map(name).collect()
        }
        RawProbabilities::Named(UniquePairs(all)) => all,
    };
    if named.len() != offered.len() {
        return answer_error(format!(
            "`{id}` has {} probabilities for {} values",
            named.len(),
            offered.len()
        ));
    }
    let mut all = Vec::with_capacity(offered.len());
    for (at, (name, _)) in offered.iter().enumerate() {
        let wanted = if by_number {
            at.to_string()
        } else {
            name.clone()
        };
        // Exactly one probability for each value: none or two are errors.
        let mut found = named.iter().filter(|(given, _)| *given == wanted);
        let (Some((_, p)), None) = (found.next(), found.next()) else {
            return answer_error(format!("`{id}` lacks the one probability of `{name}`"));
        };
        all.push(check_probability(id, "probability", *p)?);
    }
    let sum: f64 = all.iter().sum();
    if (sum - 1.0).abs() > PROBABILITY_TOLERANCE {
        return answer_error(format!(
            "the probabilities of `{id}` add up to {sum:.3}, not 1"
        ));
    }
    Ok(all)
}

/// Checks that the stated choice is one of the options, and that no other option is likelier.
fn check_choice(
    id: &str,
    offered: &[(String, String)],
    probabilities: &[f64],
    choice: Option<&Value>,
) -> Result<(), ProbabilityAnswerError> {
    let Some(choice) = choice.and_then(Value::as_str) else {
        return answer_error(format!("the answer to `{id}` holds no choice"));
    };
    let Some(at) = offered.iter().position(|(name, _)| name == choice) else {
        return answer_error(format!(
            "the answer to `{id}` is `{choice}`, which was not offered"
        ));
    };
    let most = probabilities.iter().copied().fold(0.0, f64::max);
    // 0.02 allows for rounding between two nearly equal options.
    if probabilities[at] + 0.02 < most {
        return answer_error(format!(
            "the answer to `{id}` is `{choice}`, and its probabilities say otherwise"
        ));
    }
    Ok(())
}

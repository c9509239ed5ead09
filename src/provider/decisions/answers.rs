//! Reads what a decisions endpoint answers, against what it was asked.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Among, Question};
use crate::model::ProviderKind;

/// How far the probabilities of one question may be from 1 in all: services round, and keep off 0 and 1.
const SLACK: f64 = 0.1;

/// An answer, its numbers checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// How likely it is that the answer is yes.
    Yes {
        /// From 0 to 1.
        probability: f64,
        /// How sure the service is of that, where it says.
        confidence: Option<f64>,
    },
    /// How likely each option or level is, in the order of the question.
    Each {
        /// From 0 to 1 each, 1 in all.
        probabilities: Vec<f64>,
        /// How sure the service is of that, where it says.
        confidence: Option<f64>,
    },
    /// The question is refused: the service's word.
    Refused(String),
}

/// Why a reply answers nothing: a lower-case sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnswers(pub String);

fn no<T>(why: impl Into<String>) -> Result<T, NoAnswers> {
    Err(NoAnswers(why.into()))
}

/// One answer of either protocol. A field stated twice is an error (serde's own).
#[derive(Debug, Deserialize)]
struct Stated {
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
    probabilities: Option<Probabilities>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Probabilities {
    Listed(Vec<Listed>),
    Named(Pairs<f64>),
}

#[derive(Debug, Deserialize)]
struct Listed {
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    label: Option<String>,
    probability: f64,
}

#[derive(Deserialize)]
struct InOrder {
    answers: Vec<Stated>,
}

#[derive(Deserialize)]
struct ById {
    answers: Pairs<Stated>,
}

/// A mapping in which no key stands twice.
#[derive(Debug)]
struct Pairs<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Of<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Of<T> {
            type Value = Pairs<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut all: Vec<(String, T)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, T>()? {
                    if all.iter().any(|(other, _)| *other == key) {
                        return Err(serde::de::Error::custom(format!("`{key}` stands twice")));
                    }
                    all.push((key, value));
                }
                Ok(Pairs(all))
            }
        }
        from.deserialize_map(Of(PhantomData))
    }
}

/// The answers to these questions, in their order.
pub fn read(
    provider: ProviderKind,
    questions: &[Question],
    reply: &str,
) -> Result<Vec<Answer>, NoAnswers> {
    let misformed =
        |error: serde_json::Error| NoAnswers(format!("the reply holds no answers: {error}"));
    let stated = if provider == ProviderKind::GeminiDecisions {
        let Pairs(mut all) = serde_json::from_str::<ById>(reply)
            .map_err(misformed)?
            .answers;
        let mut stated = Vec::with_capacity(questions.len());
        for question in questions {
            let Some(at) = all.iter().position(|(id, _)| *id == question.id) else {
                return no(format!("the question `{}` is not answered", question.id));
            };
            stated.push(all.swap_remove(at).1);
        }
        if let Some((id, _)) = all.first() {
            return no(format!("the reply answers `{id}`, which was not asked"));
        }
        stated
    } else {
        let all = serde_json::from_str::<InOrder>(reply)
            .map_err(misformed)?
            .answers;
        if all.len() != questions.len() {
            return no(format!(
                "the reply holds {} answers to {} questions",
                all.len(),
                questions.len()
            ));
        }
        all
    };
    let pairs = questions.iter().zip(stated);
    pairs
        .map(|(question, stated)| answer(question, stated))
        .collect()
}

fn answer(question: &Question, stated: Stated) -> Result<Answer, NoAnswers> {
    let id = &question.id;
    if let Some(name) = stated.name.as_ref().filter(|name| *name != id) {
        return no(format!("`{name}` is answered where `{id}` was asked"));
    }
    let kind = stated.kind.as_deref();
    if kind == Some("refusal") || stated.refusal.is_some() {
        return Ok(Answer::Refused(stated.refusal.unwrap_or_default()));
    }
    let expected: &[&str] = match question.among {
        Among::YesNo(..) => &["predicate", "noul"],
        Among::Options(_) => &["choice"],
        Among::Levels(_) => &["score"],
    };
    if let Some(kind) = kind.filter(|kind| !expected.contains(kind)) {
        return no(format!(
            "`{id}` is answered as a {kind}, not a {}",
            expected[0]
        ));
    }
    let confidence = match stated.confidence {
        Some(confidence) => Some(probability(id, "confidence", confidence)?),
        None => None,
    };
    let levels = match &question.among {
        Among::YesNo(..) => {
            let Some(p) = stated.probability.or(stated.noul) else {
                return no(format!("the answer to `{id}` holds no probability"));
            };
            return Ok(Answer::Yes {
                probability: probability(id, "probability", p)?,
                confidence,
            });
        }
        Among::Options(all) | Among::Levels(all) => all,
    };
    let by_number = matches!(question.among, Among::Levels(_));
    let Some(given) = stated.probabilities else {
        return no(format!("the answer to `{id}` holds no probabilities"));
    };
    let probabilities = each(id, levels, by_number, given)?;
    if by_number {
        if !stated.score.is_some_and(f64::is_finite) {
            return no(format!("the answer to `{id}` holds no score"));
        }
    } else {
        chosen(id, levels, &probabilities, stated.choice.as_ref())?;
    }
    Ok(Answer::Each {
        probabilities,
        confidence,
    })
}

fn probability(id: &str, what: &str, p: f64) -> Result<f64, NoAnswers> {
    if (0.0..=1.0).contains(&p) {
        Ok(p)
    } else {
        no(format!(
            "the {what} of `{id}` must be from 0 to 1 (got {p})"
        ))
    }
}

/// The probabilities in the order of what was offered.
fn each(
    id: &str,
    offered: &[(String, String)],
    by_number: bool,
    given: Probabilities,
) -> Result<Vec<f64>, NoAnswers> {
    let named: Vec<(String, f64)> = match given {
        // Levels are listed in their order: what they are called is checked where it is said.
        Probabilities::Listed(all) => {
            let name = |(at, one): (usize, Listed)| {
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
        Probabilities::Named(Pairs(all)) => all,
    };
    if named.len() != offered.len() {
        return no(format!(
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
        let mut found = named.iter().filter(|(given, _)| *given == wanted);
        let (Some((_, p)), None) = (found.next(), found.next()) else {
            return no(format!("`{id}` lacks the one probability of `{name}`"));
        };
        all.push(probability(id, "probability", *p)?);
    }
    let sum: f64 = all.iter().sum();
    if (sum - 1.0).abs() > SLACK {
        return no(format!(
            "the probabilities of `{id}` add up to {sum:.3}, not 1"
        ));
    }
    Ok(all)
}

/// What is said to be chosen is one of what was offered, and none of it is likelier.
fn chosen(
    id: &str,
    offered: &[(String, String)],
    probabilities: &[f64],
    choice: Option<&Value>,
) -> Result<(), NoAnswers> {
    let Some(choice) = choice.and_then(Value::as_str) else {
        return no(format!("the answer to `{id}` holds no choice"));
    };
    let Some(at) = offered.iter().position(|(name, _)| name == choice) else {
        return no(format!(
            "the answer to `{id}` is `{choice}`, which was not offered"
        ));
    };
    let most = probabilities.iter().copied().fold(0.0, f64::max);
    if probabilities[at] + 0.02 < most {
        return no(format!(
            "the answer to `{id}` is `{choice}`, and its probabilities say otherwise"
        ));
    }
    Ok(())
}

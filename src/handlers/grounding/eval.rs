//! `grounded`: what the answer states occurs in a tool result.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::explain::{Quoted, list};
use super::super::registry::{EvalType, problem};
use super::super::{Check, Compiled, Finding, Mark, Said, Subject};
use super::facts::{Fact, Found, find};
use crate::rubric::ParamProblem;

/// Phrases times the bytes they are looked up in: some tenths of a second. Beyond it nothing is decided.
const MAX_WORK: usize = 1 << 30;

/// Params of `grounded`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Grounded {
    /// What has to occur in a source; all six without it. Spelling aside: `1,200` is `1200`, `1.2 million` is `1200000`,
    /// `Oct 6` is `2026-10-06`, `2.9` is found in `2.9.3`. `numbers` means amounts and versions too.
    #[serde(default = "every_kind")]
    #[schemars(length(min = 1))]
    kinds: Vec<Kind>,
    /// Whose messages are sources beside the tool results.
    #[serde(default)]
    also_in: Vec<Speaker>,
    /// `output`: the last assistant message. `session`: every assistant message, each with the sources before it.
    #[serde(default)]
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Numbers,
    Versions,
    Dates,
    Amounts,
    Urls,
    Quotes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    User,
    System,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Of {
    #[default]
    Output,
    Session,
}

fn every_kind() -> Vec<Kind> {
    vec![
        Kind::Numbers,
        Kind::Versions,
        Kind::Dates,
        Kind::Amounts,
        Kind::Urls,
        Kind::Quotes,
    ]
}

impl From<Kind> for Fact {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Numbers => Self::Number,
            Kind::Versions => Self::Version,
            Kind::Dates => Self::Date,
            Kind::Amounts => Self::Amount,
            Kind::Urls => Self::Url,
            Kind::Quotes => Self::Quote,
        }
    }
}

impl EvalType for Grounded {
    const NAME: &'static str = "grounded";
    const SUMMARY: &'static str = "Every number, version, date, amount, URL and quoted phrase of the answer occurs in a tool result that came before it. An answer that states none passes; the numbers of its own lists do not count.";
    const EXAMPLE: &'static str = "kinds: [numbers, dates, amounts]\nalso_in: [user]";
    const SCORED: bool = true;

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        if self.kinds.is_empty() {
            return Err(vec![problem("/kinds", "needs at least one kind")]);
        }
        let kinds: BTreeSet<Fact> = self.kinds.into_iter().map(Fact::from).collect();
        Ok(Compiled::Check(Box::new(Grounding {
            kinds: kinds.into_iter().collect(),
            also_in: self.also_in,
            session: self.of == Of::Session,
        })))
    }
}

#[derive(Debug)]
struct Grounding {
    kinds: Vec<Fact>,
    also_in: Vec<Speaker>,
    session: bool,
}

/// A fact of the answer.
struct Stated<'s, 't> {
    said: &'s Said<'t>,
    found: Found,
}

impl Stated<'_, '_> {
    fn text(&self) -> &str {
        &self.said.text[self.found.at.clone()]
    }
}

impl Check for Grounding {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let all = subject.said();
        let judged = if self.session {
            all
        } else {
            &all[all.len().saturating_sub(1)..]
        };
        let stated: Vec<Stated<'_, '_>> = subject
            .while_wanted(judged)
            .flat_map(|said| {
                let found = find(&said.text, &self.kinds);
                found.into_iter().map(move |found| Stated { said, found })
            })
            .collect();
        if stated.is_empty() {
            let names = list(self.kinds.iter().map(|kind| kind.name()));
            return Finding::of(true, format!("there is nothing to ground ({names})")).scored(1.0);
        }
        let speaks = |speaker| self.also_in.contains(&speaker);
        let ground = subject.ground(speaks(Speaker::User), speaks(Speaker::System));
        let Some(bytes) = ground.bytes_before(subject.end) else {
            let (count, where_) = (stated.len(), self.named());
            return Finding::of(
                false,
                format!(
                    "there is no {where_} that {count} of {count} could be found in: {}",
                    told(&stated)
                ),
            )
            .scored(0.0)
            .marked(marks(subject, &stated));
        };
        if work(&stated, bytes) > MAX_WORK {
            return Finding::check_error(
                "there is too much to look up: too many facts, in too long tool results",
            );
        }
        let missing: Vec<bool> = subject
            .while_wanted(&stated)
            .map(|stated| {
                let first = ground.first(&stated.found);
                first.is_none_or(|at| at >= stated.said.message.unwrap_or(usize::MAX))
            })
            .collect();
        self.finding(subject, stated, &missing)
    }
}

impl Grounding {
    /// `tool result or user message`.
    fn named(&self) -> String {
        let mut names = String::from("tool result");
        for (speaker, name) in [(Speaker::User, "user"), (Speaker::System, "system")] {
            if self.also_in.contains(&speaker) {
                names.push_str(" or ");
                names.push_str(name);
                names.push_str(" message");
            }
        }
        names
    }

    fn finding(
        &self,
        subject: &Subject<'_>,
        stated: Vec<Stated<'_, '_>>,
        missing: &[bool],
    ) -> Finding {
        let total = stated.len();
        let lost: Vec<Stated<'_, '_>> = stated
            .into_iter()
            .zip(missing)
            .filter_map(|(stated, missing)| missing.then_some(stated))
            .collect();
        let where_ = self.named();
        let score = (total - lost.len()) as f64 / total as f64;
        if lost.is_empty() {
            return Finding::of(true, format!("all {total} found in a {where_}")).scored(score);
        }
        let why = format!(
            "{} of {total} found in no {where_} before it: {}",
            lost.len(),
            told(&lost)
        );
        Finding::of(false, why)
            .scored(score)
            .marked(marks(subject, &lost))
    }
}

/// At most so many bytes are compared: phrases by scanning the sources, all else by a look.
fn work(stated: &[Stated<'_, '_>], bytes: usize) -> usize {
    let phrases: HashSet<&str> = stated
        .iter()
        .filter(|stated| matches!(stated.found.fact, Fact::Quote | Fact::Url))
        .map(Stated::text)
        .collect();
    phrases.len().saturating_mul(bytes)
}

fn told(stated: &[Stated<'_, '_>]) -> String {
    list(stated.iter().map(|stated| {
        let (name, text) = (stated.found.fact.name(), stated.text());
        match stated.said.message {
            Some(message) => format!("the {name} {} in message {message}", Quoted(text)),
            None => format!("the {name} {}", Quoted(text)),
        }
    }))
}

fn marks(subject: &Subject<'_>, stated: &[Stated<'_, '_>]) -> Vec<Mark> {
    let place = |stated: &Stated<'_, '_>| {
        let at: &Range<usize> = &stated.found.at;
        subject.mark_said(stated.said, at)
    };
    stated
        .iter()
        .take(Finding::MARKS)
        .filter_map(place)
        .collect()
}

#[cfg(test)]
mod tests;

//! `grounded`: what the answer states occurs in a tool result.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::explain::{Quoted, list};
use super::super::registry::{EvalType, problem};
use super::super::{Check, Compiled, Finding, Mark, Said, Subject};
use super::facts::{Fact, Found, find};
use super::ground::Ground;
use crate::model::{Message, Part, Role};
use crate::rubric::ParamProblem;

/// Phrases times the bytes they are looked up in: some tenths of a second. Beyond it nothing is decided.
const MAX_WORK: usize = 1 << 30;
/// What looking for a number costs, in such bytes.
const LOOK: usize = 256;

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
        let stated: Vec<Stated<'_, '_>> = judged
            .iter()
            .flat_map(|said| {
                let found = find(&said.text, &self.kinds);
                found.into_iter().map(move |found| Stated { said, found })
            })
            .collect();
        if stated.is_empty() {
            let names = list(self.kinds.iter().map(|kind| kind.name()));
            return Finding::of(true, format!("there is nothing to ground ({names})")).scored(1.0);
        }
        let sources: Vec<(usize, &str)> = self.sources(subject).collect();
        if sources.is_empty() {
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
        }
        match missing(&stated, &sources) {
            Err(why) => Finding::check_error(why),
            Ok(missing) => self.finding(subject, stated, &missing),
        }
    }
}

impl Grounding {
    /// What counts as a source, with the message it stands in.
    fn sources<'s>(&self, subject: &'s Subject<'_>) -> impl Iterator<Item = (usize, &'s str)> {
        let messages = subject.transcript.messages[..subject.end].iter();
        messages
            .enumerate()
            .flat_map(move |(at, message)| self.of_message(message).map(move |text| (at, text)))
            .filter(|(_, text)| !text.trim().is_empty())
    }

    fn of_message<'s>(&self, message: &'s Message<'s>) -> impl Iterator<Item = &'s str> {
        let counts = match message.role {
            Role::Tool => true,
            Role::User => self.also_in.contains(&Speaker::User),
            Role::System => self.also_in.contains(&Speaker::System),
            _ => false,
        };
        message.parts.iter().filter_map(move |part| match part {
            Part::ToolResult(result) => Some(&*result.content),
            Part::Text(text) if counts => Some(&**text),
            _ => None,
        })
    }

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

/// Which of the stated facts stand in no source before them. The error: there is too much to look up.
fn missing(stated: &[Stated<'_, '_>], sources: &[(usize, &str)]) -> Result<Vec<bool>, String> {
    if work(stated, sources) > MAX_WORK {
        return Err(
            "there is too much to look up: too many facts, in too long tool results".to_owned(),
        );
    }
    // A ground for the sources between two judged messages, so that each source is prepared once.
    let mut grounds: Vec<Ground<'_>> = Vec::new();
    // By fact: how many grounds it was looked for in, in vain.
    let mut known: HashMap<(Fact, &str), usize> = HashMap::new();
    let mut next = 0;
    let held = stated.iter().map(|stated| {
        let message = stated.said.message.unwrap_or(usize::MAX);
        let from = next;
        while next < sources.len() && sources[next].0 < message {
            next += 1;
        }
        if next > from {
            grounds.push(Ground::new(
                sources[from..next].iter().map(|(_, text)| *text),
            ));
        }
        let vain = known.entry((stated.found.fact, stated.text())).or_default();
        if *vain == FOUND {
            return true;
        }
        let fresh = grounds.get(*vain..).unwrap_or_default();
        let held = fresh.iter().any(|ground| ground.holds(&stated.found));
        *vain = if held { FOUND } else { grounds.len() };
        held
    });
    Ok(held.map(|held| !held).collect())
}

/// At most so many bytes are compared: phrases by scanning the sources, all else by a look at each ground.
fn work(stated: &[Stated<'_, '_>], sources: &[(usize, &str)]) -> usize {
    let distinct: HashSet<(Fact, &str)> = stated
        .iter()
        .map(|stated| (stated.found.fact, stated.text()))
        .collect();
    let phrases = distinct
        .iter()
        .filter(|(fact, _)| matches!(fact, Fact::Quote | Fact::Url))
        .count();
    let messages: HashSet<Option<usize>> = stated.iter().map(|s| s.said.message).collect();
    let bytes: usize = sources.iter().map(|(_, text)| text.len()).sum();
    let looks = distinct.len().saturating_mul(messages.len());
    phrases
        .saturating_mul(bytes)
        .saturating_add(looks.saturating_mul(LOOK))
}

/// Stands for "was found" where else the number of grounds looked at stands.
const FOUND: usize = usize::MAX;

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

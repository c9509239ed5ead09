//! `grounded`: the facts of the answer occur in a tool result.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::eval_type::{EvalType, param_problem};
use super::super::explain::{QuotedText, format_list};
use super::super::{Check, CompiledEval, Finding, MessageText, Subject, TranscriptSpan};
use super::facts::{FactKind, FoundFact, find_facts};
use crate::rubric::ParamProblem;

/// The largest work for phrases, as their number times the bytes they are searched in; it takes some tenths of a
/// second. Beyond it the check returns an error.
const MAX_COMPARED_BYTES: usize = 1 << 30;

/// Params of `grounded`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Grounded {
    /// The kinds of facts that must occur in a source; without it, all six. Spelling does not matter: `1,200` equals
    /// `1200`, `1.2 million` equals `1200000`, `Oct 6` equals `2026-10-06`, and `2.9` is found in `2.9.3`. `numbers`
    /// includes amounts and versions.
    #[serde(default = "every_kind")]
    #[schemars(length(min = 1))]
    kinds: Vec<GroundedFactKind>,
    /// The roles whose messages are sources in addition to the tool results.
    #[serde(default)]
    also_in: Vec<ExtraSourceRole>,
    /// `output`: checks the last assistant message. `session`: checks every assistant message, each against the
    /// sources before it.
    #[serde(default)]
    of: GroundedScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GroundedFactKind {
    Numbers,
    Versions,
    Dates,
    Amounts,
    Urls,
    Quotes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ExtraSourceRole {
    User,
    System,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GroundedScope {
    #[default]
    Output,
    Session,
}

fn every_kind() -> Vec<GroundedFactKind> {
    vec![
        GroundedFactKind::Numbers,
        GroundedFactKind::Versions,
        GroundedFactKind::Dates,
        GroundedFactKind::Amounts,
        GroundedFactKind::Urls,
        GroundedFactKind::Quotes,
    ]
}

impl From<GroundedFactKind> for FactKind {
    fn from(kind: GroundedFactKind) -> Self {
        match kind {
            GroundedFactKind::Numbers => Self::Number,
            GroundedFactKind::Versions => Self::Version,
            GroundedFactKind::Dates => Self::Date,
            GroundedFactKind::Amounts => Self::Amount,
            GroundedFactKind::Urls => Self::Url,
            GroundedFactKind::Quotes => Self::Quote,
        }
    }
}

impl EvalType for Grounded {
    const NAME: &'static str = "grounded";
    const SUMMARY: &'static str = "Every number, version, date, amount, URL and quoted phrase of the answer occurs in an earlier tool result. Not applicable to an answer without such facts. The numbers of its own lists do not count.";
    const EXAMPLE: &'static str = "kinds: [numbers, dates, amounts]\nalso_in: [user]";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        if self.kinds.is_empty() {
            return Err(vec![param_problem("/kinds", "needs at least one kind")]);
        }
        // A set: a kind that is written twice counts once, and the order is always the same.
        let kinds: BTreeSet<FactKind> = self.kinds.into_iter().map(FactKind::from).collect();
        Ok(CompiledEval::Check(Box::new(GroundedCheck {
            kinds: kinds.into_iter().collect(),
            also_in: self.also_in,
            whole_session: self.of == GroundedScope::Session,
        })))
    }
}

#[derive(Debug)]
struct GroundedCheck {
    kinds: Vec<FactKind>,
    also_in: Vec<ExtraSourceRole>,
    whole_session: bool,
}

/// A fact of the answer.
struct StatedFact<'s, 't> {
    message_text: &'s MessageText<'t>,
    fact: FoundFact,
}

impl StatedFact<'_, '_> {
    fn text(&self) -> &str {
        &self.message_text.text[self.fact.range.clone()]
    }
}

impl Check for GroundedCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        // Collect the facts of the judged messages.
        let all = subject.assistant_texts();
        let judged = if self.whole_session {
            all
        } else {
            // `saturating_sub`, because a transcript without an assistant message has an empty list.
            &all[all.len().saturating_sub(1)..]
        };
        let stated: Vec<StatedFact<'_, '_>> = subject
            .until_cancelled(judged)
            .flat_map(|message_text| {
                let found = find_facts(&message_text.text, &self.kinds);
                found.into_iter().map(move |found| StatedFact {
                    message_text,
                    fact: found,
                })
            })
            .collect();
        // A pass would claim that facts were found.
        if stated.is_empty() {
            let names = format_list(self.kinds.iter().map(|kind| kind.name()));
            return Finding::not_applicable(format!("there is nothing to ground ({names})"));
        }
        // Look the facts up in the sources.
        let includes = |speaker| self.also_in.contains(&speaker);
        let sources = subject.grounding_sources(
            includes(ExtraSourceRole::User),
            includes(ExtraSourceRole::System),
        );
        // No source at all: every fact is missing, and the explanation names the kind of source.
        let Some(bytes) = sources.bytes_before(subject.end) else {
            let (count, where_) = (stated.len(), self.describe_sources());
            return Finding::new(
                false,
                format!(
                    "there is no {where_} that {count} of {count} could be found in: {}",
                    describe_facts(&stated)
                ),
            )
            .with_score(0.0)
            .with_spans(collect_spans(subject, &stated));
        };
        // The limit is checked before the search, so that a hostile transcript does not block the run.
        if estimate_work(&stated, bytes) > MAX_COMPARED_BYTES {
            return Finding::check_error(
                "too much to look up: too many facts in too long tool results",
            );
        }
        let missing: Vec<bool> = subject
            .until_cancelled(&stated)
            .map(|stated| {
                let first = sources.find_first_message(&stated.fact);
                // Only sources before the answer count, so an equal message position is too late.
                first.is_none_or(|at| at >= stated.message_text.message.unwrap_or(usize::MAX))
            })
            .collect();
        self.build_finding(subject, stated, &missing)
    }
}

impl GroundedCheck {
    /// Formats the kinds of sources: `tool result or user message`.
    fn describe_sources(&self) -> String {
        let mut names = String::from("tool result");
        for (speaker, name) in [
            (ExtraSourceRole::User, "user"),
            (ExtraSourceRole::System, "system"),
        ] {
            if self.also_in.contains(&speaker) {
                names.push_str(" or ");
                names.push_str(name);
                names.push_str(" message");
            }
        }
        names
    }

    fn build_finding(
        &self,
        subject: &Subject<'_>,
        stated: Vec<StatedFact<'_, '_>>,
        missing: &[bool],
    ) -> Finding {
        let total = stated.len();
        let lost: Vec<StatedFact<'_, '_>> = stated
            .into_iter()
            .zip(missing)
            .filter_map(|(stated, missing)| missing.then_some(stated))
            .collect();
        let where_ = self.describe_sources();
        let score = (total - lost.len()) as f64 / total as f64;
        if lost.is_empty() {
            return Finding::new(true, format!("all {total} found in a {where_}"))
                .with_score(score);
        }
        let why = format!(
            "{} of {total} found in no {where_} before it: {}",
            lost.len(),
            describe_facts(&lost)
        );
        Finding::new(false, why)
            .with_score(score)
            .with_spans(collect_spans(subject, &lost))
    }
}

/// Returns an upper bound for the bytes that the lookup compares. Phrases scan the sources; all other facts are looked
/// up in an index.
fn estimate_work(stated: &[StatedFact<'_, '_>], bytes: usize) -> usize {
    // A set, because equal phrases are searched once.
    let phrases: HashSet<&str> = stated
        .iter()
        .filter(|stated| matches!(stated.fact.kind, FactKind::Quote | FactKind::Url))
        .map(StatedFact::text)
        .collect();
    phrases.len().saturating_mul(bytes)
}

fn describe_facts(stated: &[StatedFact<'_, '_>]) -> String {
    format_list(stated.iter().map(|stated| {
        let (name, text) = (stated.fact.kind.name(), stated.text());
        match stated.message_text.message {
            Some(message) => format!("the {name} {} in message {message}", QuotedText(text)),
            None => format!("the {name} {}", QuotedText(text)),
        }
    }))
}

fn collect_spans(subject: &Subject<'_>, stated: &[StatedFact<'_, '_>]) -> Vec<TranscriptSpan> {
    let place = |stated: &StatedFact<'_, '_>| {
        let at: &Range<usize> = &stated.fact.range;
        subject.text_span(stated.message_text, at)
    };
    stated
        .iter()
        .take(Finding::MAX_SPANS)
        .filter_map(place)
        .collect()
}

#[cfg(test)]
mod tests;

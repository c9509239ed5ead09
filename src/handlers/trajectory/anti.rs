//! `tool_anti_pattern`: sequences of calls that must not happen.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::sequence::{places, walk};
use super::{names_in, nested};
use crate::handlers::explain::{Name, Quoted, list};
use crate::handlers::registry::{EvalType, problem};
use crate::handlers::{Check, Compiled, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// More patterns are refused: each is a walk over all calls.
const MOST: usize = 100;

/// Params of `tool_anti_pattern`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolAntiPattern {
    /// Sequences that are forbidden, each with a `message` that says why.
    #[schemars(length(min = 1, max = 100), with = "Vec<PatternSchema>")]
    patterns: Vec<PatternSpec>,
}

/// A forbidden sequence.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PatternSpec {
    /// Tools; calls of others may stand between them.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    sequence: Vec<String>,
    /// What is said where it happens.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    message: Option<String>,
}

/// Its schema, in which `null` is no message.
struct PatternSchema;

impl JsonSchema for PatternSchema {
    fn schema_name() -> Cow<'static, str> {
        "AntiPattern".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        nested::<PatternSpec>(generator)
    }
}

impl EvalType for ToolAntiPattern {
    const NAME: &'static str = "tool_anti_pattern";
    const SUMMARY: &'static str =
        "None of the sequences of calls happened, not even with other calls between.";
    const EXAMPLE: &'static str = "patterns:\n  - { sequence: [refund, get_policy], message: policy is read before refunding }";

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.patterns.is_empty() {
            problems.push(problem("/patterns", "needs at least one pattern"));
        }
        if self.patterns.len() > MOST {
            let what = format!("holds {}, more than {MOST}", self.patterns.len());
            problems.push(problem("/patterns", what));
        }
        for (at, pattern) in self.patterns.iter().enumerate() {
            problems.extend(names_in(
                &format!("/patterns/{at}/sequence"),
                &pattern.sequence,
                false,
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Compiled::Check(Box::new(Forbidden(self.patterns))))
    }
}

#[derive(Debug)]
struct Forbidden(Vec<PatternSpec>);

impl Check for Forbidden {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut found = Vec::new();
        let mut marks = Vec::new();
        for pattern in subject.while_wanted(&self.0) {
            let walked = walk(&pattern.sequence, subject);
            if walked.len() < pattern.sequence.len() {
                continue;
            }
            let names = pattern.sequence.iter().map(|name| Name(name));
            let message = pattern.message.as_deref().map(Quoted);
            let message = message.map_or_else(String::new, |message| format!("{message}: "));
            let places = places(&walked, subject);
            found.push(format!("{message}{} ({places})", sequence(names)));
            marks.extend(walked.iter().map(|ix| subject.mark_call(*ix)));
        }
        let all = pluralize(self.0.len(), "forbidden sequence");
        if found.is_empty() {
            return Finding::of(true, format!("none of {all} happened"));
        }
        let count = found.len();
        Finding::of(false, format!("{count} of {all} happened: {}", list(found))).marked(marks)
    }
}

/// `a → b → c`, at most eight.
fn sequence<'a>(names: impl ExactSizeIterator<Item = Name<'a>>) -> String {
    let more = names.len() > 8;
    let mut told: Vec<String> = names.take(8).map(|name| name.to_string()).collect();
    if more {
        told.push("…".to_owned());
    }
    told.join(" → ")
}

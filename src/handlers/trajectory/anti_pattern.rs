//! `tool_anti_pattern`: sequences of calls that must not occur.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::sequence::{describe_positions, match_sequence};
use super::{check_tool_names, nested_schema};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{EscapedName, QuotedText, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// The largest number of patterns. Each is a pass over all calls.
const MAX_PATTERNS: usize = 100;

/// Params of `tool_anti_pattern`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolAntiPattern {
    /// Forbidden sequences, each with an optional `message` that explains it.
    #[schemars(length(min = 1, max = 100), with = "Vec<PatternSchema>")]
    patterns: Vec<AntiPatternSpec>,
}

/// A forbidden sequence.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AntiPatternSpec {
    /// The tools in order. Calls of other tools may occur between them.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    sequence: Vec<String>,
    /// The message if the sequence occurs.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    message: Option<String>,
}

/// Returns the schema of a pattern, in which `null` is not a message.
struct PatternSchema;

impl JsonSchema for PatternSchema {
    fn schema_name() -> Cow<'static, str> {
        "AntiPattern".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        nested_schema::<AntiPatternSpec>(generator)
    }
}

impl EvalType for ToolAntiPattern {
    const NAME: &'static str = "tool_anti_pattern";
    const SUMMARY: &'static str =
        "None of the forbidden sequences of calls occurred, with or without other calls between.";
    const EXAMPLE: &'static str = "patterns:\n  - { sequence: [refund, get_policy], message: policy is read before refunding }";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.patterns.is_empty() {
            problems.push(param_problem("/patterns", "needs at least one pattern"));
        }
        // Problems of all patterns are collected, so that an author sees them at once.
        if self.patterns.len() > MAX_PATTERNS {
            let what = format!(
                "has {} entries, more than {MAX_PATTERNS}",
                self.patterns.len()
            );
            problems.push(param_problem("/patterns", what));
        }
        for (at, pattern) in self.patterns.iter().enumerate() {
            problems.extend(check_tool_names(
                &format!("/patterns/{at}/sequence"),
                &pattern.sequence,
                false,
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CompiledEval::Check(Box::new(ToolAntiPatternCheck(
            self.patterns,
        ))))
    }
}

#[derive(Debug)]
struct ToolAntiPatternCheck(Vec<AntiPatternSpec>);

impl Check for ToolAntiPatternCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut found = Vec::new();
        let mut marks = Vec::new();
        for pattern in subject.until_cancelled(&self.0) {
            let walked = match_sequence(&pattern.sequence, subject);
            // Only a complete sequence counts; a part of it is allowed.
            if walked.len() < pattern.sequence.len() {
                continue;
            }
            let names = pattern.sequence.iter().map(|name| EscapedName(name));
            let message = pattern.message.as_deref().map(QuotedText);
            let message = message.map_or_else(String::new, |message| format!("{message}: "));
            let places = describe_positions(&walked, subject);
            found.push(format!("{message}{} ({places})", format_sequence(names)));
            // `with_spans` drops the spans beyond the limit.
            marks.extend(walked.iter().map(|ix| subject.call_span(*ix)));
        }
        let all = pluralize(self.0.len(), "forbidden sequence");
        if found.is_empty() {
            return Finding::new(true, format!("none of {all} occurred"));
        }
        let count = found.len();
        Finding::new(
            false,
            format!("{count} of {all} occurred: {}", format_list(found)),
        )
        .with_spans(marks)
    }
}

/// Formats a sequence: `a → b → c`, at most eight names.
fn format_sequence<'a>(names: impl ExactSizeIterator<Item = EscapedName<'a>>) -> String {
    // Eight names keep the explanation on one line.
    let more = names.len() > 8;
    let mut listed: Vec<String> = names.take(8).map(|name| name.to_string()).collect();
    if more {
        listed.push("…".to_owned());
    }
    listed.join(" → ")
}

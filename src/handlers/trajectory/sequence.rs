//! `tool_call_sequence`: tools called in this order, others between them or not. And the walk it shares with its reverse,
//! `tool_anti_pattern`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::names_in;
use crate::handlers::explain::{Name, list};
use crate::handlers::registry::EvalType;
use crate::handlers::{Check, Compiled, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `tool_call_sequence`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolCallSequence {
    /// Tools in the order they must be called; other calls may stand between them. One that stands here twice must be
    /// called twice.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    sequence: Vec<String>,
}

impl EvalType for ToolCallSequence {
    const NAME: &'static str = "tool_call_sequence";
    const SUMMARY: &'static str = "The tools were called in this order, with any other calls between them; the score is how \
        far along the sequence the calls go.";
    const EXAMPLE: &'static str = "sequence: [get_order, get_policy, refund]";
    const SCORED: bool = true;

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let problems = names_in("/sequence", &self.sequence, false);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Compiled::Check(Box::new(Sequence(self.sequence))))
    }
}

#[derive(Debug)]
struct Sequence(Vec<String>);

/// The calls that walk along the names as far as they go, each the first after the one before: where the names can be
/// walked at all, so they are.
pub(super) fn walk(names: &[String], subject: &Subject<'_>) -> Vec<usize> {
    let mut walked = Vec::new();
    for (ix, call) in subject.while_wanted(subject.calls().iter().enumerate()) {
        match names.get(walked.len()) {
            None => break,
            Some(name) if *call.call.name == **name => walked.push(ix),
            Some(_) => {}
        }
    }
    walked
}

/// `a in message 1, b in message 3`.
pub(super) fn places(walked: &[usize], subject: &Subject<'_>) -> String {
    list(walked.iter().map(|&ix| {
        let call = &subject.calls()[ix];
        format!("{} in message {}", Name(&call.call.name), call.message)
    }))
}

impl Check for Sequence {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let Self(names) = self;
        let walked = walk(names, subject);
        let score = walked.len() as f64 / names.len() as f64;
        let why = match names.get(walked.len()) {
            None => format!("called in order: {}", places(&walked, subject)),
            Some(next) => {
                let (done, all, next) = (walked.len(), names.len(), Name(next));
                match walked.last().map(|ix| &subject.calls()[*ix]) {
                    None => format!("{done} of {all} in order: {next} is not called"),
                    Some(last) => format!(
                        "{done} of {all} in order: {next} is not called after {} in message {}",
                        Name(&last.call.name),
                        last.message
                    ),
                }
            }
        };
        let marks: Vec<_> = walked.iter().map(|ix| subject.mark_call(*ix)).collect();
        Finding::of(walked.len() == names.len(), why)
            .scored(score)
            .marked(marks)
    }
}

//! `tool_call_sequence`: tools called in a given order, and the search that `tool_anti_pattern` shares with it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check_tool_names;
use crate::handlers::eval_type::EvalType;
use crate::handlers::explain::{EscapedName, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `tool_call_sequence`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolCallSequence {
    /// Tools in the order in which they must be called; other calls may occur between them. A tool that is listed
    /// twice must be called twice.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    sequence: Vec<String>,
}

impl EvalType for ToolCallSequence {
    const NAME: &'static str = "tool_call_sequence";
    const SUMMARY: &'static str = "The agent called the tools in this order, with or without other calls between them. The score is the share \
        of the sequence that the calls complete.";
    const EXAMPLE: &'static str = "sequence: [get_order, get_policy, refund]";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let problems = check_tool_names("/sequence", &self.sequence, false);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CompiledEval::Check(Box::new(ToolCallSequenceCheck(
            self.sequence,
        ))))
    }
}

#[derive(Debug)]
struct ToolCallSequenceCheck(Vec<String>);

/// Returns the calls that follow the names as far as possible, each the first after the one before. If any calls can
/// follow all the names, these do.
pub(super) fn match_sequence(names: &[String], subject: &Subject<'_>) -> Vec<usize> {
    let mut walked = Vec::new();
    for (ix, call) in subject.until_cancelled(subject.calls().iter().enumerate()) {
        // Greedy: the earliest call of each tool leaves the most calls for the rest.
        match names.get(walked.len()) {
            None => break,
            Some(name) if *call.call.name == **name => walked.push(ix),
            Some(_) => {}
        }
    }
    walked
}

/// Formats positions: `a in message 1, b in message 3`.
pub(super) fn describe_positions(walked: &[usize], subject: &Subject<'_>) -> String {
    format_list(walked.iter().map(|&ix| {
        let call = &subject.calls()[ix];
        format!(
            "{} in message {}",
            EscapedName(&call.call.name),
            call.message
        )
    }))
}

impl Check for ToolCallSequenceCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let Self(names) = self;
        let walked = match_sequence(names, subject);
        let score = walked.len() as f64 / names.len() as f64;
        let why = match names.get(walked.len()) {
            None => format!("called in order: {}", describe_positions(&walked, subject)),
            Some(next) => {
                let (done, all, next) = (walked.len(), names.len(), EscapedName(next));
                match walked.last().map(|ix| &subject.calls()[*ix]) {
                    None => format!("{done} of {all} in order: {next} is not called"),
                    Some(last) => format!(
                        "{done} of {all} in order: {next} is not called after {} in message {}",
                        EscapedName(&last.call.name),
                        last.message
                    ),
                }
            }
        };
        let marks: Vec<_> = walked.iter().map(|ix| subject.call_span(*ix)).collect();
        Finding::new(walked.len() == names.len(), why)
            .with_score(score)
            .with_spans(marks)
    }
}

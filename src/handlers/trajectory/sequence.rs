//! `tool_call_sequence`: tools called in this order, others between them or not. And the walk it shares with its reverse,
//! `tool_anti_pattern`.

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

/// The calls that walk along the names as far as they go, each the first after the one before: where the names can be
/// walked at all, so they are.
pub(super) fn match_sequence(names: &[String], subject: &Subject<'_>) -> Vec<usize> {
    let mut walked = Vec::new();
    for (ix, call) in subject.until_cancelled(subject.calls().iter().enumerate()) {
        match names.get(walked.len()) {
            None => break,
            Some(name) if *call.call.name == **name => walked.push(ix),
            Some(_) => {}
        }
    }
    walked
}

/// `a in message 1, b in message 3`.
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

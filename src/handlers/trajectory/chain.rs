//! `tool_call_chain`: a sequence of calls with conditions on arguments, results and errors.
//!
//! Unlike in `PromptKit`, a failing first call of a step's tool does not end the chain; a later call may satisfy the
//! step. So an agent that failed and tried again has completed the step. `no_tool_errors` and `tool_call_count` can
//! forbid the failed call.

use std::borrow::Cow;

use indexmap::IndexMap;
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::expected_args::{ArgMatcherSpec, ArgsMode, ExpectedArgs};
use super::sequence::describe_positions;
use super::{MAX_EXPECTED, nested_schema};
use crate::handlers::calls::result_conditions::{
    RESULTS_NOT_RECORDED, are_results_missing, explain_unknown_errors,
};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{EscapedName, QuotedText, format_list};
use crate::handlers::text::lowercase::to_lowercase;
use crate::handlers::text::regexp;
use crate::handlers::{Check, CompiledEval, Finding, LocatedToolResult, Subject};
use crate::rubric::ParamProblem;

/// Params of `tool_call_chain`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolCallChain {
    /// The steps in order; other calls may occur between them. Each is a mapping of `tool` and conditions on one call
    /// of it: `args_match`, `result_includes`, `result_matches`, `no_error`. dicta skips calls that do not satisfy a
    /// step.
    #[schemars(length(min = 1), with = "Vec<StepSchema>")]
    steps: Vec<ChainStepSpec>,
}

/// A step of the chain.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChainStepSpec {
    /// The name of the tool, case-sensitive.
    #[schemars(length(min = 1))]
    tool: String,
    /// Arguments, each with a pattern that must match a part of its text.
    #[serde(default)]
    args_match: IndexMap<String, String>,
    /// Texts that the result must contain. Case does not matter.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    result_includes: Vec<String>,
    /// A pattern that must match a part of the result.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    result_matches: Option<String>,
    /// `true`: the result must not be an error.
    #[serde(default)]
    no_error: bool,
}

/// Returns the schema of a step, in which `null` is not a pattern.
struct StepSchema;

impl JsonSchema for StepSchema {
    fn schema_name() -> Cow<'static, str> {
        "ChainStep".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        nested_schema::<ChainStepSpec>(generator)
    }
}

impl EvalType for ToolCallChain {
    const NAME: &'static str = "tool_call_chain";
    const SUMMARY: &'static str = "The agent called the tools in this order, each with the arguments and the result that its step \
        requires. The score is the share of the steps that the calls complete.";
    const EXAMPLE: &'static str = "steps:\n  - { tool: get_order, args_match: { id: '^\\d+$' }, no_error: true }\n  \
        - { tool: refund, result_includes: [refunded] }";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.steps.is_empty() {
            problems.push(param_problem("/steps", "needs at least one step"));
        }
        if self.steps.len() > MAX_EXPECTED {
            let what = format!("has {} entries, more than {MAX_EXPECTED}", self.steps.len());
            problems.push(param_problem("/steps", what));
        }
        let mut steps = Vec::new();
        // `take`, because the number of steps is a problem already and compiling all could take long.
        for (at, spec) in self.steps.into_iter().take(MAX_EXPECTED).enumerate() {
            match ChainStep::from_spec(&format!("/steps/{at}"), spec) {
                Ok(step) => steps.push(step),
                Err(more) => problems.extend(more),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CompiledEval::Check(Box::new(ToolCallChainCheck(steps))))
    }
}

/// A text that a result must contain.
#[derive(Debug)]
struct RequiredText {
    written: String,
    lowercase: String,
}

#[derive(Debug)]
struct ChainStep {
    tool: String,
    args: ExpectedArgs,
    includes: Vec<RequiredText>,
    matches: Option<Regex>,
    no_error: bool,
}

impl ChainStep {
    fn from_spec(at: &str, spec: ChainStepSpec) -> Result<Self, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if spec.tool.is_empty() {
            problems.push(param_problem(at, "has no tool name"));
        }
        // The conditions on the result.
        for (nth, _) in spec
            .result_includes
            .iter()
            .enumerate()
            .filter(|(_, t)| t.is_empty())
        {
            let at = format!("{at}/result_includes/{nth}");
            problems.push(param_problem(
                at,
                "requires the empty text, which every result contains",
            ));
        }
        let matches = spec
            .result_matches
            .map(|pattern| regexp::compile_regex(&format!("{at}/result_matches"), &pattern));
        let matches = matches
            .transpose()
            .map_err(|problem| problems.push(problem));
        // The conditions on arguments are those of `trajectory_match`, with another name for the param.
        let patterns = spec.args_match.into_iter();
        let wanted = patterns.map(|(arg, pattern)| (arg, ArgMatcherSpec::Regex(pattern)));
        let args = ExpectedArgs::new(at, None, ArgsMode::Ignore, wanted.collect());
        // Rename the pointers, so that a problem has the place that the author wrote.
        let args = args.map_err(|more| {
            problems.extend(more.into_iter().map(|mut problem| {
                problem.pointer = problem
                    .pointer
                    .replacen("/arg_matchers/", "/args_match/", 1);
                problem
            }));
        });
        match (args, matches) {
            (Ok(args), Ok(matches)) if problems.is_empty() => Ok(Self {
                tool: spec.tool,
                args,
                includes: spec
                    .result_includes
                    .into_iter()
                    .map(|written| RequiredText {
                        lowercase: to_lowercase(&written).into_owned(),
                        written,
                    })
                    .collect(),
                matches,
                no_error: spec.no_error,
            }),
            _ => Err(problems),
        }
    }

    /// Returns `true` if the step has a condition on the result.
    fn reads_results(&self) -> bool {
        !self.includes.is_empty() || self.matches.is_some()
    }

    /// Lists the conditions that a call of the tool does not meet.
    fn list_violations(
        &self,
        subject: &Subject<'_>,
        call: usize,
        scope: ChainScope,
    ) -> Vec<String> {
        let args = subject.arguments(call);
        let mut broken: Vec<String> = self
            .args
            .mismatches(args)
            // Three mismatches are enough for an explanation.
            .take(3)
            .map(|miss| miss.to_string())
            .collect();
        if scope == ChainScope::CallsOnly {
            return broken;
        }
        // Without a result, conditions on it do not hold, but a step without such conditions does.
        let Some(LocatedToolResult { result, .. }) = subject.result(call) else {
            if self.reads_results() || self.no_error {
                broken.push("it has no result".to_owned());
            }
            return broken;
        };
        if self.no_error && result.is_error == Some(true) {
            broken.push("its result is an error".to_owned());
        }
        // Case does not matter, so the result is lower-cased once for all texts.
        if !self.includes.is_empty() {
            let text = to_lowercase(&result.content);
            let lacks = self
                .includes
                .iter()
                .filter(|required| !text.contains(&required.lowercase));
            let lacks: Vec<QuotedText<'_>> = lacks
                .map(|required| QuotedText(&required.written))
                .collect();
            if !lacks.is_empty() {
                broken.push(format!("its result lacks {}", format_list(lacks)));
            }
        }
        if let Some(pattern) = &self.matches
            && !pattern.is_match(&result.content)
        {
            broken.push(format!(
                "its result has no match of {}",
                QuotedText(pattern.as_str())
            ));
        }
        broken
    }
}

/// The conditions of the steps that the search applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChainScope {
    /// All conditions.
    All,
    /// Only tools and arguments, because the transcript has no results.
    CallsOnly,
}

#[derive(Debug)]
struct ToolCallChainCheck(Vec<ChainStep>);

/// The longest part of the chain that the calls complete.
struct ChainProgress {
    /// By step: its call.
    step_calls: Vec<usize>,
    /// Calls of the next step's tool that do not satisfy it.
    rejected_calls: Vec<usize>,
    /// The conditions that the first of them does not meet.
    first_violations: Vec<String>,
}

impl ToolCallChainCheck {
    fn match_steps(&self, subject: &Subject<'_>, scope: ChainScope) -> ChainProgress {
        let Self(steps) = self;
        let mut walked = Vec::new();
        let mut rejected: Vec<usize> = Vec::new();
        let mut first = Vec::new();
        // Greedy: the first call that satisfies a step is taken. A later one could not complete more steps.
        for (ix, call) in subject.until_cancelled(subject.calls().iter().enumerate()) {
            let Some(step) = steps.get(walked.len()) else {
                break;
            };
            // Other tools may be called between the steps.
            if *call.call.name != *step.tool {
                continue;
            }
            let broken = step.list_violations(subject, ix, scope);
            if broken.is_empty() {
                walked.push(ix);
                // Calls that failed an earlier step do not explain why the next step is missing.
                rejected.clear();
            } else {
                // Only the first rejected call is explained.
                if rejected.is_empty() {
                    first = broken;
                }
                rejected.push(ix);
            }
        }
        ChainProgress {
            step_calls: walked,
            rejected_calls: rejected,
            first_violations: first,
        }
    }

    /// Explains the data that is missing for a decision, if the calls and arguments alone do not decide.
    fn explain_missing_data(
        &self,
        subject: &Subject<'_>,
        is_complete: bool,
    ) -> Option<&'static str> {
        let Self(steps) = self;
        // Missing data matters only for tools of the chain.
        let names = |ix: &usize| {
            let name = &*subject.calls()[*ix].call.name;
            steps.iter().any(|step| step.tool == name)
        };
        let calls: Vec<usize> = (0..subject.calls().len()).filter(names).collect();
        let no_error = steps.iter().any(|step| step.no_error);
        // A complete chain is certain unless a result could still be an unrecorded error.
        if is_complete {
            return no_error
                .then(|| explain_unknown_errors(subject, &calls))
                .flatten();
        }
        let reads = no_error || steps.iter().any(ChainStep::reads_results);
        // A chain that fails without its conditions on results also fails with them.
        let fails_anyway = || {
            self.match_steps(subject, ChainScope::CallsOnly)
                .step_calls
                .len()
                < steps.len()
        };
        (reads && are_results_missing(subject, &calls) && !fails_anyway())
            .then_some(RESULTS_NOT_RECORDED)
    }
}

impl Check for ToolCallChainCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let Self(steps) = self;
        let ChainProgress {
            step_calls: walked,
            rejected_calls: rejected,
            first_violations: first,
        } = self.match_steps(subject, ChainScope::All);
        // Before the verdict, because missing results could change it.
        if let Some(why) = self.explain_missing_data(subject, walked.len() == steps.len()) {
            return Finding::check_error(why);
        }
        let score = walked.len() as f64 / steps.len() as f64;
        let Some(next) = steps.get(walked.len()) else {
            let why = format!(
                "the chain is complete: {}",
                describe_positions(&walked, subject)
            );
            // Complete: mark the call of each step.
            let marks: Vec<_> = walked.iter().map(|ix| subject.call_span(*ix)).collect();
            return Finding::new(true, why).with_score(score).with_spans(marks);
        };
        // Incomplete: explain the next step.
        let (done, all, tool) = (walked.len(), steps.len(), EscapedName(&next.tool));
        let message = |ix: usize| subject.calls()[ix].message;
        let miss = match (rejected.first(), walked.last()) {
            (Some(&ix), _) => {
                let more = match rejected.len() - 1 {
                    0 => String::new(),
                    1 => ", nor does 1 later call".to_owned(),
                    n => format!(", nor do {n} later calls"),
                };
                format!(
                    "{tool} in message {} does not meet the conditions: {}{more}",
                    message(ix),
                    format_list(first)
                )
            }
            (None, Some(&last)) => {
                let last_tool = EscapedName(&steps[done - 1].tool);
                format!(
                    "{tool} is not called after {last_tool} in message {}",
                    message(last)
                )
            }
            (None, None) => format!("{tool} is not called"),
        };
        let why = format!("{done} of {all} steps: {miss}");
        // Rejected calls first, because they explain the failure.
        let marks = rejected
            .iter()
            .chain(&walked)
            .map(|ix| subject.call_span(*ix));
        let marks: Vec<_> = marks.take(Finding::MAX_SPANS).collect();
        Finding::new(false, why).with_score(score).with_spans(marks)
    }
}

#[cfg(test)]
mod tests;

//! `tool_call_chain`: a sequence of calls of which each must be of a kind: arguments, result, no error.
//!
//! Other than `PromptKit`, where the first call of a step's tool that breaks its constraints ends the chain, a later call
//! of that tool may still satisfy it: an agent that tried, failed and tried again has done the step. To forbid the failed
//! try is what `no_tool_errors` and `tool_call_count` are for.

use std::borrow::Cow;

use indexmap::IndexMap;
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::args::{ArgsMode, MatcherSpec, WantedArgs};
use super::sequence::places;
use super::{MOST_EXPECTED, nested};
use crate::handlers::calls::results::{NO_RESULTS, errors_unknown, results_missing};
use crate::handlers::explain::{Name, Quoted, list};
use crate::handlers::registry::{EvalType, problem};
use crate::handlers::text::fold::fold;
use crate::handlers::text::regexp;
use crate::handlers::{Check, Compiled, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `tool_call_chain`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolCallChain {
    /// The steps in order; other calls may stand between them. Each is a mapping of `tool` and what must hold of one call
    /// of it: `args_match`, `result_includes`, `result_matches`, `no_error`. A call that does not satisfy a step is passed
    /// over, and a later one may.
    #[schemars(length(min = 1), with = "Vec<StepSchema>")]
    steps: Vec<StepSpec>,
}

/// A step of the chain.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepSpec {
    /// The tool's name, case-sensitive.
    #[schemars(length(min = 1))]
    tool: String,
    /// Arguments, and a pattern each that matches somewhere in the argument's text.
    #[serde(default)]
    args_match: IndexMap<String, String>,
    /// Texts that the result must all hold, in any case of letters.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    result_includes: Vec<String>,
    /// A pattern that matches somewhere in the result.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    result_matches: Option<String>,
    /// The result must be no error.
    #[serde(default)]
    no_error: bool,
}

/// Its schema, in which `null` is no pattern.
struct StepSchema;

impl JsonSchema for StepSchema {
    fn schema_name() -> Cow<'static, str> {
        "ChainStep".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        nested::<StepSpec>(generator)
    }
}

impl EvalType for ToolCallChain {
    const NAME: &'static str = "tool_call_chain";
    const SUMMARY: &'static str = "The tools were called in this order, each with the arguments and the result its step \
        asks for; the score is how many steps the calls go.";
    const EXAMPLE: &'static str = "steps:\n  - { tool: get_order, args_match: { id: '^\\d+$' }, no_error: true }\n  \
        - { tool: refund, result_includes: [refunded] }";
    const SCORED: bool = true;

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.steps.is_empty() {
            problems.push(problem("/steps", "needs at least one step"));
        }
        if self.steps.len() > MOST_EXPECTED {
            let what = format!("holds {}, more than {MOST_EXPECTED}", self.steps.len());
            problems.push(problem("/steps", what));
        }
        let mut steps = Vec::new();
        for (at, spec) in self.steps.into_iter().take(MOST_EXPECTED).enumerate() {
            match Step::of(&format!("/steps/{at}"), spec) {
                Ok(step) => steps.push(step),
                Err(more) => problems.extend(more),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Compiled::Check(Box::new(Chain(steps))))
    }
}

#[derive(Debug)]
struct Step {
    tool: String,
    args: WantedArgs,
    /// As written, and in lower case.
    includes: Vec<(String, String)>,
    matches: Option<Regex>,
    no_error: bool,
}

impl Step {
    fn of(at: &str, spec: StepSpec) -> Result<Self, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if spec.tool.is_empty() {
            problems.push(problem(at, "has no tool's name"));
        }
        for (nth, _) in spec
            .result_includes
            .iter()
            .enumerate()
            .filter(|(_, t)| t.is_empty())
        {
            let at = format!("{at}/result_includes/{nth}");
            problems.push(problem(
                at,
                "asks for the empty text, which every result holds",
            ));
        }
        let matches = spec
            .result_matches
            .map(|pattern| regexp::compile(&format!("{at}/result_matches"), &pattern));
        let matches = matches
            .transpose()
            .map_err(|problem| problems.push(problem));
        let patterns = spec.args_match.into_iter();
        let wanted = patterns.map(|(arg, pattern)| (arg, MatcherSpec::Regex(pattern)));
        let args = WantedArgs::new(at, None, ArgsMode::Ignore, wanted.collect());
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
                    .map(|text| (fold(&text).into_owned(), text))
                    .map(|(folded, text)| (text, folded))
                    .collect(),
                matches,
                no_error: spec.no_error,
            }),
            _ => Err(problems),
        }
    }

    /// Whether it asks for the text of a result.
    fn reads_results(&self) -> bool {
        !self.includes.is_empty() || self.matches.is_some()
    }

    /// What of it a call of its tool does not satisfy.
    fn breaks(&self, subject: &Subject<'_>, call: usize, asks: Asks) -> Vec<String> {
        let args = subject.arguments(call);
        let mut broken: Vec<String> = self
            .args
            .misses(args)
            .take(3)
            .map(|miss| miss.to_string())
            .collect();
        if asks == Asks::Calls {
            return broken;
        }
        let Some((_, result)) = subject.result(call) else {
            if self.reads_results() || self.no_error {
                broken.push("it has no result".to_owned());
            }
            return broken;
        };
        if self.no_error && result.is_error == Some(true) {
            broken.push("its result is an error".to_owned());
        }
        if !self.includes.is_empty() {
            let text = fold(&result.content);
            let lacks = self
                .includes
                .iter()
                .filter(|(_, folded)| !text.contains(folded));
            let lacks: Vec<Quoted<'_>> = lacks.map(|(text, _)| Quoted(text)).collect();
            if !lacks.is_empty() {
                broken.push(format!("its result lacks {}", list(lacks)));
            }
        }
        if let Some(pattern) = &self.matches
            && !pattern.is_match(&result.content)
        {
            broken.push(format!(
                "its result has no match of {}",
                Quoted(pattern.as_str())
            ));
        }
        broken
    }
}

/// What of the steps is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// All of it.
    All,
    /// Tools and arguments alone, where results were not kept.
    Calls,
}

#[derive(Debug)]
struct Chain(Vec<Step>);

/// How far calls go along a chain.
struct Walk {
    /// By step, its call.
    walked: Vec<usize>,
    /// Calls of the tool of the step in question that did not do.
    passed_over: Vec<usize>,
    /// Why the first of them did not.
    first: Vec<String>,
}

impl Chain {
    fn walk(&self, subject: &Subject<'_>, asks: Asks) -> Walk {
        let Self(steps) = self;
        let mut walked = Vec::new();
        let mut passed_over: Vec<usize> = Vec::new();
        let mut first = Vec::new();
        for (ix, call) in subject.while_wanted(subject.calls().iter().enumerate()) {
            let Some(step) = steps.get(walked.len()) else {
                break;
            };
            if *call.call.name != *step.tool {
                continue;
            }
            let broken = step.breaks(subject, ix, asks);
            if broken.is_empty() {
                walked.push(ix);
                passed_over.clear();
            } else {
                if passed_over.is_empty() {
                    first = broken;
                }
                passed_over.push(ix);
            }
        }
        Walk {
            walked,
            passed_over,
            first,
        }
    }

    /// What the transcript would have to say before anyone knows, where the walk alone does not decide.
    fn missing(&self, subject: &Subject<'_>, whole: bool) -> Option<&'static str> {
        let Self(steps) = self;
        let names = |ix: &usize| {
            let name = &*subject.calls()[*ix].call.name;
            steps.iter().any(|step| step.tool == name)
        };
        let calls: Vec<usize> = (0..subject.calls().len()).filter(names).collect();
        let no_error = steps.iter().any(|step| step.no_error);
        if whole {
            return no_error.then(|| errors_unknown(subject, &calls)).flatten();
        }
        let reads = no_error || steps.iter().any(Step::reads_results);
        // What fails without any result fails with it too.
        let fails_anyway = || self.walk(subject, Asks::Calls).walked.len() < steps.len();
        (reads && results_missing(subject, &calls) && !fails_anyway()).then_some(NO_RESULTS)
    }
}

impl Check for Chain {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let Self(steps) = self;
        let Walk {
            walked,
            passed_over,
            first,
        } = self.walk(subject, Asks::All);
        if let Some(why) = self.missing(subject, walked.len() == steps.len()) {
            return Finding::check_error(why);
        }
        let score = walked.len() as f64 / steps.len() as f64;
        let Some(next) = steps.get(walked.len()) else {
            let why = format!("the chain is whole: {}", places(&walked, subject));
            let marks: Vec<_> = walked.iter().map(|ix| subject.mark_call(*ix)).collect();
            return Finding::of(true, why).scored(score).marked(marks);
        };
        let (done, all, tool) = (walked.len(), steps.len(), Name(&next.tool));
        let message = |ix: usize| subject.calls()[ix].message;
        let miss = match (passed_over.first(), walked.last()) {
            (Some(&ix), _) => {
                let more = match passed_over.len() - 1 {
                    0 => String::new(),
                    1 => ", nor is 1 later call".to_owned(),
                    n => format!(", nor are {n} later calls"),
                };
                format!(
                    "{tool} in message {} is not as asked for: {}{more}",
                    message(ix),
                    list(first)
                )
            }
            (None, Some(&last)) => {
                let last_tool = Name(&steps[done - 1].tool);
                format!(
                    "{tool} is not called after {last_tool} in message {}",
                    message(last)
                )
            }
            (None, None) => format!("{tool} is not called"),
        };
        let why = format!("{done} of {all} steps: {miss}");
        let marks = passed_over
            .iter()
            .chain(&walked)
            .map(|ix| subject.mark_call(*ix));
        let marks: Vec<_> = marks.take(Finding::MARKS).collect();
        Finding::of(false, why).scored(score).marked(marks)
    }
}

#[cfg(test)]
mod tests;

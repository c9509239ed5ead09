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
use super::show::Name;
use super::{MOST_EXPECTED, nested};
use crate::handlers::explain::{Quoted, list};
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

    /// What of it a call of its tool does not satisfy.
    fn breaks(&self, subject: &Subject<'_>, call: usize) -> Vec<String> {
        let args = subject.arguments(call);
        let mut broken: Vec<String> = self
            .args
            .misses(args)
            .take(3)
            .map(|miss| miss.to_string())
            .collect();
        let needs_result = !self.includes.is_empty() || self.matches.is_some();
        let Some((_, result)) = subject.result(call) else {
            if needs_result || self.no_error {
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

#[derive(Debug)]
struct Chain(Vec<Step>);

impl Check for Chain {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let Self(steps) = self;
        let mut walked = Vec::new();
        // Calls of the tool of the step in question that did not do, and why the first of them.
        let mut passed_over: Vec<usize> = Vec::new();
        let mut first = Vec::new();
        for (ix, call) in subject.while_wanted(subject.calls().iter().enumerate()) {
            let Some(step) = steps.get(walked.len()) else {
                break;
            };
            if *call.call.name != *step.tool {
                continue;
            }
            let broken = step.breaks(subject, ix);
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
mod tests {
    use serde_json::{Value, json};

    use crate::handlers::testing::{on, refused};
    use crate::model::Outcome::{Fail, Pass};

    /// A call of a tool, with arguments, a result and whether that is an error. No result: not answered.
    type Called<'a> = (&'a str, Value, Option<(&'a str, bool)>);

    fn record(calls: &[Called<'_>]) -> Value {
        let mut messages = Vec::new();
        for (name, args, result) in calls {
            messages.push(json!({"role": "assistant", "tool_calls": [
                {"id": "", "function": {"name": name, "arguments": args.to_string()}}]}));
            if let Some((text, is_error)) = result {
                let metadata = json!({"is_error": is_error});
                messages.push(json!({"role": "tool", "content": text, "metadata": metadata}));
            }
        }
        json!({"messages": messages})
    }

    #[test]
    fn each_step_is_a_call_that_satisfies_it() {
        let params = json!({"steps": [
            {"tool": "get_order", "args_match": {"id": "^\\d+$"}, "no_error": true},
            {"tool": "refund", "result_includes": ["REFUNDED"], "result_matches": "[0-9]+ EUR"}]});
        let get =
            |id: Value, failed: bool| ("get_order", json!({"id": id}), Some(("an order", failed)));
        let refund = |text: &'static str| ("refund", json!({}), Some((text, false)));
        for (calls, expected) in [
            (
                vec![
                    get(json!(7), false),
                    ("search", json!({}), None),
                    refund("Refunded 5 EUR"),
                ],
                (
                    Pass,
                    1.0,
                    "the chain is whole: get_order in message 0, refund in message 3",
                ),
            ),
            (vec![], (Fail, 0.0, "0 of 2 steps: get_order is not called")),
            (
                vec![get(json!("7"), false)],
                (
                    Fail,
                    0.5,
                    "1 of 2 steps: refund is not called after get_order in message 0",
                ),
            ),
            (
                vec![refund("refunded 5 EUR"), get(json!("7"), false)],
                (
                    Fail,
                    0.5,
                    "1 of 2 steps: refund is not called after get_order in message 2",
                ),
            ),
            (
                vec![get(json!("x7"), true)],
                (
                    Fail,
                    0.0,
                    "0 of 2 steps: get_order in message 0 is not as asked for: \
                     id expected a match of \"^\\\\d+$\" got \"x7\", its result is an error",
                ),
            ),
            // Other than upstream: it tried, failed and tried again.
            (
                vec![
                    get(json!("7"), true),
                    get(json!("7"), false),
                    refund("refunded 5 EUR"),
                ],
                (
                    Pass,
                    1.0,
                    "the chain is whole: get_order in message 2, refund in message 4",
                ),
            ),
            (
                vec![get(json!("7"), false), refund("no"), refund("no")],
                (
                    Fail,
                    0.5,
                    "1 of 2 steps: refund in message 2 is not as asked for: its result lacks \"REFUNDED\", \
                     its result has no match of \"[0-9]+ EUR\", nor is 1 later call",
                ),
            ),
            (
                vec![get(json!("7"), false), ("refund", json!({}), None)],
                (
                    Fail,
                    0.5,
                    "1 of 2 steps: refund in message 2 is not as asked for: it has no result",
                ),
            ),
        ] {
            let found = on("tool_call_chain", &params, &record(&calls));
            let (outcome, score, why) = expected;
            assert_eq!(
                (found.outcome, found.score, found.explanation.as_str()),
                (outcome, Some(score), why),
                "{calls:?}"
            );
        }
    }

    #[test]
    fn a_step_that_asks_for_nothing_sensible_is_refused() {
        for (step, at) in [
            (json!({"args_match": {}}), ""),
            (json!({"tool": ""}), "/tool"),
            (
                json!({"tool": "a", "args_match": {"x": "("}}),
                "/args_match/x",
            ),
            (
                json!({"tool": "a", "args_match": {"x": 1}}),
                "/args_match/x",
            ),
            (
                json!({"tool": "a", "result_matches": "("}),
                "/result_matches",
            ),
            (
                json!({"tool": "a", "result_matches": null}),
                "/result_matches",
            ),
            (
                json!({"tool": "a", "result_includes": [""]}),
                "/result_includes/0",
            ),
            (
                json!({"tool": "a", "result_includes": "x"}),
                "/result_includes",
            ),
            (json!({"tool": "a", "results": []}), "/results"),
        ] {
            let told = refused("tool_call_chain", &json!({"steps": [step]}));
            assert_eq!(told.len(), 1, "{step}");
            assert_eq!(told[0].0, format!("/steps/0{at}"), "{step}");
        }
    }
}

//! `tool_args` and its session twin: at least one call of a tool has every listed argument.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::call_matching::{
    ArgConditions, CallFilter, check_tool_name, describe_unreadable_args, locate_call,
};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// Params of `tool_args` and `tool_args_session`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolArgsEval {
    /// The tool, case-sensitive.
    #[schemars(length(min = 1))]
    tool_name: String,
    /// Arguments and their values, compared as JSON: 10 equals 10.0, "10" does not equal 10, and `null` requires an
    /// argument that is present and null. Further arguments are allowed.
    expected_args: Map<String, Value>,
}

impl EvalType for ToolArgsEval {
    const NAME: &'static str = "tool_args";
    const SUMMARY: &'static str = "At least one call of the tool, up to the judged message, has every listed argument with its value.";
    const EXAMPLE: &'static str = "tool_name: get_order\nexpected_args: { order_id: 8412 }";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        let tool = check_tool_name("tool_name", self.tool_name).map_err(|p| problems.extend(p));
        if self.expected_args.is_empty() {
            problems.push(param_problem(
                "/expected_args",
                "needs at least one argument",
            ));
        }
        let Some(tool) = tool.ok().filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        Ok(CompiledEval::Check(Box::new(ToolArgsCheck {
            filter: CallFilter::for_tool("tool_name", Some(tool.clone()))?,
            tool,
            args: ArgConditions::from_values(self.expected_args),
        })))
    }
}

/// Params of `tool_args_session`: those of `tool_args`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(in crate::handlers) struct ToolArgsSession(ToolArgsEval);

impl EvalType for ToolArgsSession {
    const NAME: &'static str = "tool_args_session";
    const SUMMARY: &'static str =
        "Like `tool_args`: at least one call of the tool has every listed argument with its value.";
    const EXAMPLE: &'static str = ToolArgsEval::EXAMPLE;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        self.0.compile()
    }
}

/// Passes if at least one call has all arguments.
#[derive(Debug)]
struct ToolArgsCheck {
    tool: String,
    filter: CallFilter,
    args: ArgConditions,
}

impl Check for ToolArgsCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = self.filter.matching_calls(subject);
        if calls.is_empty() {
            return Finding::new(false, self.filter.explain_no_calls(subject));
        }
        // Pass: one call with all arguments is enough.
        let mut wanted = subject.until_cancelled(&calls);
        if let Some(ix) = wanted.find(|ix| self.args.are_satisfied_by(subject, **ix)) {
            let why = format!("{}: {}", locate_call(subject, *ix), self.args.describe());
            return Finding::new(true, why).with_spans([subject.call_span(*ix)]);
        }
        // Fail: explain the nearest call, because listing every call of a long transcript helps no one.
        let tool = QuotedText(&self.tool);
        let unreadable = describe_unreadable_args(subject, &calls);
        let Some(nearest) = find_nearest_call(&self.args, subject, &calls) else {
            let why = format!("no call of {tool} has {}{unreadable}", self.args.describe());
            return Finding::new(false, why)
                .with_spans(calls.iter().map(|ix| subject.call_span(*ix)));
        };
        let which = match calls.len() {
            1 => "the only call".to_owned(),
            n => format!("none of {} matches; the nearest", pluralize(n, "call")),
        };
        let message = subject.calls()[nearest].message;
        let misses = format_list(self.args.list_mismatches(subject, nearest));
        let why = match calls.len() {
            1 => format!("{which} of {tool}, in message {message}: {misses}"),
            _ => format!("{tool}: {which}, in message {message}: {misses}"),
        };
        Finding::new(false, format!("{why}{unreadable}")).with_spans([subject.call_span(nearest)])
    }
}

/// Returns the call that meets the most conditions, the first of several. `None` if the arguments of no call are
/// readable.
fn find_nearest_call(
    args: &ArgConditions,
    subject: &Subject<'_>,
    calls: &[usize],
) -> Option<usize> {
    let mut best = None;
    // Strictly more, so the first of several equal calls is shown.
    for ix in subject.until_cancelled(calls) {
        if let Some(satisfied) = args.count_satisfied_by_call(subject, *ix)
            && best.is_none_or(|(most, _)| satisfied > most)
        {
            best = Some((satisfied, *ix));
        }
    }
    best.map(|(_, ix)| ix)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{calls, record_without_calls};
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{self, Fail, Pass};

    fn one(expected: &Value, arguments: &str) -> Outcome {
        let params = json!({"tool_name": "f", "expected_args": {"x": expected}});
        let record = calls(&[("f", arguments)]);
        let [turn, session] =
            ["tool_args", "tool_args_session"].map(|kind| outcome_and_why(kind, &params, &record));
        assert_eq!(turn, session);
        turn.0
    }

    #[test]
    fn values_compare_as_json() {
        for (expected, arguments, outcome) in [
            (json!(10), r#"{"x": 10.0, "y": 1}"#, Pass),
            (json!(10), r#"{"x": "10"}"#, Fail),
            (json!(1_000_000), r#"{"x": 1000000}"#, Pass),
            (json!(1_000_000), r#"{"x": "1e+06"}"#, Fail),
            (json!(true), r#"{"x": "true"}"#, Fail),
            (json!(null), r#"{"x": null}"#, Pass),
            (json!(null), r#"{"x": "<nil>"}"#, Fail),
            (json!(null), "{}", Fail),
            (json!("a"), r#"{"x": "A"}"#, Fail),
            (json!(["a b"]), r#"{"x": ["a", "b"]}"#, Fail),
            (
                json!({"a": 1, "b": [2]}),
                r#"{"x": {"b": [2.0], "a": 1}}"#,
                Pass,
            ),
            (json!({"a": 1}), r#"{"x": {"a": 1, "b": 2}}"#, Fail),
        ] {
            assert_eq!(one(&expected, arguments), outcome, "{expected} {arguments}");
        }
    }

    #[test]
    fn one_call_must_have_all_arguments_and_the_nearest_is_explained() {
        let record = calls(&[
            ("get", r#"{"id": 7, "lang": "de"}"#),
            ("get", r#"{"id": 8}"#),
            ("get", r#"{"id": 8, "lang"#),
            ("put", r#"{"id": 8, "lang": "de"}"#),
        ]);
        for (args, outcome, why) in [
            (
                json!({"id": 7.0, "lang": "de"}),
                Pass,
                r#""get" in message 1: id = 7.0, lang = "de""#,
            ),
            (
                json!({"id": 8, "lang": "de"}),
                Fail,
                r#""get": none of 3 calls matches; the nearest, in message 1: id: expected 8, got 7; 1 call has arguments that match nothing (message 3: its arguments are not JSON: EOF while parsing a string at line 1 column 15)"#,
            ),
            (
                json!({"id": 8, "lang": "en", "page": 1}),
                Fail,
                r#""get": none of 3 calls matches; the nearest, in message 2: lang: expected "en", but it is missing, page: expected 1, but it is missing; 1 call has arguments that match nothing (message 3: its arguments are not JSON: EOF while parsing a string at line 1 column 15)"#,
            ),
        ] {
            let params = json!({"tool_name": "get", "expected_args": args});
            assert_eq!(
                outcome_and_why("tool_args", &params, &record),
                (outcome, why.to_owned()),
                "{params}"
            );
        }
        let params = json!({"tool_name": "put", "expected_args": {"id": 9}});
        let found = check_record("tool_args", &params, &record);
        assert_eq!(
            (
                found.outcome,
                found.explanation.as_str(),
                found.spans[0].message
            ),
            (
                Fail,
                r#"the only call of "put", in message 4: id: expected 9, got 8"#,
                4
            )
        );
    }

    #[test]
    fn unreadable_arguments_match_nothing_and_are_reported() {
        let params = json!({"tool_name": "f", "expected_args": {"x": 1}});
        assert_eq!(
            outcome_and_why("tool_args", &params, &calls(&[("f", "[1]")])),
            (
                Fail,
                r#"no call of "f" has x = 1; 1 call has arguments that match nothing (message 1: its arguments are not a JSON object)"#.to_owned()
            )
        );
        assert_eq!(
            outcome_and_why("tool_args", &params, &calls(&[("g", "{}")])),
            (Fail, r#""f" was not called; called: "g" 1×"#.to_owned())
        );
        assert_eq!(
            outcome_and_why("tool_args_session", &params, &record_without_calls()),
            (Fail, r#""f" was not called; no tool was called"#.to_owned())
        );
    }

    #[test]
    fn many_arguments_and_many_calls_stay_quick() {
        let args: serde_json::Map<String, Value> =
            (0..5_000).map(|n| (format!("a{n}"), json!(n))).collect();
        let params = json!({"tool_name": "f", "expected_args": args});
        let record = calls(&vec![("f", r#"{"a1":1}"#); 5_000]);
        let (outcome, why) = outcome_and_why("tool_args", &params, &record);
        assert_eq!(outcome, Fail);
        assert!(why.ends_with("and 4994 more") && why.len() < 500, "{why}");
    }

    #[test]
    fn params_that_check_nothing_are_refused() {
        for kind in ["tool_args", "tool_args_session"] {
            for params in [
                json!({}),
                json!({"tool_name": "f"}),
                json!({"expected_args": {"x": 1}}),
                json!({"tool_name": "", "expected_args": {"x": 1}}),
                json!({"tool_name": "f", "expected_args": {}}),
                json!({"tool_name": "f", "expected_args": [1]}),
                json!({"tool_name": ["f"], "expected_args": {"x": 1}}),
            ] {
                assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
            }
        }
    }
}

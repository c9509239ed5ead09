//! `tool_calls_with_args`: every call of a tool meets conditions on its arguments and its result.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::call_matching::{ArgCondition, ArgConditions, CallFilter, arg_pointer, locate_call};
use super::result_conditions::{
    RESULTS_NOT_RECORDED, ResultCondition, are_results_missing, explain_unknown_errors, is_error,
};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::text::regexp;
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `tool_calls_with_args`: at least one condition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolCallsWithArgs {
    /// The tool; it must then be called. Without it, all calls are checked, and no call is required. Case-sensitive.
    #[serde(default)]
    #[schemars(length(min = 1))]
    tool_name: Option<String>,
    /// Arguments and their values, compared as JSON. `null` only requires that the argument is present.
    #[serde(default)]
    expected_args: Option<Map<String, Value>>,
    /// Arguments and patterns (as in `regex`) that must match their values: strings as they are, other values as
    /// JSON.
    #[serde(default)]
    args_match: Option<IndexMap<String, String>>,
    /// Texts that must all occur in the result. Case does not matter.
    #[serde(default)]
    #[schemars(length(min = 1), inner(length(min = 1)))]
    result_includes: Option<Vec<String>>,
    /// A pattern (as in `regex`) that must match a part of the result.
    #[serde(default)]
    #[schemars(length(min = 1))]
    result_matches: Option<String>,
    /// `true`: no result may record an error (`is_error`).
    #[serde(default)]
    no_error: bool,
}

impl EvalType for ToolCallsWithArgs {
    const NAME: &'static str = "tool_calls_with_args";
    const SUMMARY: &'static str = "Every call of the tool meets the conditions on its arguments and its result (`tool_args` requires only one such call).";
    const EXAMPLE: &'static str =
        "tool_name: search\nargs_match: { query: '(?i)beam' }\nno_error: true";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        // An eval without conditions would pass for every call, which hides a typing error.
        let has_condition = self.expected_args.is_some()
            || self.args_match.is_some()
            || self.result_includes.is_some()
            || self.result_matches.is_some()
            || self.no_error;
        if !has_condition {
            problems.push(param_problem(
                "",
                "the eval would check nothing: give `expected_args`, `args_match`, `result_includes`, \
                 `result_matches` or `no_error: true`",
            ));
        }
        // Collect the problems of all params before returning, so that an author sees them together.
        let args = compile_arg_conditions(self.expected_args, self.args_match, &mut problems);
        let mut result_conditions = Vec::new();
        let includes = self.result_includes;
        let includes =
            includes.map(|patterns| ResultCondition::contains_all("result_includes", patterns));
        let matches = self.result_matches;
        let matches =
            matches.map(|pattern| ResultCondition::from_pattern("result_matches", &pattern));
        for condition in includes.into_iter().chain(matches) {
            match condition {
                Ok(condition) => result_conditions.push(condition),
                Err(why) => problems.extend(why),
            }
        }
        let filter =
            CallFilter::for_tool("tool_name", self.tool_name).map_err(|p| problems.extend(p));
        let Some(filter) = filter.ok().filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        Ok(CompiledEval::Check(Box::new(ToolCallsWithArgsCheck {
            filter,
            arg_conditions: args,
            result_conditions,
            no_error: self.no_error,
        })))
    }
}

fn compile_arg_conditions(
    expected: Option<Map<String, Value>>,
    matches: Option<IndexMap<String, String>>,
    problems: &mut Vec<ParamProblem>,
) -> ArgConditions {
    let mut args = ArgConditions::default();
    if expected.as_ref().is_some_and(Map::is_empty) {
        problems.push(param_problem(
            "/expected_args",
            "needs at least one argument",
        ));
    }
    for (arg, value) in expected.into_iter().flatten() {
        args.add(
            arg,
            match value {
                // Unlike in `tool_args`, `null` means any value here.
                Value::Null => ArgCondition::Present,
                value => ArgCondition::Equal(value),
            },
        );
    }
    if matches.as_ref().is_some_and(IndexMap::is_empty) {
        problems.push(param_problem("/args_match", "needs at least one argument"));
    }
    for (arg, pattern) in matches.into_iter().flatten() {
        let at = arg_pointer("args_match", &arg);
        match regexp::compile_regex(&at, &pattern) {
            Err(why) => problems.push(why),
            Ok(pattern) => {
                if !args.add(arg, ArgCondition::Matches(pattern)) {
                    problems.push(param_problem(
                        at,
                        "is also in expected_args: give only one of them",
                    ));
                }
            }
        }
    }
    args
}

#[derive(Debug)]
struct ToolCallsWithArgsCheck {
    filter: CallFilter,
    arg_conditions: ArgConditions,
    result_conditions: Vec<ResultCondition>,
    no_error: bool,
}

impl ToolCallsWithArgsCheck {
    /// Returns `true` if the call meets all conditions.
    fn is_satisfied_by(&self, subject: &Subject<'_>, ix: usize) -> bool {
        let args =
            self.arg_conditions.is_empty() || self.arg_conditions.are_satisfied_by(subject, ix);
        // A closure: the result is searched only if the arguments hold, because results can be long.
        let result = || match subject.result_text(ix) {
            None => self.result_conditions.is_empty(),
            Some(answer) => self
                .result_conditions
                .iter()
                .all(|condition| condition.find(answer).is_some()),
        };
        args && !(self.no_error && is_error(subject, ix)) && result()
    }

    /// Lists everything that a call lacks.
    fn describe_failure(&self, subject: &Subject<'_>, ix: usize) -> String {
        let mut lacks = self.arg_conditions.list_mismatches(subject, ix);
        let answer = subject.result_text(ix);
        if self.no_error && is_error(subject, ix) {
            let text = answer.map(|answer| answer.text.trim()).unwrap_or_default();
            lacks.push(format!("its result is an error ({})", QuotedText(text)));
        }
        match answer {
            None if !self.result_conditions.is_empty() => lacks.push("it has no result".to_owned()),
            None => {}
            Some(answer) => {
                let unmet = self
                    .result_conditions
                    .iter()
                    .filter(|condition| condition.find(answer).is_none());
                lacks.extend(unmet.map(|condition| {
                    format!("in its result, {}", condition.describe_missing(answer))
                }));
            }
        }
        format!("{}: {}", locate_call(subject, ix), format_list(lacks))
    }

    /// Returns `true` if some call fails by its arguments alone.
    fn fails_by_args(&self, subject: &Subject<'_>, calls: &[usize]) -> bool {
        let mut wanted = subject.until_cancelled(calls);
        !self.arg_conditions.is_empty()
            && wanted.any(|ix| !self.arg_conditions.are_satisfied_by(subject, *ix))
    }
}

impl Check for ToolCallsWithArgsCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = self.filter.matching_calls(subject);
        if calls.is_empty() {
            let why = self.filter.explain_no_calls(subject);
            // A named tool must be called. Without a name, no call is required and there is nothing to check.
            return if self.filter.is_all() {
                Finding::not_applicable(why)
            } else {
                Finding::new(false, why)
            };
        }
        // Without results the conditions cannot be checked. A failure by arguments is certain and has
        // priority.
        if !self.result_conditions.is_empty()
            && are_results_missing(subject, &calls)
            && !self.fails_by_args(subject, &calls)
        {
            return Finding::check_error(RESULTS_NOT_RECORDED);
        }
        let wrong: Vec<usize> = subject
            .until_cancelled(calls.iter().copied())
            .filter(|ix| !self.is_satisfied_by(subject, *ix))
            .collect();
        // A failure by arguments stays a failure whatever the results would record, so it comes before the
        // `check_error`.
        if wrong.is_empty()
            && self.no_error
            && let Some(why) = explain_unknown_errors(subject, &calls)
        {
            return Finding::check_error(why);
        }
        let all = self.filter.describe_count(calls.len());
        if wrong.is_empty() {
            let marks = calls.iter().map(|ix| subject.call_span(*ix));
            let as_asked = if calls.len() == 1 { "meets" } else { "meet" };
            return Finding::new(true, format!("{all} {as_asked} the conditions"))
                .with_spans(marks);
        }
        // Fail: describe the first calls in full and count the others.
        let mut listed: Vec<String> = Vec::new();
        for ix in wrong.iter().take(MAX_DESCRIBED_CALLS) {
            listed.push(self.describe_failure(subject, *ix));
        }
        let not_all = format!("{} of {all} failed the conditions", wrong.len());
        let more = match wrong.len() - listed.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Finding::new(false, format!("{not_all}: {}{more}", listed.join("; ")))
            .with_spans(wrong.iter().map(|ix| subject.call_span(*ix)))
    }
}

/// The largest number of failing calls that are described in full.
const MAX_DESCRIBED_CALLS: usize = 3;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{
        calls, failed, record_with_results, record_without_calls, successful, text,
    };
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{self, CheckError, Fail, NotApplicable, Pass};

    const KIND: &str = "tool_calls_with_args";

    fn finds(params: &Value, record: &Value, outcome: Outcome, why: &str) {
        assert_eq!(
            outcome_and_why(KIND, params, record),
            (outcome, why.to_owned()),
            "{params}"
        );
    }

    #[test]
    fn every_call_must_have_the_arguments() {
        let record = calls(&[
            ("get", r#"{"id": 7, "url": "https://a"}"#),
            ("get", r#"{"id": "7", "url": null}"#),
            ("put", r#"{"id": 7.0}"#),
        ]);
        finds(
            &json!({"tool_name": "get", "expected_args": {"id": null, "url": null}}),
            &record,
            Pass,
            r#"2 calls of "get" meet the conditions"#,
        );
        finds(
            &json!({"tool_name": "get", "expected_args": {"id": 7}, "args_match": {"url": "^https:"}}),
            &record,
            Fail,
            r#"1 of 2 calls of "get" failed the conditions: "get" in message 2: id: expected 7, got "7", url: expected a match of "^https:", got null"#,
        );
        finds(
            &json!({"args_match": {"id": "^7"}}),
            &record,
            Pass,
            "3 calls meet the conditions",
        );
        finds(
            &json!({"expected_args": {"url": null}}),
            &record,
            Fail,
            r#"1 of 3 calls failed the conditions: "put" in message 3: url: expected any value, but it is missing"#,
        );
        let found = check_record(KIND, &json!({"expected_args": {"id": 8}}), &record);
        let places: Vec<usize> = found.spans.iter().map(|m| m.message).collect();
        assert_eq!(places, [1, 2, 3]);
        finds(
            &json!({"expected_args": {"id": null}}),
            &calls(&[("get", "{id: 7}")]),
            Fail,
            r#"1 of 1 call failed the conditions: "get" in message 1: its arguments are not JSON: key must be a string at line 1 column 2"#,
        );
    }

    #[test]
    fn every_result_must_meet_the_conditions() {
        let record = record_with_results(&[
            ("get", "{}", successful("Order 7 SHIPPED")),
            ("get", "{}", failed("order: timed out")),
        ]);
        finds(
            &json!({"tool_name": "get", "result_includes": ["order"], "result_matches": "(?i)^order"}),
            &record,
            Pass,
            r#"2 calls of "get" meet the conditions"#,
        );
        finds(
            &json!({"tool_name": "get", "result_includes": ["order", "shipped"], "result_matches": r"\d", "no_error": true}),
            &record,
            Fail,
            "1 of 2 calls of \"get\" failed the conditions: \"get\" in message 3: its result is an error (\"order: timed out\"), \
             in its result, it lacks \"shipped\", in its result, \"\\\\d\" does not match \"order: timed out\"",
        );
    }

    #[test]
    fn missing_results_are_an_error_unless_arguments_fail_anyway() {
        let unsaid = record_with_results(&[("get", r#"{"id": 7}"#, text("Error"))]);
        let no_error = json!({"no_error": true});
        finds(
            &no_error,
            &unsaid,
            CheckError,
            "this transcript does not say which results are errors (`is_error`)",
        );
        let both = json!({"no_error": true, "expected_args": {"id": 8}});
        assert_eq!(outcome_and_why(KIND, &both, &unsaid).0, Fail);
        let result = json!({"no_error": true, "result_includes": ["ok"]});
        assert_eq!(outcome_and_why(KIND, &result, &unsaid).0, Fail);

        let unanswered = calls(&[("get", "{}"), ("get", "{}")]);
        let includes = json!({"result_includes": ["x"]});
        finds(
            &includes,
            &unanswered,
            CheckError,
            "this transcript has calls but no results of calls",
        );
        let both = json!({"result_includes": ["x"], "expected_args": {"id": 8}});
        assert_eq!(outcome_and_why(KIND, &both, &unanswered).0, Fail);
        finds(
            &includes,
            &calls(&[("get", "{}")]),
            Fail,
            r#"1 of 1 call failed the conditions: "get" in message 1: it has no result"#,
        );
    }

    #[test]
    fn named_tool_must_be_called_and_no_name_requires_no_call() {
        let args = json!({"x": 1});
        finds(
            &json!({"tool_name": "get", "expected_args": args}),
            &record_without_calls(),
            Fail,
            r#""get" was not called; no tool was called"#,
        );
        finds(
            &json!({"expected_args": args}),
            &record_without_calls(),
            NotApplicable,
            "no tool was called",
        );
    }

    #[test]
    fn many_failing_calls_are_summarized() {
        let record = calls(&vec![("get", "{}"); 1000]);
        let (_, why) = outcome_and_why(KIND, &json!({"expected_args": {"x": 1}}), &record);
        assert!(
            why.starts_with("1000 of 1000 calls failed the conditions: "),
            "{why}"
        );
        assert!(why.ends_with("; and 997 more") && why.len() < 400, "{why}");
    }

    #[test]
    fn params_without_a_condition_are_refused() {
        for (params, at) in [
            (json!({}), ""),
            (json!({"tool_name": "f"}), ""),
            (json!({"tool_name": "f", "no_error": false}), ""),
            (json!({"expected_args": {}}), "/expected_args"),
            (json!({"args_match": {}}), "/args_match"),
            (json!({"args_match": {"a/b": "("}}), "/args_match/a~1b"),
            (json!({"args_match": {"a": ""}}), "/args_match/a"),
            (
                json!({"args_match": {"a": "x"}, "expected_args": {"a": null}}),
                "/args_match/a",
            ),
            (json!({"result_includes": []}), "/result_includes"),
            (json!({"result_includes": [""]}), "/result_includes/0"),
            (json!({"result_matches": "("}), "/result_matches"),
            (json!({"tool_name": "", "no_error": true}), "/tool_name"),
            (json!({"no_error": "yes"}), "/no_error"),
        ] {
            let problems = refused(KIND, &params);
            assert!(
                matches!(problems.as_slice(), [(pointer, _)] if pointer == at),
                "{params}: {problems:?}"
            );
        }
        let held = refused(KIND, &json!({"no_error": true, "result_matches": "("}));
        assert_eq!(
            held[0].1,
            "result_matches is not a valid regular expression: unclosed group"
        );
    }
}

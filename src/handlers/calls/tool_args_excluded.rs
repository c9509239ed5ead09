//! `tool_args_excluded_session`: values that no call of a tool may have.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::call_matching::{
    CallFilter, arg_pointer, check_tool_name, describe_unreadable_args, locate_call,
};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{EscapedName, ShortJson, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::{EvalTypeAlias, ParamProblem, json_equal};

/// The largest number of values for one argument. Each is compared with every call.
const MAX_VALUES: usize = 1000;

/// Params of `tool_args_excluded_session`: `excluded_args`, `forbidden_args` or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolArgsExcludedSession {
    /// The tool, case-sensitive.
    #[schemars(length(min = 1))]
    tool_name: String,
    /// Arguments, each with one value that no call may have. A list is one value, not a list of alternatives.
    #[serde(default)]
    excluded_args: Option<Map<String, Value>>,
    /// Arguments, each with a list of values that no call may have.
    #[serde(default)]
    forbidden_args: Option<IndexMap<String, Vec<Value>>>,
}

impl EvalType for ToolArgsExcludedSession {
    const NAME: &'static str = "tool_args_excluded_session";
    const SUMMARY: &'static str =
        "No call of the tool has a listed argument with an excluded value.";
    const EXAMPLE: &'static str = "tool_name: send_mail\nexcluded_args: { to: everyone }";
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("tools_not_called_with_args")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        let tool = check_tool_name("tool_name", self.tool_name).map_err(|p| problems.extend(p));
        // Both params fill one table; they differ only in one value or many.
        let mut values: IndexMap<String, Vec<Value>> = IndexMap::new();
        if self.excluded_args.is_none() && self.forbidden_args.is_none() {
            problems.push(param_problem(
                "",
                "`excluded_args` or `forbidden_args` is missing",
            ));
        }
        if self.excluded_args.as_ref().is_some_and(Map::is_empty) {
            problems.push(param_problem(
                "/excluded_args",
                "needs at least one argument",
            ));
        }
        for (arg, value) in self.excluded_args.into_iter().flatten() {
            values.insert(arg, vec![value]);
        }
        if self.forbidden_args.as_ref().is_some_and(IndexMap::is_empty) {
            problems.push(param_problem(
                "/forbidden_args",
                "needs at least one argument",
            ));
        }
        // Each value is compared with each call, hence the limit.
        for (arg, forbidden) in self.forbidden_args.into_iter().flatten() {
            if forbidden.is_empty() {
                let at = arg_pointer("forbidden_args", &arg);
                problems.push(param_problem(at, "needs at least one value"));
            }
            if forbidden.len() > MAX_VALUES {
                let at = arg_pointer("forbidden_args", &arg);
                let count = forbidden.len();
                problems.push(param_problem(
                    at,
                    format!("has {count} entries, more than {MAX_VALUES}"),
                ));
            }
            // An argument in both params gets the values of both.
            values.entry(arg).or_default().extend(forbidden);
        }
        let tool = tool.ok().filter(|_| problems.is_empty());
        let Some(tool) = tool else {
            return Err(problems);
        };
        Ok(CompiledEval::Check(Box::new(ToolArgsExcludedCheck {
            filter: CallFilter::for_tool("tool_name", Some(tool))?,
            excluded_values: values,
        })))
    }
}

#[derive(Debug)]
struct ToolArgsExcludedCheck {
    filter: CallFilter,
    /// The excluded values, by argument.
    excluded_values: IndexMap<String, Vec<Value>>,
}

impl ToolArgsExcludedCheck {
    /// Returns the first argument of a call with an excluded value, and that value. Unreadable arguments have none.
    /// Iterates over the shorter side.
    fn find_excluded_value<'a>(
        &self,
        subject: &'a Subject<'_>,
        ix: usize,
    ) -> Option<(&'a str, &'a Value)> {
        let args = subject.arguments(ix).ok()?;
        let is_wrong = |values: &[Value], value| values.iter().any(|v| json_equal(v, value));
        // The shorter side, so that many conditions and many small calls do not multiply.
        if args.len() < self.excluded_values.len() {
            let mut given = args.iter();
            let found = given.find(|(arg, value)| {
                let values = self.excluded_values.get(*arg);
                values.is_some_and(|values| is_wrong(values, value))
            });
            return found.map(|(arg, value)| (arg.as_str(), value));
        }
        self.excluded_values.iter().find_map(|(arg, values)| {
            let (arg, value) = args.get_key_value(arg)?;
            is_wrong(values, value).then_some((arg.as_str(), value))
        })
    }
}

impl Check for ToolArgsExcludedCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = self.filter.matching_calls(subject);
        if calls.is_empty() {
            return Finding::new(true, self.filter.explain_no_calls(subject));
        }
        // Unreadable arguments cannot have an excluded value, but the explanation must name them.
        let unreadable = describe_unreadable_args(subject, &calls);
        let wrong: Vec<_> = subject
            .until_cancelled(&calls)
            .filter_map(|ix| Some((*ix, self.find_excluded_value(subject, *ix)?)))
            .collect();
        if wrong.is_empty() {
            let args = format_list(self.excluded_values.keys().map(|arg| EscapedName(arg)));
            let described = self.filter.describe_count(calls.len());
            let why = format!("no excluded value of {args} in {described}{unreadable}");
            return Finding::new(true, why);
        }
        let described = wrong.iter().map(|(ix, (arg, value))| {
            format!(
                "{} has {} = {}",
                locate_call(subject, *ix),
                EscapedName(arg),
                ShortJson(value)
            )
        });
        Finding::new(false, format!("{}{unreadable}", format_list(described)))
            .with_spans(wrong.iter().map(|(ix, _)| subject.call_span(*ix)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::records::{calls, record_without_calls};
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{Fail, Pass};

    const KIND: &str = "tool_args_excluded_session";

    #[test]
    fn any_excluded_value_in_any_call_fails() {
        let record = calls(&[
            ("mail", r#"{"to": "a", "cc": null}"#),
            ("mail", r#"{"to": "everyone", "n": 3.0}"#),
            ("chat", r#"{"to": "b"}"#),
        ]);
        for (excluded, forbidden, outcome, why) in [
            (
                json!({"to": "everyone", "cc": "x"}),
                None,
                Fail,
                r#""mail" in message 2 has to = "everyone""#,
            ),
            (
                json!({"cc": null, "n": 3}),
                None,
                Fail,
                r#""mail" in message 1 has cc = null, "mail" in message 2 has n = 3.0"#,
            ),
            (
                json!({"to": "b", "bcc": null}),
                None,
                Pass,
                r#"no excluded value of to, bcc in 2 calls of "mail""#,
            ),
            (
                json!({"to": ["everyone", "a"]}),
                None,
                Pass,
                r#"no excluded value of to in 2 calls of "mail""#,
            ),
            (
                json!({"n": 4}),
                Some(json!({"to": ["all", "everyone"], "n": [1, 2]})),
                Fail,
                r#""mail" in message 2 has to = "everyone""#,
            ),
        ] {
            let mut params = json!({"tool_name": "mail", "excluded_args": excluded});
            if let Some(forbidden) = forbidden {
                params["forbidden_args"] = forbidden;
            }
            assert_eq!(
                outcome_and_why(KIND, &params, &record),
                (outcome, why.to_owned()),
                "{params}"
            );
        }
        let only = json!({"tool_name": "mail", "forbidden_args": {"to": ["a", "everyone"]}});
        let places: Vec<usize> = check_record(KIND, &only, &record)
            .spans
            .iter()
            .map(|m| m.message)
            .collect();
        assert_eq!(places, [1, 2]);
    }

    #[test]
    fn missing_or_unreadable_calls_have_no_excluded_value() {
        let params = json!({"tool_name": "mail", "excluded_args": {"to": "x"}});
        assert_eq!(
            outcome_and_why(KIND, &params, &record_without_calls()),
            (
                Pass,
                r#""mail" was not called; no tool was called"#.to_owned()
            )
        );
        assert_eq!(
            outcome_and_why(KIND, &params, &calls(&[("mail", r#"{"to": "x""#), ("mail", "")])),
            (
                Pass,
                r#"no excluded value of to in 2 calls of "mail"; 1 call has arguments that match nothing (message 1: its arguments are not JSON: EOF while parsing an object at line 1 column 10)"#.to_owned()
            )
        );
    }

    #[test]
    fn params_that_check_nothing_are_refused() {
        for (params, at) in [
            (json!({"tool_name": "f"}), ""),
            (
                json!({"tool_name": "f", "excluded_args": {}}),
                "/excluded_args",
            ),
            (
                json!({"tool_name": "f", "forbidden_args": {}}),
                "/forbidden_args",
            ),
            (
                json!({"tool_name": "f", "forbidden_args": {"x": []}}),
                "/forbidden_args/x",
            ),
            (
                json!({"tool_name": "f", "forbidden_args": {"x": 1}}),
                "/forbidden_args/x",
            ),
            (
                json!({"tool_name": "", "excluded_args": {"x": 1}}),
                "/tool_name",
            ),
        ] {
            let problems = refused(KIND, &params);
            assert!(
                matches!(problems.as_slice(), [(pointer, _)] if pointer == at),
                "{params}: {problems:?}"
            );
        }
        assert!(!refused(KIND, &json!({"excluded_args": {"x": 1}})).is_empty());
    }
}

//! `no_tool_errors`: no call of the agent ended in an error.

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::CallFilter;
use super::result_conditions::{describe_error, explain_unknown_errors, is_error};
use crate::handlers::eval_type::EvalType;
use crate::handlers::explain::format_list;
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// Params of `no_tool_errors`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct NoToolErrors {
    /// Checks only calls of these tools. Without it, all calls. Case-sensitive.
    #[serde(default)]
    #[schemars(length(min = 1), inner(length(min = 1)))]
    tools: Option<Vec<String>>,
}

impl EvalType for NoToolErrors {
    const NAME: &'static str = "no_tool_errors";
    const SUMMARY: &'static str = "No call ended in an error, as its result records it (`is_error`). The score is the share of calls without an error. Not applicable without calls.";
    const EXAMPLE: &'static str = "tools: [search, get_order]";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let filter = CallFilter::for_tools("tools", self.tools)?;
        Ok(CompiledEval::Check(Box::new(NoToolErrorsCheck(filter))))
    }
}

#[derive(Debug)]
struct NoToolErrorsCheck(CallFilter);

impl Check for NoToolErrorsCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = self.0.matching_calls(subject);
        // A pass would claim that calls succeeded; `tool_call_count` requires calls.
        if calls.is_empty() {
            return Finding::not_applicable(self.0.explain_no_calls(subject));
        }
        // A transcript whose results mostly do not state how they ended must not pass as one without errors.
        if let Some(why) = explain_unknown_errors(subject, &calls) {
            return Finding::check_error(why);
        }
        let errors: Vec<usize> = subject
            .until_cancelled(calls.iter().copied())
            .filter(|ix| is_error(subject, *ix))
            .collect();
        // Computed from the number of successes and not as 1 minus the failures, so that 1 of 10 is exactly 0.1 and
        // meets a bound of 0.1.
        let score = (calls.len() - errors.len()) as f64 / calls.len() as f64;
        let all = self.0.describe_count(calls.len());
        if errors.is_empty() {
            return Finding::new(true, format!("no errors in {all}")).with_score(score);
        }
        // Failed: name each error with its result.
        let listed = format_list(errors.iter().map(|ix| describe_error(subject, *ix)));
        let failed = pluralize(errors.len(), "error");
        let marks = errors
            .iter()
            .filter_map(|ix| subject.result_span(*ix, 0..0));
        Finding::new(false, format!("{failed} in {all}: {listed}"))
            .with_score(score)
            .with_spans(marks)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::records::{
        calls, failed, record_with_results, record_without_calls, successful, text,
    };
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{CheckError, Fail, NotApplicable, Pass};

    #[test]
    fn errors_are_counted_among_the_calls_in_scope() {
        let record = record_with_results(&[
            ("search", "{}", failed("timed out")),
            ("search", "{}", successful("Error: 404")),
            ("get", "{}", text("Error")),
            ("pay", "{}", failed("denied")),
        ]);
        for (params, score, why) in [
            (
                json!({}),
                0.5,
                r#"2 errors in 4 calls: "search" in message 1: "timed out", "pay" in message 7: "denied""#,
            ),
            (
                json!({"tools": ["search"]}),
                0.5,
                r#"1 error in 2 calls of "search": "search" in message 1: "timed out""#,
            ),
            (
                json!({"tools": ["get", "wait"]}),
                1.0,
                r#"no errors in 1 call of "get", "wait""#,
            ),
        ] {
            let found = check_record("no_tool_errors", &params, &record);
            let outcome = if score < 1.0 { Fail } else { Pass };
            assert_eq!(
                (found.outcome, found.score, found.explanation.as_str()),
                (outcome, Some(score), why),
                "{params}"
            );
        }
        let marks = check_record("no_tool_errors", &json!({}), &record).spans;
        let places: Vec<usize> = marks.iter().map(|m| m.message).collect();
        assert_eq!(places, [2, 8], "the answers");
        let nine: Vec<_> = (0..10)
            .map(|n| {
                (
                    "f",
                    "{}",
                    if n == 0 { successful("x") } else { failed("x") },
                )
            })
            .collect();
        let just = check_record(
            "no_tool_errors",
            &json!({"min_score": 0.1}),
            &record_with_results(&nine),
        );
        assert_eq!((just.outcome, just.score), (Pass, Some(0.1)));
        let lenient = check_record("no_tool_errors", &json!({"min_score": 0.5}), &record);
        assert_eq!(lenient.outcome, Pass);
    }

    #[test]
    fn an_error_is_never_guessed_from_text() {
        let unsaid = record_with_results(&[("search", "{}", text("Error: 500"))]);
        assert_eq!(
            outcome_and_why("no_tool_errors", &json!({}), &unsaid),
            (
                CheckError,
                "this transcript does not say which results are errors (`is_error`)".to_owned()
            )
        );
        let elsewhere = record_with_results(&[
            ("search", "{}", text("Error: 500")),
            ("get", "{}", successful("x")),
        ]);
        assert_eq!(
            outcome_and_why("no_tool_errors", &json!({}), &elsewhere),
            (
                CheckError,
                "most tool results of this transcript do not state whether they are errors (`is_error`)"
                    .to_owned()
            )
        );
    }

    #[test]
    fn few_results_without_a_flag_do_not_prevent_a_decision() {
        let mostly = record_with_results(&[
            ("search", "{}", text("x")),
            ("get", "{}", successful("x")),
            ("get", "{}", successful("x")),
        ]);
        assert_eq!(
            outcome_and_why("no_tool_errors", &json!({}), &mostly).0,
            Pass
        );
        // A recorded error is certain, whatever the other results are.
        let marked = record_with_results(&[
            ("search", "{}", text("x")),
            ("search", "{}", text("x")),
            ("get", "{}", failed("x")),
        ]);
        assert_eq!(
            outcome_and_why("no_tool_errors", &json!({}), &marked).0,
            Fail
        );
    }

    #[test]
    fn missing_call_or_result_is_not_an_error() {
        assert_eq!(
            outcome_and_why("no_tool_errors", &json!({}), &record_without_calls()),
            (NotApplicable, "no tool was called".to_owned())
        );
        assert_eq!(
            outcome_and_why(
                "no_tool_errors",
                &json!({"tools": ["wait"]}),
                &calls(&[("search", "{}")])
            ),
            (
                NotApplicable,
                r#""wait" was not called; called: "search" 1×"#.to_owned()
            )
        );
        assert_eq!(
            outcome_and_why("no_tool_errors", &json!({}), &calls(&[("search", "{}")])),
            (Pass, "no errors in 1 call".to_owned())
        );
    }

    #[test]
    fn calls_without_recorded_results_are_a_check_error() {
        let gone = calls(&[("search", "{}"), ("search", "{}")]);
        assert_eq!(
            outcome_and_why("no_tool_errors", &json!({}), &gone),
            (
                CheckError,
                "this transcript has calls but no results of calls".to_owned()
            )
        );
    }

    #[test]
    fn an_empty_scope_is_refused() {
        for params in [
            json!({"tools": []}),
            json!({"tools": [""]}),
            json!({"tools": "search"}),
            json!({"tools": null}),
        ] {
            assert!(!refused("no_tool_errors", &params).is_empty(), "{params}");
        }
    }
}

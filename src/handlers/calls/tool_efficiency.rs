//! `tool_efficiency`: budgets for calls and for errors.

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::CallFilter;
use super::result_conditions::{describe_error, explain_unknown_errors, is_error};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::format_list;
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// Params of `tool_efficiency`: at least one budget.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "they are what authors write")]
pub(in crate::handlers) struct ToolEfficiency {
    /// The largest number of calls, of all tools together.
    #[serde(default)]
    max_calls: Option<u32>,
    /// The largest number of calls that end in an error, as their results record it (`is_error`).
    #[serde(default)]
    max_errors: Option<u32>,
    /// The largest share of calls that end in an error: from 0 to less than 1.
    #[serde(default)]
    #[schemars(range(min = 0))]
    max_error_rate: Option<f64>,
}

impl EvalType for ToolEfficiency {
    const NAME: &'static str = "tool_efficiency";
    const SUMMARY: &'static str = "Calls and errors stay within the budgets, limits included. The score is 1 within the budgets, otherwise the budget divided by the number used (the smallest of several).";
    const EXAMPLE: &'static str = "max_calls: 6\nmax_error_rate: 0.25";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        if self.max_calls.is_none() && self.max_errors.is_none() && self.max_error_rate.is_none() {
            let why = "`max_calls`, `max_errors` or `max_error_rate` is missing";
            return Err(vec![param_problem("", why)]);
        }
        // A rate of 1 would allow every call to fail, so it is refused as a limit without effect.
        if let Some(rate) = self.max_error_rate.filter(|r| !(0.0..1.0).contains(r)) {
            let why =
                format!("must be at least 0 and less than 1 (got {rate}): no rate is above 1");
            return Err(vec![param_problem("/max_error_rate", why)]);
        }
        Ok(CompiledEval::Check(Box::new(ToolEfficiencyCheck {
            calls: self.max_calls,
            errors: self.max_errors,
            rate: self.max_error_rate,
        })))
    }
}

#[derive(Debug)]
struct ToolEfficiencyCheck {
    calls: Option<u32>,
    errors: Option<u32>,
    rate: Option<f64>,
}

/// The numbers of calls and errors, compared with the budgets.
struct BudgetUsage {
    score: f64,
    exceeded: Vec<String>,
}

impl BudgetUsage {
    fn add_budget(&mut self, spent: f64, budget: f64, describe: impl FnOnce() -> String) {
        if spent > budget {
            self.score = self.score.min(budget / spent);
            self.exceeded.push(describe());
        }
    }
}

impl Check for ToolEfficiencyCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls: Vec<usize> = (0..subject.calls().len()).collect();
        let all = calls.len();
        let mut spent = BudgetUsage {
            score: 1.0,
            exceeded: Vec::new(),
        };
        // Calls: the transcript always records them, so this budget needs no flag.
        if let Some(most) = self.calls {
            spent.add_budget(all as f64, f64::from(most), || {
                let over = all - most as usize;
                format!("{}, {over} more than {most}", pluralize(all, "call"))
            });
        }
        // Errors: only what results record counts.
        let looks_at_errors = self.errors.is_some() || self.rate.is_some();
        // Both the score and a pass need every budget.
        if looks_at_errors && let Some(why) = explain_unknown_errors(subject, &calls) {
            return Finding::check_error(why);
        }
        let errors: Vec<usize> = subject
            .until_cancelled(calls.iter().copied())
            .filter(|ix| is_error(subject, *ix))
            .collect();
        let failed = errors.len();
        if let Some(most) = self.errors {
            spent.add_budget(failed as f64, f64::from(most), || {
                let over = failed - most as usize;
                format!("{}, {over} more than {most}", pluralize(failed, "error"))
            });
        }
        // Without calls there is no rate, and the budget holds.
        if let Some(most) = self.rate.filter(|_| all > 0) {
            let rate = failed as f64 / all as f64;
            spent.add_budget(rate, most, || {
                let all_calls = pluralize(all, "call");
                format!("an error rate of {rate:.3} ({failed} of {all_calls}), more than {most}")
            });
        }
        // Explain the result, with all exceeded budgets.
        let BudgetUsage {
            score,
            exceeded: over,
        } = spent;
        if over.is_empty() {
            let mut why = match all {
                0 => CallFilter::all().explain_no_calls(subject),
                all => pluralize(all, "call"),
            };
            if looks_at_errors && all > 0 {
                why = format!("{why}, {}", pluralize(failed, "error"));
            }
            return Finding::new(true, format!("within budget: {why}")).with_score(score);
        }
        let mut why = over.join("; ");
        // `min(all)`: with a budget above the number of calls, no call is marked as too many.
        let too_many = self.calls.map_or(all, |most| most as usize).min(all);
        let mut marks: Vec<_> = calls[too_many..]
            .iter()
            .map(|ix| subject.call_span(*ix))
            .collect();
        if looks_at_errors && failed > 0 {
            let listed = format_list(errors.iter().map(|ix| describe_error(subject, *ix)));
            why = format!("{why}; errors: {listed}");
            // An error within the call budget is marked as well, at its result.
            marks.extend(
                errors
                    .iter()
                    .filter_map(|ix| subject.result_span(*ix, 0..0)),
            );
        }
        Finding::new(false, why).with_score(score).with_spans(marks)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{
        calls, failed, record_with_results, record_without_calls, successful, text,
    };
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{CheckError, Fail, Pass};

    const KIND: &str = "tool_efficiency";

    fn record() -> Value {
        record_with_results(&[
            ("a", "{}", failed("no")),
            ("b", "{}", successful("x")),
            ("b", "{}", text("y")),
            ("c", "{}", failed("never")),
        ])
    }

    #[test]
    fn exactly_at_the_budget_is_within_it() {
        for (params, score, why) in [
            (json!({"max_calls": 4}), 1.0, "within budget: 4 calls"),
            (
                json!({"max_calls": 9, "max_errors": 2, "max_error_rate": 0.5}),
                1.0,
                "within budget: 4 calls, 2 errors",
            ),
            (json!({"max_calls": 3}), 0.75, "4 calls, 1 more than 3"),
            (json!({"max_calls": 0}), 0.0, "4 calls, 4 more than 0"),
            (
                json!({"max_errors": 1, "max_calls": 3}),
                0.5,
                r#"4 calls, 1 more than 3; 2 errors, 1 more than 1; errors: "a" in message 1: "no", "c" in message 7: "never""#,
            ),
            (
                json!({"max_error_rate": 0.2}),
                0.4,
                r#"an error rate of 0.500 (2 of 4 calls), more than 0.2; errors: "a" in message 1: "no", "c" in message 7: "never""#,
            ),
        ] {
            let found = check_record(KIND, &params, &record());
            let outcome = if score < 1.0 { Fail } else { Pass };
            assert_eq!(
                (found.outcome, found.score, found.explanation.as_str()),
                (outcome, Some(score), why),
                "{params}"
            );
        }
        let bounded = json!({"max_calls": 3, "min_score": 0.7});
        assert_eq!(outcome_and_why(KIND, &bounded, &record()).0, Pass);
        let marks = check_record(KIND, &json!({"max_errors": 0, "max_calls": 3}), &record()).spans;
        let places: Vec<usize> = marks.iter().map(|m| m.message).collect();
        assert_eq!(places, [7, 2, 8], "the call too many, then the errors");
    }

    #[test]
    fn error_budget_needs_recorded_errors() {
        let unsaid = record_with_results(&[("a", "{}", text("Error")), ("a", "{}", text("Error"))]);
        for params in [
            json!({"max_errors": 0}),
            json!({"max_error_rate": 0}),
            json!({"max_calls": 1, "max_errors": 0}),
        ] {
            assert_eq!(
                outcome_and_why(KIND, &params, &unsaid).0,
                CheckError,
                "{params}"
            );
        }
        assert_eq!(
            outcome_and_why(KIND, &json!({"max_calls": 2}), &unsaid).0,
            Pass
        );
        assert_eq!(
            outcome_and_why(KIND, &json!({"max_errors": 0}), &calls(&[("a", "{}")])),
            (Pass, "within budget: 1 call, 0 errors".to_owned())
        );
        for params in [json!({"max_calls": 0}), json!({"max_error_rate": 0.0})] {
            assert_eq!(
                outcome_and_why(KIND, &params, &record_without_calls()),
                (Pass, "within budget: no tool was called".to_owned())
            );
        }
    }

    #[test]
    fn budgets_without_effect_are_refused() {
        for params in [
            json!({}),
            json!({"max_error_rate": 1}),
            json!({"max_error_rate": 1.5}),
            json!({"max_error_rate": -0.1}),
            json!({"max_calls": -1}),
            json!({"max_calls": 2.5}),
            json!({"max_errors": "1"}),
        ] {
            assert!(!refused(KIND, &params).is_empty(), "{params}");
        }
    }
}

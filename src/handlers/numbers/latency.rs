//! `latency_budget` and `end_to_end_latency`: limits on the recorded duration of the answer or of the whole
//! conversation.

use schemars::JsonSchema;
use serde::Deserialize;

use super::recorded_metrics::{
    MetricKind, MetricReader, format_number, is_over, score_against_limit,
};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `latency_budget`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct LatencyBudget {
    /// The largest number of milliseconds, limit included.
    #[schemars(extend("exclusiveMinimum" = 0))]
    max_ms: f64,
}

impl EvalType for LatencyBudget {
    const NAME: &'static str = "latency_budget";
    const SUMMARY: &'static str = "The recorded latency is within the budget: `latency_ms` in the transcript's metadata, otherwise in that of the judged assistant message. The score is 1 within the budget, otherwise budget / latency.";
    const EXAMPLE: &'static str = "max_ms: 2000";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        compile_budget(self.max_ms, MetricKind::Latency)
    }
}

/// Params of `end_to_end_latency`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct EndToEndLatency {
    /// The largest number of milliseconds, limit included.
    #[schemars(extend("exclusiveMinimum" = 0))]
    max_ms: f64,
}

impl EvalType for EndToEndLatency {
    const NAME: &'static str = "end_to_end_latency";
    const SUMMARY: &'static str = "All answers together took at most `max_ms`: `end_to_end_latency_ms` or `latency_ms` in the transcript's metadata, otherwise the sum of `latency_ms` over the assistant messages. The score is 1 within the limit, otherwise limit / latency.";
    const EXAMPLE: &'static str = "max_ms: 30000";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        compile_budget(self.max_ms, MetricKind::EndToEnd)
    }
}

fn compile_budget(max: f64, kind: MetricKind) -> Result<CompiledEval, Vec<ParamProblem>> {
    // A limit of 0 or less could never hold.
    if max <= 0.0 {
        let why = format!("must be more than 0 (got {max})");
        return Err(vec![param_problem("/max_ms", why)]);
    }
    Ok(CompiledEval::Check(Box::new(LatencyBudgetCheck {
        max_ms: max,
        kind,
    })))
}

#[derive(Debug)]
struct LatencyBudgetCheck {
    max_ms: f64,
    kind: MetricKind,
}

impl Check for LatencyBudgetCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let source = MetricReader::new(subject);
        let reading = match self.kind {
            // `latency_budget` is about one answer. The end-to-end latency adds up all answers.
            MetricKind::Latency => source.read_judged(self.kind),
            _ => source.read_sum(self.kind),
        };
        let reading = match reading {
            Ok(Some(reading)) => reading,
            // Nothing was answered, so there is no time to compare.
            Ok(None) => {
                return Finding::not_applicable("there is no assistant message to wait for");
            }
            Err(why) => return Finding::check_error(why),
        };
        let (value, max) = (reading.value, self.max_ms);
        let over = is_over(value, max);
        let how = if over {
            format!(
                "{} ms over {}",
                format_number(value - max),
                format_number(max)
            )
        } else {
            format!("within {}", format_number(max))
        };
        let why = format!(
            "{} {} ms, {how} ({})",
            self.kind.name(),
            format_number(value),
            reading.origin
        );
        Finding::new(!over, why).with_score(score_against_limit(value, max))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::handlers::testing::{check_record, refused};
    use crate::model::Outcome::{CheckError, Fail, NotApplicable, Pass};

    fn with(metadata: &Value) -> Value {
        json!({"messages": [{"role": "assistant", "content": "a"}], "metadata": metadata})
    }

    #[test]
    fn at_the_limit_it_passes_and_beyond_it_the_score_falls() {
        for (latency, outcome, score) in [
            (json!(1999), Pass, 1.0),
            (json!(2000), Pass, 1.0),
            (json!(2000.5), Fail, 2000.0 / 2000.5),
            (json!(5000), Fail, 0.4),
            (json!(0), Pass, 1.0),
        ] {
            let found = check_record(
                "latency_budget",
                &json!({"max_ms": 2000}),
                &with(&json!({"latency_ms": latency})),
            );
            assert_eq!(
                (found.outcome, found.score),
                (outcome, Some(score)),
                "{latency}"
            );
        }
        let found = check_record(
            "latency_budget",
            &json!({"max_ms": 2000}),
            &with(&json!({"latency_ms": 2500})),
        );
        assert_eq!(
            found.explanation,
            "latency 2500 ms, 500 ms over 2000 (the transcript's metadata)"
        );
    }

    #[test]
    fn missing_or_mistyped_latency_is_a_check_error() {
        for (metadata, why) in [
            (
                json!({}),
                "there is no latency: no `latency_ms` in the transcript's metadata, nor in that of message 0",
            ),
            (
                json!({"latency_ms": null}),
                "there is no latency: no `latency_ms` in the transcript's metadata, nor in that of message 0",
            ),
            (
                json!({"latency_ms": "200ms"}),
                "latency_ms in the transcript's metadata is \"200ms\", not a number",
            ),
            (
                json!({"latency_ms": -5}),
                "latency_ms in the transcript's metadata is -5: it cannot be negative",
            ),
        ] {
            let found = check_record("latency_budget", &json!({"max_ms": 2000}), &with(&metadata));
            assert_eq!(
                (found.outcome, found.explanation.as_str()),
                (CheckError, why)
            );
            assert_eq!(found.score, None);
        }
        let none = json!({"messages": []});
        assert_eq!(
            check_record("latency_budget", &json!({"max_ms": 1}), &none).outcome,
            NotApplicable
        );
        assert_eq!(
            check_record("end_to_end_latency", &json!({"max_ms": 1}), &none).outcome,
            NotApplicable
        );
    }

    #[test]
    fn latency_is_read_from_the_judged_message() {
        let assistant_message =
            |ms: i32| json!({"role": "assistant", "content": "a", "metadata": {"latency_ms": ms}});
        let record = json!({"messages": [assistant_message(900), assistant_message(400)]});
        let found = check_record("latency_budget", &json!({"max_ms": 500}), &record);
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (Pass, "latency 400 ms, within 500 (message 1)")
        );
        let found = check_record("end_to_end_latency", &json!({"max_ms": 1000}), &record);
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (
                Fail,
                "end-to-end latency 1300 ms, 300 ms over 1000 (2 assistant messages)"
            )
        );
        let partly =
            json!({"messages": [assistant_message(900), {"role": "assistant", "content": "b"}]});
        let found = check_record("end_to_end_latency", &json!({"max_ms": 1000}), &partly);
        assert_eq!(found.outcome, CheckError);
        assert!(
            found.explanation.starts_with(
                "1 of 2 assistant messages (first message 1) has no end-to-end latency"
            ),
            "{}",
            found.explanation
        );
    }

    #[test]
    fn budgets_that_nothing_could_meet_are_refused() {
        for kind in ["latency_budget", "end_to_end_latency"] {
            for params in [
                json!({}),
                json!({"max_ms": -100}),
                json!({"max_ms": 0}),
                json!({"max_ms": "2s"}),
            ] {
                assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
            }
        }
    }
}

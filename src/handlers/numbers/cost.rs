//! `cost_budget` and `token_consumption`: limits on the recorded cost and tokens of the conversation.

use schemars::JsonSchema;
use serde::Deserialize;

use super::recorded_metrics::{
    MetricKind, MetricReader, format_number, is_over, score_against_limit,
};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::NO_ANSWER;
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `cost_budget`: at least one limit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of params are what authors write"
)]
pub(in crate::handlers) struct CostBudget {
    /// The largest cost in USD, limit included.
    #[schemars(range(min = 0))]
    max_cost_usd: Option<f64>,
    /// The largest number of input tokens.
    max_input_tokens: Option<u64>,
    /// The largest number of output tokens.
    max_output_tokens: Option<u64>,
    /// The largest number of tokens in all: as recorded, otherwise input and output together.
    max_total_tokens: Option<u64>,
}

impl EvalType for CostBudget {
    const NAME: &'static str = "cost_budget";
    const SUMMARY: &'static str = "The recorded cost and tokens are within every given limit. They are in the transcript's metadata, otherwise dicta adds up those of the assistant messages. The score is 1 within the limits, otherwise limit / used of the limit that is exceeded most.";
    const EXAMPLE: &'static str = "max_cost_usd: 0.05\nmax_total_tokens: 20000";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        // Token limits are unsigned, so only the cost can be negative.
        if let Some(max) = self.max_cost_usd.filter(|max| *max < 0.0) {
            let why = format!("cannot be negative (got {max})");
            return Err(vec![param_problem("/max_cost_usd", why)]);
        }
        compile_limits([
            (MetricKind::Cost, self.max_cost_usd),
            (MetricKind::InputTokens, self.max_input_tokens.map(|n| n as f64)),
            (MetricKind::OutputTokens, self.max_output_tokens.map(|n| n as f64)),
            (MetricKind::TotalTokens, self.max_total_tokens.map(|n| n as f64)),
        ])
        .ok_or_else(|| {
            vec![param_problem(
                "",
                "it would check nothing: give `max_cost_usd`, `max_input_tokens`, `max_output_tokens` or `max_total_tokens`",
            )]
        })
    }
}

/// Params of `token_consumption`: at least one limit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of params are what authors write"
)]
pub(in crate::handlers) struct TokenConsumption {
    /// The largest number of tokens in all: as recorded, otherwise input and output together.
    max_tokens: Option<u64>,
    /// The largest number of input tokens.
    max_input_tokens: Option<u64>,
    /// The largest number of output tokens.
    max_output_tokens: Option<u64>,
}

impl EvalType for TokenConsumption {
    const NAME: &'static str = "token_consumption";
    const SUMMARY: &'static str = "The recorded tokens are within every given limit. They are in the transcript's metadata, otherwise dicta adds up those of the assistant messages. The score is 1 within the limits, otherwise limit / used of the limit that is exceeded most.";
    const EXAMPLE: &'static str = "max_tokens: 20000";
    const SCORED: bool = true;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("max_total_tokens", "max_tokens"),
        ("max_input", "max_input_tokens"),
        ("max_output", "max_output_tokens"),
    ];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        compile_limits([
            (MetricKind::TotalTokens, self.max_tokens.map(|n| n as f64)),
            (MetricKind::InputTokens, self.max_input_tokens.map(|n| n as f64)),
            (MetricKind::OutputTokens, self.max_output_tokens.map(|n| n as f64)),
        ])
        .ok_or_else(|| {
            vec![param_problem(
                "",
                "it would check nothing: give `max_tokens`, `max_input_tokens` or `max_output_tokens`",
            )]
        })
    }
}

fn compile_limits(
    given: impl IntoIterator<Item = (MetricKind, Option<f64>)>,
) -> Option<CompiledEval> {
    let given = given.into_iter();
    let limits: Vec<UsageLimit> = given
        .filter_map(|(kind, max)| Some(UsageLimit { kind, max: max? }))
        .collect();
    // No limit at all is the caller's problem, because each type names other params.
    (!limits.is_empty()).then(|| CompiledEval::Check(Box::new(UsageLimitsCheck(limits))))
}

/// The largest allowed value of a metric.
#[derive(Debug)]
struct UsageLimit {
    kind: MetricKind,
    max: f64,
}

#[derive(Debug)]
struct UsageLimitsCheck(Vec<UsageLimit>);

impl Check for UsageLimitsCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let source = MetricReader::new(subject);
        let (mut within, mut over) = (Vec::new(), Vec::new());
        let mut score = 1.0_f64;
        let mut is_unrecorded = false;
        // Every limit is checked, also after one is exceeded, because the explanation lists all.
        for UsageLimit { kind, max } in &self.0 {
            let reading = match source.read_sum(*kind) {
                Ok(Some(reading)) => reading,
                Ok(None) => {
                    is_unrecorded = true;
                    continue;
                }
                Err(why) => return Finding::check_error(why),
            };
            // The smallest score: the limit that is exceeded most.
            score = score.min(score_against_limit(reading.value, *max));
            let unit = |x: f64| match kind {
                MetricKind::Cost => format!("${}", format_number(x)),
                _ => format_number(x),
            };
            let (used, limit, from) = (unit(reading.value), unit(*max), &reading.origin);
            let name = kind.name();
            if is_over(reading.value, *max) {
                let by = unit(reading.value - max);
                over.push(format!("{name} {used}, {by} over {limit} ({from})"));
            } else {
                within.push(format!("{name} {used}, within {limit} ({from})"));
            }
        }
        let passed = over.is_empty();
        // A limit that is exceeded is certain; a number that is missing is not a pass.
        if passed && is_unrecorded {
            return Finding::not_applicable(NO_ANSWER);
        }
        // Exceeded limits first, because they are the reason for a fail.
        over.append(&mut within);
        Finding::new(passed, over.join("; ")).with_score(score)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::handlers::testing::{check_record, loaded, outcome_and_why, refused};
    use crate::model::Outcome::{CheckError, Fail, NotApplicable, Pass};

    fn with(metadata: &Value) -> Value {
        json!({"messages": [{"role": "assistant", "content": "a"}], "metadata": metadata})
    }

    #[test]
    fn at_the_limit_it_passes_with_full_score() {
        let params = json!({"max_cost_usd": 0.3, "max_total_tokens": 100});
        for (metadata, outcome, score) in [
            (json!({"cost_usd": 0.3, "usage": {"total": 100}}), Pass, 1.0),
            (json!({"cost": 0.6, "tokens": 100}), Fail, 0.5),
            (json!({"cost": 0.6, "tokens": 400}), Fail, 0.25),
            (
                json!({"cost_usd": 0, "usage": {"prompt_tokens": 60, "completion_tokens": 40}}),
                Pass,
                1.0,
            ),
            (
                json!({"cost_usd": 0, "tokens": {"input": 60, "output": 41}}),
                Fail,
                100.0 / 101.0,
            ),
        ] {
            let found = check_record("cost_budget", &params, &with(&metadata));
            assert_eq!(
                (found.outcome, found.score),
                (outcome, Some(score)),
                "{metadata}"
            );
        }
        let found = check_record(
            "cost_budget",
            &params,
            &with(&json!({"cost": 0.35, "tokens": 7})),
        );
        assert_eq!(
            found.explanation,
            "cost $0.35, $0.05 over $0.3 (the transcript's metadata); all tokens 7, within 100 (the transcript's metadata)"
        );
        let free = check_record(
            "cost_budget",
            &json!({"max_cost_usd": 0}),
            &with(&json!({"cost": 0.01})),
        );
        assert_eq!((free.outcome, free.score), (Fail, Some(0.0)));
    }

    #[test]
    fn costs_of_messages_are_summed_or_missing_ones_reported() {
        let assistant_message =
            |metadata: Value| json!({"role": "assistant", "content": "a", "metadata": metadata});
        let params = json!({"max_cost_usd": 0.3});
        let sum = json!({"messages": [assistant_message(json!({"cost": 0.1})), assistant_message(json!({"cost_usd": 0.2}))]});
        assert_eq!(
            outcome_and_why("cost_budget", &params, &sum),
            (
                Pass,
                "cost $0.3, within $0.3 (2 assistant messages)".to_owned()
            )
        );
        let partly = json!({"messages": [assistant_message(json!({"cost": 0.1})), assistant_message(json!({}))]});
        let (outcome, why) = outcome_and_why("cost_budget", &params, &partly);
        assert_eq!(outcome, CheckError);
        assert!(
            why.starts_with("1 of 2 assistant messages (first message 1) has no cost"),
            "{why}"
        );
        let mistyped = json!({"messages": [assistant_message(json!({"cost": "0.1 USD"}))]});
        assert_eq!(
            outcome_and_why("cost_budget", &params, &mistyped),
            (
                CheckError,
                "cost in message 0 is \"0.1 USD\", not a number".to_owned()
            )
        );
        let none = outcome_and_why("cost_budget", &params, &json!({"messages": []}));
        assert_eq!(
            none,
            (NotApplicable, "there is no assistant message".to_owned())
        );
        let limits = json!({"max_cost_usd": 0.3, "max_total_tokens": 10});
        for (metadata, outcome) in [
            (json!({"cost_usd": 0.2}), NotApplicable),
            (json!({"cost_usd": 0.4}), Fail),
            (json!({"cost_usd": 0.2, "tokens": 10}), Pass),
        ] {
            let record = json!({"messages": [], "metadata": metadata});
            let found = outcome_and_why("cost_budget", &limits, &record);
            assert_eq!(found.0, outcome, "{}", found.1);
        }
    }

    #[test]
    fn token_counts_must_be_whole_and_complete() {
        let params = json!({"max_tokens": 10});
        for (metadata, outcome) in [
            (json!({"tokens": 10}), Pass),
            (json!({"usage": {"total_tokens": 11}}), Fail),
            (json!({"input_tokens": 5, "output_tokens": 5}), Pass),
            (json!({"usage": {"input_tokens": 5}}), CheckError),
            (json!({"tokens": 1.5}), CheckError),
            (json!({"tokens": [1]}), CheckError),
            (json!({"tokens": -1}), CheckError),
        ] {
            let found = check_record("token_consumption", &params, &with(&metadata));
            assert_eq!(found.outcome, outcome, "{metadata}: {}", found.explanation);
        }
        let record = with(&json!({"usage": {"input": 5, "output": 9}}));
        let found = loaded(
            "token_consumption",
            &json!({"max_input": 5, "max_output": 8}),
            &record,
        );
        assert_eq!(
            found.explanation,
            "output tokens 9, 1 over 8 (the transcript's metadata); input tokens 5, within 5 (the transcript's metadata)"
        );
    }

    #[test]
    fn a_budget_without_a_limit_is_refused() {
        for (kind, params) in [
            ("cost_budget", json!({})),
            ("cost_budget", json!({"max_cost_usd": -1})),
            ("cost_budget", json!({"max_tokens": 1})),
            ("cost_budget", json!({"max_input_tokens": 1.5})),
            ("token_consumption", json!({})),
            ("token_consumption", json!({"max_cost_usd": 1})),
        ] {
            assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
        }
    }
}

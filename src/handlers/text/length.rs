//! `max_length`, `min_length`: the length of the output in characters (newer versions of `PromptKit` count bytes).

use schemars::JsonSchema;
use serde::Deserialize;

use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// Params of `max_length`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct MaxLength {
    /// The largest number of characters.
    max: Option<u64>,
    /// Always refused: only a model's own tokenizer can count tokens. Write `max`, or use `token_consumption`.
    max_tokens: Option<u64>,
}

impl EvalType for MaxLength {
    const NAME: &'static str = "max_length";
    const SUMMARY: &'static str = "The output has at most `max` characters. The score is 1, or the limit divided by the length.";
    const EXAMPLE: &'static str = "max: 700";
    const SCORED: bool = true;
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("length")];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] =
        &[("max_characters", "max"), ("max_chars", "max")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        // Refused with a help text instead of as an unknown param.
        if self.max_tokens.is_some() {
            let mut why = param_problem(
                "/max_tokens",
                "cannot be checked: only a model's own tokenizer can count tokens",
            );
            why.help = Some(
                "give `max` in characters, or check recorded counts with token_consumption"
                    .to_owned(),
            );
            return Err(vec![why]);
        }
        let most = self
            .max
            .ok_or_else(|| vec![param_problem("", "`max` is missing")])?;
        Ok(CompiledEval::Check(Box::new(LengthCheck {
            // `min_length` is another type, so there is no lower bound here.
            min: 0,
            max: most,
        })))
    }
}

/// Params of `min_length`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct MinLength {
    /// The smallest number of characters.
    #[schemars(range(min = 1))]
    min: u64,
}

impl EvalType for MinLength {
    const NAME: &'static str = "min_length";
    const SUMMARY: &'static str = "The output has at least `min` characters. The score is 1, or the length divided by the minimum.";
    const EXAMPLE: &'static str = "min: 20";
    const SCORED: bool = true;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] =
        &[("min_characters", "min"), ("min_chars", "min")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        if self.min == 0 {
            let why = "must be 1 or more: every text has 0 characters";
            return Err(vec![param_problem("/min", why)]);
        }
        Ok(CompiledEval::Check(Box::new(LengthCheck {
            min: self.min,
            max: u64::MAX,
        })))
    }
}

/// The length in characters, bounds included.
#[derive(Debug)]
struct LengthCheck {
    min: u64,
    max: u64,
}

impl Check for LengthCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        // Characters and not bytes, so that the limit is the same in every language.
        let length = output.text.chars().count() as u64;
        if length > self.max {
            let (most, over) = (self.max, length - self.max);
            // `nth` needs a `usize`; a limit above it can never be exceeded.
            let beyond = usize::try_from(most)
                .ok()
                .and_then(|most| output.text.char_indices().nth(most));
            let mark =
                beyond.and_then(|(from, _)| subject.text_span(output, &(from..output.text.len())));
            return Finding::new(
                false,
                format!("{}, {over} more than {most}", format_characters(length)),
            )
            .with_score(most as f64 / length as f64)
            .with_spans(mark);
        }
        if length < self.min {
            // The text is too short, so there is no location to mark.
            let short = self.min - length;
            let why = format!(
                "{}, {short} fewer than {}",
                format_characters(length),
                self.min
            );
            return Finding::new(false, why).with_score(length as f64 / self.min as f64);
        }
        Finding::new(true, format_characters(length)).with_score(1.0)
    }
}

fn format_characters(length: u64) -> String {
    pluralize(length, "character")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::handlers::testing::{loaded, loads, on_output, outcome_and_why, passes, refused};
    use crate::model::Outcome::{Fail, Pass};

    #[test]
    fn length_counts_characters_and_bounds_are_inclusive() {
        for (kind, params, output, passed) in [
            ("max_length", json!({"max": 3}), "日本語", true),
            ("max_length", json!({"max": 3}), "日本語!", false),
            ("max_length", json!({"max": 0}), "", true),
            ("min_length", json!({"min": 3}), "日本語", true),
            ("min_length", json!({"min": 4}), "日本語", false),
        ] {
            assert_eq!(
                passes(kind, &params, output),
                Some(passed),
                "{kind} {params} {output}"
            );
        }
        assert_eq!(
            on_output("max_length", &json!({"max": 3}), "abcde").explanation,
            "5 characters, 2 more than 3"
        );
        assert_eq!(
            on_output("min_length", &json!({"min": 7}), "abcde").explanation,
            "5 characters, 2 fewer than 7"
        );
        let none = json!({"messages": []});
        assert_eq!(
            outcome_and_why("max_length", &json!({"max": 3}), &none).0,
            Pass
        );
        assert_eq!(
            outcome_and_why("min_length", &json!({"min": 3}), &none).0,
            Fail
        );
    }

    #[test]
    fn missing_or_unusable_length_limit_is_refused() {
        assert_eq!(
            refused("max_length", &json!({})),
            [(String::new(), "`max` is missing".to_owned())]
        );
        assert!(!refused("min_length", &json!({})).is_empty());
        assert!(!refused("min_length", &json!({"min": 0})).is_empty());
        let tokens = refused("max_length", &json!({"max_tokens": 5}));
        assert!(
            tokens[0].1.contains("only a model's own tokenizer"),
            "{tokens:?}"
        );
    }

    #[test]
    fn aliases_of_length_types_compile_to_the_same_check() {
        let record = json!({"messages": [{"role": "assistant", "content": "abcd"}]});
        for (kind, params, passed) in [
            ("length", json!({"max_characters": 4}), true),
            ("max_length", json!({"max_chars": 3}), false),
            ("min_length", json!({"min_chars": 4}), true),
            ("min_length", json!({"min_characters": 5}), false),
        ] {
            let found = loaded(kind, &params, &record);
            assert_eq!(found.outcome.passed(), Some(passed), "{kind} {params}");
        }
        let twice = loads("max_length", &json!({"max": 1, "max_chars": 2})).expect_err("twice");
        assert!(
            twice[0].contains("`max_chars` says the same as `max`"),
            "{twice:?}"
        );
    }

    proptest! {
        // Each case builds a registry.
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn bounds_are_inclusive_and_scores_are_shares(text in "\\PC{0,40}", limit in 1_u64..40) {
            let length = text.chars().count() as u64;
            for (kind, name, passed) in [("max_length", "max", length <= limit), ("min_length", "min", length >= limit)] {
                let found = on_output(kind, &json!({name: limit}), &text);
                prop_assert_eq!(found.outcome.passed(), Some(passed));
                let score = found.score.expect("scored");
                prop_assert!((0.0..=1.0).contains(&score) && (score > 0.999) == passed, "{}", score);
            }
        }
    }
}

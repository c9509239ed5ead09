//! `sentence_count`: the number of sentences in the output, as a reader would count them.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::grounding::split_sentences;
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// Params of `sentence_count`: at least one of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct SentenceCount {
    /// The smallest number of sentences.
    #[schemars(range(min = 1))]
    min: Option<usize>,
    /// The largest number of sentences.
    max: Option<usize>,
}

impl EvalType for SentenceCount {
    const NAME: &'static str = "sentence_count";
    const SUMMARY: &'static str = "The output has between `min` and `max` sentences. A heading or list item without an end mark counts as one. Code blocks do not count, and `e.g.` and `Dr.` do not end a sentence.";
    const EXAMPLE: &'static str = "min: 1\nmax: 3";
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("max_sentences")];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] =
        &[("min_sentences", "min"), ("max_sentences", "max")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        match (self.min, self.max) {
            (None, None) => Err(vec![param_problem(
                "",
                "`min` or `max` is missing: it would check nothing",
            )]),
            // A minimum of 0 always holds.
            (Some(0), _) => Err(vec![param_problem(
                "/min",
                "must be 1 or more: every text has 0 sentences",
            )]),
            (Some(min), Some(max)) if min > max => Err(vec![param_problem(
                "/min",
                format!("({min}) is above max ({max}): nothing could pass"),
            )]),
            (min, max) => Ok(CompiledEval::Check(Box::new(SentenceCountCheck {
                min,
                max,
            }))),
        }
    }
}

#[derive(Debug)]
struct SentenceCountCheck {
    min: Option<usize>,
    max: Option<usize>,
}

impl Check for SentenceCountCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        // The judge `rules` splits sentences in the same way.
        let found = split_sentences(&output.text);
        let count = found.len();
        let counted = match count {
            1 => "1 sentence".to_owned(),
            count => format!("{count} sentences"),
        };
        // Too few sentences have no location to mark.
        if let Some(min) = self.min.filter(|min| count < *min) {
            return Finding::new(
                false,
                format!("{counted}, {} fewer than {min}", min - count),
            );
        }
        if let Some(max) = self.max.filter(|max| count > *max) {
            // Sentences are slices of the output, so their addresses give their positions.
            let base = output.text.as_ptr() as usize;
            let beyond = found.iter().skip(max).take(Finding::MAX_SPANS);
            let marks: Vec<_> = beyond
                .filter_map(|sentence| {
                    let from = sentence.as_ptr() as usize - base;
                    subject.text_span(output, &(from..from + sentence.len()))
                })
                .collect();
            let why = format!("{counted}, {} more than {max}", count - max);
            return Finding::new(false, why).with_spans(marks);
        }
        Finding::new(true, counted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::handlers::testing::{loaded, on_output, outcome_and_why, passes, refused};
    use crate::model::Outcome::{Fail, Pass};

    #[test]
    fn bounds_are_inclusive_and_extra_sentences_are_marked() {
        let text = "Hello Dr. Smith. It is done! Anything else?";
        for (params, passed) in [
            (json!({"max": 3}), true),
            (json!({"max": 2}), false),
            (json!({"min": 3}), true),
            (json!({"min": 4}), false),
            (json!({"min": 3, "max": 3}), true),
        ] {
            assert_eq!(
                passes("sentence_count", &params, text),
                Some(passed),
                "{params}"
            );
        }
        let found = on_output("sentence_count", &json!({"max": 1}), text);
        assert_eq!(found.explanation, "3 sentences, 2 more than 1");
        let marked: Vec<&str> = found.spans.iter().map(|m| &text[m.bytes.clone()]).collect();
        assert_eq!(marked, ["It is done!", "Anything else?"]);
        let none = json!({"messages": []});
        assert_eq!(
            outcome_and_why("sentence_count", &json!({"min": 1}), &none),
            (Fail, "0 sentences, 1 fewer than 1".to_owned())
        );
        assert_eq!(
            outcome_and_why("sentence_count", &json!({"max": 0}), &none).0,
            Pass
        );
    }

    #[test]
    fn max_sentences_alias_sets_the_maximum() {
        let record = json!({"messages": [{"role": "assistant", "content": "One. Two."}]});
        let found = loaded("max_sentences", &json!({"max_sentences": 1}), &record);
        assert_eq!(found.outcome, Fail);
    }

    #[test]
    fn bounds_that_check_nothing_are_refused() {
        for params in [
            json!({}),
            json!({"min": 0}),
            json!({"min": 0, "max": 2}),
            json!({"min": 3, "max": 2}),
            json!({"max": -1}),
            json!({"max": "2"}),
        ] {
            assert!(!refused("sentence_count", &params).is_empty(), "{params}");
        }
    }
}

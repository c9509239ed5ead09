//! `exact_match`: the output equals the expected text or JSON value.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::json::parse_output;
use super::json_extraction::JsonExtraction;
use super::lowercase::to_lowercase;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{NO_ANSWER, QuotedText};
use crate::handlers::{Check, CompiledEval, Finding, MessageText, Subject};
use crate::model::{escape_pointer_step, pluralize};
use crate::rubric::{ParamProblem, json_equal};

/// Params of `exact_match`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ExactMatch {
    /// A text: the output must equal it exactly. Any other value: the output must be JSON with this value. Numbers
    /// compare by value (10 equals 10.0), and the order of keys does not matter. From the transcript: `{ from:
    /// metadata.expected }`.
    expected: Value,
    /// `true`: case does not matter. Only for a text.
    #[serde(default)]
    ignore_case: bool,
    /// `true`: ignores white space at both ends. Only for a text: around JSON it is always ignored.
    #[serde(default)]
    trim: bool,
}

impl EvalType for ExactMatch {
    const NAME: &'static str = "exact_match";
    const SUMMARY: &'static str =
        "The output equals the expected value: a text exactly, any other value as JSON.";
    const EXAMPLE: &'static str = "expected: Yes.\ntrim: true";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let expected = match self.expected {
            Value::String(text) => text,
            Value::Null => {
                // A missing metadata value must not become `null` and match by accident.
                let why = "must not be null: only the output `null` would match";
                return Err(vec![param_problem("/expected", why)]);
            }
            value => {
                // Refused and not ignored, because the author expects an effect.
                let given = [("ignore_case", self.ignore_case), ("trim", self.trim)];
                let unused: Vec<ParamProblem> = given
                    .into_iter()
                    .filter(|(_, given)| *given)
                    .map(|(name, _)| {
                        param_problem(
                            format!("/{name}"),
                            "has no effect: `expected` is not a text",
                        )
                    })
                    .collect();
                if !unused.is_empty() {
                    return Err(unused);
                }
                return Ok(CompiledEval::Check(Box::new(ExactJsonCheck(value))));
            }
        };
        let mut text = ExactTextCheck {
            expected,
            ignore_case: self.ignore_case,
            trim: self.trim,
        };
        // The expected text is normalized once here; the output for each transcript.
        text.expected = text.normalize(&text.expected).into_owned();
        Ok(CompiledEval::Check(Box::new(text)))
    }
}

#[derive(Debug)]
struct ExactTextCheck {
    expected: String,
    ignore_case: bool,
    trim: bool,
}

impl ExactTextCheck {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = if self.trim { text.trim() } else { text };
        if self.ignore_case {
            to_lowercase(text)
        } else {
            Cow::Borrowed(text)
        }
    }
}

impl Check for ExactTextCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        let is = self.normalize(&output.text);
        if is == self.expected {
            return Finding::new(true, "the output is the expected text");
        }
        // After the comparison: an empty expected text equals a missing output.
        if output.message.is_none() {
            return Finding::new(false, NO_ANSWER);
        }
        // Failed: find the first character that differs.
        let same = is
            .chars()
            .zip(self.expected.chars())
            .take_while(|(a, b)| a == b)
            .count();
        let rest = |text: &str| {
            let from = text
                .char_indices()
                .nth(same)
                .map_or(text.len(), |(at, _)| at);
            match &text[from..] {
                "" => "the end".to_owned(),
                rest => QuotedText(rest).to_string(),
            }
        };
        let why = format!(
            "differs at character {}: {} instead of {}",
            same + 1,
            rest(&is),
            rest(&self.expected)
        );
        Finding::new(false, why).with_spans(self.difference_span(subject, output, same))
    }
}

impl ExactTextCheck {
    /// Returns the location of the output from the first character that differs.
    fn difference_span(
        &self,
        subject: &Subject<'_>,
        output: &MessageText<'_>,
        same: usize,
    ) -> Option<crate::handlers::TranscriptSpan> {
        let text = &output.text;
        // The normalized text lacks the white space at the start, so the position moves by its length.
        let trimmed = text.len() - text.trim_start().len();
        let from = if self.trim { trimmed } else { 0 };
        // Lower-casing keeps the number of characters.
        let (at, _) = text[from..].char_indices().nth(same)?;
        subject.text_span(output, &(from + at..text.len()))
    }
}

#[derive(Debug)]
struct ExactJsonCheck(Value);

impl Check for ExactJsonCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        match parse_output(subject, JsonExtraction::default()) {
            Err(finding) => finding,
            Ok((value, _)) => match find_difference(&value, &self.0, &mut String::new()) {
                None => Finding::new(true, "the output is the expected JSON"),
                Some(why) => Finding::new(false, why),
            },
        }
    }
}

/// Returns the first difference with its place. Recursion is as deep as the JSON value, which its parser limits.
fn find_difference(is: &Value, wanted: &Value, at: &mut String) -> Option<String> {
    let short = |value: &Value| QuotedText(&value.to_string()).to_string();
    let place = |at: &str| match at {
        "" => String::new(),
        at => format!("{at}: "),
    };
    let before = at.len();
    match (is, wanted) {
        (Value::Object(is), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                at.push('/');
                at.push_str(&escape_pointer_step(key));
                let why = match is.get(key) {
                    None => Some(format!("{at}: missing")),
                    Some(is) => find_difference(is, wanted, at),
                };
                if why.is_some() {
                    return why;
                }
                at.truncate(before);
            }
            // All expected keys are equal, so only a further key can differ.
            let extra = is.keys().find(|key| !wanted.contains_key(*key))?;
            Some(format!(
                "{}{} is not expected",
                place(at),
                QuotedText(extra)
            ))
        }
        (Value::Array(is), Value::Array(wanted)) if is.len() == wanted.len() => {
            for (ix, (is, wanted)) in is.iter().zip(wanted).enumerate() {
                at.push('/');
                at.push_str(&ix.to_string());
                let why = find_difference(is, wanted, at);
                if why.is_some() {
                    return why;
                }
                at.truncate(before);
            }
            None
        }
        // Lists of different lengths: the number of items explains more than the first difference.
        (Value::Array(is), Value::Array(wanted)) => Some(format!(
            "{}{} instead of {}",
            place(at),
            pluralize(is.len(), "item"),
            wanted.len()
        )),
        // Numbers compare by value, so equal values can differ in text.
        _ if json_equal(is, wanted) => None,
        _ => Some(format!(
            "{}{} instead of {}",
            place(at),
            short(is),
            short(wanted)
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::handlers::testing::{loaded, on_output, outcome_and_why, passes, refused};
    use crate::model::Outcome::{CheckError, Fail, Pass};

    #[test]
    fn texts_compare_exactly() {
        for (params, output, passed) in [
            (json!({"expected": "Yes."}), "Yes.", true),
            (json!({"expected": "Yes."}), "Yes. ", false),
            (json!({"expected": "Yes."}), "yes.", false),
            (json!({"expected": " Yes.", "trim": true}), "Yes.\n", true),
            (
                json!({"expected": "Yes.", "ignore_case": true}),
                "YES.",
                true,
            ),
            (
                json!({"expected": "istanbul", "ignore_case": true}),
                "İSTANBUL",
                true,
            ),
            (json!({"expected": ""}), "", true),
            (json!({"expected": "10"}), "10.0", false),
        ] {
            assert_eq!(
                passes("exact_match", &params, output),
                Some(passed),
                "{params} {output:?}"
            );
        }
        let found = on_output(
            "exact_match",
            &json!({"expected": "Paris, France"}),
            "Paris, Texas",
        );
        assert_eq!(
            found.explanation,
            r#"differs at character 8: "Texas" instead of "France""#
        );
        assert_eq!(found.spans[0].bytes, 7..12);
        let short = on_output("exact_match", &json!({"expected": "Paris"}), "Pa");
        assert_eq!(
            short.explanation,
            r#"differs at character 3: the end instead of "ris""#
        );
        let none = json!({"messages": []});
        assert_eq!(
            outcome_and_why("exact_match", &json!({"expected": "x"}), &none).0,
            Fail
        );
        assert_eq!(
            outcome_and_why("exact_match", &json!({"expected": ""}), &none).0,
            Pass
        );
    }

    #[test]
    fn values_other_than_texts_compare_as_json() {
        for (expected, output, passed) in [
            (
                json!({"a": [1, {"b": 2}]}),
                " {\"a\": [1.0, {\"b\": 2}]} ",
                true,
            ),
            (json!([1, 2]), "[2, 1]", false),
            (json!(10), "10.0", true),
            (json!(10), "\"10\"", false),
            (json!(true), "true", true),
            (json!({"a": 1}), "a: 1", false),
        ] {
            assert_eq!(
                passes("exact_match", &json!({"expected": expected}), output),
                Some(passed),
                "{output}"
            );
        }
        for (output, why) in [
            (r#"{"a": [1, {"b": 3}]}"#, r#"/a/1/b: "3" instead of "2""#),
            (r#"{"a": [1]}"#, "/a: 1 item instead of 2"),
            (r#"{"a": [1, {}]}"#, "/a/1/b: missing"),
            (r#"{"a": [1, {"b": 2}], "c": 0}"#, r#""c" is not expected"#),
        ] {
            let found = on_output(
                "exact_match",
                &json!({"expected": {"a": [1, {"b": 2}]}}),
                output,
            );
            assert_eq!((found.outcome, found.explanation.as_str()), (Fail, why));
        }
    }

    #[test]
    fn expected_value_can_come_from_the_transcript() {
        let from = json!({"expected": {"from": "metadata.expected"}});
        let with = |metadata: serde_json::Value| {
            let record =
                json!({"messages": [{"role": "assistant", "content": "42"}], "metadata": metadata});
            loaded("exact_match", &from, &record).outcome
        };
        assert_eq!(with(json!({"expected": 42})), Pass);
        assert_eq!(with(json!({"expected": "42"})), Pass);
        assert_eq!(with(json!({"expected": [42]})), Fail);
        assert_eq!(with(json!({})), CheckError);
    }

    #[test]
    fn params_without_effect_are_refused() {
        for params in [
            json!({}),
            json!({"expected": null}),
            json!({"expected": 1, "trim": true}),
            json!({"expected": {}, "ignore_case": true}),
        ] {
            assert!(!refused("exact_match", &params).is_empty(), "{params}");
        }
    }
}

//! `json_valid` and `json_schema`: the output as JSON. Strict by default: no code fence, no byte order mark, nothing
//! around it.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::json_extraction::{JsonExtraction, check_syntax};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{TextLocation, format_list};
use crate::handlers::subject::CheckCacheKey;
use crate::handlers::{Check, CompiledEval, Finding, MessageText, Subject};
use crate::rubric::{EvalTypeAlias, ParamProblem};
use crate::schema;

/// Params of `json_valid`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct JsonValid {
    /// `true`: the JSON may be in a code block; the first block without a language or with `json` counts.
    #[serde(default)]
    allow_wrapped: bool,
    /// `true`: the JSON may be surrounded by other text; the first balanced object counts, otherwise the first list.
    #[serde(default)]
    extract_json: bool,
}

impl EvalType for JsonValid {
    const NAME: &'static str = "json_valid";
    const SUMMARY: &'static str = "The output is one JSON value and nothing else. Numbers must fit a double. Code fences count as other text unless `allow_wrapped` is true.";
    const EXAMPLE: &'static str = "allow_wrapped: true";
    const ALIASES: &'static [EvalTypeAlias] = &[
        EvalTypeAlias::new("is_valid_json"),
        EvalTypeAlias::new("valid_json"),
    ];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        Ok(CompiledEval::Check(Box::new(JsonValidCheck(
            JsonExtraction {
                code_block: self.allow_wrapped,
                embedded: self.extract_json,
            },
        ))))
    }
}

/// Params of `json_schema`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct JsonSchemaEval {
    /// A JSON Schema. Its draft is the one that `$schema` names, otherwise 2020-12. Formats are checked. It may refer
    /// to itself, but not to a file or an address. The empty schema accepts any JSON.
    schema: Map<String, Value>,
    /// `true`: the JSON may be in a code block; the first block without a language or with `json` counts.
    #[serde(default)]
    allow_wrapped: bool,
    /// `true`: the JSON may be surrounded by other text; the first balanced object counts, otherwise the first list.
    #[serde(default)]
    extract_json: bool,
}

impl EvalType for JsonSchemaEval {
    const NAME: &'static str = "json_schema";
    const SUMMARY: &'static str = "The output is JSON that is valid under the schema. Code fences count as other text unless `allow_wrapped` is true.";
    const EXAMPLE: &'static str = "schema:\n  type: object\n  required: [status]";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        // The schema compiles at load, so that a broken schema is a problem of the rubric.
        schema::CompiledSchema::compile(&Value::Object(self.schema))
            .map(|schema| {
                let unwrap = JsonExtraction {
                    code_block: self.allow_wrapped,
                    embedded: self.extract_json,
                };
                CompiledEval::Check(Box::new(JsonSchemaCheck { schema, unwrap }))
            })
            .map_err(|why| vec![param_problem("/schema", format!("does not compile: {why}"))])
    }
}

#[derive(Debug)]
struct JsonValidCheck(JsonExtraction);

#[derive(Debug)]
struct JsonSchemaCheck {
    schema: schema::CompiledSchema,
    unwrap: JsonExtraction,
}

impl Check for JsonValidCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        let range = self.0.find_range(&output.text);
        match check_syntax(&output.text[range.clone()]) {
            // The range is the whole output unless an option allows a part of it.
            Ok(()) if range.len() == output.text.len() => Finding::new(true, "the output is JSON"),
            Ok(()) => {
                let place = TextLocation(output.message);
                Finding::new(true, format!("the output contains JSON{place}"))
                    .with_spans(subject.text_span(output, &range))
            }
            Err(why) => Finding::new(false, explain_not_json(output, &range, &why)),
        }
    }
}

/// The reason why a text has no JSON value.
#[derive(Debug, Clone)]
enum JsonFault {
    /// The text is JSON by its grammar, but no value represents it: a lone surrogate, very deep.
    NotRepresentable(Rc<str>),
    /// The text is not JSON.
    Invalid(Rc<str>),
}

/// The last output that a check read as JSON. Several checks of a rubric often read the same one.
#[derive(Default)]
struct LastOutput(RefCell<Option<ParsedMessage>>);

/// The text of a message, read as JSON.
struct ParsedMessage {
    message: Option<usize>,
    json: Result<Rc<Value>, JsonFault>,
}

fn parse_json(text: &str) -> Result<Rc<Value>, JsonFault> {
    serde_json::from_str(text).map(Rc::new).map_err(|error| {
        let why = error.to_string().into();
        match check_syntax(text) {
            Ok(()) => JsonFault::NotRepresentable(why),
            Err(_) => JsonFault::Invalid(why),
        }
    })
}

/// Returns the output as JSON, and its byte range. The error is the finding of the eval: a failure if it is not JSON.
/// It is an error if dicta cannot represent the JSON (a lone surrogate, very deep).
pub(super) fn parse_output(
    subject: &Subject<'_>,
    unwrap: JsonExtraction,
) -> Result<(Rc<Value>, Range<usize>), Finding> {
    let output = subject.output();
    let range = unwrap.find_range(&output.text);
    let json = if range.len() == output.text.len() {
        let last = subject.check_cache::<LastOutput>(&CheckCacheKey::shared());
        let mut last = last.0.borrow_mut();
        // One output is kept: a value takes several times the memory of its text.
        let known = last.take_if(|known| known.message == output.message);
        let known = known.unwrap_or_else(|| ParsedMessage {
            message: output.message,
            json: parse_json(&output.text),
        });
        last.insert(known).json.clone()
    } else {
        parse_json(&output.text[range.clone()])
    };
    match json {
        Ok(value) => Ok((value, range)),
        Err(JsonFault::NotRepresentable(why)) => Err(Finding::check_error(format!(
            "the output is JSON that cannot be checked: {why}"
        ))),
        Err(JsonFault::Invalid(why)) => {
            Err(Finding::new(false, explain_not_json(output, &range, &why)))
        }
    }
}

impl Check for JsonSchemaCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let (value, _) = match parse_output(subject, self.unwrap) {
            Ok(json) => json,
            Err(finding) => return finding,
        };
        // The cost first: a hostile value could make the validation very slow.
        if let Err(why) = self.schema.check_cost(&value) {
            return Finding::check_error(format!("the output cannot be checked: it is {why}"));
        }
        // `is_valid` stops at the first error and is much faster than listing all errors.
        if self.schema.is_valid(&value) {
            return Finding::new(true, "the output is valid under the schema");
        }
        let errors = self.schema.errors(&value);
        let listed = errors
            .iter()
            .map(|(pointer, message)| match pointer.as_str() {
                "" => message.clone(),
                pointer => format!("{pointer}: {message}"),
            });
        Finding::new(false, format_list(listed))
    }
}

fn explain_not_json(output: &MessageText<'_>, range: &Range<usize>, why: &str) -> String {
    let text = output.text.trim_start();
    let hint = match output.message {
        None => ": there is no assistant message",
        Some(_) if text.is_empty() => ": the output is empty",
        // The fence is the usual reason, so the explanation names it and not a syntax error.
        Some(_) if range.len() == output.text.len() && text.starts_with("```") => {
            ": it is in a code fence"
        }
        Some(_) => return format!("not JSON: {why}"),
    };
    format!("not JSON{hint}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handlers::testing::{on_output, outcome_and_why, passes, refused, transcript};
    use crate::model::Outcome::{CheckError, Fail};

    fn schema() -> serde_json::Value {
        json!({"schema": {"type": "object", "required": ["status", "total"], "properties": {
            "status": {"enum": ["resolved", "pending"]}, "total": {"type": "number", "minimum": 0}}}})
    }

    #[test]
    fn json_valid_accepts_any_value_without_surrounding_text() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for text in [
            "42",
            "null",
            "\"hi\"",
            " {\"a\": 1}\n",
            r#""\ud800""#,
            r#"{"a":1,"a":2}"#,
            "1e308",
            "[\"1e999\\\"\"]",
            &deep,
        ] {
            assert_eq!(passes("json_valid", &json!({}), text), Some(true), "{text}");
        }
        let odd = [
            "",
            "1e999",
            "[1, -1e400]",
            "NaN",
            "[1,]",
            "{'a':1}",
            "\u{feff}1",
            "\u{a0}1",
            "```json\n1\n```",
            "1 2",
            "{\"a\":\"tab\there\"}",
        ];
        for text in odd {
            assert_eq!(
                passes("json_valid", &json!({}), text),
                Some(false),
                "{text}"
            );
        }
        let fenced = on_output("json_valid", &json!({}), "```json\n1\n```");
        assert_eq!(fenced.explanation, "not JSON: it is in a code fence");
        assert_eq!(
            outcome_and_why("json_valid", &json!({}), &json!({"messages": []})),
            (Fail, "not JSON: there is no assistant message".to_owned())
        );
        assert!(
            !refused("json_valid", &json!({"strict": true})).is_empty(),
            "no param is ignored"
        );
    }

    #[test]
    fn json_can_be_extracted_from_a_text() {
        let text = "Sure:\n```json\n{\"a\": 1}\n```\nor {\"a\": \"x\"} or [1,]";
        for (kind, params, passed) in [
            ("json_valid", json!({}), false),
            ("json_valid", json!({"allow_wrapped": true}), true),
            ("json_valid", json!({"extract_json": true}), true),
            (
                "json_schema",
                json!({"schema": {"properties": {"a": {"type": "integer"}}}, "allow_wrapped": true}),
                true,
            ),
            (
                "json_schema",
                json!({"schema": {"properties": {"a": {"type": "string"}}}, "extract_json": true}),
                false,
            ),
        ] {
            assert_eq!(passes(kind, &params, text), Some(passed), "{kind} {params}");
        }
        let found = on_output(
            "json_valid",
            &json!({"extract_json": true}),
            "so {\"a\":1}.",
        );
        assert_eq!(found.explanation, "the output contains JSON in message 1");
        assert_eq!(found.spans[0].bytes, 3..10);
        let broken = on_output(
            "json_valid",
            &json!({"allow_wrapped": true}),
            "```\n{a}\n```",
        );
        assert_eq!(
            broken.explanation,
            "not JSON: key must be a string at line 1 column 2"
        );
        assert_eq!(
            passes("json_valid", &json!({"extract_json": true}), "42"),
            Some(true),
            "else the text itself"
        );
    }

    #[test]
    fn json_schema_names_each_problem_and_its_place() {
        assert_eq!(
            passes(
                "json_schema",
                &schema(),
                r#"{"status":"resolved","total":0}"#
            ),
            Some(true)
        );
        let found = on_output(
            "json_schema",
            &schema(),
            r#"{"status":"resolved","total":"12"}"#,
        );
        assert_eq!(found.outcome, Fail);
        assert!(
            found.explanation.starts_with("/total: "),
            "{}",
            found.explanation
        );
        let found = on_output("json_schema", &schema(), r#"{"status":"resolved"}"#);
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (Fail, "`total` is missing")
        );
        let found = on_output("json_schema", &schema(), "resolved");
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (Fail, "not JSON: expected value at line 1 column 1")
        );
    }

    #[test]
    fn empty_schema_accepts_any_json_and_refuses_other_text() {
        assert_eq!(refused("json_schema", &json!({"schema": {}})), []);
        assert_eq!(
            passes("json_schema", &json!({"schema": {}}), "[1]"),
            Some(true)
        );
        assert_eq!(
            passes("json_schema", &json!({"schema": {}}), "x"),
            Some(false)
        );
    }

    #[test]
    fn output_of_a_message_is_parsed_once() {
        let record = json!({"messages": [
            {"role": "assistant", "content": "[1]"},
            {"role": "assistant", "content": "so [2]"},
        ]});
        let transcript = transcript(&record);
        let whole = Subject::new(&transcript);
        let alone = JsonExtraction::default();
        let embedded = JsonExtraction {
            embedded: true,
            ..alone
        };
        let prefix = whole.with_end(1);
        for _ in 0..2 {
            let (value, range) = parse_output(&prefix, alone).expect("JSON");
            assert_eq!((&*value, range), (&json!([1]), 0..3));
            let again = parse_output(&whole.with_end(1), embedded).expect("JSON");
            assert!(Rc::ptr_eq(&value, &again.0));
            // Another message, and a part of it.
            let fault = parse_output(&whole, alone).expect_err("not JSON");
            assert_eq!(fault.outcome, Fail);
            let (value, range) = parse_output(&whole, embedded).expect("JSON");
            assert_eq!((&*value, range), (&json!([2]), 3..6));
        }
    }

    #[test]
    fn unrepresentable_json_is_a_check_error() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for text in [r#""\ud800""#, &deep] {
            assert_eq!(
                on_output("json_schema", &json!({"schema": {}}), text).outcome,
                CheckError,
                "{text}"
            );
        }
    }

    #[test]
    fn schema_draft_and_formats_are_applied() {
        for (schema, text, passed) in [
            (json!({"type": "integer"}), "3.0", true),
            (json!({"format": "date"}), "\"2026-02-30\"", false),
            (
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [false]}),
                "[1]",
                true,
            ),
            (json!({"prefixItems": [false]}), "[1]", false),
            (
                json!({"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}),
                "[[],[[]]]",
                true,
            ),
        ] {
            assert_eq!(
                passes("json_schema", &json!({"schema": schema}), text),
                Some(passed),
                "{schema} {text}"
            );
        }
    }

    #[test]
    fn bad_schemas_are_refused() {
        for schema in [
            json!({"type": "strin"}),
            json!({"pattern": "("}),
            json!({"$ref": "http://x.example/s"}),
            json!({"$ref": "file:///etc/passwd"}),
        ] {
            let problems = refused("json_schema", &json!({"schema": schema}));
            assert!(
                matches!(problems.as_slice(), [(at, _)] if at == "/schema"),
                "{schema}: {problems:?}"
            );
        }
        for params in [json!({}), json!({"schema": "x"}), json!({"schema": null})] {
            assert!(!refused("json_schema", &params).is_empty(), "{params}");
        }
        let (outcome, _) = outcome_and_why("json_schema", &schema(), &json!({"messages": []}));
        assert_eq!(
            outcome, Fail,
            "no assistant message is the empty text, which is not JSON"
        );
    }
}

//! `json_path`: a JMESPath expression over the output, the calls or the metadata, and conditions on its result.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::json::parse_output;
use super::json_extraction::JsonExtraction;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::query::{self, JmesPathQuery};
use crate::rubric::{ParamProblem, json_equal};

/// Params of `json_path`: an expression and at least one condition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct JsonPath {
    /// A JMESPath expression, such as `items[?price > shipping].name`. JMESPath has no `$`: write `order.id`, not
    /// `$.order.id`.
    #[schemars(length(min = 1))]
    expression: String,
    /// The data. `output`: the output as JSON. `calls`: a list of `{name, arguments, result, is_error}`, with texts
    /// parsed as JSON if they are JSON. `metadata`: the transcript's own metadata.
    #[serde(default)]
    of: JsonPathInput,
    /// The expected result. Numbers compare by value. A text never equals a number.
    #[serde(default, deserialize_with = "given")]
    expected: Option<Value>,
    /// The result must be a list with each of these values, or a text with each of these texts, case-sensitive.
    #[serde(default)]
    #[schemars(length(min = 1))]
    contains: Option<Vec<Value>>,
    /// The result must be a number and at least this.
    #[serde(default)]
    min: Option<f64>,
    /// The result must be a number and at most this.
    #[serde(default)]
    max: Option<f64>,
    /// The result must be a list of at least this many values. `null` counts as none, any other value that is not a
    /// list as one.
    #[serde(default)]
    #[schemars(range(min = 1))]
    min_results: Option<usize>,
    /// The result must be a list of at most this many values.
    #[serde(default)]
    max_results: Option<usize>,
    /// `true`: the JSON may be in a code block; the first block without a language or with `json` counts.
    #[serde(default)]
    allow_wrapped: bool,
    /// `true`: the JSON may be surrounded by other text; the first balanced object counts, otherwise the first list.
    #[serde(default)]
    extract_json: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum JsonPathInput {
    #[default]
    Output,
    Calls,
    Metadata,
}

/// Distinguishes a written `null` from a missing key.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    // serde calls this only if the key exists, so a missing key stays `None`.
    Value::deserialize(value).map(Some)
}

impl EvalType for JsonPath {
    const NAME: &'static str = "json_path";
    const SUMMARY: &'static str = "The result of a JMESPath expression over the output (or the calls, or the metadata) meets the conditions. An output that is not JSON fails. An expression that does not fit the data is a check_error.";
    const EXAMPLE: &'static str = "expression: items[?price > `10`].name\nmin_results: 1";
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] =
        &[("jmespath_expression", "expression")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        // Report all problems at once.
        let mut problems = Vec::new();
        let query = JmesPathQuery::compile(&self.expression).map_err(|why| {
            problems.push(ParamProblem {
                help: Some(query::JMESPATH_HELP.to_owned()),
                ..param_problem("/expression", why)
            });
        });
        let checks = [
            self.expected.is_some(),
            self.contains.is_some(),
            self.min.is_some(),
            self.max.is_some(),
            self.min_results.is_some(),
            self.max_results.is_some(),
        ];
        if !checks.contains(&true) {
            problems.push(param_problem(
                "",
                "it would check nothing: give `expected`, `contains`, `min`, `max`, `min_results` or `max_results`",
            ));
        }
        // A JMESPath search for a missing path returns null, so `expected: null` would pass by accident.
        if self.expected == Some(Value::Null) {
            let why = "must not be null: to expect null, compare in the expression and expect true";
            problems.push(param_problem("/expected", why));
        }
        if self.contains.as_ref().is_some_and(Vec::is_empty) {
            problems.push(param_problem("/contains", "needs at least one value"));
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && min > max
        {
            let why = format!("({min}) is above max ({max}): nothing could pass");
            problems.push(param_problem("/min", why));
        }
        // Every result has at least 0 values.
        match (self.min_results, self.max_results) {
            (Some(0), _) => problems.push(param_problem("/min_results", "must be 1 or more")),
            (Some(min), Some(max)) if min > max => {
                let why = format!("({min}) is above max_results ({max}): nothing could pass");
                problems.push(param_problem("/min_results", why));
            }
            _ => {}
        }
        // The options only apply to text, and the calls and the metadata are JSON already.
        if self.of != JsonPathInput::Output {
            for (name, given) in [
                ("allow_wrapped", self.allow_wrapped),
                ("extract_json", self.extract_json),
            ] {
                if given {
                    let why = "has no effect: it only applies to `of: output`";
                    problems.push(param_problem(format!("/{name}"), why));
                }
            }
        }
        match query {
            Ok(query) if problems.is_empty() => Ok(CompiledEval::Check(Box::new(JsonPathCheck {
                query,
                input: self.of,
                unwrap: JsonExtraction {
                    code_block: self.allow_wrapped,
                    embedded: self.extract_json,
                },
                expectation: JsonPathExpectation {
                    expected: self.expected,
                    contains: self.contains.unwrap_or_default(),
                    min: self.min,
                    max: self.max,
                    min_results: self.min_results,
                    max_results: self.max_results,
                },
            }))),
            _ => Err(problems),
        }
    }
}

#[derive(Debug)]
struct JsonPathCheck {
    query: JmesPathQuery,
    input: JsonPathInput,
    unwrap: JsonExtraction,
    expectation: JsonPathExpectation,
}

#[derive(Debug)]
struct JsonPathExpectation {
    expected: Option<Value>,
    contains: Vec<Value>,
    min: Option<f64>,
    max: Option<f64>,
    min_results: Option<usize>,
    max_results: Option<usize>,
}

impl Check for JsonPathCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        // Select the data.
        let (data, mark) = match self.input {
            // An output that is not JSON is a fail, which `parse_output` returns as a finding.
            JsonPathInput::Output => match parse_output(subject, self.unwrap) {
                Ok((data, range)) => (data, subject.text_span(subject.output(), &range)),
                Err(finding) => return finding,
            },
            JsonPathInput::Calls => (Rc::new(calls_as_json(subject)), None),
            JsonPathInput::Metadata => match subject.transcript_metadata() {
                Some(data) => (Rc::new(data.clone()), None),
                None => return Finding::check_error("the transcript has no metadata"),
            },
        };
        // Search, then compare the result with the conditions.
        let result = match self.query.search(&data) {
            Ok(result) => result,
            // An expression that does not fit the data is an error and not a verdict.
            Err(error) => return Finding::check_error(error.to_string()),
        };
        let found = QuotedText(&result.to_string()).to_string();
        match self.expectation.explain_mismatch(&result) {
            None => Finding::new(true, format!("the result is {found}")),
            Some(why) => Finding::new(false, format!("the result is {found}: {why}")),
        }
        .with_spans(mark)
    }
}

/// Returns the calls as a JSON list.
fn calls_as_json(subject: &Subject<'_>) -> Value {
    // A result that is not JSON stays a text, so that an expression can still search it.
    let as_json =
        |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let calls = subject.calls().iter().enumerate();
    calls
        .map(|(ix, call)| {
            let result = subject.result(ix).map(|located| located.result);
            // Arguments that are not an object stay a text.
            let arguments = match subject.arguments(ix) {
                Ok(arguments) => Value::Object(arguments.clone()),
                Err(_) => Value::String(call.call.arguments.to_string()),
            };
            json!({
                "name": &*call.call.name,
                "arguments": arguments,
                "result": result.map(|result| as_json(&result.content)),
                "is_error": result.and_then(|result| result.is_error),
            })
        })
        .collect()
}

impl JsonPathExpectation {
    /// Explains why the result does not meet the conditions.
    fn explain_mismatch(&self, result: &Value) -> Option<String> {
        let short = |value: &Value| QuotedText(&value.to_string()).to_string();
        // The conditions in order; the first that does not hold is the explanation.
        if let Some(expected) = &self.expected
            && !json_equal(result, expected)
        {
            return Some(format!("{} was expected", short(expected)));
        }
        let missing: Vec<&Value> = self
            .contains
            .iter()
            .filter(|wanted| !contains_value(result, wanted))
            .collect();
        if !missing.is_empty() {
            return Some(format!(
                "it does not contain {}",
                format_list(missing.into_iter().map(short))
            ));
        }
        if self.min.is_some() || self.max.is_some() {
            let Some(x) = result.as_f64() else {
                return Some("it is not a number".to_owned());
            };
            if let Some(min) = self.min.filter(|min| x < *min) {
                return Some(format!("it is less than {min}"));
            }
            if let Some(max) = self.max.filter(|max| x > *max) {
                return Some(format!("it is more than {max}"));
            }
        }
        // A single value counts as a list of one, because JMESPath returns either.
        let count = match result {
            Value::Null => 0,
            Value::Array(items) => items.len(),
            _ => 1,
        };
        if let Some(min) = self.min_results.filter(|min| count < *min) {
            return Some(format!(
                "{}, {} fewer than {min}",
                pluralize(count, "result"),
                min - count
            ));
        }
        if let Some(max) = self.max_results.filter(|max| count > *max) {
            return Some(format!(
                "{}, {} more than {max}",
                pluralize(count, "result"),
                count - max
            ));
        }
        None
    }
}

fn contains_value(result: &Value, wanted: &Value) -> bool {
    match (result, wanted) {
        (Value::Array(items), wanted) => items.iter().any(|item| json_equal(item, wanted)),
        (Value::String(text), Value::String(wanted)) => text.contains(wanted.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

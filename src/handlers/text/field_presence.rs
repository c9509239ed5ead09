//! `field_presence`: fields that the output must name, as keys of a JSON object or as words in a text.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::json_extraction::JsonExtraction;
use super::lowercase::to_original_range;
use super::patterns::PatternSet;
use crate::handlers::eval_type::EvalType;
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// Params of `field_presence`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct FieldPresence {
    /// The fields. If the output is a JSON object: its keys, or dotted paths below them (`order.id`), case-sensitive;
    /// `null` is a value. In any other output: whole words or phrases in any case.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    fields: Vec<String>,
}

impl EvalType for FieldPresence {
    const NAME: &'static str = "field_presence";
    const SUMMARY: &'static str = "The output names all fields: as keys if it is a JSON object (also in a code block), otherwise as whole words. The score is the share of fields found.";
    const EXAMPLE: &'static str = "fields: [status, order.id]";
    const SCORED: bool = true;
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("required_fields")];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[("required_fields", "fields")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let fields = PatternSet::new(self.fields, "fields")?.whole_words(true);
        Ok(CompiledEval::Check(Box::new(FieldPresenceCheck(fields))))
    }
}

#[derive(Debug)]
struct FieldPresenceCheck(PatternSet);

impl Check for FieldPresenceCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        let fields = &self.0.written;
        // A block is unwrapped, but JSON between words is not: then the words are the answer.
        let unwrap = JsonExtraction {
            code_block: true,
            embedded: false,
        };
        let json = &output.text[unwrap.find_range(&output.text)];
        // A quick test, because most outputs are not JSON and parsing reads the whole text.
        let object: Option<Map<String, Value>> = if json.trim_start().starts_with('{') {
            serde_json::from_str(json).ok()
        } else {
            None
        };
        if let Some(object) = object {
            let there: Vec<bool> = fields
                .iter()
                .map(|field| has_field(&object, field))
                .collect();
            return build_finding(fields, &there, "the JSON object");
        }
        // Not an object: search the fields as words.
        let hits = self.0.find_first_of_each(output.lowercase());
        let there: Vec<bool> = hits.iter().map(Option::is_some).collect();
        let places = hits.iter().flatten().take(Finding::MAX_SPANS);
        let places = places.filter_map(|range: &Range<usize>| {
            subject.text_span(output, &to_original_range(&output.text, range))
        });
        let what = match output.message {
            Some(_) => "the text",
            None => "the text: there is no assistant message",
        };
        build_finding(fields, &there, what).with_spans(places.collect::<Vec<_>>())
    }
}

/// Returns `true` if the object has a key of that name, or a value at that dotted path.
fn has_field(object: &Map<String, Value>, field: &str) -> bool {
    // The whole name first, because a key can contain a point.
    if object.contains_key(field) {
        return true;
    }
    let mut steps = field.split('.');
    let mut at = steps.next().and_then(|step| object.get(step));
    for step in steps {
        at = match at {
            Some(Value::Object(map)) => map.get(step),
            Some(Value::Array(items)) => step.parse().ok().and_then(|ix: usize| items.get(ix)),
            _ => None,
        };
    }
    at.is_some()
}

fn build_finding(fields: &[String], there: &[bool], what: &str) -> Finding {
    let list_fields = |wanted: bool| {
        let named = fields.iter().zip(there);
        format_list(
            named.filter_map(|(field, there)| (*there == wanted).then_some(QuotedText(field))),
        )
    };
    let count = there.iter().filter(|there| **there).count();
    let passed = count == fields.len();
    let why = if passed {
        format!("{} in {what}", list_fields(true))
    } else {
        format!("missing {} in {what}", list_fields(false))
    };
    Finding::new(passed, why).with_score(count as f64 / fields.len() as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::handlers::testing::{loaded, on_output, outcome_and_why, refused};
    use crate::model::Outcome::Fail;

    #[test]
    fn fields_are_keys_of_a_json_object_or_words_of_a_text() {
        let wanted = json!({"fields": ["status", "order.id"]});
        for (output, score, why) in [
            (
                r#"{"status": null, "order": {"id": 7}}"#,
                1.0,
                r#""status", "order.id" in the JSON object"#,
            ),
            (
                r#"{"status": 1, "order": 7}"#,
                0.5,
                r#"missing "order.id" in the JSON object"#,
            ),
            (
                r#"{"Status": 1, "order.id": 7}"#,
                0.5,
                r#"missing "status" in the JSON object"#,
            ),
            (
                "```json\n{\"status\": 1, \"x\": \"order.id\"}\n```",
                0.5,
                r#"missing "order.id" in the JSON object"#,
            ),
            (
                "Status: open. Order.ID: 7",
                1.0,
                r#""status", "order.id" in the text"#,
            ),
            (
                "statuses of the order",
                0.0,
                r#"missing "status", "order.id" in the text"#,
            ),
            (
                r#"[{"status": 1}]"#,
                0.5,
                r#"missing "order.id" in the text"#,
            ),
        ] {
            let found = on_output("field_presence", &wanted, output);
            assert_eq!(
                (found.score, found.explanation.as_str()),
                (Some(score), why),
                "{output}"
            );
            assert_eq!(found.outcome.passed(), Some(score > 0.99), "{output}");
        }
        let marked = on_output("field_presence", &wanted, "Status: open");
        assert_eq!(marked.spans[0].bytes, 0..6);
        let none = outcome_and_why("field_presence", &wanted, &json!({"messages": []}));
        assert_eq!(none.0, Fail);
    }

    #[test]
    fn alias_accepts_the_alias_of_the_param() {
        let record = json!({"messages": [{"role": "assistant", "content": "{\"a\":1}"}]});
        let found = loaded(
            "required_fields",
            &json!({"required_fields": ["a"]}),
            &record,
        );
        assert_eq!(found.outcome.passed(), Some(true));
        for params in [
            json!({}),
            json!({"fields": []}),
            json!({"fields": [""]}),
            json!({"fields": "a"}),
        ] {
            assert!(!refused("field_presence", &params).is_empty(), "{params}");
        }
    }
}

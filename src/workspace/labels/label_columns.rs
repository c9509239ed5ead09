//! `map` and `pass` of an entry of `labels:`: the columns of a label table, and the values that are a pass.
//!
//! Responsible for the keys and for the conversion of a value to pass or fail. Shared by tables of any layout and by the
//! tables of annotation tools. Does not read files.

use serde_json::{Value, json};

use crate::diag::yaml::{
    ConfigKey, MappingDecoder, properties_schema, text_list_schema, text_schema,
};
use crate::model::parse_pass_or_fail;
use crate::query::JmesPathQuery;

/// The keys of `map`.
#[rustfmt::skip]
const COLUMN_KEYS: &[ConfigKey] = &[
    ConfigKey::new("records", "JMESPath: the list of records in a JSON file.", text_schema),
    ConfigKey::new("transcript", "JMESPath: the id of the transcript.", text_schema),
    ConfigKey::new("rubric", "JMESPath: the id of the rubric.", text_schema),
    ConfigKey::new("eval", "JMESPath: the id of the eval.", text_schema),
    ConfigKey::new("passed", "JMESPath: the verdict; other values need `pass`.", text_schema),
    ConfigKey::new("score", "JMESPath: a number on the scale of `pass.scale`, or from 0 to 1.", text_schema),
    ConfigKey::new("by", "JMESPath: the person.", text_schema),
    ConfigKey::new("at", "JMESPath: the time.", text_schema),
    ConfigKey::new("note", "JMESPath: why.", text_schema),
];

/// The keys of `pass`.
#[rustfmt::skip]
const PASS_KEYS: &[ConfigKey] = &[
    ConfigKey::new("at_least", "The lowest number that is a pass.", |doc| json!({"type": "number", "description": doc})),
    ConfigKey::new("at_most", "The highest number that is a pass.", |doc| json!({"type": "number", "description": doc})),
    ConfigKey::new("values", "The categories that are a pass; every other category is a fail.", text_list_schema),
    ConfigKey::new("unsure", "The categories of a person who could not decide.", text_list_schema),
    ConfigKey::new("scale", "The lowest and the highest number; dicta converts a score to 0–1.", |doc| {
        json!({"type": "array", "description": doc, "minItems": 2, "maxItems": 2, "items": {"type": "number"}})
    }),
];

/// Returns the JSON Schema of `map`.
pub(super) fn columns_schema(doc: &str) -> Value {
    json!({
        "type": "object",
        "description": doc,
        "properties": properties_schema(COLUMN_KEYS),
        "minProperties": 1,
        "additionalProperties": false,
    })
}

/// Returns the JSON Schema of `pass`.
pub(super) fn pass_schema(doc: &str) -> Value {
    json!({
        "type": "object",
        "description": doc,
        "properties": properties_schema(PASS_KEYS),
        "minProperties": 1,
        "additionalProperties": false,
    })
}

/// The expressions for the columns of a label table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LabelColumns {
    pub(super) records: Option<JmesPathQuery>,
    pub(super) transcript: Option<JmesPathQuery>,
    pub(super) rubric: Option<JmesPathQuery>,
    pub(super) eval: Option<JmesPathQuery>,
    pub(super) passed: Option<JmesPathQuery>,
    pub(super) score: Option<JmesPathQuery>,
    pub(super) by: Option<JmesPathQuery>,
    pub(super) at: Option<JmesPathQuery>,
    pub(super) note: Option<JmesPathQuery>,
}

impl LabelColumns {
    /// Parses `map`. Adds the problems to the diagnostics.
    pub(super) fn parse(fields: MappingDecoder<'_>) -> Self {
        let mut fields = fields.accepting(COLUMN_KEYS);
        let mut query = |key: &'static str| {
            let written = fields.text(key)?;
            JmesPathQuery::compile(&written)
                .map_err(|why| fields.error(key, "expression", format!("{key} {why}")))
                .ok()
        };
        let columns = Self {
            records: query("records"),
            transcript: query("transcript"),
            rubric: query("rubric"),
            eval: query("eval"),
            passed: query("passed"),
            score: query("score"),
            by: query("by"),
            at: query("at"),
            note: query("note"),
        };
        fields.finish();
        columns
    }
}

/// The values that are a pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PassRule {
    at_least: Option<f64>,
    at_most: Option<f64>,
    values: Vec<String>,
    unsure: Vec<String>,
    scale: Option<(f64, f64)>,
}

/// A verdict of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RatedValue {
    /// `None` if the person could not decide.
    pub(super) passed: Option<bool>,
    /// The score from 0 to 1, if the value is a number on a known scale.
    pub(super) score: Option<f64>,
}

impl PassRule {
    /// Parses `pass`. Adds the problems to the diagnostics.
    pub(super) fn parse(fields: MappingDecoder<'_>) -> Self {
        let mut fields = fields.accepting(PASS_KEYS);
        let any = |number: f64| number.is_finite();
        let at_least = fields.number("at_least", "a number", any);
        let at_most = fields.number("at_most", "a number", any);
        let mut texts = |key| -> Vec<String> {
            let texts = fields.texts(key).unwrap_or_default();
            texts.into_iter().map(|(text, _)| text).collect()
        };
        let values = texts("values");
        let unsure = texts("unsure");
        let scale = fields.value("scale").and_then(|written| {
            let ends = written.as_array().map(|ends| {
                let numbers: Vec<f64> = ends.iter().filter_map(Value::as_f64).collect();
                numbers
            });
            match ends.as_deref() {
                Some([low, high]) if low < high => Some((*low, *high)),
                _ => {
                    let why = "scale must be the lowest and the highest number, such as [1, 5]";
                    fields.error("scale", "value", why);
                    None
                }
            }
        });
        if fields.is_mapping()
            && fields.unknown_keys().is_empty()
            && !["at_least", "at_most", "values"]
                .iter()
                .any(|key| fields.has(key))
        {
            let why =
                "`pass` needs `at_least` or `at_most` for numbers, or `values` for categories";
            fields.error_at_mapping("missing", why);
        }
        fields.finish();
        Self {
            at_least,
            at_most,
            values,
            unsure,
            scale,
        }
    }

    /// Returns the score of a number on the scale.
    pub(super) fn convert_score(&self, number: f64) -> f64 {
        match self.scale {
            Some((low, high)) => (number - low) / (high - low),
            None => number,
        }
    }

    /// Rates a value. The error is a sentence fragment.
    pub(super) fn rate(&self, value: &Value) -> Result<RatedValue, String> {
        let word = match value {
            Value::String(word) => word.trim().to_owned(),
            other => other.to_string(),
        };
        let is_in = |words: &[String]| words.iter().any(|known| known.eq_ignore_ascii_case(&word));
        let undecided = RatedValue {
            passed: None,
            score: None,
        };
        if is_in(&self.unsure) {
            return Ok(undecided);
        }
        let number = match value {
            Value::Number(number) => number.as_f64(),
            _ => word.parse::<f64>().ok().filter(|number| number.is_finite()),
        };
        let has_bounds = self.at_least.is_some() || self.at_most.is_some();
        if let (Some(number), true) = (number, has_bounds) {
            // Surveys have numbers such as 99 for no answer.
            if let Some((low, high)) = self.scale
                && !(low..=high).contains(&number)
            {
                return Err(format!(
                    "the value {number} is not on the scale from {low} to {high}: correct it, or list it in `unsure` of `pass`"
                ));
            }
            let passed = self.at_least.is_none_or(|least| number >= least)
                && self.at_most.is_none_or(|most| number <= most);
            let score = Some(self.convert_score(number));
            return Ok(RatedValue {
                passed: Some(passed),
                score: score.filter(|score| (0.0..=1.0).contains(score)),
            });
        }
        // A Boolean is a verdict and no category: tools write categories and Booleans into one file.
        let is_category = !value.is_boolean() || is_in(&self.values);
        if !self.values.is_empty() && is_category {
            return Ok(RatedValue {
                passed: Some(is_in(&self.values)),
                score: None,
            });
        }
        if let Some(passed) = parse_verdict(value) {
            return Ok(RatedValue {
                passed: Some(passed),
                score: None,
            });
        }
        if word.eq_ignore_ascii_case("unsure") {
            return Ok(undecided);
        }
        let shown: String = crate::model::make_visible(&word, false)
            .chars()
            .take(40)
            .collect();
        Err(match number {
            Some(_) => format!(
                "the value {shown} is not pass or fail: state the lowest pass in dicta.yaml, such as `pass: {{ at_least: 4 }}`"
            ),
            None if has_bounds => format!(
                "the value `{shown}` is not a number, which `pass` compares: correct it, or list it in `values` or `unsure` of `pass`"
            ),
            None => format!(
                "the value `{shown}` is not pass or fail: state the passing ones in dicta.yaml, such as `pass: {{ values: [good] }}`"
            ),
        })
    }
}

/// Reads pass or fail from a value of JSON or YAML.
pub(super) fn parse_verdict(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(passed) => Some(*passed),
        Value::String(word) => parse_pass_or_fail(word),
        Value::Number(number) => parse_pass_or_fail(&number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_off_decides_numbers_and_words_decide_categories() {
        let rule = PassRule {
            at_least: Some(4.0),
            scale: Some((1.0, 5.0)),
            ..PassRule::default()
        };
        let rate = |rule: &PassRule, value: Value| {
            rule.rate(&value).map(|found| (found.passed, found.score))
        };
        assert_eq!(rate(&rule, json!(4)), Ok((Some(true), Some(0.75))));
        assert_eq!(rate(&rule, json!("2")), Ok((Some(false), Some(0.25))));
        for off in [json!(99), json!("-1")] {
            let why = rate(&rule, off).expect_err("not on the scale");
            assert!(why.contains("is not on the scale from 1 to 5"), "{why}");
        }
        let rule = PassRule {
            values: vec!["Good".to_owned(), "fine".to_owned()],
            unsure: vec!["?".to_owned()],
            ..PassRule::default()
        };
        assert_eq!(rate(&rule, json!("good")), Ok((Some(true), None)));
        assert_eq!(rate(&rule, json!("bad")), Ok((Some(false), None)));
        assert_eq!(rate(&rule, json!("?")), Ok((None, None)));
        assert_eq!(rate(&rule, json!("true")), Ok((Some(false), None)));
        for passed in [true, false] {
            assert_eq!(rate(&rule, json!(passed)), Ok((Some(passed), None)));
        }
        let none = PassRule::default();
        assert_eq!(rate(&none, json!(true)), Ok((Some(true), None)));
        assert_eq!(rate(&none, json!(1)), Ok((Some(true), None)));
        let why = rate(&none, json!(4)).expect_err("no cut-off");
        assert!(why.contains("at_least: 4"), "{why}");
        let why = rate(&none, json!("so-so")).expect_err("no category");
        assert!(why.contains("values: [good]"), "{why}");
    }
}

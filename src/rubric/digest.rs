//! The digest of an eval's content.
//!
//! Responsible for including everything that could change a result, and nothing else.

use serde_json::{Number, Value, json};

use super::{Eval, EvalTypeSpec, Trigger, WhenCondition};
use crate::model::Digest;

/// Params that dicta renamed, with the name that digests use. So recorded verdicts stay valid under both names.
const FORMER_PARAM_NAMES: [(&str, &str); 1] = [("scoring_guide", "rubric")];

/// Returns JSON with sorted keys and the shortest numbers: `1.0` becomes `1`.
pub fn canonical_json(value: &Value) -> String {
    canonicalize(value).to_string()
}

fn canonicalize(value: &Value) -> Value {
    match value {
        Value::Number(n) => Value::Number(normalize_number(n)),
        Value::Array(items) => Value::Array(items.iter().map(canonicalize).collect()),
        Value::Object(map) => {
            let mut entries: Vec<_> = map
                .iter()
                .map(|(k, v)| (k.clone(), canonicalize(v)))
                .collect();
            // Sorted keys, because YAML authors may reorder them without a change of meaning.
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers below 2^53 are cast"
)]
fn normalize_number(n: &Number) -> Number {
    match n.as_f64() {
        // 2^53: below it every whole double is exact, so `1.0` and `1` are the same number.
        Some(x) if n.is_f64() && x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 => {
            Number::from(x as i64)
        }
        _ => n.clone(),
    }
}

/// Returns the digest of an eval: type, resolved params without decision settings, trigger, sample, `allow_na`,
/// `not`, `when`.
#[expect(
    clippy::too_many_arguments,
    reason = "each is a part of what is digested"
)]
pub(super) fn digest_eval(
    kind: &str,
    params: &Value,
    decides: &[&str],
    trigger: Trigger,
    sample_percentage: f64,
    allow_na: bool,
    negate: bool,
    when: Option<&WhenCondition>,
) -> Digest {
    let mut params = params.clone();
    // Decision settings change no judge call, so a changed bound keeps the recorded verdicts valid.
    if let Value::Object(map) = &mut params {
        map.retain(|key, _| !decides.contains(&key.as_str()));
        for (name, former) in FORMER_PARAM_NAMES {
            if let Some(value) = map.shift_remove(name) {
                map.insert(former.to_owned(), value);
            }
        }
    }
    let mut content = json!({
        "type": kind,
        "params": params,
        "trigger": trigger.as_str(),
        // Without sampling the percentage has no effect, so it must not change the digest.
        "sample": trigger.is_sampled().then_some(sample_percentage),
        "allow_na": allow_na,
    });
    // Only if set, so that evals without `not` keep the digest of older versions.
    if negate {
        content["not"] = Value::Bool(true);
    }
    // As for `not`: left out if not written.
    if let Some(when) = when {
        content["when"] = when.canonical();
    }
    Digest::hash_bytes(canonical_json(&content).as_bytes())
}

/// The params of judged evals that change how a judge is asked, and not what it is asked. Shots are examples of labels:
/// if they were part of what a label answers, then new shots would leave no label to take them from.
const ASKING_PARAMS: [&str; 5] = [
    "model",
    "system_prompt",
    "grouping",
    "include_tool_calls",
    "shots",
];

/// Returns the digest of the question that a label answers.
///
/// For a judged eval: the criteria, the scoring guide, the scale and other texts of the question, and whether it is
/// about a message or a transcript. Bounds, thresholds, models and the layout of a text are not part of it. For a check:
/// its type and `not`. Its params are the way of checking: a label answers if the transcript is right, so a corrected
/// pattern keeps its labels.
pub(super) fn digest_question(
    kind: &EvalTypeSpec,
    params: &Value,
    trigger: Trigger,
    negate: bool,
) -> Digest {
    let mut question = serde_json::Map::new();
    for (name, value) in params.as_object().into_iter().flatten() {
        let is_asking = ASKING_PARAMS.contains(&name.as_str());
        // A param that is null has no effect, as if it were absent.
        if !kind.judged
            || is_asking
            || value.is_null()
            || kind.decision_params.contains(&name.as_str())
        {
            continue;
        }
        question.insert(name.clone(), join_lines(value));
    }
    let content = json!({
        "type": kind.name,
        "question": question,
        "per_message": matches!(trigger, Trigger::EveryTurn | Trigger::SampleTurns),
        "not": negate,
    });
    Digest::hash_bytes(canonical_json(&content).as_bytes())
}

impl Eval {
    /// Returns the texts of the question that a person answers, each with the name of its param: the criteria first, then
    /// others such as the scoring guide. Empty if the type itself has the criteria.
    pub fn list_question_texts(&self) -> Vec<(&str, String)> {
        let params = self.params.as_object().into_iter().flatten();
        let mut texts: Vec<(&str, String)> = params
            .filter(|(name, _)| !ASKING_PARAMS.contains(&name.as_str()))
            .filter(|(name, _)| !self.decision_settings.contains_key(name.as_str()))
            .filter_map(|(name, value)| Some((name.as_str(), format_question_text(value)?)))
            .collect();
        // The sort is stable, so the others keep their order.
        texts.sort_by_key(|(name, _)| *name != "criteria");
        texts
    }
}

/// Formats a text, or a list of texts with numbers; `None` for other values.
fn format_question_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Array(items) if !items.is_empty() => {
            let lines = (1..).zip(items);
            let lines =
                lines.map(|(number, item)| Some(format!("{number}. {}", item.as_str()?.trim())));
            let lines: Option<Vec<String>> = lines.collect();
            Some(lines?.join("\n"))
        }
        _ => None,
    }
}

/// Returns a value whose texts have single spaces, so that their layout is not part of a question.
fn join_lines(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Value::Array(items) => items.iter().map(join_lines).collect(),
        Value::Object(map) => {
            let entries = map.iter();
            Value::Object(entries.map(|(k, v)| (k.clone(), join_lines(v))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_is_the_text_that_is_asked_and_not_the_way_of_asking() {
        use crate::rubric::EvalTypeCatalog as _;
        let catalog = crate::rubric::tests_support::FakeCatalog::new();
        let kind = catalog.eval_type("llm_judge").expect("a type");
        let digest =
            |params: Value| digest_question(kind, &params, Trigger::OnSessionComplete, false);
        let was = digest(json!({"criteria": "Answers\n  politely.", "min_score": 0.5}));
        assert_eq!(
            was,
            digest(
                json!({"criteria": "Answers politely.\n", "min_score": 0.9, "model": "m", "scale": null,
                       "shots": {"pass": 1}})
            )
        );
        for other in [
            json!({"criteria": "Does not answer politely."}),
            json!({"criteria": "Answers politely.", "scoring_guide": "1 = yes"}),
            json!({"criteria": "Answers politely.", "scale": {"min": 1, "max": 5}}),
        ] {
            assert_ne!(was, digest(other.clone()), "{other}");
        }
        let params = json!({"criteria": "Answers politely."});
        assert_ne!(
            was,
            digest_question(kind, &params, Trigger::EveryTurn, false)
        );
    }

    #[test]
    fn corrected_pattern_of_a_check_keeps_its_question_and_an_inverted_check_does_not() {
        use crate::rubric::EvalTypeCatalog as _;
        let catalog = crate::rubric::tests_support::FakeCatalog::new();
        let kind = catalog.eval_type("contains").expect("a type");
        let digest = |params: Value, negate| {
            digest_question(kind, &params, Trigger::OnSessionComplete, negate)
        };
        let was = digest(json!({"patterns": ["2.69"]}), false);
        assert_eq!(was, digest(json!({"patterns": ["2.6\\d"]}), false));
        assert_ne!(was, digest(json!({"patterns": ["2.69"]}), true));
    }

    #[test]
    fn digest_ignores_key_order_and_number_spelling() {
        assert_eq!(
            canonical_json(&json!({"b": [1.0, 0.5, -0.0], "a": {"d": 1e3, "c": null}})),
            r#"{"a":{"c":null,"d":1000},"b":[1,0.5,0]}"#
        );
        assert_eq!(canonical_json(&json!(u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn digest_keeps_the_former_name_of_the_scoring_guide() {
        let digest = |params: Value| {
            let trigger = Trigger::OnSessionComplete;
            digest_eval("llm_judge", &params, &[], trigger, 5.0, false, false, None)
        };
        let former = digest(json!({"criteria": "Polite", "rubric": "1 = yes"}));
        // Computed by dicta before `scoring_guide` existed.
        let content = r#"{"allow_na":false,"params":{"criteria":"Polite","rubric":"1 = yes"},"sample":null,"trigger":"on_session_complete","type":"llm_judge"}"#;
        assert_eq!(former, Digest::hash_bytes(content.as_bytes()));
        assert_eq!(
            digest(json!({"scoring_guide": "1 = yes", "criteria": "Polite"})),
            former
        );
    }
}

//! The digest of an eval's content.
//!
//! Responsible for including everything that could change a result, and nothing else.

use serde_json::{Number, Value, json};

use super::{Trigger, WhenCondition};
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

#[cfg(test)]
mod tests {
    use super::*;

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

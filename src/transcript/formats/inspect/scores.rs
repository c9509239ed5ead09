//! The scores of a sample as source verdicts.
//!
//! Responsible for the meaning of a score's value, which is also kept as written. Does not read `history`, because the
//! value is its last entry.
//!
//! | `value` | `passed` | `score` |
//! |---|---|---|
//! | `C`, `I` | true, false | 1, 0 |
//! | `P`, `N` (partial credit, no answer) | – | 0.5, 0 |
//! | true, false | true, false | 1, 0 |
//! | a number from 0 to 1 | – | the number |
//! | `yes`, `true`, `no`, `false`, a number as text, as Inspect's own metrics read them | – | 1, 1, 0, 0, the number |
//! | an object | one verdict for each key, `scorer/key` | |
//! | null, `NaN`; or `reason` states that the grader or the scorer failed | `error` | – |
//! | anything else (a list, 4, `B`) | – | – |

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::InspectAttachments;
use crate::model::{RawJson, SourceText, SourceVerdict};
use crate::transcript::native::json_string;

#[derive(Deserialize)]
struct InspectScore<'a> {
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    explanation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

/// The reason in logs before it was a field of the score.
#[derive(Deserialize)]
struct InspectLegacyReason<'a> {
    #[serde(borrow, default)]
    unscored_reason: Option<&'a RawValue>,
}

/// Returns the verdicts of `scores` in the order of the file.
pub(super) fn parse_verdicts(
    scores: &RawValue,
    attachments: &InspectAttachments<'_>,
) -> Result<Vec<SourceVerdict>, String> {
    // An `IndexMap` keeps the order of the file, which a `HashMap` would lose.
    let scores: Option<IndexMap<SourceText<'_>, InspectScore<'_>>> =
        serde_json::from_str(scores.get())
            .map_err(|why| format!("its scores cannot be read: {why}"))?;
    let mut all = Vec::new();
    for (scorer, score) in scores.into_iter().flatten() {
        push_verdicts(&scorer, &score, attachments, &mut all);
    }
    Ok(all)
}

/// Returns the verdict of `score` in logs from 2024.
pub(super) fn parse_single_verdict(
    scorer: &str,
    score: &RawValue,
    attachments: &InspectAttachments<'_>,
) -> Result<Vec<SourceVerdict>, String> {
    let score: Option<InspectScore<'_>> = serde_json::from_str(score.get())
        .map_err(|why| format!("its score cannot be read: {why}"))?;
    let mut all = Vec::new();
    if let Some(score) = score {
        push_verdicts(scorer, &score, attachments, &mut all);
    }
    Ok(all)
}

fn push_verdicts(
    scorer: &str,
    score: &InspectScore<'_>,
    attachments: &InspectAttachments<'_>,
    all: &mut Vec<SourceVerdict>,
) {
    let text_value = |raw: Option<&RawValue>| {
        let text = attachments.resolve(raw.and_then(json_string)?);
        (!text.is_empty()).then(|| text.0.into_owned())
    };
    let legacy = score
        .metadata
        .and_then(|metadata| serde_json::from_str::<InspectLegacyReason<'_>>(metadata.get()).ok());
    let reason = text_value(score.reason).or_else(|| text_value(legacy?.unscored_reason));
    let reasoning = text_value(score.explanation);
    let build_verdict = |eval: String, value: Option<&RawValue>| {
        let meaning =
            InspectScoreValue::from_value(value.map_or("null", RawValue::get), reason.as_deref());
        SourceVerdict {
            judge: "inspect".to_owned(),
            eval,
            passed: meaning.passed,
            score: meaning.score,
            value: value.and_then(|value| RawJson::parse(value.get()).ok()),
            reasoning: reasoning.clone(),
            error: meaning.error,
        }
    };
    // A scorer may return an object with several values. Each becomes a verdict.
    let fields = score.value.filter(|value| value.get().starts_with('{'));
    match fields.and_then(|value| {
        serde_json::from_str::<IndexMap<SourceText<'_>, &RawValue>>(value.get()).ok()
    }) {
        Some(fields) => {
            all.extend(
                fields
                    .iter()
                    .map(|(key, value)| build_verdict(format!("{scorer}/{key}"), Some(value))),
            );
        }
        None => all.push(build_verdict(scorer.to_owned(), score.value)),
    }
}

/// The meaning of a score's value.
#[derive(Default)]
struct InspectScoreValue {
    passed: Option<bool>,
    score: Option<f64>,
    error: Option<String>,
}

impl InspectScoreValue {
    fn from_value(value: &str, reason: Option<&str>) -> Self {
        // These reasons mean that the scoring failed, whatever the value is. Other reasons are about the agent.
        let failed = reason.filter(|reason| matches!(*reason, "grader_failed" | "scoring_failed"));
        if let Some(reason) = failed {
            return Self::from_failure(format!("not scored: {reason}"));
        }
        // Inspect writes `NaN` for a score without a value, which the reader replaced by null.
        if value == "null" {
            let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            return Self::from_failure(format!("not scored{why} (the value is not a number)"));
        }
        let pass_or_fail = |passed: bool| Self {
            passed: Some(passed),
            score: Some(f64::from(u8::from(passed))),
            error: None,
        };
        let scored = |score: f64| Self {
            // A number outside of 0 to 1 has an unknown scale, so only `value` keeps it.
            score: (0.0..=1.0).contains(&score).then_some(score),
            ..Self::default()
        };
        // A text: Inspect's letters first, then the words that its metrics accept.
        if let Ok(text) = serde_json::from_str::<String>(value) {
            return match text.as_str() {
                "C" => pass_or_fail(true),
                "I" => pass_or_fail(false),
                "P" => scored(0.5),
                "N" => scored(0.0),
                text => match text.to_lowercase().as_str() {
                    "yes" | "true" => scored(1.0),
                    "no" | "false" => scored(0.0),
                    number => number.parse().map_or_else(|_| Self::default(), scored),
                },
            };
        }
        // A Boolean or a number. Lists and other values have no score.
        match value {
            "true" => pass_or_fail(true),
            "false" => pass_or_fail(false),
            number => number.parse().map_or_else(|_| Self::default(), scored),
        }
    }

    fn from_failure(why: String) -> Self {
        Self {
            error: Some(why),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eval, passed, score, error.
    type Row = (String, Option<bool>, Option<f64>, Option<String>);

    fn read(json: &str) -> Vec<Row> {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let all = parse_verdicts(raw, &InspectAttachments::empty()).expect("scores");
        let row = |v: SourceVerdict| (v.eval, v.passed, v.score, v.error);
        all.into_iter().map(row).collect()
    }

    #[test]
    fn correct_passes_and_a_number_only_scores() {
        for (value, passed, score) in [
            (r#""C""#, Some(true), Some(1.0)),
            (r#""I""#, Some(false), Some(0.0)),
            (r#""P""#, None, Some(0.5)),
            (r#""N""#, None, Some(0.0)),
            ("true", Some(true), Some(1.0)),
            ("false", Some(false), Some(0.0)),
            ("0.375", None, Some(0.375)),
            ("1", None, Some(1.0)),
            ("4", None, None),
            ("-0.1", None, None),
            (r#""Yes""#, None, Some(1.0)),
            (r#""0.25""#, None, Some(0.25)),
            (r#""nan""#, None, None),
            (r#""B""#, None, None),
            ("[1,0]", None, None),
        ] {
            let found = read(&format!(r#"{{"s":{{"value":{value}}}}}"#));
            assert_eq!(found, [("s".to_owned(), passed, score, None)], "{value}");
        }
    }

    #[test]
    fn an_object_is_a_verdict_for_each_key_in_its_order() {
        let found = read(r#"{"ten":{"value":{"b":"C","a":0.5,"n":null}}}"#);
        let none = || Some("not scored (the value is not a number)".to_owned());
        assert_eq!(found[0], ("ten/b".to_owned(), Some(true), Some(1.0), None));
        assert_eq!(found[1], ("ten/a".to_owned(), None, Some(0.5), None));
        assert_eq!(found[2], ("ten/n".to_owned(), None, None, none()));
        assert!(read("null").is_empty(), "not scored at all");
    }

    #[test]
    fn a_grader_that_failed_is_an_error_and_neither_passed_nor_scored() {
        for score in [
            r#"{"value":null,"reason":"grader_failed"}"#,
            r#"{"value":null,"metadata":{"unscored_reason":"grader_failed"}}"#,
            r#"{"value":"I","reason":"grader_failed"}"#,
        ] {
            let found = read(&format!(r#"{{"g":{score}}}"#));
            let (_, passed, scored, error) = &found[0];
            assert_eq!((passed, scored), (&None, &None), "{score}");
            assert!(
                error
                    .as_deref()
                    .is_some_and(|why| why.contains("grader_failed")),
                "{score}"
            );
        }
        let refused = read(r#"{"g":{"value":"I","reason":"refusal"}}"#);
        assert_eq!(
            refused[0].1,
            Some(false),
            "the agent's own failure is a verdict"
        );
    }
}

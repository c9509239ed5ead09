//! Arena's verdicts: assertions of a turn or a conversation, guardrails and evals, which are lists of similar objects.
//!
//! Responsible for the names and values of verdicts. Does not read messages.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::super::content::ObjectOnly;
use super::super::lenient_message::text_or_json;
use super::parse_or_none;
use crate::model::{RawJson, SourceVerdict};

/// The largest number of ` #` in a name that are looked at.
const MAX_NUMBERS: usize = 8;

#[derive(Deserialize)]
struct ArenaVerdict<'a> {
    #[serde(borrow, default, alias = "validator_type")]
    #[serde(rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    eval_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    passed: Option<&'a RawValue>,
    #[serde(borrow, default)]
    score: Option<&'a RawValue>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    explanation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    skipped: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaVerdictSummary<'a> {
    #[serde(borrow, default)]
    results: Option<Vec<&'a RawValue>>,
}

/// Returns the verdicts of a list, or of a summary `{results: […]}`. `what` is the name of verdicts without a type, and
/// `at` the index of their message.
pub(super) fn parse_verdicts(
    raw: Option<&RawValue>,
    what: &str,
    at: Option<usize>,
) -> Vec<SourceVerdict> {
    let Some(raw) = raw else { return Vec::new() };
    let list: Vec<&RawValue> =
        match serde_json::from_str::<ObjectOnly<ArenaVerdictSummary<'_>>>(raw.get()) {
            Ok(ObjectOnly(summary)) => summary.results.unwrap_or_default(),
            // A list is not an object, so it arrives here.
            Err(_) => parse_or_none(Some(raw)).unwrap_or_default(),
        };
    let entries = list.into_iter().enumerate();
    let mut found: Vec<SourceVerdict> = Vec::new();
    // The number of verdicts by their names without a number.
    let mut same_names: HashMap<String, usize> = HashMap::new();
    for (nth, raw) in entries {
        let Ok(ObjectOnly(decided)) =
            serde_json::from_str::<ObjectOnly<ArenaVerdict<'_>>>(raw.get())
        else {
            continue;
        };
        // A skipped check decided nothing, so it has no verdict.
        if parse_or_none(decided.skipped) == Some(true) {
            continue;
        }
        let mut verdict = parse_verdict(&decided, &format!("{what} {}", nth + 1));
        // The index distinguishes assertions of different turns, which often have the same type.
        if let Some(at) = at {
            verdict.eval = format!("{}@{at}", verdict.eval);
        }
        // Assertions of one type on one message would share a name. Later ones get a number.
        let same = same_names.get(&verdict.eval).copied().unwrap_or(0);
        if same > 0 {
            verdict.eval = format!("{} #{}", verdict.eval, same + 1);
        }
        // `a #2` counts as an `a`, also if the file has this name.
        let numbers = verdict.eval.match_indices(" #").map(|(end, _)| end);
        for end in numbers.take(MAX_NUMBERS).chain([verdict.eval.len()]) {
            let name = verdict.eval[..end].to_owned();
            *same_names.entry(name).or_default() += 1;
        }
        found.push(verdict);
    }
    found
}

fn parse_verdict(decided: &ArenaVerdict<'_>, unnamed: &str) -> SourceVerdict {
    let non_empty_text =
        |raw: Option<&RawValue>| Some(text_or_json(raw)).filter(|text| !text.is_empty());
    // An eval id is more specific than a type, which several checks share.
    let eval = non_empty_text(decided.eval_id).or_else(|| non_empty_text(decided.kind));
    let error = non_empty_text(decided.error);
    // A check that ended in an error decided nothing, whatever its other fields contain.
    let completed = error.is_none();
    let score: Option<f64> = parse_or_none(decided.score);
    let value = decided
        .value
        .or(decided.score.filter(|raw| raw.get() != "null"));
    SourceVerdict {
        judge: "arena".to_owned(),
        eval: eval.unwrap_or_else(|| unnamed.to_owned()),
        passed: parse_or_none(decided.passed).filter(|_| completed),
        // A score on another scale is only in `value`.
        score: score.filter(|score| completed && (0.0..=1.0).contains(score)),
        value: value.and_then(|raw| RawJson::parse(raw.get()).ok()),
        reasoning: non_empty_text(decided.explanation).or_else(|| non_empty_text(decided.message)),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_one_type_have_different_names() {
        let types = ["a", "a", "a #2", "a", "b", "b #1", "b"];
        let results: Vec<String> = types
            .iter()
            .map(|kind| format!(r#"{{"type":"{kind}","passed":true}}"#))
            .collect();
        let raw = RawValue::from_string(format!("[{}]", results.join(","))).expect("JSON");
        let found = parse_verdicts(Some(&raw), "assertion", None);
        let names: Vec<&str> = found.iter().map(|verdict| verdict.eval.as_str()).collect();
        assert_eq!(names, ["a", "a #2", "a #2 #2", "a #4", "b", "b #1", "b #3"]);
    }
}

//! The fields of a verdict's object that state the opposite verdict.
//!
//! Responsible for the names of such fields and for their values. The parent reads the sentences in them.

use serde_json::Value;

use super::{
    describe_opposite, find_opposite_statement, read_verdict_with_reason, read_verdict_word,
};
use crate::model::split_words;

/// Words that name a verdict in the name of a field, and state none: `verdict`, `final_verdict`.
const NEUTRAL_FIELD_WORDS: &[&str] = &[
    "verdict",
    "result",
    "results",
    "outcome",
    "grade",
    "judgment",
    "judgement",
    "decision",
    "correction",
    "status",
    "overall",
    "final",
    "conclusion",
    "assessment",
    "evaluation",
    "label",
    "rating",
];

/// Words of such a field whose `true` states a fail.
const NEGATIVE_FIELD_WORDS: &[&str] = &[
    "failed",
    "fails",
    "fail",
    "failure",
    "unmet",
    "violates",
    "violated",
    "unsatisfied",
    "unfulfilled",
];

/// Words of such a field whose `true` states a pass: `isPassed`.
const PASSING_FIELD_WORDS: &[&str] = &[
    "pass",
    "passed",
    "passes",
    "met",
    "meets",
    "success",
    "satisfied",
    "satisfies",
    "fulfilled",
    "fulfils",
    "fulfills",
];

/// Other words that the name of such a field can have. A name with any further word, such as `tool_result`, is about
/// something else.
const VERDICT_FIELD_QUALIFIERS: &[&str] = &[
    "my",
    "the",
    "is",
    "corrected",
    "actual",
    "real",
    "text",
    "answer",
    "criteria",
    "criterion",
    "eval",
    "not",
    "all",
    "does",
    "has",
    "should",
    "judge",
];

/// Names of fields that models write in the place of `reasoning`.
const REASON_FIELDS: &[&str] = &[
    "analysis",
    "explanation",
    "justification",
    "rationale",
    "reason",
    "summary",
];

/// Describes a field other than `passed` whose value is the opposite verdict.
pub(in crate::judge) fn find_in_other_fields(json: &str, passed: bool) -> Option<String> {
    let object: Value = serde_json::from_str(json).ok()?;
    let field = find_opposite_field(&object, "passed", passed)?;
    let verdict = if passed { "passed" } else { "failed" };
    Some(format!("the verdict is {verdict}, but its field {field}"))
}

/// Describes the first part with a field other than its own verdict whose value is the opposite verdict. `list` is the field
/// with the parts, and `own` is the field of a part with its verdict.
pub(in crate::judge) fn find_in_part_fields(json: &str, list: &str, own: &str) -> Option<String> {
    let object: Value = serde_json::from_str(json).ok()?;
    let parts = object.get(list)?.as_array()?;
    (1_u32..).zip(parts).find_map(|(position, part)| {
        let is_met = part.get(own)?.as_bool()?;
        let field = find_opposite_field(part, own, is_met)?;
        // The parts may be in another order than their numbers.
        let number = part.get("index").and_then(Value::as_f64);
        let number = number.unwrap_or(f64::from(position));
        let met = if is_met { "met" } else { "not met" };
        Some(format!("part {number} is {met}, but its field {field}"))
    })
}

/// Describes a field of an object other than `own` whose value is the opposite verdict: `` `verdict` is "FAIL" ``.
fn find_opposite_field(object: &Value, own: &str, passed: bool) -> Option<String> {
    let mut fields = object.as_object()?.iter();
    // The object's own field is the verdict; only one inside another object can contradict it.
    let (name, value) =
        fields.find(|(name, value)| *name != own && states_verdict(name, value, !passed))?;
    let value: String = value.to_string().chars().take(60).collect();
    Some(format!("`{name}` is {value}"))
}

/// Returns true if a field, or a field inside it, states `verdict`.
fn states_verdict(name: &str, value: &Value, verdict: bool) -> bool {
    if REASON_FIELDS.contains(&name) {
        let reason = value.as_str().unwrap_or_default();
        return describe_opposite(reason, !verdict).is_some();
    }
    // `"result": "No"` may answer the question of the criterion, such as "Does it contain a slur?".
    let is_answer = value
        .as_str()
        .is_some_and(|word| matches!(&*word.trim().to_lowercase(), "yes" | "yes." | "no" | "no."));
    is_verdict_field(name)
        && (!is_answer || asks_for_verdict(name))
        && has_verdict(value, verdict, is_negative_field(name))
}

/// Returns true if yes and no are verdicts as values of a field: of `met`, and not of `result`.
fn asks_for_verdict(name: &str) -> bool {
    let is_asking =
        |word: &String| PASSING_FIELD_WORDS.contains(&word.as_str()) || is_negative_word(word);
    split_words(name).iter().any(is_asking)
}

/// Returns true if a field's name asks for the opposite: `"failed": true` states a fail.
fn is_negative_field(name: &str) -> bool {
    let words = split_words(name);
    let is_negative = |word: &&String| is_negative_word(word);
    words.iter().filter(is_negative).count() % 2 == 1
}

/// Returns true for a word that turns the meaning of `true`: `failed`, and the first one of `not_met`.
fn is_negative_word(word: &str) -> bool {
    word == "not" || NEGATIVE_FIELD_WORDS.contains(&word)
}

fn has_verdict(value: &Value, verdict: bool, is_negative: bool) -> bool {
    match value {
        Value::Bool(stated) => *stated == (verdict != is_negative),
        // A word such as "fail" states the same under each name, but "yes" answers the name.
        Value::String(word) if is_negative => match word.trim().to_lowercase().as_str() {
            "true" | "yes" => !verdict,
            "false" | "no" => verdict,
            _ => read_verdict_word(word) == Some(verdict),
        },
        Value::String(word) => {
            read_verdict_word(word).or_else(|| read_verdict_with_reason(word)) == Some(verdict)
                || find_opposite_statement(word, !verdict).is_some()
        }
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            // `"verdict": {"value": "fail", "confidence": 0.9}`
            states_verdict(name, value, verdict)
                || name == "value" && has_verdict(value, verdict, is_negative)
        }),
        // A list of several values has one verdict per part, and dicta reads only the overall one.
        Value::Array(values) => {
            matches!(&values[..], [value] if has_verdict(value, verdict, is_negative))
        }
        Value::Null | Value::Number(_) => false,
    }
}

/// Returns true if a name denotes the verdict in any spelling: `final_verdict`, `Final Verdict`, `final-verdict`,
/// `finalVerdict`.
fn is_verdict_field(name: &str) -> bool {
    let words = split_words(name);
    let is_verdict = |word: &String| {
        [
            NEUTRAL_FIELD_WORDS,
            PASSING_FIELD_WORDS,
            NEGATIVE_FIELD_WORDS,
        ]
        .iter()
        .any(|words| words.contains(&word.as_str()))
    };
    let is_qualifier = |word: &String| VERDICT_FIELD_QUALIFIERS.contains(&word.as_str());
    words.iter().any(is_verdict)
        && words
            .iter()
            .all(|word| is_verdict(word) || is_qualifier(word))
}

#[cfg(test)]
mod tests;

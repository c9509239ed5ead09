//! The parser of verdicts. It is conservative: a reply that doesn't clearly state a verdict is `unparsed`, and dicta
//! shows the raw text.
//!
//! It never takes the text from the first `{` to the last `}`, never searches for "PASS", and assumes no default for
//! a missing field. Responsible for the fields of the verdict format, and for the outcome of a verdict
//! ([`apply_bounds`]).

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::contradiction;
use super::parts::PartsFormat;
use super::verdict_error::{VerdictParseError, describe_type_error, present, verdict_error};
use super::verdict_format::{ScoreRange, VerdictFormat};
use crate::handlers::JudgedParams;
use crate::model::{CalibratedScore, CellResult, Citation, Outcome, ScoreBounds, Verdict};

/// The version of this parser; part of every cache key. Increase it if a reply could be read differently.
pub const PARSER_VERSION: u32 = 1;

/// The fields as stated. A repeated field and `null` are errors; unknown fields are ignored.
#[derive(Deserialize)]
struct RawVerdict {
    #[serde(default, deserialize_with = "present")]
    citations: Option<Vec<RawCitation>>,
    #[serde(default, deserialize_with = "present")]
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "present")]
    passed: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    score: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    applicable: Option<bool>,
}

#[derive(Deserialize)]
struct RawCitation {
    source: String,
    quote: String,
}

/// Parses a verdict from a JSON object. Doesn't check its citations.
pub fn parse_verdict_object(
    json: &str,
    format: &VerdictFormat,
) -> Result<Verdict, VerdictParseError> {
    // serde would also accept an array for this struct.
    if !json.trim_start().starts_with('{') {
        return verdict_error("the verdict is not a JSON object");
    }
    let stated: RawVerdict =
        serde_json::from_str(json).map_err(|error| describe_type_error(json, &error))?;
    let not_applicable = stated.applicable == Some(false);
    if not_applicable && !format.allow_na {
        return verdict_error(
            "the verdict says \"not applicable\", which this eval does not allow (`allow_na: true` would)",
        );
    }
    match format.parts {
        Some(parts) => parse_verdict_with_parts(json, stated, parts, not_applicable),
        None => parse_whole_verdict(stated, format, not_applicable),
    }
}

/// Converts a verdict without parts.
fn parse_whole_verdict(
    stated: RawVerdict,
    format: &VerdictFormat,
    not_applicable: bool,
) -> Result<Verdict, VerdictParseError> {
    let range = format.score_range();
    let ScoreRange { low, high } = range;
    if let Some(score) = stated.score
        && !(low..=high).contains(&score)
    {
        return verdict_error(format!(
            "the score must be from {low} to {high} (got {score})"
        ));
    }
    // A "not applicable" verdict needs neither `passed` nor `score`.
    if !not_applicable {
        if format.needs_score && stated.score.is_none() {
            return verdict_error(
                "the verdict has no `score`, and min_score or max_score decides from it",
            );
        }
        if !format.needs_score && stated.passed.is_none() {
            return verdict_error("the verdict has no `passed`");
        }
    }
    let (passed, score) = (stated.passed, stated.score);
    let reasoning = stated.reasoning.as_deref().unwrap_or_default();
    let contradicted = passed.filter(|_| !not_applicable).and_then(|passed| {
        // If a bound decides, a low score can be the good one.
        let of_score = score
            .filter(|_| !format.needs_score)
            .and_then(|score| contradiction::find_in_score(passed, score, range));
        of_score.or_else(|| contradiction::find_in_reasoning(reasoning, passed))
    });
    Ok(Verdict {
        passed,
        score: score.map(|score| match format.scale {
            // dicta's score is from 0 to 1; `raw_score` keeps the eval's own scale.
            Some(ScoreRange { low, high }) if high > low => (score - low) / (high - low),
            _ => score,
        }),
        raw_score: format.scale.and(score),
        contradiction: contradicted,
        ..stated.into_verdict()
    })
}

/// Parses a verdict with parts, from which `passed` and `score` follow.
///
/// An overall verdict of the judge doesn't count; a different one is flagged.
fn parse_verdict_with_parts(
    json: &str,
    stated: RawVerdict,
    format: PartsFormat,
    not_applicable: bool,
) -> Result<Verdict, VerdictParseError> {
    // Parts of an eval that doesn't apply have no meaning.
    if not_applicable {
        return Ok(stated.into_verdict());
    }
    let parts = format.parse_parts(json)?;
    let Some((passed, score)) = format.aggregate(&parts) else {
        return verdict_error("the verdict has no parts");
    };
    let contradicted = match stated.passed {
        Some(stated_passed) if stated_passed != passed => {
            let word = |passed| if passed { "passed" } else { "failed" };
            Some(format!(
                "its parts amount to {}, but the judge states {} as a whole",
                word(passed),
                word(stated_passed)
            ))
        }
        _ => contradiction::find_in_parts(&parts).or_else(|| {
            let reasoning = stated.reasoning.as_deref().unwrap_or_default();
            contradiction::find_in_reasoning(reasoning, passed)
        }),
    };
    Ok(Verdict {
        passed: Some(passed),
        score: Some(score),
        parts,
        contradiction: contradicted,
        ..stated.into_verdict()
    })
}

impl RawVerdict {
    /// Converts the fields that every format has.
    fn into_verdict(self) -> Verdict {
        let citations = self.citations.unwrap_or_default().into_iter();
        Verdict {
            applicable: self.applicable,
            reasoning: self.reasoning.unwrap_or_default(),
            citations: citations
                .map(|c| Citation {
                    source: c.source,
                    quote: c.quote,
                    found: false,
                })
                .collect(),
            ..Verdict::default()
        }
    }
}

/// Parses a verdict from a whole reply with exactly one JSON object.
///
/// The object is the whole reply, is in one code fence, or is on its own lines in prose that states no other verdict.
pub fn parse_verdict_text(
    text: &str,
    format: &VerdictFormat,
) -> Result<Verdict, VerdictParseError> {
    // Some servers begin a reply with a byte order mark.
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return verdict_error("the reply is empty");
    }
    let content = strip_code_fence(text).unwrap_or(text);
    if serde_json::from_str::<&RawValue>(content).is_ok() {
        return parse_verdict_object(content, format);
    }
    let object = find_verdict_object(text, format)?;
    let mut verdict = parse_verdict_object(object, format)?;
    if let (None, Some(passed), true) = (
        &verdict.contradiction,
        verdict.passed,
        verdict.applicable != Some(false),
    ) {
        // Such an object can be a quotation, so the prose after it must agree with it.
        let end = object.as_ptr() as usize - text.as_ptr() as usize + object.len();
        verdict.contradiction = contradiction::find_in_reasoning(&text[end..], passed);
    }
    Ok(verdict)
}

/// Returns the content of a text that is exactly one code fence.
fn strip_code_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let (info, inner) = inner.split_once('\n')?;
    let plain = matches!(info.trim(), "" | "json" | "JSON" | "jsonc" | "json5");
    (plain && !inner.contains("```")).then(|| inner.trim())
}

/// Returns the only JSON object of a prose reply that has a verdict's keys.
fn find_verdict_object<'t>(
    text: &'t str,
    format: &VerdictFormat,
) -> Result<&'t str, VerdictParseError> {
    let mut found: Option<(usize, usize)> = None;
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|n| at + n) {
        // The streaming deserializer stops after one value and ignores the prose behind it.
        let mut values = serde_json::Deserializer::from_str(&text[open..]).into_iter::<&RawValue>();
        let Some(Ok(object)) = values.next() else {
            at = open + 1;
            continue;
        };
        let end = open + object.get().len();
        at = end;
        if !has_verdict_keys(object.get(), format) {
            continue;
        }
        if found.is_some() {
            return verdict_error("the reply holds more than one verdict");
        }
        found = Some((open, end));
    }
    let Some((from, to)) = found else {
        return verdict_error("the reply holds no verdict: expected one JSON object with `passed`");
    };
    // The text on the same line as the object, before and after it.
    let before = text[..from].lines().next_back().unwrap_or_default();
    let before = if text[..from].ends_with('\n') {
        ""
    } else {
        before
    };
    let after = text[to..].lines().next().unwrap_or_default();
    if !before.trim().is_empty() || !after.trim().is_empty() {
        return verdict_error(
            "the reply mentions a verdict within a sentence and does not state one",
        );
    }
    // The prose may state another verdict, broken or in words, and choosing one of the two would be a guess.
    if has_verdict_statement(&text[..from]) || has_verdict_statement(&text[to..]) {
        return verdict_error("the reply states a verdict outside its JSON object as well");
    }
    Ok(&text[from..to])
}

fn has_verdict_keys(object: &str, format: &VerdictFormat) -> bool {
    let part_keys = format.parts.map_or(&[][..], PartsFormat::keys);
    serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(object).is_ok_and(|map| {
        ["passed", "score", "applicable"]
            .iter()
            .chain(part_keys)
            .any(|key| map.contains_key(*key))
    })
}

fn has_verdict_statement(prose: &str) -> bool {
    static FIELD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)\b(passed|score|applicable|verdict)\b["'`*_]*\s*[:=]\s*["'`*_]*[\w.+-]"#)
            .expect("a valid pattern")
    });
    FIELD.is_match(prose)
}

/// Applies an eval's bounds to a verdict. Pure, so that dicta can rescore a recorded verdict.
///
/// A verdict without the field that now decides is `unparsed`.
pub fn apply_bounds(verdict: &Verdict, params: &JudgedParams) -> CellResult {
    // With parts, only they decide: a judge's own overall verdict is ignored.
    let (passed, score) = match params.parts_spec.aggregate(&verdict.parts) {
        Some((passed, score)) => (Some(passed), Some(score)),
        None => (verdict.passed, verdict.score),
    };
    let bounds = ScoreBounds {
        min: params.min_score,
        max: params.max_score,
    };
    let outcome = bounds.decide(crate::model::VerdictSummary {
        passed,
        score,
        applicable: verdict.applicable,
    });
    let mut result = match outcome {
        Ok(outcome) => CellResult::new(outcome, render_explanation(verdict, params)),
        Err(why) => CellResult::from_error(Outcome::Unparsed, why),
    };
    // An outcome such as "not applicable" has no score, even if the judge wrote one.
    if result.outcome.is_verdict() {
        result.score = score;
    }
    result.verdict = Some(Box::new(verdict.clone()));
    result
}

/// Renders the explanation: the reasoning, and with parts their summary before it and each part after it.
fn render_explanation(verdict: &Verdict, params: &JudgedParams) -> String {
    let calibrated = verdict
        .calibrated
        .as_ref()
        .map(CalibratedScore::summary_line);
    // A calibrated verdict has no reasoning, so its summary replaces it.
    if verdict.parts.is_empty() {
        return calibrated.unwrap_or_else(|| verdict.reasoning.clone());
    }
    let mut lines = vec![params.parts_spec.summarize(&verdict.parts)];
    lines.extend(calibrated);
    if !verdict.reasoning.is_empty() {
        lines.push(verdict.reasoning.clone());
    }
    let parts = verdict.parts.iter().zip(1..);
    lines.extend(parts.map(|(part, number)| part.format_line(number)));
    lines.join("\n")
}

#[cfg(test)]
mod tests;

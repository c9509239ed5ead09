//! Reading a verdict, conservatively: what does not state one is unparsed, and the raw text is shown.
//!
//! Copies nothing of the tools before us: no first `{` to last `}`, no search for "PASS", no default of true, 0.5 or 0
//! (eval-handlers.md 6). Owns the reading of the form's fields and the decision a verdict amounts to ([`decide`]).

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::contradiction;
use super::parts::PartsFormat;
use super::verdict_error::{VerdictParseError, describe_type_error, present, verdict_error};
use super::verdict_format::VerdictFormat;
use crate::handlers::JudgedParams;
use crate::model::{CalibratedScore, CellResult, Citation, Outcome, ScoreBounds, Verdict};

/// The version of this reading; part of every cache key. Raise it when a reply could be read otherwise than before.
pub const PARSER_VERSION: u32 = 1;

/// The fields as stated. A field stated twice is an error (serde's own), so is `null`; unknown ones are passed over.
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

/// Reads a verdict from a JSON object. Citations are not looked up yet.
pub fn parse_verdict_object(
    json: &str,
    form: &VerdictFormat,
) -> Result<Verdict, VerdictParseError> {
    if !json.trim_start().starts_with('{') {
        return verdict_error("the verdict is not a JSON object");
    }
    let stated: RawVerdict =
        serde_json::from_str(json).map_err(|error| describe_type_error(json, &error))?;
    let not_applicable = stated.applicable == Some(false);
    if not_applicable && !form.allow_na {
        return verdict_error(
            "the verdict says \"not applicable\", which this eval does not allow (`allow_na: true` would)",
        );
    }
    match form.parts {
        Some(parts) => parse_verdict_with_parts(json, stated, parts, not_applicable),
        None => parse_whole_verdict(stated, form, not_applicable),
    }
}

/// A verdict without parts.
fn parse_whole_verdict(
    stated: RawVerdict,
    form: &VerdictFormat,
    not_applicable: bool,
) -> Result<Verdict, VerdictParseError> {
    let (low, high) = form.score_range();
    if let Some(score) = stated.score
        && !(low..=high).contains(&score)
    {
        return verdict_error(format!(
            "the score must be from {low} to {high} (got {score})"
        ));
    }
    if !not_applicable {
        if form.needs_score && stated.score.is_none() {
            return verdict_error(
                "the verdict has no `score`, and min_score or max_score decides from it",
            );
        }
        if !form.needs_score && stated.passed.is_none() {
            return verdict_error("the verdict has no `passed`");
        }
    }
    let (passed, score) = (stated.passed, stated.score);
    let reasoning = stated.reasoning.as_deref().unwrap_or_default();
    let contradicted = passed.filter(|_| !not_applicable).and_then(|passed| {
        // Where a bound decides, a low score may be the good one.
        let of_score = score
            .filter(|_| !form.needs_score)
            .and_then(|score| contradiction::find_in_score(passed, score, (low, high)));
        of_score.or_else(|| contradiction::find_in_reasoning(reasoning, passed))
    });
    Ok(Verdict {
        passed,
        score: score.map(|score| match form.scale {
            Some((low, high)) if high > low => (score - low) / (high - low),
            _ => score,
        }),
        raw_score: form.scale.and(score),
        contradiction: contradicted,
        ..stated.into_verdict()
    })
}

/// A verdict with parts: `passed` and `score` follow from them. An overall of the judge's own was not asked for and does
/// not count; one that says otherwise is flagged.
fn parse_verdict_with_parts(
    json: &str,
    stated: RawVerdict,
    form: PartsFormat,
    not_applicable: bool,
) -> Result<Verdict, VerdictParseError> {
    if not_applicable {
        return Ok(stated.into_verdict());
    }
    let parts = form.parse_parts(json)?;
    let Some((passed, score)) = form.aggregate(&parts) else {
        return verdict_error("the verdict has no parts");
    };
    let contradicted = match stated.passed {
        Some(own) if own != passed => {
            let word = |passed| if passed { "passed" } else { "failed" };
            Some(format!(
                "its parts amount to {}, but the judge states {} as a whole",
                word(passed),
                word(own)
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
    /// What is the same in every form.
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

/// Reads a verdict from a whole reply: one JSON object, alone, in one code fence, or on lines of its own in prose that
/// states no second verdict.
pub fn parse_verdict_text(text: &str, form: &VerdictFormat) -> Result<Verdict, VerdictParseError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return verdict_error("the reply is empty");
    }
    let whole = strip_code_fence(text).unwrap_or(text);
    if serde_json::from_str::<&RawValue>(whole).is_ok() {
        return parse_verdict_object(whole, form);
    }
    let object = find_verdict_object(text, form)?;
    let mut verdict = parse_verdict_object(object, form)?;
    if let (None, Some(passed), true) = (
        &verdict.contradiction,
        verdict.passed,
        verdict.applicable != Some(false),
    ) {
        // An object on lines of its own may be one that the prose quotes: what it says last must agree.
        let end = object.as_ptr() as usize - text.as_ptr() as usize + object.len();
        verdict.contradiction = contradiction::find_in_reasoning(&text[end..], passed);
    }
    Ok(verdict)
}

/// The inside of a text that is one code fence and nothing else.
fn strip_code_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let (info, inner) = inner.split_once('\n')?;
    let plain = matches!(info.trim(), "" | "json" | "JSON" | "jsonc" | "json5");
    (plain && !inner.contains("```")).then(|| inner.trim())
}

/// The one JSON object of a prose reply that has a verdict's keys.
fn find_verdict_object<'t>(
    text: &'t str,
    form: &VerdictFormat,
) -> Result<&'t str, VerdictParseError> {
    let mut found: Option<(usize, usize)> = None;
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|n| at + n) {
        let mut values = serde_json::Deserializer::from_str(&text[open..]).into_iter::<&RawValue>();
        let Some(Ok(object)) = values.next() else {
            at = open + 1;
            continue;
        };
        let end = open + object.get().len();
        at = end;
        if !has_verdict_keys(object.get(), form) {
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
    // What is left must not state another, broken or in words: which of the two counts would be a guess.
    if has_verdict_statement(&text[..from]) || has_verdict_statement(&text[to..]) {
        return verdict_error("the reply states a verdict outside its JSON object as well");
    }
    Ok(&text[from..to])
}

fn has_verdict_keys(object: &str, form: &VerdictFormat) -> bool {
    let own = form.parts.map_or(&[][..], PartsFormat::keys);
    serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(object).is_ok_and(|map| {
        ["passed", "score", "applicable"]
            .iter()
            .chain(own)
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

/// What a verdict amounts to under what decides. Pure: a recorded verdict is decided again when `min_score` changed.
///
/// A verdict that lacks what now decides is `unparsed`, never a guess.
pub fn apply_bounds(verdict: &Verdict, params: &JudgedParams) -> CellResult {
    // Of a list the parts decide: what they amount to, not what the judge might have said of the whole.
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
    if result.outcome.is_verdict() {
        result.score = score;
    }
    result.verdict = Some(Box::new(verdict.clone()));
    result
}

/// The reason; with parts, what they say in a line, the reason, and each part.
fn render_explanation(verdict: &Verdict, params: &JudgedParams) -> String {
    let calibrated = verdict
        .calibrated
        .as_ref()
        .map(CalibratedScore::summary_line);
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

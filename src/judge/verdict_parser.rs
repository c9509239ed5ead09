//! The parser of a verdict's fields. It assumes no default for a missing field.
//!
//! Responsible for the fields of the verdict format, and for the outcome of a verdict ([`apply_bounds`]). Doesn't
//! search a reply for its verdict; [`super::verdict_text`] does.

use serde::Deserialize;

use super::contradiction;
use super::parts::PartsFormat;
use super::verdict_error::{VerdictParseError, describe_type_error, present, verdict_error};
use super::verdict_format::{ScoreRange, VerdictFormat};
use crate::handlers::JudgedParams;
use crate::model::{
    CalibratedScore, CellResult, Citation, Outcome, PairChoice, PairOrder, ScoreBounds, Verdict,
};

/// The version of this parser; part of every cache key. Increase it if a reply could be read differently.
pub const PARSER_VERSION: u32 = 13;

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
        None => match format.pair_order {
            Some(order) => parse_comparison(stated, order, not_applicable),
            None => parse_whole_verdict(json, stated, format, not_applicable),
        },
    }
}

/// Converts a verdict about a pair. Its score becomes that of the first transcript of the file, so that the verdicts of
/// both orders can be combined. A verdict without a score states a choice with `passed`.
fn parse_comparison(
    stated: RawVerdict,
    order: PairOrder,
    not_applicable: bool,
) -> Result<Verdict, VerdictParseError> {
    if not_applicable {
        return Ok(stated.into_verdict());
    }
    let Some(score_of_a) = stated
        .score
        .or(stated.passed.map(|passed| f64::from(u8::from(passed))))
    else {
        return verdict_error("the verdict has no `score`, which names the better answer");
    };
    if !(0.0..=1.0).contains(&score_of_a) {
        return verdict_error(format!("the score must be from 0 to 1 (got {score_of_a})"));
    }
    let score = order.score_first(score_of_a);
    // The score decides, because `passed` can't tell a tie from a worse answer.
    let choice_of_a = PairChoice::from_score(PairOrder::FirstIsA.score_first(score_of_a));
    let a_is_better = choice_of_a == PairChoice::First;
    let contradicted = stated.passed.filter(|passed| *passed != a_is_better);
    let words = if a_is_better {
        "is better"
    } else {
        "is not better"
    };
    Ok(Verdict {
        contradiction: contradicted.map(|passed| {
            format!("its score is {score_of_a}, so answer A {words}, but its `passed` is {passed}")
        }),
        passed: Some(PairChoice::from_score(score) == PairChoice::First),
        score: Some(score),
        raw_score: Some(score_of_a),
        ..stated.into_verdict()
    })
}

/// Converts a verdict without parts.
fn parse_whole_verdict(
    json: &str,
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
        // The score comes last, so that its flag hides no other one: see `update_score_flag`.
        contradiction::find_in_reasoning(reasoning, passed)
            .or_else(|| contradiction::find_in_other_fields(json, passed))
            .or_else(|| {
                // If a bound decides, a low score can be the good one.
                let score = score.filter(|_| !format.needs_score)?;
                contradiction::find_in_score(passed, score, range)
            })
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
                .or_else(|| contradiction::find_in_other_fields(json, passed))
                .or_else(|| match format {
                    // A field such as `status` is about the call itself, and not about its verdict.
                    PartsFormat::Calls(_) | PartsFormat::Behaviors => None,
                    PartsFormat::Criteria(_) | PartsFormat::Goals(_) => {
                        let (list, own) = (format.keys()[0], format.met_key());
                        contradiction::find_in_part_fields(json, list, own)
                    }
                })
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

/// Updates the flag of a recorded verdict for the present bounds. `passed` and a score contradict each other only if no
/// bound decides from the score.
///
/// The cache key excludes the bounds, so the verdict may have been read under other ones.
pub fn update_score_flag(verdict: &mut Verdict, params: &JudgedParams) {
    // The score of any other verdict follows from something else, or is the comparison itself.
    let is_plain = verdict.parts.is_empty()
        && verdict.calibrated.is_none()
        && verdict.applicable != Some(false)
        && params.pair_order.is_none()
        && params.compared_texts.is_empty();
    let score = verdict.raw_score.or(verdict.score);
    let (true, Some(passed), Some(score)) = (is_plain, verdict.passed, score) else {
        return;
    };
    let format = VerdictFormat::from_params(params, false);
    let Some(flag) = contradiction::find_in_score(passed, score, format.score_range()) else {
        return;
    };
    if !format.needs_score {
        verdict.contradiction.get_or_insert(flag);
    } else if verdict.contradiction.as_ref() == Some(&flag) {
        verdict.contradiction = None;
    }
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

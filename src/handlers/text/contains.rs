//! `contains`, `contains_any`, `content_excludes`: substrings, case-insensitive, all patterns in one pass.

use std::cell::RefCell;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lowercase::to_original_range;
use super::patterns::{PatternHit, PatternSet};
use crate::handlers::eval_type::EvalType;
use crate::handlers::explain::{NO_ANSWER, QuotedText, TextLocation, format_list};
use crate::handlers::subject::CheckCacheKey;
use crate::handlers::{
    Check, CompiledEval, Finding, JudgedPart, MessageText, Subject, TranscriptSpan,
};
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// Params of `contains`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct Contains {
    /// Texts that must all occur. Case does not matter.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
}

impl EvalType for Contains {
    const NAME: &'static str = "contains";
    const SUMMARY: &'static str = "The output contains all patterns, in any case. User messages, tool results and arguments are not searched. The score is the share of patterns found.";
    const EXAMPLE: &'static str = "patterns: [refund, order number]";
    const SCORED: bool = true;
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("content_includes")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let patterns = PatternSet::new(self.patterns, "patterns")?;
        Ok(CompiledEval::Check(Box::new(ContainsAllCheck(patterns))))
    }
}

/// Params of `contains_any`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ContainsAny {
    /// Texts of which at least one must occur in an assistant message. Case does not matter.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
}

impl EvalType for ContainsAny {
    const NAME: &'static str = "contains_any";
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Answers);
    const SUMMARY: &'static str =
        "At least one assistant message contains at least one of the patterns, in any case.";
    const EXAMPLE: &'static str = "patterns: [refund, invoice]";
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("content_includes_any")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let patterns = PatternSet::new(self.patterns, "patterns")?;
        Ok(CompiledEval::Check(Box::new(ContainsAnyCheck::new(
            patterns, true,
        ))))
    }
}

/// Params of `content_excludes`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ContentExcludes {
    /// Texts that must not occur in any assistant message. Case does not matter.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
    /// `substring`: matches anywhere, also inside words. `word_boundary`: matches whole words, so that `ass` is not
    /// found in `class`.
    #[serde(default)]
    match_mode: MatchMode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MatchMode {
    #[default]
    Substring,
    WordBoundary,
}

impl EvalType for ContentExcludes {
    const NAME: &'static str = "content_excludes";
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Answers);
    const SUMMARY: &'static str = "No assistant message contains any of the patterns, in any case.";
    const EXAMPLE: &'static str = "patterns: [As an AI language model]\nmatch_mode: substring";
    const ALIASES: &'static [EvalTypeAlias] = &[
        EvalTypeAlias::new("content_not_includes"),
        EvalTypeAlias {
            name: "banned_words",
            preset_params: &[("match_mode", "\"word_boundary\"")],
        },
    ];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[("words", "patterns")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let patterns = PatternSet::new(self.patterns, "patterns")?
            .whole_words(self.match_mode == MatchMode::WordBoundary);
        Ok(CompiledEval::Check(Box::new(ContainsAnyCheck::new(
            patterns, false,
        ))))
    }
}

#[derive(Debug)]
struct ContainsAllCheck(PatternSet);

#[derive(Debug)]
struct ContainsAnyCheck {
    patterns: PatternSet,
    /// `true` if a hit passes.
    passes_on_hit: bool,
    cache_key: CheckCacheKey,
}

/// The hits in the first assistant messages, so that the next turn does not search them again.
type PatternHitCache = RefCell<Vec<Vec<PatternHit>>>;

impl ContainsAnyCheck {
    fn new(patterns: PatternSet, passes_on_hit: bool) -> Self {
        Self {
            patterns,
            passes_on_hit,
            cache_key: CheckCacheKey::new(),
        }
    }
}

impl PatternSet {
    /// Formats a hit: `"refund" in message 4`.
    fn describe_hit(&self, message_text: &MessageText<'_>, hit: &PatternHit) -> String {
        let place = TextLocation(message_text.message);
        format!("{}{place}", QuotedText(&self.written[hit.pattern]))
    }

    fn list_patterns(&self) -> String {
        format_list(self.written.iter().map(|p| QuotedText(p)))
    }
}

impl Check for ContainsAllCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        // Without an answer nothing is found, and the explanation says why.
        let Some(message) = output.message else {
            let all = self.0.list_patterns();
            let why = format!("missing {all}: {NO_ANSWER}");
            return Finding::new(false, why).with_score(0.0);
        };
        // One hit for each pattern is enough for the score.
        let hits = self.0.find_first_of_each(output.lowercase());
        let found = hits.iter().flatten().count();
        let score = found as f64 / hits.len() as f64;
        // Only the listed hits get their location in the original text, because computing it reads the text again.
        let listed = hits.iter().enumerate().filter_map(|(pattern, range)| {
            Some(PatternHit {
                pattern,
                bytes: to_original_range(&output.text, range.as_ref()?),
            })
        });
        let listed_hits: Vec<PatternHit> = listed.take(Finding::MAX_SPANS).collect();
        let finding = if found == hits.len() {
            let rest = found - listed_hits.len();
            let descriptions = listed_hits
                .iter()
                .map(|hit| self.0.describe_hit(output, hit));
            // Empty entries only count: the list shows fewer items than there are spans.
            let rest = std::iter::repeat_n(String::new(), rest);
            Finding::new(
                true,
                format!("found {}", format_list(descriptions.chain(rest))),
            )
        } else {
            let missing = hits
                .iter()
                .zip(&self.0.written)
                .filter(|(hit, _)| hit.is_none());
            let missing = format_list(missing.map(|(_, pattern)| QuotedText(pattern)));
            Finding::new(false, format!("missing {missing} in message {message}"))
        };
        finding
            .with_score(score)
            .with_spans(hit_spans(subject, output, &listed_hits))
    }
}

// Hits that cross two parts have no span and are left out.
fn hit_spans(
    subject: &Subject<'_>,
    message_text: &MessageText<'_>,
    hits: &[PatternHit],
) -> Vec<TranscriptSpan> {
    let hits = hits.iter();
    hits.filter_map(|hit| subject.text_span(message_text, &hit.bytes))
        .collect()
}

impl Check for ContainsAnyCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let texts = subject.assistant_texts();
        let mut why = None;
        let mut places: Vec<TranscriptSpan> = Vec::new();
        // No more spans than a finding can hold, so a long transcript is not searched to its end.
        let mut room = Finding::MAX_SPANS;
        let known = subject.check_cache::<PatternHitCache>(&self.cache_key);
        let mut known = known.borrow_mut();
        for (nth, message_text) in subject.until_cancelled(texts.iter().enumerate()) {
            if room == 0 {
                break;
            }
            // `known` holds the hits of the messages before; this message is new.
            if nth == known.len() {
                known.push(self.patterns.find_hits(message_text, Finding::MAX_SPANS));
            }
            // The cached hits of one message can exceed the room that is left.
            let hits = &known[nth][..known[nth].len().min(room)];
            // The explanation names only the first hit.
            if let (None, Some(first)) = (&why, hits.first()) {
                why = Some(format!(
                    "found {}",
                    self.patterns.describe_hit(message_text, first)
                ));
            }
            room -= hits.len();
            places.extend(hit_spans(subject, message_text, hits));
        }
        // `why` is set by the first hit, so it also records whether there was one.
        let found = why.is_some();
        let why = why.unwrap_or_else(|| {
            format!(
                "none of {} in {}",
                self.patterns.list_patterns(),
                describe_message_count(texts.len())
            )
        });
        Finding::new(found == self.passes_on_hit, why).with_spans(places)
    }
}

fn describe_message_count(count: usize) -> String {
    match count {
        1 => "1 assistant message".to_owned(),
        count => format!("{count} assistant messages"),
    }
}

#[cfg(test)]
mod tests;

//! `contains`, `contains_any`, `content_excludes`: substrings, case-insensitive, several in one pass.

use std::cell::RefCell;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fold::unfold;
use super::patterns::{Hit, Patterns};
use crate::handlers::explain::{Place, Quoted, list};
use crate::handlers::registry::EvalType;
use crate::handlers::subject::Memo;
use crate::handlers::{Check, Compiled, Finding, Mark, Said, Subject};
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// Params of `contains`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct Contains {
    /// Texts that must all occur, whatever their case.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
}

impl EvalType for Contains {
    const NAME: &'static str = "contains";
    const SUMMARY: &'static str = "The output holds all of the patterns, case-insensitively. User, tool and argument text is not searched. The score is the share of patterns found.";
    const EXAMPLE: &'static str = "patterns: [refund, order number]";
    const SCORED: bool = true;
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("content_includes")];

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let patterns = Patterns::new(self.patterns, "patterns")?;
        Ok(Compiled::Check(Box::new(All(patterns))))
    }
}

/// Params of `contains_any`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ContainsAny {
    /// Texts of which one must occur in some assistant message, whatever its case.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
}

impl EvalType for ContainsAny {
    const NAME: &'static str = "contains_any";
    const SUMMARY: &'static str =
        "Any assistant message holds any of the patterns, case-insensitively.";
    const EXAMPLE: &'static str = "patterns: [refund, invoice]";
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("content_includes_any")];

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let patterns = Patterns::new(self.patterns, "patterns")?;
        Ok(Compiled::Check(Box::new(Any::new(patterns, true))))
    }
}

/// Params of `content_excludes`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ContentExcludes {
    /// Texts that must not occur in any assistant message, whatever their case.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
    /// `substring`: anywhere, within words too. `word_boundary`: as whole words, so that `ass` is not found in `class`.
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
    const SUMMARY: &'static str =
        "No assistant message holds any of the patterns, case-insensitively.";
    const EXAMPLE: &'static str = "patterns: [As an AI language model]\nmatch_mode: substring";
    const ALIASES: &'static [EvalTypeAlias] = &[
        EvalTypeAlias::new("content_not_includes"),
        EvalTypeAlias {
            name: "banned_words",
            preset_params: &[("match_mode", "\"word_boundary\"")],
        },
    ];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[("words", "patterns")];

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let patterns = Patterns::new(self.patterns, "patterns")?
            .whole_words(self.match_mode == MatchMode::WordBoundary);
        Ok(Compiled::Check(Box::new(Any::new(patterns, false))))
    }
}

#[derive(Debug)]
struct All(Patterns);

#[derive(Debug)]
struct Any {
    patterns: Patterns,
    /// Whether a hit passes.
    expect: bool,
    memo: Memo,
}

/// The hits in the first assistant messages: what one turn found need not be looked for again at the next.
type Known = RefCell<Vec<Vec<Hit>>>;

impl Any {
    fn new(patterns: Patterns, expect: bool) -> Self {
        Self {
            patterns,
            expect,
            memo: Memo::new(),
        }
    }
}

impl Patterns {
    /// `"refund" at message 4, bytes 10..16`.
    fn told(&self, said: &Said<'_>, hit: &Hit) -> String {
        let place = Place {
            message: said.message,
            bytes: hit.bytes.clone(),
        };
        format!("{} at {place}", Quoted(&self.written[hit.pattern]))
    }

    fn names(&self) -> String {
        list(self.written.iter().map(|p| Quoted(p)))
    }
}

impl Check for All {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        let Some(message) = output.message else {
            let all = self.0.names();
            let why = format!("missing {all}: there is no assistant message");
            return Finding::of(false, why).scored(0.0);
        };
        let hits = self.0.each(output.folded());
        let found = hits.iter().flatten().count();
        let score = found as f64 / hits.len() as f64;
        // Places in the text as it stands are worked out for those that are shown.
        let told = hits.iter().enumerate().filter_map(|(pattern, range)| {
            Some(Hit {
                pattern,
                bytes: unfold(&output.text, range.as_ref()?),
            })
        });
        let shown: Vec<Hit> = told.take(Finding::MARKS).collect();
        let finding = if found == hits.len() {
            let rest = found - shown.len();
            let shown = shown.iter().map(|hit| self.0.told(output, hit));
            let rest = std::iter::repeat_n(String::new(), rest);
            Finding::of(true, format!("found {}", list(shown.chain(rest))))
        } else {
            let missing = hits
                .iter()
                .zip(&self.0.written)
                .filter(|(hit, _)| hit.is_none());
            let missing = list(missing.map(|(_, pattern)| Quoted(pattern)));
            Finding::of(false, format!("missing {missing} in message {message}"))
        };
        finding.scored(score).marked(marks(subject, output, &shown))
    }
}

fn marks(subject: &Subject<'_>, said: &Said<'_>, hits: &[Hit]) -> Vec<Mark> {
    let hits = hits.iter();
    hits.filter_map(|hit| subject.mark_said(said, &hit.bytes))
        .collect()
}

impl Check for Any {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let said = subject.said();
        let mut why = None;
        let mut places: Vec<Mark> = Vec::new();
        let mut room = Finding::MARKS;
        let known = subject.memo::<Known>(&self.memo);
        let mut known = known.borrow_mut();
        for (nth, said) in subject.while_wanted(said.iter().enumerate()) {
            if room == 0 {
                break;
            }
            if nth == known.len() {
                known.push(self.patterns.some(said, Finding::MARKS));
            }
            let hits = &known[nth][..known[nth].len().min(room)];
            if let (None, Some(first)) = (&why, hits.first()) {
                why = Some(format!("found {}", self.patterns.told(said, first)));
            }
            room -= hits.len();
            places.extend(marks(subject, said, hits));
        }
        let found = why.is_some();
        let why = why.unwrap_or_else(|| {
            format!(
                "none of {} in {}",
                self.patterns.names(),
                messages(said.len())
            )
        });
        Finding::of(found == self.expect, why).marked(places)
    }
}

fn messages(count: usize) -> String {
    match count {
        1 => "1 assistant message".to_owned(),
        count => format!("{count} assistant messages"),
    }
}

#[cfg(test)]
mod tests;

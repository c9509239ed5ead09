//! The `--where` language: which decisions a run is about.
//!
//! Terms stand side by side and all must hold; `!` in front turns one around. `key:value` looks at one property, with
//! globs and commas for "or" (`eval:tone,grounded*`); a bare word is looked for in the cell's name, letter case aside. A text in double
//! quotes is one word, whatever it holds (`"support:3"`).
//!
//! | key | looks at |
//! |---|---|
//! | `transcript:` `rubric:` `eval:` | ids |
//! | `judge:` | the judge's name, of several any; evals without a judge match none |
//! | `tag:` | any of the transcript's tags |
//! | `group:` | any of the eval's `groups` |
//! | `outcome:` | how it ended on the board; also `error` (any error outcome) and `none` (no result yet) |
//!
//! Owns parsing and matching. Refuses to know where tags and outcomes come from: the caller says.

use std::collections::HashSet;
use std::fmt;

use thiserror::Error;

use crate::diag::find_nearest;
use crate::model::{Outcome, pluralize};

const FILTER_KEYS: [&str; 7] = [
    "outcome",
    "eval",
    "rubric",
    "transcript",
    "judge",
    "tag",
    "group",
];

/// A parsed `--where`.
#[derive(Debug, Clone)]
pub struct DecisionFilter {
    text: String,
    terms: Vec<FilterTerm>,
}

/// Why a text is no filter: a sentence one can act on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("--where: {0}")]
pub struct FilterError(String);

/// What a filter looks at: one decision, before it is planned.
#[derive(Debug, Clone, Copy)]
pub struct FilterCandidate<'c> {
    /// The transcript's id.
    pub transcript: &'c str,
    /// The transcript's tags.
    pub tags: &'c [&'c str],
    /// The rubric's id.
    pub rubric: &'c str,
    /// The eval's id.
    pub eval: &'c str,
    /// The judges, for judge evals; of a jury or a cascade all.
    pub judges: &'c [&'c str],
    /// The eval's groups.
    pub groups: &'c [String],
    /// The cell's name, without the repeat.
    pub name: &'c str,
    /// How it ended on the board.
    pub outcome: Option<Outcome>,
    /// What bare words are looked for in besides the name: the explanation, where it is known. Empty before a run.
    pub explanation: &'c str,
}

#[derive(Debug, Clone)]
struct FilterTerm {
    is_negated: bool,
    condition: FilterCondition,
}

#[derive(Debug, Clone)]
enum FilterCondition {
    Word(String),
    Id(FilterKey, Vec<IdPattern>),
    Outcome(Vec<OutcomeFilter>),
    Names(NamedDecisions),
}

/// Named decisions.
#[derive(Debug, Clone)]
struct NamedDecisions {
    exact: HashSet<String>,
    /// The same without the suffix that makes a transcript's id unique (`a~2`): what they are called while reading.
    without_suffix: HashSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterKey {
    Eval,
    Rubric,
    Transcript,
    Judge,
    Tag,
    Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutcomeFilter {
    Is(Outcome),
    InError,
    NoResult,
}

#[derive(Debug, Clone)]
struct IdPattern {
    text: String,
    glob: Option<globset::GlobMatcher>,
}

impl IdPattern {
    fn new(text: &str) -> Self {
        let glob = text
            .contains(['*', '?', '[', '{'])
            .then(|| globset::Glob::new(text).ok())
            .flatten()
            .map(|glob| glob.compile_matcher());
        Self {
            text: text.to_owned(),
            glob,
        }
    }

    fn matches(&self, value: &str) -> bool {
        // The text itself first: an id may hold characters that mean something in a glob.
        self.text == value || self.glob.as_ref().is_some_and(|glob| glob.is_match(value))
    }
}

impl DecisionFilter {
    /// Reads a filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let filter = Self::from_words(text, split_words(text)?)?;
        if filter.terms.is_empty() {
            return Err(FilterError(format!(
                "the filter is empty; write for example `eval:tone` (keys: {})",
                FILTER_KEYS.join(", ")
            )));
        }
        Ok(filter)
    }

    /// A filter of some words of `text`; of none, everything.
    pub(crate) fn from_words(text: &str, words: Vec<FilterWord>) -> Result<Self, FilterError> {
        let terms = words
            .into_iter()
            .map(parse_term)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            terms,
        })
    }

    /// These decisions and no others: cells' names without judge and repeat.
    ///
    /// While a transcript is read, its id may still lack the suffix that makes it unique (`a~2`). So [`Filter::matches`]
    /// lets through what *may* be meant, and `Filter::names_exactly` decides once ids are unique.
    pub fn from_names(names: impl IntoIterator<Item = String>) -> Self {
        let exact: HashSet<String> = names.into_iter().collect();
        let early = exact
            .iter()
            .filter_map(|name| strip_id_suffix(name))
            .collect();
        let text = match exact.iter().next() {
            Some(only) if exact.len() == 1 => format!("\"{only}\""),
            _ => format!("({} named)", pluralize(exact.len() as u64, "decision")),
        };
        Self {
            text,
            terms: vec![FilterTerm {
                is_negated: false,
                condition: FilterCondition::Names(NamedDecisions {
                    exact,
                    without_suffix: early,
                }),
            }],
        }
    }

    /// All decisions but one: its name without judge and repeat.
    pub(crate) fn all_except(name: String) -> Self {
        let mut filter = Self::from_names([name]);
        filter.text.insert(0, '!');
        for term in &mut filter.terms {
            term.is_negated = true;
            if let FilterCondition::Names(names) = &mut term.condition {
                // What may be meant is not what is left out.
                names.without_suffix.clear();
            }
        }
        filter
    }

    /// Whether decisions are named, so that `Filter::names_exactly` is to be asked.
    pub(crate) fn has_names(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term.condition, FilterCondition::Names(_)))
    }

    /// Whether a decision is among the named ones, its transcript's id being unique. `true` where none are named.
    pub(crate) fn includes_name(&self, decision: &str) -> bool {
        self.terms.iter().all(|term| match &term.condition {
            FilterCondition::Names(names) => names.exact.contains(decision) != term.is_negated,
            _ => true,
        })
    }

    /// Whether any term looks at the board, so that it must be read.
    pub fn needs_past_outcomes(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term.condition, FilterCondition::Outcome(_)))
    }

    /// Whether any term looks at a candidate's whole name, so that it must be written.
    pub(crate) fn needs_name(&self) -> bool {
        let whole = |what: &FilterCondition| {
            matches!(what, FilterCondition::Word(_) | FilterCondition::Names(_))
        };
        self.terms.iter().any(|term| whole(&term.condition))
    }

    /// Whether the decision is selected.
    pub fn matches(&self, candidate: &FilterCandidate<'_>) -> bool {
        self.terms
            .iter()
            .all(|term| term.condition.matches(candidate) != term.is_negated)
    }

    /// Whether some transcript may be selected for this eval; `false` only where no transcript can be.
    pub fn may_select(&self, rubric: &str, eval: &str, judges: &[&str], groups: &[String]) -> bool {
        self.terms.iter().all(|term| {
            let FilterCondition::Id(key, patterns) = &term.condition else {
                return true;
            };
            let hit = |id: &str| patterns.iter().any(|pattern| pattern.matches(id));
            match key {
                FilterKey::Eval => hit(eval) != term.is_negated,
                FilterKey::Rubric => hit(rubric) != term.is_negated,
                FilterKey::Judge => judges.iter().any(|judge| hit(judge)) != term.is_negated,
                FilterKey::Group => groups.iter().any(|group| hit(group)) != term.is_negated,
                FilterKey::Transcript | FilterKey::Tag => true,
            }
        })
    }

    /// Id patterns that match nothing of what exists, as sentences with the nearest id: found before anything is read.
    /// Transcripts and tags are known only later.
    pub fn unmatched_patterns(
        &self,
        evals: &[&str],
        rubrics: &[&str],
        judges: &[&str],
        groups: &[&str],
    ) -> Vec<String> {
        let mut problems = Vec::new();
        for term in self.terms.iter().filter(|term| !term.is_negated) {
            let FilterCondition::Id(key, patterns) = &term.condition else {
                continue;
            };
            let (word, known) = match key {
                FilterKey::Eval => ("eval", evals),
                FilterKey::Rubric => ("rubric", rubrics),
                FilterKey::Judge => ("judge", judges),
                FilterKey::Group => ("group", groups),
                FilterKey::Transcript | FilterKey::Tag => continue,
            };
            if patterns
                .iter()
                .any(|p| known.iter().any(|id| p.matches(id)))
            {
                continue;
            }
            for pattern in patterns {
                let hint = find_nearest(&pattern.text, known.iter().copied())
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                problems.push(format!(
                    "--where: no {word} is called `{}`{hint}",
                    pattern.text
                ));
            }
        }
        problems
    }
}

impl fmt::Display for DecisionFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FilterCondition {
    fn matches(&self, candidate: &FilterCandidate<'_>) -> bool {
        match self {
            FilterCondition::Names(names) => {
                let decision = decision_name(candidate);
                names.exact.contains(decision) || names.without_suffix.contains(decision)
            }
            FilterCondition::Word(word) => {
                contains_ignoring_case(candidate.name, word)
                    || contains_ignoring_case(candidate.explanation, word)
            }
            FilterCondition::Id(key, patterns) => patterns.iter().any(|pattern| match key {
                FilterKey::Eval => pattern.matches(candidate.eval),
                FilterKey::Rubric => pattern.matches(candidate.rubric),
                FilterKey::Transcript => pattern.matches(candidate.transcript),
                FilterKey::Judge => candidate.judges.iter().any(|judge| pattern.matches(judge)),
                FilterKey::Tag => candidate.tags.iter().any(|tag| pattern.matches(tag)),
                FilterKey::Group => candidate.groups.iter().any(|group| pattern.matches(group)),
            }),
            FilterCondition::Outcome(wanted) => wanted.iter().any(|ended| match ended {
                OutcomeFilter::Is(outcome) => candidate.outcome == Some(*outcome),
                OutcomeFilter::InError => candidate.outcome.is_some_and(Outcome::is_error),
                OutcomeFilter::NoResult => candidate.outcome.is_none(),
            }),
        }
    }
}

/// Whether a text holds a word that is in lower case already. A filter is typed over a hundred thousand explanations: plain
/// ones are not copied.
fn contains_ignoring_case(text: &str, word: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(word);
    }
    let Some((first, rest)) = word.as_bytes().split_first() else {
        return true;
    };
    let text = text.as_bytes();
    let upper = first.to_ascii_uppercase();
    memchr::memchr2_iter(*first, upper, text).any(|at| {
        let after = text.get(at + 1..at + 1 + rest.len());
        after.is_some_and(|after| after.eq_ignore_ascii_case(rest))
    })
}

/// A candidate's name without its judge: `~` stands for nothing else in a name.
fn decision_name<'c>(candidate: &FilterCandidate<'c>) -> &'c str {
    candidate.name.split('~').next().unwrap_or_default()
}

/// A decision's name without the suffix that made its transcript's id unique, if it has one: `a%7E2/r/e` → `a/r/e`.
fn strip_id_suffix(name: &str) -> Option<String> {
    let (transcript, rest) = name.split_once('/')?;
    let (own, number) = transcript.rsplit_once("%7E")?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| format!("{own}/{rest}"))
}

/// A word, and whether it was quoted from its first character on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterWord {
    pub(crate) is_negated: bool,
    pub(crate) is_quoted: bool,
    pub(crate) text: String,
}

/// The words of a filter, each with what stands before it.
pub(crate) fn split_words(text: &str) -> Result<Vec<FilterWord>, FilterError> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(words);
        }
        let not = chars.next_if_eq(&'!').is_some();
        let quoted = chars.peek() == Some(&'"');
        let (mut word, mut inside) = (String::new(), false);
        while let Some(c) = chars.next_if(|c| inside || !c.is_whitespace()) {
            match c {
                '"' => inside = !inside,
                c => word.push(c),
            }
        }
        if inside {
            return Err(FilterError(format!(
                "the quote before `{word}` is not closed"
            )));
        }
        if word.is_empty() {
            return Err(FilterError(
                "an empty term selects nothing; put a word or `key:value` after `!` or between quotes".to_owned(),
            ));
        }
        words.push(FilterWord {
            is_negated: not,
            is_quoted: quoted,
            text: word,
        });
    }
}

fn parse_term(word: FilterWord) -> Result<FilterTerm, FilterError> {
    let FilterWord {
        is_negated: not,
        is_quoted: quoted,
        text,
    } = word;
    let what = match text.split_once(':') {
        Some((key, value)) if !quoted => parse_keyed_term(key, value)?,
        _ => FilterCondition::Word(text.to_lowercase()),
    };
    Ok(FilterTerm {
        is_negated: not,
        condition: what,
    })
}

fn parse_keyed_term(key: &str, value: &str) -> Result<FilterCondition, FilterError> {
    let key = match key {
        "eval" => Some(FilterKey::Eval),
        "rubric" => Some(FilterKey::Rubric),
        "transcript" => Some(FilterKey::Transcript),
        "judge" => Some(FilterKey::Judge),
        "tag" => Some(FilterKey::Tag),
        "group" => Some(FilterKey::Group),
        "outcome" => None,
        other => {
            let hint = find_nearest(other, FILTER_KEYS).map_or_else(
                || format!("the keys are {}", FILTER_KEYS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(FilterError(format!(
                "unknown key `{other}`; {hint} (to look for the text itself, quote it: \"{other}:{value}\")"
            )));
        }
    };
    let values: Vec<&str> = value.split(',').filter(|v| !v.is_empty()).collect();
    if values.is_empty() {
        let name = key.map_or("outcome", FilterKey::name);
        return Err(FilterError(format!(
            "`{name}:` has no value; write `{name}:VALUE`, several with commas"
        )));
    }
    match key {
        Some(key) => Ok(FilterCondition::Id(
            key,
            values.into_iter().map(IdPattern::new).collect(),
        )),
        None => values
            .into_iter()
            .map(parse_outcome)
            .collect::<Result<_, _>>()
            .map(FilterCondition::Outcome),
    }
}

fn parse_outcome(word: &str) -> Result<OutcomeFilter, FilterError> {
    match word {
        "error" => return Ok(OutcomeFilter::InError),
        "none" => return Ok(OutcomeFilter::NoResult),
        _ => {}
    }
    if let Some(outcome) = Outcome::ALL.into_iter().find(|o| o.as_str() == word) {
        return Ok(OutcomeFilter::Is(outcome));
    }
    let known = Outcome::ALL
        .into_iter()
        .map(Outcome::as_str)
        .chain(["error", "none"]);
    let hint = find_nearest(word, known.clone()).map_or_else(
        || format!("outcomes are {}", known.collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Err(FilterError(format!("`{word}` is no outcome; {hint}")))
}

impl FilterKey {
    const fn name(self) -> &'static str {
        match self {
            FilterKey::Eval => "eval",
            FilterKey::Rubric => "rubric",
            FilterKey::Transcript => "transcript",
            FilterKey::Judge => "judge",
            FilterKey::Tag => "tag",
            FilterKey::Group => "group",
        }
    }
}

#[cfg(test)]
mod tests;

//! The `--where` language, which selects the decisions of a run.
//!
//! Responsible for parsing and matching. Does not find tags and outcomes; the caller passes them.
//!
//! Terms follow each other and all must match; `!` before a term negates it. `key:value` tests one property, with
//! globs and with commas for "or" (`eval:tone,grounded*`). A bare word is searched for in the cell's name, in any
//! letter case. A text in double quotes is one word (`"support:3"`).
//!
//! | key | tests |
//! |---|---|
//! | `transcript:` `rubric:` `eval:` | ids |
//! | `cell:` | names of decisions, such as `refund-03/support/tone`; without globs |
//! | `judge:` | the name of any judge of the eval; evals without a judge never match |
//! | `tag:` | any of the transcript's tags |
//! | `group:` | any of the eval's `groups` |
//! | `is:` | the causes of the newest recorded result, such as `refused` or `citation`: see [`Cause`] |
//! | `outcome:` | the newest recorded outcome; also `error` (any error outcome) and `none` (no result yet) |
//! | `label:` | the label of the decision, and its agreement with the newest outcome: see [`LabelFilter`] |

use std::collections::HashSet;
use std::fmt;

use thiserror::Error;

use super::label_filter::{CandidateLabel, LabelFilter};
use crate::diag::find_nearest;
use crate::model::{Cause, CauseSet, CellName, CellNameRef, Outcome, pluralize};

/// The maximum number of ids that a wrong id is compared with.
const MAX_COMPARED_IDS: usize = 2000;

// Error messages list the keys in this order.
const FILTER_KEYS: [&str; 10] = [
    "outcome",
    "is",
    "label",
    "eval",
    "rubric",
    "transcript",
    "cell",
    "judge",
    "tag",
    "group",
];

/// The words of `is:` that only the workbench knows, with what a command offers instead.
const SCREEN_STATES: [(&str, &str); 6] = [
    (
        "stale",
        "`dicta run` judges what is stale and takes the rest from the cache",
    ),
    ("flip", "`dicta compare` lists the flips"),
    ("live", "a command starts before any judge works"),
    ("problem", "write `outcome:fail,error`"),
    ("error", "write `outcome:error`"),
    (
        "failed-rerun",
        "`dicta show @` notes re-runs without a verdict",
    ),
];

/// A parsed `--where`.
#[derive(Debug, Clone)]
pub struct DecisionFilter {
    /// The text for people.
    text: String,
    terms: Vec<FilterTerm>,
    /// True if `text` is in the language of `--where`.
    is_parsed: bool,
}

/// The reason why a text is not a filter: a sentence that names the fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("--where: {0}")]
pub struct FilterError(String);

/// One decision that a filter tests, before it is planned.
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
    /// The judges of a judged eval; of a panel, all members.
    pub judges: &'c [&'c str],
    /// The eval's groups.
    pub groups: &'c [String],
    /// The name of the cell, without the repeat.
    pub name: &'c str,
    /// The newest recorded outcome.
    pub outcome: Option<Outcome>,
    /// The causes of the newest recorded results.
    pub causes: CauseSet,
    /// The label of the decision.
    pub label: CandidateLabel,
    /// The second text that bare words are searched for in: the explanation, if it is known. Empty before a run.
    pub explanation: &'c str,
}

/// The ids that exist, to explain the others in a filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownFilterIds<'k> {
    /// The evals.
    pub evals: &'k [&'k str],
    /// The rubrics.
    pub rubrics: &'k [&'k str],
    /// The judges of the evals.
    pub judges: &'k [&'k str],
    /// The groups of evals.
    pub groups: &'k [&'k str],
    /// The transcripts; `None` if they are not read.
    pub transcripts: Option<&'k [&'k str]>,
    /// The tags; `None` if the transcripts are not read.
    pub tags: Option<&'k [&'k str]>,
}

#[derive(Debug, Clone)]
struct FilterTerm {
    is_negated: bool,
    condition: FilterCondition,
}

#[derive(Debug, Clone)]
enum FilterCondition {
    Word(String),
    Id {
        key: FilterKey,
        patterns: IdPatterns,
    },
    Outcome(Vec<OutcomeFilter>),
    Causes(Vec<Cause>),
    Label(Vec<LabelFilter>),
    Names(NamedDecisions),
}

/// A set of decisions by name.
#[derive(Debug, Clone)]
struct NamedDecisions {
    exact: HashSet<String>,
    /// The same names without the suffix that makes a transcript's id unique (`a~2`). Names have this form during
    /// reading.
    without_suffix: HashSet<String>,
    /// The evals of the names, as the ends of names without a message: `/r/e`.
    evals: HashSet<String>,
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

/// The ids of one term. A save selects thousands of evals by id, so exact ids are not compared one by one.
#[derive(Debug, Clone)]
struct IdPatterns {
    /// The patterns as the term lists them.
    texts: Vec<String>,
    exact: HashSet<String>,
    globs: Vec<globset::GlobMatcher>,
}

impl IdPatterns {
    fn new(texts: &[&str]) -> Self {
        let globs = texts
            .iter()
            .filter(|text| text.contains(['*', '?', '[', '{']))
            // An id such as `a[1` is not a valid glob, so it is compared as text only.
            .filter_map(|text| globset::Glob::new(text).ok())
            .map(|glob| glob.compile_matcher());
        let owned = texts.iter().map(|text| (*text).to_owned());
        Self {
            texts: owned.clone().collect(),
            exact: owned.collect(),
            globs: globs.collect(),
        }
    }

    fn matches(&self, value: &str) -> bool {
        // An id may contain glob characters, so the text itself matches too.
        self.exact.contains(value) || self.globs.iter().any(|glob| glob.is_match(value))
    }
}

impl DecisionFilter {
    /// Parses a filter.
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

    /// Builds a filter from some words of `text`. No words select everything.
    pub(crate) fn from_words(text: &str, words: Vec<FilterWord>) -> Result<Self, FilterError> {
        let terms = words
            .into_iter()
            .map(parse_term)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            terms,
            is_parsed: true,
        })
    }

    /// Returns a filter that selects exactly these decisions: names of cells without judge and repeat.
    ///
    /// While a transcript is read, its id may lack the suffix that makes it unique (`a~2`). So
    /// [`DecisionFilter::matches`] accepts every possible match, and `DecisionFilter::includes_name` decides once ids
    /// are unique.
    pub fn from_names(names: impl IntoIterator<Item = String>) -> Self {
        let names = NamedDecisions::new(names.into_iter().collect());
        let exact = &names.exact;
        // The plan records all names; people read a short text.
        let text = match exact.iter().next() {
            Some(only) if exact.len() == 1 => format!("\"{only}\""),
            _ => format!("({} named)", pluralize(exact.len() as u64, "decision")),
        };
        Self {
            text,
            terms: vec![FilterTerm {
                is_negated: false,
                condition: FilterCondition::Names(names),
            }],
            is_parsed: false,
        }
    }

    /// Returns a filter that selects all decisions but one, by its name without judge and repeat.
    pub(crate) fn all_except(name: String) -> Self {
        let mut filter = Self::from_names([name]);
        filter.text.insert(0, '!');
        for term in &mut filter.terms {
            term.negate();
        }
        filter
    }

    /// Returns the filter in the language of `--where`, for the recorded plan: a resumed run parses it.
    pub(crate) fn to_source(&self) -> String {
        let names = self.terms.iter().find_map(|term| match &term.condition {
            FilterCondition::Names(names) => Some((term.is_negated, names)),
            _ => None,
        });
        // Only `from_names` and `all_except` have a text that the language does not have.
        let Some((is_negated, names)) = names.filter(|_| !self.is_parsed) else {
            return self.text.clone();
        };
        let mut exact: Vec<String> = names
            .exact
            .iter()
            // The characters that end a value or a word.
            .map(|name| name.replace(',', "%2C").replace('"', "%22"))
            .collect();
        exact.sort_unstable();
        let not = if is_negated { "!" } else { "" };
        format!("{not}cell:\"{}\"", exact.join(","))
    }

    /// Returns `true` if the filter names decisions, so that the caller must also ask
    /// `DecisionFilter::includes_name`.
    pub(crate) fn has_names(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term.condition, FilterCondition::Names(_)))
    }

    /// Returns `true` if the filter names this decision, or names no decisions. Needs the unique id of the
    /// transcript.
    pub(crate) fn includes_name(&self, decision: &str) -> bool {
        self.terms.iter().all(|term| match &term.condition {
            // Other terms were tested while the transcript was read.
            FilterCondition::Names(names) => names.exact.contains(decision) != term.is_negated,
            _ => true,
        })
    }

    /// Returns `true` if a term tests outcomes or causes, so that the caller must read recordings.
    pub fn needs_past_outcomes(&self) -> bool {
        self.terms.iter().any(|term| match &term.condition {
            FilterCondition::Outcome(_) | FilterCondition::Causes(_) => true,
            FilterCondition::Label(wanted) => wanted.iter().any(|one| one.tests_outcome()),
            _ => false,
        })
    }

    /// Returns `true` if a term tests labels, so that the caller must look them up.
    pub fn needs_labels(&self) -> bool {
        let mut terms = self.terms.iter();
        terms.any(|term| matches!(term.condition, FilterCondition::Label(_)))
    }

    /// Returns `true` if a term tests the whole name of a candidate, so that the caller must format it.
    pub(crate) fn needs_name(&self) -> bool {
        let tests_name = |what: &FilterCondition| {
            matches!(what, FilterCondition::Word(_) | FilterCondition::Names(_))
        };
        self.terms.iter().any(|term| tests_name(&term.condition))
    }

    /// Returns `true` if the filter selects the decision.
    pub fn matches(&self, candidate: &FilterCandidate<'_>) -> bool {
        self.terms
            .iter()
            .all(|term| term.condition.matches(candidate) != term.is_negated)
    }

    /// Returns `false` only if the filter selects this eval for no transcript.
    pub fn may_select(&self, rubric: &str, eval: &str, judges: &[&str], groups: &[String]) -> bool {
        self.terms.iter().all(|term| {
            let (key, patterns) = match &term.condition {
                FilterCondition::Id { key, patterns } => (key, patterns),
                FilterCondition::Names(names) if !term.is_negated => {
                    return names.contains_eval(rubric, eval);
                }
                _ => return true,
            };
            let hit = |id: &str| patterns.matches(id);
            match key {
                FilterKey::Eval => hit(eval) != term.is_negated,
                FilterKey::Rubric => hit(rubric) != term.is_negated,
                FilterKey::Judge => judges.iter().any(|judge| hit(judge)) != term.is_negated,
                FilterKey::Group => groups.iter().any(|group| hit(group)) != term.is_negated,
                // Transcripts are not read yet, so these terms might select the eval.
                FilterKey::Transcript | FilterKey::Tag => true,
            }
        })
    }

    /// Returns a sentence for each id pattern that matches nothing, with the nearest id. If no transcripts are known, it
    /// does not test patterns for transcripts and tags.
    pub fn unmatched_patterns(&self, ids: &KnownFilterIds<'_>) -> Vec<String> {
        let mut problems = Vec::new();
        // A negated pattern that matches nothing excludes nothing, which is harmless.
        for term in self.terms.iter().filter(|term| !term.is_negated) {
            let FilterCondition::Id { key, patterns } = &term.condition else {
                continue;
            };
            let (missing, known) = match key {
                FilterKey::Eval => ("no eval is called", Some(ids.evals)),
                FilterKey::Rubric => ("no rubric is called", Some(ids.rubrics)),
                // The workspace may have a judge with that name.
                FilterKey::Judge => ("no eval has a judge called", Some(ids.judges)),
                FilterKey::Group => ("no group is called", Some(ids.groups)),
                FilterKey::Transcript => ("no transcript is called", ids.transcripts),
                FilterKey::Tag => ("no tag is called", ids.tags),
            };
            let Some(known) = known else {
                continue;
            };
            // One match in a comma list is enough, because the term then selects something.
            if known.iter().any(|id| patterns.matches(id)) {
                continue;
            }
            for pattern in &patterns.texts {
                // A key press on the screen must not compare with a hundred thousand ids.
                let some = known.iter().take(MAX_COMPARED_IDS).copied();
                let hint = find_nearest(pattern, some)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                problems.push(format!("--where: {missing} `{pattern}`{hint}"));
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
            FilterCondition::Id { key, patterns } => match key {
                FilterKey::Eval => patterns.matches(candidate.eval),
                FilterKey::Rubric => patterns.matches(candidate.rubric),
                FilterKey::Transcript => patterns.matches(candidate.transcript),
                FilterKey::Judge => candidate.judges.iter().any(|judge| patterns.matches(judge)),
                FilterKey::Tag => candidate.tags.iter().any(|tag| patterns.matches(tag)),
                FilterKey::Group => candidate.groups.iter().any(|group| patterns.matches(group)),
            },
            FilterCondition::Causes(wanted) => {
                let mut wanted = wanted.iter();
                wanted.any(|cause| candidate.causes.contains(*cause))
            }
            FilterCondition::Label(wanted) => {
                let mut wanted = wanted.iter();
                wanted.any(|one| one.matches(candidate.label, candidate.outcome))
            }
            FilterCondition::Outcome(wanted) => wanted.iter().any(|ended| match ended {
                OutcomeFilter::Is(outcome) => candidate.outcome == Some(*outcome),
                OutcomeFilter::InError => candidate.outcome.is_some_and(Outcome::is_error),
                OutcomeFilter::NoResult => candidate.outcome.is_none(),
            }),
        }
    }
}

/// Returns `true` if a text contains a word, which is in lower case. ASCII texts are not copied, because the screen
/// filters a hundred thousand explanations at each key press.
fn contains_ignoring_case(text: &str, word: &str) -> bool {
    if !text.is_ascii() {
        // Lower case can change the number of bytes outside ASCII, so fold the whole text.
        return text.to_lowercase().contains(word);
    }
    let Some((first, rest)) = word.as_bytes().split_first() else {
        return true;
    };
    let text = text.as_bytes();
    let upper = first.to_ascii_uppercase();
    // Search for the first byte in both cases, then compare the rest without copying.
    memchr::memchr2_iter(*first, upper, text).any(|at| {
        let after = text.get(at + 1..at + 1 + rest.len());
        after.is_some_and(|after| after.eq_ignore_ascii_case(rest))
    })
}

/// Returns a candidate's name without its judge. Names escape every other `~`.
fn decision_name<'c>(candidate: &FilterCandidate<'c>) -> &'c str {
    candidate.name.split('~').next().unwrap_or_default()
}

/// Returns a decision's name without the suffix that made its transcript's id unique, if it has one: `a%7E2/r/e` →
/// `a/r/e`.
fn strip_id_suffix(name: &str) -> Option<String> {
    let (transcript, rest) = name.split_once('/')?;
    // Names escape the `~` of a suffix as `%7E`.
    let (original_id, number) = transcript.rsplit_once("%7E")?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| format!("{original_id}/{rest}"))
}

/// Returns the part of a decision's name that names its eval: `a/r/e@3` → `/r/e`. Names escape every other `/` and `@`.
fn find_eval_end(name: &str) -> Option<&str> {
    let without_message = name.split('@').next()?;
    let eval = without_message.rfind('/')?;
    let rubric = without_message.get(..eval)?.rfind('/')?;
    without_message.get(rubric..)
}

/// A word of a filter. It records whether quotes enclose the whole word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterWord {
    pub(crate) is_negated: bool,
    pub(crate) is_quoted: bool,
    pub(crate) text: String,
}

/// Splits a filter into words, each with its negation.
pub(crate) fn split_words(text: &str) -> Result<Vec<FilterWord>, FilterError> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    // One pass per word: skip spaces, then read `!`, quotes and the word itself.
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(words);
        }
        let not = chars.next_if_eq(&'!').is_some();
        // A quote inside a word, as in `eval:"a b"`, does not make the whole word literal.
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
    let condition = match text.split_once(':') {
        // A quoted word is text, so `"support:3"` has no key.
        Some((key, value)) if !quoted => parse_keyed_term(key, value)?,
        _ => FilterCondition::Word(text.to_lowercase()),
    };
    let mut term = FilterTerm {
        is_negated: false,
        condition,
    };
    if not {
        term.negate();
    }
    Ok(term)
}

impl FilterTerm {
    fn negate(&mut self) {
        self.is_negated = true;
        if let FilterCondition::Names(names) = &mut self.condition {
            // A possible match must not be excluded before ids are unique.
            names.without_suffix.clear();
        }
    }
}

impl NamedDecisions {
    fn new(exact: HashSet<String>) -> Self {
        let without_suffix = exact
            .iter()
            .filter_map(|name| strip_id_suffix(name))
            .collect();
        let ends = exact.iter().filter_map(|name| find_eval_end(name));
        let ends: HashSet<&str> = ends.collect();
        let evals = ends.into_iter().map(str::to_owned).collect();
        Self {
            exact,
            without_suffix,
            evals,
        }
    }

    /// Returns `true` if a decision belongs to this eval.
    fn contains_eval(&self, rubric: &str, eval: &str) -> bool {
        let end = CellNameRef {
            transcript: "",
            rubric,
            eval,
            message: None,
            judge: None,
            repeat: None,
        };
        self.evals.contains(&end.to_string())
    }
}

/// Parses the name of a decision or of one of its cells.
fn parse_decision_name(written: &str) -> Result<String, FilterError> {
    let name: Result<CellName, _> = written.parse();
    let name = name.map_err(|_| {
        FilterError(format!(
            "`{written}` is not the name of a cell; write TRANSCRIPT/RUBRIC/EVAL, as `dicta show` prints it"
        ))
    })?;
    Ok(name.decision_name().to_string())
}

fn parse_keyed_term(written_key: &str, value: &str) -> Result<FilterCondition, FilterError> {
    let key = match written_key {
        "eval" => Some(FilterKey::Eval),
        "rubric" => Some(FilterKey::Rubric),
        "transcript" => Some(FilterKey::Transcript),
        "judge" => Some(FilterKey::Judge),
        "tag" => Some(FilterKey::Tag),
        "group" => Some(FilterKey::Group),
        "outcome" | "is" | "cell" | "label" => None,
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
    // Ignore empty parts, so that a trailing comma is allowed.
    let values: Vec<&str> = value.split(',').filter(|v| !v.is_empty()).collect();
    if values.is_empty() && written_key == "label" {
        return Err(FilterError(LabelFilter::describe_values()));
    }
    if values.is_empty() {
        return Err(FilterError(format!(
            "`{written_key}:` has no value; write `{written_key}:VALUE`, several with commas"
        )));
    }
    match key {
        Some(key) => Ok(FilterCondition::Id {
            key,
            patterns: IdPatterns::new(&values),
        }),
        None if written_key == "cell" => {
            let names = values.into_iter().map(parse_decision_name);
            let names = names.collect::<Result<_, _>>()?;
            Ok(FilterCondition::Names(NamedDecisions::new(names)))
        }
        None if written_key == "label" => {
            let wanted = values.into_iter().map(LabelFilter::parse);
            let wanted: Result<_, String> = wanted.collect();
            wanted.map(FilterCondition::Label).map_err(FilterError)
        }
        None if written_key == "is" => values
            .into_iter()
            .map(parse_cause)
            .collect::<Result<_, _>>()
            .map(FilterCondition::Causes),
        None => values
            .into_iter()
            .map(parse_outcome)
            .collect::<Result<_, _>>()
            .map(FilterCondition::Outcome),
    }
}

fn parse_cause(word: &str) -> Result<Cause, FilterError> {
    let known = Cause::ALL.into_iter().map(Cause::as_str);
    if let Some((_, instead)) = SCREEN_STATES.iter().find(|(state, _)| *state == word) {
        return Err(FilterError(format!(
            "`is:{word}` is a state of the workbench, which a command does not know; {instead}"
        )));
    }
    if let Some(cause) = Cause::ALL.into_iter().find(|cause| cause.as_str() == word) {
        return Ok(cause);
    }
    let hint = find_nearest(word, known.clone()).map_or_else(
        || format!("`is:` takes {}", known.collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `is:{near}`?"),
    );
    Err(FilterError(format!("`is:{word}` is not a cause; {hint}")))
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
    Err(FilterError(format!("`{word}` is not an outcome; {hint}")))
}

#[cfg(test)]
mod tests;

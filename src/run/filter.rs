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

const KEYS: [&str; 7] = [
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
pub struct Filter {
    text: String,
    terms: Vec<Term>,
}

/// Why a text is no filter: a sentence one can act on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("--where: {0}")]
pub struct FilterError(String);

/// What a filter looks at: one decision, before it is planned.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
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
    pub says: &'c str,
}

#[derive(Debug, Clone)]
struct Term {
    not: bool,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Word(String),
    Id(Key, Vec<Pattern>),
    Outcome(Vec<Ended>),
    Names(Names),
}

/// Named decisions.
#[derive(Debug, Clone)]
struct Names {
    exact: HashSet<String>,
    /// The same without the suffix that makes a transcript's id unique (`a~2`): what they are called while reading.
    early: HashSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Eval,
    Rubric,
    Transcript,
    Judge,
    Tag,
    Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    As(Outcome),
    InError,
    NotYet,
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    glob: Option<globset::GlobMatcher>,
}

impl Pattern {
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

impl Filter {
    /// Reads a filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let filter = Self::of_words(text, words(text)?)?;
        if filter.terms.is_empty() {
            return Err(FilterError(format!(
                "the filter is empty; write for example `eval:tone` (keys: {})",
                KEYS.join(", ")
            )));
        }
        Ok(filter)
    }

    /// A filter of some words of `text`; of none, everything.
    pub(crate) fn of_words(text: &str, words: Vec<Word>) -> Result<Self, FilterError> {
        let terms = words.into_iter().map(term).collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            terms,
        })
    }

    /// These decisions and no others: cells' names without judge and repeat.
    ///
    /// While a transcript is read, its id may still lack the suffix that makes it unique (`a~2`). So [`Filter::matches`]
    /// lets through what *may* be meant, and `Filter::names_exactly` decides once ids are unique.
    pub fn names(names: impl IntoIterator<Item = String>) -> Self {
        let exact: HashSet<String> = names.into_iter().collect();
        let early = exact.iter().filter_map(|name| unsuffixed(name)).collect();
        let text = match exact.iter().next() {
            Some(only) if exact.len() == 1 => format!("\"{only}\""),
            _ => format!("({} named)", pluralize(exact.len() as u64, "decision")),
        };
        Self {
            text,
            terms: vec![Term {
                not: false,
                what: What::Names(Names { exact, early }),
            }],
        }
    }

    /// All decisions but one: its name without judge and repeat.
    pub(crate) fn all_but(name: String) -> Self {
        let mut filter = Self::names([name]);
        filter.text.insert(0, '!');
        for term in &mut filter.terms {
            term.not = true;
            if let What::Names(names) = &mut term.what {
                // What may be meant is not what is left out.
                names.early.clear();
            }
        }
        filter
    }

    /// Whether decisions are named, so that `Filter::names_exactly` is to be asked.
    pub(crate) fn is_named(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term.what, What::Names(_)))
    }

    /// Whether a decision is among the named ones, its transcript's id being unique. `true` where none are named.
    pub(crate) fn names_exactly(&self, decision: &str) -> bool {
        self.terms.iter().all(|term| match &term.what {
            What::Names(names) => names.exact.contains(decision) != term.not,
            _ => true,
        })
    }

    /// Whether any term looks at the board, so that it must be read.
    pub fn needs_board(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term.what, What::Outcome(_)))
    }

    /// Whether any term looks at a candidate's whole name, so that it must be written.
    pub(crate) fn needs_name(&self) -> bool {
        let whole = |what: &What| matches!(what, What::Word(_) | What::Names(_));
        self.terms.iter().any(|term| whole(&term.what))
    }

    /// Whether the decision is selected.
    pub fn matches(&self, candidate: &Candidate<'_>) -> bool {
        self.terms
            .iter()
            .all(|term| term.what.matches(candidate) != term.not)
    }

    /// Whether some transcript may be selected for this eval; `false` only where no transcript can be.
    pub fn may_select(&self, rubric: &str, eval: &str, judges: &[&str], groups: &[String]) -> bool {
        self.terms.iter().all(|term| {
            let What::Id(key, patterns) = &term.what else {
                return true;
            };
            let hit = |id: &str| patterns.iter().any(|pattern| pattern.matches(id));
            match key {
                Key::Eval => hit(eval) != term.not,
                Key::Rubric => hit(rubric) != term.not,
                Key::Judge => judges.iter().any(|judge| hit(judge)) != term.not,
                Key::Group => groups.iter().any(|group| hit(group)) != term.not,
                Key::Transcript | Key::Tag => true,
            }
        })
    }

    /// Id patterns that match nothing of what exists, as sentences with the nearest id: found before anything is read.
    /// Transcripts and tags are known only later.
    pub fn idle_patterns(
        &self,
        evals: &[&str],
        rubrics: &[&str],
        judges: &[&str],
        groups: &[&str],
    ) -> Vec<String> {
        let mut problems = Vec::new();
        for term in self.terms.iter().filter(|term| !term.not) {
            let What::Id(key, patterns) = &term.what else {
                continue;
            };
            let (word, known) = match key {
                Key::Eval => ("eval", evals),
                Key::Rubric => ("rubric", rubrics),
                Key::Judge => ("judge", judges),
                Key::Group => ("group", groups),
                Key::Transcript | Key::Tag => continue,
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

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl What {
    fn matches(&self, candidate: &Candidate<'_>) -> bool {
        match self {
            What::Names(names) => {
                let decision = decision(candidate);
                names.exact.contains(decision) || names.early.contains(decision)
            }
            What::Word(word) => holds(candidate.name, word) || holds(candidate.says, word),
            What::Id(key, patterns) => patterns.iter().any(|pattern| match key {
                Key::Eval => pattern.matches(candidate.eval),
                Key::Rubric => pattern.matches(candidate.rubric),
                Key::Transcript => pattern.matches(candidate.transcript),
                Key::Judge => candidate.judges.iter().any(|judge| pattern.matches(judge)),
                Key::Tag => candidate.tags.iter().any(|tag| pattern.matches(tag)),
                Key::Group => candidate.groups.iter().any(|group| pattern.matches(group)),
            }),
            What::Outcome(wanted) => wanted.iter().any(|ended| match ended {
                Ended::As(outcome) => candidate.outcome == Some(*outcome),
                Ended::InError => candidate.outcome.is_some_and(Outcome::is_error),
                Ended::NotYet => candidate.outcome.is_none(),
            }),
        }
    }
}

/// Whether a text holds a word that is in lower case already. A filter is typed over a hundred thousand explanations: plain
/// ones are not copied.
fn holds(text: &str, word: &str) -> bool {
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
fn decision<'c>(candidate: &Candidate<'c>) -> &'c str {
    candidate.name.split('~').next().unwrap_or_default()
}

/// A decision's name without the suffix that made its transcript's id unique, if it has one: `a%7E2/r/e` → `a/r/e`.
fn unsuffixed(name: &str) -> Option<String> {
    let (transcript, rest) = name.split_once('/')?;
    let (own, number) = transcript.rsplit_once("%7E")?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| format!("{own}/{rest}"))
}

/// A word, and whether it was quoted from its first character on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) not: bool,
    pub(crate) quoted: bool,
    pub(crate) text: String,
}

/// The words of a filter, each with what stands before it.
pub(crate) fn words(text: &str) -> Result<Vec<Word>, FilterError> {
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
        words.push(Word {
            not,
            quoted,
            text: word,
        });
    }
}

fn term(word: Word) -> Result<Term, FilterError> {
    let Word { not, quoted, text } = word;
    let what = match text.split_once(':') {
        Some((key, value)) if !quoted => keyed(key, value)?,
        _ => What::Word(text.to_lowercase()),
    };
    Ok(Term { not, what })
}

fn keyed(key: &str, value: &str) -> Result<What, FilterError> {
    let key = match key {
        "eval" => Some(Key::Eval),
        "rubric" => Some(Key::Rubric),
        "transcript" => Some(Key::Transcript),
        "judge" => Some(Key::Judge),
        "tag" => Some(Key::Tag),
        "group" => Some(Key::Group),
        "outcome" => None,
        other => {
            let hint = find_nearest(other, KEYS).map_or_else(
                || format!("the keys are {}", KEYS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(FilterError(format!(
                "unknown key `{other}`; {hint} (to look for the text itself, quote it: \"{other}:{value}\")"
            )));
        }
    };
    let values: Vec<&str> = value.split(',').filter(|v| !v.is_empty()).collect();
    if values.is_empty() {
        let name = key.map_or("outcome", Key::name);
        return Err(FilterError(format!(
            "`{name}:` has no value; write `{name}:VALUE`, several with commas"
        )));
    }
    match key {
        Some(key) => Ok(What::Id(
            key,
            values.into_iter().map(Pattern::new).collect(),
        )),
        None => values
            .into_iter()
            .map(ended)
            .collect::<Result<_, _>>()
            .map(What::Outcome),
    }
}

fn ended(word: &str) -> Result<Ended, FilterError> {
    match word {
        "error" => return Ok(Ended::InError),
        "none" => return Ok(Ended::NotYet),
        _ => {}
    }
    if let Some(outcome) = Outcome::ALL.into_iter().find(|o| o.as_str() == word) {
        return Ok(Ended::As(outcome));
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

impl Key {
    const fn name(self) -> &'static str {
        match self {
            Key::Eval => "eval",
            Key::Rubric => "rubric",
            Key::Transcript => "transcript",
            Key::Judge => "judge",
            Key::Tag => "tag",
            Key::Group => "group",
        }
    }
}

#[cfg(test)]
mod tests;

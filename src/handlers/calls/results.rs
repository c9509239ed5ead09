//! What checks ask of results: their text, whether they are errors, how long they took.
//!
//! Only what the source says counts: an answer that reads like an error is none, and where nothing says so, nothing is
//! decided.

use std::ops::Range;

use regex::Regex;

use crate::handlers::explain::{Quoted, list};
use crate::handlers::registry::problem;
use crate::handlers::text::fold::unfold;
use crate::handlers::text::patterns::Patterns;
use crate::handlers::text::regexp;
use crate::handlers::{Said, Subject};
use crate::model::{ToolResult, TranscriptPart};
use crate::rubric::ParamProblem;

/// More patterns than these for one result are refused: all are looked for in every result.
const MOST_PATTERNS: usize = 1000;

/// What a `check_error` says where no result tells whether it is an error.
const ERRORS_UNSAID: &str = "this transcript does not say which results are errors (`is_error`)";

/// What a `check_error` says where calls stand without any results.
pub(in crate::handlers) const NO_RESULTS: &str =
    "this transcript has calls but no results of calls";

/// What a result's text must hold.
#[derive(Debug)]
pub(super) enum Held {
    /// All of them, case-insensitively.
    All(Patterns),
    /// This very text, case-sensitively.
    Text(String),
    /// A match, case-sensitively.
    Match(Regex),
}

impl Held {
    pub(super) fn all(param: &str, patterns: Vec<String>) -> Result<Self, Vec<ParamProblem>> {
        let count = patterns.len();
        if count > MOST_PATTERNS {
            let why = format!("holds {count}, more than {MOST_PATTERNS}");
            return Err(vec![problem(format!("/{param}"), why)]);
        }
        Patterns::new(patterns, param).map(Self::All)
    }

    pub(super) fn matching(param: &str, pattern: &str) -> Result<Self, Vec<ParamProblem>> {
        let pointer = format!("/{param}");
        let pattern = regexp::compile(&pointer, pattern).map_err(|problem| vec![problem])?;
        Ok(Self::Match(pattern))
    }

    /// Where it stands in the text; `None` where not all of it does.
    pub(super) fn find(&self, text: &Said<'_>) -> Option<Vec<Range<usize>>> {
        match self {
            Self::All(patterns) => {
                let hits = patterns.each(text.folded()).into_iter();
                hits.map(|hit| hit.map(|range| unfold(&text.text, &range)))
                    .collect()
            }
            Self::Text(wanted) => {
                let from = text.text.find(wanted.as_str())?;
                let place = from..from + wanted.len();
                Some(vec![place])
            }
            Self::Match(pattern) => pattern.find(&text.text).map(|found| vec![found.range()]),
        }
    }

    /// How much of it a text holds, to find the one that is nearest.
    pub(super) fn part(&self, text: &Said<'_>) -> usize {
        match self {
            Self::All(patterns) => patterns.each(text.folded()).iter().flatten().count(),
            Self::Text(wanted) => usize::from(text.text.contains(wanted.as_str())),
            Self::Match(pattern) => usize::from(pattern.is_match(&text.text)),
        }
    }

    /// What a text lacks: `"refund" is not in it`.
    pub(super) fn lack(&self, text: &Said<'_>) -> String {
        match self {
            Self::All(patterns) => {
                let hits = patterns.each(text.folded());
                let with_names = hits.iter().zip(&patterns.written);
                let missing = with_names.filter(|(hit, _)| hit.is_none());
                let names = list(missing.map(|(_, pattern)| Quoted(pattern)));
                format!("it lacks {names}")
            }
            Self::Text(wanted) => format!("it lacks {}", Quoted(wanted)),
            Self::Match(pattern) => {
                let text = Quoted(&text.text);
                format!("{} does not match {text}", Quoted(pattern.as_str()))
            }
        }
    }
}

/// All results up to the judged message.
fn results<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s ToolResult<'s>> {
    let messages = subject.transcript.messages[..subject.end].iter();
    messages
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            TranscriptPart::ToolResult(result) => Some(result),
            _ => None,
        })
}

/// Why nobody can know which of the calls ended in an error: the transcript keeps no results, or none of them says.
pub(in crate::handlers) fn errors_unknown(
    subject: &Subject<'_>,
    calls: &[usize],
) -> Option<&'static str> {
    if results_missing(subject, calls) {
        return Some(NO_RESULTS);
    }
    let unsaid = calls.iter().any(|ix| subject.result(*ix).is_some())
        && results(subject).all(|result| result.is_error.is_none());
    unsaid.then_some(ERRORS_UNSAID)
}

/// Whether a call's result says that it is an error.
pub(super) fn is_error(subject: &Subject<'_>, call: usize) -> bool {
    let result = subject.result(call);
    result.is_some_and(|(_, result)| result.is_error == Some(true))
}

/// Whether the source keeps no results: none is there, though calls stand in messages before the last. Those of the last
/// message only have no answer yet.
pub(in crate::handlers) fn results_missing(subject: &Subject<'_>, calls: &[usize]) -> bool {
    let earlier = |ix: &usize| subject.calls()[*ix].message + 1 < subject.end;
    calls.iter().any(earlier) && results(subject).next().is_none()
}

/// `"search" in message 3: "Error: …"`: an error as people see it.
pub(super) fn error_told(subject: &Subject<'_>, call: usize) -> String {
    let made = super::matching::call_in(subject, call);
    match subject.result(call) {
        Some((_, result)) => format!("{made}: {}", Quoted(result.content.trim())),
        None => made,
    }
}

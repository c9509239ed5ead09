//! Conditions on tool results: their text, their error flag, their duration.
//!
//! Only what the source records counts. A result that reads like an error is not one. If most results do not record the
//! flag, the check returns an error.

use std::ops::Range;

use regex::Regex;

use crate::handlers::eval_type::param_problem;
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::text::lowercase::to_original_range;
use crate::handlers::text::patterns::PatternSet;
use crate::handlers::text::regexp;
use crate::handlers::{MessageText, Subject};
use crate::model::{ToolResult, TranscriptPart};
use crate::rubric::ParamProblem;

/// The largest number of patterns for one result. All of them are searched in every result.
const MAX_PATTERNS: usize = 1000;

/// The text of the `check_error` if no result records whether it is an error.
const ERRORS_NOT_RECORDED: &str =
    "this transcript does not say which results are errors (`is_error`)";

/// The text of the `check_error` if at least half of the results do not record whether they are errors.
const MOST_ERRORS_NOT_RECORDED: &str =
    "most tool results of this transcript do not state whether they are errors (`is_error`)";

/// The text of the `check_error` if there are calls but no results.
pub(in crate::handlers) const RESULTS_NOT_RECORDED: &str =
    "this transcript has calls but no results of calls";

/// A condition on the text of a result.
#[derive(Debug)]
pub(super) enum ResultCondition {
    /// Contains all of the patterns, case-insensitive.
    ContainsAll(PatternSet),
    /// Contains this text, case-sensitive.
    ContainsText(String),
    /// Matches this pattern, case-sensitive.
    MatchesPattern(Regex),
}

impl ResultCondition {
    pub(super) fn contains_all(
        param: &str,
        patterns: Vec<String>,
    ) -> Result<Self, Vec<ParamProblem>> {
        // The limit comes first, because building the pattern set of a very long list is slow.
        let count = patterns.len();
        if count > MAX_PATTERNS {
            let why = format!("has {count} entries, more than {MAX_PATTERNS}");
            return Err(vec![param_problem(format!("/{param}"), why)]);
        }
        PatternSet::new(patterns, param).map(Self::ContainsAll)
    }

    pub(super) fn from_pattern(param: &str, pattern: &str) -> Result<Self, Vec<ParamProblem>> {
        let pointer = format!("/{param}");
        let pattern = regexp::compile_regex(&pointer, pattern).map_err(|problem| vec![problem])?;
        Ok(Self::MatchesPattern(pattern))
    }

    /// Returns the range in the text; `None` if the text does not meet the condition.
    pub(super) fn find(&self, text: &MessageText<'_>) -> Option<Vec<Range<usize>>> {
        match self {
            // `collect` into an `Option` gives `None` as soon as one pattern has no hit.
            Self::ContainsAll(patterns) => {
                let hits = patterns.find_first_of_each(text.lowercase()).into_iter();
                hits.map(|hit| hit.map(|range| to_original_range(&text.text, &range)))
                    .collect()
            }
            Self::ContainsText(wanted) => {
                let from = text.text.find(wanted.as_str())?;
                let place = from..from + wanted.len();
                Some(vec![place])
            }
            Self::MatchesPattern(pattern) => {
                pattern.find(&text.text).map(|found| vec![found.range()])
            }
        }
    }

    /// Returns how much of the condition a text meets, to find the nearest result.
    pub(super) fn count_found(&self, text: &MessageText<'_>) -> usize {
        match self {
            Self::ContainsAll(patterns) => patterns
                .find_first_of_each(text.lowercase())
                .iter()
                .flatten()
                .count(),
            Self::ContainsText(wanted) => usize::from(text.text.contains(wanted.as_str())),
            Self::MatchesPattern(pattern) => usize::from(pattern.is_match(&text.text)),
        }
    }

    /// Explains what a text lacks: `it lacks "refund"`.
    pub(super) fn describe_missing(&self, text: &MessageText<'_>) -> String {
        match self {
            Self::ContainsAll(patterns) => {
                let hits = patterns.find_first_of_each(text.lowercase());
                let with_names = hits.iter().zip(&patterns.written);
                let missing = with_names.filter(|(hit, _)| hit.is_none());
                let names = format_list(missing.map(|(_, pattern)| QuotedText(pattern)));
                format!("it lacks {names}")
            }
            Self::ContainsText(wanted) => format!("it lacks {}", QuotedText(wanted)),
            Self::MatchesPattern(pattern) => {
                let text = QuotedText(&text.text);
                format!("{} does not match {text}", QuotedText(pattern.as_str()))
            }
        }
    }
}

/// Returns all results up to the judged message.
fn iter_results<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s ToolResult<'s>> {
    let messages = subject.transcript.messages[..subject.end].iter();
    messages
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            TranscriptPart::ToolResult(result) => Some(result),
            _ => None,
        })
}

/// Explains why the errors are unknown: the transcript has no results, or at least half of them do not record
/// `is_error`.
pub(in crate::handlers) fn explain_unknown_errors(
    subject: &Subject<'_>,
    calls: &[usize],
) -> Option<&'static str> {
    if are_results_missing(subject, calls) {
        return Some(RESULTS_NOT_RECORDED);
    }
    if !calls.iter().any(|ix| subject.result(*ix).is_some()) {
        return None;
    }
    let (mut count, mut unknown) = (0, 0);
    for result in iter_results(subject) {
        match result.is_error {
            // A source that marks an error marks all of them, so the results without the mark are none.
            Some(true) => return None,
            Some(false) => {}
            None => unknown += 1,
        }
        count += 1;
    }
    match unknown {
        _ if unknown == count => Some(ERRORS_NOT_RECORDED),
        _ if unknown * 2 >= count => Some(MOST_ERRORS_NOT_RECORDED),
        _ => None,
    }
}

/// Returns `true` if the result of a call records that it is an error.
pub(super) fn is_error(subject: &Subject<'_>, call: usize) -> bool {
    let result = subject.result(call);
    result.is_some_and(|located| located.result.is_error == Some(true))
}

/// Returns `true` if the source has no results, although calls occur in messages before the last. Calls of the last
/// message simply have no result yet.
pub(in crate::handlers) fn are_results_missing(subject: &Subject<'_>, calls: &[usize]) -> bool {
    let earlier = |ix: &usize| subject.calls()[*ix].message + 1 < subject.end;
    calls.iter().any(earlier) && iter_results(subject).next().is_none()
}

/// Formats an error: `"search" in message 3: "Error: …"`.
pub(super) fn describe_error(subject: &Subject<'_>, call: usize) -> String {
    let made = super::call_matching::locate_call(subject, call);
    match subject.result(call) {
        Some(located) => {
            format!("{made}: {}", QuotedText(located.result.content.trim()))
        }
        None => made,
    }
}

//! The pane's filter: the language of `--where`, with more terms.
//!
//! `outcome:` `label:` `eval:` `rubric:` `transcript:` `cell:` `judge:` `group:` work as in `--where`. Words without a key
//! match the name *and* the explanation. `is:stale`, `is:flip`, `is:live`, `is:problem`, `is:error` and `is:failed-rerun`
//! match the state of a decision; the words of [`Cause`] match results with this cause. As everywhere in the language, commas
//! mean "or" and all terms must match: `is:flip,stale` finds either, `is:flip is:stale` both. `!` negates a term. No filter finds what a blind screen hides.
//! `tag:` matches the tags that the outline read.

use std::fmt::Write as _;

use super::{CellsRow, CellsState, RowId, RowSlot, RowSlotState};
use crate::model::{Cause, CauseSet};
use crate::run::{
    CandidateLabel, DecisionFilter, FilterCandidate, FilterWord, KnownFilterIds, split_words,
};

/// A parsed filter.
#[derive(Debug, Clone, Default)]
pub(super) struct CellsFilter {
    name_filter: Option<DecisionFilter>,
    status_terms: Vec<StatusCondition>,
}

/// An `is:` condition, which one of its values must meet.
#[derive(Debug, Clone)]
struct StatusCondition {
    is_negated: bool,
    any_of: Vec<StatusTerm>,
}

impl StatusCondition {
    /// Parses the values of `is:`.
    fn parse(values: &str, is_negated: bool) -> Result<Self, String> {
        Ok(Self {
            is_negated,
            any_of: values
                .split(',')
                .map(parse_status)
                .collect::<Result<_, _>>()?,
        })
    }

    fn holds(&self, row: &CellsRow) -> bool {
        self.any_of.iter().any(|term| term.matches(row)) != self.is_negated
    }
}

/// The number of rows that are filtered at once. The rest follows in steps; see [`CellsState::finish_filtering`].
const ROWS_PER_FILTER_STEP: usize = 20_000;

/// The problem of `tag:` if no transcript has a tag.
const NO_TAGS: &str = "no transcript here has a tag; a recording without its workspace has none";

/// A state that `is:` matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusTerm {
    Stale,
    Flip,
    Live,
    Problem,
    Error,
    FailedRerun,
    Cause(Cause),
}

pub(super) const STATUS_TERMS: [(&str, StatusTerm); 12] = [
    ("stale", StatusTerm::Stale),
    ("flip", StatusTerm::Flip),
    ("live", StatusTerm::Live),
    ("problem", StatusTerm::Problem),
    ("error", StatusTerm::Error),
    ("failed-rerun", StatusTerm::FailedRerun),
    cause_term(Cause::Contradiction),
    cause_term(Cause::Citation),
    cause_term(Cause::Refused),
    cause_term(Cause::Repaired),
    cause_term(Cause::FetchError),
    cause_term(Cause::Truncated),
];

const fn cause_term(cause: Cause) -> (&'static str, StatusTerm) {
    (cause.as_str(), StatusTerm::Cause(cause))
}

impl CellsFilter {
    /// Parses a filter. The error is a sentence.
    fn parse(text: &str) -> Result<Self, String> {
        // The parser is shared with `dicta run --where`; on the screen its prefix is wrong.
        let plain = |error: crate::run::FilterError| strip_option(&error.to_string()).to_owned();
        let mut is = Vec::new();
        let mut rest: Vec<FilterWord> = Vec::new();
        for word in split_words(text).map_err(plain)? {
            match word.text.split_once(':') {
                // A quoted word is text to search for, even if it contains a colon.
                Some(("is", value)) if !word.is_quoted => {
                    is.push(StatusCondition::parse(value, word.is_negated)?);
                }
                // All other words have the same meaning as in `dicta run --where`.
                _ => rest.push(word),
            }
        }
        let filter = match rest.len() {
            0 => None,
            _ => Some(DecisionFilter::from_words(text, rest).map_err(plain)?),
        };
        Ok(Self {
            name_filter: filter,
            status_terms: is,
        })
    }

    /// Returns true if the filter matches all rows.
    pub(super) fn is_empty(&self) -> bool {
        self.name_filter.is_none() && self.status_terms.is_empty()
    }
}

/// Removes the name of the option from a message that the command line shares with the screen.
fn strip_option(message: &str) -> &str {
    message.strip_prefix("--where: ").unwrap_or(message)
}

/// Returns the text before a last term without a value, such as `label:`. `None` if the last term has one.
fn strip_unfinished_term(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let start = text.rfind(char::is_whitespace).unwrap_or(0);
    text.ends_with(':').then(|| &text[..start])
}

fn parse_status(word: &str) -> Result<StatusTerm, String> {
    let known = STATUS_TERMS.iter().map(|(name, _)| *name);
    match STATUS_TERMS.iter().find(|(name, _)| *name == word) {
        Some((_, one)) => Ok(*one),
        None => Err(match crate::diag::find_nearest(word, known.clone()) {
            Some(near) if !word.is_empty() => {
                format!("`is:{word}` is not known; did you mean `is:{near}`?")
            }
            _ => format!("`is:` takes {}", known.collect::<Vec<_>>().join(", ")),
        }),
    }
}

impl StatusTerm {
    /// Returns the description for the list of values.
    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Self::Stale => "the inputs changed since the verdict",
            Self::Flip => "the last edit changed the verdict",
            Self::Live => "a judge works on it or will",
            Self::Problem => "a failure, a flip or an error",
            Self::Error => "an error outcome, or a re-run without a verdict",
            Self::FailedRerun => "the last re-run failed or was cancelled",
            Self::Cause(cause) => cause.meaning(),
        }
    }

    fn matches(self, row: &CellsRow) -> bool {
        match self {
            Self::Stale => row.stale.is_some(),
            // A flip would reveal a hidden verdict.
            Self::Flip => row.flipped.is_some() && !row.hidden,
            Self::Live => row.is_live(),
            Self::Problem => row.is_problem(),
            Self::Error => {
                let decision = row.visible_decision();
                decision.is_some_and(|decision| decision.outcome.is_error())
                    || row.visible_failed_rerun().is_some()
            }
            Self::FailedRerun => row.visible_failed_rerun().is_some(),
            Self::Cause(cause) => has_cause(row, cause),
        }
    }
}

/// Returns true if a visible result of the row has this cause.
fn has_cause(row: &CellsRow, wanted: Cause) -> bool {
    let is_flagged = |slot: &RowSlot| matches!(slot.state, RowSlotState::Done { causes, .. } if causes.contains(wanted));
    !row.hidden && row.slots.iter().any(is_flagged)
}

impl CellsState {
    /// Sets the filter. If it does not parse, returns the problem and keeps the visible rows.
    pub(crate) fn set_filter(&mut self, text: &str) -> Result<(), String> {
        // The text is kept even if it does not parse, so that the user can correct it.
        text.trim().clone_into(&mut self.filter);
        match CellsFilter::parse(text) {
            Ok(query) => self.query = query,
            Err(why) => {
                // Until the user types the value of `label:`, the terms before it select.
                let rest = strip_unfinished_term(text).map(CellsFilter::parse);
                if let Some(Ok(query)) = rest {
                    self.query = query;
                    self.mark_order_outdated();
                    self.update_some_groups(ROWS_PER_FILTER_STEP);
                }
                self.filter_problem = Some(why.clone());
                return Err(why);
            }
        }
        self.filter_problem = None;
        self.unmatched_problem = self.explain_unmatched_filter();
        self.mark_order_outdated();
        // The first rows appear at once; a timer filters the others.
        self.update_some_groups(ROWS_PER_FILTER_STEP);
        Ok(())
    }

    /// Returns sentences about the ids in the filter that nothing has; `None` if there are none.
    pub(super) fn explain_unmatched_filter(&self) -> Option<String> {
        let filter = self.query.name_filter.as_ref()?;
        let collect = |key: &str| -> Vec<&str> { self.eval_values(key).into_iter().collect() };
        let judges = self.listed_judges();
        let transcripts: Vec<&str> = self
            .transcripts
            .iter()
            .map(|known| known.id.as_str())
            .collect();
        let tags: Vec<&str> = self.tags.known().iter().map(String::as_str).collect();
        let problems = filter.unmatched_patterns(&KnownFilterIds {
            evals: &collect("eval"),
            rubrics: &collect("rubric"),
            judges: &judges,
            groups: &collect("group"),
            transcripts: Some(&transcripts),
            tags: Some(&tags),
        });
        let problems: Vec<&str> = problems
            .iter()
            .map(|problem| match strip_option(problem) {
                // A recording that is open without its workspace has no tags to compare with.
                why if tags.is_empty() && why.starts_with("no tag ") => NO_TAGS,
                why => why,
            })
            .collect();
        (!problems.is_empty()).then(|| problems.join("\n"))
    }

    /// Returns true if a row matches the filter.
    pub(super) fn matches_filter(&self, id: RowId) -> bool {
        self.matches_filter_with_buffer(id, &mut String::new())
    }

    /// Like [`Self::matches_filter`], with a buffer for names, which saves one allocation per row.
    pub(super) fn matches_filter_with_buffer(&self, id: RowId, written: &mut String) -> bool {
        // Without a filter no name must be built, which is the common case.
        if self.query.is_empty() {
            return true;
        }
        let Some(row) = self.row(id) else {
            return false;
        };
        let query = &self.query;
        let mut states = query.status_terms.iter();
        if !states.all(|condition| condition.holds(row)) {
            return false;
        }
        let Some(filter) = &self.query.name_filter else {
            return true;
        };
        // The first judge names the row; the filter can match any of them.
        let judge = row.slots.first().and_then(|slot| slot.judge);
        let name_of =
            |slot: &super::RowSlot| Some(self.judges.get(slot.judge? as usize)?.name.as_str());
        let mut judges: Vec<&str> = row.slots.iter().filter_map(name_of).collect();
        judges.dedup();
        let Some(name) = self.name_with(row, judge, None) else {
            return false;
        };
        let tags = self.tags.of(name.transcript);
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        written.clear();
        // Building the name is the slow part, so it is done only for a filter with free words.
        if filter.needs_name() {
            let _infallible = write!(written, "{name}");
        }
        filter.matches(&FilterCandidate {
            transcript: name.transcript,
            tags: &tags,
            rubric: name.rubric,
            eval: name.eval,
            judges: &judges,
            groups: self
                .evals
                .get(row.eval as usize)
                .map_or(&[], |eval| &eval.groups),
            name: written,
            outcome: row.visible_decision().map(|decision| decision.outcome),
            // The pane tests causes itself.
            causes: CauseSet::default(),
            // The label of a part depends on all parts of its whole, so few filters look it up.
            label: if filter.needs_labels() {
                self.filter_label(row)
            } else {
                CandidateLabel::default()
            },
            explanation: row
                .decision_explanation()
                // The explanation would reveal a hidden verdict.
                .filter(|_| !row.hidden)
                .map_or("", |why| why),
        })
    }
}

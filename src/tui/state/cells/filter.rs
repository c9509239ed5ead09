//! The pane's filter: the language of `--where`, with more terms.
//!
//! `outcome:` `eval:` `rubric:` `transcript:` `judge:` `group:` work as in `--where`. Words without a key match the
//! name *and* the explanation. `is:stale`, `is:flip`, `is:live` and `is:problem` match the state of a decision;
//! `label:fail` and `label:disagrees` match its label. As everywhere in the language, commas mean "or" and all terms
//! must match: `is:flip,stale` finds either, `is:flip is:stale` both. `!` negates a term. No filter finds what a blind screen hides.
//! `tag:` is an error, because tags are in the transcripts and the screen does not read these to filter.

use std::fmt::Write as _;

use super::{CellsRow, CellsState, LabelValue, RowId};
use crate::run::{DecisionFilter, FilterCandidate, FilterWord, split_words};

/// A parsed filter.
#[derive(Debug, Clone, Default)]
pub(super) struct CellsFilter {
    name_filter: Option<DecisionFilter>,
    status_terms: Vec<RowCondition<StatusTerm>>,
    label_terms: Vec<RowCondition<LabelTerm>>,
}

/// An `is:` or `label:` condition, which one of its values must meet.
#[derive(Debug, Clone)]
struct RowCondition<T> {
    is_negated: bool,
    any_of: Vec<T>,
}

impl<T: Copy> RowCondition<T> {
    /// Parses the values of a key.
    fn parse(
        key: &str,
        values: &str,
        is_negated: bool,
        all: &[(&'static str, T)],
    ) -> Result<Self, String> {
        let terms = values.split(',').map(|one| parse_term(key, one, all));
        Ok(Self {
            is_negated,
            any_of: terms.collect::<Result<_, _>>()?,
        })
    }

    fn holds(&self, matches: impl Fn(T) -> bool) -> bool {
        self.any_of.iter().any(|term| matches(*term)) != self.is_negated
    }
}

/// The number of rows that are filtered at once. The rest follows in steps; see [`CellsState::finish_filtering`].
const ROWS_PER_FILTER_STEP: usize = 20_000;

/// A state that `is:` matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusTerm {
    Stale,
    Flip,
    Live,
    Problem,
}

/// A label that `label:` matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LabelTerm {
    Unlabelled,
    Labelled,
    Value(LabelValue),
    Agrees,
    Disagrees,
}

const LABEL_TERMS: [(&str, LabelTerm); 7] = [
    ("none", LabelTerm::Unlabelled),
    ("any", LabelTerm::Labelled),
    ("pass", LabelTerm::Value(LabelValue::Pass)),
    ("fail", LabelTerm::Value(LabelValue::Fail)),
    ("unsure", LabelTerm::Value(LabelValue::Unsure)),
    ("agrees", LabelTerm::Agrees),
    ("disagrees", LabelTerm::Disagrees),
];

const STATUS_TERMS: [(&str, StatusTerm); 4] = [
    ("stale", StatusTerm::Stale),
    ("flip", StatusTerm::Flip),
    ("live", StatusTerm::Live),
    ("problem", StatusTerm::Problem),
];

impl CellsFilter {
    /// Parses a filter. The error is a sentence.
    fn parse(text: &str) -> Result<Self, String> {
        // The parser is shared with `dicta run --where`; on the screen its prefix is wrong.
        let plain = |error: crate::run::FilterError| {
            let message = error.to_string();
            message
                .strip_prefix("--where: ")
                .unwrap_or(&message)
                .to_owned()
        };
        let mut is = Vec::new();
        let mut label = Vec::new();
        let mut rest: Vec<FilterWord> = Vec::new();
        for word in split_words(text).map_err(plain)? {
            match word.text.split_once(':') {
                // A quoted word is text to search for, even if it contains a colon.
                Some(("is", value)) if !word.is_quoted => {
                    is.push(RowCondition::parse(
                        "is",
                        value,
                        word.is_negated,
                        &STATUS_TERMS,
                    )?);
                }
                Some(("label", value)) if !word.is_quoted => label.push(RowCondition::parse(
                    "label",
                    value,
                    word.is_negated,
                    &LABEL_TERMS,
                )?),
                // Tags are in the transcript files, which the screen does not read.
                Some(("tag", _)) if !word.is_quoted => {
                    return Err(
                        "tags are not known on the screen; `dicta run --where tag:…` takes them"
                            .to_owned(),
                    );
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
            label_terms: label,
        })
    }

    /// Returns true if the filter matches all rows.
    pub(super) fn is_empty(&self) -> bool {
        self.name_filter.is_none() && self.status_terms.is_empty() && self.label_terms.is_empty()
    }
}

fn parse_term<T: Copy>(key: &str, word: &str, all: &[(&'static str, T)]) -> Result<T, String> {
    let known = all.iter().map(|(name, _)| *name);
    match all.iter().find(|(name, _)| *name == word) {
        Some((_, one)) => Ok(*one),
        None => Err(match crate::diag::find_nearest(word, known.clone()) {
            Some(near) if !word.is_empty() => {
                format!("`{key}:{word}` is not known; did you mean `{key}:{near}`?")
            }
            _ => format!("`{key}:` takes {}", known.collect::<Vec<_>>().join(", ")),
        }),
    }
}

impl StatusTerm {
    fn matches(self, row: &CellsRow) -> bool {
        match self {
            Self::Stale => row.stale.is_some(),
            // A flip would reveal a hidden verdict.
            Self::Flip => row.flipped.is_some() && !row.hidden,
            Self::Live => row.is_live(),
            Self::Problem => row.is_problem(),
        }
    }
}

impl LabelTerm {
    fn matches(self, row: &CellsRow) -> bool {
        match self {
            Self::Unlabelled => row.label.is_none(),
            Self::Labelled => row.label.is_some(),
            Self::Value(said) => row.label == Some(said),
            Self::Agrees => row.agrees_with_label() == Some(true),
            Self::Disagrees => row.agrees_with_label() == Some(false),
        }
    }
}

impl CellsState {
    /// Sets the filter. If it does not parse, returns the problem and keeps the visible rows.
    pub(crate) fn set_filter(&mut self, text: &str) -> Result<(), String> {
        // The text is kept even if it does not parse, so that the user can correct it.
        text.trim().clone_into(&mut self.filter);
        match CellsFilter::parse(text) {
            Ok(query) => self.query = query,
            Err(why) => {
                self.filter_problem = Some(why.clone());
                return Err(why);
            }
        }
        self.filter_problem = None;
        self.mark_order_outdated();
        // The first rows appear at once; a timer filters the others.
        self.update_some_groups(ROWS_PER_FILTER_STEP);
        Ok(())
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
        let mut labels = query.label_terms.iter();
        if !states.all(|condition| condition.holds(|term| term.matches(row)))
            || !labels.all(|condition| condition.holds(|term| term.matches(row)))
        {
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
        written.clear();
        // Building the name is the slow part, so it is done only for a filter with free words.
        if filter.needs_name() {
            let _infallible = write!(written, "{name}");
        }
        filter.matches(&FilterCandidate {
            transcript: name.transcript,
            tags: &[],
            rubric: name.rubric,
            eval: name.eval,
            judges: &judges,
            groups: self
                .evals
                .get(row.eval as usize)
                .map_or(&[], |eval| &eval.groups),
            name: written,
            outcome: row.visible_decision().map(|decision| decision.outcome),
            explanation: row
                .decision_explanation()
                // The explanation would reveal a hidden verdict.
                .filter(|_| !row.hidden)
                .map_or("", |why| why),
        })
    }
}

//! The pane's filter: the language of `--where`, and a few words about what only a screen knows.
//!
//! `outcome:` `eval:` `rubric:` `transcript:` `judge:` `group:` as there. Bare words are looked for in the name *and* in the
//! explanation. `is:stale`, `is:flip`, `is:live`, `is:problem` look at where a decision stands; `!` turns any term around.
//! `tag:` is refused: tags stand in the transcripts, which the screen does not read to filter.

use std::fmt::Write as _;

use super::{Cells, Row, RowId};
use crate::run::{Candidate, Filter, Word, words};

/// A filter, read.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    filter: Option<Filter>,
    is: Vec<(bool, Is)>,
}

/// So many rows are filtered at once; more come in bites, see [`Cells::finish`].
const AT_ONCE: usize = 20_000;

/// Where a decision stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Stale,
    Flip,
    Live,
    Problem,
}

const IS: [(&str, Is); 4] = [
    ("stale", Is::Stale),
    ("flip", Is::Flip),
    ("live", Is::Live),
    ("problem", Is::Problem),
];

impl Query {
    /// Reads a filter; why not, in a sentence.
    fn parse(text: &str) -> Result<Self, String> {
        let plain = |error: crate::run::FilterError| {
            let said = error.to_string();
            said.strip_prefix("--where: ").unwrap_or(&said).to_owned()
        };
        let mut is = Vec::new();
        let mut rest: Vec<Word> = Vec::new();
        for word in words(text).map_err(plain)? {
            match word.text.split_once(':') {
                Some(("is", value)) if !word.quoted => is.extend(
                    value
                        .split(',')
                        .map(|one| standing(one).map(|one| (word.not, one)))
                        .collect::<Result<Vec<_>, _>>()?,
                ),
                Some(("tag", _)) if !word.quoted => {
                    return Err(
                        "tags are not known on the screen; `dicta run --where tag:…` takes them"
                            .to_owned(),
                    );
                }
                _ => rest.push(word),
            }
        }
        let filter = match rest.len() {
            0 => None,
            _ => Some(Filter::of_words(text, rest).map_err(plain)?),
        };
        Ok(Self { filter, is })
    }

    /// Whether it lets everything through.
    pub(super) fn is_empty(&self) -> bool {
        self.filter.is_none() && self.is.is_empty()
    }
}

fn standing(word: &str) -> Result<Is, String> {
    let known = IS.iter().map(|(name, _)| *name);
    match IS.iter().find(|(name, _)| *name == word) {
        Some((_, is)) => Ok(*is),
        None => Err(match crate::diag::nearest(word, known.clone()) {
            Some(near) if !word.is_empty() => {
                format!("`is:{word}` is not known; did you mean `is:{near}`?")
            }
            _ => format!("`is:` takes {}", known.collect::<Vec<_>>().join(", ")),
        }),
    }
}

impl Is {
    fn holds(self, row: &Row) -> bool {
        match self {
            Self::Stale => row.stale.is_some(),
            Self::Flip => row.flipped.is_some(),
            Self::Live => row.is_live(),
            Self::Problem => row.is_problem(),
        }
    }
}

impl Cells {
    /// Shows only what a filter lets through. One that cannot be read says why and leaves what is shown as it is.
    pub(crate) fn set_filter(&mut self, text: &str) -> Result<(), String> {
        text.trim().clone_into(&mut self.filter);
        match Query::parse(text) {
            Ok(query) => self.query = query,
            Err(why) => {
                self.filter_problem = Some(why.clone());
                return Err(why);
            }
        }
        self.filter_problem = None;
        self.reorder();
        self.settle_some(AT_ONCE);
        Ok(())
    }

    /// Whether the filter lets a row through.
    pub(super) fn lets_through(&self, id: RowId) -> bool {
        self.lets_through_with(id, &mut String::new())
    }

    /// The same, with room to write names in.
    pub(super) fn lets_through_with(&self, id: RowId, written: &mut String) -> bool {
        if self.query.is_empty() {
            return true;
        }
        let Some(row) = self.row(id) else {
            return false;
        };
        if !self.query.is.iter().all(|(not, is)| is.holds(row) != *not) {
            return false;
        }
        let Some(filter) = &self.query.filter else {
            return true;
        };
        let judge = row.slots.first().and_then(|slot| slot.judge);
        let name_of = |slot: &super::Slot| Some(self.judges.get(slot.judge? as usize)?.0.as_str());
        let mut judges: Vec<&str> = row.slots.iter().filter_map(name_of).collect();
        judges.dedup();
        let Some(name) = self.name_with(row, judge, None) else {
            return false;
        };
        written.clear();
        if filter.needs_name() {
            let _infallible = write!(written, "{name}");
        }
        filter.matches(&Candidate {
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
            outcome: row.decision.as_ref().map(|decision| decision.outcome),
            says: row.why().map_or("", |why| why),
        })
    }
}

//! The pane's filter: the language of `--where`, and a few words about what only a screen knows.
//!
//! `outcome:` `eval:` `rubric:` `transcript:` `judge:` `group:` as there. Bare words are looked for in the name *and* in the
//! explanation. `is:stale`, `is:flip`, `is:live`, `is:problem` look at where a decision stands, `label:fail` and
//! `label:disagrees` at what a person said; `!` turns any term around. What a blind screen hides no filter finds.
//! `tag:` is refused: tags stand in the transcripts, which the screen does not read to filter.

use std::fmt::Write as _;

use super::{Cells, Human, Row, RowId};
use crate::run::{DecisionFilter, FilterCandidate, FilterWord, split_words};

/// A filter, read.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    filter: Option<DecisionFilter>,
    is: Vec<(bool, Is)>,
    label: Vec<(bool, Vec<Said>)>,
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

/// What a person said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Something,
    This(Human),
    Agrees,
    Disagrees,
}

const SAID: [(&str, Said); 7] = [
    ("none", Said::Nothing),
    ("any", Said::Something),
    ("pass", Said::This(Human::Pass)),
    ("fail", Said::This(Human::Fail)),
    ("unsure", Said::This(Human::Unsure)),
    ("agrees", Said::Agrees),
    ("disagrees", Said::Disagrees),
];

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
        let mut label = Vec::new();
        let mut rest: Vec<FilterWord> = Vec::new();
        for word in split_words(text).map_err(plain)? {
            match word.text.split_once(':') {
                Some(("is", value)) if !word.is_quoted => is.extend(
                    value
                        .split(',')
                        .map(|one| one_of("is", one, &IS).map(|one| (word.is_negated, one)))
                        .collect::<Result<Vec<_>, _>>()?,
                ),
                Some(("label", value)) if !word.is_quoted => {
                    let said = value.split(',').map(|one| one_of("label", one, &SAID));
                    label.push((word.is_negated, said.collect::<Result<Vec<_>, _>>()?));
                }
                Some(("tag", _)) if !word.is_quoted => {
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
            _ => Some(DecisionFilter::from_words(text, rest).map_err(plain)?),
        };
        Ok(Self { filter, is, label })
    }

    /// Whether it lets everything through.
    pub(super) fn is_empty(&self) -> bool {
        self.filter.is_none() && self.is.is_empty() && self.label.is_empty()
    }
}

fn one_of<T: Copy>(key: &str, word: &str, all: &[(&'static str, T)]) -> Result<T, String> {
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

impl Is {
    fn holds(self, row: &Row) -> bool {
        match self {
            Self::Stale => row.stale.is_some(),
            Self::Flip => row.flipped.is_some() && !row.veiled,
            Self::Live => row.is_live(),
            Self::Problem => row.is_problem(),
        }
    }
}

impl Said {
    fn holds(self, row: &Row) -> bool {
        match self {
            Self::Nothing => row.label.is_none(),
            Self::Something => row.label.is_some(),
            Self::This(said) => row.label == Some(said),
            Self::Agrees => row.agrees() == Some(true),
            Self::Disagrees => row.agrees() == Some(false),
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
        let mut labels = self.query.label.iter();
        if !labels.all(|(not, said)| said.iter().any(|said| said.holds(row)) != *not) {
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
            outcome: row.seen().map(|decision| decision.outcome),
            explanation: row.why().filter(|_| !row.veiled).map_or("", |why| why),
        })
    }
}

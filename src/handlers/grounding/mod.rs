//! Grounding: looks up the facts of one text in other texts, without understanding either.
//!
//! Responsible for the definition of a fact and of equal spellings. The eval type `grounded` and the judge `rules`
//! use it. Does not fetch anything: the sources are texts in memory.

mod eval;
mod facts;
mod prose;
mod source_texts;

pub(super) use eval::Grounded;
pub(crate) use facts::{FactKind, find_dates, find_facts, parse_version};
pub(crate) use prose::{normalize_phrase, split_sentences};
pub(crate) use source_texts::GroundingSources;

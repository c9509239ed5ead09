//! Grounding: whether what a text states stands in the texts it is said to come from, by looking up and not by
//! understanding. `grounded` asks it as an eval; the judge `rules` asks it as one of its clauses.
//!
//! Owns what a fact is and when two spellings are the same one. Refuses to fetch: grounds are texts that are there.

mod eval;
mod facts;
mod prose;
mod source_texts;

pub(super) use eval::Grounded;
pub(crate) use facts::{FactKind, find_dates, find_facts, parse_version};
pub(crate) use prose::{normalize_phrase, split_sentences};
pub(crate) use source_texts::GroundingSources;

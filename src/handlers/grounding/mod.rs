//! Grounding: whether what a text states stands in the texts it is said to come from, by looking up and not by
//! understanding. `grounded` asks it as an eval; the judge `rules` asks it as one of its clauses.
//!
//! Owns what a fact is and when two spellings are the same one. Refuses to fetch: grounds are texts that are there.

mod eval;
mod facts;
mod ground;
mod prose;

pub(super) use eval::Grounded;
pub(crate) use facts::{Fact, dates, find, version_parts};
pub(crate) use ground::Ground;
pub(crate) use prose::{loose, sentences};

//! The judge that answers with probabilities: the Decisions endpoints, which write no reasons.
//!
//! Responsible for the questions to such a judge, and for the verdict that its answers yield. Everything else is
//! common to all judges; the questions take the place of the schema. A judge that can't name goals or count returns
//! an error instead of an invented answer.
//!
//! # Questions
//!
//! | the eval | the questions |
//! |---|---|
//! | criteria, or a scoring guide | `met`: yes or no. Passed: at least 0.5; the score is the probability |
//! | `allow_na: true` | `met`: `met`, `not_met` or `not_applicable`. "Not applicable" if that is the likeliest; else the probability is that of `met` among the first two |
//! | `scale: [1, 5]` | also `score`: a level for each whole number (2 to 255 steps), else eleven evenly spaced. The score is the expected value |
//! | numbered criteria, given goals, calls | one yes or no for each; with `allow_na` also `applicable` |
//! | goals to be named, slips to be counted | none: an error |
//!
//! `min_score` and `max_score` decide afterwards, as for any judge. They change no question, so dicta can rescore a
//! recorded answer.

mod questions;
mod verdicts;

pub(super) use self::questions::{build_questions, render_prompt};
pub(super) use self::verdicts::{CalibratedVerdictError, read_answers};

/// The version of the questions and of the reading; part of the cache key. Increase it if a verdict could change.
pub(super) const VERSION: u32 = 1;

#[cfg(test)]
mod tests;

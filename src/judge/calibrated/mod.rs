//! A judge that answers with probabilities: the Decisions endpoints, which write no reasons.
//!
//! Owns what such a judge is asked, and what its answers amount to. All else is any judge's: the engine renders the same
//! marked blocks, and prompt, key, retries, budget, gate, deadline, meter, events and cache key are its own, with the
//! questions where a schema would stand. Refuses to make up what was not asked: a judge that cannot name goals or count
//! says so, and shows no reasons.
//!
//! # What is asked
//!
//! | the eval | the questions |
//! |---|---|
//! | criteria, or a rubric | `met`: yes or no. Passed: at least 0.5; the score is the probability |
//! | `allow_na: true` | `met`: `met`, `not_met` or `not_applicable`. "Not applicable" where that is likeliest; else the probability is that of `met` among the first two |
//! | `scale: [1, 5]` | besides, `score`: a level for each whole number (2 to 255 steps), else eleven evenly spaced. The score is the expected value |
//! | numbered criteria, given goals, calls | one yes or no for each; with `allow_na` also `applicable` |
//! | goals to be named, slips to be counted | nothing: an error |
//!
//! `min_score` and `max_score` decide afterwards, as with any judge: they change no question, so a recorded answer can be
//! decided again.

mod questions;
mod verdicts;

pub(super) use self::questions::{build_questions, render_prompt};
pub(super) use self::verdicts::{CalibratedVerdictError, read_answers};

/// The version of questions and reading; part of the cache key of these judges. Raise it when a verdict could change.
pub(super) const VERSION: u32 = 1;

#[cfg(test)]
mod tests;

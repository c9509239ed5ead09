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

use super::trace::{JudgeTrace, TraceState};
use crate::event::CallCx;
use crate::model::{CellResult, ModelReply, Outcome};

pub(super) use self::questions::{build_questions, render_prompt};

/// The version of questions and reading; part of the cache key of these judges. Raise it when a verdict could change.
pub(super) const VERSION: u32 = 1;

impl JudgeTrace<'_> {
    /// The verdict that the answers amount to.
    pub(super) async fn read_calibrated_verdict(
        &self,
        cx: &CallCx,
        memory: &TraceState,
        reply: &ModelReply,
    ) -> Result<CellResult, CellResult> {
        let provider = self.engine.config.provider;
        match verdicts::read_calibrated_answers(
            provider,
            &self.setup.verdict_format,
            &self.setup.questions,
            &reply.text,
        ) {
            Ok(verdict) => self.accept_verdict(cx, memory, verdict).await,
            Err(verdicts::CalibratedVerdictError::Refused(why)) => {
                Err(CellResult::from_error(Outcome::JudgeError, why))
            }
            Err(verdicts::CalibratedVerdictError::Unparsed(why)) => {
                Err(self.end_unparsed(cx, Outcome::Unparsed, &why, reply).await)
            }
        }
    }
}

#[cfg(test)]
mod tests;

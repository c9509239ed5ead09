//! The rubric score of a transcript.
//!
//! Responsible for the weighted mean and the threshold. Does not decide evals.

use crate::model::Outcome;

/// The running sums of a rubric score.
#[derive(Debug, Default)]
pub(super) struct RubricScore {
    pub(super) has_weights: bool,
    sum: f64,
    weights: f64,
    required_failed: bool,
    pub(super) undecided: bool,
    /// `true` if it rests on a verdict that a person edited.
    pub(super) edited: bool,
}

impl RubricScore {
    /// Adds one decision.
    pub(super) fn add(
        &mut self,
        weight: f64,
        required: bool,
        outcome: Outcome,
        score: Option<f64>,
    ) {
        match outcome.passed() {
            Some(passed) => {
                // A verdict without a score counts as 1 or 0.
                let score = score.unwrap_or(if passed { 1.0 } else { 0.0 });
                self.sum += weight * score;
                self.weights += weight;
                self.required_failed |= required && !passed;
            }
            // An error does not change the mean, but a required eval must have a verdict.
            None => self.undecided |= required,
        }
    }

    /// Returns whether the rubric passed, and its score; `None` for a value that is undecided.
    pub(super) fn finish(&self, threshold: f64) -> (Option<bool>, Option<f64>) {
        /// Sums of tenths are inexact in floating point; a score that prints as the threshold must reach it.
        const SLACK: f64 = 1e-9;
        // No eval has a verdict, or all weights are 0.
        if self.weights <= 0.0 {
            return (None, None);
        }
        let score = self.sum / self.weights;
        // A failed required eval decides, even if other required evals are undecided.
        let passed = if self.required_failed {
            Some(false)
        } else if self.undecided {
            None
        } else {
            Some(score + SLACK >= threshold)
        };
        (passed, Some(score))
    }
}

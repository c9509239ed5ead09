//! The score of a rubric on a transcript.

use crate::model::Outcome;

/// A rubric's score on a transcript, as it adds up (design.md 5).
#[derive(Debug, Default)]
pub(super) struct RubricScore {
    pub(super) has_weights: bool,
    sum: f64,
    weights: f64,
    required_failed: bool,
    pub(super) undecided: bool,
}

impl RubricScore {
    /// Counts one decision.
    pub(super) fn add(
        &mut self,
        weight: f64,
        required: bool,
        outcome: Outcome,
        score: Option<f64>,
    ) {
        match outcome.passed() {
            Some(passed) => {
                let score = score.unwrap_or(if passed { 1.0 } else { 0.0 });
                self.sum += weight * score;
                self.weights += weight;
                self.required_failed |= required && !passed;
            }
            None => self.undecided |= required,
        }
    }

    /// Whether it passed, and the score; `None` for what is not decided.
    pub(super) fn finish(&self, threshold: f64) -> (Option<bool>, Option<f64>) {
        /// Sums of tenths are not exact; a score that prints as the threshold reaches it.
        const SLACK: f64 = 1e-9;
        if self.weights <= 0.0 {
            return (None, None);
        }
        let score = self.sum / self.weights;
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

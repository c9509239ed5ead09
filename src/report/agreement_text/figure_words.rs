//! The meaning of the figures in the details, in sentences.
//!
//! Responsible for explaining each figure that [`describe_details`](super::describe_details) shows, and no other one.

use super::count_details_labels;
use crate::compare::EvalFigures;

/// Returns a sentence or two for each figure in the details of an eval.
pub fn explain_details(eval: &EvalFigures) -> Vec<&'static str> {
    let mut out = Vec::new();
    if count_details_labels(eval).labels > 0 {
        out.extend([
            "On fail: precision is the share of the judge's fails that people fail, too. Recall is TNR. F1 is their harmonic mean.",
            "Balanced accuracy: the mean of TPR and TNR. A judge that always returns the same verdict has 0.5.",
            "MCC, κ and AC1: the agreement beyond chance. 1 is full agreement, 0 is chance. They differ in what counts as chance.",
            "κ of at most: the highest κ that is possible if the judge and people pass different shares.",
        ]);
    }
    if eval.people.closest_pair().is_some() || eval.judges.units > 0 {
        out.push("α and Fleiss' κ: the agreement beyond chance of all people or judges together.");
    }
    if eval.scores.is_some() {
        out.push(
            "Scores: weighted κ counts a far miss more than a near one. ρ and τ-b compare the order. A generous judge has a positive bias.",
        );
    }
    out
}

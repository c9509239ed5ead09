//! The evals whose remaining cells a running run no longer judges, because a save replaced their question.
//!
//! Responsible for the names alone: the scheduler leaves the cells pending.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

/// The withdrawn evals of a run, by rubric. The owner of the run adds names while the run judges.
#[derive(Debug, Default)]
pub struct WithdrawnEvals(RwLock<HashMap<String, HashSet<String>>>);

impl WithdrawnEvals {
    /// Withdraws an eval by the ids of its rubric and itself. Its cells that have not started stay pending.
    pub fn withdraw(&self, rubric: &str, eval: &str) {
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let of_rubric = names.entry(rubric.to_owned()).or_default();
        of_rubric.insert(eval.to_owned());
    }

    /// Returns true if the eval is withdrawn.
    pub(in crate::run) fn contains(&self, rubric: &str, eval: &str) -> bool {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // Asked before each judged cell, so no name is copied.
        names.get(rubric).is_some_and(|evals| evals.contains(eval))
    }
}

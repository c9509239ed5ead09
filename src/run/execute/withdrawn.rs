//! The evals whose remaining cells a running run no longer judges, because a save replaced their question.
//!
//! Responsible for the names alone: the scheduler leaves the cells pending.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

/// The withdrawn evals of a run. The owner of the run adds names while the run judges.
#[derive(Debug, Default)]
pub struct WithdrawnEvals(RwLock<HashSet<(String, String)>>);

impl WithdrawnEvals {
    /// Withdraws an eval by the ids of its rubric and itself. Its cells that have not started stay pending.
    pub fn withdraw(&self, rubric: &str, eval: &str) {
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        names.insert((rubric.to_owned(), eval.to_owned()));
    }

    /// Returns true if the eval is withdrawn.
    pub(in crate::run) fn contains(&self, rubric: &str, eval: &str) -> bool {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // Nearly all runs have none, so no name is copied for them.
        names.iter().any(|name| name.0 == rubric && name.1 == eval)
    }
}

//! The reasons of decisions that are neither a verdict nor an error, for the summary of a report that does not list them.
//!
//! Responsible for one line per outcome: how many decisions of which evals, and why. Does not print.

use std::cmp::Reverse;

use indexmap::IndexMap;

use super::DecidedRow;
use super::wording::count_outcome;
use crate::model::{Outcome, find_outcome_reason};

/// The outcomes that are neither a verdict nor an error.
const OUTCOMES: [Outcome; 2] = [Outcome::NotApplicable, Outcome::Skipped];
/// The largest number of evals on a line.
const MAX_EVALS: usize = 3;
/// The largest number of characters of a reason.
const MAX_REASON_CHARS: usize = 120;

/// The reasons of a report.
#[derive(Default)]
pub(super) struct UndecidedReasons {
    /// By outcome, rubric and eval, in the order of their first decisions.
    evals: IndexMap<(Outcome, String, String), EvalReasons>,
}

/// The reasons of one eval for one outcome.
struct EvalReasons {
    count: u64,
    /// The reason of the first decision.
    reason: String,
    has_other_reasons: bool,
}

impl EvalReasons {
    fn describe(&self, rubric: &str, eval: &str) -> String {
        let Self { count, reason, .. } = self;
        let example = if self.has_other_reasons {
            ", for example"
        } else {
            ""
        };
        if reason.is_empty() {
            return format!("{count} of {rubric}/{eval}");
        }
        format!("{count} of {rubric}/{eval}{example}: {reason}")
    }
}

impl UndecidedReasons {
    /// Counts a decision if its outcome is neither a verdict nor an error.
    pub(super) fn add(&mut self, row: &DecidedRow<'_>) {
        let outcome = row.outcome().filter(|outcome| OUTCOMES.contains(outcome));
        let Some(outcome) = outcome else { return };
        let cell = row.cells.iter().find(|cell| cell.result.outcome == outcome);
        let reason = cell.map_or("", |cell| {
            let result = cell.result;
            result.error.as_deref().unwrap_or(&result.explanation)
        });
        let reason = shorten_reason(&find_outcome_reason(outcome, reason));
        let (rubric, eval) = (row.name.rubric.to_owned(), row.name.eval.to_owned());
        let known = self.evals.entry((outcome, rubric, eval));
        let known = known.or_insert_with(|| EvalReasons {
            count: 0,
            reason: reason.clone(),
            has_other_reasons: false,
        });
        known.count += 1;
        known.has_other_reasons |= known.reason != reason;
    }

    /// Describes each outcome that occurred:
    /// `3 not applicable (-v lists them): 2 of r/calls: no tool was called; 1 of r/warm: …`.
    pub(super) fn describe(&self) -> Vec<String> {
        let lines = OUTCOMES.iter().filter_map(|outcome| {
            let evals = self.evals.iter();
            let of_outcome = evals.filter(|((known, _, _), _)| known == outcome);
            let mut evals: Vec<(&str, &str, &EvalReasons)> = of_outcome
                .map(|((_, rubric, eval), one)| (rubric.as_str(), eval.as_str(), one))
                .collect();
            // The sort keeps the order of evals with the same count.
            evals.sort_by_key(|(_, _, one)| Reverse(one.count));
            let count = |evals: &[(&str, &str, &EvalReasons)]| {
                evals.iter().map(|(_, _, one)| one.count).sum::<u64>()
            };
            let total = count(&evals);
            let (listed, others) = evals.split_at(evals.len().min(MAX_EVALS));
            let listed = listed.iter();
            let mut parts: Vec<String> = listed
                .map(|(rubric, eval, one)| one.describe(rubric, eval))
                .collect();
            if !others.is_empty() {
                parts.push(format!("{} of other evals", count(others)));
            }
            (total > 0).then(|| {
                let head = count_outcome(*outcome, total);
                format!("{head} (-v lists them): {}", parts.join("; "))
            })
        });
        lines.collect()
    }
}

/// Cuts a long reason.
fn shorten_reason(reason: &str) -> String {
    match reason.char_indices().nth(MAX_REASON_CHARS) {
        Some((at, _)) => format!("{}…", &reason[..at]),
        None => reason.to_owned(),
    }
}

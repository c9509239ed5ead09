//! The decisions of each eval that only one of two states has. Does not compare, and does not print.

use std::fmt::Write as _;

use indexmap::IndexMap;

use crate::model::{CellName, Outcome};
use crate::record::{Correspondence, State, StateDecision};

/// The decisions of one eval that only one of the states has.
#[derive(Debug, Clone, Default)]
pub(super) struct EvalCount {
    /// `rubric/eval`.
    pub(super) name: String,
    /// True if the whole eval is new or removed, and not only transcripts of it.
    pub(super) is_whole: bool,
    pub(super) pass: u64,
    pub(super) fail: u64,
    pub(super) other: u64,
    pub(super) pending: u64,
    /// The names of the decisions, in plan order.
    pub(super) decisions: Vec<CellName>,
}

impl EvalCount {
    pub(super) fn total(&self) -> u64 {
        self.pass + self.fail + self.other + self.pending
    }

    fn add(&mut self, decision: &StateDecision) {
        *match decision.outcome() {
            Some(Outcome::Pass) => &mut self.pass,
            Some(Outcome::Fail) => &mut self.fail,
            Some(_) => &mut self.other,
            None => &mut self.pending,
        } += 1;
    }

    /// Formats the counts: `✓ 14  ✗ 8`, with other outcomes and pending decisions if there are any.
    pub(super) fn format_counts(&self) -> String {
        let mut text = format!("✓ {}  ✗ {}", self.pass, self.fail);
        if self.other > 0 {
            let _infallible = write!(text, "  {} without a verdict", self.other);
        }
        if self.pending > 0 {
            let _infallible = write!(text, "  {} pending", self.pending);
        }
        text
    }
}

/// Groups decisions by eval. `continued` has the evals that the other state has too.
pub(super) fn count_by_eval(
    state: &State,
    decisions: &[StateDecision],
    continued: &[bool],
) -> Vec<EvalCount> {
    let mut counts: IndexMap<u32, EvalCount> = IndexMap::new();
    for decision in decisions {
        let count = counts.entry(decision.eval).or_insert_with(|| {
            let eval = state.eval(decision);
            EvalCount {
                name: format!("{}/{}", state.rubric_id(eval), eval.id),
                is_whole: !continued
                    .get(decision.eval as usize)
                    .copied()
                    .unwrap_or_default(),
                ..EvalCount::default()
            }
        });
        count.add(decision);
        count.decisions.push(state.name(decision));
    }
    counts.into_values().collect()
}

/// Returns for each eval of a state whether the other state has it too: those of the older, then those of the newer.
pub(super) fn find_continued(before: &State, matched: &Correspondence) -> [Vec<bool>; 2] {
    let mut old = vec![false; before.evals.len()];
    for from in matched.evals.iter().flatten() {
        if let Some(old) = old.get_mut(*from) {
            *old = true;
        }
    }
    let new = matched.evals.iter().map(Option::is_some).collect();
    [old, new]
}

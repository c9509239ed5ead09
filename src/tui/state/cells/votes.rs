//! The vote of a row: its slots as ballots, and the decision that they make.

use super::{CellsRow, DecisionRule, RowSlot, RowSlotState};
use crate::model::{Ballot, CellVote, Decision, UndecidedPanel};

/// What a row's cells decide; `None` until all have results.
pub(super) fn compute_decision(row: &CellsRow, by: &DecisionRule) -> Option<Decision> {
    by.vote_terms().decide(&collect_votes(row))
}

/// Why they have not decided though all have results, where several judge.
pub(super) fn explain_undecided(row: &CellsRow, by: &DecisionRule) -> Option<UndecidedPanel> {
    by.vote_terms().find_undecided(&collect_votes(row))
}

fn collect_votes(row: &CellsRow) -> Vec<CellVote> {
    let cast = |slot: &RowSlot| CellVote {
        judge: slot.judge,
        repeat: slot.repeat,
        ballot: match slot.state {
            RowSlotState::Done {
                outcome,
                score,
                probability,
                doubt,
                ..
            } => Some(Ballot {
                outcome,
                score,
                probability,
                doubt,
            }),
            RowSlotState::NeverRun | RowSlotState::Live => None,
        },
    };
    row.slots.iter().map(cast).collect()
}

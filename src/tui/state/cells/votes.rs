//! The vote of a row: its slots become ballots, and the ballots a decision.

use super::{CellsRow, DecisionRule, RowSlot, RowSlotState};
use crate::model::{Ballot, CellVote, Decision, UndecidedPanel};

/// Returns the decision of a row; `None` until all cells have results.
pub(super) fn compute_decision(row: &CellsRow, by: &DecisionRule) -> Option<Decision> {
    by.vote_terms().decide(&collect_votes(row))
}

/// Returns the reason why a panel did not decide although all cells have results.
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
            // A missing ballot keeps the vote open.
            RowSlotState::NeverRun | RowSlotState::Live | RowSlotState::Interrupted { .. } => None,
        },
    };
    row.slots.iter().map(cast).collect()
}

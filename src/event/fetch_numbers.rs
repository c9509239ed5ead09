//! The numbers by which judges cite tool responses: `fetch 2` is the second response without an error.
//!
//! Responsible for the order of the numbers. Does not check citations.

use super::state::{CallState, TurnState};
use crate::model::SUBMIT_VERDICT;

/// The position of a tool call in a judge trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPosition {
    /// The index of the turn.
    pub turn: usize,
    /// The index of the call in the turn.
    pub call: usize,
}

/// Returns the call that a judge cites as `fetch N`: the N-th tool response without an error.
pub fn find_fetch(turns: &[TurnState], number: usize) -> Option<CallPosition> {
    let mut count = 0;
    for (turn, state) in turns.iter().enumerate() {
        for (call, call_state) in state.calls.iter().enumerate() {
            // Citations count only responses without an error, as the prompt explains to the judge.
            if is_cited_as_fetch(call_state) {
                count += 1;
                if count == number {
                    return Some(CallPosition { turn, call });
                }
            }
        }
    }
    None
}

/// Returns the number by which a judge cites a tool response.
pub fn number_fetch(turns: &[TurnState], position: CallPosition) -> Option<usize> {
    let CallPosition { turn, call } = position;
    let call_state = turns.get(turn)?.calls.get(call)?;
    is_cited_as_fetch(call_state).then(|| {
        let before = turns[..turn].iter().flat_map(|t| &t.calls);
        // Citations count from 1.
        1 + before
            .chain(&turns[turn].calls[..call])
            .filter(|c| is_cited_as_fetch(c))
            .count()
    })
}

fn is_cited_as_fetch(call: &CallState) -> bool {
    call.name != SUBMIT_VERDICT
        && call
            .finished
            .as_ref()
            .is_some_and(|finished| !finished.response.is_error)
}

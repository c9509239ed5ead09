//! How many more votes are still needed: of repeats, or of a jury's members.
//!
//! A vote that is no longer needed gets no cell. So votes are planned as they become *certain to be needed*: first the
//! fewest that could settle it (2 of 3, 3 of 5), later the fewest more that could settle what is still open. None is ever
//! planned in vain, and those planned together run together.

use super::super::result::decide_by_vote;
use super::Ballot;
use crate::model::Outcome;

/// What a vote that is still out may turn out as. One of each kind is enough: the ballot treats the kinds alike, and error
/// outcomes differ only in which of them is commonest.
const POSSIBLE_OUTCOMES: [Outcome; 12] = Outcome::ALL;

/// The outcome of a vote.
pub(super) fn vote_outcome(outcomes: &[Outcome]) -> Option<Outcome> {
    let said: Vec<Ballot> = outcomes
        .iter()
        .map(|outcome| Ballot {
            outcome: *outcome,
            score: None,
            probability: None,
            doubt: None,
        })
        .collect();
    decide_by_vote(&said).map(|decision| decision.outcome)
}

/// Whether `left` further votes, whatever they are, change nothing.
///
/// Only the uniform continuations are tried. That suffices: a margin that holds against `left` votes of one kind holds
/// against any mixture of `left` votes.
pub(super) fn is_settled(done: &[Outcome], left: u32) -> bool {
    let Some(now) = vote_outcome(done) else {
        return left == 0;
    };
    left == 0 || {
        POSSIBLE_OUTCOMES.iter().all(|way| {
            let rest = std::iter::repeat_n(*way, left as usize);
            let all: Vec<Outcome> = done.iter().copied().chain(rest).collect();
            vote_outcome(&all) == Some(now)
        })
    }
}

/// How many more votes are certain to be needed, given those so far of at most `most`: 0 when it is settled.
pub(super) fn count_needed_votes(most: u32, done: &[Outcome]) -> u32 {
    let so_far = u32::try_from(done.len()).unwrap_or(u32::MAX);
    let open = most.saturating_sub(so_far);
    if open == 0 || is_settled(done, open) {
        return 0;
    }
    for more in 1..open {
        for way in POSSIBLE_OUTCOMES {
            let ahead = std::iter::repeat_n(way, more as usize);
            let with: Vec<Outcome> = done.iter().copied().chain(ahead).collect();
            if is_settled(&with, open - more) {
                return more;
            }
        }
    }
    open
}

/// How many of the votes, from the first, a fresh run would have asked for.
pub(super) fn settled_prefix_len(most: u32, all: &[Outcome]) -> usize {
    (0..=all.len())
        .find(|first| count_needed_votes(most, &all[..*first]) == 0)
        .unwrap_or(all.len())
}

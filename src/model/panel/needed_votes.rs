//! The number of votes that are still needed: of repeats, or of the members of a jury.
//!
//! An unnecessary vote gets no cell, so dicta plans a vote only when it is *certain to be needed*. It first plans the
//! fewest votes that could settle the decision (2 of 3, 3 of 5). Later it plans the fewest further votes that could
//! settle an open decision. Votes that are planned together run together.

use super::super::result::decide_by_vote;
use super::Ballot;
use crate::model::Outcome;

/// The possible outcomes of a pending vote. One outcome of each kind is enough: the vote treats the kinds equally,
/// and error outcomes differ only in the choice of the commonest.
const POSSIBLE_OUTCOMES: [Outcome; 12] = Outcome::ALL;

/// Returns the outcome of a vote.
pub(super) fn vote_outcome(outcomes: &[Outcome]) -> Option<Outcome> {
    let ballots: Vec<Ballot> = outcomes
        .iter()
        .map(|outcome| Ballot {
            outcome: *outcome,
            score: None,
            probability: None,
            doubt: None,
        })
        .collect();
    decide_by_vote(&ballots).map(|decision| decision.outcome)
}

/// Returns true if no `left` further votes can change the outcome.
///
/// It is enough to try continuations with equal votes. A majority that holds against `left` votes of one kind also
/// holds against any mixture of `left` votes.
pub(super) fn is_settled(done: &[Outcome], left: u32) -> bool {
    let Some(now) = vote_outcome(done) else {
        // Without any vote there is no outcome, and only an empty plan is settled.
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

/// Returns the number of further votes that are certain to be needed, of at most `most` votes in total. Returns 0 if
/// the outcome is settled.
pub(super) fn count_needed_votes(most: u32, done: &[Outcome]) -> u32 {
    let so_far = u32::try_from(done.len()).unwrap_or(u32::MAX);
    let open = most.saturating_sub(so_far);
    if open == 0 || is_settled(done, open) {
        return 0;
    }
    // The smallest number of votes that could settle the outcome is certain to be needed. A further vote of the same kind
    // keeps a settled outcome, so all larger numbers could settle it too, and a binary search finds the smallest one.
    let could_settle = |more: u32| {
        POSSIBLE_OUTCOMES.iter().any(|way| {
            let ahead = std::iter::repeat_n(*way, more as usize);
            let with: Vec<Outcome> = done.iter().copied().chain(ahead).collect();
            is_settled(&with, open - more)
        })
    };
    let (mut least, mut most_needed) = (1, open);
    while least < most_needed {
        let middle = u32::midpoint(least, most_needed);
        if could_settle(middle) {
            most_needed = middle;
        } else {
            least = middle + 1;
        }
    }
    least
}

/// Returns the number of leading votes that a new run would have planned.
pub(super) fn settled_prefix_len(most: u32, all: &[Outcome]) -> usize {
    (0..=all.len())
        .find(|first| count_needed_votes(most, &all[..*first]) == 0)
        .unwrap_or(all.len())
}

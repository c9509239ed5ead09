//! How many more votes are still needed: of repeats, or of a jury's members.
//!
//! A vote that is no longer needed gets no cell. So votes are planned as they become *certain to be needed*: first the
//! fewest that could settle it (2 of 3, 3 of 5), later the fewest more that could settle what is still open. None is ever
//! planned in vain, and those planned together run together.

use super::super::result::vote;
use super::Said;
use crate::model::Outcome;

/// What a vote that is still out may turn out as. One of each kind is enough: the ballot treats the kinds alike, and error
/// outcomes differ only in which of them is commonest.
const WAYS: [Outcome; 12] = Outcome::ALL;

/// The outcome of a vote.
pub(super) fn ballot(outcomes: &[Outcome]) -> Option<Outcome> {
    let said: Vec<Said> = outcomes
        .iter()
        .map(|outcome| Said {
            outcome: *outcome,
            score: None,
            probability: None,
            doubt: None,
        })
        .collect();
    vote(&said).map(|decision| decision.outcome)
}

/// Whether `left` further votes, whatever they are, change nothing.
///
/// Only the uniform continuations are tried. That suffices: a margin that holds against `left` votes of one kind holds
/// against any mixture of `left` votes.
pub(super) fn settled(done: &[Outcome], left: u32) -> bool {
    let Some(now) = ballot(done) else {
        return left == 0;
    };
    left == 0 || {
        WAYS.iter().all(|way| {
            let rest = std::iter::repeat_n(*way, left as usize);
            let all: Vec<Outcome> = done.iter().copied().chain(rest).collect();
            ballot(&all) == Some(now)
        })
    }
}

/// How many more votes are certain to be needed, given those so far of at most `most`: 0 when it is settled.
pub(super) fn needed(most: u32, done: &[Outcome]) -> u32 {
    let so_far = u32::try_from(done.len()).unwrap_or(u32::MAX);
    let open = most.saturating_sub(so_far);
    if open == 0 || settled(done, open) {
        return 0;
    }
    for more in 1..open {
        for way in WAYS {
            let ahead = std::iter::repeat_n(way, more as usize);
            let with: Vec<Outcome> = done.iter().copied().chain(ahead).collect();
            if settled(&with, open - more) {
                return more;
            }
        }
    }
    open
}

/// How many of the votes, from the first, a fresh run would have asked for.
pub(super) fn settled_prefix(most: u32, all: &[Outcome]) -> usize {
    (0..=all.len())
        .find(|first| needed(most, &all[..*first]) == 0)
        .unwrap_or(all.len())
}

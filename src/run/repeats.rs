//! How many repeats of a judge cell are still needed.
//!
//! A repeat that is no longer needed gets no cell. So repeats are planned as they become *certain to be needed*: first
//! the fewest that could settle the vote (2 of 3, 3 of 5), later the fewest more that could settle what is still open.
//! No cell is ever planned in vain, and those planned together run together.

use crate::model::{CellResult, Outcome, decide};

/// What a repeat that is still out may turn out as. One of each kind is enough: the vote treats the kinds alike, and
/// error outcomes differ only in which of them is commonest.
const WAYS: [Outcome; 12] = Outcome::ALL;

/// Whether `left` further results, whatever they are, change nothing of the decision.
///
/// Only the uniform continuations are tried. That suffices: a margin that holds against `left` results of one kind holds
/// against any mixture of `left` results.
fn settled(done: &[CellResult], left: u32) -> bool {
    let Some(now) = decide(done).map(|decision| decision.outcome) else {
        return left == 0;
    };
    left == 0 || {
        WAYS.iter().all(|way| {
            let rest: Vec<CellResult> = (0..left).map(|_| CellResult::new(*way, "")).collect();
            decide(done.iter().chain(&rest)).is_some_and(|decision| decision.outcome == now)
        })
    }
}

/// How many more repeats are certain to be needed, given the results so far of at most `repeat`: 0 when the vote is
/// settled.
pub(super) fn needed(repeat: u32, done: &[CellResult]) -> u32 {
    let so_far = u32::try_from(done.len()).unwrap_or(u32::MAX);
    let open = repeat.saturating_sub(so_far);
    if open == 0 || settled(done, open) {
        return 0;
    }
    let mut with: Vec<CellResult> = done.to_vec();
    for more in 1..open {
        for way in WAYS {
            with.truncate(done.len());
            with.extend((0..more).map(|_| CellResult::new(way, "")));
            if settled(&with, open - more) {
                return more;
            }
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn results(marks: &str) -> Vec<CellResult> {
        let outcome = |mark| match mark {
            'p' => Outcome::Pass,
            'f' => Outcome::Fail,
            'n' => Outcome::NotApplicable,
            't' => Outcome::Timeout,
            _ => Outcome::JudgeError,
        };
        marks
            .chars()
            .map(|mark| CellResult::new(outcome(mark), ""))
            .collect()
    }

    #[test]
    fn repeats_stop_when_the_majority_is_settled() {
        for (repeat, so_far, more) in [
            (1, "", 1),
            (1, "p", 0),
            (2, "", 1),
            (2, "f", 0), // an even split fails
            (2, "p", 1),
            (3, "", 2),
            (3, "pp", 0),
            (3, "ff", 0),
            (3, "pf", 1),
            (3, "pfp", 0),
            (3, "ee", 0), // fewer than half remain
            (3, "et", 1), // which error is the commonest is open
            (3, "pe", 1),
            (5, "", 3),
            (5, "ppf", 1),
            (5, "ppff", 1),
            (5, "pppf", 0),
            (5, "ffe", 1),
        ] {
            assert_eq!(
                needed(repeat, &results(so_far)),
                more,
                "{so_far:?} of {repeat}"
            );
        }
    }

    proptest! {
        #[test]
        fn stopping_early_never_changes_the_outcome(picks in prop::collection::vec(0usize..12, 1..8)) {
            let all: Vec<CellResult> = picks.iter().map(|i| CellResult::new(Outcome::ALL[*i], "")).collect();
            let repeat = u32::try_from(all.len()).expect("a few");
            let mut ran = 0;
            loop {
                let more = needed(repeat, &all[..ran]) as usize;
                if more == 0 { break; }
                ran += more;
            }
            prop_assert_eq!(decide(&all[..ran]).map(|d| d.outcome), decide(&all).map(|d| d.outcome));
        }
    }
}

//! The comparison of an entry of the history with the one before it.
//!
//! Responsible for decisions that wait for a verdict in the older entry: they are compared with their newest earlier
//! verdict, so that an edit whose cells are judged later loses no flip. Does not read logs or labels.

use std::collections::HashMap;

use super::changed_answers::find_changed_answers;
use super::states::{StateChange, StateComparison, compare_states};
use crate::record::{
    Correspondence, DecisionStanding, HistoryEntry, RecordedRun, State, StateDecision,
};

/// The largest number of earlier states that are searched for a verdict.
const MAX_EARLIER_STATES: usize = 20;

/// A decision of the newer state: eval, transcript and message.
type DecisionKey = (u32, u32, Option<u32>);

fn decision_key(one: &StateDecision) -> DecisionKey {
    (one.eval, one.transcript, one.message)
}

/// Compares the entry at a position with the one before it. `None` for the first entry.
pub fn compare_entry(entries: &[HistoryEntry], at: usize) -> Option<StateComparison> {
    let base = at.checked_sub(1)?;
    let newer = entries.get(at)?;
    Some(compare_with_earlier(
        &entries[..base],
        &entries[base].state,
        &newer.state,
    ))
}

/// As [`compare_entry`], and finds the flips that changed evidence causes. `find_run` returns the run with the number of
/// [`crate::record::RecordedCell::run`].
pub fn compare_recorded_entry<'r>(
    entries: &[HistoryEntry],
    at: usize,
    find_run: impl Fn(u32) -> Option<&'r RecordedRun>,
) -> Option<StateComparison> {
    let mut comparison = compare_entry(entries, at)?;
    find_changed_answers(&mut comparison, find_run);
    Some(comparison)
}

/// Compares two states. `earlier` has the entries before the older state, oldest first. A decision that is pending in the
/// older state is compared with its newest verdict in these entries.
pub fn compare_with_earlier(
    earlier: &[HistoryEntry],
    before: &State,
    after: &State,
) -> StateComparison {
    let mut compared = compare_states(before, after);
    // A state without pending decisions needs no earlier state.
    if compared.first_verdicts.is_empty() {
        return compared;
    }
    let mut open: HashMap<DecisionKey, StateDecision> =
        std::mem::take(&mut compared.first_verdicts)
            .into_iter()
            .map(|one| (decision_key(&one), one))
            .collect();
    for entry in earlier.iter().rev().take(MAX_EARLIER_STATES) {
        if open.is_empty() {
            break;
        }
        let found = compare_states(&entry.state, after);
        let mut take = |changes: Vec<StateChange>, out: &mut Vec<StateChange>| {
            for change in changes {
                // An error before the edit is not a verdict, so an older verdict is searched for.
                let is_decided = change.before.outcome().is_some_and(|one| !one.is_error());
                if is_decided && open.remove(&decision_key(&change.after)).is_some() {
                    compared.with_earlier_verdict += 1;
                    out.push(change);
                }
            }
        };
        take(found.flips, &mut compared.flips);
        take(found.changes, &mut compared.changes);
        let is_unchanged = list_unchanged(&entry.state, after, &open);
        for key in is_unchanged {
            open.remove(&key);
            compared.with_earlier_verdict += 1;
            compared.unchanged += 1;
        }
    }
    let mut rest: Vec<StateDecision> = open.into_values().collect();
    rest.sort_by_key(decision_key);
    compared.first_verdicts = rest;
    compared
}

/// Returns the open decisions that have the same outcome in the older state.
fn list_unchanged(
    before: &State,
    after: &State,
    open: &HashMap<DecisionKey, StateDecision>,
) -> Vec<DecisionKey> {
    let same = Correspondence::find(before, after);
    let is_same = |(eval, transcript, message): &DecisionKey, is: &StateDecision| {
        let eval = same.evals.get(*eval as usize).copied()??;
        let transcript = same.transcripts.get(*transcript as usize).copied()??;
        let was = before.find(eval, transcript, *message)?;
        let is_known = was.standing != DecisionStanding::Pending;
        Some(is_known && was.outcome() == is.outcome())
    };
    open.iter()
        .filter(|(key, one)| is_same(key, one) == Some(true))
        .map(|(key, _)| *key)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::history_testing::{Step, history_after, step};

    #[test]
    fn flip_of_a_partly_judged_edit_belongs_to_the_edit_that_judges_the_rest() {
        // Scores of eval 0: question 0 fails both transcripts, question 2 passes the second one.
        let steps = [
            Step::Run,
            Step::EditQuestion(0, 1),
            Step::RunPart(0b0001),
            Step::EditQuestion(0, 2),
            Step::RunPart(0b0101),
        ];
        let history = history_after(&steps);
        let entries = history.entries();
        assert_eq!(entries.len(), 3);
        let plain = compare_states(&entries[1].state, &entries[2].state);
        assert_eq!((plain.flips.len(), plain.first_verdicts.len()), (1, 1));
        let found = compare_entry(entries, 2).expect("two states");
        assert_eq!((found.flips.len(), found.first_verdicts.len()), (2, 0));
        assert_eq!(found.with_earlier_verdict, 1);
        assert!(compare_entry(entries, 0).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn earlier_verdicts_only_move_first_verdicts(steps in prop::collection::vec(step(), 1..24)) {
            let history = history_after(&steps);
            let entries = history.entries();
            for at in 1..entries.len() {
                let plain = compare_states(&entries[at - 1].state, &entries[at].state);
                let found = compare_entry(entries, at).expect("two states");
                let moved = plain.first_verdicts.len() - found.first_verdicts.len();
                prop_assert_eq!(found.with_earlier_verdict, moved);
                let count = |one: &StateComparison| one.flips.len() + one.changes.len() + one.unchanged;
                prop_assert_eq!(count(&found), count(&plain) + moved);
                prop_assert!(found.flips.starts_with(&plain.flips));
                let is_pending = |flip: &StateChange| {
                    plain.first_verdicts.iter().any(|one| decision_key(one) == decision_key(&flip.after))
                };
                prop_assert!(found.flips[plain.flips.len()..].iter().all(is_pending));
            }
        }
    }
}

//! Flips whose judge received another answer from a tool.
//!
//! Responsible for the difference between such a flip and chance: [`super::compare_states`] knows no tool answers,
//! because states don't contain them. Reads the tool calls of the flipped cells alone, each log once.

use std::collections::{HashMap, HashSet};

use super::states::{FlipCause, StateChange, StateComparison, compare_states};
use crate::model::Digest;
use crate::record::{RecordedCell, RecordedRun, State};

/// The digests of a cell's tool answers, by tool and canonical arguments, in the order of the calls.
type CellAnswers = HashMap<(String, String), Vec<Digest>>;

/// Compares an older recorded state with a newer one, and finds the flips that changed evidence causes. `find_run` returns
/// the run with the number of [`RecordedCell::run`].
pub fn compare_recorded_states<'r>(
    before: &State,
    after: &State,
    find_run: impl Fn(u32) -> Option<&'r RecordedRun>,
) -> StateComparison {
    let mut comparison = compare_states(before, after);
    find_changed_answers(&mut comparison, find_run);
    comparison
}

/// Changes the cause of a flip from chance to evidence if a tool answered the same call differently. If a person edited a
/// trace, the cause becomes that edit. `find_run` returns the run with the number of [`RecordedCell::run`].
pub(super) fn find_changed_answers<'r>(
    comparison: &mut StateComparison,
    find_run: impl Fn(u32) -> Option<&'r RecordedRun>,
) {
    let mut wanted: HashMap<u32, HashSet<RecordedCell>> = HashMap::new();
    let changes = comparison.flips.iter().chain(&comparison.changes);
    for change in changes.filter(|change| change.cause == FlipCause::Chance) {
        for cell in change.before.cells.iter().chain(&change.after.cells) {
            wanted.entry(cell.run).or_default().insert(*cell);
        }
    }
    let mut answers: HashMap<RecordedCell, CellAnswers> = HashMap::new();
    let mut edited: HashSet<RecordedCell> = HashSet::new();
    for (number, cells) in wanted {
        // A run that was deleted in the meantime has no answers, and its flips stay chance.
        let read = find_run(number).and_then(|run| run.calls_and_edited_cells().ok());
        let (calls, edits) = read.unwrap_or_default();
        edited.extend(
            edits
                .into_iter()
                .map(|cell| RecordedCell { run: number, cell }),
        );
        for call in calls {
            let cell = RecordedCell {
                run: number,
                cell: call.cell,
            };
            if cells.contains(&cell) {
                let digest = call.text_digest();
                let asked = (call.tool, call.canonical_args.get().to_owned());
                let of_cell = answers.entry(cell).or_default();
                of_cell.entry(asked).or_default().push(digest);
            }
        }
    }
    let changes = comparison.flips.iter_mut().chain(&mut comparison.changes);
    for change in changes.filter(|change| change.cause == FlipCause::Chance) {
        let mut cells = change.before.cells.iter().chain(&change.after.cells);
        if cells.any(|cell| edited.contains(cell)) {
            change.cause = FlipCause::Edited;
        } else if has_changed_answer(change, &answers) {
            change.cause = FlipCause::Evidence;
        }
    }
}

/// Returns true if a call that both verdicts rest on has different answers.
fn has_changed_answer(change: &StateChange, answers: &HashMap<RecordedCell, CellAnswers>) -> bool {
    let pairs = change.before.cells.iter().zip(&change.after.cells);
    pairs
        .filter_map(|(before, after)| answers.get(before).zip(answers.get(after)))
        .any(|(before, after)| {
            before
                .iter()
                .any(|(asked, old)| after.get(asked).is_some_and(|new| new != old))
        })
}

//! The results that a question has, one under each name under which it was asked.
//!
//! Responsible for keeping the newest result and the newest error of each. Does not decide which one counts; `fold` does.

use super::RecordedCell;
use crate::model::{Ballot, Outcome, VerdictSummary};

/// The names under which a question was asked, interned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AskedAs {
    /// The id of the transcript.
    pub(super) transcript: u32,
    /// The rubric and eval.
    pub(super) eval: u32,
}

/// The results of one question under one name.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The name.
    pub(super) asked_as: AskedAs,
    /// The newest result that settles the question.
    pub(super) settled: Option<KnownResult>,
    /// The newest error, if it is newer than `settled`.
    pub(super) failed: Option<KnownResult>,
}

/// A result with its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownResult {
    /// The cell with the judge trace.
    pub(super) at: RecordedCell,
    /// The outcome and score under the bounds of its run.
    pub(super) ballot: Ballot,
    /// The judge's own statement, which other bounds can decide.
    pub(super) stated: Option<VerdictSummary>,
    /// The bounds of its run, interned.
    pub(super) bounds: u32,
}

/// Returns `true` for an outcome that answers the question. The others are failures of a judge or of the run.
fn settles(outcome: Outcome) -> bool {
    !outcome.is_error() || outcome == Outcome::CheckError
}

/// Adds a result to those of its question.
pub(super) fn add_candidate(
    candidates: &mut Vec<Candidate>,
    asked_as: AskedAs,
    mut known: KnownResult,
    is_cached: bool,
) {
    // A cached result repeats one of the candidates. The judge trace is there, so that cell stays the source.
    if is_cached {
        let original = candidates
            .iter()
            .filter_map(|one| Some((one.asked_as == asked_as, one.settled.as_ref()?)))
            .filter(|(_, old)| repeats_answer(&known, old))
            .max_by_key(|(has_same_name, old)| (*has_same_name, old.at.run));
        if let Some((_, original)) = original {
            known.at = original.at;
        }
    }
    let place = candidates.iter().position(|one| one.asked_as == asked_as);
    let at = place.unwrap_or_else(|| {
        candidates.push(Candidate {
            asked_as,
            settled: None,
            failed: None,
        });
        candidates.len() - 1
    });
    let one = &mut candidates[at];
    if settles(known.ballot.outcome) {
        one.settled = Some(known);
        one.failed = None;
    } else {
        one.failed = Some(known);
    }
}

/// Returns `true` if two results have the same answer. Other bounds may have decided it differently.
fn repeats_answer(known: &KnownResult, old: &KnownResult) -> bool {
    let without_outcome = |known: &KnownResult| Ballot {
        outcome: Outcome::Pass,
        ..known.ballot
    };
    if known.stated.is_some() {
        known.stated == old.stated && without_outcome(known) == without_outcome(old)
    } else {
        old.stated.is_none() && known.ballot == old.ballot
    }
}

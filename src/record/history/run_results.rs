//! The results of a run, as far as they decide: in memory, or as the index of the history stores them.
//!
//! Responsible for reading stored results one at a time. A history may have 100,000 of them, and the fold needs each one
//! once. A list of all takes longer to fill than to read. Does not read logs.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::CellKey;
use crate::model::{Ballot, CellIx, Doubt, Outcome, VerdictSummary};

/// A result of a run, as far as it decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FactResult {
    /// The transcript: an index into [`super::run_facts::RunFacts::transcripts`].
    pub(super) transcript: u32,
    /// The cell's eval, message, judge and repeat.
    pub(super) key: CellKey,
    /// The number of the cell in the run.
    pub(super) cell: CellIx,
    /// The outcome under the bounds of the run.
    pub(super) outcome: Outcome,
    /// The score.
    pub(super) score: Option<f64>,
    /// The judge's own statement, which other bounds can decide.
    pub(super) stated: Option<VerdictSummary>,
    /// The probability of a pass, if the judge states it.
    pub(super) probability: Option<f64>,
    /// The reason to doubt the verdict, if there is one.
    pub(super) doubt: Option<Doubt>,
    /// `true` if the result came from an earlier run.
    pub(super) is_cached: bool,
}

impl FactResult {
    /// Returns the contribution to a vote, under the bounds of the run.
    pub(super) fn ballot(&self) -> Ballot {
        Ballot {
            outcome: self.outcome,
            score: self.score,
            probability: self.probability,
            doubt: self.doubt,
        }
    }
}

/// The results of a run, in the order of its log.
#[derive(Debug, Clone)]
pub(super) enum RunResults {
    /// The results of a log.
    Read(Vec<FactResult>),
    /// The results in an index.
    Stored(StoredResults),
}

/// The error for results of an index that dicta cannot read, although the checksum of the file is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the index of the history has a result that dicta cannot read, so states lack results; delete the files `.history-*.index` in the folder of the runs, and dicta makes them again"
)]
pub(super) struct UnreadableResult;

impl RunResults {
    /// Visits each result. After an error, the visited results are only a part of them.
    pub(super) fn for_each(
        &self,
        mut visit: impl FnMut(&FactResult),
    ) -> Result<(), UnreadableResult> {
        match self {
            Self::Read(results) => results.iter().for_each(visit),
            Self::Stored(stored) => {
                for result in stored.iter() {
                    visit(&result?);
                }
            }
        }
        Ok(())
    }
}

/// A part of an index file: results in postcard, one after the other.
#[derive(Debug, Clone)]
pub(super) struct StoredResults {
    /// The index file. A checksum protects it.
    file: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl StoredResults {
    /// Returns the results in a part of an index file; `None` if the file has no such part.
    pub(super) fn new(file: &Arc<Vec<u8>>, range: Range<usize>) -> Option<Self> {
        file.get(range.clone())?;
        Some(Self {
            file: Arc::clone(file),
            range,
        })
    }

    /// Returns the results in order. The first unreadable one is the last item.
    fn iter(&self) -> impl Iterator<Item = Result<FactResult, UnreadableResult>> + '_ {
        let mut rest = self.file.get(self.range.clone()).unwrap_or_default();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let Ok((packed, after)) = postcard::take_from_bytes::<PackedResult>(rest) else {
                rest = &[];
                return Some(Err(UnreadableResult));
            };
            rest = after;
            Some(Ok(FactResult::from(packed)))
        })
    }
}

/// Returns the results as a part of an index file; `None` if one of them cannot be stored. A part without it would look
/// like the results of a smaller run.
pub(super) fn pack_results(results: &RunResults) -> Option<Vec<u8>> {
    let mut packed = Some(Vec::new());
    let read = results.for_each(|result| {
        packed = packed
            .take()
            .and_then(|to| postcard::to_extend(&PackedResult::from(result), to).ok());
    });
    read.ok()?;
    packed
}

/// [`FactResult`] without the attributes that only JSON understands.
#[derive(Serialize, Deserialize)]
struct PackedResult {
    transcript: u32,
    eval: u32,
    message: Option<u32>,
    judge: Option<u32>,
    repeat: Option<u32>,
    cell: u32,
    outcome: Outcome,
    score: Option<f64>,
    stated: Option<(Option<bool>, Option<f64>, Option<bool>)>,
    probability: Option<f64>,
    doubt: Option<Doubt>,
    is_cached: bool,
}

impl From<&FactResult> for PackedResult {
    fn from(result: &FactResult) -> Self {
        Self {
            transcript: result.transcript,
            eval: result.key.eval,
            message: result.key.message,
            judge: result.key.judge,
            repeat: result.key.repeat,
            cell: result.cell.0,
            outcome: result.outcome,
            score: result.score,
            stated: result
                .stated
                .map(|stated| (stated.passed, stated.score, stated.applicable)),
            probability: result.probability,
            doubt: result.doubt,
            is_cached: result.is_cached,
        }
    }
}

impl From<PackedResult> for FactResult {
    fn from(packed: PackedResult) -> Self {
        Self {
            transcript: packed.transcript,
            key: CellKey {
                eval: packed.eval,
                message: packed.message,
                judge: packed.judge,
                repeat: packed.repeat,
            },
            cell: CellIx(packed.cell),
            outcome: packed.outcome,
            score: packed.score,
            stated: packed
                .stated
                .map(|(passed, score, applicable)| VerdictSummary {
                    passed,
                    score,
                    applicable,
                }),
            probability: packed.probability,
            doubt: packed.doubt,
            is_cached: packed.is_cached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(cell: u32) -> FactResult {
        FactResult {
            transcript: 0,
            key: CellKey {
                eval: 0,
                message: None,
                judge: None,
                repeat: None,
            },
            cell: CellIx(cell),
            outcome: Outcome::Pass,
            score: Some(0.5),
            stated: None,
            probability: None,
            doubt: None,
            is_cached: false,
        }
    }

    #[test]
    fn results_that_an_index_lacks_are_an_error_and_not_a_smaller_run() {
        let all = RunResults::Read(vec![result(0), result(1)]);
        let packed = pack_results(&all).expect("packed");
        let read = |bytes: &[u8]| {
            let file = Arc::new(bytes.to_vec());
            let stored = StoredResults::new(&file, 0..bytes.len()).expect("a part");
            let mut cells = Vec::new();
            let read = RunResults::Stored(stored).for_each(|one| cells.push(one.cell.0));
            (cells, read)
        };
        assert_eq!(read(&packed), (vec![0, 1], Ok(())));
        assert_eq!(
            read(&packed[..packed.len() - 1]),
            (vec![0], Err(UnreadableResult))
        );
        // Without its results, a run must not enter the next index either.
        let cut = Arc::new(packed[..packed.len() - 1].to_vec());
        let stored = StoredResults::new(&cut, 0..cut.len()).expect("a part");
        assert_eq!(pack_results(&RunResults::Stored(stored)), None);
    }
}

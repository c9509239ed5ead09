//! The results of a run, as far as they decide: in memory, or as the index of the history stores them.
//!
//! Responsible for reading stored results one at a time. A history may have 100,000 of them, and the fold needs each one
//! once. A list of all takes longer to fill than to read. Does not read logs.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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

impl RunResults {
    /// Visits each result.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&FactResult)) {
        match self {
            Self::Read(results) => results.iter().for_each(visit),
            Self::Stored(stored) => stored.iter().for_each(|result| visit(&result)),
        }
    }
}

/// A part of an index file: results in postcard, one after the other.
#[derive(Debug, Clone)]
pub(super) struct StoredResults {
    /// The index file. A checksum protects it, so each result in it can be read.
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

    fn iter(&self) -> impl Iterator<Item = FactResult> + '_ {
        let mut rest = self.file.get(self.range.clone()).unwrap_or_default();
        std::iter::from_fn(move || {
            let (packed, after) = postcard::take_from_bytes::<PackedResult>(rest).ok()?;
            rest = after;
            Some(FactResult::from(packed))
        })
    }
}

/// Adds results to a part of an index file.
pub(super) fn write_results(results: &RunResults, to: &mut Vec<u8>) {
    results.for_each(|result| {
        let packed = PackedResult::from(result);
        // Numbers and short lists always have a form, and memory has no limit here.
        if let Ok(bytes) = postcard::to_stdvec(&packed) {
            to.extend_from_slice(&bytes);
        }
    });
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

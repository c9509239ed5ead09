//! The places in the shown transcript that a check's finding rests on.
//!
//! They are not recorded: the check decides again, off the screen's thread, and its places are shown only where it says the
//! same as the record.

use std::ops::Range;
use std::sync::Arc;

use super::cells::RowId;
use crate::model::{Digest, Outcome};
use crate::rubric::{Eval, Rubric};

/// What places are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingMarksKey {
    pub(crate) row: RowId,
    /// Of the eval as it is now and as it was when it decided.
    pub(crate) eval: Digest,
    pub(crate) transcript: Digest,
    pub(crate) outcome: Outcome,
    /// What the finding says; another one has other places.
    pub(crate) explanation: String,
}

/// A rubric's eval.
#[derive(Debug, Clone)]
pub(crate) struct RubricEval {
    pub(crate) rubric: Arc<Rubric>,
    /// Its position in the rubric.
    pub(crate) position: usize,
}

impl RubricEval {
    /// The eval.
    pub(crate) fn eval(&self) -> &Eval {
        &self.rubric.evals[self.position]
    }
}

/// The places of the shown finding.
#[derive(Debug, Clone, Default)]
pub(crate) struct FindingMarks {
    /// What was asked for; nothing where no check decided.
    pub(crate) key: Option<FindingMarksKey>,
    /// Piece and bytes of it, the most telling first.
    pub(crate) places: Vec<(usize, Range<usize>)>,
    /// The one that was gone to.
    pub(crate) selected: Option<usize>,
}

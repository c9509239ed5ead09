//! The text ranges in the shown transcript that a check's finding rests on.
//!
//! They are not recorded. The check runs again in the background, and its ranges are shown only if the finding equals
//! the recorded one.

use std::sync::Arc;

use super::cells::RowId;
use super::piece_range::PieceRange;
use crate::model::{Digest, Outcome};
use crate::rubric::{Eval, Rubric};

/// The finding that ranges belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingMarksKey {
    pub(crate) row: RowId,
    /// The digest of the eval, the same now and when it decided.
    pub(crate) eval: Digest,
    pub(crate) transcript: Digest,
    pub(crate) outcome: Outcome,
    /// The text of the finding. Another text has other ranges.
    pub(crate) explanation: String,
}

/// An eval in its rubric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RubricEval {
    pub(crate) rubric: Arc<Rubric>,
    /// The index of the eval in the rubric.
    pub(crate) position: usize,
}

impl RubricEval {
    /// Returns the eval.
    pub(crate) fn eval(&self) -> &Eval {
        &self.rubric.evals[self.position]
    }
}

/// The ranges of the shown finding.
#[derive(Debug, Clone, Default)]
pub(crate) struct FindingMarks {
    /// The finding whose ranges were ordered; `None` if no check decided.
    pub(crate) key: Option<FindingMarksKey>,
    /// The ranges, the most important first.
    pub(crate) places: Vec<PieceRange>,
    /// The index of the selected range.
    pub(crate) selected: Option<usize>,
}

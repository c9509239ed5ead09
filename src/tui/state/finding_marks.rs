//! The places in the shown transcript that a check's finding rests on.
//!
//! They are not recorded: the check decides again, off the screen's thread, and its places are shown only where it says the
//! same as the record.

use std::ops::Range;
use std::sync::Arc;

use super::cells::RowId;
use super::document::TranscriptDocument;
use crate::handlers::TranscriptSpan;
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

impl TranscriptDocument {
    /// How many bytes stand in front of a piece's own text.
    pub(crate) fn heading_len(&self, piece: usize) -> usize {
        self.pieces
            .get(piece)
            .map_or(0, |piece| usize::from(piece.heading_len))
    }

    /// Where a mark stands here: a piece, and bytes of its text.
    pub(crate) fn locate_mark(&self, mark: &TranscriptSpan) -> Option<(usize, Range<usize>)> {
        let (at, piece) = self
            .pieces_of(mark.message)
            .find(|(_, piece)| piece.part as usize == mark.part)?;
        let text = self.text_of(piece);
        // A call stands here as `name(arguments)`.
        let from = match piece.kind {
            super::document::PieceKind::Call => text.find('(').map_or(0, |open| open + 1),
            _ => 0,
        };
        let range = if mark.bytes.is_empty() {
            let line = text.find('\n').unwrap_or(text.len());
            0..line
        } else {
            mark.bytes.start + from..mark.bytes.end + from
        };
        text.get(range.clone()).map(|_| (at, range))
    }
}

//! A range in the text of a document: where a quote or a mark is.

use std::ops::Range;

/// A range of bytes in a piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PieceRange {
    /// The index of the piece.
    pub(crate) piece: usize,
    /// The bytes in its text.
    pub(crate) range: Range<usize>,
}

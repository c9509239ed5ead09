//! One line of typed text, with a cursor.

/// A line being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    /// What was typed.
    pub(crate) text: String,
    /// The cursor: a byte position on a grapheme boundary.
    pub(crate) cursor: usize,
}

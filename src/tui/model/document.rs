//! The judged transcript, as a text to scroll through.

use std::ops::Range;
use std::sync::Arc;

use crate::model::TranscriptRef;
use crate::tui::widget::flow::Scroll;

/// A transcript, read once and kept as one text with places in it, so that a million messages are a few vectors.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Doc {
    pub(crate) id: String,
    /// All texts, one after another.
    pub(crate) text: String,
    /// In reading order: a call is followed by its result.
    pub(crate) pieces: Vec<Piece>,
    /// By message: its first piece.
    pub(crate) messages: Vec<u32>,
}

/// A piece of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// 0-based message it is from.
    pub(crate) message: u32,
    pub(crate) kind: PieceKind,
    /// Where its text stands in [`Doc::text`].
    pub(crate) range: Range<usize>,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    System,
    User,
    Assistant,
    /// A role of another name.
    Other,
    Reasoning,
    /// A call: its text is the name, a newline, the arguments.
    Call,
    /// The answer of the call before it (or of none).
    Result {
        error: bool,
        joined: bool,
    },
    Media,
}

/// The transcript pane.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    pub(crate) of: Option<TranscriptRef>,
    pub(crate) doc: Shown,
    pub(crate) scroll: Scroll,
    /// The quote that was gone to: which piece, which bytes of it.
    pub(crate) quoted: Option<(usize, Range<usize>)>,
}

/// How far it is read.
#[derive(Debug, Clone, Default)]
pub(crate) enum Shown {
    /// Nothing is to be read.
    #[default]
    Nothing,
    /// Being read.
    Reading,
    /// Here.
    Here(Arc<Doc>),
    /// Cannot be read.
    Failed(String),
}

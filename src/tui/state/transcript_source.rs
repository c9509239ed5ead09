//! The file's own record of the shown transcript.

use std::sync::Arc;

use crate::model::TranscriptRef;
use crate::theme::Role;
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::{ScrollState, TextBlock};

/// A record of a file as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TranscriptSourceText {
    /// The format, the file, and the position in it.
    pub(crate) location: String,
    /// Remarks about the record: sentences.
    pub(crate) notes: Vec<String>,
    /// The record as written; JSON is indented.
    pub(crate) text: String,
}

/// The overlay that shows a record.
#[derive(Debug, Clone)]
pub(crate) struct SourceOverlay {
    /// The transcript with its whole path.
    pub(crate) transcript: TranscriptRef,
    /// The record or the problem; `None` while it is being read.
    pub(crate) record: Option<Result<Arc<TranscriptSourceText>, TaskFailure>>,
    pub(crate) scroll: ScrollState,
}

impl SourceOverlay {
    /// Creates the overlay of a record that is being read.
    pub(crate) fn new_loading(transcript: TranscriptRef) -> Self {
        Self {
            transcript,
            record: None,
            scroll: ScrollState::top(),
        }
    }

    /// Builds the text of the overlay.
    pub(crate) fn to_blocks(&self) -> Vec<TextBlock<'_>> {
        match &self.record {
            None => vec![TextBlock::new("reading the file …", Role::Muted)],
            Some(Err(why)) => vec![
                TextBlock::new("the record cannot be read", Role::Error),
                TextBlock::new(why.as_str(), Role::Text),
            ],
            Some(Ok(record)) => {
                let mut blocks = vec![TextBlock::new(record.location.as_str(), Role::Muted)];
                let notes = record.notes.iter();
                blocks.extend(notes.map(|note| TextBlock::new(note.as_str(), Role::Warning)));
                blocks.push(TextBlock::default());
                blocks.push(TextBlock::new(record.text.as_str(), Role::Text));
                blocks
            }
        }
    }
}

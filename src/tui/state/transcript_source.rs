//! The raw record behind the shown transcript, while it is looked at.

use std::sync::Arc;

use crate::model::TranscriptRef;
use crate::theme::Role;
use crate::tui::widget::flow::{ScrollState, TextBlock};

/// What a file has of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TranscriptSourceText {
    /// The format, the file, the place.
    pub(crate) location: String,
    /// What is to be known of it: sentences.
    pub(crate) notes: Vec<String>,
    /// As written; JSON indented.
    pub(crate) text: String,
}

/// The overlay that shows it.
#[derive(Debug, Clone)]
pub(crate) struct SourceOverlay {
    /// Which transcript's, with its whole path.
    pub(crate) transcript: TranscriptRef,
    /// `None`: being read.
    pub(crate) record: Option<Result<Arc<TranscriptSourceText>, String>>,
    pub(crate) scroll: ScrollState,
}

impl SourceOverlay {
    /// One that is being read.
    pub(crate) fn new_loading(transcript: TranscriptRef) -> Self {
        Self {
            transcript,
            record: None,
            scroll: ScrollState::top(),
        }
    }

    /// The text.
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

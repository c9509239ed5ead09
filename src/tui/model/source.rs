//! The raw record behind the shown transcript, while it is looked at.

use std::sync::Arc;

use crate::model::TranscriptRef;
use crate::theme::Role;
use crate::tui::widget::flow::{Block, Scroll};

/// What a file has of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawRecord {
    /// The format, the file, the place.
    pub(crate) whence: String,
    /// What is to be known of it: sentences.
    pub(crate) notes: Vec<String>,
    /// As written; JSON indented.
    pub(crate) text: String,
}

/// The overlay that shows it.
#[derive(Debug, Clone)]
pub(crate) struct SourceView {
    /// Which transcript's, with its whole path.
    pub(crate) of: TranscriptRef,
    /// `None`: being read.
    pub(crate) read: Option<Result<Arc<RawRecord>, String>>,
    pub(crate) scroll: Scroll,
}

impl SourceView {
    /// One that is being read.
    pub(crate) fn reading(of: TranscriptRef) -> Self {
        Self {
            of,
            read: None,
            scroll: Scroll::top(),
        }
    }

    /// The text.
    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        match &self.read {
            None => vec![Block::new("reading the file …", Role::Muted)],
            Some(Err(why)) => vec![
                Block::new("the record cannot be read", Role::Error),
                Block::new(why.as_str(), Role::Text),
            ],
            Some(Ok(record)) => {
                let mut blocks = vec![Block::new(record.whence.as_str(), Role::Muted)];
                let notes = record.notes.iter();
                blocks.extend(notes.map(|note| Block::new(note.as_str(), Role::Warning)));
                blocks.push(Block::default());
                blocks.push(Block::new(record.text.as_str(), Role::Text));
                blocks
            }
        }
    }
}

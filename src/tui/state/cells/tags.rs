//! The tags of the outlined transcripts, for the filter.

use std::collections::{BTreeSet, HashMap};

/// The tags by the id of the transcript. A transcript without tags has no entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct TagIndex {
    by_transcript: HashMap<String, Vec<String>>,
    known: BTreeSet<String>,
}

impl TagIndex {
    /// Adds the tags of a transcript.
    pub(crate) fn insert(&mut self, transcript: String, tags: Vec<String>) {
        for tag in &tags {
            // Most tags are known, and a copy of each would be slow.
            if !self.known.contains(tag) {
                self.known.insert(tag.clone());
            }
        }
        self.by_transcript.insert(transcript, tags);
    }

    /// Returns the tags of a transcript.
    pub(super) fn of(&self, transcript: &str) -> &[String] {
        let tags = self.by_transcript.get(transcript);
        tags.map_or(&[], Vec::as_slice)
    }

    /// Returns all tags, each once, in alphabetical order.
    pub(super) fn known(&self) -> &BTreeSet<String> {
        &self.known
    }
}

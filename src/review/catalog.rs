//! The transcripts of a review with the figures and words that sampling uses. Does not keep the transcripts.

use std::collections::HashMap;

use super::place::ReviewPlace;
use super::terms::{TermCounts, Vocabulary};
use crate::handlers::{RecordedEffort, Subject};
use crate::model::{MessageRole, Transcript, TranscriptMessage, TranscriptPart, TranscriptRef};
use crate::run::{TranscriptWalk, visit_transcripts};
use crate::transcript::TranscriptError;

/// The figures of a transcript by which it can be an outlier.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TranscriptFeatures {
    /// The number of characters.
    pub length: u64,
    /// The number of tool calls.
    pub calls: u64,
    /// The number of tool results that are errors.
    pub errors: u64,
    /// The recorded latency in milliseconds.
    pub latency_ms: Option<f64>,
    /// The recorded cost in USD.
    pub cost_usd: Option<f64>,
}

/// A transcript of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogEntry {
    /// The place of the transcript. The path is absolute.
    pub reference: TranscriptRef,
    /// The number of messages.
    pub messages: u32,
    /// The first message in which the agent says something, from 0; 0 without one.
    pub first_reply: u32,
    /// The figures.
    pub features: TranscriptFeatures,
    /// The words.
    pub(super) terms: TermCounts,
}

/// All transcripts of a review.
#[derive(Debug, Clone, Default)]
pub struct ReviewCatalog {
    /// The transcripts in the order of the files.
    pub entries: Vec<CatalogEntry>,
    /// The records that could not be used.
    pub walk: TranscriptWalk,
    places: HashMap<String, usize>,
}

impl ReviewCatalog {
    /// Reads all transcripts once. Keeps figures and words only.
    pub fn read(place: &ReviewPlace) -> Result<Self, TranscriptError> {
        let mut vocabulary = Vocabulary::default();
        let mut entries = Vec::new();
        let walk = visit_transcripts(&place.transcripts, &place.maps, &mut |reference, read| {
            let text = collect_text(read);
            entries.push(CatalogEntry {
                messages: u32::try_from(read.messages.len()).unwrap_or(u32::MAX),
                first_reply: find_first_reply(read),
                features: measure(read, &text),
                terms: vocabulary.count(&text),
                reference,
            });
        })?;
        Ok(Self::from_entries(entries, walk))
    }

    /// Creates a catalog of known entries.
    pub(super) fn from_entries(entries: Vec<CatalogEntry>, walk: TranscriptWalk) -> Self {
        let places = entries.iter().enumerate();
        let places = places.map(|(at, entry)| (entry.reference.id.clone(), at));
        Self {
            places: places.collect(),
            entries,
            walk,
        }
    }

    /// Returns a transcript by its id.
    pub fn find(&self, id: &str) -> Option<&CatalogEntry> {
        self.places.get(id).map(|at| &self.entries[*at])
    }

    /// Returns the position of a transcript.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }
}

/// Returns the texts, calls and results of a transcript.
fn collect_text(read: &Transcript<'_>) -> String {
    let mut text = String::new();
    for part in read.messages.iter().flat_map(|message| &message.parts) {
        let pieces: [&str; 2] = match part {
            TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => [text, ""],
            TranscriptPart::ToolCall(call) => [&call.name, &call.arguments],
            TranscriptPart::ToolResult(result) => [&result.content, ""],
            TranscriptPart::Media { .. } | TranscriptPart::Other(_) => continue,
        };
        for piece in pieces {
            text.push_str(piece);
            text.push('\n');
        }
    }
    text
}

/// Returns the first message in which the agent says something; else its first one, which only calls tools.
fn find_first_reply(read: &Transcript<'_>) -> u32 {
    let is_agent = |message: &TranscriptMessage<'_>| message.role == MessageRole::Assistant;
    let speaks = |message: &TranscriptMessage<'_>| !message.text().trim().is_empty();
    let find = |wanted: &dyn Fn(&TranscriptMessage<'_>) -> bool| {
        let mut messages = read.messages.iter();
        messages.position(|message| is_agent(message) && wanted(message))
    };
    let first = find(&speaks).or_else(|| find(&|_| true));
    first.and_then(|at| u32::try_from(at).ok()).unwrap_or(0)
}

fn measure(read: &Transcript<'_>, text: &str) -> TranscriptFeatures {
    let (mut calls, mut errors) = (0, 0);
    for part in read.messages.iter().flat_map(|message| &message.parts) {
        match part {
            TranscriptPart::ToolCall(_) => calls += 1,
            TranscriptPart::ToolResult(result) if result.is_error == Some(true) => errors += 1,
            _ => {}
        }
    }
    let effort = RecordedEffort::read(&Subject::new(read));
    TranscriptFeatures {
        length: text.chars().count() as u64,
        calls,
        errors,
        latency_ms: effort.latency_ms,
        cost_usd: effort.cost_usd,
    }
}

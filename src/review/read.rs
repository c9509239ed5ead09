//! Reads notes, modes and transcripts together, and lists all problems of the two files.

use std::collections::HashMap;

use super::answers::ReviewBook;
use super::catalog::ReviewCatalog;
use super::check::{NotedTranscript, check_review};
use super::files::{ReviewFileError, ReviewText};
use super::note::{NOTE_CODE, NoteLine, line_span};
use super::place::ReviewPlace;
use crate::diag::Diagnostic;
use crate::model::Digest;
use crate::transcript::TranscriptError;

/// A review as its files have it.
pub(super) struct ReadReview {
    pub(super) text: ReviewText,
    pub(super) lines: Vec<NoteLine>,
    pub(super) catalog: ReviewCatalog,
    /// The notes that count, with the new ids of transcripts that moved.
    pub(super) book: ReviewBook,
    /// The problems of both files.
    pub(super) problems: Vec<Diagnostic>,
}

/// The reason why the files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadReviewError {
    /// A file of the review.
    #[error(transparent)]
    File(#[from] ReviewFileError),
    /// The transcripts.
    #[error(transparent)]
    Transcripts(#[from] TranscriptError),
}

/// The result of a check of notes and modes.
#[derive(Debug, Clone, Default)]
pub struct ReviewFilesCheck {
    /// The errors, each with its file and line.
    pub problems: Vec<Diagnostic>,
    /// A warning for each stale note.
    pub stale: Vec<Diagnostic>,
    /// The number of notes that were not removed.
    pub notes: usize,
    /// The number of modes.
    pub modes: usize,
}

/// Reads a review.
pub(super) fn read_review(place: &ReviewPlace) -> Result<ReadReview, ReadReviewError> {
    let text: ReviewText = place.files.read()?;
    let (lines, modes, mut problems) = text.parse(&place.files);
    let catalog = ReviewCatalog::read(place)?;
    let moved = find_moved(&catalog, &lines);
    // The notes of a workspace may be about files that this review leaves out.
    let others = read_other_files(place);
    let find = |line: &NoteLine| {
        let id = &line.note.transcript;
        let id = moved.get(id).unwrap_or(id);
        let others = || others.as_ref()?.find(id);
        match catalog.find(id).or_else(others) {
            None => NotedTranscript::Missing,
            Some(now) if line.note.is_about_other_text(&now.reference.digest) => {
                NotedTranscript::Changed
            }
            Some(now) => NotedTranscript::Current {
                messages: now.messages,
            },
        }
    };
    let path = place.files.notes();
    let found = check_review(&path, &text.notes, &lines, modes.as_ref(), &moved, &find);
    problems.extend(found);
    let mut book = ReviewBook::new(&lines, modes.unwrap_or_default());
    book.follow_renames(|note| moved.get(&note.transcript).cloned());
    book.mark_stale(|id| catalog.find(id).map(|entry| entry.reference.digest.clone()));
    Ok(ReadReview {
        text,
        lines,
        catalog,
        book,
        problems,
    })
}

/// Checks notes and modes against the transcripts. Returns `None` if there are none.
pub fn check_review_files(
    place: &ReviewPlace,
) -> Result<Option<ReviewFilesCheck>, ReadReviewError> {
    // The transcripts are read only for a review, because it takes time.
    if !place.files.notes().is_file() && !place.files.modes().is_file() {
        return Ok(None);
    }
    let read = read_review(place)?;
    let path = place.files.notes();
    let warn = |line: &NoteLine| {
        let message = format!(
            "the transcript {} changed after {} read it, so the note `{}` counts nowhere",
            line.note.transcript,
            line.note.reader(),
            line.note.id
        );
        Diagnostic::warning(NOTE_CODE, &path, message)
            .with_span(line_span(&read.text.notes, line.line), &read.text.notes)
            .help("`dicta review` offers the transcript for another look")
    };
    let stale = read.book.stale_notes().filter_map(|note| {
        let mut records = read.lines.iter().rev();
        // The line of the record that counts, which need not be the last one.
        let is_current = |line: &&NoteLine| line.note.id == note.id && line.note.at == note.at;
        records.find(is_current).map(warn)
    });
    Ok(Some(ReviewFilesCheck {
        stale: stale.collect(),
        notes: read.book.notes.len(),
        modes: read.book.modes.modes.len(),
        problems: read.problems,
    }))
}

/// Returns the new ids of transcripts that have another id now: those whose text exactly one transcript has.
fn find_moved(catalog: &ReviewCatalog, lines: &[NoteLine]) -> HashMap<String, String> {
    let mut by_digest: HashMap<&Digest, Option<&str>> = HashMap::new();
    for entry in &catalog.entries {
        let id = entry.reference.id.as_str();
        by_digest
            .entry(&entry.reference.digest)
            // Two transcripts with one text leave open which one was read.
            .and_modify(|only| *only = None)
            .or_insert(Some(id));
    }
    let mut moved = HashMap::new();
    for line in lines {
        let old = &line.note.transcript;
        let found = line
            .note
            .digest
            .as_ref()
            .and_then(|digest| by_digest.get(digest));
        if catalog.find(old).is_none()
            && let Some(Some(id)) = found
        {
            moved.insert(old.clone(), (*id).to_owned());
        }
    }
    moved
}

/// Returns the transcripts of the whole workspace, if the review leaves out files of it.
fn read_other_files(place: &ReviewPlace) -> Option<ReviewCatalog> {
    let workspace = place.workspace.as_ref()?;
    if workspace.transcripts.len() == place.transcripts.len() {
        return None;
    }
    ReviewCatalog::read(&ReviewPlace::of_workspace(workspace)).ok()
}

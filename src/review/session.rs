//! A review as it is read from disk: transcripts, notes, modes and draws.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use thiserror::Error;

use super::answers::ReviewBook;
use super::catalog::ReviewCatalog;
use super::check::check_review;
use super::counts::{ModeTable, Saturation, count_modes, measure_saturation};
use super::files::{ReviewFileError, ReviewText};
use super::note::{NoteLine, NoteSample};
use super::place::{ReviewPlace, ReviewPlaceError};
use super::sampling::{HAND, ReviewQueueItem, SampleRequest, draw_sample, list_queue};
use crate::compare::statistics::Confidence;
use crate::diag::Diagnostic;
use crate::model::{Digest, RecordedDraw};
use crate::transcript::TranscriptError;
use crate::workspace::Env;
use crate::workspace::find_label_author;
use crate::workspace::label_draws::{LabelDrawsError, add_draw, read_draws};

/// The reason why a review does not open.
#[derive(Debug, Error)]
pub enum ReviewError {
    /// The place has no transcripts.
    #[error(transparent)]
    Place(#[from] ReviewPlaceError),
    /// A file of the review cannot be read or written.
    #[error(transparent)]
    File(#[from] ReviewFileError),
    /// The draws cannot be read or written.
    #[error(transparent)]
    Draws(#[from] LabelDrawsError),
    /// The transcripts cannot be read.
    #[error(transparent)]
    Transcripts(#[from] TranscriptError),
    /// Notes or modes have problems.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Problems(Vec<Diagnostic>),
    /// The files hold no transcript.
    #[error("no transcript could be read: `dicta check FILE` lists the problems")]
    NoTranscripts,
}

/// An open review.
#[derive(Debug, Clone)]
pub struct ReviewSession {
    /// The place.
    pub place: ReviewPlace,
    /// The transcripts.
    pub catalog: ReviewCatalog,
    /// The notes and modes.
    pub book: ReviewBook,
    /// The draws, oldest first.
    pub draws: Vec<RecordedDraw>,
    /// The drawn transcripts in the order in which to read them.
    pub queue: Vec<ReviewQueueItem>,
    /// The text of modes.yaml as it was read.
    pub modes_text: Arc<str>,
    /// The name of the reader.
    pub reader: Option<String>,
}

/// Reads a review. Problems of notes and modes are an error with all of them.
pub fn open_session(place: ReviewPlace, env: &Env) -> Result<ReviewSession, ReviewError> {
    let text: ReviewText = place.files.read()?;
    let (lines, modes, mut problems) = text.parse(&place.files);
    let catalog = ReviewCatalog::read(&place)?;
    if catalog.entries.is_empty() {
        return Err(ReviewError::NoTranscripts);
    }
    let moved = find_moved(&catalog, &lines);
    // The notes of a workspace may be about files that this review leaves out.
    let others = ids_of_other_files(&place, &catalog);
    let knows = |line: &NoteLine| {
        let id = &line.note.transcript;
        catalog.find(id).is_some() || moved.contains_key(id) || others.contains(id)
    };
    // With modes that do not load, every id would be unknown.
    if problems.is_empty() {
        let path = place.files.notes();
        problems.extend(check_review(&path, &text.notes, &lines, &modes, &knows));
    }
    if !problems.is_empty() {
        return Err(ReviewError::Problems(problems));
    }
    let mut book = ReviewBook::new(&lines, modes);
    book.follow_renames(|note| moved.get(&note.transcript).cloned());
    book.mark_stale(|id| catalog.find(id).map(|entry| entry.reference.digest.clone()));
    let draws = read_draws(&place.files.notes())?;
    let reader = find_label_author(env, &place.files.folder);
    Ok(ReviewSession {
        queue: list_queue(&catalog, &draws),
        place,
        catalog,
        book,
        draws,
        modes_text: text.modes,
        reader,
    })
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

/// Returns the ids of transcripts in files of the workspace that the review leaves out.
fn ids_of_other_files(place: &ReviewPlace, catalog: &ReviewCatalog) -> HashSet<String> {
    let Some(workspace) = &place.workspace else {
        return HashSet::new();
    };
    if workspace.transcripts.len() == place.transcripts.len() {
        return HashSet::new();
    }
    let whole = ReviewPlace::of_workspace(workspace);
    let Ok(all) = ReviewCatalog::read(&whole) else {
        return HashSet::new();
    };
    let ids = all.entries.into_iter().map(|entry| entry.reference.id);
    ids.filter(|id| catalog.find(id).is_none()).collect()
}

impl ReviewSession {
    /// Draws more transcripts, records the draw, and adds them to the queue. Returns the number of new ones.
    pub fn extend(&mut self, request: &SampleRequest) -> Result<usize, ReviewError> {
        let Some(draw) = draw_sample(&self.catalog, &self.draws, request) else {
            return Ok(0);
        };
        let new = draw.drawn.len();
        let folder = &self.place.files.folder;
        if !folder.is_dir() {
            crate::storage::create_own_folder(folder).map_err(|source| LabelDrawsError::Io {
                path: folder.clone(),
                source,
            })?;
        }
        add_draw(&self.place.files.notes(), &draw)?;
        self.draws.push(draw);
        self.queue = list_queue(&self.catalog, &self.draws);
        Ok(new)
    }

    /// Returns the table of modes with 95% intervals.
    pub fn table(&self) -> ModeTable {
        count_modes(&self.catalog, &self.draws, &self.book, Confidence::P95)
    }

    /// Returns the new modes over the transcripts that were read.
    pub fn saturation(&self) -> Saturation {
        measure_saturation(&self.book, &self.book.read_order())
    }

    /// Returns the origin of a transcript: its plan, or `hand`.
    pub fn sample_of(&self, transcript: &str) -> NoteSample {
        let drawn = self.queue.iter().find(|item| item.transcript == transcript);
        drawn.map_or_else(|| NoteSample::new(HAND, None), |item| item.sample.clone())
    }

    /// Returns the position of the first transcript in the queue that the reader has not visited.
    pub fn first_unread(&self) -> Option<usize> {
        let reader = self.reader.as_deref();
        let mut queue = self.queue.iter();
        queue.position(|item| !self.book.is_visited(&item.transcript, reader))
    }

    /// Returns the number of transcripts in the queue that the reader visited.
    pub fn visited(&self) -> usize {
        let reader = self.reader.as_deref();
        let queue = self.queue.iter();
        queue
            .filter(|item| self.book.is_visited(&item.transcript, reader))
            .count()
    }
}

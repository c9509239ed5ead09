//! A review as it is read from disk: transcripts, notes, modes and draws.

use std::sync::Arc;

use thiserror::Error;

use super::answers::ReviewBook;
use super::catalog::ReviewCatalog;
use super::counts::{ModeTable, Saturation, count_modes, measure_saturation};
use super::modes::ModeList;
use super::note::{NoteSample, ReviewNote};
use super::place::{ReviewPlace, ReviewPlaceError};
use super::read::{ReadReviewError, read_review};
use super::sampling::{HAND, ReviewQueueItem, SampleRequest, draw_sample, list_queue_with_picks};
use crate::compare::statistics::Confidence;
use crate::diag::Diagnostic;
use crate::model::{RecordedDraw, quote_shell_path};
use crate::run::TranscriptWalk;
use crate::transcript::TranscriptError;
use crate::workspace::Env;
use crate::workspace::find_label_author;
use crate::workspace::label_draws::{LabelDrawsError, add_chosen_draw, read_draws};

/// The reason why a review does not open.
#[derive(Debug, Error)]
pub enum ReviewError {
    /// The place has no transcripts.
    #[error(transparent)]
    Place(#[from] ReviewPlaceError),
    /// A file of the review or the transcripts cannot be read.
    #[error(transparent)]
    Read(#[from] ReadReviewError),
    /// The transcripts cannot be read.
    #[error(transparent)]
    Transcripts(#[from] TranscriptError),
    /// The draws cannot be read or written.
    #[error(transparent)]
    Draws(#[from] LabelDrawsError),
    /// Notes or modes have problems.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Problems(Vec<Diagnostic>),
    /// The files hold no transcript. The text is the reason.
    #[error("no transcript could be read: {0}")]
    NoTranscripts(String),
}

/// An open review. A clone shares the transcripts, notes and draws, so that it is cheap.
#[derive(Debug, Clone)]
pub struct ReviewSession {
    /// The place.
    pub place: ReviewPlace,
    /// The transcripts.
    pub catalog: Arc<ReviewCatalog>,
    /// The notes and modes.
    pub book: Arc<ReviewBook>,
    /// The draws, oldest first.
    pub draws: Arc<Vec<RecordedDraw>>,
    /// The drawn transcripts in the order in which to read them.
    pub queue: Arc<Vec<ReviewQueueItem>>,
    /// The text of modes.yaml as it was read.
    pub modes_text: Arc<str>,
    /// The name of the reader.
    pub reader: Option<String>,
}

/// Reads a review. Problems of notes and modes are an error with all of them.
pub fn open_session(place: ReviewPlace, env: &Env) -> Result<ReviewSession, ReviewError> {
    let read = read_review(&place)?;
    if read.catalog.entries.is_empty() {
        let why = explain_no_transcripts(&place, &read.catalog.walk);
        return Err(ReviewError::NoTranscripts(why));
    }
    if !read.problems.is_empty() {
        return Err(ReviewError::Problems(read.problems));
    }
    let draws = read_draws(&place.files.notes())?;
    let reader = find_label_author(env, &place.files.folder);
    Ok(ReviewSession {
        queue: Arc::new(list_queue_with_picks(&read.catalog, &draws, &place.picks)),
        place,
        book: Arc::new(read.book),
        catalog: Arc::new(read.catalog),
        draws: Arc::new(draws),
        modes_text: read.text.modes,
        reader,
    })
}

/// Returns the fault of the first broken file; else the command that lists the faults of the first file's records.
fn explain_no_transcripts(place: &ReviewPlace, walk: &TranscriptWalk) -> String {
    match (walk.broken_files.first(), place.transcripts.first()) {
        (Some((_, why)), _) => why.clone(),
        (None, Some(path)) => {
            let path = quote_shell_path(path);
            format!("`dicta check {path}` lists the problems")
        }
        (None, None) => "the workspace has no transcript file".to_owned(),
    }
}

impl ReviewSession {
    /// Draws more transcripts, records the draw, and adds them to the queue. Returns the number of new ones.
    pub fn extend(&mut self, request: &SampleRequest) -> Result<usize, ReviewError> {
        let folder = &self.place.files.folder;
        if !folder.is_dir() {
            if draw_sample(&self.catalog, &[], request).is_none() {
                return Ok(0);
            }
            crate::storage::create_own_folder(folder).map_err(|source| LabelDrawsError::Io {
                path: folder.clone(),
                source,
            })?;
        }
        // Another reader may have drawn since, so the file decides.
        let draws = add_chosen_draw(&self.place.files.notes(), |draws| {
            draw_sample(&self.catalog, draws, request)
        })?;
        let Some(draws) = draws else {
            return Ok(0);
        };
        let new = draws.last().map_or(0, |draw| draw.drawn.len());
        self.draws = Arc::new(draws);
        self.update_queue();
        Ok(new)
    }

    /// Puts transcripts that the reader picked by hand before the drawn ones. Fails with the first unknown id.
    pub fn pick(&mut self, ids: &[String]) -> Result<(), String> {
        let unknown = ids.iter().find(|id| self.catalog.find(id).is_none());
        if let Some(id) = unknown {
            return Err(id.clone());
        }
        self.place.picks = ids.to_vec();
        self.update_queue();
        Ok(())
    }

    fn update_queue(&mut self) {
        let queue = list_queue_with_picks(&self.catalog, &self.draws, &self.place.picks);
        self.queue = Arc::new(queue);
    }

    /// Adds records and modes that were written.
    pub fn add_written(&mut self, notes: &[ReviewNote], modes: Option<ModeList>) {
        // A background task may still read the notes as they were.
        let book = Arc::make_mut(&mut self.book);
        if let Some(modes) = modes {
            book.modes = modes;
        }
        book.add(notes);
    }

    /// Returns the table of modes with 95% intervals.
    pub fn table(&self) -> ModeTable {
        count_modes(&self.catalog, &self.draws, &self.book, Confidence::P95)
    }

    /// Returns the plans of the draws with their seeds.
    pub fn describe_draws(&self) -> Vec<String> {
        let draws = self.draws.iter();
        draws
            .map(|draw| format!("{} (seed {})", draw.plan, draw.seed))
            .collect()
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

    /// Returns whether the draws have chosen every transcript.
    pub fn has_drawn_all(&self) -> bool {
        let queue = self.queue.iter();
        let drawn = queue.filter(|item| item.sample.plan != HAND).count();
        drawn >= self.catalog.entries.len()
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

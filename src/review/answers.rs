//! The notes that count, merged from all readers, and the answer for each transcript and mode.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::modes::ModeList;
use super::note::{NoteLine, NoteOutcome, ReviewNote};
use crate::model::Digest;

/// The answer to "does this mode occur here?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModeAnswer {
    /// It occurs.
    Yes,
    /// It does not occur.
    No,
    /// Readers disagree.
    Disagreed,
    /// No reader answered.
    Unknown,
}

impl ModeAnswer {
    /// Returns the answer as a verdict, if there is one.
    pub const fn occurs(self) -> Option<bool> {
        match self {
            Self::Yes => Some(true),
            Self::No => Some(false),
            Self::Disagreed | Self::Unknown => None,
        }
    }
}

/// A mode about which readers disagree for one transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The transcript.
    pub transcript: String,
    /// The mode.
    pub mode: String,
    /// The readers who see it.
    pub yes: Vec<String>,
    /// The readers who do not see it.
    pub no: Vec<String>,
}

/// The notes of a review that count: the newest record of each id, without removed ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReviewBook {
    /// The notes in the order in which they were first written.
    pub notes: Vec<ReviewNote>,
    /// The modes.
    pub modes: ModeList,
    /// The time at which each note was first written. A later edit or grouping does not change the order of reading.
    first_read: HashMap<String, Option<jiff::Timestamp>>,
    /// The ids of notes whose transcript changed since.
    stale: HashSet<String>,
    /// The positions of the notes of each transcript.
    by_transcript: HashMap<String, Vec<usize>>,
    /// The position of each note.
    by_id: HashMap<String, usize>,
}

/// Stores the time of the oldest record of a note that was read.
fn keep_first_read(first_read: &mut HashMap<String, Option<jiff::Timestamp>>, record: &ReviewNote) {
    if !record.outcome.is_read() {
        return;
    }
    let at = record.instant();
    let first = first_read.entry(record.id.clone()).or_insert(at);
    *first = (*first).min(at);
}

impl ReviewBook {
    /// Merges the records of all readers by id.
    pub fn new(lines: &[NoteLine], modes: ModeList) -> Self {
        Self::from_records(lines.iter().map(|line| line.note.clone()), modes)
    }

    /// Merges records in the order of the file.
    pub fn from_records(records: impl IntoIterator<Item = ReviewNote>, modes: ModeList) -> Self {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut notes: Vec<ReviewNote> = Vec::new();
        let mut first_read = HashMap::new();
        for record in records {
            keep_first_read(&mut first_read, &record);
            match places.get(&record.id) {
                // A merge of two files can put an older record below a newer one.
                Some(at) if record.instant() >= notes[*at].instant() => notes[*at] = record,
                Some(_) => {}
                None => {
                    places.insert(record.id.clone(), notes.len());
                    notes.push(record);
                }
            }
        }
        notes.retain(|note| note.outcome != NoteOutcome::Removed);
        let mut book = Self {
            notes,
            modes,
            first_read,
            ..Self::default()
        };
        book.index();
        book
    }

    fn index(&mut self) {
        self.by_transcript.clear();
        self.by_id.clear();
        for (at, note) in self.notes.iter().enumerate() {
            self.by_id.insert(note.id.clone(), at);
            let places = self.by_transcript.entry(note.transcript.clone());
            places.or_default().push(at);
        }
    }

    /// Adds records that were written, and their effect on all answers.
    pub fn add(&mut self, records: &[ReviewNote]) {
        for record in records {
            let known = self.by_id.get(&record.id).copied();
            keep_first_read(&mut self.first_read, record);
            // A record that dicta just wrote is about the transcript as it is now.
            self.stale.remove(&record.id);
            match (known, record.outcome) {
                (Some(at), NoteOutcome::Removed) => {
                    // It leaves below, so that the positions of the other notes stay valid until then.
                    self.by_id.remove(&record.id);
                    self.notes[at] = record.clone();
                }
                (Some(at), _) => self.notes[at] = record.clone(),
                (None, NoteOutcome::Removed) => {}
                (None, _) => {
                    self.by_id.insert(record.id.clone(), self.notes.len());
                    self.notes.push(record.clone());
                }
            }
        }
        self.notes
            .retain(|note| note.outcome != NoteOutcome::Removed);
        self.index();
    }

    /// Compares the digests of notes with the transcripts as they are now. A transcript that is not listed stays as it
    /// was.
    pub fn mark_stale(&mut self, digest_of: impl Fn(&str) -> Option<Digest>) {
        self.stale = self
            .notes
            .iter()
            .filter(|note| {
                let now = digest_of(&note.transcript);
                now.is_some_and(|now| note.is_about_other_text(&now))
            })
            .map(|note| note.id.clone())
            .collect();
    }

    /// Moves notes to the new ids of their transcripts, found by digest. A file with records that moved keeps its
    /// notes.
    pub fn follow_renames(&mut self, find_new_id: impl Fn(&ReviewNote) -> Option<String>) {
        for note in &mut self.notes {
            if let Some(id) = find_new_id(note) {
                note.transcript = id;
            }
        }
        self.index();
    }

    /// Returns true if the transcript of a note changed since.
    pub fn is_stale(&self, note: &ReviewNote) -> bool {
        self.stale.contains(&note.id)
    }

    /// Returns the notes whose transcript changed since.
    pub fn stale_notes(&self) -> impl Iterator<Item = &ReviewNote> {
        self.notes.iter().filter(|note| self.is_stale(note))
    }

    /// Returns the notes that count for a transcript.
    pub fn notes_of<'b>(
        &'b self,
        transcript: &str,
    ) -> impl DoubleEndedIterator<Item = &'b ReviewNote> + use<'b> {
        let places = self.by_transcript.get(transcript);
        let places = places.map_or(&[][..], Vec::as_slice);
        let notes = places.iter().map(|at| &self.notes[*at]);
        notes.filter(|note| !self.is_stale(note))
    }

    /// Returns a reader's own note on a transcript, also a stale one.
    pub fn own_note(&self, transcript: &str, reader: Option<&str>) -> Option<&ReviewNote> {
        let places = self.by_transcript.get(transcript)?;
        let mut notes = places.iter().rev().map(|at| &self.notes[*at]);
        notes.find(|note| note.by.as_deref() == reader)
    }

    /// Returns a note by its id.
    pub fn find(&self, id: &str) -> Option<&ReviewNote> {
        self.by_id.get(id).map(|at| &self.notes[*at])
    }

    /// Returns true if a reader read the transcript, or skipped it.
    pub fn is_visited(&self, transcript: &str, reader: Option<&str>) -> bool {
        self.own_note(transcript, reader)
            .is_some_and(|note| note.outcome != NoteOutcome::Answered && !self.is_stale(note))
    }

    /// Returns true if someone read the transcript as a whole.
    pub fn is_read(&self, transcript: &str) -> bool {
        self.notes_of(transcript).any(|note| note.outcome.is_read())
    }

    /// Returns the transcripts that were read, in the order in which they were read.
    pub fn read_order(&self) -> Vec<&str> {
        let read = self.notes.iter();
        let mut read: Vec<&ReviewNote> = read
            .filter(|note| note.outcome.is_read() && !self.is_stale(note))
            .collect();
        // The order of the file decides between records of the same time.
        read.sort_by_key(|note| self.first_read.get(&note.id).copied().flatten());
        let mut seen = HashSet::new();
        read.retain(|note| seen.insert(note.transcript.as_str()));
        read.into_iter()
            .map(|note| note.transcript.as_str())
            .collect()
    }

    /// Returns the last answer of each reader for a transcript and a mode.
    pub fn answers_by_reader(&self, transcript: &str, mode: &str) -> BTreeMap<&str, bool> {
        let mut notes: Vec<&ReviewNote> = self.notes_of(transcript).collect();
        notes.sort_by_key(|note| note.instant());
        let (mut stated, mut implied) = (BTreeMap::new(), BTreeMap::new());
        for note in notes {
            if note.outcome == NoteOutcome::NoFailure {
                // A transcript without a failure has no failure mode.
                implied.insert(note.reader(), false);
            }
            let answers = self.modes.resolve_answers(&note.modes);
            if let Some(occurs) = answers.get(mode) {
                stated.insert(note.reader(), *occurs);
            }
        }
        // An explicit answer says more than "nothing fails".
        implied.extend(stated);
        implied
    }

    /// Returns the answer for a transcript and a mode.
    pub fn answer(&self, transcript: &str, mode: &str) -> ModeAnswer {
        let answers = self.answers_by_reader(transcript, mode);
        let yes = answers.values().filter(|occurs| **occurs).count();
        match (yes, answers.len()) {
            (_, 0) => ModeAnswer::Unknown,
            (0, _) => ModeAnswer::No,
            (yes, all) if yes == all => ModeAnswer::Yes,
            _ => ModeAnswer::Disagreed,
        }
    }

    /// Returns the disagreements between readers, by mode and transcript.
    pub fn disagreements(&self) -> Vec<Disagreement> {
        let mut transcripts: Vec<&str> = self.by_transcript.keys().map(String::as_str).collect();
        transcripts.sort_unstable();
        let mut found = Vec::new();
        for mode in &self.modes.modes {
            for transcript in &transcripts {
                let answers = self.answers_by_reader(transcript, &mode.id);
                let names = |wanted: bool| -> Vec<String> {
                    let same = answers.iter().filter(|(_, occurs)| **occurs == wanted);
                    same.map(|(by, _)| (*by).to_owned()).collect()
                };
                let (yes, no) = (names(true), names(false));
                if !yes.is_empty() && !no.is_empty() {
                    found.push(Disagreement {
                        transcript: (*transcript).to_owned(),
                        mode: mode.id.clone(),
                        yes,
                        no,
                    });
                }
            }
        }
        found
    }

    /// Returns the questions that no reader has answered: transcripts that were read, with a mode, transcript by
    /// transcript. A transcript without a failure has no question.
    pub fn open_questions(&self) -> Vec<(String, String)> {
        let read = self.read_order().into_iter();
        read.flat_map(|transcript| {
            let modes = self.modes.modes.iter();
            let open =
                modes.filter(move |mode| self.answer(transcript, &mode.id) == ModeAnswer::Unknown);
            open.map(move |mode| (transcript.to_owned(), mode.id.clone()))
        })
        .collect()
    }

    /// Returns the notes that name a failure which no mode covers yet.
    pub fn ungrouped(&self) -> Vec<&ReviewNote> {
        let notes = self.notes.iter();
        notes
            .filter(|note| note.is_ungrouped() && !self.is_stale(note))
            .collect()
    }

    /// Returns the notes of a mode: those that name it with a text.
    pub fn notes_of_mode(&self, mode: &str) -> Vec<&ReviewNote> {
        let notes = self.notes.iter();
        notes
            .filter(|note| {
                // Most notes name few modes, and the rest of the test is slow.
                note.modes.values().any(|occurs| *occurs)
                    && !self.is_stale(note)
                    && self.modes.resolve_answers(&note.modes).get(mode) == Some(&true)
            })
            .collect()
    }
}

//! A note on one transcript, and its line in `notes.jsonl`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::diag::{Diagnostic, SourceSpan};
use crate::model::{Digest, WallTime};

/// The code of a problem with a line of notes.
pub(super) const NOTE_CODE: &str = "review-note";

/// The answer of a reader to "what fails first here?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteOutcome {
    /// Nothing fails: no failure mode occurs.
    NoFailure,
    /// Something fails; the note states the first failure.
    Failure,
    /// The reader cannot decide.
    Unsure,
    /// The reader did not read the transcript.
    Skipped,
    /// The reader answered only for single modes.
    Answered,
    /// The reader took the note back.
    Removed,
}

impl NoteOutcome {
    /// Returns the word in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoFailure => "no_failure",
            Self::Failure => "failure",
            Self::Unsure => "unsure",
            Self::Skipped => "skipped",
            Self::Answered => "answered",
            Self::Removed => "removed",
        }
    }

    /// Returns the words on the screen and in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::NoFailure => "no failure",
            Self::Failure => "failure",
            Self::Unsure => "unsure",
            Self::Skipped => "skipped",
            Self::Answered => "answered",
            Self::Removed => "removed",
        }
    }

    /// Returns true if the reader read the transcript as a whole.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::NoFailure | Self::Failure | Self::Unsure)
    }
}

/// The origin of a transcript in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteSample {
    /// The plan: `random`, `outlier`, `diverse` or `hand`.
    pub plan: String,
    /// The probability with which the plan selects the transcript; `None` if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl NoteSample {
    /// Creates the origin.
    pub fn new(plan: &str, p: Option<f64>) -> Self {
        Self {
            plan: plan.to_owned(),
            p,
            other: Map::new(),
        }
    }
}

/// A note: one record of `notes.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewNote {
    /// The id. A later record with the same id replaces this one.
    pub id: String,
    /// The id of the transcript.
    pub transcript: String,
    /// The digest of the transcript when it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The message of the first failure, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u32>,
    /// The answer.
    pub outcome: NoteOutcome,
    /// The sentence about the first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The answers by mode: `true` if the mode occurs. A list of ids is read as answers `true`.
    #[serde(
        default,
        deserialize_with = "read_modes",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub modes: BTreeMap<String, bool>,
    /// The reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<WallTime>,
    /// The plan that selected the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<NoteSample>,
    /// Unknown fields, which dicta keeps.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ReviewNote {
    /// Creates a note without a text.
    pub fn new(id: impl Into<String>, transcript: &str, outcome: NoteOutcome) -> Self {
        Self {
            id: id.into(),
            transcript: transcript.to_owned(),
            digest: None,
            message: None,
            outcome,
            note: None,
            modes: BTreeMap::new(),
            by: None,
            at: None,
            sample: None,
            other: Map::new(),
        }
    }

    /// Returns the reader's name; `unknown` without one.
    pub fn reader(&self) -> &str {
        self.by.as_deref().unwrap_or("unknown")
    }

    /// Returns the instant of the record. Records without a valid time are the oldest ones.
    pub(super) fn instant(&self) -> Option<jiff::Timestamp> {
        self.at.as_ref()?.0.parse().ok()
    }

    /// Returns true if the reader saw another text of the transcript than the one with this digest.
    pub(super) fn is_about_other_text(&self, now: &Digest) -> bool {
        let seen = self.digest.as_ref().filter(|digest| !digest.is_unread());
        seen.is_some_and(|seen| seen != now)
    }

    /// Returns the text of the note, without white space around it; `None` if it is empty.
    pub fn text(&self) -> Option<&str> {
        let text = self.note.as_deref()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// Returns true if the note names a failure that no mode covers yet.
    pub fn is_ungrouped(&self) -> bool {
        self.outcome == NoteOutcome::Failure
            && self.text().is_some()
            && !self.modes.values().any(|occurs| *occurs)
    }

    /// Returns the problems of the values, each a lower-case sentence.
    fn list_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, text) in [("id", &self.id), ("transcript", &self.transcript)] {
            if text.trim().is_empty() {
                problems.push(format!("`{name}` is empty: write the {name} of the note"));
            }
        }
        if let Some(p) = self.sample.as_ref().and_then(|sample| sample.p)
            && !(p > 0.0 && p <= 1.0)
        {
            problems.push(format!(
                "sample.p must be above 0 and at most 1, because it is the probability of the draw (got {p})"
            ));
        }
        problems
    }
}

/// A note with its line.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteLine {
    /// The line from 1.
    pub line: u32,
    /// The note.
    pub note: ReviewNote,
}

/// Reads modes as a map of answers, or as a list of ids that occur.
fn read_modes<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, bool>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Answers {
        Map(BTreeMap<String, bool>),
        List(Vec<String>),
        None(()),
    }
    Ok(match Answers::deserialize(from)? {
        Answers::Map(answers) => answers,
        Answers::List(ids) => ids.into_iter().map(|id| (id, true)).collect(),
        Answers::None(()) => BTreeMap::new(),
    })
}

/// Returns the end of the last whole line. A write that a kill interrupted leaves a part of a line behind it, which was
/// never confirmed.
pub(super) fn end_of_whole_lines(text: &str) -> usize {
    if text.ends_with('\n') {
        return text.len();
    }
    let last = text.rfind('\n').map_or(0, |at| at + 1);
    let is_whole = serde_json::from_str::<Value>(&text[last..]).is_ok();
    if is_whole { text.len() } else { last }
}

/// Returns the place of a line.
pub(super) fn line_span(source: &str, line: u32) -> SourceSpan {
    let mut from = 0;
    for (number, text) in (1..).zip(source.split_inclusive('\n')) {
        if number == line {
            let len = text.trim_end().len();
            return SourceSpan {
                bytes: from..from + len,
                line,
                column: 1,
            };
        }
        from += text.len();
    }
    SourceSpan {
        bytes: source.len()..source.len(),
        line,
        column: 1,
    }
}

/// Reads the lines of a file of notes. Bad lines become problems; the other lines stay usable.
pub fn parse_notes(path: &Path, source: &Arc<str>) -> (Vec<NoteLine>, Vec<Diagnostic>) {
    let (mut notes, mut problems) = (Vec::new(), Vec::new());
    let whole = &source[..end_of_whole_lines(source)];
    for (line, text) in (1..).zip(whole.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let fail = |message: String| {
            Diagnostic::error(NOTE_CODE, path, message).with_span(line_span(source, line), source)
        };
        match serde_json::from_str::<ReviewNote>(text) {
            Ok(note) => {
                let invalid = note.list_problems();
                if invalid.is_empty() {
                    notes.push(NoteLine { line, note });
                }
                problems.extend(invalid.into_iter().map(fail));
            }
            Err(error) => {
                // The column of the JSON reader is in this line; its own line number is always 1.
                let why = error.to_string();
                let why = why.split(" at line ").next().unwrap_or(&why);
                problems.push(
                    fail(format!("this line is not a note: {why}"))
                        .help("fix the line, or delete it"),
                );
            }
        }
    }
    (notes, problems)
}

/// Returns an id that no other note has: readers on two machines must not choose the same one.
pub fn new_note_id(random: &mut fastrand::Rng) -> String {
    const LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letters = (0..10).map(|_| char::from(LETTERS[random.usize(..LETTERS.len())]));
    std::iter::once('n').chain(letters).collect()
}

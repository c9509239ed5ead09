//! The changes of a reader, and what undoes each of them.
//!
//! A step has what changed, before and after. Its undo restores only that, so what others wrote since stays. Does not
//! write files: see `undo_journal` and `eval_write`.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::answers::ReviewBook;
use super::eval_write::EvalUndo;
use super::grouping::GroupingWrite;
use super::modes::{FailureMode, ModeList};
use super::note::{NoteOutcome, ReviewNote};
use crate::model::{WallTime, pluralize};

/// A note before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteChange {
    /// The note before; `None` if there was none.
    #[serde(default)]
    pub before: Option<ReviewNote>,
    /// The note after.
    pub after: ReviewNote,
}

/// A mode before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModeChange {
    /// Its position in the list that has it.
    pub position: usize,
    /// The mode before; `None` for a new one.
    #[serde(default)]
    pub before: Option<FailureMode>,
    /// The mode after; `None` for one that another mode took in.
    #[serde(default)]
    pub after: Option<FailureMode>,
}

/// A change that can be undone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UndoStep {
    /// The change in a few words: `failure on chat-04`.
    pub what: String,
    /// The changed notes.
    #[serde(default)]
    pub notes: Vec<NoteChange>,
    /// The changed modes.
    #[serde(default)]
    pub modes: Vec<ModeChange>,
    /// The transcript and the mode of an answered question.
    #[serde(default)]
    pub question: Option<(String, String)>,
    /// The eval that was written.
    #[serde(default)]
    pub eval: Option<EvalUndo>,
}

/// The reason why a change cannot be undone: someone changed the same thing since.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UndoError {
    /// The note has another content now.
    #[error("the note on {0} was changed since")]
    NoteChanged(String),
    /// The note is gone.
    #[error("the note on {0} is gone")]
    NoteGone(String),
    /// The mode has another content now.
    #[error("the mode `{0}` was changed since")]
    ModeChanged(String),
    /// Other notes name the mode.
    #[error("{notes} of others name the mode `{mode}`")]
    ModeInUse {
        /// The mode.
        mode: String,
        /// The number of notes, as a phrase.
        notes: String,
    },
}

impl UndoStep {
    /// Returns the step of a write that is about to happen. New notes have no id yet: see [`Self::set_written`].
    pub fn of_write(what: impl Into<String>, book: &ReviewBook, write: &GroupingWrite) -> Self {
        let notes = write.notes.iter().map(|after| NoteChange {
            before: book.find(&after.id).cloned(),
            after: after.clone(),
        });
        let modes = write.modes.as_ref();
        Self {
            what: what.into(),
            notes: notes.collect(),
            modes: modes.map_or_else(Vec::new, |after| list_changes(&book.modes, after)),
            question: None,
            eval: None,
        }
    }

    /// Sets the notes as they were written, with their ids and times.
    pub fn set_written(&mut self, notes: &[ReviewNote]) {
        for (change, written) in self.notes.iter_mut().zip(notes) {
            change.after = written.clone();
        }
    }

    /// Returns the transcript whose note this step changed, if it is about one note only.
    pub fn transcript(&self) -> Option<&str> {
        match self.notes.as_slice() {
            [change] if self.modes.is_empty() => Some(&change.after.transcript),
            _ => None,
        }
    }

    /// Returns true if both are the same change. Numbers that were read from a file can differ in their last digit.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let notes = |step: &Self| -> Vec<(String, Option<WallTime>)> {
            let after = step.notes.iter().map(|change| &change.after);
            after
                .map(|note| (note.id.clone(), note.at.clone()))
                .collect()
        };
        let eval = |step: &Self| step.eval.as_ref().map(EvalUndo::name);
        self.what == other.what
            && self.modes == other.modes
            && notes(self) == notes(other)
            && eval(self) == eval(other)
    }

    /// Returns the write that undoes the change of notes and modes.
    pub fn reverse(&self, book: &ReviewBook) -> Result<GroupingWrite, UndoError> {
        let mut write = GroupingWrite::default();
        for change in &self.notes {
            write.notes.extend(change.reverse(book)?);
        }
        let mut modes = book.modes.clone();
        // A merge removes one mode and changes another; the removed one returns last, to its old position.
        let (removed, others): (Vec<&ModeChange>, Vec<&ModeChange>) =
            self.modes.iter().partition(|change| change.after.is_none());
        for change in others.into_iter().chain(removed) {
            change.reverse(&mut modes, book, &write.notes)?;
        }
        write.modes = (modes != book.modes).then_some(modes);
        Ok(write)
    }
}

/// Returns the modes that differ.
fn list_changes(before: &ModeList, after: &ModeList) -> Vec<ModeChange> {
    let mut changes = Vec::new();
    for (position, old) in before.modes.iter().enumerate() {
        let new = after.find(&old.id);
        if new != Some(old) {
            changes.push(ModeChange {
                position,
                before: Some(old.clone()),
                after: new.cloned(),
            });
        }
    }
    let new = after.modes.iter().enumerate();
    changes.extend(new.filter(|(_, mode)| before.find(&mode.id).is_none()).map(
        |(position, mode)| ModeChange {
            position,
            before: None,
            after: Some(mode.clone()),
        },
    ));
    changes
}

/// Returns true if two records say the same. The id of a transcript can change with its file.
fn say_the_same(one: &ReviewNote, other: &ReviewNote) -> bool {
    let plain = |note: &ReviewNote| ReviewNote {
        at: None,
        transcript: String::new(),
        ..note.clone()
    };
    plain(one) == plain(other)
}

impl NoteChange {
    /// Returns the record that undoes the change; `None` if the note is gone as it should be.
    fn reverse(&self, book: &ReviewBook) -> Result<Option<ReviewNote>, UndoError> {
        let transcript = &self.after.transcript;
        let Some(now) = book.find(&self.after.id) else {
            return match &self.before {
                Some(_) => Err(UndoError::NoteGone(transcript.clone())),
                None => Ok(None),
            };
        };
        let mut restored = match &self.before {
            Some(before) if say_the_same(now, &self.after) => before.clone(),
            None if say_the_same(now, &self.after) => ReviewNote {
                outcome: NoteOutcome::Removed,
                ..now.clone()
            },
            Some(before) => {
                let modes = self.restore_answers(before, now);
                let modes = modes.ok_or_else(|| UndoError::NoteChanged(transcript.clone()))?;
                ReviewNote {
                    modes,
                    ..now.clone()
                }
            }
            None => return Err(UndoError::NoteChanged(transcript.clone())),
        };
        restored.transcript.clone_from(&now.transcript);
        // The newest record of an id counts, so the undo needs a time of its own.
        restored.at = None;
        Ok(Some(restored))
    }

    /// Returns the answers of a note that someone edited since, if this step changed only answers that still hold.
    fn restore_answers(
        &self,
        before: &ReviewNote,
        now: &ReviewNote,
    ) -> Option<BTreeMap<String, bool>> {
        let without_answers = |note: &ReviewNote| ReviewNote {
            modes: BTreeMap::new(),
            ..note.clone()
        };
        if !say_the_same(&without_answers(before), &without_answers(&self.after)) {
            return None;
        }
        let mut modes = now.modes.clone();
        for id in before.modes.keys().chain(self.after.modes.keys()) {
            let (old, new) = (before.modes.get(id), self.after.modes.get(id));
            if old == new {
                continue;
            }
            if now.modes.get(id) != new {
                return None;
            }
            match old {
                Some(occurs) => modes.insert(id.clone(), *occurs),
                None => modes.remove(id),
            };
        }
        Some(modes)
    }
}

impl ModeChange {
    fn reverse(
        &self,
        modes: &mut ModeList,
        book: &ReviewBook,
        restored: &[ReviewNote],
    ) -> Result<(), UndoError> {
        let Some(id) = self.before.as_ref().or(self.after.as_ref()) else {
            return Ok(());
        };
        let id = id.id.as_str();
        let place = modes.modes.iter().position(|mode| mode.id == id);
        let changed = || Err(UndoError::ModeChanged(id.to_owned()));
        match (&self.before, &self.after, place) {
            (Some(before), Some(after), Some(at)) if modes.modes[at] == *after => {
                modes.modes[at] = before.clone();
                Ok(())
            }
            (Some(before), None, None) => {
                let at = self.position.min(modes.modes.len());
                modes.modes.insert(at, before.clone());
                Ok(())
            }
            (None, Some(after), Some(at)) if modes.modes[at] == *after => {
                // The first record of an id counts, so insert it last.
                let restored = restored.iter().rev();
                let restored: HashMap<&str, &ReviewNote> =
                    restored.map(|one| (one.id.as_str(), one)).collect();
                let names = |note: &&ReviewNote| {
                    let now = restored.get(note.id.as_str()).unwrap_or(note);
                    now.outcome != NoteOutcome::Removed && now.modes.contains_key(id)
                };
                let notes = book.notes.iter().filter(names).count() as u64;
                if notes > 0 {
                    return Err(UndoError::ModeInUse {
                        mode: id.to_owned(),
                        notes: pluralize(notes, "note"),
                    });
                }
                modes.modes.remove(at);
                Ok(())
            }
            _ => changed(),
        }
    }
}

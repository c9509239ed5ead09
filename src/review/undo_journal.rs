//! The file in which the undo of a review survives a restart: in dicta's data folder, for each user and review.
//!
//! A note is safe without it, so a line that does not load is left out.

use std::io;
use std::path::PathBuf;

use super::files::ReviewFiles;
use super::undo::UndoStep;
use crate::model::Digest;
use crate::storage::{
    FileLock, MAX_GROWING_FILE, create_own_folder, read_optional_text, replace_file,
};
use crate::workspace::{Env, data_dir};

/// The folder in the data directory with one file for each review.
pub const UNDO_FOLDER: &str = "review-undo";
/// The largest number of steps in the file.
const MAX_STEPS: usize = 200;

/// The steps of one review on disk, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoJournal {
    path: PathBuf,
}

impl UndoJournal {
    /// Returns the journal of a review.
    pub fn of_review(env: &Env, files: &ReviewFiles) -> io::Result<Self> {
        let folder = data_dir(env).map_err(io::Error::other)?.join(UNDO_FOLDER);
        let notes = files.notes();
        let digest = Digest::hash_bytes(notes.as_os_str().as_encoded_bytes());
        let name = digest.0.get(..16).unwrap_or_default();
        Ok(Self {
            path: folder.join(format!("{name}.jsonl")),
        })
    }

    /// Returns the steps. A missing file has none.
    pub fn read(&self) -> Vec<UndoStep> {
        let text = read_optional_text(&self.path, MAX_GROWING_FILE)
            .ok()
            .flatten()
            .unwrap_or_default();
        let steps = text.lines().map(serde_json::from_str);
        steps.filter_map(Result::ok).collect()
    }

    /// Adds a step. The oldest ones leave.
    pub fn add(&self, step: &UndoStep) -> io::Result<()> {
        self.edit(|steps| {
            steps.push(step.clone());
            let old = steps.len().saturating_sub(MAX_STEPS);
            steps.drain(..old);
        })
    }

    /// Removes a step that was undone, or that cannot be undone.
    pub fn remove(&self, step: &UndoStep) -> io::Result<()> {
        self.edit(|steps| {
            // Another window may have added steps since.
            if let Some(at) = steps.iter().rposition(|one| one.is_same(step)) {
                steps.remove(at);
            }
        })
    }

    fn edit(&self, change: impl FnOnce(&mut Vec<UndoStep>)) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            // The steps quote notes, which may be confidential.
            create_own_folder(folder)?;
        }
        let _lock = FileLock::acquire(&self.path)?;
        let mut steps = self.read();
        change(&mut steps);
        let mut text = String::new();
        for step in &steps {
            text.push_str(&serde_json::to_string(step)?);
            text.push('\n');
        }
        replace_file(&self.path, text.as_bytes())
    }
}

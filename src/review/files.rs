//! The files of a review on disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::mode_file::{edit_modes_text, parse_modes};
use super::modes::ModeList;
use super::note::{NoteLine, ReviewNote, end_of_whole_lines, parse_notes};
use crate::diag::Diagnostic;
use crate::storage::{
    FileLock, MAX_GROWING_FILE, append_lines, create_own_folder, read_optional_text, replace_file,
};
use crate::workspace::label_draws::draws_file_path;

/// The name of the file of notes.
const NOTES_FILE: &str = "notes.jsonl";
/// The name of the file of modes.
const MODES_FILE: &str = "modes.yaml";

/// The reason why dicta cannot read or write a file of a review.
#[derive(Debug, Error)]
pub enum ReviewFileError {
    /// The system refuses.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The modes changed on disk since dicta read them.
    #[error("{}: another reader or program changed it since", .0.display())]
    Changed(PathBuf),
    /// The modes have no valid text.
    #[error("{}: {problem}", .path.display())]
    Modes {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A note has no JSON form.
    #[error("the note has no JSON form: {0}")]
    Json(#[from] serde_json::Error),
}

/// The paths of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewFiles {
    /// The folder.
    pub folder: PathBuf,
}

impl ReviewFiles {
    /// Returns the files in a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the file of notes. Its draws are in `notes.draws.jsonl`.
    pub fn notes(&self) -> PathBuf {
        self.folder.join(NOTES_FILE)
    }

    /// Returns the file of modes.
    pub fn modes(&self) -> PathBuf {
        self.folder.join(MODES_FILE)
    }

    /// Returns the record of suggestions with their prompts.
    pub fn suggestions(&self) -> PathBuf {
        self.folder.join("notes.suggestions.jsonl")
    }

    /// Returns all files, which no output may replace.
    pub fn list(&self) -> [PathBuf; 4] {
        [
            self.notes(),
            draws_file_path(&self.notes()),
            self.suggestions(),
            self.modes(),
        ]
    }

    /// Reads both files. A missing file is empty.
    pub fn read(&self) -> Result<ReviewText, ReviewFileError> {
        let notes = read_text(&self.notes())?;
        let modes = read_text(&self.modes())?;
        Ok(ReviewText { notes, modes })
    }

    /// Creates the folder, if it is missing.
    fn create_folder(&self) -> Result<(), ReviewFileError> {
        if self.folder.is_dir() {
            return Ok(());
        }
        create_own_folder(&self.folder).map_err(|source| ReviewFileError::Io {
            path: self.folder.clone(),
            source,
        })
    }
}

/// The texts of both files.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewText {
    /// The notes.
    pub notes: Arc<str>,
    /// The modes.
    pub modes: Arc<str>,
}

impl ReviewText {
    /// Parses both files. Returns no modes if their file does not load.
    pub fn parse(&self, files: &ReviewFiles) -> (Vec<NoteLine>, Option<ModeList>, Vec<Diagnostic>) {
        let (notes, mut problems) = parse_notes(&files.notes(), &self.notes);
        let modes = match parse_modes(&files.modes(), &self.modes) {
            Ok(modes) => Some(modes),
            Err(found) => {
                problems.extend(found);
                None
            }
        };
        (notes, modes, problems)
    }
}

fn read_text(path: &Path) -> Result<Arc<str>, ReviewFileError> {
    match read_optional_text(path, MAX_GROWING_FILE) {
        Ok(text) => Ok(text.unwrap_or_default().into()),
        Err(source) => Err(ReviewFileError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Adds records at the end of the notes. Returns once they are on disk.
pub fn append_notes(files: &ReviewFiles, notes: &[ReviewNote]) -> Result<(), ReviewFileError> {
    let mut lines = String::new();
    for note in notes {
        lines.push_str(&serde_json::to_string(note)?);
        lines.push('\n');
    }
    append_record(files, &files.notes(), &lines)
}

/// Adds lines at the end of a file of the review.
pub(super) fn append_record(
    files: &ReviewFiles,
    path: &Path,
    lines: &str,
) -> Result<(), ReviewFileError> {
    if lines.is_empty() {
        return Ok(());
    }
    files.create_folder()?;
    let whole = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => end_of_whole_lines(text),
        // A file that is not text has no end that dicta can judge.
        Err(_) => bytes.len(),
    };
    append_lines(path, lines, whole).map_err(|source| ReviewFileError::Io {
        path: path.to_owned(),
        source,
    })
}

/// Writes other modes, if the file still has the text `before`. Returns the new text.
pub fn write_modes(
    files: &ReviewFiles,
    before: &Arc<str>,
    modes: &ModeList,
) -> Result<Arc<str>, ReviewFileError> {
    files.create_folder()?;
    let path = files.modes();
    let fail = |source| ReviewFileError::Io {
        path: path.clone(),
        source,
    };
    let _lock = FileLock::acquire(&path).map_err(fail)?;
    if *read_text(&path)? != **before {
        return Err(ReviewFileError::Changed(path));
    }
    let text = edit_modes_text(&path, before, modes).map_err(|problem| ReviewFileError::Modes {
        path: path.clone(),
        problem,
    })?;
    replace_file(&path, text.as_bytes()).map_err(fail)?;
    Ok(text.into())
}

//! The folder of a review: the workspace, or the folder in which a workspace around the file will be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::files::ReviewFiles;
use crate::transcript::FieldMappings;
use crate::workspace::Workspace;
use crate::workspace::scaffold::find_notes_folder;

/// The reason why no review can start.
#[derive(Debug, Error)]
pub enum ReviewPlaceError {
    /// No file of transcripts was named.
    #[error("no file of transcripts: name one, as in `dicta review chats.jsonl`")]
    NoFiles,
    /// A file does not exist.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
}

/// The place of a review.
#[derive(Debug, Clone)]
pub struct ReviewPlace {
    /// The files of notes and modes.
    pub files: ReviewFiles,
    /// The folder to which dicta shortens paths.
    pub root: PathBuf,
    /// The transcript files, absolute.
    pub transcripts: Vec<PathBuf>,
    /// Their field mappings.
    pub maps: FieldMappings,
    /// The workspace, if there is one.
    pub workspace: Option<Arc<Workspace>>,
    /// The ids of transcripts that the reader picked by hand. They come first, and never enter a share.
    pub picks: Vec<String>,
}

impl ReviewPlace {
    /// Returns the place of a workspace.
    pub fn of_workspace(workspace: &Arc<Workspace>) -> Self {
        Self {
            files: ReviewFiles::new(&workspace.root),
            root: workspace.root.clone(),
            transcripts: workspace.transcripts.clone(),
            maps: workspace.field_maps.clone(),
            workspace: Some(Arc::clone(workspace)),
            picks: Vec::new(),
        }
    }

    /// Returns the place of files without a workspace. The folder is the one of the first file.
    pub fn of_files(files: &[PathBuf]) -> Result<Self, ReviewPlaceError> {
        let mut transcripts = Vec::new();
        for file in files {
            let real = file
                .canonicalize()
                .map_err(|_| ReviewPlaceError::Missing(file.clone()))?;
            if !transcripts.contains(&real) {
                transcripts.push(real);
            }
        }
        let first = transcripts.first().ok_or(ReviewPlaceError::NoFiles)?;
        Ok(Self {
            files: ReviewFiles::new(find_notes_folder(first)),
            root: first.parent().map(Path::to_owned).unwrap_or_default(),
            transcripts,
            maps: FieldMappings::default(),
            workspace: None,
            picks: Vec::new(),
        })
    }
}

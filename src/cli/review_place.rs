//! The place of a review, and the review that is read there.
//!
//! Responsible for the paths of `dicta review` and for notes about files that are left out.

use std::path::PathBuf;
use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::workspace::{load_if_valid, load_workspace_without_judges};
use crate::model::{make_visible, pluralize};
use crate::review::{ReviewError, ReviewPlace, ReviewSession, open_session};
use crate::workspace::{self, Workspace};

/// Returns the place of a review: the workspace around the files if they belong to it, else the files themselves.
pub(super) fn find_place(paths: &[PathBuf], cx: &CommandCx) -> Result<ReviewPlace, CommandError> {
    let folder = match paths {
        [] => Some(None),
        [folder] if folder.is_dir() => Some(Some(folder.as_path())),
        _ => None,
    };
    if let Some(folder) = folder {
        let opened = load_workspace_without_judges(folder, cx)?;
        return Ok(ReviewPlace::of_workspace(&opened.workspace));
    }
    if let Some(around) = find_workspace_of(paths, cx) {
        let mut place = ReviewPlace::of_workspace(&around);
        let named: Vec<PathBuf> = paths
            .iter()
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        place.transcripts.retain(|path| named.contains(path));
        return Ok(place);
    }
    ReviewPlace::of_files(paths).map_err(|error| CommandError::usage(error.to_string()))
}

/// Returns the workspace that all files belong to: the one around them, or the one that `W` made.
fn find_workspace_of(paths: &[PathBuf], cx: &CommandCx) -> Option<Arc<Workspace>> {
    let first = paths.first()?;
    let root = workspace::find_workspace_root(first)
        .or_else(|| workspace::scaffold::find_workspace_around(first))?;
    let loaded = load_if_valid(&root, cx)?;
    let belongs = |path: &PathBuf| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        loaded.transcripts.contains(&real)
    };
    paths.iter().all(belongs).then(|| Arc::new(loaded))
}

/// Opens a review.
pub(super) fn open(place: ReviewPlace, cx: &CommandCx) -> Result<ReviewSession, CommandError> {
    let session = open_session(place, &cx.env).map_err(to_command_error)?;
    for (path, why) in &session.catalog.walk.broken_files {
        let text = format!("note: {} was left out: {why}", path.display());
        cx.streams.print_stderr(&make_visible(&text, false));
    }
    if session.catalog.walk.bad_records > 0 {
        cx.streams.print_stderr(&format!(
            "note: {} could not be read and are left out",
            pluralize(session.catalog.walk.bad_records, "record")
        ));
    }
    Ok(session)
}

/// Returns the error of a command.
pub(super) fn to_command_error(error: ReviewError) -> CommandError {
    match error {
        ReviewError::Problems(problems) => CommandError::from_diagnostics(problems),
        other => CommandError::from_error(&other),
    }
}

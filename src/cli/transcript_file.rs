//! Opens a transcript file that is named on the command line, with the field mapping of its workspace if there is
//! one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::CommandError;
use crate::diag::Diagnostic;
use crate::transcript::{FieldMapping, TranscriptError, TranscriptFile};
use crate::workspace::{self, Env};

/// The largest number of links in a chain. Linux has the same limit.
const MAX_LINKS: usize = 40;

/// Opens a file. `map` overrides the field mapping of the workspace.
pub(super) fn open_file(
    path: &Path,
    map: Option<&Arc<FieldMapping>>,
) -> Result<TranscriptFile, CommandError> {
    let of_workspace = match map {
        Some(_) => None,
        None => find_field_map(path).map_err(CommandError::from_diagnostics)?,
    };
    TranscriptFile::open_mapped(path, map.or(of_workspace.as_ref()))
        .map_err(|error| explain_unreadable(&error))
}

/// Converts a reader's error. For a folder, suggests its files.
pub(super) fn explain_unreadable(error: &TranscriptError) -> CommandError {
    match error {
        TranscriptError::NotAFile { path, .. } if path.is_dir() => {
            let folder = path.display().to_string();
            let folder = folder.trim_end_matches('/');
            CommandError::usage(format!("{error}; pass its files instead: {folder}/*.jsonl"))
        }
        error => CommandError::usage(error.to_string()),
    }
}

/// Returns the folders of the workspace around a file and of the one around the current folder, in this order.
fn find_workspace_roots(path: &Path) -> Vec<PathBuf> {
    let absolute_path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let here = std::env::current_dir().ok();
    let mut roots: Vec<PathBuf> = Vec::new();
    for from in [absolute_path.parent().map(Path::to_owned), here]
        .into_iter()
        .flatten()
    {
        roots.extend(workspace::find_workspace_root(&from).filter(|root| !roots.contains(root)));
    }
    roots
}

/// Returns the folders of the workspaces whose files an output may replace: those of [`find_workspace_roots`], and the one
/// around the file behind the links of the output.
pub(super) fn find_output_roots(output: &Path) -> Vec<PathBuf> {
    let mut roots = find_workspace_roots(output);
    let absolute_path = std::path::absolute(output).unwrap_or_else(|_| output.to_owned());
    let of_file = resolve_links(&absolute_path);
    let of_file = of_file.and_then(|file| workspace::find_workspace_root(file.parent()?));
    roots.extend(of_file.filter(|root| !roots.contains(root)));
    roots
}

/// Returns the file behind all links of a path. The file itself may be missing.
fn resolve_links(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(file) = path.canonicalize() {
            return Some(file);
        }
        let Ok(next) = fs::read_link(&path) else {
            break;
        };
        // A relative link starts from its own folder.
        path = path.parent()?.join(next);
    }
    let folder = path.parent()?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

/// Returns the field mapping of a file, from the workspace around the file, else from the one around the current
/// folder.
pub(super) fn find_field_map(path: &Path) -> Result<Option<Arc<FieldMapping>>, Vec<Diagnostic>> {
    let absolute_path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Step: the names under which a workspace may list the file.
    let mut names = vec![absolute_path.clone()];
    // A workspace stores its path without symbolic links, so look the file up under its resolved names, too.
    if let (Some(folder), Some(name)) = (absolute_path.parent(), absolute_path.file_name())
        && let Ok(folder) = folder.canonicalize()
    {
        names.push(folder.join(name));
    }
    names.extend(absolute_path.canonicalize());
    // Step: the workspaces to search.
    for root in find_workspace_roots(&absolute_path) {
        let maps = workspace::read_field_maps(&root, &Env::from_process())?;
        let found = names.iter().find_map(|name| maps.by_path.get(name));
        if let Some(found) = found {
            return Ok(Some(Arc::clone(found)));
        }
    }
    Ok(None)
}

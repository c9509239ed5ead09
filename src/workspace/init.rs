//! `dicta init`: a small workspace that runs at once, with a check that passes and one that fails.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::storage;

/// The files of a new workspace: path and text.
const STARTER_FILES: &[(&str, &str)] = &[
    ("dicta.yaml", include_str!("starter/dicta.yaml")),
    (
        "transcripts/support.jsonl",
        include_str!("starter/support.jsonl"),
    ),
    ("rubrics/refunds.yaml", include_str!("starter/refunds.yaml")),
    ("labels.jsonl", include_str!("starter/labels.jsonl")),
    (".gitignore", include_str!("starter/gitignore")),
];

/// The reason why dicta cannot create the starter workspace.
#[derive(Debug, Error)]
pub enum InitError {
    /// A file of the starter workspace exists already.
    #[error(
        "{} is there already; nothing was written (`dicta init DIR` creates a workspace in another folder)",
        .path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// dicta cannot write a file or create its folder.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Writes the starter workspace into `dir`, which is made if need be; returns the files written. Nothing is overwritten:
/// a file that is there already is a reason to write none, but for a `.gitignore`, which stays.
pub fn init(dir: &Path) -> Result<Vec<PathBuf>, InitError> {
    let wanted = STARTER_FILES
        .iter()
        // Many folders have a `.gitignore` already; it does not prevent the command.
        .filter(|(name, _)| *name != ".gitignore" || !dir.join(name).exists());
    let wanted: Vec<(PathBuf, &str)> = wanted.map(|(name, text)| (dir.join(name), *text)).collect();
    if let Some((path, _)) = wanted
        .iter()
        // A broken link counts as a file too: writing through it would create its target.
        .find(|(path, _)| path.symlink_metadata().is_ok())
    {
        return Err(InitError::Exists { path: path.clone() });
    }
    let mut written = Vec::new();
    for (path, text) in wanted {
        let fail = |source| InitError::Io {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(path.parent().unwrap_or(dir)).map_err(fail)?;
        // Another process may create the file after the check above, so the call itself must refuse.
        storage::create_new_file(&path, text.as_bytes()).map_err(fail)?;
        written.push(path);
    }
    Ok(written)
}

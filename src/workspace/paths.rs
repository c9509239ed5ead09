//! Paths: the folder of a workspace, the data directory, the folder of runs.
//!
//! This is the only module that imports the `directories` crate.

use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use super::variables::{DICTA_DATA_DIR, HOME, XDG_DATA_HOME};
use super::{CONFIG_FILE, Env};
use crate::model::Digest;

/// The folder in the data directory with a folder of runs for each workspace, and in a demo the folder of its runs.
pub const RUNS_FOLDER: &str = "runs";

/// The reason why dicta has not found a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DataDirError {
    /// No variable names a folder, and the system reports no home directory, or one with a relative path.
    #[error(
        "dicta finds no home directory with an absolute path to keep runs in; set {}",
        DICTA_DATA_DIR
    )]
    NoHome,
}

/// The folder with a dicta.yaml at or above `from` (a folder, or a file in one). Absolute.
pub fn find_workspace_root(from: &Path) -> Option<PathBuf> {
    let from = absolute(from);
    from.ancestors()
        .find(|folder| folder.join(CONFIG_FILE).is_file())
        .map(Path::to_owned)
}

/// Returns the folder for runs, the demo and the installation's secret: `DICTA_DATA_DIR`, else the platform's data
/// directory for programs.
pub fn data_dir(env: &Env) -> Result<PathBuf, DataDirError> {
    if let Some(dir) = env.get(DICTA_DATA_DIR) {
        return Ok(absolute(Path::new(dir)));
    }
    // Read from `env` first, so that a test never writes into a real home.
    if let Some(dir) = env
        .get(XDG_DATA_HOME)
        .map(Path::new)
        // The XDG specification says that programs ignore a relative path here.
        .filter(|dir| dir.is_absolute())
    {
        return Ok(dir.join("dicta"));
    }
    directories::ProjectDirs::from("", "", "dicta")
        .map(|dirs| dirs.data_dir().to_owned())
        // Security: with a relative HOME, the workspace itself could contain the list of trusted workspaces.
        .filter(|dir| dir.is_absolute())
        .ok_or(DataDirError::NoHome)
}

/// Returns the folder of a workspace's runs if dicta.yaml does not set one: `<data>/runs/<name>-<8 hex of its path>`.
pub fn default_runs_folder(data_dir: &Path, root: &Path, name: &str) -> PathBuf {
    let digest = Digest::hash_bytes(root.as_os_str().as_encoded_bytes());
    // The digest separates workspaces of the same name; the name helps a person to find the folder.
    let hex = digest.0.get(..8).unwrap_or_default();
    data_dir.join(RUNS_FOLDER).join(format!("{name}-{hex}"))
}

/// Returns an absolute path without `.` and `..`. Symlinks stay.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                // This is textual: with a symlink, the real parent may be another folder. The path stays as
                // the user knows it.
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

/// Returns the absolute path of a path in dicta.yaml. It may be relative to the workspace, absolute, or begin with
/// `~/`.
pub(super) fn resolve(root: &Path, written: &str, env: &Env) -> PathBuf {
    match (written.strip_prefix("~/"), env.get(HOME)) {
        (Some(rest), Some(home)) => absolute(&Path::new(home).join(rest)),
        _ => absolute(&root.join(written)),
    }
}

/// Returns a path as a user would name it: relative to the workspace if it is inside.
pub(super) fn display_path(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_found_upwards() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = absolute(dir.path());
        let deep = root.join("a/b");
        std::fs::create_dir_all(&deep).expect("folders");
        assert_eq!(find_workspace_root(&deep), None);
        std::fs::write(root.join(CONFIG_FILE), "").expect("a file");
        assert_eq!(find_workspace_root(&deep), Some(root.clone()));
        assert_eq!(find_workspace_root(&root.join(CONFIG_FILE)), Some(root));
    }

    #[test]
    fn the_data_directory_is_where_the_environment_says() {
        let env = |pairs: &[(&str, &str)]| {
            Env(pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect())
        };
        let both = env(&[("DICTA_DATA_DIR", "/x/../d"), ("XDG_DATA_HOME", "/xdg")]);
        assert_eq!(data_dir(&both), Ok(PathBuf::from("/d")));
        assert_eq!(
            data_dir(&env(&[("XDG_DATA_HOME", "/xdg")])),
            Ok(PathBuf::from("/xdg/dicta"))
        );
    }

    #[test]
    fn two_workspaces_of_one_name_have_two_run_folders() {
        let a = default_runs_folder(Path::new("/d"), Path::new("/a/beam"), "beam");
        let b = default_runs_folder(Path::new("/d"), Path::new("/b/beam"), "beam");
        assert_ne!(a, b);
        assert!(a.starts_with("/d/runs"));
        assert_eq!(
            a.file_name().map(std::ffi::OsStr::len),
            Some("beam-".len() + 8)
        );
    }
}

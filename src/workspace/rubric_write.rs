//! Changes to rubric files that the user ordered: another threshold, or the rubrics of an earlier revision.
//!
//! Responsible for the limits of a write: only rubric files of the workspace, and only if they still have the text that
//! the change is based on. Either all files change or none. The reverse of a change undoes it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::Workspace;
use crate::diag::yaml::YamlLimits;
use crate::storage::{
    FileLock, create_new_file, read_regular_file, refuse_foreign_links, replace_file,
};

/// The change of one rubric file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RubricFileChange {
    /// The file, relative to the workspace.
    pub path: PathBuf,
    /// The text that the change is based on; `None` if the file does not exist.
    pub before: Option<Arc<str>>,
    /// The new text; `None` removes the file.
    pub after: Option<Arc<str>>,
}

/// The reason why dicta did not change rubric files. All files are as before then.
#[derive(Debug, Error)]
pub enum RubricWriteError {
    /// The file is not a rubric of the workspace.
    #[error("{}: not a rubric file of this workspace", .0.display())]
    NotARubric(PathBuf),
    /// The file has another text than the change expects.
    #[error("{}: the file has changed since; dicta does not overwrite it", .0.display())]
    Changed(PathBuf),
    /// The system refused to read or write.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl RubricFileChange {
    /// Returns the change that undoes this one.
    #[must_use]
    pub fn reverse(&self) -> Self {
        Self {
            path: self.path.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
        }
    }
}

/// Reports whether an earlier text of the file may be restored: a rubric of the workspace, or a missing file in the folder
/// of one.
///
/// The path may come from a recording, so it is not trusted: it must be relative and stay inside the workspace.
pub fn is_restorable_rubric(workspace: &Workspace, path: &Path) -> bool {
    let missing = || fs::symlink_metadata(workspace.root.join(path)).is_err();
    is_inside(path)
        && (is_rubric(workspace, path) || (is_next_to_a_rubric(workspace, path) && missing()))
}

/// Reports whether a path is relative and has no `..`.
fn is_inside(path: &Path) -> bool {
    let mut parts = path.components();
    !path.as_os_str().is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn is_rubric(workspace: &Workspace, path: &Path) -> bool {
    workspace.rubrics.iter().any(|rubric| rubric.path == path)
}

fn is_next_to_a_rubric(workspace: &Workspace, path: &Path) -> bool {
    let is_yaml = path
        .extension()
        .is_some_and(|end| end == "yaml" || end == "yml");
    let mut rubrics = workspace
        .rubrics
        .iter()
        .filter(|rubric| rubric.path.is_relative());
    // The root also holds dicta.yaml, which is not a rubric.
    let in_a_folder = path
        .parent()
        .is_some_and(|folder| !folder.as_os_str().is_empty());
    is_yaml && in_a_folder && rubrics.any(|rubric| rubric.path.parent() == path.parent())
}

/// Writes the changes. If one of them is refused or fails, no file changes.
pub fn write_rubric_files(
    workspace: &Workspace,
    changes: &[RubricFileChange],
) -> Result<(), RubricWriteError> {
    // Held until the last write, so that no other process of dicta writes between the check and the write.
    let _locks = lock_existing_files(workspace, changes)?;
    // All files are checked before the first write.
    for change in changes {
        // The undo of a restored file removes it, also if the workspace has not loaded it.
        let known =
            is_rubric(workspace, &change.path) || is_next_to_a_rubric(workspace, &change.path);
        if !known || !is_inside(&change.path) {
            return Err(RubricWriteError::NotARubric(change.path.clone()));
        }
        let file = workspace.root.join(&change.path);
        refuse_foreign_links(&file).map_err(|source| io_error(&change.path, source))?;
        check_text(&file, change)?;
    }
    for (at, change) in changes.iter().enumerate() {
        if let Err(error) = write(workspace, change) {
            for done in &changes[..at] {
                // Nothing more can be done for a file that cannot be restored; the error names the first cause.
                let _failed = write(workspace, &done.reverse());
            }
            return Err(error);
        }
    }
    Ok(())
}

fn lock_existing_files(
    workspace: &Workspace,
    changes: &[RubricFileChange],
) -> Result<Vec<FileLock>, RubricWriteError> {
    // A set has one order in every process, so two processes never wait for each other.
    let paths: BTreeSet<&Path> = changes.iter().map(|change| &*change.path).collect();
    let mut locks = Vec::new();
    for path in paths {
        let file = workspace.root.join(path);
        // A lock creates a missing file, and a foreign link is refused below.
        if is_inside(path) && file.is_file() && refuse_foreign_links(&file).is_ok() {
            locks.push(FileLock::acquire(&file).map_err(|source| io_error(path, source))?);
        }
    }
    Ok(locks)
}

fn check_text(file: &Path, change: &RubricFileChange) -> Result<(), RubricWriteError> {
    let now = match read_regular_file(file, YamlLimits::GENERATED.file_bytes()) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io_error(&change.path, error)),
    };
    if now.as_deref() == change.before.as_deref().map(str::as_bytes) {
        Ok(())
    } else {
        Err(RubricWriteError::Changed(change.path.clone()))
    }
}

fn write(workspace: &Workspace, change: &RubricFileChange) -> Result<(), RubricWriteError> {
    let file = workspace.root.join(&change.path);
    let done = match (&change.before, &change.after) {
        (Some(_), Some(text)) => replace_file(&file, text.as_bytes()),
        (None, Some(text)) => create_new_file(&file, text.as_bytes()),
        (Some(_), None) => fs::remove_file(&file),
        (None, None) => Ok(()),
    };
    done.map_err(|source| io_error(&change.path, source))
}

fn io_error(path: &Path, source: io::Error) -> RubricWriteError {
    RubricWriteError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::EvalTypeRegistry;
    use crate::workspace::{Env, load};

    const RUBRIC: &str = "evals:\n  - { id: a, type: contains, params: { patterns: [x] } }\n";

    fn workspace(dir: &Path) -> Workspace {
        fs::create_dir_all(dir.join("rubrics")).expect("a folder");
        let config = "transcripts: [t.jsonl]\nrubrics: [rubrics/*.yaml]\n";
        fs::write(dir.join("dicta.yaml"), config).expect("written");
        fs::write(dir.join("t.jsonl"), "").expect("written");
        fs::write(dir.join("rubrics/a.yaml"), RUBRIC).expect("written");
        load(dir, &Env::default(), &EvalTypeRegistry::builtin()).expect("it loads")
    }

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> RubricFileChange {
        RubricFileChange {
            path: path.into(),
            before: before.map(Into::into),
            after: after.map(Into::into),
        }
    }

    #[test]
    fn change_and_its_reverse_write_and_restore_rubrics() {
        let dir = tempfile::tempdir().expect("a folder");
        let workspace = workspace(dir.path());
        let changes = [
            change("rubrics/a.yaml", Some(RUBRIC), Some("evals: []\n")),
            change("rubrics/b.yaml", None, Some(RUBRIC)),
        ];
        write_rubric_files(&workspace, &changes).expect("written");
        let read = |path: &str| fs::read_to_string(dir.path().join(path)).ok();
        assert_eq!(read("rubrics/a.yaml").as_deref(), Some("evals: []\n"));
        assert_eq!(read("rubrics/b.yaml").as_deref(), Some(RUBRIC));
        let reverse: Vec<_> = changes.iter().map(RubricFileChange::reverse).collect();
        write_rubric_files(&workspace, &reverse).expect("undone");
        assert_eq!(read("rubrics/a.yaml").as_deref(), Some(RUBRIC));
        assert_eq!(read("rubrics/b.yaml"), None);
    }

    #[test]
    fn file_changed_by_another_program_stays_and_so_do_all_others() {
        let dir = tempfile::tempdir().expect("a folder");
        let workspace = workspace(dir.path());
        let changes = [
            change("rubrics/b.yaml", None, Some(RUBRIC)),
            change("rubrics/a.yaml", Some("older"), Some("newer")),
        ];
        let error = write_rubric_files(&workspace, &changes).expect_err("refused");
        assert!(matches!(error, RubricWriteError::Changed(_)), "{error}");
        assert!(!dir.path().join("rubrics/b.yaml").exists());
    }

    #[test]
    fn only_rubric_files_inside_the_workspace_are_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let workspace = workspace(dir.path());
        let outside = dir.path().join("rubrics/c.yaml").display().to_string();
        for path in [
            "dicta.yaml",
            "labels.jsonl",
            "../rubrics/x.yaml",
            "rubrics/../dicta.yaml",
            "rubrics/.hidden",
            "tools/t.yaml",
            "",
            outside.as_str(),
        ] {
            assert!(!is_restorable_rubric(&workspace, Path::new(path)), "{path}");
            let error = write_rubric_files(&workspace, &[change(path, None, Some("x"))])
                .expect_err("refused");
            assert!(matches!(error, RubricWriteError::NotARubric(_)), "{error}");
        }
        assert!(is_restorable_rubric(
            &workspace,
            Path::new("rubrics/a.yaml")
        ));
        assert!(is_restorable_rubric(
            &workspace,
            Path::new("rubrics/new.yml")
        ));
    }
}

//! The reader of other files that a rubric refers to: criteria in a file, another rubric.
//!
//! Responsible for the choice of readable files, because dicta sends their content to a judge. It reads only inside
//! the workspace or the rubric's own folder, after following links. It does not read hidden files (`.env`).

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::{files, globs, paths};
use crate::diag::LoadedFile;
use crate::diag::yaml::YamlLimits;
use crate::rubric::{RubricFileError, RubricFiles, normalize_path};

/// The files of a workspace, or of the folder of a rubric outside of a workspace.
#[derive(Debug)]
pub struct WorkspaceRubricFiles {
    /// The folder to which paths are relative.
    root: PathBuf,
    /// The folders whose files may be read, at any depth.
    readable_folders: Vec<PathBuf>,
    read: RefCell<RubricFilesRead>,
}

/// The files that a rubric requested.
#[derive(Debug, Default)]
pub(super) struct RubricFilesRead {
    /// The texts of the files, each once, with the path as the workspace names it.
    pub(super) texts: Vec<LoadedFile>,
    /// The absolute paths, also of files that could not be read, because the workbench watches them too.
    pub(super) referenced: Vec<PathBuf>,
}

impl WorkspaceRubricFiles {
    /// Returns a reader for a rubric of a workspace. `rubric` is absolute.
    pub(super) fn for_workspace(root: &Path, rubric: &Path) -> Self {
        let mut readable_folders = vec![root.to_owned()];
        readable_folders.extend(rubric.parent().map(Path::to_owned));
        Self {
            root: root.to_owned(),
            readable_folders,
            read: RefCell::default(),
        }
    }

    /// Returns a reader for a rubric that is loaded alone. It reads in three folders: the workspace around the
    /// rubric, the rubric's folder, and the current folder. Other tools name paths relative to the current folder.
    pub fn for_standalone_rubric(rubric: &Path) -> Self {
        let rubric = paths::absolute(rubric);
        let mut readable_folders: Vec<PathBuf> =
            paths::find_workspace_root(&rubric).into_iter().collect();
        readable_folders.push(paths::absolute(Path::new(".")));
        readable_folders.extend(rubric.parent().map(Path::to_owned));
        Self {
            root: paths::absolute(Path::new(".")),
            readable_folders,
            read: RefCell::default(),
        }
    }

    pub(super) fn into_read(self) -> RubricFilesRead {
        self.read.into_inner()
    }

    fn check_readable(&self, path: &Path) -> Result<(), RubricFileError> {
        // Security: a shared rubric must not read other files of the user, such as keys.
        check_inside(path, self.readable_folders.iter().map(PathBuf::as_path))?;
        // A link may lead outside. If the file does not exist, reading it reports the error.
        let Ok(real) = path.canonicalize() else {
            return Ok(());
        };
        // The folders may be links too, so both sides are resolved.
        let open: Vec<PathBuf> = self
            .readable_folders
            .iter()
            .filter_map(|folder| folder.canonicalize().ok())
            .collect();
        check_inside(&real, open.iter().map(PathBuf::as_path))
    }
}

/// Checks that a path is inside one of the folders and not hidden there.
fn check_inside<'f>(
    path: &Path,
    mut open: impl Iterator<Item = &'f Path>,
) -> Result<(), RubricFileError> {
    let Some(below) = open.find_map(|folder| path.strip_prefix(folder).ok()) else {
        return Err(RubricFileError::Outside);
    };
    let hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    // Hidden files often hold settings and secrets, such as `.env` and `.git/config`.
    if below.components().any(hidden) {
        return Err(RubricFileError::Hidden);
    }
    Ok(())
}

impl RubricFiles for WorkspaceRubricFiles {
    fn read(&self, path: &Path) -> Result<Arc<str>, RubricFileError> {
        let path = normalize_path(&self.root.join(path));
        self.check_readable(&path)?;
        let shown_path = paths::display_path(&self.root, &path);
        // Several evals may name one file. Reading it once gives all of them the same text.
        let mut read = self.read.borrow_mut();
        if let Some(known) = read.texts.iter().find(|known| known.path == shown_path) {
            return Ok(Arc::clone(&known.text));
        }
        // A missing file is recorded too, so that the workbench loads again when it appears.
        if !read.referenced.contains(&path) {
            read.referenced.push(path.clone());
        }
        let text =
            files::read_text(&path, YamlLimits::GENERATED.file_bytes()).map_err(|error| {
                RubricFileError::Unreadable {
                    source: Arc::new(error),
                }
            })?;
        read.texts.push(LoadedFile {
            path: shown_path,
            text: Arc::clone(&text),
        });
        Ok(text)
    }

    fn list(&self, pattern: &str) -> Vec<PathBuf> {
        let pattern = normalize_path(&self.root.join(pattern));
        if self.check_readable(&pattern).is_err() {
            return Vec::new();
        }
        let found = globs::expand(&self.root, &pattern.to_string_lossy());
        let mut found = found.map(|found| found.files).unwrap_or_default();
        found.sort();
        found
            .iter()
            .map(|path| paths::display_path(&self.root, path))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("it is there");
        for folder in ["w/rubrics", "w/guides", "out"] {
            fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        for file in ["w/guides/tone.md", "w/.env", "out/secret.md"] {
            fs::write(root.join(file), file).expect("a file");
        }
        (dir, root)
    }

    #[test]
    fn rubric_reads_files_only_inside_the_workspace() {
        let (_dir, root) = folder();
        std::os::unix::fs::symlink(root.join("out/secret.md"), root.join("w/guides/link.md"))
            .expect("a link");
        std::os::unix::fs::symlink(root.join("w/.env"), root.join("w/guides/env.md"))
            .expect("a link");
        let beside =
            WorkspaceRubricFiles::for_workspace(&root.join("w"), &root.join("w/rubrics/r.yaml"));
        for (path, expected) in [
            ("rubrics/../guides/tone.md", Ok("w/guides/tone.md")),
            ("guides/none.md", Err("does not exist")),
            ("rubrics/../../out/secret.md", Err("leads out of")),
            ("/etc/passwd", Err("leads out of")),
            ("guides/link.md", Err("leads out of")),
            (".env", Err("is hidden")),
            ("guides/env.md", Err("is hidden")),
            ("guides", Err("is a folder")),
        ] {
            let read = beside.read(Path::new(path));
            match (&read, expected) {
                (Ok(text), Ok(expected)) => assert_eq!(&**text, expected, "{path}"),
                (Err(why), Err(expected)) => {
                    assert!(why.to_string().starts_with(expected), "{path}: {why}");
                }
                _ => panic!("{path}: {read:?}"),
            }
        }
        assert_eq!(beside.list("guides/t*"), [PathBuf::from("guides/tone.md")]);
        let read = beside.into_read();
        assert_eq!(read.texts.len(), 1);
        assert!(
            read.referenced.contains(&root.join("w/guides/none.md")),
            "watched"
        );
    }

    #[test]
    fn rubric_outside_the_workspace_reads_its_own_folder() {
        let (_dir, root) = folder();
        let beside = WorkspaceRubricFiles::for_workspace(&root.join("w"), &root.join("out/r.yaml"));
        assert!(beside.read(&root.join("out/secret.md")).is_ok());
        let alone = WorkspaceRubricFiles::for_standalone_rubric(&root.join("out/r.yaml"));
        assert!(alone.read(&root.join("out/secret.md")).is_ok());
        assert!(alone.read(&root.join("w/guides/tone.md")).is_err());
    }
}

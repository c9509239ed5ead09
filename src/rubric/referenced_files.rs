//! The other files of a rubric: criteria in a file, an eval of another rubric, the evalset of a run config.
//!
//! Responsible for the interface for reading them. Does not read a disk itself: the workspace's loader reads and
//! watches files, and a resumed run reads the texts that the run kept.

use std::error::Error as StdError;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::diag::LoadedFile;

/// The reason why a file that a rubric names cannot be read. The text does not contain the path.
#[derive(Debug, Clone, Error)]
pub enum RubricFileError {
    /// The rubric was loaded without other files.
    #[error("cannot be read here: this rubric was loaded by itself")]
    Standalone,
    /// The run did not keep the file.
    #[error("is not among the kept files")]
    NotKept,
    /// The path leads out of the folders that the rubric may read.
    #[error(
        "leads out of the workspace and of the rubric's folder; what is read is sent to a judge, so copy the file here"
    )]
    Outside,
    /// A part of the path begins with a dot.
    #[error("is hidden; what is read is sent to a judge, so give it a name without a leading dot")]
    Hidden,
    /// The file does not exist, or its text cannot be read.
    #[error("{source}")]
    Unreadable {
        /// The reason of the implementor that reads the disk.
        source: Arc<dyn StdError + Send + Sync>,
    },
}

/// The reader of a rubric's other files.
pub trait RubricFiles {
    /// Returns the text of a file. `path` is the folder of the naming rubric, joined with the path as written:
    /// `rubrics/../guides/tone.md`.
    fn read(&self, path: &Path) -> Result<Arc<str>, RubricFileError>;

    /// Returns the files whose names match a glob (`models/*.yaml`), sorted.
    fn list(&self, pattern: &str) -> Vec<PathBuf>;
}

/// The reader of a rubric without other files. It finds nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoRubricFiles;

impl RubricFiles for NoRubricFiles {
    fn read(&self, _: &Path) -> Result<Arc<str>, RubricFileError> {
        Err(RubricFileError::Standalone)
    }

    fn list(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// The reader of texts that were read before and kept with a run.
#[derive(Debug, Clone, Default)]
pub struct SnapshotFiles(pub Vec<LoadedFile>);

impl RubricFiles for SnapshotFiles {
    fn read(&self, path: &Path) -> Result<Arc<str>, RubricFileError> {
        // Kept files have normalized paths, so the question must have one, too.
        let path = normalize_path(path);
        let kept = self.0.iter().find(|kept| kept.path == path);
        kept.map(|kept| Arc::clone(&kept.text))
            .ok_or(RubricFileError::NotKept)
    }

    fn list(&self, pattern: &str) -> Vec<PathBuf> {
        let pattern = normalize_path(Path::new(pattern));
        let glob = globset::GlobBuilder::new(&pattern.to_string_lossy())
            // `*` does not match `/`, as in the listing of a folder on disk.
            .literal_separator(true)
            .build();
        let Ok(glob) = glob.map(|glob| glob.compile_matcher()) else {
            return Vec::new();
        };
        let names = self.0.iter().map(|kept| &kept.path);
        let mut found: Vec<PathBuf> = names.filter(|path| glob.is_match(path)).cloned().collect();
        // Sorted, as the interface promises.
        found.sort();
        found
    }
}

/// Returns a path without `.`; each `..` removes the folder before it, if there is one.
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match clean.components().next_back() {
                Some(Component::Normal(_)) => {
                    clean.pop();
                }
                // Above the root there is nothing, so `..` has no effect there.
                Some(Component::RootDir | Component::Prefix(_)) => {}
                // Nothing is left to remove: the path leads out of its start.
                _ => clean.push(".."),
            },
            other => clean.push(other),
        }
    }
    clean
}

/// Returns the file that a text names, if the text looks like a path.
///
/// Paths are `file://x.md`, `./x`, `../x`, or one word that begins with `/` or `~/` or ends in `.md`, `.txt`, `.j2`
/// or `.jinja`. A text with several lines or with a variable is not a path.
pub(super) fn parse_file_reference(text: &str) -> Option<&str> {
    const ENDINGS: [&str; 4] = [".md", ".txt", ".j2", ".jinja"];
    let text = text.trim();
    // Criteria of several lines or with variables are texts, never paths.
    if text.contains(['\n', '\r']) || text.contains("{{") || text.contains("{%") {
        return None;
    }
    if let Some(path) = text.strip_prefix("file://") {
        return Some(path);
    }
    // One word only, because a sentence can end with a file name: `Follow guide.md`.
    let one_word = !text.contains(char::is_whitespace);
    let ends = || {
        let lower = text.to_ascii_lowercase();
        ENDINGS
            .iter()
            // The ending alone, such as `.md`, is not a file name.
            .any(|ending| lower.ends_with(ending) && lower.len() > ending.len())
    };
    let begins = || text.starts_with("~/") || (text.starts_with('/') && text.len() > 1);
    let looks =
        text.starts_with("./") || text.starts_with("../") || (one_word && (begins() || ends()));
    looks.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_paths_are_distinguished_from_criteria() {
        for (text, file) in [
            ("file://a b.md", Some("a b.md")),
            ("./tone", Some("./tone")),
            ("../guides/tone.md\n", Some("../guides/tone.md")),
            ("guides/Tone.MD", Some("guides/Tone.MD")),
            ("tone.j2", Some("tone.j2")),
            ("/srv/guides/tone", Some("/srv/guides/tone")),
            ("~/tone", Some("~/tone")),
            ("/ is no path", None),
            ("/", None),
            (".md", None),
            ("Read the file tone.md", None),
            ("./a\n./b", None),
            ("{{ metadata.x }}.md", None),
            ("Polite", None),
        ] {
            assert_eq!(parse_file_reference(text), file, "{text}");
        }
    }

    #[test]
    fn kept_files_are_found_as_they_are_spelled() {
        let kept = SnapshotFiles(vec![LoadedFile {
            path: "guides/tone.md".into(),
            text: "x".into(),
        }]);
        assert!(kept.read(Path::new("rubrics/../guides/./tone.md")).is_ok());
        assert!(kept.read(Path::new("tone.md")).is_err());
        assert_eq!(kept.list("guides/*"), [PathBuf::from("guides/tone.md")]);
        assert_eq!(
            normalize_path(Path::new("../../a/../b")),
            Path::new("../../b")
        );
        assert_eq!(normalize_path(Path::new("/../a")), Path::new("/a"));
    }
}

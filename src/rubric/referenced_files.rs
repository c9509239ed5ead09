//! The other files a rubric is made of: criteria in a file, an eval of another rubric, an evalset beside a run config.
//!
//! Owns the question, never the answer: who loads a workspace reads from the disk and watches, who takes a run up again
//! reads what the run kept.

use std::error::Error as StdError;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

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

/// Where a rubric's other files are read.
pub trait RubricFiles {
    /// The text of a file. `path` is joined to the folder of the rubric that names it, and otherwise as spelled there:
    /// `rubrics/../guides/tone.md`.
    fn read(&self, path: &Path) -> Result<Arc<str>, RubricFileError>;

    /// Files whose names match a glob (`models/*.yaml`), sorted.
    fn list(&self, pattern: &str) -> Vec<PathBuf>;
}

/// A rubric that stands alone.
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

/// Files that were read before: what a run kept.
#[derive(Debug, Clone, Default)]
pub struct SnapshotFiles(pub Vec<(PathBuf, Arc<str>)>);

impl RubricFiles for SnapshotFiles {
    fn read(&self, path: &Path) -> Result<Arc<str>, RubricFileError> {
        let path = normalize_path(path);
        let kept = self.0.iter().find(|(kept, _)| *kept == path);
        kept.map(|(_, text)| Arc::clone(text))
            .ok_or(RubricFileError::NotKept)
    }

    fn list(&self, pattern: &str) -> Vec<PathBuf> {
        let pattern = normalize_path(Path::new(pattern));
        let glob = globset::GlobBuilder::new(&pattern.to_string_lossy())
            .literal_separator(true)
            .build();
        let Ok(glob) = glob.map(|glob| glob.compile_matcher()) else {
            return Vec::new();
        };
        let names = self.0.iter().map(|(path, _)| path);
        let mut found: Vec<PathBuf> = names.filter(|path| glob.is_match(path)).cloned().collect();
        found.sort();
        found
    }
}

/// A path without `.` and with each `..` taken back as far as there is something to take back.
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match clean.components().next_back() {
                Some(Component::Normal(_)) => {
                    clean.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                _ => clean.push(".."),
            },
            other => clean.push(other),
        }
    }
    clean
}

/// The file that a text names, if it looks like one: `file://x.md`, `./x`, `../x`, or one word that begins with `/` or `~/` or
/// ends in `.md`, `.txt`, `.j2` or `.jinja`. A text of several lines, or with something to fill in, is none.
pub(super) fn parse_file_reference(text: &str) -> Option<&str> {
    const ENDINGS: [&str; 4] = [".md", ".txt", ".j2", ".jinja"];
    let text = text.trim();
    if text.contains(['\n', '\r']) || text.contains("{{") || text.contains("{%") {
        return None;
    }
    if let Some(path) = text.strip_prefix("file://") {
        return Some(path);
    }
    let one_word = !text.contains(char::is_whitespace);
    let ends = || {
        let lower = text.to_ascii_lowercase();
        ENDINGS
            .iter()
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
    fn paths_are_told_from_criteria() {
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
        let kept = SnapshotFiles(vec![("guides/tone.md".into(), "x".into())]);
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

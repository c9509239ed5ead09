//! The version of a transcript file, which differs if a new reading could differ.
//!
//! Responsible for everything that decides what a reader returns: the file, the files that it needs, and the field
//! mapping. Does not read a file.

use std::path::Path;
use std::sync::Arc;

use super::field_mapping::{FieldMapping, FieldMappings};
use super::source::find_id_prefix;
use super::unix::FileState;

/// The version of a transcript file. It does not cover the files of formats for which
/// [`super::TranscriptFile::reads_other_files`] returns true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileVersion {
    file: FileState,
    /// The states of the other files that the reading can depend on; `None` for a file that is absent.
    other_files: Vec<Option<FileState>>,
    map: Option<Arc<FieldMapping>>,
    joins_pairs: bool,
    id_prefix: String,
}

impl FieldMappings {
    /// Returns the version of a transcript file; `None` without the file.
    pub(crate) fn find_version(&self, path: &Path) -> Option<FileVersion> {
        let map = self.by_path.get(path);
        // Claude Code describes a sub-agent in this file next to its session.
        let description = path.with_extension("meta.json");
        let mut other_files = vec![find_state(&description)];
        if let Some(map) = map {
            other_files.extend(map.joined_files().map(find_state));
        }
        Some(FileVersion {
            file: find_state(path)?,
            other_files,
            map: map.cloned(),
            joins_pairs: self.joins_pairs,
            id_prefix: find_id_prefix(path),
        })
    }
}

fn find_state(path: &Path) -> Option<FileState> {
    let meta = std::fs::metadata(path).ok()?;
    Some(FileState::from(&meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_differs_after_a_change_of_the_file_or_of_what_it_needs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.jsonl");
        let joined = folder.path().join("questions.jsonl");
        let mut maps = FieldMappings::default();
        assert_eq!(maps.find_version(&path), None);
        std::fs::write(&path, "one").expect("written");
        let first = maps.find_version(&path).expect("a version");
        assert_eq!(maps.find_version(&path), Some(first.clone()));
        // The length differs too, because two writes can have the same time.
        std::fs::write(&path, "other").expect("written");
        let second = maps.find_version(&path).expect("a version");
        assert_ne!(second, first);
        std::fs::write(folder.path().join("a.meta.json"), "{}").expect("written");
        let third = maps.find_version(&path).expect("a version");
        assert_ne!(third, second);
        let text = "output: a\njoin: {as: q, path: questions.jsonl, on: id}\n";
        let mut map = FieldMapping::parse_inline(text).expect("a mapping");
        map.resolve_paths(folder.path());
        maps.by_path.insert(path.clone(), Arc::new(map));
        let mapped = maps.find_version(&path).expect("a version");
        assert_ne!(mapped, third);
        std::fs::write(&joined, "{}").expect("written");
        assert_ne!(maps.find_version(&path), Some(mapped));
    }
}

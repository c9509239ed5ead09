//! The files that an output must not replace.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::links::{LinkTarget, follow_links};

/// The identity of a file under all of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum FileIdentity {
    /// The device and inode, which are equal under symbolic and hard links.
    Existing { device: u64, inode: u64 },
    /// The device and inode of the folder, and the name. A file that dicta reads may be missing now.
    Missing {
        device: u64,
        folder_inode: u64,
        name: OsString,
    },
}

/// A set of files that dicta reads, or writes as another output.
#[derive(Debug, Clone, Default)]
pub struct InputFiles(HashMap<FileIdentity, PathBuf>);

impl InputFiles {
    /// Adds a file. It need not exist.
    pub fn insert(&mut self, path: &Path) {
        if let Some(identity) = identify_file(path) {
            self.0.entry(identity).or_insert_with(|| path.to_owned());
        }
    }

    /// Returns the file of the set that `path` names, as it was added.
    pub fn find(&self, path: &Path) -> Option<&Path> {
        self.0.get(&identify_file(path)?).map(PathBuf::as_path)
    }
}

impl Extend<PathBuf> for InputFiles {
    fn extend<T: IntoIterator<Item = PathBuf>>(&mut self, paths: T) {
        for path in paths {
            self.insert(&path);
        }
    }
}

impl FromIterator<PathBuf> for InputFiles {
    fn from_iter<T: IntoIterator<Item = PathBuf>>(paths: T) -> Self {
        let mut files = Self::default();
        files.extend(paths);
        files
    }
}

/// Returns the identity of a regular file or a missing file. Pipes and devices have none: writing to them replaces
/// nothing.
fn identify_file(path: &Path) -> Option<FileIdentity> {
    let path = match follow_links(path).ok()? {
        LinkTarget::Path(path) => path,
        // A shell may have opened an input: `-o /dev/fd/3 3<labels.jsonl`.
        LinkTarget::OpenFile(_) | LinkTarget::StandardOutput | LinkTarget::StandardError => {
            path.to_owned()
        }
    };
    if let Ok(meta) = fs::metadata(&path) {
        return meta.is_file().then(|| FileIdentity::Existing {
            device: meta.dev(),
            inode: meta.ino(),
        });
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let meta = fs::metadata(folder).ok()?;
    let name = path.file_name()?.to_owned();
    Some(FileIdentity::Missing {
        device: meta.dev(),
        folder_inode: meta.ino(),
        name,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn file_is_found_under_all_of_its_names() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("labels.jsonl"), "x").expect("written");
        symlink("labels.jsonl", at("soft")).expect("linked");
        fs::hard_link(at("labels.jsonl"), at("hard")).expect("linked");
        symlink(".", at("folder")).expect("linked");
        let inputs: InputFiles = [at("labels.jsonl"), at("missing.jsonl")]
            .into_iter()
            .collect();
        for name in ["labels.jsonl", "soft", "hard", "folder/labels.jsonl"] {
            assert_eq!(inputs.find(&at(name)), Some(&*at("labels.jsonl")), "{name}");
        }
        assert_eq!(
            inputs.find(&at("folder/missing.jsonl")),
            Some(&*at("missing.jsonl"))
        );
        assert_eq!(inputs.find(&at("other.jsonl")), None);
        // An open file of this process, as `3<labels.jsonl` of a shell makes it.
        let open = fs::File::open(at("labels.jsonl")).expect("opened");
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        for name in [
            format!("/dev/fd/{number}"),
            format!("/proc/self/fd/{number}"),
        ] {
            // macOS has no /proc.
            if Path::new(&name).exists() {
                let found = inputs.find(Path::new(&name));
                assert_eq!(found, Some(&*at("labels.jsonl")), "{name}");
            }
        }
        drop(open);
        assert_eq!(inputs.find(Path::new("/dev/null")), None);
    }
}

//! The lock of a file that several processes change.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::links::{LinkTarget, follow_links_for_writing};

/// The mode of a new file that only the user may read.
const PRIVATE: u32 = 0o600;
/// The mode of any other new file, before the umask.
const PUBLIC: u32 = 0o666;

/// An exclusive lock of one file, held until it is dropped. The system releases it when the process ends.
///
/// A replaced file has another inode, so a lock counts only while the path still names the locked file.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Waits for the lock of a file, which is created empty if it is missing.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        Self::acquire_with_mode(path, PUBLIC)
    }

    /// As [`Self::acquire`]; a missing file is created with mode 0600, whatever the umask.
    pub fn acquire_private(path: &Path) -> io::Result<Self> {
        Self::acquire_with_mode(path, PRIVATE)
    }

    fn acquire_with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        let LinkTarget::Path(target) = follow_links_for_writing(path)? else {
            return Err(io::Error::other("it is not a file"));
        };
        // Security: a workspace from elsewhere may contain `labels.jsonl` as a link to `~/.bashrc`. A shell would
        // execute parts of the labels that dicta adds there.
        if target.extension() != path.extension() {
            let why = format!(
                "it is a link to {}, whose name has another ending; remove the link, or name the file itself",
                target.display()
            );
            return Err(io::Error::other(why));
        }
        let mut path = target;
        loop {
            let file = OpenOptions::new()
                .read(true)
                // Network file systems lock only files that are open for writing.
                .append(true)
                .create(true)
                .mode(mode)
                .open(&path)?;
            match file.lock() {
                Ok(()) => {}
                // Some network file systems have no locks. The change then relies on the comparison before the rename.
                Err(error) if has_no_locks(&error) => {}
                Err(error) => return Err(error),
            }
            let lock = Self { file, path };
            // The process that had the lock may have replaced the file, and the next one waits for the new file.
            if lock.is_current() {
                return Ok(lock);
            }
            path = lock.path;
        }
    }

    /// Returns true while the path names the locked file.
    pub fn is_current(&self) -> bool {
        let identity = |meta: &fs::Metadata| (meta.dev(), meta.ino());
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(locked), Ok(named)) => identity(&locked) == identity(&named),
            _ => false,
        }
    }
}

/// Returns true if this error means that the file system has no locks.
pub fn has_no_locks(error: &io::Error) -> bool {
    matches!(
        error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error),
        Some(rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK)
    ) || error.kind() == io::ErrorKind::Unsupported
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_of_a_replaced_file_is_not_current() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("labels.jsonl");
        let lock = FileLock::acquire(&path).expect("locked");
        assert!(lock.is_current());
        fs::write(dir.path().join("new"), "x").expect("written");
        fs::rename(dir.path().join("new"), &path).expect("renamed");
        assert!(!lock.is_current());
        // The new file is another file, so its lock is free.
        assert!(FileLock::acquire(&path).expect("locked").is_current());
    }

    #[test]
    fn link_to_a_file_of_another_kind_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let link = |name: &str, target: &str| {
            let path = dir.path().join(name);
            std::os::unix::fs::symlink(target, &path).expect("linked");
            path
        };
        fs::write(dir.path().join(".profile"), "").expect("written");
        for target in [".profile", ".missing", "notes.yaml"] {
            let path = link(&format!("{target}.jsonl"), target);
            let why = FileLock::acquire(&path).expect_err(target).to_string();
            assert!(why.contains("another ending"), "{why}");
        }
        assert!(!dir.path().join(".missing").exists());
        let shared = link("labels.jsonl", "shared.jsonl");
        assert!(FileLock::acquire(&shared).expect("locked").is_current());
    }

    #[test]
    fn locked_changes_of_many_threads_lose_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("counter");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let lock = FileLock::acquire(&path).expect("locked");
                        let mut text = fs::read_to_string(&path).expect("read");
                        text.push('x');
                        crate::storage::replace_file(&path, text.as_bytes()).expect("replaced");
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&path).expect("read").len(), 200);
    }
}

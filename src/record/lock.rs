//! The lock of a run's folder, as other processes see it.
//!
//! Responsible for finding the holder without disturbing it. Does not take locks (see `disk`). The lock is flock, so
//! the system releases it when a recorder is killed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::storage;

/// The size limit of the file of a lock, in bytes. It contains the id of a process.
const MAX_LOCK_BYTES: u64 = 64;

/// The lock file in a run's folder.
pub(super) const LOCK_FILE: &str = "lock";

/// The state of a folder's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockState {
    /// No process records into the folder. A folder without a lock file, or on a file system without locks, has no
    /// recorder.
    Free,
    /// A process records into the folder.
    Held,
    /// The lock cannot be examined, for example because this process has too many open files.
    Unknown,
}

impl LockState {
    /// Returns the state of the lock of a folder.
    pub(super) fn read(dir: &Path) -> Self {
        match open_lock(dir) {
            Ok(lock) => Self::of(&lock),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Free,
            Err(_) => Self::Unknown,
        }
    }

    fn of(lock: &File) -> Self {
        match lock.try_lock_shared() {
            // A shared lock succeeds only if no recorder has its exclusive one. It is given back at once.
            Ok(()) => {
                let _given_back = lock.unlock();
                Self::Free
            }
            Err(TryLockError::WouldBlock) => Self::Held,
            Err(TryLockError::Error(error)) if storage::has_no_locks(&error) => Self::Free,
            Err(TryLockError::Error(_)) => Self::Unknown,
        }
    }
}

/// Returns the id of the process that records into `dir`, 0 if the id is unknown; `None` if no such process is known.
pub(super) fn find_lock_holder(dir: &Path) -> Option<u32> {
    (LockState::read(dir) == LockState::Held).then(|| {
        storage::read_regular_text(&dir.join(LOCK_FILE), MAX_LOCK_BYTES)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            // Between locking and writing its id, the recorder's file is empty.
            .unwrap_or(0)
    })
}

/// Returns true if a process may record into `dir`. A lock that cannot be examined proves nothing.
pub(super) fn may_have_holder(dir: &Path) -> bool {
    LockState::read(dir) != LockState::Free
}

fn open_lock(dir: &Path) -> io::Result<File> {
    // Do not block on a planted fifo.
    OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(dir.join(LOCK_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_that_cannot_be_examined_may_have_a_holder() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(LOCK_FILE);
        let state = || (LockState::read(dir.path()), may_have_holder(dir.path()));
        assert_eq!(state(), (LockState::Free, false));
        // A link to itself cannot be opened, as no file can if the process has too many open files.
        std::os::unix::fs::symlink(LOCK_FILE, &path).expect("a link");
        assert_eq!(state(), (LockState::Unknown, true));
        assert_eq!(find_lock_holder(dir.path()), None);
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "17\n").expect("written");
        assert_eq!(state(), (LockState::Free, false));
        let lock = File::open(&path).expect("a lock");
        lock.lock().expect("held");
        assert_eq!(state(), (LockState::Held, true));
        assert_eq!(find_lock_holder(dir.path()), Some(17));
    }
}

//! The lock of a run's folder, as other processes see it.
//!
//! Responsible for finding the holder without disturbing it. Does not take locks (see `disk`). The lock is flock, so
//! the system releases it when a recorder is killed.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

/// The lock file in a run's folder.
pub(super) const LOCK_FILE: &str = "lock";

/// Returns the id of the process that records into `dir`, 0 if the id is unknown; `None` if there is no such process.
///
/// A folder without a lock file, or on a file system without locks, has no recorder.
pub(super) fn find_lock_holder(dir: &Path) -> Option<u32> {
    let file = File::open(dir.join(LOCK_FILE)).ok()?;
    is_locked(&file).then(|| {
        std::fs::read_to_string(dir.join(LOCK_FILE))
            .ok()
            .and_then(|text| text.trim().parse().ok())
            // Between locking and writing its id, the recorder's file is empty.
            .unwrap_or(0)
    })
}

/// Returns true if a process may record into `dir`. A lock file that cannot be opened proves nothing, for example if this
/// process has too many open files.
pub(super) fn may_have_holder(dir: &Path) -> bool {
    match File::open(dir.join(LOCK_FILE)) {
        Ok(file) => is_locked(&file),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

fn is_locked(lock: &File) -> bool {
    match lock.try_lock_shared() {
        // A shared lock succeeds only if no recorder has its exclusive one. It is given back at once.
        Ok(()) => {
            let _given_back = lock.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        // Some network file systems have no locks.
        Err(TryLockError::Error(_)) => false,
    }
}

//! Who records into a folder: asked without disturbing the one who does.
//!
//! The lock is the system's (flock), so a killed recorder gives it back at once.

use std::fs::{File, TryLockError};
use std::path::Path;

/// What stands in a run's folder beside its log.
pub(super) const LOCK_FILE: &str = "lock";

/// The process that records into `dir`, 0 where it is unknown; `None`: nobody does.
///
/// A folder without a lock file, or on a file system without locks, counts as recorded by nobody.
pub(super) fn find_lock_holder(dir: &Path) -> Option<u32> {
    let file = File::open(dir.join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Ok(()) => {
            let _given_back = file.unlock();
            None
        }
        Err(TryLockError::WouldBlock) => Some(
            std::fs::read_to_string(dir.join(LOCK_FILE))
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0),
        ),
        Err(TryLockError::Error(_)) => None,
    }
}

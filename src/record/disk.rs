//! The file system operations of the recorder, as a trait, so that tests can make the Nth of them fail.
//!
//! Responsible for permissions: folders are 0700 and files 0600 whatever the umask. An existing file or folder,
//! including a planted symlink, is an error and is never opened. Unix only.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::storage::{self, OTHERS_WRITE, STICKY};

/// An append-only file.
pub(super) trait LogFile: Send {
    /// Writes a part of the bytes, as write(2). Returns their number.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Returns once the written bytes survive a loss of power.
    fn sync(&mut self) -> io::Result<()>;
}

/// The lock of a run in progress. Dropping it releases the lock.
pub(super) trait LockGuard: Send {}

/// A file system.
pub(super) trait Disk: Send + Sync + Debug {
    /// Creates a folder and its parents, if missing. Rejects a folder that any user may write to, or that is behind
    /// a link of another user.
    fn ensure_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder that must not exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a file that must not exist, for appending.
    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;
    /// Creates a lock file, locks it, and writes the process id into it.
    fn lock(&self, path: &Path, pid: u32) -> io::Result<Box<dyn LockGuard>>;
    /// Returns once a file or the entries of a folder survive a loss of power.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// Syncs many new files of one folder, and the folder.
    fn sync_new_files(&self, folder: &Path, files: &[PathBuf]) -> io::Result<()> {
        for file in files {
            self.sync(file)?;
        }
        self.sync(folder)
    }
    /// Removes an unused folder, if possible.
    fn remove_unused_dir(&self, path: &Path);
}

/// Writes all bytes. Bytes before a failure stay written.
pub(super) fn write_all(file: &mut dyn LogFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            // Without this case, a full device that reports no error would loop forever.
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            // A signal interrupted the call before any byte was written.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Copies an error, because `io::Error` cannot be cloned.
pub(super) fn copy_io_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// The number of new files above which one sync of the whole file system is used. An fsync for each cost a fifth of
/// the processor time of a run with 1,000 judge cells.
#[cfg(target_os = "linux")]
const MAX_SINGLE_SYNCS: usize = 32;

/// The real file system.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealDisk;

impl LogFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        // The length counts as data; other metadata such as times need not survive.
        self.sync_data()
    }
}

impl LockGuard for File {}

impl Disk for RealDisk {
    fn ensure_dir(&self, path: &Path) -> io::Result<()> {
        storage::refuse_foreign_links(path)?;
        storage::create_private_folder(path)?;
        // The folder may have existed before with other permissions.
        let mode = std::fs::metadata(path)?.mode();
        if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "anybody may write to this folder, so runs recorded in it could be exchanged; `chmod o-w` it first",
            ));
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(create_new(path)?))
    }

    fn lock(&self, path: &Path, pid: u32) -> io::Result<Box<dyn LockGuard>> {
        let mut file = create_new(path)?;
        // Only a reader that looks for the recording process may hold the lock of this new file, for a moment. So
        // waiting is safe.
        file.lock()?;
        file.write_all(format!("{pid}\n").as_bytes())?;
        Ok(Box::new(file))
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    #[cfg(target_os = "linux")]
    fn sync_new_files(&self, folder: &Path, files: &[PathBuf]) -> io::Result<()> {
        let dir = File::open(folder)?;
        // If the file system does not support it, the files are synced one by one.
        if files.len() > MAX_SINGLE_SYNCS && rustix::fs::syncfs(&dir).is_ok() {
            return Ok(());
        }
        for file in files {
            self.sync(file)?;
        }
        dir.sync_all()
    }

    fn remove_unused_dir(&self, path: &Path) {
        // The caller already reports the failure that made the folder unused.
        let _left_behind = std::fs::remove_dir_all(path);
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

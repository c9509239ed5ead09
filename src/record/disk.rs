//! The few things the recorder asks of a file system, as a trait, so that a test can fail the Nth of them.
//!
//! Folders are 0700 and files 0600 whatever the umask; a file or folder that is already there, a planted symlink
//! included, is an error and never opened. Unix only.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file that only grows.
pub(super) trait LogFile: Send {
    /// Writes some of the bytes, as write(2); returns how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Returns once what was written survives a loss of power.
    fn sync(&mut self) -> io::Result<()>;
}

/// What is held while a run is recorded; dropping it gives the lock back.
pub(super) trait LockGuard: Send {}

/// A file system.
pub(super) trait Disk: Send + Sync + Debug {
    /// Makes a folder with its parents, where it is missing. One that anybody may write to is refused.
    fn ensure_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder that is not there yet.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes a file that is not there yet, for appending.
    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;
    /// Makes a lock file, locks it, and notes in it who holds it.
    fn lock(&self, path: &Path, pid: u32) -> io::Result<Box<dyn LockGuard>>;
    /// Returns once a file or the entries of a folder survive a loss of power.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// The same for many new files of one folder, and the folder.
    fn sync_new_files(&self, folder: &Path, files: &[PathBuf]) -> io::Result<()> {
        for file in files {
            self.sync(file)?;
        }
        self.sync(folder)
    }
    /// Removes a folder that was made in vain, if it can.
    fn remove_unused_dir(&self, path: &Path);
}

/// Writes all of it, or says why not; what was written before a failure stays.
pub(super) fn write_all(file: &mut dyn LogFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The same error once more; `io::Error` cannot be cloned.
pub(super) fn copy_io_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// More new files than these are made durable by one order to their file system: an fsync each cost a fifth of the
/// processor time of a run with 1,000 judge cells.
#[cfg(target_os = "linux")]
const MAX_SINGLE_SYNCS: usize = 32;

/// The real one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealDisk;

impl LogFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl LockGuard for File {}

/// Others may write, and no sticky bit keeps them from renaming what is not theirs.
const WORLD_WRITABLE: u32 = 0o0002;
const STICKY_BIT: u32 = 0o1000;

impl Disk for RealDisk {
    fn ensure_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let mode = std::fs::metadata(path)?.mode();
        if mode & WORLD_WRITABLE != 0 && mode & STICKY_BIT == 0 {
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
        // The file is ours alone; only a reader that asks who records may hold it, for a moment, so waiting is safe.
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
        if files.len() > MAX_SINGLE_SYNCS && rustix::fs::syncfs(&dir).is_ok() {
            return Ok(());
        }
        for file in files {
            self.sync(file)?;
        }
        dir.sync_all()
    }

    fn remove_unused_dir(&self, path: &Path) {
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

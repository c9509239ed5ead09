//! The blobs of a run: files in `blobs/`, each named by the BLAKE3 digest of its bytes.
//!
//! Responsible for their integrity: it rejects names that are not digests, and bytes that do not match their name.
//! Does not decide which texts are blobs.
//!
//! A blob is written completely before an event names it. A partial blob after a crash has no event, and a reader
//! detects it by its digest. A temporary file with a rename would need a second change of the folder per turn.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::disk::{Disk, write_all};
use super::failure::RecordingFailure;
use crate::event::{BlobSource, BlobStore};
use crate::model::{Blob, Digest};

/// The folder of blobs in a run's folder.
pub(super) const BLOBS_DIR: &str = "blobs";

/// The maximum size of a blob, in bytes. Larger blobs are neither stored nor read.
pub const MAX_BLOB_BYTES: u64 = 256 << 20;

/// The blobs of a recorded run, read-only.
#[derive(Debug, Clone)]
pub struct FolderBlobs {
    dir: PathBuf,
}

impl FolderBlobs {
    /// Returns the blobs in `run`/blobs. If the folder does not exist, every blob is missing.
    pub fn new(run: &Path) -> Self {
        Self {
            dir: run.join(BLOBS_DIR),
        }
    }
}

impl BlobSource for FolderBlobs {
    fn get(&self, hash: &Digest) -> io::Result<Vec<u8>> {
        // Security: a log may come from someone else, so a digest with `../` must not become a path.
        let name = blob_file_name(hash)?;
        let with_digest = |error: io::Error| {
            io::Error::new(error.kind(), format!("blob {}: {error}", hash.short()))
        };
        // Do not follow a planted symlink, and do not block on a planted fifo.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(self.dir.join(name))
            .map_err(with_digest)?;
        let meta = file.metadata().map_err(with_digest)?;
        if !meta.is_file() {
            return Err(with_digest(invalid_data("it is not a file")));
        }
        let mut bytes = Vec::new();
        // One byte more than the limit shows that the file is too large.
        file.take(MAX_BLOB_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(with_digest)?;
        if bytes.len() as u64 > MAX_BLOB_BYTES {
            return Err(with_digest(invalid_data("it is larger than 256 MiB")));
        }
        // A recording is evidence, so a changed file is an error and not a text.
        if Digest::hash_bytes(&bytes) != *hash {
            return Err(with_digest(invalid_data(
                "its bytes are not what its name says",
            )));
        }
        Ok(bytes)
    }
}

fn invalid_data(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

/// Returns the file name of a digest, if the digest is valid.
fn blob_file_name(hash: &Digest) -> io::Result<&str> {
    let is_digest = hash.0.len() == 64
        && hash
            .0
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_digest.then_some(hash.0.as_str()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "`{}` names no blob: it is not a BLAKE3 digest",
                hash.0.escape_debug()
            ),
        )
    })
}

/// The blobs of a run that is being recorded.
#[derive(Debug)]
pub(super) struct BlobWriter {
    disk: Arc<dyn Disk>,
    reader: FolderBlobs,
    /// The stored digests, by first hex digit. Locked while a blob is written: a caller that learns that a blob is
    /// not new may name it at once.
    stored: [Mutex<HashSet<Digest>>; 16],
    /// The blobs since the last sync. The writer syncs them before the log.
    unsynced: Mutex<Vec<PathBuf>>,
    failure: Arc<RecordingFailure>,
}

impl BlobWriter {
    /// Creates the `blobs` folder of the run in `run`.
    pub(super) fn create(
        disk: Arc<dyn Disk>,
        run: &Path,
        failure: Arc<RecordingFailure>,
    ) -> io::Result<Self> {
        let read = FolderBlobs::new(run);
        // The run's folder is new, so an existing folder of blobs is an error.
        disk.create_dir(&read.dir)?;
        Ok(Self {
            disk,
            reader: read,
            stored: Default::default(),
            unsynced: Mutex::default(),
            failure,
        })
    }

    /// Syncs the blobs since the last call.
    pub(super) fn sync(&self) -> io::Result<()> {
        let stored =
            std::mem::take(&mut *self.unsynced.lock().unwrap_or_else(PoisonError::into_inner));
        // Syncing costs disk time also without new files.
        if stored.is_empty() {
            return Ok(());
        }
        self.disk.sync_new_files(&self.reader.dir, &stored)
    }

    fn store(&self, hash: &Digest, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > MAX_BLOB_BYTES {
            return Err(invalid_data(
                "a text of more than 256 MiB cannot be recorded",
            ));
        }
        // Write under the final name at once: an event names the blob only afterwards, and no event names a file that
        // a kill cut short.
        let path = self.reader.dir.join(blob_file_name(hash)?);
        let mut file = self.disk.create(&path)?;
        write_all(file.as_mut(), bytes)?;
        drop(file);
        self.unsynced
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(path);
        Ok(())
    }
}

/// Returns the number of the lock of a digest: the value of its first hex digit.
fn shard_of(hash: &Digest) -> usize {
    let digit = hash.0.chars().next().and_then(|first| first.to_digit(16));
    digit.map_or(0, |value| value as usize)
}

impl BlobSource for BlobWriter {
    fn get(&self, hash: &Digest) -> io::Result<Vec<u8>> {
        self.reader.get(hash)
    }
}

impl BlobStore for BlobWriter {
    fn put(&self, bytes: &[u8]) -> io::Result<(Blob, bool)> {
        let blob = Blob::from_bytes(bytes);
        // Several locks, so that concurrent cells seldom wait for the writes of each other.
        let mut known = self.stored[shard_of(&blob.hash)]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.contains(&blob.hash) {
            return Ok((blob, false));
        }
        match self.store(&blob.hash, bytes) {
            Ok(()) => {
                known.insert(blob.hash.clone());
                Ok((blob, true))
            }
            Err(error) => {
                // The writer must not write the next event, which may name the missing blob.
                self.failure.report(&self.reader.dir, &error);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::super::disk::RealDisk;
    use super::*;

    fn store(dir: &Path) -> BlobWriter {
        BlobWriter::create(Arc::new(RealDisk), dir, Arc::default()).expect("an empty folder")
    }

    #[test]
    fn a_blob_is_stored_once_and_read_back_by_its_digest() {
        let dir = tempfile::tempdir().expect("a folder");
        let blobs = store(dir.path());
        let (blob, new) = blobs.put(b"page").expect("stored");
        assert!(new);
        assert_eq!(blobs.put(b"page").expect("known"), (blob.clone(), false));
        assert_eq!(
            FolderBlobs::new(dir.path()).get(&blob.hash).expect("there"),
            b"page"
        );
        let file = dir.path().join(BLOBS_DIR).join(&blob.hash.0);
        let mode = std::fs::metadata(file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let files = std::fs::read_dir(dir.path().join(BLOBS_DIR)).expect("a folder");
        assert_eq!(files.count(), 1, "nothing temporary is left");
    }

    #[test]
    fn each_first_digit_of_a_digest_has_its_own_lock() {
        let shards = "0123456789abcdef"
            .chars()
            .map(|first| shard_of(&Digest(first.to_string().repeat(64))));
        assert_eq!(shards.collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn invalid_digests_never_reach_the_file_system() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join(BLOBS_DIR)).expect("made");
        std::fs::write(dir.path().join("events.jsonl"), "secret").expect("written");
        for name in ["../events.jsonl", "", "a", &"A".repeat(64), &"/".repeat(64)] {
            let error = FolderBlobs::new(dir.path())
                .get(&Digest(name.to_owned()))
                .expect_err("no digest");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }

    #[test]
    fn changed_blobs_and_symlinks_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let blobs = store(dir.path());
        let (blob, _) = blobs.put(b"what was judged").expect("stored");
        let file = dir.path().join(BLOBS_DIR).join(&blob.hash.0);
        std::fs::write(&file, "what was never judged").expect("written");
        let error = blobs.get(&blob.hash).expect_err("exchanged");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);

        std::fs::write(dir.path().join("elsewhere"), "what was judged").expect("written");
        std::fs::remove_file(&file).expect("removed");
        symlink(dir.path().join("elsewhere"), &file).expect("linked");
        assert!(blobs.get(&blob.hash).is_err(), "a link is not followed");
    }
}

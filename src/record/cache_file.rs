//! The file that names the cache keys of each log, so that a run reads only new and changed logs at its start.
//!
//! Responsible for the format. The file has no verdicts: dicta reads a verdict from its log, with all checks. So no wrong
//! or stale file can give a question the verdict of another one. dicta never needs the file. It builds the file again if the
//! file is absent, damaged, of another version or of another installation.
//!
//! ```text
//! .cache.index   0600, next to the runs
//!   "dicta cache 1 0.1.0\n"   the versions of this format and of dicta: another dicta can find other verdicts in a log
//!   keyed BLAKE3 of the rest, 32 bytes
//!   the logs: postcard of a list of `IndexedLog`
//! ```
//! The key is that of the installation, so no one else can hide the newest verdict of a question behind an older one.

use std::io;

use serde::{Deserialize, Serialize};

use super::log_version::LogVersion;
use super::{RecordKey, RunStore};
use crate::model::{Digest, RunId};
use crate::storage;

/// The name of the file.
pub(super) const CACHE_INDEX_FILE: &str = ".cache.index";

const MAGIC: &str = concat!("dicta cache 1 ", env!("CARGO_PKG_VERSION"), "\n");

/// A part of the digest of a cache key. Another key with the same part only costs the time to read a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct KeyHint(u64);

impl KeyHint {
    pub(super) fn of(key: &Digest) -> Self {
        let digest = blake3::hash(key.0.as_bytes());
        let bytes = digest.as_bytes().iter().take(8);
        Self(bytes.fold(0, |hint, byte| hint << 8 | u64::from(*byte)))
    }
}

/// A log, with the keys of the verdicts in it that the cache may use.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IndexedLog {
    pub(super) run: RunId,
    /// The version of the log that was read.
    pub(super) log: LogVersion,
    pub(super) keys: Vec<KeyHint>,
}

/// Returns the logs of the file, in no order. Without a valid file, there are none.
pub(super) fn read_index(store: &RunStore, key: &RecordKey) -> Vec<IndexedLog> {
    let parse = || {
        // A link or a pipe in place of the file is not read.
        let path = store.dir.join(CACHE_INDEX_FILE);
        let bytes = storage::read_signed_file(&path, u64::MAX).ok()?;
        let rest = bytes.strip_prefix(MAGIC.as_bytes())?;
        let (digest, rest) = rest.split_first_chunk::<{ blake3::OUT_LEN }>()?;
        if key.hash_cache_index(rest) != *digest {
            return None;
        }
        postcard::from_bytes(rest).ok()
    };
    parse().unwrap_or_default()
}

/// Writes the file.
pub(super) fn write_index(
    store: &RunStore,
    key: &RecordKey,
    logs: &[IndexedLog],
) -> io::Result<()> {
    let rest = postcard::to_stdvec(logs).map_err(io::Error::other)?;
    let mut file = MAGIC.as_bytes().to_vec();
    file.extend_from_slice(&key.hash_cache_index(&rest));
    file.extend_from_slice(&rest);
    storage::replace_signed_file(&store.dir.join(CACHE_INDEX_FILE), &file)
}

//! The key of recordings, derived from the secret of this installation.
//!
//! Responsible for finding the secret. Does not sign or check records: `record` does.

use std::path::PathBuf;

use crate::record::RecordKey;
use crate::workspace::{
    Env, SECRET_FILE, data_dir, load_installation_secret, load_or_create_installation_secret,
};

/// Returns the key with which this installation signs its recordings; `None` if it has no secret yet. Writes nothing.
pub fn find_record_key(env: &Env) -> Option<RecordKey> {
    let secret = load_installation_secret(&secret_path(env)?).ok()?;
    Some(RecordKey::derive(secret.as_bytes()))
}

/// As [`find_record_key`], but creates the secret if there is none. Without a writable data folder, the run is recorded
/// without signatures, and the cache uses nothing of it.
pub(super) fn find_or_create_record_key(env: &Env) -> Option<RecordKey> {
    let secret = load_or_create_installation_secret(&secret_path(env)?).ok()?;
    Some(RecordKey::derive(secret.as_bytes()))
}

fn secret_path(env: &Env) -> Option<PathBuf> {
    Some(data_dir(env).ok()?.join(SECRET_FILE))
}

//! The user's trust in a workspace.
//!
//! Responsible for two questions. May dicta load a workspace that other users own or can write? May a run send a
//! variable to an address that is not its provider's own? The user answers with `dicta trust` or on a terminal, and
//! the module `store` records the answer. Does not ask: callers do.

mod accounts;
mod ownership;
mod permissions;
mod store;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Env;
use crate::diag::Diagnostic;
use crate::model::quote_shell_path;
use accounts::Accounts;
use ownership::FileOwner;

pub use ownership::UnsafeFile;
pub(super) use permissions::list_permissions;
pub use permissions::{
    Permission, SendPermission, find_new_permissions, list_judge_sends, list_prompt_sends,
    list_shown_variables, list_tool_sends, list_workspace_sends,
};
pub use store::{TRUST_FILE, TRUST_LOCK_FILE, TrustError, TrustFile, TrustedWorkspace};

/// The code of the error about a workspace that other users own or can write.
pub const UNTRUSTED_CODE: &str = "untrusted";

/// Returns an error for each of these files and the folders above them that another user owns or can write. A trusted workspace
/// has none.
pub(super) fn check_owners(root: &Path, files: &[PathBuf], env: &Env) -> Vec<Diagnostic> {
    let found = find_unsafe_files(files);
    if found.is_empty() {
        return Vec::new();
    }
    // The file of trusted workspaces is read only if the answer depends on it.
    let trusted = match TrustFile::read(env) {
        Ok(trusted) => trusted,
        Err(why) => return vec![Diagnostic::error(UNTRUSTED_CODE, root, why.to_string())],
    };
    let entry = trusted.find(root);
    let refused = found
        .into_iter()
        .filter(|file| !entry.is_some_and(|entry| entry.accepts(file)));
    refused.map(|file| refuse(root, &file)).collect()
}

/// Returns those of these files and of the folders above them that another user owns or can write.
pub(super) fn find_unsafe_files(files: &[PathBuf]) -> Vec<UnsafeFile> {
    ownership::find_unsafe_files(files, &Accounts::from_system(), &FileOwner::read)
}

fn refuse(root: &Path, file: &UnsafeFile) -> Diagnostic {
    let what = match (file.foreign_owner, file.writable) {
        (Some(_), _) => "dicta does not load what another user owns",
        (None, _) => "dicta does not load what other users can write",
    };
    // The whole path, because the folder may be above the one that the user knows.
    let message = format!("{}; {what}", file.description);
    Diagnostic::error(UNTRUSTED_CODE, &file.path, message).help(format!(
        "if you trust this workspace, run `{}`",
        trust_command(root)
    ))
}

/// Returns the command that trusts a workspace.
pub fn trust_command(root: &Path) -> String {
    format!("dicta trust {}", quote_shell_path(root))
}

/// Returns those of these secrets and addresses that the user has not allowed for the workspace.
pub fn find_unconfirmed_sends(
    root: &Path,
    sends: BTreeSet<SendPermission>,
    env: &Env,
) -> Result<Vec<SendPermission>, TrustError> {
    if sends.is_empty() {
        return Ok(Vec::new());
    }
    let trusted = TrustFile::read(env)?;
    let entry = trusted.find(root);
    let is_new = |send: &SendPermission| !entry.is_some_and(|entry| entry.sends.contains(send));
    Ok(sends.into_iter().filter(is_new).collect())
}

/// Records that runs of a workspace may send these secrets to these addresses.
pub fn allow_sends(root: &Path, sends: &[SendPermission], env: &Env) -> Result<(), TrustError> {
    TrustFile::update(env, |file| {
        file.entry(root)?.sends.extend(sends.iter().cloned());
        Ok(())
    })?
}

/// Records that the user trusts a workspace: the owners and modes of these files, and these secrets and addresses.
pub fn trust_workspace(
    root: &Path,
    files: &[UnsafeFile],
    sends: &BTreeSet<SendPermission>,
    env: &Env,
) -> Result<(), TrustError> {
    TrustFile::update(env, |file| {
        let entry = file.entry(root)?;
        for file in files {
            entry.accept(file);
        }
        entry.sends.extend(sends.iter().cloned());
        Ok(())
    })?
}

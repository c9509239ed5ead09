//! The file `trust.json` in the data directory, which records what the user trusts.
//!
//! Responsible for reading it safely and for writing it as a whole. Owns its format. An entry belongs to a folder and
//! its owner, so another user's folder at the same path is not trusted.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::super::{Env, paths};
use super::accounts::Accounts;
use super::ownership::{FileOwner, UnsafeFile};
use super::permissions::SendPermission;
use crate::storage::{self, FileLock};
use crate::workspace::DataDirError;

/// The size limit of the file, in bytes. An entry of a workspace has less than one kilobyte.
const MAX_TRUST_BYTES: u64 = 16 << 20;

/// The file's name in the data directory.
pub const TRUST_FILE: &str = "trust.json";
/// The file that writers lock, because the trust file itself is replaced.
pub const TRUST_LOCK_FILE: &str = "trust.lock";

/// The reason why dicta can't read or write what the user trusts.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The data directory is unknown.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The file can't be read or written.
    #[error("{}: {why}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        why: io::Error,
    },
    /// The file is not a trust file.
    #[error(
        "{}: not a list of trusted workspaces ({why}); delete the file, and run `dicta trust` for your workspaces again",
        .path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        why: serde_json::Error,
    },
    /// Other users could have written the file.
    #[error(
        "{}: {description}: other users can change what dicta trusts; delete the file, and run `dicta trust` again",
        .path.display()
    )]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// The owner and the mode.
        description: String,
    },
    /// The path of a workspace can't be written to the file.
    #[error("{}: the path is not Unicode, so dicta can't record that you trust it; rename the folder", .0.display())]
    NotUnicode(PathBuf),
}

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustFile {
    /// The trusted workspaces.
    pub workspaces: Vec<TrustedWorkspace>,
}

/// The trust in one workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedWorkspace {
    /// The canonical path of the folder.
    pub path: String,
    /// The user id of the folder's owner.
    pub owner: u32,
    /// The other users whose files the workspace may contain.
    #[serde(default)]
    pub owners: BTreeSet<u32>,
    /// True if other users may write files of the workspace.
    #[serde(default)]
    pub writable: bool,
    /// The secrets that runs may send, and their addresses.
    #[serde(default)]
    pub sends: BTreeSet<SendPermission>,
}

impl TrustedWorkspace {
    /// Returns true if the user accepted the owner and the mode of this file.
    pub(super) fn accepts(&self, file: &UnsafeFile) -> bool {
        let owner = file
            .foreign_owner
            .is_none_or(|owner| self.owners.contains(&owner));
        owner && (self.writable || !file.writable)
    }

    /// Adds the owner and the mode of this file.
    pub(super) fn accept(&mut self, file: &UnsafeFile) {
        self.owners.extend(file.foreign_owner);
        self.writable |= file.writable;
    }
}

impl TrustFile {
    /// Reads the file; a missing file trusts nothing.
    pub fn read(env: &Env) -> Result<Self, TrustError> {
        Self::read_at(&paths::data_dir(env)?.join(TRUST_FILE))
    }

    fn read_at(path: &Path) -> Result<Self, TrustError> {
        let io = |why| TrustError::Io {
            path: path.to_owned(),
            why,
        };
        let text = storage::read_optional_text(path, MAX_TRUST_BYTES).map_err(io)?;
        let Some(text) = text else {
            return Ok(Self::default());
        };
        // Security: a file that another user can write would trust whatever that user wants.
        let owner = FileOwner::read(path).map_err(io)?;
        let accounts = Accounts::from_system();
        if !accounts.is_trusted_owner(owner.uid) || owner.mode & 0o022 != 0 {
            return Err(TrustError::NotPrivate {
                path: path.to_owned(),
                description: format!(
                    "owned by {}, mode {:03o}",
                    accounts.describe_user(owner.uid),
                    owner.mode
                ),
            });
        }
        serde_json::from_str(&text).map_err(|why| TrustError::Format {
            path: path.to_owned(),
            why,
        })
    }

    /// Returns the entry of a workspace, by its canonical folder and the folder's owner.
    pub fn find(&self, root: &Path) -> Option<&TrustedWorkspace> {
        let (path, owner) = key_of(root).ok()?;
        self.workspaces
            .iter()
            .find(|known| known.path == path && known.owner == owner)
    }

    /// Changes the file while no other process does.
    pub fn update<T>(env: &Env, change: impl FnOnce(&mut Self) -> T) -> Result<T, TrustError> {
        let folder = paths::data_dir(env)?;
        let io = |path: &Path, why| TrustError::Io {
            path: path.to_owned(),
            why,
        };
        storage::create_own_folder(&folder).map_err(|why| io(&folder, why))?;
        let lock = folder.join(TRUST_LOCK_FILE);
        // Held until the new file is in place.
        let _held = FileLock::acquire_private(&lock).map_err(|why| io(&lock, why))?;
        let path = folder.join(TRUST_FILE);
        let mut content = Self::read_at(&path)?;
        let result = change(&mut content);
        content.write(&path).map_err(|why| io(&path, why))?;
        Ok(result)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        match storage::create_private_file(path, text.as_bytes()) {
            // A replaced file keeps its mode, which is 0600 since its creation.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                storage::replace_file(path, text.as_bytes())
            }
            done => done,
        }
    }

    /// Returns the entry of a workspace, and adds it if it does not exist.
    pub(super) fn entry(&mut self, root: &Path) -> Result<&mut TrustedWorkspace, TrustError> {
        let (path, owner) = key_of(root)?;
        let at = self
            .workspaces
            .iter()
            .position(|known| known.path == path && known.owner == owner);
        let at = at.unwrap_or_else(|| {
            self.workspaces.push(TrustedWorkspace {
                path,
                owner,
                ..TrustedWorkspace::default()
            });
            self.workspaces.len() - 1
        });
        Ok(&mut self.workspaces[at])
    }
}

/// Returns the path and the owner that identify a workspace.
fn key_of(root: &Path) -> Result<(String, u32), TrustError> {
    let text = root
        .to_str()
        .ok_or_else(|| TrustError::NotUnicode(root.to_owned()))?;
    let owner = FileOwner::read(root).map_err(|why| TrustError::Io {
        path: root.to_owned(),
        why,
    })?;
    Ok((text.to_owned(), owner.uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn env(folder: &Path) -> Env {
        Env([(
            "DICTA_DATA_DIR".to_owned(),
            folder.join("data").display().to_string(),
        )]
        .into())
    }

    fn send(address: &str) -> SendPermission {
        SendPermission {
            secret: "K".to_owned(),
            address: address.to_owned(),
        }
    }

    #[test]
    fn trust_file_is_private_and_keeps_every_update() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = env(folder.path());
        for address in ["http://a.example", "http://b.example"] {
            TrustFile::update(&env, |file| {
                let entry = file.entry(folder.path()).expect("its owner is known");
                entry.sends.insert(send(address));
            })
            .expect("it is written");
        }
        let file = TrustFile::read(&env).expect("it is there");
        let entry = file.find(folder.path()).expect("it is trusted");
        assert_eq!(entry.sends.len(), 2);
        assert_eq!(file.workspaces.len(), 1);
        let mode = |name: &str| {
            let meta = folder.path().join(name).metadata().expect("it exists");
            meta.permissions().mode() & 0o777
        };
        assert_eq!((mode("data/trust.json"), mode("data")), (0o600, 0o700));
        assert_eq!(mode("data/trust.lock"), 0o600);
    }

    #[test]
    fn trust_belongs_to_the_folder_and_its_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = env(folder.path());
        TrustFile::update(&env, |file| {
            file.entry(folder.path()).expect("known").owner += 1;
        })
        .expect("it is written");
        let file = TrustFile::read(&env).expect("it is there");
        assert_eq!(file.workspaces.len(), 1);
        assert_eq!(file.find(folder.path()), None, "another user's folder");
        assert_eq!(file.find(&folder.path().join("data")), None);
    }

    #[test]
    fn trust_file_that_others_can_write_trusts_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = env(folder.path());
        TrustFile::update(&env, |_| ()).expect("it is written");
        let path = folder.path().join("data/trust.json");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).expect("mode");
        let error = TrustFile::read(&env).expect_err("others can write it");
        assert!(error.to_string().contains("mode 620"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
        fs::write(&path, "{}").expect("written");
        let error = TrustFile::read(&env).expect_err("it is not a trust file");
        assert!(error.to_string().contains("delete the file"), "{error}");
    }
}

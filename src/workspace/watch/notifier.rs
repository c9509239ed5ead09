//! The watches on folders. The only importer of notify.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, EventKind, RemoveKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// The maximum number of paths to remember; with more, everything is checked.
const MAX_PATHS: usize = 1000;

/// The notifications since the last call of [`ChangeInbox::take`].
#[derive(Debug, Default)]
pub(super) struct FileChanges {
    /// The paths of the events.
    pub(super) paths: Vec<PathBuf>,
    /// True if events may be missing or a full check was requested.
    pub(super) everything: bool,
    /// Removed and renamed paths. Watched folders among them need a new watch.
    pub(super) removed_folders: BTreeSet<PathBuf>,
    /// True if more paths were removed than dicta remembers, so that every watch must be renewed.
    pub(super) renew_all: bool,
}

/// The place where the system's notifications arrive.
#[derive(Debug, Default)]
pub(super) struct ChangeInbox {
    changes: Mutex<FileChanges>,
    pub(super) notified: Notify,
}

impl ChangeInbox {
    /// Requests a check of everything.
    pub(super) fn mark_everything(&self) {
        self.update_changes(|changes| changes.everything = true);
    }

    /// Takes the notifications since the last call.
    pub(super) fn take(&self) -> FileChanges {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *changes)
    }

    fn update_changes(&self, change: impl FnOnce(&mut FileChanges)) {
        change(&mut self.changes.lock().unwrap_or_else(PoisonError::into_inner));
        self.notified.notify_one();
    }

    fn add_event(&self, event: notify::Result<notify::Event>) {
        // An error of the system may mean lost events.
        let Ok(event) = event else {
            return self.mark_everything();
        };
        // dicta's own reads open and close files, so only the end of a write counts.
        if let EventKind::Access(access) = event.kind
            && access != AccessKind::Close(AccessMode::Write)
        {
            return;
        }
        let rescan = event.need_rescan();
        let removed = matches!(
            event.kind,
            EventKind::Remove(RemoveKind::Folder | RemoveKind::Any | RemoveKind::Other)
                | EventKind::Modify(notify::event::ModifyKind::Name(_))
        );
        self.update_changes(|changes| {
            if removed {
                changes.removed_folders.extend(event.paths.iter().cloned());
            }
            changes.paths.extend(event.paths);
            if rescan || changes.paths.len() > MAX_PATHS {
                changes.paths.clear();
                changes.everything = true;
            }
            // A folder that is missing here would keep a dead watch, so beyond the limit all watches are renewed.
            if changes.removed_folders.len() > MAX_PATHS {
                changes.removed_folders.clear();
                changes.renew_all = true;
                changes.everything = true;
            }
        });
    }
}

/// The watches on folders.
pub(super) struct FolderWatches {
    watcher: RecommendedWatcher,
    watched: HashMap<PathBuf, FolderIdentity>,
}

/// The identity of a folder. A new folder of the same name has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderIdentity {
    device: u64,
    inode: u64,
}

impl FolderWatches {
    /// Creates an empty set of watches. The error is the end of a sentence.
    pub(super) fn new(inbox: std::sync::Arc<ChangeInbox>) -> Result<Self, String> {
        let watcher = notify::recommended_watcher(move |event| inbox.add_event(event))
            .map_err(explain_error)?;
        Ok(Self {
            watcher,
            watched: HashMap::new(),
        })
    }

    /// Drops the watch of a removed folder. Its watch does not cover a new folder of the same name.
    pub(super) fn forget_folder(&mut self, folder: &Path) {
        if self.watched.remove(folder).is_some() {
            // The system may already have dropped the watch.
            let _forgotten = self.watcher.unwatch(folder);
        }
    }

    /// Drops all watches. The next call of [`Self::watch_folders`] renews them.
    pub(super) fn forget_all(&mut self) {
        let folders: Vec<PathBuf> = self.watched.keys().cloned().collect();
        for folder in folders {
            self.forget_folder(&folder);
        }
    }

    /// Watches exactly these folders. Returns true if one of them is new.
    pub(super) fn watch_folders(&mut self, wanted: &BTreeSet<PathBuf>) -> Result<bool, String> {
        // A folder of the same name may be a new one; only device and inode show that.
        let idle: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|(path, known)| {
                !wanted.contains(*path) || folder_identity(path) != Some(**known)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in idle {
            self.forget_folder(&path);
        }
        let mut new = false;
        for path in wanted {
            if self.watched.contains_key(path) {
                continue;
            }
            // A missing folder is skipped: its parent is watched too.
            let Some(known) = folder_identity(path) else {
                continue;
            };
            match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.clone(), known);
                    new = true;
                }
                // The folder disappeared meanwhile; its parent reports when it is back.
                Err(_) if folder_identity(path).is_none() => {}
                // Parents of the workspace may be unreadable. They only report that it was created again, so dicta
                // continues without them.
                Err(error) if is_denied(&error) => {}
                Err(error) => return Err(explain_error(error)),
            }
        }
        Ok(new)
    }
}

fn is_denied(error: &notify::Error) -> bool {
    matches!(&error.kind, notify::ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::PermissionDenied)
}

fn folder_identity(path: &Path) -> Option<FolderIdentity> {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
    Some(FolderIdentity {
        device: meta.dev(),
        inode: meta.ino(),
    })
}

fn explain_error(error: notify::Error) -> String {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "the system's limit of watched files is reached".to_owned()
        }
        notify::ErrorKind::Io(io) => io.to_string(),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remove_folder(inbox: &ChangeInbox, path: &str) {
        let event = notify::Event::new(EventKind::Remove(RemoveKind::Folder));
        inbox.add_event(Ok(event.add_path(PathBuf::from(path))));
    }

    #[test]
    fn repeated_removals_are_remembered_once() {
        let inbox = ChangeInbox::default();
        for _ in 0..=MAX_PATHS {
            remove_folder(&inbox, "/w/a");
            remove_folder(&inbox, "/w/b");
        }
        let changes = inbox.take();
        assert_eq!(changes.removed_folders.len(), 2);
        assert!(!changes.renew_all, "two folders are below the limit");
    }

    #[test]
    fn too_many_removals_renew_every_watch() {
        let inbox = ChangeInbox::default();
        for number in 0..=MAX_PATHS {
            remove_folder(&inbox, &format!("/w/{number}"));
        }
        let changes = inbox.take();
        assert!(changes.removed_folders.is_empty());
        assert!(changes.renew_all && changes.everything);
    }
}

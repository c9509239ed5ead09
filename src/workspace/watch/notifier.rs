//! The watches on folders. The only importer of notify.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use indexmap::IndexSet;
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
    /// Watched folders that no longer exist.
    pub(super) removed_folders: IndexSet<PathBuf>,
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
        self.update_changes(|heard| heard.everything = true);
    }

    /// Takes the notifications since the last call.
    pub(super) fn take(&self) -> FileChanges {
        let mut heard = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *heard)
    }

    fn update_changes(&self, change: impl FnOnce(&mut FileChanges)) {
        change(&mut self.changes.lock().unwrap_or_else(PoisonError::into_inner));
        self.notified.notify_one();
    }

    fn add_event(&self, event: notify::Result<notify::Event>) {
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
        self.update_changes(|heard| {
            if removed {
                // This set stays complete, because each of the folders needs a new watch.
                heard.removed_folders.extend(event.paths.iter().cloned());
            }
            heard.paths.extend(event.paths);
            if rescan || heard.paths.len() > MAX_PATHS {
                heard.paths.clear();
                heard.everything = true;
            }
        });
    }
}

/// The watches on folders.
pub(super) struct FolderWatches {
    watcher: RecommendedWatcher,
    watched: HashMap<PathBuf, (u64, u64)>,
}

impl FolderWatches {
    /// Creates an empty set of watches. The error is the end of a sentence.
    pub(super) fn new(ear: std::sync::Arc<ChangeInbox>) -> Result<Self, String> {
        let watcher = notify::recommended_watcher(move |event| ear.add_event(event))
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

    /// Watches exactly these folders. Returns true if one of them is new.
    pub(super) fn watch_folders(&mut self, wanted: &BTreeSet<PathBuf>) -> Result<bool, String> {
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

fn folder_identity(path: &Path) -> Option<(u64, u64)> {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino()))
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

    #[test]
    fn each_removed_folder_is_remembered_once() {
        let inbox = ChangeInbox::default();
        for n in 0..3 * MAX_PATHS {
            let removed = notify::Event::new(EventKind::Remove(RemoveKind::Folder));
            inbox.add_event(Ok(removed.add_path(format!("/w/{}", n % 2).into())));
        }
        let changes = inbox.take();
        assert!(changes.everything);
        let removed: Vec<&Path> = changes
            .removed_folders
            .iter()
            .map(PathBuf::as_path)
            .collect();
        assert_eq!(removed, [Path::new("/w/0"), Path::new("/w/1")]);
    }
}

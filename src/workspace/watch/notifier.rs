//! Which folders the system tells us about: the one place that knows notify.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, EventKind, RemoveKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// More paths than this are not told apart: everything is looked at.
const MAX_PATHS: usize = 1000;

/// What was heard since it was last asked for.
#[derive(Debug, Default)]
pub(super) struct FileChanges {
    /// Where something happened.
    pub(super) paths: Vec<PathBuf>,
    /// Something may have been missed, or was asked for: look at everything.
    pub(super) everything: bool,
    /// Folders that are gone, with what watched them.
    pub(super) removed_folders: Vec<PathBuf>,
}

/// Where what is heard is left.
#[derive(Debug, Default)]
pub(super) struct ChangeInbox {
    changes: Mutex<FileChanges>,
    pub(super) notified: Notify,
}

impl ChangeInbox {
    /// Everything is to be looked at.
    pub(super) fn mark_everything(&self) {
        self.update_changes(|heard| heard.everything = true);
    }

    /// What was heard since.
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
        // Our own reading opens and closes files; only the end of a writer is news.
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
                heard.removed_folders.extend(event.paths.iter().cloned());
            }
            heard.paths.extend(event.paths);
            if rescan || heard.paths.len() > MAX_PATHS {
                heard.paths.clear();
                heard.everything = true;
            }
            if heard.removed_folders.len() > MAX_PATHS {
                // Which ones they were matters: each is watched anew, which costs little.
                heard.removed_folders.dedup();
            }
        });
    }
}

/// The folders that are watched.
pub(super) struct FolderWatches {
    watcher: RecommendedWatcher,
    watched: HashMap<PathBuf, (u64, u64)>,
}

impl FolderWatches {
    /// Nothing is watched yet. The error is a sentence's end.
    pub(super) fn new(ear: std::sync::Arc<ChangeInbox>) -> Result<Self, String> {
        let watcher = notify::recommended_watcher(move |event| ear.add_event(event))
            .map_err(explain_error)?;
        Ok(Self {
            watcher,
            watched: HashMap::new(),
        })
    }

    /// A folder went: what watched it watches nothing any more, even if one of the same name is there again.
    pub(super) fn forget_folder(&mut self, folder: &Path) {
        if self.watched.remove(folder).is_some() {
            // The system may have forgotten it already.
            let _forgotten = self.watcher.unwatch(folder);
        }
    }

    /// Watches these folders and no others. Whether any is new.
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
                // It went while we looked: the folder above tells when it comes back.
                Err(_) if folder_identity(path).is_none() => {}
                // Folders above the workspace may be closed to us, and only tell that it was made anew.
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

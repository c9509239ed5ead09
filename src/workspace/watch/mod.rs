//! Hot reload: the files of a workspace are watched, and a good save is loaded at once.
//!
//! Owns when files are read again and the one home of notify. Folders are watched, not files: a file that is renamed
//! over is another file. What the system tells only makes us look; what counts is the content, compared with what the
//! last good state was loaded from, so that nothing depends on the kind or number of events:
//! - a state that loads is told at once; the next content supersedes it;
//! - one that does not load, or lost a file, is believed only after 200 ms without another content, and read again then;
//! - each look arms its watches before it reads, so that what is written meanwhile is heard;
//! - where nothing can be watched, the content is read each second instead, and that is said once.
//!
//! Refuses to know what a reload means: it is told to whoever started the watcher.

mod debounce;
mod fingerprint;
mod notifier;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::load::load_with_referenced_files;
use super::{CONFIG_FILE, Env, Workspace, files};
use crate::clock::Clock;
use crate::diag::Diagnostic;
use crate::diag::yaml::MAX_BYTES;
use crate::model::Millis;
use crate::rubric::EvalTypeCatalog;
use debounce::{ReloadAction, ReloadCheck, ReloadDebouncer};
use fingerprint::{FileFingerprints, WatchScope, has_lost_file, match_loaded_files};
use notifier::{ChangeInbox, FolderWatches};

/// How often files are read where they cannot be watched.
const POLL_INTERVAL: Millis = Millis(1000);
/// How often a look begins anew because somebody wrote while it read.
const MAX_READ_TRIES: usize = 4;
/// When a look is tried again that never saw two times the same.
const RETRY_DELAY: Millis = Millis(50);

/// What happened to the files.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// Everything loads, and is another state than before; or, with nothing changed, the last good state is back after a
    /// failure was told.
    Reloaded {
        /// The new state.
        workspace: Arc<Workspace>,
        /// Which files differ, as the workspace names them.
        changed: Vec<PathBuf>,
    },
    /// Something does not load, and has not changed for a while.
    Failed(Vec<Diagnostic>),
    /// Files cannot be watched; a sentence that says what is done instead.
    Unwatched(String),
}

/// What a watcher is told to watch.
pub struct WatchParams {
    /// The workspace's folder.
    pub root: PathBuf,
    /// Its last good state; `None`: it does not load yet.
    pub last_good: Option<Arc<Workspace>>,
    /// For paths from home and what else dicta.yaml takes from it.
    pub env: Env,
    /// Which eval types there are.
    pub catalog: Arc<dyn EvalTypeCatalog>,
    /// For the quiet time.
    pub clock: Arc<dyn Clock>,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct WorkspaceWatcher {
    inbox: Arc<ChangeInbox>,
    _until_dropped: DropGuard,
}

impl WorkspaceWatcher {
    /// Begins to watch, with a first look: what was saved since the last good state was loaded is found. Must be called
    /// inside a tokio runtime. `tell` says whether anybody still listens.
    pub fn start(watch: WatchParams, tell: impl Fn(WatchEvent) -> bool + Send + 'static) -> Self {
        let inbox = Arc::new(ChangeInbox::default());
        let dropped = CancellationToken::new();
        let worker = WatchWorker {
            params: watch,
            good_fingerprints: None,
            debouncer: ReloadDebouncer::default(),
            scope: WatchScope::default(),
            referenced: Vec::new(),
            watches: None,
            is_polling: false,
            retry_at: None,
            inbox: Arc::clone(&inbox),
        };
        let until = dropped.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = until.cancelled() => {}
                () = run_worker(worker, tell) => {}
            }
        });
        Self {
            inbox,
            _until_dropped: dropped.drop_guard(),
        }
    }

    /// Looks at the files now, whatever was heard of them.
    pub fn check_now(&self) {
        self.inbox.mark_everything();
    }
}

/// Looks whenever something was heard, or a wait is over; always off the thread that calls.
async fn run_worker(mut worker: WatchWorker, tell: impl Fn(WatchEvent) -> bool) {
    let clock = Arc::clone(&worker.params.clock);
    let ear = Arc::clone(&worker.inbox);
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            let events = worker.check_files();
            (worker, events)
        });
        let Ok((back, events)) = looked.await else {
            return;
        };
        worker = back;
        if !events.into_iter().all(&tell) {
            return;
        }
        let due = worker.next_check(clock.now());
        loop {
            let heard = ear.notified.notified();
            match due {
                None => heard.await,
                Some(due) => tokio::select! {
                    () = heard => {}
                    () = clock.sleep(due.since(clock.now())) => break,
                },
            }
            if worker.take_changes() {
                break;
            }
        }
    }
}

struct WatchWorker {
    params: WatchParams,
    /// What the files held that the last good state was loaded from.
    good_fingerprints: Option<FileFingerprints>,
    debouncer: ReloadDebouncer<FileFingerprints>,
    scope: WatchScope,
    /// Files that rubrics named when they were last read: known only by reading them.
    referenced: Vec<PathBuf>,
    watches: Option<FolderWatches>,
    /// Nothing can be watched: files are read each second.
    is_polling: bool,
    /// A look did not come to an end.
    retry_at: Option<Millis>,
    inbox: Arc<ChangeInbox>,
}

impl WatchWorker {
    /// Takes in what was heard; whether any of it is about our files.
    fn take_changes(&mut self) -> bool {
        let heard = self.inbox.take();
        if let Some(arms) = &mut self.watches {
            for folder in &heard.removed_folders {
                arms.forget_folder(folder);
            }
        }
        heard.everything || heard.paths.iter().any(|path| self.scope.covers(path))
    }

    /// When to look though nothing is heard.
    fn next_check(&self, now: Millis) -> Option<Millis> {
        let poll = self.is_polling.then_some(now + POLL_INTERVAL);
        [self.debouncer.next_check(), self.retry_at, poll]
            .into_iter()
            .flatten()
            .min()
    }

    /// Compares the files with the last good state, and loads them if they differ.
    fn check_files(&mut self) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        self.retry_at = None;
        for _ in 0..MAX_READ_TRIES {
            events.extend(self.watch_folders());
            let sight = self.scope.read_fingerprints();
            if self.matches_last_good(&sight) {
                let act = self
                    .debouncer
                    .on_check(self.now(), sight, ReloadCheck::Unchanged);
                events.extend(self.recovery_event(act));
                return events;
            }
            let mut named = Vec::new();
            let loaded = load_with_referenced_files(
                &self.params.root,
                &self.params.env,
                &*self.params.catalog,
                &mut named,
            );
            named.sort();
            named.dedup();
            if self.referenced != named {
                // Watched first, then read.
                self.referenced = named;
                continue;
            }
            match loaded {
                // Somebody wrote while we read.
                Ok(loaded) if !match_loaded_files(&sight, &loaded.root, &loaded.files) => {}
                Ok(loaded) => {
                    events.extend(self.apply_loaded(loaded, sight));
                    return events;
                }
                Err(problems) => {
                    if self.scope.read_fingerprints() != sight {
                        continue;
                    }
                    if self
                        .debouncer
                        .on_check(self.now(), sight, ReloadCheck::Broken)
                        == ReloadAction::Report
                    {
                        events.push(WatchEvent::Failed(problems));
                    }
                    return events;
                }
            }
        }
        self.retry_at = Some(self.now() + RETRY_DELAY);
        events
    }

    fn now(&self) -> Millis {
        self.params.clock.now()
    }

    /// Works out what is to be watched and watches it, before anything is read. Once more if a folder is new: what was
    /// made in it before it was watched is found then.
    fn watch_folders(&mut self) -> Option<WatchEvent> {
        for _ in 0..2 {
            self.scope = self.compute_scope();
            if self.is_polling {
                return None;
            }
            let armed = match &mut self.watches {
                Some(arms) => arms.watch_folders(&self.scope.folders),
                None => FolderWatches::new(Arc::clone(&self.inbox)).and_then(|arms| {
                    let arms = self.watches.insert(arms);
                    arms.watch_folders(&self.scope.folders)
                }),
            };
            match armed {
                Ok(true) => {}
                Ok(false) => return None,
                Err(why) => {
                    self.is_polling = true;
                    self.watches = None;
                    let told = format!(
                        "files cannot be watched ({why}); saves are found by reading them each second"
                    );
                    return Some(WatchEvent::Unwatched(told));
                }
            }
        }
        None
    }

    fn compute_scope(&self) -> WatchScope {
        let WatchParams {
            root,
            last_good: good,
            env,
            ..
        } = &self.params;
        let now = files::read_text(&root.join(CONFIG_FILE), MAX_BYTES as u64).ok();
        let good = good.as_ref().and_then(|good| {
            let mut files = good.files.iter();
            files.find(|(path, _)| path.as_os_str() == CONFIG_FILE)
        });
        let mut configs: Vec<Arc<str>> = now.into_iter().collect();
        configs.extend(good.map(|(_, text)| Arc::clone(text)));
        configs.dedup();
        let mut scope = WatchScope::from_configs(root, env, &configs);
        for path in &self.referenced {
            scope.add_file(path);
        }
        scope
    }

    /// Whether the files hold what the last good state was loaded from.
    fn matches_last_good(&mut self, sight: &FileFingerprints) -> bool {
        let Some(good) = &self.params.last_good else {
            return false;
        };
        if self.good_fingerprints.is_none()
            && match_loaded_files(sight, &good.root, &good.files)
            && sight.values().filter(|seen| seen.is_some()).count() == count_distinct_files(good)
        {
            self.good_fingerprints = Some(sight.clone());
        }
        self.good_fingerprints.as_ref() == Some(sight)
    }

    fn recovery_event(&self, act: ReloadAction) -> Option<WatchEvent> {
        let workspace = self
            .params
            .last_good
            .as_ref()
            .filter(|_| act == ReloadAction::Recovered)?;
        Some(WatchEvent::Reloaded {
            workspace: Arc::clone(workspace),
            changed: Vec::new(),
        })
    }

    fn apply_loaded(&mut self, loaded: Workspace, sight: FileFingerprints) -> Option<WatchEvent> {
        let lost = self
            .good_fingerprints
            .as_ref()
            .is_some_and(|good| has_lost_file(good, &sight));
        let heard = if lost {
            ReloadCheck::LoadsWithMissingFile
        } else {
            ReloadCheck::Loads
        };
        if self.debouncer.on_check(self.now(), sight.clone(), heard) != ReloadAction::Apply {
            return None;
        }
        let workspace = Arc::new(loaded);
        let changed = list_changed_files(self.params.last_good.as_deref(), &workspace);
        self.params.last_good = Some(Arc::clone(&workspace));
        self.good_fingerprints = Some(sight);
        Some(WatchEvent::Reloaded { workspace, changed })
    }
}

impl fmt::Debug for WatchParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// How many files a workspace was loaded from, each once.
fn count_distinct_files(workspace: &Workspace) -> usize {
    let mut paths: Vec<&PathBuf> = workspace.files.iter().map(|(path, _)| path).collect();
    paths.sort();
    paths.dedup();
    paths.len()
}

/// The files whose text differs, those that came, those that went.
fn list_changed_files(before: Option<&Workspace>, after: &Workspace) -> Vec<PathBuf> {
    let old = before.map_or(&[][..], |workspace| &workspace.files);
    let text = |files: &[(PathBuf, Arc<str>)], path: &PathBuf| {
        let found = files.iter().find(|(p, _)| p == path);
        found.map(|(_, text)| Arc::clone(text))
    };
    let mut changed: Vec<PathBuf> = Vec::new();
    for (path, _) in after.files.iter().chain(old) {
        if !changed.contains(path) && text(old, path) != text(&after.files, path) {
            changed.push(path.clone());
        }
    }
    changed
}

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

mod arms;
mod quiet;
mod sight;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::load::load_naming;
use super::{CONFIG, Env, Workspace, files};
use crate::clock::Clock;
use crate::diag::Diagnostic;
use crate::diag::yaml::MAX_BYTES;
use crate::model::Millis;
use crate::rubric::EvalTypeCatalog;
use arms::{Arms, Ear};
use quiet::{Act, Heard, Quiet};
use sight::{Scope, Sight, agrees, loses};

/// How often files are read where they cannot be watched.
const POLL: Millis = Millis(1000);
/// How often a look begins anew because somebody wrote while it read.
const TRIES: usize = 4;
/// When a look is tried again that never saw two times the same.
const AGAIN: Millis = Millis(50);

/// What happened to the files.
#[derive(Debug, Clone)]
pub enum Event {
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
pub struct Watch {
    /// The workspace's folder.
    pub root: PathBuf,
    /// Its last good state; `None`: it does not load yet.
    pub good: Option<Arc<Workspace>>,
    /// For paths from home and what else dicta.yaml takes from it.
    pub env: Env,
    /// Which eval types there are.
    pub catalog: Arc<dyn EvalTypeCatalog>,
    /// For the quiet time.
    pub clock: Arc<dyn Clock>,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    ear: Arc<Ear>,
    _until_dropped: DropGuard,
}

impl Watcher {
    /// Begins to watch, with a first look: what was saved since the last good state was loaded is found. Must be called
    /// inside a tokio runtime. `tell` says whether anybody still listens.
    pub fn start(watch: Watch, tell: impl Fn(Event) -> bool + Send + 'static) -> Self {
        let ear = Arc::new(Ear::default());
        let dropped = CancellationToken::new();
        let worker = Worker {
            watch,
            sight: None,
            quiet: Quiet::default(),
            scope: Scope::default(),
            named: Vec::new(),
            arms: None,
            polls: false,
            again: None,
            ear: Arc::clone(&ear),
        };
        let until = dropped.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = until.cancelled() => {}
                () = conduct(worker, tell) => {}
            }
        });
        Self {
            ear,
            _until_dropped: dropped.drop_guard(),
        }
    }

    /// Looks at the files now, whatever was heard of them.
    pub fn look_now(&self) {
        self.ear.all();
    }
}

/// Looks whenever something was heard, or a wait is over; always off the thread that calls.
async fn conduct(mut worker: Worker, tell: impl Fn(Event) -> bool) {
    let clock = Arc::clone(&worker.watch.clock);
    let ear = Arc::clone(&worker.ear);
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            let events = worker.look();
            (worker, events)
        });
        let Ok((back, events)) = looked.await else {
            return;
        };
        worker = back;
        if !events.into_iter().all(&tell) {
            return;
        }
        let due = worker.due(clock.now());
        loop {
            let heard = ear.woken.notified();
            match due {
                None => heard.await,
                Some(due) => tokio::select! {
                    () = heard => {}
                    () = clock.sleep(due.since(clock.now())) => break,
                },
            }
            if worker.heard() {
                break;
            }
        }
    }
}

struct Worker {
    watch: Watch,
    /// What the files held that the last good state was loaded from.
    sight: Option<Sight>,
    quiet: Quiet<Sight>,
    scope: Scope,
    /// Files that rubrics named when they were last read: known only by reading them.
    named: Vec<PathBuf>,
    arms: Option<Arms>,
    /// Nothing can be watched: files are read each second.
    polls: bool,
    /// A look did not come to an end.
    again: Option<Millis>,
    ear: Arc<Ear>,
}

impl Worker {
    /// Takes in what was heard; whether any of it is about our files.
    fn heard(&mut self) -> bool {
        let heard = self.ear.take();
        if let Some(arms) = &mut self.arms {
            for folder in &heard.gone {
                arms.gone(folder);
            }
        }
        heard.everything || heard.paths.iter().any(|path| self.scope.concerns(path))
    }

    /// When to look though nothing is heard.
    fn due(&self, now: Millis) -> Option<Millis> {
        let poll = self.polls.then_some(now + POLL);
        [self.quiet.due(), self.again, poll]
            .into_iter()
            .flatten()
            .min()
    }

    /// Compares the files with the last good state, and loads them if they differ.
    fn look(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.again = None;
        for _ in 0..TRIES {
            events.extend(self.arm());
            let sight = self.scope.sight();
            if self.is_good(&sight) {
                let act = self.quiet.seen(self.now(), sight, Heard::Same);
                events.extend(self.mended(act));
                return events;
            }
            let mut named = Vec::new();
            let loaded = load_naming(
                &self.watch.root,
                &self.watch.env,
                &*self.watch.catalog,
                &mut named,
            );
            named.sort();
            named.dedup();
            if self.named != named {
                // Watched first, then read.
                self.named = named;
                continue;
            }
            match loaded {
                // Somebody wrote while we read.
                Ok(loaded) if !agrees(&sight, &loaded.root, &loaded.files) => {}
                Ok(loaded) => {
                    events.extend(self.loads(loaded, sight));
                    return events;
                }
                Err(problems) => {
                    if self.scope.sight() != sight {
                        continue;
                    }
                    if self.quiet.seen(self.now(), sight, Heard::Refused) == Act::Tell {
                        events.push(Event::Failed(problems));
                    }
                    return events;
                }
            }
        }
        self.again = Some(self.now() + AGAIN);
        events
    }

    fn now(&self) -> Millis {
        self.watch.clock.now()
    }

    /// Works out what is to be watched and watches it, before anything is read. Once more if a folder is new: what was
    /// made in it before it was watched is found then.
    fn arm(&mut self) -> Option<Event> {
        for _ in 0..2 {
            self.scope = self.scope_now();
            if self.polls {
                return None;
            }
            let armed = match &mut self.arms {
                Some(arms) => arms.arm(&self.scope.folders),
                None => Arms::new(Arc::clone(&self.ear)).and_then(|arms| {
                    let arms = self.arms.insert(arms);
                    arms.arm(&self.scope.folders)
                }),
            };
            match armed {
                Ok(true) => {}
                Ok(false) => return None,
                Err(why) => {
                    self.polls = true;
                    self.arms = None;
                    let told = format!(
                        "files cannot be watched ({why}); saves are found by reading them each second"
                    );
                    return Some(Event::Unwatched(told));
                }
            }
        }
        None
    }

    fn scope_now(&self) -> Scope {
        let Watch {
            root, good, env, ..
        } = &self.watch;
        let now = files::read_text(&root.join(CONFIG), MAX_BYTES as u64).ok();
        let good = good.as_ref().and_then(|good| {
            let mut files = good.files.iter();
            files.find(|(path, _)| path.as_os_str() == CONFIG)
        });
        let mut configs: Vec<Arc<str>> = now.into_iter().collect();
        configs.extend(good.map(|(_, text)| Arc::clone(text)));
        configs.dedup();
        let mut scope = Scope::of(root, env, &configs);
        for path in &self.named {
            scope.file(path);
        }
        scope
    }

    /// Whether the files hold what the last good state was loaded from.
    fn is_good(&mut self, sight: &Sight) -> bool {
        let Some(good) = &self.watch.good else {
            return false;
        };
        if self.sight.is_none()
            && agrees(sight, &good.root, &good.files)
            && sight.values().filter(|seen| seen.is_some()).count() == distinct(good)
        {
            self.sight = Some(sight.clone());
        }
        self.sight.as_ref() == Some(sight)
    }

    fn mended(&self, act: Act) -> Option<Event> {
        let workspace = self.watch.good.as_ref().filter(|_| act == Act::Mended)?;
        Some(Event::Reloaded {
            workspace: Arc::clone(workspace),
            changed: Vec::new(),
        })
    }

    fn loads(&mut self, loaded: Workspace, sight: Sight) -> Option<Event> {
        let lost = self.sight.as_ref().is_some_and(|good| loses(good, &sight));
        let heard = if lost {
            Heard::LoadsWithLoss
        } else {
            Heard::Loads
        };
        if self.quiet.seen(self.now(), sight.clone(), heard) != Act::Apply {
            return None;
        }
        let workspace = Arc::new(loaded);
        let changed = changed(self.watch.good.as_deref(), &workspace);
        self.watch.good = Some(Arc::clone(&workspace));
        self.sight = Some(sight);
        Some(Event::Reloaded { workspace, changed })
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// How many files a workspace was loaded from, each once.
fn distinct(workspace: &Workspace) -> usize {
    let mut paths: Vec<&PathBuf> = workspace.files.iter().map(|(path, _)| path).collect();
    paths.sort();
    paths.dedup();
    paths.len()
}

/// The files whose text differs, those that came, those that went.
fn changed(before: Option<&Workspace>, after: &Workspace) -> Vec<PathBuf> {
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

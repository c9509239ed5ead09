//! Which files a workspace stands on, and what they hold now.
//!
//! What is watched is read leniently from dicta.yaml itself, the last good one and the one that lies there now, so that a
//! broken file does not blind the watcher to the one that would mend it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobMatcher;
use serde_json::Value;

use crate::diag::yaml;
use crate::model::Digest;
use crate::workspace::{CONFIG, Env, files, globs, labels, paths, tools};

/// The largest file that is looked at, in bytes: that of labels.
const MAX: u64 = 64 << 20;

/// What the files hold: a digest each; `None` for one that is not there or cannot be read.
pub(super) type Sight = BTreeMap<PathBuf, Option<Digest>>;

/// What is watched.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Files, by their own and by their real names.
    names: BTreeSet<PathBuf>,
    /// Which others would belong to the workspace.
    matchers: Vec<GlobMatcher>,
    /// Folders in which others may appear, at any depth.
    bases: Vec<PathBuf>,
    /// Files whose content counts.
    files: BTreeSet<PathBuf>,
    /// Folders to watch: those of the files, and the ones these stand in, which tell when one is made anew.
    pub(super) folders: BTreeSet<PathBuf>,
}

impl Scope {
    /// What the given texts of dicta.yaml name.
    pub(super) fn of(root: &Path, env: &Env, configs: &[Arc<str>]) -> Self {
        let mut scope = Self::default();
        scope.file(&root.join(CONFIG));
        for text in configs {
            let Ok(doc) = yaml::read_document(text, Path::new(CONFIG)) else {
                continue;
            };
            for written in labels::watched(doc.value.get("labels")) {
                let path = paths::resolve(root, written, env);
                scope.glob(root, &path.to_string_lossy());
                scope.file(&path);
            }
            for written in labels::watched_maps(doc.value.get("transcripts")) {
                scope.glob(root, written);
            }
            // Read where no other is named, and made by the first label.
            scope.file(&root.join(labels::DEFAULT));
            if let Some(Value::Object(judges)) = doc.value.get("judges") {
                for written in judges.values().filter_map(Value::as_str) {
                    scope.file(&paths::resolve(root, written, env));
                }
            }
            for written in texts(doc.value.get("rubrics")) {
                let path = paths::resolve(root, written, env);
                scope.glob(root, &path.to_string_lossy());
            }
            for written in texts(doc.value.get("tools")) {
                for glob in tools::watched(root, written, env) {
                    scope.glob(root, &glob);
                }
            }
        }
        scope
    }

    /// One more file.
    pub(super) fn file(&mut self, path: &Path) {
        self.files.insert(path.to_owned());
        self.names.insert(path.to_owned());
        self.folders_of(path);
        // An editor may write through a link: the change is seen where the file really is.
        if let Ok(real) = path.canonicalize()
            && real != path
        {
            self.folders_of(&real);
            self.names.insert(real);
        }
    }

    fn folders_of(&mut self, file: &Path) {
        if let Some(folder) = file.parent() {
            self.folder(folder);
        }
    }

    /// The folder and the one it stands in; where it is not there, the nearest one above that is.
    fn folder(&mut self, folder: &Path) {
        let there = folder
            .ancestors()
            .find(|folder| folder.is_dir())
            .unwrap_or(folder);
        if there == folder {
            self.folders.extend(folder.parent().map(Path::to_owned));
        }
        self.folders.insert(there.to_owned());
        self.names.insert(folder.to_owned());
    }

    fn glob(&mut self, root: &Path, written: &str) {
        for file in globs::expand(root, written)
            .map(|found| found.files)
            .unwrap_or_default()
        {
            self.file(&file);
        }
        let (folders, matcher) = globs::reach(root, written);
        for folder in &folders {
            self.folder(folder);
        }
        if let Some(matcher) = matcher {
            self.matchers.push(matcher);
            self.bases.extend(folders.into_iter().next());
        }
    }

    /// Whether something that happened at a path may matter.
    pub(super) fn concerns(&self, path: &Path) -> bool {
        self.names.contains(path)
            || self.folders.contains(path)
            || self.matchers.iter().any(|matcher| matcher.is_match(path))
            // Of a folder below, or above, that comes or goes.
            || self.names.iter().any(|name| name.starts_with(path))
            || (self.bases.iter().any(|base| path.starts_with(base)) && path.is_dir())
    }

    /// What the files hold now.
    pub(super) fn sight(&self) -> Sight {
        self.files
            .iter()
            .map(|path| (path.clone(), digest(path)))
            .collect()
    }
}

fn digest(path: &Path) -> Option<Digest> {
    let text = files::read_text(path, MAX).ok()?;
    Some(Digest::hash_bytes(text.as_bytes()))
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match value {
        Some(Value::String(text)) => (Some(text.as_str()), None),
        Some(Value::Array(items)) => (None, Some(items.iter().filter_map(Value::as_str))),
        _ => (None, None),
    };
    one.into_iter().chain(many.into_iter().flatten())
}

/// Whether no file that both know differs.
pub(super) fn agrees(sight: &Sight, root: &Path, files: &[(PathBuf, Arc<str>)]) -> bool {
    files.iter().all(|(path, text)| {
        sight
            .get(&root.join(path))
            .is_none_or(|seen| seen.as_ref() == Some(&Digest::hash_bytes(text.as_bytes())))
    })
}

/// Whether a file that held something is gone or empty.
pub(super) fn loses(before: &Sight, now: &Sight) -> bool {
    let empty = Digest::hash_bytes(b"");
    let holds = |digest: &Option<Digest>| digest.as_ref().is_some_and(|d| *d != empty);
    before
        .iter()
        .any(|(path, digest)| holds(digest) && !now.get(path).is_some_and(holds))
}

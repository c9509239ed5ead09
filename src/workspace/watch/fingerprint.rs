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
use crate::workspace::{CONFIG_FILE, Env, files, globs, labels, paths, tools_files};

/// The largest file that is looked at, in bytes: that of labels.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// What the files hold: a digest each; `None` for one that is not there or cannot be read.
pub(super) type FileFingerprints = BTreeMap<PathBuf, Option<Digest>>;

/// What is watched.
#[derive(Debug, Default)]
pub(super) struct WatchScope {
    /// Files, by their own and by their real names.
    names: BTreeSet<PathBuf>,
    /// Which others would belong to the workspace.
    matchers: Vec<GlobMatcher>,
    /// Folders in which others may appear, at any depth.
    glob_folders: Vec<PathBuf>,
    /// Files whose content counts.
    files: BTreeSet<PathBuf>,
    /// Folders to watch: those of the files, and the ones these stand in, which tell when one is made anew.
    pub(super) folders: BTreeSet<PathBuf>,
}

impl WatchScope {
    /// What the given texts of dicta.yaml name.
    pub(super) fn from_configs(root: &Path, env: &Env, configs: &[Arc<str>]) -> Self {
        let mut scope = Self::default();
        scope.add_file(&root.join(CONFIG_FILE));
        for text in configs {
            let Ok(doc) = yaml::read_document(text, Path::new(CONFIG_FILE)) else {
                continue;
            };
            for written in labels::list_label_files(doc.value.get("labels")) {
                let path = paths::resolve(root, written, env);
                scope.add_glob(root, &path.to_string_lossy());
                scope.add_file(&path);
            }
            for written in labels::list_mapped_files(doc.value.get("transcripts")) {
                scope.add_glob(root, written);
            }
            // Read where no other is named, and made by the first label.
            scope.add_file(&root.join(labels::DEFAULT_LABELS_FILE));
            if let Some(Value::Object(judges)) = doc.value.get("judges") {
                for written in judges.values().filter_map(Value::as_str) {
                    scope.add_file(&paths::resolve(root, written, env));
                }
            }
            for written in text_items(doc.value.get("rubrics")) {
                let path = paths::resolve(root, written, env);
                scope.add_glob(root, &path.to_string_lossy());
            }
            for written in text_items(doc.value.get("tools")) {
                for glob in tools_files::watched_globs(root, written, env) {
                    scope.add_glob(root, &glob);
                }
            }
        }
        scope
    }

    /// One more file.
    pub(super) fn add_file(&mut self, path: &Path) {
        self.files.insert(path.to_owned());
        self.names.insert(path.to_owned());
        self.add_parent_folder(path);
        // An editor may write through a link: the change is seen where the file really is.
        if let Ok(real) = path.canonicalize()
            && real != path
        {
            self.add_parent_folder(&real);
            self.names.insert(real);
        }
    }

    fn add_parent_folder(&mut self, file: &Path) {
        if let Some(folder) = file.parent() {
            self.add_folder(folder);
        }
    }

    /// The folder and the one it stands in; where it is not there, the nearest one above that is.
    fn add_folder(&mut self, folder: &Path) {
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

    fn add_glob(&mut self, root: &Path, written: &str) {
        for file in globs::expand(root, written)
            .map(|found| found.files)
            .unwrap_or_default()
        {
            self.add_file(&file);
        }
        let (folders, matcher) = globs::find_watch_folders(root, written);
        for folder in &folders {
            self.add_folder(folder);
        }
        if let Some(matcher) = matcher {
            self.matchers.push(matcher);
            self.glob_folders.extend(folders.into_iter().next());
        }
    }

    /// Whether something that happened at a path may matter.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.names.contains(path)
            || self.folders.contains(path)
            || self.matchers.iter().any(|matcher| matcher.is_match(path))
            // Of a folder below, or above, that comes or goes.
            || self.names.iter().any(|name| name.starts_with(path))
            || (self.glob_folders.iter().any(|base| path.starts_with(base)) && path.is_dir())
    }

    /// What the files hold now.
    pub(super) fn read_fingerprints(&self) -> FileFingerprints {
        self.files
            .iter()
            .map(|path| (path.clone(), digest_file(path)))
            .collect()
    }
}

fn digest_file(path: &Path) -> Option<Digest> {
    let text = files::read_text(path, MAX_FILE_BYTES).ok()?;
    Some(Digest::hash_bytes(text.as_bytes()))
}

fn text_items(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match value {
        Some(Value::String(text)) => (Some(text.as_str()), None),
        Some(Value::Array(items)) => (None, Some(items.iter().filter_map(Value::as_str))),
        _ => (None, None),
    };
    one.into_iter().chain(many.into_iter().flatten())
}

/// Whether no file that both know differs.
pub(super) fn match_loaded_files(
    sight: &FileFingerprints,
    root: &Path,
    files: &[(PathBuf, Arc<str>)],
) -> bool {
    files.iter().all(|(path, text)| {
        sight
            .get(&root.join(path))
            .is_none_or(|seen| seen.as_ref() == Some(&Digest::hash_bytes(text.as_bytes())))
    })
}

/// Whether a file that held something is gone or empty.
pub(super) fn has_lost_file(before: &FileFingerprints, now: &FileFingerprints) -> bool {
    let empty = Digest::hash_bytes(b"");
    let holds = |digest: &Option<Digest>| digest.as_ref().is_some_and(|d| *d != empty);
    before
        .iter()
        .any(|(path, digest)| holds(digest) && !now.get(path).is_some_and(holds))
}

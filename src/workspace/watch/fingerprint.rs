//! The files that a workspace depends on, and digests of their content.
//!
//! dicta reads the names of the files leniently from dicta.yaml, both from the last good version and from the present
//! one. So after a broken save, it still notices the file that would fix it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobMatcher;
use serde_json::Value;

use crate::diag::yaml;
use crate::model::Digest;
use crate::workspace::{CONFIG_FILE, Env, Workspace, files, globs, labels, paths, tools_files};

/// The maximum size of a file that dicta reads, in bytes: that of labels.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A digest per file; `None` for a file that is missing or unreadable.
pub(super) type FileFingerprints = BTreeMap<PathBuf, Option<Digest>>;

/// The files and folders to watch.
#[derive(Debug, Default)]
pub(super) struct WatchScope {
    /// The files, by their own and by their real paths.
    names: BTreeSet<PathBuf>,
    /// The globs of files that would belong to the workspace.
    matchers: Vec<GlobMatcher>,
    /// The folders in which such files may appear, at any depth.
    glob_folders: Vec<PathBuf>,
    /// The files whose content counts.
    files: BTreeSet<PathBuf>,
    /// The folders to watch: those of the files and their parents, which report when one of them is created again.
    pub(super) folders: BTreeSet<PathBuf>,
}

impl WatchScope {
    /// Collects what the given texts of dicta.yaml name.
    pub(super) fn from_configs(root: &Path, env: &Env, configs: &[Arc<str>]) -> Self {
        let mut scope = Self::default();
        // dicta.yaml counts always, also if it is missing.
        scope.add_file(&root.join(CONFIG_FILE));
        for text in configs {
            // A broken dicta.yaml names nothing; the caller adds the last good text.
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
            for written in labels::list_joined_files(doc.value.get("transcripts")) {
                scope.add_file(&root.join(written));
            }
            // dicta reads this file if `labels:` is absent, and creates it with the first label.
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

    /// Adds a file.
    pub(super) fn add_file(&mut self, path: &Path) {
        self.files.insert(path.to_owned());
        self.names.insert(path.to_owned());
        self.add_parent_folder(path);
        // An editor may write through a link, and the notification then names the real file.
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

    /// Adds a folder and its parent. If the folder is missing, adds the nearest existing parent.
    fn add_folder(&mut self, folder: &Path) {
        // A missing folder cannot be watched; its nearest parent reports when it is created.
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
            // The first folder is the base of the glob; the others are below it.
            self.glob_folders.extend(folders.into_iter().next());
        } else {
            // A missing file matches no glob, and dicta must still notice that it returns.
            self.add_file(&paths::absolute(&root.join(written)));
        }
    }

    /// Returns true if an event at a path may concern the workspace.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.names.contains(path)
            || self.folders.contains(path)
            || self.matchers.iter().any(|matcher| matcher.is_match(path))
            // The event may be about a folder above a file, which appears or disappears.
            || self.names.iter().any(|name| name.starts_with(path))
            || (self.glob_folders.iter().any(|base| path.starts_with(base)) && path.is_dir())
    }

    /// Reads the present content of the files.
    pub(super) fn read_fingerprints(&self) -> FileFingerprints {
        self.files
            .iter()
            .map(|path| (path.clone(), digest_file(path)))
            .collect()
    }
}

fn digest_file(path: &Path) -> Option<Digest> {
    // A missing file has no digest, which differs from every content.
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

/// Returns true if all files that both sides contain are equal.
pub(super) fn match_loaded_files(fingerprints: &FileFingerprints, loaded: &Workspace) -> bool {
    loaded.files.iter().all(|file| {
        // The loaded text of a file with sealed labels is masked.
        let sealed = loaded.sealed.as_ref();
        let masked = sealed.and_then(|sealed| sealed.file_digest(&file.path));
        let digest = masked
            .cloned()
            .unwrap_or_else(|| Digest::hash_bytes(file.text.as_bytes()));
        fingerprints
            .get(&loaded.root.join(&file.path))
            // The load may read files that were not watched yet.
            .is_none_or(|seen| seen.as_ref() == Some(&digest))
    })
}

/// Lists the files with other content whose text the loaded workspace does not keep: those with transcripts, and those that
/// field mappings join. `good` are the fingerprints of the last good state.
pub(super) fn list_changed_data(
    good: &FileFingerprints,
    now: &FileFingerprints,
    loaded: &Workspace,
) -> Vec<PathBuf> {
    let kept: HashSet<&Path> = loaded.files.iter().map(|file| &*file.path).collect();
    good.iter()
        .filter(|(path, digest)| now.get(*path).is_some_and(|new| new != *digest))
        .map(|(path, _)| paths::display_path(&loaded.root, path))
        .filter(|path| !kept.contains(&**path))
        .collect()
}

/// Returns true if a file with content is now missing or empty.
pub(super) fn has_lost_file(before: &FileFingerprints, now: &FileFingerprints) -> bool {
    let empty = Digest::hash_bytes(b"");
    let holds = |digest: &Option<Digest>| digest.as_ref().is_some_and(|d| *d != empty);
    before
        .iter()
        .any(|(path, digest)| holds(digest) && !now.get(path).is_some_and(holds))
}

//! What rubrics of other tools name beside themselves: their files, read from the disk, and judges by the files of their
//! configurations.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{Env, files, globs, paths};
use crate::diag::yaml::MAX_BYTES;
use crate::rubric::{Files, Rubric};

/// The files of a folder, and which of them were read.
#[derive(Debug)]
pub struct DiskFiles<'r> {
    root: &'r Path,
    /// Whether the folders above the root are looked in too.
    above: bool,
    read: RefCell<Vec<(PathBuf, Arc<str>)>>,
}

impl<'r> DiskFiles<'r> {
    /// Files that are named relative to `root`.
    pub fn new(root: &'r Path) -> Self {
        Self {
            root,
            above: false,
            read: RefCell::default(),
        }
    }

    /// The same, and what is not there is looked for in the folders above: for a file that is in no workspace.
    pub fn around(root: &'r Path) -> Self {
        Self {
            above: true,
            ..Self::new(root)
        }
    }

    /// What was read, each file once, as a user would name it.
    pub(super) fn into_read(self) -> Vec<(PathBuf, Arc<str>)> {
        self.read.into_inner()
    }
}

impl Files for DiskFiles<'_> {
    fn read(&self, path: &Path) -> Result<Arc<str>, String> {
        let mut full = paths::absolute(&self.root.join(path));
        if self.above && path.is_relative() {
            let root = paths::absolute(self.root);
            let mut folders = root.ancestors().map(|folder| folder.join(path));
            full = folders.find(|path| path.is_file()).unwrap_or(full);
        }
        let shown = paths::shown(self.root, &full);
        let mut read = self.read.borrow_mut();
        if let Some((_, text)) = read.iter().find(|(known, _)| *known == shown) {
            return Ok(Arc::clone(text));
        }
        let text = files::read_text(&full, MAX_BYTES as u64)?;
        read.push((shown, Arc::clone(&text)));
        Ok(text)
    }

    fn list(&self, pattern: &str) -> Vec<PathBuf> {
        let found = globs::expand(self.root, pattern).map(|found| found.files);
        let found = found.unwrap_or_default().into_iter();
        let mut found: Vec<PathBuf> = found.map(|path| paths::shown(self.root, &path)).collect();
        found.sort();
        found
    }
}

/// Which judge a model config is, by its path: the one of dicta.yaml that names the same file, else one named by it.
#[derive(Debug)]
pub struct JudgeNames {
    root: PathBuf,
    by_path: HashMap<PathBuf, String>,
    taken: HashSet<String>,
}

impl JudgeNames {
    /// The names dicta.yaml gives.
    pub fn of_config(config: &Value, root: &Path, env: &Env) -> Self {
        let mut names = Self {
            root: root.to_owned(),
            by_path: HashMap::new(),
            taken: HashSet::from(["rules".to_owned()]),
        };
        let judges = config.get("judges").and_then(Value::as_object);
        for (name, judge) in judges.into_iter().flatten() {
            names.taken.insert(name.clone());
            if let Some(written) = judge.as_str() {
                let path = paths::resolve(root, written, env);
                names.by_path.entry(path).or_insert_with(|| name.clone());
            }
        }
        names
    }

    /// Gives the judges of a rubric the names they have in the workspace, and tells which are new: their name and path.
    pub fn adopt(&mut self, rubric: &mut Rubric) -> Vec<(String, PathBuf)> {
        let mut new = Vec::new();
        let mut renamed: HashMap<String, String> = HashMap::new();
        let judges = std::mem::take(&mut rubric.judges);
        for (name, path) in judges {
            let path = paths::absolute(&self.root.join(path));
            let known = self.by_path.get(&path).cloned();
            let given = known.unwrap_or_else(|| {
                let given = self.free(&name);
                self.by_path.insert(path.clone(), given.clone());
                new.push((given.clone(), path.clone()));
                given
            });
            let shown = paths::shown(&self.root, &path);
            rubric.judges.insert(given.clone(), shown);
            renamed.insert(name, given);
        }
        for eval in &mut rubric.evals {
            if let Some(given) = eval.judge.as_ref().and_then(|judge| renamed.get(judge)) {
                eval.judge = Some(given.clone());
            }
        }
        new
    }

    /// A name that no judge has yet: this one, or with a number behind it.
    fn free(&mut self, name: &str) -> String {
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.taken.contains(name));
        let free = free.unwrap_or_else(|| name.to_owned());
        self.taken.insert(free.clone());
        free
    }
}

//! The names of judges that rubrics of other tools identify by the paths of their model configs.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Env, paths};
use crate::rubric::Rubric;

/// The mapping from the path of a model config to a judge name. A judge of dicta.yaml with the same file takes
/// precedence; otherwise the file's name gives the judge's name.
#[derive(Debug)]
pub struct JudgeNames {
    root: PathBuf,
    by_path: HashMap<PathBuf, String>,
    taken: HashSet<String>,
}

impl JudgeNames {
    /// Reads the names that dicta.yaml gives.
    pub fn from_config(config: &Value, root: &Path, env: &Env) -> Self {
        let mut names = Self {
            root: root.to_owned(),
            by_path: HashMap::new(),
            // `rules` always exists, also if dicta.yaml does not list it.
            taken: HashSet::from(["rules".to_owned()]),
        };
        let judges = config.get("judges").and_then(Value::as_object);
        for (name, judge) in judges.into_iter().flatten() {
            names.taken.insert(name.clone());
            if let Some(written) = judge.as_str() {
                let path = paths::resolve(root, written, env);
                // Two judges may have the same file; the first one in dicta.yaml gives its name to rubrics.
                names.by_path.entry(path).or_insert_with(|| name.clone());
            }
        }
        names
    }

    /// Renames the judges of a rubric to their names in the workspace. Returns the new judges, each with name and
    /// path.
    pub fn rename_rubric_judges(&mut self, rubric: &mut Rubric) -> Vec<(String, PathBuf)> {
        let mut new = Vec::new();
        let mut renamed: HashMap<String, String> = HashMap::new();
        let judges = std::mem::take(&mut rubric.judges);
        for (name, path) in judges {
            // The rubric's path is relative to the workspace; names are found by absolute path.
            let path = paths::absolute(&self.root.join(path));
            let known = self.by_path.get(&path).cloned();
            let given = known.unwrap_or_else(|| {
                let given = self.take_free_name(&name);
                self.by_path.insert(path.clone(), given.clone());
                new.push((given.clone(), path.clone()));
                given
            });
            let shown_path = paths::display_path(&self.root, &path);
            rubric.judges.insert(given.clone(), shown_path);
            renamed.insert(name, given);
        }
        for eval in &mut rubric.evals {
            if let Some(given) = eval.judge.as_ref().and_then(|judge| renamed.get(judge)) {
                eval.judge = Some(given.clone());
            }
        }
        new
    }

    /// Returns a name that no judge has yet: this name, or this name with a number appended.
    fn take_free_name(&mut self, name: &str) -> String {
        // Two files in different folders may have the same name.
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.taken.contains(name));
        let free = free.unwrap_or_else(|| name.to_owned());
        self.taken.insert(free.clone());
        free
    }
}

//! Evals of type `script` in a workspace: whether they may run, and which of its files they are made of.
//!
//! A file of the workspace that a command names belongs to the eval: its bytes are part of the eval's digest, so that
//! what an older version of it decided is stale; as text it is kept with a run and watched like a rubric.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{files, paths};
use crate::diag::Diagnostic;
use crate::diag::yaml::MAX_BYTES;
use crate::model::{Digest, counted};
use crate::rubric::{Eval, Rubric, from_metadata};

/// The type's name.
const KIND: &str = "script";
/// Programs larger than this count by their size and time of change alone, in bytes.
const MOST: u64 = 64 << 20;

/// What the loader adds for the scripts of its rubrics.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Texts that commands name, as [`super::Workspace::files`] holds them.
    pub(super) files: Vec<(PathBuf, Arc<str>)>,
    pub(super) problems: Vec<Diagnostic>,
}

/// Settles the scripts of all rubrics.
pub(super) fn settle(root: &Path, allowed: bool, rubrics: &mut [Arc<Rubric>]) -> Found {
    let mut found = Found::default();
    for shared in rubrics {
        if !shared.evals.iter().any(|eval| eval.kind == KIND) {
            continue;
        }
        let rubric = Arc::make_mut(shared);
        let folder = root.join(rubric.path.parent().unwrap_or(Path::new("")));
        let mut scripts = 0;
        for eval in rubric.evals.iter_mut().filter(|eval| eval.kind == KIND) {
            scripts += 1;
            if eval.params.get("command").and_then(from_metadata).is_some() {
                let why = "command cannot come from a transcript: whoever wrote it would choose the program";
                let problem = Diagnostic::error("param", &rubric.path, why);
                found
                    .problems
                    .push(problem.at(eval.span.clone(), &rubric.source));
            }
            found.eval(root, &folder, eval);
        }
        let first = rubric.evals.iter().find(|eval| eval.kind == KIND);
        if let Some(first) = first.filter(|_| !allowed) {
            let what = format!(
                "{} will be skipped: this workspace does not allow programs",
                counted(scripts, "script")
            );
            let problem = Diagnostic::warning("scripts-off", &rubric.path, what)
                .at(first.span.clone(), &rubric.source)
                .help("set `allow_scripts: true` in dicta.yaml, if you trust what they run");
            found.problems.push(problem);
        }
    }
    found
}

impl Found {
    fn eval(&mut self, root: &Path, folder: &Path, eval: &mut Eval) {
        let command = eval.params.get("command").and_then(Value::as_array);
        let words = command.into_iter().flatten().filter_map(Value::as_str);
        let mut parts = eval.digest.0.clone();
        let own = parts.len();
        for word in words.filter(|word| !word.is_empty()) {
            let path = paths::absolute(&folder.join(word));
            // Also one that an argument names: `python3 checks/tone.py`.
            if !path.starts_with(root) || !path.is_file() {
                continue;
            }
            let Some(digest) = self.file(root, &path) else {
                continue;
            };
            parts.push('+');
            parts.push_str(&digest.0);
        }
        if parts.len() > own {
            eval.digest = Digest::of(parts.as_bytes());
        }
    }

    fn file(&mut self, root: &Path, path: &Path) -> Option<Digest> {
        let shown = paths::shown(root, path);
        if let Some((_, text)) = self.files.iter().find(|(known, _)| *known == shown) {
            return Some(Digest::of(text.as_bytes()));
        }
        if let Ok(text) = files::read_text(path, MAX_BYTES as u64) {
            let digest = Digest::of(text.as_bytes());
            self.files.push((shown, text));
            return Some(digest);
        }
        // No text, or a long one: it counts, but is neither kept nor watched.
        let meta = fs::metadata(path).ok()?;
        if meta.len() <= MOST {
            return fs::read(path).ok().map(|bytes| Digest::of(&bytes));
        }
        let changed = meta.modified().ok()?;
        Some(Digest::of(format!("{} {changed:?}", meta.len()).as_bytes()))
    }
}

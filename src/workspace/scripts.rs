//! Evals of type `script` in a workspace.
//!
//! Responsible for the permission to run them and for the files that they consist of. A workspace file that a command
//! names belongs to the eval, and the eval's digest includes its bytes. So the verdicts of an older version are
//! stale. Text files are also kept with the run and watched like a rubric.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{files, paths};
use crate::diag::yaml::MAX_BYTES;
use crate::diag::{Diagnostic, LoadedFile};
use crate::model::{Digest, pluralize};
use crate::rubric::{Eval, Rubric, metadata_param_path};
use crate::storage;

/// The name of the eval type that runs a program.
pub const SCRIPT_TYPE: &str = "script";
/// The maximum size of a program whose content is hashed, in bytes. For larger files only size and modification time
/// count.
const MAX_HASHED_BYTES: u64 = 64 << 20;

/// The additions that the loader makes for the scripts of its rubrics.
#[derive(Debug, Default)]
pub(super) struct ScriptFiles {
    /// The texts that commands name, as in [`super::Workspace::files`].
    pub(super) files: Vec<LoadedFile>,
    pub(super) problems: Vec<Diagnostic>,
    /// The files that commands name, inside the workspace or not. Their owners are checked.
    pub(super) programs: Vec<PathBuf>,
}

/// Prepares the script evals of all rubrics.
pub(super) fn prepare_scripts(
    root: &Path,
    allowed: bool,
    rubrics: &mut [Arc<Rubric>],
) -> ScriptFiles {
    let mut found = ScriptFiles::default();
    for shared in rubrics {
        if !shared
            .evals
            .iter()
            .any(|eval| eval.eval_type == SCRIPT_TYPE)
        {
            continue;
        }
        // Only rubrics with scripts are changed; the others stay shared.
        let rubric = Arc::make_mut(shared);
        let folder = root.join(rubric.path.parent().unwrap_or(Path::new("")));
        let mut scripts = 0;
        for eval in rubric
            .evals
            .iter_mut()
            .filter(|eval| eval.eval_type == SCRIPT_TYPE)
        {
            scripts += 1;
            if eval
                .params
                .get("command")
                .and_then(metadata_param_path)
                .is_some()
            {
                let why =
                    "command cannot come from a transcript: its author would choose the program";
                let problem = Diagnostic::error("param", &rubric.path, why);
                found
                    .problems
                    .push(problem.with_span(eval.span.clone(), &rubric.source));
            }
            // The content of the programs is part of the eval's digest, so a changed program is judged again.
            found.digest_command_files(root, &folder, eval);
        }
        let first = rubric
            .evals
            .iter()
            .find(|eval| eval.eval_type == SCRIPT_TYPE);
        // One warning per rubric, at its first script.
        if let Some(first) = first.filter(|_| !allowed) {
            let what = format!(
                "{} will be skipped: this workspace does not allow programs",
                pluralize(scripts, "script")
            );
            let problem = Diagnostic::warning("scripts-off", &rubric.path, what)
                .with_span(first.span.clone(), &rubric.source)
                .help("set `allow_scripts: true` in dicta.yaml, if you trust what they run");
            found.problems.push(problem);
        }
    }
    found
}

impl ScriptFiles {
    fn digest_command_files(&mut self, root: &Path, folder: &Path, eval: &mut Eval) {
        let command = eval.params.get("command").and_then(Value::as_array);
        let words = command.into_iter().flatten().filter_map(Value::as_str);
        let mut parts = eval.digest.0.clone();
        // The digest stays unchanged if no file is part of it, so cached verdicts of other commands stay
        // valid.
        let base_len = parts.len();
        for word in words.filter(|word| !word.is_empty()) {
            let path = paths::absolute(&folder.join(word));
            // An argument may name a file too: `python3 checks/tone.py`.
            if !path.is_file() {
                continue;
            }
            self.programs.push(path.clone());
            if !path.starts_with(root) {
                continue;
            }
            let Some(digest) = self.digest_file(root, &path) else {
                continue;
            };
            parts.push('+');
            parts.push_str(&digest.0);
        }
        if parts.len() > base_len {
            eval.digest = Digest::hash_bytes(parts.as_bytes());
        }
    }

    fn digest_file(&mut self, root: &Path, path: &Path) -> Option<Digest> {
        let shown_path = paths::display_path(root, path);
        if let Some(known) = self.files.iter().find(|known| known.path == shown_path) {
            return Some(Digest::hash_bytes(known.text.as_bytes()));
        }
        if let Ok(text) = files::read_text(path, MAX_BYTES as u64) {
            let digest = Digest::hash_bytes(text.as_bytes());
            self.files.push(LoadedFile {
                path: shown_path,
                text,
            });
            return Some(digest);
        }
        // A binary or large file is part of the digest, but it is neither kept nor watched.
        let meta = fs::metadata(path).ok()?;
        if meta.len() <= MAX_HASHED_BYTES {
            return storage::read_regular_file(path, MAX_HASHED_BYTES)
                .ok()
                .map(|bytes| Digest::hash_bytes(&bytes));
        }
        let changed = meta.modified().ok()?;
        Some(Digest::hash_bytes(
            format!("{} {changed:?}", meta.len()).as_bytes(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Env, Workspace, load};
    use super::*;
    use crate::handlers::EvalTypeRegistry;

    const RUBRIC: &str = "evals:
  - { id: own, type: script, params: { command: [python3, ../checks/tone.py, --strict] } }
  - { id: other, type: script, params: { command: ['true'] } }
  - { id: plain, type: contains, params: { patterns: [x] } }
";

    fn loaded(root: &Path, config: &str, rubric: &str) -> Result<Workspace, Vec<Diagnostic>> {
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("t.jsonl", "{\"messages\":[]}\n");
        write("rubrics/r.yaml", rubric);
        let all = format!("transcripts: t.jsonl\nrubrics: rubrics/*.yaml\nruns: runs\n{config}");
        write("dicta.yaml", &all);
        load(root, &Env::default(), &EvalTypeRegistry::builtin())
    }

    fn folder(script: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("checks")).expect("made");
        fs::write(dir.path().join("checks/tone.py"), script).expect("written");
        dir
    }

    fn digests(workspace: &Workspace) -> Vec<String> {
        let evals = workspace.rubrics[0].evals.iter();
        evals.map(|eval| eval.digest.0.clone()).collect()
    }

    #[test]
    fn scripts_are_skipped_unless_allowed() {
        let dir = folder("print()");
        for config in ["", "allow_scripts: false\n"] {
            let off = loaded(dir.path(), config, RUBRIC).expect("loads");
            assert!(!off.allow_scripts);
            let warning_texts: Vec<String> = off.warnings.iter().map(ToString::to_string).collect();
            assert_eq!(
                warning_texts,
                [
                    "rubrics/r.yaml:2:5: 2 scripts will be skipped: this workspace does not allow programs"
                ]
            );
        }
        let on = loaded(dir.path(), "allow_scripts: true\n", RUBRIC).expect("loads");
        assert!(on.allow_scripts);
        assert_eq!(on.warnings, []);
        let why =
            loaded(dir.path(), "allow_scripts: yes please\n", RUBRIC).expect_err("no boolean");
        assert_eq!(why.len(), 2, "{why:?}");
    }

    #[test]
    fn changed_script_changes_the_eval_digest() {
        let dir = folder("print(1)");
        let first = loaded(dir.path(), "allow_scripts: true\n", RUBRIC).expect("loads");
        let kept: Vec<&Path> = first.files.iter().map(|file| file.path.as_path()).collect();
        assert_eq!(
            kept,
            ["dicta.yaml", "rubrics/r.yaml", "checks/tone.py"].map(Path::new)
        );
        fs::write(dir.path().join("checks/tone.py"), "print(2)").expect("written");
        let second = loaded(dir.path(), "allow_scripts: true\n", RUBRIC).expect("loads");
        let (one, two) = (digests(&first), digests(&second));
        assert_ne!(one[0], two[0], "its own file");
        assert_eq!(one[1..], two[1..], "nothing of the others");
        fs::write(dir.path().join("checks/tone.py"), [0xff, 0xfe]).expect("written");
        let binary = loaded(dir.path(), "allow_scripts: true\n", RUBRIC).expect("loads");
        assert_ne!(digests(&binary)[0], two[0], "no text, but it counts");
        assert_eq!(binary.files.len(), 2);
    }

    #[test]
    fn script_command_cannot_come_from_a_transcript() {
        let dir = folder("");
        let rubric =
            "evals:\n  - { id: s, type: script, params: { command: { from: metadata.c } } }\n";
        let why = loaded(dir.path(), "allow_scripts: true\n", rubric).expect_err("refused");
        assert_eq!(
            why[0].to_string(),
            "rubrics/r.yaml:2:5: command cannot come from a transcript: its author would choose the program"
        );
    }
}

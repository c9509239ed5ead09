//! Which workspace a command works on: the one named, the one found here or above, else the demo.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Cx;
use super::trouble::Trouble;
use crate::diag::Diagnostic;
use crate::handlers::EvalTypeRegistry;
use crate::model::pluralize;
use crate::record::RunStore;
use crate::rubric::NOT_CARRIED;
use crate::workspace::{self, Workspace, demo};

/// A loaded workspace, and how it was come by.
pub(super) struct Opened {
    pub(super) workspace: Arc<Workspace>,
    /// There was none: this is the demo.
    fallback: bool,
}

impl Opened {
    /// Says what is worked on where that is not plain, and what it was loaded with reservations about; of what did not
    /// carry over from other tools only how much: `dicta check` lists it.
    pub(super) fn announce(&self, cx: &Cx) {
        self.introduce(cx);
        for rubric in &self.workspace.rubrics {
            let path = rubric.path.display();
            let lost = match rubric.not_carried.len() {
                0 => continue,
                1 => "one thing did".to_owned(),
                n => format!("{n} things did"),
            };
            let message = format!("{path}: {lost} not carry over; `dicta check` lists it");
            cx.streams.tell(&message);
        }
    }

    /// The same without what did not carry over.
    pub(super) fn introduce(&self, cx: &Cx) {
        let root = self.workspace.root.display();
        if self.fallback {
            cx.streams.tell(&format!(
                "no dicta.yaml here or above: this is the demo, unpacked to {root}"
            ));
        } else if self.workspace.is_demo {
            cx.streams.tell(&format!("this is the demo in {root}"));
        }
        let warnings = self.workspace.warnings.iter();
        let others: Vec<Diagnostic> = warnings
            .filter(|w| w.code != NOT_CARRIED)
            .cloned()
            .collect();
        if !others.is_empty() {
            cx.streams.diagnose(&others);
        }
    }
}

/// What is wrong with labels, for a command that counts them.
pub(super) fn labels_hold(workspace: &Workspace) -> Result<(), Trouble> {
    if workspace.label_problems.is_empty() {
        return Ok(());
    }
    let warnings = workspace.warnings.iter();
    let all = warnings.chain(&workspace.label_problems).cloned();
    Err(Trouble::files(all.collect()))
}

/// Says that some labels count for nothing, where that refuses nothing.
pub(super) fn note_labels(workspace: &Workspace, cx: &Cx) {
    let problems = workspace.label_problems.len();
    if problems > 0 {
        let problems = pluralize(problems, "problem");
        cx.streams.tell(&format!(
            "note: {problems} with labels, which count for nothing; `dicta check` lists them"
        ));
    }
}

/// Loads the workspace of a command.
pub(super) fn open(path: Option<&Path>, cx: &Cx) -> Result<Opened, Trouble> {
    let (root, fallback) = root(path, cx)?;
    let workspace =
        workspace::load(&root, &cx.env, &EvalTypeRegistry::builtin()).map_err(Trouble::files)?;
    Ok(Opened {
        workspace: Arc::new(workspace),
        fallback,
    })
}

/// Where the runs of a command's workspace are. A workspace that does not load still has its runs.
pub(super) fn store(path: Option<&Path>, cx: &Cx) -> Result<RunStore, Trouble> {
    Ok(store_and_workspace(path, cx)?.0)
}

/// As [`store`], and the workspace, if it loads.
pub(super) fn store_and_workspace(
    path: Option<&Path>,
    cx: &Cx,
) -> Result<(RunStore, Option<Arc<Workspace>>), Trouble> {
    let (root, _) = root(path, cx)?;
    match workspace::load(&root, &cx.env, &EvalTypeRegistry::builtin()) {
        Ok(workspace) => {
            let store = RunStore {
                dir: workspace.runs.clone(),
                extra_dirs: workspace.extra_run_folders.clone(),
            };
            Ok((store, Some(Arc::new(workspace))))
        }
        Err(problems) => match workspace::find_run_folders(&root, &cx.env) {
            Some((dir, also)) => Ok((
                RunStore {
                    dir,
                    extra_dirs: also,
                },
                None,
            )),
            None => Err(Trouble::files(problems)),
        },
    }
}

fn root(path: Option<&Path>, cx: &Cx) -> Result<(PathBuf, bool), Trouble> {
    if let Some(path) = path {
        if !path.exists() {
            return Err(Trouble::usage(format!("{} does not exist", path.display())));
        }
        let found = workspace::find_workspace_root(path);
        let root = found.ok_or_else(|| {
            let path = path.display();
            Trouble::usage(format!(
                "there is no dicta.yaml at or above {path}; `dicta init DIR` makes a workspace"
            ))
        })?;
        return Ok((root, false));
    }
    let here = std::env::current_dir()
        .map_err(|error| Trouble::usage(format!("this folder is gone: {error}")))?;
    if let Some(root) = workspace::find_workspace_root(&here) {
        return Ok((root, false));
    }
    let data = workspace::data_dir(&cx.env).map_err(Trouble::usage)?;
    Ok((demo::unpack(&data).map_err(Trouble::usage)?, true))
}

//! Finds and loads the workspace of a command: the named one, else the one in this folder or a parent. With `--demo`,
//! the demo.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::streams::Streams;
use crate::diag::Diagnostic;
use crate::handlers::EvalTypeRegistry;
use crate::model::{explain_file_error, pluralize};
use crate::record::RunStore;
use crate::rubric::NOT_CARRIED;
use crate::run::{collect_secrets, find_record_key};
use crate::workspace::trust::UNTRUSTED_CODE;
use crate::workspace::{self, LoadOptions, NEW_LABELS_FILE, Workspace, demo};

/// The options of a command that judges nothing.
const JUDGES_NOTHING: LoadOptions<'static> = LoadOptions {
    judge: None,
    extra_rubrics: &[],
    judges_nothing: true,
};

/// The loaded workspace of a command.
pub(super) struct CommandWorkspace {
    pub(super) workspace: Arc<Workspace>,
}

impl CommandWorkspace {
    /// Prints which workspace is used, unless that is obvious, and its warnings. For each imported rubric, prints the
    /// number of keys that did not carry over; `dicta check` states why.
    pub(super) fn announce(&self, cx: &CommandCx) {
        self.announce_briefly(cx);
        for rubric in &self.workspace.rubrics {
            let path = rubric.path.display();
            let lost = match rubric.not_carried.len() {
                0 => continue,
                1 => "one thing did".to_owned(),
                n => format!("{n} things did"),
            };
            let message = format!(
                "{path}: {lost} not carry over from the other tool; `dicta check` states why"
            );
            cx.streams.print_note(&message);
        }
    }

    /// Prints the same as `announce`, without the keys that did not carry over.
    pub(super) fn announce_briefly(&self, cx: &CommandCx) {
        self.announce_demo(cx);
        for warning in self.list_warnings() {
            // The first label creates the file, so only `dicta check` reports that it is absent.
            if warning.code != NEW_LABELS_FILE {
                cx.streams.print_stderr(&format_warning(warning));
            }
        }
    }

    /// Prints the same as `announce_briefly`, for `dicta check`: with the lines of the files.
    pub(super) fn announce_in_full(&self, cx: &CommandCx) {
        self.announce_demo(cx);
        let warnings: Vec<Diagnostic> = self.list_warnings().cloned().collect();
        if !warnings.is_empty() {
            cx.streams.print_diagnostics(&warnings);
        }
    }

    fn announce_demo(&self, cx: &CommandCx) {
        if self.workspace.is_demo {
            let root = self.workspace.root.display();
            cx.streams
                .print_note(&format!("this is the demo in {root}"));
        }
    }

    /// Returns the warnings, except the keys that did not carry over: `announce` prints their number.
    fn list_warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        let warnings = self.workspace.warnings.iter();
        warnings.filter(|warning| warning.code != NOT_CARRIED)
    }
}

/// Formats a warning as one line. Every command prints it, and `dicta check` prints its place in the file.
fn format_warning(warning: &Diagnostic) -> String {
    match &warning.help {
        Some(help) => format!("warning: {warning}; {help}"),
        None => format!("warning: {warning}"),
    }
}

/// Returns the diagnostics of the labels as an error, for a command that counts labels.
pub(super) fn check_labels(workspace: &Workspace) -> Result<(), CommandError> {
    if workspace.label_problems.is_empty() {
        return Ok(());
    }
    let warnings = workspace.warnings.iter();
    let all = warnings.chain(&workspace.label_problems).cloned();
    Err(CommandError::from_diagnostics(all.collect()))
}

/// Prints the number of invalid labels, for a command that works without them.
pub(super) fn note_label_problems(workspace: &Workspace, cx: &CommandCx) {
    let problems = workspace.label_problems.len();
    if problems > 0 {
        let problems = pluralize(problems, "problem");
        cx.streams.print_stderr(&format!(
            "note: {problems} with labels; dicta ignores these labels, and `dicta check` lists them"
        ));
    }
}

/// Loads the workspace of a command that judges.
pub(super) fn load_workspace(
    path: Option<&Path>,
    cx: &CommandCx,
) -> Result<CommandWorkspace, CommandError> {
    load_workspace_for_judge(path, None, cx)
}

/// Loads the workspace of a command that judges nothing. Its evals need no judge.
pub(super) fn load_workspace_without_judges(
    path: Option<&Path>,
    cx: &CommandCx,
) -> Result<CommandWorkspace, CommandError> {
    load_workspace_with(&find_root(path, cx)?, &JUDGES_NOTHING, cx)
}

/// Loads the workspace in a folder if it is valid, for a command that judges nothing.
pub(super) fn load_if_valid(root: &Path, cx: &CommandCx) -> Option<Workspace> {
    let registry = EvalTypeRegistry::builtin();
    workspace::load_with(root, &cx.env, &registry, &JUDGES_NOTHING).ok()
}

/// Loads the workspace of a command that may name its judge. With a judge, evals need no default judge.
pub(super) fn load_workspace_for_judge(
    path: Option<&Path>,
    judge: Option<&str>,
    cx: &CommandCx,
) -> Result<CommandWorkspace, CommandError> {
    load_for_judge(path, judge, &LoadOptions::default(), cx)
}

/// Loads the workspace of `dicta check`, which reports evals without a judge as one problem among others.
pub(super) fn load_workspace_to_check(
    path: Option<&Path>,
    judge: Option<&str>,
    cx: &CommandCx,
) -> Result<CommandWorkspace, CommandError> {
    load_for_judge(path, judge, &JUDGES_NOTHING, cx)
}

fn load_for_judge<'o>(
    path: Option<&Path>,
    judge: Option<&'o str>,
    options: &LoadOptions<'o>,
    cx: &CommandCx,
) -> Result<CommandWorkspace, CommandError> {
    let options = LoadOptions { judge, ..*options };
    load_workspace_with(&find_root(path, cx)?, &options, cx)
}

/// Loads the workspace in `root` with what the command adds to dicta.yaml.
pub(super) fn load_workspace_with(
    root: &Path,
    options: &LoadOptions<'_>,
    cx: &CommandCx,
) -> Result<CommandWorkspace, CommandError> {
    let registry = EvalTypeRegistry::builtin();
    let workspace = workspace::load_with(root, &cx.env, &registry, options)
        .map_err(CommandError::from_diagnostics)?;
    Streams::add_secrets(&collect_secrets(&workspace, &cx.env));
    Ok(CommandWorkspace {
        workspace: Arc::new(workspace),
    })
}

/// Returns the run store of a command's workspace. Works even if the workspace has errors, so that old runs stay
/// readable.
pub(super) fn open_run_store(
    path: Option<&Path>,
    cx: &CommandCx,
) -> Result<RunStore, CommandError> {
    Ok(open_run_store_and_workspace(path, cx)?.0)
}

/// Returns the same as [`open_run_store`], and the workspace if it loads.
pub(super) fn open_run_store_and_workspace(
    path: Option<&Path>,
    cx: &CommandCx,
) -> Result<(RunStore, Option<Arc<Workspace>>), CommandError> {
    let (store, loaded) = try_open_workspace(path, cx)?;
    Ok((store, loaded.ok()))
}

/// A workspace, or the reasons why it does not load.
pub(super) type LoadedWorkspace = Result<Arc<Workspace>, Vec<Diagnostic>>;

/// Returns the same as [`open_run_store`], and the workspace or the reasons why it does not load.
pub(super) fn try_open_workspace(
    path: Option<&Path>,
    cx: &CommandCx,
) -> Result<(RunStore, LoadedWorkspace), CommandError> {
    let root = find_root(path, cx)?;
    // Recorded runs need no judge.
    match workspace::load_with(
        &root,
        &cx.env,
        &EvalTypeRegistry::builtin(),
        &JUDGES_NOTHING,
    ) {
        Ok(workspace) => {
            Streams::add_secrets(&collect_secrets(&workspace, &cx.env));
            let store = RunStore {
                dir: workspace.runs.clone(),
                extra_dirs: workspace.extra_run_folders.clone(),
                key: find_record_key(&cx.env),
            };
            Ok((store, Ok(Arc::new(workspace))))
        }
        // A workspace with errors still names its run folders.
        // Without readable run folders, the diagnostics explain what to fix.
        // Recordings of a workspace without trust could be forged.
        Err(problems) if problems.iter().any(|p| p.code == UNTRUSTED_CODE) => {
            Err(CommandError::from_diagnostics(problems))
        }
        Err(problems) => match workspace::find_run_folders(&root, &cx.env) {
            Some(folders) => Ok((
                RunStore {
                    dir: folders.dir,
                    extra_dirs: folders.extra_dirs,
                    key: find_record_key(&cx.env),
                },
                Err(problems),
            )),
            None => Err(CommandError::from_diagnostics(problems)),
        },
    }
}

/// Returns true if this folder or a parent is a workspace.
pub(super) fn is_inside_workspace() -> bool {
    std::env::current_dir().is_ok_and(|here| workspace::find_workspace_root(&here).is_some())
}

/// Finds the folder of a command's workspace.
pub(super) fn find_root(path: Option<&Path>, cx: &CommandCx) -> Result<PathBuf, CommandError> {
    match path {
        Some(path) if cx.uses_demo => Err(CommandError::usage(format!(
            "`--demo` selects the demo's workspace; leave out {} or `--demo`",
            path.display()
        ))),
        None if cx.uses_demo => unpack_demo(cx),
        Some(path) if !path.exists() => {
            let error = io::Error::from(io::ErrorKind::NotFound);
            Err(CommandError::usage(explain_file_error(path, &error)))
        }
        Some(path) => workspace::find_workspace_root(path).ok_or_else(|| {
            let path = path.display();
            CommandError::usage(format!(
                "found no dicta.yaml at or above {path}; `dicta init DIR` creates a workspace"
            ))
        }),
        None => {
            // The current folder may have been deleted since the shell entered it.
            let here = std::env::current_dir().map_err(|error| {
                CommandError::usage(format!("can't access the current folder: {error}"))
            })?;
            workspace::find_workspace_root(&here).ok_or_else(|| {
                CommandError::usage(
                    "no dicta.yaml here or above; `dicta init` creates a workspace in this folder, and `dicta demo` \
                     opens the demo (`--demo` uses it in any command)",
                )
            })
        }
    }
}

/// Returns the folder of the demo's workspace; unpacks it to the data directory if necessary.
pub(super) fn unpack_demo(cx: &CommandCx) -> Result<PathBuf, CommandError> {
    let data =
        workspace::data_dir(&cx.env).map_err(|error| CommandError::usage(error.to_string()))?;
    demo::unpack(&data).map_err(|error| CommandError::from_error(&error))
}

//! `dicta label`, `dicta labels rename` and `dicta labels prune`: change the label files of a workspace.
//!
//! Responsible for names and questions. Does not write; `workspace::label_edit` does.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::CommandCx;
use super::args::{LabelArgs, LabelValueArg, LabelsCommand, PruneLabelsArgs, WorkspaceArgs};
use super::deletion::confirm_deletion;
use super::error::CommandError;
use super::workspace::load_workspace;
use crate::diag::find_nearest;
use crate::event::{EventKind, RunHeader};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellName, CellPattern, Label, Labels, pluralize};
use crate::rubric::Rubric;
use crate::run;
use crate::workspace::label_edit::{
    LabelEditError, LabelRename, remove_labels, rename_labels, set_label,
};
use crate::workspace::{Workspace, matches_an_eval};

/// The maximum number of names in a message.
const MAX_LISTED_NAMES: usize = 5;

/// Labels one decision, as the keys `p`, `f` and `u` of the workbench do.
pub(super) fn label(args: &LabelArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let workspace = load_workspace(args.place.workspace.as_deref(), cx)?.workspace;
    let decision = find_decision(&workspace, &args.cell, cx)?;
    let passed = match args.value {
        LabelValueArg::Pass => Some(true),
        LabelValueArg::Fail => Some(false),
        LabelValueArg::Unsure => None,
    };
    let word = match args.value {
        LabelValueArg::Pass => "pass",
        LabelValueArg::Fail => "fail",
        LabelValueArg::Unsure => "unsure",
    };
    let labels = Labels::new(workspace.labels.iter().cloned());
    let before = labels.find(&decision.transcript, &decision.rubric, &decision.eval);
    // As in the workbench, the same label is not written again with a new time.
    if before.is_some_and(|label| label.passed == passed) {
        cx.streams
            .print(&format!("{decision} is labelled {word} already\n"));
        return Ok(0);
    }
    let file = workspace.labels_file_path();
    set_label(&file, &decision, passed, &cx.env, cx.clock.wall_time()).map_err(to_command_error)?;
    cx.streams.print(&format!(
        "labelled {decision}: {word} ({})\n",
        show_path(&workspace, &file)
    ));
    Ok(0)
}

/// Returns the decision that a cell's name, a unique prefix or a glob selects.
fn find_decision(
    workspace: &Arc<Workspace>,
    pattern: &str,
    cx: &CommandCx,
) -> Result<CellName, CommandError> {
    let registry = EvalTypeRegistry::builtin();
    let mut header: Option<Box<RunHeader>> = None;
    let mut names: IndexMap<String, CellName> = IndexMap::new();
    run::outline_run(
        Arc::clone(workspace),
        &registry,
        &cx.env,
        &cx.clock,
        &mut |facts| {
            for fact in facts {
                match fact {
                    EventKind::RunStarted(started) => header = Some(started),
                    EventKind::CellsPlanned {
                        transcript, keys, ..
                    } => {
                        let evals = header.as_ref().map_or(&[][..], |header| &header.evals);
                        for key in keys {
                            let Some(eval) = evals.get(key.eval as usize) else {
                                continue;
                            };
                            let rubrics = header.as_ref().map_or(&[][..], |h| &h.rubrics);
                            let Some(rubric) = rubrics.get(eval.rubric as usize) else {
                                continue;
                            };
                            let name = CellName {
                                transcript: transcript.id.clone(),
                                rubric: rubric.id.clone(),
                                eval: eval.id.clone(),
                                message: key.message,
                                judge: None,
                                repeat: None,
                            };
                            names.insert(name.to_string(), name);
                        }
                    }
                    _ => {}
                }
            }
            true
        },
    )
    .map_err(|error| CommandError::usage(error.to_string()))?;
    let texts: Vec<String> = names.keys().cloned().collect();
    let mut found = CellPattern::new(pattern).select(&texts);
    if found.is_empty()
        && let Ok(cell) = pattern.parse::<CellName>()
    {
        // The name of a cell also has its judge and repeat, and a label is about the decision.
        found = CellPattern::new(&cell.decision_name().to_string()).select(&texts);
    }
    match found[..] {
        [one] => {
            let name = names[one].clone();
            if name.message.is_some() {
                return Err(CommandError::usage(format!(
                    "the eval `{}` judges message by message, and a label is about a whole transcript; \
                     dicta cannot label {one}",
                    name.eval
                )));
            }
            Ok(name)
        }
        [] => {
            let near = find_nearest(pattern, texts.iter().map(String::as_str));
            // Without a similar name, any name shows the form.
            let near = near.or(texts.first().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Err(CommandError::usage(format!(
                "no cell of this workspace matches `{pattern}`{near}"
            )))
        }
        ref several => {
            let listed: Vec<&str> = several
                .iter()
                .take(MAX_LISTED_NAMES)
                .map(|name| name.as_str())
                .collect();
            let more = if several.len() > MAX_LISTED_NAMES {
                " …"
            } else {
                ""
            };
            Err(CommandError::usage(format!(
                "`{pattern}` matches {} decisions; name one of them: {}{more}",
                several.len(),
                listed.join(", ")
            )))
        }
    }
}

/// Runs a subcommand of `dicta labels`.
pub(super) fn labels(command: &LabelsCommand, cx: &CommandCx) -> Result<u8, CommandError> {
    match command {
        LabelsCommand::Rename { old, new, place } => rename(old, new, place, cx),
        LabelsCommand::Prune(args) => prune(args, cx),
    }
}

/// The labels that a rename selects, and their new names.
#[derive(Debug, PartialEq, Eq)]
enum Renaming<'n> {
    /// All labels of a rubric.
    Rubric { old: &'n str, new: &'n str },
    /// The labels of an eval that match nothing.
    Eval { old: &'n str, new: &'n str },
    /// All labels of an eval of one rubric.
    EvalOfRubric {
        old: (&'n str, &'n str),
        new: (&'n str, &'n str),
    },
}

impl<'n> Renaming<'n> {
    /// Finds out whether the names are a rubric or an eval.
    fn parse(old: &'n str, new: &'n str, workspace: &Workspace) -> Result<Self, CommandError> {
        let rubrics = &workspace.rubrics;
        if let Some(old) = old.split_once('/') {
            let new = new.split_once('/').unwrap_or((old.0, new));
            check_eval_exists(Some(new.0), new.1, rubrics)?;
            return Ok(Self::EvalOfRubric { old, new });
        }
        if new.contains('/') {
            return Err(CommandError::usage(
                "name the eval as RUBRIC/EVAL both times, as in `dicta labels rename support/tone support/manner`",
            ));
        }
        let labels = &workspace.labels;
        let is_rubric = labels
            .iter()
            .any(|label| label.rubric.as_deref() == Some(old));
        let is_eval = labels
            .iter()
            .any(|label| label.eval == old && !matches_an_eval(label, rubrics));
        let has_rubric = rubrics.iter().any(|rubric| rubric.id == old);
        match (is_rubric && !has_rubric, is_eval) {
            (true, true) => Err(CommandError::usage(format!(
                "`{old}` is a rubric and an eval of labels; write RUBRIC/EVAL for the eval"
            ))),
            (true, false) => {
                check_rubric_exists(new, rubrics)?;
                Ok(Self::Rubric { old, new })
            }
            (false, true) => {
                check_eval_exists(None, new, rubrics)?;
                Ok(Self::Eval { old, new })
            }
            (false, false) if labels.iter().any(|label| label.eval == old) || is_rubric => {
                Err(CommandError::usage(format!(
                    "`{old}` is in this workspace, so its labels count; `dicta labels rename RUBRIC/EVAL \
                     RUBRIC/EVAL` moves the labels of one eval anyway"
                )))
            }
            (false, false) => {
                let known: IndexSet<&str> = labels
                    .iter()
                    .flat_map(|label| label.rubric.as_deref().into_iter().chain([&*label.eval]))
                    .collect();
                let near = find_nearest(old, known.iter().copied());
                let near =
                    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                Err(CommandError::usage(format!(
                    "no label names a rubric or eval `{old}`{near}"
                )))
            }
        }
    }

    fn selects(&self, label: &Label, rubrics: &[Arc<Rubric>]) -> bool {
        let rubric = label.rubric.as_deref();
        match *self {
            Self::Rubric { old, .. } => rubric == Some(old),
            Self::Eval { old, new } => {
                // A label of a rubric without the new eval would match nothing again.
                let renamed = Label {
                    eval: new.to_owned(),
                    ..label.clone()
                };
                label.eval == old
                    && !matches_an_eval(label, rubrics)
                    && matches_an_eval(&renamed, rubrics)
            }
            Self::EvalOfRubric { old, .. } => rubric == Some(old.0) && label.eval == old.1,
        }
    }

    fn names(&self) -> LabelRename {
        let owned = |name: &str| Some(name.to_owned());
        match *self {
            Self::Rubric { new, .. } => LabelRename {
                rubric: owned(new),
                eval: None,
            },
            Self::Eval { new, .. } => LabelRename {
                rubric: None,
                eval: owned(new),
            },
            Self::EvalOfRubric { new, .. } => LabelRename {
                rubric: owned(new.0),
                eval: owned(new.1),
            },
        }
    }
}

fn check_rubric_exists(id: &str, rubrics: &[Arc<Rubric>]) -> Result<(), CommandError> {
    if rubrics.iter().any(|rubric| rubric.id == id) {
        return Ok(());
    }
    let known: Vec<&str> = rubrics.iter().map(|rubric| rubric.id.as_str()).collect();
    Err(CommandError::usage(format!(
        "no rubric has the id `{id}`{}",
        suggest(id, &known)
    )))
}

fn check_eval_exists(
    rubric: Option<&str>,
    id: &str,
    rubrics: &[Arc<Rubric>],
) -> Result<(), CommandError> {
    if let Some(rubric) = rubric {
        check_rubric_exists(rubric, rubrics)?;
    }
    let named = rubrics
        .iter()
        .filter(|known| rubric.is_none_or(|rubric| rubric == known.id));
    let known: Vec<&str> = named
        .flat_map(|rubric| &rubric.evals)
        .map(|eval| eval.id.as_str())
        .collect();
    if known.contains(&id) {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "no eval has the id `{id}`{}",
        suggest(id, &known)
    )))
}

fn suggest(written: &str, known: &[&str]) -> String {
    match find_nearest(written, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; known: {}", known.join(", ")),
    }
}

/// Renames a rubric or eval in all label files.
fn rename(old: &str, new: &str, place: &WorkspaceArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let workspace = load_workspace(place.workspace.as_deref(), cx)?.workspace;
    let renaming = Renaming::parse(old, new, &workspace)?;
    let is_meant = |label: &Label| renaming.selects(label, &workspace.rubrics);
    let names = renaming.names();
    let mut all = 0;
    for file in list_writable_files(&workspace) {
        let changed = rename_labels(&file, &is_meant, &names).map_err(to_command_error)?;
        if changed > 0 {
            cx.streams.print(&format!(
                "{}: renamed `{old}` to `{new}` in {}\n",
                show_path(&workspace, &file),
                pluralize(changed, "label")
            ));
        }
        all += changed;
    }
    note_other_files(&workspace, &is_meant, cx);
    if all == 0 {
        return Err(CommandError::usage(format!(
            "no label in a file that dicta writes can move from `{old}` to `{new}`"
        )));
    }
    Ok(0)
}

/// Deletes the labels that match nothing.
fn prune(args: &PruneLabelsArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let workspace = load_workspace(args.place.workspace.as_deref(), cx)?.workspace;
    let transcripts = run::collect_transcript_ids(&workspace)
        .map_err(|error| CommandError::usage(error.to_string()))?;
    let matches_nothing = |label: &Label| {
        !transcripts.contains(&label.transcript) || !matches_an_eval(label, &workspace.rubrics)
    };
    note_other_files(&workspace, &matches_nothing, cx);
    // Step: list what would go, by its target.
    let files: HashSet<PathBuf> = list_writable_files(&workspace).into_iter().collect();
    let mut targets: IndexMap<String, u64> = IndexMap::new();
    for (label, place) in workspace.labels.iter().zip(&workspace.label_places) {
        if matches_nothing(label) && files.contains(&workspace.root.join(&place.file)) {
            *targets.entry(describe_target(label)).or_default() += 1;
        }
    }
    let count: u64 = targets.values().sum();
    if count == 0 {
        cx.streams
            .print_stderr("every label that dicta can write matches a transcript and an eval");
        return Ok(0);
    }
    let mut listed = format!("{} match nothing:\n", pluralize(count, "label"));
    for (target, labels) in &targets {
        let _infallible = writeln!(listed, "  {labels:>5}  {target}");
    }
    cx.streams.print_stderr(&listed);
    if args.dry_run {
        cx.streams.print_stderr("nothing was deleted");
        return Ok(0);
    }
    if !confirm_deletion("Delete these labels?", args.yes, cx)? {
        cx.streams.print_stderr("nothing was deleted");
        return Ok(0);
    }
    // Step: delete. The lines go to standard output, so that the user can keep them.
    for file in list_writable_files(&workspace) {
        let removed = remove_labels(&file, &matches_nothing).map_err(to_command_error)?;
        for line in &removed {
            cx.streams.print(&format!("{line}\n"));
        }
        if !removed.is_empty() {
            cx.streams.print_stderr(&format!(
                "{}: deleted {}",
                show_path(&workspace, &file),
                pluralize(removed.len() as u64, "label")
            ));
        }
    }
    Ok(0)
}

/// Describes what a label is about, without its transcript's message.
fn describe_target(label: &Label) -> String {
    let rubric = label.rubric.as_deref().unwrap_or("*");
    format!("{rubric}/{} on {}", label.eval, label.transcript)
}

/// Returns the label files in dicta's own format.
fn list_writable_files(workspace: &Workspace) -> Vec<PathBuf> {
    let places = workspace.label_places.iter().map(|place| &place.file);
    // Only files of this format have their text among the files of the workspace.
    let has_text = |file: &&Arc<std::path::Path>| {
        let mut files = workspace.files.iter();
        files.any(|loaded| *loaded.path == ***file)
    };
    let files: IndexSet<PathBuf> = places
        .filter(has_text)
        .map(|file| workspace.root.join(file))
        .collect();
    files.into_iter().collect()
}

/// Prints the files with labels that `is_meant` selects and dicta cannot write.
fn note_other_files(workspace: &Workspace, is_meant: &dyn Fn(&Label) -> bool, cx: &CommandCx) {
    let writable: HashSet<PathBuf> = list_writable_files(workspace).into_iter().collect();
    let mut others: IndexMap<String, u64> = IndexMap::new();
    for (label, place) in workspace.labels.iter().zip(&workspace.label_places) {
        if is_meant(label) && !writable.contains(&workspace.root.join(&place.file)) {
            *others.entry(place.file.display().to_string()).or_default() += 1;
        }
    }
    for (file, count) in others {
        cx.streams.print_stderr(&format!(
            "note: {} in {file} stay, because dicta writes only files with one JSON object per line",
            pluralize(count, "label")
        ));
    }
}

fn show_path(workspace: &Workspace, file: &std::path::Path) -> String {
    let shown = file.strip_prefix(&workspace.root).unwrap_or(file);
    shown.display().to_string()
}

fn to_command_error(error: LabelEditError) -> CommandError {
    match error {
        LabelEditError::Io { path, source } => {
            CommandError::write_failed(&path.display().to_string(), &source)
        }
        other => CommandError::usage(other.to_string()),
    }
}

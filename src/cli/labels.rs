//! `dicta label`, `dicta labels rename` and `dicta labels prune`: change the label files of a workspace.
//!
//! Responsible for names and questions. Does not write; `workspace::label_edit` does.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::deletion::confirm_deletion;
use super::error::CommandError;
use super::format::{Format, format_list};
use super::label_args::{
    LabelArgs, LabelCommand, LabelValueArg, LabelsCommand, PruneLabelsArgs, SeenArg,
};
use super::label_queue::{list_queue, plan_labels};
use super::label_targets::{find_label_target, show_path, to_command_error};
use super::workspace::load_workspace_without_judges;
use super::{label_drift, label_pairs, label_raters, rater_list};
use crate::diag::find_nearest;
use crate::model::{Label, SeenVerdicts, UNKNOWN_RATER, pluralize};
use crate::rubric::Rubric;
use crate::run;
use crate::workspace::label_edit::{
    LabelOrigin, LabelRename, list_label_files, remove_labels, rename_draws, rename_labels,
    set_label,
};
use crate::workspace::{Workspace, find_label_author, matches_an_eval};

/// Labels one decision, as the keys `p`, `f` and `u` of the workbench do.
pub(super) fn label(args: &LabelArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    if let Some(LabelCommand::Plan(plan)) = &args.command {
        return plan_labels(plan, cx);
    }
    if let Some(queue) = args.queue.queue {
        return list_queue(queue.queue(), &args.queue, &args.place, cx);
    }
    let (Some(cell), Some(value)) = (&args.cell, args.value) else {
        return Err(CommandError::usage(
            "`dicta label` needs a cell and pass, fail or unsure; or a queue, such as --queue random --eval EVAL",
        ));
    };
    let workspace = load_workspace_without_judges(args.place.workspace.as_deref(), cx)?.workspace;
    let target = find_label_target(&workspace, cell, cx)?;
    let decision = &target.name;
    let passed = match value {
        LabelValueArg::Pass => Some(true),
        LabelValueArg::Fail => Some(false),
        LabelValueArg::Unsure => None,
    };
    let word = match value {
        LabelValueArg::Pass => "pass",
        LabelValueArg::Fail => "fail",
        LabelValueArg::Unsure => "unsure",
    };
    let labels = workspace.index_labels();
    let file = workspace.labels_file_path();
    let author = file
        .parent()
        .and_then(|folder| find_label_author(&cx.env, folder));
    // As in the workbench, the same label is not written again with a new time. The answers of other people do not
    // count: this person's answer is new evidence, also if it agrees with their majority.
    let answers = labels.list_answers(&target.query());
    if has_own_answer(&answers, author.as_deref(), passed) && args.note.is_none() {
        cx.streams
            .print_wrapped(&format!("{decision} is labelled {word} already\n"));
        return Ok(0);
    }
    let seen = args.seen.map(|seen| match seen {
        SeenArg::None => SeenVerdicts::None,
        SeenArg::ThisJudge => SeenVerdicts::ThisJudge,
        SeenArg::Another => SeenVerdicts::Another,
    });
    let origin = LabelOrigin {
        seen,
        note: args.note.clone(),
        ..target.origin()
    };
    set_label(
        &file,
        decision,
        passed,
        &origin,
        &cx.env,
        cx.clock.wall_time(),
    )
    .map_err(to_command_error)?;
    // The answer to a sealed item appears nowhere, also not in the history of a terminal.
    let shown = if workspace.is_sealed(&decision.transcript) {
        "sealed"
    } else {
        word
    };
    cx.streams.print_wrapped(&format!(
        "labelled {decision}: {shown} ({})\n",
        show_path(&workspace, &file)
    ));
    Ok(0)
}

/// Returns true if a person gave this answer, among the answers of all. If the person or the author of an only answer has
/// no name, that answer counts as this person's, because a new label replaces it.
fn has_own_answer(
    answers: &[(&str, Option<bool>)],
    author: Option<&str>,
    passed: Option<bool>,
) -> bool {
    let own = author.unwrap_or(UNKNOWN_RATER);
    if answers.iter().any(|(by, _)| *by == own) {
        return answers.iter().any(|(by, one)| *by == own && *one == passed);
    }
    match answers {
        [(by, one)] => (author.is_none() || *by == UNKNOWN_RATER) && *one == passed,
        _ => false,
    }
}

/// Runs a subcommand of `dicta labels`.
pub(super) fn labels(command: &LabelsCommand, cx: &CommandCx) -> Result<u8, CommandError> {
    match command {
        LabelsCommand::Drift { format, place } => label_drift::list_drift(*format, place, cx),
        LabelsCommand::Confirm(args) => label_drift::confirm_labels(args, cx),
        LabelsCommand::Merge {
            files,
            format,
            place,
        } => label_raters::merge_labels(files, *format, place, cx),
        LabelsCommand::Raters { format, place } => rater_list::list_raters(*format, place, cx),
        LabelsCommand::Pairs {
            state,
            format,
            place,
        } => label_pairs::list_pairs(state, *format, place, cx),
        LabelsCommand::Choose(args) => label_pairs::choose(args, cx),
        LabelsCommand::Close {
            cell,
            cause,
            clause,
            place,
        } => label_raters::close_disagreement(cell, *cause, clause.as_deref(), place, cx),
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
        let labels: Vec<&Label> = workspace.list_labels().map(|(label, _)| label).collect();
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
    let workspace = load_workspace_without_judges(place.workspace.as_deref(), cx)?.workspace;
    let renaming = Renaming::parse(old, new, &workspace)?;
    let is_meant = |label: &Label| renaming.selects(label, &workspace.rubrics);
    let names = renaming.names();
    let mut all = 0;
    for file in list_label_files(&workspace) {
        let changed = rename_labels(&file, &is_meant, &names).map_err(to_command_error)?;
        let changed = changed.len() as u64;
        if changed > 0 {
            cx.streams.print_wrapped(&format!(
                "{}: renamed `{old}` to `{new}` in {}\n",
                show_path(&workspace, &file),
                pluralize(changed, "label")
            ));
        }
        all += changed;
    }
    let file = workspace.labels_file_path();
    let (draws, changed) = rename_draws(&file, &is_meant, &names).map_err(to_command_error)?;
    if !changed.is_empty() {
        let changed = changed.len() as u64;
        cx.streams.print_wrapped(&format!(
            "{}: renamed `{old}` to `{new}` in {}\n",
            show_path(&workspace, &draws),
            pluralize(changed, "draw")
        ));
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
    let workspace = load_workspace_without_judges(args.place.workspace.as_deref(), cx)?.workspace;
    let transcripts = run::collect_transcript_ids(&workspace)
        .map_err(|error| CommandError::usage(error.to_string()))?;
    let is_stray = |label: &Label| {
        !transcripts.contains(&label.transcript) || !matches_an_eval(label, &workspace.rubrics)
    };
    // dicta prints what it deletes, and it may not print a sealed label.
    let matches_nothing =
        |label: &Label| !workspace.is_sealed(&label.transcript) && is_stray(label);
    let sealed = workspace.list_labels();
    let sealed = sealed.filter(|(label, _)| workspace.is_sealed(&label.transcript));
    let sealed = sealed.filter(|(label, _)| is_stray(label)).count() as u64;
    if sealed > 0 {
        cx.streams.print_stderr(&format!(
            "note: dicta keeps {} without a match, because a deletion prints the lines; delete them by hand",
            pluralize(sealed, "sealed label")
        ));
    }
    note_other_files(&workspace, &matches_nothing, cx);
    // Step: list what would go, by its target.
    let files: HashSet<PathBuf> = list_label_files(&workspace).into_iter().collect();
    let mut targets: IndexMap<String, u64> = IndexMap::new();
    let mut listed_labels: HashSet<String> = HashSet::new();
    let mut rows: Vec<Value> = Vec::new();
    for (label, place) in workspace.labels.iter().zip(&workspace.label_places) {
        if matches_nothing(label) && files.contains(&workspace.root.join(&place.file)) {
            *targets.entry(describe_target(label)).or_default() += 1;
            let text = identify_label(label);
            let file = show_path(&workspace, &workspace.root.join(&place.file));
            rows.push(pruned_to_json(&file, &text, false));
            listed_labels.insert(text);
        }
    }
    let count: u64 = targets.values().sum();
    // For people, the list above and the deleted lines say everything.
    let print_rows = |rows: Vec<Value>| {
        cx.streams
            .print(&format_list(args.format, || rows, String::new));
    };
    if count == 0 {
        print_rows(rows);
        cx.streams
            .print_stderr("every label that dicta can write matches a transcript and an eval");
        return Ok(0);
    }
    let mut listed = format!("{} without a match:\n", pluralize(count, "label"));
    for (target, labels) in &targets {
        let _infallible = writeln!(listed, "  {labels:>5}  {target}");
    }
    cx.streams.print_stderr(&listed);
    if args.dry_run || !confirm_deletion("Delete these labels?", args.yes, cx)? {
        print_rows(rows);
        cx.streams.print_stderr("nothing was deleted");
        return Ok(0);
    }
    // Step: delete. The lines go to standard output, so that the user can keep them.
    let mut deleted: Vec<Value> = Vec::new();
    for file in list_label_files(&workspace) {
        // While the question waited for its answer, another process may have added a transcript and its labels.
        let removed = remove_labels(&file, &|label| {
            listed_labels.contains(&identify_label(label))
        });
        let removed = match removed {
            Ok(removed) => removed,
            Err(error) => {
                // What is deleted already must not be lost.
                print_rows(deleted);
                return Err(to_command_error(error));
            }
        };
        let shown = show_path(&workspace, &file);
        for line in &removed {
            if args.format == Format::Human {
                cx.streams.print(&format!("{line}\n"));
            } else {
                deleted.push(pruned_to_json(&shown, line, true));
            }
        }
        if !removed.is_empty() {
            cx.streams.print_stderr(&format!(
                "{shown}: deleted {}",
                pluralize(removed.len() as u64, "label")
            ));
        }
    }
    print_rows(deleted);
    Ok(0)
}

/// Returns a label that matches nothing, for programs. `line` is its line in the file.
fn pruned_to_json(file: &str, line: &str, is_deleted: bool) -> Value {
    let label = serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
    json!({"type": "pruned_label", "file": file, "deleted": is_deleted, "label": label})
}

/// Returns the text that a label has in a file.
fn identify_label(label: &Label) -> String {
    serde_json::to_string(label).unwrap_or_default()
}

/// Describes what a label is about, without its transcript's message.
fn describe_target(label: &Label) -> String {
    let rubric = label.rubric.as_deref().unwrap_or("*");
    format!("{rubric}/{} on {}", label.eval, label.transcript)
}

/// Prints the files with labels that `is_meant` selects and dicta cannot write.
fn note_other_files(workspace: &Workspace, is_meant: &dyn Fn(&Label) -> bool, cx: &CommandCx) {
    let writable: HashSet<PathBuf> = list_label_files(workspace).into_iter().collect();
    let mut others: IndexMap<String, u64> = IndexMap::new();
    for (label, place) in workspace.list_labels() {
        if is_meant(label) && !writable.contains(&workspace.root.join(&place.file)) {
            *others.entry(place.file.display().to_string()).or_default() += 1;
        }
    }
    for (file, count) in others {
        cx.streams.print_stderr(&format!(
            "note: dicta keeps {} in {file}, because it writes only files with one JSON object per line",
            pluralize(count, "label")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_other_people_are_not_own_answers() {
        let has = |all: &[(&str, bool)], author| {
            let all: Vec<_> = all
                .iter()
                .map(|(by, passed)| (*by, Some(*passed)))
                .collect();
            has_own_answer(&all, author, Some(true))
        };
        let majority = [("ann", true), ("bo", true)];
        assert!(!has(&majority, Some("cy")));
        assert!(has(&majority, Some("bo")));
        assert!(has(&[("ann", true)], None));
        assert!(!has(&[("ann", false)], None));
        assert!(!has(&[("ann", true)], Some("bo")));
        assert!(has(&[("unknown", true)], Some("bo")));
    }
}

//! Labels. A label counts at once, the runtime writes it to the file, and the user can undo it.

use std::path::PathBuf;
use std::sync::Arc;

use super::notices::{push_info, push_written};
use super::panes::keep_selection_visible;
use super::quit;
use super::{label_moves, label_queues};
use crate::diag::{Diagnostic, Severity};
use crate::model::{CellName, Label, make_visible, pluralize};
use crate::tui::effect::Effect;
use crate::tui::label_write::WrittenLabel;
use crate::tui::label_write::{LabelChange, LabelWriteOrder};
use crate::tui::state::App;
use crate::tui::state::cells::{CellsState, LabelValue, RowId, compute_label_agreement};
use crate::tui::state::label_edits::{LabelEdit, is_created_for_first_label};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::label_edit::{AnnotationContent, LabelAnnotation};
use crate::workspace::{UNMATCHED_LABEL_CODE, Workspace};

/// `p`, `f`, `u`: labels the focused decision as pass, fail or unsure.
pub(super) fn set_label(app: &mut App, passed: Option<bool>) -> Vec<Effect> {
    let Some((row, name)) = focused_decision(app) else {
        return Vec::new();
    };
    let before = app.live_session.cells.row_label(row).cloned();
    // The answer of the majority can be another one than that of the person who labels now.
    let cells = &app.live_session.cells;
    let own = cells.own_answer(row);
    let own = own.map(|own| LabelValue::from_passed(own.passed));
    let current = own.or_else(|| cells.row(row).and_then(|row| row.label));
    let word = LabelValue::from_passed(passed).as_str();
    let what = format_decision_name(app, &name);
    let is_sealed = app.live_session.cells.is_sealed(&name.transcript);
    // A second press must not write the same label with a new time. In a queue, it answers the decision.
    if current == Some(LabelValue::from_passed(passed)) {
        let moved = label_queues::advance(app, row).unwrap_or_default();
        return push_info(
            app,
            format!("{what} is labelled {word} already{moved} (x removes it)"),
        );
    }
    let was_hidden = app
        .live_session
        .cells
        .row(row)
        .is_some_and(|row| row.hidden);
    let mut origin = app.live_session.cells.label_origin(row);
    origin.note = app.labelling.draft_notes.remove(&row);
    // The runtime adds the author and the time when it writes.
    let mut label = Label {
        rubric: Some(name.rubric.clone()),
        // Another value does not remove a person's note.
        note: before.as_ref().and_then(|label| label.note.clone()),
        ..Label::new(&name.transcript, &name.eval, passed)
    };
    origin.apply_to(&mut label);
    let change = LabelChange::Set {
        cell: name.clone(),
        passed,
        origin: Box::new(origin),
    };
    let effects = apply_edit(app, name, Some(label), before, change, None);
    if is_sealed {
        let moved = label_queues::advance(app, row).unwrap_or_default();
        let notice = format!("labelled {what}: sealed{moved} (U takes it back)");
        push_written(app, notice);
        return effects;
    }
    let agrees = app
        .live_session
        .cells
        .row(row)
        .and_then(|row| row.agrees_with(LabelValue::from_passed(passed)));
    let moved = label_queues::advance(app, row);
    // A filter such as `label:none` leaves the row, too.
    let is_left = moved.is_some() || app.live_session.cells.selected_row() != Some(row);
    let agrees = match agrees {
        // The verdict of a decision that the screen leaves blind stays hidden.
        _ if was_hidden && is_left => "",
        Some(true) => ", the verdict agrees",
        Some(false) => ", the verdict disagrees",
        None => "",
    };
    let moved = moved.unwrap_or_default();
    push_written(
        app,
        format!("labelled {what}: {word}{agrees}{moved} (U takes it back)"),
    );
    effects
}

/// Adds a note to the user's own label of a row, or a cause to the label that counts.
pub(super) fn annotate(app: &mut App, row: RowId, content: AnnotationContent) -> Vec<Effect> {
    let cells = &app.live_session.cells;
    let before = match &content {
        AnnotationContent::Note(_) => find_noted_label(cells, row),
        AnnotationContent::Cause(..) => cells.row_label(row),
    };
    let (Some(name), Some(before)) = (cells.decision_name(row), before.cloned()) else {
        return Vec::new();
    };
    let mut label = before.clone();
    content.apply_to(&mut label);
    let change = LabelChange::Annotate(LabelAnnotation {
        decision: name.clone(),
        by: before.by.clone(),
        content,
    });
    apply_edit(app, name, Some(label), Some(before), change, None)
}

/// Returns the label that a note of the user is about: their own one, or the one that counts.
pub(super) fn find_noted_label(cells: &CellsState, row: RowId) -> Option<&Label> {
    let own = cells.own_answer(row).map(|own| own.label);
    own.or_else(|| cells.row_label(row))
}

/// `a`: confirms the label of the focused decision after its question or transcript changed.
pub(super) fn confirm_label(app: &mut App) -> Vec<Effect> {
    let cells = &app.live_session.cells;
    let label = cells.selected_row().and_then(|row| cells.row_label(row));
    match label.map(|label| label.passed) {
        Some(passed) => set_label(app, passed),
        None => Vec::new(),
    }
}

/// `x`: removes the label of the focused decision.
pub(super) fn remove_label(app: &mut App) -> Vec<Effect> {
    let Some((row, name)) = focused_decision(app) else {
        // The label is missing only if the file changed in between.
        return Vec::new();
    };
    let Some(before) = app.live_session.cells.row_label(row).cloned() else {
        return Vec::new();
    };
    let what = format_decision_name(app, &name);
    let author = before.by.as_ref().map(|by| format!(" (by {by})"));
    let notice = format!(
        "removed the label of {what}: {}{} (U takes it back)",
        LabelValue::from_passed(before.passed).as_str(),
        author.unwrap_or_default()
    );
    let change = LabelChange::Remove(name.clone());
    let effects = apply_edit(app, name, None, Some(before), change, None);
    push_written(app, notice);
    effects
}

/// `U`: undoes the last label, or the last move of labels.
pub(super) fn undo_label(app: &mut App) -> Vec<Effect> {
    if let Some(effects) = label_moves::undo_move(app) {
        return effects;
    }
    let Some(last) = app.label_edits.undo_stack.pop() else {
        return Vec::new();
    };
    let what = format_decision_name(app, &last.name);
    let is_sealed = app.live_session.cells.is_sealed(&last.name.transcript);
    let state = match &last.previous {
        // The label before may be another one, which is not known here.
        _ if is_sealed => "labelled as before (sealed)".to_owned(),
        Some(label) => format!(
            "labelled {} again",
            LabelValue::from_passed(label.passed).as_str()
        ),
        None => "not labelled any more".to_owned(),
    };
    let more = match app.label_edits.undo_stack.len() {
        0 => String::new(),
        more => format!(" ({more} more can be taken back)"),
    };
    let row = app.live_session.cells.find_row(&last.name);
    let change = LabelChange::Undo(last.number);
    let (name, before, now) = (last.name.clone(), last.label.clone(), last.previous.clone());
    let effects = apply_edit(app, name, now, before, change, Some(last));
    if let Some(row) = row {
        // Moves to the row, so that the user sees the change. After the edit, a filter shows the row again.
        app.live_session.cells.select_row(row);
        keep_selection_visible(app);
        if let Some(queue) = &mut app.labelling.queue {
            queue.set_handled(row, false);
        }
    }
    push_written(app, format!("{what} is {state}{more}"));
    effects
}

/// Applies a label to the cells and orders the write.
fn apply_edit(
    app: &mut App,
    name: CellName,
    label: Option<Label>,
    before: Option<Label>,
    what: LabelChange,
    undoes: Option<LabelEdit>,
) -> Vec<Effect> {
    let Some(file) = app
        .workspace()
        .map(|workspace| workspace.labels_file_path())
    else {
        return Vec::new();
    };
    app.labelling.figures.version += 1;
    app.label_edits.last_number += 1;
    let number = app.label_edits.last_number;
    let cells = &app.live_session.cells;
    let neighbour = cells.selected_row().zip(cells.neighbour_row());
    // The label counts at once, so that the screen does not wait for the write.
    app.live_session.cells.set_local_label(&name, label.clone());
    let edit = LabelEdit {
        number,
        name,
        label,
        previous: before,
        written: false,
        undoes: undoes.map(Box::new),
    };
    // An undo is not an edit that can be undone.
    if edit.undoes.is_none() {
        app.label_edits.undo_stack.push(edit.clone());
    }
    app.label_edits.pending.push(edit);
    refresh_flip_directions(app);
    // A filter such as `label:none` hides the labelled row, so the cursor goes on to the next one.
    if let Some((from, next)) = neighbour
        && app.live_session.cells.leave_filtered_row(from, next)
    {
        keep_selection_visible(app);
    }
    vec![Effect::WriteLabel(LabelWriteOrder {
        number,
        file,
        change: what,
    })]
}

/// Updates each flip of the report: a label decides if the flip is an improvement.
fn refresh_flip_directions(app: &mut App) {
    let cells = &mut app.live_session.cells;
    if let Some(report) = &mut app.saves.report {
        for flip in &mut report.flips {
            let label = cells.row(flip.row).and_then(|row| row.label);
            flip.agrees_with_label = compute_label_agreement(label, flip.after.outcome);
        }
    }
    // A label can change the filter's matches.
    cells.update_shown_if_due(app.now);
}

/// Handles the result of a write. A failed write removes the label again.
pub(super) fn handle_written(
    app: &mut App,
    number: u64,
    written: Result<WrittenLabel, TaskFailure>,
) -> Vec<Effect> {
    match written {
        Ok(written) => {
            app.label_edits.remember_written(number, &written);
            let found = app
                .label_edits
                .pending
                .iter_mut()
                .find(|edit| edit.number == number);
            if let Some(edit) = found {
                edit.written = true;
                // The file now contains the author and the time. After a removal, an older label may apply; the
                // reload reads it.
                if edit.label.is_some() && written.label.is_some() {
                    edit.label = written.label;
                    apply_latest_label(app, number);
                }
            }
        }
        Err(why) => handle_write_failure(app, number, why.as_str()),
    }
    let read = app.workspace().map(Arc::clone);
    if let Some(workspace) = read.filter(|workspace| app.label_edits.matches_loaded_file(workspace))
    {
        // The file has the text that the workspace was loaded with, so the watcher reports no change.
        handle_reloaded(app, &workspace, &[]);
    }
    // The user quit while a label was being written.
    if app.label_edits.quit_when_written && !app.label_edits.has_unwritten() {
        app.label_edits.quit_when_written = false;
        return quit::quit_with_code(app, 0);
    }
    Vec::new()
}

/// Applies the newest label of the decision that this edit belongs to.
fn apply_latest_label(app: &mut App, number: u64) {
    let pending = &app.label_edits.pending;
    let edit = pending.iter().find(|edit| edit.number == number);
    let newest = edit.and_then(|edit| pending.iter().rfind(|other| other.name == edit.name));
    if let Some(newest) = newest {
        let (name, label) = (newest.name.clone(), newest.label.clone());
        app.live_session.cells.set_local_label(&name, label);
    }
}

fn handle_write_failure(app: &mut App, number: u64, why: &str) {
    let labels = &mut app.label_edits;
    let Some(at) = labels
        .pending
        .iter()
        .position(|failed| failed.number == number)
    else {
        return;
    };
    let failed = labels.pending.remove(at);
    // The failed edit can't be undone, so `U` skips it.
    labels.undo_stack.retain(|done| done.number != number);
    for later in &mut labels.pending {
        // An edit that was never written can't be undone, and undoing it must not write it again.
        later.undoes = later.undoes.take().filter(|undone| undone.number != number);
    }
    // A failed undo leaves the edit that it should undo in place.
    labels
        .undo_stack
        .extend(failed.undoes.map(|undone| *undone));
    labels.undo_stack.sort_by_key(|done| done.number);
    labels.quit_when_written = false;
    // A later edit of the same decision still counts.
    match labels
        .pending
        .iter()
        .rfind(|other| other.name == failed.name)
    {
        Some(other) => {
            let (name, label) = (other.name.clone(), other.label.clone());
            app.live_session.cells.set_local_label(&name, label);
        }
        None => app.live_session.cells.clear_local_label(&failed.name),
    }
    refresh_flip_directions(app);
    let what = format_decision_name(app, &failed.name);
    let notice = format!("the label of {what} is as before: {why}");
    app.notices.push(app.now, NoticeLevel::Error, notice);
}

/// Applies labels of a reloaded workspace. Returns the changed files without the label file if only dicta wrote it.
pub(super) fn handle_reloaded(
    app: &mut App,
    workspace: &Arc<Workspace>,
    changed: &[PathBuf],
) -> Vec<PathBuf> {
    let (held, written_by_dicta) = app.label_edits.reconcile_with_files(workspace);
    // The labels file did not change, so nothing is merged.
    if !written_by_dicta && held.is_empty() {
        let before = app.workspace();
        if before.is_some_and(|before| is_created_for_first_label(before, workspace)) {
            return list_other_files(workspace, changed);
        }
        return changed.to_vec();
    }
    app.live_session
        .cells
        .replace_labels(workspace.index_labels());
    for name in &held {
        app.live_session.cells.clear_local_label(name);
    }
    refresh_flip_directions(app);
    // Another program changed the file, so the change counts as a save.
    if !written_by_dicta {
        return changed.to_vec();
    }
    // dicta wrote the label file itself, so this isn't a save of the user.
    list_other_files(workspace, changed)
}

/// Returns the changed files without the labels file that dicta writes.
pub(super) fn list_other_files(workspace: &Workspace, changed: &[PathBuf]) -> Vec<PathBuf> {
    let file = workspace.labels_file_path();
    let others = changed
        .iter()
        .filter(|path| workspace.root.join(path) != file);
    others.cloned().collect()
}

/// Shows label problems if they are new. They don't stop the judging: an invalid label is ignored.
pub(super) fn report_problems(app: &mut App, before: Option<&Workspace>, now: &Workspace) {
    let known = before.map_or_else(Vec::new, list_label_problems);
    let mut problems = list_label_problems(now);
    // Opening shows all warnings itself.
    if before.is_none() {
        problems.retain(|problem| problem.severity == Severity::Error);
    }
    // Each save reloads the workspace, but the problems are shown only once.
    if known == problems {
        return;
    }
    let Some(first) = problems.first() else {
        let notice = "all labels match again";
        return app.notices.push(app.now, NoticeLevel::Info, notice);
    };
    let first = make_visible(&first.to_string(), false).into_owned();
    let notice = match problems.len() {
        1 => format!("{first} (such labels count for nothing until you fix them)"),
        n => format!(
            "{first} (and {}; such labels count for nothing until you fix them)",
            pluralize(n as u64 - 1, "more problem")
        ),
    };
    app.notices.push(app.now, NoticeLevel::Warning, notice);
}

/// Returns the errors of labels, and the warnings about labels that match no eval.
fn list_label_problems(workspace: &Workspace) -> Vec<&Diagnostic> {
    let unmatched = workspace.warnings.iter();
    let unmatched = unmatched.filter(|warning| warning.code == UNMATCHED_LABEL_CODE);
    workspace.label_problems.iter().chain(unmatched).collect()
}

fn focused_decision(app: &App) -> Option<(RowId, CellName)> {
    let cells = &app.live_session.cells;
    let row = cells.selected_row()?;
    Some((row, cells.decision_name(row)?))
}

/// Formats a decision for a notice, such as `refund-03 × grounded`.
fn format_decision_name(app: &App, name: &CellName) -> String {
    let times = if app.ui.theme.glyphs().ascii {
        "x"
    } else {
        "×"
    };
    format!("{} {times} {}", name.transcript, name.eval)
}

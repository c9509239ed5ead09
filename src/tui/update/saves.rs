//! Saves: dicta reloads the workspace, judges again what the save touched, and reports flips.
//!
//! Evals that code decides are decided at once. Judges wait until the user stops saving: free judges judge all
//! touched evals, other judges only the focused cell. A run that has not called a model is cancelled if a later save
//! touches the same evals.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::cost_estimate::queue_costly;
use super::edits::{self, SavedFiles};
use super::save_runs::{self, start_eval_runs};
use super::touched_evals::{self, TouchKind, TouchedEval};
use super::{examples, label_moves, labels, warnings};
use crate::diag::{Diagnostic, Severity, render_plain};
use crate::model::make_visible;
use crate::run::CachePolicy;
use crate::tui::effect::Effect;
use crate::tui::state::cells::CellsState;
use crate::tui::state::edit_report::summarize;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::{RunStage, TrackedRun};
use crate::tui::state::saves::{EvalName, JUDGE_DEBOUNCE, PARTIAL_WRITE_WINDOW, PendingJudging};
use crate::tui::state::{App, OpenedItem};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::ScrollState;
use crate::workspace::Workspace;

/// The width of an error's snippet in the log, in columns.
const LOG_SNIPPET_WIDTH: usize = 100;

/// Handles a reload without errors.
pub(super) fn handle_reloaded(
    app: &mut App,
    workspace: Arc<Workspace>,
    changed: &[PathBuf],
) -> Vec<Effect> {
    // Labels come first: dicta's own write of the labels file must not count as a save.
    let others = labels::handle_reloaded(app, &workspace, changed);
    if others.is_empty() && !changed.is_empty() && app.workspace().is_some() {
        // Only dicta's own label file changed, and the app knows its labels already.
        if !app.saves.problems.is_empty() {
            clear_problems(app, true);
        }
        app.opened = OpenedItem::Workspace(workspace);
        return save_runs::renew_user_orders(app, false);
    }
    let changed = others.as_slice();
    clear_problems(app, changed.is_empty());
    let Some(old) = app.workspace().map(Arc::clone) else {
        // The workspace had errors when it was opened.
        app.opened = OpenedItem::Workspace(Arc::clone(&workspace));
        app.past_verdict_wait.begin();
        let mut effects = examples::try_after_open(app, &workspace);
        effects.extend(request_outline(app, workspace));
        return effects;
    };
    // The files are as before, for example after an undo in the editor.
    if changed.is_empty() {
        return Vec::new();
    }
    app.opened = OpenedItem::Workspace(Arc::clone(&workspace));
    // Find what the save changed.
    let gone = touched_evals::count_removed(&old, &workspace);
    let mut touched = touched_evals::find_touched(&old, &workspace);
    let changes_revision = touched_evals::changes_revision(&old, &workspace);
    let renames = edits::rename_evals(app, &old, &workspace);
    let stays = touched.is_empty()
        && gone == 0
        && renames.is_empty()
        && has_same_cells(&old, &workspace)
        && !touched_evals::has_changed_data(&old, &workspace, changed);
    let before = find_report_base(app, &old, &workspace, stays && !changes_revision);
    // Evals that only disappeared between two writes of one save need no judging.
    if let Some(base) = &before {
        let current = list_current_evals(&app.live_session.cells);
        touched_evals::drop_restored(base, &old, &workspace, &mut touched, |name| {
            current.contains(name)
        });
    }
    let saved = SavedFiles {
        old: &old,
        new: &workspace,
        changed,
        touched: &touched,
        changes_revision,
        renames,
    };
    let alone = edits::add_save(app, &saved, before);
    log_save(app, changed, &touched);
    warnings::report_new(app, &workspace.warnings);
    // Ordered first, because runs wait for the examples that code decides.
    let mut effects = examples::try_after_save(app, &old, &workspace, &touched);
    effects.extend(save_runs::renew_user_orders(
        app,
        changes_revision || !stays,
    ));
    if !stays {
        // The verdicts are decided by the old rubric. The runs of this save then show each change as a flip.
        effects.extend(request_outline(app, Arc::clone(&old)));
    }
    // The replay hides the live cells, so the notice explains that the save still counts.
    if app.replay.is_some() {
        let notice = "a file was saved: the live cells take it, the replay stays (q goes back)";
        app.notices.push(app.now, NoticeLevel::Info, notice);
    }
    if touched.is_empty() {
        if app.replay.is_none() {
            let report = || app.visible_report().map(|report| summarize(&report));
            let mut notice = alone.or_else(report).unwrap_or_default();
            if let Some(offer) = label_moves::offer_labels(app) {
                notice = format!("{notice}; {offer}");
            }
            app.notices.push(app.now, NoticeLevel::Info, notice);
        }
        return effects;
    }
    // Only from the list of cells: a user who reads another pane keeps it.
    if app.ui.focus == Pane::Cells && app.replay.is_none() {
        app.ui.tab_pane = Pane::Changes;
    }
    // Questions and previews of an earlier save are about older rubrics.
    let unanswered = save_runs::drop_unanswered(app);
    effects.extend(withdraw_replaced(app, &touched));
    // While automatic judging is off, a save only marks verdicts as stale.
    if app.saves.paused {
        app.saves.unjudged_saves += 1;
        // Recorded scores are decided by the new bounds without a judge.
        let redecided = touched.iter().filter(|t| t.kind == TouchKind::Redecided);
        let decided = list_evals_with_verdicts(&app.live_session.cells);
        let redecided: Vec<EvalName> = redecided
            .filter(|t| decided.contains(&t.name))
            .map(|t| t.name.clone())
            .collect();
        effects.extend(start_eval_runs(app, &redecided, CachePolicy::SkipUncached));
        return effects;
    }
    effects.extend(start_judging(app, &touched, unanswered));
    effects
}

/// Returns the workspace that the save is compared with, if it continues the last save. A file that is written in
/// pieces may load without its last evals. An editor may also reformat a file after saving it.
fn find_report_base(
    app: &App,
    old: &Workspace,
    new: &Workspace,
    layout: bool,
) -> Option<Arc<Workspace>> {
    let report = app.saves.report.as_ref()?;
    // Number 0 is a run or an earlier session without a save, which no save continues.
    let base = report.base.as_ref().filter(|_| report.number > 0)?;
    if app.now > report.saved_at + PARTIAL_WRITE_WINDOW {
        return None;
    }
    let back = report.lost_evals && touched_evals::are_evals_back(base, old, new);
    (back || layout).then(|| Arc::clone(base))
}

/// Returns the evals whose rows were all decided by their current version. An eval without rows was never decided.
fn list_current_evals(cells: &CellsState) -> HashSet<EvalName> {
    let mut positions: HashMap<u32, bool> = HashMap::new();
    for row in &cells.rows {
        let is_current = row.decision.is_some() && row.stale.is_none();
        *positions.entry(row.eval).or_insert(true) &= is_current;
    }
    // A removed eval and a new one may have the same name.
    let mut names: HashMap<(&str, &str), bool> = HashMap::new();
    for (at, is_current) in positions {
        if let Some(eval) = cells.evals.get(at as usize) {
            *names.entry((&eval.rubric, &eval.id)).or_insert(true) &= is_current;
        }
    }
    let current = names.into_iter().filter(|(_, is_current)| *is_current);
    current
        .map(|((rubric, eval), _)| EvalName {
            rubric: rubric.to_owned(),
            eval: eval.to_owned(),
        })
        .collect()
}

/// Adds a line about a save to the log: its files, and the evals that it judges again. The notice of a save that judges
/// nothing has the files and the reason, so the log gets no other line.
fn log_save(app: &mut App, changed: &[PathBuf], touched: &[TouchedEval]) {
    // The notice during a replay does not name the files.
    if touched.is_empty() && app.replay.is_none() {
        return;
    }
    let show = |path: &PathBuf| make_visible(&path.display().to_string(), false).into_owned();
    let files: Vec<String> = changed.iter().map(show).collect();
    let evals: Vec<String> = touched
        .iter()
        .map(|eval| format!("{}/{}", eval.name.rubric, eval.name.eval))
        .collect();
    let what = match (evals.is_empty(), app.saves.paused) {
        (true, _) => "nothing to judge again".to_owned(),
        (false, true) => format!("stale: {} (auto is off)", evals.join(", ")),
        (false, false) => format!("changed: {}", evals.join(", ")),
    };
    let text = format!("saved {}; {what}", files.join(", "));
    app.notices.log_only(app.now, NoticeLevel::Info, text);
}

/// Returns true if both versions have the same cells and labels.
fn has_same_cells(old: &Workspace, new: &Workspace) -> bool {
    old.transcripts == new.transcripts
        && old.field_maps == new.field_maps
        && old.labels == new.labels
}

/// Orders the outline and the newest verdicts of the current workspace.
fn request_outline(app: &mut App, decided_by: Arc<Workspace>) -> Vec<Effect> {
    // Results of an earlier order are then ignored.
    app.generation += 1;
    let generation = app.generation;
    let Some(workspace) = app.workspace().map(Arc::clone) else {
        return Vec::new();
    };
    vec![
        Effect::CheckKeys(Arc::clone(&workspace)),
        Effect::ComputeOutline {
            generation,
            workspace: Arc::clone(&workspace),
        },
        Effect::ReadNewestVerdicts {
            generation,
            workspace,
            decided_by,
            renames: app.saves.renames.clone(),
        },
    ]
}

/// Clears the problems of earlier saves. If `alone`, announces that the file loads again, because no other notice
/// follows.
fn clear_problems(app: &mut App, alone: bool) {
    let problems = std::mem::take(&mut app.saves.problems);
    if !problems.is_empty() {
        // The pane shows another text from here on, or nothing if no save came before.
        app.saves.scroll = ScrollState::top();
        if app.saves.report.is_none() && app.ui.tab_pane == Pane::Changes {
            app.ui.tab_pane = Pane::Verdict;
        }
    }
    dismiss_outdated(app);
    if let Some(first) = problems.first()
        && alone
    {
        let file = first.file.display();
        let notice = format!("{file} loads again");
        app.notices.push(app.now, NoticeLevel::Info, notice);
    }
}

/// Hides a notice from before a save, because it may be outdated. Warnings and errors stay, and the answer to the key that
/// saved.
fn dismiss_outdated(app: &mut App) {
    let toast = app.notices.toast(app.now);
    if toast.is_some_and(|notice| notice.level == NoticeLevel::Info)
        && !app.notices.answers_write(app.now)
    {
        app.notices.dismiss();
    }
}

/// Starts the runs that a save needs at once and queues the rest.
fn start_judging(app: &mut App, touched: &[TouchedEval], unanswered: Vec<String>) -> Vec<Effect> {
    let mut waiting = app.saves.pending_judging.take().unwrap_or(PendingJudging {
        due: app.now,
        decisions: Vec::new(),
        evals: Vec::new(),
        save: 0,
    });
    let mut known: HashSet<String> = waiting.decisions.iter().cloned().collect();
    let new = unanswered.into_iter();
    waiting
        .decisions
        .extend(new.filter(|name| known.insert(name.clone())));
    let names: Vec<EvalName> = touched.iter().map(|t| t.name.clone()).collect();
    // Runs over older versions of these evals are cancelled first.
    let mut effects = cancel_superseded(app, &names, &mut waiting);
    let names_where = |wanted: fn(TouchKind) -> bool| -> Vec<EvalName> {
        let matching = touched.iter().filter(|t| wanted(t.kind));
        matching.map(|t| t.name.clone()).collect()
    };
    // Checks cost nothing, so they run at once.
    let checks = names_where(|how| how == TouchKind::Check);
    effects.extend(start_eval_runs(app, &checks, CachePolicy::Use));
    // These evals may have recorded verdicts for their new text, for example after a return to an earlier one. This run
    // takes them from the cache and calls no judge.
    let known = touched.iter().filter(|t| match t.kind {
        TouchKind::Redecided | TouchKind::Costly => true,
        TouchKind::Check | TouchKind::Free => false,
    });
    let decided = list_evals_with_verdicts(&app.live_session.cells);
    let known: Vec<EvalName> = known
        .filter(|t| decided.contains(&t.name))
        .map(|t| t.name.clone())
        .collect();
    effects.extend(start_eval_runs(app, &known, CachePolicy::SkipUncached));
    // Free judges wait until the user stops saving.
    waiting
        .evals
        .extend(names_where(|how| how == TouchKind::Free));
    waiting.evals.sort();
    waiting.evals.dedup();
    effects.extend(queue_costly(app, touched, &mut waiting));
    if !waiting.evals.is_empty() || !waiting.decisions.is_empty() {
        // Each save restarts the wait.
        waiting.due = app.now + JUDGE_DEBOUNCE;
        waiting.save = app.saves.number;
        app.saves.pending_judging = Some(waiting);
    }
    effects
}

/// Cancels runs of earlier saves over the same evals that have not called a model. Their other evals are queued
/// again.
fn cancel_superseded(
    app: &mut App,
    touched: &[EvalName],
    waiting: &mut PendingJudging,
) -> Vec<Effect> {
    let runs = &mut app.live_session.runs.by_ticket;
    let touched: HashSet<&EvalName> = touched.iter().collect();
    let mut effects = Vec::new();
    app.saves.save_runs.retain(|caused| {
        let Some(run) = runs.get_mut(&caused.ticket) else {
            return false;
        };
        if !matches!(run.stage, RunStage::Requested | RunStage::Running) {
            return false;
        }
        // A run that called a model has cost money, so its verdicts are kept.
        let called_model = run.has_called_model();
        let same = caused.evals.iter().any(|eval| touched.contains(eval));
        if called_model || !same {
            return true;
        }
        run.stage = RunStage::Cancelling;
        effects.push(Effect::CancelRun(caused.ticket));
        let left = caused.evals.iter().filter(|eval| !touched.contains(eval));
        waiting.evals.extend(left.cloned());
        waiting.decisions.extend(caused.decisions.iter().cloned());
        false
    });
    effects
}

/// Stops live runs from judging the rest of the evals whose question the save replaced. Cells that have started end.
fn withdraw_replaced(app: &App, touched: &[TouchedEval]) -> Vec<Effect> {
    let replaced = touched.iter().filter(|eval| match eval.kind {
        TouchKind::Free | TouchKind::Costly => true,
        TouchKind::Check | TouchKind::Redecided => false,
    });
    let replaced: Vec<EvalName> = replaced.map(|eval| eval.name.clone()).collect();
    if replaced.is_empty() {
        return Vec::new();
    }
    let is_affected = |run: &TrackedRun| {
        // The user ordered a second opinion or noise of the question as it was.
        run.edit.is_some()
            && !run.measures_noise
            && !run.only_records
            && matches!(run.stage, RunStage::Requested | RunStage::Running)
    };
    let runs = app.live_session.runs.by_ticket.iter();
    runs.filter(|(_, run)| is_affected(run))
        .map(|(ticket, _)| Effect::WithdrawEvals {
            ticket: *ticket,
            evals: replaced.clone(),
        })
        .collect()
}

/// Returns the evals that have verdicts that can be decided again. A save of a shared file touches every eval, so one pass
/// over the rows finds them all.
fn list_evals_with_verdicts(cells: &CellsState) -> HashSet<EvalName> {
    let rows = cells.rows.iter().filter(|row| row.verdict.is_some());
    let positions: HashSet<u32> = rows.map(|row| row.eval).collect();
    let evals = positions
        .into_iter()
        .filter_map(|at| cells.evals.get(at as usize));
    evals
        .map(|eval| EvalName {
            rubric: eval.rubric.clone(),
            eval: eval.id.clone(),
        })
        .collect()
}

/// Handles a reload with errors: the last valid workspace stays.
pub(super) fn handle_reload_failed(app: &mut App, problems: Vec<Diagnostic>) -> Vec<Effect> {
    // The watcher reports an unchanged broken file again, and the log lists each error once.
    if app.saves.problems != problems {
        for problem in &problems {
            let level = match problem.severity {
                Severity::Error => NoticeLevel::Error,
                Severity::Warning => NoticeLevel::Warning,
            };
            let ascii = app.ui.theme.glyphs().ascii;
            let text = render_plain(problem, ascii, LOG_SNIPPET_WIDTH);
            app.notices.log_only(app.now, level, text);
        }
        app.saves.scroll = ScrollState::top();
        dismiss_outdated(app);
    }
    app.saves.problems = problems;
    // Only from the list of cells: a user who reads another pane keeps it.
    if app.ui.focus == Pane::Cells && app.replay.is_none() {
        app.ui.tab_pane = Pane::Changes;
    }
    Vec::new()
}

/// Checks the files after the editor ended, because the watcher may have missed a change.
pub(super) fn handle_editor_closed(app: &mut App, how: Result<(), TaskFailure>) -> Vec<Effect> {
    if let Err(why) = how {
        let notice = format!("the editor: {why}");
        app.notices.push(app.now, NoticeLevel::Error, notice);
    }
    // An editor may save without an event of the file system that the watcher gets.
    vec![Effect::RescanFiles]
}

/// `A`: turns automatic judging after a save on or off.
pub(super) fn toggle_auto_judging(app: &mut App) -> Vec<Effect> {
    let saves = &mut app.saves;
    saves.paused = !saves.paused;
    let missed = std::mem::take(&mut saves.unjudged_saves);
    // The dropped judging counts as a save that was not judged.
    if saves.paused && saves.pending_judging.take().is_some() {
        saves.unjudged_saves = 1;
    }
    let notice = match (saves.paused, missed) {
        (true, _) => "auto is off: a save only marks verdicts stale (A turns it on)".to_owned(),
        (false, 0) => "auto is on: a save judges again what it touched".to_owned(),
        (false, missed) => {
            let saves = crate::model::pluralize(missed, "save");
            format!("auto is on; {saves} came meanwhile: R judges what is stale")
        }
    };
    app.notices.push(app.now, NoticeLevel::Info, notice);
    Vec::new()
}

#[cfg(test)]
mod tests;

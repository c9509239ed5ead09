//! The progress screen: its keys, and the results that it waits for.
//!
//! A state that `enter` opens is a replay at its end: see `replay::handle_state_read`.

use std::sync::Arc;

use super::notices::{push_info, push_written};
use super::progress_scores::{self, ThresholdStep};
use super::state_export;
use crate::compare::StateChange;
use crate::model::{Label, Labels, make_visible};
use crate::record::RecordedCell;
use crate::tui::command::UiCommand;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::history_view::{
    ComparedStates, HistoryFacts, HistoryView, RestorePlan, RubricEdit, RubricEditOrder, Shared,
    StatePair,
};
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::progress::{HistoryLoading, PairComparison, ProgressItem, ProgressPane};
use crate::tui::state::replay::ReplayStart;
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::ScrollState;

/// `H`: opens the screen, or goes back to the cells.
pub(super) fn toggle(app: &mut App) -> Vec<Effect> {
    if app.progress.open {
        app.progress.open = false;
        return Vec::new();
    }
    app.progress.open = true;
    app.progress.focus = ProgressPane::Entries;
    read_again(app)
}

/// Reads the history again if the screen is open, for example after a run.
pub(super) fn read_again(app: &mut App) -> Vec<Effect> {
    let Some(workspace) = app.workspace().map(Arc::clone) else {
        return Vec::new();
    };
    let screen = &mut app.progress;
    if !screen.open {
        return Vec::new();
    }
    screen.number += 1;
    screen.loading = HistoryLoading::Reading;
    vec![Effect::ReadHistory {
        number: screen.number,
        workspace,
    }]
}

/// Counts the entries again with the labels as they are now, if the screen is open.
pub(super) fn count_again(app: &mut App) -> Vec<Effect> {
    if !app.progress.open || app.progress.view.entries.is_empty() {
        return Vec::new();
    }
    let labels = current_labels(app);
    let workspace = app.workspace().map(Arc::clone);
    let screen = &mut app.progress;
    screen.labels = labels.into();
    screen.count_number += 1;
    vec![Effect::CountHistory {
        number: screen.count_number,
        view: screen.view.clone(),
        labels: screen.labels.clone(),
        workspace,
    }]
}

/// Returns the labels of the files with the labels that were set here and are not in the files yet.
fn current_labels(app: &App) -> Labels {
    let mut all: Vec<Arc<Label>> = app
        .workspace()
        .map_or_else(Vec::new, |workspace| workspace.labels.clone());
    for edit in &app.label_edits.pending {
        let name = &edit.name;
        match &edit.label {
            Some(label) => all.push(Arc::new(label.clone())),
            None => all.retain(|label| {
                let same_rubric = label.rubric.as_ref().is_none_or(|id| *id == name.rubric);
                label.transcript != name.transcript || label.eval != name.eval || !same_rubric
            }),
        }
    }
    let labels = Labels::new(all);
    match app
        .workspace()
        .and_then(|workspace| workspace.sealed.as_ref())
    {
        Some(sealed) => labels.with_seal(Arc::clone(sealed.seal())),
        None => labels,
    }
}

pub(super) fn handle_history_read(
    app: &mut App,
    number: u64,
    view: Result<Shared<HistoryView>, TaskFailure>,
) -> Vec<Effect> {
    let screen = &mut app.progress;
    if screen.number != number {
        return Vec::new();
    }
    match view {
        Ok(view) => {
            screen.set_view(view);
            let problems = screen.view.problems.clone();
            for problem in problems {
                let problem = make_visible(&problem, false).into_owned();
                // The same run stays unreadable at each read.
                if !app.notices.contains(&problem) {
                    app.notices.push(app.now, NoticeLevel::Warning, problem);
                }
            }
            count_again(app)
        }
        Err(why) => {
            screen.loading = HistoryLoading::Failed(why.into());
            Vec::new()
        }
    }
}

pub(super) fn handle_counted(app: &mut App, number: u64, facts: HistoryFacts) -> Vec<Effect> {
    let screen = &mut app.progress;
    if screen.count_number != number {
        return Vec::new();
    }
    for (at, counted) in facts.entries {
        if let Some(slot) = screen.facts.get_mut(at) {
            *slot = Some(counted);
        }
    }
    if !facts.since.is_empty() {
        screen.since = facts.since;
    }
    if !facts.scores.is_empty() {
        screen.scores = facts.scores;
    }
    screen.update_flips();
    Vec::new()
}

pub(super) fn handle_compared(
    app: &mut App,
    number: u64,
    pair: StatePair,
    compared: Result<Arc<ComparedStates>, TaskFailure>,
) -> Vec<Effect> {
    let screen = &mut app.progress;
    // The selection or the history may have changed since.
    if screen.number != number || screen.pair != Some(pair) {
        return Vec::new();
    }
    screen.comparison = Some(match compared {
        Ok(compared) => PairComparison::Compared(compared),
        Err(why) => PairComparison::Failed(why.into()),
    });
    screen.update_flips();
    Vec::new()
}

pub(super) fn handle_reasons(
    app: &mut App,
    number: u64,
    reasons: Vec<(RecordedCell, String)>,
) -> Vec<Effect> {
    let screen = &mut app.progress;
    if screen.number == number {
        let reasons = reasons.into_iter().map(|(cell, why)| (cell, Some(why)));
        screen.reasons.extend(reasons);
    }
    Vec::new()
}

pub(super) fn handle_baseline_set(
    app: &mut App,
    entry: Option<usize>,
    done: Result<(), TaskFailure>,
) -> Vec<Effect> {
    match done {
        Ok(()) => {
            let mut view = HistoryView::clone(&app.progress.view);
            view.baseline = entry;
            app.progress.view = view.into();
            let notice = match entry {
                Some(entry) => {
                    format!("state {entry} is the baseline (@baseline; * removes it)")
                }
                None => "the baseline is removed: * on a state sets one".to_owned(),
            };
            let mut effects = push_info(app, notice);
            // The sentence at the top compares with the baseline.
            effects.extend(count_again(app));
            effects
        }
        Err(why) => {
            let why = format!("the baseline is as before: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            Vec::new()
        }
    }
}

pub(super) fn handle_restore_planned(
    app: &mut App,
    plan: Result<RestorePlan, TaskFailure>,
) -> Vec<Effect> {
    match plan {
        Ok(plan) if plan.changes.is_empty() => {
            let kept = match plan.kept.first() {
                Some(kept) => format!("; {kept}"),
                None => String::new(),
            };
            push_info(
                app,
                format!(
                    "the rubric files are those of state {} already{kept}",
                    plan.number
                ),
            )
        }
        Ok(plan) => {
            app.overlays.push(Overlay::ConfirmRestore(plan));
            Vec::new()
        }
        Err(why) => {
            let why = format!("the rubrics cannot be restored: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            Vec::new()
        }
    }
}

/// The answer yes: writes the rubrics of the revision.
pub(super) fn accept_restore(app: &mut App, plan: RestorePlan) -> Vec<Effect> {
    let edit = RubricEdit {
        what: format!("the rubrics of state {}", plan.number),
        changes: plan.changes,
    };
    order_edit(app, RubricEditOrder::Write(edit))
}

fn order_edit(app: &App, order: RubricEditOrder) -> Vec<Effect> {
    let workspace = app.workspace().map(Arc::clone);
    let order = workspace.map(|workspace| Effect::EditRubrics { workspace, order });
    order.into_iter().collect()
}

pub(super) fn handle_rubrics_written(
    app: &mut App,
    undoes: bool,
    written: Result<RubricEdit, TaskFailure>,
) -> Vec<Effect> {
    match written {
        Ok(edit) => {
            let files: Vec<String> = edit
                .changes
                .iter()
                .map(|change| make_visible(&change.path.display().to_string(), false).into_owned())
                .collect();
            let files = files.join(", ");
            let notice = if undoes {
                format!("{files}: as before {}", edit.what)
            } else {
                // The undo key of the progress screen takes back every write of a rubric.
                let key = if app.progress.open { "U" } else { "H, then U" };
                format!("{files}: wrote {} ({key} undoes it)", edit.what)
            };
            let screen = &mut app.progress;
            screen.threshold = None;
            if undoes {
                screen.undo_stack.pop();
            } else {
                screen.undo_stack.push(edit);
            }
            push_written(app, notice);
            // The watcher would notice the write later.
            vec![Effect::RescanFiles]
        }
        Err(why) => {
            let why = make_visible(why.as_str(), false).into_owned();
            app.notices.push(app.now, NoticeLevel::Error, why);
            Vec::new()
        }
    }
}

/// Orders what the screen shows and does not have yet: the comparison of the states, and the reasons of visible flips.
pub(super) fn request_shown(app: &mut App) -> Vec<Effect> {
    if !app.shows_progress() {
        return Vec::new();
    }
    let mut effects = Vec::new();
    let screen = &mut app.progress;
    let pair = screen.find_pair();
    let is_other_pair = pair != screen.pair;
    if is_other_pair {
        screen.pair = pair;
        screen.flip = 0;
        screen.diff_scroll = ScrollState::top();
        screen.comparison = pair.map(|_| PairComparison::Comparing);
        screen.update_flips();
    }
    // Other labels change the flips without a label, which the range of noise is about.
    if is_other_pair || screen.compared_labels != screen.labels {
        screen.compared_labels = screen.labels.clone();
        effects.extend(pair.map(|pair| Effect::CompareStates {
            number: screen.number,
            view: screen.view.clone(),
            labels: screen.labels.clone(),
            pair,
        }));
    }
    let cells = find_unread_reasons(app);
    if !cells.is_empty() {
        let screen = &mut app.progress;
        screen
            .reasons
            .extend(cells.iter().map(|cell| (*cell, None)));
        effects.push(Effect::ReadReasons {
            number: screen.number,
            cells,
        });
    }
    effects
}

/// Returns the cells of the visible flips whose reasons were not ordered.
fn find_unread_reasons(app: &App) -> Vec<RecordedCell> {
    let screen = &app.progress;
    let height = app.progress_layout().inner_height(ProgressPane::Flips);
    // The selected flip is always visible, so the visible ones are within one height of it.
    let first = screen.flip.saturating_sub(height);
    let visible = first..screen.flip.saturating_add(height);
    visible
        .map_while(|at| screen.shown_flip(at))
        .flat_map(StateChange::cells)
        .filter(|cell| !screen.reasons.contains_key(cell))
        .collect()
}

/// Runs a command that other screens have too. Returns `None` if it means the same here.
pub(super) fn run_shared_command(app: &mut App, command: UiCommand) -> Option<Vec<Effect>> {
    let page = |app: &App, pane: ProgressPane| {
        let height = app.progress_layout().inner_height(pane);
        i64::try_from(height.saturating_sub(1).max(1)).unwrap_or(1)
    };
    let focus = app.progress.focus;
    match command {
        UiCommand::Back => step_back(app),
        UiCommand::NextPane => cycle_focus(app, true),
        UiCommand::PreviousPane => cycle_focus(app, false),
        UiCommand::Up => move_by(app, -1),
        UiCommand::Down => move_by(app, 1),
        UiCommand::PageUp => move_by(app, -page(app, focus)),
        UiCommand::PageDown => move_by(app, page(app, focus)),
        UiCommand::HalfUp => move_by(app, -(page(app, focus) / 2).max(1)),
        UiCommand::HalfDown => move_by(app, (page(app, focus) / 2).max(1)),
        UiCommand::Top => move_to_end(app, false),
        UiCommand::Bottom => move_to_end(app, true),
        _ => return None,
    }
    Some(Vec::new())
}

/// `esc`: takes back one thing: the moved threshold, the focus, the mark, the screen.
fn step_back(app: &mut App) {
    let screen = &mut app.progress;
    if screen.threshold.take().is_some() {
        return;
    }
    if screen.focus != ProgressPane::Entries {
        screen.focus = ProgressPane::Entries;
        return;
    }
    if screen.marked.take().is_some() {
        return;
    }
    screen.open = false;
}

/// Focuses a part of the screen.
pub(super) fn focus_pane(app: &mut App, pane: ProgressPane) {
    app.progress.focus = pane;
    if pane != ProgressPane::Entries {
        app.progress.tab = Some(pane);
    }
}

fn cycle_focus(app: &mut App, forward: bool) {
    let all = ProgressPane::ALL;
    let at = all.iter().position(|pane| *pane == app.progress.focus);
    let step = if forward { 1 } else { all.len() - 1 };
    focus_pane(app, all[(at.unwrap_or(0) + step) % all.len()]);
}

/// Moves the selection of the focused part, or scrolls its text.
pub(super) fn move_by(app: &mut App, rows: i64) {
    let layout = app.progress_layout();
    let screen = &mut app.progress;
    let moved = |at: usize, len: usize| {
        let to = i64::try_from(at).unwrap_or(0).saturating_add(rows).max(0);
        usize::try_from(to).unwrap_or(0).min(len.saturating_sub(1))
    };
    match screen.focus {
        ProgressPane::Flips => screen.flip = moved(screen.flip, screen.shown_flips.len()),
        ProgressPane::Diff => {
            let area = layout.inner_size(ProgressPane::Diff);
            let mut scroll = std::mem::take(&mut screen.diff_scroll);
            scroll.scroll_rows(&content::state_diff_blocks(screen), area, rows);
            screen.diff_scroll = scroll;
        }
        ProgressPane::Entries | ProgressPane::Agreement | ProgressPane::Scores => {
            let to = moved(screen.list.last_position, screen.items.len());
            select_item(app, to);
        }
    }
}

/// Selects a row of the list.
pub(super) fn select_item(app: &mut App, at: usize) {
    let height = app.progress_layout().inner_height(ProgressPane::Entries);
    let screen = &mut app.progress;
    // The first row inside the frame has the headings.
    let height = height.saturating_sub(1);
    screen.list.select_position(&screen.items, height, at);
}

/// Selects a flip.
pub(super) fn select_flip(app: &mut App, at: usize) {
    focus_pane(app, ProgressPane::Flips);
    app.progress.flip = at.min(app.progress.shown_flips.len().saturating_sub(1));
}

fn move_to_end(app: &mut App, last: bool) {
    let screen = &mut app.progress;
    match screen.focus {
        ProgressPane::Flips => {
            let end = screen.shown_flips.len().saturating_sub(1);
            screen.flip = if last { end } else { 0 };
        }
        ProgressPane::Diff if last => screen.diff_scroll.scroll_to_end(),
        ProgressPane::Diff => screen.diff_scroll.scroll_to_start(),
        ProgressPane::Entries | ProgressPane::Agreement | ProgressPane::Scores => {
            let end = screen.items.len().saturating_sub(1);
            select_item(app, if last { end } else { 0 });
        }
    }
}

/// Runs a command of the progress screen.
pub(super) fn run_command(app: &mut App, command: UiCommand) -> Vec<Effect> {
    match command {
        UiCommand::ProgressOpen => open_selection(app),
        UiCommand::ProgressRuns => toggle_runs(app),
        UiCommand::ProgressCompare => toggle_mark(app),
        UiCommand::ProgressBaseline => set_baseline(app),
        UiCommand::ProgressReplay => replay_run(app),
        UiCommand::ProgressRestore => plan_restore(app),
        UiCommand::ProgressExport => state_export::ask_file(app),
        UiCommand::ProgressUndo => {
            let last = app.progress.undo_stack.last().cloned();
            last.map_or_else(Vec::new, |edit| {
                order_edit(app, RubricEditOrder::Undo(edit))
            })
        }
        UiCommand::NextEval => progress_scores::choose_eval(app, true),
        UiCommand::PreviousEval => progress_scores::choose_eval(app, false),
        UiCommand::RaiseThreshold => move_threshold(app, ThresholdStep::Coarse, true),
        UiCommand::LowerThreshold => move_threshold(app, ThresholdStep::Coarse, false),
        UiCommand::RaiseThresholdFinely => move_threshold(app, ThresholdStep::Fine, true),
        UiCommand::LowerThresholdFinely => move_threshold(app, ThresholdStep::Fine, false),
        _ => Vec::new(),
    }
}

/// `enter`: opens the selected state or the cell of a flip, or writes the threshold.
fn open_selection(app: &mut App) -> Vec<Effect> {
    let screen = &app.progress;
    match screen.focus {
        ProgressPane::Scores => write_threshold(app),
        ProgressPane::Flips => {
            let flip = screen.shown_flip(screen.flip).map(|flip| flip.name.clone());
            let read = screen.pair.zip(flip).map(|(pair, name)| Effect::ReadState {
                entry: pair.after,
                select: Some(name),
            });
            read.into_iter().collect()
        }
        ProgressPane::Entries | ProgressPane::Diff | ProgressPane::Agreement => {
            match screen.list.selected {
                Some(ProgressItem::Run { .. }) => replay_run(app),
                Some(ProgressItem::Entry(entry)) => vec![Effect::ReadState {
                    entry,
                    select: None,
                }],
                None => Vec::new(),
            }
        }
    }
}

fn toggle_runs(app: &mut App) -> Vec<Effect> {
    let screen = &mut app.progress;
    if let Some(selected) = screen.list.selected {
        let entry = selected.entry();
        if !screen.expanded.remove(&entry) {
            screen.expanded.insert(entry);
        }
        screen.update_items();
    }
    Vec::new()
}

fn toggle_mark(app: &mut App) -> Vec<Effect> {
    let screen = &mut app.progress;
    let selected = screen.list.selected.map(ProgressItem::entry);
    if screen.marked == selected {
        screen.marked = None;
        return push_info(app, "each state is compared with the one before it");
    }
    screen.marked = selected;
    let number = selected.unwrap_or_default();
    push_info(
        app,
        format!("compared with state {number}: select another state (= removes the mark)"),
    )
}

/// `*`: makes the selected state the baseline, or removes the baseline from it.
fn set_baseline(app: &mut App) -> Vec<Effect> {
    let selected = app.progress.list.selected.map(ProgressItem::entry);
    let workspace = app.workspace().map(Arc::clone);
    let order = workspace.zip(selected).map(|(workspace, selected)| {
        let is_baseline = app.progress.view.baseline == Some(selected);
        Effect::SetBaseline {
            workspace,
            entry: (!is_baseline).then_some(selected),
        }
    });
    order.into_iter().collect()
}

/// `v`: replays the selected run, or the last run of the selected entry that judged a cell.
fn replay_run(app: &mut App) -> Vec<Effect> {
    let screen = &app.progress;
    let run = screen.selected_entry().and_then(|entry| {
        let run = match screen.list.selected? {
            ProgressItem::Run { run, .. } => entry.runs.get(run),
            ProgressItem::Entry(_) => {
                let judged = entry.runs.iter().rev().find(|run| run.judged > 0);
                judged.or(entry.runs.last())
            }
        };
        Some(run?.id.clone())
    });
    let Some(run) = run else {
        return Vec::new();
    };
    app.replay_start = ReplayStart::default();
    vec![Effect::ReadReplay {
        run,
        workspace: app.workspace().cloned(),
        dir: None,
    }]
}

fn plan_restore(app: &mut App) -> Vec<Effect> {
    let view = app.progress.view.clone();
    let entry = app.progress.list.selected.map(ProgressItem::entry);
    let workspace = app.workspace().map(Arc::clone);
    let order = workspace
        .zip(entry)
        .map(|(workspace, entry)| Effect::PlanRestore {
            workspace,
            view,
            entry,
        });
    order.into_iter().collect()
}

/// `h`, `l` and the arrow keys: move the threshold.
fn move_threshold(app: &mut App, step: ThresholdStep, up: bool) -> Vec<Effect> {
    focus_pane(app, ProgressPane::Scores);
    progress_scores::move_threshold(app, step, up)
}

/// Orders the write of the moved threshold into the rubric.
fn write_threshold(app: &mut App) -> Vec<Effect> {
    match progress_scores::plan_write(app) {
        Some(Ok(order)) => order_edit(app, order),
        Some(Err(why)) => push_info(app, why),
        None => Vec::new(),
    }
}

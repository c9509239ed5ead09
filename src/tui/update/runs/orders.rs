//! Orders that start and end runs. `r`, `R`, a save and `J` build their orders here.

use std::sync::Arc;

use crate::event::{ParentCause, ParentRun};
use crate::model::{JudgeConfig, pluralize};
use crate::run::{CachePolicy, RunPreview};
use crate::tui::effect::Effect;
use crate::tui::run_order::RunOrder;
use crate::tui::state::App;
use crate::tui::state::cells::{CellsRow, CellsState, RowId};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::summarize_order;
use crate::tui::state::runs::{RunStage, TrackedRun};
use crate::tui::update::edits;
use crate::tui::update::touched_evals::{TouchKind, classify_judged, is_judged};

/// Builds an order over the open workspace; `None` without a workspace.
pub(in crate::tui::update) fn build_workspace_order(
    app: &mut App,
    only: Option<Vec<String>>,
    judge: Option<JudgeConfig>,
    cache: CachePolicy,
    cause: Option<ParentCause>,
) -> Option<RunOrder> {
    let workspace = Arc::clone(app.workspace()?);
    let parent = cause.and_then(|cause| {
        Some(ParentRun {
            // Without an earlier run there is no parent to name.
            run: app.live_session.runs.newest()?.clone(),
            cell: None,
            turn: None,
            cause,
        })
    });
    Some(RunOrder {
        ticket: app.next_ticket(),
        workspace,
        only: only.map(Arc::new),
        filter: None,
        except: None,
        judge,
        cache,
        replayed_evidence: None,
        recorded_only: false,
        branch: None,
        repeat: None,
        parent,
        measures_noise: false,
        is_of_save: false,
    })
}

/// Starts a run and tracks it.
pub(in crate::tui::update) fn start_run(
    app: &mut App,
    order: RunOrder,
    save: Option<u64>,
) -> Effect {
    // Tracked at once, so that a second key finds the run although it has no id yet.
    // Another judge's opinion, a measurement of noise and a branch decide nothing, so they belong to no edit.
    let decides = order.judge.is_none() && !order.measures_noise && order.branch.is_none();
    let ordered_cells = if decides {
        count_ordered_cells(&app.live_session.cells, &order)
    } else {
        0
    };
    app.live_session.runs.by_ticket.insert(
        order.ticket,
        TrackedRun {
            save_number: save,
            edit: decides.then_some(app.saves.edit),
            revision: decides.then_some(app.saves.revision),
            covers_everything: order.only.is_none() && save.is_none(),
            ordered_cells,
            measures_noise: order.measures_noise,
            ..TrackedRun::default()
        },
    );
    if decides {
        edits::add_run(app, order.ticket);
    }
    Effect::StartRun(order)
}

/// Returns the number of cells of an order; 0 if it is unknown.
fn count_ordered_cells(cells: &CellsState, order: &RunOrder) -> u64 {
    let is_narrowed = order.filter.is_some() || order.except.is_some();
    match &order.only {
        _ if !cells.outline_complete || order.repeat.is_some() => 0,
        Some(names) => cells.count_planned_cells(Some(names.as_slice())),
        None if is_narrowed => 0,
        None => cells.count_planned_cells(None),
    }
}

/// `r`: judges the focused cell again, without the cache. On a group it judges all cells, with the cache.
pub(in crate::tui::update) fn run_focused(app: &mut App) -> Vec<Effect> {
    if refuse_if_blocked(app) {
        return Vec::new();
    }
    let cells = &app.live_session.cells;
    let rows: Vec<RowId> = match (cells.selected_row(), cells.group_rows()) {
        (Some(row), _) => vec![row],
        (None, Some(rows)) => rows.to_vec(),
        (None, None) => {
            let why = "select a cell first (j, k)";
            app.notices.push(app.now, NoticeLevel::Info, why);
            return Vec::new();
        }
    };
    // A group may contain hundreds of cells, so its cells come from the cache.
    let selected_row = cells.selected_row();
    let judged = selected_row.and_then(|row| {
        let row = cells.row(row)?;
        Some(cells.evals.get(row.eval as usize)?.judged)
    });
    if selected_row
        .and_then(|row| cells.row(row))
        .is_some_and(CellsRow::is_live)
    {
        let why = "this cell is being judged (ctrl-c cancels)";
        app.notices.push(app.now, NoticeLevel::Info, why);
        return Vec::new();
    }
    let names = name_rows(cells, &rows);
    // Code would decide the same again, so only a judge's cell ignores the cache.
    let cache = match judged {
        Some(true) => CachePolicy::Refresh,
        _ => CachePolicy::Use,
    };
    let costs = match selected_row {
        Some(row) => is_cell_paid(app, row),
        None => is_any_judge_paid(app),
    };
    let Some(order) = build_workspace_order(app, Some(names), None, cache, None) else {
        return Vec::new();
    };
    start_or_ask(app, order, costs, &rows)
}

/// `R`: judges what the filter shows, or every cell without a filter. Asks first if that costs money.
pub(in crate::tui::update) fn run_all(app: &mut App) -> Vec<Effect> {
    if refuse_if_blocked(app) {
        return Vec::new();
    }
    if app
        .live_session
        .runs
        // A second run over all cells would judge each of them twice.
        .live()
        .any(|(_, run)| run.covers_everything)
    {
        let why = "everything is being judged already (ctrl-c cancels)";
        app.notices.push(app.now, NoticeLevel::Info, why);
        return Vec::new();
    }
    let cells = &app.live_session.cells;
    let filtered = cells.filtered_rows();
    if filtered.as_ref().is_some_and(Vec::is_empty) {
        let why = "the filter matches no cell: esc clears it, then R judges everything";
        app.notices.push(app.now, NoticeLevel::Info, why);
        return Vec::new();
    }
    let names = filtered.as_ref().map(|rows| name_rows(cells, rows));
    let rows = filtered.unwrap_or_else(|| cells.listed_rows());
    let costs = is_any_judge_paid(app);
    let Some(order) = build_workspace_order(app, names, None, CachePolicy::Use, None) else {
        return Vec::new();
    };
    start_or_ask(app, order, costs, &rows)
}

/// Returns the names of the decisions of rows.
pub(in crate::tui::update) fn name_rows(cells: &CellsState, rows: &[RowId]) -> Vec<String> {
    let names = rows.iter().filter_map(|row| cells.decision_name(*row));
    names.map(|name| name.to_string()).collect()
}

/// Starts an order of free judges and reports its size in one line, or asks for its preview first.
pub(in crate::tui::update) fn start_or_ask(
    app: &mut App,
    order: RunOrder,
    costs: bool,
    rows: &[RowId],
) -> Vec<Effect> {
    if costs {
        // The order waits here for its preview, which decides if dicta asks.
        app.awaiting_preview.push(order.clone());
        return vec![Effect::PreviewRun(order)];
    }
    // The estimate below counts the cells of decisions. A branch is one cell, and repeats are the same cells again.
    let size = if order.branch.is_some() {
        Some("continuing the trace as a branch, free".to_owned())
    } else {
        let cells = pluralize(rows.len() as u64, "cell");
        let repeat = order.repeat;
        repeat.map(|times| format!("judging {cells} {times} times, free"))
    };
    if let Some(text) = size {
        app.notices.push(app.now, NoticeLevel::Info, text);
        return vec![start_run(app, order, None)];
    }
    let refresh = order.cache == CachePolicy::Refresh;
    let concurrency = order.workspace.limits.concurrency as u64;
    let cells = &app.live_session.cells;
    // Before the outline is complete, the number of cells is not known.
    if cells.outline_complete {
        let estimate = cells.estimate_run(rows, refresh, concurrency);
        let text = format!("judging {}", estimate.format_free());
        app.notices.push(app.now, NoticeLevel::Info, text);
    }
    vec![start_run(app, order, None)]
}

/// Reports the size, cost and duration of a run that starts, in one line.
pub(in crate::tui::update) fn report_start(app: &mut App, preview: &RunPreview) {
    let text = format!("judging {}", summarize_order(preview));
    app.notices.push(app.now, NoticeLevel::Info, text);
}

/// `ctrl-c`: cancels all live runs.
pub(in crate::tui::update) fn cancel_all(app: &mut App) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (ticket, run) in &mut app.live_session.runs.by_ticket {
        if run.is_live() {
            run.stage = RunStage::Cancelling;
            effects.push(Effect::CancelRun(*ticket));
        }
    }
    if !effects.is_empty() {
        let what = pluralize(effects.len() as u64, "run");
        let notice = format!("cancelling {what}; what is judged stays");
        app.notices.push(app.now, NoticeLevel::Info, notice);
    }
    effects
}

/// Returns true, and shows the reason, if no run can start now.
fn refuse_if_blocked(app: &mut App) -> bool {
    let why = if app.replay.is_some() {
        "this is a replay: q goes back, then it can be run"
    } else if app.workspace().is_none() {
        "there is no rubric to judge by: W creates a workspace around this file"
    } else {
        return false;
    };
    app.notices.push(app.now, NoticeLevel::Info, why);
    true
}

/// Returns true if a judge of a cell costs money, or may. All judges of a jury or cascade count.
fn is_cell_paid(app: &App, row: RowId) -> bool {
    let (cells, Some(workspace)) = (&app.live_session.cells, app.workspace()) else {
        return false;
    };
    let eval = cells
        .row(row)
        .and_then(|row| cells.evals.get(row.eval as usize));
    let found = eval.and_then(|eval| workspace.find_eval(&eval.rubric, &eval.id));
    match found {
        Some((rubric, at)) => {
            let eval = &rubric.evals[at];
            is_judged(eval) && classify_judged(rubric, eval, workspace).0 == TouchKind::Costly
        }
        // The preview finds out what an unknown eval costs.
        None => workspace.judges.values().any(|judge| !judge.is_free()),
    }
}

/// Returns true if a judge of the run costs money.
pub(in crate::tui::update) fn is_any_judge_paid(app: &App) -> bool {
    let Some(workspace) = app.workspace() else {
        return false;
    };
    let cells = &app.live_session.cells;
    let paid = |name: &str| {
        workspace
            .judges
            .get(name)
            .is_some_and(|judge| !judge.is_free())
    };
    if cells.evals.is_empty() {
        // The outline is not complete, so the judges are unknown. One question too many is safer than an unexpected
        // cost.
        return workspace.judges.keys().any(|name| paid(name));
    }
    let current_judges = cells.current_judges.iter();
    current_judges
        .filter_map(|at| cells.judges.get(*at as usize))
        .any(|judge| paid(&judge.name))
}

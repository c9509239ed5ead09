//! What starts and ends runs: `r`, `R`, a save and `J` make orders in one way.

use std::sync::Arc;

use crate::event::{ParentCause, ParentRun};
use crate::model::{JudgeConfig, pluralize};
use crate::run::CachePolicy;
use crate::tui::effect::{Effect, RunOrder};
use crate::tui::state::App;
use crate::tui::state::cells::{CellsRow, RowId};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::runs::{RunStage, TrackedRun};

/// An order over the open workspace; `None` where none is open.
pub(in crate::tui::update) fn build_workspace_order(
    model: &mut App,
    only: Option<Vec<String>>,
    judge: Option<JudgeConfig>,
    cache: CachePolicy,
    cause: Option<ParentCause>,
) -> Option<RunOrder> {
    let workspace = Arc::clone(model.workspace()?);
    let parent = cause.and_then(|cause| {
        Some(ParentRun {
            run: model.live_session.runs.newest()?.clone(),
            cell: None,
            turn: None,
            cause,
        })
    });
    Some(RunOrder {
        ticket: model.next_ticket(),
        workspace,
        only: only.map(Arc::new),
        filter: None,
        except: None,
        judge,
        cache,
        replayed_evidence: None,
        parent,
    })
}

/// Starts an order: the run is known from now on.
pub(in crate::tui::update) fn start_run(
    model: &mut App,
    order: RunOrder,
    save: Option<u64>,
) -> Effect {
    model.live_session.runs.by_ticket.insert(
        order.ticket,
        TrackedRun {
            save_number: save,
            covers_everything: order.only.is_none() && save.is_none(),
            ..TrackedRun::default()
        },
    );
    Effect::StartRun(order)
}

/// `r`: judges the focused cell again, past verdicts aside; on a group all of it, from past verdicts where unchanged.
pub(in crate::tui::update) fn run_focused(model: &mut App) -> Vec<Effect> {
    if refuse_if_blocked(model) {
        return Vec::new();
    }
    let cells = &model.live_session.cells;
    let rows: Vec<RowId> = match (cells.selected_row(), cells.group_rows()) {
        (Some(row), _) => vec![row],
        (None, Some(rows)) => rows.to_vec(),
        (None, None) => {
            let why = "select a cell first (j, k)";
            model.notices.push(model.now, NoticeLevel::Info, why);
            return Vec::new();
        }
    };
    let alone = cells.selected_row();
    let judged = alone.and_then(|row| {
        let row = cells.row(row)?;
        Some(cells.evals.get(row.eval as usize)?.judged)
    });
    if alone
        .and_then(|row| cells.row(row))
        .is_some_and(CellsRow::is_live)
    {
        let why = "this cell is being judged (ctrl-c cancels)";
        model.notices.push(model.now, NoticeLevel::Info, why);
        return Vec::new();
    }
    let names = rows.iter().filter_map(|row| cells.decision_name(*row));
    let names = names.map(|name| name.to_string()).collect();
    let cache = match judged {
        Some(true) => CachePolicy::Refresh,
        _ => CachePolicy::Use,
    };
    let costs = match alone {
        Some(row) => is_cell_paid(model, row),
        None => is_any_judge_paid(model),
    };
    let Some(order) = build_workspace_order(model, Some(names), None, cache, None) else {
        return Vec::new();
    };
    start_or_ask(model, order, costs)
}

/// `R`: judges every cell; asks first where that costs.
pub(in crate::tui::update) fn run_all(model: &mut App) -> Vec<Effect> {
    if refuse_if_blocked(model) {
        return Vec::new();
    }
    if model
        .live_session
        .runs
        .live()
        .any(|(_, run)| run.covers_everything)
    {
        let why = "everything is being judged already (ctrl-c cancels)";
        model.notices.push(model.now, NoticeLevel::Info, why);
        return Vec::new();
    }
    let costs = is_any_judge_paid(model);
    let Some(order) = build_workspace_order(model, None, None, CachePolicy::Use, None) else {
        return Vec::new();
    };
    start_or_ask(model, order, costs)
}

fn start_or_ask(model: &mut App, order: RunOrder, costs: bool) -> Vec<Effect> {
    if costs {
        model.awaiting_preview.push(order.clone());
        return vec![Effect::PreviewRun(order)];
    }
    vec![start_run(model, order, None)]
}

/// `ctrl-c`: ends all runs. Empty: none was live.
pub(in crate::tui::update) fn cancel_all(model: &mut App) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (ticket, run) in &mut model.live_session.runs.by_ticket {
        if run.is_live() {
            run.stage = RunStage::Cancelling;
            effects.push(Effect::CancelRun(*ticket));
        }
    }
    if !effects.is_empty() {
        let what = pluralize(effects.len() as u64, "run");
        let said = format!("cancelling {what}; what is judged stays");
        model.notices.push(model.now, NoticeLevel::Info, said);
    }
    effects
}

/// Whether nothing can be run now; says why.
fn refuse_if_blocked(model: &mut App) -> bool {
    let why = if model.replay.is_some() {
        "this is a replay: q goes back, then it can be run"
    } else if model.workspace().is_none() {
        "there is no rubric to judge by: W makes a workspace around this file"
    } else {
        return false;
    };
    model.notices.push(model.now, NoticeLevel::Info, why);
    true
}

/// Whether the judge of a cell costs something.
fn is_cell_paid(model: &App, row: RowId) -> bool {
    let name = model
        .live_session
        .cells
        .decision_name(row)
        .and_then(|name| name.judge);
    let judge = name.and_then(|name| model.workspace()?.judges.get(&name));
    judge.is_some_and(|judge| !judge.is_free())
}

/// Whether a judge that would be asked costs something.
fn is_any_judge_paid(model: &App) -> bool {
    let Some(workspace) = model.workspace() else {
        return false;
    };
    let cells = &model.live_session.cells;
    let paid = |name: &str| {
        workspace
            .judges
            .get(name)
            .is_some_and(|judge| !judge.is_free())
    };
    if cells.evals.is_empty() {
        // Not known yet who would be asked: better asked once too often.
        return workspace.judges.keys().any(|name| paid(name));
    }
    let seated = cells.current_judges.iter();
    seated
        .filter_map(|at| cells.judges.get(*at as usize))
        .any(|(name, _)| paid(name))
}

//! Judges a workspace when it opens, if no run of it is recorded, so that the first screen shows verdicts.
//!
//! dicta judges without an order only if that calls no language model, runs no program and sends no request. A model
//! on this machine costs no money, but hours of a graphics card. Evals that need one wait for the user.

use super::{runs, touched_evals};
use crate::model::{JudgeConfig, pluralize};
use crate::rubric::{Eval, Rubric};
use crate::run::CachePolicy;
use crate::tools::FETCH_URL;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::{CellsState, RowId};
use crate::tui::state::notices::NoticeLevel;
use crate::workspace::{SCRIPT_TYPE, Workspace};

/// Starts the judging on opening, if everything that it waits for has happened.
pub(super) fn start_if_due(app: &mut App) -> Vec<Effect> {
    let Some(first) = app.first_judging else {
        return Vec::new();
    };
    let cells = &app.live_session.cells;
    if !app.ui.first_frame_drawn || !cells.outline_complete {
        return Vec::new();
    }
    if !first.nothing_recorded {
        // Before the verdicts of past runs are read, each row would count.
        if !app.past_verdict_wait.is_reading() {
            app.first_judging = None;
            report_unjudged(app);
        }
        return Vec::new();
    }
    app.first_judging = None;
    let all_rows = cells.listed_rows();
    let rows = app
        .workspace()
        .map(|open| select_allowed_rows(cells, &all_rows, open))
        .unwrap_or_default();
    // The user may have been faster: with a run, a save, or a question that is open.
    let is_wanted = app.live_session.runs.by_ticket.is_empty()
        && app.replay.is_none()
        && !app.saves.paused
        && !app.asks_about_reload();
    if rows.is_empty() || !is_wanted {
        return Vec::new();
    }
    let waiting_rows = all_rows.len() - rows.len();
    let names = (waiting_rows > 0).then(|| runs::name_rows(cells, &rows));
    let Some(order) = runs::build_workspace_order(app, names, None, CachePolicy::Use, None) else {
        return Vec::new();
    };
    let concurrency = order.workspace.limits.concurrency as u64;
    let estimate = app
        .live_session
        .cells
        .estimate_run(&rows, false, concurrency);
    let judging = format!("no run is recorded: judging {}", estimate.format_free());
    // The other cells stay without a verdict, so the screen says why.
    let left_out = (waiting_rows > 0).then(|| {
        let cells = pluralize(waiting_rows as u64, "cell");
        format!("R judges the other {cells} with a model, a program or the network")
    });
    match &left_out {
        None => app.notices.log_only(app.now, NoticeLevel::Info, judging),
        Some(left_out) => {
            let text = format!("{judging}; {left_out}");
            app.notices.push(app.now, NoticeLevel::Info, text);
        }
    }
    let ticket = order.ticket;
    let effect = runs::start_run(app, order, None);
    if let Some(run) = app.live_session.runs.by_ticket.get_mut(&ticket) {
        run.started_on_open = true;
        run.left_out = left_out;
    }
    vec![effect]
}

/// Names the key that judges the cells without a result. A run on opening that was interrupted leaves such cells, and
/// dicta does not judge them without an order.
fn report_unjudged(app: &mut App) {
    let is_running = app.live_session.runs.live().next().is_some();
    if is_running || app.replay.is_some() || app.asks_about_reload() {
        return;
    }
    if let Some(unjudged) = app.live_session.cells.describe_unjudged() {
        let text = format!("{unjudged}: press R");
        app.notices.push(app.now, NoticeLevel::Info, text);
    }
}

/// Returns true if dicta may judge some eval of the workspace without an order of the user.
pub(super) fn is_any_eval_allowed(workspace: &Workspace) -> bool {
    let rubrics = workspace.rubrics.iter();
    let mut evals = rubrics.flat_map(|rubric| rubric.evals.iter().map(move |eval| (rubric, eval)));
    evals.any(|(rubric, eval)| eval.enabled && is_eval_allowed(rubric, eval, workspace))
}

/// Returns the rows whose evals dicta may judge without an order of the user.
fn select_allowed_rows(cells: &CellsState, rows: &[RowId], workspace: &Workspace) -> Vec<RowId> {
    let is_allowed: Vec<bool> = cells
        .evals
        .iter()
        .map(|eval| {
            let found = workspace.find_eval(&eval.rubric, &eval.id);
            found.is_some_and(|(rubric, at)| is_eval_allowed(rubric, &rubric.evals[at], workspace))
        })
        .collect();
    let rows = rows.iter().copied();
    rows.filter(|row| {
        cells
            .row(*row)
            .is_some_and(|row| is_allowed[row.eval as usize])
    })
    .collect()
}

fn is_eval_allowed(rubric: &Rubric, eval: &Eval, workspace: &Workspace) -> bool {
    if !touched_evals::is_judged(eval) {
        return eval.eval_type != SCRIPT_TYPE;
    }
    let names = touched_evals::list_judges(rubric, eval, workspace);
    // Without a judge, a run only reports that.
    !names.is_empty()
        && names.iter().all(|name| {
            let judge = workspace.judges.get(*name);
            judge.is_some_and(|judge| stays_in_process(judge, workspace))
        })
}

/// Returns true if the judge calls no model, and its tools read recorded responses only.
fn stays_in_process(judge: &JudgeConfig, workspace: &Workspace) -> bool {
    let replays = workspace.replayed_evidence_run.is_some();
    // A tool of a tools file may connect to its server before the first call.
    let are_replayed = replays && judge.tools.iter().all(|tool| tool.name == FETCH_URL);
    !judge.provider.is_model() && (judge.tools.is_empty() || are_replayed)
}

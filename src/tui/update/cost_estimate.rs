//! The judging that a save leaves out because its judges may cost money. dicta judges only the focused cell, and
//! estimates the cost of the rest.

use std::sync::Arc;

use super::save_runs::build_save_order;
use super::touched_evals::{TouchKind, TouchedEval, list_paid_judges};
use crate::run::{CachePolicy, RunPreview};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::RowId;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::runs::RunTicket;
use crate::tui::state::saves::{
    PendingEstimate, PendingJudging, describe_costly_judges, describe_unjudged_cells,
};
use crate::tui::task_failure::TaskFailure;

/// Queues the focused cell if the save touched its eval, and orders a preview of the rest.
pub(super) fn queue_costly(
    app: &mut App,
    touched: &[TouchedEval],
    waiting: &mut PendingJudging,
) -> Vec<Effect> {
    let costly: Vec<&TouchedEval> = touched
        .iter()
        .filter(|t| t.kind == TouchKind::Costly)
        .collect();
    if costly.is_empty() {
        return Vec::new();
    }
    let workspace = app.workspace().map(Arc::clone);
    let mut judges: Vec<String> = costly
        .iter()
        .flat_map(|t| list_paid_judges(&t.name, workspace.as_deref()))
        .collect();
    // Several evals may share a judge, and the report names each once.
    judges.sort();
    judges.dedup();
    let cells = &app.live_session.cells;
    let hit = |row: RowId| {
        let eval = cells
            .row(row)
            .and_then(|row| cells.evals.get(row.eval as usize));
        eval.is_some_and(|eval| {
            let same = |t: &&TouchedEval| t.name.rubric == eval.rubric && t.name.eval == eval.id;
            costly.iter().any(same)
        })
    };
    // During a replay the user does not see the live cell, so dicta spends no money on it.
    let focused = cells
        .selected_row()
        .filter(|row| app.replay.is_none() && hit(*row))
        .and_then(|row| cells.decision_name(row))
        .map(|name| name.to_string());
    if let Some(name) = &focused
        // Two quick saves queue the cell only once.
        && !waiting.decisions.contains(name)
    {
        waiting.decisions.push(name.clone());
    }
    // The report names the judges until the preview gives the cost.
    if let Some(report) = &mut app.saves.report {
        report.not_judged = Some(describe_costly_judges(&judges, focused.is_some()));
    }
    let Some(mut order) = build_save_order(app, None, None, CachePolicy::Use) else {
        return Vec::new();
    };
    // The focused cell is judged in any case, so the estimate excludes it.
    order.except = focused;
    app.saves.pending_estimate = Some(PendingEstimate {
        ticket: order.ticket,
        judges,
    });
    vec![Effect::PreviewRun(order)]
}

/// Returns true if the ticket belongs to a preview that a save ordered; `R` orders others.
pub(super) fn is_awaiting_preview(app: &App, ticket: RunTicket) -> bool {
    let estimate = app.saves.pending_estimate.as_ref();
    estimate.is_some_and(|estimate| estimate.ticket == ticket)
}

/// Adds the estimate to the report. If the preview failed, the report keeps its text without figures.
pub(super) fn handle_preview(
    app: &mut App,
    preview: Result<RunPreview, TaskFailure>,
) -> Vec<Effect> {
    // The report of the save may be gone, and a failed preview has no numbers.
    let (Some(estimate), Ok(preview), Some(report)) = (
        app.saves.pending_estimate.take(),
        preview,
        &mut app.saves.report,
    ) else {
        return Vec::new();
    };
    let unjudged: Vec<_> = estimate
        .judges
        .iter()
        .filter_map(|judge| Some((judge.as_str(), preview.judges.get(judge)?)))
        // Judges with only cached cells cost nothing, so the report leaves them out.
        .filter(|(_, figures)| figures.cells > figures.cached || figures.possible_cells > 0)
        .collect();
    let cells: Vec<(u64, &str)> = unjudged
        .iter()
        .map(|(judge, figures)| (figures.cells - figures.cached, *judge))
        // A judge that only may be called has no cells to name.
        .filter(|(cells, _)| *cells > 0)
        .collect();
    report.not_judged = if cells.is_empty() {
        // All cells are cached, so no judging is left out.
        None
    } else {
        let costs = unjudged.iter();
        let usd = costs.map(|(_, figures)| figures.cost_with_all_calls).sum();
        Some(describe_unjudged_cells(&cells, usd))
    };
    if let Some(rest) = report.not_judged.clone() {
        app.notices.log_only(app.now, NoticeLevel::Info, rest);
    }
    Vec::new()
}

//! What a save leaves out because it costs: of such judges only the focused cell is judged again. What the rest would take
//! is worked out as `R` would, and told.

use super::saves::order;
use super::touched::{How, Touched};
use crate::run::{CachePolicy, RunPreview};
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::RowId;
use crate::tui::model::runs::Ticket;
use crate::tui::model::saves::{Figure, Waiting, costs, rest};

/// The focused cell waits for quiet, if it was touched; the rest is asked for.
pub(super) fn costly(model: &mut Model, touched: &[Touched], waiting: &mut Waiting) -> Vec<Effect> {
    let costly: Vec<&Touched> = touched.iter().filter(|t| t.how == How::Costly).collect();
    if costly.is_empty() {
        return Vec::new();
    }
    let mut judges: Vec<String> = costly.iter().filter_map(|t| t.judge.clone()).collect();
    judges.sort();
    judges.dedup();
    let cells = &model.live.cells;
    let hit = |row: RowId| {
        let eval = cells
            .row(row)
            .and_then(|row| cells.evals.get(row.eval as usize));
        eval.is_some_and(|eval| {
            let same = |t: &&Touched| t.name.rubric == eval.rubric && t.name.eval == eval.id;
            costly.iter().any(same)
        })
    };
    // Who looks at a replay does not look at the live cell, and it would cost.
    let focused = cells
        .selected()
        .filter(|row| model.replay.is_none() && hit(*row))
        .and_then(|row| cells.name(row))
        .map(|name| name.to_string());
    if let Some(name) = &focused
        && !waiting.names.contains(name)
    {
        waiting.names.push(name.clone());
    }
    if let Some(report) = &mut model.saves.report {
        report.rest = Some(costs(&judges, focused.is_some()));
    }
    let Some(mut order) = order(model, None, None, CachePolicy::Use) else {
        return Vec::new();
    };
    order.but = focused;
    model.saves.figure = Some(Figure {
        ticket: order.ticket,
        judges,
    });
    vec![Effect::Preview(order)]
}

/// Whether a preview was asked for here, and not by `R`.
pub(super) fn waits_for(model: &Model, ticket: Ticket) -> bool {
    let figure = model.saves.figure.as_ref();
    figure.is_some_and(|figure| figure.ticket == ticket)
}

/// What the rest would take is known. A failed preview leaves what was told before: no figure.
pub(super) fn previewed(model: &mut Model, preview: Result<RunPreview, String>) -> Vec<Effect> {
    let (Some(figure), Ok(preview), Some(report)) =
        (model.saves.figure.take(), preview, &mut model.saves.report)
    else {
        return Vec::new();
    };
    let of: Vec<_> = figure
        .judges
        .iter()
        .filter_map(|judge| Some((judge.as_str(), preview.judges.get(judge)?)))
        .filter(|(_, of)| of.cells > of.cached)
        .collect();
    let cells: Vec<(u64, &str)> = of
        .iter()
        .map(|(judge, of)| (of.cells - of.cached, *judge))
        .collect();
    report.rest = if cells.is_empty() {
        None
    } else {
        let usd = of.iter().map(|(_, of)| of.cost_usd).sum();
        Some(rest(&cells, usd))
    };
    Vec::new()
}

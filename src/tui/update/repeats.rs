//! `*`: judges the focused cell several times, to show how stable its verdict is. On an eval, repeats its shown cells to
//! measure the noise of the judge, as `dicta noise` does. The repeats decide nothing.

use std::path::Path;

use super::notices::push_info;
use super::runs;
use crate::compare::statistics::{Confidence, RepeatedCell, self_flip_rate};
use crate::model::pluralize;
use crate::record::NoiseRecords;
use crate::run::CachePolicy;
use crate::tui::effect::Effect;
use crate::tui::history_view::Shared;
use crate::tui::state::App;
use crate::tui::state::cells::RowId;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::runs::RunTicket;
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::line_input::LineInput;

/// The number of repeats that the line suggests.
const SUGGESTED_REPEATS: &str = "5";
/// The largest number of repeats of one cell.
const MAX_REPEATS: u32 = 100;

/// Asks for the number of repeats.
pub(super) fn ask_count(app: &mut App) -> Vec<Effect> {
    let input = LineInput::suggestion(SUGGESTED_REPEATS);
    app.overlays.push(Overlay::RepeatCount(input));
    Vec::new()
}

/// Judges the focused cell, or the shown cells of the focused eval, so many times. The error is a sentence about the typed
/// number.
pub(super) fn repeat_focused(app: &mut App, typed: &str) -> Result<Vec<Effect>, String> {
    let wrong = || format!("type a number of repeats from 2 to {MAX_REPEATS}, such as 5");
    let digits = typed.trim().trim_start_matches(['×', 'x']);
    let count: u32 = digits.parse().map_err(|_| wrong())?;
    if !(2..=MAX_REPEATS).contains(&count) {
        return Err(wrong());
    }
    if let Some(rows) = app.live_session.cells.group_rows() {
        let rows = rows.to_vec();
        return Ok(measure_noise(app, count, &rows));
    }
    let cells = &app.live_session.cells;
    let row = cells.selected_row().ok_or("select a cell first (j, k)")?;
    let name = cells
        .decision_name(row)
        .ok_or("select a cell first (j, k)")?;
    let shown = cells.row(row).ok_or("select a cell first (j, k)")?;
    let slot = app.live_session.trace_panes.slot;
    let judge = shown
        .slot(slot)
        .or(shown.slots.first())
        .and_then(|slot| slot.judge);
    let judge = judge.and_then(|at| cells.judges.get(at as usize));
    let judge = judge.ok_or("this cell has no judge yet: r judges it")?;
    let config = app
        .workspace()
        .and_then(|workspace| workspace.judges.get(&judge.name));
    let Some(config) = config.cloned() else {
        return Err(format!("judge {} is not in dicta.yaml", judge.name));
    };
    // All repeats read the same recorded tool responses, so that only the judge's own noise differs.
    let evidence = shown.slots.first().and_then(|slot| {
        let run = slot.run_cell.and_then(|at| cells.runs.get(at.run as usize));
        slot.cached_from.clone().or_else(|| run.cloned())
    });
    let only = Some(vec![name.to_string()]);
    let order = runs::build_workspace_order(app, only, None, CachePolicy::Refresh, None);
    let Some(mut order) = order else {
        return Ok(push_info(app, "no workspace is open"));
    };
    if order.workspace.replayed_evidence_run.is_none() {
        order.replayed_evidence = evidence.map(|run| run.0);
    }
    let costs = !config.is_free();
    order.judge = Some(config);
    order.repeat = Some(count);
    Ok(runs::start_or_ask(app, order, costs, &[row]))
}

/// Repeats the judge calls of rows without the cache, as a noise run.
fn measure_noise(app: &mut App, count: u32, rows: &[RowId]) -> Vec<Effect> {
    let names = runs::name_rows(&app.live_session.cells, rows);
    let costs = runs::is_any_judge_paid(app);
    // A cached verdict would repeat nothing, and a repeat must not become a verdict of later runs.
    let order = runs::build_workspace_order(app, Some(names), None, CachePolicy::Off, None);
    let Some(mut order) = order else {
        return push_info(app, "no workspace is open");
    };
    order.measures_noise = true;
    order.repeat = Some(count);
    runs::start_or_ask(app, order, costs, rows)
}

/// Stores the repeats of the noise runs, and reports what the run that just ended measured.
pub(super) fn handle_noise_read(
    app: &mut App,
    number: u64,
    root: &Path,
    measured: Option<RunTicket>,
    noise: Result<Shared<NoiseRecords>, TaskFailure>,
) -> Vec<Effect> {
    // Another workspace may be open by now.
    if app.workspace().is_none_or(|open| open.root != root) {
        return Vec::new();
    }
    match noise {
        Ok(noise) => {
            // The repeats of a later order contain those of this one.
            if app.noise_reads.accept(number) {
                app.live_session.cells.noise = noise;
            }
        }
        Err(why) => {
            let why = format!("the noise of the judges is not read: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            return Vec::new();
        }
    }
    let Some(measured) = measured else {
        return Vec::new();
    };
    let session = &app.live_session;
    let slots = session.runs.by_ticket.get(&measured).into_iter();
    let slots = slots.flat_map(|run| run.cell_slots.iter().flatten());
    let mut rows: Vec<RowId> = slots.map(|slot| slot.row).collect();
    rows.dedup();
    let cells = &session.cells;
    let repeats = rows
        .iter()
        .filter_map(|row| cells.repeats_of(cells.row(*row)?));
    let repeats: Vec<RepeatedCell> = repeats.collect();
    let differ = repeats.iter().filter(|cell| cell.has_flip()).count();
    let verb = if differ == 1 { "differs" } else { "differ" };
    let text = match self_flip_rate(&repeats, Confidence::P95) {
        Ok(rate) => format!(
            "noise: {differ} of {} {verb} without an edit; self-flip rate {:.2}, 95% interval {:.2}–{:.2} (I shows it)",
            pluralize(rate.cells, "cell"),
            rate.rate,
            rate.interval.lower,
            rate.interval.upper
        ),
        Err(_) => "noise: no cell has two verdicts, so nothing is measured".to_owned(),
    };
    push_info(app, text)
}

//! Recorded tool responses for the runs of a save. Judges read the same pages as before, so that flips come from the
//! rubric and not from a changed page.
//!
//! Responsible for the choice of runs whose tool responses are replayed. A page that none of them recorded is fetched
//! and shown as a miss.

use crate::event::{EventKind, RunEvent};
use crate::model::{RunId, pluralize};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::runs::RunTicket;

/// The maximum number of runs whose tool responses are searched, newest first.
const MAX_EVIDENCE_RUNS: usize = 16;

/// Sets the recorded tool responses for the runs that these effects start or preview.
pub(super) fn set_replayed_evidence(app: &App, effects: &mut [Effect]) {
    let Some(runs) = find_evidence_runs(app) else {
        return;
    };
    for effect in effects {
        if let Effect::StartRun(order) | Effect::PreviewRun(order) = effect {
            order.replayed_evidence = Some(runs.clone());
        }
    }
}

/// Returns the runs that judged the visible verdicts, newest first. `None` if no judge has tools, dicta.yaml names a
/// run, or the user turned replay off.
fn find_evidence_runs(app: &App) -> Option<String> {
    let workspace = app.workspace()?;
    let with_tools = workspace
        .judges
        .values()
        .any(|judge| !judge.tools.is_empty());
    // A run that dicta.yaml names has priority over the recorded ones.
    if app.saves.refetch || !with_tools || workspace.replayed_evidence_run.is_some() {
        return None;
    }
    let cells = &app.live_session.cells;
    let slots = cells.rows.iter().flat_map(|row| &row.slots);
    let judged = slots.filter(|slot| slot.judge.is_some());
    let mut runs: Vec<&RunId> = judged
        .filter_map(|slot| {
            let slot_run = || cells.runs.get(slot.run_cell?.run as usize);
            // A cached verdict got its tool responses in the run that judged it.
            slot.cached_from.as_ref().or_else(slot_run)
        })
        .collect();
    // A run id begins with its time, so this puts the newest first.
    runs.sort_unstable_by(|a, b| b.cmp(a));
    runs.dedup();
    runs.truncate(MAX_EVIDENCE_RUNS);
    let names: Vec<&str> = runs.iter().map(|run| run.0.as_str()).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// Records in the report of a save that its run replays tool responses.
pub(super) fn report_replayed_evidence(app: &mut App, ticket: RunTicket, events: &[RunEvent]) {
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted(header) => header.replayed_evidence_plan(),
        _ => None,
    });
    let save_number = app
        .live_session
        .runs
        .by_ticket
        .get(&ticket)
        .and_then(|run| run.save_number);
    let (Some(plan), Some(save)) = (started, save_number) else {
        return;
    };
    let report = app.saves.report.as_mut();
    let Some(report) = report.filter(|report| report.covers_save(save)) else {
        return;
    };
    // The first run of a rubric has no recorded pages.
    let pages = match plan.answers {
        0 => "no pages yet".to_owned(),
        n => pluralize(n, "page"),
    };
    report.replayed_evidence = Some(format!(
        "judged on the same pages: {pages} of {}, others are fetched and shown as misses (P fetches again)",
        plan.describe_runs()
    ));
}

/// `P`: turns the replay of recorded tool responses on or off.
pub(super) fn toggle_replayed_evidence(app: &mut App) -> Vec<Effect> {
    let refetch = !app.saves.refetch;
    app.saves.refetch = refetch;
    let notice = if refetch {
        "saves fetch their pages again, which may move a verdict (P: same pages)"
    } else {
        "saves are judged on the pages of before (P fetches again, r for one cell)"
    };
    app.notices.push(app.now, NoticeLevel::Info, notice);
    Vec::new()
}

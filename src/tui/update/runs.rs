//! Runs: their events, their ends, their reports. Live and replayed events use the same function.

mod orders;

use std::path::PathBuf;
use std::sync::Arc;

pub(super) use orders::{
    build_workspace_order, cancel_all, report_start, run_all, run_focused, start_or_ask, start_run,
};

use super::{replayed_evidence, warnings};
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, CellResult, Cost, Outcome, RunId, pluralize};
use crate::record::NewestVerdicts;
use crate::theme::Glyphs;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::{CellsState, FlipSide, RowFlip, SlotId};
use crate::tui::state::judge_trace::StepSelection;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::{RunStage, RunTicket, TrackedRun, format_bill};
use crate::tui::state::saves::{SaveReport, outcome_glyph, summarize, summarize_briefly};
use crate::tui::state::session_view::SessionView;

/// The number of columns from which the footer summarizes a save.
const MIN_SUMMARY_WIDTH: u16 = 60;
/// The maximum number of a run's notes that are shown one by one.
const MAX_SHOWN_NOTES: usize = 10;

/// Adds a part of the outline.
pub(super) fn handle_outlined(
    app: &mut App,
    generation: u64,
    facts: Vec<EventKind>,
) -> Vec<Effect> {
    // The outline belongs to an older version of the files.
    if generation != app.generation {
        return Vec::new();
    }
    // The labels are copied out, because the session is borrowed below.
    let labels = app.workspace().map(Arc::clone);
    let session = &mut app.live_session;
    for fact in facts {
        match fact {
            EventKind::RunStarted(header) => {
                session.cells.begin_outline();
                if let Some(workspace) = &labels {
                    session.cells.replace_labels(&workspace.labels);
                }
                session.outline_indices = session.cells.register_header(&header, true);
            }
            EventKind::CellsPlanned {
                transcript, keys, ..
            } => {
                session
                    .cells
                    .add_outlined_cells(&session.outline_indices, &transcript, &keys);
            }
            _ => {}
        }
    }
    session.cells.update_shown_if_due(app.now);
    Vec::new()
}

/// Completes the outline.
pub(super) fn handle_outline_ended(
    app: &mut App,
    generation: u64,
    problem: Option<String>,
) -> Vec<Effect> {
    if generation != app.generation {
        return Vec::new();
    }
    let mut effects = Vec::new();
    match problem {
        None => {
            app.live_session.cells.finish_outline();
            // Only now, because both read all transcripts.
            if let Some(workspace) = app.workspace().map(Arc::clone) {
                effects.push(warnings::request_warnings(app, &workspace));
            }
        }
        Some(why) => {
            let why = format!("the cells are not all known: {why}");
            // The rows that are known stay usable.
            app.live_session.cells.outline_error = Some(why.clone());
            app.notices.push(app.now, NoticeLevel::Error, why);
        }
    }
    app.live_session.cells.update_shown_if_due(app.now);
    effects
}

/// Stores the newest verdicts of past runs.
pub(super) fn handle_newest_verdicts(
    app: &mut App,
    generation: u64,
    board: &Arc<NewestVerdicts>,
    problems: Vec<String>,
) -> Vec<Effect> {
    // The verdicts belong to an older version of the files.
    if generation != app.generation {
        return Vec::new();
    }
    app.live_session.cells.apply_newest_verdicts(board);
    app.live_session.cells.update_shown_if_due(app.now);
    for problem in problems {
        let notice = format!("a past run is left out: {problem}");
        app.notices.push(app.now, NoticeLevel::Warning, notice);
    }
    Vec::new()
}

/// Stores the id of a run that started.
pub(super) fn handle_run_started(
    app: &mut App,
    ticket: RunTicket,
    run: RunId,
    dir: PathBuf,
) -> Vec<Effect> {
    app.live_session.cells.register_run(&run, ticket.0);
    let known = app.live_session.runs.by_ticket.entry(ticket).or_default();
    known.id = Some(run);
    known.dir = Some(dir);
    // The user may have cancelled the run before it started.
    if known.stage == RunStage::Requested {
        known.stage = RunStage::Running;
    }
    Vec::new()
}

/// Removes a run that did not start.
pub(super) fn forget_run(app: &mut App, ticket: RunTicket) {
    app.live_session.runs.by_ticket.shift_remove(&ticket);
    remove_from_report(app, ticket);
}

/// Removes a run that could not start.
pub(super) fn handle_run_refused(app: &mut App, ticket: RunTicket, why: &str) -> Vec<Effect> {
    forget_run(app, ticket);
    let why = format!("nothing was started: {why}");
    app.notices.push(app.now, NoticeLevel::Error, why);
    Vec::new()
}

/// Feeds the events of a live run.
pub(super) fn handle_run_events(
    app: &mut App,
    ticket: RunTicket,
    events: &[RunEvent],
) -> Vec<Effect> {
    let now = app.now;
    let known = app
        .live_session
        .runs
        .by_ticket
        .entry(ticket)
        .or_insert_with(|| TrackedRun {
            ..TrackedRun::default()
        });
    // The workbench may get the first events late, so the start follows from the time in the event.
    if known.began_at.is_none() {
        known.began_at = events.last().map(|event| now.since(event.at));
    }
    // The counters before and after give the decisions of this batch.
    let before = (known.decided_count, known.first_verdicts);
    let new = known.cell_slots.is_empty();
    replayed_evidence::report_replayed_evidence(app, ticket, events);
    let flips = feed_events(&mut app.live_session, ticket, events);
    let run = app.live_session.runs.by_ticket.get(&ticket);
    let (decided, first_verdicts) = run.map_or((0, 0), |run| {
        (run.decided_count - before.0, run.first_verdicts - before.1)
    });
    add_to_report(app, ticket, flips, (decided, first_verdicts));
    // A second opinion appears with the run's first cells.
    if new {
        show_second_opinion(&mut app.live_session, ticket);
    }
    app.live_session.cells.update_shown_if_due(now);
    Vec::new()
}

/// Shows the judge of a second opinion at work, if its cell is focused.
fn show_second_opinion(session: &mut SessionView, ticket: RunTicket) {
    let run = session.runs.by_ticket.get(&ticket);
    let Some(SlotId { row, slot }) = run.and_then(|run| *run.cell_slots.first()?) else {
        return;
    };
    let is_second_opinion = session
        .cells
        .row(row)
        .is_some_and(|row| row.is_second_opinion(slot));
    if is_second_opinion && session.trace_panes.row == Some(row) {
        session.trace_panes.slot = slot;
        session.trace_panes.step = StepSelection::Newest;
    }
}

/// Completes a live run.
pub(super) fn handle_run_ended(
    app: &mut App,
    ticket: RunTicket,
    problem: Option<String>,
) -> Vec<Effect> {
    let theme = Arc::clone(&app.ui.theme);
    let session = &mut app.live_session;
    let blind = session.cells.blind;
    let Some(run) = session.runs.by_ticket.get_mut(&ticket) else {
        return Vec::new();
    };
    run.stage = RunStage::Ended(problem.clone());
    if let Some(id) = &run.id {
        // A cancelled run leaves cells without results, which get their earlier state back.
        session.cells.abandon_cells(id, &run.cell_slots);
    }
    session.cells.update_shown_if_due(app.now);
    let (summary, notes, of_save) = (
        summarize_run(run, theme.glyphs(), blind),
        collect_notes(run),
        run.save_number.is_some(),
    );
    let id = run.id.clone();
    let focused: Vec<RunId> = focused_run_ids(&session.cells);
    // The screen may show traces of these runs.
    session.runs.drop_oldest(|run| focused.contains(run));
    remove_from_report(app, ticket);
    let mut effects = Vec::new();
    // New verdicts can show that an eval has the same verdict everywhere.
    if let Some(workspace) = app.workspace().map(Arc::clone) {
        effects.push(warnings::request_warnings(app, &workspace));
    }
    for note in notes {
        // A note, such as a missing price, repeats in each run.
        if !app.notices.contains(&note) {
            app.notices.push(app.now, NoticeLevel::Warning, note);
        }
    }
    match problem {
        Some(why) => {
            let name = id.map_or_else(String::new, |id| format!(" {}", id.letters()));
            let notice = format!("run{name} did not end well: {why}");
            app.notices.push(app.now, NoticeLevel::Error, notice);
        }
        // The changes pane and the footer report a run of a save. If neither is visible, a notice does.
        None if of_save => {
            let hidden = app.ui.size.width < MIN_SUMMARY_WIDTH
                && app.layout().pane_area(Pane::Changes).is_none();
            if let Some(report) = &app.visible_report()
                && hidden
                && report.running_runs.is_empty()
            {
                let summary = summarize_briefly(report, theme.glyphs());
                app.notices.push(app.now, NoticeLevel::Info, summary);
            }
        }
        None => app.notices.push(app.now, NoticeLevel::Info, summary),
    }
    effects
}

/// Updates the order of the rows that lagged behind results.
pub(super) fn handle_time_passed(app: &mut App) {
    let now = app.now;
    app.session_mut().cells.update_shown_if_due(now);
}

/// Feeds events to a session and returns their flips. Live and replayed runs use this function.
///
/// The caller updates the visible rows afterwards, once per batch.
pub(super) fn feed_events(
    session: &mut SessionView,
    ticket: RunTicket,
    events: &[RunEvent],
) -> Vec<RowFlip> {
    // An older run that still reports must not replace the current digests.
    let newest = session.runs.by_ticket.keys().all(|other| *other <= ticket);
    let run = session.runs.by_ticket.entry(ticket).or_default();
    let cells = &mut session.cells;
    let mut flips = Vec::new();
    for event in events {
        run.apply_event(event);
        match &event.kind {
            EventKind::RunStarted(header) => {
                cells.register_run(&header.run, ticket.0);
                // The newest run has the newest rubrics, also if there is no outline.
                run.index_map = cells.register_header(header, newest);
                run.id = Some(header.run.clone());
                if run.stage == RunStage::Requested {
                    run.stage = RunStage::Running;
                }
            }
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => {
                // Cell numbers have no gaps. In a broken log with gaps, the missing cells get no slot.
                let reached = run.state.cells.len().saturating_sub(keys.len());
                if let Some(id) = &run.id
                    && reached == first.index()
                {
                    run.cell_slots.resize(reached, None);
                    let places = cells.start_cells(id, &run.index_map, transcript, *first, keys);
                    run.cell_slots.extend(places);
                }
            }
            EventKind::CellsSettled(settled) => {
                for one in settled {
                    finish_cell(run, cells, &mut flips, one.cell, &one.result);
                }
            }
            EventKind::CellStarted { cell, .. } => {
                if let Some(at) = run.cell_slots.get(cell.index()).copied().flatten() {
                    cells.mark_judge_started(at);
                }
            }
            EventKind::CellFinished { cell, result } => {
                finish_cell(run, cells, &mut flips, *cell, result);
            }
            _ => {}
        }
    }
    flips
}

fn finish_cell(
    run: &mut TrackedRun,
    cells: &mut CellsState,
    flips: &mut Vec<RowFlip>,
    cell: CellIx,
    result: &CellResult,
) {
    let place = run.cell_slots.get(cell.index()).copied().flatten();
    if let (Some(at), Some(id)) = (place, &run.id) {
        let ended = cells.finish_cell(at, id, cell, result);
        run.decided_count += u64::from(ended.decided);
        run.first_verdicts += u64::from(ended.first_verdict);
        flips.extend(ended.flip);
    }
}

/// Adds the flips of a run to the report that it belongs to.
fn add_to_report(
    app: &mut App,
    ticket: RunTicket,
    flips: Vec<RowFlip>,
    (decided, fresh): (u64, u64),
) {
    let save = app
        .live_session
        .runs
        .by_ticket
        .get(&ticket)
        .and_then(|run| run.save_number);
    let number = save.unwrap_or(0);
    for flip in &flips {
        log_flip(app, flip);
    }
    let belongs_to_run = |report: &SaveReport| match save {
        Some(number) => report.covers_save(number),
        None => report.number == 0 && report.running_runs.contains(&ticket),
    };
    let known = app.saves.report.as_ref().is_some_and(belongs_to_run);
    // The first flip of a run without a save opens a report for it.
    if !known && save.is_none() && !flips.is_empty() {
        app.saves.selected = 0;
        app.saves.report = Some(SaveReport {
            number,
            saved_at: app.now,
            running_runs: vec![ticket],
            ..SaveReport::default()
        });
    }
    if let Some(report) = app
        .saves
        .report
        .as_mut()
        .filter(|report| belongs_to_run(report))
    {
        report.judged += decided;
        report.first_verdicts += fresh;
        for flip in flips {
            report.add_flip(flip);
        }
    }
}

/// Adds a line about a flip to the log: the cell, both verdicts, and the direction.
fn log_flip(app: &mut App, flip: &RowFlip) {
    let glyphs = app.ui.theme.glyphs();
    let name = app.live_session.cells.decision_name(flip.row);
    let name = name.map_or_else(|| "?".to_owned(), |name| name.to_string());
    let direction = match flip.agrees_with_label {
        Some(true) => ", towards your label",
        Some(false) => ", away from your label",
        None => "",
    };
    // A line of the log has the first line of each reason.
    let reason = |side: &FlipSide| side.explanation.lines().next().unwrap_or("").to_owned();
    let text = format!(
        "flip {} {} {} {name}{direction}: {} {} {}",
        outcome_glyph(flip.before.outcome, glyphs),
        glyphs.arrow,
        outcome_glyph(flip.after.outcome, glyphs),
        reason(&flip.before),
        glyphs.arrow,
        reason(&flip.after),
    );
    app.notices.log_verdict(app.now, flip.row, text);
}

fn remove_from_report(app: &mut App, ticket: RunTicket) {
    let Some(report) = &mut app.saves.report else {
        return;
    };
    let before = report.running_runs.len();
    report.running_runs.retain(|one| *one != ticket);
    let ended = before > 0 && report.running_runs.is_empty() && report.number > 0;
    // More judging of the same save may wait, and its end writes the line.
    if ended
        && app.saves.pending_judging.is_none()
        && let Some(report) = app.visible_report()
    {
        let text = summarize(&report);
        app.notices.log_only(app.now, NoticeLevel::Info, text);
    }
}

/// Returns the runs of the focused row, because the screen may show their traces.
fn focused_run_ids(cells: &CellsState) -> Vec<RunId> {
    let row = cells.selected_row().and_then(|row| cells.row(row));
    let slots = row.into_iter().flat_map(|row| &row.slots);
    slots
        .filter_map(|slot| cells.runs.get(slot.run_cell?.run as usize).cloned())
        .collect()
}

/// Summarizes a run, such as `run k3f9: ✓ 28 ✗ 11 ! 2, 41 cells, 4.1 s, $0.12`.
fn summarize_run(run: &TrackedRun, glyphs: &Glyphs, blind: bool) -> String {
    let name = run.id.as_ref().map_or("?", RunId::letters);
    // A run without totals was interrupted.
    let Some(totals) = &run.state.totals else {
        return format!(
            "run {name} ended, {} of {} cells judged",
            run.finished_cells,
            run.planned_cells()
        );
    };
    let count = |wanted: fn(Outcome) -> bool| -> u64 {
        let outcomes = totals.outcomes.iter();
        outcomes
            .filter(|(outcome, _)| wanted(**outcome))
            .map(|(_, n)| n)
            .sum()
    };
    let mut marks = Vec::new();
    for (mark, n) in [
        (glyphs.pass, count(|o| o == Outcome::Pass)),
        (glyphs.fail, count(|o| o == Outcome::Fail)),
        (glyphs.error, count(Outcome::is_error)),
        (
            glyphs.not_applicable,
            count(|o| o == Outcome::NotApplicable),
        ),
        (glyphs.skipped, count(|o| o == Outcome::Skipped)),
    ] {
        if n > 0 {
            marks.push(format!("{mark} {n}"));
        }
    }
    let mut parts = vec![
        // Counts of passes and fails would reveal verdicts to a user who labels blind.
        if blind {
            "verdicts hidden".to_owned()
        } else if marks.is_empty() {
            "nothing decided".to_owned()
        } else {
            marks.join(" ")
        },
        pluralize(totals.cells, "cell"),
        totals.duration_ms.to_string(),
    ];
    if totals.pending > 0 {
        parts.insert(2, format!("{} not judged", totals.pending));
    }
    // Recordings of older versions have a total instead of a bill.
    let bill = totals.bill.unwrap_or(Cost {
        usd: totals.cost_usd.unwrap_or(0.0),
        unknown: 0,
    });
    parts.extend(format_bill(bill));
    let how = if totals.cancelled { " cancelled" } else { "" };
    let mut text = format!("run {name}{how}: {}", parts.join(", "));
    if let Some(stop) = run.state.budgets.iter().find(|stop| stop.hard) {
        text = format!("{text}; stopped by the budget ({stop}): dicta run --resume {name}");
    }
    text
}

fn collect_notes(run: &TrackedRun) -> Vec<String> {
    let all = &run.state.notes;
    let mut notes: Vec<String> = all
        .iter()
        .take(MAX_SHOWN_NOTES)
        .map(|note| note.text.clone())
        .collect();
    if all.len() > MAX_SHOWN_NOTES {
        notes.push(format!(
            "{} more notes are in the run's log",
            all.len() - MAX_SHOWN_NOTES
        ));
    }
    notes
}

#[cfg(test)]
mod tests;

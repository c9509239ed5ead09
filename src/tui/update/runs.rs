//! Runs: their events, their ends, their reports. Live and replayed events use the same function.
//!
//! Responsible for what recorded events change on the screen: cells, flips, counts and notices. Does not order runs
//! (`orders`), does not execute them (the runtime), and does not know what a save touched (`saves`).

mod orders;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) use orders::{
    build_workspace_order, cancel_all, is_any_judge_paid, name_rows, report_start, run_all,
    run_focused, start_or_ask, start_run,
};

use super::{edits, label_queues, replayed_evidence, warnings};
use crate::event::{EventKind, RunEvent, RunPurpose};
use crate::model::{
    CellIx, CellResult, Cost, Outcome, RunId, ScoreBounds, StoppedJudge, pluralize,
};
use crate::record::{NewestVerdicts, decide_under};
use crate::run::{OutlineBatch, TranscriptTags};
use crate::theme::Glyphs;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::{CellsState, DecidedRow, DecisionChanges, SlotId};
use crate::tui::state::edit_report::{summarize_briefly, summarize_verdicts};
use crate::tui::state::judge_trace::{StepSelection, TracePanes};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::{RunStage, RunTicket, TrackedRun, format_bill};
use crate::tui::state::saves::JUDGE_DEBOUNCE;
use crate::tui::state::session_view::SessionView;

/// The number of columns from which the footer summarizes a save.
const MIN_SUMMARY_WIDTH: u16 = 60;
/// The maximum number of a run's notes that are shown one by one.
const MAX_SHOWN_NOTES: usize = 10;

/// Adds a part of the outline.
pub(super) fn handle_outlined(app: &mut App, generation: u64, batch: OutlineBatch) -> Vec<Effect> {
    // The outline belongs to an older version of the files.
    if generation != app.generation {
        return Vec::new();
    }
    // The labels are copied out, because the session is borrowed below.
    let labels = app.workspace().map(Arc::clone);
    let session = &mut app.live_session;
    for fact in batch.facts {
        match fact {
            EventKind::RunStarted(header) => {
                session.cells.begin_outline();
                if let Some(workspace) = &labels {
                    session.cells.replace_labels(workspace.index_labels());
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
    for TranscriptTags { transcript, tags } in batch.tags {
        session.cells.tags.insert(transcript, tags);
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
            let removed = app.live_session.cells.finish_outline();
            edits::add_removed(app, &removed);
            edits::restore_edit(app);
            // Only now, because both read all transcripts.
            if let Some(workspace) = app.workspace().map(Arc::clone) {
                effects.push(warnings::request_warnings(app, &workspace));
                effects.push(Effect::ReadNoise {
                    number: app.noise_reads.next_number(),
                    workspace,
                    measured: None,
                });
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
    label_queues::refresh_options(app);
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
    app.past_verdict_wait.end_reading();
    if let Some(first) = &mut app.first_judging {
        // A run that cannot be read is a run, too.
        first.nothing_recorded = board.is_empty() && problems.is_empty();
    }
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
    let forgotten = app.live_session.runs.by_ticket.shift_remove(&ticket);
    edits::remove_from_report(app, ticket);
    // Another run must record the revision. A refused record would only be refused again.
    if forgotten.is_some_and(|run| run.revision == Some(app.saves.revision) && !run.only_records)
        && app.saves.revision > 0
    {
        app.saves.record_due = Some(app.now + JUDGE_DEBOUNCE);
    }
}

/// Removes a run that could not start.
pub(super) fn handle_run_refused(app: &mut App, ticket: RunTicket, why: &str) -> Vec<Effect> {
    let run = app.live_session.runs.by_ticket.get(&ticket);
    let is_ordered = run.is_none_or(|run| !run.started_on_open);
    forget_run(app, ticket);
    // No one ordered the run on opening, so a missing key is not an error yet.
    let (level, text) = if is_ordered {
        (NoticeLevel::Error, format!("nothing was started: {why}"))
    } else {
        (NoticeLevel::Info, format!("not judged on opening: {why}"))
    };
    app.notices.push(app.now, level, text);
    Vec::new()
}

/// Feeds the events of a live run.
pub(super) fn handle_run_events(
    app: &mut App,
    ticket: RunTicket,
    events: &[RunEvent],
) -> Vec<Effect> {
    let now = app.now;
    let edit = app.saves.edit;
    let known = app
        .live_session
        .runs
        .by_ticket
        .entry(ticket)
        .or_insert_with(|| TrackedRun {
            edit: Some(edit),
            ..TrackedRun::default()
        });
    // The workbench may get the first events late, so the start follows from the time in the event.
    if known.began_at.is_none() {
        known.began_at = events.last().map(|event| now.since(event.at));
    }
    let new = known.cell_slots.is_empty();
    replayed_evidence::report_replayed_evidence(app, ticket, events);
    let changes = feed_events(&mut app.live_session, ticket, events);
    edits::add_to_report(app, ticket, changes);
    report_stopped_judges(app, events);
    // A second opinion appears with the run's first cells.
    if new {
        show_second_opinion(&mut app.live_session, ticket);
    }
    app.live_session.cells.update_shown_if_due(now);
    Vec::new()
}

/// Reports each judge that a run stops calling, with the key that calls it again.
fn report_stopped_judges(app: &mut App, events: &[RunEvent]) {
    for event in events {
        if let EventKind::Note { cell: None, text } = &event.kind
            && let Some(stopped) = StoppedJudge::from_note(text)
        {
            let notice = format!("judge {stopped}; its other cells stay pending, R calls it again");
            app.notices.push(app.now, NoticeLevel::Error, notice);
        }
    }
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
        session.trace_screen = session.trace_screen.for_another_cell();
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
    run.paused.clear();
    run.pauses.clear();
    run.stepping.clear();
    if let Some(id) = &run.id {
        // A cancelled run leaves cells without results, which get their earlier state back.
        session.cells.abandon_cells(id, &run.cell_slots);
    }
    session.cells.update_shown_if_due(app.now);
    let edit = run.edit;
    let measures_noise = run.measures_noise;
    let (mut summary, notes, of_save) = (
        summarize_run(run, theme.glyphs(), blind),
        collect_notes(run),
        run.save_number.is_some(),
    );
    if let Some(left_out) = &run.left_out {
        summary = format!("{summary}; {left_out}");
    }
    let id = run.id.clone();
    let focused: Vec<RunId> = focused_run_ids(&session.cells);
    // The screen may show traces of these runs.
    session.runs.drop_oldest(|run| focused.contains(run));
    edits::remove_from_report(app, ticket);
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
    if measures_noise {
        let workspace = app.workspace().map(Arc::clone);
        effects.extend(workspace.map(|workspace| Effect::ReadNoise {
            number: app.noise_reads.next_number(),
            workspace,
            measured: Some(ticket),
        }));
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
        None => {
            // The flips of a run belong to the edit, also those of earlier runs.
            if let Some(report) = app.visible_report()
                && report.is_edit
                && edit == Some(report.edit)
                && !report.flips.is_empty()
            {
                let since = summarize_verdicts(&report, theme.glyphs());
                summary = format!("{summary}; {since}");
            }
            app.notices.push(app.now, NoticeLevel::Info, summary);
        }
    }
    effects
}

/// Updates the order of the rows that lagged behind results.
pub(super) fn handle_time_passed(app: &mut App) {
    let now = app.now;
    app.session_mut().cells.update_shown_if_due(now);
}

/// Feeds events to a session and returns their flips and complete decisions. Live and replayed runs use this function.
///
/// The caller updates the visible rows afterwards, once per batch.
pub(super) fn feed_events(
    session: &mut SessionView,
    ticket: RunTicket,
    events: &[RunEvent],
) -> DecisionChanges {
    // An older run that still reports must not replace the current digests.
    let newest = session.runs.by_ticket.keys().all(|other| *other <= ticket);
    let run = session.runs.by_ticket.entry(ticket).or_default();
    let cells = &mut session.cells;
    let panes = &mut session.trace_panes;
    let mut changes = DecisionChanges::default();
    for event in events {
        run.apply_event(event);
        match &event.kind {
            EventKind::RunStarted(header) => {
                cells.register_run(&header.run, ticket.0);
                // The newest run has the newest rubrics, even without an outline. A branch has the evals of the trace
                // that it continues, which an edit may have changed since.
                let has_current_evals = newest && header.purpose != RunPurpose::Branch;
                run.index_map = cells.register_header(header, has_current_evals);
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
                    finish_cell(run, cells, panes, &mut changes, one.cell, &one.result);
                }
            }
            EventKind::CellStarted { cell, .. } => {
                if let Some(at) = run.cell_slots.get(cell.index()).copied().flatten() {
                    cells.mark_judge_started(at);
                }
            }
            EventKind::CellFinished { cell, result } => {
                finish_cell(run, cells, panes, &mut changes, *cell, result);
            }
            _ => {}
        }
    }
    changes
}

fn finish_cell(
    run: &mut TrackedRun,
    cells: &mut CellsState,
    panes: &mut TracePanes,
    changes: &mut DecisionChanges,
    cell: CellIx,
    result: &CellResult,
) {
    let place = run.cell_slots.get(cell.index()).copied().flatten();
    if let (Some(at), Some(id)) = (place, &run.id) {
        let result = decide_by_current_bounds(run, cells, at, cell, result);
        let ended = cells.finish_cell(at, id, cell, &result);
        run.decided_count += u64::from(ended.decided);
        changes.flips.extend(ended.flip);
        if let Some(outcome) = ended.outcome {
            let row = cells.row(at.row);
            let eval = row.and_then(|row| cells.evals.get(row.eval as usize));
            let slots = row.map(|row| &row.slots);
            changes.decided.push(DecidedRow {
                row: at.row,
                outcome,
                is_first: ended.first_verdict,
                is_check: eval.is_some_and(|eval| !eval.judged),
                is_recorded: slots.is_some_and(|slots| {
                    !slots.is_empty() && slots.iter().all(|slot| slot.cached_from.is_some())
                }),
            });
        }
        // Cells that a person edited no longer decide.
        if let Some(first) = ended.moved_to {
            let places = run.cell_slots.iter_mut().flatten();
            let mut count = 0;
            for place in places.filter(|place| place.row == at.row) {
                place.slot += first;
                count += 1;
            }
            // The screen stays on the trace that the user edited.
            if panes.row == Some(at.row) && panes.slot < count {
                panes.slot += first;
            }
        }
    }
}

/// Returns a result with its outcome under the bounds of the rubric now: a save during the run may have changed them.
fn decide_by_current_bounds<'r>(
    run: &TrackedRun,
    cells: &CellsState,
    at: SlotId,
    cell: CellIx,
    result: &'r CellResult,
) -> Cow<'r, CellResult> {
    let planned = run.state.cells.get(cell.index());
    let planned = planned.and_then(|cell| cell.planned);
    let evals = run.state.header.as_ref().map(|header| &header.evals);
    let spec = planned
        .zip(evals)
        .and_then(|(planned, evals)| evals.get(planned.key.eval as usize));
    let row = cells.row(at.row);
    let eval = row.and_then(|row| cells.evals.get(row.eval as usize));
    let (Some(spec), Some(eval)) = (spec, eval) else {
        return Cow::Borrowed(result);
    };
    let now = eval.decision_rule.bounds;
    let outcome =
        if result.by_human || ScoreBounds::from_decision_settings(&spec.decision_settings) == now {
            result.outcome
        } else {
            decide_under(result, now)
        };
    if outcome == result.outcome {
        return Cow::Borrowed(result);
    }
    Cow::Owned(CellResult {
        outcome,
        ..result.clone()
    })
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
            "run {name} ended, {} of {} judged",
            run.finished_cells,
            pluralize(run.planned_cells(), "cell")
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
    let edited = run.state.cells.iter().filter(|cell| cell.by_human).count();
    if edited > 0 {
        parts.push(format!("{edited} edited by hand"));
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
        // A stopped judge was reported when the run stopped calling it.
        .filter(|note| StoppedJudge::from_note(&note.text).is_none())
        .map(|note| note.text.clone())
        .collect();
    if all.len() > MAX_SHOWN_NOTES {
        let more = all.len() - MAX_SHOWN_NOTES;
        let are = if more == 1 { "is" } else { "are" };
        let more = pluralize(more, "more note");
        notes.push(format!("{more} {are} in the run's log"));
    }
    notes
}

#[cfg(test)]
mod tests;

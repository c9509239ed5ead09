//! Runs: ordered, fed, ended. Live and replayed events take the same way in.

mod orders;

use std::path::PathBuf;
use std::sync::Arc;

pub(super) use orders::{cancel, launch, order, run_all, run_focused};

use super::frozen;
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, CellResult, Cost, Outcome, RunId, pluralize};
use crate::record::NewestVerdicts;
use crate::theme::Glyphs;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::{Cells, Flip};
use crate::tui::model::desk::Desk;
use crate::tui::model::notices::Level;
use crate::tui::model::pane::Pane;
use crate::tui::model::runs::{Run, Stage, Ticket, billed};
use crate::tui::model::saves::{Report, brief};
use crate::tui::model::trace::StepAt;

/// Columns from which the footer says what a save moved.
const FOOTER: u16 = 60;
/// Notes of a run that are told one by one.
const NOTES: usize = 10;

/// More of the outline.
pub(super) fn outlined(model: &mut Model, generation: u64, facts: Vec<EventKind>) -> Vec<Effect> {
    if generation != model.generation {
        return Vec::new();
    }
    let labels = model.workspace().map(Arc::clone);
    let desk = &mut model.live;
    for fact in facts {
        match fact {
            EventKind::RunStarted(header) => {
                desk.cells.outline_began();
                if let Some(workspace) = &labels {
                    desk.cells.label(&workspace.labels);
                }
                desk.outline = desk.cells.meet(&header, true);
            }
            EventKind::CellsPlanned {
                transcript, keys, ..
            } => {
                desk.cells.plan(&desk.outline, &transcript, &keys);
            }
            _ => {}
        }
    }
    desk.cells.settle_at(model.now);
    Vec::new()
}

/// All of the outline.
pub(super) fn outline_ended(
    model: &mut Model,
    generation: u64,
    problem: Option<String>,
) -> Vec<Effect> {
    if generation != model.generation {
        return Vec::new();
    }
    match problem {
        None => model.live.cells.outline_ended(),
        Some(why) => {
            let why = format!("the cells are not all known: {why}");
            model.live.cells.failed = Some(why.clone());
            model.notices.tell(model.now, Level::Error, why);
        }
    }
    model.live.cells.settle_at(model.now);
    Vec::new()
}

/// The board of past runs.
pub(super) fn board_read(
    model: &mut Model,
    generation: u64,
    board: &Arc<NewestVerdicts>,
    problems: Vec<String>,
) -> Vec<Effect> {
    if generation != model.generation {
        return Vec::new();
    }
    model.live.cells.lay(board);
    model.live.cells.settle_at(model.now);
    for problem in problems {
        let said = format!("a past run is left out: {problem}");
        model.notices.tell(model.now, Level::Warning, said);
    }
    Vec::new()
}

/// A run has an id.
pub(super) fn started(model: &mut Model, ticket: Ticket, run: RunId, dir: PathBuf) -> Vec<Effect> {
    model.live.cells.enrol(&run, ticket.0);
    let known = model.live.runs.map.entry(ticket).or_default();
    known.id = Some(run);
    known.dir = Some(dir);
    if known.stage == Stage::Ordered {
        known.stage = Stage::Running;
    }
    Vec::new()
}

/// A run could not begin.
pub(super) fn refused(model: &mut Model, ticket: Ticket, why: &str) -> Vec<Effect> {
    model.live.runs.map.shift_remove(&ticket);
    no_longer_running(model, ticket);
    let why = format!("nothing was started: {why}");
    model.notices.tell(model.now, Level::Error, why);
    Vec::new()
}

/// More of a live run.
pub(super) fn events(model: &mut Model, ticket: Ticket, events: &[RunEvent]) -> Vec<Effect> {
    let now = model.now;
    let known = model
        .live
        .runs
        .map
        .entry(ticket)
        .or_insert_with(|| Run { ..Run::default() });
    if known.origin.is_none() {
        known.origin = events.last().map(|event| now.since(event.at));
    }
    let before = (known.decided, known.fresh);
    let new = known.places.is_empty();
    frozen::tell(model, ticket, events);
    let flips = feed(&mut model.live, ticket, events);
    let run = model.live.runs.map.get(&ticket);
    let (decided, fresh) = run.map_or((0, 0), |run| (run.decided - before.0, run.fresh - before.1));
    report(model, ticket, flips, (decided, fresh));
    if new {
        show_aside(&mut model.live, ticket);
    }
    model.live.cells.settle_at(now);
    Vec::new()
}

/// A judge that was asked besides is shown at work, where its cell is looked at.
fn show_aside(desk: &mut Desk, ticket: Ticket) {
    let run = desk.runs.map.get(&ticket);
    let Some((row, slot)) = run.and_then(|run| *run.places.first()?) else {
        return;
    };
    let aside = desk.cells.row(row).is_some_and(|row| row.is_aside(slot));
    if aside && desk.trace.row == Some(row) {
        desk.trace.slot = slot;
        desk.trace.step = StepAt::Newest;
    }
}

/// A live run ended.
pub(super) fn ended(model: &mut Model, ticket: Ticket, problem: Option<String>) -> Vec<Effect> {
    let theme = Arc::clone(&model.ui.theme);
    let desk = &mut model.live;
    let blind = desk.cells.blind;
    let Some(run) = desk.runs.map.get_mut(&ticket) else {
        return Vec::new();
    };
    run.stage = Stage::Ended(problem.clone());
    if let Some(id) = &run.id {
        desk.cells.left(id, &run.places);
    }
    desk.cells.settle_at(model.now);
    let (said, notes, of_save) = (
        summary(run, theme.glyphs(), blind),
        notes(run),
        run.save.is_some(),
    );
    let id = run.id.clone();
    let focused: Vec<RunId> = looked_at(&desk.cells);
    desk.runs.trim(|run| focused.contains(run));
    no_longer_running(model, ticket);
    for note in notes {
        if !model.notices.log.iter().any(|notice| notice.text == note) {
            model.notices.tell(model.now, Level::Warning, note);
        }
    }
    match problem {
        Some(why) => {
            let name = id.map_or_else(String::new, |id| format!(" {}", id.letters()));
            let said = format!("run{name} did not end well: {why}");
            model.notices.tell(model.now, Level::Error, said);
        }
        // What a save brought about is told as what it moved, in the changes and the footer; where neither has room, here.
        None if of_save => {
            let hidden =
                model.ui.size.width < FOOTER && model.layout().area(Pane::Changes).is_none();
            if let Some(report) = &model.report()
                && hidden
                && report.running.is_empty()
            {
                let said = brief(report, theme.glyphs());
                model.notices.tell(model.now, Level::Info, said);
            }
        }
        None => model.notices.tell(model.now, Level::Info, said),
    }
    Vec::new()
}

/// A moment came: order that lagged behind results is worked out.
pub(super) fn time_passed(model: &mut Model) {
    let now = model.now;
    model.desk_mut().cells.settle_at(now);
}

/// Feeds events to a desk; the flips they made. The one way in, for live and replayed runs.
///
/// The caller settles the cells afterwards: once a batch, not once an event.
pub(super) fn feed(desk: &mut Desk, ticket: Ticket, events: &[RunEvent]) -> Vec<Flip> {
    let newest = desk.runs.map.keys().all(|other| *other <= ticket);
    let run = desk.runs.map.entry(ticket).or_default();
    let cells = &mut desk.cells;
    let mut flips = Vec::new();
    for event in events {
        run.apply(event);
        match &event.kind {
            EventKind::RunStarted(header) => {
                cells.enrol(&header.run, ticket.0);
                // The newest run knows the newest rubrics, an outline or none.
                run.names = cells.meet(header, newest);
                run.id = Some(header.run.clone());
                if run.stage == Stage::Ordered {
                    run.stage = Stage::Running;
                }
            }
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => {
                // Numbers rise without gaps; a log with holes has cells without a place.
                let reached = run.state.cells.len().saturating_sub(keys.len());
                if let Some(id) = &run.id
                    && reached == first.index()
                {
                    run.places.resize(reached, None);
                    let places = cells.take(id, &run.names, transcript, *first, keys);
                    run.places.extend(places);
                }
            }
            EventKind::CellsSettled(settled) => {
                for one in settled {
                    end(run, cells, &mut flips, one.0, &one.1);
                }
            }
            EventKind::CellStarted { cell, .. } => {
                if let Some(at) = run.places.get(cell.index()).copied().flatten() {
                    cells.begun(at);
                }
            }
            EventKind::CellFinished { cell, result } => end(run, cells, &mut flips, *cell, result),
            _ => {}
        }
    }
    flips
}

fn end(run: &mut Run, cells: &mut Cells, flips: &mut Vec<Flip>, cell: CellIx, result: &CellResult) {
    let place = run.places.get(cell.index()).copied().flatten();
    if let (Some(at), Some(id)) = (place, &run.id) {
        let ended = cells.ended(at, id, cell, result);
        run.decided += u64::from(ended.decided);
        run.fresh += u64::from(ended.fresh);
        flips.extend(ended.flip);
    }
}

/// Puts what a run moved into the report it belongs to.
fn report(model: &mut Model, ticket: Ticket, flips: Vec<Flip>, (decided, fresh): (u64, u64)) {
    let save = model.live.runs.map.get(&ticket).and_then(|run| run.save);
    let number = save.unwrap_or(0);
    let of_this = |report: &Report| match save {
        Some(number) => report.tells_of(number),
        None => report.number == 0 && report.running.contains(&ticket),
    };
    let known = model.saves.report.as_ref().is_some_and(of_this);
    if !known && save.is_none() && !flips.is_empty() {
        model.saves.selected = 0;
        model.saves.report = Some(Report {
            number,
            at: model.now,
            running: vec![ticket],
            ..Report::default()
        });
    }
    if let Some(report) = model.saves.report.as_mut().filter(|report| of_this(report)) {
        report.judged += decided;
        report.fresh += fresh;
        for flip in flips {
            report.flip(flip);
        }
    }
}

fn no_longer_running(model: &mut Model, ticket: Ticket) {
    if let Some(report) = &mut model.saves.report {
        report.running.retain(|one| *one != ticket);
    }
}

/// The runs behind the focused row: their traces may be on the screen.
fn looked_at(cells: &Cells) -> Vec<RunId> {
    let row = cells.selected().and_then(|row| cells.row(row));
    let slots = row.into_iter().flat_map(|row| &row.slots);
    slots
        .filter_map(|slot| cells.runs.get(slot.at?.0 as usize).cloned())
        .collect()
}

/// `run k3f9: ✓ 28 ✗ 11 ! 2, 41 cells, 4.1 s, $0.12`.
fn summary(run: &Run, glyphs: &Glyphs, blind: bool) -> String {
    let name = run.id.as_ref().map_or("?", RunId::letters);
    let Some(totals) = &run.state.totals else {
        return format!(
            "run {name} ended, {} of {} cells judged",
            run.done,
            run.planned()
        );
    };
    let count = |wanted: fn(Outcome) -> bool| -> u64 {
        let of = totals.outcomes.iter();
        of.filter(|(outcome, _)| wanted(**outcome))
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
    let mut said = vec![
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
        said.insert(2, format!("{} not judged", totals.pending));
    }
    let bill = totals.bill.unwrap_or(Cost {
        usd: totals.cost_usd.unwrap_or(0.0),
        unknown: 0,
    });
    said.extend(billed(bill));
    let how = if totals.cancelled { " cancelled" } else { "" };
    let mut text = format!("run {name}{how}: {}", said.join(", "));
    if let Some(stop) = run.state.budgets.iter().find(|stop| stop.hard) {
        text = format!("{text}; stopped by the budget ({stop}): dicta run --resume {name}");
    }
    text
}

fn notes(run: &Run) -> Vec<String> {
    let all = &run.state.notes;
    let mut told: Vec<String> = all
        .iter()
        .take(NOTES)
        .map(|(_, text)| text.clone())
        .collect();
    if all.len() > NOTES {
        told.push(format!(
            "{} more notes stand in the run's log",
            all.len() - NOTES
        ));
    }
    told
}

#[cfg(test)]
mod tests;

//! A recording that plays: opening it, its keys, its time.
//!
//! No network, no runs: a replay only tells its desk what was recorded, at its own pace or another. Flips inside it are
//! its own and are told nowhere else.

use std::path::PathBuf;
use std::sync::Arc;

use super::runs;
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, Millis, Outcome, RunId, make_visible};
use crate::record::{PlaybackSpeed, PlaybackStep};
use crate::tui::command::Command;
use crate::tui::effect::Effect;
use crate::tui::model::cells::{Entry, Flip};
use crate::tui::model::desk::Desk;
use crate::tui::model::notices::Level;
use crate::tui::model::overlay::Overlay;
use crate::tui::model::pane::Pane;
use crate::tui::model::replay::{Opening, Replay, StartAt};
use crate::tui::model::runs::{Stage, Ticket};
use crate::tui::model::{Model, Place, Ui};

use crate::tui::widget::input::Input;

/// So much is told at one wake: events, and cells they plan or settle. A few milliseconds' work.
const BITE: usize = 5_000;
const SLOWEST: f64 = 0.25;
const FASTEST: f64 = 64.0;

/// The way in, as live events take it; another one in tests.
type Feed = fn(&mut Desk, Ticket, &[RunEvent]) -> Vec<Flip>;

/// Asks for the run of the focused cell, to be replayed from where its judge began.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    if model.replay.is_some() {
        return told(model, "this is a replay already: q goes back");
    }
    let desk = &model.live;
    let Some(row) = desk.cells.selected() else {
        return told(model, "select a cell first: its run is what is replayed");
    };
    let slots = desk
        .cells
        .row(row)
        .map(|row| &row.slots[..])
        .unwrap_or_default();
    let chosen = slots.get(usize::from(desk.trace.slot)).or(slots.first());
    let run = chosen.and_then(|slot| {
        let own = slot
            .at
            .and_then(|(run, _)| desk.cells.runs.get(run as usize));
        slot.cached.clone().or_else(|| own.cloned())
    });
    let Some(run) = run else {
        return told(model, "this cell was never run: r runs it");
    };
    let from = desk
        .cells
        .name(row)
        .map_or(StartAt::Beginning, StartAt::Cell);
    let dir = desk.runs.of(&run).and_then(|held| held.dir.clone());
    model.opening = Opening {
        from,
        ..Opening::default()
    };
    vec![Effect::ReadReplay {
        run,
        workspace: model.workspace().cloned(),
        dir,
    }]
}

/// A recording is here.
pub(super) fn read(
    model: &mut Model,
    run: RunId,
    dir: PathBuf,
    log: Result<Arc<Vec<RunEvent>>, String>,
    warnings: Vec<String>,
) -> Vec<Effect> {
    let opening = std::mem::take(&mut model.opening);
    let log = match log {
        Ok(log) if log.is_empty() => Err("the recording holds no events".to_owned()),
        other => other,
    };
    let log = match log {
        Ok(log) => log,
        Err(why) => {
            let why = format!("{} cannot be replayed: {why}", run.letters());
            model.notices.tell(model.now, Level::Error, why);
            return Vec::new();
        }
    };
    for warning in warnings {
        model.notices.tell(model.now, Level::Warning, warning);
    }
    if let Some(label) = label(&log) {
        model.notices.tell(model.now, Level::Info, label);
    }
    if !log
        .iter()
        .any(|event| matches!(event.kind, EventKind::CellStarted { .. }))
    {
        let why = "no judge was asked in this run, so there is little to watch: v on a judged cell plays one";
        model.notices.tell(model.now, Level::Info, why);
    }
    let alone = matches!(model.place, Place::Recording);
    let ticket = model.ticket();
    let around = model.workspace().cloned().or(opening.around);
    let mut replay = Replay::new(run, dir, log, ticket, alone, around.as_deref());
    if opening.speed.factor().is_finite() {
        replay.speed = opening.speed;
    }
    let begin = match &opening.from {
        StartAt::Cell(name) => look_for(&mut replay, name),
        StartAt::Beginning | StartAt::End => 0,
    };
    if opening.from == StartAt::End || opening.speed == PlaybackSpeed::INSTANT {
        let _told_below = replay.player.seek(usize::MAX);
    } else {
        let _told_below = replay.player.seek(begin);
        replay.player.play(model.now, replay.speed);
        if begin == 0 {
            replay.desk.go_along();
        }
    }
    model.replay = Some(replay);
    new_focus(&mut model.ui);
    go_on(model, runs::feed);
    Vec::new()
}

/// A moment came: what is due is shown.
pub(super) fn time_passed(model: &mut Model) -> Vec<Effect> {
    go_on(model, runs::feed);
    Vec::new()
}

/// Leaves the replay: back to the board, or the end of the program where there is none.
pub(super) fn leave(model: &mut Model) -> Vec<Effect> {
    match model.replay.as_ref().map(|replay| replay.alone) {
        Some(true) => {
            model.quitting = Some(0);
            vec![Effect::Quit]
        }
        Some(false) => {
            model.replay = None;
            new_focus(&mut model.ui);
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The keys of a replay.
pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    obey(model, command, runs::feed)
}

fn obey(model: &mut Model, command: Command, feed: Feed) -> Vec<Effect> {
    let now = model.now;
    let Some(replay) = &mut model.replay else {
        return Vec::new();
    };
    let said = match command {
        Command::PlayPause => play_or_pause(replay, now),
        Command::StepEvent => step(replay, PlaybackStep::Event),
        Command::StepTurn => step(replay, PlaybackStep::Turn),
        Command::StepCell => step(replay, PlaybackStep::Cell),
        Command::StepBack => back(replay),
        Command::Slower => pace(replay, now, 0.5),
        Command::Faster => pace(replay, now, 2.0),
        Command::SeekBack => by_a_twentieth(replay, now, false),
        Command::SeekOn => by_a_twentieth(replay, now, true),
        Command::NextFailure => next_failure(replay),
        Command::SeekTo => {
            model.overlays.push(Overlay::SeekTo(Input::default()));
            None
        }
        _ => None,
    };
    if let Some(said) = said {
        model.notices.tell(now, Level::Info, said);
    }
    go_on(model, feed);
    Vec::new()
}

/// Goes to a part of the recording: a click on its bar, from 0 to 1.
pub(super) fn seek_fraction(model: &mut Model, part: f64) -> Vec<Effect> {
    let now = model.now;
    if let Some(replay) = &mut model.replay {
        seek_to(replay, now, part_of(replay.clock(now).1, part));
    }
    go_on(model, runs::feed);
    Vec::new()
}

/// Goes to a moment as it was typed: `1:05`, `12.5`, `40%`. The error is a sentence.
pub(super) fn seek_text(model: &mut Model, typed: &str) -> Result<Vec<Effect>, String> {
    let now = model.now;
    if let Some(replay) = &mut model.replay {
        let moment = moment_of(typed, replay.clock(now).1)?;
        seek_to(replay, now, moment);
    }
    go_on(model, runs::feed);
    Ok(Vec::new())
}

/// Tells the desk what the player handed out, as much as a wake has room for; says when the recording is over.
fn go_on(model: &mut Model, feed: Feed) {
    let now = model.now;
    let Some(replay) = &mut model.replay else {
        return;
    };
    let _handed_on_below = replay.player.take_due(now).len();
    let here = tell_the_desk(replay, now, feed);
    if !here || !replay.player.is_finished() {
        return;
    }
    let was_playing = replay.playing();
    replay.player.pause(now);
    let stage = if replay.whole {
        Stage::Ended(None)
    } else {
        Stage::Ended(Some(UNFINISHED.to_owned()))
    };
    if let Some(run) = replay.desk.runs.map.get_mut(&replay.ticket) {
        run.stage = stage;
    }
    if !replay.end_told && (was_playing || !replay.whole) {
        replay.end_told = true;
        let way_out = if replay.alone { "ends" } else { "goes back" };
        let (level, text) = if replay.whole {
            let text = format!("the recording ends here: space plays it again, q {way_out}");
            (Level::Info, text)
        } else {
            (Level::Warning, UNFINISHED.to_owned())
        };
        model.notices.tell(now, level, text);
    }
}

/// What is said at the end of a log that holds no end.
const UNFINISHED: &str =
    "the recording stops here without an end: the run was interrupted, or is still being recorded";

/// One bite. Whether the desk is now where the player is.
fn tell_the_desk(replay: &mut Replay, now: Millis, feed: Feed) -> bool {
    let goal = replay.player.position();
    if goal >= replay.told {
        // The shown desk is not beyond the goal: whatever was built behind it is not needed.
        replay.behind = None;
    } else if replay.behind.as_ref().is_none_or(|behind| behind.1 > goal) {
        replay.behind = Some(Box::new((replay.fresh(), 0)));
    }
    let events = Arc::clone(replay.player.events());
    let ticket = replay.ticket;
    if let Some(behind) = &mut replay.behind {
        let (desk, told) = &mut **behind;
        let bite = &events[*told..bite_end(&events, *told, goal)];
        // Flips of a recording are its own: none is told.
        let _flips = feed(desk, ticket, bite);
        desk.follow.note(ticket, bite);
        *told += bite.len();
        if *told < goal {
            return false;
        }
        if let Some(built) = replay.behind.take() {
            let (mut desk, told) = *built;
            desk.take_over(&mut replay.desk);
            desk.cells.settle();
            replay.desk = desk;
            replay.told = told;
        }
        return true;
    }
    let bite = &events[replay.told..bite_end(&events, replay.told, goal)];
    if !bite.is_empty() {
        let _flips = feed(&mut replay.desk, ticket, bite);
        replay.told += bite.len();
        replay.desk.cells.settle_at(now);
    }
    replay.desk.follow(now, ticket, bite);
    replay.told == goal
}

/// Where a bite ends: one event at least.
fn bite_end(events: &[RunEvent], from: usize, goal: usize) -> usize {
    let mut left = BITE;
    let rest = events.get(from..goal).unwrap_or_default();
    let takes = |event: &RunEvent| match &event.kind {
        EventKind::CellsSettled(all) => 1 + all.len(),
        EventKind::CellsPlanned { keys, .. } => 1 + keys.len(),
        _ => 1,
    };
    let fits = rest.iter().take_while(|event| {
        let fits = left > 0;
        left = left.saturating_sub(takes(event));
        fits
    });
    from + fits.count()
}

fn play_or_pause(replay: &mut Replay, now: Millis) -> Option<String> {
    if replay.playing() {
        replay.player.pause(now);
        return None;
    }
    if replay.player.is_finished() {
        let _told_later = replay.player.seek(0);
        replay.end_told = false;
        replay.failure = None;
    }
    replay.player.play(now, replay.speed);
    replay.desk.go_along();
    None
}

fn step(replay: &mut Replay, unit: PlaybackStep) -> Option<String> {
    if replay.player.is_finished() {
        return Some("the recording ends here: < goes back by one event".to_owned());
    }
    let _told_later = replay.player.step(unit);
    None
}

fn back(replay: &mut Replay) -> Option<String> {
    let Some(before) = replay.player.position().checked_sub(1) else {
        return Some("this is the beginning of the recording".to_owned());
    };
    let _told_later = replay.player.seek(before);
    None
}

fn pace(replay: &mut Replay, now: Millis, factor: f64) -> Option<String> {
    replay.speed = PlaybackSpeed::new((replay.speed.factor() * factor).clamp(SLOWEST, FASTEST));
    if replay.playing() {
        replay.player.play(now, replay.speed);
    }
    None
}

fn by_a_twentieth(replay: &mut Replay, now: Millis, on: bool) -> Option<String> {
    let (at, length) = replay.clock(now);
    let stretch = Millis((length.0 / 20).max(1));
    let to = if on { at + stretch } else { at.since(stretch) };
    seek_to(replay, now, to);
    None
}

/// Goes to a moment counted from the beginning; what played, plays on.
fn seek_to(replay: &mut Replay, now: Millis, moment: Millis) {
    let playing = replay.playing();
    let (first, _) = replay.player.span();
    let _told_later = replay.player.seek_to_time(first + moment);
    if playing && !replay.player.is_finished() {
        replay.player.play(now, replay.speed);
    }
}

/// Goes, without showing what lies between, to the next cell that failed or ended in an error, and selects it.
fn next_failure(replay: &mut Replay) -> Option<String> {
    let position = replay.player.position();
    // One event may settle many cells: the next failure may stand in the event that the last one was of.
    let (event, skip) = match replay.failure {
        Some((event, result)) if event + 1 == position => (event, result + 1),
        _ => (position, 0),
    };
    let found = failure_from(replay.player.events(), event, skip);
    let Some((event, result, cell)) = found else {
        return Some("no cell fails or ends in an error from here on".to_owned());
    };
    replay.failure = Some((event, result));
    let _told_later = replay.player.seek(event + 1);
    if let Some((row, slot)) = replay.places.get(cell.index()).copied().flatten() {
        replay.desk.look_at(Entry::Row(row), slot);
    }
    None
}

fn failure_from(events: &[RunEvent], from: usize, skip: usize) -> Option<(usize, usize, CellIx)> {
    let bad = |outcome: Outcome| outcome == Outcome::Fail || outcome.is_error();
    for (at, event) in events.iter().enumerate().skip(from) {
        let skip = if at == from { skip } else { 0 };
        match &event.kind {
            EventKind::CellFinished { cell, result } if skip == 0 && bad(result.outcome) => {
                return Some((at, 0, *cell));
            }
            EventKind::CellsSettled(all) => {
                let mut rest = all.iter().enumerate().skip(skip);
                if let Some((nth, settled)) = rest.find(|(_, settled)| bad(settled.1.outcome)) {
                    return Some((at, nth, settled.0));
                }
            }
            _ => {}
        }
    }
    None
}

/// Selects a decision, and says at which event its judge begins; 0 if none did.
fn look_for(replay: &mut Replay, name: &crate::model::CellName) -> usize {
    let Some(row) = replay.desk.cells.row_of(name) else {
        return 0;
    };
    replay.desk.look_at(Entry::Row(row), 0);
    let places = &replay.places;
    let begins = replay.player.events().iter().position(|event| {
        let EventKind::CellStarted { cell, .. } = &event.kind else {
            return false;
        };
        let place = places.get(cell.index()).copied().flatten();
        place.is_some_and(|(at, _)| at == row)
    });
    begins.unwrap_or(0)
}

/// What the run says of itself: `recorded against a scripted server`.
fn label(log: &[RunEvent]) -> Option<String> {
    match &log.first()?.kind {
        EventKind::RunStarted(header) if !header.label.is_empty() => {
            Some(make_visible(&header.label, false).into_owned())
        }
        _ => None,
    }
}

/// Another desk is looked at: a line being typed and a drag belonged to the one before.
fn new_focus(ui: &mut Ui) {
    ui.typing = None;
    ui.drag = None;
    // What the last save moved is no part of a recording.
    if ui.tab == Pane::Changes {
        ui.tab = Pane::Verdict;
    }
    if ui.focus == Pane::Changes {
        ui.focus = Pane::Cells;
    }
}

fn told(model: &mut Model, why: &str) -> Vec<Effect> {
    model.notices.tell(model.now, Level::Info, why);
    Vec::new()
}

fn part_of(length: Millis, part: f64) -> Millis {
    Millis::from_secs_f64(length.0 as f64 / 1000.0 * part.clamp(0.0, 1.0))
}

/// `1:05`, `1:02:03`, `12.5`, `40%` as a moment of a recording of this length.
fn moment_of(typed: &str, length: Millis) -> Result<Millis, String> {
    let typed = typed.trim();
    let no = || {
        let typed = make_visible(typed, false);
        format!("`{typed}` is no moment: write `1:05`, `12.5` (seconds) or `40%`")
    };
    let number = |text: &str| {
        let digits = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let number = text.parse::<f64>().ok();
        number.filter(|_| digits).ok_or_else(no)
    };
    if let Some(percent) = typed.strip_suffix('%') {
        let percent = number(percent.trim_end())?;
        if percent > 100.0 {
            return Err(no());
        }
        return Ok(part_of(length, percent / 100.0));
    }
    let mut seconds = 0.0;
    for part in typed.split(':') {
        seconds = seconds * 60.0 + number(part)?;
    }
    let moment = Millis::from_secs_f64(seconds);
    if moment > length {
        return Err(format!("the recording is {length} long"));
    }
    Ok(moment)
}

#[cfg(test)]
mod tests;

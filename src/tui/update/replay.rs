//! A replay: opening it, its keys, its timers.
//!
//! It uses no network and starts no runs. Flips of a recording appear only in its own session.

mod family;
mod feed;

use std::path::PathBuf;
use std::sync::Arc;

pub(super) use self::family::handle_family_read;
use self::feed::{FeedFn, feed_indexed, feed_session};
use super::runs;
use crate::event::EventKind;
use crate::model::{CellIx, Millis, Outcome, RunId, make_visible};
use crate::record::{LogIntegrity, LogOrigin, OutlineEvent, PlaybackSpeed, RecordedLog, StepUnit};
use crate::tui::command::UiCommand;
use crate::tui::effect::Effect;
use crate::tui::history_view::ReadState;
use crate::tui::state::cells::{CellsEntry, SlotId};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::pane::Pane;
use crate::tui::state::replay::{
    FailurePosition, PendingSession, ReplayPart, ReplayPosition, ReplayStart, ReplayState,
};
use crate::tui::state::runs::{RunStage, RunTicket};
use crate::tui::state::{App, OpenedItem, UiState};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::line_input::LineInput;

const MIN_SPEED: f64 = 0.25;
const MAX_SPEED: f64 = 64.0;

/// Opens the run of the focused cell and plays it from the start of the cell's judge.
pub(super) fn open_focused_run(app: &mut App) -> Vec<Effect> {
    if app.replay.is_some() {
        return push_info(app, "this is a replay already: q goes back");
    }
    let session = &app.live_session;
    let Some(row) = session.cells.selected_row() else {
        return push_info(app, "select a cell first: its run is what is replayed");
    };
    let shown = session.cells.row(row);
    // A second opinion has a run of its own, which has its trace.
    let chosen = shown.and_then(|row| row.slot(session.trace_panes.slot).or(row.slots.first()));
    let run = chosen.and_then(|slot| {
        let slot_run = slot
            .run_cell
            .and_then(|at| session.cells.runs.get(at.run as usize));
        // A cached result was judged in an earlier run, which has the trace.
        slot.cached_from.clone().or_else(|| slot_run.cloned())
    });
    let Some(run) = run else {
        return push_info(app, "this cell was never run: r runs it");
    };
    let from = session
        .cells
        .decision_name(row)
        .map_or(ReplayPosition::Beginning, ReplayPosition::Cell);
    // The folder of a run in memory is known, which saves a search.
    let dir = session.runs.find(&run).and_then(|held| held.dir.clone());
    app.replay_start = ReplayStart {
        position: from,
        ..ReplayStart::default()
    };
    vec![Effect::ReadReplay {
        run,
        workspace: app.workspace().cloned(),
        dir,
    }]
}

/// Opens a recording that was read.
pub(super) fn handle_replay_read(
    app: &mut App,
    run: RunId,
    dir: PathBuf,
    log: Result<RecordedLog, TaskFailure>,
    warnings: Vec<String>,
    integrity: LogIntegrity,
) -> Vec<Effect> {
    // The settings count for one replay only.
    let opening = std::mem::take(&mut app.replay_start);
    let log = match log {
        // A log without a header can't be shown.
        Ok(log) if log.is_empty() => Err("the recording holds no events".into()),
        other => other,
    };
    let log = match log {
        Ok(log) => log,
        Err(why) => {
            let why = format!("{} cannot be replayed: {why}", run.letters());
            app.notices.push(app.now, NoticeLevel::Error, why);
            return Vec::new();
        }
    };
    for warning in warnings {
        app.notices.push(app.now, NoticeLevel::Warning, warning);
    }
    if let Some(why) = integrity.explain() {
        let level = match integrity.origin {
            LogOrigin::EarlierVersion if integrity.altered + integrity.damaged == 0 => {
                NoticeLevel::Info
            }
            _ => NoticeLevel::Warning,
        };
        app.notices.push(app.now, level, why);
    }
    if let Some(label) = recording_label(&log) {
        app.notices.push(app.now, NoticeLevel::Info, label);
    }
    if !log
        .outline()
        .iter()
        .any(|event| matches!(event.kind, EventKind::CellStarted { .. }))
    {
        let why = "no judge was asked in this run, so there is little to watch: v on a judged cell plays one";
        app.notices.push(app.now, NoticeLevel::Info, why);
    }
    // Without a live session, leaving the replay ends the program.
    let quits_on_leave = matches!(app.opened, OpenedItem::Recording);
    let ticket = app.next_ticket();
    let workspace = app.workspace().cloned().or(opening.workspace);
    let mut replay = ReplayState::new(run, dir, log, ticket, quits_on_leave, workspace.as_deref());
    replay.mark = integrity.mark();
    replay.take_tags(&app.live_session.cells);
    // An instant replay keeps the default speed, with which the user can play it again.
    if opening.speed.factor().is_finite() {
        replay.speed = opening.speed;
    }
    let chosen = match &opening.position {
        ReplayPosition::Cell(name) => select_and_find_start(&mut replay, name),
        ReplayPosition::Beginning | ReplayPosition::End => None,
    };
    if opening.position == ReplayPosition::End || opening.speed == PlaybackSpeed::INSTANT {
        let _due_in_advance = replay.player.seek(usize::MAX);
    } else {
        let _due_in_advance = replay.player.seek(chosen.unwrap_or(0));
        replay.player.play(app.now, replay.speed);
        // The cell that the user chose stays selected. Without one, the selection follows the judges.
        if chosen.is_none() {
            replay.session.start_following();
        }
    }
    let family = family::request_family(app, &replay);
    app.replay = Some(replay);
    // An open input belongs to the live session.
    reset_input(&mut app.ui);
    let mut effects = advance(app, runs::feed_events);
    effects.push(family);
    effects
}

/// Shows the state of a revision: a replay at its end, without a time line.
pub(super) fn handle_state_read(
    app: &mut App,
    number: usize,
    read: Result<ReadState, TaskFailure>,
) -> Vec<Effect> {
    // The user left the progress screen, or opened something else.
    if !app.shows_progress() {
        return Vec::new();
    }
    let read = read.and_then(|read| match read.events.first() {
        Some(_) => Ok(read),
        None => Err("its runs hold no events".into()),
    });
    let read = match read {
        Ok(read) => read,
        Err(why) => {
            let why = format!("state {number} cannot be shown: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            return Vec::new();
        }
    };
    let run = match &read.events[0].kind {
        EventKind::RunStarted(header) => header.run.clone(),
        _ => RunId(String::new()),
    };
    let ticket = app.next_ticket();
    let workspace = app.workspace().cloned();
    let log = Arc::clone(&read.events.0);
    let mut replay = ReplayState::new(run, read.dir, log, ticket, false, workspace.as_deref());
    replay.state_number = Some(number);
    replay.take_tags(&app.live_session.cells);
    // The end of a run is not news here.
    replay.end_announced = true;
    replay.session.state_cells = Some(read.cells);
    replay.session.cells.later_names = read.later_names;
    let _due_in_advance = replay.player.seek(usize::MAX);
    if let Some(name) = &read.select {
        select_and_find_start(&mut replay, name);
    }
    let family = family::request_family(app, &replay);
    app.replay = Some(replay);
    reset_input(&mut app.ui);
    let mut effects = advance(app, runs::feed_events);
    effects.push(family);
    effects
}

/// Shows the events that are due.
pub(super) fn handle_time_passed(app: &mut App) -> Vec<Effect> {
    advance(app, runs::feed_events)
}

/// Leaves the replay: returns to the live session, or ends the program if there is none.
pub(super) fn leave_replay(app: &mut App) -> Vec<Effect> {
    match app.replay.as_ref().map(|replay| replay.quits_on_leave) {
        Some(true) => {
            app.exit_code = Some(0);
            vec![Effect::Quit]
        }
        Some(false) => {
            app.replay = None;
            reset_input(&mut app.ui);
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// Runs a command of the replay.
pub(super) fn run_replay_command(app: &mut App, command: UiCommand) -> Vec<Effect> {
    dispatch_command(app, command, runs::feed_events)
}

fn dispatch_command(app: &mut App, command: UiCommand, feed: FeedFn) -> Vec<Effect> {
    let now = app.now;
    let Some(replay) = &mut app.replay else {
        return Vec::new();
    };
    let notice = match command {
        UiCommand::PlayPause => play_or_pause(replay, now),
        UiCommand::StepEvent => step_by_unit(replay, StepUnit::Event),
        UiCommand::StepTurn => step_by_unit(replay, StepUnit::Turn),
        UiCommand::StepCell => step_to_cell_end(replay),
        UiCommand::StepBack => step_back(replay),
        UiCommand::Slower => change_speed(replay, now, 0.5),
        UiCommand::Faster => change_speed(replay, now, 2.0),
        UiCommand::SeekBack => skip_twentieth(replay, now, false),
        UiCommand::SeekOn => skip_twentieth(replay, now, true),
        UiCommand::NextFailure => go_to_next_failure(replay),
        UiCommand::SeekTo => {
            app.overlays.push(Overlay::SeekTo(LineInput::default()));
            None
        }
        _ => None,
    };
    if let Some(notice) = notice {
        app.notices.push(now, NoticeLevel::Info, notice);
    }
    advance(app, feed)
}

/// Jumps to a part of the recording, from 0 to 1. A click on the bar selects it.
pub(super) fn seek_fraction(app: &mut App, part: f64) -> Vec<Effect> {
    let now = app.now;
    if let Some(replay) = &mut app.replay {
        seek_to(
            replay,
            now,
            scale_length(replay.position_and_length(now).1, part),
        );
    }
    advance(app, runs::feed_events)
}

/// Jumps to a typed position: `1:05`, `12.5`, `40%`. The error is a sentence.
pub(super) fn seek_to_typed(app: &mut App, typed: &str) -> Result<Vec<Effect>, String> {
    let now = app.now;
    if let Some(replay) = &mut app.replay {
        let moment = parse_moment(typed, replay.position_and_length(now).1)?;
        seek_to(replay, now, moment);
    }
    Ok(advance(app, runs::feed_events))
}

/// Takes over a part of an indexed log.
pub(super) fn handle_part_read(
    app: &mut App,
    ticket: RunTicket,
    part: Result<ReplayPart, TaskFailure>,
) -> Vec<Effect> {
    // The user may have left the replay since.
    let Some(replay) = app.replay.as_mut().filter(|replay| replay.ticket == ticket) else {
        return Vec::new();
    };
    replay.is_reading = false;
    match part {
        Ok(ReplayPart::Events(window)) => replay.window = Some(window),
        Ok(ReplayPart::State(target)) => {
            replay.pending_session = Some(Box::new(PendingSession {
                session: replay.new_session(),
                fed_events: 0,
                target: Some(target),
            }));
        }
        Err(why) => {
            // The replay stays where it is, because it would fail again at once.
            let _unreachable = replay.player.seek(replay.shown_events);
            let why = format!("this part of the recording cannot be read: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            return Vec::new();
        }
    }
    advance(app, runs::feed_events)
}

/// Feeds the due events, up to the limit of a wake, and announces the end of the recording.
fn advance(app: &mut App, feed: FeedFn) -> Vec<Effect> {
    let now = app.now;
    let Some(replay) = &mut app.replay else {
        return Vec::new();
    };
    let _handed_on_below = replay.player.take_due(now).len();
    let effects = match replay.player.log().clone() {
        RecordedLog::Events(events) => {
            feed_session(replay, now, feed, &events);
            Vec::new()
        }
        RecordedLog::Indexed(index) => feed_indexed(replay, now, feed, index),
    };
    announce_end(app);
    effects
}

/// Announces the end of the recording, once the session has reached it.
fn announce_end(app: &mut App) {
    let now = app.now;
    let Some(replay) = &mut app.replay else {
        return;
    };
    // The session may still be behind the player.
    if replay.is_seeking() || !replay.player.is_finished() {
        return;
    }
    let was_playing = replay.is_playing();
    replay.player.pause(now);
    let stage = if replay.has_end {
        RunStage::Ended(None)
    } else {
        RunStage::Ended(Some(UNFINISHED.to_owned()))
    };
    if let Some(run) = replay.session.runs.by_ticket.get_mut(&replay.ticket) {
        run.stage = stage;
    }
    // A user who jumps to a complete end needs no notice.
    if !replay.end_announced && (was_playing || !replay.has_end) {
        replay.end_announced = true;
        let way_out = if replay.quits_on_leave {
            "ends"
        } else {
            "goes back"
        };
        let (level, text) = if replay.has_end {
            let text = format!("the recording ends here: space plays it again, q {way_out}");
            (NoticeLevel::Info, text)
        } else {
            (NoticeLevel::Warning, UNFINISHED.to_owned())
        };
        app.notices.push(now, level, text);
    }
}

/// The notice at the end of a log without an end.
const UNFINISHED: &str =
    "the recording stops here without an end: the run was interrupted, or is still being recorded";

fn play_or_pause(replay: &mut ReplayState, now: Millis) -> Option<String> {
    if replay.is_playing() {
        replay.player.pause(now);
        return None;
    }
    // At the end, the key plays the recording again.
    if replay.player.is_finished() {
        let _due_in_advance = replay.player.seek(0);
        replay.end_announced = false;
        replay.last_failure = None;
    }
    replay.player.play(now, replay.speed);
    // The user wants to watch again, so the selection follows the judges.
    replay.session.start_following();
    None
}

fn step_by_unit(replay: &mut ReplayState, unit: StepUnit) -> Option<String> {
    if replay.player.is_finished() {
        return Some("the recording ends here: < goes back by one event".to_owned());
    }
    let _due_in_advance = replay.player.step(unit);
    None
}

/// `C`: goes to the end of the next cell and shows that cell.
fn step_to_cell_end(replay: &mut ReplayState) -> Option<String> {
    let notice = step_by_unit(replay, StepUnit::Cell);
    let last = replay.player.position().checked_sub(1)?;
    let ended = replay.player.log().outline_from(last).next();
    let ended = ended.filter(|ended| ended.position == last)?;
    let cell = match &ended.event.kind {
        EventKind::CellFinished { cell, .. } => Some(*cell),
        // One event settles all checks of a transcript; the first one is shown.
        EventKind::CellsSettled(all) => all.first().map(|settled| settled.cell),
        _ => None,
    };
    let slot = cell.and_then(|cell| replay.cell_slots.get(cell.index()).copied().flatten());
    if let Some(SlotId { row, slot }) = slot.filter(|_| notice.is_none()) {
        replay.session.focus_decision(CellsEntry::Row(row), slot);
    }
    notice
}

fn step_back(replay: &mut ReplayState) -> Option<String> {
    let Some(before) = replay.player.position().checked_sub(1) else {
        return Some("this is the beginning of the recording".to_owned());
    };
    let _due_in_advance = replay.player.seek(before);
    None
}

fn change_speed(replay: &mut ReplayState, now: Millis, factor: f64) -> Option<String> {
    // Halving and doubling stay within the range of the keys' help.
    replay.speed = PlaybackSpeed::new((replay.speed.factor() * factor).clamp(MIN_SPEED, MAX_SPEED));
    if replay.is_playing() {
        replay.player.play(now, replay.speed);
    }
    None
}

fn skip_twentieth(replay: &mut ReplayState, now: Millis, on: bool) -> Option<String> {
    let (at, length) = replay.position_and_length(now);
    // A very short recording still moves by 1 ms.
    let stretch = Millis((length.0 / 20).max(1));
    let to = if on { at + stretch } else { at.since(stretch) };
    seek_to(replay, now, to);
    None
}

/// Jumps to a time from the beginning. Keeps playing if it was.
fn seek_to(replay: &mut ReplayState, now: Millis, moment: Millis) {
    let playing = replay.is_playing();
    // A position counts from the first event, whose time may not be 0.
    let (first, _) = replay.player.span();
    let _due_in_advance = replay.player.seek_to_time(first + moment);
    if playing && !replay.player.is_finished() {
        replay.player.play(now, replay.speed);
    }
}

/// Jumps to the next cell that failed or ended in an error, and selects it.
fn go_to_next_failure(replay: &mut ReplayState) -> Option<String> {
    let position = replay.player.position();
    // One event may complete many cells, so the next failure may be in the same event as the last one.
    let (event, skip) = match replay.last_failure {
        // After any other move, the search starts at the current position.
        Some(last) if last.event + 1 == position => (last.event, last.result + 1),
        _ => (position, 0),
    };
    let found = find_failure(replay.player.log(), event, skip);
    let Some((failure, cell)) = found else {
        return Some("no cell fails or ends in an error from here on".to_owned());
    };
    replay.last_failure = Some(failure);
    // The event is included, so that the failure is visible.
    let _due_in_advance = replay.player.seek(failure.event + 1);
    if let Some(SlotId { row, slot }) = replay.cell_slots.get(cell.index()).copied().flatten() {
        replay.session.focus_decision(CellsEntry::Row(row), slot);
    }
    None
}

fn find_failure(log: &RecordedLog, from: usize, skip: usize) -> Option<(FailurePosition, CellIx)> {
    let bad = |outcome: Outcome| outcome == Outcome::Fail || outcome.is_error();
    for OutlineEvent { position, event } in log.outline_from(from) {
        // Only the event of the last failure has results to skip.
        let skip = if position == from { skip } else { 0 };
        let at = |result| FailurePosition {
            event: position,
            result,
        };
        match &event.kind {
            EventKind::CellFinished { cell, result } if skip == 0 && bad(result.outcome) => {
                return Some((at(0), *cell));
            }
            EventKind::CellsSettled(all) => {
                let mut rest = all.iter().enumerate().skip(skip);
                if let Some((nth, settled)) = rest.find(|(_, settled)| bad(settled.result.outcome))
                {
                    return Some((at(nth), settled.cell));
                }
            }
            _ => {}
        }
    }
    None
}

/// Selects a decision and returns the index of the event that starts its judge, 0 without a judge; `None` if the
/// recording has no such decision.
fn select_and_find_start(replay: &mut ReplayState, name: &crate::model::CellName) -> Option<usize> {
    let row = replay.session.cells.find_row(name)?;
    replay.session.focus_decision(CellsEntry::Row(row), 0);
    let places = &replay.cell_slots;
    let mut events = replay.player.log().outline_from(0);
    let begins = events.find(|OutlineEvent { event, .. }| {
        let EventKind::CellStarted { cell, .. } = &event.kind else {
            return false;
        };
        let place = places.get(cell.index()).copied().flatten();
        // Any judge of the decision counts, so the first one to start is the beginning.
        place.is_some_and(|place| place.row == row)
    });
    // No judge starts for a code check.
    Some(begins.map_or(0, |begins| begins.position))
}

/// Returns the label of the recording, such as `recorded against a scripted server`.
fn recording_label(log: &RecordedLog) -> Option<String> {
    let label = &log.header()?.label;
    (!label.is_empty()).then(|| make_visible(label, false).into_owned())
}

/// Resets the open line and a drag, because they belong to the session before.
fn reset_input(ui: &mut UiState) {
    ui.footer_input = None;
    ui.drag = None;
    // The changes of the last save are not part of a recording.
    if ui.tab_pane == Pane::Changes {
        ui.tab_pane = Pane::Verdict;
    }
    if ui.focus == Pane::Changes {
        ui.focus = Pane::Cells;
    }
}

fn push_info(app: &mut App, why: &str) -> Vec<Effect> {
    app.notices.push(app.now, NoticeLevel::Info, why);
    Vec::new()
}

fn scale_length(length: Millis, part: f64) -> Millis {
    Millis::from_secs_f64(length.0 as f64 / 1000.0 * part.clamp(0.0, 1.0))
}

/// Parses a position such as `1:05`, `1:02:03`, `12.5` or `40%` in a recording of this length.
fn parse_moment(typed: &str, length: Millis) -> Result<Millis, String> {
    let typed = typed.trim();
    let reject = || {
        let typed = make_visible(typed, false);
        format!("`{typed}` isn't a position: write `1:05`, `12.5` (seconds) or `40%`")
    };
    let number = |text: &str| {
        // `parse` also accepts `inf`, `NaN` and signs, which are not positions.
        let digits = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let number = text.parse::<f64>().ok();
        number.filter(|_| digits).ok_or_else(reject)
    };
    if let Some(percent) = typed.strip_suffix('%') {
        let percent = number(percent.trim_end())?;
        if percent > 100.0 {
            return Err(reject());
        }
        return Ok(scale_length(length, percent / 100.0));
    }
    let mut seconds = 0.0;
    for part in typed.split(':') {
        // Hours, minutes and seconds: each colon multiplies by 60.
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

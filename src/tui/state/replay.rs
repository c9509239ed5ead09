//! A replay: a session that a player feeds from a recording.
//!
//! The player has the position, and the session has the events shown so far. A long jump is fed in batches, one per
//! wake, so that it never blocks the screen. To go back, a second session is built in the background. It replaces the
//! visible one when it reaches the player's position.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::cells::{CellsState, RecordedFamily, RowId, SlotId};
use super::replay_marks::ReplayMarks;
use super::runs::{RunStage, RunTicket, TrackedRun};
use super::session_view::SessionView;
use crate::event::{CellKey, EventKind, RunEvent, RunHeader};
use crate::model::{CellIx, CellName, Labels, Millis, RunId, make_visible};
use crate::record::{Playback, PlaybackSpeed, Player, RecordedLog, StateAt};
use crate::tui::history_view::Shared;
use crate::workspace::Workspace;

/// A replay.
#[derive(Debug)]
pub(crate) struct ReplayState {
    pub(crate) run: RunId,
    pub(crate) dir: PathBuf,
    pub(crate) player: Player,
    pub(crate) speed: PlaybackSpeed,
    /// The visible session.
    pub(crate) session: SessionView,
    /// True if leaving the replay ends the program (`dicta replay`). Otherwise the live session returns.
    pub(crate) quits_on_leave: bool,
    /// Identifies the run in the session.
    pub(crate) ticket: RunTicket,
    /// The time of the recording, such as `2026-11-20 17:02`.
    pub(crate) recorded_at: String,
    /// The number of the entry whose state is shown; `None` for the replay of a run.
    pub(crate) state_number: Option<usize>,
    /// The mark of a log that is damaged, or that this installation did not record.
    pub(crate) mark: Option<&'static str>,
    /// The marks on the bar.
    pub(crate) marks: ReplayMarks,
    /// True if the log contains the end of the run. Otherwise the run was interrupted or is still recording.
    pub(crate) has_end: bool,
    /// The number of events in the visible session.
    pub(crate) shown_events: usize,
    /// The part of an indexed log that was read last.
    pub(crate) window: Option<EventWindow>,
    /// True while a part of an indexed log is being read.
    pub(crate) is_reading: bool,
    /// The session that will replace the visible one.
    pub(crate) pending_session: Option<Box<PendingSession>>,
    /// The cells before the first event: all planned cells, pending.
    initial_cells: CellsState,
    /// The slot of each cell, by number.
    pub(crate) cell_slots: Vec<Option<SlotId>>,
    /// The failure that was selected last.
    pub(crate) last_failure: Option<FailurePosition>,
    /// True if the end was announced.
    pub(crate) end_announced: bool,
}

/// A session that is built in the background, because its position is before that of the visible one.
#[derive(Debug)]
pub(crate) struct PendingSession {
    pub(crate) session: SessionView,
    /// The number of events fed so far.
    pub(crate) fed_events: usize,
    /// The state to build, if the log has an index.
    pub(crate) target: Option<Shared<StateAt>>,
}

/// Events of an indexed log that were read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EventWindow {
    /// The position of the first event.
    pub(crate) first: usize,
    pub(crate) events: Shared<Vec<RunEvent>>,
}

impl EventWindow {
    /// Returns true if it contains the event at a position.
    pub(crate) fn contains(&self, position: usize) -> bool {
        (self.first..self.first + self.events.len()).contains(&position)
    }
}

/// A part of an indexed log that a replay asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplayRequest {
    /// The events at these positions.
    Events(std::ops::Range<usize>),
    /// The state after this number of events.
    State(usize),
}

/// A part of an indexed log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReplayPart {
    /// Some events.
    Events(EventWindow),
    /// A state.
    State(Shared<StateAt>),
}

/// The position of a failed cell in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailurePosition {
    /// The index of the event.
    pub(crate) event: usize,
    /// The index of the cell's result in the event.
    pub(crate) result: usize,
}

/// The start settings of a replay.
#[derive(Debug, Clone)]
pub(crate) struct ReplayStart {
    /// The speed. 0 ([`PlaybackSpeed::INSTANT`]) shows the end.
    pub(crate) speed: PlaybackSpeed,
    pub(crate) position: ReplayPosition,
    /// The workspace that the program opens with, if any.
    pub(crate) workspace: Option<Arc<Workspace>>,
}

impl ReplayStart {
    /// Converts the command line: `dicta replay` sets a speed and plays; `dicta open RUN` sets none and shows the
    /// end.
    pub(crate) fn from_speed(speed: Option<f64>) -> Self {
        let (speed, position) = match speed {
            // A speed on the command line means that the user wants to watch.
            Some(speed) => (PlaybackSpeed::new(speed), ReplayPosition::Beginning),
            None => (PlaybackSpeed::RECORDED, ReplayPosition::End),
        };
        Self {
            speed,
            position,
            ..Self::default()
        }
    }
}

/// The start position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplayPosition {
    /// The beginning, playing.
    Beginning,
    /// The end, paused.
    End,
    /// The start of this cell's judge, playing. The beginning if no judge started it.
    Cell(CellName),
}

impl Default for ReplayStart {
    fn default() -> Self {
        Self {
            speed: PlaybackSpeed::RECORDED,
            position: ReplayPosition::Beginning,
            workspace: None,
        }
    }
}

/// The maximum time between two wakes while playing, so that the clock in the bar advances.
const WAKE_INTERVAL: Millis = Millis(100);
/// The minimum time between two wakes: events within one frame appear together.
const MIN_WAKE_INTERVAL: Millis = Millis(16);

impl ReplayState {
    /// Creates a replay at the beginning, paused, with all planned cells pending.
    pub(crate) fn new(
        run: RunId,
        dir: PathBuf,
        log: impl Into<RecordedLog>,
        ticket: RunTicket,
        quits_on_leave: bool,
        workspace: Option<&Workspace>,
    ) -> Self {
        let log = log.into();
        let mut initial_cells = CellsState::default();
        initial_cells.replace_labels(find_labels(log.header(), workspace));
        let places = add_planned_cells(&mut initial_cells, log.outline());
        // The header is the first event of each log.
        let recorded_at = log.header().map_or(String::new(), |header| {
            format_recorded_at(&header.started.0)
        });
        let has_end = log.has_end();
        let marks = ReplayMarks::from_log(&log);
        let mut replay = Self {
            run,
            dir,
            marks,
            player: Player::new(log),
            speed: PlaybackSpeed::RECORDED,
            session: SessionView::default(),
            mark: None,
            state_number: None,
            quits_on_leave,
            ticket,
            recorded_at,
            has_end,
            shown_events: 0,
            window: None,
            is_reading: false,
            pending_session: None,
            initial_cells,
            cell_slots: places,
            last_failure: None,
            end_announced: false,
        };
        replay.session = replay.new_session();
        replay
    }

    /// Takes the tags of the open workspace's transcripts, because a recording has none.
    pub(crate) fn take_tags(&mut self, live: &CellsState) {
        self.initial_cells.tags.clone_from(&live.tags);
        self.session.cells.tags.clone_from(&live.tags);
    }

    /// Adds the other traces of the recording's family, also to the session that is built in the background.
    pub(crate) fn add_family(&mut self, family: &RecordedFamily) {
        self.initial_cells.add_family(family);
        self.session.cells.add_family(family);
        if let Some(pending) = &mut self.pending_session {
            pending.session.cells.add_family(family);
        }
    }

    /// Creates a session without events.
    pub(crate) fn new_session(&self) -> SessionView {
        let mut session = SessionView {
            cells: self.initial_cells.clone(),
            ..SessionView::default()
        };
        let run = TrackedRun {
            id: Some(self.run.clone()),
            dir: Some(self.dir.clone()),
            stage: RunStage::Running,
            traces_on_disk: matches!(self.player.log(), RecordedLog::Indexed(_)),
            ..TrackedRun::default()
        };
        session.runs.by_ticket.insert(self.ticket, run);
        session
    }

    /// Returns true if the session is not at the player's position yet.
    pub(crate) fn is_seeking(&self) -> bool {
        self.pending_session.is_some() || self.shown_events != self.player.position()
    }

    /// Returns true if the replay is playing.
    pub(crate) fn is_playing(&self) -> bool {
        matches!(self.player.playback(), Playback::Playing { .. })
    }

    /// Returns the time at which it continues by itself; `None` until the next key.
    pub(crate) fn next_wake(&self, now: Millis) -> Option<Millis> {
        if self.is_seeking() {
            // The answer of the read wakes it.
            return (!self.is_reading).then_some(now);
        }
        if !self.is_playing() {
            return None;
        }
        // Without a next event, only the clock of the bar advances.
        let due = self.player.time_to_next(now).unwrap_or(Millis(0));
        Some(now + due.clamp(MIN_WAKE_INTERVAL, WAKE_INTERVAL))
    }

    /// Returns the position and the length, both from the beginning.
    pub(crate) fn position_and_length(&self, now: Millis) -> (Millis, Millis) {
        let (first, last) = self.player.span();
        // While playing, the clock runs on after the last event.
        let at = self.player.recording_time(now).min(last);
        (at.since(first), last.since(first))
    }
}

/// Returns the labels if the recording belongs to the workspace.
fn find_labels(header: Option<&RunHeader>, workspace: Option<&Workspace>) -> Labels {
    match (header, workspace) {
        // Labels of another workspace could belong to other evals with the same names.
        (Some(header), Some(workspace)) if header.workspace == workspace.root => {
            workspace.index_labels()
        }
        _ => Labels::default(),
    }
}

/// Adds all planned cells of a recording, and returns their slots.
fn add_planned_cells(cells: &mut CellsState, log: &[RunEvent]) -> Vec<Option<SlotId>> {
    let mut names = None;
    let mut places: Vec<Option<SlotId>> = Vec::new();
    let mut rows: HashMap<(&str, u32, Option<u32>), RowId> = HashMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for event in log {
        match &event.kind {
            EventKind::RunStarted(header) => names = Some(cells.register_header(header, true)),
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => {
                // A broken log may plan cells before its header.
                let Some(names) = &names else { continue };
                let decision_key = |key: &CellKey| (transcript.id.as_str(), key.eval, key.message);
                if seen.insert(&transcript.id) {
                    let slots = cells.add_outlined_cells(names, transcript, keys);
                    for (key, slot) in keys.iter().zip(&slots) {
                        // Rows with repeats are remembered for repeats that the run adds later.
                        if let (Some(_), Some(SlotId { row, .. })) = (key.repeat, slot) {
                            rows.insert(decision_key(key), *row);
                        }
                    }
                    store_slots(&mut places, *first, slots);
                } else {
                    // A repeat that was planned during the run is not pending from the start.
                    let slot = |key: &CellKey| {
                        // Repeats count from 1, slots from 0.
                        let nth = u16::try_from(key.repeat?.checked_sub(1)?).ok()?;
                        Some(SlotId {
                            row: *rows.get(&decision_key(key))?,
                            slot: nth,
                        })
                    };
                    store_slots(&mut places, *first, keys.iter().map(slot).collect());
                }
            }
            _ => {}
        }
    }
    cells.outline_complete = true;
    cells.update_shown();
    places
}

/// The maximum gap in the cell numbers. A log with a larger one is broken, and no memory is reserved for it.
const MAX_CELL_GAP: usize = 1 << 20;

fn store_slots(places: &mut Vec<Option<SlotId>>, first: CellIx, slots: Vec<Option<SlotId>>) {
    let at = first.index();
    // Numbers that were already planned, or that leave a huge gap, come from a broken log.
    if at < places.len() || at - places.len() > MAX_CELL_GAP {
        return;
    }
    places.resize(at, None);
    places.extend(slots);
}

/// Formats an RFC 3339 time as `2026-11-20 17:02`.
pub(crate) fn format_recorded_at(written: &str) -> String {
    // 16 characters are the date and the time up to the minute.
    let short: String = written.chars().take(16).collect();
    make_visible(&short.replacen('T', " ", 1), false).into_owned()
}

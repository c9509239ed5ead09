//! A recording that plays: the same desk, fed by a player.
//!
//! The player knows where the recording is, the desk how far it has been told: a long jump is told in bites, one a wake,
//! so that it never holds up the screen. Going back builds a second desk behind the shown one, which takes its place
//! when it is as far as the player.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::cells::{CellsState, RowId, SlotId};
use super::runs::{RunStage, RunTicket, TrackedRun};
use super::session_view::SessionView;
use crate::event::{CellKey, EventKind, RunEvent};
use crate::model::{CellIx, CellName, Label, Millis, RunId, make_visible};
use crate::record::{Playback, PlaybackSpeed, Player};
use crate::workspace::Workspace;

/// A replay.
#[derive(Debug)]
pub(crate) struct ReplayState {
    pub(crate) run: RunId,
    pub(crate) dir: PathBuf,
    pub(crate) player: Player,
    pub(crate) speed: PlaybackSpeed,
    /// What it shows.
    pub(crate) session: SessionView,
    /// Whether leaving it ends the program (`dicta replay`), or goes back to the board.
    pub(crate) quits_on_leave: bool,
    /// Names the run on its desk.
    pub(crate) ticket: RunTicket,
    /// When it was recorded: `2026-11-20 17:02`.
    pub(crate) recorded_at: String,
    /// Whether the log holds its end: else it was interrupted, or is still being recorded.
    pub(crate) has_end: bool,
    /// How many events the shown desk was told.
    pub(crate) shown_events: usize,
    /// The desk that takes the shown one's place, and how many events it was told.
    pub(crate) pending_session: Option<Box<(SessionView, usize)>>,
    /// The desk's cells before anything happened: everything the recording plans, pending.
    initial_cells: CellsState,
    /// By cell number: where it stands.
    pub(crate) cell_slots: Vec<Option<SlotId>>,
    /// The failure gone to last: of which event, which of its results.
    pub(crate) last_failure: Option<(usize, usize)>,
    /// Whether the end was told.
    pub(crate) end_announced: bool,
}

/// How a recording is opened.
#[derive(Debug, Clone)]
pub(crate) struct ReplayStart {
    /// Which, where the program opens with it.
    pub(crate) recording: Option<(RunId, Option<PathBuf>)>,
    /// 0 ([`Speed::AT_ONCE`]): it stands at its end.
    pub(crate) speed: PlaybackSpeed,
    pub(crate) position: ReplayPosition,
    /// The workspace around it, where the program opens with it.
    pub(crate) workspace: Option<Arc<Workspace>>,
}

impl ReplayStart {
    /// As the command line asks: `dicta replay` gives a speed and plays, `dicta open RUN` gives none and shows the end.
    pub(crate) fn from_speed(speed: Option<f64>) -> Self {
        let (speed, position) = match speed {
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

/// Where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplayPosition {
    /// At the beginning, playing.
    Beginning,
    /// At its end, standing still.
    End,
    /// Where the judge begins with this cell, playing; the beginning for a cell no judge began.
    Cell(CellName),
}

impl Default for ReplayStart {
    fn default() -> Self {
        Self {
            recording: None,
            speed: PlaybackSpeed::RECORDED,
            position: ReplayPosition::Beginning,
            workspace: None,
        }
    }
}

/// While it plays the screen is woken at least so often: the clock in the bar goes on.
const WAKE_INTERVAL: Millis = Millis(100);
/// And not more often: what is due within a frame is shown in that frame.
const MIN_WAKE_INTERVAL: Millis = Millis(16);

impl ReplayState {
    /// A recording at its beginning, paused, with everything it plans as pending.
    pub(crate) fn new(
        run: RunId,
        dir: PathBuf,
        log: Arc<Vec<RunEvent>>,
        ticket: RunTicket,
        alone: bool,
        around: Option<&Workspace>,
    ) -> Self {
        let mut blank = CellsState::default();
        blank.replace_labels(find_labels(&log, around));
        let places = add_planned_cells(&mut blank, &log);
        let recorded = log
            .first()
            .map_or(String::new(), |event| match &event.kind {
                EventKind::RunStarted(header) => format_recorded_at(&header.started.0),
                _ => String::new(),
            });
        let whole = log
            .last()
            .is_some_and(|event| matches!(event.kind, EventKind::RunFinished(_)));
        let mut replay = Self {
            run,
            dir,
            player: Player::new(log),
            speed: PlaybackSpeed::RECORDED,
            session: SessionView::default(),
            quits_on_leave: alone,
            ticket,
            recorded_at: recorded,
            has_end: whole,
            shown_events: 0,
            pending_session: None,
            initial_cells: blank,
            cell_slots: places,
            last_failure: None,
            end_announced: false,
        };
        replay.session = replay.new_session();
        replay
    }

    /// A desk to which nothing was told yet.
    pub(crate) fn new_session(&self) -> SessionView {
        let mut session = SessionView {
            cells: self.initial_cells.clone(),
            ..SessionView::default()
        };
        let run = TrackedRun {
            id: Some(self.run.clone()),
            dir: Some(self.dir.clone()),
            stage: RunStage::Running,
            ..TrackedRun::default()
        };
        session.runs.by_ticket.insert(self.ticket, run);
        session
    }

    /// Whether the desk is not yet where the player is.
    pub(crate) fn is_seeking(&self) -> bool {
        self.pending_session.is_some() || self.shown_events != self.player.position()
    }

    /// Whether time passes.
    pub(crate) fn is_playing(&self) -> bool {
        matches!(self.player.playback(), Playback::Playing { .. })
    }

    /// When it goes on by itself; `None`: not before a key.
    pub(crate) fn next_wake(&self, now: Millis) -> Option<Millis> {
        if self.is_seeking() {
            return Some(now);
        }
        if !self.is_playing() {
            return None;
        }
        let due = self.player.time_to_next(now).unwrap_or(Millis(0));
        Some(now + due.clamp(MIN_WAKE_INTERVAL, WAKE_INTERVAL))
    }

    /// The moment it is, and how long it is, both from its beginning.
    pub(crate) fn position_and_length(&self, now: Millis) -> (Millis, Millis) {
        let (first, last) = self.player.span();
        let at = self.player.recording_time(now).min(last);
        (at.since(first), last.since(first))
    }
}

/// What people said, where the recording is of that workspace.
fn find_labels<'w>(log: &[RunEvent], around: Option<&'w Workspace>) -> &'w [Label] {
    match (log.first().map(|event| &event.kind), around) {
        (Some(EventKind::RunStarted(header)), Some(around)) if header.workspace == around.root => {
            &around.labels
        }
        _ => &[],
    }
}

/// Learns everything a recording plans; where each cell stands.
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
                let Some(names) = &names else { continue };
                let of = |key: &CellKey| (transcript.id.as_str(), key.eval, key.message);
                if seen.insert(&transcript.id) {
                    let slots = cells.add_outlined_cells(names, transcript, keys);
                    for (key, slot) in keys.iter().zip(&slots) {
                        if let (Some(_), Some((row, _))) = (key.repeat, slot) {
                            rows.insert(of(key), *row);
                        }
                    }
                    store_slots(&mut places, *first, slots);
                } else {
                    // A repeat that became necessary: known only then, so not pending from the start.
                    let slot = |key: &CellKey| {
                        let nth = u16::try_from(key.repeat?.checked_sub(1)?).ok()?;
                        Some((*rows.get(&of(key))?, nth))
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

/// A log that skips over so many cells is broken; nothing is kept for it.
const MAX_CELL_GAP: usize = 1 << 20;

fn store_slots(places: &mut Vec<Option<SlotId>>, first: CellIx, slots: Vec<Option<SlotId>>) {
    let at = first.index();
    if at < places.len() || at - places.len() > MAX_CELL_GAP {
        return;
    }
    places.resize(at, None);
    places.extend(slots);
}

/// `2026-11-20 17:02` of an RFC 3339 moment.
pub(crate) fn format_recorded_at(written: &str) -> String {
    let short: String = written.chars().take(16).collect();
    make_visible(&short.replacen('T', " ", 1), false).into_owned()
}

//! A recording that plays: the same desk, fed by a player.
//!
//! The player knows where the recording is, the desk how far it has been told: a long jump is told in bites, one a wake,
//! so that it never holds up the screen. Going back builds a second desk behind the shown one, which takes its place
//! when it is as far as the player.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::cells::{Cells, RowId, SlotAt};
use super::desk::Desk;
use super::runs::{Run, Stage, Ticket};
use crate::event::{CellKey, EventKind, RunEvent};
use crate::model::{CellIx, CellName, Label, Millis, RunId, make_visible};
use crate::record::{Playback, PlaybackSpeed, Player};
use crate::workspace::Workspace;

/// A replay.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) run: RunId,
    pub(crate) dir: PathBuf,
    pub(crate) player: Player,
    pub(crate) speed: PlaybackSpeed,
    /// What it shows.
    pub(crate) desk: Desk,
    /// Whether leaving it ends the program (`dicta replay`), or goes back to the board.
    pub(crate) alone: bool,
    /// Names the run on its desk.
    pub(crate) ticket: Ticket,
    /// When it was recorded: `2026-11-20 17:02`.
    pub(crate) recorded: String,
    /// Whether the log holds its end: else it was interrupted, or is still being recorded.
    pub(crate) whole: bool,
    /// How many events the shown desk was told.
    pub(crate) told: usize,
    /// The desk that takes the shown one's place, and how many events it was told.
    pub(crate) behind: Option<Box<(Desk, usize)>>,
    /// The desk's cells before anything happened: everything the recording plans, pending.
    blank: Cells,
    /// By cell number: where it stands.
    pub(crate) places: Vec<Option<SlotAt>>,
    /// The failure gone to last: of which event, which of its results.
    pub(crate) failure: Option<(usize, usize)>,
    /// Whether the end was told.
    pub(crate) end_told: bool,
}

/// How a recording is opened.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// Which, where the program opens with it.
    pub(crate) read: Option<(RunId, Option<PathBuf>)>,
    /// 0 ([`Speed::AT_ONCE`]): it stands at its end.
    pub(crate) speed: PlaybackSpeed,
    pub(crate) from: StartAt,
    /// The workspace around it, where the program opens with it.
    pub(crate) around: Option<Arc<Workspace>>,
}

impl Opening {
    /// As the command line asks: `dicta replay` gives a speed and plays, `dicta open RUN` gives none and shows the end.
    pub(crate) fn asked(speed: Option<f64>) -> Self {
        let (speed, from) = match speed {
            Some(speed) => (PlaybackSpeed::new(speed), StartAt::Beginning),
            None => (PlaybackSpeed::RECORDED, StartAt::End),
        };
        Self {
            speed,
            from,
            ..Self::default()
        }
    }
}

/// Where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartAt {
    /// At the beginning, playing.
    Beginning,
    /// At its end, standing still.
    End,
    /// Where the judge begins with this cell, playing; the beginning for a cell no judge began.
    Cell(CellName),
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            read: None,
            speed: PlaybackSpeed::RECORDED,
            from: StartAt::Beginning,
            around: None,
        }
    }
}

/// While it plays the screen is woken at least so often: the clock in the bar goes on.
const TICK: Millis = Millis(100);
/// And not more often: what is due within a frame is shown in that frame.
const FRAME: Millis = Millis(16);

impl Replay {
    /// A recording at its beginning, paused, with everything it plans as pending.
    pub(crate) fn new(
        run: RunId,
        dir: PathBuf,
        log: Arc<Vec<RunEvent>>,
        ticket: Ticket,
        alone: bool,
        around: Option<&Workspace>,
    ) -> Self {
        let mut blank = Cells::default();
        blank.label(labels(&log, around));
        let places = lay_out(&mut blank, &log);
        let recorded = log
            .first()
            .map_or(String::new(), |event| match &event.kind {
                EventKind::RunStarted(header) => moment(&header.started.0),
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
            desk: Desk::default(),
            alone,
            ticket,
            recorded,
            whole,
            told: 0,
            behind: None,
            blank,
            places,
            failure: None,
            end_told: false,
        };
        replay.desk = replay.fresh();
        replay
    }

    /// A desk to which nothing was told yet.
    pub(crate) fn fresh(&self) -> Desk {
        let mut desk = Desk {
            cells: self.blank.clone(),
            ..Desk::default()
        };
        let run = Run {
            id: Some(self.run.clone()),
            dir: Some(self.dir.clone()),
            stage: Stage::Running,
            ..Run::default()
        };
        desk.runs.map.insert(self.ticket, run);
        desk
    }

    /// Whether the desk is not yet where the player is.
    pub(crate) fn seeking(&self) -> bool {
        self.behind.is_some() || self.told != self.player.position()
    }

    /// Whether time passes.
    pub(crate) fn playing(&self) -> bool {
        matches!(self.player.playback(), Playback::Playing { .. })
    }

    /// When it goes on by itself; `None`: not before a key.
    pub(crate) fn next_wake(&self, now: Millis) -> Option<Millis> {
        if self.seeking() {
            return Some(now);
        }
        if !self.playing() {
            return None;
        }
        let due = self.player.time_to_next(now).unwrap_or(Millis(0));
        Some(now + due.clamp(FRAME, TICK))
    }

    /// The moment it is, and how long it is, both from its beginning.
    pub(crate) fn clock(&self, now: Millis) -> (Millis, Millis) {
        let (first, last) = self.player.span();
        let at = self.player.recording_time(now).min(last);
        (at.since(first), last.since(first))
    }
}

/// What people said, where the recording is of that workspace.
fn labels<'w>(log: &[RunEvent], around: Option<&'w Workspace>) -> &'w [Label] {
    match (log.first().map(|event| &event.kind), around) {
        (Some(EventKind::RunStarted(header)), Some(around)) if header.workspace == around.root => {
            &around.labels
        }
        _ => &[],
    }
}

/// Learns everything a recording plans; where each cell stands.
fn lay_out(cells: &mut Cells, log: &[RunEvent]) -> Vec<Option<SlotAt>> {
    let mut names = None;
    let mut places: Vec<Option<SlotAt>> = Vec::new();
    let mut rows: HashMap<(&str, u32, Option<u32>), RowId> = HashMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for event in log {
        match &event.kind {
            EventKind::RunStarted(header) => names = Some(cells.meet(header, true)),
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => {
                let Some(names) = &names else { continue };
                let of = |key: &CellKey| (transcript.id.as_str(), key.eval, key.message);
                if seen.insert(&transcript.id) {
                    let slots = cells.plan(names, transcript, keys);
                    for (key, slot) in keys.iter().zip(&slots) {
                        if let (Some(_), Some((row, _))) = (key.repeat, slot) {
                            rows.insert(of(key), *row);
                        }
                    }
                    place(&mut places, *first, slots);
                } else {
                    // A repeat that became necessary: known only then, so not pending from the start.
                    let slot = |key: &CellKey| {
                        let nth = u16::try_from(key.repeat?.checked_sub(1)?).ok()?;
                        Some((*rows.get(&of(key))?, nth))
                    };
                    place(&mut places, *first, keys.iter().map(slot).collect());
                }
            }
            _ => {}
        }
    }
    cells.complete = true;
    cells.settle();
    places
}

/// A log that skips over so many cells is broken; nothing is kept for it.
const MAX_GAP: usize = 1 << 20;

fn place(places: &mut Vec<Option<SlotAt>>, first: CellIx, slots: Vec<Option<SlotAt>>) {
    let at = first.index();
    if at < places.len() || at - places.len() > MAX_GAP {
        return;
    }
    places.resize(at, None);
    places.extend(slots);
}

/// `2026-11-20 17:02` of an RFC 3339 moment.
pub(crate) fn moment(written: &str) -> String {
    let short: String = written.chars().take(16).collect();
    make_visible(&short.replacen('T', " ", 1), false).into_owned()
}

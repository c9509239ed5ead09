//! The replay of recorded events, with their timing or another speed. A consumer cannot distinguish it from a live
//! run.
//!
//! Responsible for a position and a speed. Does not keep state or sleep: it returns each event once, in order, and
//! reports when the state must restart. [`play_events`] sleeps on a clock.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use super::log_index::{LogIndex, OutlineEvent};
use crate::clock::Clock;
use crate::event::{EventKind, RunEvent, RunHeader, TurnFact};
use crate::model::Millis;

/// The speed of a replay, as a factor of the recorded speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaybackSpeed(f64);

impl PlaybackSpeed {
    /// The recorded speed.
    pub const RECORDED: Self = Self(1.0);
    /// All events at once.
    pub const INSTANT: Self = Self(f64::INFINITY);

    /// Returns a speed; at once for 0 and for everything that is not a positive number.
    pub fn new(times: f64) -> Self {
        if times.is_finite() && times > 0.0 {
            Self(times)
        } else {
            Self::INSTANT
        }
    }

    /// Returns the factor; infinite for at once.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Returns the replay time of a part of the recording.
    fn to_clock_time(self, recorded: Millis) -> Millis {
        Millis::from_secs_f64(recorded.0 as f64 / self.0 / 1000.0)
    }

    /// Returns the part of the recording that passes in a replay time, rounded down; all of it at once.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never negative, and `as` saturates; 0 times infinity is NaN and becomes 0"
    )]
    fn to_recording_time(self, passed: Millis) -> Millis {
        Millis((passed.0 as f64 * self.0) as u64)
    }
}

/// The state of time in a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Playback {
    /// Paused.
    Paused {
        /// The time of the recording.
        at: Millis,
    },
    /// Playing.
    Playing {
        /// The time of the recording at the start of playing.
        at: Millis,
        /// The time of the clock at that moment.
        since: Millis,
        /// The speed.
        speed: PlaybackSpeed,
    },
}

/// The unit of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepUnit {
    /// One event.
    Event,
    /// To the next end of a turn, inclusive.
    Turn,
    /// To the next end of a cell, or of cells that settled together, inclusive.
    Cell,
}

/// The positions of the events to apply after a jump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeekResult {
    /// Apply these events to the current state.
    Forward(Range<usize>),
    /// Apply these events to an empty state.
    Restart(Range<usize>),
}

/// The events of a recording: all of them, or the index of a log that is too large for memory.
#[derive(Debug, Clone)]
pub enum RecordedLog {
    /// All events.
    Events(Arc<Vec<RunEvent>>),
    /// The index of the log.
    Indexed(Arc<LogIndex>),
}

impl From<Vec<RunEvent>> for RecordedLog {
    fn from(events: Vec<RunEvent>) -> Self {
        Self::Events(Arc::new(events))
    }
}

impl From<Arc<Vec<RunEvent>>> for RecordedLog {
    fn from(events: Arc<Vec<RunEvent>>) -> Self {
        Self::Events(events)
    }
}

impl PartialEq for RecordedLog {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Events(a), Self::Events(b)) => a == b,
            (Self::Indexed(a), Self::Indexed(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl RecordedLog {
    /// Returns the number of events.
    pub fn len(&self) -> usize {
        match self {
            Self::Events(events) => events.len(),
            Self::Indexed(index) => index.len(),
        }
    }

    /// Reports whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time of an event.
    pub fn at(&self, position: usize) -> Option<Millis> {
        match self {
            Self::Events(events) => events.get(position).map(|event| event.at),
            Self::Indexed(index) => index.at(position),
        }
    }

    /// Returns the header.
    pub fn header(&self) -> Option<&RunHeader> {
        match &self.outline().first()?.kind {
            EventKind::RunStarted(header) => Some(header),
            _ => None,
        }
    }

    /// Reports whether the log contains the end of the run.
    pub fn has_end(&self) -> bool {
        match self {
            Self::Events(events) => matches!(
                events.last().map(|event| &event.kind),
                Some(EventKind::RunFinished(_))
            ),
            Self::Indexed(index) => index.has_end(),
        }
    }

    /// Returns the events that plan, start and end cells, in order; of a log without index, all events.
    pub fn outline(&self) -> &[RunEvent] {
        match self {
            Self::Events(events) => events,
            Self::Indexed(index) => index.outline(),
        }
    }

    /// Returns the events of [`RecordedLog::outline`] from a position on, with their positions.
    pub fn outline_from(&self, from: usize) -> Box<dyn Iterator<Item = OutlineEvent<'_>> + '_> {
        match self {
            Self::Events(events) => {
                let rest = events.iter().enumerate().skip(from);
                Box::new(rest.map(|(position, event)| OutlineEvent { position, event }))
            }
            Self::Indexed(index) => Box::new(index.outline_from(from)),
        }
    }

    fn position_at(&self, at: Millis) -> usize {
        match self {
            // The recorder's times never decrease.
            Self::Events(events) => events.partition_point(|event| event.at <= at),
            Self::Indexed(index) => index.position_at(at),
        }
    }

    fn ends(&self, position: usize, unit: StepUnit) -> bool {
        match (self, unit) {
            (_, StepUnit::Event) => true,
            (Self::Events(events), StepUnit::Turn) => ends_turn(&events[position].kind),
            (Self::Events(events), StepUnit::Cell) => ends_cell(&events[position].kind),
            (Self::Indexed(index), StepUnit::Turn) => index.ends_turn(position),
            (Self::Indexed(index), StepUnit::Cell) => index.ends_cell(position),
        }
    }
}

/// A recording with a position. It shares the events without copying them, because a log may be large. Methods that move
/// it return the positions of the events to apply.
#[derive(Debug, Clone)]
pub struct Player {
    log: RecordedLog,
    next: usize,
    playback: Playback,
}

impl Player {
    /// Creates a player at the beginning, paused.
    pub fn new(log: impl Into<RecordedLog>) -> Self {
        let log = log.into();
        let at = log.at(0).unwrap_or(Millis(0));
        Self {
            log,
            next: 0,
            playback: Playback::Paused { at },
        }
    }

    /// Returns the recording.
    pub fn log(&self) -> &RecordedLog {
        &self.log
    }

    /// Returns the times of the first and the last event.
    pub fn span(&self) -> (Millis, Millis) {
        let last = self.len().checked_sub(1).and_then(|last| self.log.at(last));
        let or_zero = |at: Option<Millis>| at.unwrap_or(Millis(0));
        (or_zero(self.log.at(0)), or_zero(last))
    }

    /// Returns whether time passes, and the speed.
    pub fn playback(&self) -> Playback {
        self.playback
    }

    /// Returns the number of events returned since the beginning.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Reports whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Reports whether all events were returned.
    pub fn is_finished(&self) -> bool {
        self.next == self.len()
    }

    /// Returns the time of the recording when the clock shows `now`.
    pub fn recording_time(&self, now: Millis) -> Millis {
        match self.playback {
            Playback::Paused { at } => at,
            Playback::Playing { at, since, speed } => at + speed.to_recording_time(now - since),
        }
    }

    /// Starts playing, or changes the speed.
    pub fn play(&mut self, now: Millis, speed: PlaybackSpeed) {
        self.playback = Playback::Playing {
            at: self.clamped_recording_time(now),
            since: now,
            speed,
        };
    }

    /// Pauses.
    pub fn pause(&mut self, now: Millis) {
        self.playback = Playback::Paused {
            at: self.clamped_recording_time(now),
        };
    }

    /// Returns the events that are due when the clock shows `now`, each once.
    pub fn take_due(&mut self, now: Millis) -> Range<usize> {
        let from = self.next;
        // Several events may have the same time, or a slow frame may have missed some.
        while self.time_to_next(now) == Some(Millis(0)) {
            self.next += 1;
        }
        from..self.next
    }

    /// Returns the time until the next event; `None` while paused and at the end.
    pub fn time_to_next(&self, now: Millis) -> Option<Millis> {
        let next_at = self.log.at(self.next)?;
        match self.playback {
            Playback::Paused { .. } => None,
            Playback::Playing { at, since, speed } => {
                Some((since + speed.to_clock_time(next_at - at)) - now)
            }
        }
    }

    /// Moves forward by one event, turn or cell, and pauses there.
    pub fn step(&mut self, unit: StepUnit) -> Range<usize> {
        let from = self.next;
        let len = self.len();
        let end = (from..len).find(|position| self.log.ends(*position, unit));
        self.next = end.map_or(len, |end| end + 1);
        self.pause_at_position();
        from..self.next
    }

    /// Moves to the position after `position` events, and pauses there.
    pub fn seek(&mut self, position: usize) -> SeekResult {
        let from = self.next;
        self.next = position.min(self.len());
        self.pause_at_position();
        self.describe_move(from)
    }

    /// Moves to a time of the recording and pauses there, also between two events. So small moves can cross a long
    /// gap.
    pub fn seek_to_time(&mut self, at: Millis) -> SeekResult {
        let (first, last) = self.span();
        let at = at.clamp(first, last.max(first));
        let from = self.next;
        self.next = self.position_at(at);
        self.playback = Playback::Paused { at };
        self.describe_move(from)
    }

    /// Returns the position at a time of the recording.
    pub fn position_at(&self, at: Millis) -> usize {
        self.log.position_at(at)
    }

    fn describe_move(&self, from: usize) -> SeekResult {
        if self.next >= from {
            SeekResult::Forward(from..self.next)
        } else {
            // The state has no undo, so a move back applies all events again.
            SeekResult::Restart(0..self.next)
        }
    }

    /// Returns the current time of the recording, at most its end. Later playing must not skip events that are
    /// appended there.
    fn clamped_recording_time(&self, now: Millis) -> Millis {
        let (_, end) = self.span();
        self.recording_time(now).min(end)
    }

    fn pause_at_position(&mut self) {
        let last = self.next.checked_sub(1).and_then(|last| self.log.at(last));
        let at = last.or(self.log.at(0)).unwrap_or(Millis(0));
        self.playback = Playback::Paused { at };
    }
}

fn ends_turn(kind: &EventKind) -> bool {
    match kind {
        EventKind::Turn { fact, .. } => matches!(
            fact,
            TurnFact::Finished { .. } | TurnFact::AttemptFailed { retry_in: None, .. }
        ),
        other => ends_cell(other),
    }
}

fn ends_cell(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::CellFinished { .. } | EventKind::CellsSettled(_)
    )
}

/// The longest wait for one event in [`play_events`], whatever time the log states.
pub const MAX_EVENT_WAIT: Millis = Millis(10_000);

/// Sends every event to `sink` when it is due, at the recorded times divided by `speed`; 0 and infinity mean at once.
/// Shortens each wait to [`MAX_EVENT_WAIT`]. Holds one event at a time, so that it can play a log while reading it.
pub async fn play_events<E: Borrow<RunEvent>>(
    events: impl IntoIterator<Item = E>,
    speed: f64,
    clock: &dyn Clock,
    mut sink: impl FnMut(&RunEvent),
) {
    let speed = PlaybackSpeed::new(speed);
    let start = clock.now();
    let mut began = None;
    let mut skipped = Millis(0);
    for event in events {
        let event = event.borrow();
        let began = *began.get_or_insert(event.at);
        let due = (start + speed.to_clock_time(event.at - began)) - skipped;
        // The due time is absolute, so delays of single events do not add up.
        let now = clock.now();
        if due > now {
            let wait = (due - now).min(MAX_EVENT_WAIT);
            // All later events follow earlier by the part of the wait that is left out.
            skipped = skipped + ((due - now) - wait);
            clock.sleep(wait).await;
        }
        sink(event);
    }
}

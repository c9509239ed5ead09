//! Replay: recorded events at their own pace, or another. A screen and `replay --print` cannot tell it from a live run.
//!
//! The player owns a position and a pace, never the state: it hands out events, in order and each once, and says when
//! to begin again. Refuses to sleep by itself; [`play`] does that, on a clock.

use std::borrow::Borrow;
use std::sync::Arc;

use crate::clock::Clock;
use crate::event::{EventKind, RunEvent, TurnFact};
use crate::model::Millis;

/// How many times faster than recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaybackSpeed(f64);

impl PlaybackSpeed {
    /// As recorded.
    pub const RECORDED: Self = Self(1.0);
    /// Everything now.
    pub const INSTANT: Self = Self(f64::INFINITY);

    /// A speed; 0 and whatever is no positive number mean at once.
    pub fn new(times: f64) -> Self {
        if times.is_finite() && times > 0.0 {
            Self(times)
        } else {
            Self::INSTANT
        }
    }

    /// As a factor; infinite for at once.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// How long a stretch of the recording takes.
    fn to_clock_time(self, recorded: Millis) -> Millis {
        Millis::from_secs_f64(recorded.0 as f64 / self.0 / 1000.0)
    }

    /// How much of the recording passes in a time, rounded down; all of it at once.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never negative, and `as` saturates; 0 times infinity is NaN and becomes 0"
    )]
    fn to_recording_time(self, passed: Millis) -> Millis {
        Millis((passed.0 as f64 * self.0) as u64)
    }
}

/// Whether time passes in a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Playback {
    /// It stands still.
    Paused {
        /// At this moment of the recording.
        at: Millis,
    },
    /// It passes.
    Playing {
        /// It stood at this moment of the recording …
        at: Millis,
        /// … at this moment of the clock …
        since: Millis,
        /// … and goes at this speed.
        speed: PlaybackSpeed,
    },
}

/// What a step goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaybackStep {
    /// One event.
    Event,
    /// Up to and with the next end of a turn.
    Turn,
    /// Up to and with the next end of a cell, or of all cells settled at once.
    Cell,
}

/// What to do to the state after a jump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SeekResult<'p> {
    /// Apply these, too.
    Forward(&'p [RunEvent]),
    /// Begin with an empty state and apply these.
    Restart(&'p [RunEvent]),
}

/// A recording with a position. The events are shared, never copied: a log may be large.
#[derive(Debug, Clone)]
pub struct Player {
    events: Arc<Vec<RunEvent>>,
    next: usize,
    playback: Playback,
}

impl Player {
    /// A player at the beginning, paused.
    pub fn new(events: impl Into<Arc<Vec<RunEvent>>>) -> Self {
        let events = events.into();
        let at = events.first().map_or(Millis(0), |event| event.at);
        Self {
            events,
            next: 0,
            playback: Playback::Paused { at },
        }
    }

    /// All events of the recording.
    pub fn events(&self) -> &Arc<Vec<RunEvent>> {
        &self.events
    }

    /// The moments of the first and the last event.
    pub fn span(&self) -> (Millis, Millis) {
        let at = |event: Option<&RunEvent>| event.map_or(Millis(0), |event| event.at);
        (at(self.events.first()), at(self.events.last()))
    }

    /// Whether time passes, and how.
    pub fn playback(&self) -> Playback {
        self.playback
    }

    /// How many events were handed out since the beginning.
    pub fn position(&self) -> usize {
        self.next
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether all were handed out.
    pub fn is_finished(&self) -> bool {
        self.next == self.events.len()
    }

    /// The moment of the recording that it is, when the clock reads `now`.
    pub fn recording_time(&self, now: Millis) -> Millis {
        match self.playback {
            Playback::Paused { at } => at,
            Playback::Playing { at, since, speed } => at + speed.to_recording_time(now - since),
        }
    }

    /// Lets time pass; also changes the speed.
    pub fn play(&mut self, now: Millis, speed: PlaybackSpeed) {
        self.playback = Playback::Playing {
            at: self.clamped_recording_time(now),
            since: now,
            speed,
        };
    }

    /// Lets time stand still.
    pub fn pause(&mut self, now: Millis) {
        self.playback = Playback::Paused {
            at: self.clamped_recording_time(now),
        };
    }

    /// The events that are due when the clock reads `now`; each is handed out once.
    pub fn take_due(&mut self, now: Millis) -> &[RunEvent] {
        let from = self.next;
        while self.time_to_next(now) == Some(Millis(0)) {
            self.next += 1;
        }
        &self.events[from..self.next]
    }

    /// How long until the next event is due; `None` while paused and at the end.
    pub fn time_to_next(&self, now: Millis) -> Option<Millis> {
        let event = self.events.get(self.next)?;
        match self.playback {
            Playback::Paused { .. } => None,
            Playback::Playing { at, since, speed } => {
                Some((since + speed.to_clock_time(event.at - at)) - now)
            }
        }
    }

    /// Goes forward by one event, turn or cell, and pauses there.
    pub fn step(&mut self, unit: PlaybackStep) -> &[RunEvent] {
        let from = self.next;
        let rest = &self.events[from..];
        let end = match unit {
            PlaybackStep::Event => Some(0),
            PlaybackStep::Turn => rest.iter().position(|event| ends_turn(&event.kind)),
            PlaybackStep::Cell => rest.iter().position(|event| ends_cell(&event.kind)),
        };
        self.next = end.map_or(self.events.len(), |end| {
            (from + end + 1).min(self.events.len())
        });
        self.pause_at_position();
        &self.events[from..self.next]
    }

    /// Goes to where `position` events have been handed out, and pauses there.
    pub fn seek(&mut self, position: usize) -> SeekResult<'_> {
        let from = self.next;
        self.next = position.min(self.events.len());
        self.pause_at_position();
        if self.next >= from {
            SeekResult::Forward(&self.events[from..self.next])
        } else {
            SeekResult::Restart(&self.events[..self.next])
        }
    }

    /// Goes to a moment of the recording and pauses at that very moment: between two events, too, so that going on by
    /// small stretches gets over a long silence.
    pub fn seek_to_time(&mut self, at: Millis) -> SeekResult<'_> {
        let (first, last) = self.span();
        let at = at.clamp(first, last.max(first));
        let from = self.next;
        self.next = self.position_at(at);
        self.playback = Playback::Paused { at };
        if self.next >= from {
            SeekResult::Forward(&self.events[from..self.next])
        } else {
            SeekResult::Restart(&self.events[..self.next])
        }
    }

    /// The position at which the recording has reached a moment.
    pub fn position_at(&self, at: Millis) -> usize {
        self.events.partition_point(|event| event.at <= at)
    }

    /// Where the recording is now, never beyond its end: playing on from there must not skip what is appended to it.
    fn clamped_recording_time(&self, now: Millis) -> Millis {
        let end = self.events.last().map_or(Millis(0), |event| event.at);
        self.recording_time(now).min(end)
    }

    fn pause_at_position(&mut self) {
        let last = self
            .next
            .checked_sub(1)
            .and_then(|last| self.events.get(last));
        let at = last
            .or(self.events.first())
            .map_or(Millis(0), |event| event.at);
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

/// Hands every event to `sink` when it is due: the recording's own times, `speed` times faster; 0 and infinity: at once.
/// Holds one event at a time, so that a log can be played while it is read.
pub async fn play_events<E: Borrow<RunEvent>>(
    events: impl IntoIterator<Item = E>,
    speed: f64,
    clock: &dyn Clock,
    mut sink: impl FnMut(&RunEvent),
) {
    let speed = PlaybackSpeed::new(speed);
    let start = clock.now();
    let mut began = None;
    for event in events {
        let event = event.borrow();
        let began = *began.get_or_insert(event.at);
        let due = start + speed.to_clock_time(event.at - began);
        let now = clock.now();
        if due > now {
            clock.sleep(due - now).await;
        }
        sink(event);
    }
}

//! Feeds a replay's session with the events up to the position of its player, one batch per wake.
//!
//! A log in memory is fed event by event. Of an indexed log, a near position needs the events in between, and a far one the
//! state that the index returns.

use std::sync::Arc;

use crate::event::{EventKind, RunEvent};
use crate::model::Millis;
use crate::record::LogIndex;
use crate::tui::effect::Effect;
use crate::tui::history_view::Shared;
use crate::tui::state::cells::DecisionChanges;
use crate::tui::state::replay::{PendingSession, ReplayRequest, ReplayState};
use crate::tui::state::runs::RunTicket;
use crate::tui::state::session_view::SessionView;

/// The maximum number of events per wake, with the cells that they plan or complete. That takes a few milliseconds.
const MAX_EVENTS_PER_WAKE: usize = 5_000;
/// The function that feeds events, the same as for live events. Tests use another one.
pub(super) type FeedFn = fn(&mut SessionView, RunTicket, &[RunEvent]) -> DecisionChanges;

/// Feeds one batch of a log that is in memory.
pub(super) fn feed_session(
    replay: &mut ReplayState,
    now: Millis,
    feed: FeedFn,
    events: &[RunEvent],
) {
    let goal = replay.player.position();
    if goal >= replay.shown_events {
        // The visible session is not beyond the target, so the session in the background is not needed.
        replay.pending_session = None;
    } else if replay
        .pending_session
        .as_ref()
        .is_none_or(|pending| pending.fed_events > goal)
    {
        replay.pending_session = Some(Box::new(PendingSession {
            session: replay.new_session(),
            fed_events: 0,
            target: None,
        }));
    }
    if let Some(pending) = &mut replay.pending_session {
        feed_pending(pending, replay.ticket, feed, &events[..goal]);
        if pending.fed_events == goal {
            show_pending_session(replay, goal);
        }
        return;
    }
    feed_shown(replay, now, feed, events, 0);
}

/// The number of events up to which a move forward feeds the events. A longer move builds the state from the index.
const MAX_FED_EVENTS: usize = 4_096;

/// Feeds one batch of an indexed log, or asks for the part that it needs.
pub(super) fn feed_indexed(
    replay: &mut ReplayState,
    now: Millis,
    feed: FeedFn,
    index: Arc<LogIndex>,
) -> Vec<Effect> {
    if let Some(pending) = &mut replay.pending_session {
        if let Some(position) = feed_pending_state(pending, replay.ticket, feed, &index) {
            show_pending_session(replay, position);
        }
        return Vec::new();
    }
    let (goal, shown) = (replay.player.position(), replay.shown_events);
    let is_near = (shown..=shown + MAX_FED_EVENTS).contains(&goal);
    let window = replay
        .window
        .clone()
        .filter(|window| window.contains(shown));
    if goal == shown {
        // Follow mode runs also without events.
        replay.session.follow_events(now, replay.ticket, &[]);
        return Vec::new();
    }
    if let Some(window) = window.filter(|_| is_near) {
        feed_shown(replay, now, feed, &window.events, window.first);
        return Vec::new();
    }
    if replay.is_reading {
        return Vec::new();
    }
    replay.is_reading = true;
    let request = if is_near {
        ReplayRequest::Events(shown..shown + MAX_FED_EVENTS)
    } else {
        ReplayRequest::State(goal)
    };
    vec![Effect::ReadReplayPart {
        ticket: replay.ticket,
        index: Shared(index),
        request,
    }]
}

/// Feeds the next batch to the visible session. `events` begin at the position `first` of the log.
fn feed_shown(
    replay: &mut ReplayState,
    now: Millis,
    feed: FeedFn,
    events: &[RunEvent],
    first: usize,
) {
    let (ticket, from) = (replay.ticket, replay.shown_events - first);
    let goal = (replay.player.position() - first).min(events.len());
    let batch = &events[from..find_batch_end(events, from, goal)];
    // An empty batch must not outdate the order of the cells.
    if !batch.is_empty() {
        let _flips = feed(&mut replay.session, ticket, batch);
        replay.shown_events += batch.len();
        replay.session.cells.update_shown_if_due(now);
    }
    // Follow mode runs also without events: a cell that ended stays for a moment.
    replay.session.follow_events(now, ticket, batch);
}

/// Feeds the next batch to the session in the background.
fn feed_pending(
    pending: &mut PendingSession,
    ticket: RunTicket,
    feed: FeedFn,
    events: &[RunEvent],
) {
    let from = pending.fed_events;
    let batch = &events[from..find_batch_end(events, from, events.len())];
    // Flips of a recording are part of it and are not reported.
    let _flips = feed(&mut pending.session, ticket, batch);
    pending.session.follow.track_live_cells(ticket, batch);
    pending.fed_events += batch.len();
}

/// Feeds the next batch of a state that was read through an index. Returns its position once it is complete.
fn feed_pending_state(
    pending: &mut PendingSession,
    ticket: RunTicket,
    feed: FeedFn,
    index: &LogIndex,
) -> Option<usize> {
    // Only a replay of an indexed log calls this, and each of its sessions has a target.
    let target = pending.target.clone()?;
    if pending.fed_events < target.outline_len {
        let outline = &index.outline()[..target.outline_len];
        feed_pending(pending, ticket, feed, outline);
        return None;
    }
    let _flips = feed(&mut pending.session, ticket, &target.live_events);
    if let Some(run) = pending.session.runs.by_ticket.get_mut(&ticket) {
        target.complete(&mut run.state);
    }
    Some(target.position)
}

/// Shows the session that was built in the background.
fn show_pending_session(replay: &mut ReplayState, position: usize) {
    let Some(built) = replay.pending_session.take() else {
        return;
    };
    let mut session = built.session;
    session.copy_view_from(&mut replay.session);
    session.cells.update_shown();
    replay.session = session;
    replay.shown_events = position;
}

/// Returns the end of a batch of at least one event.
fn find_batch_end(events: &[RunEvent], from: usize, goal: usize) -> usize {
    let mut left = MAX_EVENTS_PER_WAKE;
    // The goal may be before the start after a jump back.
    let rest = events.get(from..goal).unwrap_or_default();
    let takes = |event: &RunEvent| match &event.kind {
        EventKind::CellsSettled(all) => 1 + all.len(),
        EventKind::CellsPlanned { keys, .. } => 1 + keys.len(),
        _ => 1,
    };
    // The first event always fits, so each wake makes progress.
    let fits = rest.iter().take_while(|event| {
        let fits = left > 0;
        left = left.saturating_sub(takes(event));
        fits
    });
    from + fits.count()
}

//! Movement through the steps of a trace and the messages of a transcript.

use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::filled_panes::{ShownKind, shown_kind};
use crate::tui::state::judge_trace::{StepSelection, StripStep, find_shown_call, list_steps};
use crate::tui::state::pane::{Pane, PaneArea};
use crate::tui::state::shown_cell::resolve_shown_cell;
use crate::tui::update::notices::push_info;
use crate::tui::widget::flow::BlockPosition;

/// Shows the previous or next judge or repeat of the decision.
pub(crate) fn select_adjacent_slot(app: &mut App, forward: bool) -> Vec<Effect> {
    let shown = resolve_shown_cell(app);
    let slot = app.session().trace_panes.slot;
    let adjacent = shown.and_then(|shown| shown.row.adjacent_slot(slot, forward));
    select_slot(app, adjacent);
    Vec::new()
}

/// Goes to the next or the previous step. After the last step comes the follow mode, then the next cell of the
/// decision; before the first step the cell before.
pub(crate) fn move_step_by(app: &mut App, delta: i64) -> Vec<Effect> {
    let Some(shown_cell) = resolve_shown_cell(app) else {
        return Vec::new();
    };
    let turns = shown_cell.turns();
    let count = list_steps(turns).count();
    let trace = &app.session().trace_panes;
    // In follow mode the shown call may come before the last step. Moving back starts from the visible call. If it is
    // of an earlier turn than the visible prompt, the first press goes to the turn of the call.
    let visible = find_shown_call(trace, turns);
    let is_earlier = visible.is_some_and(|position| position.turn + 1 < turns.len());
    let shown_position = visible.map(StripStep::Call);
    let shown_position = list_steps(turns).position(|step| Some(step) == shown_position);
    let shown_position = shown_position.map(|at| at + usize::from(is_earlier));
    let adjacent_slot = |on| shown_cell.row.adjacent_slot(trace.slot, on);
    let (before, after) = (adjacent_slot(false), adjacent_slot(true));
    // The borrowed cell is not used from here on, so the session can change.
    let trace = &mut app.session_mut().trace_panes;
    let last = count.saturating_sub(1);
    let newest = shown_position.filter(|at| *at > 0).unwrap_or(last);
    match (trace.step, delta < 0) {
        // Moving back leaves the follow mode.
        (StepSelection::Newest, true) if count > 1 => {
            trace.step = StepSelection::Position(newest - 1);
        }
        (StepSelection::Position(at), true) if at.min(last) > 0 => {
            trace.step = StepSelection::Position(at.min(last) - 1);
        }
        (StepSelection::Position(at), false) if at < last => {
            trace.step = StepSelection::Position(at + 1);
        }
        (StepSelection::Position(_), false) => trace.step = StepSelection::Newest,
        // Before the first step comes the cell before.
        (_, true) => select_slot(app, before),
        (StepSelection::Newest, false) => select_slot(app, after),
    }
    Vec::new()
}

/// Selects a step that was clicked. The cells of the decision are numbered after the steps.
pub(crate) fn select_step(app: &mut App, at: usize) -> Vec<Effect> {
    let Some(shown_cell) = resolve_shown_cell(app) else {
        return Vec::new();
    };
    let count = list_steps(shown_cell.turns()).count();
    // A number after the steps is a cell of the decision.
    let chosen = at
        .checked_sub(count)
        .and_then(|nth| Some(shown_cell.row.all_slots().nth(nth)?.0));
    if at < count {
        app.session_mut().trace_panes.step = StepSelection::Position(at);
    } else {
        select_slot(app, chosen);
    }
    Vec::new()
}

fn select_slot(app: &mut App, slot: Option<u16>) {
    let session = app.session_mut();
    // A click on the current cell must not reset its positions.
    if let Some(slot) = slot
        && slot != session.trace_panes.slot
    {
        session.trace_panes.slot = slot;
        super::clear_positions(session);
    }
}

/// Shows raw texts or readable texts: of the request, the arguments, a page. Shows a notice if no visible pane changes.
pub(crate) fn toggle_raw(app: &mut App) -> Vec<Effect> {
    if shown_kind(app) != ShownKind::Judged {
        return push_info(app, "only a judge trace has raw data: select a judged cell");
    }
    let trace = &mut app.session_mut().trace_panes;
    trace.shows_raw = !trace.shows_raw;
    // The positions in one text have no meaning in the other.
    trace.prompt.scroll_to_start();
    trace.call.scroll_to_start();
    trace.fetched.scroll_to_start();
    let is_raw = trace.shows_raw;
    let has_raw_data = |shown: &PaneArea| {
        matches!(
            shown.pane,
            Pane::Prompt | Pane::FunctionCall | Pane::FetchedContent | Pane::Details
        )
    };
    if app.layout().panes.iter().any(has_raw_data) {
        return Vec::new();
    }
    let text = if is_raw {
        "2, 3 and 4 show raw data now: the exact bytes of the judge trace"
    } else {
        "2, 3 and 4 show readable texts again"
    };
    push_info(app, text)
}

/// Moves by messages. Back from the middle of a message goes to its beginning.
pub(crate) fn move_message_by(app: &mut App, delta: i64) -> Vec<Effect> {
    let document = &mut app.session_mut().transcript_pane;
    let Some(doc) = document.loaded_document() else {
        return Vec::new();
    };
    let last = doc.pieces.len().saturating_sub(1);
    // A pane that follows its end stores no position.
    let top = if document.scroll.follow {
        BlockPosition {
            block: last,
            byte: 0,
        }
    } else {
        document.scroll.top
    };
    let Some(piece) = doc.pieces.get(top.block.min(last)) else {
        return Vec::new();
    };
    let now = i64::from(piece.message);
    let begins = top.byte == 0 && doc.starts_message(top.block);
    // Inside a message, going back first goes to its beginning.
    let target = match (delta < 0, begins) {
        (true, false) => now + delta + 1,
        _ => now + delta,
    };
    let count = i64::try_from(doc.first_pieces.len()).unwrap_or(i64::MAX);
    let target = usize::try_from(target.clamp(0, count - 1)).unwrap_or(0);
    if let Some(block) = doc.first_pieces.get(target) {
        document.scroll.top = BlockPosition {
            block: *block as usize,
            byte: 0,
        };
        document.scroll.follow = false;
    }
    Vec::new()
}

//! Moving through a trace's steps and a transcript's messages.

use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::trace::{Step, StepAt, call_at, shown, steps};
use crate::tui::widget::flow::Place;

/// The step before or after. Past the last one the newest is followed, from there on to the decision's next cell;
/// before the first one to the cell before.
pub(crate) fn step_by(model: &mut Model, delta: i64) -> Vec<Effect> {
    let Some(shown) = shown(model) else {
        return Vec::new();
    };
    let turns = shown.turns();
    let count = steps(turns).count();
    let trace = &model.desk().trace;
    // Going with the judge, the call that is shown may lie before the last step. Where it has calls beside it, and its pane
    // says how to move among them, one goes back from what one sees.
    let seen = call_at(trace, turns)
        .filter(|(turn, _)| turns.get(*turn).is_some_and(|turn| turn.calls.len() > 1))
        .map(|(turn, call)| Step::Call(turn, call));
    let seen = steps(turns).position(|step| Some(step) == seen);
    let beside = |on| shown.row.slot_beside(trace.slot, on);
    let (before, after) = (beside(false), beside(true));
    let trace = &mut model.desk_mut().trace;
    let last = count.saturating_sub(1);
    let newest = seen.filter(|at| *at > 0).unwrap_or(last);
    match (trace.step, delta < 0) {
        (StepAt::Newest, true) if count > 1 => trace.step = StepAt::At(newest - 1),
        (StepAt::At(at), true) if at.min(last) > 0 => trace.step = StepAt::At(at.min(last) - 1),
        (StepAt::At(at), false) if at < last => trace.step = StepAt::At(at + 1),
        (StepAt::At(_), false) => trace.step = StepAt::Newest,
        (_, true) => select_slot(model, before),
        (StepAt::Newest, false) => select_slot(model, after),
    }
    Vec::new()
}

/// The step that was clicked. Behind the steps, the decision's cells are numbered on.
pub(crate) fn select_step(model: &mut Model, at: usize) -> Vec<Effect> {
    let Some(shown) = shown(model) else {
        return Vec::new();
    };
    let count = steps(shown.turns()).count();
    let chosen = at
        .checked_sub(count)
        .and_then(|nth| Some(shown.row.all_slots().nth(nth)?.0));
    if at < count {
        model.desk_mut().trace.step = StepAt::At(at);
    } else {
        select_slot(model, chosen);
    }
    Vec::new()
}

fn select_slot(model: &mut Model, slot: Option<u16>) {
    let desk = model.desk_mut();
    if let Some(slot) = slot
        && slot != desk.trace.slot
    {
        desk.trace.slot = slot;
        super::turn_away(desk);
    }
}

/// The raw form, or the readable one again: of the request, of arguments, of a page.
pub(crate) fn toggle_raw(model: &mut Model) -> Vec<Effect> {
    let trace = &mut model.desk_mut().trace;
    trace.raw = !trace.raw;
    trace.prompt.home();
    trace.call.home();
    trace.fetched.home();
    Vec::new()
}

/// So many messages on or back. Back from within a message is its beginning.
pub(crate) fn message_by(model: &mut Model, delta: i64) -> Vec<Effect> {
    let document = &mut model.desk_mut().document;
    let Some(doc) = document.here() else {
        return Vec::new();
    };
    let last = doc.pieces.len().saturating_sub(1);
    let top = if document.scroll.follow {
        Place {
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
    let begins = top.byte == 0 && doc.leads(top.block);
    let target = match (delta < 0, begins) {
        (true, false) => now + delta + 1,
        _ => now + delta,
    };
    let count = i64::try_from(doc.messages.len()).unwrap_or(i64::MAX);
    let target = usize::try_from(target.clamp(0, count - 1)).unwrap_or(0);
    if let Some(block) = doc.messages.get(target) {
        document.scroll.top = Place {
            block: *block as usize,
            byte: 0,
        };
        document.scroll.follow = false;
    }
    Vec::new()
}

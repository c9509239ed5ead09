//! What the judge wrote in the shown turn: thinking, the reasoning of a verdict that is still coming, plain text.

use super::verdict::of;
use super::{Ink, gap, heading};
use crate::event::{AttemptState, TurnState};
use crate::report::extract_reasoning;
use crate::theme::Role;
use crate::tui::model::trace::{Shown, turn_at};
use crate::tui::widget::flow::Block;

/// What the judge wrote in the shown turn: as it comes, and afterwards.
pub(super) fn said<'a>(ink: &Ink<'a>, shown: &Shown<'a>, out: &mut Vec<Block<'a>>) {
    let turns = shown.turns();
    let Some(turn) = turn_at(&ink.model.desk().trace, turns).and_then(|at| turns.get(at)) else {
        return;
    };
    let (thought, text) = match (&turn.finished, attempt(turn)) {
        (Some((_, reply)), _) => (reply.thought.as_str(), reply.text.as_str()),
        (None, Some(attempt)) => (attempt.thought.as_str(), attempt.text.as_str()),
        (None, None) => return,
    };
    if !thought.trim().is_empty() {
        out.push(gap());
        out.push(heading("thinking"));
        out.push(Block::new(thought.trim_end(), Role::Thought));
    }
    let live = turn.finished.is_none();
    if let Some(attempt) = attempt(turn).filter(|_| live) {
        for args in attempt.args.values() {
            reasoning(args, out);
        }
    }
    // A verdict's own JSON is read out as it comes, and not shown once the verdict is.
    let told = if live {
        reasoning(text, out)
    } else {
        of(shown).is_some()
    };
    if !told && !text.trim().is_empty() {
        out.push(gap());
        out.push(heading("reply"));
        out.push(Block::new(text.trim_end(), Role::Text));
    }
}

/// The newest attempt that has not failed.
fn attempt(turn: &TurnState) -> Option<&AttemptState> {
    turn.attempts
        .values()
        .last()
        .filter(|attempt| attempt.failed.is_none())
}

/// The reasoning within a verdict whose JSON is still coming. Whether the text is such JSON.
fn reasoning(json: &str, out: &mut Vec<Block<'_>>) -> bool {
    /// A verdict is short; what is longer is shown as it comes.
    const READ: usize = 64 << 10;
    let Some(reasoning) = (json.len() <= READ)
        .then(|| extract_reasoning(json))
        .flatten()
    else {
        return false;
    };
    if !reasoning.is_empty() {
        out.push(gap());
        out.push(heading("reasoning"));
        out.push(Block::new(reasoning, Role::Text));
    }
    true
}

//! What the judge wrote in the shown turn: thinking, the reasoning of a verdict that is still coming, plain text.

use super::verdict::shown_verdict;
use super::{ContentCx, empty_row, heading};
use crate::event::{AttemptState, TurnState};
use crate::report::extract_reasoning;
use crate::theme::Role;
use crate::tui::state::judge_trace::find_shown_turn;
use crate::tui::state::shown_cell::ShownCell;
use crate::tui::widget::flow::TextBlock;

/// What the judge wrote in the shown turn: as it comes, and afterwards.
pub(super) fn push_judge_output<'a>(
    ink: &ContentCx<'a>,
    shown: &ShownCell<'a>,
    out: &mut Vec<TextBlock<'a>>,
) {
    let turns = shown.turns();
    let Some(turn) =
        find_shown_turn(&ink.app.session().trace_panes, turns).and_then(|at| turns.get(at))
    else {
        return;
    };
    let (thought, text) = match (&turn.finished, newest_attempt(turn)) {
        (Some(finished), _) => {
            let reply = &finished.reply;
            (reply.thought.as_str(), reply.text.as_str())
        }
        (None, Some(attempt)) => (attempt.thought.as_str(), attempt.text.as_str()),
        (None, None) => return,
    };
    if !thought.trim().is_empty() {
        out.push(empty_row());
        out.push(heading("thinking"));
        out.push(TextBlock::new(thought.trim_end(), Role::Thought));
    }
    let live = turn.finished.is_none();
    if let Some(attempt) = newest_attempt(turn).filter(|_| live) {
        for args in attempt.args.values() {
            push_partial_reasoning(args, out);
        }
    }
    // A verdict's own JSON is read out as it comes, and not shown once the verdict is.
    let told = if live {
        push_partial_reasoning(text, out)
    } else {
        shown_verdict(shown).is_some()
    };
    if !told && !text.trim().is_empty() {
        out.push(empty_row());
        out.push(heading("reply"));
        out.push(TextBlock::new(text.trim_end(), Role::Text));
    }
}

/// The newest attempt that has not failed.
fn newest_attempt(turn: &TurnState) -> Option<&AttemptState> {
    turn.attempts
        .values()
        .last()
        .filter(|attempt| attempt.failed.is_none())
}

/// The reasoning within a verdict whose JSON is still coming. Whether the text is such JSON.
fn push_partial_reasoning(json: &str, out: &mut Vec<TextBlock<'_>>) -> bool {
    /// A verdict is short; what is longer is shown as it comes.
    const READ: usize = 64 << 10;
    let Some(reasoning) = (json.len() <= READ)
        .then(|| extract_reasoning(json))
        .flatten()
    else {
        return false;
    };
    if !reasoning.is_empty() {
        out.push(empty_row());
        out.push(heading("reasoning"));
        out.push(TextBlock::new(reasoning, Role::Text));
    }
    true
}
